/*
 * Looking into a device, and tuning it.
 *
 * For each op there are rows: implementations by a backend, each with what it needs of the device. For a
 * problem, that is an op with its attributes, shapes and layouts, the last row that fits serves,
 * unless tuning found another one or other parameters faster. A candidate wins only after its result
 * was compared with the reference's on that very device: of large problems some slices, the rest with the first
 * candidate that was right there.
 *
 * What was found is kept in a file for each device, driver and library version, below
 * $XDG_CACHE_HOME/cltrain/tune (else ~/.cache/cltrain/tune). It is text; delete it to begin anew. Problems
 * without a verdict take that of the nearest one.
 *
 * Without being asked, a model is tuned when its first training plan is compiled, as CLTRAIN_TUNE in the
 * environment says:
 *   quick   (default) for less than 2 s, what takes most of the time
 *   full    for minutes
 *   off     not at all, and what was measured before is not used either: on all
 *           devices of a kind the choices, and so the bits, are the same
 * No run that has begun is changed by tuning: its choices are kept in its checkpoints. Rows masked by
 * CLTRAIN_BACKENDS or CLTRAIN_CAPS_OFF turn automatic tuning off.
 *
 * Texts in the structures below are lent for the time of the call that gets them.
 */
#ifndef CLTRAIN_PROBE_H
#define CLTRAIN_PROBE_H

#include <stdbool.h>
#include <stddef.h>

#include <cltrain/device.h>
#include <cltrain/export.h>
#include <cltrain/graph.h>
#include <cltrain/measure.h>
#include <cltrain/status.h>
#include <cltrain/train.h>

CLT_BEGIN_DECLS

/* ---- rows ---- */

typedef struct clt_row_info {
    const char *op;         /* "conv2d" */
    const char *backend;    /* "native", or "native#2" for the second of that name */
    const char *needs;      /* capabilities: "fp16 subgroups", or "" */
    const char *missing;    /* those of them that the device lacks */
    const char *parameters; /* what tuning may try: "block=6,12,24 splits=1,2", or "" */
    bool masked;            /* by CLTRAIN_BACKENDS */
} clt_row_info;

/* Calls visit for each row, op by op, in order of precedence, least first; false ends it. */
CLT_API clt_status clt_probe_rows(clt_device *device, bool (*visit)(const clt_row_info *row, void *user),
                                  void *user);

/* ---- problems ---- */

typedef struct clt_problem_row {
    const char *backend;
    const char *refusal; /* why it cannot serve the problem; NULL if it can */
} clt_problem_row;

typedef struct clt_problem_info {
    const char *problem; /* "conv2d k3 s1 p1 d1 g1 64x3x32x32 32x3x3x3 -> 64x32x32x32" */
    const char *op;
    int count;    /* how often it is in a step */
    double gflop; /* of one, if it is arithmetic that counts; else 0 */
    const char *backend, *parameters; /* that serve it; backend is "" if none does */
    /* "only one", "default", "measured", "shipped", "nearest", "nearest shipped" or "none fits" */
    const char *why;
    const char *from; /* of the nearest: its problem; else "" */
    const clt_problem_row *rows; /* all of its op, in order of precedence */
    int n_rows;
} clt_problem_info;

/* Calls visit for each problem of the training step of a model, as clt_trainer_create would compile it: most work
 * first. Nothing is built or put on the device. Errors as clt_trainer_create. */
CLT_API clt_status clt_probe_problems(clt_device *device, clt_tensor *loss, const clt_train_options *options,
                                      bool (*visit)(const clt_problem_info *problem, void *user), void *user);

/* ---- one problem, measured ---- */

typedef struct clt_problem_options {
    clt_measure_options measure;
    double reference_work; /* operations that the reference may take to compute what the result is compared with: of
                            * large problems that is a sum of all images or rows, each with a sign, which tells of all of them,
                            * and some by themselves. 0 means 1e8 */
    bool exact_layouts;    /* tensors without ":nhwc" lie in the order of their dimensions; else they lie as a plan would lay
                            * activations, unless one of them says ":nhwc" */
    const char *backend;   /* if set: a row of this one serves it ("native"), else CLT_E_UNSUPPORTED, and the detail says why not.
                            * What would serve it in a run has the parameters that it would have there, others their defaults */
} clt_problem_options;

enum { CLT_PROBLEM_TEXT = 320 };

typedef struct clt_problem_measurement {
    clt_measurement time;           /* amount: 0 */
    char problem[CLT_PROBLEM_TEXT]; /* with the layouts that were used */
    char backend[32], parameters[256]; /* that served it; "" if none did */
    double flops, bytes; /* of one run: arithmetic, as it is defined, and the least that must be moved */
    double done_flops;   /* the arithmetic that the backend's algorithm does: Winograd's less; 0: not known */
    double nmse;         /* of the result of a first run: squared error over the square of the right one; -1: not known */
    double nmse_after;   /* of the result that the timed runs left */
} clt_problem_measurement;

/* Computes a problem once, compares the result with the reference's (that of sgd and adam with the host's), times it
 * with what serves it in a run, and compares again. `problem` is text as clt_probe_problems gives it, of these ops: matmul, conv2d and its
 * gradients, max_pool2d and its gradient, reduce, the gradients of batch_norm, sgd, adam. A wrong result is CLT_E_DEVICE
 * with time.wrong. Other errors: CLT_E_FORMAT for text that is no such problem, CLT_E_SHAPE, CLT_E_UNSUPPORTED where
 * no row serves it, CLT_E_BUILD, CLT_E_DEVICE, CLT_E_DEVICE_MEMORY. `options` may be NULL. */
CLT_API clt_status clt_measure_problem(clt_device *device, const char *problem, const clt_problem_options *options,
                                       clt_problem_measurement *measurement);
/* CLT_OK if the text is such a problem, without a device; else as above. */
CLT_API clt_status clt_problem_check(const char *problem);

/* ---- a graph, tried ----
 *
 * Any tensor of a graph and the gradients of what it depends on, computed on a device from given values: what a test of a device
 * compares with what it should be. Rows and passes are those that a trainer would use, as CLTRAIN_BACKENDS and CLTRAIN_PASSES
 * say; nothing is tuned. All functions block, and belong to the device's thread. */

typedef struct clt_trial clt_trial;

typedef struct clt_trial_options {
    const char *const *wrt; /* inputs and parameters, by their names, whose gradients are wanted */
    int n_wrt;
    bool evaluation;        /* else as in training */
    const char *backend;    /* if set: this one must serve some of it, else CLT_E_UNSUPPORTED, and the detail says why not */
} clt_trial_options;

/* Compiles y [any shape], and the gradients of sum(y x seed). y's graph must outlive the trial, and stays as it is. Errors: what the
 * graph holds; CLT_E_INVALID, CLT_E_NOT_FOUND for a name; CLT_E_UNSUPPORTED, CLT_E_BUILD, CLT_E_DEVICE_MEMORY. `options` may be NULL. */
CLT_API clt_status clt_trial_create(clt_trial **trial, clt_device *device, clt_tensor *y,
                                    const clt_trial_options *options);
CLT_API void clt_trial_destroy(clt_trial *trial); /* NULL is fine */

/* Values of an input, parameter or buffer by its name, or of the seed, f32 in y's shape (NULL; until set, zeros). Variables begin as
 * zeros. CLT_E_NOT_FOUND, CLT_E_SHAPE if that are not its bytes. */
CLT_API clt_status clt_trial_set(clt_trial *trial, const char *name, const void *values, size_t bytes);
CLT_API clt_status clt_trial_run(clt_trial *trial);
/* y (NULL) or a parameter or buffer after the run. */
CLT_API clt_status clt_trial_get(clt_trial *trial, const char *name, void *values, size_t bytes);
/* The gradient of an input or parameter; zeros where y does not depend on it. */
CLT_API clt_status clt_trial_gradient(clt_trial *trial, const char *name, float *values, size_t count);

/* Calls visit for what is launched in a run, an op and the backend that serves it, each pair once or more; false ends it. */
CLT_API clt_status clt_trial_rows(const clt_trial *trial, bool (*visit)(const char *op, const char *backend, void *user),
                                  void *user);

/* ---- tuning ---- */

typedef struct clt_tune_result {
    const char *problem;
    int count;
    size_t index, of; /* 0 to of - 1 */
    double gflop;
    const char *outcome; /* "measured", "known" (from before), "no time left" or "not measurable" */
    const char *without; /* what serves it without tuning: "native block=12" */
    const char *best;    /* what serves it from now on */
    double without_us, best_us; /* 0: not measured */
    double nmse;         /* of the best: squared error over the square of the reference's result */
    int tried, failed;   /* candidates timed, and those that did not build, gave an error or were wrong */
} clt_tune_result;

typedef struct clt_tune_options {
    double budget_seconds; /* for all problems together; 0 means 60 */
    bool (*report)(const clt_tune_result *result, void *user); /* after each problem; false ends it; may be NULL */
    void *user;
} clt_tune_options;

/* Tunes the training step of a model thoroughly: problems with most work first, those with a verdict of such tuning
 * are left as they are. Verdicts are stored one by one, so a tuning that was killed goes on where it
 * was. `options` may be NULL, `tune` too. CLT_E_IO if verdicts cannot be stored; else as clt_trainer_create. */
CLT_API clt_status clt_tune_model(clt_device *device, clt_tensor *loss, const clt_train_options *options,
                                  const clt_tune_options *tune);

/* ---- a model's step, predicted ----
 *
 * The time of a training step is the sum over its problems, each with the kernels, layouts and epilogues that the plan
 * would have. Times of problems are kept in a file for each device, driver and library version, below
 * $XDG_CACHE_HOME/cltrain/times (text; delete it to begin anew). They are measured in place, launch by launch, in steps of a trainer:
 *
 *     clt_times_open(&times, device, NULL);
 *     for (int i = 0; i < 8; i++)
 *         clt_times_measure(times, trainer, &batch, 20); … at one batch size or several, of one model or several
 *     clt_times_save(times);
 *     clt_predict_step(times, loss, &options, 96, NULL, NULL, &prediction);
 *     clt_times_close(times);
 */

/* Times of problems on a device. Belongs to the device's thread. */
typedef struct clt_times clt_times;

/* Reads what is known. `path`: a file in the place of the device's own, which need not exist; NULL: that. What of a file makes no
 * sense is skipped: clt_times_skipped. CLT_E_FORMAT, CLT_E_INVALID: the file at `path` is something else, or of another device or version: it is left
 * as it is. */
CLT_API clt_status clt_times_open(clt_times **times, clt_device *device, const char *path);
/* Writes it, with what others have written meanwhile. CLT_E_IO. */
CLT_API clt_status clt_times_save(clt_times *times);
/* Does not save. Before clt_device_close. NULL is fine. */
CLT_API void clt_times_close(clt_times *times);
/* How many times of problems it holds. */
CLT_API size_t clt_times_count(const clt_times *times);
/* Lines of the file that were skipped: cut off, damaged, or of what no time is. */
CLT_API size_t clt_times_skipped(const clt_times *times);

/* Does so many training steps, and a few before them, and takes the times of their launches; the trainer learns from them
 * as from any. Called again with the same model, device and batch, it adds to what it has: of the calls the middle half counts, and
 * how they differ is part of a prediction's error. Errors as of clt_trainer_step; CLT_E_UNSUPPORTED with
 * several ranks or gradient accumulation. Where the times that the driver tells cannot be, the host's clock takes them:
 * steps whose launches are waited for one by one tell how the time of a step is divided. */
CLT_API clt_status clt_times_measure(clt_times *times, clt_trainer *trainer, const clt_batch *batch, int steps);

/* Where a time comes from, the best first. */
typedef enum clt_times_source {
    CLT_TIMES_MEASURED = 0, /* the problem itself, served as it would be */
    CLT_TIMES_BATCHES,      /* interpolated between, or beyond, two other batch sizes */
    CLT_TIMES_BATCH,        /* scaled from one other batch size, by arithmetic and bytes */
    CLT_TIMES_NEAREST,      /* scaled likewise from the nearest problem of the kind */
    CLT_TIMES_ROOF,         /* by the device's roofs, and how near known problems of the op come to theirs */
    CLT_TIMES_OTHERS,       /* likewise, with those of all other ops: none of this one is known */
    CLT_TIMES_SOURCES_
} clt_times_source;
CLT_API const char *clt_times_source_name(clt_times_source source); /* "measured", "batches", "batch", "nearest", "roof", "others" */

typedef struct clt_predicted_problem {
    const char *problem, *row; /* row: "" for what lies between two steps */
    int count;
    double seconds;      /* of one */
    double roof_seconds; /* the least that it could take */
    clt_times_source source;
    const char *from;    /* of CLT_TIMES_BATCH and CLT_TIMES_NEAREST: the problem; else "" */
} clt_predicted_problem;

/* What a step takes of the device's memory. */
typedef struct clt_step_memory {
    uint64_t activations; /* and scratch, as placed */
    uint64_t states;      /* parameters, gradients, the optimizer's state, buffers, metrics */
    uint64_t inputs;      /* batches on their way */
    uint64_t total;
    uint64_t largest;     /* single buffer for activations or inputs */
} clt_step_memory;

typedef struct clt_prediction {
    int64_t batch;
    double seconds;
    /* By how much it may be off, as a part of it, in nine cases of ten, for a run of steps about as long as those that were
     * timed, on a machine as it was then: of its launches that were measured by how they were seen to differ, what is common to
     * them added up and what is each one's own added as squares; of the others by what estimates of their source are off by for
     * known problems when those are left out, all to the same side. NAN: nothing can be held against it. */
    double error;
    double shares[CLT_TIMES_SOURCES_]; /* of the seconds */
    double roof_seconds;               /* the least it could take */
    double flops, bytes;
    int64_t launches;
    clt_step_memory memory;
} clt_prediction;

/* The step of a model as clt_trainer_create would compile it, with batches of `batch` samples (0: the graph's). Nothing of
 * the model is built or put on the device. `visit` (may be NULL) is called for each problem, most time first; false ends that. Errors as of
 * clt_trainer_create and clt_device_roofs. */
CLT_API clt_status clt_predict_step(clt_times *times, clt_tensor *loss, const clt_train_options *options, int64_t batch,
                                    bool (*visit)(const clt_predicted_problem *problem, void *user), void *user,
                                    clt_prediction *prediction);

/* Its memory alone. CLT_E_DEVICE_MEMORY if a single tensor is larger than the device's largest buffer. */
CLT_API clt_status clt_predict_memory(clt_device *device, clt_tensor *loss, const clt_train_options *options, int64_t batch,
                                      clt_step_memory *memory);

/* The largest batch whose step takes at most `most_bytes` (0: nine tenths of the device's memory) and no buffer larger than the device's
 * largest. *batch is 0 if not even one sample fits, and of
 * large ones may be one in 64 too small. `reason` gets why the next one does not fit. */
CLT_API clt_status clt_largest_batch(clt_device *device, clt_tensor *loss, const clt_train_options *options, uint64_t most_bytes,
                                     int64_t *batch, char reason[256]);

CLT_END_DECLS

#endif
