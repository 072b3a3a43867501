/*
 * The nodes of an ONNX graph being written, in the order of execution. Values are told by their names. Errors stick: whoever has put all nodes looks at
 * the status.
 */
#ifndef CLT_EXCHANGE_ONNX_WRITER_H
#define CLT_EXCHANGE_ONNX_WRITER_H

#include "runtime/base/arena.h"
#include "runtime/exchange/onnx/model.h"
#include "runtime/graph/graph.h"

enum { CLT_SIZE_BATCH, CLT_SIZE_LENGTH, CLT_SIZES };

typedef struct clt_onnx_writer {
    const clt_graph *graph;
    clt_arena arena;      /* of names */
    clt_text prefix;      /* of values that have no name in the graph: no name there begins like this */
    const char **names;   /* by node; NULL: it is not written yet, and may have any name */
    clt_text nodes;       /* fields of GraphProto */
    clt_text attributes;  /* fields of NodeProto: those of the next node */
    const char *sizes[CLT_SIZES]; /* i64 [1]: the batch, the length; NULL: nobody has asked for it yet */
    const clt_tensor *sized[CLT_SIZES]; /* the inputs that tell them; NULL: there is none */
    int64_t n_values;     /* that have no name in the graph */
    clt_status status;
} clt_onnx_writer;

/* Ends it with a status, and the error at hand. */
void clt_onnx_writer_fail(clt_onnx_writer *w, clt_status status);
/* A name that no other value has, with a word in it. */
const char *clt_onnx_name_new(clt_onnx_writer *w, const char *word);

/* Attributes of the node that is put next. */
void clt_onnx_put_int(clt_onnx_writer *w, const char *name, int64_t value);
void clt_onnx_put_float(clt_onnx_writer *w, const char *name, float value);
void clt_onnx_put_text(clt_onnx_writer *w, const char *name, const char *value);
void clt_onnx_put_ints(clt_onnx_writer *w, const char *name, const int64_t *values, int n);

/* A node of ONNX's own domain with one result, whose name is given back: `y`, or with NULL one that no other value has. */
const char *clt_onnx_put(clt_onnx_writer *w, const char *op, const char *y, const char *const *inputs, int n);
#define CLT_ONNX_PUT(w, op, y, ...) \
    clt_onnx_put(w, op, y, (const char *[]){__VA_ARGS__}, (int)(sizeof((const char *[]){__VA_ARGS__}) / sizeof(const char *)))

/* Constants: f32 [], i64 [n]. */
const char *clt_onnx_put_scalar(clt_onnx_writer *w, float value);
const char *clt_onnx_put_list(clt_onnx_writer *w, const int64_t *values, int n);
const char *clt_onnx_put_whole(clt_onnx_writer *w, int64_t value); /* i64 [1] */
/* A shape as an op takes it, i64 [rank]: numbers, -1, and what clt_dim_multiple tells. `x`: the value whose dimensions CLT_DIM_OF tells; NULL: none. */
const char *clt_onnx_put_shape(clt_onnx_writer *w, const clt_shape *shape, const char *x);
const char *clt_onnx_put_cast(clt_onnx_writer *w, const char *y, const char *x, clt_onnx_type type);

/* 0: it has none. */
clt_onnx_type clt_onnx_type_of_dtype(clt_dtype dtype);

/* write_ops.c: the nodes that compute the graph's node from the values `in`; gives the name of the result, `y` if that is not NULL. In evaluation: nothing
 * is dropped, and statistics are the running ones. CLT_E_UNSUPPORTED: ONNX has no counterpart. */
const char *clt_onnx_write_node(clt_onnx_writer *w, const clt_tensor *node, const char *const *in, const char *y);
/* write_pointwise.c: the same of clt_op_pointwise. */
const char *clt_onnx_write_pointwise(clt_onnx_writer *w, const clt_tensor *node, const char *const *in, const char *y);

#endif
