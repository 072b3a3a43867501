/*
 * Passes: what is changed in a plan's copy of the graph before it is lowered. Each keeps the meaning of all
 * nodes that are `kept` and the order in which memory is written.
 */
#ifndef CLT_EXEC_PASSES_H
#define CLT_EXEC_PASSES_H

#include "backends/backend.h"
#include "runtime/exec/keep.h"

/* All of them, in their order: early collectives, common subexpressions, storage types, layouts, fusion, constants. The setting `passes` names those
 * to run, separated by commas, or with "-" before the name those not to run. */
clt_status clt_passes_run(clt_graph *graph, clt_device *device, bool training);
/* CLT_E_INVALID where a word of such a list is the name of no pass. `setting`: for the message. */
clt_status clt_passes_check_list(const char *setting, const char *list);
/* What of forward is computed again in backward. */
typedef struct clt_recompute_choice {
    clt_recompute which; /* CLT_RECOMPUTE_AUTO: what costs least of all that keeps at most so many bytes */
    uint64_t bytes;
    bool away; /* what is kept of forward lies in the host's memory until backward reads it */
} clt_recompute_choice;

/* What came of it: nodes that are computed again, and tensors that lie in the host's memory until backward. */
typedef struct clt_recompute_outcome {
    size_t again, away;
    uint64_t away_bytes;
} clt_recompute_outcome;

/* Behind the others, so that these do the same as without, where there are variables in the host's memory. */
clt_status clt_passes_bring(clt_graph *graph, clt_device *device, bool training);
/* Behind all of these, of a training step. */
clt_status clt_passes_recompute(clt_graph *graph, clt_device *device, const clt_recompute_choice *choice, clt_recompute_outcome *made);
/* Layouts alone. */
clt_status clt_passes_run_unfused(clt_graph *graph, clt_device *device, bool training);

/* What passes have in common: the graph, and facts of its nodes as they were at the pass's beginning. */
typedef struct clt_pass {
    clt_graph *graph;
    clt_device *device;
    bool training;
    const clt_recompute_choice *recompute; /* of clt_pass_recompute */
    clt_recompute_outcome made;            /* likewise */
    size_t n;       /* nodes at the beginning; those made since come after */
    bool *live;     /* by node: something kept depends on it */
    int *uses;      /* by node: how many inputs of live nodes it is */
    int64_t *keys;  /* by node, new ones too: where it goes in the order; even numbers at the beginning */
    size_t keys_capacity;
} clt_pass;

typedef clt_status clt_pass_function(clt_pass *pass);

clt_pass_function clt_pass_overlap; /* overlap.c: exchanges of gradients begin as soon as these are there */
clt_pass_function clt_pass_cse;    /* cse.c: nodes that compute the same become one */
clt_pass_function clt_pass_split;  /* split.c: first results with a form become nodes of their own; always run */
clt_pass_function clt_pass_bridge; /* bridge.c: what no row serves in 16 bits is computed in f32, between casts; always run */
clt_pass_function clt_pass_layout; /* layout.c: activations of convolutions lie channels-last where rows want it */
clt_pass_function clt_pass_hoist;  /* hoist.c: constants are computed once */
clt_pass_function clt_pass_fuse;   /* fuse.c: chains of pointwise nodes become one, or the epilogue of a contraction */
clt_pass_function clt_pass_bring;   /* bring.c: parameters in the host's memory are brought to the device */
clt_pass_function clt_pass_recompute; /* recompute.c: some of forward is computed again in backward, or lies in the host's memory until then */

/* Makes all users of `from` read `to`. */
void clt_pass_replace(clt_pass *pass, const clt_tensor *from, clt_tensor *to);
/* The row that would serve a node with tensors of 16 bits if these were f32; NULL: none would, or it has no such tensors. */
const clt_backend_row *clt_pass_row_in_f32(const clt_pass *pass, clt_tensor *node);
/* Gives a node that was made in the pass its place: just before another. */
clt_status clt_pass_place(clt_pass *pass, clt_tensor *node, const clt_tensor *before);

#endif
