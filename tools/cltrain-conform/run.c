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
    int begun;    /* -1: none */
    double begun_at;
    int deaths;
    bool told;
} task;

static bool tell_row(const clt_row_info *row, void *user) {
    document_line(user, json_pack("{s:s, s:s, s:s}", "op", row->op, "backend", row->backend, "missing",
                                  row->missing));
    return true;
}

static int ask_rows(FILE *lines, void *user) {
    const task *t = user;
    clt_device *device = NULL;
    clt_status status = survey_open(&t->c->survey, t->column->device, &device);
    if (status == CLT_OK) status = clt_probe_rows(device, tell_row, lines);
    if (status < 0) document_line(lines, json_pack("{s:o}", "error", document_text(clt_error_detail())));
    else document_line(lines, json_pack("{s:b}", "listed", 1));
    clt_device_close(device);
    return 0;
}

static bool take_row(const char *text, void *user) {
    task *t = user;
    json_t *told = json_loads(text, 0, NULL);
    if (json_object_get(told, "op")) json_array_append(t->column->table, told);
    const char *error = json_string_value(json_object_get(told, "error"));
    if (error) snprintf(t->column->reason, sizeof t->column->reason, "%s", error);
    if (json_object_get(told, "listed")) t->told = true;
    json_decref(told);
    return true;
}

static row_choice *add_row(device_column *column, const char *name) {
    row_choice *r = &column->rows[column->n_rows < MOST_ROWS ? column->n_rows++ : MOST_ROWS - 1];
    *r = (row_choice){.backend = false};
    snprintf(r->name, sizeof r->name, "%s", name);
    return r;
}

static bool has_row(const device_column *column, const char *name) {
    for (int i = 0; i < column->n_rows; i++)
        if (strcmp(column->rows[i].name, name) == 0) return true;
    return false;
}

/* What a backend's rows lack, each thing once; "" if one of them lacks nothing. */
static void missing_of(const device_column *column, const char *backend, char missing[200]) {
    missing[0] = 0;
    for (size_t i = 0; i < json_array_size(column->table); i++) {
        const json_t *one = json_array_get(column->table, i);
        const char *lacks = json_string_value(json_object_get(one, "missing"));
        if (strncmp(json_string_value(json_object_get(one, "backend")), backend, strlen(backend))) continue;
        size_t used = strlen(missing);
        if (!strstr(missing, lacks)) snprintf(missing + used, 200 - used, "%s%s", used ? ", " : "", lacks);
        if (lacks[0]) continue;
        missing[0] = 0;
        return;
    }
}

static void leave_out(device_column *column, const char *name, const char *format, const char *what) {
    json_t *one = json_pack("{s:s}", "row", name);
    json_object_set_new(one, "reason", json_sprintf(format, what));
    for (size_t i = 0; i < json_array_size(column->left_out); i++)
        if (json_equal(json_array_get(column->left_out, i), one)) {
            json_decref(one);
            return;
        }
    json_array_append_new(column->left_out, one);
}

static void add_backend(device_column *column, const char *backend, bool full) {
    char missing[200];
    missing_of(column, backend, missing);
    if (missing[0]) {
        leave_out(column, backend, "the device has none of %s", missing);
        return;
    }
    if (!full) {
        leave_out(column, backend, "with --full%s", "");
        return;
    }
    row_choice *r = add_row(column, backend);
    r->backend = true;
    snprintf(r->backends, sizeof r->backends, "reference,%s", backend);
    if (strcmp(backend, "matrix") == 0) r->precision = "f16";
}

static void make_rows(device_column *column, bool full) {
    row_choice *r = add_row(column, "reference");
    snprintf(r->backends, sizeof r->backends, "reference");
    r->passes = "none";
    add_row(column, "default");
    bool cpu = column->device->info.type == CLT_DEVICE_CPU;
    add_row(column, cpu ? "gpu-class" : "cpu-class")->class_ = cpu ? "gpu" : "cpu";
    for (size_t i = 0; i < json_array_size(column->table); i++) {
        const char *backend = json_string_value(json_object_get(json_array_get(column->table, i), "backend"));
        char name[32];
        snprintf(name, sizeof name, "%.*s", (int)strcspn(backend, "#"), backend);
        if (!has_row(column, name)) add_backend(column, name, full);
    }
}

/* ---- cases, in the child ---- */

/* What is no case of a single op needs fewer rows. */
static bool belongs(const conform *c, const test_case *one, const row_choice *r) {
    if (c->only_row && strcmp(c->only_row, r->name) != 0) return false;
    bool always = strcmp(r->name, "default") == 0;
    if (one->handed) return always;
    if (r->class_ && !c->options->full && !c->only_row && !one->classes) return false;
    if (one->operation || strcmp(one->op, "network") == 0) return true;
    if (strcmp(one->op, "resume") == 0) return always;
    return always || strcmp(r->name, "reference") == 0 || (one->compared && r->class_);
}

static void set_environment(const row_choice *r) {
    const char *backends = getenv("CLTRAIN_BACKENDS"), *passes = getenv("CLTRAIN_PASSES");
    unsetenv("CLTRAIN_DEVICE");
    setenv("CLTRAIN_TUNE", "off", 1);
    setenv("CLTRAIN_BACKENDS", r->backends[0] ? r->backends : backends ? backends : "", 1);
    setenv("CLTRAIN_PASSES", r->passes ? r->passes : passes ? passes : "", 1);
    if (r->class_) setenv("CLTRAIN_CLASS", r->class_, 1);
    if (r->precision) setenv("CLTRAIN_MATMUL_PRECISION", r->precision, 1);
}

/* Oclgrind looks for races too, and what it finds counts. */
static void set_simulator(const conform *c, bench *b) {
    const char *log = getenv("OCLGRIND_LOG");
    if (log && strlen(log) < sizeof b->log) snprintf(b->log, sizeof b->log, "%s", log);
    else snprintf(b->log, sizeof b->log, "%s/oclgrind-%ld.log", c->folder, (long)getpid());
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

static int run_cases(FILE *lines, void *user) {
    const task *t = user;
    const row_choice *r = &t->column->rows[t->row];
    bench b = {.row = r->name,
               .backend = r->backend ? r->name : NULL,
               .full = t->c->options->full,
               .folder = t->c->folder,
               .who = t->column->who,
               .others = other_devices(t),
               .rounding = r->precision != NULL};
    set_environment(r);
    set_simulator(t->c, &b);
    clt_status status = survey_open(&t->c->survey, t->column->device, &b.device);
    if (status == CLT_OK) status = clt_device_fence(b.device);
    if (status < 0) {
        document_line(lines, json_pack("{s:o}", "error", document_text(clt_error_detail())));
        return 0;
    }
    for (int i = t->next; i < t->c->cases.n; i++) {
        const test_case *one = &t->c->cases.items[i];
        if (!t->c->selected[i] || one->handed != t->handed || !belongs(t->c, one, r)) continue;
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
    if (!isatty(STDERR_FILENO)) return;
    snprintf(line, sizeof line, "%.40s, %s: %d of %d: %.100s", t->column->device->info.name,
             t->column->rows[t->row].name, which + 1, t->c->cases.n, t->c->cases.items[which].id);
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
    const char *error = json_string_value(json_object_get(told, "error"));
    if ((begin || end) && which >= 0 && which < t->c->cases.n) {
        if (begin) show_progress(t, t->begun = which), t->begun_at = now_seconds();
        else keep(t, which, json_incref(json_object_get(told, "result"))), t->next = which + 1;
    }
    if (error) snprintf(t->column->reason, sizeof t->column->reason, "%s", error);
    if (json_object_get(told, "done")) t->told = true, tell_row_done(t);
    json_decref(told);
    return true;
}

static void keep_end(const task *t, int which, const char *status, const char *reason) {
    case_result r = {.nmse = -1, .ulp = -1, .supported = strcmp(status, "skipped") ? FAILED : SKIPPED};
    json_t *made = result_json(&r, now_seconds() - t->begun_at);
    json_object_set_new(made, "status", json_string(status));
    json_object_set_new(made, "reason", document_text(reason));
    keep(t, which, made);
}

/* True if a child has to go on behind the case with which this one ended. */
static bool judge_end(task *t, const child_end *end) {
    if (end->outcome == CHILD_STOPPED || (t->told && end->outcome != CHILD_CRASHED)) return false;
    bool in_case = t->begun >= t->next;
    const char *status = end->outcome == CHILD_TIMEOUT ? "timeout" : "crashed";
    if (!in_case || end->outcome == CHILD_DONE) {
        if (t->told) return false; /* it died when all was told: the driver's own end */
        snprintf(t->column->status, sizeof t->column->status, "%s",
                 end->outcome == CHILD_DONE ? "unsupported" : status);
        if (!t->column->reason[0])
            snprintf(t->column->reason, sizeof t->column->reason, "%s: %.300s",
                     t->row < 0 ? "asking for its rows" : "opening it", end->reason);
        return false;
    }
    keep_end(t, t->begun, status, end->reason);
    t->next = t->begun + 1;
    if (++t->deaths < MOST_DEATHS) return true;
    for (int i = t->next; i < t->c->cases.n; i++)
        if (t->c->selected[i] && t->c->cases.items[i].handed == t->handed &&
            belongs(t->c, &t->c->cases.items[i], &t->column->rows[t->row]))
            keep_end(t, i, "skipped", "the device died in too many cases before");
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
        }
        child_run(jobs, n, (int)c->options->jobs, ends);
        for (int i = 0; i < n; i++)
            if (judge_end(&tasks[i], &ends[i])) tasks[left++] = tasks[i];
        free(jobs), free(ends);
        n = child_caught() ? 0 : left;
    }
}

static int ask_all(conform *c) {
    task *tasks = calloc((size_t)c->n_columns, sizeof *tasks);
    if (!tasks) return run_error("no memory");
    for (int i = 0; i < c->n_columns; i++) tasks[i] = (task){.c = c, .column = &c->columns[i], .row = -1};
    run_tasks(c, tasks, c->n_columns, (child_job){.run = ask_rows, .line = take_row});
    free(tasks);
    for (int i = 0; i < c->n_columns; i++)
        if (strcmp(c->columns[i].status, "ok") == 0) make_rows(&c->columns[i], c->options->full || c->only_row);
    return 0;
}

static int run_all(conform *c, bool handed) {
    task *tasks = calloc((size_t)c->n_columns * MOST_ROWS, sizeof *tasks);
    int n = 0;
    if (!tasks) return run_error("no memory");
    for (int i = 0; i < c->n_columns; i++)
        for (int r = 0; r < c->columns[i].n_rows; r++) {
            bool any = false;
            for (int k = 0; k < c->cases.n; k++)
                any |= c->selected[k] && c->cases.items[k].handed == handed &&
                       belongs(c, &c->cases.items[k], &c->columns[i].rows[r]);
            if (any) tasks[n++] = (task){.c = c, .column = &c->columns[i], .row = r, .handed = handed};
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
