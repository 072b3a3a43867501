/*
 * A graph cut into the stages of a pipeline.
 *
 * Nodes of forward get their stage in the order of the graph, so that what crosses goes forward alone; gradients are computed where the node is whose they are
 * (ops/autodiff.c), so that what crosses goes back. Every rank has the whole graph, with the same edges in the same order, and keeps the part of one stage, in which
 * tensors that it receives stand in the place of what others compute.
 */
#ifndef CLT_PIPELINE_CUT_H
#define CLT_PIPELINE_CUT_H

#include "runtime/graph/graph.h"

/* The stage of what every stage computes, or has, by itself: inputs, states, constants, fixed inputs, and what depends on those two alone. */
enum { CLT_STAGE_ANY = -1 };

/* The segments of a stage's plan. */
typedef enum clt_stage_segment {
    CLT_SEGMENT_FORWARD,
    CLT_SEGMENT_BACKWARD,
    CLT_SEGMENT_WEIGHTS, /* of backward, what no other stage waits for; empty, unless that is apart */
    CLT_SEGMENT_UPDATE
} clt_stage_segment;

/* A tensor of one stage that another one reads. */
typedef struct clt_edge {
    clt_tensor *tensor;   /* on its own stage, where it is a target of the plan, or a variable */
    clt_tensor *received; /* on the one that reads it; NULL on others */
    int from, to;
} clt_edge;

typedef struct clt_edges {
    clt_edge *items; /* to be freed with clt_free */
    size_t n, capacity;
} clt_edges;

/* Gives the nodes of a graph of forward their stage. begins[s]: the first node of stage s + 1. A weight, and what is made of weights alone, is of the first stage that
 * reads it. */
clt_status clt_stages_assign(clt_graph *graph, clt_tensor *const *begins, int stages);

/* Of a graph with backward: the edges that the targets of all stages need; then stage `own` receives what it reads of others. The segments of its nodes are set, the gradients of
 * weights apart if `apart`; what is made from then on is of the last of these. The graph's nodes get other numbers. */
clt_status clt_stages_cut(clt_graph *graph, clt_tensor *const *targets, int n_targets, int own, bool apart, clt_edges *edges);

#endif
