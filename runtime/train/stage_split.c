/* Where the stages of a pipeline begin: as the caller names them, or so that the slowest takes least. */
#include <math.h>
#include <string.h>

#include "runtime/exec/storage.h"
#include "runtime/pipeline/split.h"
#include "runtime/train/parallel.h"
#include "runtime/train/stage.h"

/* The first op that reads a parameter of the layer, or the tensor of that name. */
static clt_tensor *find_begin(const clt_graph *graph, const char *name, size_t length) {
    for (size_t i = 0; i < graph->n_nodes; i++) {
        clt_tensor *node = graph->nodes[i];
        if (node->name && strlen(node->name) == length && !strncmp(node->name, name, length) && node->kind == CLT_NODE_OP) return node;
        for (int k = 0; node->kind == CLT_NODE_OP && k < node->n_inputs; k++) {
            const clt_tensor *input = node->inputs[k];
            if (input->variable && !strncmp(input->name, name, length) && (input->name[length] == '.' || !input->name[length])) return node;
        }
    }
    return NULL;
}

/* "fc2,fc3": where the second stage begins, and so on. */
static clt_status read_split(const clt_graph *graph, const char *split, clt_tensor **begins, int n) {
    int found = 0;
    for (const char *at = split; *at;) {
        size_t length = strcspn(at, ",");
        clt_tensor *begin = find_begin(graph, at, length);
        if (!begin) return clt_fail(CLT_E_NOT_FOUND, "option pipeline.split: the graph has no layer and no tensor named \"%.*s\"", (int)CLT_MIN(length, 80), at);
        if (found && begin->index <= begins[found - 1]->index)
            return clt_fail(CLT_E_INVALID, "option pipeline.split: \"%.*s\" is computed before what is named in front of it", (int)CLT_MIN(length, 80), at);
        if (found < n) begins[found] = begin;
        found++;
        at += length + (at[length] == ',');
    }
    return found == n ? CLT_OK : clt_fail(CLT_E_INVALID, "option pipeline.split has %d names: expected %d, one for each stage (or chunk) but the first", found, n);
}

/* ---- the split where none is given: by arithmetic, bytes and memory ---- */

/* What crosses is small beside this, or does not matter. */
#define SENT 5e9

static const clt_peaks usual = {1e12, 1e11}; /* of devices that are alike, of which only the ratio matters */

/* The graph as pieces, each of which begins with an op that is the first to read some trained parameter, so that every stage has some. By piece. */
typedef struct estimate {
    const clt_graph *graph;
    size_t *first;          /* its first node; [pieces + 1] */
    clt_cost *costs;        /* of forward */
    double *send;           /* [pieces + 1] */
    uint64_t *kept, *activations;
    int pieces;
} estimate;

/* Which trained parameters have been read by a node in front of it. */
static bool reads_new(const clt_trainer *t, const clt_tensor *node, bool *read) {
    bool any = false;
    for (int k = 0; node->kind == CLT_NODE_OP && k < node->n_inputs; k++) {
        const clt_variable *variable = node->inputs[k]->variable;
        if (!variable || !t->trained[variable->index] || read[variable->index]) continue;
        any = read[variable->index] = true;
    }
    return any;
}

/* Of what the loss depends on. */
static void find_pieces(const clt_trainer *t, const bool *marks, bool *read, estimate *e) {
    size_t n = e->graph->n_nodes;
    for (size_t i = 0; i < n; i++)
        if (marks[i] && reads_new(t, e->graph->nodes[i], read)) e->first[e->pieces++] = i;
    e->first[0] = 0; /* with what is in front of it */
    e->first[e->pieces] = n;
}

static void add_up_pieces(const bool *marks, estimate *e) {
    for (int p = 0; p < e->pieces; p++)
        for (size_t i = e->first[p]; i < e->first[p + 1]; i++) {
            const clt_tensor *node = e->graph->nodes[i];
            if (!marks[i] || clt_tensor_is_leaf(node)) continue;
            clt_cost cost = clt_node_cost(node);
            e->costs[p].flops += cost.flops;
            e->costs[p].bytes += cost.bytes;
            e->activations[p] += clt_tensor_bytes(node);
        }
}

/* Weights with their gradients and states, where they are read first. */
static void add_kept(const clt_trainer *t, estimate *e, bool *read) {
    const char *names[CLT_MAX_OPTIMIZER_STATES];
    uint64_t copies = 2 + (uint64_t)clt_optimizer_states(&t->options, names);
    memset(read, 0, t->n_variables * sizeof *read);
    for (int p = 0; p < e->pieces; p++)
        for (size_t i = e->first[p]; i < e->first[p + 1]; i++)
            for (int k = 0; k < e->graph->nodes[i]->n_inputs; k++) {
                const clt_variable *variable = e->graph->nodes[i]->inputs[k]->variable;
                if (!variable || read[variable->index]) continue;
                read[variable->index] = true;
                e->kept[p] += clt_variable_bytes(variable) * (t->trained[variable->index] ? copies : 1);
            }
}

/* What is computed in front of a piece, and read there or behind it. */
static void add_crossing(const bool *marks, estimate *e) {
    const clt_graph *graph = e->graph;
    for (size_t i = 0; i < graph->n_nodes; i++) {
        const clt_tensor *node = graph->nodes[i];
        size_t last = i;
        if (!marks[i] || clt_tensor_is_leaf(node) || !clt_dtype_is_float(node->dtype)) continue;
        for (size_t k = i + 1; k < graph->n_nodes; k++)
            for (int input = 0; marks[k] && input < graph->nodes[k]->n_inputs; input++)
                if (graph->nodes[k]->inputs[input] == node) last = k;
        for (int p = 1; p < e->pieces; p++)
            if (i < e->first[p] && e->first[p] <= last) e->send[p] += 2 * clt_tensor_cost_bytes(node) / SENT;
    }
}

/* Backward takes twice as long as forward. */
static double seconds_on(const clt_cost *cost, const clt_peaks *peaks) {
    return 3 * CLT_MAX(cost->flops / peaks->fma_flops, cost->bytes / peaks->copy_bytes);
}

/* On the slowest of the devices that have the stage: those that are faster wait for it. */
static double piece_seconds(const clt_stage *p, const clt_cost *cost, const clt_peaks *peaks, int stage) {
    double slowest = peaks ? 0 : seconds_on(cost, &usual);
    for (int r = stage; peaks && r < clt_comm_size(p->all); r += p->shape.ranks) slowest = CLT_MAX(slowest, seconds_on(cost, &peaks[r]));
    return slowest;
}

/* The devices' memory, the least of those that have a stage; and how many micro-batches each keeps. */
static clt_status gather_limits(const clt_trainer *t, const clt_stage *p, uint64_t *limits, int *in_flight) {
    uint64_t *all = NULL;
    CLT_TRY(clt_parallel_gather_new(p->all, &clt_device_get_info(t->device)->memory_bytes, sizeof *all, &all));
    for (int s = 0; s < p->shape.ranks; s++) {
        limits[s] = all[s];
        for (int r = s; r < clt_comm_size(p->all); r += p->shape.ranks) limits[s] = CLT_MIN(limits[s], all[r]);
        in_flight[s] = CLT_MIN(p->shape.micros, p->shape.kind == CLT_PIPELINE_GPIPE ? p->shape.micros : p->shape.kind == CLT_PIPELINE_ZB_H1 ? p->shape.ranks : p->shape.ranks - s);
    }
    clt_free(all);
    return CLT_OK;
}

/* Activations are those of a graph that computes nothing again and keeps all: where no split fits by that, memory is left to the plans. With several chunks a rank, too. */
static clt_status search(const clt_trainer *t, const clt_stage *p, const estimate *e, clt_pipeline_split *split, int *cuts) {
    uint64_t *limits = clt_calloc((size_t)split->stages, sizeof *limits), micros = (uint64_t)clt_stage_micros(t, CLT_MAX(t->graph->batch, 1));
    int *in_flight = clt_calloc((size_t)split->stages, sizeof *in_flight);
    double slowest;
    clt_status status = limits && in_flight ? CLT_OK : clt_fail_memory((size_t)split->stages * sizeof *limits);
    if (status == CLT_OK) status = gather_limits(t, p, limits, in_flight);
    for (int i = 0; i < e->pieces; i++) e->activations[i] /= micros; /* of one of them */
    clt_pipeline_split fits = *split;
    fits.kept = e->kept;
    fits.activations = e->activations;
    fits.limits = limits;
    fits.in_flight = in_flight;
    if (status == CLT_OK && p->shape.chunks == 1) status = clt_pipeline_find_split(&fits, cuts, &slowest);
    if (status == CLT_E_DEVICE_MEMORY || (status == CLT_OK && p->shape.chunks > 1)) status = clt_pipeline_find_split(split, cuts, &slowest);
    clt_free(limits);
    clt_free(in_flight);
    return status;
}

static clt_status choose_split(const clt_trainer *t, const clt_stage *p, const estimate *e) {
    int stages = p->shape.ranks * p->shape.chunks;
    size_t n = (size_t)e->pieces;
    const clt_peaks *peaks = t->options.pipeline.peaks;
    if (e->pieces < stages)
        return clt_fail(CLT_E_INVALID, "options pipeline.stages and .chunks make %d parts of the model: expected at most %d, for as many ops have trained parameters of their own", stages, e->pieces);
    int *cuts = clt_calloc((size_t)stages + 1, sizeof *cuts);
    double *seconds = clt_calloc((size_t)stages * n, sizeof *seconds);
    clt_status status = cuts && seconds ? CLT_OK : clt_fail_memory((size_t)stages * n * sizeof *seconds);
    for (int s = 0; seconds && s < stages; s++)
        for (size_t i = 0; i < n; i++) seconds[(size_t)s * n + i] = piece_seconds(p, &e->costs[i], peaks, s % p->shape.ranks);
    if (status == CLT_OK) status = search(t, p, e, &(clt_pipeline_split){.pieces = e->pieces, .stages = stages, .seconds = seconds, .send = e->send}, cuts);
    for (int s = 1; status == CLT_OK && s < stages; s++) p->begins[s - 1] = e->graph->nodes[e->first[cuts[s]]];
    clt_free(cuts);
    clt_free(seconds);
    return status;
}

static clt_status find_split(const clt_trainer *t, const clt_stage *p) {
    size_t n = t->graph->n_nodes;
    bool *marks = clt_calloc(n, sizeof *marks), *read = clt_calloc(t->n_variables + 1, sizeof *read);
    estimate e = {.graph = t->graph, .first = clt_calloc(n + 1, sizeof *e.first), .costs = clt_calloc(n, sizeof *e.costs), .send = clt_calloc(n + 1, sizeof *e.send),
                  .kept = clt_calloc(n, sizeof *e.kept), .activations = clt_calloc(n, sizeof *e.activations)};
    clt_status status = marks && read && e.first && e.costs && e.send && e.kept && e.activations ? CLT_OK : clt_fail_memory(n * sizeof *e.send);
    if (status == CLT_OK) {
        clt_graph_mark(t->graph, &t->loss, 1, marks);
        find_pieces(t, marks, read, &e);
        add_up_pieces(marks, &e);
        add_kept(t, &e, read);
        add_crossing(marks, &e);
        status = choose_split(t, p, &e);
    }
    clt_free(marks);
    clt_free(read);
    clt_free(e.first);
    clt_free(e.costs);
    clt_free(e.send);
    clt_free(e.kept);
    clt_free(e.activations);
    return status;
}

static clt_status check_peaks(const clt_pipeline_options *o, int ranks) {
    for (int s = 0; o->peaks && s < ranks; s++)
        if (!(o->peaks[s].fma_flops > 0 && o->peaks[s].copy_bytes > 0 && isfinite(o->peaks[s].fma_flops) && isfinite(o->peaks[s].copy_bytes)))
            return clt_fail(CLT_E_INVALID, "option pipeline.peaks[%d]: expected numbers above 0", s);
    return CLT_OK;
}

clt_status clt_stage_split(const clt_trainer *t, const clt_stage *p) {
    const clt_pipeline_options *o = &t->options.pipeline;
    CLT_TRY(check_peaks(o, clt_comm_size(p->all)));
    if (!o->split || !o->split[0]) return find_split(t, p);
    return read_split(t->graph, o->split, p->begins, p->shape.ranks * p->shape.chunks - 1);
}
