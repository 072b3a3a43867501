/*
 * Risky work in child processes with deadlines: a driver that crashes, hangs or is killed costs its own row, not
 * the run. A child tells what it found in lines, as it finds it, so that what was found before a crash stands.
 */
#ifndef CLTRAIN_SURVEY_CHILD_H
#define CLTRAIN_SURVEY_CHILD_H

#include <stdbool.h>
#include <stdio.h>

typedef struct child_job {
    /* In the child: writes lines, returns the exit code. Nothing of OpenCL may have been called in the parent. */
    int (*run)(FILE *lines, void *user);
    /* In the parent, for each line, without its end; false kills the child. */
    bool (*line)(const char *text, void *user);
    void *user;
    double silence_seconds; /* a child that says nothing for longer has hung */
} child_job;

typedef enum child_outcome {
    CHILD_DONE,    /* run() returned 0 */
    CHILD_FAILED,  /* it returned something else, or never: a driver ended the process; or it could not be started */
    CHILD_CRASHED, /* a signal ended it */
    CHILD_TIMEOUT, /* it said nothing for too long, and was killed */
    CHILD_STOPPED, /* line() returned false, or the program was told to stop */
    CHILD_NONSENSE /* it said more than any child has to say */
} child_outcome;

typedef struct child_end {
    child_outcome outcome;
    int code;         /* CHILD_FAILED */
    char reason[320]; /* in words; "" for CHILD_DONE */
    double seconds;   /* from its start to its end */
} child_end;

/* Runs them, so many at once, and waits for all but those that SIGKILL does not end within 5 s. What they write to stdout and stderr is kept from the terminal; its last line
 * is part of the reason. */
void child_run(const child_job *jobs, int n, int at_once, child_end *ends);

/* From now on stderr of children is the program's. */
void child_show_errors(bool show);

/* The signal that tells the program to stop, once child_catch_signals was called; 0: none came. Children are ended by it. */
void child_catch_signals(void);
int child_caught(void);

/* "ok", "crashed" …: the status of a row that a child had begun, by how the child ended. */
const char *child_status(const child_end *end);

#endif
