#include "runtime/exec/carry.h"

#include "runtime/ops/ops.h"

bool clt_carries_are_apart(const clt_device *device) {
    return !clt_device_get_info(device)->unified_memory;
}

clt_status clt_carries_add(clt_carries *c, const clt_tensor *node, size_t at) {
    CLT_TRY(clt_grow(&c->items, &c->capacity, c->n, sizeof *c->items));
    c->items[c->n++] = (clt_carry){.node = node, .at = at, .end = at, .back = node->op->writes != 0};
    return CLT_OK;
}

static clt_status begin(const clt_carries *carries, clt_carry *c) {
    const clt_flat_part_attributes *part = c->node->attributes;
    size_t size = clt_dtype_bytes(c->node->dtype), offset = (size_t)part->offset * size, bytes = (size_t)clt_shape_elements(&part->shape) * size;
    if (carries->apart) return clt_async_copy_begin(&c->copy, c->device, c->host, offset, bytes, c->back);
    return c->back ? clt_memory_to_host(c->device, c->host, offset, bytes) : clt_memory_from_host(c->host, offset, c->device, bytes);
}

clt_status clt_carries_step(clt_carries *c, size_t index, int segment) {
    for (size_t i = 0; i < c->n && c->items[i].at <= index; i++)
        if (c->items[i].end <= index) CLT_TRY(clt_async_copy_end(&c->items[i].copy, c->device));
    for (size_t i = 0; i < c->n && c->items[i].at <= index; i++) {
        clt_carry *item = &c->items[i];
        if (item->at != index || item->node->segment != segment) continue;
        CLT_TRY(begin(c, item));
        if (item->end <= index) CLT_TRY(clt_async_copy_end(&item->copy, c->device));
    }
    return CLT_OK;
}

clt_status clt_carries_finish(clt_carries *c) {
    for (size_t i = 0; i < c->n; i++) CLT_TRY(clt_async_copy_end(&c->items[i].copy, c->device));
    return CLT_OK;
}

void clt_carries_abandon(clt_carries *c) {
    for (size_t i = 0; i < c->n; i++) clt_async_copy_abandon(&c->items[i].copy, c->device);
}

void clt_carries_free(clt_carries *c) {
    clt_carries_abandon(c);
    clt_free(c->items);
}
