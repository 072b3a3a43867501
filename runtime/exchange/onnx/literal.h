/*
 * Values that are known while a graph is built: constants, sizes, and what is computed from them (axes, pads, the shapes that
 * Reshape asks for). They never reach a device by themselves.
 */
#ifndef CLT_EXCHANGE_ONNX_LITERAL_H
#define CLT_EXCHANGE_ONNX_LITERAL_H

#include "runtime/base/shape.h"
#include "runtime/exchange/onnx/file.h"

/* More elements are data, and not folded. */
#define CLT_ONNX_MOST_LITERAL (1 << 18)

typedef struct clt_literal {
    int64_t type;    /* CLT_ONNX_FLOAT; CLT_ONNX_INT64, _INT32, _UINT8 or _BOOL */
    clt_shape shape; /* dimensions may be 0 */
    int64_t elements;
    union {
        float *floats;     /* of FLOAT */
        int64_t *integers; /* of the others; BOOL: 0 or 1 */
    };
} clt_literal;

/* Values are 0. The arena's. CLT_E_RANGE: too many, or the arena's limit; CLT_E_UNSUPPORTED: another type. */
clt_status clt_literal_new(clt_arena *arena, int64_t type, const clt_shape *shape, clt_literal **literal);

/* A list of one dimension, or with n = -1 a scalar. */
clt_status clt_literal_integers(clt_arena *arena, const int64_t *values, int64_t n, clt_literal **literal);
clt_status clt_literal_floats(clt_arena *arena, const float *values, int64_t n, clt_literal **literal);

/* The values of a file's tensor; f64 is rounded to f32. CLT_E_UNSUPPORTED where it is none of the types, or of more than CLT_MAX_RANK dimensions. */
clt_status clt_literal_of_tensor(clt_arena *arena, clt_onnx_file *file, const clt_onnx_tensor *tensor, clt_literal **literal);

/* True of the types that this takes, and of tensors that are small enough for one. */
bool clt_literal_takes(const clt_onnx_tensor *tensor);

bool clt_literal_equal(const clt_literal *a, const clt_literal *b);

#endif
