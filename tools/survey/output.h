/*
 * Files that a run writes at its end.
 */
#ifndef CLTRAIN_SURVEY_OUTPUT_H
#define CLTRAIN_SURVEY_OUTPUT_H

#include <stdbool.h>
#include <stdio.h>

/* A file that is written when all is done: a run that fails leaves the old one as it was. What is not a regular file (a device, a
 * FIFO) is written as it is. */
typedef struct output {
    char path[4096], temporary[4160]; /* temporary: "" where it is written in its place */
    FILE *file;
    struct output *next; /* that is open */
} output;

/* Begins the file beside its place, so that what cannot be written fails before the work; through a link, beside what the link
 * names; it keeps an old file's mode. "-", and what stdout is: stdout. NULL: none. Returns 0 or EXIT_FAILED. The output is not to be
 * moved until it is committed or aborted. */
int output_open(output *o, const char *path);
int output_commit(output *o);
void output_abort(output *o);

/* EXIT_FAILED after a message that writing to it failed, with its path and errno's words: of what output_open gave, or stdout. */
int output_failed(const FILE *file);

/* "-", or a name of the file that stdout is. False for NULL. */
bool output_is_stdout(const char *path);

#endif
