/* The accessors of cl/prelude.cl against the conversions of the host: all 16-bit values read, random floats written and rounded, in each width. */
#include "tests/support.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/backend.h"
#include "runtime/device/kernel_source.h"
#include "runtime/base/halves.h"

enum { COUNT = 65536 };

static const char text[] =
    "kernel void widen(global const CLT_REAL *x, global float *y, int n) {\n"
    "    int i = get_global_id(0);\n"
    "    if (i < n) y[i] = CLT_LOAD(x, i);\n"
    "}\n"
    "kernel void narrow(global const float *x, global CLT_REAL *y, int n) {\n"
    "    int i = get_global_id(0);\n"
    "    if (i < n) CLT_STORE(y, i, x[i]);\n"
    "}\n"
    "kernel void round_f16(global const float *x, global float *y, int n) {\n"
    "    int i = get_global_id(0);\n"
    "    if (i < n) y[i] = clt_round_f16(x[i]);\n"
    "}\n"
    "kernel void round_bf16(global const float *x, global float *y, int n) {\n"
    "    int i = get_global_id(0);\n"
    "    if (i < n) y[i] = clt_round_bf16(x[i]);\n"
    "}\n"
    /* One element further on, so that vectors are not aligned; the last one is not touched. */
    "#define VECTOR(n)                                                                            \\\n"
    "    kernel void widen_##n(global const CLT_REAL *x, global float *y, int count) {            \\\n"
    "        int i = 1 + (int)get_global_id(0) * n;                                               \\\n"
    "        if (i + n < count) vstore##n(CLT_LOAD_VECTOR(n, x, i), 0, y + i);                    \\\n"
    "    }                                                                                        \\\n"
    "    kernel void narrow_##n(global const float *x, global CLT_REAL *y, int count) {           \\\n"
    "        int i = 1 + (int)get_global_id(0) * n;                                               \\\n"
    "        if (i + n < count) CLT_STORE_VECTOR(n, y, i, vload##n(0, x + i));                    \\\n"
    "    }\n"
    "VECTOR(2)\nVECTOR(4)\nVECTOR(8)\nVECTOR(16)\n";

typedef struct bench {
    clt_device *device;
    char *whole;
    clt_module module;
} bench;

static bench bench_of(clt_device *device, clt_dtype dtype) {
    static const char format[] = "#define CLT_STORAGE %s\n%s\n%s";
    const char *prelude = clt_kernel_source_find(device, "prelude.cl");
    bench b = {.device = device, .whole = malloc(strlen(prelude) + sizeof text + 64)};
    assert_non_null(b.whole);
    sprintf(b.whole, format, clt_dtype_name(dtype), prelude, text);
    b.module = (clt_module){.text = b.whole, .isolated = true, .label = "storage.cl"};
    assert_ok(clt_device_build(device, &b.module, 1));
    return b;
}

static void run(const bench *b, const char *name, const void *x, size_t x_bytes, void *y, size_t y_bytes) {
    clt_memory *from, *to;
    clt_kernel *kernel;
    const int count = COUNT;
    const size_t items = COUNT;
    assert_ok(clt_kernel_create(b->device, &b->module, name, &kernel));
    assert_ok(clt_memory_create(b->device, x_bytes, &from));
    assert_ok(clt_memory_create(b->device, y_bytes, &to));
    assert_ok(clt_memory_write(from, 0, x, x_bytes));
    assert_ok(clt_memory_zero(to));
    assert_ok(clt_kernel_set_memory(kernel, 0, from));
    assert_ok(clt_kernel_set_memory(kernel, 1, to));
    assert_ok(clt_kernel_set_value(kernel, 2, &count, sizeof count));
    assert_ok(clt_kernel_enqueue(kernel, 1, &items, NULL));
    assert_ok(clt_memory_read(to, 0, y, y_bytes));
    clt_memory_destroy(from), clt_memory_destroy(to);
    clt_kernel_destroy(kernel);
}

/* The same bits, or both NaN. */
static void assert_floats(const float *got, const float *want, int first, int last) {
    for (int i = first; i < last; i++)
        if (!isnan(want[i]) || !isnan(got[i])) assert_memory_equal(&got[i], &want[i], sizeof *got);
}

static void assert_halves(const uint16_t *got, const uint16_t *want, clt_dtype dtype, int first, int last) {
    static float a[COUNT], b[COUNT];
    clt_float_widen(a, got, dtype, COUNT);
    clt_float_widen(b, want, dtype, COUNT);
    assert_floats(a, b, first, last);
}

/* Bits of all kinds; of each four one has the magnitudes of f16, of these one is half way between two of its values. */
static void draw(float *values, uint32_t bits) {
    for (int i = 0; i < COUNT; i++) {
        bits = bits * 1664525u + 1013904223u;
        uint32_t one = bits;
        if (i % 4 > 1) one = (bits & 0x87ffffff) | 0x38000000;
        if (i % 4 == 2) one = (one & 0xffffe000) | 0x1000;
        if (i % 4 == 3 && i % 8 == 3) one = (one & 0xffff0000) | 0x8000;
        if (i % 16 == 1) one = (bits & 0x81ffffff) | 0x32000000; /* the least of f16 */
        memcpy(&values[i], &one, sizeof one);
    }
}

/* Behind the last whole vector nothing was written. */
static int vectors_end(int width) {
    return 1 + (COUNT - 2) / width * width;
}

static void reads_and_writes(void **state) {
    static const clt_dtype types[] = {CLT_F16, CLT_BF16};
    static const int widths[] = {2, 4, 8, 16};
    static uint16_t all[COUNT], halves[COUNT], got_halves[COUNT];
    static float floats[COUNT], want[COUNT], got[COUNT];
    char name[32];
    for (int i = 0; i < COUNT; i++) all[i] = (uint16_t)i;
    for (int t = 0; t < 2; t++) {
        bench b = bench_of(*state, types[t]);
        clt_float_widen(want, all, types[t], COUNT);
        run(&b, "widen", all, sizeof all, got, sizeof got);
        assert_floats(got, want, 0, COUNT);
        for (int w = 0; w < 4; w++) {
            snprintf(name, sizeof name, "widen_%d", widths[w]);
            run(&b, name, all, sizeof all, got, sizeof got);
            assert_floats(got, want, 1, vectors_end(widths[w]));
            assert_true(got[COUNT - 1] == 0);
        }
        for (uint32_t seed = 1; seed <= 8; seed++) {
            draw(floats, seed);
            clt_float_narrow(halves, floats, types[t], COUNT);
            run(&b, "narrow", floats, sizeof floats, got_halves, sizeof got_halves);
            assert_halves(got_halves, halves, types[t], 0, COUNT);
            for (int w = 0; w < 4; w++) {
                snprintf(name, sizeof name, "narrow_%d", widths[w]);
                run(&b, name, floats, sizeof floats, got_halves, sizeof got_halves);
                assert_halves(got_halves, halves, types[t], 1, vectors_end(widths[w]));
                assert_int_equal(got_halves[COUNT - 1], 0);
            }
            clt_float_widen(want, halves, types[t], COUNT);
            run(&b, t ? "round_bf16" : "round_f16", floats, sizeof floats, got, sizeof got);
            assert_floats(got, want, 0, COUNT);
        }
        free(b.whole);
    }
}

static int open_device(void **state) {
    return clt_device_open((clt_device **)state, NULL) < 0;
}

static int close_device(void **state) {
    clt_device_close(*state);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(reads_and_writes)};
    return cmocka_run_group_tests_name("storage", tests, open_device, close_device);
}
