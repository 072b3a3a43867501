/*
 * What a command asks of one device, in a child process with a deadline: a driver that crashes or hangs ends the child, and what it
 * prints is not in the way.
 */
#ifndef CLTRAIN_PROBE_ON_DEVICE_H
#define CLTRAIN_PROBE_ON_DEVICE_H

#include <jansson.h>
#include <stdio.h>

#include "command.h"
#include "tools/survey/child.h"
#include "tools/survey/survey.h"

/* Of an option table, with the offset of a double. */
#define TIMEOUT_ROW(offset, words) {OPTION_POSITIVE, 0, "timeout", "SECONDS", offset, .help = words}

typedef struct on_device {
    /* In the child: tells lines by document_line. *wrong: what the device computes is. */
    clt_status (*ask)(FILE *lines, clt_device *device, bool *wrong, void *user);
    void (*take)(const json_t *told, void *user); /* in the parent, a line */
    void *user;
    double silence_seconds; /* take may change it */
    /* what came of it */
    survey s;
    const survey_device *device;
    char status[16], reason[600]; /* "ok", or why not all was told */
    bool finished;
} on_device;

/* Looks for the device. Returns 0; EXIT_FAILED after a message; EXIT_SIGNAL + a signal. Then free it. */
int on_device_choose(on_device *o, const shared_options *options, double timeout);
void on_device_ask(on_device *o);
/* The exit code, after a message if it failed: the last thing to say. `code`: of what was done with the answer. */
int on_device_verdict(const on_device *o, int code);
/* A document of the kind with the device in it. */
json_t *on_device_document(const on_device *o, const char *kind);
void on_device_free(on_device *o);

/* A number of what a child told; 0 if there is none. */
int told_whole(const json_t *told, const char *key);
double told_number(const json_t *told, const char *key);

#endif
