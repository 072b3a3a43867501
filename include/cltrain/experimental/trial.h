/*
 * Single ops and graphs, tried on a device: a problem verified and timed, a graph computed from given values.
 *
 * Texts in the structures below are lent for the time of the call that gets them.
 *
 * Experimental: what is declared here may change in any release.
 */
#ifndef CLTRAIN_TRIAL_H
#define CLTRAIN_TRIAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cltrain/device.h>
#include <cltrain/experimental/measure.h>
#include <cltrain/export.h>
#include <cltrain/graph.h>
#include <cltrain/status.h>
#include <cltrain/train.h>

CLT_BEGIN_DECLS

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
    const char *backends;  /* in the place of the device's setting (cltrain/settings.h); NULL: that */
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
 * compares with what it should be. Rows and passes are those that a trainer would use; nothing is tuned. All functions block, and belong to the device's thread. */

typedef struct clt_trial clt_trial;

typedef struct clt_trial_options {
    const char *const *wrt; /* inputs and parameters, by their names, whose gradients are wanted */
    int n_wrt;
    bool evaluation;        /* else as in training */
    const char *backend;    /* if set: this one must serve some of it, else CLT_E_UNSUPPORTED, and the detail says why not */
    const char *backends, *passes; /* in the place of the device's settings (cltrain/settings.h); NULL: those */
    clt_precision precision; /* of what is computed; y and the gradients keep their types */
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

CLT_END_DECLS

#endif
