#include "runtime/exec/passes/passes.h"

static clt_status begin(clt_pass *pass) {
    clt_graph *graph = pass->graph;
    pass->n = graph->n_nodes;
    pass->live = clt_calloc(pass->n, sizeof *pass->live);
    pass->uses = clt_calloc(pass->n, sizeof *pass->uses);
    CLT_TRY(clt_grow(&pass->keys, &pass->keys_capacity, pass->n, sizeof *pass->keys));
    if (!pass->live || !pass->uses) return clt_fail_memory(pass->n * sizeof *pass->uses);
    clt_graph_mark_kept(graph, pass->live);
    for (size_t i = 0; i < pass->n; i++) {
        const clt_tensor *node = graph->nodes[i];
        pass->keys[i] = 2 * (int64_t)i;
        for (int k = 0; pass->live[i] && k < node->n_inputs; k++) pass->uses[node->inputs[k]->index]++;
    }
    return CLT_OK;
}

static void end(clt_pass *pass) {
    clt_free(pass->live);
    clt_free(pass->uses);
    clt_free(pass->keys);
}

void clt_pass_replace(clt_pass *pass, const clt_tensor *from, clt_tensor *to) {
    for (size_t i = 0; i < pass->graph->n_nodes; i++) {
        clt_tensor *node = pass->graph->nodes[i];
        for (int k = 0; node != to && k < node->n_inputs; k++)
            if (node->inputs[k] == from && node->kind != CLT_NODE_OUTPUT) node->inputs[k] = to;
    }
}

clt_status clt_pass_place(clt_pass *pass, clt_tensor *node, const clt_tensor *before) {
    if (!clt_tensor_valid(node)) return clt_graph_status(pass->graph);
    CLT_TRY(clt_grow(&pass->keys, &pass->keys_capacity, (size_t)node->index, sizeof *pass->keys));
    pass->keys[node->index] = pass->keys[before->index] - 1;
    node->segment = before->segment;
    node->backward = before->backward;
    return CLT_OK;
}

static clt_status run_pass(clt_pass *pass, clt_pass_function *function) {
    clt_status status = begin(pass);
    if (status == CLT_OK) status = function(pass);
    if (status == CLT_OK) status = clt_graph_status(pass->graph);
    if (status == CLT_OK) status = clt_graph_sort(pass->graph, pass->keys);
    end(pass);
    return status;
}

static clt_status run(clt_pass_function *function, clt_graph *graph, clt_device *device, bool training) {
    return run_pass(&(clt_pass){.graph = graph, .device = device, .training = training}, function);
}

clt_status clt_passes_bring(clt_graph *graph, clt_device *device, bool training) {
    return run(clt_pass_bring, graph, device, training);
}

clt_status clt_passes_recompute(clt_graph *graph, clt_device *device, const clt_recompute_choice *choice, clt_recompute_outcome *made) {
    clt_pass pass = {.graph = graph, .device = device, .training = true, .recompute = choice};
    clt_status status = run_pass(&pass, clt_pass_recompute);
    *made = pass.made;
    return status;
}

clt_status clt_passes_run_unfused(clt_graph *graph, clt_device *device, bool training) {
    CLT_TRY(run(clt_pass_split, graph, device, training));
    if (clt_list_allows(clt_device_settings(device)->passes, "layout")) CLT_TRY(run(clt_pass_layout, graph, device, training));
    return run(clt_pass_bridge, graph, device, training);
}

static const struct {
    const char *name; /* NULL: not for choice */
    clt_pass_function *function;
} passes[] = {{"overlap", clt_pass_overlap},
              {"cse", clt_pass_cse},
              {NULL, clt_pass_split},
              {"layout", clt_pass_layout},
              {NULL, clt_pass_bridge},
              {"fuse", clt_pass_fuse},
              {"hoist", clt_pass_hoist}};

clt_status clt_passes_check_list(const char *setting, const char *list) {
    const char *names[CLT_COUNT_OF(passes) + 1] = {"none"};
    size_t n = 1;
    for (size_t i = 0; i < CLT_COUNT_OF(passes); i++)
        if (passes[i].name) names[n++] = passes[i].name;
    return clt_list_check(setting, list, true, names, n);
}

clt_status clt_passes_run(clt_graph *graph, clt_device *device, bool training) {
    const char *list = clt_device_settings(device)->passes;
    for (size_t i = 0; i < CLT_COUNT_OF(passes); i++)
        if (!passes[i].name || clt_list_allows(list, passes[i].name)) CLT_TRY(run(passes[i].function, graph, device, training));
    return CLT_OK;
}
