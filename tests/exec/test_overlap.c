/* The pass that lets exchanges of gradients begin early: the order of nodes after it. */
#include "tests/support.h"

#include <stdio.h>
#include <string.h>

#include "runtime/exec/passes/passes.h"
#include "runtime/ops/ops.h"

enum { N = 2 * CLT_PACK_ALIGN, LAYERS = 4 };

static clt_device *device;

typedef struct step {
    clt_graph *graph;
    clt_tensor *samples;             /* of all ranks: exchanged before all else */
    clt_tensor *gradients[LAYERS];   /* in the order of backward */
    clt_tensor *exchanges[LAYERS];   /* the first of each bucket */
    clt_tensor *results[LAYERS];
} step;

static clt_tensor *state(clt_graph *g, const char *what, int i) {
    char name[32];
    snprintf(name, sizeof name, "%s.%d", what, i);
    return clt_state(g, name, CLT_F32, CLT_SHAPE(N));
}

/* Backward as a chain; then packs of all; then all collectives, made as the trainer makes them. */
static void build(step *s, clt_tensor *(*exchange)(step *s, clt_tensor *flat, int i)) {
    assert_ok(clt_graph_create(&s->graph));
    clt_tensor *x = clt_input(s->graph, "x", CLT_F32, CLT_SHAPE(N)), *flats[LAYERS];
    s->samples = clt_all_reduce(clt_state(s->graph, "samples", CLT_F32, CLT_SHAPE(1)), CLT_REDUCE_SUM);
    for (int i = 0; i < LAYERS; i++) s->gradients[i] = x = clt_softmax(x, 0);
    for (int i = 0; i < LAYERS; i++)
        flats[i] = clt_pack(state(s->graph, "gradients", i), &s->gradients[i], (int64_t[]){0}, 1);
    for (int i = 0; i < LAYERS; i++) s->results[i] = exchange(s, flats[i], i);
    for (int i = 0; i < LAYERS; i++) s->results[i]->kept = true;
    assert_ok(clt_graph_status(s->graph));
    assert_ok(clt_passes_run(s->graph, device, true));
}

static clt_tensor *sum(step *s, clt_tensor *flat, int i) {
    s->exchanges[i] = clt_all_reduce(flat, CLT_REDUCE_SUM);
    return clt_mul_scalar(s->exchanges[i], 2);
}

static clt_tensor *code(step *s, clt_tensor *flat, int i) {
    clt_compress_attributes at = {.ranks = 2};
    clt_tensor *wire = clt_encode(&clt_op_int8_encode, at, flat, state(s->graph, "residual", i), s->samples);
    s->exchanges[i] = clt_all_gather(wire, 0, 2);
    return clt_decode(&clt_op_int8_decode, at, flat, s->exchanges[i]);
}

static clt_tensor *sum_twice(step *s, clt_tensor *flat, int i) {
    s->exchanges[i] = clt_all_reduce(flat, CLT_REDUCE_SUM);
    return clt_all_reduce(clt_softmax(s->exchanges[i], 0), CLT_REDUCE_SUM);
}

/* Each collective comes before the next gradient is made, and in its turn; what is done with it comes after backward. */
static void check_order(const step *s) {
    for (int i = 0; i < LAYERS; i++) {
        if (i + 1 < LAYERS) assert_true(s->exchanges[i]->index < s->gradients[i + 1]->index);
        assert_true(s->exchanges[i]->index > s->gradients[i]->index);
        assert_true(s->results[i]->index > s->gradients[LAYERS - 1]->index);
        for (int k = 0; k < i; k++) assert_true(s->results[k]->index < s->results[i]->index);
    }
}

static void sums_begin_early(void **unused) {
    (void)unused;
    step s = {0};
    build(&s, sum);
    check_order(&s);
    clt_graph_destroy(s.graph);
}

static void compressed_gradients_begin_early(void **unused) {
    (void)unused;
    step s = {0};
    build(&s, code);
    check_order(&s);
    clt_graph_destroy(s.graph);
}

/* To wait for the first in the midst of backward would keep the device from the rest of that. */
static void an_exchange_of_what_was_exchanged_stays_behind(void **unused) {
    (void)unused;
    step s = {0};
    build(&s, sum_twice);
    check_order(&s);
    clt_graph_destroy(s.graph);
}

int main(void) {
    if (clt_device_open(&device, NULL) < 0) return puts(clt_error_detail()), 1;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sums_begin_early),
        cmocka_unit_test(compressed_gradients_begin_early),
        cmocka_unit_test(an_exchange_of_what_was_exchanged_stays_behind),
    };
    int failed = cmocka_run_group_tests_name("overlap", tests, NULL, NULL);
    clt_device_close(device);
    return failed;
}
