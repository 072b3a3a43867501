/* Attention for GPU-class devices, with tiles of all sizes, against the reference rows, whatever the device at hand is. */
#include "tests/support.h"

#include <math.h>
#include <string.h>

#include <cltrain/cltrain.h>

#include "backends/backend.h"
#include "tests/backends/compare.h"

enum { MOST = 1 << 16 };

static clt_device *device;
static bool simulated;

typedef struct variant {
    int64_t n, heads, key_heads, t, s, d;
    bool causal, mask, places;
    float dropout;
} variant;

static const variant variants[] = {
    {1, 2, 2, 67, 67, 20, .causal = true}, {2, 2, 1, 33, 70, 64, .mask = true},           {1, 4, 2, 40, 40, 32, .causal = true, .dropout = 0.3f},
    {1, 1, 1, 9, 130, 128},                {2, 2, 2, 35, 66, 8, .places = true},          {1, 1, 1, 1, 1, 1},
    {1, 1, 1, 5, 3, 128, .causal = true},  {1, 6, 2, 65, 31, 33, .mask = true, .dropout = 0.1f},
};

/* The result and its gradients: y, dq, dk and dv, one behind the other; their number. */
static size_t run(const variant *v, const char *backends, float *values) {
    static const char *const names[] = {"q", "k", "v"};
    clt_graph *graph;
    clt_trainer *trainer;
    int32_t ids[256];
    unsigned char shown[MOST];
    float one[2] = {1, 1};
    const clt_init init = {CLT_INIT_NORMAL, .value = 1};
    assert_ok(clt_graph_create(&graph));
    clt_tensor *x = clt_input(graph, "x", CLT_F32, CLT_SHAPE(v->n));
    clt_shape q = CLT_SHAPE(v->n, v->heads, v->t, v->d), k = CLT_SHAPE(v->n, v->key_heads, v->s, v->d), whole[3] = {q, k, k};
    clt_tensor *of[3], *mask = NULL, *places = NULL;
    for (int i = 0; i < 3; i++) of[i] = clt_parameter(graph, names[i], whole[i], init);
    for (int64_t i = 0; i < v->t * v->s; i++) shown[i] = i * 7 % 5 != 0 && i / v->s != 2; /* a query that sees no key */
    for (int64_t i = 0; i < v->n * v->t; i++) ids[i] = (int32_t)(i * 5 % v->s);
    if (v->mask) mask = clt_constant(graph, "mask", &(clt_array){CLT_U8, CLT_SHAPE(1, 1, v->t, v->s), shown});
    if (v->places) places = clt_constant(graph, "places", &(clt_array){CLT_I32, CLT_SHAPE(v->n, v->t), ids});
    clt_tensor *y = clt_attention(of[0], of[1], of[2], .causal = v->causal || v->places, .mask = mask, .position_ids = places, .dropout = v->dropout);
    clt_tensor *loss = clt_mul(clt_sum(clt_mul(y, clt_parameter(graph, "w", q, init)), CLT_ALL_AXES), clt_mean(x, CLT_ALL_AXES));
    assert_ok(clt_trainer_create(&trainer, device, loss, &(clt_train_options){.lr = CLT_ZERO, .seed = 3, .backends = backends}));
    clt_batch batch = {v->n, 1, {{CLT_F32, CLT_SHAPE(v->n), one}}};
    size_t count = (size_t)clt_shape_elements(&q), n = 0;
    assert_ok(clt_trainer_predict(trainer, y, &batch, values, count));
    assert_ok(clt_trainer_step(trainer, &batch));
    n += count;
    for (int i = 0; i < 3; i++, n += count) {
        count = (size_t)clt_shape_elements(&whole[i]);
        assert_true(n + count <= MOST);
        assert_ok(clt_trainer_get_gradient(trainer, names[i], values + n, count));
    }
    clt_trainer_destroy(trainer);
    clt_graph_destroy(graph);
    return n;
}

static void tiles_agree_with_the_reference(void **state) {
    (void)state;
    static float wanted[MOST], found[MOST], again[MOST];
    static const int tiles[] = {16, 32, 64};
    for (size_t i = 0; i < CLT_COUNT_OF(variants); i += simulated ? 3 : 1) {
        size_t n = run(&variants[i], "reference", wanted);
        double size = 0;
        for (size_t k = 0; k < n; k++) size += (double)wanted[k] * (double)wanted[k];
        for (size_t tile = variants[i].d > 64; tile < CLT_COUNT_OF(tiles); tile++) {
            if (tiles[tile] == 64 && clt_device_get_info(device)->local_memory_bytes < 36 * 1024) continue;
            const clt_tunable only[] = {{"tile", 1, {tiles[tile]}}, {0}};
            clt_backend_row rows[4];
            memcpy(rows, clt_gpu_attention_rows, sizeof rows);
            for (int k = 0; k < 3; k++) rows[k].tunables = only, rows[k].defaults = NULL, rows[k].name = "native";
            clt_backend_more_rows = rows;
            assert_int_equal(run(&variants[i], NULL, found), n);
            assert_int_equal(run(&variants[i], NULL, again), n);
            clt_backend_more_rows = NULL;
            double error = 0;
            for (size_t k = 0; k < n; k++) error += pow((double)found[k] - (double)wanted[k], 2);
            if (!(error <= 1e-11 * size)) fail_msg("variant %d, tiles of %d: an error of %g", (int)i, tiles[tile], error / size);
            assert_memory_equal(found, again, n * sizeof *found);
        }
    }
}

/* By default, too: what they serve, and what is left to others. */
static void rows_serve(void **state) {
    (void)state;
    static const struct {
        int64_t s, d;
        bool served;
    } cases[] = {{64, 64, true}, {64, 128, true}, {64, 136, false}, {1, 1, true}};
    for (size_t i = 0; i < CLT_COUNT_OF(cases); i++) {
        clt_graph *graph;
        assert_ok(clt_graph_create(&graph));
        clt_tensor *x = clt_input(graph, "x", CLT_F32, CLT_SHAPE(1, 1, cases[i].s, cases[i].d));
        const clt_tensor *y = clt_attention(x, x, x);
        assert_ok(clt_graph_status(graph));
        clt_choice choice = clt_backend_choose(y, device);
        assert_int_equal(choice.row->lower == clt_gpu_attention_rows[0].lower, cases[i].served);
        clt_graph_destroy(graph);
    }
}

static int open_device(void **state) {
    (void)state;
    device = compare_open_gpu(&simulated);
    return 0;
}

static int close_device(void **state) {
    (void)state;
    clt_device_close(device);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(tiles_agree_with_the_reference), cmocka_unit_test(rows_serve)};
    return cmocka_run_group_tests_name("gpu attention", tests, open_device, close_device);
}
