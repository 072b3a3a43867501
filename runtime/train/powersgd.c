/*
 * PowerSGD (Vogels, Karimireddy, Jaggi: "PowerSGD: Practical Low-Rank Gradient Compression for Distributed Optimization",
 * 2019), as in PyTorch's powerSGD_hook: a matrix M of gradients and residual goes as two thin factors,
 *
 *     P = M Q,  summed over ranks,  made orthonormal;      Q = M' P,  summed over ranks;      M becomes P Q'
 *
 * where Q is that of the step before. What P Q' misses, each rank takes its part of, is the residual. A parameter is a
 * matrix of its first dimension by all others; vectors, and matrices that are hardly smaller so, go as they are.
 */
#include <string.h>

#include "runtime/train/compress.h"

enum { LEAST_GAIN = 2 };                /* PyTorch's min_compression_rate */
enum { MOST_ROUNDS = 60000, GROUP = 64 }; /* of a work-item that makes columns orthonormal */

/* A parameter of the group. Offsets are in flat tensors. */
typedef struct part {
    clt_tensor *mean;     /* vectors: this rank's share */
    clt_tensor *matrix;   /* gradient and residual, in the residual's memory */
    clt_tensor *left, *right; /* factors */
    int64_t rows, columns, rank;
    int64_t left_offset, right_offset, vector_offset;
} part;

typedef struct powersgd {
    const clt_gradient_reduction *x;
    part *parts; /* by variable of the group */
    clt_tensor **tensors; /* room for the inputs of a pack */
    int64_t *offsets;
    int n;
    int64_t left_elements, right_elements, vector_elements;
    clt_tensor *residual, *left, *right, *vectors;
} powersgd;

static int64_t aligned(int64_t elements) {
    return (elements + CLT_PACK_ALIGN - 1) / CLT_PACK_ALIGN * CLT_PACK_ALIGN;
}

/* rank 0: it goes as a vector. */
static part shape_of(const clt_variable *variable, int wanted) {
    const clt_shape *shape = &variable->shape;
    part p = {.rows = shape->rank ? shape->dims[0] : 1};
    p.columns = clt_shape_elements(shape) / p.rows;
    int64_t rank = CLT_MIN(wanted, CLT_MIN(p.rows, p.columns));
    bool smaller = (p.rows + p.columns) * rank * LEAST_GAIN < p.rows * p.columns;
    bool short_enough = p.rows / GROUP * 2 < MOST_ROUNDS;
    p.rank = smaller && short_enough ? rank : 0;
    return p;
}

static void place_parts(powersgd *s) {
    for (int i = 0; i < s->n; i++) {
        part *p = &s->parts[i];
        *p = shape_of(s->x->bucket->variables[i], s->x->options->rank);
        p->left_offset = s->left_elements;
        p->right_offset = s->right_elements;
        p->vector_offset = s->vector_elements;
        if (p->rank) {
            s->left_elements += aligned(p->rows * p->rank);
            s->right_elements += aligned(p->columns * p->rank);
        } else {
            s->vector_elements += aligned(p->rows * p->columns);
        }
    }
}

/* Packs one tensor of each part that has it, and adds it up over the ranks. */
static clt_tensor *reduce(powersgd *s, clt_tensor *flat, size_t tensor_field, size_t offset_field) {
    int n = 0;
    for (int i = 0; i < s->n; i++) {
        const char *p = (const char *)&s->parts[i];
        memcpy(&s->tensors[n], p + tensor_field, sizeof *s->tensors);
        memcpy(&s->offsets[n], p + offset_field, sizeof *s->offsets);
        n += s->tensors[n] != NULL;
    }
    return clt_all_reduce(clt_pack(flat, s->tensors, s->offsets, n), CLT_REDUCE_SUM);
}

static void reduce_vectors(powersgd *s) {
    const clt_gradient_reduction *x = s->x;
    if (!s->vector_elements) return;
    for (int i = 0; i < s->n; i++) {
        part *p = &s->parts[i];
        if (p->rank) continue;
        clt_tensor *own = clt_flat_part(x->flat, x->bucket->offsets[i], CLT_SHAPE(p->rows * p->columns));
        p->mean = clt_narrow(own, x->samples, CLT_F32);
    }
    clt_tensor *flat = clt_compress_state(x, "vectors", s->vector_elements);
    s->vectors = reduce(s, flat, offsetof(part, mean), offsetof(part, vector_offset));
}

/* Factors of the sum of all ranks' matrices. */
static void reduce_factors(powersgd *s) {
    const clt_gradient_reduction *x = s->x;
    if (!s->left_elements) return;
    clt_tensor *residual = clt_compress_state(x, "residual", clt_tensor_elements(x->flat));
    clt_tensor *right = clt_compress_state(x, "factor", s->right_elements);
    clt_tensor *left = clt_compress_state(x, "left", s->left_elements);
    for (int i = 0; i < s->n; i++) {
        part *p = &s->parts[i];
        if (!p->rank) continue;
        int64_t offset = x->bucket->offsets[i];
        clt_shape shape = CLT_SHAPE(p->rows, p->columns);
        clt_tensor *factor = clt_flat_part(right, p->right_offset, CLT_SHAPE(p->columns, p->rank));
        p->matrix = clt_feedback_add(clt_flat_part(residual, offset, shape), clt_flat_part(x->flat, offset, shape), x->samples);
        p->left = clt_matmul(p->matrix, clt_seed_factor(factor, i));
    }
    s->left = reduce(s, left, offsetof(part, left), offsetof(part, left_offset));
    for (int i = 0; i < s->n; i++) {
        part *p = &s->parts[i];
        if (!p->rank) continue;
        p->left = clt_orthogonalize(clt_flat_part(s->left, p->left_offset, CLT_SHAPE(p->rows, p->rank)));
        p->right = clt_matmul_with(p->matrix, p->left, (clt_matmul_options){.transpose_a = true});
    }
    s->right = reduce(s, right, offsetof(part, right), offsetof(part, right_offset));
}

/* The sum of the ranks' matrices, as far as the factors tell it. */
static clt_tensor *rebuild(const powersgd *s, const part *p) {
    clt_tensor *right = clt_flat_part(s->right, p->right_offset, CLT_SHAPE(p->columns, p->rank));
    clt_tensor *sum = clt_matmul_with(p->left, right, (clt_matmul_options){.transpose_b = true});
    return clt_feedback_subtract(sum, p->matrix, 1.0f / (float)s->x->size);
}

static clt_tensor *finish(powersgd *s) {
    for (int i = 0; i < s->n; i++) {
        const part *p = &s->parts[i];
        s->tensors[i] = p->rank ? rebuild(s, p)
                                : clt_flat_part(s->vectors, p->vector_offset, CLT_SHAPE(p->rows * p->columns));
    }
    return clt_pack(s->x->flat, s->tensors, s->x->bucket->offsets, s->n);
}

clt_tensor *clt_powersgd_reduce(const clt_gradient_reduction *x) {
    powersgd s = {.x = x, .n = x->bucket->n};
    size_t n = (size_t)s.n + 1;
    s.parts = clt_calloc(n, sizeof *s.parts);
    s.tensors = clt_calloc(n, sizeof *s.tensors);
    s.offsets = clt_calloc(n, sizeof *s.offsets);
    clt_tensor *result;
    if (!s.parts || !s.tensors || !s.offsets) {
        result = clt_graph_fail(x->flat->graph, clt_fail_memory(n * sizeof *s.parts));
    } else {
        place_parts(&s);
        reduce_vectors(&s);
        reduce_factors(&s);
        result = finish(&s);
    }
    clt_free(s.parts);
    clt_free(s.tensors);
    clt_free(s.offsets);
    return result;
}
