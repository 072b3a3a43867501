/* Compression of gradients, in double precision. */
#include <math.h>
#include <stdlib.h>

#include "tools/cltrain-conform/updates.h"

enum { BLOCK = 256 };

/* To the nearest with so many bits, ties to even. */
static double rounded(double value, int bits) {
    int exponent;
    double part = frexp(value, &exponent);
    return ldexp(rint(ldexp(part, bits)), exponent - bits);
}

static double bf16(double value) {
    return rounded(value, 8);
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

/* As ref_seed_factor of cl/reference/powersgd.cl says: a random number from its place, near to normal. */
static double seed_of(uint32_t place) {
    uint32_t h = place * 0x9e3779b9u;
    h = (h ^ h >> 16) * 0x85ebca6bu;
    h = (h ^ h >> 13) * 0xc2b2ae35u;
    h ^= h >> 16;
    return ((double)((h & 255) + (h >> 8 & 255) + (h >> 16 & 255) + (h >> 24)) - 509.5) / 147.8;
}

/* Columns of x (rows, rank) become orthonormal, by Gram and Schmidt's method. */
static void orthonormalize(double *x, int rows, int rank) {
    for (int c = 0; c < rank; c++) {
        double norm = 0;
        for (int k = 0; k < c; k++) {
            double along = 0;
            for (int i = 0; i < rows; i++) along += x[i * rank + k] * x[i * rank + c];
            for (int i = 0; i < rows; i++) x[i * rank + c] -= along * x[i * rank + k];
        }
        for (int i = 0; i < rows; i++) norm += x[i * rank + c] * x[i * rank + c];
        for (int i = 0; i < rows; i++) x[i * rank + c] /= sqrt(norm);
    }
}

/* Vogels, Karimireddy, Jaggi 2019: P = M Q made orthonormal, Q = M' P, and P Q' arrives. */
static void powersgd(host *h) {
    int columns = h->of->columns, rows = h->n / columns, rank = h->o->compress.rank;
    double *left = calloc((size_t)(rows * rank), sizeof *left), *right = h->factor;
    if (!left) exit(3);
    for (int i = 0; i < columns * rank; i++)
        if (right[i] == 0) right[i] = seed_of((uint32_t)i);
    for (int i = 0; i < h->n; i++)
        for (int k = 0; k < rank; k++) left[i / columns * rank + k] += h->g[i] * right[i % columns * rank + k];
    orthonormalize(left, rows, rank);
    for (int i = 0; i < columns * rank; i++) right[i] = 0;
    for (int i = 0; i < h->n; i++)
        for (int k = 0; k < rank; k++) right[i % columns * rank + k] += h->g[i] * left[i / columns * rank + k];
    for (int i = 0; i < h->n; i++) {
        double arrives = 0;
        for (int k = 0; k < rank; k++) arrives += left[i / columns * rank + k] * right[i % columns * rank + k];
        h->residual[i] = h->g[i] - arrives;
        h->g[i] = arrives;
    }
    free(left);
}

void compress_on_host(host *h) {
    clt_compression method = h->o->compress.method;
    for (int i = 0; i < h->n && method == CLT_COMPRESS_F16; i++) h->g[i] = rounded(h->g[i], 11);
    for (int i = 0; i < h->n && method == CLT_COMPRESS_BF16; i++) h->g[i] = bf16(h->g[i]);
    if (method != CLT_COMPRESS_ONEBIT && method != CLT_COMPRESS_TOPK && method != CLT_COMPRESS_POWERSGD) return;
    for (int i = 0; i < h->n; i++) h->g[i] += h->residual[i];
    if (method == CLT_COMPRESS_TOPK) topk(h);
    if (method == CLT_COMPRESS_POWERSGD) powersgd(h);
    for (int i = 0; i < h->n && method == CLT_COMPRESS_ONEBIT; i += BLOCK)
        onebit(h->g + i, h->residual + i, h->n - i < BLOCK ? h->n - i : BLOCK);
}

/* Half of 1/127 of the largest, whose scale may be rounded up by 1/128; a sample's gradients are below 2. What was not sent yet
 * is lost with each update that is left out, of which there are two. */
double compress_slack(const host *h) {
    double largest = 2.1 * samples_of(h->of), unsent = h->of->broken != 0 ? 3 : 1;
    return h->o->compress.method == CLT_COMPRESS_INT8 ? unsent * (double)h->o->lr * largest / 127 / 2 * (1 + 1.0 / 128) : 0;
}
