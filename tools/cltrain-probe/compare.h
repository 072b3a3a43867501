/*
 * Two benches, compared.
 */
#ifndef CLTRAIN_PROBE_COMPARE_H
#define CLTRAIN_PROBE_COMPARE_H

#include <jansson.h>
#include <stdbool.h>

#include <cltrain/cltrain.h>

enum { EXIT_WORSE = 1, EXIT_NOT_COMPARABLE = 2, MOST_SAMPLES = 256, MOST_PASSES = 64 };
enum { LEAST_PASSES = 3 }; /* of either bench, to tell a change */

typedef struct side {
    const json_t *row; /* NULL: it is not there */
    bool ok;
    double us[MOST_SAMPLES];      /* those of the best passes first, as many as there is room for */
    double passes[LEAST_PASSES]; /* the best sample of each of the best passes */
    int n, n_passes;
    double time;   /* the middle one of the best passes */
    double spread; /* the logarithm of how far its passes lie above the best one */
} side;

typedef enum change { SAME, FASTER, SLOWER, BROKEN, APPEARED, GONE, FIXED, NEITHER, INCONCLUSIVE } change;
extern const char *const change_names[];

typedef struct pair {
    const char *key;
    bool is_limit;
    side sides[2];
    double ratio; /* of b's time to a's, without the machine's part; 0: there is none */
    double p;     /* of the rank test */
    double threshold; /* this row's */
    change change;
} pair;

typedef struct comparison {
    const json_t *documents[2]; /* the caller's */
    pair *pairs;
    int n;
    int both; /* rows that are ok in both */
    double threshold; /* of the logarithm of a ratio: what is asked for, or the noise if that is more */
    double noise;     /* of logarithms: three times how far the best passes of one bench lie apart, in the median row; or how far
                       * the limits of both scatter, if that is more */
    double drift;     /* of the machine: logarithm of b's time to a's */
    int refused;      /* which of the documents is why there is none, 0 or 1; -1: both are */
    char why[400];    /* there is none; "" where there is */
} comparison;

/* compare_read.c: makes pairs of the documents' rows. */
int comparison_read(comparison *c);
/* Keeps which and why; returns EXIT_NOT_COMPARABLE. */
int comparison_refuse(comparison *c, int which, const char *format, ...) CLT_PRINTF(3, 4);

/* compare_judge.c: `percent` is the least change that counts. Returns 0, or EXIT_NOT_COMPARABLE with why; to be freed in any
 * case, and while the documents live. */
int comparison_make(comparison *c, const json_t *const documents[2], double percent);
void comparison_free(comparison *c);
/* "worse", "better" or "same" */
const char *comparison_verdict(const comparison *c);
/* A document of kind "compare". */
json_t *comparison_json(const comparison *c);

bool comparison_has_both(const pair *p); /* ok on both sides */
int comparison_count(const comparison *c, change what);

#endif
