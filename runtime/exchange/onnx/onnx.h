/*
 * A file with the names of its graph resolved, and what a build makes of it.
 *
 * A value of the file has two faces, each made when it is first asked for: a literal on the host, and a tensor of the graph. A
 * literal is computed at each size that the batch and the length are tried at, as shapes are (clt_tensor.other), so that sizes which follow them
 * are told from numbers.
 */
#ifndef CLT_EXCHANGE_ONNX_ONNX_H
#define CLT_EXCHANGE_ONNX_ONNX_H

#include <cltrain/onnx.h>

#include "runtime/exchange/onnx/fold.h"
#include "runtime/graph/graph.h"

/* Literals are computed as it is built, and at the sizes that its shapes are inferred at: size s, from 1, is clt_graph_trial s - 1. */
enum { CLT_ONNX_SIZES = 1 + CLT_TRIALS };

/* The shape of a tensor at size s; rank -1 where nobody knows. */
static inline clt_shape clt_onnx_shape_at(const clt_tensor *tensor, int s) {
    return s ? tensor->other[s - 1] : tensor->shape;
}

typedef struct clt_onnx_drawn clt_onnx_drawn;

typedef struct clt_onnx_value {
    const char *name;
    const clt_onnx_tensor *initializer; /* NULL: it has none in the file */
    clt_onnx_file *file;                /* that has it */
    const char *kind;                   /* what the file says of an initializer: "constant", "buffer", or "" */
    /* Of a build: */
    int64_t type;                        /* clt_onnx_type of its tensor */
    clt_literal *literals[CLT_ONNX_SIZES]; /* at greater batches all or none; elsewhere some may not exist. Several may be the same */
    clt_tensor *tensor;
    clt_onnx_drawn *drawn; /* random values (rules_dropout.c); then there is no tensor */
    clt_tensor **parts; /* of a sequence, n_parts of them; then there is no tensor */
    int64_t n_parts;
    bool broken; /* it depends on a node that was refused */
} clt_onnx_value;

struct clt_onnx {
    clt_onnx_file file;
    clt_arena arena; /* of names and values, and what is below */
    clt_onnx_value *values;
    size_t n_values;
    int32_t *ids;      /* for each node its inputs', then its outputs' values; -1: left out. Then the graph's inputs and outputs */
    size_t *first_ids; /* of a node */
    int32_t *input_ids, *output_ids;
    bool *needed, *needed_outputs; /* by node, and by value: an output depends on it */
    int64_t opset;

    bool fixed_batch; /* of the last build: the file was made for one size, which its shapes have as a number */
    clt_arena build; /* of the last build */
    clt_onnx_problem *problems;
    size_t n_problems, problems_capacity;
};

/* names.c: resolves all names, once. CLT_E_FORMAT names what is made twice, or read before it is made. */
clt_status clt_onnx_resolve(clt_onnx *onnx);

static inline clt_onnx_value *clt_onnx_value_at(const clt_onnx *onnx, int32_t id) {
    return id < 0 ? NULL : &onnx->values[id];
}

/* inputs.c: makes inputs, and literals of what is fixed. */
clt_status clt_onnx_add_inputs(clt_onnx *onnx, clt_graph *graph, const clt_onnx_options *options);

/* build.c: all nodes that an output depends on. Those that are refused are told as problems; what is returned is an error of everything. */
clt_status clt_onnx_add_nodes(clt_onnx *onnx, clt_graph *graph);

/* Remembers the error at hand as the reason why a node was refused. */
clt_status clt_onnx_add_problem(clt_onnx *onnx, const clt_onnx_node *node, int64_t opset);

/* onnx.c: the values of a tensor, to be freed by clt_onnx_tensor_free, also after an error. CLT_E_UNSUPPORTED: a type that programs do not see. */
clt_status clt_onnx_array_read(clt_array *array, clt_onnx_file *file, const clt_onnx_tensor *t);

/* save.c: a weight's values of now. */
clt_status clt_onnx_write_weight(clt_file_writer *writer, clt_trainer *trainer, const clt_variable *weight);

/* call.c: weights are trained, so they are no literals, but where a node must know them. */
bool clt_onnx_is_weight(const clt_onnx_value *value);
/* Whether it has one literal, at all sizes at which there is one. */
bool clt_onnx_is_same(const clt_onnx_value *value);
void clt_onnx_set_literal(clt_onnx_value *value, clt_literal *literal);
/* Reads an initializer, if it is small enough and has no literal yet. */
clt_status clt_onnx_load_literal(clt_onnx *onnx, clt_onnx_value *value);

/* ---- what the rules of ops see ---- */

typedef struct clt_onnx_call {
    clt_onnx *onnx;
    clt_graph *graph;
    const clt_onnx_node *node;
    int64_t opset;
    const int32_t *in, *out; /* values */
    int64_t out_type;        /* of outputs: clt_onnx_type; 0: as their tensors' types say */
} clt_onnx_call;

/* Maps a node to tensors: sets out[i] for the outputs that it computes. Errors do not name the node; those that the graph keeps are
 * seen by who calls. */
typedef clt_status clt_onnx_map(clt_onnx_call *c, clt_tensor **out);

typedef struct clt_onnx_rule {
    const char *op;
    clt_onnx_map *map;
} clt_onnx_rule;

/* Each ends with {0}. */
extern const clt_onnx_rule clt_onnx_pointwise_rules[], clt_onnx_product_rules[], clt_onnx_shape_rules[], clt_onnx_norm_rules[], clt_onnx_network_rules[], clt_onnx_attention_rules[], clt_onnx_image_rules[], clt_onnx_index_rules[], clt_onnx_dropout_rules[];

/* NULL: there is none. */
clt_onnx_map *clt_onnx_map_of(const char *op);

/* rules_dropout.c: whether a node reads random values, and what it makes of them. */
bool clt_onnx_reads_drawn(const clt_onnx_call *c);
clt_onnx_map clt_onnx_map_drawn;

/* rules_attention.c: the product of values with a softmax of scaled products of queries and keys, as exporters write attention, is clt_attention: *y, or
 * NULL where it is something else. */
clt_status clt_onnx_find_attention(clt_tensor *probabilities, clt_tensor *values, clt_tensor **y);

bool clt_onnx_has(const clt_onnx_call *c, size_t i); /* input i is there */
bool clt_onnx_is_wanted(const clt_onnx_call *c, size_t i); /* the graph needs output i */

/* Input i as a tensor, of any type; constants are made. CLT_E_FORMAT: it is missing. */
clt_status clt_onnx_any(clt_onnx_call *c, size_t i, clt_tensor **tensor);
/* The same, and it must be f32, or with _number a boolean too, which is 0 and 1. CLT_E_UNSUPPORTED: it is of another type. */
clt_status clt_onnx_float(clt_onnx_call *c, size_t i, clt_tensor **tensor);
clt_status clt_onnx_number(clt_onnx_call *c, size_t i, clt_tensor **tensor);
/* The same, or an integer, as it is. */
clt_status clt_onnx_comparable(clt_onnx_call *c, size_t i, clt_tensor **tensor);
/* The same, and it must be i32. */
clt_status clt_onnx_integers(clt_onnx_call *c, size_t i, clt_tensor **tensor);
int64_t clt_onnx_type_of(const clt_onnx_call *c, size_t i);
/* Running statistics: a weight of the file becomes a buffer; *buffer is false where input i is something else. */
clt_status clt_onnx_statistics(clt_onnx_call *c, size_t i, clt_tensor **tensor, bool *buffer);

/* Input i as values that are known now, at the size that is built; NULL where it is left out. CLT_E_UNSUPPORTED: it is computed from data, or follows the
 * batch. */
clt_status clt_onnx_known(clt_onnx_call *c, size_t i, const clt_literal **literal);
/* An integer that may follow the batch or the length. */
typedef enum clt_onnx_kind {
    CLT_ONNX_NUMBER,
    CLT_ONNX_FOLLOWS, /* it does as clt_multiple_dim says */
    CLT_ONNX_OPEN     /* it does in another way */
} clt_onnx_kind;
typedef struct clt_onnx_list {
    int n;
    int64_t at[CLT_MAX_RANK]; /* a number, or a dimension for an op: -1 where it is open */
    clt_onnx_kind kinds[CLT_MAX_RANK];
} clt_onnx_list;

/* Input i as such integers, up to CLT_MAX_RANK. */
clt_status clt_onnx_list_of(clt_onnx_call *c, size_t i, clt_onnx_list *list);
/* A scalar, or what it is where it is left out. */
clt_status clt_onnx_known_float(clt_onnx_call *c, size_t i, float otherwise, float *value);
/* A tensor of values that are known. */
clt_status clt_onnx_constant(clt_onnx_call *c, const clt_literal *literal, clt_tensor **tensor);
clt_status clt_onnx_constant_array(clt_onnx_call *c, const clt_array *values, clt_tensor **tensor);
/* The same of a tensor of the file, of any size. */
clt_status clt_onnx_constant_stored(clt_onnx_call *c, const clt_onnx_tensor *stored, clt_tensor **tensor);
/* The dimensions of a value that is known, for an op. CLT_E_UNSUPPORTED: its rank follows the batch. */
clt_status clt_onnx_extent(const clt_onnx_call *c, const clt_onnx_value *value, clt_shape *extent);
/* Whether input i is zeros at all sizes. */
bool clt_onnx_is_zero(clt_onnx_call *c, size_t i);
/* Whether input i is a float of one element that is known; no error where not. */
bool clt_onnx_is_scalar(clt_onnx_call *c, size_t i, float *value);

/* Axes from an attribute, or else from input i, from 0 up; *n is -1 where there are none. */
clt_status clt_onnx_axes(clt_onnx_call *c, const char *name, size_t i, int rank, int axes[CLT_MAX_RANK], int *n);

/* Indices that are computed may count from the end of a dimension, which may follow the batch or the length. Those of an input are left as they are: each
 * batch is checked, and they must count from the start. */
clt_status clt_onnx_from_start(clt_onnx_call *c, clt_tensor **indices, int64_t dim);

/* Refuses what is done along dimensions from `first` up to `end` that follow the batch or the length. */
clt_status clt_onnx_check_numbers(const clt_tensor *x, int first, int end);

/* With an axis in another place; the others keep their order. */
clt_tensor *clt_onnx_move_axis(clt_tensor *x, int from, int to);

int64_t clt_onnx_int(const clt_onnx_call *c, const char *name, int64_t otherwise);
float clt_onnx_float_attribute(const clt_onnx_call *c, const char *name, float otherwise);
const char *clt_onnx_text(const clt_onnx_call *c, const char *name, const char *otherwise);

#endif
