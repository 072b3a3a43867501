/*
 * A model's training step, predicted: its time and its memory.
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
 *
 * Experimental: what is declared here may change in any release.
 */
#ifndef CLTRAIN_PREDICT_H
#define CLTRAIN_PREDICT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cltrain/data.h>
#include <cltrain/device.h>
#include <cltrain/export.h>
#include <cltrain/graph.h>
#include <cltrain/status.h>
#include <cltrain/train.h>

CLT_BEGIN_DECLS

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
    CLT_TIMES_ROOFLINE,     /* by the device's peaks, and how near known problems of the op come to theirs */
    CLT_TIMES_OTHERS,       /* likewise, with those of all other ops: none of this one is known */
    CLT_TIMES_SOURCES_
} clt_times_source;
CLT_API const char *clt_times_source_name(clt_times_source source); /* "measured", "batches", "batch", "nearest", "roof", "others" */

typedef struct clt_predicted_problem {
    const char *problem, *row; /* row: "" for what lies between two steps */
    int count;
    double seconds;          /* of one */
    double roofline_seconds; /* the least that it could take */
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
    uint64_t host;        /* of the host's memory, and not in total: with CLT_OFFLOAD_OPTIMIZER */
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
    double host_seconds;               /* of the seconds: what the optimizer's state takes from the host's memory and back, measured */
    double roofline_seconds;           /* the least it could take */
    double flops, bytes;
    int64_t launches;
    clt_step_memory memory;
} clt_prediction;

/* The step of a model as clt_trainer_create would compile it, with batches of `batch` samples (0: the graph's). Nothing of
 * the model is built or put on the device. `visit` (may be NULL) is called for each problem, most time first; false ends that. Errors as of
 * clt_trainer_create and clt_device_peaks. */
CLT_API clt_status clt_predict_step(clt_times *times, clt_tensor *loss, const clt_train_options *options, int64_t batch,
                                    bool (*visit)(const clt_predicted_problem *problem, void *user), void *user,
                                    clt_prediction *prediction);

/* Its memory alone. CLT_E_DEVICE_MEMORY if a single tensor is larger than the device's largest buffer, or the step does not fit into
 * the device's memory limit (settings.memory_limit), whatever is computed again and lies in the host's memory. */
CLT_API clt_status clt_predict_memory(clt_device *device, clt_tensor *loss, const clt_train_options *options, int64_t batch,
                                      clt_step_memory *memory);

/* The largest batch whose step takes at most `most_bytes` (0: the device's memory limit; without one, nine tenths of its memory) and no buffer larger than the device's
 * largest. *batch is 0 if not even one sample fits, and of
 * large ones may be one in 64 too small. `reason` gets why the next one does not fit. */
CLT_API clt_status clt_largest_batch(clt_device *device, clt_tensor *loss, const clt_train_options *options, uint64_t most_bytes,
                                     int64_t *batch, char reason[256]);

CLT_END_DECLS

#endif
