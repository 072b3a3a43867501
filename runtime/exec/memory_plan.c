/*
 * Greedy by size: blocks are placed from the largest down, each at the lowest
 * offset where it meets no placed block that lives at the same time (Pisarchyk,
 * Lee, "Efficient Memory Management for Deep Neural Net Inference", 2020). A new
 * slab is opened when a block fits in none.
 */
#include "runtime/exec/memory_plan.h"

#include <stdlib.h>

static int larger_first(const void *a, const void *b) {
    const clt_block *x = *(clt_block *const *)a, *y = *(clt_block *const *)b;
    if (x->bytes != y->bytes) return x->bytes < y->bytes ? 1 : -1;
    return x->first - y->first; /* ties by time, so that the plan is the same each time */
}

static int lower_first(const void *a, const void *b) {
    const clt_block *x = *(clt_block *const *)a, *y = *(clt_block *const *)b;
    return x->offset < y->offset ? -1 : x->offset > y->offset;
}

static size_t round_up(size_t bytes, size_t alignment) {
    return (bytes + alignment - 1) / alignment * alignment;
}

/* The lowest free offset for `block` in a slab; `placed` are the blocks there. */
static size_t first_fit(clt_block **placed, size_t n, const clt_block *block, int slab, size_t alignment,
                        clt_block **neighbours) {
    size_t count = 0, offset = 0;
    for (size_t i = 0; i < n; i++)
        if (placed[i]->slab == slab && placed[i]->first <= block->last && block->first <= placed[i]->last)
            neighbours[count++] = placed[i];
    qsort(neighbours, count, sizeof *neighbours, lower_first);
    for (size_t i = 0; i < count; i++) {
        if (neighbours[i]->offset >= offset && neighbours[i]->offset - offset >= block->bytes) break;
        offset = CLT_MAX(offset, round_up(neighbours[i]->offset + neighbours[i]->bytes, alignment));
    }
    return offset;
}

static clt_status place(clt_block **sorted, size_t n, size_t alignment, size_t slab_limit, clt_slab *slabs, size_t *n_slabs,
                        clt_block **neighbours) {
    for (size_t i = 0; i < n; i++) {
        clt_block *block = sorted[i];
        size_t bytes = round_up(block->bytes, alignment), offset = 0, slab = 0;
        if (bytes > slab_limit)
            return clt_fail(CLT_E_DEVICE_MEMORY,
                            "a tensor of %zu bytes is larger than the device's largest buffer, %zu bytes", block->bytes,
                            slab_limit);
        for (; slab < *n_slabs; slab++) {
            if (slabs[slab].stays != block->stays) continue;
            offset = first_fit(sorted, i, block, (int)slab, alignment, neighbours);
            if (offset <= slab_limit - bytes) break;
        }
        if (slab == *n_slabs) {
            offset = 0;
            slabs[(*n_slabs)++] = (clt_slab){.stays = block->stays};
        }
        block->slab = (int)slab;
        block->offset = offset;
        slabs[slab].bytes = CLT_MAX(slabs[slab].bytes, offset + bytes);
    }
    return CLT_OK;
}

clt_status clt_memory_plan(clt_block *blocks, size_t n, size_t alignment, size_t slab_limit, clt_slab **slabs, size_t *n_slabs) {
    clt_block **sorted = clt_calloc(n + 1, sizeof *sorted), **neighbours = clt_calloc(n + 1, sizeof *neighbours);
    clt_slab *made = clt_calloc(n + 1, sizeof *made);
    clt_status status = CLT_OK;
    *n_slabs = 0;
    if (!sorted || !neighbours || !made) {
        status = clt_fail_memory((n + 1) * sizeof *sorted);
    } else {
        for (size_t i = 0; i < n; i++) sorted[i] = &blocks[i];
        qsort(sorted, n, sizeof *sorted, larger_first);
        status = place(sorted, n, alignment, slab_limit / alignment * alignment, made, n_slabs, neighbours);
    }
    clt_free(sorted);
    clt_free(neighbours);
    if (status < 0) clt_free(made);
    else *slabs = made;
    return status;
}
