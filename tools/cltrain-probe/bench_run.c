/*
 * The measuring of a bench, in child processes. A row that crashes or hangs ends its child; the next one goes on
 * behind it.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench.h"
#include "compare.h"
#include "hooks.h"
#include "statistics.h"
#include "tools/common/clock.h"
#include "tools/survey/child.h"
#include "tools/survey/document.h"
#include "tools/common/message.h"

/* What is to be done in one pass, from a row on; backwards in every second pass. */
typedef struct work {
    bench *b;
    child_job job;
    int pass, at; /* number of the row in this pass */
    int begun;    /* -1: none */
    bool others; /* the rows of other backends are run, and no others */
    bool opened, finished, peaks_known;
    char opening[400]; /* why the device could not be opened */
} work;

static int row_at(const work *w, int at) {
    return w->pass % 2 ? w->b->n_rows - 1 - at : at;
}

static bool is_ok(const bench_row *row) {
    return strcmp(row->status, "ok") == 0;
}

/* Whether the row is known well enough: later passes leave it out. */
static bool is_settled(const bench_row *row) {
    double best[BENCH_MOST_PASSES];
    int n = 0;
    for (int p = 0; p < BENCH_MOST_PASSES; p++) {
        if (row->n[p] == 0) continue;
        best[n] = row->us[p][0];
        for (int i = 1; i < row->n[p]; i++) best[n] = row->us[p][i] < best[n] ? row->us[p][i] : best[n];
        n++;
    }
    statistics_sort(best, n);
    return n >= LEAST_PASSES && best[LEAST_PASSES - 1] <= best[0] * (1 + BENCH_SETTLED);
}

/* Builds take long and never settle: they have no further passes. */
static bool has_to_run(const work *w, const bench_row *row) {
    if (w->others || row->asked[0]) return w->others && row->asked[0] && is_ok(row);
    if (!is_ok(row) || w->pass < w->b->passes) return is_ok(row);
    return !(row->is_limit && row->limit >= CLT_LIMIT_BUILD_COLD) && !is_settled(row);
}

static double time_left(const bench *b) {
    return b->start + b->seconds + b->lost_seconds - now_seconds();
}

/* ---- in the child ---- */

static json_t *samples_json(const clt_measurement *m) {
    json_t *list = json_array();
    for (int i = 0; i < m->n; i++) json_array_append_new(list, json_real(1e6 * m->seconds[i]));
    return list;
}

static json_t *error_json(clt_status status, bool wrong) {
    return json_pack("{s:s, s:o}", "status", survey_error_status(status, wrong), "reason",
                     status < 0 ? document_text(clt_error_detail()) : json_null());
}

static json_t *measure_limit(const bench_row *row, clt_device *device, const clt_measure_options *options) {
    clt_measurement m;
    clt_status status = clt_measure_limit(device, row->limit, options, &m);
    json_t *told = error_json(status, m.wrong);
    /* Runs are as long as the clock needs them in this pass: times are told of as much in all passes and benches. */
    for (int i = 0; i < m.n && m.amount > 0; i++) m.seconds[i] *= BENCH_LIMIT_AMOUNT / m.amount;
    if (status == CLT_OK) json_object_set_new(told, "us", samples_json(&m));
    json_object_set_new(told, "amount", json_real(m.amount > 0 ? BENCH_LIMIT_AMOUNT : 0));
    return told;
}

/* Some backends serve no device of this class unless they are named. What the user lets be used stays as it is: NULL. */
static const char *backends_for(const bench_row *row, char list[64]) {
    if (!row->asked[0] || getenv("CLTRAIN_BACKENDS")) return NULL;
    snprintf(list, 64, "reference,%s", row->asked);
    return list;
}

/* The reference's share: later passes look at less, as it is the same kernel on the same values. What cannot be cut so small is
 * looked at as in the first pass: a row is measured in all passes, or refused in all. */
static clt_status measure_problem(const work *w, const bench_row *row, clt_device *device, const clt_measure_options *options,
                                  clt_problem_measurement *m) {
    char backends[64];
    const double first = w->b->full ? 4e8 : 1e8, later = w->b->full ? 4e8 : 2e7;
    clt_problem_options how = {.measure = *options, .reference_work = w->pass ? later : first,
                               .backend = row->asked[0] ? row->asked : NULL,
                               .backends = backends_for(row, backends)};
    clt_status status = clt_measure_problem(device, row->shape.problem, &how, m);
    if (status != CLT_E_UNSUPPORTED || how.reference_work >= first) return status;
    how.reference_work = first;
    return clt_measure_problem(device, row->shape.problem, &how, m);
}

static json_t *measure_op(const work *w, const bench_row *row, clt_device *device, const clt_measure_options *options) {
    clt_problem_measurement m;
    clt_status status = measure_problem(w, row, device, options, &m);
    json_t *told = error_json(status, m.time.wrong);
    if (status == CLT_OK) json_object_set_new(told, "us", samples_json(&m.time));
    json_t *more = json_pack("{s:o, s:o, s:o, s:f, s:f, s:f, s:f, s:f}", "problem", document_text(m.problem), "backend",
                             document_text(m.backend), "parameters", document_text(m.parameters), "flops", m.flops,
                             "done_flops", m.done_flops, "bytes", m.bytes, "nmse", m.nmse, "nmse_after", m.nmse_after);
    json_object_update(told, more);
    json_decref(more);
    return told;
}

static void measure_row(const work *w, int at, clt_device *device, FILE *lines) {
    const bench_row *row = &w->b->rows[row_at(w, at)];
    char key[400];
    double seconds = row->is_limit || row->asked[0] ? 0.1 : 0.06;
    clt_measure_options options = {.seconds = w->b->full && !row->asked[0] ? 0.5 : seconds, .most_samples = BENCH_SAMPLES};
    bench_key(row, key);
    document_line(lines, json_pack("{s:i}", "begin", at));
    hook_row(key);
    hook_measure(&options);
    json_t *told = row->is_limit ? measure_limit(row, device, &options) : measure_op(w, row, device, &options);
    hook_samples(key, json_object_get(told, "us"));
    json_object_set_new(told, "done", json_integer(at));
    document_line(lines, told);
}

static void tell_peaks(clt_device *device, FILE *lines) {
    clt_peaks peaks = {0};
    clt_device_facts facts = {0};
    bool wrong;
    clt_device_peaks(device, &peaks);
    clt_device_get_facts(device, &facts, &wrong);
    document_line(lines, json_pack("{s:{s:f, s:f}, s:I, s:i}", "peaks", "fma", peaks.fma_flops, "copy", peaks.copy_bytes,
                                   "cache", (json_int_t)facts.cache_bytes, "vector_width", (int)facts.vector_width_f32));
    document_line(lines, json_pack("{s:o}", "table", bench_table_json(device)));
}

static int in_child(FILE *lines, void *user) {
    const work *w = user;
    clt_device *device;
    clt_status status = survey_open(w->b->s, w->b->device, NULL, &device);
    if (status < 0) {
        const char *why = status == CLT_E_NO_DEVICE ? "the device is not there any more" : clt_error_detail();
        document_line(lines, json_pack("{s:o}", "closed", document_text(why)));
        return 0;
    }
    document_line(lines, json_pack("{s:b}", "opened", 1));
    if (!w->peaks_known) tell_peaks(device, lines);
    for (int at = w->at; at < w->b->n_rows; at++) {
        if (!has_to_run(w, &w->b->rows[row_at(w, at)])) continue;
        /* What the first pass finds no time for has none; later ones leave off where they are. */
        if (time_left(w->b) < 0) break;
        measure_row(w, at, device, lines);
    }
    document_line(lines, json_pack("{s:b}", "finished", 1));
    clt_device_close(device);
    return 0;
}

/* ---- in the parent ---- */

static void copy_text(const json_t *told, const char *key, char *text, size_t bytes) {
    const char *value = json_string_value(json_object_get(told, key));
    if (value) snprintf(text, bytes, "%s", value);
}

static void copy_number(const json_t *told, const char *key, double *value) {
    const json_t *number = json_object_get(told, key);
    if (json_is_number(number)) *value = json_number_value(number);
}

static void take_samples(const work *w, bench_row *row, const json_t *us) {
    size_t n = json_array_size(us);
    row->n[w->pass] = 0;
    for (size_t i = 0; i < n && i < BENCH_SAMPLES; i++)
        row->us[w->pass][row->n[w->pass]++] = json_number_value(json_array_get(us, i));
}

int bench_passes(const bench_row *row) {
    int n = 0;
    for (int p = 0; p < BENCH_MOST_PASSES; p++) n += row->n[p] > 0;
    return n;
}

/* A later pass that does not serve what an earlier one has measured takes nothing back; one that finds it wrong takes all times back. */
static void take_row(work *w, int at, const json_t *told) {
    if (at < 0 || at >= w->b->n_rows) return;
    bench_row *row = &w->b->rows[row_at(w, at)];
    w->at = at + 1;
    if (bench_passes(row) > 0 && strcmp(document_string(told, "status"), "unsupported") == 0) return;
    copy_text(told, "status", row->status, sizeof row->status);
    copy_text(told, "reason", row->reason, sizeof row->reason);
    take_samples(w, row, json_object_get(told, "us"));
    if (strcmp(row->status, "wrong") == 0) memset(row->n, 0, sizeof row->n);
    copy_number(told, "amount", &row->amount);
    copy_text(told, "problem", row->problem, sizeof row->problem);
    copy_text(told, "backend", row->backend, sizeof row->backend);
    copy_text(told, "parameters", row->parameters, sizeof row->parameters);
    copy_number(told, "flops", &row->flops);
    copy_number(told, "done_flops", &row->done_flops);
    copy_number(told, "bytes", &row->bytes);
    copy_number(told, "nmse", &row->nmse);
    copy_number(told, "nmse_after", &row->nmse_after);
}

static void show_progress(const work *w) {
    enum { WIDTH = 30 };
    char key[400], bar[WIDTH + 1], line[256];
    double share = (now_seconds() - w->b->start) / w->b->seconds;
    int filled = share < 1 ? (int)(share * WIDTH) : WIDTH;
    if (!isatty(STDERR_FILENO) || w->begun < 0 || w->begun >= w->b->n_rows) return;
    bench_key(&w->b->rows[row_at(w, w->begun)], key);
    for (int i = 0; i < WIDTH; i++) bar[i] = i < filled ? '#' : '.';
    bar[WIDTH] = 0;
    snprintf(line, sizeof line, "[%s] pass %d: %.40s", bar, w->pass + 1, key);
    message_transient(line);
}

/* A driver that writes over its child's memory may make it say anything. */
static void take_begin(work *w, const json_t *told) {
    json_int_t at = json_integer_value(told);
    if (!json_is_integer(told) || at < 0 || at >= w->b->n_rows) return;
    w->begun = (int)at;
    w->job.silence_seconds = w->b->timeout;
}

static bool take_line(const char *text, void *user) {
    work *w = user;
    json_t *told = json_loads(text, 0, NULL);
    const json_t *peaks = json_object_get(told, "peaks");
    if (json_object_get(told, "opened")) w->opened = true;
    if (json_object_get(told, "finished")) w->finished = true;
    copy_text(told, "closed", w->opening, sizeof w->opening);
    if (peaks) {
        copy_number(peaks, "fma", &w->b->known.fma_flops);
        copy_number(peaks, "copy", &w->b->known.copy_bytes);
        w->b->cache_bytes = (uint64_t)json_integer_value(json_object_get(told, "cache"));
        w->b->vector_width = (uint32_t)json_integer_value(json_object_get(told, "vector_width"));
        w->peaks_known = true;
    }
    if (json_object_get(told, "table")) {
        json_decref(w->b->table);
        w->b->table = json_incref(json_object_get(told, "table"));
    }
    take_begin(w, json_object_get(told, "begin"));
    if (json_object_get(told, "done")) take_row(w, (int)json_integer_value(json_object_get(told, "done")), told);
    show_progress(w);
    json_decref(told);
    return true;
}

/* The device cannot be opened, or not any more, or there is no time left: rows that have nothing get that for a reason. */
static void give_up(bench *b, const char *status, const char *reason) {
    for (int i = 0; i < b->n_rows; i++) {
        bench_row *row = &b->rows[i];
        if (bench_passes(row) > 0 || !is_ok(row)) continue;
        snprintf(row->status, sizeof row->status, "%s", status);
        snprintf(row->reason, sizeof row->reason, "%s", reason);
    }
}

static void lose(bench *b, const char *status, const char *reason) {
    snprintf(b->lost, sizeof b->lost, "%s", status);
    snprintf(b->why_lost, sizeof b->why_lost, "%s", reason);
    give_up(b, status, reason);
}

/* What a hang took is not taken from the other rows: of the first hangs, so that there is an end to it. */
static void forgive(bench *b, const child_end *end) {
    const int most_hangs = 2;
    if (end->outcome == CHILD_TIMEOUT && b->hangs++ < most_hangs) b->lost_seconds += b->timeout;
}

/* True if another child has to go on in this pass. */
static bool judge_end(work *w, const child_end *end) {
    bench *b = w->b;
    if (w->finished || end->outcome == CHILD_STOPPED) return false;
    if (w->opening[0]) {
        lose(b, "unsupported", w->opening);
        return false;
    }
    if (w->begun < w->at) { /* not while a row was measured */
        char reason[400];
        snprintf(reason, sizeof reason, "opening the device: %s", end->reason);
        lose(b, child_status(end), reason);
        return false;
    }
    bench_row *row = &b->rows[row_at(w, w->begun)];
    snprintf(row->status, sizeof row->status, "%s", child_status(end));
    snprintf(row->reason, sizeof row->reason, "%s", end->reason);
    forgive(b, end);
    w->at = w->begun + 1;
    return w->at < b->n_rows;
}

static void run_pass(work *w) {
    child_end end;
    w->at = 0;
    w->begun = -1;
    do {
        /* Until the first row: devices are slow to open where everything has to be compiled. */
        w->job = (child_job){.run = in_child, .line = take_line, .user = w, .silence_seconds = w->b->opening_timeout};
        w->opened = w->finished = false;
        w->opening[0] = 0;
        child_run(&w->job, 1, 1, &end);
    } while (judge_end(w, &end));
}

/* Once: they are there to be chosen from, not to be compared with another bench. */
static void run_others(work *w) {
    if (child_caught() || w->b->lost[0] || bench_add_others(w->b)) return;
    w->others = true;
    run_pass(w);
    w->others = false;
}

static int rows_to_run(const work *w) {
    int n = 0;
    for (int i = 0; i < w->b->n_rows; i++) n += has_to_run(w, &w->b->rows[i]);
    return n;
}

void bench_measure(bench *b) {
    work w = {.b = b};
    b->start = now_seconds();
    for (w.pass = 0; w.pass < b->most_passes && rows_to_run(&w) > 0 && !child_caught() && !b->lost[0]; w.pass++) {
        double begin = now_seconds();
        run_pass(&w);
        if (b->full && w.pass == (b->passes < LEAST_PASSES ? b->passes : LEAST_PASSES) - 1) run_others(&w);
        /* A pass that is cut short would weigh some rows more than others. */
        if (w.pass > 0 && time_left(b) < 0.5 * (now_seconds() - begin)) break;
    }
    message_wipe();
    b->took = now_seconds() - b->start;
    b->complete = !child_caught() && !b->lost[0];
    give_up(b, "not-run", BENCH_NO_TIME);
}
