/*
 * A model on a device: what its training step takes, of time and memory. Asked of the library in a child process, with what has
 * to be measured for it.
 */
#ifndef CLTRAIN_PROBE_FORECAST_H
#define CLTRAIN_PROBE_FORECAST_H

#include <jansson.h>

#include "command.h"
#include "tools/survey/survey.h"

enum { FORECAST_MOST_BATCHES = 8, FORECAST_ROUNDS = 40 };

/* What is asked. */
typedef struct forecast_question {
    const survey *s;
    const survey_device *device;
    const shared_options *options; /* the model */
    const probe_model *model;      /* built, with the batch that is meant */
    int64_t batch;
    int64_t at[FORECAST_MOST_BATCHES]; /* batches at which problems are measured, come what may */
    int n_at;
    int64_t also[FORECAST_MOST_BATCHES]; /* batches for which the time alone is wanted too */
    int n_also;
    bool offline;   /* nothing is measured */
    bool refresh;   /* what is known is measured again */
    bool run;       /* real steps are run too */
    double seconds; /* for measuring, about */
    double timeout;
    const char *times; /* a file of times; NULL: the cache's */
} forecast_question;

/* What came of it. */
typedef struct forecast {
    const forecast_question *question;
    char status[16], reason[400];
    json_t *told; /* "memory", "largest_batch", "predicted", "also", "measured", "measured_at" as far as it came; owned */
    char doing[64];
    bool finished;
} forecast;

/* Always something: a device that fails has a status and a reason. */
void forecast_ask(const forecast_question *question, forecast *f);
void forecast_free(forecast *f);

/* Why times could not be kept, or their file could not be used, which is no fault of the device; NULL: nothing is wrong. */
const char *forecast_times_unsaved(const forecast *f);
const char *forecast_times_refused(const forecast *f);
/* Lines of the file that make no sense, and were left out. */
long long forecast_times_skipped(const forecast *f);

/* A member of a member: 0, or NULL, if it is not there. */
double forecast_number(const json_t *object, const char *member, const char *name);

/* Common parts of documents. */
json_t *forecast_model_json(const shared_options *options, const probe_model *model, int64_t batch);
/* The devices of a survey, or one of them, as documents have them. */

#endif
