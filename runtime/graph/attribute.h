/*
 * Attributes of ops: what a node's `attributes` hold, described field by field. From the description come the checks,
 * the text of a problem and its parser, the comparison of nodes and of ranks' graphs, and a graph's JSON.
 */
#ifndef CLT_GRAPH_ATTRIBUTE_H
#define CLT_GRAPH_ATTRIBUTE_H

#include "runtime/base/base.h"
#include "runtime/base/shape.h"

typedef enum clt_attribute_type {
    CLT_ATTRIBUTE_INT,    /* int */
    CLT_ATTRIBUTE_INT64,  /* int64_t */
    CLT_ATTRIBUTE_FLOAT,  /* float */
    CLT_ATTRIBUTE_BOOL,   /* bool */
    CLT_ATTRIBUTE_ENUM,   /* int: the place of a word in `words` */
    CLT_ATTRIBUTE_DTYPE,  /* clt_dtype */
    CLT_ATTRIBUTE_AXES,   /* unsigned: bit i is dimension i */
    CLT_ATTRIBUTE_ORDER,  /* int [CLT_MAX_RANK]: of the result's dimensions */
    CLT_ATTRIBUTE_SIZES,  /* int64_t [CLT_MAX_RANK]: one for each of the operand's dimensions */
    CLT_ATTRIBUTE_RESULT, /* clt_shape: that of the node's result, which the inputs do not tell */
    CLT_ATTRIBUTE_TEXT,   /* const char *, static; NULL is "" */
    CLT_ATTRIBUTE_OPAQUE  /* anything: `write` writes it as text */
} clt_attribute_type;

typedef struct clt_attribute {
    const char *name;
    clt_attribute_type type;
    size_t offset, bytes; /* in the op's attributes */
    /* In the text of a problem, if it matters to speed. Neighbours of the same key are one word: "k3,5". "^1": that it is true is
     * shown at operand 1, "1024x3072^T". "^=": it is true where the result has as many dimensions as operand 0. */
    const char *key;
    double usual;    /* where the text of a problem does not tell it */
    /* Numbers lie in [least, most], or, if `below`, in [least, most); both 0: any number does. */
    double least, most;
    bool below;
    const char *const *words;                          /* of an enum, ended by NULL */
    void (*write)(const void *value, clt_text *text);  /* of what is opaque; NULL: the other attributes tell it */
    bool of_rank; /* differs from rank to rank */
} clt_attribute;

/* Whether a field is of the type that its kind is read as: what else it is does not compile. */
#define CLT_ATTRIBUTE_IS_INT(field)    _Generic((field), int: 1, default: 0)
#define CLT_ATTRIBUTE_IS_INT64(field)  _Generic((field), int64_t: 1, default: 0)
#define CLT_ATTRIBUTE_IS_FLOAT(field)  _Generic((field), float: 1, default: 0)
#define CLT_ATTRIBUTE_IS_BOOL(field)   _Generic((field), bool: 1, default: 0)
#define CLT_ATTRIBUTE_IS_ENUM(field)   _Generic((field), int: 1, unsigned: 1, default: 0)
#define CLT_ATTRIBUTE_IS_DTYPE(field)  _Generic((field), clt_dtype: 1, default: 0)
#define CLT_ATTRIBUTE_IS_AXES(field)   _Generic((field), unsigned: 1, default: 0)
#define CLT_ATTRIBUTE_IS_ORDER(field)  _Generic((field), int *: sizeof(field) == CLT_MAX_RANK * sizeof(int), default: 0)
#define CLT_ATTRIBUTE_IS_SIZES(field)  _Generic((field), int64_t *: sizeof(field) == CLT_MAX_RANK * sizeof(int64_t), default: 0)
#define CLT_ATTRIBUTE_IS_RESULT(field) _Generic((field), clt_shape: 1, default: 0)
#define CLT_ATTRIBUTE_IS_TEXT(field)   _Generic((field), const char *: 1, default: 0)
#define CLT_ATTRIBUTE_IS_OPAQUE(field) 1

/* An entry of an op's schema, which ends with one without a name. The struct's type is AT where that is defined. */
#define CLT_ATTRIBUTE(struct_type, field, kind, ...)                                            \
    {.name = #field, .type = CLT_ATTRIBUTE_##kind, .offset = offsetof(struct_type, field),      \
     .bytes = sizeof(((struct_type *)0)->field) * sizeof(char[CLT_ATTRIBUTE_IS_##kind(((struct_type *)0)->field) ? 1 : -1]), __VA_ARGS__}

static inline const void *clt_attribute_value(const clt_attribute *a, const void *attributes) {
    return (const char *)attributes + a->offset;
}

/* A number as it is, of a type that is one. */
double clt_attribute_number(const clt_attribute *a, const void *attributes);
void clt_attribute_set_number(const clt_attribute *a, void *attributes, double number);

/* "kernel_h is 0; it must be at least 1". CLT_E_INVALID. */
clt_status clt_attributes_check(const clt_attribute *schema, const void *attributes);
/* Zeros, and what is usual. */
void clt_attributes_init(const clt_attribute *schema, void *attributes, size_t bytes);
/* Whether they name the batch or the length, which may be others when the graph is run. */
bool clt_attributes_follow(const clt_attribute *schema, const void *attributes);
bool clt_attributes_equal(const clt_attribute *schema, const void *a, const void *b);
/* The value as text: 3, 0.1, true, sum, [2, 3], {0, 2}. `rank`: how many items of an order or of sizes there are. */
void clt_attribute_write(const clt_attribute *a, const void *attributes, int rank, clt_text *text);
/* "p=0.1 site=0": all that ranks must have alike. */
void clt_attributes_write(const clt_attribute *schema, const void *attributes, int rank, clt_text *text);

#endif
