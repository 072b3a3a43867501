/* Steps of a model, predicted from times of its problems (measure/times.h); and the taking of those times. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/base/file.h"
#include "runtime/measure/limits.h"
#include "runtime/measure/times.h"
#include "runtime/train/trainer.h"

/* The problems of a step, each once. The first is what lies between steps. */
typedef struct parts {
    clt_timing *items;
    int *counts;
    size_t n;
    size_t *of_item; /* by item of the plan: its place here */
} parts;

/* The steps of one model and batch size that were timed. */
typedef struct session {
    parts parts;
    /* Of each call that timed steps, of each part, in the mean of the call's steps: microseconds on the device, and before
     * it. */
    double *records;
    size_t n_records, capacity;
    double steps, sum_us, sum_square; /* of single steps */
    bool by_clock; /* its driver's times of launches are none */
} session;

struct clt_times {
    clt_device *device;
    char *path;
    bool named; /* by the caller: a file of something else is not to be written over */
    double there_and_back; /* a byte from the host's memory to the device's and back: seconds; 0: not measured */
    clt_timings table;
    session *sessions;
    size_t n_sessions, sessions_capacity;
};

static const double most_file_bytes = 8 << 20;
static const char kind[] = "cltrain-times"; /* of file */

/* ---- the problems of a step ---- */

static void free_parts(parts *p) {
    clt_free(p->items);
    clt_free(p->counts);
    clt_free(p->of_item);
    *p = (parts){.n = 0};
}

static size_t place_of(const parts *p, const clt_timing *timing) {
    size_t i = 1;
    while (i < p->n && !clt_timing_same(&p->items[i], timing)) i++;
    return i;
}

static void add_part(parts *p, const clt_timing *timing, size_t item) {
    size_t i = place_of(p, timing);
    if (i == p->n) p->items[p->n++] = *timing;
    p->counts[i]++;
    p->of_item[item] = i;
}

/* What is run once, when the plan is made, is no part of a step. */
static clt_status make_parts(const clt_plan *plan, parts *p) {
    size_t n;
    clt_timing timing;
    const clt_plan_item *items = clt_plan_items(plan, &n);
    *p = (parts){.items = clt_calloc(n + 1, sizeof *p->items),
                 .counts = clt_calloc(n + 1, sizeof *p->counts),
                 .of_item = clt_calloc(n + 1, sizeof *p->of_item)};
    if (!p->items || !p->counts || !p->of_item) {
        free_parts(p);
        return clt_fail_memory((n + 1) * sizeof *p->items);
    }
    clt_timing_of_feed(clt_plan_get_facts(plan).input_bytes, &p->items[0]);
    p->counts[0] = 1;
    p->n = 1;
    for (size_t i = 0; i < n; i++) {
        if (items[i].node->segment == CLT_SEGMENT_ONCE || items[i].launches == 0) continue;
        clt_timing_of(&items[i], &timing);
        add_part(p, &timing, i);
    }
    return CLT_OK;
}

/* ---- opening, saving ---- */

static clt_status refuse(const clt_times *times, const void *bytes, size_t length) {
    if (!times->named || length == 0) return CLT_OK;
    if (clt_tune_has_header(kind, bytes, length))
        return clt_fail(CLT_E_INVALID, "%s: times of another device, driver or version of the library; name another file", times->path);
    return clt_fail(CLT_E_FORMAT, "%s: no file of times; it is left as it is", times->path);
}

/* The lines behind the header. */
static clt_status read_lines(clt_timings *into, const char *text, size_t length) {
    const char *end = memchr(text, '\n', length);
    return end ? clt_timings_read(into, end + 1, length - (size_t)(end + 1 - text)) : CLT_OK;
}

/* What is there already stays: `into` is newer than the file. */
static clt_status read_file(const clt_times *times, clt_timings *into) {
    void *bytes = NULL;
    size_t length;
    if (!times->path) return CLT_OK;
    clt_status status = clt_file_read(times->path, (size_t)most_file_bytes, &bytes, &length);
    if (status < 0) return times->named && access(times->path, F_OK) == 0 ? status : CLT_OK;
    if (clt_tune_header_fits(times->device, kind, bytes, length, false)) status = read_lines(into, bytes, length);
    else status = refuse(times, bytes, length);
    clt_free(bytes);
    return status;
}

clt_status clt_times_open(clt_times **times, clt_device *device, const char *path) {
    if (!times || !device) return clt_fail(CLT_E_INVALID, "clt_times_open: an argument is NULL");
    clt_times *t = clt_calloc(1, sizeof *t);
    if (!t) return clt_fail_memory(sizeof *t);
    t->device = device;
    t->named = path != NULL;
    t->path = path ? clt_strdup(path) : NULL;
    clt_status status = path && !t->path ? clt_fail_memory(strlen(path)) : CLT_OK;
    /* Without a place for them times are taken all the same: saving says why there is none. */
    if (!path && clt_tune_find_path(device, "times", &t->path) == CLT_E_NO_MEMORY) status = CLT_E_NO_MEMORY;
    if (status == CLT_OK) status = read_file(t, &t->table);
    if (status < 0) clt_times_close(t);
    else *times = t;
    return status;
}

static void free_session(session *s) {
    free_parts(&s->parts);
    clt_free(s->records);
}

void clt_times_close(clt_times *times) {
    if (!times) return;
    for (size_t i = 0; i < times->n_sessions; i++) free_session(&times->sessions[i]);
    clt_free(times->sessions);
    clt_timings_free(&times->table);
    clt_free(times->path);
    clt_free(times);
}

size_t clt_times_count(const clt_times *times) {
    return times ? times->table.n : 0;
}

size_t clt_times_skipped(const clt_times *times) {
    return times ? times->table.skipped : 0;
}

clt_status clt_times_save(clt_times *times) {
    clt_timings all = {0};
    clt_text text = {0};
    if (!times) return clt_fail(CLT_E_INVALID, "clt_times_save: times is NULL");
    if (!times->path) CLT_TRY(clt_tune_find_path(times->device, "times", &times->path));
    clt_status status = read_file(times, &all);
    for (size_t i = 0; i < times->table.n && status == CLT_OK; i++) status = clt_timings_put(&all, &times->table.items[i]);
    if (status == CLT_OK) status = clt_tune_write_header(times->device, kind, &text);
    if (status == CLT_OK) status = clt_timings_write(&all, &text);
    if (status == CLT_OK) status = clt_file_write(times->path, text.data, text.length);
    clt_text_free(&text);
    clt_timings_free(&all);
    return status;
}

/* ---- taking times ---- */

static bool same_parts(const parts *a, const parts *b) {
    bool same = a->n == b->n;
    for (size_t i = 0; same && i < a->n; i++) same = a->counts[i] == b->counts[i] && clt_timing_same(&a->items[i], &b->items[i]);
    return same;
}

/* That of these parts, which it takes over. */
static clt_status find_session(clt_times *times, parts *p, session **found, bool *is_new) {
    *is_new = false;
    for (size_t i = 0; i < times->n_sessions; i++) {
        if (!same_parts(&times->sessions[i].parts, p)) continue;
        free_parts(p);
        *found = &times->sessions[i];
        return CLT_OK;
    }
    clt_status status = clt_grow(&times->sessions, &times->sessions_capacity, times->n_sessions, sizeof *times->sessions);
    if (status < 0) {
        free_parts(p);
        return status;
    }
    *found = &times->sessions[times->n_sessions++];
    **found = (session){.parts = *p};
    *is_new = true;
    return CLT_OK;
}

/* Adds a step's launches, those that set its states first; `before` is the end of the step before. False if it cannot be. */
static bool read_step(const clt_plan *plan, const parts *p, const clt_timed_launch *launches, size_t sets, double before,
                      double *record) {
    size_t n, at = sets;
    const clt_plan_item *items = clt_plan_items(plan, &n);
    double between = 1e6 * (launches[sets].start_seconds - before);
    bool first = true, sane = isfinite(between);
    record[0] += between;
    for (size_t i = 0; i < n; i++) {
        if (items[i].node->segment == CLT_SEGMENT_ONCE) continue;
        double *r = record + 2 * p->of_item[i];
        for (size_t k = 0; k < items[i].launches; k++, at++) {
            double start = launches[at].start_seconds, end = launches[at].end_seconds;
            r[0] += 1e6 * (end - start);
            if (!first) r[1] += 1e6 * (start - launches[at - 1].end_seconds);
            sane &= isfinite(start) && end >= start;
            first = false;
        }
    }
    return sane;
}

/* Times that cannot be are told by drivers that take none, or take them before a launch is done. */
static clt_status distrust(const clt_times *times, session *s, const char *why) {
    clt_log_message(CLT_LOG_INFO, "%s: the times of launches that its driver tells cannot be (%s): they are taken by the clock",
                    clt_device_get_info(times->device)->name, why);
    s->by_clock = true;
    s->n_records = 0;
    s->steps = s->sum_us = s->sum_square = 0;
    return CLT_OK;
}

static clt_status new_record(session *s, double **record) {
    size_t width = 2 * s->parts.n;
    CLT_TRY(clt_grow(&s->records, &s->capacity, s->n_records, width * sizeof *s->records));
    *record = s->records + s->n_records * width;
    memset(*record, 0, width * sizeof **record);
    return CLT_OK;
}

static void note_step(session *s, double seconds) {
    s->steps++;
    s->sum_us += 1e6 * seconds;
    s->sum_square += 1e12 * seconds * seconds;
}

/* Adds the steps to the record that is being made. */
static clt_status add_steps(clt_times *times, session *s, const clt_plan *plan, const clt_timed_launch *launches, size_t n,
                            int steps, double wall_seconds) {
    size_t all = (size_t)CLT_MAX(steps, 0) + 1, own = clt_plan_get_facts(plan).launches, each = n / all;
    if (n % all || each < own || own == 0) return distrust(times, s, "their number is not that of the steps'");
    double told = launches[n - 1].end_seconds - launches[0].start_seconds;
    if (!(told > 0.05 * wall_seconds && told < 2 * wall_seconds)) return distrust(times, s, "together they are not what the clock says");
    double *record = s->records + 2 * s->parts.n * s->n_records;
    for (size_t step = 1; step < all; step++) {
        double before = launches[step * each - 1].end_seconds;
        if (!read_step(plan, &s->parts, launches + step * each, each - own, before, record))
            return distrust(times, s, "one ends before it begins");
        note_step(s, launches[(step + 1) * each - 1].end_seconds - before);
    }
    return CLT_OK;
}

/* Waits by reading something: there are drivers whose finish alone does not wait. */
static clt_status run_steps(clt_trainer *trainer, const clt_batch *batch, int steps) {
    clt_metrics metrics;
    for (int i = 0; i < steps; i++) CLT_TRY(clt_trainer_step(trainer, batch));
    return clt_trainer_train_metrics(trainer, &metrics, false);
}

/* One step more than is timed: the first follows none. */
static clt_status time_steps(clt_times *times, session *s, const clt_plan *plan, clt_trainer *trainer, const clt_batch *batch,
                             int steps) {
    clt_timed_launch *launches = NULL;
    size_t n = 0;
    CLT_TRY(clt_device_time_start(times->device));
    double start = clt_seconds();
    clt_status status = run_steps(trainer, batch, steps + 1);
    double wall = clt_seconds() - start;
    clt_status stopped = clt_device_time_stop(times->device, &launches, &n);
    if (status == CLT_OK) status = stopped;
    if (status == CLT_OK) status = add_steps(times, s, plan, launches, n, steps, wall);
    clt_free(launches);
    return status;
}

/* A record: the mean of the steps of one call. */
static clt_status time_call(clt_times *times, session *s, const clt_plan *plan, clt_trainer *trainer, const clt_batch *batch, int steps,
                            int at_once) {
    double *record;
    CLT_TRY(new_record(s, &record));
    for (int left = steps; left > 0 && !s->by_clock; left -= at_once)
        CLT_TRY(time_steps(times, s, plan, trainer, batch, CLT_MIN(left, at_once)));
    for (size_t i = 0; i < 2 * s->parts.n; i++) record[i] /= steps;
    s->n_records += !s->by_clock;
    return CLT_OK;
}

/* ---- by the host's clock: steps as they are, and steps whose launches are waited for one by one ---- */

/* What a watched step takes longer is waiting, which is all launches' alike. Nothing is left for what lies between steps: it
 * is in the launches. */
static void read_watched(const clt_plan *plan, const parts *p, const double *watched, double step_seconds, double *record) {
    size_t n, at = 0, launches = clt_plan_get_facts(plan).launches;
    const clt_plan_item *items = clt_plan_items(plan, &n);
    double sum = 0, kept = 0, waiting;
    for (size_t i = 0; i < launches; i++) sum += watched[i];
    waiting = CLT_MAX(sum - step_seconds, 0) / (double)launches;
    /* A launch was nothing but waiting at most: what is cut off there is taken from the others. */
    for (size_t i = 0; i < launches; i++) kept += CLT_MAX(watched[i] - waiting, 0);
    double scale = kept > 0 ? CLT_MIN(step_seconds, sum) / kept : 1;
    for (size_t i = 0; i < n; i++) {
        if (items[i].node->segment == CLT_SEGMENT_ONCE) continue;
        for (size_t k = 0; k < items[i].launches; k++, at++)
            record[2 * p->of_item[i]] += 1e6 * scale * CLT_MAX(watched[at] - waiting, 0);
    }
}

static clt_status watch_step(session *s, clt_plan *plan, clt_trainer *trainer, const clt_batch *batch, double *watched) {
    enum { STEPS = 3 };
    double *record;
    CLT_TRY(new_record(s, &record));
    double start = clt_seconds();
    CLT_TRY(run_steps(trainer, batch, STEPS));
    double seconds = (clt_seconds() - start) / STEPS;
    clt_plan_watch(plan, watched);
    clt_status status = run_steps(trainer, batch, 1);
    clt_plan_watch(plan, NULL);
    CLT_TRY(status);
    read_watched(plan, &s->parts, watched, seconds, record);
    note_step(s, seconds);
    s->n_records++;
    return CLT_OK;
}

static clt_status watch_steps(session *s, clt_plan *plan, clt_trainer *trainer, const clt_batch *batch, int steps) {
    size_t launches = clt_plan_get_facts(plan).launches;
    double *watched = clt_calloc(launches + 1, sizeof *watched);
    clt_status status = watched ? CLT_OK : clt_fail_memory((launches + 1) * sizeof *watched);
    for (int i = 0; i < steps && status == CLT_OK; i++) status = watch_step(s, plan, trainer, batch, watched);
    clt_free(watched);
    return status;
}

/* ---- what steps come to ---- */

static clt_status settle(clt_times *times, const session *s) {
    return clt_timings_settle(&times->table, &(clt_records){.parts = s->parts.items,
                                                            .counts = s->parts.counts,
                                                            .n_parts = s->parts.n,
                                                            .us = s->records,
                                                            .n = s->n_records,
                                                            .steps = s->steps,
                                                            .sum_us = s->sum_us,
                                                            .sum_square = s->sum_square});
}

static clt_status check_measurable(const clt_times *times, const clt_trainer *trainer, const clt_batch *batch, int steps) {
    if (!times || !trainer || !batch || steps < 1) return clt_fail(CLT_E_INVALID, "clt_times_measure: an argument is NULL, or no steps");
    if (trainer->device != times->device) return clt_fail(CLT_E_INVALID, "clt_times_measure: the trainer is on another device");
    if (trainer->options.comm || trainer->options.accumulate > 1)
        return clt_fail(CLT_E_UNSUPPORTED, "steps of several ranks, or that accumulate gradients, are not timed launch by launch");
    return CLT_OK;
}

clt_status clt_times_measure(clt_times *times, clt_trainer *trainer, const clt_batch *batch, int steps) {
    enum { LAUNCHES_AT_ONCE = 7000, WARM_UP = 2, MOST_RECORDS = 512, WATCHED = 4 };
    clt_step *step;
    session *s;
    parts p;
    bool is_new;
    CLT_TRY(check_measurable(times, trainer, batch, steps));
    CLT_TRY(clt_trainer_plan(trainer, CLT_PURPOSE_TRAIN, clt_trainer_sizes(trainer, batch), NULL, &step));
    CLT_TRY(make_parts(step->plan, &p));
    CLT_TRY(find_session(times, &p, &s, &is_new));
    if (is_new) CLT_TRY(run_steps(trainer, batch, WARM_UP));
    clt_device_settle_programs(times->device); /* what is saved beside them disturbs the times */
    /* Events are read when there are many of them, which would show between launches. */
    int at_once = (int)CLT_MAX(1, LAUNCHES_AT_ONCE / (clt_plan_get_facts(step->plan).launches + 4) - 1);
    if (s->n_records >= MOST_RECORDS) return CLT_OK;
    if (!s->by_clock) CLT_TRY(time_call(times, s, step->plan, trainer, batch, steps, at_once));
    if (s->by_clock) CLT_TRY(watch_steps(s, step->plan, trainer, batch, CLT_MIN(steps, WATCHED)));
    return settle(times, s);
}

/* ---- predicting ---- */

static const char *const source_names[] = {"measured", "batches", "batch", "nearest", "roof", "others"};

const char *clt_times_source_name(clt_times_source source) {
    return source >= 0 && source < CLT_TIMES_SOURCES_ ? source_names[source] : "?";
}

static void read_memory(const clt_trainer *dry_run, const clt_plan *plan, clt_step_memory *memory) {
    clt_plan_facts facts = clt_plan_get_facts(plan);
    *memory = (clt_step_memory){.activations = facts.planned_bytes, .inputs = facts.input_memory, .largest = facts.largest_bytes};
    memory->states = clt_state_store_bytes(dry_run->store);
    memory->host = clt_state_store_host_bytes(dry_run->store) + facts.host_bytes;
    memory->total = memory->activations + memory->states + memory->inputs;
}

static int most_time_first(const void *a, const void *b) {
    const clt_predicted_problem *x = a, *y = b;
    double s = x->seconds * x->count, t = y->seconds * y->count;
    return s > t ? -1 : s < t;
}

static void add_up(const clt_predicted_problem *problem, const clt_timing *part, clt_prediction *sum) {
    double seconds = problem->seconds * problem->count;
    sum->seconds += seconds;
    sum->shares[problem->source] += seconds;
    sum->roofline_seconds += problem->roofline_seconds * problem->count;
    sum->flops += part->flops * problem->count;
    sum->bytes += part->bytes * problem->count;
    sum->launches += (int64_t)part->launches * problem->count;
}

static clt_predicted_problem predict_part(const clt_estimate *e, const clt_timing *part, int count, const clt_peaks *peaks) {
    bool other = e->from && e->source != CLT_TIMES_MEASURED, feed = part->launches == 0;
    double least = CLT_MAX(part->flops / peaks->fma_flops, part->bytes / peaks->copy_bytes);
    return (clt_predicted_problem){part->problem, part->row, count, 1e-6 * e->us, feed ? 0 : least, e->source,
                                   other ? e->from->problem : ""};
}

static void sum_parts(const clt_times *times, const parts *p, const clt_peaks *peaks, clt_estimate *estimates,
                      clt_predicted_problem *problems, clt_prediction *prediction) {
    for (size_t i = 0; i < p->n; i++) {
        estimates[i] = clt_timings_estimate(&times->table, &p->items[i], peaks, CLT_TIMES_MEASURED, NULL);
        problems[i] = predict_part(&estimates[i], &p->items[i], p->counts[i], peaks);
        add_up(&problems[i], &p->items[i], prediction);
    }
    for (int s = 0; s < CLT_TIMES_SOURCES_; s++)
        if (prediction->seconds > 0) prediction->shares[s] /= prediction->seconds;
    prediction->error = clt_timings_band(&times->table, peaks, estimates, p->counts, p->n);
}

static clt_status predict_parts(const clt_times *times, const parts *p, const clt_peaks *peaks,
                                bool (*visit)(const clt_predicted_problem *problem, void *user), void *user,
                                clt_prediction *prediction) {
    clt_predicted_problem *problems = clt_calloc(p->n, sizeof *problems);
    clt_estimate *estimates = clt_calloc(p->n, sizeof *estimates);
    clt_status status = problems && estimates ? CLT_OK : clt_fail_memory(p->n * sizeof *problems);
    if (status == CLT_OK) {
        sum_parts(times, p, peaks, estimates, problems, prediction);
        qsort(problems, p->n, sizeof *problems, most_time_first);
    }
    for (size_t i = 0; status == CLT_OK && visit && i < p->n; i++)
        if (!visit(&problems[i], user)) break;
    clt_free(estimates);
    clt_free(problems);
    return status;
}

/* The least of a few transfers of memory that is pinned, as states in the host's memory are: seconds a byte. */
static clt_status time_transfer(clt_device *device, clt_limit limit, double *seconds) {
    clt_measurement m;
    double least = INFINITY;
    CLT_TRY(clt_measure_limit(device, limit, &(clt_measure_options){.seconds = 0.05, .most_samples = 8}, &m));
    for (int i = 0; i < m.n; i++) least = CLT_MIN(least, m.seconds[i]);
    *seconds += m.n ? least / m.amount : 0;
    return CLT_OK;
}

/* What lies in the host's memory comes to the device and goes back, and nothing is computed meanwhile. */
static clt_status add_transfers(clt_times *times, clt_prediction *prediction) {
    double before = prediction->seconds;
    if (!prediction->memory.host) return CLT_OK;
    if (times->there_and_back == 0) {
        CLT_TRY(time_transfer(times->device, CLT_LIMIT_UPLOAD_PINNED, &times->there_and_back));
        CLT_TRY(time_transfer(times->device, CLT_LIMIT_DOWNLOAD_PINNED, &times->there_and_back));
    }
    prediction->host_seconds = times->there_and_back * (double)prediction->memory.host;
    prediction->seconds += prediction->host_seconds;
    prediction->roofline_seconds += prediction->host_seconds;
    for (int s = 0; s < CLT_TIMES_SOURCES_; s++) prediction->shares[s] *= before / prediction->seconds;
    return CLT_OK;
}

static clt_status try_dry_run(clt_device *device, clt_tensor *loss, const clt_train_options *options, int64_t batch, clt_trainer **dry_run, clt_step **step) {
    const double mebibyte = 1 << 20;
    clt_step_memory memory;
    CLT_TRY(clt_trainer_dry_run(dry_run, device, loss, options));
    if ((*dry_run)->options.accumulate > 1) return clt_fail(CLT_E_UNSUPPORTED, "steps that accumulate gradients are not predicted");
    CLT_TRY(clt_trainer_dry_run_step(*dry_run, batch ? batch : (*dry_run)->inputs[0]->shape.dims[0], step));
    read_memory(*dry_run, (*step)->plan, &memory);
    uint64_t most = clt_device_get_info(device)->memory_bytes;
    if (!clt_device_is_limited(device) || memory.total <= most) return CLT_OK;
    return clt_fail(CLT_E_DEVICE_MEMORY, "a training step of %lld samples takes %.1f MiB, and the memory limit is %.1f MiB", (long long)(*step)->sizes.batch,
                    (double)memory.total / mebibyte, (double)most / mebibyte);
}

/* A trainer and step of which nothing is on the device, as clt_trainer_create makes what fits into its memory limit. Both are to be destroyed, also on error. */
static clt_status dry_run_step(clt_device *device, clt_tensor *loss, const clt_train_options *options, int64_t batch,
                              clt_trainer **dry_run, clt_step **step) {
    clt_train_options tried = options ? *options : (clt_train_options){0};
    *dry_run = NULL;
    *step = NULL;
    if (batch < 0) return clt_fail(CLT_E_INVALID, "a batch of %lld samples", (long long)batch);
    clt_status status = try_dry_run(device, loss, options, batch, dry_run, step);
    while (status == CLT_E_DEVICE_MEMORY && clt_device_is_limited(device) && clt_trainer_offload_more(options, &tried)) {
        clt_step_destroy(*step);
        clt_trainer_destroy(*dry_run);
        *step = NULL, *dry_run = NULL;
        status = try_dry_run(device, loss, &tried, batch, dry_run, step);
    }
    return status;
}

clt_status clt_predict_step(clt_times *times, clt_tensor *loss, const clt_train_options *options, int64_t batch,
                            bool (*visit)(const clt_predicted_problem *problem, void *user), void *user,
                            clt_prediction *prediction) {
    clt_trainer *dry_run;
    clt_step *step;
    clt_peaks peaks;
    parts p = {.n = 0};
    if (!times || !prediction) return clt_fail(CLT_E_INVALID, "clt_predict_step: an argument is NULL");
    clt_status status = dry_run_step(times->device, loss, options, batch, &dry_run, &step);
    if (status == CLT_OK) status = clt_device_peaks(times->device, &peaks);
    if (status == CLT_OK) status = make_parts(step->plan, &p);
    if (status == CLT_OK) {
        *prediction = (clt_prediction){.batch = step->sizes.batch};
        read_memory(dry_run, step->plan, &prediction->memory);
        status = predict_parts(times, &p, &peaks, visit, user, prediction);
        if (status == CLT_OK) status = add_transfers(times, prediction);
    }
    free_parts(&p);
    clt_step_destroy(step);
    clt_trainer_destroy(dry_run);
    return status;
}

clt_status clt_predict_memory(clt_device *device, clt_tensor *loss, const clt_train_options *options, int64_t batch,
                              clt_step_memory *memory) {
    clt_trainer *dry_run;
    clt_step *step;
    if (!memory) return clt_fail(CLT_E_INVALID, "clt_predict_memory: memory is NULL");
    clt_status status = dry_run_step(device, loss, options, batch, &dry_run, &step);
    if (status == CLT_OK) read_memory(dry_run, step->plan, memory);
    clt_step_destroy(step);
    clt_trainer_destroy(dry_run);
    return status;
}

/* ---- the largest batch ---- */

enum { MOST_BATCH = 1 << 22 };

typedef struct fitting {
    clt_device *device;
    clt_tensor *loss;
    const clt_train_options *options;
    uint64_t most_bytes;
    int64_t good, bad;            /* the largest batch that fits, and the smallest that does not; 0: none yet */
    int64_t before;               /* what was good before that */
    double good_bytes, before_bytes, bad_bytes; /* bad: 0 if it is not known */
    char *reason;
} fitting;

/* An error that has nothing to do with size is one. */
static bool is_of_size(clt_status status, int64_t batch) {
    if (status == CLT_E_DEVICE_MEMORY) return true;
    return batch > 1 && (status == CLT_E_SHAPE || status == CLT_E_UNSUPPORTED || status == CLT_E_RANGE);
}

static clt_status try_batch(fitting *f, int64_t batch) {
    const double mebibyte = 1 << 20;
    clt_step_memory memory = {.total = 0};
    clt_status status = clt_predict_memory(f->device, f->loss, f->options, batch, &memory);
    if (status == CLT_OK && memory.total <= f->most_bytes) {
        if (batch > f->good) f->before = f->good, f->before_bytes = f->good_bytes;
        f->good = batch;
        f->good_bytes = (double)memory.total;
        return CLT_OK;
    }
    if (status < 0 && !is_of_size(status, batch)) return status;
    f->bad = batch;
    f->bad_bytes = (double)memory.total;
    if (status == CLT_OK)
        snprintf(f->reason, 256, "a batch of %lld takes %.1f MiB of %.1f", (long long)batch, f->bad_bytes / mebibyte,
                 (double)f->most_bytes / mebibyte);
    else
        snprintf(f->reason, 256, "a batch of %lld: %.200s", (long long)batch, clt_error_detail());
    return CLT_OK;
}

/* Memory is nearly a line over the batch: from the first points on it tells where to look next. A look at a batch takes time
 * as the batch is large. */
static int64_t next_batch(const fitting *f) {
    if (!f->bad && f->before) {
        double slope = (f->good_bytes - f->before_bytes) / (double)(f->good - f->before);
        double guess = slope > 0 ? (double)f->good + ((double)f->most_bytes - f->good_bytes) / slope : 0;
        return (int64_t)CLT_MIN(CLT_MAX(guess, (double)f->good + 1), 1.02 * (double)MOST_BATCH);
    }
    if (!f->bad) return 8 * f->good;
    int64_t middle = f->good + (f->bad - f->good) / 2;
    if (!f->good || f->bad_bytes == 0) return middle;
    double part = ((double)f->most_bytes - f->good_bytes) / (f->bad_bytes - f->good_bytes);
    int64_t guess = f->good + (int64_t)(part * (double)(f->bad - f->good));
    return CLT_MAX(f->good + 1, CLT_MIN(guess, f->bad - 1));
}

/* Large batches need not be told to the last sample. */
static bool is_found(const fitting *f) {
    return f->bad ? f->bad - f->good <= CLT_MAX(1, f->good / 64) : f->good >= MOST_BATCH;
}

clt_status clt_largest_batch(clt_device *device, clt_tensor *loss, const clt_train_options *options, uint64_t most_bytes,
                             int64_t *batch, char reason[256]) {
    if (!device || !batch || !reason) return clt_fail(CLT_E_INVALID, "clt_largest_batch: an argument is NULL");
    uint64_t all = clt_device_get_info(device)->memory_bytes;
    if (most_bytes == 0) most_bytes = clt_device_is_limited(device) ? all : all / 10 * 9;
    fitting f = {.device = device, .loss = loss, .options = options, .most_bytes = most_bytes, .reason = reason};
    snprintf(reason, 256, "more was not looked at");
    clt_status status = try_batch(&f, 1);
    CLT_TRY(status == CLT_E_SHAPE ? try_batch(&f, 2) : status); /* statistics of a batch may need two values */
    for (int tries = 0; !is_found(&f); tries++) {
        bool stuck = tries % 3 == 2 && f.bad; /* where memory is no line */
        CLT_TRY(try_batch(&f, stuck ? f.good + (f.bad - f.good) / 2 : next_batch(&f)));
    }
    *batch = f.good;
    size_t used = strlen(reason);
    if (f.bad > f.good + 1) snprintf(reason + used, 256 - used, "; between the two was not looked");
    return CLT_OK;
}
