/* Copies of a graph, as they are and for another batch size. */
#include "tests/ops/harness.h"

#include "runtime/base/random.h"
#include "runtime/ops/ops.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static clt_graph *new_graph(void) {
    clt_graph *graph;
    assert_ok(clt_graph_create(&graph));
    return graph;
}

static void assert_shape(const clt_tensor *tensor, clt_shape want) {
    char a[CLT_SHAPE_TEXT], b[CLT_SHAPE_TEXT];
    assert_non_null(tensor);
    if (!clt_shape_equal(&tensor->shape, &want))
        fail_msg("%s has the shape %s, wanted %s", clt_tensor_name(tensor), clt_shape_text(&tensor->shape, a),
                 clt_shape_text(&want, b));
}

/* The clone's tensor for `target`; the caller destroys the clone. */
static clt_tensor *clone_of(clt_tensor *target, int64_t batch, clt_graph **clone) {
    clt_tensor **map;
    assert_ok(clt_graph_clone(target->graph, &target, 1, (clt_sizes){.batch = batch}, clone, &map));
    clt_tensor *copy = map[target->index];
    clt_free(map);
    return copy;
}

/* ---- shapes ---- */

/* Builds f of x [4, 3, 2], clones it for a batch of 7 and of 1, and compares the shape. */
#define assert_follows(expression, ...)                                  \
    do {                                                                 \
        clt_graph *g = new_graph(), *clone;                              \
        clt_tensor *x = clt_input(g, "x", CLT_F32, CLT_SHAPE(4, 3, 2));  \
        clt_tensor *y = (expression);                                    \
        assert_ok(clt_graph_status(g));                                  \
        for (int64_t n = 1; n <= 7; n += 6) {                            \
            assert_shape(clone_of(y, n, &clone), CLT_SHAPE(__VA_ARGS__)); \
            assert_ok(clt_graph_status(clone));                          \
            clt_graph_destroy(clone);                                    \
        }                                                                \
        clt_graph_destroy(g);                                            \
        (void)x;                                                         \
    } while (0)

static void shapes_follow_the_batch(void **state) {
    (void)state;
    assert_follows(clt_relu(x), n, 3, 2);
    assert_follows(clt_flatten(x), n, 6);
    assert_follows(clt_reshape(x, CLT_SHAPE(4, 6)), n, 6);
    assert_follows(clt_reshape(x, CLT_SHAPE(4, -1)), n, 6);
    assert_follows(clt_reshape(x, CLT_SHAPE(-1, 2)), 3 * n, 2);
    assert_follows(clt_reshape(x, CLT_SHAPE(12, 2)), 3 * n, 2);
    assert_follows(clt_reshape(clt_reshape(x, CLT_SHAPE(12, 2)), CLT_SHAPE(4, 3, 2)), n, 3, 2);
    assert_follows(clt_expand(clt_reshape(x, CLT_SHAPE(4, 1, 3, 2)), CLT_SHAPE(4, 5, 3, 2)), n, 5, 3, 2);
    assert_follows(clt_expand(clt_fill(g, CLT_SHAPE(1, 2), 3), CLT_SHAPE(CLT_BATCH, 2)), n, 2);
    assert_follows(clt_mul(x, clt_fill(g, CLT_SHAPE(CLT_BATCH, 1, 1), 3)), n, 3, 2);
    assert_follows(clt_linear(x, "fc", 5), n, 3, 5);
    assert_follows(clt_softmax(clt_linear(clt_flatten(x), "fc", 5), 1), n, 5);
    assert_follows(clt_transpose(x, 0, 1), 3, n, 2);
    assert_follows(clt_concat(((clt_tensor *[]){x, x}), 2, 1), n, 6, 2);
    assert_follows(clt_concat(((clt_tensor *[]){x, x}), 2, 0), 2 * n, 3, 2);
    assert_follows(clt_slice(x, 0, 0, 4, 1), n, 3, 2);
    assert_follows(clt_slice(x, 0, 0, 9, 2), (n + 1) / 2, 3, 2);
    assert_follows(clt_reshape(clt_transpose(x, 0, 1), CLT_SHAPE(3, CLT_BATCH, 2, 1)), 3, n, 2, 1);
    assert_follows(clt_expand(clt_fill(g, CLT_SHAPE(4, 1, 2), 3), CLT_SHAPE(4, CLT_BATCH, 2)), 4, n, 2);
    assert_follows(clt_slice(x, 1, 0, 2, 1), n, 2, 2);
    assert_follows(clt_slice(x, 0, 0, INT64_MAX, 100), 1, 3, 2);
    assert_follows(clt_linear(clt_transpose(x, 0, 1), "fc", 5), 3, n, 5);
    assert_follows(clt_linear(clt_transpose(clt_concat(((clt_tensor *[]){x, clt_slice(x, 1, 0, 1, 1)}), 2, 1), 0, 1), "fc", 5), 4, n, 5);
    assert_follows(clt_linear(clt_concat(((clt_tensor *[]){x, clt_tanh(x)}), 2, 0), "fc", 5), 2 * n, 3, 5);
    assert_follows(clt_reshape(x, CLT_SHAPE(1, -1, 2)), 1, 3 * n, 2);
    assert_follows(clt_reshape(x, CLT_SHAPE(3, -1)), 3, 2 * n);
    assert_follows(clt_reshape(x, CLT_SHAPE(12, -1)), 3 * n, 2);
    assert_follows(clt_flatten(clt_transpose(x, 0, 1)), 3, 2 * n);
    assert_follows(clt_sum(x, CLT_AXES(1)), n, 2);
    assert_follows(clt_sum(x, CLT_AXES(0)), 3, 2);
    assert_follows(clt_dropout(clt_batch_norm(x, "bn"), 0.5f), n, 3, 2);
    assert_follows(clt_layer_norm(x, "ln", 2), n, 3, 2);
    assert_follows(clt_conv2d(clt_reshape(x, CLT_SHAPE(4, 1, 3, 2)), "conv", 3, .kernel = 2, .padding = 1), n, 3, 4, 3);
    assert_follows(clt_max_pool2d(clt_reshape(x, CLT_SHAPE(4, 1, 3, 2)), .kernel = 2), n, 1, 1, 1);
}

/* Builds f of sequences x [4, 6, 2], clones it for batches of 7 and of 1 with lengths of 1 to 6, and compares the shape. */
#define assert_lengths(expression, ...)                                                               \
    do {                                                                                              \
        clt_graph *g = new_graph(), *clone;                                                           \
        clt_tensor *x = clt_sequence_input(g, "x", CLT_F32, CLT_SHAPE(4, 6, 2), 1), **map;            \
        clt_tensor *y = (expression);                                                                 \
        assert_ok(clt_graph_status(g));                                                               \
        for (int64_t i = 0; i < 12; i++) {                                                            \
            int64_t n = i < 6 ? 1 : 7, l = 1 + i % 6;                                                 \
            assert_ok(clt_graph_clone(g, &y, 1, (clt_sizes){n, l}, &clone, &map));                    \
            assert_shape(map[y->index], CLT_SHAPE(__VA_ARGS__));                                      \
            clt_free(map);                                                                            \
            clt_graph_destroy(clone);                                                                 \
        }                                                                                             \
        clt_graph_destroy(g);                                                                         \
        (void)x;                                                                                      \
    } while (0)

static clt_tensor *parameter(clt_graph *g, const char *name, clt_shape shape) {
    return clt_parameter(g, name, shape, (clt_init){0});
}

/* One place more. */
static clt_tensor *longer(clt_tensor *x) {
    return clt_pad(x, (int64_t[]){0, 1, 0}, (int64_t[]){0, 0, 0}, 0);
}

static void shapes_follow_the_length(void **state) {
    (void)state;
    assert_lengths(clt_relu(x), n, l, 2);
    assert_lengths(clt_linear(x, "fc", 5), n, l, 5);
    assert_lengths(clt_linear(clt_linear(x, "fc", 6), "fc2", 4), n, l, 4); /* as many features as places, and as samples */
    assert_lengths(clt_linear(clt_reshape(x, CLT_SHAPE(0, 0, 2, 1)), "fc", 3), n, l, 2, 3);
    assert_lengths(clt_linear(clt_transpose(clt_reshape(x, CLT_SHAPE(0, 0, 1, 2)), 1, 2), "fc", 3), n, 1, l, 3);
    assert_lengths(clt_linear(clt_concat(((clt_tensor *[]){x, x}), 2, 1), "fc", 3), n, 2 * l, 3);
    assert_lengths(clt_reshape(x, CLT_SHAPE(-1, 2)), n * l, 2);
    assert_lengths(clt_reshape(x, CLT_SHAPE(24, 2)), n * l, 2);
    assert_lengths(clt_reshape(x, CLT_SHAPE(4, -1)), n, 2 * l);
    assert_lengths(clt_reshape(clt_reshape(x, CLT_SHAPE(-1, 2)), CLT_SHAPE(4, CLT_LENGTH, 2)), n, l, 2);
    assert_lengths(clt_reshape(clt_reshape(x, CLT_SHAPE(-1, 2)), CLT_SHAPE(CLT_BATCH, -1, 2)), n, l, 2);
    assert_lengths(clt_reshape(x, CLT_SHAPE(0, 0, 1, -1)), n, l, 1, 2);
    assert_lengths(clt_transpose(x, 1, 2), n, 2, l);
    assert_lengths(clt_sum(x, CLT_AXES(1)), n, 2);
    assert_lengths(clt_softmax(x, 1), n, l, 2);
    assert_lengths(clt_slice(x, 1, -1, 99, 1), n, 1, 2);  /* the last place */
    assert_lengths(clt_slice(x, 1, 0, 99, 2), n, (l + 1) / 2, 2);
    assert_lengths(longer(x), n, l + 1, 2);
    assert_lengths(clt_slice(longer(x), 1, 0, -1, 1), n, l, 2); /* all but the last */
    assert_lengths(clt_linear(clt_slice(x, 1, 0, 99, 2), "fc", 3), n, (l + 1) / 2, 3); /* one place less has as many */
    assert_lengths(clt_add(x, clt_slice(parameter(g, "p", CLT_SHAPE(9, 2)), 0, 0, CLT_LENGTH, 1)), n, l, 2);
    assert_lengths(clt_add(longer(x), clt_slice(parameter(g, "p", CLT_SHAPE(9, 2)), 0, 0, CLT_LENGTH + 1, 1)), n, l + 1, 2);
    assert_lengths(clt_rotary(clt_reshape(longer(x), CLT_SHAPE(CLT_BATCH, 1, CLT_LENGTH + 1, -1))), n, 1, l + 1, 2);
    assert_lengths(clt_linear(clt_transpose(clt_reshape(longer(x), CLT_SHAPE(0, 1, CLT_LENGTH + 1, 2)), 1, 2), "fc", 3), n, l + 1, 1, 3);
    assert_lengths(clt_slice(clt_reshape(x, CLT_SHAPE(-1, 2)), 0, 0, CLT_LENGTH, 1), l, 2);
    assert_lengths(clt_slice(clt_slice(parameter(g, "p", CLT_SHAPE(6, 6)), 0, 0, CLT_LENGTH, 1), 1, 0, CLT_LENGTH, 1), l, l);
    assert_lengths(clt_expand(parameter(g, "p", CLT_SHAPE(1, 1, 2)), CLT_SHAPE(CLT_BATCH, CLT_LENGTH, 2)), n, l, 2);
    assert_lengths(clt_mul(x, clt_fill(g, CLT_SHAPE(CLT_LENGTH, 1), 3)), n, l, 2);
    assert_lengths(clt_attention(clt_reshape(x, CLT_SHAPE(0, 1, CLT_LENGTH, 2)), clt_reshape(x, CLT_SHAPE(0, 1, CLT_LENGTH, 2)),
                                 clt_reshape(x, CLT_SHAPE(0, 1, CLT_LENGTH, 2)), .causal = true), n, 1, l, 2);
    assert_lengths(clt_conv1d(clt_transpose(x, 1, 2), "conv", 3, .kernel = 3, .padding = 1), n, 3, l);
    assert_lengths(clt_cumsum(x, 1), n, l, 2);
    assert_lengths(clt_argmax(x, 2), n, l);
    assert_lengths(clt_one_hot(clt_argmax(x, 2), 5), n, l, 5);
    assert_lengths(clt_index_select(x, 2, clt_constant(g, "c", &(clt_array){CLT_I32, CLT_SHAPE(3), (int32_t[3]){0}})), n, l, 3);
    assert_lengths(clt_unsqueeze(x, 1), n, 1, l, 2);
    assert_lengths(clt_unsqueeze(x, -1), n, l, 2, 1);
    assert_lengths(clt_squeeze(clt_unsqueeze(x, 2), 2), n, l, 2);
    assert_lengths(clt_stack(((clt_tensor *[]){x, x, x}), 3, 1), n, 3, l, 2);
    assert_lengths(clt_group_norm(clt_transpose(x, 1, 2), "gn", 2), n, 2, l);
    assert_lengths(clt_rms_norm(x, "rn", 1), n, l, 2);
    assert_lengths(clt_rotary(clt_reshape(x, CLT_SHAPE(0, 1, CLT_LENGTH, -1)), .base = 100), n, 1, l, 2);
    assert_lengths(clt_reshape(parameter(g, "p", CLT_SHAPE(4 * 6)), CLT_SHAPE(4, 6)), 4, 6); /* the sizes are no batch, no length */
}

/* A graph that is declared for one sample serves more. */
static void one_sample_may_become_many(void **state) {
    (void)state;
    clt_graph *g = new_graph(), *clone;
    clt_tensor *x = clt_input(g, "x", CLT_F32, CLT_SHAPE(1, 3, 2));
    clt_tensor *y = clt_linear(clt_transpose(x, 0, 1), "fc", 5); /* the batch in the middle */
    clt_tensor *z = clt_reshape(clt_linear(clt_concat(((clt_tensor *[]){x, x}), 2, 0), "twice", 1), CLT_SHAPE(-1));
    assert_ok(clt_graph_status(g));
    assert_shape(clone_of(y, 7, &clone), CLT_SHAPE(3, 7, 5));
    clt_graph_destroy(clone);
    assert_shape(clone_of(z, 7, &clone), CLT_SHAPE(2 * 7 * 3));
    clt_graph_destroy(clone);
    clt_graph_destroy(g);
}

/* Layers of images and recurrent ones, at every batch. */
static void layers_follow_the_batch(void **state) {
    (void)state;
    for (int64_t batch = 1; batch <= 5; batch++) {
        clt_graph *g = new_graph(), *clone;
        clt_tensor *image = clt_input(g, "image", CLT_F32, CLT_SHAPE(batch, 4, 5, 3)), *x = clt_input(g, "x", CLT_F32, CLT_SHAPE(batch, 3, 4));
        clt_tensor *ys[] = {clt_conv_transpose2d(image, "up", 6, .kernel = 2, .stride = 2), clt_upsample_bilinear2d(image, 7, 2), clt_adaptive_avg_pool2d(image, 2, 2),
                            clt_lstm(x, "lstm", 5, .layers = 2, .bidirectional = true), clt_gru(x, "gru", 2)};
        const clt_shape shapes[] = {CLT_SHAPE(0, 6, 10, 6), CLT_SHAPE(0, 4, 7, 2), CLT_SHAPE(0, 4, 2, 2), CLT_SHAPE(0, 3, 10), CLT_SHAPE(0, 3, 2)};
        assert_ok(clt_graph_status(g));
        for (size_t i = 0; i < CLT_COUNT_OF(ys); i++)
            for (int64_t n = 1; n <= 7; n += 2) {
                clt_shape wanted = shapes[i];
                wanted.dims[0] = n;
                assert_shape(clone_of(ys[i], n, &clone), wanted);
                clt_graph_destroy(clone);
            }
        clt_graph_destroy(g);
    }
}

/* A size that is the batch by chance stays what it is. */
static void sizes_may_be_those_of_the_batch(void **state) {
    (void)state;
    for (int64_t batch = 1; batch <= 8; batch++) {
        clt_graph *g = new_graph(), *clone;
        clt_tensor *x = clt_input(g, "x", CLT_F32, CLT_SHAPE(batch, 3, 4));
        clt_tensor *turned = clt_permute(clt_concat(((clt_tensor *[]){x, clt_tanh(x)}), 2, 0), (const int[]){2, 0, 1}); /* [4, 2 batch, 3] */
        clt_tensor *y = clt_linear(turned, "fc", 5);
        clt_tensor *z = clt_reshape(clt_transpose(clt_linear(clt_flatten(x), "wide", 24), 0, 1), CLT_SHAPE(4, 6, -1));
        clt_tensor *w = clt_linear(clt_permute(clt_slice(x, 0, 0, INT64_MAX, 2), (const int[]){1, 0, 2}), "half", 5); /* [3, batch / 2, 5] */
        assert_ok(clt_graph_status(g));
        for (int64_t n = 1; n <= 7; n += 2) {
            assert_shape(clone_of(y, n, &clone), CLT_SHAPE(4, 2 * n, 5));
            clt_graph_destroy(clone);
            assert_shape(clone_of(z, n, &clone), CLT_SHAPE(4, 6, n));
            clt_graph_destroy(clone);
            assert_shape(clone_of(w, n, &clone), CLT_SHAPE(3, (n + 1) / 2, 5));
            clt_graph_destroy(clone);
        }
        clt_graph_destroy(g);
    }
}

/* A number is what it stands for at all sizes, if that is one thing; else the graph is for the size at which it was built. */
typedef struct reading {
    const char *what;
    clt_shape x, shape; /* of x: batch and length by their codes, in front -1 for twice the batch */
    int64_t batch, length;
    clt_shape then; /* at batch 3 and length 10; rank -1: refused */
} reading;

static void numbers_stand_for_sizes(void **state) {
    (void)state;
    enum { N = CLT_BATCH, T = CLT_LENGTH };
    const clt_shape refused = {.rank = -1};
    static const int64_t no_length = 0;
    const reading readings[] = {
        {"rows and back, all numbers", CLT_SHAPE(N, T, 2), CLT_SHAPE(4, 6, 2), 4, 6, CLT_SHAPE(3, 10, 2)},
        {"heads, the length a number", CLT_SHAPE(N, T, 8), CLT_SHAPE(4, 6, 2, -1), 4, 6, CLT_SHAPE(3, 10, 2, 4)},
        {"heads of as many as the length", CLT_SHAPE(N, T, 64), CLT_SHAPE(N, -1, 8, 8), 4, 8, CLT_SHAPE(3, 10, 8, 8)},
        {"a width that is the length", CLT_SHAPE(N, T, 8), CLT_SHAPE(-1, 8), 4, 8, CLT_SHAPE(30, 8)},
        {"a width that is a multiple of the batch", CLT_SHAPE(T, N, 8), CLT_SHAPE(-1, 8), 4, 6, CLT_SHAPE(30, 8)},
        {"heads of the batch, time first", CLT_SHAPE(T, N, 8), CLT_SHAPE(-1, 8, 4), 4, 6, CLT_SHAPE(10, 6, 4)},
        {"channels, the length last", CLT_SHAPE(N, 12, T), CLT_SHAPE(N, 3, -1, 8), 4, 8, CLT_SHAPE(3, 3, 4, 10)},
        {"the batch after the length", CLT_SHAPE(T, N, 4), CLT_SHAPE(1, 6, 4, 4), 4, 6, CLT_SHAPE(1, 10, 3, 4)},
        {"a multiple of the length", CLT_SHAPE(N, T, 6), CLT_SHAPE(0, 12, 3), 4, 6, CLT_SHAPE(3, 20, 3)},
        {"a dimension in front of the batch", CLT_SHAPE(8, N), CLT_SHAPE(4, 2, -1), 4, no_length, CLT_SHAPE(4, 2, 3)},
        {"the batch in front", CLT_SHAPE(N, 4, 6), CLT_SHAPE(4, 4, 2, -1), 4, no_length, CLT_SHAPE(3, 4, 2, 3)},
        {"windows of the length", CLT_SHAPE(N, T, 4), CLT_SHAPE(-1, 5, 4), 4, 20, CLT_SHAPE(6, 5, 4)},
        {"windows that do not fit", CLT_SHAPE(N, T, 4), CLT_SHAPE(-1, 3, 4), 4, 6, refused},
        {"the batch or two", CLT_SHAPE(-1, 3), CLT_SHAPE(2, -1, 3), 2, no_length, refused},
        {"two where the batch is 4", CLT_SHAPE(-1, 3), CLT_SHAPE(2, -1, 3), 4, no_length, CLT_SHAPE(2, 3, 3)},
        {"the length stays in front of a width", CLT_SHAPE(N, T, 4), CLT_SHAPE(N, 4, -1), 2, 4, CLT_SHAPE(3, 10, 4)},
        {"the batch and 3", CLT_SHAPE(N, 3), CLT_SHAPE(3, 4), 4, no_length, CLT_SHAPE(3, 3)},
    };
    for (size_t i = 0; i < sizeof readings / sizeof *readings; i++) {
        const reading *r = &readings[i];
        clt_graph *g = new_graph(), *clone;
        clt_shape first = {.rank = 1 + (r->length > 0), .dims = {r->batch, r->length}}, whole = r->x;
        bool twice = whole.dims[0] == -1; /* twice the batch */
        if (twice) whole.dims[0] = N;
        for (int d = 0; d < whole.rank; d++)
            if (whole.dims[d] > 0) first.dims[first.rank++] = whole.dims[d];
        clt_tensor *x = r->length ? clt_sequence_input(g, "x", CLT_F32, first, 1) : clt_input(g, "x", CLT_F32, first), **map;
        int order[CLT_MAX_RANK], next = 1 + (r->length > 0);
        for (int d = 0; d < whole.rank; d++) order[d] = whole.dims[d] == N ? 0 : whole.dims[d] == T ? 1 : next++;
        x = clt_permute(x, order);
        if (twice) x = clt_concat(((clt_tensor *[]){x, x}), 2, 0);
        clt_tensor *y = clt_reshape(x, r->shape);
        assert_ok(clt_graph_status(g));
        clt_status status = clt_graph_clone(g, &y, 1, (clt_sizes){3, r->length ? 10 : 0}, &clone, &map);
        if ((status < 0) != (r->then.rank < 0)) fail_msg("%s: %s", r->what, status < 0 ? clt_error_detail() : "it was not refused");
        if (status < 0) assert_int_equal(status, CLT_E_SHAPE);
        else {
            if (!clt_shape_equal(&map[y->index]->shape, &r->then)) fail_msg("%s: another shape", r->what);
            clt_free(map);
            clt_graph_destroy(clone);
        }
        clt_graph_destroy(g);
    }
}

static void lengths_are_checked(void **state) {
    (void)state;
    static const struct {
        clt_shape shape;
        int axis;
        const char *words;
    } wrong[] = {
        {CLT_SHAPE(4, 6), 0, "axis 0 of [4, 6]; it must be in [1, 1]"},
        {CLT_SHAPE(4, 6), 2, "axis 2 of [4, 6]"},
        {CLT_SHAPE(4, 6), -1, "axis -1"},
        {CLT_SHAPE(4, 5), 1, "the length is 5; that of the graph's others is 6"},
        {CLT_SHAPE(4, 0), 1, "the length is 0"},
        {CLT_SHAPE(CLT_LENGTH, 6), 1, "dimension 0 is CLT_LENGTH"},
        {CLT_SHAPE(4, CLT_LENGTH - 1), 1, "of the graph's others is 6"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        clt_graph *g = new_graph();
        clt_sequence_input(g, "first", CLT_F32, CLT_SHAPE(4, 2, 6), 2);
        clt_sequence_input(g, "as it is", CLT_F32, CLT_SHAPE(CLT_BATCH, CLT_LENGTH), 1);
        assert_ok(clt_graph_status(g));
        clt_sequence_input(g, "y", CLT_F32, wrong[i].shape, wrong[i].axis);
        assert_status(clt_graph_status(g), i < 3 ? CLT_E_INVALID : CLT_E_SHAPE);
        assert_detail(wrong[i].words);
        clt_graph_destroy(g);
    }
    clt_graph *g = new_graph();
    clt_fill(g, CLT_SHAPE(CLT_LENGTH), 1);
    assert_status(clt_graph_status(g), CLT_E_SHAPE);
    assert_detail("CLT_LENGTH before the graph has a sequence input");
    clt_graph_destroy(g);
    g = new_graph();
    clt_slice(clt_input(g, "x", CLT_F32, CLT_SHAPE(4, 2)), 0, 0, CLT_LENGTH, 1);
    assert_status(clt_graph_status(g), CLT_E_SHAPE);
    assert_detail("CLT_LENGTH before the graph has a sequence input");
    clt_graph_destroy(g);
    g = new_graph();
    clt_sequence_input(g, "x", CLT_F32, CLT_SHAPE(4, 6, 2), 1);
    clt_slice(parameter(g, "p", CLT_SHAPE(5, 2)), 0, 0, CLT_LENGTH, 1);
    assert_status(clt_graph_status(g), CLT_E_SHAPE);
    assert_detail("axis 0 of [5, 2] has fewer places than the length asked for, 6");
    clt_graph_destroy(g);
    assert_null(clt_sequence_input(NULL, "x", CLT_F32, CLT_SHAPE(4, 6), 1));
}

/* Where two dimensions follow, as multiples of the batch, the length or both. */
static void multiples_follow(void **state) {
    (void)state;
    for (int i = 0; i < 6; i++) {
        clt_graph *g = new_graph(), *clone;
        clt_tensor *x = clt_sequence_input(g, "x", CLT_F32, CLT_SHAPE(4, 6, 3), 1), **map, *y = NULL;
        clt_tensor *rows = clt_reshape(clt_slice(x, 1, 1, INT64_MAX, 1), CLT_SHAPE(-1, 3));
        clt_tensor *pairs = clt_concat((clt_tensor *[]){x, x}, 2, 1), *twins = clt_concat((clt_tensor *[]){x, x}, 2, 0);
        clt_tensor *of_places = clt_matmul_with(pairs, pairs, (clt_matmul_options){.transpose_b = true});
        clt_tensor *flat = clt_mean(twins, CLT_AXES(1)), *of_samples = clt_matmul_with(flat, flat, (clt_matmul_options){.transpose_b = true});
        clt_shape at = CLT_SHAPE(3, 10, 10), wanted[] = {CLT_SHAPE(3, 1, 10, 10), CLT_SHAPE(6, 1, 6), CLT_SHAPE(2, 6, 6), CLT_SHAPE(3, 10, 10, 7), CLT_SHAPE(6, 6), CLT_SHAPE(12, 12, 1)};
        switch (i) {
        case 0: y = clt_unsqueeze(of_places, 1); break;
        case 1: y = clt_unsqueeze(of_samples, 1); break;
        case 2: y = clt_stack((clt_tensor *[]){of_samples, of_samples}, 2, 0); break;
        case 3: y = clt_linear(clt_expand(clt_unsqueeze(of_places, 3), CLT_SHAPE(-1, -1, -1, 2)), "fc", 7); break;
        case 4: y = clt_squeeze(clt_unsqueeze(of_samples, 0), 0); break;
        case 5: y = clt_unsqueeze(clt_matmul_with(rows, rows, (clt_matmul_options){.transpose_b = true}), 2); break; /* N (T - 1) of each */
        }
        assert_ok(clt_graph_status(g));
        assert_ok(clt_graph_clone(g, &y, 1, (clt_sizes){.batch = at.dims[0], .length = at.dims[1] / 2}, &clone, &map));
        assert_shape(map[y->index], wanted[i]);
        clt_free(map);
        clt_graph_destroy(clone);
        clt_graph_destroy(g);
    }
}

/* Half of the places, rounded up, is no multiple: an axis is added to two such dimensions, but rows are not shaped into them. */
static void what_is_no_multiple_is_refused(void **state) {
    (void)state;
    clt_graph *g = new_graph(), *clone;
    clt_tensor *x = clt_sequence_input(g, "x", CLT_F32, CLT_SHAPE(4, 6, 3), 1), *half = clt_slice(x, 1, 0, INT64_MAX, 2), **map;
    clt_tensor *y = clt_unsqueeze(clt_matmul_with(half, half, (clt_matmul_options){.transpose_b = true}), 3);
    assert_ok(clt_graph_status(g));
    assert_ok(clt_graph_clone(g, &y, 1, (clt_sizes){.batch = 3, .length = 3}, &clone, &map));
    assert_shape(map[y->index], CLT_SHAPE(3, 2, 2, 1));
    clt_free(map);
    clt_graph_destroy(clone);
    clt_linear(clt_expand(y, CLT_SHAPE(-1, -1, -1, 2)), "fc", 7);
    assert_status(clt_graph_status(g), CLT_E_UNSUPPORTED);
    assert_detail("[36, 7] to [batch, -1, -1, 7]: more than one dimension");
    clt_graph_destroy(g);
}

/* A dimension that changes at no length that is tried: who builds on it is told a number, and a clone of a length where it is another is refused. */
static void what_was_told_is_kept(void **state) {
    (void)state;
    for (int told = 0; told < 2; told++) {
        clt_graph *g = new_graph(), *clone;
        clt_tensor *x = clt_sequence_input(g, "x", CLT_F32, CLT_SHAPE(2, 400, 2), 1), *few = clt_slice(x, 1, 340, INT64_MAX, 20), **map = NULL;
        clt_tensor *y = told ? clt_linear(clt_unsqueeze(few, 1), "fc", 3) : clt_mul_scalar(few, 2);
        assert_ok(clt_graph_status(g));
        assert_ok(clt_graph_clone(g, &y, 1, (clt_sizes){.batch = 3, .length = 399}, &clone, &map));
        clt_free(map);
        clt_graph_destroy(clone);
        clt_status status = clt_graph_clone(g, &y, 1, (clt_sizes){.batch = 3, .length = 380}, &clone, &map);
        assert_status(status, told ? CLT_E_SHAPE : CLT_OK);
        if (told) assert_detail("at this batch and length, where [batch, 3, 2] was expected from those that were tried");
        else clt_free(map), clt_graph_destroy(clone);
        clt_graph_destroy(g);
    }
}

/* What only fits because a size of one stretches was built for the graph's own size. */
static void a_size_of_one_stretches_nothing(void **state) {
    (void)state;
    for (int i = 0; i < 5; i++) {
        clt_graph *g = new_graph(), *clone;
        clt_tensor *x = clt_sequence_input(g, "x", CLT_F32, CLT_SHAPE(4, 3, 2), 1), **map, *y = NULL;
        clt_sizes sizes = {.batch = i % 2 ? 3 : 1, .length = i % 2 ? 1 : 3};
        switch (i) {
        case 0: y = clt_add(x, clt_fill(g, CLT_SHAPE(4, 1, 2), 3)); break;
        case 1: y = clt_mul(clt_fill(g, CLT_SHAPE(3, 2), 3), x); break;
        case 2: y = clt_matmul(x, clt_fill(g, CLT_SHAPE(4, 2, 5), 3)); break;
        case 3: y = clt_where(clt_fill(g, CLT_SHAPE(3, 1), 1), clt_sum(x, CLT_AXES(0)), clt_relu(clt_sum(x, CLT_AXES(0)))); break;
        case 4: y = clt_where(clt_fill(g, CLT_SHAPE(4, 3, 2), 1), x, x); break;
        }
        assert_ok(clt_graph_status(g));
        assert_status(clt_graph_clone(g, &y, 1, sizes, &clone, &map), CLT_E_SHAPE);
        assert_non_null(strstr(clt_error_detail(), i == 3 ? "where: dimension 0 of operand 1 is 1, and was 3 where the graph was built: it is not stretched to 3" : "is not stretched to"));
        clt_graph_destroy(g);
    }
}

/* Parameters whose sizes are those of the batch stay; so does what is made of them alone. */
static void parameters_of_the_batch_size_stay(void **state) {
    (void)state;
    clt_graph *g = new_graph(), *clone;
    clt_tensor *x = clt_input(g, "x", CLT_F32, CLT_SHAPE(4, 4));
    clt_tensor *weight = clt_parameter(g, "weight", CLT_SHAPE(4, 4), (clt_init){0});
    clt_tensor *turned = clt_reshape(clt_reshape(weight, CLT_SHAPE(16)), CLT_SHAPE(4, 2, 2));
    clt_tensor *row = clt_slice(weight, 0, 0, 1, 1);
    clt_tensor *y = clt_add(clt_matmul(x, clt_reshape(turned, CLT_SHAPE(4, 4))), clt_reshape(row, CLT_SHAPE(4)));
    clt_tensor *column = clt_slice(weight, 1, 0, 1, 1), *wide = clt_expand(column, CLT_SHAPE(4, 7));
    clt_tensor *targets[] = {y, turned, weight, wide}, **map;
    assert_ok(clt_graph_clone(g, targets, 4, (clt_sizes){.batch = 9}, &clone, &map));
    assert_shape(map[wide->index], CLT_SHAPE(4, 7));
    assert_shape(map[y->index], CLT_SHAPE(9, 4));
    assert_shape(map[turned->index], CLT_SHAPE(4, 2, 2));
    assert_shape(map[weight->index], CLT_SHAPE(4, 4));
    assert_ptr_equal(map[weight->index]->variable, weight->variable);
    assert_int_equal(map[weight->index]->kind, CLT_NODE_VARIABLE);
    clt_free(map);
    clt_graph_destroy(clone);
    clt_graph_destroy(g);
}

/* ---- what is in a clone ---- */

static void inputs_stay_in_order(void **state) {
    (void)state;
    clt_graph *g = new_graph(), *clone;
    clt_tensor *x = clt_input(g, "x", CLT_F32, CLT_SHAPE(4, 3));
    clt_tensor *labels = clt_input(g, "labels", CLT_I32, CLT_SHAPE(4));
    clt_tensor *unused = clt_relu(x), *y = clt_exp(x);
    clt_tensor *copy = clone_of(y, 0, &clone);
    assert_shape(copy, CLT_SHAPE(4, 3));
    const clt_tensor *inputs[2] = {0};
    int n = 0, ops = 0;
    for (size_t i = 0; i < clone->n_nodes; i++) {
        if (clone->nodes[i]->kind == CLT_NODE_INPUT && n < 2) inputs[n++] = clone->nodes[i];
        ops += clone->nodes[i]->kind == CLT_NODE_OP;
    }
    assert_int_equal(n, 2);
    assert_int_equal(ops, 1);
    assert_string_equal(clt_tensor_name(inputs[0]), "x");
    assert_string_equal(clt_tensor_name(inputs[1]), "labels");
    assert_int_equal(clt_tensor_dtype(inputs[1]), CLT_I32);
    clt_graph_destroy(clone);
    (void)unused, (void)labels;
    clt_graph_destroy(g);
}

static void a_clone_makes_no_variables(void **state) {
    (void)state;
    clt_graph *g = new_graph(), *clone;
    clt_tensor *y = clt_linear(clt_input(g, "x", CLT_F32, CLT_SHAPE(4, 3)), "fc", 2);
    clt_tensor *copy = clone_of(y, 2, &clone);
    assert_int_equal(clt_graph_parameter_count(clone), 0);
    clt_linear(copy, "more", 2);
    assert_status(clt_graph_status(clone), CLT_E_STATE);
    assert_detail("more.weight");
    clt_graph_destroy(clone);
    assert_ok(clt_graph_status(g));
    clt_graph_destroy(g);
}

/* A batch that no reshape can follow is an error that says which. */
static void what_does_not_fit_is_refused(void **state) {
    (void)state;
    clt_graph *g = new_graph(), *clone = NULL;
    clt_tensor **map = NULL, *x = clt_input(g, "x", CLT_F32, CLT_SHAPE(4, 3));
    clt_tensor *y = clt_reshape(x, CLT_SHAPE(2, 6));
    assert_status(clt_graph_clone(g, &y, 1, (clt_sizes){.batch = 2}, &clone, &map), CLT_E_SHAPE);
    assert_detail("reshape");
    assert_detail("[2, 3]");
    assert_ok(clt_graph_status(g));
    clt_graph_destroy(g);
}

static clt_status half_shape(const clt_shape *inputs, int n_inputs, clt_shape *result, void *user) {
    (void)n_inputs, (void)user;
    *result = CLT_SHAPE(inputs[0].dims[0], inputs[0].dims[1] / 2);
    return CLT_OK;
}

/* What attributes hold is shared rightly: either graph may go first. */
static void user_ops_survive_either_graph(void **state) {
    (void)state;
    const clt_user_op op = {.name = "half",
                            .source = "",
                            .n_inputs = 1,
                            .shape = half_shape,
                            .forward = "forward",
                            .backward = {"backward"}};
    for (int order = 0; order < 2; order++) {
        clt_graph *g = new_graph(), *clone;
        clt_tensor *x = clt_input(g, "x", CLT_F32, CLT_SHAPE(4, 6));
        clt_tensor *seed = clt_input(g, "seed", CLT_F32, CLT_SHAPE(4, 3));
        clt_tensor *y = clt_apply(&op, &x, NULL, 0), *dx, **map;
        assert_ok(clt_gradients(y, seed, &x, 1, &dx));
        assert_ok(clt_graph_clone(g, &dx, 1, (clt_sizes){0}, &clone, &map));
        assert_shape(map[dx->index], CLT_SHAPE(4, 6));
        assert_shape(map[y->index], CLT_SHAPE(4, 3));
        clt_free(map);
        clt_graph_destroy(order ? g : clone);
        clt_graph_destroy(order ? clone : g);
    }
}

static void dropout_keeps_its_site(void **state) {
    (void)state;
    clt_graph *g = new_graph(), *clone;
    clt_tensor *x = clt_input(g, "x", CLT_F32, CLT_SHAPE(4, 3));
    clt_tensor *y = clt_dropout(clt_dropout(x, 0.5f), 0.25f), *copy = clone_of(y, 2, &clone);
    const clt_dropout_attributes *at = copy->attributes;
    assert_int_equal(at->site, 1);
    assert_non_null(clone->rng);
    assert_ptr_equal(copy->inputs[1], clone->rng);
    assert_int_equal(clone->n_random_sites, 2);
    clt_graph_destroy(clone);
    clt_graph_destroy(g);
}

/* ---- values ---- */

/* Of a graph and of its clone, each differentiated for itself: what a gradient divides by is the batch's. */
typedef struct model {
    clt_graph *graph;
    clt_tensor *x, *seed, *y, *dx;
} model;

static clt_tensor *build_model(clt_graph *graph) {
    clt_tensor *x = clt_input(graph, "x", CLT_F32, CLT_SHAPE(6, 2, 5, 4));
    clt_tensor *h = clt_layer_norm(clt_conv2d(x, "conv", 4, .kernel = 3, .padding = 1), "ln", 3);
    h = clt_avg_pool2d(clt_max_pool2d(h, .kernel = 2), .kernel = 2);
    return clt_softmax(clt_linear(clt_flatten(clt_tanh(h)), "fc", 3), 1);
}

static void differentiate(model *m) {
    m->seed = clt_input(m->graph, "seed", CLT_F32, m->y->shape);
    assert_ok(clt_graph_status(m->graph));
    assert_ok(clt_gradients(m->y, m->seed, &m->x, 1, &m->dx));
}

static clt_tensor *first_input(const clt_graph *graph) {
    for (size_t i = 0; i < graph->n_nodes; i++)
        if (graph->nodes[i]->kind == CLT_NODE_INPUT) return graph->nodes[i];
    fail_msg("a graph without inputs");
    return NULL;
}

static void set_variables(clt_state_store *store, const clt_graph *graph) {
    clt_random random;
    clt_random_init(&random, 5, 0);
    for (size_t i = 0; i < graph->n_nodes; i++) {
        const clt_tensor *node = graph->nodes[i];
        if (node->kind != CLT_NODE_VARIABLE) continue;
        float values[256];
        for (int64_t k = 0; k < clt_tensor_elements(node); k++) values[k] = (float)clt_random_uniform(&random) - 0.5f;
        op_variable_write(store, node, values);
    }
}

/* y and dx, for as many rows of x as the model has. */
static void run(clt_state_store *store, const model *m, const float *x, float *y, float *dx) {
    static const float seeds[18] = {1, -1, 0.5f, 2, 0, -1, 1, 1, -2, 0.25f, 1, 0, 3, -1, 1, 0, 0, 1};
    clt_tensor *targets[] = {m->y, m->dx};
    clt_plan *plan;
    assert_ok(clt_plan_compile(&plan, &(clt_plan_options){.device = op_device(),
                                                          .store = store,
                                                          .graph = m->graph,
                                                          .targets = targets,
                                                          .n_targets = 2,
                                                          .training = true}));
    assert_ok(clt_plan_feed(plan, m->x, x));
    assert_ok(clt_plan_feed(plan, m->seed, seeds));
    assert_ok(clt_plan_run(plan));
    assert_ok(clt_plan_read(plan, m->y, y, (size_t)clt_tensor_elements(m->y) * sizeof *y));
    assert_ok(clt_plan_read(plan, m->dx, dx, (size_t)clt_tensor_elements(m->dx) * sizeof *dx));
    clt_plan_destroy(plan);
}

/* No row looks at another, so a smaller batch gives the same rows, with the same variables. */
static void smaller_batch_gives_the_same_rows(void **state) {
    (void)state;
    model whole = {.graph = new_graph()}, part = {0};
    clt_state_store *store;
    float x[240], y[18], dx[240], part_y[12], part_dx[160];
    clt_random random;
    clt_random_init(&random, 8, 0);
    for (int i = 0; i < 240; i++) x[i] = (float)clt_random_uniform(&random) - 0.5f;
    whole.y = build_model(whole.graph);
    part.y = clone_of(whole.y, 4, &part.graph);
    whole.x = first_input(whole.graph);
    part.x = first_input(part.graph);
    differentiate(&whole);
    differentiate(&part);
    assert_shape(part.dx, CLT_SHAPE(4, 2, 5, 4));
    assert_ok(clt_state_store_create(op_device(), &store));
    set_variables(store, whole.graph);
    run(store, &whole, x, y, dx);
    run(store, &part, x, part_y, part_dx);
    double most = 0;
    for (int i = 0; i < 12; i++) assert_true(fabsf(y[i] - part_y[i]) <= 1e-6f);
    for (int i = 0; i < 160; i++) {
        assert_true(fabsf(dx[i] - part_dx[i]) <= 1e-6f);
        most = fmax(most, fabs(dx[i]));
    }
    assert_true(most > 1e-3);
    clt_state_store_destroy(store);
    clt_graph_destroy(part.graph);
    clt_graph_destroy(whole.graph);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shapes_follow_the_batch),
        cmocka_unit_test(shapes_follow_the_length),
        cmocka_unit_test(layers_follow_the_batch),
        cmocka_unit_test(sizes_may_be_those_of_the_batch),
        cmocka_unit_test(one_sample_may_become_many),
        cmocka_unit_test(numbers_stand_for_sizes),
        cmocka_unit_test(lengths_are_checked),
        cmocka_unit_test(a_size_of_one_stretches_nothing),
        cmocka_unit_test(multiples_follow),
        cmocka_unit_test(what_is_no_multiple_is_refused),
        cmocka_unit_test(what_was_told_is_kept),
        cmocka_unit_test(parameters_of_the_batch_size_stay),
        cmocka_unit_test(inputs_stay_in_order),
        cmocka_unit_test(a_clone_makes_no_variables),
        cmocka_unit_test(what_does_not_fit_is_refused),
        cmocka_unit_test(user_ops_survive_either_graph),
        cmocka_unit_test(dropout_keeps_its_site),
        cmocka_unit_test(smaller_batch_gives_the_same_rows),
    };
    return op_main("clone", tests, CLT_COUNT_OF(tests));
}
