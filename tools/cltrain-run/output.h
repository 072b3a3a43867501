/*
 * What a rank writes: whole lines, each with the rank before it, and a copy in its log.
 */
#ifndef CLTRAIN_RUN_OUTPUT_H
#define CLTRAIN_RUN_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>

typedef struct output {
    int from;      /* the rank's end of the pipe is another; -1: closed */
    int to, log;   /* 1 or 2; -1: no log */
    char prefix[40];
    char *line;    /* without its end so far */
    size_t length;
} output;

/* rank -1: no prefix. False: no memory. */
bool output_begin(output *o, int from, int to, int rank, int log);
/* Moves what is there. False once the rank, and all that it left, have closed it. */
bool output_move(output *o);
/* Writes a line without an end, and closes. */
void output_end(output *o);
/* Whether our own output was closed by who read it. */
bool output_is_broken(void);

#endif
