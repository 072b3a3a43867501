/* Permutations of dimensions, and the exchange of two. */
#include "tests/ops/harness.h"

#include <stdio.h>

typedef struct permutation {
    int rank, order[CLT_MAX_RANK]; /* as given to the builder: may be negative */
    bool transpose;                /* order[0] and order[1] are exchanged instead */
} permutation;

static clt_tensor *build(clt_graph *graph, clt_tensor *const *inputs, const void *context) {
    (void)graph;
    const permutation *p = context;
    if (p->transpose) return clt_transpose(inputs[0], p->order[0], p->order[1]);
    return clt_permute(inputs[0], p->order);
}

/* Which dimension of x is dimension d of the result. */
static int source_of(const permutation *p, int d) {
    int a = p->order[0] < 0 ? p->order[0] + p->rank : p->order[0];
    int b = p->order[1] < 0 ? p->order[1] + p->rank : p->order[1];
    if (p->transpose) return d == a ? b : d == b ? a : d;
    return p->order[d] < 0 ? p->order[d] + p->rank : p->order[d];
}

static void reference(const array *inputs, array *y, const void *context) {
    const permutation *p = context;
    clt_shape shape = {.rank = p->rank};
    for (int d = 0; d < p->rank; d++) shape.dims[d] = inputs[0].shape.dims[source_of(p, d)];
    array_resize(y, shape);
    int64_t index[CLT_MAX_RANK] = {0}, source[CLT_MAX_RANK] = {0}, at = 0;
    do {
        for (int d = 0; d < p->rank; d++) source[source_of(p, d)] = index[d];
        y->values[at++] = inputs[0].values[index_place(&inputs[0].shape, source)];
    } while (index_next(&shape, index));
}

/* ---- cases ---- */

enum { N_ORDERS = 24 };
static permutation orders[N_ORDERS];
static char names[N_ORDERS][32];

/* The k-th order of four, by taking digits of k in the factorial base. */
static op_case order_case(int k) {
    int left[] = {0, 1, 2, 3}, rest = k;
    permutation *p = &orders[k];
    *p = (permutation){.rank = 4};
    for (int d = 0; d < 4; d++) {
        int pick = rest % (4 - d);
        rest /= 4 - d;
        p->order[d] = left[pick];
        for (int i = pick; i < 3 - d; i++) left[i] = left[i + 1];
    }
    snprintf(names[k], sizeof names[k], "order %d %d %d %d", p->order[0], p->order[1], p->order[2], p->order[3]);
    return (op_case){.name = names[k],
                     .n_inputs = 1,
                     .inputs = {{.shape = OP_SHAPE(2, 3, 5, 7)}},
                     .build = build,
                     .reference = reference,
                     .context = p,
                     .samples = 40};
}

#define PERMUTE(label, size, ...)                 \
    {.name = label,                               \
     .n_inputs = 1,                               \
     .inputs = {{.shape = size}},                 \
     .build = build,                              \
     .reference = reference,                      \
     .context = &(permutation){__VA_ARGS__}}
static const op_case others[] = {
    PERMUTE("rank 8", OP_SHAPE(2, 1, 3, 2, 1, 2, 3, 2), 8, {3, 0, 7, 1, 6, 2, 5, 4}),
    PERMUTE("rank 8 reversed", OP_SHAPE(2, 1, 3, 2, 1, 2, 3, 2), 8, {7, 6, 5, 4, 3, 2, 1, 0}),
    PERMUTE("rank 1", OP_SHAPE(5), 1, {0}),
    PERMUTE("rank 2", OP_SHAPE(33, 65), 2, {1, 0}),
    PERMUTE("negative order", OP_SHAPE(2, 3, 5), 3, {-1, -3, -2}),
    PERMUTE("transpose of rank 2", OP_SHAPE(5, 3), 2, {0, 1}, true),
    PERMUTE("transpose of outer dimensions", OP_SHAPE(2, 3, 4), 3, {0, 1}, true),
    PERMUTE("transpose, counted from the end", OP_SHAPE(2, 3, 4, 5), 4, {-1, 1}, true),
    PERMUTE("transpose with itself", OP_SHAPE(2, 3, 4), 3, {1, 1}, true),
};

int main(void) {
    static op_case cases[N_ORDERS + CLT_COUNT_OF(others)];
    for (int k = 0; k < N_ORDERS; k++) cases[k] = order_case(k);
    for (size_t k = 0; k < CLT_COUNT_OF(others); k++) cases[N_ORDERS + k] = others[k];
    return op_main("permute", cases, CLT_COUNT_OF(cases), NULL, 0);
}
