/*
 * Where blocks lie that live for a part of a plan: those whose lives do not meet
 * may share memory. What outlives a run lies in slabs of its own.
 */
#ifndef CLT_EXEC_MEMORY_PLAN_H
#define CLT_EXEC_MEMORY_PLAN_H

#include "runtime/base/base.h"

typedef struct clt_block {
    size_t bytes;
    int first, last; /* steps of its life, both included */
    bool stays;      /* it outlives a run */
    /* the plan's answer */
    int slab;
    size_t offset;
} clt_block;

typedef struct clt_slab {
    size_t bytes;
    bool stays;
} clt_slab;

/* Places blocks in slabs of at most `slab_limit` bytes, at multiples of `alignment`.
 * *slabs (released with clt_free) are the *n_slabs slabs.
 * CLT_E_DEVICE_MEMORY if one block is larger than a slab may be. */
clt_status clt_memory_plan(clt_block *blocks, size_t n, size_t alignment, size_t slab_limit, clt_slab **slabs, size_t *n_slabs);

#endif
