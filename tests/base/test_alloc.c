#include "tests/support.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/base/base.h"

static struct {
    int allocated, reallocated, released;
    size_t last_bytes;
    int empty;
} counts;

static void *counted_allocate(size_t bytes, void *user) {
    assert_ptr_equal(user, &counts);
    counts.allocated++;
    counts.last_bytes = bytes;
    return counts.empty ? NULL : malloc(bytes);
}

static void *counted_reallocate(void *memory, size_t bytes, void *user) {
    assert_ptr_equal(user, &counts);
    counts.reallocated++;
    counts.last_bytes = bytes;
    return counts.empty ? NULL : realloc(memory, bytes);
}

static void counted_release(void *memory, void *user) {
    assert_ptr_equal(user, &counts);
    counts.released++;
    free(memory);
}

static const clt_allocator counted = {counted_allocate, counted_reallocate, counted_release, &counts};

static int set_up(void **state) {
    (void)state;
    memset(&counts, 0, sizeof counts);
    return clt_allocator_set(&counted);
}

static int tear_down(void **state) {
    (void)state;
    return clt_allocator_set(NULL);
}

static void test_all_goes_through_the_hook(void **state) {
    (void)state;
    char *a = clt_alloc(10);
    memset(a, 'a', 10);
    assert_int_equal(counts.last_bytes, 10);
    a = clt_realloc(a, 20);
    assert_int_equal(counts.last_bytes, 20);
    assert_memory_equal(a, "aaaaaaaaaa", 10);
    char *b = clt_realloc(NULL, 5);
    char *c = clt_strdup("text");
    assert_string_equal(c, "text");
    unsigned char *d = clt_calloc(7, 3);
    for (int i = 0; i < 21; i++) assert_int_equal(d[i], 0);
    assert_int_equal(counts.allocated, 4);
    assert_int_equal(counts.reallocated, 1);
    clt_free(a);
    clt_free(b);
    clt_free(c);
    clt_free(d);
    clt_free(NULL);
    assert_int_equal(counts.released, 4);
}

static void test_no_bytes_is_a_block_all_the_same(void **state) {
    (void)state;
    void *blocks[] = {clt_alloc(0), clt_calloc(0, 8), clt_realloc(clt_alloc(3), 0)};
    for (size_t i = 0; i < CLT_COUNT_OF(blocks); i++) {
        assert_non_null(blocks[i]);
        clt_free(blocks[i]);
    }
}

static void test_products_that_do_not_fit(void **state) {
    (void)state;
    size_t product;
    assert_true(clt_mul_size(SIZE_MAX / 2, 2, &product));
    assert_int_equal(product, SIZE_MAX - 1);
    assert_false(clt_mul_size(SIZE_MAX / 2 + 1, 2, &product));
    assert_true(clt_mul_size(SIZE_MAX, 0, &product));
    assert_int_equal(product, 0);
    assert_null(clt_calloc(SIZE_MAX / 4, 8));
    assert_int_equal(counts.allocated, 0);
}

static void test_grow(void **state) {
    (void)state;
    int *items = NULL;
    size_t capacity = 0;
    for (int i = 0; i < 1000; i++) {
        assert_ok(clt_grow(&items, &capacity, (size_t)i, sizeof *items));
        assert_true(capacity > (size_t)i);
        items[i] = i;
    }
    for (int i = 0; i < 1000; i++) assert_int_equal(items[i], i);
    assert_in_range(counts.allocated + counts.reallocated, 2, 20); /* it doubles */
    counts.empty = 1;
    int *before = items;
    size_t kept = capacity;
    assert_status(clt_grow(&items, &capacity, capacity, sizeof *items), CLT_E_NO_MEMORY);
    assert_ptr_equal(items, before); /* and what was there stays */
    assert_int_equal(capacity, kept);
    assert_int_equal(items[999], 999);
    assert_status(clt_grow(&items, &capacity, capacity, SIZE_MAX / 2), CLT_E_NO_MEMORY);
    clt_free(items);
}

static void test_no_memory(void **state) {
    (void)state;
    counts.empty = 1;
    assert_null(clt_alloc(1));
    assert_null(clt_calloc(1, 1));
    assert_null(clt_strdup("x"));
    assert_null(clt_realloc(NULL, 1));
}

static void test_set(void **state) {
    (void)state;
    clt_allocator lacking = counted;
    lacking.reallocate = NULL;
    assert_status(clt_allocator_set(&lacking), CLT_E_INVALID);
    clt_free(clt_alloc(1));
    assert_int_equal(counts.allocated, 1); /* the one before is still there */
    assert_ok(clt_allocator_set(NULL));
    clt_free(clt_alloc(1));
    assert_int_equal(counts.allocated, 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_all_goes_through_the_hook, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_no_bytes_is_a_block_all_the_same, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_products_that_do_not_fit, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_grow, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_no_memory, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_set, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
