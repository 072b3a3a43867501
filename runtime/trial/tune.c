/*
 * The search for the best candidate of a problem.
 *
 * First what the library does of itself and the rows as they come; then, in each row
 * that is not far behind, one parameter after the other, until none makes it better
 * or the problem's share of the budget is used up. A candidate displaces what the
 * library does of itself only if it is faster by a clear margin, in the end in a duel
 * of both in turn, for machines are noisy.
 */
#include "runtime/trial/tune.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/trial/bench.h"
#include "runtime/exec/plan.h"

#define MARGIN 0.95 /* of the time without tuning: what is not below displaces nothing */

enum { MOST_CANDIDATES = 256, MOST_ROWS = 32 };

typedef struct candidate {
    clt_choice choice;
    double us;
} candidate;

typedef struct search {
    clt_device *device; /* whose tuning results are meant */
    clt_device *trial;  /* the same once more, on which they are made */
    clt_tune_database *db;
    const clt_tune_job *job;
    const clt_problem *problem;
    clt_bench *bench;
    double deadline;       /* of this problem */
    double longest;        /* seconds from choosing a candidate to its first result, so far */
    double reference_rate; /* operations a second */
    bool broken;           /* the trial device gave an error */
    clt_choice seen[MOST_CANDIDATES];
    int n_seen;
    candidate rows[MOST_ROWS]; /* the best so far of each row that was tried */
    int n_rows;
    clt_tuned result;
} search;

static bool same_choice(const clt_choice *a, const clt_choice *b) {
    return a->row == b->row && !memcmp(a->parameters, b->parameters, sizeof a->parameters);
}

/* ---- one candidate ---- */

static clt_status note_failure(search *s, const clt_choice *choice, const char *why) {
    clt_tuning_result result;
    clt_tuning_result_of(s->problem->key, choice, &result);
    snprintf(result.failed, sizeof result.failed, "%s", why);
    result.effort = CLT_TUNE_FULL;
    s->result.failed++;
    CLT_TRY(clt_tuning_results_put(&s->db->measured, &result));
    return clt_tune_store(s->device);
}

/* After these the trial device is not tried any further. */
static bool breaks(clt_status error) {
    return error == CLT_E_DEVICE || error == CLT_E_DEVICE_LOST;
}

/* What the machine lacks just now is no failure of the candidate. */
static clt_status judge_error(search *s, const clt_choice *choice, clt_status error) {
    char why[CLT_TUNE_WHY];
    clt_log_message(CLT_LOG_DEBUG, "tuning %s: %s", s->problem->key, clt_error_detail());
    if (error == CLT_E_NO_MEMORY || error == CLT_E_DEVICE_MEMORY) return CLT_OK;
    s->broken |= breaks(error);
    snprintf(why, sizeof why, "%s", clt_status_message(error));
    return note_failure(s, choice, why);
}

/* Its row's best, if it is. */
static void keep_in_row(search *s, const clt_choice *choice, double us) {
    int i = 0;
    while (i < s->n_rows && s->rows[i].choice.row != choice->row) i++;
    if (i == MOST_ROWS || (i < s->n_rows && s->rows[i].us <= us)) return;
    s->rows[i] = (candidate){*choice, us};
    if (i == s->n_rows) s->n_rows++;
}

static clt_status judge(search *s, const clt_choice *choice, const clt_bench_result *found) {
    clt_tuned *r = &s->result;
    char why[CLT_TUNE_WHY];
    if (!(found->nmse <= CLT_BENCH_MOST_NMSE)) {
        snprintf(why, sizeof why, "wrong: the normalized squared error is %.2g", found->nmse);
        return note_failure(s, choice, why);
    }
    r->tried++;
    keep_in_row(s, choice, found->us);
    if (same_choice(choice, &r->without)) r->without_us = found->us;
    if (r->best_us > 0 && found->us >= r->best_us) return CLT_OK;
    r->best = *choice;
    r->best_us = found->us;
    r->nmse = found->nmse;
    return CLT_OK;
}

static bool has_time(const search *s) {
    return clt_seconds() + s->longest < s->deadline;
}

/* True if it is tried for the first time and may be. */
static bool is_new(search *s, const clt_choice *choice) {
    for (int i = 0; i < s->n_seen; i++)
        if (same_choice(&s->seen[i], choice)) return false;
    if (s->n_seen == MOST_CANDIDATES) return false;
    s->seen[s->n_seen++] = *choice;
    if (!clt_backend_valid(choice, s->problem->node, s->device)) return false;
    return !clt_tuning_results_failed(&s->db->measured, s->problem->key, choice);
}

static clt_status try_candidate(search *s, const clt_choice *choice) {
    clt_tuned *r = &s->result;
    clt_bench_result found;
    if (s->broken || !is_new(s, choice)) return CLT_OK;
    double start = clt_seconds();
    /* Some time for each, so that a slow one is not measured at the cost of the others. */
    double seconds = CLT_MAX(0, s->deadline - start) * (s->job->effort == CLT_TUNE_FULL ? 0.05 : 0.1);
    double give_up = r->best_us > 0 ? 3 * r->best_us : INFINITY;
    clt_status status = clt_bench_run(s->bench, choice, CLT_MIN(seconds, 0.5), give_up, &found);
    s->longest = CLT_MAX(s->longest, clt_seconds() - start);
    return status < 0 ? judge_error(s, choice, status) : judge(s, choice, &found);
}

/* ---- the search ---- */

/* A reference that is far behind by what its part took need not be run whole. */
static bool hopeless(const search *s, const clt_backend_row *row) {
    bool reference = row == clt_backend_oracle(s->problem->node, s->device);
    return reference && s->result.best_us > 0 && clt_bench_reference_us(s->bench) > 3 * s->result.best_us;
}

/* Libraries may take many seconds to build what they need: there is time for them in a full search alone. */
static bool worth_a_try(const search *s, const clt_backend_row *row) {
    return !row->on_demand || s->job->effort == CLT_TUNE_FULL || clt_backend_is_named(s->device, row->name);
}

/* Rows as they come, the last first. */
static clt_status try_rows(search *s) {
    const clt_tensor *node = s->problem->node;
    const clt_backend_row *rows[MOST_ROWS];
    int n = 0;
    for (const clt_backend_row *row = NULL; n < MOST_ROWS && (row = clt_backend_next(node->op, row));)
        if (worth_a_try(s, row) && clt_backend_fits(row, node, s->device)) rows[n++] = row;
    /* Where what the library does of itself is wrong, something that is right is worth any time. */
    while (n-- > 0 && (has_time(s) || s->result.best_us == 0)) {
        clt_choice choice = {.row = rows[n]};
        clt_backend_defaults(choice.row, node, s->device, choice.parameters);
        if (!hopeless(s, choice.row)) CLT_TRY(try_candidate(s, &choice));
    }
    return CLT_OK;
}

/* One parameter after the other, from the best of a row on. */
static clt_status try_parameters(search *s, candidate *best) {
    const clt_tunable *tunables = best->choice.row->tunables;
    for (bool better = true; better && tunables;) {
        double before = best->us;
        for (int i = 0; tunables[i].name; i++)
            for (int k = 0; k < tunables[i].n; k++) {
                clt_choice choice = best->choice;
                choice.parameters[i] = tunables[i].values[k];
                if (!has_time(s)) return CLT_OK;
                CLT_TRY(try_candidate(s, &choice));
            }
        better = best->us < before;
    }
    return CLT_OK;
}

static int faster_first(const void *a, const void *b) {
    double x = ((const candidate *)a)->us, y = ((const candidate *)b)->us;
    return x < y ? -1 : x > y;
}

/* The fastest row first; what is far behind as it comes is not searched. */
static clt_status try_all_parameters(search *s) {
    const double far_behind = 3;
    qsort(s->rows, (size_t)s->n_rows, sizeof *s->rows, faster_first);
    for (int i = 0; i < s->n_rows && has_time(s); i++)
        if (s->rows[i].us < far_behind * s->result.best_us) CLT_TRY(try_parameters(s, &s->rows[i]));
    return CLT_OK;
}

static clt_status run_search(search *s) {
    clt_choice now = clt_tune_choose(s->problem->node, s->device, NULL);
    CLT_TRY(try_candidate(s, &s->result.without));
    if (has_time(s)) CLT_TRY(try_candidate(s, &now));
    CLT_TRY(try_rows(s));
    return try_all_parameters(s);
}

/* Both again, in turn: the winner must win clearly. */
static clt_status confirm(search *s) {
    clt_tuned *r = &s->result;
    double ratio = 1, seconds = CLT_MIN(CLT_MAX(s->deadline - clt_seconds(), 0), 1);
    if (r->without_us == 0 || same_choice(&r->best, &r->without)) return CLT_OK;
    bool wins = r->best_us < MARGIN * r->without_us && !s->broken;
    if (wins) {
        clt_status status = clt_bench_duel(s->bench, &r->best, &r->without, seconds, &ratio);
        if (status < 0) CLT_TRY(judge_error(s, &r->best, status));
        wins = status == CLT_OK && ratio < MARGIN;
    }
    if (wins) return CLT_OK;
    r->best = r->without;
    r->best_us = r->without_us;
    return CLT_OK;
}

static clt_status keep_result(search *s) {
    const clt_tuned *r = &s->result;
    clt_tuning_result result;
    clt_tuning_result_of(s->problem->key, &r->best, &result);
    result.effort = s->job->effort;
    result.tried = r->tried;
    result.us = r->best_us;
    result.default_us = r->without_us;
    result.nmse = r->nmse;
    CLT_TRY(clt_tuning_results_put(&s->db->measured, &result));
    return clt_tune_store(s->device);
}

/* ---- one problem ---- */

static void set_known(search *s, const clt_tuning_result *result) {
    clt_tuned *r = &s->result;
    r->state = CLT_TUNED_KNOWN;
    r->without_us = result->default_us;
    r->best_us = result->us;
    r->nmse = result->nmse;
    r->tried = result->tried;
    clt_tuning_result_apply(result, s->problem->node, s->device, &r->best);
}

/* Quick tuning takes any tuning result for granted, those among them that are shipped. */
static const clt_tuning_result *known(const search *s) {
    const clt_tuning_result *result = clt_tuning_results_find(&s->db->measured, s->problem->key);
    bool full = s->job->effort == CLT_TUNE_FULL;
    if (result && full) return result->effort == CLT_TUNE_FULL ? result : NULL;
    return result || full ? result : clt_tuning_results_find(&s->db->shipped, s->problem->key);
}

static clt_status open_trial(search *s) {
    if (s->broken) {
        clt_device_close(s->trial);
        s->trial = NULL;
    }
    s->broken = false;
    return s->trial ? CLT_OK : clt_device_open_again(s->device, &s->trial);
}

static clt_status measure(search *s) {
    double sample_work = s->job->effort == CLT_TUNE_FULL ? 2e9 : 2e8;
    double seconds = CLT_MAX(0, s->deadline - clt_seconds());
    sample_work = CLT_MIN(sample_work, s->reference_rate * seconds / 8);
    s->n_seen = s->n_rows = 0;
    clt_status status = clt_bench_create(&s->bench, s->trial, s->problem->node, s->problem->work, sample_work);
    if (status < 0) {
        clt_log_message(CLT_LOG_DEBUG, "tuning %s: %s", s->problem->key, clt_error_detail());
        s->broken |= breaks(status);
        s->result.state = CLT_TUNED_FAILED;
        return CLT_OK;
    }
    status = run_search(s);
    if (status == CLT_OK) status = confirm(s);
    bool any = s->result.best_us > 0;
    s->result.state = any ? CLT_TUNED_MEASURED : CLT_TUNED_FAILED;
    if (status == CLT_OK && any) status = keep_result(s);
    clt_bench_destroy(s->bench);
    s->bench = NULL;
    return status;
}

/* ---- all of them ---- */

/* How many operations a second the reference does: with products that grow until one takes long enough. It
 * tells a simulator, on which nothing is to be tried that takes minutes. */
static clt_status measure_rate(search *s) {
    const double enough_us = 1000;
    double us = 0;
    for (int64_t size = 16, depth = 64; size <= 1024 && us < enough_us; size *= 4) {
        clt_graph *graph;
        clt_bench *bench = NULL;
        CLT_TRY(clt_graph_create(&graph));
        clt_tensor *y = clt_matmul(clt_input(graph, "a", CLT_F32, CLT_SHAPE(size, depth)),
                                   clt_input(graph, "b", CLT_F32, CLT_SHAPE(depth, size)));
        clt_status status = clt_graph_status(graph);
        double work = 2 * (double)(size * size * depth);
        if (status == CLT_OK) status = clt_bench_create(&bench, s->trial, y, work, INFINITY);
        if (status == CLT_OK) us = clt_bench_reference_us(bench);
        s->reference_rate = 1e6 * work / CLT_MAX(us, 1);
        clt_bench_destroy(bench);
        clt_graph_destroy(graph);
        CLT_TRY(status);
    }
    return CLT_OK;
}

static clt_status tune_one(search *s, double end, double work_left) {
    const clt_problem *p = s->problem;
    double share = work_left > 0 ? p->work * p->count / work_left : 1;
    const clt_tuning_result *result = known(s);
    s->result.state = CLT_TUNED_NO_BUDGET;
    if (result) {
        set_known(s, result);
        return CLT_OK;
    }
    if (clt_seconds() + s->longest >= end) return CLT_OK;
    CLT_TRY(open_trial(s));
    if (s->reference_rate == 0) CLT_TRY(measure_rate(s));
    double now = clt_seconds();
    s->deadline = now + CLT_MAX(0, end - now) * CLT_MIN(1, share);
    return measure(s);
}

clt_status clt_tune_problems(clt_device *device, clt_problem_list *list, const clt_tune_job *job) {
    search s = {.device = device, .db = clt_tune_database_of(device), .job = job};
    double end = clt_seconds() + job->budget_seconds, work_left = 0;
    if (!s.db) return clt_fail_memory(sizeof *s.db);
    clt_status status = clt_tune_store(device); /* what cannot be kept is not worth the time */
    clt_problems_sort(list);
    for (size_t i = 0; i < list->n; i++) work_left += list->items[i].work * list->items[i].count;
    bool go_on = true;
    for (size_t i = 0; i < list->n && status == CLT_OK && go_on; i++) {
        s.problem = &list->items[i];
        s.result = (clt_tuned){.problem = s.problem, .index = i, .n = list->n};
        s.result.without = s.result.best = clt_tune_choose_untuned(s.problem->node, device);
        status = tune_one(&s, end, work_left);
        work_left -= s.problem->work * s.problem->count;
        if (status == CLT_OK && job->report) go_on = job->report(&s.result, job->user);
    }
    clt_device_close(s.trial);
    return status;
}

/* ---- on first use ---- */

/* Rows or capabilities that are masked for a while must not decide what is kept for good. */
static bool is_masked(const clt_device *device) {
    const clt_settings *settings = clt_device_settings(device);
    return settings->backends[0] || settings->capabilities_off[0];
}

/* Unless it is asked for, CPUs are left alone: what serves there by default was chosen by measurement (docs/performance.md), and the
 * first step is over sooner. */
static bool measures(const clt_device *device) {
    return clt_device_settings(device)->tune[0] || clt_device_get_info(device)->type != CLT_DEVICE_CPU;
}

/* What is hardly any work is not tuned. */
static bool matters(const clt_problem_list *list, const clt_problem *problem) {
    const double least_work = 2e6, least_share = 0.02;
    return problem->work >= least_work && problem->work * problem->count >= least_share * list->work;
}

static bool is_known(const clt_tune_database *db, const clt_problem *problem, clt_tune_mode mode) {
    const clt_tuning_result *result = clt_tuning_results_find(&db->measured, problem->key);
    if (mode == CLT_TUNE_MODE_FULL) return result && result->effort == CLT_TUNE_FULL;
    return result || clt_tuning_results_find(&db->shipped, problem->key);
}

/* Those that matter; false if there is none of which nothing is known. */
static bool select_problems(clt_problem_list *list, const clt_tune_database *db, clt_tune_mode mode,
                            clt_problem_list *chosen) {
    bool any = false;
    for (size_t i = 0; i < list->n; i++) {
        if (!matters(list, &list->items[i]) || is_known(db, &list->items[i], mode)) continue;
        if (clt_grow(&chosen->items, &chosen->capacity, chosen->n, sizeof *chosen->items) < 0) return false;
        chosen->items[chosen->n++] = list->items[i];
        any = true;
    }
    return any;
}

/* Every problem gets its tuning result, if only that it stays as it is: the next run of the same program
 * chooses as this one did, whatever is tuned in between. */
static clt_status keep_the_rest(clt_device *device, const clt_problem_list *list, clt_tune_database *db) {
    bool any = false;
    for (size_t i = 0; i < list->n; i++) {
        const clt_problem *p = &list->items[i];
        if (clt_tuning_results_find(&db->measured, p->key) || clt_tuning_results_find(&db->shipped, p->key)) continue;
        clt_tuning_result result;
        clt_choice choice = clt_tune_choose(p->node, device, NULL);
        clt_tuning_result_of(p->key, &choice, &result);
        CLT_TRY(clt_tuning_results_put(&db->measured, &result));
        any = true;
    }
    return any ? clt_tune_store(device) : CLT_OK;
}

void clt_tune_on_first_use(clt_device *device, clt_problem_list *list) {
    clt_tune_mode mode = clt_tune_get_mode(device);
    if (list->n == 0 || mode == CLT_TUNE_MODE_OFF || is_masked(device)) return;
    bool full = mode == CLT_TUNE_MODE_FULL;
    clt_tune_job job = {.effort = full ? CLT_TUNE_FULL : CLT_TUNE_QUICK, .budget_seconds = full ? 300 : 1.5};
    clt_tune_database *db = clt_tune_database_of(device);
    clt_problem_list chosen = {0};
    clt_status status = CLT_OK;
    double start = clt_seconds();
    if (!db) return;
    if (measures(device) && select_problems(list, db, mode, &chosen)) {
        status = clt_tune_problems(device, &chosen, &job);
        if (status == CLT_OK)
            clt_log_message(CLT_LOG_INFO, "tuned what takes long in this model for %.2f s (CLTRAIN_TUNE=off does not)",
                            clt_seconds() - start);
    }
    /* Without a file nothing was measured, and nothing will be in the next run. */
    if (status == CLT_OK) status = keep_the_rest(device, list, db);
    if (status < 0) clt_log_message(CLT_LOG_INFO, "not tuned: %s", clt_error_detail());
    clt_problems_free(&chosen);
}
