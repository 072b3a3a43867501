/* Tokens drawn by their logits. */
#include <cltrain/text.h>

#include <math.h>
#include <stdlib.h>

#include "runtime/base/base.h"
#include "runtime/base/random.h"

typedef struct candidate {
    double weight; /* a probability, times what is the same for all */
    int32_t token;
} candidate;

/* The likeliest first, of equal ones the first. */
static int by_weight(const void *a, const void *b) {
    const candidate *x = a, *y = b;
    if (x->weight != y->weight) return x->weight < y->weight ? 1 : -1;
    return x->token < y->token ? -1 : 1;
}

static clt_status check(const float *logits, int64_t n, const clt_sampling_options *o, const int32_t *token) {
    if (!logits || !o || !token || n < 1 || n > INT32_MAX) return clt_fail(CLT_E_INVALID, "clt_sample_token: an argument is NULL, or %lld logits", (long long)n);
    if (!(o->temperature >= 0 && isfinite(o->temperature))) return clt_fail(CLT_E_INVALID, "temperature %g: expected 0 or more", (double)o->temperature);
    if (o->top_k < 0) return clt_fail(CLT_E_INVALID, "top_k %d: expected 0 or more", o->top_k);
    if (!(o->top_p >= 0 && o->top_p <= 1)) return clt_fail(CLT_E_INVALID, "top_p %g: expected 0 to 1", (double)o->top_p);
    for (int64_t i = 0; i < n; i++)
        if (!isfinite(logits[i])) return clt_fail(CLT_E_NONFINITE, "the logit of token %lld is %g", (long long)i, (double)logits[i]);
    return CLT_OK;
}

static int32_t likeliest(const float *logits, int64_t n) {
    int64_t best = 0;
    for (int64_t i = 1; i < n; i++)
        if (logits[i] > logits[best]) best = i;
    return (int32_t)best;
}

static double total(const candidate *all, int64_t n) {
    double sum = 0;
    for (int64_t i = 0; i < n; i++) sum += all[i].weight;
    return sum;
}

/* How many of the likeliest are left. */
static int64_t cut(candidate *all, int64_t n, const clt_sampling_options *o) {
    if (!o->top_k && o->top_p == 0) return n;
    qsort(all, (size_t)n, sizeof *all, by_weight);
    int64_t kept = o->top_k ? CLT_MIN(n, o->top_k) : n;
    if (o->top_p == 0) return kept;
    double wanted = o->top_p * total(all, kept), sum = 0;
    int64_t count = 0;
    while (count < kept && (sum < wanted || !count)) sum += all[count++].weight;
    return count;
}

static int32_t draw(const candidate *all, int64_t n, uint64_t seed, uint64_t step) {
    clt_random random;
    clt_random_init(&random, seed, CLT_RANDOM_STREAM(CLT_RANDOM_TOKEN, step));
    double left = clt_random_uniform(&random) * total(all, n);
    int64_t i = 0;
    while (i + 1 < n && (left -= all[i].weight) >= 0) i++;
    return all[i].token;
}

clt_status clt_sample_token(const float *logits, int64_t n, const clt_sampling_options *o, uint64_t step, int32_t *token) {
    CLT_TRY(check(logits, n, o, token));
    int32_t best = likeliest(logits, n);
    *token = best;
    if (o->temperature == 0) return CLT_OK;
    candidate *all = clt_alloc((size_t)n * sizeof *all);
    if (!all) return clt_fail_memory((size_t)n * sizeof *all);
    for (int64_t i = 0; i < n; i++) all[i] = (candidate){exp(((double)logits[i] - (double)logits[best]) / o->temperature), (int32_t)i};
    *token = draw(all, cut(all, n, o), o->seed, step);
    clt_free(all);
    return CLT_OK;
}
