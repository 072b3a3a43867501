/* What <cltrain/experimental/probe.h> tells, and tuning by hand. */
#include <cltrain/experimental/probe.h>

#include <stdio.h>
#include <string.h>

#include "runtime/train/trainer.h"

enum { TEXT = 512, MOST_ROWS = 32 };

/* ---- rows ---- */

/* Names of capabilities: those of the row, or those of them that are missing. */
static void capabilities(const clt_backend_row *row, clt_device *device, bool missing, char text[TEXT]) {
    int used = 0;
    text[0] = 0;
    for (int c = 0; c < CLT_CAP_COUNT_ && used < TEXT; c++) {
        if (!(row->requires >> c & 1) || (missing && clt_device_has(device, (clt_capability)c))) continue;
        used += snprintf(text + used, (size_t)(TEXT - used), "%s%s", used ? " " : "",
                         clt_capability_name((clt_capability)c));
    }
}

static void tunables(const clt_backend_row *row, char text[TEXT]) {
    int used = 0;
    text[0] = 0;
    for (const clt_tunable *t = row->tunables; t && t->name && used < TEXT; t++) {
        used += snprintf(text + used, (size_t)(TEXT - used), "%s%s", used ? " " : "", t->name);
        for (int i = 0; i < t->n && used < TEXT; i++)
            used += snprintf(text + used, (size_t)(TEXT - used), "%c%d", i ? ',' : '=', t->values[i]);
    }
}

static bool visit_row(const clt_backend_row *row, clt_device *device,
                      bool (*visit)(const clt_row_info *row, void *user), void *user) {
    char id[CLT_TUNE_NAME], needs[TEXT], missing[TEXT], parameters[TEXT];
    capabilities(row, device, false, needs);
    capabilities(row, device, true, missing);
    tunables(row, parameters);
    clt_row_info info = {
        .op = row->op->name,
        .backend = clt_backend_row_id(row, id),
        .needs = needs,
        .missing = missing,
        .parameters = parameters,
        .masked = !clt_backend_allowed(row, device),
    };
    return visit(&info, user);
}

clt_status clt_probe_rows(clt_device *device, bool (*visit)(const clt_row_info *row, void *user), void *user) {
    if (!device || !visit) return clt_fail(CLT_E_INVALID, "clt_probe_rows: device or visit is NULL");
    for (const clt_backend_row *first = NULL; (first = clt_backend_next(NULL, first));) {
        if (clt_backend_next(first->op, NULL) != first) continue; /* the op was met before */
        for (const clt_backend_row *row = NULL; (row = clt_backend_next(first->op, row));)
            if (!visit_row(row, device, visit, user)) return CLT_OK;
    }
    return CLT_OK;
}

/* ---- problems ---- */

static const char *const reasons[] = {
    [CLT_WHY_NONE] = "none fits",      [CLT_WHY_ONLY] = "only one",
    [CLT_WHY_DEFAULT] = "default",     [CLT_WHY_MEASURED] = "measured",
    [CLT_WHY_SHIPPED] = "shipped",     [CLT_WHY_NEAREST] = "nearest",
    [CLT_WHY_SHIPPED_NEAREST] = "nearest shipped",
};

typedef struct problem_rows {
    clt_problem_row rows[MOST_ROWS];
    char names[MOST_ROWS][CLT_TUNE_NAME];
    int n;
} problem_rows;

static void fill_rows(const clt_tensor *node, clt_device *device, problem_rows *all) {
    for (const clt_backend_row *r = NULL; all->n < MOST_ROWS && (r = clt_backend_next(node->op, r)); all->n++)
        all->rows[all->n] = (clt_problem_row){clt_backend_row_id(r, all->names[all->n]),
                                              clt_backend_refusal(r, node, device)};
}

static bool visit_problem(const clt_problem *problem, clt_device *device,
                          bool (*visit)(const clt_problem_info *problem, void *user), void *user) {
    problem_rows rows = {.n = 0};
    clt_reason reason;
    char id[CLT_TUNE_NAME] = "", parameters[CLT_TUNE_PARAMETERS];
    clt_choice choice = clt_tune_choose(problem->node, device, &reason);
    fill_rows(problem->node, device, &rows);
    clt_problem_info info = {
        .problem = problem->key,
        .op = problem->node->op->name,
        .count = problem->count,
        .gflop = 1e-9 * problem->flop,
        .gbyte = 1e-9 * clt_node_cost(problem->node).bytes,
        .backend = choice.row ? clt_backend_row_id(choice.row, id) : id,
        .parameters = clt_choice_text(&choice, parameters),
        .why = reasons[reason.why],
        .from = reason.from,
        .rows = rows.rows,
        .n_rows = rows.n,
    };
    return visit(&info, user);
}

/* The problems of the training step; *dry_run and *step own their nodes, also on error. */
static clt_status find_problems(clt_device *device, clt_tensor *loss, const clt_train_options *options,
                                clt_problem_list *problems, clt_trainer **dry_run, clt_step **step) {
    *dry_run = NULL;
    *step = NULL;
    CLT_TRY(clt_trainer_dry_run(dry_run, device, loss, options));
    CLT_TRY(clt_trainer_problems(*dry_run, (*dry_run)->inputs[0]->shape.dims[0], problems, step));
    clt_problems_sort(problems);
    return CLT_OK;
}

clt_status clt_probe_problems(clt_device *device, clt_tensor *loss, const clt_train_options *options,
                              bool (*visit)(const clt_problem_info *problem, void *user), void *user) {
    clt_problem_list problems = {.all = true};
    clt_trainer *dry_run;
    clt_step *step;
    if (!device || !visit) return clt_fail(CLT_E_INVALID, "clt_probe_problems: device or visit is NULL");
    clt_status status = find_problems(device, loss, options, &problems, &dry_run, &step);
    for (size_t i = 0; status == CLT_OK && i < problems.n; i++)
        if (!visit_problem(&problems.items[i], device, visit, user)) break;
    clt_problems_free(&problems);
    clt_step_destroy(step);
    clt_trainer_destroy(dry_run);
    return status;
}

/* ---- kernels ---- */

static bool is_same_kernel(const clt_launch *a, const clt_launch *b) {
    return a->module == b->module && !a->call.run && !b->call.run && !strcmp(a->kernel, b->kernel);
}

/* False if one before it is the same, or if it is of a library. */
static bool is_new(const clt_lowering *l, size_t i) {
    for (size_t k = 0; k < i; k++)
        if (is_same_kernel(&l->launches[k], &l->launches[i])) return false;
    return !l->launches[i].call.run;
}

/* The first `once` are launched when the plan is made, and not in a step. */
static int count_launches(const clt_lowering *l, size_t once, const clt_launch *launch) {
    int n = 0;
    for (size_t i = once; i < l->n_launches; i++) n += is_same_kernel(&l->launches[i], launch);
    return n;
}

static clt_status visit_kernel(clt_device *device, const clt_lowering *l, const clt_launch *launch, int launches,
                               bool (*visit)(const clt_kernel_info *kernel, void *user), void *user, bool *more) {
    clt_text source = {0};
    clt_status status = clt_module_source(device, &l->modules[launch->module], launch->kernel, &source);
    clt_kernel_info info = {
        .kernel = launch->kernel,
        .op = launch->node->op->name,
        .backend = launch->row,
        .source = source.data,
        .dims = launch->dims,
        .fixed_group = launch->fixed_group,
        .launches = launches,
    };
    memcpy(info.items, launch->global, sizeof info.items);
    memcpy(info.group, launch->local, sizeof info.group);
    if (status == CLT_OK) *more = visit(&info, user);
    clt_text_free(&source);
    return status;
}

clt_status clt_probe_kernels(clt_device *device, clt_tensor *loss, const clt_train_options *options,
                             bool (*visit)(const clt_kernel_info *kernel, void *user), void *user) {
    clt_trainer *dry_run;
    clt_step *step = NULL;
    bool more = true;
    if (!device || !visit) return clt_fail(CLT_E_INVALID, "clt_probe_kernels: device or visit is NULL");
    clt_status status = clt_trainer_dry_run(&dry_run, device, loss, options);
    if (status == CLT_OK) status = clt_trainer_dry_run_step(dry_run, dry_run->inputs[0]->shape.dims[0], &step);
    const clt_lowering *l = status == CLT_OK ? clt_plan_planned(step->plan) : NULL;
    for (size_t i = 0; status == CLT_OK && more && i < l->n_launches; i++) {
        if (!is_new(l, i)) continue;
        int launches = count_launches(l, l->n_launches - clt_plan_get_facts(step->plan).launches, &l->launches[i]);
        status = visit_kernel(device, l, &l->launches[i], launches, visit, user, &more);
    }
    clt_step_destroy(step);
    clt_trainer_destroy(dry_run);
    return status;
}

/* ---- tuning ---- */

static const char *const outcomes[] = {
    [CLT_TUNED_MEASURED] = "measured",
    [CLT_TUNED_KNOWN] = "known",
    [CLT_TUNED_NO_BUDGET] = "no time left",
    [CLT_TUNED_FAILED] = "not measurable",
};

static void choice_words(const clt_choice *choice, char text[TEXT]) {
    char id[CLT_TUNE_NAME], parameters[CLT_TUNE_PARAMETERS];
    clt_choice_text(choice, parameters);
    snprintf(text, TEXT, "%s%s%s", clt_backend_row_id(choice->row, id), parameters[0] ? " " : "", parameters);
}

static bool report(const clt_tuned *tuned, void *user) {
    const clt_tune_options *options = user;
    char without[TEXT], best[TEXT];
    choice_words(&tuned->without, without);
    choice_words(&tuned->best, best);
    clt_tune_result result = {
        .problem = tuned->problem->key,
        .count = tuned->problem->count,
        .index = tuned->index,
        .of = tuned->n,
        .gflop = 1e-9 * tuned->problem->flop,
        .outcome = outcomes[tuned->state],
        .without = without,
        .best = best,
        .without_us = tuned->without_us,
        .best_us = tuned->best_us,
        .nmse = tuned->nmse,
        .tried = tuned->tried,
        .failed = tuned->failed,
    };
    return options->report(&result, options->user);
}

clt_status clt_tune_model(clt_device *device, clt_tensor *loss, const clt_train_options *options,
                          const clt_tune_options *tune) {
    const double usual_seconds = 60;
    clt_tune_options given = tune ? *tune : (clt_tune_options){0};
    clt_problem_list problems = {0};
    clt_trainer *dry_run;
    clt_step *step;
    if (!device) return clt_fail(CLT_E_INVALID, "clt_tune_model: device is NULL");
    if (!(given.budget_seconds >= 0)) return clt_fail(CLT_E_INVALID, "clt_tune_model: invalid budget");
    clt_tune_job job = {
        .effort = CLT_TUNE_FULL,
        .budget_seconds = given.budget_seconds > 0 ? given.budget_seconds : usual_seconds,
        .report = given.report ? report : NULL,
        .user = &given,
    };
    clt_status status = find_problems(device, loss, options, &problems, &dry_run, &step);
    if (status == CLT_OK) status = clt_tune_problems(device, &problems, &job);
    clt_problems_free(&problems);
    clt_step_destroy(step);
    clt_trainer_destroy(dry_run);
    return status;
}
