/*
 * Either side of the constants by which kernels cut a problem: channels of a block, a lot or a panel, pixels of a run, rows of
 * a chunk, steps of a split or a launch. Images are a few pixels each. The constant is told behind each case.
 */
#include "tools/cltrain-conform/cases.h"

/* More products than these take a simulator minutes. */
static const double most_for_simulators = 2e5;

static void add_matmul(case_list *list, bool full, const char *variant, int m, int k, int n) {
    bool ta = variant[0] == 't', tb = variant[1] == 't';
    operand x[2] = {F(ta ? k : m, ta ? m : k), F(tb ? n : k, tb ? k : n)};
    test_case *c = case_add(list, &operation_matmul_exact, variant, x, 2);
    c->at.matmul = (clt_matmul_options){ta, tb};
    c->full = full;
    c->large = (double)m * n * k > most_for_simulators;
}

/* What follows a product is done by the kernel that has its last sums. */
static void add_matmul_add(case_list *list, bool full, int m, int k, int n) {
    test_case *c = case_add(list, &operation_matmul_add, "add", X(F(m, k), F(k, n), F(m, n)));
    c->full = full;
    c->large = (double)m * n * k > most_for_simulators;
}

/* The same of each matrix of a batch. */
static void add_matmul_batch(case_list *list, bool transposed, int m, int k, int n) {
    operand x[2] = {F(3, transposed ? k : m, transposed ? m : k), F(3, k, n)};
    test_case *c = case_add(list, &operation_matmul_exact, transposed ? "batch-tn" : "batch", x, 2);
    c->at.matmul = (clt_matmul_options){transposed, false};
    c->full = true;
    c->large = 3.0 * m * n * k > most_for_simulators;
}

static void add_matmuls(case_list *list) {
    add_matmul(list, false, "nn", 2, 8200, 3);    /* 8192 steps of a launch */
    add_matmul(list, true, "nn", 11, 1100, 37);   /* splits of 512 steps, 16 vectors that an item adds up */
    add_matmul(list, true, "nn", 51, 300, 290);   /* 4096 elements to pack, 256 steps, 128 of those packed by an item */
    add_matmul(list, true, "nt", 590, 20, 290);   /* 24 tiles of a block, 3 blocks that want panels; 8 rows of tiles in a band */
    add_matmul(list, true, "nn", 590, 20, 290);
    add_matmul(list, true, "tn", 300, 20, 35);    /* 256 rows that are packed where they lie far apart */
    add_matmul(list, true, "nn", 3, 66000, 18);   /* 32768 steps of a split */
    add_matmul_batch(list, false, 590, 20, 290);
    add_matmul_batch(list, false, 51, 300, 290);
    add_matmul_batch(list, true, 300, 20, 35);
    add_matmul_batch(list, true, 590, 20, 290);
    add_matmul_batch(list, false, 8, 1100, 9);
    add_matmul_add(list, false, 33, 65, 37);
    add_matmul_add(list, true, 19, 40, 12);       /* four columns at once */
    add_matmul_add(list, false, 8, 1100, 9);      /* in parts, which are finished where they are added up */
}

static void add_conv(case_list *list, const operation *op, bool full, const char *variant, clt_shape image,
                     clt_conv2d_options o) {
    int groups = o.groups ? o.groups : 1;
    const int64_t *in = image.dims;
    operand x[3] = {{.shape = image},
                    {.variable = "w.weight", .shape = SHAPE(o.out_channels, in[1] / groups, o.kernel, o.kernel)},
                    {.variable = "w.bias", .shape = SHAPE(o.out_channels)}};
    test_case *c = case_add(list, op, variant, x, o.no_bias ? 2 : 3);
    c->at.conv = o;
    c->full = full;
    double products = (double)clt_shape_elements(&image) * (double)clt_shape_elements(&x[1].shape) / (double)in[1];
    c->large = products > most_for_simulators;
}

#define CONV(full, variant, image, ...) \
    add_conv(list, &operation_conv2d_exact, full, variant, (clt_shape)image, (clt_conv2d_options){__VA_ARGS__})
#define CONV_INSIDE(full, variant, image, ...) \
    add_conv(list, &operation_conv2d_inside_exact, full, variant, (clt_shape)image, (clt_conv2d_options){__VA_ARGS__, .no_bias = true})

static void add_convs(case_list *list) {
    /* 128 channels of a tap's sum, lots of 48, 4 panels of 32 that are used together, 8 to unpack, 16 to pack */
    CONV_INSIDE(false, "inside-k1", SHAPE(1, 150, 5, 4), 140, .kernel = 1);
    /* 512 channels of a block, 96 pixels of a run and of a launch */
    CONV_INSIDE(true, "inside-k1", SHAPE(1, 520, 11, 9), 70, .kernel = 1);
    /* blocks of 128 in all three directions; Winograd's of 16 and 48 */
    CONV_INSIDE(true, "inside", SHAPE(1, 131, 3, 3), 137, .kernel = 3, .padding = 1);
    /* runs of 128 pixels with several blocks of channels, a launch each; 16 tiles of pixels that share a panel */
    CONV_INSIDE(true, "inside", SHAPE(1, 131, 12, 11), 9, .kernel = 3, .padding = 1);
    /* whole parts of 8 channels, and more than one panel of results, whatever a vector is */
    CONV_INSIDE(true, "inside-parts", SHAPE(1, 16, 7, 6), 40, .kernel = 3, .padding = 1);
    /* Winograd's tiles in several chunks, 96 of a run; 500 pixels of a split */
    CONV_INSIDE(true, "inside-chunks", SHAPE(1, 18, 65, 63), 33, .kernel = 3, .padding = 1);
    CONV_INSIDE(true, "inside-groups", SHAPE(1, 54, 5, 4), 70, .kernel = 3, .padding = 1, .groups = 2);
    CONV(true, "blocks", SHAPE(1, 36, 5, 4), 38, .kernel = 3, .padding = 1, .groups = 2); /* 16 channels that lie together */
    CONV(true, "splits", SHAPE(2, 3, 33, 32), 5, .kernel = 3, .padding = 1);            /* 1024 pixels, in runs of 256 */
    /* A sum in splits meets a stride's phases, groups, a part of a block, and one tap. */
    CONV(true, "splits-s2", SHAPE(1, 3, 7, 6), 300, .kernel = 3, .stride = 2, .padding = 1);
    CONV(true, "splits-s2", SHAPE(2, 3, 65, 63), 5, .kernel = 3, .stride = 2, .padding = 1);
    CONV(true, "splits-groups", SHAPE(2, 6, 33, 32), 10, .kernel = 3, .padding = 1, .groups = 2);
    CONV(true, "splits-k1", SHAPE(2, 3, 33, 32), 5, .kernel = 1);
    CONV_INSIDE(true, "inside-splits-s2", SHAPE(4, 140, 33, 32), 10, .kernel = 3, .stride = 2, .padding = 1);
    CONV_INSIDE(true, "inside-splits-groups", SHAPE(2, 12, 33, 32), 10, .kernel = 3, .padding = 1, .groups = 2);
    CONV_INSIDE(true, "inside-splits-k1", SHAPE(4, 37, 33, 32), 21, .kernel = 1);
    CONV(true, "s4", SHAPE(2, 9, 13, 10), 11, .kernel = 5, .stride = 4, .padding = 1);  /* 16 phases, and more */
    CONV(true, "s5", SHAPE(2, 9, 13, 11), 11, .kernel = 6, .stride = 5, .padding = 1);
    CONV(true, "groups", SHAPE(2, 6, 5, 4), 10, .kernel = 3, .padding = 1, .groups = 2);
    CONV(true, "groups-split", SHAPE(1, 120, 4, 3), 10, .kernel = 3, .padding = 1, .groups = 2); /* 256 steps of a split */
    CONV(true, "wide", SHAPE(1, 1, 1, 70001), 2, .kernel = 1); /* more rounds than a work-item may make, for one row of pixels */
    CONV(true, "wide", SHAPE(2, 1, 3, 66003), 2, .kernel = 1); /* and for several */
    CONV(true, "launches", SHAPE(1, 2, 2, 3), 3, .kernel = 128, .padding = 64); /* 32768 rounds of a launch: one channel */
}

static void norm_operands(operand *x, int64_t channels) {
    x[0] = (operand){.variable = "w.weight", .shape = SHAPE(channels)};
    x[1] = (operand){.variable = "w.bias", .shape = SHAPE(channels)};
    x[2] = (operand){.variable = "w.running_mean", .shape = SHAPE(channels), .constant = true};
    x[3] = (operand){.variable = "w.running_var", .shape = SHAPE(channels), .low = 0.5, .high = 2, .constant = true};
}

static void add_norm(case_list *list, clt_shape shape) {
    operand x[5] = {{.shape = shape, .low = -1, .high = 3}};
    norm_operands(x + 1, shape.dims[1]);
    test_case *c = case_add(list, &operation_batch_norm, "chunks", x, 5);
    c->large = clt_shape_elements(&shape) > 10000;
}

static void add_norm_conv(case_list *list, clt_shape image, int channels) {
    operand x[6] = {{.shape = image}, {.shape = SHAPE(channels, image.dims[1], 1, 1)}};
    norm_operands(x + 2, channels);
    test_case *c = case_add(list, &operation_batch_norm_conv, "chunks-conv", x, 6);
    c->full = c->large = true;
}

static void add_norms(case_list *list) {
    add_norm(list, (clt_shape)SHAPE(67, 515)); /* 512 columns of a block, 16384 elements of a chunk */
    add_norm(list, (clt_shape)SHAPE(519, 3));  /* 512 images of a chunk */
    add_norm(list, (clt_shape)SHAPE(4, 1, 41, 100)); /* 16384 elements of a channel: three images of a chunk, by four */
    add_norm(list, (clt_shape)SHAPE(4, 2, 41, 101)); /* and one by one */
    add_norm_conv(list, (clt_shape)SHAPE(1, 9, 6, 6), 520);
    operand x[] = {{.shape = SHAPE(3, 8200), .low = -1, .high = 3},
                   {.variable = "w.weight", .shape = SHAPE(8200)},
                   {.variable = "w.bias", .shape = SHAPE(8200)}};
    test_case *c = case_add(list, &operation_layer_norm, "chunks", x, 3); /* 16384 items: two rows in a chunk */
    c->at.axis = 1;
    c->full = c->large = true;
}

static void add_sum(case_list *list, bool full, const char *variant, clt_shape shape, clt_reduce_options o) {
    operand x = {.shape = shape};
    test_case *c = case_add(list, &operation_sum, variant, &x, 1);
    c->at.reduce = o;
    c->full = full;
    c->large = clt_shape_elements(&shape) > 20000;
}

void cases_blocks(case_list *list) {
    add_matmuls(list);
    add_convs(list);
    add_norms(list);
    add_sum(list, false, "chunks", (clt_shape)SHAPE(67, 515), CLT_AXES(0)); /* as for norms */
    add_sum(list, true, "chunks", (clt_shape)SHAPE(3, 4099), CLT_AXES(1));  /* 4096 elements of a work-group */
}
