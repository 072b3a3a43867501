/*
 * Storage: views share the memory of what they view, gradients lie in the flat gradient where nothing else needs
 * them, and pointwise results take the place of operands that nobody needs any more.
 */
#ifndef CLT_EXEC_STORAGE_H
#define CLT_EXEC_STORAGE_H

#include "runtime/graph/graph.h"

/* Sets `storage` and `storage_offset` of all nodes. `marks`, by node, are those of the plan. */
clt_status clt_storage_assign(clt_graph *graph, const bool *marks, bool training);

/* The tensor whose memory `node` lies in: itself, or another. */
static inline const clt_tensor *clt_storage_of(const clt_tensor *node) {
    return node->storage ? node->storage : node;
}

static inline size_t clt_tensor_bytes(const clt_tensor *tensor) {
    return (size_t)clt_tensor_elements(tensor) * clt_dtype_bytes(tensor->dtype);
}

#endif
