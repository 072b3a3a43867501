/*
 * Tuning: the candidates for a problem are run on the device on random values,
 * held against the reference, and timed. What is found goes to backends/tune.
 *
 * Trials run on the device opened once more: what they build, allocate or break is
 * not the user's.
 */
#ifndef CLT_TRIAL_TUNE_H
#define CLT_TRIAL_TUNE_H

#include "runtime/exec/problem.h"

/* ---- tuning ---- */

typedef enum clt_tuned_state {
    CLT_TUNED_MEASURED,
    CLT_TUNED_KNOWN,     /* a tuning result was there already */
    CLT_TUNED_NO_BUDGET, /* nothing was measured */
    CLT_TUNED_FAILED     /* nothing could be measured: no memory, or no reference */
} clt_tuned_state;

typedef struct clt_tuned {
    const clt_problem *problem;
    size_t index, n;
    clt_tuned_state state;
    clt_choice without, best; /* what the library does of itself, and what won */
    double without_us, best_us, nmse;
    int tried, failed;
} clt_tuned;

typedef struct clt_tune_job {
    clt_tune_effort effort;
    double budget_seconds;
    /* Called for each problem when it is done; false ends tuning. May be NULL. */
    bool (*report)(const clt_tuned *tuned, void *user);
    void *user;
} clt_tune_job;

/* Tunes what has no tuning result of that effort. Tuning results are stored as they come; CLT_E_IO if they cannot be. */
clt_status clt_tune_problems(clt_device *device, clt_problem_list *list, const clt_tune_job *job);

/* As the setting `tune` says, for a plan to be compiled. What goes wrong is logged: it is no reason not to compile. */
void clt_tune_on_first_use(clt_device *device, clt_problem_list *list);

#endif
