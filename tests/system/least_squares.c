/*
 * The least-squares solution of a regression, by the normal equations in double
 * precision, on the same split of the same data as cltrain-train's: the yardstick
 * of what `linear` learns.
 *
 *     least_squares SPEC SEED      prints the solution's mean squared error on the test part
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "tools/cltrain-train/data_spec.h"
#include "tools/common/message.h"

const char program_name[] = "least_squares";

/* [x, 1] of one sample. */
static void fill_row(const float *x, int features, double *row) {
    for (int i = 0; i < features; i++) row[i] = (double)x[i];
    row[features] = 1;
}

/* Adds row^T [row, target] to the n rows of n + 1 columns. */
static void add_sample(double *equations, int n, const double *row, double target) {
    for (int i = 0; i < n; i++) {
        for (int k = 0; k < n; k++) equations[i * (n + 1) + k] += row[i] * row[k];
        equations[i * (n + 1) + n] += row[i] * target;
    }
}

static void swap_rows(double *equations, int columns, int a, int b) {
    for (int k = 0; k < columns; k++) {
        double kept = equations[a * columns + k];
        equations[a * columns + k] = equations[b * columns + k];
        equations[b * columns + k] = kept;
    }
}

/* Gauss and Jordan, with pivots. */
static void solve(double *equations, int n, double *solution) {
    int columns = n + 1;
    for (int i = 0; i < n; i++) {
        int pivot = i;
        for (int k = i + 1; k < n; k++)
            if (fabs(equations[k * columns + i]) > fabs(equations[pivot * columns + i])) pivot = k;
        swap_rows(equations, columns, i, pivot);
        for (int k = 0; k < n; k++) {
            double factor = equations[k * columns + i] / equations[i * columns + i];
            for (int j = i; k != i && j < columns; j++)
                equations[k * columns + j] -= factor * equations[i * columns + j];
        }
    }
    for (int i = 0; i < n; i++) solution[i] = equations[i * columns + n] / equations[i * columns + i];
}

typedef struct problem {
    int features, n; /* n = features + 1 unknowns */
    double *row, *equations, *solution;
} problem;

static void learn(problem *p, const clt_dataset *train) {
    const float *x = clt_dataset_array(train, 0).data, *y = clt_dataset_array(train, 1).data;
    for (int64_t i = 0; i < clt_dataset_samples(train); i++) {
        fill_row(x + i * p->features, p->features, p->row);
        add_sample(p->equations, p->n, p->row, (double)y[i]);
    }
    solve(p->equations, p->n, p->solution);
}

static double mean_squared_error(problem *p, const clt_dataset *test) {
    const float *x = clt_dataset_array(test, 0).data, *y = clt_dataset_array(test, 1).data;
    int64_t samples = clt_dataset_samples(test);
    double sum = 0;
    for (int64_t i = 0; i < samples; i++) {
        double error = -(double)y[i];
        fill_row(x + i * p->features, p->features, p->row);
        for (int k = 0; k < p->n; k++) error += p->solution[k] * p->row[k];
        sum += error * error;
    }
    return sum / (double)samples;
}

static int report(const data_parts *parts) {
    clt_shape sample = clt_dataset_shape(parts->train, 0);
    problem p = {.features = (int)clt_shape_elements(&sample)};
    p.n = p.features + 1;
    p.row = calloc((size_t)p.n, sizeof *p.row);
    p.equations = calloc((size_t)p.n * (size_t)(p.n + 1), sizeof *p.equations);
    p.solution = calloc((size_t)p.n, sizeof *p.solution);
    int code = p.row && p.equations && p.solution ? 0 : run_error("no memory");
    if (!code) {
        learn(&p, parts->train);
        double deviation = clt_preprocessing_target_deviation(parts->preprocessing); /* of the target, which is standardized */
        printf("%.12g\n", mean_squared_error(&p, parts->test) * deviation * deviation);
    }
    free(p.row);
    free(p.equations);
    free(p.solution);
    return code;
}

int main(int argc, char **argv) {
    data_spec spec;
    data_parts parts;
    if (argc != 3) return usage_error("expected SPEC SEED");
    int code = data_spec_parse(&spec, argv[1]);
    if (!code) code = data_open(&parts, &spec, true, true, strtoull(argv[2], NULL, 10), NULL);
    if (code) return code;
    code = report(&parts);
    data_close(&parts);
    return code;
}
