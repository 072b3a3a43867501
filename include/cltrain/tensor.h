/*
 * Data types, shapes, and host arrays.
 */
#ifndef CLTRAIN_TENSOR_H
#define CLTRAIN_TENSOR_H

#include <stddef.h>
#include <stdint.h>

#include <cltrain/export.h>

CLT_BEGIN_DECLS

/* X(enumerator, value, name, bytes per element). Values are never renumbered. */
#define CLT_DTYPE_MAP(X)     \
    X(CLT_F32, 0, "f32", 4)  \
    X(CLT_I32, 1, "i32", 4)  \
    X(CLT_U8, 2, "u8", 1)    \
    X(CLT_F16, 3, "f16", 2)  \
    X(CLT_BF16, 4, "bf16", 2) \
    X(CLT_I64, 5, "i64", 8)

/* f16 and bf16 are storage types: what is computed with them is f32. Ops that do not take them refuse them with CLT_E_DTYPE. i64 is a type of the host alone: indices and labels, which are checked and become i32. */
typedef enum clt_dtype {
#define CLT_DTYPE_ENUM_(name, value, text, bytes) name = value,
    CLT_DTYPE_MAP(CLT_DTYPE_ENUM_)
#undef CLT_DTYPE_ENUM_
} clt_dtype;

/* "f32", "i32" …; "?" for a value that is none. Static storage. */
CLT_API const char *clt_dtype_name(clt_dtype dtype);

/* Bytes of one element; 0 for a value that is none. */
CLT_API size_t clt_dtype_bytes(clt_dtype dtype);

/* Numbers of options that are 0 have their defaults. This one, which is a negative zero, is 0 as it is said: `.lr = CLT_ZERO`. */
#define CLT_ZERO (-0.0f)

#define CLT_MAX_RANK 8

/* Inputs of a graph at most, and fields of a batch or a data set. */
#define CLT_MAX_FIELDS 16

/* A shape, outermost dimension first (N,C,H,W). Rank 0 is a scalar: one element. */
typedef struct clt_shape {
    int rank;
    int64_t dims[CLT_MAX_RANK];
} clt_shape;

/* CLT_SHAPE(64, 1, 28, 28): 1 to CLT_MAX_RANK dimensions. C only. */
#define CLT_SHAPE(...)                                                            \
    ((clt_shape){(int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)),       \
                 {__VA_ARGS__}})

/* In a shape given to an op: the batch size, dimension 0 of the graph's first input, whatever it is when the graph is run. */
#define CLT_BATCH ((int64_t)-2)

/* In a shape given to an op, or as where a slice ends: the length of the sequences, whatever it is when the graph is run (clt_sequence_input).
 * A number may be added: CLT_LENGTH - 1 is the length of all tokens but the last. */
#define CLT_LENGTH (INT64_MIN / 2)

/* Product of the dimensions: 1 for rank 0; -1 for NULL, or if a dimension is negative, the
 * rank is out of range or the product does not fit. */
CLT_API int64_t clt_shape_elements(const clt_shape *shape);

/* A borrowed view of a dense, row-major host array. */
typedef struct clt_array {
    clt_dtype dtype;
    clt_shape shape;
    const void *data;
} clt_array;

CLT_END_DECLS

#endif
