/*
 * One problem, measured: verified, timed with what serves it in a run, and verified again.
 */
#include <cltrain/experimental/trial.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "backends/tune/tune.h"
#include "runtime/trial/bench.h"
#include "runtime/exec/plan.h"

/* ---- what serves it ---- */

/* What does in a run, or, where another backend is asked for, the last of its rows that fits: those on demand only if no other does. */
static clt_choice choose(const clt_tensor *node, clt_device *device, const char *backend) {
    clt_choice choice = clt_tune_choose(node, device, NULL), named = {.row = NULL};
    if (!backend || (choice.row && !strcmp(choice.row->name, backend))) return choice;
    for (const clt_backend_row *row = NULL; (row = clt_backend_next(node->op, row));) {
        if (strcmp(row->name, backend) != 0 || !clt_backend_fits(row, node, device)) continue;
        if (!named.row || named.row->on_demand || !row->on_demand) named.row = row;
    }
    if (named.row) clt_backend_defaults(named.row, node, device, named.parameters);
    return named;
}

static clt_status no_choice(const clt_tensor *node, clt_device *device, const char *backend, const char *problem) {
    for (const clt_backend_row *row = NULL; backend && (row = clt_backend_next(node->op, row));)
        if (strcmp(row->name, backend) == 0)
            return clt_fail(CLT_E_UNSUPPORTED, "%s: %s", backend, clt_backend_refusal(row, node, device));
    if (backend) return clt_fail(CLT_E_UNSUPPORTED, "%s has no row for %s", backend, node->op->name);
    return clt_fail(CLT_E_UNSUPPORTED, "no row of the backend table serves %s here", problem);
}

/* ---- layouts, as a plan would choose them for activations ---- */

static bool is_activation(const clt_tensor *node, int input) {
    return node->inputs[input]->shape.rank == 4 && !(node->op->weights >> input & 1);
}

static void lay(clt_tensor *node, clt_layout operands, clt_layout result) {
    for (int i = 0; i < node->n_inputs; i++)
        if (is_activation(node, i)) node->inputs[i]->layout = operands;
    node->layout = result;
}

static void choose_layouts(clt_tensor *node, clt_device *device, const char *backend) {
    static const clt_layout last = CLT_LAYOUT_CHANNELS_LAST, plain = CLT_LAYOUT_CONTIGUOUS;
    bool free_result = node->shape.rank == 4 && !node->op->gives_weight && !node->unread, any = free_result;
    for (int i = 0; i < node->n_inputs; i++) any |= is_activation(node, i);
    if (!any) return;
    if (free_result) lay(node, last, last);
    if (free_result && choose(node, device, backend).row) return;
    lay(node, last, plain);
    if (!free_result && choose(node, device, backend).row) return;
    lay(node, plain, plain);
}

/* ---- updates: compared with the host's ---- */

enum { CHECKED = 509 }; /* elements, from all over */

typedef struct update {
    clt_device *device;
    clt_state_store *store;
    clt_plan *plan;
    const clt_tensor *node;
    float *first, *got; /* parameters before the first step, and read back */
    int64_t n;
    int64_t steps; /* since the parameters were the first ones */
    double worst;  /* squared error of the first parameter after timed steps, as a part: each step counts */
} update;

static const float update_lr = 1e-3f, update_bias = 0.75f;

static float first_value(int64_t i, int input) {
    return (float)((i * 7919 + input * 104729) % 2003 - 1001) / 1001.0f;
}

/* What parameter i is after so many steps; in double precision. */
static double host_value(const update *u, int64_t i) {
    const clt_update_attributes *at = u->node->attributes;
    bool adam = u->node->op == &clt_op_adam;
    double p = (double)first_value(i, 0), g = (double)first_value(i, 1), m = 0, v = 0, lr = (double)update_lr;
    for (int64_t step = 0; step < u->steps; step++) {
        if (adam) {
            m = (double)at->beta1 * m + (1 - (double)at->beta1) * g;
            v = (double)at->beta2 * v + (1 - (double)at->beta2) * g * g;
            p -= lr / (double)update_bias * m / (sqrt(v) / (double)update_bias + (double)at->eps);
        } else {
            m = (clt_update_states(u->node) > 0 ? (double)at->momentum * m : 0) + g;
            p -= lr * m;
        }
    }
    return p;
}

static clt_memory *state_of(const update *u, int input) {
    size_t bytes;
    return clt_state_store_find(u->store, u->node->inputs[input]->name, &bytes);
}

static clt_status set_up_update(update *u) {
    float hyper[CLT_HYPER_COUNT] = {[CLT_HYPER_LR] = update_lr, [CLT_HYPER_BIAS1] = update_bias,
                                    [CLT_HYPER_BIAS2] = update_bias, [CLT_HYPER_SCALE] = 1};
    float one = 1;
    for (int64_t i = 0; i < u->n; i++) u->first[i] = first_value(i, 1);
    CLT_TRY(clt_plan_feed(u->plan, u->node->inputs[1], u->first));
    CLT_TRY(clt_plan_feed(u->plan, u->node->inputs[2], hyper));
    CLT_TRY(clt_plan_feed(u->plan, u->node->inputs[3], &one));
    for (int64_t i = 0; i < u->n; i++) u->first[i] = first_value(i, 0);
    for (int k = 0; k < u->node->n_inputs; k++)
        if (u->node->op->writes >> k & 1 && !state_of(u, k)) return clt_fail(CLT_E_STATE, "the update has no memory");
    return CLT_OK;
}

/* Roundings of many steps in one direction add up: runs begin with the first parameters. */
static clt_status begin_update(update *u) {
    CLT_TRY(clt_memory_write(state_of(u, 0), 0, u->first, (size_t)u->n * sizeof(float)));
    for (int k = 4; k < u->node->n_inputs; k++) CLT_TRY(clt_memory_zero(state_of(u, k)));
    CLT_TRY(clt_device_finish(u->device));
    u->steps = 0;
    return CLT_OK;
}

/* By reading a value: there are drivers whose finish alone does not wait. */
static clt_status wait_for_update(const update *u, float *value) {
    return clt_memory_read(state_of(u, 0), 0, value, sizeof *value);
}

static clt_status run_update(void *user, int times, double *seconds) {
    update *u = user;
    float value;
    CLT_TRY(begin_update(u));
    double start = clt_seconds();
    for (int i = 0; i < times; i++) CLT_TRY(clt_plan_run(u->plan));
    CLT_TRY(wait_for_update(u, &value));
    *seconds = (clt_seconds() - start) / times;
    u->steps += times;
    double off = (double)value / host_value(u, 0) - 1;
    if (!(off * off <= u->worst)) u->worst = off * off; /* NaN, too */
    return CLT_OK;
}

static clt_status compare_update(update *u, double *nmse) {
    double error = 0, square = 0;
    CLT_TRY(clt_memory_read(state_of(u, 0), 0, u->got, (size_t)u->n * sizeof(float)));
    for (int64_t k = 0; k < CLT_MIN(CHECKED, u->n); k++) {
        int64_t i = u->n <= CHECKED ? k : k * (u->n - 1) / (CHECKED - 1);
        double wanted = host_value(u, i), difference = (double)u->got[i] - wanted;
        error += difference * difference;
        square += wanted * wanted;
    }
    *nmse = error == 0 ? 0 : error / square;
    return CLT_OK;
}

static clt_status measure_update(clt_device *device, clt_graph *graph, clt_tensor *node, const clt_choice *choice,
                                 const clt_problem_options *options, clt_problem_measurement *m) {
    update u = {.device = device, .node = node, .n = clt_tensor_elements(node)};
    clt_status status;
    double seconds;
    u.first = clt_alloc((size_t)u.n * sizeof *u.first);
    u.got = clt_alloc((size_t)u.n * sizeof *u.got);
    status = u.first && u.got ? CLT_OK : clt_fail_memory((size_t)u.n * sizeof *u.got);
    CLT_TRY_GOTO(status);
    CLT_TRY_GOTO(clt_state_store_create(device, &u.store));
    CLT_TRY_GOTO(clt_plan_compile(&u.plan, &(clt_plan_options){.device = device, .store = u.store, .graph = graph,
                                                               .targets = &node, .n_targets = 1, .training = true,
                                                               .forced = choice}));
    CLT_TRY_GOTO(set_up_update(&u));
    CLT_TRY_GOTO(run_update(&u, 1, &seconds));
    CLT_TRY_GOTO(compare_update(&u, &m->nmse));
    if (!(m->nmse <= CLT_BENCH_MOST_NMSE)) goto fail;
    clt_device_settle_programs(device);
    CLT_TRY_GOTO(clt_sample_times(run_update, &u, &options->measure, &m->time));
    status = compare_update(&u, &m->nmse_after);
    if (!(u.worst <= m->nmse_after)) m->nmse_after = u.worst;
fail:
    clt_plan_destroy(u.plan);
    clt_state_store_destroy(u.store);
    clt_free(u.first);
    clt_free(u.got);
    return status;
}

/* ---- all others: compared with the reference ---- */

static clt_status measure_node(clt_device *device, clt_tensor *node, const clt_choice *choice,
                               const clt_problem_options *options, clt_problem_measurement *m) {
    const double usual_work = 1e8, per_byte = 4; /* as problem.c */
    clt_bench *bench;
    double reference = options->reference_work > 0 ? options->reference_work : usual_work;
    CLT_TRY(clt_bench_create(&bench, device, node, CLT_MAX(m->flops, per_byte * m->bytes), reference));
    clt_status status = clt_bench_sample(bench, choice, &options->measure, &m->time, &m->nmse, &m->nmse_after);
    clt_bench_destroy(bench);
    return status;
}

static clt_status judge(const clt_device *device, clt_problem_measurement *m) {
    if (m->nmse <= CLT_BENCH_MOST_NMSE && m->nmse_after <= CLT_BENCH_MOST_NMSE) return CLT_OK;
    bool first = !(m->nmse <= CLT_BENCH_MOST_NMSE);
    m->time.wrong = true;
    m->time.n = 0;
    return clt_fail(CLT_E_DEVICE, "%s: the result of %s is wrong%s: its normalized squared error is %.2g",
                    clt_device_get_info(device)->name, m->problem, first ? "" : " after the timed runs",
                    first ? m->nmse : m->nmse_after);
}

static clt_status measure(clt_device *device, clt_graph *graph, const char *text, const clt_problem_options *options,
                          clt_problem_measurement *m) {
    clt_tensor *node;
    bool marked;
    CLT_TRY(clt_problem_parse(text, graph, &node, &marked));
    if (!marked && !options->exact_layouts) choose_layouts(node, device, options->backend);
    clt_tune_words(node, m->problem);
    clt_choice choice = choose(node, device, options->backend);
    if (!choice.row) return no_choice(node, device, options->backend, m->problem);
    clt_backend_row_id(choice.row, m->backend);
    clt_choice_text(&choice, m->parameters);
    clt_cost cost = clt_node_cost(node);
    m->flops = cost.flops;
    m->done_flops = clt_backend_flops(choice.row, cost.flops);
    m->bytes = cost.bytes;
    CLT_TRY(node->op->writes ? measure_update(device, graph, node, &choice, options, m)
                             : measure_node(device, node, &choice, options, m));
    return judge(device, m);
}

clt_status clt_measure_problem(clt_device *device, const char *problem, const clt_problem_options *options,
                               clt_problem_measurement *measurement) {
    clt_graph *graph;
    static const clt_problem_options usual = {.reference_work = 0};
    if (!device || !problem || !measurement) return clt_fail(CLT_E_INVALID, "clt_measure_problem: an argument is NULL");
    *measurement = (clt_problem_measurement){.nmse = INFINITY, .nmse_after = INFINITY};
    snprintf(measurement->problem, sizeof measurement->problem, "%s", problem);
    CLT_TRY(clt_graph_create(&graph));
    if (!options) options = &usual;
    clt_settings own = clt_device_override(device, &(clt_settings){.backends = options->backends});
    clt_status status = measure(device, graph, problem, options, measurement);
    clt_device_override(device, &own);
    clt_graph_destroy(graph);
    /* What was not computed is not known. */
    if (!isfinite(measurement->nmse)) measurement->nmse = -1;
    if (!isfinite(measurement->nmse_after)) measurement->nmse_after = -1;
    return status;
}

clt_status clt_problem_check(const char *problem) {
    clt_graph *graph;
    clt_tensor *node;
    bool marked;
    if (!problem) return clt_fail(CLT_E_INVALID, "clt_problem_check: the text is NULL");
    CLT_TRY(clt_graph_create(&graph));
    clt_status status = clt_problem_parse(problem, graph, &node, &marked);
    clt_graph_destroy(graph);
    return status;
}
