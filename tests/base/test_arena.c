#include "tests/support.h"

#include <stdalign.h>
#include <string.h>

#include "runtime/base/arena.h"

static void test_take(void **state) {
    (void)state;
    clt_arena arena = {.limit = 1 << 22};
    char *kept[200], *none;
    for (size_t i = 0; i < CLT_COUNT_OF(kept); i++) {
        assert_ok(clt_arena_take(&arena, i * 37 + 1, 1, &kept[i]));
        assert_int_equal((uintptr_t)kept[i] % alignof(max_align_t), 0);
        for (size_t k = 0; k < i * 37 + 1; k++) assert_int_equal(kept[i][k], 0);
        memset(kept[i], (int)i, i * 37 + 1);
    }
    assert_ok(clt_arena_take(&arena, 0, 8, &none));
    assert_non_null(none);
    for (size_t i = 0; i < CLT_COUNT_OF(kept); i++) assert_int_equal((unsigned char)kept[i][i * 37], i);
    clt_arena_free(&arena);
    clt_arena_free(&arena);
    assert_ok(clt_arena_take(&arena, 1 << 21, 1, &none)); /* larger than a block */
    none[(1 << 21) - 1] = 1;
    clt_arena_free(&arena);
}

static void test_limit(void **state) {
    (void)state;
    clt_arena arena = {.limit = 1024};
    char *memory;
    assert_ok(clt_arena_take(&arena, 1000, 1, &memory));
    assert_ok(clt_arena_take(&arena, 16, 1, &memory));
    assert_status(clt_arena_take(&arena, 1, 1, &memory), CLT_E_RANGE);
    assert_detail("1024 bytes");
    assert_status(clt_arena_take(&arena, SIZE_MAX, 2, &memory), CLT_E_RANGE);
    assert_status(clt_arena_take(&arena, SIZE_MAX, 1, &memory), CLT_E_RANGE);
    assert_ok(clt_arena_take(&arena, 0, 1, &memory));
    clt_arena_free(&arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_take), cmocka_unit_test(test_limit)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
