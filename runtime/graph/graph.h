/*
 * The graph inside: a list of single-output nodes in the order of their making,
 * which is also a valid order of execution. A tensor is the node that makes it.
 *
 * What a node does is its op: a constant description with its shape rule and
 * its gradient rule (runtime/ops/, one file an op). How it is computed on a
 * device is not known here (backends/).
 */
#ifndef CLT_GRAPH_GRAPH_H
#define CLT_GRAPH_GRAPH_H

#include <cltrain/graph.h>

#include "runtime/base/base.h"

typedef struct clt_op clt_op;
struct clt_form;

/* A parameter or buffer: it outlives steps, has values on a device, and is shared
 * by a graph and its clones. Owned by the graph that made it. */
typedef struct clt_variable {
    char *name;
    clt_shape shape;
    clt_init init;
    bool trained; /* a parameter; else a buffer */
    int index;    /* place in clt_graph.variables */
} clt_variable;

typedef enum clt_tensor_kind {
    CLT_NODE_INVALID, /* the graph's one poisoned tensor */
    CLT_NODE_INPUT,   /* fed by the host each step */
    CLT_NODE_VARIABLE,
    CLT_NODE_STATE, /* memory of a plan's owner, zero at first: optimizer moments, metric sums */
    CLT_NODE_OP
} clt_tensor_kind;

/* How a tensor's elements follow one another in memory. Shapes are always in the logical order,
 * N, C, H, W; the layout is the choice of whoever compiles a plan, and no user sees it. */
typedef enum clt_layout {
    CLT_LAYOUT_CONTIGUOUS,   /* row-major: the last dimension is the innermost */
    CLT_LAYOUT_CHANNELS_LAST /* of rank 4 only: N, H, W, C in memory */
} clt_layout;

/* When a node is computed. */
typedef enum clt_part {
    CLT_PART_ONCE = -1, /* when the plan is made */
    CLT_PART_FIRST = 0, /* in each run; all there is without gradient accumulation */
    CLT_PART_SECOND = 1 /* in runs that end with an update */
} clt_part;

struct clt_tensor {
    clt_graph *graph;
    int index; /* place in clt_graph.nodes */
    clt_tensor_kind kind;
    clt_dtype dtype;
    clt_shape shape;
    char *name;             /* of inputs, variables and states; else NULL */
    clt_variable *variable; /* of CLT_NODE_VARIABLE */

    const clt_op *op; /* of CLT_NODE_OP */
    void *attributes; /* op->attributes_bytes */
    int n_inputs;
    clt_tensor **inputs;

    /* Where its memory is, if not its own: `storage_offset` elements into `storage`,
     * which is then no such tensor itself. Set for views and packed tensors. */
    clt_tensor *storage;
    int64_t storage_offset;

    /* What whoever compiles a plan decides. */
    clt_layout layout;
    int part;                     /* of the plan: a clt_part */
    bool kept;                    /* is read after the run: stays as it is */
    struct clt_fused *epilogue;   /* what is done to each element before it is stored; NULL: nothing. Owned.
                                   * Its operands are the node's last inputs. */
};

struct clt_graph {
    clt_tensor **nodes;
    size_t n_nodes, nodes_capacity;
    clt_variable **variables; /* none in a clone: its tensors share those of `origin` */
    size_t n_variables, variables_capacity;
    const clt_graph *origin; /* of a clone; else NULL */
    clt_tensor *rng;         /* state i32 [4] of random ops: seed and step, low and high words; NULL if none */
    int n_random_sites;      /* random ops so far: tells their streams apart */
    clt_tensor *invalid;
    clt_status status;
    char *error; /* detail of the first error */
};

/* How an op is described. */
struct clt_op {
    const char *name;
    size_t attributes_bytes;

    /* Sets node->dtype and node->shape from its inputs and attributes, or
     * refuses them with clt_fail. Called again when a clone has another batch size. */
    clt_status (*infer)(clt_tensor *node);

    /* Builds the gradients of the node's inputs from `dy`, the gradient of its
     * output: dx[i] for those i where wanted[i], left NULL where it is zero
     * everywhere. NULL: the op has no gradient. Errors stick in the graph. */
    void (*gradient)(clt_tensor *node, clt_tensor *dy, const bool *wanted, clt_tensor **dx);

    /* Adapts the attributes of a node being copied for another batch size; its inputs are the
     * copies, its shape is still the original's. NULL if no attribute depends on the batch. */
    void (*rebatch)(clt_tensor *node, int64_t new_batch, int64_t old_batch);

    /* Frees what the attributes hold and copies it, where they hold memory; else NULL. */
    void (*attributes_free)(void *attributes);
    clt_status (*attributes_copy)(void *attributes);

    const char *(*label)(const clt_tensor *node); /* a closer name for messages; may be NULL */

    /* Tells how one element of the result is computed from single elements of the operands, so that code
     * can be generated and fused; false if it cannot be said so. NULL: never. See clt_form in ops/ops.h. */
    bool (*form)(const clt_tensor *node, bool training, struct clt_form *form);

    bool is_view;    /* the output shares the memory of input 0 */
    int64_t (*view_offset)(const clt_tensor *node); /* where a view begins in it, in elements; NULL: at 0 */
    unsigned writes; /* bit i: input i is updated in place */
};

/* Adds a node. `attributes` is copied. Any input NULL: returns NULL; any invalid: the invalid
 * tensor. Never NULL otherwise: errors stick and give the invalid tensor. `graph` may be
 * NULL if there is at least one input. */
clt_tensor *clt_node(clt_graph *graph, const clt_op *op, const void *attributes,
                     clt_tensor *const *inputs, int n_inputs);

/* Makes a node another one in its place: what it computes changes, its shape and users do not. `attributes` and
 * `inputs` are copied. On error it is as it was. */
clt_status clt_node_become(clt_tensor *node, const clt_op *op, const void *attributes, clt_tensor *const *inputs,
                           int n_inputs);

/* Keeps clt_error_detail() and `status` as the graph's first error; gives the invalid tensor. */
clt_tensor *clt_graph_fail(clt_graph *graph, clt_status status);

/* Memory of the owner of plans: zero at first, kept from step to step. */
clt_tensor *clt_state(clt_graph *graph, const char *name, clt_dtype dtype, clt_shape shape);

clt_variable *clt_graph_find_variable(const clt_graph *graph, const char *name);

static inline bool clt_tensor_valid(const clt_tensor *tensor) {
    return tensor && tensor->kind != CLT_NODE_INVALID;
}

static inline int64_t clt_tensor_elements(const clt_tensor *tensor) {
    return clt_shape_elements(&tensor->shape);
}

/* The dimensions as they lie in memory, outermost first. */
void clt_tensor_order(const clt_tensor *tensor, int order[CLT_MAX_RANK]);
/* True if channels are innermost in memory. One channel, or one pixel, is so in either layout. */
bool clt_tensor_channels_last(const clt_tensor *tensor);
/* True if the elements are in row-major order; both may be true. */
bool clt_tensor_contiguous(const clt_tensor *tensor);

/* Copies what `target` depends on into a new graph, with dimension 0 of all inputs
 * set to `batch`; 0 keeps them. Variables are shared. map[i] (n_nodes long,
 * released with clt_free by the caller) is the copy of node i or NULL. A graph with gradients in it must
 * not be brought to another batch size: their rules have read the old one. Clone first, then differentiate. */
clt_status clt_graph_clone(const clt_graph *graph, clt_tensor *const *targets, int n_targets,
                           int64_t batch, clt_graph **clone, clt_tensor ***map);

/* marks[i] = true for each node that one of the targets depends on (marks is n_nodes long, cleared by the caller). */
void clt_graph_mark(const clt_graph *graph, clt_tensor *const *targets, int n_targets, bool *marks);
/* The same of all nodes that are `kept`. */
void clt_graph_mark_kept(const clt_graph *graph, bool *marks);

/* Sorts the nodes by `keys` (by node), those with equal keys in the order of their making, and numbers
 * them anew. The order must remain one of execution. */
clt_status clt_graph_sort(clt_graph *graph, const int64_t *keys);

/* ---- shapes (shape.c) ---- */

#define CLT_SHAPE_TEXT 160
/* "[64, 1, 28, 28]" into `text`, which is returned. */
const char *clt_shape_text(const clt_shape *shape, char text[CLT_SHAPE_TEXT]);
bool clt_shape_equal(const clt_shape *a, const clt_shape *b);
/* The common shape of two under broadcasting, or false. */
bool clt_shape_broadcast(const clt_shape *a, const clt_shape *b, clt_shape *result);
/* A rank from -rank..rank-1 to 0..rank-1; -1 if out of range. */
int clt_shape_axis(const clt_shape *shape, int axis);
/* Row-major strides in elements. */
void clt_shape_strides(const clt_shape *shape, int64_t strides[CLT_MAX_RANK]);
/* Refuses a rank out of range, dimensions below 1, and products that do not fit; `what` names it. */
clt_status clt_shape_check(const clt_shape *shape, const char *what);

/* The name of what a node does: its op's, or a closer one. */
const char *clt_node_name(const clt_tensor *node);

/* "conv2d #12" or the tensor's name: for messages. */
const char *clt_tensor_label(const clt_tensor *tensor, char text[64]);

#endif
