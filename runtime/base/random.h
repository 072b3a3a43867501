/*
 * Random numbers for the host: Philox4x32-10 (Salmon et al., "Parallel random
 * numbers: as easy as 1, 2, 3", 2011), in Random123's implementation.
 *
 * A generator is a key and a counter, so that streams are independent without
 * any state in common, and the same (seed, stream) gives the same numbers on
 * every platform: the normal distribution uses IEEE additions, products and
 * square roots alone, no function of the C library whose last bit may differ.
 */
#ifndef CLT_BASE_RANDOM_H
#define CLT_BASE_RANDOM_H

#include <stdbool.h>
#include <stdint.h>

/* Which stream a use of the seed draws from, so that no two of them share numbers: index is an
 * epoch, a sample, a parameter …, below 2^48. */
#define CLT_RANDOM_STREAM(use, index) ((uint64_t)(use) << 48 | (uint64_t)(index))
enum {
    CLT_RANDOM_INITIAL_VALUES = 1,
    CLT_RANDOM_SPLIT,
    CLT_RANDOM_LOADER,
    CLT_RANDOM_SYNTHETIC_MODEL,
    CLT_RANDOM_SYNTHETIC_SAMPLE,
    CLT_RANDOM_TOKEN,
    CLT_RANDOM_AUGMENT,
    CLT_RANDOM_MIX
};

/* A plain value: may be copied, needs no release; one thread at a time. */
typedef struct clt_random {
    uint64_t seed;    /* the key */
    uint64_t stream;  /* upper half of the counter */
    uint64_t counter; /* lower half: blocks drawn so far */
    uint32_t words[4];
    int used;     /* words of the block already handed out */
    double spare; /* Box-Muller makes normals in pairs */
    bool has_spare;
} clt_random;

/* Starts stream number `stream` of the seed. Streams of a seed do not overlap. */
void clt_random_init(clt_random *random, uint64_t seed, uint64_t stream);

uint32_t clt_random_u32(clt_random *random);

/* In [0, 1), a multiple of 2^-53. As a float it may round to 1. */
double clt_random_uniform(clt_random *random);

/* Mean 0, standard deviation 1. */
double clt_random_normal(clt_random *random);

/* In [0, n), without modulo bias; 0 for n = 0. */
uint64_t clt_random_below(clt_random *random, uint64_t n);

#endif
