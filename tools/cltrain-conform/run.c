/* Devices and rows one by one, each in a child; what crashes or hangs costs its own case. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/cltrain-conform/conform.h"
#include "tools/common/clock.h"
#include "tools/common/message.h"
#include "tools/survey/child.h"
#include "tools/survey/document.h"

/* A device that dies so often in one row is not asked further. */
enum { MOST_DEATHS = 25 };

const char *const status_names[N_STATUS] = {"passed", "skipped", "failed", "crashed", "timeout"};

json_t **result_at(const conform *c, const device_column *column, int which, int row) {
    (void)c;
    return &column->results[which * MOST_ROWS + row];
}

int status_of(const json_t *result) {
    const char *name = json_string_value(json_object_get(result, "status"));
    for (int i = 0; name && i < N_STATUS; i++)
        if (strcmp(name, status_names[i]) == 0) return i;
    return 2;
}

/* ---- which rows there are ---- */

typedef struct task {
    conform *c;
    device_column *column;
    int row;      /* -1: asks for the rows */
    bool handed;  /* the cases that take up what others left */
    int next;     /* case to begin with */
    int begun;    /* -1: none, by this child */
    double begun_at;
    int deaths;
    bool told;    /* all there was */
    char error[400], error_status[16]; /* why it could not begin, as this child told */
} task;

/* A device that is listed as usable and cannot be opened is not a device that lacks something. */
static const char *error_status(clt_status status) {
    const char *word = survey_error_status(status, false);
    return strcmp(word, "unsupported") == 0 ? "crashed" : word;
}

static void tell_error(FILE *lines, clt_status status) {
    const char *detail = clt_error_detail();
    document_line(lines, json_pack("{s:o, s:s}", "error", document_text(detail[0] ? detail : clt_status_message(status)),
                                   "status", error_status(status)));
}

static void take_error(task *t, const json_t *told) {
    if (!json_object_get(told, "error")) return;
    snprintf(t->error, sizeof t->error, "%s", document_string(told, "error"));
    snprintf(t->error_status, sizeof t->error_status, "%s", document_string(told, "status"));
}

static bool tell_row(const clt_row_info *row, void *user) {
    document_line(user, json_pack("{s:s, s:s, s:s}", "op", row->op, "backend", row->backend, "missing",
                                  row->missing));
    return true;
}

static int ask_rows(FILE *lines, void *user) {
    const task *t = user;
    clt_device *device = NULL;
    clt_status status = survey_open(&t->c->survey, t->column->device, NULL, &device);
    if (status == CLT_OK) status = clt_probe_rows(device, tell_row, lines);
    if (status < 0) tell_error(lines, status);
    else document_line(lines, json_pack("{s:b}", "listed", 1));
    clt_device_close(device);
    return 0;
}

static bool take_row(const char *text, void *user) {
    task *t = user;
    json_t *told = json_loads(text, 0, NULL);
    if (json_object_get(told, "op")) json_array_append(t->column->table, told);
    take_error(t, told);
    if (json_object_get(told, "listed")) t->told = true;
    json_decref(told);
    return true;
}

/* ---- cases, in the child ---- */

static clt_settings settings_of(const row_choice *r) {
    return (clt_settings){.tune = "off",
                          .backends = r->backends[0] ? r->backends : NULL,
                          .passes = r->passes,
                          .device_class = r->class_,
                          .matmul_precision = r->precision};
}

/* Oclgrind looks for races too, and what it finds counts. Each child has a log of its own. */
static void set_simulator(const conform *c, bench *b) {
    snprintf(b->log, sizeof b->log, "%s/oclgrind-%ld.log", c->folder, (long)getpid());
    setenv("OCLGRIND_LOG", b->log, 1);
    setenv("OCLGRIND_DATA_RACES", "1", 0);
    setenv("OCLGRIND_UNIFORM_WRITES", "1", 0);
}

static json_t *number_or_null(double value) {
    return value < 0 ? json_null() : json_real(value);
}

static json_t *result_json(const case_result *r, double seconds) {
    return json_pack(
        "{s:s, s:o, s:s, s:s, s:s, s:s, s:s, s:o, s:o, s:f, s:o, s:o}", "status",
        verdict_name(result_verdict(r)), "reason", r->reason[0] ? document_text(r->reason) : json_null(),
        "supported", verdict_name(r->supported), "value", verdict_name(r->value), "gradient",
        verdict_name(r->gradient), "repeat", verdict_name(r->repeat), "memory", verdict_name(r->memory),
        "nmse", number_or_null(r->nmse), "ulp", number_or_null(r->ulp), "seconds", seconds, "served",
        r->served ? r->served : json_array(), "series", r->series ? r->series : json_null());
}

static const char **other_devices(const task *t) {
    const char **others = calloc((size_t)t->c->n_columns + 1, sizeof *others);
    for (int i = 0, n = 0; others && i < t->c->n_columns; i++)
        if (&t->c->columns[i] != t->column) others[n++] = t->c->columns[i].who;
    return others;
}

static bool is_large(const conform *c, int which) {
    return c->small && c->cases.items[which].large;
}

/* A case that the task's children run. */
static bool is_of(const task *t, int which) {
    const test_case *one = &t->c->cases.items[which];
    return t->c->selected[which] && !is_large(t->c, which) && one->handed == t->handed &&
           row_runs(t->c, one, &t->column->rows[t->row]);
}

static int run_cases(FILE *lines, void *user) {
    const task *t = user;
    const row_choice *r = &t->column->rows[t->row];
    bench b = {.row = r->name,
               .backend = r->backend ? r->name : NULL,
               .full = t->c->options->full,
               .folder = t->c->folder,
               .who = t->column->who,
               .others = other_devices(t),
               .settings = settings_of(r),
               .rounding = r->precision != NULL};
    set_simulator(t->c, &b);
    setenv("CLTRAIN_CONFORM_ROW", r->name, 1); /* for drivers that tests have fail for one row alone */
    clt_status status = survey_open(&t->c->survey, t->column->device, &b.settings, &b.device);
    if (status == CLT_OK) status = clt_device_enable_redzones(b.device);
    if (status < 0) {
        tell_error(lines, status);
        return 0;
    }
    for (int i = t->next; i < t->c->cases.n; i++) {
        const test_case *one = &t->c->cases.items[i];
        if (!is_of(t, i)) continue;
        case_result result;
        double start = now_seconds();
        document_line(lines, json_pack("{s:i}", "begin", i));
        case_run(one, &b, &result);
        json_t *end = result_json(&result, now_seconds() - start);
        document_line(lines, json_pack("{s:i, s:o}", "end", i, "result", end));
    }
    document_line(lines, json_pack("{s:b}", "done", 1));
    return 0; /* the device is not closed: that would save hundreds of programs that nobody runs again */
}

/* ---- in the parent ---- */

static void show_progress(const task *t, int which) {
    char line[200];
    int n = 0, all = 0;
    if (!isatty(STDERR_FILENO)) return;
    for (int i = 0; i < t->c->cases.n; i++) {
        if (!is_of(t, i)) continue;
        n += i <= which;
        all++;
    }
    snprintf(line, sizeof line, "%.40s, %s: %d of %d: %.100s", t->column->device->info.name, t->column->rows[t->row].name, n, all, t->c->cases.items[which].id);
    message_transient(line);
}

static void keep(const task *t, int which, json_t *result) {
    json_t **place = result_at(t->c, t->column, which, t->row);
    json_decref(*place);
    *place = result;
}

/* A line a row: a full run on a simulator takes hours. */
static void tell_row_done(const task *t) {
    int counts[N_STATUS] = {0};
    for (int i = 0; i < t->c->cases.n; i++) {
        const json_t *result = *result_at(t->c, t->column, i, t->row);
        if (result && t->c->cases.items[i].handed == t->handed) counts[status_of(result)]++;
    }
    message_line("%s, %s%s: %d passed, %d skipped, %d failed, after %.0f s", t->column->device->info.name, t->column->rows[t->row].name,
                 t->handed ? ", handed over" : "", counts[0], counts[1], counts[2] + counts[3] + counts[4],
                 now_seconds() - t->c->started);
}

static bool take_case(const char *text, void *user) {
    task *t = user;
    json_t *told = json_loads(text, 0, NULL);
    json_t *begin = json_object_get(told, "begin"), *end = json_object_get(told, "end");
    int which = (int)json_integer_value(begin ? begin : end);
    if ((begin || end) && which >= 0 && which < t->c->cases.n) {
        if (begin) show_progress(t, t->begun = which), t->begun_at = now_seconds();
        else keep(t, which, json_incref(json_object_get(told, "result"))), t->next = which + 1;
    }
    take_error(t, told);
    if (json_object_get(told, "done")) t->told = true, tell_row_done(t);
    json_decref(told);
    return true;
}

static void keep_end(const task *t, int which, verdict supported, const char *status, const char *reason, double seconds) {
    case_result r = {.nmse = -1, .ulp = -1, .supported = supported};
    json_t *made = result_json(&r, seconds);
    json_object_set_new(made, "status", json_string(status));
    json_object_set_new(made, "reason", document_text(reason));
    keep(t, which, made);
}

static void keep_rest(const task *t, verdict supported, const char *status, const char *reason) {
    for (int i = t->next; i < t->c->cases.n; i++)
        if (is_of(t, i)) keep_end(t, i, supported, status, reason, 0);
}

/* The first is what the others come from. */
static void set_column(device_column *column, const char *status, const char *doing, const char *reason) {
    if (strcmp(column->status, "ok") != 0) return;
    snprintf(column->status, sizeof column->status, "%s", status);
    snprintf(column->reason, sizeof column->reason, "%s: %.340s", doing, reason);
}

/* It ended before the first of its cases: all of them are told, none vanishes. */
static void judge_unbegun(task *t, const char *status, const char *reason) {
    char doing[48], text[480];
    if (t->row < 0) {
        set_column(t->column, status, "asking for its rows", reason);
        return;
    }
    snprintf(doing, sizeof doing, "opening it for the row %.20s", t->column->rows[t->row].name);
    set_column(t->column, status, doing, reason);
    snprintf(text, sizeof text, "the device could not be opened: %s", reason);
    keep_rest(t, NOT_ASKED, t->error[0] ? "failed" : status, text);
}

/* True if a child has to go on behind the case with which this one ended. */
static bool judge_end(task *t, const child_end *end) {
    const char *status = end->outcome == CHILD_TIMEOUT ? "timeout" : "crashed";
    const char *reason = end->reason[0] ? end->reason : "the process was ended, with exit code 0, before it had told all";
    /* What it did when all was told is the driver's own end. */
    if (end->outcome == CHILD_STOPPED || t->told) return false;
    if (t->begun < 0) {
        judge_unbegun(t, t->error[0] ? t->error_status : status, t->error[0] ? t->error : reason);
        return false;
    }
    if (t->begun >= t->next) {
        keep_end(t, t->begun, FAILED, status, reason, now_seconds() - t->begun_at);
        t->next = t->begun + 1;
    } else set_column(t->column, status, "between two cases", reason);
    if (++t->deaths < MOST_DEATHS) return true;
    keep_rest(t, SKIPPED, "skipped", "the device died in too many cases before");
    return false;
}

static void run_tasks(conform *c, task *tasks, int n, child_job job) {
    while (n > 0) {
        child_job *jobs = calloc((size_t)n, sizeof *jobs);
        child_end *ends = calloc((size_t)n, sizeof *ends);
        int left = 0;
        if (!jobs || !ends) exit(EXIT_FAILED);
        for (int i = 0; i < n; i++) {
            jobs[i] = job;
            jobs[i].user = &tasks[i];
            jobs[i].silence_seconds = c->options->timeout;
            tasks[i].begun = -1;
            tasks[i].error[0] = 0;
        }
        child_run(jobs, n, (int)c->options->jobs, ends);
        for (int i = 0; i < n; i++)
            if (judge_end(&tasks[i], &ends[i])) tasks[left++] = tasks[i];
        free(jobs), free(ends);
        n = child_caught() ? 0 : left;
    }
}

static int ask_all(conform *c) {
    task *tasks = calloc((size_t)c->n_columns + 1, sizeof *tasks);
    int n = 0;
    if (!tasks) return run_error("no memory");
    for (int i = 0; i < c->n_columns; i++)
        if (strcmp(c->columns[i].status, "ok") == 0) tasks[n++] = (task){.c = c, .column = &c->columns[i], .row = -1};
    run_tasks(c, tasks, n, (child_job){.run = ask_rows, .line = take_row});
    free(tasks);
    if (child_caught()) return 0;
    for (int i = 0; i < c->n_columns; i++)
        if (strcmp(c->columns[i].status, "ok") == 0) rows_make(&c->columns[i], c->options->full || c->only_row);
    return rows_require(c);
}

/* Returns whether there is a case for a child. */
static bool prepare(const task *t) {
    bool any = false;
    for (int k = 0; k < t->c->cases.n; k++) {
        const test_case *one = &t->c->cases.items[k];
        any |= is_of(t, k);
        if (t->c->selected[k] && is_large(t->c, k) && one->handed == t->handed &&
            row_runs(t->c, one, &t->column->rows[t->row]))
            keep_end(t, k, NOT_ASKED, "skipped", "large: CLTRAIN_CONFORM_SMALL is set", 0);
    }
    return any;
}

static int run_all(conform *c, bool handed) {
    task *tasks = calloc((size_t)c->n_columns * MOST_ROWS + 1, sizeof *tasks);
    int n = 0;
    if (!tasks) return run_error("no memory");
    for (int i = 0; i < c->n_columns; i++)
        for (int r = 0; r < c->columns[i].n_rows; r++) {
            tasks[n] = (task){.c = c, .column = &c->columns[i], .row = r, .handed = handed};
            if (prepare(&tasks[n])) n++;
        }
    run_tasks(c, tasks, n, (child_job){.run = run_cases, .line = take_case});
    free(tasks);
    return 0;
}

int conform_run(conform *c) {
    int code = ask_all(c);
    if (!code && !child_caught()) code = run_all(c, false);
    if (!code && !child_caught()) code = run_all(c, true);
    c->complete = !child_caught();
    message_wipe();
    return code;
}
