/*
 * What came of a run: as text, as one JSON object, and as JSON lines on the way.
 */
#ifndef CLTRAIN_TRAIN_REPORT_H
#define CLTRAIN_TRAIN_REPORT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include <cltrain/cltrain.h>

#include "options.h"
#include "profiler.h"
#include "scores.h"
#include "stages.h"

/* What a stage of a pipeline has, and had at most. */
typedef struct stage_report {
    char device[128];
    int64_t parameters;
    uint64_t peak_device_bytes;
    double waited_seconds;
    int in_flight; /* micro-batches whose activations it kept at once */
} stage_report;

/* NaN where there is nothing to tell. */
typedef struct report {
    const options *options;
    const clt_device_info *device;
    const clt_preprocessing *preprocessing; /* of the data */
    bool classification;
    bool tokens; /* its truth is tokens, so that there is a perplexity */
    bool standardized;
    int64_t parameters, trained_parameters, train_samples, test_samples;
    uint64_t train_hash; /* fingerprint of the training part */
    double best_loss;   /* of the best epoch's test: its loss, or what --monitor names */
    const char *saved_to; /* the checkpoint: --save, or `elsewhere`; NULL: nowhere */
    char elsewhere[4096]; /* the path instead of --save, which another run writes; "": there is none */
    bool exported;      /* weights were written by this run */
    int64_t best_epoch; /* of --patience: the one with the best test; 0: not looked for */
    int64_t unimproved; /* epochs since, of those that were compared */
    bool stopped_early;
    int64_t epochs, steps; /* done, those before --resume among them */
    int64_t drifts;  /* times that ranks had other parameters than rank 0, and took over its */
    int64_t skipped; /* steps of this run that were left out: their gradients were not finite */
    int64_t broken_samples;   /* of training, by all ranks: others took their places */
    int64_t broken_tested;    /* of the last test, which is without them */
    int64_t broken_validated; /* the same of --validation */
    double data_wait_seconds; /* for batches, in training */
    clt_metrics train;     /* of the last epoch, or of its part that was run */
    clt_metrics test;
    clt_metrics validation; /* of --validation, at the end; until then it is `test`. No samples: there is none */
    int64_t validation_samples; /* 0: there is no such part */
    clt_evaluation scores; /* of the last test; no samples: none */
    int64_t *confusion;    /* of it: [classes, classes], truth by prediction; NULL: there are too many, or none */
    int classes;
    worst_sample worst[SCORES_WORST]; /* of it, by falling losses */
    int n_worst;
    const char *held_out; /* what the part that is not trained on is called: "test", or of text "validation" */
    double samples_per_second; /* of the last epoch, or of its part that was run: without the first step, tests and saving */
    double epoch_seconds;      /* that this is of */
    double first_step_seconds; /* from the model's compilation to its first step's end */
    double kernel_seconds;     /* what the first step took longer than those after it do: kernels are built then */
    double total_seconds;
    float loss_scale; /* of f16 */
    uint64_t peak_device_bytes;
    stage_report *stages;  /* of --pipeline, one a rank; NULL: there are none */
    stage_times timed;     /* of --pipeline and --profile */
    const char *engine;    /* that carries what ranks exchange */
    int ranks;             /* at the end; the options have those of the beginning */
    uint64_t bytes_sent;   /* by this rank to others */
    double waited_seconds; /* for others, in steps */
    clt_compress_report compress; /* zeros: nothing is compressed */
    profiler profile;
    int signal; /* that ended it, or 0 */
} report;

/* Metrics of nothing: no samples, NaN. */
clt_metrics report_no_metrics(void);

/* Squared errors of a standardized target become those of the target as it was read. */
void report_as_read(clt_metrics *metrics, const clt_preprocessing *preprocessing);

/* Return false if the stream took no more. */
bool report_print_text(const report *report, FILE *file);
bool report_print_json(const report *report, FILE *file);

/* --log: a JSON object a line, each flushed. A log that can no longer be written is warned of
 * once, and training goes on. */
typedef struct run_log run_log;
/* Returns NULL after saying why it cannot be opened. */
run_log *run_log_open(const char *path, bool append);
/* All of these: NULL is fine. */
void run_log_start(run_log *log, const report *report);
void run_log_progress(run_log *log, const report *r, double lr, const clt_metrics *train, double rate);
/* Of --test-every. */
void run_log_test(run_log *log, const report *report);
void run_log_epoch(run_log *log, const report *report, double lr);
void run_log_end(run_log *log, const report *report);
void run_log_close(run_log *log);

#endif
