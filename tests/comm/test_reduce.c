#include "tests/support.h"

#include <math.h>
#include <string.h>

#include "runtime/base/halves.h"
#include "comm/reduce.h"

static void test_reductions(void **state) {
    (void)state;
    float a[5] = {1, -2, NAN, 4, 0}, b[5] = {0.5f, 3, 1, NAN, 0};
    clt_reduce(a, b, 5, CLT_F32, CLT_REDUCE_MAX);
    assert_true(a[0] == 1 && a[1] == 3 && isnan(a[2]) && isnan(a[3]));
    float c[3] = {1, NAN, 2}, d[3] = {-1, 0, NAN};
    clt_reduce(c, d, 3, CLT_F32, CLT_REDUCE_MIN);
    assert_true(c[0] == -1 && isnan(c[1]) && isnan(c[2]));
    int32_t i[3] = {INT32_MAX, -5, 7}, j[3] = {1, 2, -9};
    clt_reduce(i, j, 3, CLT_I32, CLT_REDUCE_SUM);
    assert_true(i[0] == INT32_MIN && i[1] == -3 && i[2] == -2);
    clt_reduce(i, j, 3, CLT_I32, CLT_REDUCE_MAX);
    assert_true(i[0] == 1 && i[1] == 2 && i[2] == -2);
    uint8_t u[2] = {200, 3}, v[2] = {100, 4};
    clt_reduce(u, v, 2, CLT_U8, CLT_REDUCE_SUM);
    assert_true(u[0] == 44 && u[1] == 7);
    clt_reduce(u, v, 2, CLT_U8, CLT_REDUCE_MIN);
    assert_true(u[0] == 44 && u[1] == 4);
}

/* 2048 + 1 is 2048 in f16, so rounding each time would lose all ones. */
static void test_halves_are_rounded_once(void **state) {
    (void)state;
    enum { N = 3000, PIECES = 9 };
    static uint16_t data[PIECES][N];
    const void *pieces[PIECES];
    for (int p = 0; p < PIECES; p++) {
        for (int i = 0; i < N; i++) {
            float value = p ? 1 : (float)(2048 + 8 * (i % 4));
            clt_f32_to_f16(&data[p][i], &value, 1);
        }
        pieces[p] = data[p];
    }
    clt_reduce_many(data[3], pieces, PIECES, N, CLT_F16, CLT_REDUCE_SUM); /* into one of them */
    for (int i = 0; i < N; i++) {
        float value;
        clt_f16_to_f32(&value, &data[3][i], 1);
        assert_true(value == (float)(2056 + 8 * (i % 4)));
    }
}

static void test_many_is_in_order(void **state) {
    (void)state;
    enum { N = 2500 };
    static float data[3][N], wanted[N];
    for (int i = 0; i < N; i++) {
        data[0][i] = 1e8f, data[1][i] = 1, data[2][i] = -1e8f + (float)i;
        wanted[i] = (data[0][i] + data[1][i]) + data[2][i];
    }
    clt_reduce_many(data[2], (const void *[]){data[0], data[1], data[2]}, 3, N, CLT_F32, CLT_REDUCE_SUM);
    assert_memory_equal(data[2], wanted, sizeof wanted);
    clt_reduce_many(data[0], (const void *[]){data[1]}, 1, N, CLT_F32, CLT_REDUCE_SUM);
    assert_memory_equal(data[0], data[1], sizeof data[0]);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reductions),
        cmocka_unit_test(test_halves_are_rounded_once),
        cmocka_unit_test(test_many_is_in_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
