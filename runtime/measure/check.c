/* Does a device's memory hold, and is its arithmetic right; with the kernels of cl/probe/check.cl. */
#include <stdio.h>
#include <string.h>

#include <cltrain/experimental/measure.h>

#include "runtime/device/cl.h"
#include "runtime/device/kernel_source.h"
#include "runtime/measure/limits.h"

static const char source_path[] = "probe/check.cl";

enum { MOST_BUFFERS = 256, GROUP = 64, EDGE_WORDS = 16384 };

typedef struct check {
    clt_device *device;
    clt_check_report *report;
    clt_module module;
    clt_kernel *write, *read;
    cl_mem buffers[MOST_BUFFERS];
    uint64_t words[MOST_BUFFERS];
    int n;
    clt_memory *found;
    size_t items, group;
} check;

static void note(clt_check_report *report, uint64_t errors, const char *text) {
    if (errors && !report->first[0]) snprintf(report->first, sizeof report->first, "%s", text);
    report->errors += errors;
}

/* As check_word in check.cl. */
static uint32_t word(uint64_t at, uint32_t buffer, uint32_t seed, uint32_t flip) {
    return (((uint32_t)at ^ seed) * 2654435761u + (uint32_t)(at >> 32) * 40503u + buffer * 0x9e3779b9u) ^ flip;
}

/* ---- kernels ---- */

static clt_status set_common(const check *c, clt_kernel *kernel, int k, uint32_t seed, uint32_t flip) {
    cl_ulong count = c->words[k];
    uint32_t number = (uint32_t)k;
    CLT_TRY(clt_kernel_set_value(kernel, 0, &c->buffers[k], sizeof c->buffers[k]));
    CLT_TRY(clt_kernel_set_value(kernel, 1, &count, sizeof count));
    CLT_TRY(clt_kernel_set_value(kernel, 2, &number, sizeof number));
    CLT_TRY(clt_kernel_set_value(kernel, 3, &seed, sizeof seed));
    return clt_kernel_set_value(kernel, 4, &flip, sizeof flip);
}

static clt_status write_pattern(const check *c, int k, uint32_t seed, uint32_t flip) {
    CLT_TRY(set_common(c, c->write, k, seed, flip));
    return clt_kernel_enqueue(c->write, 1, &c->items, &c->group);
}

static void tell(const check *c, int k, uint64_t at, uint32_t got, uint32_t wanted, uint64_t errors, const char *by) {
    char text[192];
    snprintf(text, sizeof text, "buffer %d of %.1f MiB, byte %llu, read by the %s: %08x, not %08x", k,
             (double)c->words[k] / 262144, (unsigned long long)(at * 4), by, got, wanted);
    note(c->report, errors, text);
}

static clt_status read_by_kernel(const check *c, int k, uint32_t seed, uint32_t flip) {
    size_t bytes = c->items * 4 * sizeof(uint32_t);
    uint32_t *found = clt_alloc(bytes);
    if (!found) return clt_fail_memory(bytes);
    memset(found, 0xff, bytes); /* what is not written counts as wrong */
    clt_status status = clt_memory_write(c->found, 0, found, bytes);
    if (status == CLT_OK) status = set_common(c, c->read, k, seed, flip);
    if (status == CLT_OK) status = clt_kernel_set_memory(c->read, 5, c->found);
    if (status == CLT_OK) status = clt_kernel_enqueue(c->read, 1, &c->items, &c->group);
    if (status == CLT_OK) status = clt_memory_read(c->found, 0, found, bytes);
    for (size_t i = 0; i < c->items && status == CLT_OK; i++) {
        uint64_t at = found[4 * i + 1] | (uint64_t)found[4 * i + 2] << 32;
        if (found[4 * i]) tell(c, k, at, found[4 * i + 3], word(at, (uint32_t)k, seed, flip), found[4 * i], "device");
    }
    clt_free(found);
    return status;
}

/* Its beginning and its end. */
static clt_status read_by_host(const check *c, int k, uint32_t seed, uint32_t flip) {
    static const size_t most = EDGE_WORDS;
    uint32_t *got = clt_alloc(most * sizeof *got);
    clt_status status = got ? CLT_OK : clt_fail_memory(most * sizeof *got);
    size_t n = (size_t)CLT_MIN(c->words[k], (uint64_t)most);
    for (int end = 0; end < 2 && status == CLT_OK; end++) {
        uint64_t from = end ? c->words[k] - n : 0;
        status = clt_cl_before_blocking(c->device, "reading a buffer");
        if (status < 0) break;
        cl_int error = clEnqueueReadBuffer(c->device->queue, c->buffers[k], CL_TRUE, from * sizeof *got, n * sizeof *got,
                                           got, 0, NULL, NULL);
        if (error != CL_SUCCESS) status = clt_cl_fail(c->device, "reading a buffer", error);
        for (size_t i = 0; i < n && status == CLT_OK; i++)
            if (got[i] != word(from + i, (uint32_t)k, seed, flip))
                tell(c, k, from + i, got[i], word(from + i, (uint32_t)k, seed, flip), 1, "host");
    }
    clt_free(got);
    return status;
}

/* ---- memory ---- */

/* A buffer that was really written to: drivers give memory that they do not have. */
static bool take(check *c, uint64_t bytes) {
    cl_int error;
    cl_mem memory = clCreateBuffer(c->device->context, CL_MEM_READ_WRITE, (size_t)bytes, NULL, &error);
    if (clt_cl_made(memory, error) != CL_SUCCESS) return false;
    c->buffers[c->n] = memory;
    c->words[c->n] = bytes / sizeof(uint32_t);
    if (write_pattern(c, c->n, 0, 0) == CLT_OK && clt_device_finish(c->device) == CLT_OK) {
        c->n++;
        return true;
    }
    clReleaseMemObject(memory);
    return false;
}

static clt_status take_all(check *c, uint64_t most_bytes) {
    const uint64_t least = (uint64_t)1 << 20;
    uint64_t held = 0, size = CLT_MIN(c->device->info.max_buffer_bytes, most_bytes) & ~(uint64_t)4095;
    while (c->n < MOST_BUFFERS && size >= least && held + least <= most_bytes) {
        size = CLT_MIN(size, (most_bytes - held) & ~(uint64_t)4095);
        if (take(c, size)) {
            held += size;
            c->report->largest_bytes = CLT_MAX(c->report->largest_bytes, size);
        } else {
            size = size / 8 * 7 & ~(uint64_t)4095;
        }
    }
    c->report->together_bytes = CLT_MAX(c->report->together_bytes, held);
    return c->n ? CLT_OK : clt_fail(CLT_E_DEVICE_MEMORY, "%s: not even 1 MiB is to be had", c->device->info.name);
}

/* All are written before the first is read: what shares memory in secret shows. */
static clt_status check_all(check *c, uint32_t seed, uint32_t flip) {
    for (int k = 0; k < c->n; k++) CLT_TRY(write_pattern(c, k, seed, flip));
    CLT_TRY(clt_device_finish(c->device));
    for (int k = 0; k < c->n; k++) {
        CLT_TRY(read_by_kernel(c, k, seed, flip));
        CLT_TRY(read_by_host(c, k, seed, flip));
        c->report->checked_bytes += c->words[k] * sizeof(uint32_t);
    }
    return CLT_OK;
}

static clt_status open_check(check *c) {
    c->module = (clt_module){.text = clt_kernel_source_find(c->device, source_path), .label = source_path, .isolated = true};
    CLT_TRY(clt_device_build(c->device, &c->module, 1));
    CLT_TRY(clt_kernel_create(c->device, &c->module, "check_write", &c->write));
    CLT_TRY(clt_kernel_create(c->device, &c->module, "check_read", &c->read));
    CLT_TRY(clt_kernel_work_group_limit(c->read, &c->group));
    c->group = CLT_MIN((size_t)GROUP, c->group);
    c->items = c->group * CLT_MIN(CLT_MAX(c->device->info.compute_units, 1u), 1024u) * 8;
    return clt_memory_create(c->device, c->items * 4 * sizeof(uint32_t), &c->found);
}

clt_status clt_check_memory(clt_device *device, uint64_t most_bytes, uint32_t seed, clt_check_report *report) {
    if (!device || !report) return clt_fail(CLT_E_INVALID, "clt_check_memory: an argument is NULL");
    check c = {.device = device, .report = report};
    clt_device_trim(device);
    clt_status status = open_check(&c);
    if (status == CLT_OK) status = take_all(&c, most_bytes);
    if (status == CLT_OK) status = check_all(&c, seed, 0);
    if (status == CLT_OK) status = check_all(&c, seed, 0xffffffffu);
    clt_status ended = clt_device_finish(device);
    if (status == CLT_OK) status = ended;
    for (int k = 0; k < c.n; k++) CLT_RELEASE(device, clReleaseMemObject(c.buffers[k]));
    clt_memory_destroy(c.found);
    clt_kernel_destroy(c.write);
    clt_kernel_destroy(c.read);
    clt_device_trim(device);
    return status;
}

/* ---- arithmetic ---- */

static uint32_t rotated(uint32_t x, int by) {
    return x << by | x >> (32 - by);
}

/* As check_arithmetic in check.cl. */
static uint32_t arithmetic(uint32_t i, uint32_t seed, int rounds) {
    uint32_t a = i * 2654435761u ^ seed, b = a + 0x9e3779b9u, sum = 0;
    for (int r = 0; r < rounds; r++) {
        a = a * 1664525u + 1013904223u;
        b = (uint32_t)((uint64_t)a * (b | 1u) >> 32) ^ rotated(b, 7);
        uint32_t f = (a & 0xfffu) * (b & 0xfffu) + (a >> 20);
        sum = rotated(sum, 3) + (f ^ (b >> (a & 15u)));
    }
    return sum;
}

clt_status clt_run_on_words(clt_device *device, const clt_module *module, const char *name, const uint32_t *values, int n,
                            uint32_t *words, size_t items) {
    clt_kernel *kernel = NULL;
    clt_memory *y = NULL;
    size_t group = GROUP, limit;
    clt_status status = CLT_OK;
    CLT_TRY_GOTO(clt_kernel_create(device, module, name, &kernel));
    CLT_TRY_GOTO(clt_kernel_work_group_limit(kernel, &limit));
    group = CLT_MIN(group, limit);
    while (items % group) group--;
    CLT_TRY_GOTO(clt_memory_create(device, items * sizeof *words, &y));
    CLT_TRY_GOTO(clt_memory_write(y, 0, words, items * sizeof *words));
    CLT_TRY_GOTO(clt_kernel_set_memory(kernel, 0, y));
    for (int i = 0; i < n; i++) CLT_TRY_GOTO(clt_kernel_set_value(kernel, 1 + i, &values[i], sizeof values[i]));
    CLT_TRY_GOTO(clt_kernel_enqueue(kernel, 1, &items, &group));
    status = clt_memory_read(y, 0, words, items * sizeof *words);
fail:
    clt_memory_destroy(y);
    clt_kernel_destroy(kernel);
    return status;
}

clt_status clt_check_arithmetic(clt_device *device, uint32_t seed, clt_check_report *report) {
    enum { ITEMS = 65536, ROUNDS = 128 };
    if (!device || !report) return clt_fail(CLT_E_INVALID, "clt_check_arithmetic: an argument is NULL");
    clt_module module = {.text = clt_kernel_source_find(device, source_path), .label = source_path, .isolated = true};
    uint32_t *got = clt_calloc(ITEMS, sizeof *got);
    if (!got) return clt_fail_memory(ITEMS * sizeof *got);
    clt_status status = clt_device_build(device, &module, 1);
    if (status == CLT_OK)
        status = clt_run_on_words(device, &module, "check_arithmetic", (uint32_t[]){seed, ROUNDS}, 2, got, ITEMS);
    for (uint32_t i = 0; i < ITEMS && status == CLT_OK; i++) {
        char text[192];
        uint32_t wanted = arithmetic(i, seed, ROUNDS);
        report->values++;
        if (got[i] == wanted) continue;
        snprintf(text, sizeof text, "arithmetic, work-item %u: %08x, not %08x", i, got[i], wanted);
        note(report, 1, text);
    }
    clt_free(got);
    return status;
}
