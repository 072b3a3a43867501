#include "runtime/exec/carry.h"

#include "runtime/ops/ops.h"

clt_status clt_carries_add(clt_carries *c, const clt_tensor *node, size_t at) {
    CLT_TRY(clt_grow(&c->items, &c->capacity, c->n, sizeof *c->items));
    c->items[c->n++] = (clt_carry){.node = node, .at = at, .back = node->op->writes != 0};
    return CLT_OK;
}

static clt_status carry(const clt_carry *c) {
    const clt_flat_part_attributes *part = c->node->attributes;
    size_t size = clt_dtype_bytes(c->node->dtype), offset = (size_t)part->offset * size, bytes = (size_t)clt_shape_elements(&part->shape) * size;
    return c->back ? clt_memory_to_host(c->device, c->host, offset, bytes) : clt_memory_from_host(c->host, offset, c->device, bytes);
}

clt_status clt_carries_step(const clt_carries *c, size_t index, int segment) {
    for (size_t i = 0; i < c->n && c->items[i].at <= index; i++)
        if (c->items[i].at == index && c->items[i].node->segment == segment) CLT_TRY(carry(&c->items[i]));
    return CLT_OK;
}

void clt_carries_free(clt_carries *c) {
    clt_free(c->items);
}
