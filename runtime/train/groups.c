/*
 * Groups: parameters that lie one after the other in flat tensors, and with them their gradients and optimizer state.
 *
 * Alone, a process has one group, or as many as the device's largest buffer asks for. With a communicator the groups are
 * buckets (Li et al., "PyTorch Distributed: Experiences on Accelerating Data Parallel Training", 2020): in the order in
 * which backward finishes gradients, of limited size each, so that one is exchanged while the next are computed. The first
 * is small, for it begins all.
 */
#include <string.h>

#include "runtime/train/trainer.h"

enum { FIRST_BUCKET_BYTES = 1 << 20 };

void clt_groups_free(clt_group *groups, int n) {
    for (int i = 0; i < n; i++) {
        clt_free(groups[i].variables);
        clt_free(groups[i].offsets);
    }
    clt_free(groups);
}

/* In elements. A buffer has a largest size, and kernels count elements with 32 bits. */
static int64_t limit_of(const clt_trainer *t, int group) {
    size_t bytes = t->options.bucket_bytes;
    int64_t limit = CLT_MIN((int64_t)(clt_device_get_info(t->device)->max_buffer_bytes / sizeof(float)),
                            (int64_t)INT32_MAX - CLT_PACK_ALIGN);
    if (!t->options.comm) return limit;
    if (group == 0) bytes = CLT_MIN(bytes, FIRST_BUCKET_BYTES);
    return CLT_MIN(limit, (int64_t)(bytes / sizeof(float)));
}

static clt_status open_group(clt_trainer *t, int n_variables) {
    clt_group *grown = clt_realloc(t->groups, (size_t)(t->n_groups + 1) * sizeof *t->groups);
    if (!grown) return clt_fail_memory((size_t)(t->n_groups + 1) * sizeof *t->groups);
    t->groups = grown;
    clt_group *group = &t->groups[t->n_groups++];
    *group = (clt_group){0};
    group->variables = clt_calloc((size_t)n_variables, sizeof *group->variables);
    group->offsets = clt_calloc((size_t)n_variables, sizeof *group->offsets);
    if (!group->variables || !group->offsets) return clt_fail_memory((size_t)n_variables * sizeof *group->offsets);
    return CLT_OK;
}

/* A variable that is larger than the limit has a group of its own. */
static clt_status add_to_groups(clt_trainer *t, clt_variable *variable, int n_variables) {
    int64_t elements = (clt_shape_elements(&variable->shape) + CLT_PACK_ALIGN - 1) / CLT_PACK_ALIGN * CLT_PACK_ALIGN;
    int last = t->n_groups - 1;
    if (last < 0 || t->groups[last].elements + elements > limit_of(t, last)) CLT_TRY(open_group(t, n_variables)); /* NOLINT(clang-analyzer-core.NullDereference) */
    clt_group *group = &t->groups[t->n_groups - 1];
    group->variables[group->n] = variable;
    group->offsets[group->n++] = group->elements;
    group->elements += elements;
    return CLT_OK;
}

/* The first node of the user's graph that reads the variable: backward has its whole gradient when it is past that one. */
static size_t first_use(const clt_graph *graph, const clt_variable *variable) {
    for (size_t i = 0; i < graph->n_nodes; i++)
        for (int k = 0; k < graph->nodes[i]->n_inputs; k++)
            if (graph->nodes[i]->inputs[k]->variable == variable) return i;
    return graph->n_nodes;
}

/* In reverse order of use; those that one node reads, as they were. The order is a fact of the user's graph, so that it is
 * the same whatever the batch size is. */
static void sort_by_use(const clt_graph *graph, clt_variable **variables, size_t *uses, int n) {
    for (int i = 0; i < n; i++) uses[i] = first_use(graph, variables[i]);
    for (int i = 1; i < n; i++) {
        clt_variable *variable = variables[i];
        size_t use = uses[i];
        int k = i;
        for (; k > 0 && uses[k - 1] < use; k--) {
            variables[k] = variables[k - 1];
            uses[k] = uses[k - 1];
        }
        variables[k] = variable;
        uses[k] = use;
    }
}

static clt_status fill_groups(clt_trainer *t, clt_variable **variables, int n) {
    for (int i = 0; i < n; i++) CLT_TRY(add_to_groups(t, variables[i], n));
    int64_t unit = (int64_t)clt_trainer_parts(t) * CLT_PACK_ALIGN;
    for (int g = 0; g < t->n_groups; g++) t->groups[g].elements = (t->groups[g].elements + unit - 1) / unit * unit;
    for (int g = 0; g < t->n_groups; g++)
        for (int i = 0; i < t->groups[g].n; i++) {
            char name[64];
            CLT_TRY(clt_store_place(t->store, t->groups[g].variables[i], clt_group_name("parameters", g, name),
                                    (size_t)t->groups[g].elements * sizeof(float),
                                    (size_t)t->groups[g].offsets[i] * sizeof(float)));
        }
    return CLT_OK;
}

clt_status clt_trainer_make_groups(clt_trainer *t, clt_tensor *const *params, clt_tensor *const *grads, int n) {
    if (t->groups) return CLT_OK;
    clt_variable **variables = clt_calloc((size_t)n + 1, sizeof *variables);
    size_t *uses = clt_calloc((size_t)n + 1, sizeof *uses);
    clt_status status = variables && uses ? CLT_OK : clt_fail_memory(((size_t)n + 1) * sizeof *uses);
    int reached = 0;
    for (int i = 0; status == CLT_OK && i < n; i++)
        if (grads[i]) variables[reached++] = params[i]->variable;
    if (status == CLT_OK && !reached) status = clt_fail(CLT_E_INVALID, "the loss does not depend on any parameter");
    if (status == CLT_OK && t->options.comm) sort_by_use(t->graph, variables, uses, reached);
    if (status == CLT_OK) status = fill_groups(t, variables, reached);
    clt_free(variables);
    clt_free(uses);
    return status;
}
