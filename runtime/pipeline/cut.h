/*
 * A graph cut into the stages of a pipeline.
 *
 * Nodes of forward get their stage in the order of the graph, so that what crosses goes forward alone; gradients are computed where the node is whose they are
 * (ops/autodiff.c), so that what crosses goes back. Every rank has the whole graph, with the same edges in the same order, and keeps the stages that are its own, in which
 * tensors that it receives stand in the place of what others compute. With several chunks a rank there are as many stages as ranks times chunks: stage s is of rank
 * s % ranks, as its chunk s / ranks.
 */
#ifndef CLT_PIPELINE_CUT_H
#define CLT_PIPELINE_CUT_H

#include "runtime/graph/graph.h"
#include "runtime/pipeline/schedule.h"

/* The stage of what every stage computes, or has, by itself: inputs, states, constants, fixed inputs, and what depends on those two alone. */
enum { CLT_STAGE_ANY = -1 };

/* Whose part of the graph is wanted, of how many. */
typedef struct clt_cut {
    int own, ranks, chunks;
    bool apart; /* gradients of weights are a turn of their own */
} clt_cut;

/* The segments of a rank's plan: forward of each chunk, backward of each from the last on, and then, where that is apart, of backward what no other rank waits for; and
 * the update. */
int clt_segment_of(clt_turn_kind kind, int chunk, int chunks);
int clt_segment_of_update(int chunks);

/* A tensor of one rank that another one reads. */
typedef struct clt_edge {
    clt_tensor *tensor;   /* on its own rank, where it is a target of the plan, or a variable */
    clt_tensor *received; /* on the one that reads it; NULL on others */
    int from, to;         /* stages; of several that read it on a rank, the one whose turn is first */
} clt_edge;

typedef struct clt_edges {
    clt_edge *items; /* to be freed with clt_free */
    size_t n, capacity;
} clt_edges;

/* Gives the nodes of a graph of forward their stage. begins[s]: the first node of stage s + 1. A weight, and what is made of weights alone, is of the first stage that
 * reads it. */
clt_status clt_stages_assign(clt_graph *graph, clt_tensor *const *begins, int stages);

/* The edges that the targets of all ranks need; then rank `own` receives what it reads of others. The segments of its nodes are set; what is made from then on is of the last of these
 * that a micro-batch runs through. The graph's nodes get other numbers. */
clt_status clt_stages_cut(clt_graph *graph, clt_tensor *const *targets, int n_targets, const clt_cut *cut, clt_edges *edges);

#endif
