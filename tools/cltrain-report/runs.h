/*
 * Runs as cltrain-train --log writes them: an object a line, of what began, of progress, of epochs and of the end.
 */
#ifndef CLTRAIN_REPORT_RUNS_H
#define CLTRAIN_REPORT_RUNS_H

#include <jansson.h>

typedef struct run {
    const char *path;
    const char *held_out; /* "test", or "validation" */
    json_t *start;        /* the last beginning; never NULL */
    json_t *records;      /* progress, tests and epochs in their order; of steps that were done again after a break, the later ones */
    json_t *epochs;       /* those of the records that are epochs */
    json_t *end;          /* NULL: it is not over, or was ended from outside */
} run;

/* Returns 0, or EXIT_USAGE after saying what is wrong. A last line that is cut off, as of a program that was killed, is left out. Release with run_free. */
int run_read(run *r, const char *path);
void run_free(run *r);

#endif
