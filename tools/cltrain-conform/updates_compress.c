/* Compression of gradients, in double precision. */
#include <math.h>
#include <stdlib.h>

#include "tools/cltrain-conform/updates.h"

enum { BLOCK = 256 };

/* To the nearest with 8 bits, ties to even. */
static double bf16(double value) {
    int exponent;
    double part = frexp(value, &exponent);
    return ldexp(rint(ldexp(part, 8)), exponent - 8);
}

/* Of a block: the sign of each, and the means of those below zero and of the others. */
static void onebit(double *g, double *residual, int n) {
    double sum[2] = {0, 0}, count[2] = {0, 0};
    for (int i = 0; i < n; i++) {
        sum[g[i] < 0] += g[i];
        count[g[i] < 0]++;
    }
    for (int i = 0; i < n; i++) {
        bool below = g[i] < 0;
        double arrives = bf16((double)(float)(sum[below] / count[below]));
        residual[i] = g[i] - arrives;
        g[i] = arrives;
    }
}

static int by_magnitude(const void *a, const void *b) {
    double x = fabs(*(const double *)a), y = fabs(*(const double *)b);
    return (x < y) - (x > y);
}

/* The largest alone; of equals the first. */
static void topk(host *h) {
    int k = (int)ceil((double)h->o->compress.ratio * h->n);
    double *sorted = malloc((size_t)h->n * sizeof *sorted);
    if (!sorted) exit(3);
    for (int i = 0; i < h->n; i++) sorted[i] = h->g[i];
    qsort(sorted, (size_t)h->n, sizeof *sorted, by_magnitude);
    double least = fabs(sorted[k > 0 ? k - 1 : 0]);
    int equals = k;
    for (int i = 0; i < h->n; i++) equals -= fabs(h->g[i]) > least;
    for (int i = 0; i < h->n; i++) {
        bool equal = fabs(h->g[i]) == least && equals > 0, arrives = fabs(h->g[i]) > least || equal;
        equals -= equal;
        double sent = !arrives ? 0 : h->o->compress.f32_values ? h->g[i] : bf16(h->g[i]);
        h->residual[i] = h->g[i] - sent;
        h->g[i] = sent;
    }
    free(sorted);
}

void compress_on_host(host *h) {
    clt_compression method = h->o->compress.method;
    if (method != CLT_COMPRESS_ONEBIT && method != CLT_COMPRESS_TOPK) return; /* nothing stays behind, or little */
    for (int i = 0; i < h->n; i++) h->g[i] += h->residual[i];
    if (method == CLT_COMPRESS_TOPK) topk(h);
    for (int i = 0; i < h->n && method == CLT_COMPRESS_ONEBIT; i += BLOCK)
        onebit(h->g + i, h->residual + i, h->n - i < BLOCK ? h->n - i : BLOCK);
}

/* Half of 1/127 of the largest, whose scale may be rounded up by 1/128; gradients are below 2. */
double compress_slack(const host *h) {
    return h->o->compress.method == CLT_COMPRESS_INT8 ? (double)h->o->lr * 2.1 / 127 / 2 * (1 + 1.0 / 128) : 0;
}
