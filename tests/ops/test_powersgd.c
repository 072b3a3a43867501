/* What PowerSGD is made of, against plain host code. */
#include "tests/support.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/random.h"
#include "runtime/exec/plan.h"
#include "runtime/ops/ops.h"

static clt_device *device;

typedef struct fixture {
    clt_graph *graph;
    clt_state_store *store;
    clt_plan *plan;
} fixture;

static void open_graph(fixture *f) {
    assert_ok(clt_graph_create(&f->graph));
    assert_ok(clt_state_store_create(device, &f->store));
}

static void compile(fixture *f, clt_tensor *const *targets, int n) {
    assert_ok(clt_graph_status(f->graph));
    assert_ok(clt_plan_compile(&f->plan, &(clt_plan_options){.device = device,
                                                             .store = f->store,
                                                             .graph = f->graph,
                                                             .targets = targets,
                                                             .n_targets = n,
                                                             .training = true}));
}

static void close_graph(fixture *f) {
    clt_plan_destroy(f->plan);
    clt_state_store_destroy(f->store);
    clt_graph_destroy(f->graph);
}

static void read_state(fixture *f, const char *name, float *values, size_t bytes) {
    size_t had;
    clt_memory *memory = clt_state_store_find(f->store, name, &had);
    assert_non_null(memory);
    assert_ok(clt_memory_read(memory, 0, values, bytes));
}

/* ---- orthonormal columns ---- */

static double product(const float *y, int rows, int rank, int a, int b) {
    double sum = 0;
    for (int i = 0; i < rows; i++) sum += (double)y[i * rank + a] * (double)y[i * rank + b];
    return sum;
}

/* What is left of x's column when its parts along y's columns are taken away, relative to it. */
static double outside(const float *x, const float *y, int rows, int rank, int column) {
    double left = 0, whole = 0, along[32] = {0};
    for (int k = 0; k < rank; k++)
        for (int i = 0; i < rows; i++) along[k] += (double)y[i * rank + k] * (double)x[i * rank + column];
    for (int i = 0; i < rows; i++) {
        double v = x[i * rank + column];
        whole += v * v;
        for (int k = 0; k < rank; k++) v -= along[k] * (double)y[i * rank + k];
        left += v * v;
    }
    return sqrt(left / (whole > 0 ? whole : 1));
}

/* Columns that differ by `apart` from being multiples of the first; of another size each. */
static void draw_columns(float *x, int rows, int rank, double apart) {
    clt_random random;
    clt_random_init(&random, 3, (uint64_t)(rows * rank));
    for (int i = 0; i < rows; i++) {
        double first = clt_random_normal(&random);
        for (int k = 0; k < rank; k++)
            x[i * rank + k] = (float)((first + (k ? apart * clt_random_normal(&random) : 0)) * pow(10, k % 5 - 2));
    }
}

static void check_orthogonalize(int rows, int rank, double apart) {
    fixture f;
    float *x = calloc((size_t)(rows * rank), sizeof *x), *y = calloc((size_t)(rows * rank), sizeof *y);
    draw_columns(x, rows, rank, apart);
    open_graph(&f);
    clt_tensor *in = clt_input(f.graph, "x", CLT_F32, CLT_SHAPE(rows, rank)), *out = clt_orthogonalize(in);
    compile(&f, &out, 1);
    assert_ok(clt_plan_feed(f.plan, in, x));
    assert_ok(clt_plan_run(f.plan));
    assert_ok(clt_plan_read(f.plan, out, y, (size_t)(rows * rank) * sizeof *y));
    for (int a = 0; a < rank; a++) {
        bool none = product(y, rows, rank, a, a) == 0;
        if (apart > 1e-3 && rank <= rows) assert_false(none);
        for (int b = 0; b <= a; b++) {
            double wanted = a == b && !none ? 1 : 0, got = product(y, rows, rank, a, b);
            if (!(fabs(got - wanted) <= 1e-5)) fail_msg("%d x %d, %g apart: columns %d and %d: %g", rows, rank, apart, a, b, got);
        }
        double left = outside(x, y, rows, rank, a);
        if (!(left <= 1e-4)) fail_msg("%d x %d: %g of column %d is outside", rows, rank, left, a);
    }
    close_graph(&f);
    free(x);
    free(y);
}

static void columns_become_orthonormal(void **state) {
    (void)state;
    static const int rows[] = {1, 3, 63, 64, 65, 1000};
    static const int ranks[] = {1, 2, 4, 32};
    static const double apart[] = {1, 1e-2, 1e-4, 1e-6, 0};
    for (size_t i = 0; i < CLT_COUNT_OF(rows); i++)
        for (size_t k = 0; k < CLT_COUNT_OF(ranks); k++)
            for (size_t a = 0; a < CLT_COUNT_OF(apart); a++) check_orthogonalize(rows[i], ranks[k], apart[a]);
}

/* ---- views, residuals, first factors ---- */

/* A part of a flat state is changed through its view; the rest is not. */
static void feedback_changes_its_part(void **state) {
    (void)state;
    enum { N = 4 * CLT_PACK_ALIGN, AT = CLT_PACK_ALIGN, ROWS = 5, COLUMNS = 60 };
    fixture f;
    float x[ROWS * COLUMNS], sent[ROWS * COLUMNS], residual[N], got[ROWS * COLUMNS];
    clt_shape shape = CLT_SHAPE(ROWS, COLUMNS);
    open_graph(&f);
    clt_tensor *in = clt_input(f.graph, "x", CLT_F32, shape), *away = clt_input(f.graph, "sent", CLT_F32, shape);
    clt_tensor *samples = clt_fill(f.graph, CLT_SHAPE(1), 4);
    clt_tensor *part = clt_flat_part(clt_state(f.graph, "residual", CLT_F32, CLT_SHAPE(N)), AT, shape);
    clt_tensor *sum = clt_feedback_add(part, in, samples);
    clt_tensor *targets[] = {clt_mul_scalar(sum, 1), clt_feedback_subtract(away, sum, 0.5f)};
    compile(&f, targets, 2);
    for (int i = 0; i < ROWS * COLUMNS; i++) x[i] = (float)i, sent[i] = (float)(i % 7);
    sent[11] = INFINITY; /* leaves no residual */
    assert_ok(clt_plan_feed(f.plan, in, x));
    assert_ok(clt_plan_feed(f.plan, away, sent));
    for (int step = 0; step < 2; step++) assert_ok(clt_plan_run(f.plan));
    assert_ok(clt_plan_read(f.plan, targets[0], got, sizeof got));
    read_state(&f, "residual", residual, sizeof residual);
    for (int i = 0; i < N; i++) {
        int k = i - AT;
        bool inside = k >= 0 && k < ROWS * COLUMNS;
        float each = inside ? x[k] / 4 - sent[k] / 2 : 0;
        if (k == 11) assert_true(residual[i] == 0 && got[k] == x[k] / 4);
        else if (inside) assert_true(residual[i] == 2 * each && got[k] == x[k] / 4 + each);
        else assert_true(residual[i] == 0);
    }
    close_graph(&f);
}

static void factors_are_seeded_where_zero(void **state) {
    (void)state;
    enum { N = 1000 };
    fixture f[2];
    float a[N], b[N];
    for (int i = 0; i < 2; i++) {
        open_graph(&f[i]);
        clt_tensor *factor = clt_seed_factor(clt_state(f[i].graph, "factor", CLT_F32, CLT_SHAPE(N)), 5);
        compile(&f[i], &factor, 1);
        for (int step = 0; step < 1 + i; step++) assert_ok(clt_plan_run(f[i].plan));
    }
    read_state(&f[0], "factor", a, sizeof a);
    read_state(&f[1], "factor", b, sizeof b);
    assert_memory_equal(a, b, sizeof a); /* the same anywhere; what is not zero stays */
    double sum = 0, squares = 0;
    for (int i = 0; i < N; i++) sum += (double)a[i], squares += (double)a[i] * (double)a[i];
    assert_true(fabs(sum / N) < 0.1 && fabs(squares / N - 1) < 0.15);
    for (int i = 0; i < 2; i++) close_graph(&f[i]);
}

static void what_does_not_fit_is_refused(void **state) {
    (void)state;
    static const int64_t offsets[] = {-256, 3, 256, 512};
    for (size_t i = 0; i < CLT_COUNT_OF(offsets); i++) {
        fixture f = {0};
        open_graph(&f);
        clt_flat_part(clt_state(f.graph, "flat", CLT_F32, CLT_SHAPE(512)), offsets[i], CLT_SHAPE(257));
        assert_status(clt_graph_status(f.graph), CLT_E_SHAPE);
        close_graph(&f);
    }
}

int main(void) {
    if (clt_device_open(&device, NULL) < 0) return puts(clt_error_detail()), 1;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(columns_become_orthonormal),
        cmocka_unit_test(feedback_changes_its_part),
        cmocka_unit_test(factors_are_seeded_where_zero),
        cmocka_unit_test(what_does_not_fit_is_refused),
    };
    int failed = cmocka_run_group_tests_name("powersgd", tests, NULL, NULL);
    clt_device_close(device);
    return failed;
}
