/* The gradient of a table for GPU-class devices, cut in all ways, against the reference row, whatever the device at hand is. */
#include "tests/support.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <cltrain/cltrain.h>

#include "backends/backend.h"
#include "tests/backends/compare.h"
#include "runtime/base/random.h"

static clt_device *device;
static bool simulated;

typedef struct variant {
    int64_t positions, rows, width;
    int64_t low, high; /* of the indices */
} variant;

static const variant variants[] = {
    {700, 41, 4, 0, 41},  {67, 3, 5, 0, 3},    {1, 1, 1, 0, 1},         {1500, 33, 260, 3, 9},
    {513, 17, 65, 0, 1},  {40, 1000, 8, 0, 5}, {17000, 7, 3, 0, 7},     {512, 16, 64, 15, 16},
};

static void run(const variant *v, const char *backends, float *gradient) {
    clt_graph *graph;
    clt_trainer *trainer;
    int32_t *indices = calloc((size_t)v->positions, sizeof *indices);
    clt_random random;
    assert_non_null(indices);
    clt_random_init(&random, 4, 1);
    for (int64_t i = 0; i < v->positions; i++) indices[i] = (int32_t)(v->low + (int64_t)clt_random_below(&random, (uint64_t)(v->high - v->low)));
    assert_ok(clt_graph_create(&graph));
    clt_tensor *x = clt_input(graph, "x", CLT_I32, CLT_SHAPE(v->positions));
    clt_tensor *weights = clt_parameter(graph, "of", CLT_SHAPE(v->positions, v->width), (clt_init){CLT_INIT_NORMAL, .value = 1});
    clt_tensor *loss = clt_sum(clt_mul(clt_embedding(x, "table", v->rows, v->width), weights), CLT_ALL_AXES);
    assert_ok(clt_trainer_create(&trainer, device, loss, &(clt_train_options){.lr = CLT_ZERO, .seed = 3, .backends = backends, .on_nonfinite = CLT_NONFINITE_IGNORE}));
    assert_ok(clt_trainer_step(trainer, &(clt_batch){v->positions, 1, {{CLT_I32, CLT_SHAPE(v->positions), indices}}}));
    assert_ok(clt_trainer_get_gradient(trainer, "table.weight", gradient, (size_t)(v->rows * v->width)));
    clt_trainer_destroy(trainer);
    clt_graph_destroy(graph);
    free(indices);
}

static void assert_close(const float *found, const float *wanted, size_t n) {
    double error = 0, size = 0;
    for (size_t k = 0; k < n; k++) {
        error += pow((double)found[k] - (double)wanted[k], 2);
        size += pow((double)wanted[k], 2);
    }
    assert_true(error <= 1e-11 * size);
}

/* Bit by bit, up to as many positions as the reference adds up in one launch. */
static void cuts_agree_with_the_reference(void **state) {
    (void)state;
    static const int rows[] = {16, 8, 4, 2, 1};
    for (size_t i = 0; i < CLT_COUNT_OF(variants); i += simulated ? 3 : 1) {
        const variant *v = &variants[i];
        size_t n = (size_t)(v->rows * v->width);
        float *wanted = malloc(n * sizeof *wanted), *found = malloc(n * sizeof *found);
        assert_true(wanted && found);
        run(v, "reference", wanted);
        for (size_t k = 0; k < CLT_COUNT_OF(rows); k += simulated ? 2 : 1) {
            const clt_tunable only[] = {{"rows", 1, {rows[k]}}, {0}};
            clt_backend_row table[2];
            memcpy(table, clt_gpu_embedding_rows, sizeof table);
            table[0].tunables = only, table[0].defaults = NULL;
            clt_backend_more_rows = table;
            run(v, NULL, found);
            clt_backend_more_rows = NULL;
            if (v->positions > 8192) assert_close(found, wanted, n);
            else assert_memory_equal(found, wanted, n * sizeof *found);
        }
        free(wanted);
        free(found);
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
    const struct CMUnitTest tests[] = {cmocka_unit_test(cuts_agree_with_the_reference)};
    return cmocka_run_group_tests_name("gpu embedding", tests, open_device, close_device);
}
