/*
 * The command line.
 */
#ifndef CLTRAIN_TRAIN_OPTIONS_H
#define CLTRAIN_TRAIN_OPTIONS_H

#include <jansson.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include <cltrain/train.h>

#include "compress_spec.h"
#include "data_spec.h"
#include "lora_spec.h"
#include "pipeline_spec.h"
#include "tools/common/models.h"
#include "tools/common/option_parser.h"

#define PROGRAM "cltrain-train"

enum { BROKEN_STOP, BROKEN_SKIP };
enum { ON_FAILURE_STOP, ON_FAILURE_SHRINK };

/* Not given: whole numbers and choices have OPTION_UNSET, numbers NaN, texts NULL. */
typedef struct options {
    int argc; /* the command line */
    char **argv;
    const char *config; /* read before the others */
    json_t *as_given;   /* these and the file's, as --config takes them */
    const char *model, *model_word; /* as --model, or the word, which is the same */
    model_spec model_spec;
    const char *data;
    data_spec data_spec;
    bool no_standardize;
    int64_t data_threads;
    int broken_samples; /* BROKEN_STOP, BROKEN_SKIP, or OPTION_UNSET */
    bool stratify;
    const char *fold; /* "I/K" */
    bool balanced_sampling;
    double validation; /* fraction of the training part */
    double mixup, cutmix; /* alphas */

    int64_t epochs, steps, stop_after, batch, accumulate;
    int64_t seed;

    /* Several ranks: see agreement_begin and recipe_complete. */
    int ranks;             /* that the job began with; 1: this process alone */
    const char *shares;    /* as given */
    int64_t *each_batch;   /* --batch of each rank, or OPTION_UNSET */
    int64_t *each_share;   /* of a full batch, one a rank; `batch` is the own one */
    int64_t whole_batch;   /* their sum */
    bool balance;
    double bucket_mb;
    int64_t drift_steps;
    bool sync_batch_norm;
    int shard; /* clt_shard */
    const char *compress; /* as given */
    clt_compress_options compress_options;
    const char *pipeline; /* as given */
    pipeline_spec pipeline_spec;
    int on_failure; /* ON_FAILURE_… */

    int precision; /* clt_precision */
    int recompute, offload; /* clt_recompute, clt_offload */
    const char *offload_folder;
    const char *memory_limit;
    const char *class_weights; /* "balanced", or numbers */
    int loss; /* 0: cross_entropy, 1: mse */
    int optimizer; /* clt_optimizer */
    double lr, momentum, weight_decay;
    bool lr_find;
    bool nesterov;
    int schedule; /* clt_schedule */
    int64_t warmup, decay_steps;
    double decay_factor, min_lr;
    double clip_norm, clip_value;
    double ema; /* NaN: none */
    int on_nonfinite; /* clt_nonfinite */
    bool locate_nan;

    const char *device, *devices; /* of this process; of a thread each */
    const char *save, *resume, *evaluate, *export_to, *log, *tensorboard, *profile;
    const char *init, *freeze; /* a file of weights; patterns of names */
    bool init_matching;
    const char *lora, *export_lora; /* as given; a folder */
    lora_spec lora_spec;
    int64_t patience; /* epochs without a better test */
    int monitor;      /* what is better: MONITOR_..., of scores.h */
    const char *predict, *test, *from, *output; /* a trained model on other data: `data` is what is predicted or tested */
    const char *from_name, *data_name; /* what these are called: NULL: --from, and --predict or --test */
    int64_t save_every, test_every;

    const char *bundle; /* cltrain-offline: the folder that it writes; no option of the table */
    const char *json; /* a path, "-": stdout; NULL: text */
    bool list_devices, summary, quiet, help, version;
    int verbose; /* how often given */
} options;

/* Reads the command line and both SPECs in it. Returns 0, or EXIT_USAGE after saying what was
 * expected. With --help, --version or --list-devices MODEL and --data may be missing. `options`
 * must stay where it is. */
int options_parse(options *options, int argc, char **argv);
void options_free(options *options);

/* Nothing given. */
options options_standard(void);
/* What --predict and --test need is there, and fits. Returns 0, or an exit code after saying what does not. */
int options_check_use(options *given);

/* --broken-samples skip. */
bool options_skip_broken(const options *given);

/* Whether samples are mixed with others. */
bool options_mix(const options *given);
/* What products and convolutions take and give. */
clt_precision options_precision(const options *given);

/* Which measure --patience compares: of scores_monitored. */
int options_monitor(const options *given);

/* --help. */
void options_print_help(FILE *file);

#endif
