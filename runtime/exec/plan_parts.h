/*
 * Inside of a plan, for the files that make one: plan.c compiles, plan_memory.c places memory, plan_run.c runs.
 */
#ifndef CLT_EXEC_PLAN_PARTS_H
#define CLT_EXEC_PLAN_PARTS_H

#include "backends/backend.h"
#include "runtime/exec/carry.h"
#include "runtime/exec/collective.h"
#include "runtime/exec/plan.h"
#include "runtime/exec/observer.h"

/* ---- structures ---- */

enum { INPUT_SLOTS = 2 };

/* An argument of a launch that reads an input. */
typedef struct input_use {
    size_t launch;
    int argument;
} input_use;

typedef struct plan_input {
    const clt_tensor *tensor;
    clt_staging *staging;
    clt_memory *bound; /* what the uses are set to */
    input_use *uses;
    size_t n_uses, uses_capacity;
} plan_input;

/* A launch with everything bound. */
typedef struct bound_launch {
    clt_kernel *kernel;
    int dims;
    size_t global[3], local[3];
    clt_launch_origin origin;
    bool collectives; /* some begin or finish before it */
    bool carries;     /* some are due before it */
} bound_launch;

/* Launches [begin, end), which runs leave out or repeat together. */
typedef struct plan_segment {
    size_t begin, end;
} plan_segment;

struct clt_plan {
    clt_device *device;
    clt_state_store *store;
    clt_graph *graph;     /* a copy of the one that was given: passes change it */
    const clt_graph *given;
    clt_tensor **copies;  /* by node of the given graph; NULL: not in this plan */
    bool *marks;          /* by node: part of this plan */
    clt_memory **memory;  /* by node; borrowed from slices, the store or inputs */
    clt_memory **slabs;
    size_t n_slabs;
    clt_memory **away;    /* in the host's memory; owned */
    size_t n_away;
    bool *poisoned; /* on a device with red zones, by slab: overwritten before each run; else NULL */
    clt_memory **slices;  /* owned */
    size_t n_slices, slices_capacity;
    clt_memory **scratch; /* by scratch index; borrowed from slices */
    plan_input *inputs;
    size_t n_inputs;
    bound_launch *launches;
    clt_plan_item *items;
    size_t n_items;
    size_t n_launches, n_once; /* n_once: the first, which are run when it is made */
    plan_segment *segments;
    int n_segments;
    clt_collectives collectives;
    clt_carries carries;
    clt_kernel *set_kernel;
    double *watch; /* of launches that are waited for one by one; else NULL */
    clt_lowering planned; /* of a dry run: what it would launch */
    int runs;
    bool resumed; /* as in the options */
    bool brings;  /* variables that lie in the host's memory */
    bool updates; /* the last run came to launch what writes something that outlives it */
    clt_plan_facts facts;
};

/* ---- plan_memory.c ---- */

/* Memory of inputs, variables and states. */
clt_status clt_plan_bind_leaves(clt_plan *plan);
/* What they would take. */
clt_status clt_plan_expect_leaves(clt_plan *plan);
/* Places activations and scratch, and makes the memory of what other plans do not share; `dry_run`: it is only found out how much it is. CLT_E_DEVICE_MEMORY,
 * without a try, where that is more than `room`. */
clt_status clt_plan_place(clt_plan *plan, const clt_lowering *lowering, uint64_t room, bool dry_run);
/* Memory of what lies in another tensor's. */
clt_status clt_plan_bind_views(clt_plan *plan);

/* ---- plan_run.c ---- */

/* Enqueues what is computed once. */
clt_status clt_plan_enqueue_once(clt_plan *plan);

/* "conv2d #12 by native": of a clt_launch_origin. */
void clt_plan_describe(const void *origin, char text[CLT_ORIGIN_TEXT]);

#endif
