/*
 * Did a launch among many do its work? Runs that repeat each other leave the right result also when a driver does the first of
 * them alone, and their times are then of nothing. So a part of the result is overwritten in front of one of the runs, and
 * what lies there after that run is kept, both in the queue between the others: nothing waits for it. A part that holds what it was
 * overwritten with was written by nobody.
 */
#ifndef CLT_TRIAL_WITNESS_H
#define CLT_TRIAL_WITNESS_H

#include "runtime/base/random.h"
#include "runtime/exec/plan.h"

typedef struct clt_witness {
    clt_device *device;
    clt_memory *result, *kept;
    size_t result_words, words, at; /* of 4 bytes: looked at, and from where on */
    uint32_t *read;
    clt_random random;
    int looked, missing; /* runs */
} clt_witness;

/* `result`: a target of the plan, of f32, whose right values are none of them the NaN of all bits. Free it also after an error. */
clt_status clt_witness_init(clt_witness *w, clt_device *device, clt_plan *plan, const clt_tensor *result);
void clt_witness_free(clt_witness *w);

/* Which of so many runs to look at. */
int clt_witness_choose(clt_witness *w, int times);
/* Enqueue: in front of that run, and after it. */
clt_status clt_witness_before(clt_witness *w);
clt_status clt_witness_after(clt_witness *w);
/* Waits, and counts the run. */
clt_status clt_witness_judge(clt_witness *w);

#endif
