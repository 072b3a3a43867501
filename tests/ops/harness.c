#include "tests/ops/harness.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static clt_device *device;

clt_device *op_device(void) {
    return device;
}

/* ---- comparison ---- */

/* Largest mean of squared errors, relative to the mean square of what is wanted. */
static const double largest_nmse = 1e-7;

static void print_operands(const op_case *spec) {
    for (int i = 0; i < spec->n_inputs; i++) {
        char text[CLT_SHAPE_TEXT];
        print_error("  operand %d%s%s: %s %s\n", i, spec->inputs[i].variable ? " " : "",
                    spec->inputs[i].variable ? spec->inputs[i].variable : "",
                    clt_dtype_name(spec->inputs[i].dtype), clt_shape_text(&spec->inputs[i].shape, text));
    }
}

static void judge(const op_case *spec, const char *what, const array *got, const array *want,
                  const int64_t *places, int64_t n) {
    comparison c = array_compare(got, want, places, n);
    double floor = spec->floor > 0 ? spec->floor : 1e-3;
    double tolerance = spec->tolerance > 0 ? spec->tolerance : 2e-5;
    double scale = fmax(c.scale, floor);
    double nmse = c.error_squared / fmax(c.want_squared, floor * floor * (double)n);
    /* A case that allows more at one place allows it at all. */
    double most = fmax(largest_nmse, tolerance * tolerance);
    if (c.worst_error <= tolerance * scale && nmse <= most) return;
    char text[CLT_SHAPE_TEXT];
    print_error("%s: %s %s: element %lld is %.9g, wanted %.9g\n", spec->name, what,
                clt_shape_text(&want->shape, text), (long long)c.worst, got->values[c.worst],
                want->values[c.worst]);
    print_error("  error %.3g, allowed %.3g; normalized mean square %.3g, allowed %.3g\n", c.worst_error,
                tolerance * scale, nmse, most);
    print_operands(spec);
    fail();
}

void op_compare(const op_case *spec, const char *what, const array *got, const array *want) {
    char a[CLT_SHAPE_TEXT], b[CLT_SHAPE_TEXT];
    if (!clt_shape_equal(&got->shape, &want->shape))
        fail_msg("%s: %s has the shape %s, wanted %s", spec->name, what, clt_shape_text(&got->shape, a),
                 clt_shape_text(&want->shape, b));
    judge(spec, what, got, want, NULL, array_count(want));
}

/* ---- differences ---- */

/* Which elements of an operand are moved: all, or a random choice. */
static int64_t choose_places(const op_case *spec, int64_t count, int64_t **places) {
    int64_t samples = spec->samples ? spec->samples : 200, n = count < samples ? count : samples;
    random_stream random = {(uint64_t)count};
    *places = malloc((size_t)n * sizeof **places);
    assert_non_null(*places);
    for (int64_t i = 0; i < n; i++) (*places)[i] = n == count ? i : random_below(&random, count);
    return n;
}

/* (sum(f(x + eps) seed) - sum(f(x - eps) seed)) / (2 eps), summed element by element: those
 * that do not depend on x then cancel exactly. */
static double difference(op_run *run, int input, int64_t place, array *above, array *below) {
    const op_case *spec = run->spec;
    const double eps = 1e-5;
    double *value = &run->values[input].values[place], kept = *value;
    *value = kept + eps;
    spec->reference(run->values, above, spec->context);
    *value = kept - eps;
    spec->reference(run->values, below, spec->context);
    *value = kept;
    long double sum = 0;
    for (int64_t i = 0; i < array_count(above); i++)
        sum += ((long double)above->values[i] - below->values[i]) * run->seed_values.values[i];
    return (double)(sum / (2 * eps));
}

static void check_finite(const op_case *spec, const char *what, const array *values) {
    for (int64_t i = 0; i < array_count(values); i++) {
        if (isfinite(values->values[i])) continue;
        print_error("%s: %s: element %lld is %g\n", spec->name, what, (long long)i, values->values[i]);
        print_operands(spec);
        fail();
    }
}

static void check_gradient(op_run *run, int input) {
    array got = {0}, want = {0}, above = {0}, below = {0};
    int64_t *places;
    char what[64];
    snprintf(what, sizeof what, "gradient of operand %d", input);
    op_read(run, run->grads[input], run->inputs[input], &got);
    check_finite(run->spec, what, &got);
    array_resize(&want, got.shape);
    int64_t n = choose_places(run->spec, array_count(&got), &places);
    for (int64_t k = 0; k < n; k++) want.values[places[k]] = difference(run, input, places[k], &above, &below);
    judge(run->spec, what, &got, &want, places, n);
    free(places);
    array_free(&got);
    array_free(&want);
    array_free(&above);
    array_free(&below);
}

/* ---- tests ---- */

void op_check(void **state) {
    const op_case *spec = *state;
    op_run run;
    array got = {0}, want = {0};
    op_open(&run, spec);
    op_step(&run);
    spec->reference(run.values, &want, spec->context);
    op_read(&run, run.y, run.y, &got);
    op_compare(spec, "the result", &got, &want);
    for (int i = 0; i < spec->n_inputs; i++)
        if (op_wants_gradient(spec, i)) check_gradient(&run, i);
    array_free(&got);
    array_free(&want);
    op_close(&run);
}

static void expect_values(op_run *run, const char *what, const clt_tensor *tensor, const clt_tensor *like,
                          const double *values) {
    array got = {0}, want = {0};
    op_read(run, tensor, like, &got);
    array_resize(&want, got.shape);
    memcpy(want.values, values, (size_t)array_count(&want) * sizeof *values);
    op_compare(run->spec, what, &got, &want);
    array_free(&got);
    array_free(&want);
}

void op_expect(const op_case *spec, const double *y, const double *const *grads) {
    op_run run;
    op_open(&run, spec);
    op_step(&run);
    expect_values(&run, "the result", run.y, run.y, y);
    for (int i = 0; grads && i < spec->n_inputs; i++)
        if (grads[i]) expect_values(&run, "the gradient", run.grads[i], run.inputs[i], grads[i]);
    op_close(&run);
}

/* ---- programs ---- */

static int open_device(void **state) {
    (void)state;
    if (clt_device_open(&device, NULL) == CLT_OK) return 0;
    print_error("no device: %s\n", clt_error_detail());
    return -1;
}

static int close_device(void **state) {
    (void)state;
    clt_device_close(device);
    return 0;
}

int op_main(const char *group, const op_case *cases, size_t n_cases, const struct CMUnitTest *tests,
            size_t n_tests) {
    struct CMUnitTest *all = calloc(n_cases + n_tests, sizeof *all);
    if (!all) return 1;
    for (size_t i = 0; i < n_cases; i++)
        all[i] = (struct CMUnitTest){cases[i].name, op_check, NULL, NULL, (void *)(uintptr_t)&cases[i]};
    if (n_tests) memcpy(all + n_cases, tests, n_tests * sizeof *tests);
    int failed = _cmocka_run_group_tests(group, all, n_cases + n_tests, open_device, close_device);
    free(all);
    return failed;
}
