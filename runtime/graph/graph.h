/*
 * The graph inside: a list of nodes in the order of their making, which is also a
 * valid order of execution. A tensor is the node that makes it; further results of
 * a node are tensors of their own, right behind it (CLT_NODE_OUTPUT).
 *
 * What a node does is its op: a constant description with its shape rule and
 * its gradient rule (runtime/ops/, one file an op). How it is computed on a
 * device is not known here (backends/).
 */
#ifndef CLT_GRAPH_GRAPH_H
#define CLT_GRAPH_GRAPH_H

#include <cltrain/graph.h>

#include "runtime/base/base.h"
#include "runtime/base/shape.h"
#include "runtime/graph/attribute.h"

typedef struct clt_op clt_op;
struct clt_form;

typedef struct clt_variable clt_variable;

/* What is added to products with a weight (clt_graph_add_lora). */
typedef struct clt_adapter {
    const clt_variable *a, *b; /* [rank, in], [out, rank] */
    float alpha, dropout;
    bool turned; /* the weight lies [in, out], not [out, in] */
} clt_adapter;

/* A parameter, buffer, constant or fixed input: it outlives steps, has values on a device, and is shared
 * by a graph and its clones. Owned by the graph that made it. */
struct clt_variable {
    char *name;
    clt_dtype dtype;
    clt_shape shape;
    clt_init init;
    void *values;   /* of a constant, which is in no file; else NULL */
    bool is_buffer, is_input; /* a buffer, a fixed input; else a parameter, or a constant */
    bool unsaved;   /* of a buffer: in no file */
    bool trained;   /* of a parameter: the optimizer changes it */
    bool adapts;    /* it is an adapter's */
    clt_adapter *adapter; /* of a weight; NULL: it has none. Owned */
    int index;    /* place in clt_graph.variables */
};

/* Other sizes that shapes are inferred at, to see what follows the batch and the length (clt_graph_trial). The first are greater batches: at those a network
 * is valid. */
enum { CLT_GREATER_BATCHES = 3, CLT_TRIALS = 28 };

typedef enum clt_tensor_kind {
    CLT_NODE_INVALID, /* the graph's one poisoned tensor */
    CLT_NODE_INPUT,   /* fed by the host each step */
    CLT_NODE_VARIABLE,
    CLT_NODE_STATE, /* memory of a plan's owner, zero at first: optimizer moments, metric sums */
    CLT_NODE_RECEIVED, /* of another stage of a pipeline: fed by the host as an input is, and no field of a batch */
    CLT_NODE_OP,
    CLT_NODE_OUTPUT /* a further result of the op inputs[0] */
} clt_tensor_kind;

enum { CLT_MORE_OUTPUTS = 2 };

/* How a tensor's elements follow one another in memory. Shapes are always in the logical order,
 * N, C, H, W; the layout is the choice of whoever compiles a plan, and no user sees it. */
typedef enum clt_layout {
    CLT_LAYOUT_CONTIGUOUS,   /* row-major: the last dimension is the innermost */
    CLT_LAYOUT_CHANNELS_LAST /* of rank 4 only: N, H, W, C in memory */
} clt_layout;

/* The segment of what is computed once, when the plan is made. */
enum { CLT_SEGMENT_ONCE = -1 };

struct clt_tensor {
    clt_graph *graph;
    int index; /* place in clt_graph.nodes */
    clt_tensor_kind kind;
    clt_dtype dtype;
    clt_shape shape;
    char *name;             /* of inputs, variables and states; else NULL */
    clt_variable *variable; /* of CLT_NODE_VARIABLE */

    int length_axis; /* of a sequence input: the dimension that is the length; 0: none */
    bool follows;    /* it depends on an input, or on the batch or the length, which may be others when the graph is run */
    bool exchanged;  /* its shape is one of other sizes for now (graph.c) */
    int until;       /* of what is taken to the host: the node in front of which it is there, and its memory may be another's; 0: itself */
    bool in_host;    /* a state, or a variable of a plan: it lies in the host's memory (ops/flat_part.c) */
    bool of_plan;    /* such a state: it lasts as long as the plan */
    bool told;       /* whoever built the graph was told its extent, and clones have to keep to it */
    clt_shape other[CLT_TRIALS]; /* its shape at other batches and lengths; rank -1: nobody knows */
    const clt_op *op; /* of CLT_NODE_OP */
    void *attributes; /* op->attributes_bytes */
    int n_inputs;
    clt_tensor **inputs;
    clt_tensor *outputs[CLT_MORE_OUTPUTS]; /* further results, op->more_outputs of them */
    bool unread; /* in a plan, nobody reads the tensor itself, but further results: it has no memory */

    /* Where its memory is, if not its own: `storage_offset` elements into `storage`,
     * which is then no such tensor itself. Set for views and packed tensors. */
    clt_tensor *storage;
    int64_t storage_offset;

    /* What whoever compiles a plan decides. */
    clt_layout layout;
    int segment;                  /* of the plan, from 0: runs name the segments that they run */
    int stage;                    /* of a pipeline (pipeline/cut.h) */
    bool backward;                /* of backward, or behind it */
    bool kept;                    /* is read after the run: stays as it is */
    bool boundary;                /* clt_checkpoint_boundary */
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
    int64_t batch;           /* dimension 0 of the first input that has one; 0: there is none yet */
    int64_t length;          /* of sequence inputs; 0: there is none yet */
    int segment;             /* of the nodes that are made now */
    int stage;               /* likewise */
    bool backward;           /* they are of backward, or behind it */
    int n_random_sites;      /* random ops so far: tells their streams apart */
    clt_tensor *invalid;
    clt_status status;
    char *error; /* detail of the first error */
};

/* Operations of a node, and the least bytes it moves. */
typedef struct clt_cost {
    double flops, bytes;
} clt_cost;

/* Where a node is linear: places along an axis of one input give places along an axis of the result, each by itself. */
typedef struct clt_linear {
    int input, axis, result_axis;
} clt_linear;

/* The dimension of a result whose places share a value of an epilogue's operand, such as a bias. */
typedef enum clt_epilogue_family {
    CLT_EPILOGUE_NONE,    /* the op takes no epilogue */
    CLT_EPILOGUE_COLUMNS, /* the last dimension */
    CLT_EPILOGUE_CHANNELS /* dimension 1 */
} clt_epilogue_family;

/* The dimensions, counted from the last one, along which operands of size one are repeated to the result's. */
typedef enum clt_stretch {
    CLT_STRETCH_NONE,
    CLT_STRETCH_ALL,
    CLT_STRETCH_BATCHES /* all but the last two, of matrices */
} clt_stretch;

/* Which type an op is computed in where precision is mixed (ops/autocast.c). */
typedef enum clt_autocast {
    CLT_AUTOCAST_WIDEST, /* the widest of its operands */
    CLT_AUTOCAST_LOW,    /* 16 bits */
    CLT_AUTOCAST_F32
} clt_autocast;

/* How an op is described: what it is called, its attributes, its rules, and its traits, by which the rooms above treat
 * it. How it is computed on a device is the backend table's (backends/backend.h). */
struct clt_op {
    const char *name;
    size_t attributes_bytes;
    const clt_attribute *schema; /* of all fields of the attributes; NULL where there are none */
    int more_outputs; /* further results, whose shapes and types infer sets; all are computed where one is read */
    int least_inputs, most_inputs; /* how many it takes; most_inputs 0: just least_inputs. Both 0: its builder alone knows */

    /* Sets node->dtype and node->shape from its inputs and attributes, or
     * refuses them with clt_fail. Called again when a clone has another batch size. */
    clt_status (*infer)(clt_tensor *node);

    /* Builds the gradients of the node's inputs from `dy`, the gradient of its
     * output: dx[i] for those i where wanted[i], left NULL where it is zero
     * everywhere. NULL: the op has no gradient. Errors stick in the graph. */
    void (*gradient)(clt_tensor *node, clt_tensor *dy, const bool *wanted, clt_tensor **dx);

    /* Frees what the attributes hold and copies it, where they hold memory; else NULL. */
    void (*attributes_free)(void *attributes);
    clt_status (*attributes_copy)(void *attributes);

    const char *(*label)(const clt_tensor *node); /* a closer name for messages; may be NULL */

    /* Tells how one element of the result is computed from single elements of the operands, so that code
     * can be generated and fused; false if it cannot be said so. NULL: never. See clt_form in ops/ops.h. Further results
     * count as operands, behind the inputs: plans compute those first (exec/passes/split.c). */
    bool (*form)(const clt_tensor *node, bool training, struct clt_form *form);

    clt_stretch stretches;
    bool computes_integers; /* its i32 results are other values than its operands' */
    bool is_view;    /* the output shares the memory of input 0 */
    int64_t (*view_offset)(const clt_tensor *node); /* where a view begins in it, in elements; NULL: at 0 */
    unsigned writes; /* bit i: input i is updated in place */
    bool is_collective; /* exchanges memory with the other ranks (ops/collective.c) */

    /* Operations for each element of the largest operand or result; or `cost` tells all of it. Neither: not known. */
    double operations;
    clt_cost (*cost)(const clt_tensor *node);

    unsigned weights;  /* bit i: input i is a weight, which keeps its layout; all others are activations */
    bool gives_weight; /* so does the result */
    bool channels_last; /* of rank 4: activations should be laid channels-last where kernels serve them so */
    clt_epilogue_family epilogue;

    clt_autocast autocast;
    clt_autocast (*autocast_of)(const clt_tensor *node); /* where it depends on the node; else NULL */
    unsigned f32_inputs; /* bit i: input i is f32, or a whole number, in any precision: statistics, a mask */

    bool tuned; /* candidates for it are measured (trial/tune.c) */
    /* The axis along which a part of the problem tells whether the whole is right; false if there is none. NULL: none. */
    bool (*linear)(const clt_tensor *node, clt_linear *part);
    /* What the i32 values of an input must be below, if they are indices; else 0. NULL: no input holds any. */
    int64_t (*index_limit)(const clt_tensor *node, int input);
    /* *value: of the i32 values of input 0 the one that stands for none, whatever their limit is; false if there is none. NULL: none. */
    bool (*ignores)(const clt_tensor *node, int32_t *value);
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

/* Nodes made from now on are the next segment of a plan: what a run may leave out or repeat. */
void clt_graph_next_segment(clt_graph *graph);

/* The batch and the length of trial k; what the graph has none of is 0 there, too, and the graph's own where there is no other. False: there is no such
 * length. */
bool clt_graph_trial(const clt_graph *graph, int k, int64_t *batch, int64_t *length);

/* The tensor's shape for an op: CLT_BATCH, CLT_LENGTH plus or minus a number or another clt_multiple where a dimension is that, -1 where it follows the
 * batch or the length in another way. Clones of sizes at which it is something else are refused from then on. */
clt_shape clt_tensor_extent(const clt_tensor *tensor);
/* Refuses a clone's tensor that is not as whoever built the graph was told. */
clt_status clt_tensor_check_told(const clt_tensor *tensor, const clt_tensor *copy);

/* Puts the batch size in place of CLT_BATCH, and the length in place of CLT_LENGTH. */
clt_status clt_graph_resolve(const clt_graph *graph, clt_shape *shape);
/* The latter alone, of one dimension. */
clt_status clt_graph_resolve_length(const clt_graph *graph, int64_t *dim);

/* Keeps clt_error_detail() and `status` as the graph's first error; gives the invalid tensor. */
clt_tensor *clt_graph_fail(clt_graph *graph, clt_status status);

/* Memory of the owner of plans: zero at first, kept from step to step. */
clt_tensor *clt_state(clt_graph *graph, const char *name, clt_dtype dtype, clt_shape shape);

/* What comes from another stage of a pipeline. */
clt_tensor *clt_received(clt_graph *graph, const char *name, clt_dtype dtype, clt_shape shape);

clt_variable *clt_graph_find_variable(const clt_graph *graph, const char *name);

static inline bool clt_tensor_valid(const clt_tensor *tensor) {
    return tensor && tensor->kind != CLT_NODE_INVALID;
}

/* What has first values that are drawn, and ranks share. Checkpoints and files of weights hold it unless it is unsaved. */
static inline bool clt_variable_is_kept(const clt_variable *variable) {
    return !variable->values && !variable->is_input;
}

static inline bool clt_variable_is_parameter(const clt_variable *variable) {
    return clt_variable_is_kept(variable) && !variable->is_buffer;
}

static inline float clt_adapter_scale(const clt_adapter *adapter) {
    return adapter->alpha / (float)adapter->a->shape.dims[0];
}

static inline size_t clt_variable_bytes(const clt_variable *variable) {
    return (size_t)clt_shape_elements(&variable->shape) * clt_dtype_bytes(variable->dtype);
}

/* An input, a variable, a state or what is received: what no op of the graph makes. */
static inline bool clt_tensor_is_leaf(const clt_tensor *tensor) {
    return tensor->kind != CLT_NODE_OP && tensor->kind != CLT_NODE_OUTPUT;
}

/* The first of the node's results that has memory. */
static inline clt_tensor *clt_node_result(const clt_tensor *node) {
    return node->unread ? node->outputs[0] : (clt_tensor *)(uintptr_t)node;
}

static inline int64_t clt_tensor_elements(const clt_tensor *tensor) {
    return clt_shape_elements(&tensor->shape);
}

/* Whether places in it may not fit an int of a kernel. */
static inline bool clt_tensor_is_large(const clt_tensor *tensor) {
    return clt_tensor_elements(tensor) > INT32_MAX;
}

/* The dimensions as they lie in memory, outermost first. */
void clt_tensor_order(const clt_tensor *tensor, int order[CLT_MAX_RANK]);
/* True if channels are innermost in memory. One channel, or one pixel, is so in either layout. */
bool clt_tensor_channels_last(const clt_tensor *tensor);
/* True if the elements are in row-major order; both may be true. */
bool clt_tensor_contiguous(const clt_tensor *tensor);

/* Of a graph's inputs. 0: as they are. */
typedef struct clt_sizes {
    int64_t batch, length;
} clt_sizes;

/* Copies what `target` depends on into a new graph, with dimension 0 of all inputs
 * set to the batch, and the length of sequence inputs. Variables are shared. map[i] (n_nodes long,
 * released with clt_free by the caller) is the copy of node i or NULL. A graph with gradients in it must
 * not be brought to other sizes: their rules have read the old one. Clone first, then differentiate. */
clt_status clt_graph_clone(const clt_graph *graph, clt_tensor *const *targets, int n_targets,
                           clt_sizes sizes, clt_graph **clone, clt_tensor ***map);

/* marks[i] = true for each node that one of the targets depends on (marks is n_nodes long, cleared by the caller). */
void clt_graph_mark(const clt_graph *graph, clt_tensor *const *targets, int n_targets, bool *marks);
/* The same of all nodes that are `kept`. */
void clt_graph_mark_kept(const clt_graph *graph, bool *marks);

/* Sorts the nodes by `keys` (by node), those with equal keys in the order of their making, and numbers
 * them anew. The order must remain one of execution. */
clt_status clt_graph_sort(clt_graph *graph, const int64_t *keys);

/* The name of what a node does: its op's, or a closer one. */
const char *clt_node_name(const clt_tensor *node);

/* All that ranks must have alike, in words: "dropout f32 [1, 10] p=0.5 site=0 of #3, #1" (describe.c). `shape` is told as its
 * shape: that of one sample. NULL: its own, "[*, *]" where
 * it follows the batch. */
void clt_tensor_describe(const clt_tensor *tensor, const clt_shape *shape, clt_text *text);
/* Where, in the second of two such texts that differ, the attribute or the operands begin that differ first; 0: they differ in what is
 * before. */
size_t clt_describe_difference(const char *one, const char *other);

/* "conv2d #12" or the tensor's name: for messages. */
const char *clt_tensor_label(const clt_tensor *tensor, char text[64]);

#endif
