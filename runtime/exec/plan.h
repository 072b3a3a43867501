/*
 * A plan: a graph compiled for a device. A flat list of launches with their
 * arguments bound and every buffer placed. Running it allocates nothing, builds
 * nothing and waits for nothing.
 */
#ifndef CLT_EXEC_PLAN_H
#define CLT_EXEC_PLAN_H

#include <cltrain/comm.h>

#include "runtime/exec/problem.h"

/* ---- the store: memory that outlives steps, shared by plans (state_store.c) ---- */

/* Values of variables and states on a device. Variables are found by identity,
 * states by name, so that a graph and its clones meet the same memory. */
typedef struct clt_state_store clt_state_store;

clt_status clt_state_store_create(clt_device *device, clt_state_store **store);
/* States in the host's memory lie in files of the folder, each in its own; before any is made. */
clt_status clt_state_store_set_folder(clt_state_store *store, const char *folder);
const char *clt_state_store_folder(const clt_state_store *store); /* NULL: none */
/* Another one with the same variables: states are its own. The stores may go in any order. */
clt_status clt_state_store_share(clt_state_store *with, clt_state_store **store);
/* How often anybody, a plan or another, has got hold of memory in which variables are trained, and may have written there. From 1. */
int clt_state_store_lent(const clt_state_store *store);
/* How often variables that were shared have got another memory: plans from before must not be run. */
int clt_state_store_moves(const clt_state_store *store);
void clt_state_store_destroy(clt_state_store *store);
/* The state's buffer, made and zeroed if it is not there. */
clt_status clt_state_store_get(clt_state_store *store, const char *name, size_t bytes, clt_memory **buffer);
/* The same in the host's memory. */
clt_status clt_state_store_get_host(clt_state_store *store, const char *name, size_t bytes, clt_memory **buffer);
/* The variable's buffer, likewise. */
clt_status clt_state_store_variable(clt_state_store *store, const clt_variable *variable, clt_memory **buffer);
/* Whether nobody has given the variable its first values yet: the caller does. */
clt_status clt_state_store_begin(clt_state_store *store, const clt_variable *variable, bool *first);
/* It has none after all. */
void clt_state_store_forget(clt_state_store *store, const clt_variable *variable);
/* How many of those that share the variables have put averages in the place of some. */
int *clt_state_store_averages(clt_state_store *store);
bool clt_state_store_has_begun(const clt_state_store *store, const clt_variable *variable);
/* Puts a variable into a state's memory: before its buffer is first asked for, or, where it is shared, with its values. CLT_E_STATE if it is in
 * another one's already. */
clt_status clt_state_store_place(clt_state_store *store, const clt_variable *variable, const char *state, size_t state_bytes,
                           size_t offset_bytes);
/* Whether it lies in a state in the host's memory. */
bool clt_state_store_is_in_host(const clt_state_store *store, const clt_variable *variable);
/* For questions: the memory that these would take, all told, without taking it. CLT_E_DEVICE_MEMORY if a state is larger than
 * the device's largest buffer. */
clt_status clt_state_store_expect(clt_state_store *store, const char *name, size_t bytes);
clt_status clt_state_store_expect_host(clt_state_store *store, const char *name, size_t bytes);
clt_status clt_state_store_expect_variable(clt_state_store *store, const clt_variable *variable);
uint64_t clt_state_store_bytes(const clt_state_store *store);
uint64_t clt_state_store_host_bytes(const clt_state_store *store);
/* NULL if there is no state of that name. */
clt_memory *clt_state_store_find(const clt_state_store *store, const char *name, size_t *bytes);

/* ---- plans ---- */

typedef struct clt_plan clt_plan;

/* Whether what backward reads of forward lies in the host's memory until then. */
typedef enum clt_away { CLT_AWAY_NEVER, CLT_AWAY_WHERE_NEEDED /* what does not fit */, CLT_AWAY_ALWAYS } clt_away;

typedef struct clt_plan_options {
    clt_device *device;
    clt_state_store *store;
    const clt_graph *graph; /* lent: its tensors name the plan's, so it must outlive it; stays as it is */
    clt_tensor *const *targets; /* what is computed; their memory stays readable after a run */
    int n_targets;
    bool training;
    clt_tune_run *run; /* of a training run: keeps the choices of rows. NULL: what is known decides */
    /* Called with the problems of the first plan of such a run, before rows are chosen; NULL: nothing is tuned. */
    void (*tune)(clt_device *device, clt_problem_list *problems);
    clt_comm *comms[2]; /* of collectives, by clt_among: borrowed, for the plan's life; NULL: there are none */
    /* What was exchanged is used only when all collectives of a run have succeeded, not as soon as each has: so that a run
     * that fails has changed nothing. */
    bool all_or_nothing;
    bool unfused; /* each op stays by itself */
    bool resumed; /* other plans of the device may run between two segments: what the later one reads of the earlier has memory of its own */
    const char *backends, *passes; /* in the place of the device's settings; NULL: those */
    clt_recompute recompute; /* of a training step */
    uint64_t kept_bytes;     /* for CLT_RECOMPUTE_AUTO: compute again what is beyond so many; 0: what does not fit into the device's memory */
    clt_away away;           /* likewise; what is to be computed again goes before it */
    const struct clt_choice *forced; /* for trials: how to lower every node; else NULL */
} clt_plan_options;

clt_status clt_plan_compile(clt_plan **plan, const clt_plan_options *options);
void clt_plan_destroy(clt_plan *plan);

/* The problems of a plan for which there is a choice of rows (tune.h); nothing is built. */
clt_status clt_plan_problems(const clt_plan_options *options, clt_problem_list *problems);

/* Everything about a plan but its memory and kernels, for questions: it cannot be run. Nothing is tuned for it either. */
clt_status clt_plan_dry_run(clt_plan **plan, const clt_plan_options *options);
/* What such a plan would launch (backends/backend.h). */
const clt_lowering *clt_plan_planned(const clt_plan *plan);

/* A node as it is served. */
typedef struct clt_plan_item {
    const clt_tensor *node; /* the plan's own */
    clt_choice choice;
    size_t launches; /* 0: it takes none */
} clt_plan_item;
/* In the order of their launches. */
const clt_plan_item *clt_plan_items(const clt_plan *plan, size_t *count);
/* From now on each launch of a run is waited for by itself, and its time by the host's clock is put into `seconds`, one for each of
 * facts.launches; for drivers whose own times are none. NULL: no more. */
void clt_plan_watch(clt_plan *plan, double *seconds);

/* Hands data to an input for the runs that follow; copied before it returns. */
clt_status clt_plan_feed(clt_plan *plan, const clt_tensor *input, const void *data);
/* Sets a small state (at most 64 bytes) by a launch: no transfer, no waiting. */
clt_status clt_plan_set(clt_plan *plan, const clt_tensor *state, const void *data, size_t bytes);

/* Enqueues the launches of all segments. With collectives it waits for the other ranks (exec/collective.h); their failure is its
 * error. */
clt_status clt_plan_run(clt_plan *plan);
/* The same of these segments, one after the other. */
clt_status clt_plan_run_segments(clt_plan *plan, const int *segments, int n);
/* After a run that failed: whether something may have been written that outlives a run. */
bool clt_plan_has_updated(const clt_plan *plan);
/* The plan's own node for one of the graph that was given; NULL if it has no part in the plan. */
const clt_tensor *clt_plan_copy(const clt_plan *plan, const clt_tensor *given);
/* Runs all of it slowly, and shows each tensor as soon as it is there: inputs, variables and states first (row: NULL), then ops in their order,
 * with the name of the row that computed each. An error of `look` ends it only when all has run, for other ranks run it too. */
typedef clt_status clt_plan_look(void *user, const clt_tensor *node, clt_memory *memory, const char *row);
clt_status clt_plan_run_slowly(clt_plan *plan, clt_plan_look *look, void *user);
/* Sets a target's memory from the host: what was there before a run. */
clt_status clt_plan_write(clt_plan *plan, const clt_tensor *tensor, const void *data, size_t bytes);
/* That of a target, while the plan lives; NULL: none is computed there. */
clt_memory *clt_plan_memory(clt_plan *plan, const clt_tensor *tensor);
/* Waits until a target is computed, and reads a value of it: there are drivers whose finish alone does not wait. */
clt_status clt_plan_wait(clt_plan *plan, const clt_tensor *tensor);
/* Waits and copies a target to the host. */
clt_status clt_plan_read(clt_plan *plan, const clt_tensor *tensor, void *data, size_t bytes);

typedef struct clt_plan_facts {
    size_t launches;        /* of a run */
    uint64_t planned_bytes; /* memory of activations and scratch together, as placed */
    uint64_t new_bytes;     /* of those, what no other plan of the device had when this one was made: plans share what lives within a run */
    uint64_t sum_bytes;     /* what they would take with no memory used twice */
    uint64_t input_bytes;   /* what is fed for a run */
    uint64_t input_memory;  /* what its inputs take on the device */
    uint64_t largest_bytes; /* of single buffers for activations and inputs, the largest */
    size_t recomputed;      /* nodes that are computed a second time */
    size_t away;            /* tensors that lie in the host's memory from forward to backward */
    uint64_t host_bytes;    /* of those */
    double waited_seconds;  /* in all runs, by the host, for collectives */
} clt_plan_facts;
clt_plan_facts clt_plan_get_facts(const clt_plan *plan);

#endif
