#include "runtime/base/random.h"

#include <math.h>
#include <string.h>

#include <Random123/philox.h>

void clt_random_init(clt_random *random, uint64_t seed, uint64_t stream) {
    *random = (clt_random){.seed = seed, .stream = stream, .used = 4};
}

static void draw_block(clt_random *random) {
    philox4x32_ctr_t counter = {{(uint32_t)random->counter, (uint32_t)(random->counter >> 32),
                                 (uint32_t)random->stream, (uint32_t)(random->stream >> 32)}};
    philox4x32_key_t key = {{(uint32_t)random->seed, (uint32_t)(random->seed >> 32)}};
    philox4x32_ctr_t block = philox4x32(counter, key);
    memcpy(random->words, block.v, sizeof random->words);
    random->counter++;
    random->used = 0;
}

uint32_t clt_random_u32(clt_random *random) {
    if (random->used == 4) draw_block(random);
    return random->words[random->used++];
}

static uint64_t draw_u64(clt_random *random) {
    uint64_t low = clt_random_u32(random);
    return low | (uint64_t)clt_random_u32(random) << 32;
}

double clt_random_uniform(clt_random *random) {
    return (double)(draw_u64(random) >> 11) * 0x1p-53;
}

uint64_t clt_random_below(clt_random *random, uint64_t n) {
    if (n < 2) return 0;
    uint64_t mask = UINT64_MAX >> __builtin_clzll(n - 1);
    for (;;) {
        uint64_t value = (mask > UINT32_MAX ? draw_u64(random) : clt_random_u32(random)) & mask;
        if (value < n) return value;
    }
}

/* Horner's scheme: c[0] + c[1] x + c[2] x^2 + … */
static double polynomial(const double *c, int n, double x) {
    double sum = c[n - 1];
    for (int i = n - 2; i >= 0; i--) sum = sum * x + c[i];
    return sum;
}

/* x = m 2^e with m in [sqrt(1/2), sqrt(2)), and log m = 2 artanh((m - 1) / (m + 1)) by its
 * series in s = (m - 1) / (m + 1), whose 13th term is below 2^-62 there. */
static double natural_log(double x) {
    static const double odd[] = {1,        1.0 / 3,  1.0 / 5,  1.0 / 7,  1.0 / 9,  1.0 / 11,
                                 1.0 / 13, 1.0 / 15, 1.0 / 17, 1.0 / 19, 1.0 / 21, 1.0 / 23};
    int exponent;
    double m = frexp(x, &exponent);
    if (m < 0.70710678118654752) {
        m *= 2;
        exponent--;
    }
    double s = (m - 1) / (m + 1);
    return exponent * 0.69314718055994531 + 2 * s * polynomial(odd, 12, s * s);
}

/* cos and sin of 2 pi u, u in [0, 1): reduced exactly to an angle within pi/4, then by Taylor
 * series up to powers 16 and 17. */
static void cosine_sine(double u, double *cosine, double *sine) {
    static const double cosine_terms[] = {1,
                                          -1.0 / 2,
                                          1.0 / 24,
                                          -1.0 / 720,
                                          1.0 / 40320,
                                          -1.0 / 3628800,
                                          1.0 / 479001600,
                                          -1.0 / 87178291200,
                                          1.0 / 20922789888000};
    static const double sine_terms[] = {1,
                                        -1.0 / 6,
                                        1.0 / 120,
                                        -1.0 / 5040,
                                        1.0 / 362880,
                                        -1.0 / 39916800,
                                        1.0 / 6227020800,
                                        -1.0 / 1307674368000,
                                        1.0 / 355687428096000};
    int quarter = (int)(4 * u + 0.5);
    double angle = (u - 0.25 * quarter) * 6.28318530717958648, square = angle * angle;
    double c = polynomial(cosine_terms, 9, square), s = angle * polynomial(sine_terms, 9, square);
    switch (quarter & 3) {
    case 0:
        *cosine = c, *sine = s;
        break;
    case 1:
        *cosine = -s, *sine = c;
        break;
    case 2:
        *cosine = -c, *sine = -s;
        break;
    default:
        *cosine = s, *sine = -c;
        break;
    }
}

/* Box and Muller 1958. 1 - u is in (0, 1], where the logarithm is finite. */
double clt_random_normal(clt_random *random) {
    if (random->has_spare) {
        random->has_spare = false;
        return random->spare;
    }
    double radius = sqrt(-2 * natural_log(1 - clt_random_uniform(random)));
    double cosine, sine;
    cosine_sine(clt_random_uniform(random), &cosine, &sine);
    random->spare = radius * sine;
    random->has_spare = true;
    return radius * cosine;
}
