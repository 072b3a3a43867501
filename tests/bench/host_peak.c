#include "tests/bench/host_peak.h"

#include <stdbool.h>
#include <stdlib.h>

#include "runtime/base/base.h"
#include "runtime/base/thread.h"

enum { CHAINS = 12, ROUNDS = 400000, MOST_THREADS = 256 };

/* Each chain counts the rounds, from a start of its own, lest a compiler take them for one; returns
 * the sum of all chains' first lanes. */
typedef double peak_loop(float one, int rounds);

/* Twelve chains that wait for nothing but themselves. */
#define EACH(DO) DO(a0) DO(a1) DO(a2) DO(a3) DO(a4) DO(a5) DO(a6) DO(a7) DO(a8) DO(a9) DO(a10) DO(a11)

#if defined __x86_64__
#include <immintrin.h>

__attribute__((target("avx512f"))) static double loop_avx512(float one, int rounds) {
    __m512 factor = _mm512_set1_ps(one);
#define START(a) __m512 a = _mm512_set1_ps(start++);
#define STEP(a)  a = _mm512_fmadd_ps(a, factor, factor);
#define SUM(a)   sum += (double)_mm512_cvtss_f32(a);
    float start = 0;
    EACH(START)
    for (int r = 0; r < rounds; r++) {
        EACH(STEP)
        __asm__ volatile("");
    }
    double sum = 0;
    EACH(SUM)
    return sum;
#undef START
#undef STEP
#undef SUM
}

__attribute__((target("avx2,fma"))) static double loop_avx2(float one, int rounds) {
    __m256 factor = _mm256_set1_ps(one);
#define START(a) __m256 a = _mm256_set1_ps(start++);
#define STEP(a)  a = _mm256_fmadd_ps(a, factor, factor);
#define SUM(a)   sum += (double)_mm256_cvtss_f32(a);
    float start = 0;
    EACH(START)
    for (int r = 0; r < rounds; r++) {
        EACH(STEP)
        __asm__ volatile("");
    }
    double sum = 0;
    EACH(SUM)
    return sum;
#undef START
#undef STEP
#undef SUM
}

static peak_loop *choose(int *width) {
    *width = __builtin_cpu_supports("avx512f") ? 16 : 8;
    if (*width == 16) return loop_avx512;
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") ? loop_avx2 : NULL;
}

#elif defined __aarch64__
#include <arm_neon.h>

static double loop_neon(float one, int rounds) {
    float32x4_t factor = vdupq_n_f32(one);
#define START(a) float32x4_t a = vdupq_n_f32(start++);
#define STEP(a)  a = vfmaq_f32(factor, a, factor);
#define SUM(a)   sum += (double)vgetq_lane_f32(a, 0);
    float start = 0;
    EACH(START)
    for (int r = 0; r < rounds; r++) {
        EACH(STEP)
        __asm__ volatile("");
    }
    double sum = 0;
    EACH(SUM)
    return sum;
#undef START
#undef STEP
#undef SUM
}

static peak_loop *choose(int *width) {
    *width = 4;
    return loop_neon;
}

#else

static peak_loop *choose(int *width) {
    *width = 1;
    return NULL;
}

#endif

typedef struct job {
    peak_loop *loop;
    double sums[MOST_THREADS];
} job;

static void run(void *argument, int i) {
    job *j = argument;
    j->sums[i] = j->loop(1.0f, ROUNDS);
}

void host_peak_tries(int threads, double *rates, int n) {
    int width;
    job j = {.loop = choose(&width)};
    threads = CLT_MIN(CLT_MAX(threads, 1), MOST_THREADS);
    for (int try = 0; try < n; try++) {
        double start = clt_seconds();
        if (j.loop) clt_parallel_for(threads, threads, run, &j);
        rates[try] = j.loop ? 2.0 * CHAINS * ROUNDS * width * threads / (clt_seconds() - start) : 0;
        for (int i = 0; i < threads; i++)
            if (j.sums[i] != (double)CHAINS * (ROUNDS + (CHAINS - 1) / 2.0)) rates[try] = 0;
    }
}

double host_peak(int threads) {
    double rates[6], best = 0;
    host_peak_tries(threads, rates, (int)CLT_COUNT_OF(rates));
    for (size_t i = 0; i < CLT_COUNT_OF(rates); i++) best = CLT_MAX(best, rates[i]);
    return best;
}

/* ---- STREAM's copy ---- */

typedef struct copy_job {
    const float *a;
    float *c;
    size_t n;
    int threads;
} copy_job;

static void copy(void *argument, int i) {
    const copy_job *j = argument;
    size_t end = j->n * (size_t)(i + 1) / (size_t)j->threads;
    for (size_t k = j->n * (size_t)i / (size_t)j->threads; k < end; k++) j->c[k] = j->a[k];
}

void host_copy_tries(int threads, size_t bytes, double *rates, int n) {
    float *a = calloc(bytes, 1), *c = malloc(bytes);
    copy_job j = {a, c, bytes / sizeof *a, CLT_MIN(CLT_MAX(threads, 1), MOST_THREADS)};
    for (size_t k = 0; a && c && k < j.n; k++) a[k] = c[k] = (float)(k % 97);
    for (int try = 0; try < n; try++) {
        double start = clt_seconds();
        if (a && c) clt_parallel_for(j.threads, j.threads, copy, &j);
        rates[try] = a && c ? 2.0 * (double)bytes / (clt_seconds() - start) : 0;
    }
    free(a);
    free(c);
}
