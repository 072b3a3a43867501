/*
 * The messages of an ONNX file (onnx.proto, https://github.com/onnx/onnx/blob/main/docs/IR.md) that an import needs. Field
 * numbers never change there; fields that are not known here are passed over.
 *
 * A file is input like any other: lengths are checked before they are followed, texts hold no NUL, and memory is bounded by
 * the file's size. What the graph means is checked later. Tensors' bytes stay where they are in the file.
 */
#ifndef CLT_EXCHANGE_ONNX_MODEL_H
#define CLT_EXCHANGE_ONNX_MODEL_H

#include "runtime/base/arena.h"
#include "runtime/exchange/onnx/wire.h"

/* TensorProto.DataType: X(number, name, bytes of an element; 0 where it has no whole ones) */
#define CLT_ONNX_TYPE_MAP(X)                                                                                            \
    X(1, FLOAT, 4) X(2, UINT8, 1) X(3, INT8, 1) X(4, UINT16, 2) X(5, INT16, 2) X(6, INT32, 4) X(7, INT64, 8)             \
    X(8, STRING, 0) X(9, BOOL, 1) X(10, FLOAT16, 2) X(11, DOUBLE, 8) X(12, UINT32, 4) X(13, UINT64, 8)                   \
    X(14, COMPLEX64, 8) X(15, COMPLEX128, 16) X(16, BFLOAT16, 2) X(17, FLOAT8E4M3FN, 1) X(18, FLOAT8E4M3FNUZ, 1)         \
    X(19, FLOAT8E5M2, 1) X(20, FLOAT8E5M2FNUZ, 1) X(21, UINT4, 0) X(22, INT4, 0) X(23, FLOAT4E2M1, 0)                    \
    X(24, FLOAT8E8M0, 1) X(25, UINT2, 0) X(26, INT2, 0)

typedef enum clt_onnx_type {
#define CLT_ONNX_ENUM_(number, name, bytes) CLT_ONNX_##name = (number),
    CLT_ONNX_TYPE_MAP(CLT_ONNX_ENUM_)
#undef CLT_ONNX_ENUM_
} clt_onnx_type;

const char *clt_onnx_type_name(int64_t type); /* "FLOAT"; "?" for none */
size_t clt_onnx_type_bytes(int64_t type);     /* of an element; 0 for none, and where it has no whole ones */
/* What values of a type are computed with: f64 with f32, others as they are. */
static inline int64_t clt_onnx_computed_type(int64_t type) {
    return type == CLT_ONNX_DOUBLE ? CLT_ONNX_FLOAT : type;
}

typedef struct clt_onnx_external {
    const char *location; /* a path, from the model's folder */
    uint64_t offset, length;
    bool has_length; /* else up to the file's end */
} clt_onnx_external;

/* What a file of this library's says of a tensor, under this key of its metadata: "constant" or "buffer", which are not trained. */
#define CLT_ONNX_KIND_KEY "cltrain.kind"

typedef struct clt_onnx_tensor {
    const char *name; /* "" where it has none */
    int64_t type;     /* clt_onnx_type, or a number that is none */
    size_t rank;
    const int64_t *dims; /* from 0 */
    int64_t elements;    /* their product */
    bool has_raw;
    clt_wire raw;                       /* its bytes, little-endian */
    clt_wire message;                   /* all of it, for typed fields of data */
    const clt_onnx_external *external; /* NULL: the data are in this file */
    const char *kind;                  /* of CLT_ONNX_KIND_KEY; "" where it has none */
} clt_onnx_tensor;

typedef enum clt_onnx_attribute_type {
    CLT_ONNX_A_FLOAT = 1,
    CLT_ONNX_A_INT = 2,
    CLT_ONNX_A_STRING = 3,
    CLT_ONNX_A_TENSOR = 4,
    CLT_ONNX_A_GRAPH = 5,
    CLT_ONNX_A_FLOATS = 6,
    CLT_ONNX_A_INTS = 7,
    CLT_ONNX_A_STRINGS = 8
} clt_onnx_attribute_type;

typedef struct clt_onnx_attribute {
    const char *name;
    int64_t type; /* clt_onnx_attribute_type, or one whose value is not read, as a graph's is not */
    int64_t wanted; /* the type that it was asked for as, and does not have; 0: none */
    float f;
    int64_t i;
    const char *s; /* of `length` bytes and a NUL */
    size_t length;
    const clt_onnx_tensor *tensor;
    size_t n; /* in one of these */
    const float *floats;
    const int64_t *ints;
    const char *const *strings;
} clt_onnx_attribute;

typedef struct clt_onnx_node {
    const char *name, *op, *domain; /* "" where it has none; the domain "ai.onnx" is "" too */
    size_t n_inputs, n_outputs, n_attributes;
    const char *const *inputs, *const *outputs; /* "": left out */
    clt_onnx_attribute *attributes;
} clt_onnx_node;

/* NULL if it has none of that name, or one of another type, which it keeps in mind; type 0: any. */
const clt_onnx_attribute *clt_onnx_attribute_of(const clt_onnx_node *node, const char *name, int64_t type);
/* Refuses attributes that were asked for and are of another type. */
clt_status clt_onnx_attributes_check(const clt_onnx_node *node);

typedef struct clt_onnx_dim {
    const char *symbol; /* "" where it has none */
    int64_t size;       /* -1: not given */
} clt_onnx_dim;

/* An input or output of the graph. */
typedef struct clt_onnx_info {
    const char *name;
    bool is_tensor; /* not a sequence, a map or an optional */
    int64_t type;   /* as that of a tensor; 0: not given */
    bool has_shape;
    size_t rank;
    const clt_onnx_dim *dims;
} clt_onnx_info;

typedef struct clt_onnx_opset {
    const char *domain; /* "" for ONNX's own */
    int64_t version;
} clt_onnx_opset;

/* What a file of PyTorch's newer exporter says of a weight or a result (InputSpec.kind of torch.export): "buffer" and "constant" as CLT_ONNX_KIND_KEY has
 * them, "" else. */
typedef struct clt_onnx_note {
    const char *name, *kind;
} clt_onnx_note;

/* An entry of metadata, or of external data. */
typedef struct clt_onnx_pair {
    const char *key, *value;
} clt_onnx_pair;

#define CLT_ONNX_PRODUCER "cltrain" /* of files that this library writes */

typedef struct clt_onnx_model {
    clt_arena arena; /* owns all that follows */
    int64_t ir_version;
    const char *producer, *producer_version;
    size_t n_opsets, n_metadata, n_functions; /* functions, and sparse initializers, are counted alone */
    const clt_onnx_opset *opsets;
    const clt_onnx_pair *metadata;
    const char *name; /* of the graph */
    size_t n_nodes, n_initializers, n_inputs, n_outputs, n_notes, n_sparse;
    const clt_onnx_node *nodes;
    const clt_onnx_tensor *initializers;
    const clt_onnx_info *inputs, *outputs;
    const clt_onnx_note *notes;
} clt_onnx_model;

/* Reads a model; `file` must stay in memory as long as the model. CLT_E_FORMAT with the byte and the message, CLT_E_RANGE for one
 * that would take far more memory than its file, CLT_E_NO_MEMORY. Release with clt_onnx_model_free, also after an error. */
clt_status clt_onnx_model_read(clt_onnx_model *model, clt_wire file);

/* Reads a file that holds a tensor alone, as the .pb files of ONNX's test cases do; memory is the arena's. */
clt_status clt_onnx_tensor_read(clt_arena *arena, clt_wire file, clt_onnx_tensor *tensor);

void clt_onnx_model_free(clt_onnx_model *model);

#endif
