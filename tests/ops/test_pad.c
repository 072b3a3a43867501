/* A border of one value. */
#include "tests/ops/harness.h"

typedef struct border {
    int64_t before[CLT_MAX_RANK], after[CLT_MAX_RANK];
    float value;
} border;

static clt_tensor *build(clt_graph *graph, clt_tensor *const *inputs, const void *context) {
    (void)graph;
    const border *b = context;
    return clt_pad(inputs[0], b->before, b->after, b->value);
}

static void reference(const array *inputs, array *y, const void *context) {
    const border *b = context;
    const array *x = &inputs[0];
    clt_shape shape = x->shape;
    for (int d = 0; d < shape.rank; d++) shape.dims[d] += b->before[d] + b->after[d];
    array_resize(y, shape);
    int64_t index[CLT_MAX_RANK] = {0}, at = 0;
    do {
        int64_t source[CLT_MAX_RANK];
        bool inside = true;
        for (int d = 0; d < shape.rank; d++) {
            source[d] = index[d] - b->before[d];
            inside &= source[d] >= 0 && source[d] < x->shape.dims[d];
        }
        y->values[at++] = inside ? x->values[index_place(&x->shape, source)] : b->value;
    } while (index_next(&shape, index));
}

#define PAD(label, size, ...)               \
    {.name = label,                         \
     .n_inputs = 1,                         \
     .inputs = {{.shape = size}},           \
     .build = build,                        \
     .reference = reference,                \
     .context = &(border){__VA_ARGS__}}
static const op_case cases[] = {
    PAD("rank 1", OP_SHAPE(3), {2}, {1}, 0),
    PAD("images", OP_SHAPE(2, 3, 4, 5), {0, 0, 1, 2}, {0, 0, 3, 0}, 0),
    PAD("all dimensions, with a value", OP_SHAPE(2, 3, 2, 3), {1, 2, 0, 1}, {0, 1, 2, 1}, -1.5f),
    PAD("before alone", OP_SHAPE(3, 4), {0, 5}, {0, 0}, 2),
    PAD("after alone", OP_SHAPE(3, 4), {0, 0}, {7, 0}, 2),
    PAD("nothing", OP_SHAPE(3, 4), {0}, {0}, 2),
    PAD("one element", OP_SHAPE(1, 1), {1, 1}, {1, 1}, 9),
    PAD("rank 8", OP_SHAPE(1, 2, 1, 2, 1, 3, 1, 2), {1, 0, 0, 1, 0, 0, 1, 0}, {0, 0, 1, 0, 0, 2, 0, 1}, 0.5f),
};

int main(void) {
    return op_main("pad", cases, CLT_COUNT_OF(cases), NULL, 0);
}
