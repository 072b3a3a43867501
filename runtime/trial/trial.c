/* A graph's tensor and gradients, computed on a device for whoever compares them (<cltrain/experimental/probe.h>). */
#include <cltrain/experimental/trial.h>

#include <string.h>

#include "runtime/base/halves.h"
#include "runtime/exec/plan.h"
#include "runtime/trial/tune.h"

static const char seed_name[] = "cltrain.seed";

struct clt_trial {
    clt_device *device;
    clt_graph *graph; /* a copy of the user's, with the gradients */
    clt_tensor *y, *seed;
    clt_tensor **wrt, **grads; /* grads[i] NULL: zero everywhere */
    int n_wrt;
    clt_state_store *store;
    clt_plan *plan;
    clt_problem_list ops;
};

/* ---- making ---- */

/* An input or variable; NULL if the copy has none of that name. */
static clt_tensor *find(const clt_trial *t, const char *name) {
    for (size_t i = 0; i < t->graph->n_nodes; i++) {
        clt_tensor *node = t->graph->nodes[i];
        bool leaf = node->kind == CLT_NODE_INPUT || node->kind == CLT_NODE_VARIABLE;
        if (leaf && node->name && !strcmp(node->name, name)) return node;
    }
    return NULL;
}

static clt_status fail_name(const char *name) {
    return clt_fail(CLT_E_NOT_FOUND, "the tensor depends on no input, parameter or buffer \"%s\"", name);
}

static clt_status copy_graph(clt_trial *t, clt_tensor *y, clt_precision precision) {
    clt_tensor **map;
    CLT_TRY(clt_graph_clone(y->graph, &y, 1, (clt_sizes){0}, &t->graph, &map));
    t->y = map[y->index];
    clt_free(map);
    if (precision == CLT_PRECISION_F32) return CLT_OK;
    CLT_TRY(clt_graph_autocast(t->graph, precision == CLT_PRECISION_F16 ? CLT_F16 : CLT_BF16));
    t->y = clt_cast(t->y, y->dtype);
    return clt_graph_status(t->graph);
}

static clt_status differentiate(clt_trial *t, const clt_trial_options *options) {
    int n = options->n_wrt;
    t->wrt = clt_calloc((size_t)n + 1, sizeof(clt_tensor *));
    t->grads = clt_calloc((size_t)n + 1, sizeof(clt_tensor *));
    if (!t->wrt || !t->grads) return clt_fail_memory(((size_t)n + 1) * sizeof(clt_tensor *));
    for (int i = 0; i < n; i++)
        if (!(t->wrt[i] = find(t, options->wrt[i]))) return fail_name(options->wrt[i]);
    t->n_wrt = n;
    if (n == 0) return CLT_OK;
    t->seed = clt_input(t->graph, seed_name, CLT_F32, t->y->shape);
    CLT_TRY(clt_gradients(t->y, clt_cast(t->seed, t->y->dtype), t->wrt, n, t->grads));
    return clt_graph_status(t->graph);
}

static clt_status make_targets(const clt_trial *t, clt_tensor ***targets, int *n) {
    clt_tensor **all = clt_calloc((size_t)t->n_wrt + 1, sizeof(clt_tensor *));
    if (!all) return clt_fail_memory(((size_t)t->n_wrt + 1) * sizeof(clt_tensor *));
    *n = 0;
    all[(*n)++] = t->y;
    for (int i = 0; i < t->n_wrt; i++)
        if (t->grads[i]) all[(*n)++] = t->grads[i];
    *targets = all;
    return CLT_OK;
}

/* Why no op of the plan is served by the backend: what a row of it says first; NULL if one is. */
static const char *refusal(const clt_trial *t, const char *backend) {
    const char *reason = "it has no row for any op of this";
    bool told = false;
    for (size_t i = 0; i < t->ops.n; i++) {
        const clt_tensor *node = t->ops.items[i].node;
        clt_choice choice = clt_backend_choose(node, t->device);
        if (choice.row && !strcmp(choice.row->name, backend)) return NULL;
        for (const clt_backend_row *r = NULL; !told && (r = clt_backend_next(node->op, r));) {
            const char *why = strcmp(r->name, backend) ? NULL : clt_backend_refusal(r, node, t->device);
            if (!why) continue;
            reason = why;
            told = true;
        }
    }
    return reason;
}

static clt_status compile(clt_trial *t, const clt_trial_options *options, clt_tensor *const *targets, int n) {
    clt_plan_options plan = {.device = t->device, .store = t->store, .graph = t->graph, .targets = targets,
                             .n_targets = n, .training = !options->evaluation};
    t->ops.all = true;
    CLT_TRY(clt_plan_problems(&plan, &t->ops));
    const char *why = options->backend ? refusal(t, options->backend) : NULL;
    if (why) return clt_fail(CLT_E_UNSUPPORTED, "%s: %s", options->backend, why);
    return clt_plan_compile(&t->plan, &plan);
}

static clt_status clear_seed(clt_trial *t) {
    if (!t->seed) return CLT_OK;
    size_t bytes = (size_t)clt_tensor_elements(t->seed) * sizeof(float);
    void *zeros = clt_calloc(bytes, 1);
    if (!zeros) return clt_fail_memory(bytes);
    clt_status status = clt_trial_set(t, NULL, zeros, bytes);
    clt_free(zeros);
    return status;
}

static clt_status make(clt_trial *t, clt_tensor *y, const clt_trial_options *options) {
    clt_tensor **targets = NULL;
    int n = 0;
    CLT_TRY(copy_graph(t, y, options->precision));
    CLT_TRY(differentiate(t, options));
    CLT_TRY(clt_state_store_create(t->device, &t->store));
    CLT_TRY(make_targets(t, &targets, &n));
    clt_settings own = clt_device_override(t->device, &(clt_settings){.backends = options->backends, .passes = options->passes});
    clt_status status = compile(t, options, targets, n);
    clt_device_override(t->device, &own);
    clt_free(targets);
    return status < 0 ? status : clear_seed(t);
}

static clt_status check_options(const clt_trial_options *o) {
    if (o->n_wrt < 0) return clt_fail(CLT_E_INVALID, "clt_trial_create: n_wrt is %d", o->n_wrt);
    if ((unsigned)o->precision > CLT_PRECISION_F16) return clt_fail(CLT_E_INVALID, "clt_trial_create: precision is %d, no clt_precision", (int)o->precision);
    if (o->n_wrt > 0 && !o->wrt) return clt_fail(CLT_E_INVALID, "clt_trial_create: wrt is NULL, and n_wrt is %d", o->n_wrt);
    for (int i = 0; i < o->n_wrt; i++)
        if (!o->wrt[i]) return clt_fail(CLT_E_INVALID, "clt_trial_create: wrt[%d] is NULL", i);
    return CLT_OK;
}

clt_status clt_trial_create(clt_trial **trial, clt_device *device, clt_tensor *y,
                            const clt_trial_options *options) {
    clt_trial_options none = {.n_wrt = 0};
    if (!trial || !device || !y) return clt_fail(CLT_E_INVALID, "clt_trial_create: trial, device or y is NULL");
    *trial = NULL;
    CLT_TRY(clt_graph_status(y->graph));
    CLT_TRY(check_options(options ? options : &none));
    clt_trial *t = clt_calloc(1, sizeof *t);
    if (!t) return clt_fail_memory(sizeof *t);
    t->device = device;
    clt_status status = make(t, y, options ? options : &none);
    if (status < 0) clt_trial_destroy(t);
    else *trial = t;
    return status;
}

void clt_trial_destroy(clt_trial *trial) {
    if (!trial) return;
    clt_plan_destroy(trial->plan);
    clt_problems_free(&trial->ops);
    clt_state_store_destroy(trial->store);
    clt_graph_destroy(trial->graph);
    clt_free(trial->wrt);
    clt_free(trial->grads);
    clt_free(trial);
}

/* ---- values ---- */

static clt_status check_bytes(const clt_tensor *tensor, size_t bytes) {
    size_t own = (size_t)clt_tensor_elements(tensor) * clt_dtype_bytes(tensor->dtype);
    char label[64];
    if (bytes == own) return CLT_OK;
    return clt_fail(CLT_E_SHAPE, "%s has %zu bytes, not %zu", clt_tensor_label(tensor, label), own, bytes);
}

static clt_status variable_memory(const clt_trial *t, const clt_tensor *tensor, clt_memory **memory) {
    return clt_state_store_variable(t->store, tensor->variable, memory);
}

clt_status clt_trial_set(clt_trial *t, const char *name, const void *values, size_t bytes) {
    if (!t || !values) return clt_fail(CLT_E_INVALID, "clt_trial_set: trial or values is NULL");
    const clt_tensor *tensor = name ? find(t, name) : t->seed;
    clt_memory *memory;
    if (!tensor) return name ? fail_name(name) : clt_fail(CLT_E_STATE, "there is no gradient, and so no seed");
    CLT_TRY(check_bytes(tensor, bytes));
    if (tensor->kind == CLT_NODE_INPUT) return clt_plan_feed(t->plan, tensor, values);
    CLT_TRY(variable_memory(t, tensor, &memory));
    return clt_memory_write(memory, 0, values, bytes);
}

clt_status clt_trial_run(clt_trial *t) {
    if (!t) return clt_fail(CLT_E_INVALID, "clt_trial_run: trial is NULL");
    CLT_TRY(clt_plan_run(t->plan));
    return clt_plan_wait(t->plan, t->y);
}

clt_status clt_trial_get(clt_trial *t, const char *name, void *values, size_t bytes) {
    if (!t || !values) return clt_fail(CLT_E_INVALID, "clt_trial_get: trial or values is NULL");
    if (!name) return clt_plan_read(t->plan, t->y, values, bytes);
    const clt_tensor *tensor = find(t, name);
    clt_memory *memory;
    if (!tensor || tensor->kind != CLT_NODE_VARIABLE) return fail_name(name);
    CLT_TRY(check_bytes(tensor, bytes));
    CLT_TRY(variable_memory(t, tensor, &memory));
    return clt_memory_read(memory, 0, values, bytes);
}

static clt_status read_widened(clt_trial *t, const clt_tensor *tensor, float *values, size_t count) {
    size_t bytes = count * clt_dtype_bytes(tensor->dtype);
    void *stored = clt_alloc(bytes);
    if (!stored) return clt_fail_memory(bytes);
    clt_status status = clt_plan_read(t->plan, tensor, stored, bytes);
    if (status == CLT_OK) clt_float_widen(values, stored, tensor->dtype, count);
    clt_free(stored);
    return status;
}

clt_status clt_trial_gradient(clt_trial *t, const char *name, float *values, size_t count) {
    if (!t || !name || !values) return clt_fail(CLT_E_INVALID, "clt_trial_gradient: something is NULL");
    for (int i = 0; i < t->n_wrt; i++) {
        if (strcmp(t->wrt[i]->name, name)) continue;
        CLT_TRY(check_bytes(t->wrt[i], count * clt_dtype_bytes(t->wrt[i]->dtype)));
        if (t->grads[i]) return read_widened(t, t->grads[i], values, count);
        memset(values, 0, count * sizeof *values);
        return CLT_OK;
    }
    return clt_fail(CLT_E_NOT_FOUND, "the gradient of \"%s\" was not asked for", name);
}

clt_status clt_trial_rows(const clt_trial *t,
                          bool (*visit)(const char *op, const char *backend, void *user), void *user) {
    if (!t || !visit) return clt_fail(CLT_E_INVALID, "clt_trial_rows: trial or visit is NULL");
    for (size_t i = 0; i < t->ops.n; i++) {
        const clt_tensor *node = t->ops.items[i].node;
        clt_choice choice = clt_backend_choose(node, t->device);
        if (choice.row && !visit(node->op->name, choice.row->name, user)) break;
    }
    return CLT_OK;
}
