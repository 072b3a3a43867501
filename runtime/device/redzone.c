/*
 * Memory under watch: on a device with red zones each buffer lies between guard bytes, which nobody may touch, and what is
 * undefined holds values that show in a result.
 */
#include <stdio.h>
#include <string.h>

#include <cltrain/experimental/measure.h>

#include "runtime/device/cl.h"

/* On either side; the alignment at least, for what lies between them is a sub-buffer. */
enum { LEAST_GUARD = 4096 };

/* Where floats are read of it NaN and 8e37 by turns: which of the two is wanted, the other shows. Different ones from those that
 * values are filled with. */
static const unsigned char guard_pattern[8] = {0xa5, 0x5a, 0xff, 0x7f, 0x5a, 0xa5, 0x73, 0x7e};

static size_t guard_bytes(const clt_device *device) {
    return (LEAST_GUARD + device->alignment - 1) / device->alignment * device->alignment;
}

static void fill_pattern(unsigned char *bytes, size_t n, size_t place) {
    for (size_t i = 0; i < n; i++) bytes[i] = guard_pattern[(place + i) % sizeof guard_pattern];
}

clt_status clt_device_enable_redzones(clt_device *device) {
    if (!device) return clt_fail(CLT_E_INVALID, "clt_device_enable_redzones: no device");
    if (device->redzones_on) return CLT_OK;
    clt_device_trim(device);
    if (device->bytes)
        return clt_fail(CLT_E_STATE, "%s: buffers made before cannot get red zones", device->info.name);
    device->redzones_on = true;
    return CLT_OK;
}

bool clt_device_has_redzones(const clt_device *device) {
    return device->redzones_on;
}

/* ---- buffers ---- */

static clt_status write_guards(clt_memory *whole, size_t front, size_t end) {
    unsigned char *bytes = clt_alloc(whole->bytes - end + front);
    if (!bytes) return clt_fail_memory(whole->bytes);
    fill_pattern(bytes, front, 0);
    clt_status status = clt_memory_write(whole, 0, bytes, front);
    fill_pattern(bytes, whole->bytes - end, end);
    if (status == CLT_OK) status = clt_memory_write(whole, end, bytes, whole->bytes - end);
    clt_free(bytes);
    return status;
}

/* Whole buffers are not from the pool: what an earlier user left in them would hide what is not written. */
clt_status clt_redzone_create(clt_device *device, size_t bytes, clt_memory **memory) {
    size_t guard = guard_bytes(device), all;
    clt_memory *whole, *inside = NULL;
    bytes = CLT_MAX(bytes, 1);
    all = (bytes + device->alignment - 1) / device->alignment * device->alignment + 2 * guard;
    if (bytes > device->info.max_buffer_bytes || all > device->info.max_buffer_bytes)
        return clt_memory_fail(device, all, CL_INVALID_BUFFER_SIZE);
    CLT_TRY(clt_memory_allocate(device, all, &whole));
    clt_status status =
        clt_grow(&device->redzones, &device->redzones_capacity, device->n_redzones, sizeof *device->redzones);
    if (status == CLT_OK) status = write_guards(whole, guard, guard + bytes);
    if (status == CLT_OK) status = clt_memory_slice(whole, guard, bytes, &inside);
    if (status == CLT_OK) status = clt_memory_poison(inside, 0xff);
    if (status == CLT_OK && inside) {
        inside->redzones_on = true;
        snprintf(inside->label, sizeof inside->label, "a buffer");
        device->redzones[device->n_redzones++] = *memory = inside;
        return CLT_OK;
    }
    if (inside) clt_memory_free(inside);
    clt_memory_free(whole);
    return status;
}

void clt_memory_name(clt_memory *memory, const char *name) {
    if (memory->redzones_on) snprintf(memory->label, sizeof memory->label, "%s", name);
}

clt_status clt_memory_poison(clt_memory *memory, unsigned char byte) {
    CLT_TRY_CL(memory->device, "filling a buffer",
               clEnqueueFillBuffer(memory->device->queue, memory->memory, &byte, 1, 0, memory->bytes, 0,
                                   NULL, NULL));
    return CLT_OK;
}

/* ---- looking at them ---- */

/* Keeps the first trespass: later ones are often its consequence. */
static void note(clt_device *device, const clt_memory *memory, bool before, size_t distance, size_t n) {
    if (device->trespass[0]) return;
    snprintf(device->trespass, sizeof device->trespass,
             "written outside of %s, which has %zu bytes: %zu bytes changed, the first of them %zu %s",
             memory->label, memory->bytes, n, distance,
             before ? "bytes before its start" : "bytes after its end");
}

/* The guard in front of what is inside, or behind it, piece by piece: nothing is allocated that could fail. */
static clt_status check_guard(const clt_memory *memory, bool before) {
    unsigned char bytes[LEAST_GUARD];
    clt_memory *whole = memory->parent;
    size_t begin = before ? 0 : memory->offset + memory->bytes, end = before ? memory->offset : whole->bytes;
    size_t first = end, count = 0;
    for (size_t at = begin, n; at < end; at += n) {
        n = CLT_MIN(end - at, sizeof bytes);
        CLT_TRY(clt_memory_read(whole, at, bytes, n));
        for (size_t i = 0; i < n; i++) {
            if (bytes[i] == guard_pattern[(at + i) % sizeof guard_pattern]) continue;
            first = CLT_MIN(first, at + i);
            count++;
        }
    }
    if (count) note(memory->device, memory, before, before ? end - first : first - begin, count);
    return CLT_OK;
}

static clt_status check(const clt_memory *memory) {
    CLT_TRY(check_guard(memory, true));
    return check_guard(memory, false);
}

void clt_redzone_destroy(clt_memory *memory) {
    clt_device *device = memory->device;
    clt_memory *whole = memory->parent;
    check(memory); /* an error here is one of the device, which tells it again */
    for (size_t i = 0; i < device->n_redzones; i++)
        if (device->redzones[i] == memory) {
            device->redzones[i] = device->redzones[--device->n_redzones];
            break;
        }
    clt_memory_free(memory);
    clt_memory_free(whole);
}

clt_status clt_device_check_redzones(clt_device *device) {
    if (!device || !device->redzones_on)
        return clt_fail(CLT_E_STATE, "clt_device_check_redzones: the device has no red zones");
    for (size_t i = 0; i < device->n_redzones; i++) CLT_TRY(check(device->redzones[i]));
    if (!device->trespass[0]) return CLT_OK;
    clt_status status = clt_fail(CLT_E_DEVICE, "%s: %s", device->info.name, device->trespass);
    device->trespass[0] = 0;
    return status;
}
