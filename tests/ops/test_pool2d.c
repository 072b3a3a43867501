/* Maximum, average and global average pooling. */
#include "tests/ops/harness.h"

#include <math.h>

/* ---- definitions; kernel, stride and padding are spelled out for both dimensions ---- */

typedef struct pool {
    bool average;
    clt_pool2d_options o;
} pool;

static clt_tensor *build(clt_graph *graph, clt_tensor *const *inputs, const void *context) {
    (void)graph;
    const pool *p = context;
    return p->average ? clt_avg_pool2d_with(inputs[0], p->o) : clt_max_pool2d_with(inputs[0], p->o);
}

static double window(const array *x, const pool *p, const int64_t *index) {
    int64_t top = index[2] * p->o.stride_h - p->o.padding_h, left = index[3] * p->o.stride_w - p->o.padding_w;
    double most = -INFINITY, sum = 0;
    int inside = 0;
    for (int64_t h = CLT_MAX(top, 0); h < CLT_MIN(top + p->o.kernel_h, x->shape.dims[2]); h++)
        for (int64_t w = CLT_MAX(left, 0); w < CLT_MIN(left + p->o.kernel_w, x->shape.dims[3]); w++) {
            double pixel = ref_at4(x, index[0], index[1], h, w);
            most = fmax(most, pixel);
            sum += pixel;
            inside++;
        }
    if (!p->average) return most;
    return sum / (p->o.exclude_padding ? inside : p->o.kernel_h * p->o.kernel_w);
}

static void reference(const array *inputs, array *y, const void *context) {
    const pool *p = context;
    clt_shape shape = inputs[0].shape;
    shape.dims[2] = (shape.dims[2] + 2 * p->o.padding_h - p->o.kernel_h) / p->o.stride_h + 1;
    shape.dims[3] = (shape.dims[3] + 2 * p->o.padding_w - p->o.kernel_w) / p->o.stride_w + 1;
    array_resize(y, shape);
    int64_t index[CLT_MAX_RANK] = {0}, i = 0;
    do y->values[i++] = window(&inputs[0], p, index);
    while (index_next(&shape, index));
}

/* ---- cases: each as maximum, average, and average without the padding ---- */

typedef struct size {
    const char *names[3];
    int64_t n, c, h, w;
    int kernel_h, kernel_w, stride_h, stride_w, padding_h, padding_w;
} size;

#define NAMES(text) {"max " text, "average " text, "average, padding excluded, " text}
static const size sizes[] = {
    {NAMES("2x2"), 2, 3, 6, 8, 2, 2, 2, 2, 0, 0},
    {NAMES("2x2 of odd sizes"), 2, 3, 7, 5, 2, 2, 2, 2, 0, 0},
    {NAMES("3x3 stride 2 padded"), 2, 2, 7, 8, 3, 3, 2, 2, 1, 1},
    {NAMES("3x3 stride 1, overlapping"), 1, 2, 6, 5, 3, 3, 1, 1, 1, 1},
    {NAMES("2x3 stride 1x2 padding 1x0"), 2, 1, 5, 7, 2, 3, 1, 2, 1, 0},
    {NAMES("3x1 stride 1x1 padding 1x0"), 1, 3, 4, 3, 3, 1, 1, 1, 1, 0},
    {NAMES("1x1"), 2, 2, 3, 5, 1, 1, 1, 1, 0, 0},
    {NAMES("1x1 stride 2 skips pixels"), 1, 2, 5, 5, 1, 1, 2, 2, 0, 0},
    {NAMES("2x2 stride 3 skips pixels"), 1, 2, 8, 7, 2, 2, 3, 3, 0, 0},
    {NAMES("as large as the image"), 3, 2, 5, 4, 5, 4, 1, 1, 0, 0},
    {NAMES("as large as it may be"), 1, 2, 3, 4, 32767, 32767, 32767, 32767, 16383, 16383},
    {NAMES("4x4 padding 2 on one pixel"), 1, 1, 1, 1, 4, 4, 1, 1, 2, 2},
};

enum { N_SIZES = CLT_COUNT_OF(sizes), N_CASES = 3 * N_SIZES };

static pool pools[N_CASES];

static op_case case_of(int k) {
    const size *s = &sizes[k / 3];
    pools[k] = (pool){.average = k % 3 > 0,
                      .o = {.kernel_h = s->kernel_h,
                            .kernel_w = s->kernel_w,
                            .stride_h = s->stride_h,
                            .stride_w = s->stride_w,
                            .padding_h = s->padding_h,
                            .padding_w = s->padding_w,
                            .exclude_padding = k % 3 == 2}};
    /* All below zero: padding that counted as 0 would be a maximum. */
    return (op_case){.name = s->names[k % 3],
                     .n_inputs = 1,
                     .inputs = {{.shape = {4, {s->n, s->c, s->h, s->w}}, .low = -3, .high = -1, .distinct = true}},
                     .build = build,
                     .reference = reference,
                     .context = &pools[k]};
}

/* ---- options in short ---- */

static clt_tensor *build_short(clt_graph *graph, clt_tensor *const *inputs, const void *context) {
    (void)graph, (void)context;
    return clt_max_pool2d(inputs[0], .kernel = 3);
}

static clt_tensor *build_short_average(clt_graph *graph, clt_tensor *const *inputs, const void *context) {
    (void)graph, (void)context;
    return clt_avg_pool2d(inputs[0], .kernel = 3, .stride = 2, .padding = 1);
}

static const pool spelled = {.o = {.kernel_h = 3, .kernel_w = 3, .stride_h = 3, .stride_w = 3}};
static const pool spelled_average = {
    true, {.kernel_h = 3, .kernel_w = 3, .stride_h = 2, .stride_w = 2, .padding_h = 1, .padding_w = 1}};

/* ---- global average ---- */

static clt_tensor *build_global(clt_graph *graph, clt_tensor *const *inputs, const void *context) {
    (void)graph, (void)context;
    return clt_global_avg_pool2d(inputs[0]);
}

static void reference_global(const array *inputs, array *y, const void *context) {
    (void)context;
    clt_shape shape = inputs[0].shape;
    int64_t pixels = shape.dims[2] * shape.dims[3];
    shape.dims[2] = shape.dims[3] = 1;
    array_resize(y, shape);
    for (int64_t i = 0; i < array_count(y); i++) {
        double sum = 0;
        for (int64_t k = 0; k < pixels; k++) sum += inputs[0].values[i * pixels + k];
        y->values[i] = sum / (double)pixels;
    }
}

#define ONE_INPUT(label, size, builder, definition, given) \
    {.name = label,                                        \
     .n_inputs = 1,                                        \
     .inputs = {{.shape = size, .distinct = true}},        \
     .build = builder,                                     \
     .reference = definition,                              \
     .context = given}
static const op_case others[] = {
    ONE_INPUT("max, options in short", OP_SHAPE(1, 2, 7, 8), build_short, reference, &spelled),
    ONE_INPUT("average, options in short", OP_SHAPE(1, 2, 7, 8), build_short_average, reference, &spelled_average),
    ONE_INPUT("global average", OP_SHAPE(2, 3, 5, 7), build_global, reference_global, NULL),
    ONE_INPUT("global average of one pixel", OP_SHAPE(2, 3, 1, 1), build_global, reference_global, NULL),
};

/* ---- ties ---- */

static void ties_go_to_the_first(void **state) {
    (void)state;
    static const float equal[16] = {0};
    static const pool twos = {.o = {.kernel_h = 2, .kernel_w = 2, .stride_h = 2, .stride_w = 2}};
    op_expect(&(op_case){.name = "equal pixels",
                         .n_inputs = 1,
                         .inputs = {{.shape = OP_SHAPE(1, 1, 4, 4), .values = equal}},
                         .build = build,
                         .context = &twos,
                         .seed = (const float[]){1, 2, 3, 4}},
              (double[4]){0},
              (const double *[]){(double[]){1, 0, 2, 0, 0, 0, 0, 0, 3, 0, 4, 0, 0, 0, 0, 0}});
}

/* The first pixel inside the image, not the padding; and a pixel that wins several windows gets all. */
static void ties_beside_padding(void **state) {
    (void)state;
    static const float x[] = {-1, -1, -1, 5, -1, -1, 5, -1, -1};
    static const pool threes = {
        .o = {.kernel_h = 3, .kernel_w = 3, .stride_h = 2, .stride_w = 2, .padding_h = 1, .padding_w = 1}};
    op_expect(&(op_case){.name = "overlapping windows at the border",
                         .n_inputs = 1,
                         .inputs = {{.shape = OP_SHAPE(1, 1, 3, 3), .values = x}},
                         .build = build,
                         .context = &threes,
                         .seed = (const float[]){1, 2, 3, 4}},
              (double[]){5, -1, 5, -1},
              (const double *[]){(double[]){0, 2, 0, 4, 4, 0, 0, 0, 0}});
}

static void not_a_number_passes(void **state) {
    (void)state;
    static const float x[] = {1, 2, NAN, 4, 5, -INFINITY, -INFINITY, -INFINITY};
    static const pool twos = {.o = {.kernel_h = 1, .kernel_w = 2, .stride_h = 1, .stride_w = 2}};
    op_expect(&(op_case){.name = "NaN and infinities",
                         .n_inputs = 1,
                         .inputs = {{.shape = OP_SHAPE(1, 1, 2, 4), .values = x}},
                         .build = build,
                         .context = &twos,
                         .no_gradient = true},
              (double[]){2, NAN, 5, -INFINITY}, NULL);
}

int main(void) {
    static op_case cases[N_CASES + CLT_COUNT_OF(others)];
    for (int k = 0; k < N_CASES; k++) cases[k] = case_of(k);
    for (size_t k = 0; k < CLT_COUNT_OF(others); k++) cases[N_CASES + k] = others[k];
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ties_go_to_the_first),
        cmocka_unit_test(ties_beside_padding),
        cmocka_unit_test(not_a_number_passes),
    };
    return op_main("pool2d", cases, CLT_COUNT_OF(cases), tests, CLT_COUNT_OF(tests));
}
