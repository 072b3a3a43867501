/*
 * The native matrix product with all its parameters against the reference row: odd sizes, transposes and
 * batches. Results and scratch memory hold NaN before, nothing past the result is written, and a second
 * run gives the same bits.
 */
#include "tests/support.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/native/cpu/cpu.h"
#include "runtime/base/random.h"

static clt_device *device;

enum { GUARD = 64 }; /* floats past the result */

/* a and b with a product of theirs. */
typedef struct product {
    clt_graph *graph;
    clt_tensor *a, *b, *c;
    clt_memory *a_memory, *b_memory;
    float *want; /* what the reference gives */
} product;

/* ---- running launches without a plan ---- */

static clt_memory *memory_of(const float *values, int64_t n) {
    clt_memory *memory;
    assert_ok(clt_memory_create(device, (size_t)n * sizeof *values, &memory));
    assert_ok(clt_memory_write(memory, 0, values, (size_t)n * sizeof *values));
    return memory;
}

static clt_memory *nan_memory(int64_t n) {
    float *values = malloc((size_t)n * sizeof *values);
    assert_non_null(values);
    for (int64_t i = 0; i < n; i++) values[i] = NAN;
    clt_memory *memory = memory_of(values, n);
    free(values);
    return memory;
}

static clt_memory *random_memory(const clt_tensor *tensor, uint64_t seed) {
    int64_t n = clt_tensor_elements(tensor);
    float *values = malloc((size_t)n * sizeof *values);
    clt_random random;
    assert_non_null(values);
    clt_random_init(&random, seed, 0);
    for (int64_t i = 0; i < n; i++) values[i] = (float)(2 * clt_random_uniform(&random) - 1);
    clt_memory *memory = memory_of(values, n);
    free(values);
    return memory;
}

static void enqueue(const product *p, const clt_lowering *l, const clt_launch *launch, clt_memory *c,
                    clt_memory **scratch) {
    clt_kernel *kernel;
    assert_ok(clt_kernel_create(device, &l->modules[launch->module], launch->kernel, &kernel));
    for (int i = 0; i < launch->n_arguments; i++) {
        const clt_argument *argument = &launch->arguments[i];
        clt_memory *memory = argument->tensor == p->a ? p->a_memory : c;
        if (argument->tensor == p->b) memory = p->b_memory;
        if (argument->kind == CLT_ARGUMENT_VALUE)
            assert_ok(clt_kernel_set_value(kernel, i, argument->value, argument->value_bytes));
        else if (argument->kind == CLT_ARGUMENT_SCRATCH)
            assert_ok(clt_kernel_set_memory(kernel, i, scratch[argument->scratch]));
        else assert_ok(clt_kernel_set_memory(kernel, i, memory));
    }
    assert_ok(clt_kernel_enqueue(kernel, launch->dims, launch->global, launch->local));
    assert_ok(clt_device_finish(device));
    clt_kernel_destroy(kernel);
}

/* What the row gives with these parameters, and GUARD floats that must be NaN still. */
static float *run(const product *p, const clt_choice *choice) {
    clt_lowering l = {.device = device, .training = true};
    clt_memory *scratch[8];
    int64_t n = clt_tensor_elements(p->c) + GUARD;
    assert_ok(clt_backend_lower_with(&l, p->c, choice));
    assert_ok(clt_device_build(device, l.modules, (int)l.n_modules));
    assert_true(l.n_scratch <= CLT_COUNT_OF(scratch));
    for (size_t i = 0; i < l.n_scratch; i++)
        scratch[i] = nan_memory((int64_t)(l.scratch[i].bytes / sizeof(float)));
    clt_memory *c = nan_memory(n);
    for (size_t i = 0; i < l.n_launches; i++) enqueue(p, &l, &l.launches[i], c, scratch);
    float *values = malloc((size_t)n * sizeof *values);
    assert_non_null(values);
    assert_ok(clt_memory_read(c, 0, values, (size_t)n * sizeof *values));
    for (int64_t i = n - GUARD; i < n; i++) assert_true(isnan(values[i]));
    for (size_t i = 0; i < l.n_scratch; i++) clt_memory_destroy(scratch[i]);
    clt_memory_destroy(c);
    clt_lowering_free(&l);
    return values;
}

/* ---- products ---- */

static product begin(clt_shape a, clt_shape b, bool transpose_a, bool transpose_b) {
    product p;
    clt_choice reference = {.row = clt_backend_next(&clt_op_matmul, NULL)};
    assert_string_equal(reference.row->name, "reference");
    assert_ok(clt_graph_create(&p.graph));
    p.a = clt_input(p.graph, "a", CLT_F32, a);
    p.b = clt_input(p.graph, "b", CLT_F32, b);
    p.c = clt_matmul_with(p.a, p.b, (clt_matmul_options){transpose_a, transpose_b});
    assert_ok(clt_graph_status(p.graph));
    p.a_memory = random_memory(p.a, 1);
    p.b_memory = random_memory(p.b, 2);
    p.want = run(&p, &reference);
    return p;
}

static product begin_plain(int64_t m, int64_t n, int64_t k, int transposes) {
    return begin(transposes & 1 ? CLT_SHAPE(k, m) : CLT_SHAPE(m, k),
                 transposes & 2 ? CLT_SHAPE(n, k) : CLT_SHAPE(k, n), transposes & 1, transposes & 2);
}

static void end(product *p) {
    free(p->want);
    clt_memory_destroy(p->a_memory);
    clt_memory_destroy(p->b_memory);
    clt_graph_destroy(p->graph);
}

static void describe(const product *p, const clt_choice *choice) {
    char a[CLT_SHAPE_TEXT], b[CLT_SHAPE_TEXT];
    const clt_matmul_attributes *at = p->c->attributes;
    print_error("  %s and %s, transposed %d %d:", clt_shape_text(&p->a->shape, a),
                clt_shape_text(&p->b->shape, b), at->transpose_a, at->transpose_b);
    for (int i = 0; clt_cpu_matmul_tunables[i].name; i++)
        print_error(" %s %d", clt_cpu_matmul_tunables[i].name, choice->parameters[i]);
    print_error("\n");
}

/* Relative error in L2, and the same bits again. */
static void check(const product *p, const clt_choice *choice) {
    int64_t n = clt_tensor_elements(p->c);
    float *got = run(p, choice), *again = run(p, choice);
    double error = 0, square = 0;
    for (int64_t i = 0; i < n; i++) {
        error += ((double)got[i] - p->want[i]) * ((double)got[i] - p->want[i]);
        square += (double)p->want[i] * p->want[i];
    }
    if (!(error <= 1e-11 * square)) {
        describe(p, choice);
        fail_msg("relative error %.3g", sqrt(error / square));
    }
    if (memcmp(got, again, (size_t)n * sizeof *got)) {
        describe(p, choice);
        fail_msg("not the same bits again");
    }
    free(got);
    free(again);
}

/* ---- parameters ---- */

/* The next combination of all values, valid or not; false after the last. */
static bool next(const clt_tunable *tunables, int *at, clt_choice *choice) {
    for (int i = 0; tunables[i].name; i++) {
        at[i] = (at[i] + 1) % tunables[i].n;
        choice->parameters[i] = tunables[i].values[at[i]];
        if (at[i]) return true;
    }
    return false;
}

static clt_choice first(const clt_backend_row *row) {
    clt_choice choice = {.row = row};
    for (int i = 0; row->tunables[i].name; i++) choice.parameters[i] = row->tunables[i].values[0];
    return choice;
}

static const clt_backend_row *native_row(const product *p) {
    const clt_backend_row *row = clt_backend_choose(p->c, device).row;
    assert_string_equal(row->name, "native");
    return row;
}

/* Checks the node with all that go together; returns how many those are. */
static int check_all(const product *p) {
    const clt_backend_row *row = native_row(p);
    clt_choice choice = first(row);
    int at[CLT_MAX_TUNABLES] = {0}, checked = 0;
    do {
        if (!row->valid(p->c, device, choice.parameters)) continue;
        check(p, &choice);
        checked++;
    } while (next(row->tunables, at, &choice));
    return checked;
}

/* ---- tests ---- */

/* All variants of the text built at once: none may take another's names. */
static void variants_share_programs(void **state) {
    (void)state;
    product p = begin_plain(50, 60, 70, 0);
    const clt_backend_row *row = native_row(&p);
    clt_lowering l = {.device = device, .training = true};
    clt_choice choice = first(row);
    int at[CLT_MAX_TUNABLES] = {0};
    do
        if (row->valid(p.c, device, choice.parameters)) assert_ok(clt_backend_lower_with(&l, p.c, &choice));
    while (next(row->tunables, at, &choice));
    assert_true(l.n_modules >= 6);
    assert_ok(clt_device_build(device, l.modules, (int)l.n_modules));
    clt_lowering_free(&l);
    end(&p);
}

static void all_parameters(void **state) {
    (void)state;
    static const int64_t sizes[][3] = {{37, 70, 600}, {100, 33, 150}};
    for (size_t i = 0; i < CLT_COUNT_OF(sizes); i++)
        for (int t = 0; t < 4; t++) {
            product p = begin_plain(sizes[i][0], sizes[i][1], sizes[i][2], t);
            assert_true(check_all(&p) > 50);
            end(&p);
        }
}

/* Blocks of more than the tiles there are, of one, and those that leave one over, in a stretched batch. */
static void all_parameters_in_batches(void **state) {
    (void)state;
    for (int t = 0; t < 4; t++) {
        product p = begin(t & 1 ? CLT_SHAPE(3, 1, 130, 29) : CLT_SHAPE(3, 1, 29, 130),
                          t & 2 ? CLT_SHAPE(2, 49, 130) : CLT_SHAPE(2, 130, 49), t & 1, t & 2);
        assert_true(check_all(&p) > 50);
        end(&p);
    }
}

static void odd_sizes(void **state) {
    (void)state;
    static const int64_t sizes[] = {1, 2, 3, 5, 11, 12, 13, 31, 33}, sums[] = {1, 17, 300};
    for (size_t m = 0; m < CLT_COUNT_OF(sizes); m++)
        for (size_t n = 0; n < CLT_COUNT_OF(sizes); n++)
            for (size_t k = 0; k < CLT_COUNT_OF(sums); k++)
                for (int t = 0; t < 4; t++) {
                    product p = begin_plain(sizes[m], sizes[n], sums[k], t);
                    clt_choice choice = clt_backend_choose(p.c, device);
                    assert_string_equal(choice.row->name, "native");
                    assert_true(choice.row->valid(p.c, device, choice.parameters));
                    check(&p, &choice);
                    end(&p);
                }
}

/* Sizes that the defaults cut in different ways: splits, several blocks, panels. */
static void long_and_large(void **state) {
    (void)state;
    static const int64_t sizes[][3] = {{13, 31, 4500}, {1, 1, 9000}, {128, 10, 1024}, {128, 128, 4096},
                                       {900, 300, 65}, {300, 290, 257}, {10, 1024, 128}};
    for (size_t i = 0; i < CLT_COUNT_OF(sizes); i++)
        for (int t = 0; t < 4; t++) {
            product p = begin_plain(sizes[i][0], sizes[i][1], sizes[i][2], t);
            clt_choice choice = clt_backend_choose(p.c, device);
            assert_true(choice.row->valid(p.c, device, choice.parameters));
            check(&p, &choice);
            end(&p);
        }
}

static void defaults_are_of_the_lists(void **state) {
    (void)state;
    for (int64_t k = 1; k < 20000; k += k / 2 + 1) {
        product p = {0};
        assert_ok(clt_graph_create(&p.graph));
        p.c = clt_matmul(clt_input(p.graph, "a", CLT_F32, CLT_SHAPE(30, k)),
                         clt_input(p.graph, "b", CLT_F32, CLT_SHAPE(k, 30)));
        clt_choice choice = clt_backend_choose(p.c, device);
        assert_string_equal(choice.row->name, "native");
        for (int i = 0; choice.row->tunables[i].name; i++) {
            bool there = false;
            for (int v = 0; v < choice.row->tunables[i].n; v++)
                there |= choice.row->tunables[i].values[v] == choice.parameters[i];
            assert_true(there);
        }
        clt_graph_destroy(p.graph);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(variants_share_programs), cmocka_unit_test(all_parameters),
        cmocka_unit_test(all_parameters_in_batches), cmocka_unit_test(odd_sizes),
        cmocka_unit_test(long_and_large), cmocka_unit_test(defaults_are_of_the_lists),
    };
    if (clt_device_open(&device, NULL) < 0) {
        print_error("no device: %s\n", clt_error_detail());
        return 1;
    }
    /* Other classes of device are served by the reference, which tests/ops tests. */
    int failed = clt_cpu_fits(device) ? cmocka_run_group_tests_name("native matmul", tests, NULL, NULL) : 0;
    clt_device_close(device);
    return failed;
}
