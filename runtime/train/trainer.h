/*
 * The trainer inside.
 *
 * A trainer holds the memory that outlives steps (parameters, optimizer state,
 * metric sums) and plans: one for training, evaluation or a prediction at
 * sizes of a batch, made on first use from a clone of the user's graph.
 */
#ifndef CLT_TRAIN_TRAINER_H
#define CLT_TRAIN_TRAINER_H

#include <cltrain/train.h>

#include "runtime/exec/plan.h"
#include "runtime/pipeline/cut.h"
#include "runtime/trial/tune.h"
#include "runtime/ops/ops.h"

/* What a plan is for. */
typedef enum clt_purpose {
    CLT_PURPOSE_TRAIN,
    CLT_PURPOSE_EVALUATE,
    CLT_PURPOSE_PREDICT,
    CLT_PURPOSE_LOCATE /* forward and backward of training, up to the gradients, with nothing fused */
} clt_purpose;

/* What i32 values of an input must be. */
typedef struct clt_index_limit {
    int64_t below; /* in [0, below); 0: anything */
    bool ignores;  /* or what stands for none */
    bool counted;  /* a loss leaves that out, so accuracy does, whatever else reads it */
    int32_t ignored;
} clt_index_limit;

/* A graph made from the user's, compiled. */
typedef struct clt_step {
    clt_purpose purpose;
    clt_sizes sizes; /* a batch of 0: what a rank without samples does in a training step */
    const clt_tensor *predicted; /* the user's tensor that a prediction computes; else NULL */
    clt_graph *graph;
    clt_plan *plan;
    clt_tensor *hyper, *rng, *result, *samples, *all_samples, *images; /* those that there are */
    bool reads_weights16;
    clt_tensor *inputs[CLT_MAX_FIELDS];
    clt_index_limit limits[CLT_MAX_FIELDS]; /* of the inputs, at these sizes */
    clt_edges edges;       /* of a stage of a pipeline */
    struct clt_step *more; /* the same for another micro-batch in flight; NULL: there was none yet */
} clt_step;

typedef struct clt_stage clt_stage; /* stage.h */

/* Parameters that lie one after the other in flat tensors, with their gradients and state. */
typedef struct clt_bucket {
    clt_variable **variables;
    int64_t *offsets; /* in elements, multiples of CLT_PACK_ALIGN */
    int n;
    int64_t elements; /* of the flat tensors */
    int rule;         /* of the options, for all of them; -1: none */
} clt_bucket;

enum { CLT_MAX_OPTIMIZER_STATES = 3 };

/* A mean's sum: what is added up, its compensation, and the weight of what was left out for it is not finite. */
enum { CLT_MEAN_SUM, CLT_MEAN_COMPENSATION, CLT_MEAN_LEFT_OUT, CLT_MEAN_COUNT };

/* The sums of one kind of step, in memory of the store. */
typedef struct clt_metric_names {
    const char *loss, *correct, *mse;
} clt_metric_names;

/* What metrics are means over: samples, and their labels, one each or the tokens of a sequence. */
typedef struct clt_seen {
    int64_t samples, labels;
} clt_seen;

/* What a step that failed has left behind. */
typedef enum clt_trouble {
    CLT_TROUBLE_NONE,
    CLT_TROUBLE_STOPPED, /* the parameters are those before the step: clt_trainer_recover helps */
    CLT_TROUBLE_TORN     /* some may have been updated, some not: only a checkpoint helps */
} clt_trouble;

/* Of sizes of batches beyond these, those that were not run for longest are forgotten: a plan has device memory of its own. */
enum { CLT_MOST_PLANS = 16 };

struct clt_trainer {
    clt_device *device;
    clt_graph *graph;
    clt_tensor *loss;
    clt_train_options options; /* with the defaults filled in; `comm` is the present group's */
    clt_stage *stage;          /* the stage of a pipeline, whose ranks are not options.comm; NULL: the whole model */
    char *backends, *passes, *model; /* of the options: copies */
    clt_parameter_rule *rules;
    clt_preprocessing *preprocessing;
    char *preprocessing_text, *tokenizer_text, *note; /* as files have them */
    clt_state_store *store;

    clt_tensor *inputs[CLT_MAX_FIELDS]; /* of the user's graph */
    clt_index_limit input_limits[CLT_MAX_FIELDS];
    bool needed[CLT_MAX_FIELDS];          /* by steps: the loss or what is counted depends on it */
    int n_inputs;

    bool *trained; /* by variable, as it was when the trainer was created */
    size_t n_variables, n_nodes; /* of the graph then */

    clt_bucket *buckets;
    int n_buckets;

    int moves; /* of the store's variables, when the plans were made */
    int weights16_of; /* clt_state_store_lent when weights16.c's copy was last known to be right */
    clt_step *plans[CLT_MOST_PLANS]; /* the one that was asked for last is last */
    size_t n_plans;
    clt_tune_run run; /* which rows serve it: decided with the first plan, and kept in checkpoints */

    int64_t steps; /* updates done */
    bool has_gradients; /* of the last of them, in the store */
    float loss_scale[CLT_LOSS_SCALE_COUNT]; /* before the device has it */
    bool scale_begun;   /* it has */
    float sample_weight; /* in sums over ranks: 1; with f16 the power of two next to 1 / the mean batch of a rank, so that losses are as large as means are */
    bool averaged, uses_average; /* the average has begun; it is in the parameters' place */
    int micro;     /* micro-batches since the last update */
    int64_t micro_samples; /* of this rank, since the last update */
    clt_seen train_seen, eval_seen; /* by this rank, since the last reset */
    bool train_torn, eval_torn; /* a call that failed has left their sums half-way: they are to be reset */

    int64_t skipped_before; /* updates left out that only the host knows of: with CLT_NONFINITE_IGNORE */
    int64_t skipped_reported; /* of the device's count, in metrics that were reset */
    int64_t stopped_at; /* the update whose gradients were found not finite with CLT_NONFINITE_STOP; 0: none */
    int64_t located_at; /* the last update for which locate_nonfinite has told what it was */

    float **wholes; /* shards.c: by state and group; NULL: no checkpoint is being made or read */

    /* With a communicator. */
    clt_trouble trouble;
    bool in_step; /* it failed within a step, whose batch is in no update */
    int64_t kept_for; /* with `recoverable`: the update, from 1, before which the buffers were kept; 0: none */
    int64_t drifts; /* times that ranks were found to differ, and mended */
    bool taking_over; /* the state is being replaced by another rank's: it is no whole one */
    double waited_seconds; /* for other ranks, in plans that are gone */
    clt_compress_report compress_report; /* zeros: nothing was measured */
};

/* Names and number of the optimizer's state tensors: "exp_avg" …, and last "average", where one is kept. */
int clt_optimizer_states(const clt_train_options *options, const char *names[CLT_MAX_OPTIMIZER_STATES]);
/* "exp_avg.0": the name in the store of a group's flat tensor. */
const char *clt_bucket_name(const char *what, int group, char text[64]);

/* options.c */
clt_status clt_train_options_resolve(const clt_train_options *given, clt_train_options *resolved);
/* The learning rate of update number `step`, from 0. */
float clt_schedule_lr(const clt_train_options *options, int64_t step);

/* initialize.c: the first values of variables: of all, or of those that no file has, which may have begun. */
typedef enum clt_initialize { CLT_INITIALIZE_ALL, CLT_INITIALIZE_UNSAVED, CLT_INITIALIZE_UNSAVED_ANEW } clt_initialize;
/* others: by variable, those of other ranks; NULL: there are none. */
clt_status clt_initialize_variables(const clt_graph *graph, clt_state_store *store, uint64_t seed, clt_initialize which, const bool *others);

/* buckets.c: whether trained parameters lie in the host's memory. */
bool clt_trainer_keeps_parameters_in_host(const clt_trainer *trainer);
/* lays out the parameters that the loss reaches (grads[i] is not NULL). Which these are is a fact of the graph:
 * it is decided with the first plan. */
clt_status clt_trainer_make_buckets(clt_trainer *trainer, clt_tensor *const *params, clt_tensor *const *grads, int n);
void clt_buckets_free(clt_bucket *buckets, int n);
/* In which bucket the variable is, and which of its variables; false: in none. */
bool clt_bucket_find(const clt_trainer *trainer, const clt_variable *variable, int *bucket, int *place);

/* weights16.c: whether there is a copy of the trained parameters in 16 bits, and that of a bucket. */
bool clt_weights16_are_kept(const clt_trainer *trainer);
clt_dtype clt_trainer_low(const clt_trainer *trainer);
clt_tensor *clt_weights16(const clt_trainer *trainer, clt_graph *graph, int bucket);
/* The step's graph reads it in the place of parameters that are cast. */
clt_status clt_weights16_read(const clt_trainer *trainer, clt_step *step);
/* Before a step is run: makes it anew where somebody may have changed the parameters. */
clt_status clt_weights16_update(clt_trainer *trainer, const clt_step *step);

/* ---- shards.c: with options.shard. Collectives, but for the first and the last two ---- */

/* Into how many parts flat tensors are cut, one a rank, each of which is updated by its rank alone; 1: not. */
int clt_trainer_shards(const clt_trainer *trainer);
/* Puts the optimizer's state together in host memory, on all ranks. */
clt_status clt_shards_gather(clt_trainer *trainer);
/* Each rank's part becomes what it is in the whole of rank `root`. */
clt_status clt_shards_hand_out(clt_trainer *trainer, int root);
/* A state as a whole, between these calls; NULL else. */
const float *clt_shards_whole(const clt_trainer *trainer, int state, int group);
/* Memory for the whole, zeroed; and its end. */
clt_status clt_shards_make(clt_trainer *trainer);
void clt_shards_drop(clt_trainer *trainer);

/* step_graph.c: the plan for a purpose and sizes of a batch, from `trainer->plans` or new. */
clt_status clt_trainer_plan(clt_trainer *trainer, clt_purpose purpose, clt_sizes sizes, clt_tensor *predicted,
                            clt_step **step);
void clt_step_destroy(clt_step *step);
/* A step that is no one of the trainer's plans. */
clt_status clt_trainer_new_step(clt_trainer *trainer, clt_purpose purpose, clt_sizes sizes, clt_step **step);
/* Whether steps exchange something within forward and backward. */
bool clt_trainer_synchronizes(const clt_trainer *trainer);
/* Destroys one that is no longer among the plans, and all of these: they are made anew on their next use. */
void clt_trainer_drop_plan(clt_trainer *trainer, clt_step *step);
void clt_trainer_drop_plans(clt_trainer *trainer);
/* The problems of the training step (tune.h), for which nothing is built; *step owns their nodes. */
clt_status clt_trainer_problems(clt_trainer *trainer, int64_t batch, clt_problem_list *problems, clt_step **step);
/* The training step with a plan that is a dry run; the caller destroys it. */
clt_status clt_trainer_dry_run_step(clt_trainer *trainer, int64_t batch, clt_step **step);
/* A trainer of which nothing is on the device yet. Without a loss it predicts, and no more. */
clt_status clt_trainer_begin(clt_trainer **trainer, clt_device *device, clt_graph *graph, clt_tensor *loss, const clt_train_options *options);
/* What is tried next of what does not fit on the device, where offload is left to the library: more of it lies in the host's memory. Of ranks all try the same. False:
 * nothing is left to try. `tried` begins as `given`. */
bool clt_trainer_offload_more(const clt_train_options *given, clt_train_options *tried);
/* As clt_trainer_begin, for questions. */
clt_status clt_trainer_dry_run(clt_trainer **trainer, clt_device *device, clt_tensor *loss,
                              const clt_train_options *options);

/* trainer.c: checks a training batch, and hands it with all that is set before a run to a step. */
clt_index_limit clt_index_limit_of(const clt_graph *graph, const clt_tensor *input);
clt_status clt_trainer_check_batch(const clt_trainer *trainer, const clt_batch *batch);
/* The batch's own; the length as built where the graph has no sequences. */
clt_sizes clt_trainer_sizes(const clt_trainer *trainer, const clt_batch *batch);
clt_status clt_trainer_feed(clt_trainer *trainer, const clt_step *step, const clt_batch *batch);
/* Who trains together, by parts of a batch or of the model; NULL: this process alone. */
clt_comm *clt_trainer_group(const clt_trainer *trainer);
/* Other ranks wait for what this one does not do: an error is theirs too. Gives it. */
clt_status clt_trainer_tell_all(const clt_trainer *trainer, clt_status status);

/* ---- nonfinite.c: updates whose gradients are not finite ---- */

/* ---- loss_scale.c ---- */

extern const char clt_loss_scale_name[]; /* of the state on the device: see CLT_LOSS_SCALE_... */
bool clt_loss_scaled(const clt_trainer *trainer);
/* Sets sample_weight. Called by all ranks. */
clt_status clt_loss_scale_agree(clt_trainer *trainer);
/* Gives the device the scale, once it has the state. */
clt_status clt_loss_scale_begin(clt_trainer *trainer);
clt_status clt_loss_scale_read(const clt_trainer *trainer, float values[CLT_LOSS_SCALE_COUNT]);
/* scale 0: the first one. */
clt_status clt_loss_scale_restore(clt_trainer *trainer, float scale, int64_t steps);

extern const char clt_record_name[]; /* of the state on the device: see CLT_RECORD_… */
/* With CLT_NONFINITE_STOP, waits: CLT_E_NONFINITE if there was one since. */
clt_status clt_nonfinite_check(clt_trainer *trainer);
/* The same of what is known, without waiting. */
clt_status clt_nonfinite_known(const clt_trainer *trainer);
/* Updates left out in all; waits. */
clt_status clt_nonfinite_skipped(clt_trainer *trainer, int64_t *skipped);
/* A checkpoint was loaded in which so many had been left out. */
clt_status clt_nonfinite_restore(clt_trainer *trainer, int64_t skipped);
/* With locate_nonfinite, after a step on `batch`, before it is counted. */
clt_status clt_nonfinite_after_step(clt_trainer *trainer, const clt_batch *batch, bool updated);

/* ---- average.c ---- */

/* Before a step: the average is the parameters, if it has not begun. */
clt_status clt_average_begin(clt_trainer *trainer);
/* CLT_E_STATE: it is in the parameters' place. */
clt_status clt_average_check_unused(const clt_trainer *trainer);

/* ---- checkpoint.c: the adapters' matrices alone, by PEFT's names ---- */

#define CLT_PEFT_PREFIX "base_model.model."
#define CLT_ALPHA_KEY "cltrain.lora_alpha" /* in a checkpoint's metadata: of the first adapter */
clt_status clt_adapters_save(clt_trainer *trainer, const char *path);
clt_status clt_adapters_load(clt_trainer *trainer, const char *path);

extern const clt_metric_names clt_train_metric_names, clt_eval_metric_names;

#endif
