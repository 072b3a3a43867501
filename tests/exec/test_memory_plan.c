#include "tests/support.h"

#include <stdlib.h>

#include "runtime/base/random.h"
#include "runtime/exec/memory_plan.h"

static clt_status plan(clt_block *blocks, size_t n, size_t alignment, size_t limit, clt_slab **slabs, size_t *n_slabs) {
    *slabs = NULL;
    return clt_memory_plan(blocks, n, alignment, limit, slabs, n_slabs);
}

static bool overlap(const clt_block *a, const clt_block *b) {
    return a->slab == b->slab && a->first <= b->last && b->first <= a->last &&
           a->offset < b->offset + b->bytes && b->offset < a->offset + a->bytes;
}

/* Random lives and sizes: no two blocks that live at once share a byte, all lie aligned inside their slab. */
static void blocks_do_not_meet(void **state) {
    (void)state;
    enum { N = 120, ALIGNMENT = 128, LIMIT = 40000 };
    clt_random random;
    for (uint64_t round = 0; round < 50; round++) {
        clt_block blocks[N];
        clt_slab *slabs;
        size_t n_slabs, sum = 0, total = 0;
        clt_random_init(&random, 7, round);
        for (int i = 0; i < N; i++) {
            int first = (int)clt_random_below(&random, 60);
            blocks[i] = (clt_block){.bytes = 1 + (size_t)clt_random_below(&random, 8000),
                                    .first = first,
                                    .last = first + (int)clt_random_below(&random, 12),
                                    .stays = i % 8 == 0};
            sum += (blocks[i].bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
        }
        assert_ok(plan(blocks, N, ALIGNMENT, LIMIT, &slabs, &n_slabs));
        for (int i = 0; i < N; i++) {
            assert_int_equal(blocks[i].offset % ALIGNMENT, 0);
            assert_in_range(blocks[i].slab, 0, n_slabs - 1);
            assert_true(blocks[i].offset + blocks[i].bytes <= slabs[blocks[i].slab].bytes);
            assert_int_equal(slabs[blocks[i].slab].stays, blocks[i].stays);
            for (int k = 0; k < i; k++) assert_false(overlap(&blocks[i], &blocks[k]));
        }
        for (size_t s = 0; s < n_slabs; s++) {
            assert_true(slabs[s].bytes <= LIMIT);
            total += slabs[s].bytes;
        }
        assert_true(total < sum / 2); /* about a sixth lives at once */
        clt_free(slabs);
    }
}

/* A chain, where only neighbours live together, needs no more than its two largest neighbours. */
static void chains_reuse_memory(void **state) {
    (void)state;
    enum { N = 20 };
    clt_block blocks[N];
    clt_slab *slabs;
    size_t n_slabs;
    for (int i = 0; i < N; i++) blocks[i] = (clt_block){.bytes = 1024, .first = i, .last = i + 1};
    assert_ok(plan(blocks, N, 256, 1 << 20, &slabs, &n_slabs));
    assert_int_equal(n_slabs, 1);
    assert_int_equal(slabs[0].bytes, 2048);
    clt_free(slabs);
}

static void too_large_is_refused(void **state) {
    (void)state;
    clt_block block = {.bytes = 5000};
    clt_slab *slabs;
    size_t n_slabs;
    assert_status(plan(&block, 1, 128, 4096, &slabs, &n_slabs), CLT_E_DEVICE_MEMORY);
    assert_detail("5000 bytes");
    assert_detail("4096 bytes");
}

static void nothing_is_planned(void **state) {
    (void)state;
    clt_slab *slabs;
    size_t n_slabs;
    assert_ok(plan(NULL, 0, 128, 4096, &slabs, &n_slabs));
    assert_int_equal(n_slabs, 0);
    clt_free(slabs);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(blocks_do_not_meet),
        cmocka_unit_test(chains_reuse_memory),
        cmocka_unit_test(too_large_is_refused),
        cmocka_unit_test(nothing_is_planned),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
