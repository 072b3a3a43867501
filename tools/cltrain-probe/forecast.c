#include "forecast.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "hooks.h"
#include "statistics.h"
#include "tools/common/clock.h"
#include "tools/common/message.h"
#include "tools/survey/child.h"
#include "tools/survey/document.h"

/* ---- in the child: models that are run ---- */

typedef struct runner {
    probe_model model;
    clt_trainer *trainer;
    clt_batch batch;
    double step_seconds;
    double seconds[FORECAST_ROUNDS]; /* of real steps, by round */
    int rounds;
} runner;

static void begin(FILE *lines, const char *what, int64_t batch) {
    char text[64];
    snprintf(text, sizeof text, "%s at batch %lld", what, (long long)batch);
    document_line(lines, json_pack("{s:s}", "begin", text));
    hook_row(text);
}

static void free_runner(runner *r) {
    clt_trainer_destroy(r->trainer);
    probe_model_free(&r->model);
    for (int i = 0; i < r->batch.n_fields; i++) free((void *)(uintptr_t)r->batch.fields[i].data);
}

static void *make_values(size_t n) {
    float *values = malloc(n * sizeof *values);
    for (size_t i = 0; values && i < n; i++) values[i] = (float)(i * 7919 % 2003) / 1001.0f - 1.0f;
    return values;
}

static void *make_labels(size_t n, size_t classes) {
    int32_t *labels = malloc(n * sizeof *labels);
    for (size_t i = 0; labels && i < n; i++) labels[i] = (int32_t)(i * 31 % classes);
    return labels;
}

static clt_status make_batch(runner *r, int64_t samples) {
    size_t classes = r->model.onnx ? 1 : (size_t)r->model.classes; /* of a file nobody knows what indices it takes, but 0 */
    r->batch = (clt_batch){.samples = samples};
    for (int i = 0; i < r->model.n_inputs; i++) {
        clt_dtype dtype = clt_tensor_dtype(r->model.inputs[i]);
        clt_shape shape = clt_tensor_shape(r->model.inputs[i]);
        size_t n = (size_t)clt_shape_elements(&shape);
        void *data = dtype == CLT_F32 ? make_values(n) : dtype == CLT_I32 ? make_labels(n, classes) : calloc(n, clt_dtype_bytes(dtype));
        r->batch.fields[r->batch.n_fields++] = (clt_array){dtype, shape, data};
        if (!data) return CLT_E_NO_MEMORY;
    }
    return CLT_OK;
}

static clt_status run_steps(runner *r, int steps, double *seconds) {
    double start = now_seconds();
    clt_metrics metrics;
    clt_status status = CLT_OK;
    for (int i = 0; i < steps && status == CLT_OK; i++) status = clt_trainer_step(r->trainer, &r->batch);
    /* By reading something: there are drivers whose finish alone does not wait. */
    if (status == CLT_OK) status = clt_trainer_train_metrics(r->trainer, &metrics, false);
    *seconds = (now_seconds() - start) / steps;
    return status;
}

/* The first steps compile things. */
static clt_status make_runner(runner *r, const forecast_question *q, clt_device *device, int64_t batch) {
    shared_options options = *q->options;
    double seconds;
    options.batch = batch;
    *r = (runner){.step_seconds = 0};
    if (probe_model_build(&r->model, &options, q->options->model)) return CLT_E_INVALID;
    const clt_train_options training = r->model.training;
    clt_status status = make_batch(r, batch);
    if (status == CLT_OK) status = clt_trainer_create(&r->trainer, device, r->model.loss, &training);
    if (status == CLT_OK) status = run_steps(r, 2, &seconds);
    if (status == CLT_OK) status = run_steps(r, 1, &r->step_seconds);
    return status;
}

/* ---- rounds: launches timed, and steps as they are, by turns, so that what the machine does meanwhile meets both ---- */

typedef struct measuring {
    const forecast_question *q;
    clt_device *device;
    clt_times *times;
    FILE *lines;
    runner runners[FORECAST_MOST_BATCHES + 1];
    int64_t batches[FORECAST_MOST_BATCHES + 1];
    bool timed[FORECAST_MOST_BATCHES + 1]; /* else it is only run */
    int n, run;                            /* run: whose steps are wanted; -1: nobody's */
} measuring;

static void add_batch(measuring *m, int64_t batch, bool timed) {
    for (int i = 0; i < m->n; i++) {
        if (m->batches[i] != batch) continue;
        m->timed[i] |= timed;
        return;
    }
    if (m->n > FORECAST_MOST_BATCHES) return;
    m->batches[m->n] = batch;
    m->timed[m->n++] = timed;
}

/* At least one; as many as fill a moment. */
static int steps_of(const runner *r, double moment) {
    double steps = moment / (r->step_seconds > 1e-6 ? r->step_seconds : 1e-6);
    return steps < 2 ? 2 : steps > 200 ? 200 : (int)steps;
}

static clt_status do_round(measuring *m, double moment) {
    for (int i = 0; i < m->n; i++) {
        runner *r = &m->runners[i];
        clt_status status = CLT_OK;
        begin(m->lines, m->timed[i] ? "timing launches" : "running steps", m->batches[i]);
        if (m->timed[i]) status = clt_times_measure(m->times, r->trainer, &r->batch, steps_of(r, moment));
        if (status == CLT_OK && i == m->run && r->rounds < FORECAST_ROUNDS)
            status = run_steps(r, steps_of(r, moment), &r->seconds[r->rounds++]);
        if (status < 0) return status;
    }
    return CLT_OK;
}

/* The device is not at fault where they cannot be kept, and the prediction stands. */
static void save_times(measuring *m) {
    begin(m->lines, "saving times", m->q->batch);
    if (clt_times_save(m->times) < 0) document_line(m->lines, json_pack("{s:o}", "times_unsaved", document_text(clt_error_detail())));
}

/* Nor where a file that was named holds something else. */
static clt_status open_times(measuring *m) {
    clt_status status = clt_times_open(&m->times, m->device, m->q->times);
    if (status < 0 && m->q->times)
        document_line(m->lines, json_pack("{s:o}", "times_refused", document_text(clt_error_detail())));
    if (status == CLT_OK && clt_times_skipped(m->times))
        document_line(m->lines, json_pack("{s:I}", "times_skipped", (json_int_t)clt_times_skipped(m->times)));
    return status;
}

/* Each round is short, so that there are several; on what is far slower than that, a simulator perhaps, fewer. */
static clt_status do_rounds(measuring *m) {
    const double moment = 0.12;
    const int least = 5;
    const double most = 4; /* times the seconds, for the least */
    double end = now_seconds() + m->q->seconds;
    for (int i = 0; i < m->n; i++) {
        begin(m->lines, "preparing the model", m->batches[i]);
        clt_status status = make_runner(&m->runners[i], m->q, m->device, m->batches[i]);
        if (status < 0) return status;
    }
    double last = now_seconds() + most * m->q->seconds;
    for (int round = 0; round < FORECAST_ROUNDS && (round == 0 || now_seconds() < (round < least ? last : end)); round++) {
        clt_status status = do_round(m, moment);
        if (status < 0) return status;
    }
    save_times(m);
    return CLT_OK;
}

/* ---- what is told ---- */

static json_t *memory_json(const clt_step_memory *m) {
    return json_pack("{s:I, s:I, s:I, s:I, s:I, s:I}", "total_bytes", (json_int_t)m->total, "activations_bytes",
                     (json_int_t)m->activations, "states_bytes", (json_int_t)m->states, "inputs_bytes", (json_int_t)m->inputs,
                     "largest_buffer_bytes", (json_int_t)m->largest, "host_bytes", (json_int_t)m->host);
}

static bool add_problem(const clt_predicted_problem *p, void *user) {
    json_array_append_new(user, json_pack("{s:s, s:s, s:i, s:f, s:f, s:s, s:s}", "problem", p->problem, "row", p->row, "count",
                                          p->count, "us", 1e6 * p->seconds, "roof_us", 1e6 * p->roofline_seconds, "source",
                                          clt_times_source_name(p->source), "from", p->from));
    return true;
}

static json_t *sources_json(const clt_prediction *p) {
    json_t *sources = json_object();
    for (int s = 0; s < CLT_TIMES_SOURCES_; s++)
        json_object_set_new(sources, clt_times_source_name((clt_times_source)s), json_real(p->shares[s]));
    return sources;
}

static json_t *prediction_json(const clt_prediction *p, json_t *problems) {
    json_t *o = json_pack("{s:I, s:f, s:f, s:f, s:f, s:o, s:I, s:f, s:f, s:o}", "batch", (json_int_t)p->batch, "step_us", 1e6 * p->seconds, "host_us", 1e6 * p->host_seconds,
                          "samples_per_second", p->seconds > 0 ? (double)p->batch / p->seconds : 0, "roof_us", 1e6 * p->roofline_seconds,
                          "sources", sources_json(p), "launches", (json_int_t)p->launches, "flops", p->flops, "bytes", p->bytes, "error",
                          isfinite(p->error) ? json_real(p->error) : json_null());
    if (problems) json_object_set_new(o, "problems", problems);
    return o;
}

/* Mean of the rounds from the first to the third quartile. */
static json_t *measured_json(runner *r) {
    double sum = 0;
    int begin_at = r->rounds / 4, end = r->rounds - r->rounds / 4;
    statistics_sort(r->seconds, r->rounds);
    for (int i = begin_at; i < end; i++) sum += r->seconds[i];
    return json_pack("{s:f, s:f, s:f, s:i}", "step_us", 1e6 * sum / (end - begin_at), "p10_us",
                     1e6 * statistics_quantile(r->seconds, r->rounds, 0.1), "p90_us",
                     1e6 * statistics_quantile(r->seconds, r->rounds, 0.9), "rounds", r->rounds);
}

static clt_status predict(const forecast_question *q, clt_times *times, int64_t batch, json_t *problems, clt_prediction *p) {
    const clt_train_options training = q->model->training;
    return clt_predict_step(times, q->model->loss, &training, batch, problems ? add_problem : NULL, problems, p);
}

static clt_status tell_memory(const forecast_question *q, clt_device *device, FILE *lines, bool *fits) {
    const clt_train_options training = q->model->training;
    clt_step_memory memory;
    int64_t largest;
    char reason[256];
    begin(lines, "looking at memory", q->batch);
    clt_status status = clt_largest_batch(device, q->model->loss, &training, 0, &largest, reason);
    if (status < 0) return status;
    *fits = q->batch <= largest;
    document_line(lines, json_pack("{s:I, s:o, s:I}", "largest_batch", (json_int_t)largest, "largest_reason", document_text(reason), "room_bytes",
                                   (json_int_t)clt_device_get_info(device)->memory_bytes));
    if (largest == 0) return status;
    status = clt_predict_memory(device, q->model->loss, &training, q->batch, &memory);
    if (status == CLT_OK) document_line(lines, json_pack("{s:o}", "memory", memory_json(&memory)));
    return *fits ? status : CLT_OK;
}

/* What is already known in full, and not from a moment when the machine was busy, is not measured again. */
static clt_status choose_batches(measuring *m, bool fits) {
    const double enough = 0.98, most_error = 0.2;
    clt_prediction p;
    for (int i = 0; i < m->q->n_at; i++) add_batch(m, m->q->at[i], true);
    if (!fits || m->q->offline) return CLT_OK;
    if (m->q->n_at == 0) {
        begin(m->lines, "measuring the peaks", m->q->batch);
        clt_status status = predict(m->q, m->times, m->q->batch, NULL, &p);
        if (status < 0) return status;
        bool known = p.shares[CLT_TIMES_MEASURED] >= enough && p.error <= most_error;
        if (m->q->refresh || m->q->run || !known) add_batch(m, m->q->batch, true);
    }
    if (m->q->run) add_batch(m, m->q->batch, false);
    for (int i = 0; i < m->n; i++)
        if (m->q->run && m->batches[i] == m->q->batch) m->run = i;
    return CLT_OK;
}

static clt_status tell_prediction(measuring *m) {
    clt_prediction p;
    json_t *problems = json_array(), *also = json_array(), *at = json_array();
    begin(m->lines, "predicting", m->q->batch);
    clt_status status = predict(m->q, m->times, m->q->batch, problems, &p);
    if (status == CLT_OK) document_line(m->lines, json_pack("{s:o}", "predicted", prediction_json(&p, json_incref(problems))));
    for (int i = 0; i < m->q->n_also && status == CLT_OK; i++) {
        status = predict(m->q, m->times, m->q->also[i], NULL, &p);
        if (status == CLT_OK) json_array_append_new(also, prediction_json(&p, NULL));
    }
    for (int i = 0; i < m->n; i++)
        if (m->timed[i]) json_array_append_new(at, json_integer(m->batches[i]));
    document_line(m->lines, json_pack("{s:O, s:O}", "also", also, "measured_at", at));
    if (status == CLT_OK && m->run >= 0) document_line(m->lines, json_pack("{s:o}", "measured", measured_json(&m->runners[m->run])));
    json_decref(problems), json_decref(also), json_decref(at);
    return status;
}

/* `wrong`: it computes something else than it should. */
static clt_status answer(measuring *m, bool *wrong) {
    bool fits = false;
    clt_device_facts facts;
    begin(m->lines, "running a small kernel", m->q->batch);
    clt_status status = clt_device_get_facts(m->device, &facts, wrong);
    if (status == CLT_OK) status = tell_memory(m->q, m->device, m->lines, &fits);
    if (status == CLT_OK) status = open_times(m);
    if (status == CLT_OK) status = choose_batches(m, fits);
    if (status == CLT_OK && m->n) status = do_rounds(m);
    if (status == CLT_OK && fits) status = tell_prediction(m);
    for (int i = 0; i < m->n; i++) free_runner(&m->runners[i]);
    clt_times_close(m->times);
    return status;
}

static int in_child(FILE *lines, void *user) {
    const forecast *f = user;
    measuring *m = calloc(1, sizeof *m);
    if (!m) return EXIT_FAILED;
    m->q = f->question, m->lines = lines, m->run = -1;
    begin(lines, "opening the device", f->question->batch);
    clt_status status = survey_open(f->question->s, f->question->device, NULL, &m->device);
    bool wrong = false;
    if (status == CLT_OK) status = answer(m, &wrong);
    document_line(lines, json_pack("{s:b, s:s, s:o}", "finished", 1, "status", survey_error_status(status, wrong), "reason",
                                   status < 0 ? document_text(clt_error_detail()) : json_null()));
    clt_device_close(m->device);
    free(m);
    return 0;
}

/* ---- in the parent ---- */

static bool take_line(const char *text, void *user) {
    forecast *f = user;
    json_t *told = json_loads(text, 0, NULL);
    document_clean(told); /* a driver that writes over its child's memory may make it say anything */
    const char *doing = json_string_value(json_object_get(told, "begin")), *word = json_string_value(json_object_get(told, "status"));
    const char *reason = json_string_value(json_object_get(told, "reason"));
    if (doing) snprintf(f->doing, sizeof f->doing, "%s", doing);
    if (json_object_get(told, "finished")) {
        f->finished = true;
        snprintf(f->status, sizeof f->status, "%s", word ? word : "crashed");
        snprintf(f->reason, sizeof f->reason, "%s", reason ? reason : "");
    } else if (!doing && json_is_object(told)) {
        json_object_update(f->told, told);
    }
    if (doing && isatty(STDERR_FILENO)) {
        char line[512];
        snprintf(line, sizeof line, "%.80s: %.64s", f->question->device->info.name, doing);
        message_transient(line);
    }
    json_decref(told);
    return true;
}

static bool does_not_fit(const forecast *f) {
    return json_object_get(f->told, "largest_batch") &&
           json_integer_value(json_object_get(f->told, "largest_batch")) < f->question->batch;
}

/* What stays in caches is not bound by memory. */
static void doubt(forecast *f) {
    const double most = 5;
    static const char *const members[] = {"predicted", "measured"};
    double roofline_us = forecast_number(f->told, "predicted", "roof_us");
    for (int i = 0; i < 2; i++) {
        double us = forecast_number(f->told, members[i], "step_us");
        if (!(us > 0 && us * most < roofline_us)) continue;
        snprintf(f->status, sizeof f->status, "suspect");
        snprintf(f->reason, sizeof f->reason, "a step is %s as %.3g us, where the device's peaks want %.3g: is anything computed at all?",
                 members[i], us, roofline_us);
        return;
    }
}

void forecast_ask(const forecast_question *question, forecast *f) {
    child_end end;
    *f = (forecast){.question = question, .told = json_object()};
    child_job job = {.run = in_child, .line = take_line, .user = f, .silence_seconds = question->timeout};
    child_run(&job, 1, 1, &end);
    message_wipe();
    if (!f->finished) {
        snprintf(f->status, sizeof f->status, "%s", child_status(&end));
        snprintf(f->reason, sizeof f->reason, "%.60s: %.320s", f->doing[0] ? f->doing : "starting", end.reason);
    }
    if (strcmp(f->status, "ok") == 0) doubt(f);
    if (strcmp(f->status, "ok") || !does_not_fit(f)) return;
    const char *why = json_string_value(json_object_get(f->told, "largest_reason"));
    snprintf(f->status, sizeof f->status, "unsupported");
    snprintf(f->reason, sizeof f->reason, "it does not fit: the largest batch is %lld (%.280s)",
             (long long)json_integer_value(json_object_get(f->told, "largest_batch")), why ? why : "");
}

void forecast_free(forecast *f) {
    json_decref(f->told);
    f->told = NULL;
}

const char *forecast_times_unsaved(const forecast *f) {
    return json_string_value(json_object_get(f->told, "times_unsaved"));
}

const char *forecast_times_refused(const forecast *f) {
    return json_string_value(json_object_get(f->told, "times_refused"));
}

long long forecast_times_skipped(const forecast *f) {
    return json_integer_value(json_object_get(f->told, "times_skipped"));
}

double forecast_number(const json_t *object, const char *member, const char *name) {
    return json_number_value(json_object_get(json_object_get(object, member), name));
}

/* ---- parts of documents ---- */

json_t *forecast_model_json(const shared_options *options, const probe_model *model, int64_t batch) {
    return json_pack("{s:s, s:s, s:s, s:s, s:I, s:s, s:s, s:s, s:s, s:I, s:I}", "optimizer", optimizer_names[model->training.optimizer], "precision",
                     precision_names[options->precision], "recompute", recompute_names[options->recompute], "offload", offload_names[options->offload], "ranks",
                     (json_int_t)options->ranks, "shard", shard_names[options->shard], "name", options->model, "text", model->text, "sample", model->sample,
                     "classes", (json_int_t)model->classes, "batch", (json_int_t)batch);
}
