/*
 * Training: optimizer, schedule, clipping, evaluation, checkpoints.
 */
#ifndef CLTRAIN_TRAIN_H
#define CLTRAIN_TRAIN_H

#include <stdbool.h>
#include <stdint.h>

#include <cltrain/comm.h>
#include <cltrain/data.h>
#include <cltrain/device.h>
#include <cltrain/graph.h>
#include <cltrain/pipeline.h>

CLT_BEGIN_DECLS

typedef enum clt_optimizer {
    CLT_SGD = 0, /* with momentum and Nesterov as options; as torch.optim.SGD */
    CLT_ADAM,    /* weight decay added to the gradient; Kingma, Ba 2015 */
    CLT_ADAMW    /* decoupled weight decay; Loshchilov, Hutter 2019 */
} clt_optimizer;

typedef enum clt_schedule {
    CLT_SCHEDULE_CONSTANT = 0,
    CLT_SCHEDULE_STEP,  /* lr x decay_factor every decay_steps steps */
    CLT_SCHEDULE_COSINE, /* from lr to min_lr along half a cosine over total_steps; Loshchilov, Hutter 2017 */
    CLT_SCHEDULE_FUNCTION /* lr x what the options' `lr_factor` returns */
} clt_schedule;
/* Of update number `step`, from 0, warm-up included. The same on all ranks. */
typedef float (*clt_lr_factor)(int64_t step, void *user);

/* How gradients go between ranks. What a code leaves out is kept, and added to the next step's gradient (error feedback), but
 * for the casts, which leave out little. Sums and state are f32 whatever goes over the wire, and all ranks get the same
 * bits. A value that is NaN or infinite arrives as such, in its whole block of 256 with int8 and onebit. */
typedef enum clt_compression {
    CLT_COMPRESS_NONE = 0,
    CLT_COMPRESS_F16,     /* 2 times fewer bytes; magnitudes beyond 65504 become infinite, below 6e-8 zero */
    CLT_COMPRESS_BF16,    /* 2 times: the range of f32, 8 bits of precision */
    CLT_COMPRESS_INT8,    /* 8 bits a value, a scale a block of 256: 3.9 times */
    CLT_COMPRESS_ONEBIT,  /* signs, and two means a block of 256; Seide et al. 2014: 27 times */
    CLT_COMPRESS_TOPK,    /* the largest in magnitude alone, with their places coded: 131 times for 1 of 100 */
    CLT_COMPRESS_POWERSGD /* matrices as two thin factors; Vogels et al. 2019. On devices of different kinds ranks may
                             drift apart by rounding */
} clt_compression;

/* "none", "f16" …; "?" for a value that is none. Static storage. */
CLT_API const char *clt_compression_name(clt_compression method);

enum { CLT_COMPRESS_MAX_RANK = 32 };

/* Zero means the default in every field. The factors above are for all_reduce as a ring does it, with two ranks; codes
 * (int8, onebit, topk) are sent to every rank, so that with more ranks they gain less: times 2 / ranks. */
typedef struct clt_compress_options {
    clt_compression method;
    float ratio;     /* topk: of the values that are sent; default 0.01 */
    bool f32_values; /* topk: values are f32 instead of bf16 */
    int rank;        /* powersgd: columns of a factor; default 1, at most CLT_COMPRESS_MAX_RANK */
    bool force;      /* also where more bytes are sent than without it; else clt_trainer_create gives CLT_E_INVALID */
} clt_compress_options;

/* What becomes of an update whose gradients hold NaN or infinity, or whose norm does with clip_norm. It is found on the
 * device, before anything is updated, without waiting. With several ranks all do the same. */
typedef enum clt_nonfinite {
    CLT_NONFINITE_IGNORE = 0, /* it is made, as PyTorch's optimizers do: parameters become NaN, and the loss tells */
    CLT_NONFINITE_SKIP,       /* it is left out, and training goes on: as PyTorch's GradScaler does */
    CLT_NONFINITE_STOP        /* it and all after it are left out: see clt_trainer_wait */
} clt_nonfinite;

/* What is different for some parameters: no weight decay for biases and norms, another rate for a head (PyTorch's parameter groups). */
typedef struct clt_parameter_rule {
    const char *pattern; /* of their names: "*" stands for any characters, "?" for one. Of several rules the first that matches counts */
    float lr_factor;     /* the learning rate is multiplied by it; 0: 1; CLT_ZERO: 0 */
    float weight_decay;  /* 0: that of the options; CLT_ZERO or negative: none */
} clt_parameter_rule;

#define CLT_MAX_PARAMETER_RULES 16

/* A model on a device with its optimizer. One thread at a time, the device's. */
typedef struct clt_trainer clt_trainer;

/* What is computed, and stored between forward and backward, in 16 bits (Micikevicius et al. 2018), by the rules of PyTorch's autocast: products, convolutions and
 * attention take and give 16 bits; powers, logarithms, sums, norms and losses are f32; all else is of the widest type among its operands. Sums are f32
 * everywhere. Parameters, their gradients, the optimizer's state and checkpoints are f32. */
typedef enum clt_precision {
    CLT_PRECISION_F32 = 0,
    CLT_PRECISION_BF16, /* 8 bits of f32's 24, and its range */
    CLT_PRECISION_F16   /* 11 bits, from 6e-8 to 65504: the loss is scaled as by PyTorch's GradScaler (clt_trainer_loss_scale). With on_nonfinite
                           CLT_NONFINITE_SKIP, which leaves out updates of a scale that is too large */
} clt_precision;

/* What each rank keeps a part of (ZeRO; Rajbhandari et al. 2020). The bytes on the wire are the same, and so are the values, bit by bit where the all-reduce adds up in the order of
 * the parts: with two ranks, or by CLTRAIN_COMM_ALGORITHMS=direct,shards. */
typedef enum clt_shard {
    CLT_SHARD_NONE = 0,
    CLT_SHARD_OPTIMIZER, /* the optimizer's state: a rank updates its part, and gets the others' parameters from them */
    CLT_SHARD_GRADIENTS, /* gradients, too: of what is exchanged a rank keeps its part, and the memory of the whole serves the buckets that follow.
                            With accumulate more bytes are sent: each micro-batch's gradients */
    CLT_SHARD_PARAMETERS /* parameters, too: no device has them all. Each rank has them in its host's memory, as with CLT_OFFLOAD_PARAMETERS, from where they
                            come to its device when they are needed; so no more bytes are sent than for the optimizer's state alone */
} clt_shard;

/* What lies in the host's memory and is brought to the device when it is needed. The optimizer's state is, in parts of 16 MiB, each just before its update, and
 * then taken back; a moving average stays on the device. Activations that backward reads, of 64 KiB and more, go there as soon as forward has them. Trained
 * parameters come to the device for forward, once more for backward, and in parts for their update. Values are the same, bit by bit. */
typedef enum clt_offload {
    CLT_OFFLOAD_AUTO = 0,    /* what does not fit on the device, though all that can be is computed again: activations; then the state; then all (the latter two not with
                                shares), on all ranks alike */
    CLT_OFFLOAD_NONE,        /* nothing */
    CLT_OFFLOAD_OPTIMIZER,   /* the optimizer's state, and activations that do not fit */
    CLT_OFFLOAD_ACTIVATIONS, /* activations that are not computed again */
    CLT_OFFLOAD_PARAMETERS,  /* trained parameters */
    CLT_OFFLOAD_ALL          /* all of these */
} clt_offload;

/* Zero means the default in every field. */
typedef struct clt_train_options {
    clt_optimizer optimizer;
    float lr;           /* default 1e-2 for SGD, 1e-3 for Adam and AdamW; CLT_ZERO is 0, as for all numbers that have a default */
    float momentum;     /* of SGD alone, as is nesterov; default 0 */
    bool nesterov;      /* needs momentum */
    float beta1, beta2; /* of Adam and AdamW alone, as is eps; defaults 0.9, 0.999 */
    float eps;          /* default 1e-8 */
    float weight_decay; /* default 0, AdamW 1e-2; CLT_ZERO or negative: 0 for AdamW too */

    const clt_parameter_rule *rules; /* n_rules of them, 16 at most; copied. One that matches no trained parameter is CLT_E_NOT_FOUND */
    int n_rules;

    clt_schedule schedule;
    int64_t warmup_steps; /* lr rises linearly from lr/warmup_steps over these, before the schedule */
    int64_t total_steps;  /* required by the cosine schedule; warm-up included */
    int64_t decay_steps;  /* required by the step schedule */
    float decay_factor;   /* default 0.1 */
    float min_lr;
    clt_lr_factor lr_factor; /* required by the function schedule; finite and not negative, or the step is CLT_E_INVALID */
    void *lr_factor_user;

    float clip_value; /* gradients clipped to [-v, v]; 0: not */
    float clip_norm;  /* gradients scaled so that their global 2-norm is at most this; 0: not */

    /* When an update is left out, parameters and optimizer state stay as they are, bit by bit; compression's residuals begin
     * anew. The learning rate's schedule counts it, Adam's bias correction does not. Batch norm's running statistics take no
     * values that are not finite, whatever is set here. */
    clt_nonfinite on_nonfinite;
    /* Waits for each step; of one that is left out, the step is repeated op by op, and what made the first value that is not finite is
     * named: in the error of clt_trainer_step with CLT_NONFINITE_STOP, in a warning with CLT_NONFINITE_SKIP. Slow. */
    bool locate_nonfinite;

    int accumulate; /* micro-batches per update, their gradients averaged; default 1 */
    float average;  /* the decay, such as 0.999, of a moving average of the parameters (EMA), which begins as the parameters are in the first step: after each update
                       average = decay average + (1 - decay) parameter. See clt_trainer_use_average; a part of checkpoints. Not with shard. 0: none */
    uint64_t seed;  /* of initial values and dropout */

    /* The prediction for which accuracy or squared error is counted, with the
     * batch field that is the truth (default: the last input). NULL: loss only. */
    clt_tensor *output;

    clt_precision precision; /* default f32; the same on all ranks */
    clt_recompute recompute; /* each rank's own */
    clt_offload offload;     /* likewise */
    const char *offload_folder; /* what is offloaded lies in files of this folder, which have no names there, in the place of memory; copied. Not with
                                   CLT_OFFLOAD_NONE. CLT_E_IO: it cannot be written to, or its disk has no room. NULL: in memory */

    clt_comm *comm;      /* the ranks that train together (see "several ranks" below); borrowed. NULL: this process alone */
    clt_pipeline_options pipeline; /* not with accumulate, shard, compress, sync_batch_norm, shares, locate_nonfinite, recoverable */
    clt_compress_options compress; /* of what ranks exchange; default none. Its residuals and factors are in no checkpoint:
                                      after a load, and after ranks were lost, they begin anew */
    size_t bucket_bytes; /* of gradients that are exchanged at a time, while backward goes on; default 4 MiB */
    int64_t drift_steps; /* ranks compare their parameters after so many updates, and take over rank 0's where they differ (clt_trainer_drifts); default 100;
                            negative: never */
    bool sync_batch_norm; /* statistics of batch norm over the batches of all ranks (PyTorch's SyncBatchNorm) */
    clt_shard shard;      /* not with `recoverable`: the part of a lost rank would be lost; nor with compress, nor average */
    /* Another trainer of this graph on this device, which has the same parameters, buffers and fixed inputs then: two losses
     * that train different parameters, as of a GAN. Each has an optimizer of its own for what it trains, and no parameter two
     * (CLT_E_STATE). Initial values are those of the first. They may be destroyed in any order. NULL: none. */
    clt_trainer *shares;
    /* What the data are and the model's name ("mlp:128"): kept in checkpoints and files of weights, so that these are enough to use the model
     * (cltrain/preprocessing.h, clt_weights_metadata). Copied. NULL: nothing is kept. */
    const clt_preprocessing *preprocessing;
    const char *model;
    /* Of a language model: kept under "cltrain.tokenizer", for clt_weights_tokenizer. Copied. Bytes and characters alone: of BPE the
     * tokenizer.json stays beside the file. */
    const clt_tokenizer *tokenizer;
    const char *backends, *passes; /* in the place of the device's settings (cltrain/settings.h); copied. NULL: the device's. CLT_E_INVALID
                                      for a name that there is not */
    bool recoverable;    /* no update before all gradients of a step are exchanged: a step that fails has changed no
                            parameter, and clt_trainer_recover can go on */
} clt_train_options;

/* Compiles the training step of the graph of `loss` (a scalar f32) for `device`
 * and gives the parameters their first values. Graph, device and `options->output`
 * must outlive the trainer. Errors: what the graph holds; CLT_E_INVALID for an
 * invalid option; CLT_E_BUILD; CLT_E_DEVICE_MEMORY. */
CLT_API clt_status clt_trainer_create(clt_trainer **trainer, clt_device *device, clt_tensor *loss,
                                      const clt_train_options *options);

/* Waits for the device and frees. NULL is fine. */
CLT_API void clt_trainer_destroy(clt_trainer *trainer);

/* One step on a batch; returns when the work is queued, not when it is done.
 * Fields of the batch are matched with the graph's inputs in order; those on which neither loss nor output depends may be missing, and the data
 * of a field NULL. All but dimension 0, and the length of sequences, must agree. A batch of another size than the graph's inputs gets a
 * plan of its own on first use (the last batch of an epoch); of steps, evaluations and predictions of many sizes the last
 * 16 keep theirs. With accumulate =
 * k, parameters change on every k-th call. Errors: CLT_E_SHAPE, CLT_E_DTYPE,
 * CLT_E_RANGE (a label that is not a class, with its place), CLT_E_DEVICE, CLT_E_DEVICE_LOST; CLT_E_DEVICE_MEMORY for a plan
 * that does not fit, which says what does not: nothing has changed then, and other batches and calls go on. After a
 * step that failed half-way steps and clt_checkpoint_save give CLT_E_STATE, until a checkpoint is loaded. */
CLT_API clt_status clt_trainer_step(clt_trainer *trainer, const clt_batch *batch);

/* As a step, but in evaluation mode and without change: only the metrics count it. After an evaluation that failed half-way
 * evaluations and clt_trainer_eval_metrics give CLT_E_STATE, the latter with `reset` once more, which begins anew. */
CLT_API clt_status clt_trainer_evaluate(clt_trainer *trainer, const clt_batch *batch);

/* As an evaluation, and reads what the model predicts (options.output, f32): `result` receives `result_count` values, which must be its elements at this
 * batch size. Waits for the device. CLT_E_INVALID without an output. See clt_evaluator (cltrain/metrics.h). */
CLT_API clt_status clt_trainer_evaluate_output(clt_trainer *trainer, const clt_batch *batch, float *result, size_t result_count);

/* Sums over the batches since the last reset. */
typedef struct clt_metrics {
    int64_t samples;
    double loss;     /* mean over samples */
    double accuracy; /* fraction of labels (of the tokens of a sequence); NaN unless the output is f32 [..., classes] and the truth i32 [...] */
    double mse;      /* mean over samples and outputs; NaN unless the output has the truth's shape, f32 */
    int64_t skipped; /* updates left out by CLT_NONFINITE_SKIP. Losses that are not finite are in no mean then */
    float loss_scale; /* of the next training step, as clt_trainer_loss_scale has it */
} clt_metrics;

/* Waits for the device and reads the metrics; `reset` starts anew. Training and
 * evaluation steps are counted apart. A reset that failed half-way: CLT_E_STATE until, and once more with, another. */
CLT_API clt_status clt_trainer_train_metrics(clt_trainer *trainer, clt_metrics *metrics, bool reset);
CLT_API clt_status clt_trainer_eval_metrics(clt_trainer *trainer, clt_metrics *metrics, bool reset);

/* Evaluates a tensor of the graph (usually the prediction) on a batch and waits.
 * `result` receives `result_count` f32 values, which must be the tensor's
 * elements at this batch size. Batch fields that the tensor does not depend on
 * may have data = NULL or be absent. */
CLT_API clt_status clt_trainer_predict(clt_trainer *trainer, clt_tensor *tensor,
                                       const clt_batch *batch, float *result, size_t result_count);

/* What made a value that is not finite. */
typedef struct clt_nonfinite_origin {
    int64_t step;     /* which update, from 1 */
    bool found;       /* else all that this rank computes, up to the gradients, is finite */
    char op[64];      /* "log"; "input", "parameter" or "buffer" for what was there before */
    char tensor[64];  /* "log #7", or the name of an input, parameter or buffer */
    char backend[32]; /* whose kernels computed it; "" for what was there before */
    bool in_backward;
    int64_t element, count; /* the first such element, and how many there are */
    float value;            /* of that element */
    char words[640];        /* all that in a sentence, with shapes and operands */
} clt_nonfinite_origin;

/* Computes forward and backward of a training step on `batch`, with the parameters as they are, op by op, and names the first
 * tensor that holds NaN or infinity. Nothing changes but batch norm's running statistics. Needs memory of its own for the time,
 * and is slow. Ops are not fused, so that each is told by itself. Ranks call it together. */
CLT_API clt_status clt_trainer_locate_nonfinite(clt_trainer *trainer, const clt_batch *batch, clt_nonfinite_origin *origin);

/* Waits until everything queued is done, and returns what went wrong in it. CLT_E_NONFINITE: with CLT_NONFINITE_STOP
 * gradients were not finite; the detail says in which update. Parameters and optimizer state are those before it, and may be
 * read. Steps, training metrics and clt_checkpoint_save give the same error, until clt_checkpoint_load has brought another state. */
CLT_API clt_status clt_trainer_wait(clt_trainer *trainer);

CLT_API int64_t clt_trainer_steps(const clt_trainer *trainer); /* updates done */
CLT_API float clt_trainer_lr(const clt_trainer *trainer);      /* of the next update */
CLT_API clt_status clt_trainer_set_lr(clt_trainer *trainer, float lr); /* the base of the schedule */

/* Copies a parameter's or buffer's values by name; waits for the device.
 * `count` must be its number of elements. CLT_E_INVALID, CLT_E_NOT_FOUND, CLT_E_SHAPE. */
CLT_API clt_status clt_trainer_get(clt_trainer *trainer, const char *name, float *values, size_t count);
CLT_API clt_status clt_trainer_set(clt_trainer *trainer, const char *name, const float *values,
                                   size_t count);

/* With options.average: puts the moving average in the parameters' place, or the parameters back. What evaluates, predicts, gets or saves weights uses the
 * average meanwhile; steps and checkpoints are CLT_E_STATE. Buffers, such as batch norm's running statistics, are not averaged. Before the first step the
 * average is the parameters. With several ranks each calls it. CLT_E_STATE: no average is kept. */
CLT_API clt_status clt_trainer_use_average(clt_trainer *trainer, bool use);

/* The gradient of the last update with respect to a trained parameter, `count` values: averaged over micro-batches and the
 * samples of all ranks, before clipping and weight decay; of an update that was left out (on_nonfinite), what it was.
 * Waits for the device. Errors: CLT_E_STATE before the first update, between micro-batches and after a load;
 * CLT_E_NOT_FOUND for a name that is not a trained parameter's which the loss depends on; CLT_E_SHAPE; CLT_E_UNSUPPORTED with
 * shard or compress, where no rank has it whole. */
CLT_API clt_status clt_trainer_get_gradient(clt_trainer *trainer, const char *name, float *values, size_t count);

/* By what the loss is multiplied in the next step: 65536 at first, halved where gradients overflow, doubled after 2000 updates without; 1 where it is not
 * scaled. Waits for the device. */
CLT_API clt_status clt_trainer_loss_scale(clt_trainer *trainer, float *scale);

/* The values of a fixed input (clt_fixed_input), which are copied; waits for the device. Steps, evaluations and predictions before all of them
 * are set are CLT_E_STATE. Each rank sets its own. CLT_E_NOT_FOUND, CLT_E_INVALID: it is not a fixed input; CLT_E_DTYPE, CLT_E_SHAPE, CLT_E_RANGE: an
 * index outside of what it is used for. */
CLT_API clt_status clt_trainer_set_input(clt_trainer *trainer, const char *name, const clt_array *values);

/* ---- several ranks ----------------------------------------------------------
 *
 * With options.comm each rank trains on batches of its own, on a device of its own, and all have the same parameters: the
 * gradients of a step are summed over the ranks, weighed by samples, so that it is the step of one process on all ranks'
 * samples together (within rounding), whoever has how many. A rank's batch may be empty (samples = 0).
 * clt_loader_options has the sampler that goes with it.
 *
 * All ranks must have the same graph, but for the batch size, and the same options, and make the same calls in the same
 * order, of: clt_trainer_create, clt_trainer_step, the reading of metrics, clt_checkpoint_load, clt_trainer_recover, clt_trainer_destroy.
 * Creation and loading give all ranks the parameters, buffers and optimizer state of rank 0. CLT_E_MISMATCH says what differs.
 *
 * What is a rank's own: batch norm's statistics, each of its own batches unless sync_batch_norm is set (see clt_trainer_sync_buffers); dropout's masks, functions of the rank too (rank
 * 0's are those of one process). Metrics are sums over all ranks, read by all at once. With `accumulate`, nothing is
 * exchanged between updates, and samples weigh the same in all micro-batches.
 *
 * When a rank is lost or fails, the step of every other returns CLT_E_PEER, whose detail names it. So a step that cannot begin on one
 * rank (a label that is not a class, a plan that does not fit) ends the group too; that rank gets the error itself, and may go on with
 * the others as after a loss. But for CLT_E_NONFINITE, which all get, and after which the group stands. */

/* After such an error, with options.recoverable: goes on with the ranks that are left, by clt_comm_shrink. They agree on the
 * newest state that one of them has whole, which all take over: parameters, buffers, optimizer state, count of steps. `loader`
 * (may be NULL) is set to the batch after that state's last, and its batches are cut into equal shares for those who are
 * left. Buffers are those before the update that failed: its batches count once. Training metrics start anew. The old communicator is not used any more. CLT_E_STATE: not recoverable. On other errors,
 * such as another rank's death, it may be called again. */
CLT_API clt_status clt_trainer_recover(clt_trainer *trainer, clt_loader *loader, clt_comm *survivors);

/* Gives all ranks the mean of their buffers, such as running statistics: before evaluating and saving, so that what is measured is the model that
 * is saved, whichever rank saves it. Buffers that are the same on all ranks keep their bits; without options.comm nothing is done. All ranks call it at
 * once; waits for the device. */
CLT_API clt_status clt_trainer_sync_buffers(clt_trainer *trainer);

/* How often ranks were found to have other parameters than rank 0, each time with a warning: they have had its parameters, buffers and optimizer state since.
 * Updates round alike on all devices, so something is wrong with one: its memory, or its division or square root. */
CLT_API int64_t clt_trainer_drifts(const clt_trainer *trainer);

/* What options.compress does, measured when the trainer was created, and logged: an information if time is saved, a
 * warning if it is lost. The seconds are of the all-reduce of all gradients by itself, from compression to decompression; in
 * a step, part of either may be hidden behind backward. CLT_E_STATE: nothing is compressed, or there is one rank. */
typedef struct clt_compress_report {
    double bytes, bytes_uncompressed;     /* that this rank sends in a step */
    double seconds, seconds_uncompressed;
} clt_compress_report;
CLT_API clt_status clt_trainer_compress_report(const clt_trainer *trainer, clt_compress_report *report);

/* Seconds that steps have waited for other ranks, so far. */
CLT_API double clt_trainer_waited_seconds(const clt_trainer *trainer);

/* ---- pipelines --------------------------------------------------------------
 *
 * With options.pipeline the ranks of options.comm have a stage of the model each: its parameters, their gradients and optimizer state, and the activations of the
 * micro-batches that are in flight. A step is what one process does that accumulates over as many micro-batches: the same gradients, where kernels agree bit by bit, and the
 * same masks of dropout. Batch norm's statistics are of a micro-batch.
 *
 * A communicator of several times as many ranks as stages is a grid: rank r has stage r % stages of pipeline r / stages. Each pipeline has batches of its own, which may be of other
 * sizes, but for none without samples in training; the gradients of a stage are exchanged among the ranks that have it, as those of ranks without a pipeline are. So a step is what as
 * many ranks do that accumulate. The first pipeline saves and loads files.
 *
 * All ranks have the whole graph, are given the same batches (but for those of other pipelines), and make the same calls in the same order: those above, and clt_trainer_evaluate,
 * clt_trainer_predict, clt_checkpoint_save, clt_weights_save. Metrics come to all ranks, and predictions to all of a pipeline. A parameter that several stages read, such as an embedding and a head that are tied, is of
 * the first of them. clt_trainer_get and _set know parameters of the own stage alone (CLT_E_NOT_FOUND).
 */

/* The stage that this rank has, how many values are in its trained parameters, and the most micro-batches whose activations it has kept at once so far. 0, all and 1 without a
 * pipeline. */
CLT_API int clt_trainer_stage(const clt_trainer *trainer);
CLT_API int64_t clt_trainer_stage_parameters(const clt_trainer *trainer);
CLT_API int clt_trainer_in_flight(const clt_trainer *trainer);

/* ---- checkpoints ------------------------------------------------------------
 *
 * One safetensors file. Parameters and buffers have their names and PyTorch's
 * layouts; the optimizer's state follows under "cltrain.optimizer.…", and
 * seed, step and the position in the data are in the file's metadata. The file
 * is replaced in one atomic rename after its bytes are on the disk: whatever
 * happens, the old or the new one is there, whole.
 */

/* Saves everything that continuing needs. `loader` (may be NULL) adds its
 * position and order. CLT_E_IO names the file and the operating system's reason.
 * With several ranks each saves for itself, and one file serves all: usually rank 0's. With shard all call it at
 * once, for the state is gathered, and those whose path is NULL write no file. They cannot save between the
 * micro-batches of an update, nor after a step that failed half-way: CLT_E_STATE. */
CLT_API clt_status clt_checkpoint_save(clt_trainer *trainer, const clt_loader *loader, const char *path);

/* Restores what clt_checkpoint_save wrote: training goes on with the bits of a run
 * that was not interrupted. CLT_E_MISMATCH names the first tensor that is
 * missing, left over or of another shape, the option that differs, or how the data differ from those it was trained on (options.preprocessing);
 * CLT_E_FORMAT says what is wrong with the file. Nothing is changed on error, but if
 * the device fails while it is written to: then CLT_E_STATE as after such a step.
 * A file of weights alone restores those and leaves the rest as it is.
 * With several ranks rank 0 reads the file, which the others need not have, and tells them; an error is
 * everyone's. The number of ranks may be another than the file's; the samples of a whole batch may not. */
CLT_API clt_status clt_checkpoint_load(clt_trainer *trainer, clt_loader *loader, const char *path);

/* Parameters and buffers alone: what torch's load_state_dict takes as it is. */
CLT_API clt_status clt_weights_save(clt_trainer *trainer, const char *path);

/* Parameters and buffers of a file of weights or of a checkpoint, whose optimizer and position are passed over: for predictions, or
 * to begin another training. Errors and ranks as clt_checkpoint_load.
 * Files of other programs may have F16 or BF16, which become f32. "NAME.index.json" names several files beside it ("weight_map"), as Hugging Face's
 * libraries write it. Names may lack "transformer." or "model." where the model's begin with that, and masks and frequencies that a
 * language model computes are passed over (".attn.bias", ".attn.masked_bias", ".rotary_emb.inv_freq"). */
CLT_API clt_status clt_weights_load(clt_trainer *trainer, const char *path);

/* A tensor that was not taken. */
typedef enum clt_left_out {
    CLT_LEFT_MISSING, /* the model has it, and the file not: its values stay */
    CLT_LEFT_OVER,    /* the file has it, and the model not */
    CLT_LEFT_MISFIT   /* both have it, with another shape or type: its values stay */
} clt_left_out;
/* `name` and `words`, what is wrong with it, are good until the call returns. */
typedef void (*clt_left_out_visitor)(clt_left_out what, const char *name, const char *words, void *user);

/* The same of those tensors alone whose name, shape and type are the model's: to begin from another model's weights.
 * `visit`, unless it is NULL, is told of each other one, with several ranks on rank 0 alone, before anything is changed.
 * CLT_E_MISMATCH if there is none that fits. Which data the other model was trained on does not matter. */
CLT_API clt_status clt_weights_load_matching(clt_trainer *trainer, const char *path, clt_left_out_visitor visit, void *user);

/* A text of the caller's own, as JSON of what its training has come to, which checkpoints and files of weights hold from then on as metadata
 * "cltrain.note"; of several ranks, that which writes. clt_checkpoint_load brings the file's. Copied; NULL: none. UTF-8, else saving gives CLT_E_INVALID. */
CLT_API clt_status clt_trainer_set_note(clt_trainer *trainer, const char *note);

/* A text of the metadata of a checkpoint or a file of weights: "cltrain.model" is the options' `model`, "cltrain.note" clt_trainer_set_note's. `text` receives up to `bytes`, with a
 * NUL. CLT_E_NOT_FOUND: there is no such entry; CLT_E_RANGE: it is longer. */
CLT_API clt_status clt_weights_metadata(const char *path, const char *key, char *text, size_t bytes);

/* The tokenizer that a file of weights or a checkpoint holds; the caller's to destroy. CLT_E_NOT_FOUND: it holds none. */
CLT_API clt_status clt_weights_tokenizer(clt_tokenizer **tokenizer, const char *path);

/* The shape of a tensor of a file of weights or a checkpoint. CLT_E_NOT_FOUND: it has none of that name. */
CLT_API clt_status clt_weights_shape(const char *path, const char *tensor, clt_shape *shape);

CLT_END_DECLS

#endif
