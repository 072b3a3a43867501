#include "predict.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <fcntl.h>

#include <cltrain/cltrain.h>

#include "predict_write.h"
#include "report.h"
#include "scores.h"
#include "system.h"
#include "task.h"
#include "tools/common/files.h"
#include "tools/common/message.h"
#include "tools/survey/document.h"
#include "tools/survey/look.h"
#include "tools/common/text.h"

enum { BATCH = 256, MODEL_TEXT = 256 };

typedef struct use {
    const options *given;
    const char *option; /* --predict or --test, or what the program calls it */
    char model[MODEL_TEXT];
    clt_preprocessing *trained_on;
    clt_dataset *data;
    clt_device *device;
    task made;
    clt_tensor *predicted; /* probabilities, or numbers */
    clt_predictor *predictor; /* of --predict */
    clt_trainer *trainer;     /* of --test, which needs a loss */
    clt_loader *loader;
    scores scores; /* of --test */
    double *values; /* [samples, width] */
    int64_t samples, width;
} use;

/* ---- what the file tells ---- */

static int read_file(use *u) {
    const char *path = u->given->from;
    clt_status status = clt_preprocessing_load(&u->trained_on, path);
    if (status == CLT_E_NOT_FOUND)
        return run_error("%s: %s does not tell what data its model takes: it was written by an earlier version, or by another program. --resume %s "
                         "with the data that it was trained on, --epochs 0 and --save writes one that does",
                         u->given->from_name, path, path);
    if (status >= 0) status = clt_weights_metadata(path, "cltrain.model", u->model, sizeof u->model);
    if (status < 0) return library_error(status, u->given->from_name);
    if (u->given->model && strcmp(u->given->model, u->model) != 0)
        return usage_error("%s is given, but %s holds %s: leave MODEL out", u->given->model, path, u->model);
    if (clt_preprocessing_dtype(u->trained_on) != CLT_I32) return 0;
    return run_error("%s: %s reads tokens; expected the file of a model that reads numbers or images", u->option, u->model);
}

/* ---- data ---- */

static clt_status open_data(use *u, bool labelled) {
    const data_spec *spec = &u->given->data_spec;
    if (spec->source == DATA_NPY) {
        bool stream;
        clt_status status = data_read_npy(&u->data, spec, labelled ? spec->path_y : NULL, &stream);
        return status >= 0 && spec->layout == LAYOUT_NHWC ? clt_dataset_channels_first(u->data) : status;
    }
    if (spec->source == DATA_FOLDER || spec->source == DATA_TAR) {
        clt_image_folder_options images = spec->images;
        clt_shape shape = clt_preprocessing_shape(u->trained_on);
        if (!images.size && shape.rank == 3) images.size = (int)shape.dims[1];
        images.augment = false;
        images.floats = clt_preprocessing_dtype(u->trained_on) == CLT_F32;
        images.like = u->trained_on;
        images.no_label = !labelled;
        if (spec->source == DATA_FOLDER) return clt_dataset_image_folder(&u->data, spec->path, &images);
        return data_open_tar(&u->data, spec->path, &images, u->option) ? CLT_END : CLT_OK; /* what is wrong was said */
    }
    clt_csv_options csv = spec->csv;
    csv.like = u->trained_on;
    csv.spill = data_spill_folder(spec);
    csv.leave_out = true;
    csv.no_label = !labelled;
    csv.regression = clt_preprocessing_classes(u->trained_on) == 0;
    return clt_dataset_csv(&u->data, spec->path, &csv);
}

/* Whether images [height, width, channels] are of that shape. */
static bool is_turned(clt_shape images, clt_shape shape) {
    if (images.rank != 3 || shape.rank != 3) return false;
    return images.dims[2] == shape.dims[0] && images.dims[0] == shape.dims[1] && images.dims[1] == shape.dims[2];
}

static int check_shape(use *u, clt_shape shape) {
    clt_shape found = clt_dataset_shape(u->data, 0);
    char texts[2][256];
    u->samples = clt_dataset_samples(u->data);
    if (task_same_shape(found, shape)) return 0;
    task_shape_text(found, texts[0], sizeof texts[0]);
    task_shape_text(shape, texts[1], sizeof texts[1]);
    return run_error("%s: the samples of %s are %s; the model was trained on %s%s", u->option, u->given->data, texts[0], texts[1],
                     is_turned(found, shape) ? "; layout=nhwc takes images [height, width, channels]" : "");
}

/* Shapes first, for what else does not fit comes of that. */
static int read_data(use *u) {
    bool labelled = u->given->test != NULL;
    clt_shape shape = clt_preprocessing_shape(u->trained_on);
    int misfit = data_check_task(&u->given->data_spec, u->trained_on, u->option);
    if (misfit) return misfit;
    clt_status status = open_data(u, labelled);
    if (status == CLT_END) return EXIT_FAILED;
    if (status < 0) return library_error(status, u->option);
    int code = check_shape(u, shape);
    if (code) return code;
    status = clt_preprocessing_apply(u->trained_on, u->data);
    if (status < 0) return library_error(status, u->option);
    data_check_scale(u->data, u->trained_on, u->option, u->given->data);
    return 0;
}

/* ---- the model ---- */

static int build(use *u) {
    int classes = clt_preprocessing_classes(u->trained_on);
    clt_shape target = clt_preprocessing_target(u->trained_on);
    char problem[512];
    model_spec spec;
    if (!model_parse(&spec, u->model, problem, sizeof problem)) return run_error("%s: %s: %s", u->given->from_name, u->given->from, problem);
    if (!classes && target.rank < 0) return run_error("%s: %s tells neither classes nor the shape of what its model predicts", u->given->from_name, u->given->from);
    task_field x = {clt_preprocessing_dtype(u->trained_on), clt_preprocessing_shape(u->trained_on)}, y = {CLT_I32, {0}};
    if (!classes) y = (task_field){CLT_F32, target};
    u->width = classes ? classes : clt_shape_elements(&target);
    clt_status status = clt_graph_create(&u->made.graph);
    if (status < 0) return library_error(status, "making the model");
    int code = task_add_model(&u->made, u->model, BATCH, &x, &y, classes);
    if (code) return code;
    u->predicted = classes ? clt_softmax(u->made.output, -1) : u->made.output;
    status = clt_graph_add_lora_in(u->made.graph, u->given->from);
    if (status < 0 && status != CLT_E_NOT_FOUND) return library_error(status, u->given->from_name);
    status = clt_graph_status(u->made.graph);
    return status < 0 ? library_error(status, "making the model") : 0;
}

static clt_status make_predictor(use *u) {
    return clt_predictor_create(&u->predictor, u->device, u->predicted, &(clt_predictor_options){.weights = u->given->from});
}

static clt_status make_tester(use *u) {
    clt_status status = clt_trainer_create(&u->trainer, u->device, u->made.loss, &(clt_train_options){.output = u->made.output});
    return status < 0 ? status : clt_weights_load(u->trainer, u->given->from);
}

static int load(use *u) {
    clt_status status = look_open(&u->device, u->given->device);
    if (status < 0) return library_error(status, "opening a device");
    message_line("%s from %s on %s (%lld samples) with %s", u->model, u->given->from, u->given->data, (long long)u->samples,
                 clt_device_get_info(u->device)->name);
    status = u->given->predict ? make_predictor(u) : make_tester(u);
    if (status < 0) return library_error(status, u->given->from_name);
    clt_loader_options in_order = {.batch = BATCH < u->samples ? BATCH : u->samples, .threads = data_has_images(&u->given->data_spec) ? processors(8) : 1,
                                   .broken = options_skip_broken(u->given) ? CLT_BROKEN_LEAVE_OUT : CLT_BROKEN_STOP};
    status = clt_loader_create(&u->loader, u->data, &in_order);
    return status < 0 ? library_error(status, u->option) : 0;
}

/* ---- --predict ---- */

/* Of numbers that the model predicts as (number - mean) / deviation: with those of f32 for each deviation. */
static int digits_needed(double mean, double deviation) {
    double more = floor(log10(fmax(fabs(mean) / deviation, 1)));
    return more < PREDICT_F64_DIGITS - PREDICT_F32_DIGITS ? PREDICT_F32_DIGITS + (int)more : PREDICT_F64_DIGITS;
}

static int keep(use *u, const clt_batch *batch, const float *predicted) {
    double mean = clt_preprocessing_target_mean(u->trained_on), deviation = clt_preprocessing_target_deviation(u->trained_on);
    for (int64_t i = 0; i < batch->samples * u->width; i++) {
        int64_t sample = batch->indices[i / u->width];
        double value = predicted[i] * deviation + mean;
        if (!isfinite((float)value))
            return run_error("%s: sample %lld (from 0) of %s: the model gives no number for it; are its values finite, and as large as those it was trained on?",
                             u->option, (long long)sample, u->given->data);
        u->values[sample * u->width + i % u->width] = value;
    }
    return 0;
}

static int compute(use *u) {
    clt_batch batch;
    int code = 0;
    float *predicted = calloc(BATCH, (size_t)u->width * sizeof *predicted);
    u->values = calloc((size_t)u->samples, (size_t)u->width * sizeof *u->values);
    if (!predicted || !u->values) code = run_error("no memory for %lld predictions", (long long)u->samples);
    for (int64_t i = 0; !code && i < u->samples * u->width; i++) u->values[i] = (double)NAN;
    clt_status status = CLT_OK;
    while (!code && (status = clt_loader_next(u->loader, &batch)) != CLT_END) {
        if (status >= 0 && batch.samples) status = clt_predictor_run(u->predictor, &batch, predicted, (size_t)(batch.samples * u->width));
        code = status < 0 ? library_error(status, u->option) : keep(u, &batch, predicted);
    }
    free(predicted);
    return code;
}

/* As the name of the file says, or as the data are. */
static bool wants_table(const use *u) {
    const char *path = u->given->output;
    bool read_table = u->given->data_spec.source != DATA_NPY;
    if (!path) return read_table;
    return read_table ? !text_has_suffix(path, ".npy") : text_has_suffix(path, ".csv");
}

static int write_predictions(const use *u) {
    const char *path = u->given->output, *why = "";
    bool read_table = u->given->data_spec.source == DATA_CSV;
    FILE *file = path ? file_open_in_place(path, O_CREAT | O_TRUNC, &why) : stdout;
    if (!file) return run_error("--output: %s cannot be written: %s", path, why);
    if (clt_loader_broken(u->loader)) warning("%s: %lld samples could not be read, and have no prediction", u->option, (long long)clt_loader_broken(u->loader));
    int digits = digits_needed(clt_preprocessing_target_mean(u->trained_on), clt_preprocessing_target_deviation(u->trained_on));
    predictions p = {u->trained_on, u->data, u->samples, u->width, u->values, digits};
    int code = wants_table(u) ? predict_write_table(&p, read_table ? &u->given->data_spec : NULL, file) : predict_write_array(&p, file);
    bool written = fflush(file) == 0 && !ferror(file);
    if (path && fclose(file)) written = false;
    return code ? code : written ? 0 : run_error("%s cannot be written", path ? path : "stdout");
}

/* ---- --test ---- */

static int evaluate(use *u, clt_metrics *metrics, clt_evaluation *scored) {
    clt_batch batch;
    clt_status status = scores_begin(&u->scores, clt_preprocessing_classes(u->trained_on) > 0, u->width, BATCH, u->trained_on);
    while (status >= 0 && (status = clt_loader_next(u->loader, &batch)) != CLT_END)
        if (status >= 0 && batch.samples) status = scores_add(&u->scores, u->trainer, &batch);
    if (status >= 0) status = scores_result(&u->scores, NULL, scored);
    if (status >= 0) status = clt_trainer_eval_metrics(u->trainer, metrics, true);
    if (status < 0) return library_error(status, u->option);
    if (!metrics->samples) return run_error("%s: none of the samples of %s could be read", u->option, u->given->data);
    report_as_read(metrics, u->trained_on);
    if (isfinite(metrics->loss)) return 0;
    return run_error("%s: the loss on %s is not a number; are all values and weights finite, and as large as those that the model was trained on?", u->option, u->given->data);
}

static int print_metrics(const use *u, const clt_metrics *m, const clt_evaluation *scored) {
    bool classes = clt_preprocessing_classes(u->trained_on) > 0;
    double second = classes ? m->accuracy : m->mse;
    int64_t broken = clt_loader_broken(u->loader);
    if (u->given->json) {
        json_t *object = json_pack("{s:s, s:s, s:s, s:I, s:f, s:f}", "model", u->model, "from", u->given->from, "data", u->given->data, "test_samples",
                                   (json_int_t)m->samples, "test_loss", m->loss, classes ? "test_accuracy" : "test_mse", second);
        int64_t *confusion = object ? scores_confusion(&u->scores, classes) : NULL;
        if (object) scores_put_json(object, "test", scored);
        if (object && broken) json_object_set_new(object, "test_broken_samples", json_integer(broken));
        if (object) scores_put_confusion(object, confusion, (int)u->width, u->trained_on);
        free(confusion);
        int code = object ? document_write_at(object, u->given->json) : run_error("no memory for the result");
        json_decref(object);
        return code;
    } else {
        printf(classes ? "test loss %.6g, accuracy %.4f" : "test loss %.6g, mean squared error %.6g", m->loss, second);
        scores_print(stdout, scored);
        printf(" of %lld samples", (long long)m->samples);
        if (broken) printf("; %lld could not be read", (long long)broken);
        printf("\n");
    }
    return fflush(stdout) || ferror(stdout) ? run_error("stdout cannot be written") : 0;
}

static int use_model(use *u) {
    clt_metrics metrics;
    clt_evaluation scored = {0};
    int code = read_file(u);
    if (!code) code = read_data(u);
    if (!code) code = build(u);
    if (!code) code = load(u);
    if (!code && u->given->predict) {
        code = compute(u);
        return code ? code : write_predictions(u);
    }
    if (!code) code = evaluate(u, &metrics, &scored);
    return code ? code : print_metrics(u, &metrics, &scored);
}

int predict_run(const options *given) {
    use u = {.given = given, .option = given->data_name};
    int code = use_model(&u);
    free(u.values);
    scores_end(&u.scores);
    clt_loader_destroy(u.loader);
    clt_trainer_destroy(u.trainer);
    clt_predictor_destroy(u.predictor);
    task_free(&u.made);
    clt_device_close(u.device);
    clt_dataset_destroy(u.data);
    clt_preprocessing_destroy(u.trained_on);
    return code;
}
