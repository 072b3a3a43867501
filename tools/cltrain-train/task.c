#include "task.h"

#include "class_weights.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/common/message.h"

bool task_wants_regression(const options *given) {
    return given->model_spec.id == MODEL_LINEAR;
}

void task_shape_text(clt_shape shape, char *text, size_t bytes) {
    size_t used = (size_t)snprintf(text, bytes, "[");
    for (int i = 0; i < shape.rank && used < bytes; i++)
        used += (size_t)snprintf(text + used, bytes - used, "%s%lld", i ? ", " : "",
                                 (long long)shape.dims[i]);
    if (used < bytes) snprintf(text + used, bytes - used, "]");
}

static int truth_field(const data_parts *data) {
    return clt_dataset_fields(data->train) - 1;
}

/* A part may lack the last classes; 0: no labels. */
static int64_t count_classes(const data_parts *data) {
    if (data->vocabulary) return data->vocabulary;
    int train = clt_dataset_classes(data->train), test = clt_dataset_classes(data->test);
    return train > test ? train : test;
}

static void mark_classes(const clt_dataset *part, bool *present) {
    clt_array labels = clt_dataset_array(part, clt_dataset_fields(part) - 1);
    for (int64_t i = 0; labels.data && i < clt_dataset_samples(part); i++) present[((const int32_t *)labels.data)[i]] = true;
}

/* Numbers that are no classes, such as prices, make a model of as many outputs as the largest of them. */
static int check_classes(const options *given, const data_parts *data, int64_t classes) {
    enum { FEW = 10 };
    int64_t samples = clt_dataset_samples(data->train) + clt_dataset_samples(data->test), empty = 0, first = -1;
    const char *remedy = given->data_spec.source == DATA_CSV ? "for numbers to predict add regression=1 to --data, for classes that have other numbers, as 1 and 2, texts=COLUMN" : "numbers to predict are stored as floats";
    if (!classes || data->vocabulary || data->of_model || given->data_spec.source == DATA_FOLDER || given->data_spec.source == DATA_TAR) return 0;
    if (classes > samples)
        return usage_error("'%s': labels up to %lld, but only %lld samples: classes are numbered from 0 without gaps; %s", given->data,
                           (long long)classes - 1, (long long)samples, remedy);
    if (clt_preprocessing_class(data->preprocessing, 0) && classes > FEW && 2 * classes > samples)
        return usage_error("'%s': labels are %lld different texts in %lld lines, as identifiers are: label=COLUMN names the column of classes", given->data,
                           (long long)classes, (long long)samples);
    bool *present = calloc((size_t)classes, sizeof *present);
    if (!present) return run_error("no memory for %lld classes", (long long)classes);
    bool in_memory = clt_dataset_array(data->train, 0).data != NULL;
    mark_classes(data->train, present);
    mark_classes(data->test, present);
    if (data->validation) mark_classes(data->validation, present);
    if (!in_memory) memset(present, true, (size_t)classes); /* nobody has counted them */
    for (int64_t c = classes - 1; c >= 0; c--)
        if (!present[c]) empty++, first = c;
    free(present);
    if (empty * 10 > classes)
        return usage_error("'%s': %lld of %lld classes have no sample, class %lld for one: classes are numbered from 0 without gaps; %s", given->data,
                           (long long)empty, (long long)classes, (long long)first, remedy);
    if (empty && data->table)
        warning("--data: %lld of %lld classes %s no sample, class %lld for one: texts=COLUMN makes classes of the labels that there are", (long long)empty, (long long)classes,
                empty > 1 ? "have" : "has", (long long)first);
    return 0;
}

static int check_truth(const options *given, int64_t classes) {
    model_id id = given->model_spec.id;
    if (id == MODEL_LINEAR && classes)
        return usage_error("linear predicts numbers, but '%s' has labels of %lld classes: expected "
                           "csv:FILE without regression=0, npy with a Y of floats, or "
                           "synthetic-regression:NxD; for classes there is logistic",
                           given->data, (long long)classes);
    if (id == MODEL_LOGISTIC && !classes)
        return usage_error("logistic predicts classes, but '%s' has targets that are numbers: "
                           "expected labels; for numbers there is linear", given->data);
    if (given->loss != OPTION_UNSET && (given->loss == 0) != (classes > 0))
        return usage_error("--loss %s, but '%s' has %s", given->loss ? "mse" : "cross_entropy", given->data,
                           classes ? "labels: expected cross_entropy" : "targets that are numbers: expected mse");
    if (classes == 1)
        return usage_error("'%s' has one class only: expected labels of at least two", given->data);
    return 0;
}

static int check_samples(const options *given, const data_parts *data, clt_shape sample) {
    char text[256];
    model_input reads = model_reads(given->model_spec.id);
    task_shape_text(sample, text, sizeof text);
    if (given->model_spec.id != MODEL_ONNX && (reads == MODEL_READS_TOKENS) != (data->vocabulary > 0))
        return usage_error("%s with '%s': a language model such as gpt2:nano needs --data text:FILE, and such data a language model",
                           model_name(given->model_spec.id), given->data);
    if (reads != MODEL_READS_IMAGES || sample.rank == 3) return 0;
    return usage_error(
        "%s needs images [channels, height, width], but the samples of '%s' have the "
        "shape %s: expected digits, idx:DIR, cifar10:DIR, synthetic:CxHxW, or npy with "
        "an X [n, channels, height, width]",
        model_name(given->model_spec.id), given->data, text);
}

/* [d0, …] -> [batch, d0, …] */
static clt_shape batched(clt_shape sample, int64_t batch) {
    clt_shape shape = {.rank = sample.rank + 1, .dims = {batch}};
    for (int i = 0; i < sample.rank && i + 1 < CLT_MAX_RANK; i++) shape.dims[i + 1] = sample.dims[i];
    return shape;
}

/* The network of a file has its inputs, weights and output: they must be those that the data need. */
static int add_onnx(task *made, const char *path, int64_t batch, const task_field *x, clt_shape truth, int64_t outputs) {
    char shape[256], wanted[256];
    clt_preprocessing *told = NULL;
    clt_status status = clt_onnx_open(&made->onnx, path);
    if (status >= 0) status = clt_onnx_preprocessing(made->onnx, &told); /* the data were read by it, if it can be read */
    clt_preprocessing_destroy(told);
    if (status >= 0 || status == CLT_E_NOT_FOUND) status = clt_onnx_build(made->onnx, made->graph, &(clt_onnx_options){.batch = batch});
    if (status == CLT_E_IO || status == CLT_E_NO_MEMORY) return library_error(status, "reading the model");
    if (status < 0) return usage_error("%s", clt_error_detail());
    const char *name = clt_onnx_input_name(made->onnx, 0);
    clt_tensor *input = name ? clt_graph_find(made->graph, name) : NULL;
    if (!input || clt_onnx_input_name(made->onnx, 1)) return usage_error("%s has %s: expected one, the samples", path, input ? "more than one input" : "no input");
    made->output = clt_onnx_output(made->onnx, NULL);
    clt_shape sample = batched(x->sample, batch), out = clt_tensor_shape(made->output);
    task_shape_text(clt_tensor_shape(input), shape, sizeof shape), task_shape_text(sample, wanted, sizeof wanted);
    if (!task_same_shape(clt_tensor_shape(input), sample) || clt_tensor_dtype(input) != x->dtype)
        return usage_error("%s reads %s %s, but a batch of the data is %s %s", path, clt_dtype_name(clt_tensor_dtype(input)), shape, clt_dtype_name(x->dtype), wanted);
    task_shape_text(out, shape, sizeof shape);
    if (out.rank == truth.rank + 1 && out.dims[truth.rank] >= outputs) { /* for each of the truths */
        out.rank--;
        if (task_same_shape(out, truth)) return 0;
    }
    task_shape_text(truth, wanted, sizeof wanted);
    return usage_error("%s gives %s, but %lld outputs are needed for each of %s %s", path, shape, (long long)outputs, wanted, truth.rank > 1 ? "tokens" : "samples");
}

static clt_tensor *weighted_loss(const task *made, clt_tensor *truth, int64_t classes) {
    clt_array values = {CLT_F32, CLT_SHAPE(classes), (void *)(uintptr_t)made->class_weights};
    clt_cross_entropy_options apart = {.reduction = CLT_LOSS_NONE, .weight = clt_constant(made->graph, "class_weights", &values)};
    return clt_mean(clt_cross_entropy_with(made->output, truth, apart), (clt_reduce_options){.n_axes = 0});
}

/* Of a sample that has a part of another one: a share of the loss of each label. */
static clt_tensor *mixed_loss(const task *made, clt_tensor *other, clt_tensor *share, clt_tensor *truth) {
    clt_cross_entropy_options apart = {.reduction = CLT_LOSS_NONE};
    clt_tensor *own = clt_cross_entropy_with(made->output, truth, apart), *others = clt_cross_entropy_with(made->output, other, apart);
    return clt_mean(clt_add(others, clt_mul(share, clt_sub(own, others))), (clt_reduce_options){.n_axes = 0});
}

int task_add_model(task *made, const char *model, int64_t batch, const task_field *x, const task_field *y, int64_t classes) {
    char problem[256];
    model_spec spec;
    clt_shape y_shape = batched(y->sample, batch);
    int64_t outputs = classes ? classes : clt_shape_elements(&y->sample);
    made->classification = classes > 0;
    if (model_parse(&spec, model, problem, sizeof problem) && spec.id == MODEL_ONNX) {
        clt_shape truth = classes ? y_shape : CLT_SHAPE(batch); /* of numbers a sample has as many outputs */
        int code = add_onnx(made, model, batch, x, truth, outputs);
        if (code) return code;
    } else made->output = model_build(model, clt_input(made->graph, "x", x->dtype, batched(x->sample, batch)), outputs);
    clt_tensor *other = made->mixes ? clt_input(made->graph, "y_other", CLT_I32, y_shape) : NULL, *share = made->mixes ? clt_input(made->graph, "share", CLT_F32, y_shape) : NULL;
    clt_tensor *truth = clt_input(made->graph, "y", y->dtype, y_shape);
    if (!classes && y->sample.rank != 1) made->output = clt_reshape(made->output, y_shape);
    made->loss = made->mixes ? mixed_loss(made, other, share, truth) : made->class_weights ? weighted_loss(made, truth, clt_tensor_shape(made->output).dims[1]) : model_loss(made->output, truth);
    return 0;
}

static int build_graph(task *made, const options *given, const data_parts *data, int64_t classes) {
    int truth = truth_field(data);
    task_field x = {clt_dataset_dtype(data->train, 0), clt_dataset_shape(data->train, 0)};
    task_field y = {clt_dataset_dtype(data->train, truth), clt_dataset_shape(data->train, truth)};
    return task_add_model(made, given->model, given->batch, &x, &y, classes);
}

bool task_same_shape(clt_shape a, clt_shape b) {
    bool same = a.rank == b.rank;
    for (int i = 0; same && i < a.rank; i++) same = a.dims[i] == b.dims[i];
    return same;
}

/* The test part that files brought along must be of the same kind as the training part. */
static int check_parts(const options *given, const data_parts *data) {
    char texts[2][256];
    clt_shape train = clt_dataset_shape(data->train, 0), test = clt_dataset_shape(data->test, 0);
    task_shape_text(train, texts[0], sizeof texts[0]);
    task_shape_text(test, texts[1], sizeof texts[1]);
    if (task_same_shape(train, test)) return 0;
    return run_error("--data %s: training samples have the shape %s, test samples %s", given->data,
                     texts[0], texts[1]);
}

/* " (a, b, c)", up to what a line holds; nothing without names. */
static void put_names(char *text, size_t bytes, const char *(*name)(const clt_preprocessing *p, int64_t i), const clt_preprocessing *p) {
    enum { MOST = 60 };
    size_t used = 0;
    for (int64_t i = 0; name(p, i); i++) {
        bool fits = used + strlen(name(p, i)) < MOST && used + strlen(name(p, i)) + sizeof " (, ...)" < bytes;
        used += (size_t)snprintf(text + used, bytes - used, "%s%s", i ? ", " : " (", fits ? name(p, i) : "...");
        if (!fits) break;
    }
    if (used && used + 1 < bytes) strcpy(text + used, ")");
}

static const char *class_name(const clt_preprocessing *p, int64_t i) {
    return clt_preprocessing_class(p, (int)i);
}

void task_describe(const data_parts *data, char *text, size_t bytes) {
    char shape[256], names[128] = "";
    clt_shape sample = clt_dataset_shape(data->train, 0), truth = clt_dataset_shape(data->train, truth_field(data));
    int64_t classes = count_classes(data), elements = clt_shape_elements(&sample), targets = clt_shape_elements(&truth);
    size_t used;
    task_shape_text(sample, shape, sizeof shape);
    if (data->vocabulary) {
        snprintf(text, bytes, "%lld tokens a sample of a vocabulary of %lld", (long long)elements, (long long)data->vocabulary);
        return;
    }
    put_names(names, sizeof names, clt_preprocessing_feature, data->preprocessing);
    if (!names[0] && data->table) strcpy(names, " (no header)");
    if (sample.rank <= 1) used = (size_t)snprintf(text, bytes, "%lld feature%s%s", (long long)elements, PLURAL(elements), names);
    else used = (size_t)snprintf(text, bytes, "%s %s", sample.rank == 3 ? "images [channels, height, width] =" : "samples", shape);
    if (used >= bytes) return;
    names[0] = 0;
    put_names(names, sizeof names, class_name, data->preprocessing);
    if (classes) snprintf(text + used, bytes - used, ", %lld classes%s", (long long)classes, names);
    else snprintf(text + used, bytes - used, ", %lld target%s", (long long)targets, PLURAL(targets));
}

int task_build(task *made, const options *given, const data_parts *data) {
    char text[256];
    int64_t classes = count_classes(data);
    clt_shape sample = clt_dataset_shape(data->train, 0);
    *made = (task){0};
    int code = check_parts(given, data);
    if (!code) code = check_truth(given, classes);
    if (!code) code = check_classes(given, data, classes);
    if (!code) code = check_samples(given, data, sample);
    if (code) return code;
    clt_status status = clt_graph_create(&made->graph);
    if (status < 0) return library_error(status, "making the model");
    float *class_weights = NULL;
    if (given->class_weights) code = class_weights_find(&class_weights, given->class_weights, data->train, data->vocabulary ? 0 : classes);
    made->class_weights = class_weights;
    made->mixes = options_mix(given);
    if (!code && made->mixes && (!classes || data->vocabulary)) code = usage_error("--%s is for classes: there are none in these data", given->mixup > 0 ? "mixup" : "cutmix");
    if (!code) code = build_graph(made, given, data, classes);
    made->class_weights = NULL;
    free(class_weights);
    if (code) return code;
    status = clt_graph_status(made->graph);
    if (status == CLT_E_NO_MEMORY) return library_error(status, "making the model");
    if (status >= 0) return 0;
    task_shape_text(sample, text, sizeof text);
    return usage_error("%s does not fit the samples %s of '%s': %s", given->model, text, given->data,
                       clt_error_detail());
}

void task_free(task *made) {
    clt_graph_destroy(made->graph);
    clt_onnx_close(made->onnx);
    *made = (task){0};
}
