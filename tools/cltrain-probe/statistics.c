#include "statistics.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 256, LEAST_FOR_RANKS = 4 };

static int ascending(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

void statistics_sort(double *values, int n) {
    if (n > 0) qsort(values, (size_t)n, sizeof *values, ascending);
}

double statistics_quantile(const double *sorted, int n, double share) {
    if (n < 1) return NAN;
    double at = share * (n - 1);
    int low = (int)at, high = low + 1 < n ? low + 1 : low;
    return sorted[low] + (at - low) * (sorted[high] - sorted[low]);
}

double statistics_median(const double *values, int n) {
    double sorted[MOST];
    n = n < MOST ? n : MOST;
    memcpy(sorted, values, (size_t)(n > 0 ? n : 0) * sizeof *sorted);
    statistics_sort(sorted, n);
    return statistics_quantile(sorted, n, 0.5);
}

double statistics_rank_test(const double *a, int n_a, const double *b, int n_b) {
    double all[2 * MOST], u = 0, ties = 0;
    if (n_a < LEAST_FOR_RANKS || n_b < LEAST_FOR_RANKS || n_a > MOST || n_b > MOST) return 1;
    for (int i = 0; i < n_a; i++)
        for (int k = 0; k < n_b; k++) u += a[i] > b[k] ? 1 : a[i] == b[k] ? 0.5 : 0;
    int n = n_a + n_b;
    memcpy(all, a, (size_t)n_a * sizeof *a);
    memcpy(all + n_a, b, (size_t)n_b * sizeof *b);
    statistics_sort(all, n);
    for (int i = 0, k; i < n; i = k) {
        for (k = i + 1; k < n && all[k] == all[i]; k++) continue;
        double t = k - i;
        ties += t * t * t - t;
    }
    double pairs = (double)n_a * n_b;
    double variance = pairs / 12 * (n + 1 - ties / ((double)n * (n - 1)));
    double distance = fabs(u - pairs / 2) - 0.5;
    if (variance <= 0 || distance <= 0) return 1;
    return erfc(distance / sqrt(2 * variance));
}

const char *statistics_text(double value, char text[32]) {
    snprintf(text, 32, value > 0 && value < 0.1 ? "%.2g" : "%.2f", value);
    return text;
}
