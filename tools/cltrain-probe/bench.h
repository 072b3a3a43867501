/*
 * A bench: rows that are measured in several passes, so that what the machine does meanwhile meets all of them.
 */
#ifndef CLTRAIN_PROBE_BENCH_H
#define CLTRAIN_PROBE_BENCH_H

#include <jansson.h>
#include <stdbool.h>

#include <cltrain/cltrain.h>

#include "shapes.h"
#include "tools/survey/survey.h"

enum {
    BENCH_PASSES = 5,       /* of all rows */
    BENCH_MOST_PASSES = 16, /* of rows that did not settle before, while there is time */
    BENCH_SAMPLES = 12      /* of a row: in each pass, 2 ms each or one run */
};
#define BENCH_SETTLED 0.03 /* the three best passes of a row differ by no more than this part */

#define BENCH_NO_TIME "no time was left for it" /* the reason of rows that did not come to their turn */

#define BENCH_LIMIT_AMOUNT 1e9 /* operations or bytes: what times of limits that are rates are of */

typedef struct bench_row {
    bool is_limit;
    clt_limit limit;
    shape_line shape;
    char asked[32]; /* the backend to serve it, beside the row with what does in a run; "" for that one */
    char status[16], reason[400];
    double us[BENCH_MOST_PASSES][BENCH_SAMPLES];
    int n[BENCH_MOST_PASSES];
    double amount; /* of a limit: what its times are of; 0: the time itself is meant */
    char problem[CLT_PROBLEM_TEXT], backend[32], parameters[256];
    double flops, bytes, nmse, nmse_after; /* -1: not known */
    double done_flops; /* of `flops`, those that the algorithm does; 0: not known */
    /* placed on the roofline */
    const char *bound; /* "compute", "memory", "cache", "launch"; NULL: not placed */
    double roofline_us, fraction; /* 0: not known, as of a cache */
} bench_row;

typedef struct bench {
    const survey *s;
    const survey_device *device;
    bench_row *rows;
    int n_rows;
    json_t *table; /* of backends, as the device told it: [{"op", "backend"}, …]; NULL: not known */
    bool full, complete;
    int passes, most_passes; /* of all rows; of those that did not settle */
    double seconds;
    double timeout, opening_timeout; /* of silence: in a row, and before the first one */
    int hangs;
    double lost_seconds; /* in hangs: added to `seconds` */
    clt_peaks known;      /* what was ever reached on this device */
    uint64_t cache_bytes; /* what fits need not come from memory */
    double start;         /* of the run */
    double took;
    char lost[16], why_lost[400]; /* status and reason, where the device could not be opened any more; "" otherwise */
    uint32_t vector_width; /* of f32, as the device tells it; 0: not known */
} bench;

/* bench_run.c: measures all rows in child processes. */
void bench_measure(bench *b);
/* In how many passes the row has samples. */
int bench_passes(const bench_row *row);

/* bench_others.c: appends rows for the other backends of each op, once it is known what serves it. EXIT_FAILED after a message. */
int bench_add_others(bench *b);
/* For the child: what bench_add_others goes by. */
json_t *bench_table_json(clt_device *device);

/* bench_report.c */

/* Finds bounds and fractions, and what cannot be. */
void bench_place(bench *b);
json_t *bench_json(const bench *b);
int bench_write_csv(const bench *b, FILE *file);
void bench_print(const bench *b, FILE *file);
/* "limit copy", "op matmul …": what a row is called, in all documents. */
void bench_key(const bench_row *row, char key[400]);

#endif
