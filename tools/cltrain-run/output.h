/*
 * What ranks write: whole lines, each with the rank before it, and a copy in its log. Whoever reads the launcher's own output may stop to
 * do so for a while: the ranks then wait, and the launcher does not.
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
/* What is to be polled: -1 while there is no room for more. */
int output_source(const output *o);
/* Waits for room; false: not any more. */
bool output_await_room(const output *o);
/* Moves what is there. False once the rank, and all that it left, have closed it. */
bool output_move(output *o);
/* Writes a line without an end, and closes. */
void output_end(output *o);

/* ---- the launcher's own stdout and stderr ---- */

/* From now on what ranks and messages say is written by threads. Returns 0 or an exit code. */
int outputs_begin(void);
/* A descriptor that is ready when there is room again; and takes note of it. */
int outputs_room(void);
void outputs_take_room(void);
/* We were asked to end: nobody who does not read is waited for any longer. For signal handlers, too. */
void outputs_hurry(void);
/* Whether stdout was closed by who read it. */
bool outputs_are_broken(void);
/* Says if one cannot be written. */
void outputs_look(void);
/* Writes what is left. False: something was lost, and it was said. */
bool outputs_end(void);

#endif
