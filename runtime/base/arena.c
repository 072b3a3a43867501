#include "runtime/base/arena.h"

#include <stdalign.h>
#include <string.h>

enum { ALIGNMENT = alignof(max_align_t), LEAST_BLOCK = 1 << 12, MOST_BLOCK = 1 << 20 };

struct clt_arena_block {
    clt_arena_block *next;
    size_t bytes, used;
    max_align_t memory[];
};

/* A block with room for `bytes`: twice as large as the one before, so that there are few and little is left over. */
static clt_status add_block(clt_arena *arena, size_t bytes) {
    size_t last = arena->blocks ? arena->blocks->bytes : LEAST_BLOCK / 2;
    size_t size = CLT_MAX(bytes, CLT_MIN(2 * last, (size_t)MOST_BLOCK));
    if (size > SIZE_MAX - sizeof(clt_arena_block)) return clt_fail_memory(size);
    clt_arena_block *block = clt_calloc(1, sizeof *block + size);
    if (!block) return clt_fail_memory(sizeof *block + size);
    *block = (clt_arena_block){.next = arena->blocks, .bytes = size};
    arena->blocks = block;
    return CLT_OK;
}

clt_status clt_arena_take(clt_arena *arena, size_t count, size_t bytes, void *memory) {
    size_t wanted;
    if (!clt_mul_size(count, bytes, &wanted) || wanted > SIZE_MAX - ALIGNMENT ||
        (wanted = (wanted + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT) > arena->limit - arena->used)
        return clt_fail(CLT_E_RANGE, "more than %zu bytes of memory are needed", arena->limit);
    if (!arena->blocks || arena->blocks->bytes - arena->blocks->used < wanted) CLT_TRY(add_block(arena, wanted));
    clt_arena_block *block = arena->blocks;
    void *taken = (char *)block->memory + block->used;
    memcpy(memory, &taken, sizeof taken);
    block->used += wanted;
    arena->used += wanted;
    return CLT_OK;
}

void clt_arena_free(clt_arena *arena) {
    for (clt_arena_block *block = arena->blocks, *next; block; block = next) {
        next = block->next;
        clt_free(block);
    }
    arena->blocks = NULL;
    arena->used = 0;
}
