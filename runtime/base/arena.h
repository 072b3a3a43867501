/*
 * Memory that is released at once, and never takes more than was agreed.
 */
#ifndef CLT_BASE_ARENA_H
#define CLT_BASE_ARENA_H

#include "runtime/base/base.h"

typedef struct clt_arena_block clt_arena_block;

/* Begins as {.limit = the most bytes}. One thread at a time. */
typedef struct clt_arena {
    size_t limit, used; /* bytes that were asked for, with what aligning them takes */
    clt_arena_block *blocks;
} clt_arena;

/* `count` items of `bytes` each, cleared and aligned for any type; 0 items give an address all the same. CLT_E_RANGE if the limit would
 * be passed, CLT_E_NO_MEMORY. The memory stays where it is until the arena is freed. */
clt_status clt_arena_take(clt_arena *arena, size_t count, size_t bytes, void *memory);

void clt_arena_free(clt_arena *arena); /* may be used again afterwards */

#endif
