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
 * without a tuning result take that of the nearest one.
 *
 * Without being asked, a model is tuned when its first training plan is compiled, as the setting
 * `tune` says (cltrain/settings.h):
 *   quick   (default) for less than 2 s, what takes most of the time
 *   full    for minutes
 *   off     not at all, and what was measured before is not used either: on all
 *           devices of a kind the choices, and so the bits, are the same
 * No run that has begun is changed by tuning: its choices are kept in its checkpoints. Rows masked by the
 * settings `backends` or `capabilities_off` turn automatic tuning off.
 *
 * Texts in the structures below are lent for the time of the call that gets them.
 *
 * Experimental: what is declared here may change in any release.
 */
#ifndef CLTRAIN_PROBE_H
#define CLTRAIN_PROBE_H

#include <stdbool.h>
#include <stddef.h>

#include <cltrain/device.h>
#include <cltrain/export.h>
#include <cltrain/graph.h>
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
    bool masked;            /* by the setting `backends` */
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
    double gbyte; /* of one: what it has to read and write, each once */
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

/* ---- kernels ---- */

typedef struct clt_kernel_info {
    const char *kernel;      /* its name in the source */
    const char *op, *backend; /* of the first node that launches it */
    const char *source;      /* OpenCL C 1.2 of the kernel with all that it needs, and of no other one where they can be parted */
    int dims;
    size_t items[3], group[3]; /* of its first launch: work-items in all, and in a work-group */
    bool fixed_group;          /* no other work-groups will do */
    int launches;              /* in a step; 0: only before the first one */
} clt_kernel_info;

/* Calls visit for each kernel of the training step of a model, as clt_trainer_create would compile it, in the order of their first
 * launches: what offline compilers are given. Launches of libraries are left out. Nothing is built or put on the device. Errors as clt_trainer_create. */
CLT_API clt_status clt_probe_kernels(clt_device *device, clt_tensor *loss, const clt_train_options *options,
                                     bool (*visit)(const clt_kernel_info *kernel, void *user), void *user);

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

/* Tunes the training step of a model thoroughly: problems with most work first, those with a tuning result of such tuning
 * are left as they are. Tuning results are stored one by one, so a tuning that was killed goes on where it
 * was. `options` may be NULL, `tune` too. CLT_E_IO if tuning results cannot be stored; else as clt_trainer_create. */
CLT_API clt_status clt_tune_model(clt_device *device, clt_tensor *loss, const clt_train_options *options,
                                  const clt_tune_options *tune);

CLT_END_DECLS

#endif
