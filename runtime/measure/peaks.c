/*
 * The peaks of a device, measured: most multiply-adds a second and most bytes copied a second. The
 * kernels are cl/probe/peaks.cl; what they computed is looked at before a time counts. A launch is made
 * long enough for the clock first, so that the same code serves a GPU and a simulator.
 */
#include <stdio.h>
#include <string.h>

#include "runtime/base/file.h"
#include "runtime/base/number.h"
#include "runtime/device/cl.h"
#include "runtime/device/kernel_source.h"

static const char source_path[] = "probe/peaks.cl";

enum { CHAINS = 12, UNROLL = 4, MOST_ROUNDS = 16384 }; /* of probe_fma; a sum of ones is exact below 2^24 */
enum { GROUP = 64, COPY_STEPS = 8, TRIES = 6 };
static const double enough_seconds = 8e-3; /* for a launch, so that its own cost is lost in it */

typedef struct probe {
    clt_device *device;
    clt_module module;
    clt_text text;
    int width;
} probe;

static clt_status open_probe(probe *p, clt_device *device) {
    *p = (probe){.device = device, .width = clt_device_vector_width(device)};
    if (p->width != 2 && p->width != 4 && p->width != 8 && p->width != 16) p->width = 1;
    clt_text_add(&p->text, "#define PROBE_WIDTH %d\n%s", p->width, clt_kernel_source_find(device, source_path));
    CLT_TRY(p->text.status);
    p->module = (clt_module){.text = p->text.data, .label = source_path};
    return clt_device_build(device, &p->module, 1);
}

/* Seconds of a launch by itself. */
static clt_status timed(const probe *p, clt_kernel *kernel, size_t items, size_t group, double *seconds) {
    CLT_TRY(clt_device_finish(p->device));
    double start = clt_seconds();
    CLT_TRY(clt_kernel_enqueue(kernel, 1, &items, &group));
    CLT_TRY(clt_device_finish(p->device));
    *seconds = clt_seconds() - start;
    return CLT_OK;
}

/* The best of so many launches: a busy machine makes single ones slow, and drivers compile in the first. */
static clt_status best_of(const probe *p, int tries, clt_kernel *kernel, size_t items, size_t group, double *best) {
    double seconds;
    CLT_TRY(timed(p, kernel, items, group, best));
    for (int i = 1; i < tries; i++) {
        CLT_TRY(timed(p, kernel, items, group, &seconds));
        *best = CLT_MIN(*best, seconds);
    }
    return CLT_OK;
}

static clt_status wrong(const probe *p, const char *kernel) {
    return clt_fail(CLT_E_DEVICE, "%s: %s computed something else than it should", p->device->info.name, kernel);
}

/* ---- multiply-adds ---- */

/* A vector device's work-items are threads of their own; elsewhere a work-item is a lane. */
static size_t fma_group(const probe *p) {
    return p->width > 1 ? 1 : CLT_MIN((size_t)GROUP, (size_t)p->device->info.max_work_group_size);
}

/* With scale and shift one, each value has counted the rounds. */
static clt_status check_fma(const probe *p, clt_memory *y, size_t items, int rounds) {
    float got[CHAINS * 16];
    size_t floats = (size_t)(CHAINS * p->width), last = items - 1;
    CLT_TRY(clt_memory_read(y, last * floats * sizeof *got, got, floats * sizeof *got));
    for (size_t i = 0; i < floats; i++)
        if (got[i] != (float)(last * CHAINS + i / (size_t)p->width) + (float)(UNROLL * rounds))
            return wrong(p, "probe_fma");
    return CLT_OK;
}

static clt_status set_fma(clt_kernel *kernel, const clt_memory *y, int rounds) {
    float one = 1;
    int32_t count = rounds;
    CLT_TRY(clt_kernel_set_memory(kernel, 0, y));
    CLT_TRY(clt_kernel_set_value(kernel, 1, &one, sizeof one));
    CLT_TRY(clt_kernel_set_value(kernel, 2, &one, sizeof one));
    return clt_kernel_set_value(kernel, 3, &count, sizeof count);
}

/* First few and short work-items, then longer ones, then more of them. */
static clt_status run_fma(const probe *p, clt_kernel *kernel, clt_memory *y, size_t most_items, double *flops) {
    size_t group = fma_group(p), items = group * p->device->info.compute_units;
    int rounds = 4;
    double seconds = 0;
    for (bool enough = false; !enough;) {
        CLT_TRY(set_fma(kernel, y, rounds));
        CLT_TRY(best_of(p, 3, kernel, items, group, &seconds));
        enough = seconds >= enough_seconds || (rounds == MOST_ROUNDS && items * 2 > most_items);
        if (enough) break;
        if (rounds < MOST_ROUNDS) rounds *= 4;
        else items *= 2;
    }
    CLT_TRY(best_of(p, TRIES, kernel, items, group, &seconds));
    CLT_TRY(check_fma(p, y, items, rounds));
    *flops = 2.0 * (double)items * p->width * CHAINS * UNROLL * rounds / seconds;
    return CLT_OK;
}

static clt_status measure_fma(const probe *p, double *flops) {
    /* 16 work-items a lane of the widest units: their values stay exact. */
    size_t most = CLT_MIN(fma_group(p) * p->device->info.compute_units * 64, (size_t)1 << 19);
    clt_kernel *kernel = NULL;
    clt_memory *y = NULL;
    clt_status status = clt_kernel_create(p->device, &p->module, "probe_fma", &kernel);
    most = CLT_MAX(most, fma_group(p) * p->device->info.compute_units);
    if (status == CLT_OK) status = clt_memory_create(p->device, most * (size_t)(CHAINS * p->width) * sizeof(float), &y);
    if (status == CLT_OK) status = run_fma(p, kernel, y, most, flops);
    clt_memory_destroy(y);
    clt_kernel_destroy(kernel);
    return status;
}

/* ---- copying ---- */

typedef struct copying {
    clt_kernel *ramp, *copy;
    clt_memory *x, *y;
    size_t group;
} copying;

/* Floats of a buffer: four times the device's cache, within reason. */
static size_t copy_floats(const clt_device *device) {
    const size_t mebibyte = (size_t)1 << 20;
    cl_ulong cache = 0;
    clGetDeviceInfo(device->id, CL_DEVICE_GLOBAL_MEM_CACHE_SIZE, sizeof cache, &cache, NULL);
    size_t bytes = CLT_MIN(CLT_MAX((size_t)cache * 4, 32 * mebibyte), 256 * mebibyte);
    bytes = CLT_MIN(bytes, (size_t)(device->info.memory_bytes / 8));
    return CLT_MIN(bytes, (size_t)device->info.max_buffer_bytes) / sizeof(float);
}

static clt_status set_copy(const copying *c, int32_t count) {
    int32_t steps = COPY_STEPS;
    CLT_TRY(clt_kernel_set_memory(c->copy, 0, c->x));
    CLT_TRY(clt_kernel_set_memory(c->copy, 1, c->y));
    CLT_TRY(clt_kernel_set_value(c->copy, 2, &count, sizeof count));
    return clt_kernel_set_value(c->copy, 3, &steps, sizeof steps);
}

static size_t copy_items(const copying *c, size_t count) {
    size_t span = c->group * COPY_STEPS;
    return (count + span - 1) / span * c->group;
}

static clt_status check_copy(const probe *p, const copying *c, size_t floats) {
    float got[1024];
    for (int part = 0; part < 3; part++) {
        size_t at = (floats - CLT_COUNT_OF(got)) / 2 * (size_t)part;
        CLT_TRY(clt_memory_read(c->y, at * sizeof *got, got, sizeof got));
        for (size_t i = 0; i < CLT_COUNT_OF(got); i++)
            if (got[i] != (float)((at + i) & 0xfffff)) return wrong(p, "probe_copy");
    }
    return CLT_OK;
}

static clt_status run_copy(const probe *p, const copying *c, size_t most_floats, double *bytes) {
    double seconds = 0;
    size_t width = (size_t)p->width, count = 16384 / width, most = most_floats / width;
    /* A simulator has not the patience for all of it. */
    for (;; count = CLT_MIN(count * 8, most)) {
        int32_t floats = (int32_t)(count * width);
        size_t ramp_items = (count * width + c->group - 1) / c->group * c->group;
        CLT_TRY(clt_kernel_set_memory(c->ramp, 0, c->x));
        CLT_TRY(clt_kernel_set_value(c->ramp, 1, &floats, sizeof floats));
        CLT_TRY(clt_kernel_enqueue(c->ramp, 1, &ramp_items, &c->group));
        CLT_TRY(set_copy(c, (int32_t)count));
        CLT_TRY(best_of(p, 3, c->copy, copy_items(c, count), c->group, &seconds));
        if (count == most || seconds > 8 * enough_seconds) break;
    }
    CLT_TRY(best_of(p, TRIES, c->copy, copy_items(c, count), c->group, &seconds));
    CLT_TRY(check_copy(p, c, count * width));
    *bytes = 2.0 * (double)(count * width * sizeof(float)) / seconds;
    return CLT_OK;
}

static clt_status measure_copy(const probe *p, double *bytes) {
    copying c = {0};
    size_t floats = copy_floats(p->device) / (GROUP * 16) * (GROUP * 16);
    clt_status status = CLT_OK;
    CLT_TRY_GOTO(clt_kernel_create(p->device, &p->module, "probe_ramp", &c.ramp));
    CLT_TRY_GOTO(clt_kernel_create(p->device, &p->module, "probe_copy", &c.copy));
    CLT_TRY_GOTO(clt_memory_create(p->device, floats * sizeof(float), &c.x));
    CLT_TRY_GOTO(clt_memory_create(p->device, floats * sizeof(float), &c.y));
    CLT_TRY_GOTO(clt_kernel_work_group_limit(c.copy, &c.group));
    c.group = CLT_MIN((size_t)GROUP, c.group);
    status = run_copy(p, &c, floats, bytes);
fail:
    clt_memory_destroy(c.x);
    clt_memory_destroy(c.y);
    clt_kernel_destroy(c.ramp);
    clt_kernel_destroy(c.copy);
    return status;
}

/* ---- both ---- */

clt_status clt_device_measure_peaks(clt_device *device, clt_peaks *peaks) {
    probe p;
    clt_status status = open_probe(&p, device);
    if (status == CLT_OK) status = measure_fma(&p, &peaks->fma_flops);
    if (status == CLT_OK) status = measure_copy(&p, &peaks->copy_bytes);
    clt_text_free(&p.text);
    return status;
}

/* One line, "multiply-adds x 2, bytes": a second, and how often they were measured, in a file of the cache. A
 * machine that is busy shows peaks too low, so that the first few times count. */
enum { MEASUREMENTS = 3 };

static clt_status peaks_path(const clt_device *device, clt_text *path) {
    char key[CLT_HASH_TEXT] = "";
    const char *source = clt_kernel_source_find(device, source_path);
    clt_hash_add(key, device->identity, CLT_HASH_TEXT);
    clt_hash_add(key, &device->info.compute_units, sizeof device->info.compute_units);
    clt_hash_add(key, source, strlen(source));
    CLT_TRY(clt_file_cache_folder(clt_device_settings(device)->cache_folder, "peaks", path));
    clt_text_add(path, "/%s", key);
    return path->status;
}

/* No device of today reaches more, generously: clocks are told without boost, if at all; two vector units with multiply-adds, or 256
 * lanes of a GPU's unit. And none has less than the least, a simulator neither. */
static bool plausible(const clt_device *device, const clt_peaks *peaks) {
    const double least = 1e3;
    bool cpu = device->info.type == CLT_DEVICE_CPU;
    double clock = 2e6 * CLT_MAX(device->info.clock_mhz, 2500u), units = CLT_MAX(device->info.compute_units, 1u);
    double lanes = cpu ? 2 * CLT_MAX(device->vector_width, 4) : 256;
    double most_flops = 2 * lanes * clock * units, most_bytes = cpu ? 4e12 : 4e13;
    return peaks->fma_flops >= least && peaks->fma_flops <= most_flops && peaks->copy_bytes >= least && peaks->copy_bytes <= most_bytes;
}

/* The text before the next blank or the end of the line, cut off; *text goes behind it. */
static char *take_word(char **text) {
    char *word = *text;
    *text += strcspn(word, " \n");
    if (**text) *(*text)++ = '\0';
    return word;
}

/* "FLOPS BYTES COUNT". */
static int parse(char *text, clt_peaks *peaks) {
    uint64_t count;
    const char *flops = take_word(&text), *bytes = take_word(&text), *times = take_word(&text);
    bool known = clt_number_parse(flops, &peaks->fma_flops) && clt_number_parse(bytes, &peaks->copy_bytes) &&
                 clt_number_whole(times, 1000, &count) && !*text;
    return known ? (int)count : 0;
}

/* How often they were measured; 0: nothing is known, or what no device can. */
static int recall(const clt_device *device, const char *path, clt_peaks *peaks) {
    void *bytes = NULL;
    size_t length;
    int count = clt_file_read(path, 64, &bytes, &length) == CLT_OK ? parse(bytes, peaks) : 0;
    clt_free(bytes);
    if (count > 0 && plausible(device, peaks)) return count;
    *peaks = (clt_peaks){0};
    return 0;
}

static clt_status measure_again(clt_device *device, const char *path, int count, clt_peaks *peaks) {
    clt_peaks now = {0};
    char line[128];
    CLT_TRY(clt_device_measure_peaks(device, &now));
    peaks->fma_flops = CLT_MAX(peaks->fma_flops, now.fma_flops);
    peaks->copy_bytes = CLT_MAX(peaks->copy_bytes, now.copy_bytes);
    /* Whole numbers are the same in every locale. */
    int length = snprintf(line, sizeof line, "%.0f %.0f %d\n", peaks->fma_flops, peaks->copy_bytes, count + 1);
    if (path) clt_file_write(path, line, (size_t)length); /* a cache that cannot be written is none */
    return CLT_OK;
}

clt_status clt_device_peaks(clt_device *device, clt_peaks *peaks) {
    clt_text path = {0};
    if (!device || !peaks) return clt_fail(CLT_E_INVALID, "clt_device_peaks: an argument is NULL");
    *peaks = (clt_peaks){0};
    bool cached = peaks_path(device, &path) == CLT_OK;
    int count = cached ? recall(device, path.data, peaks) : 0;
    clt_status status =
        count < MEASUREMENTS ? measure_again(device, cached ? path.data : NULL, count, peaks) : CLT_OK;
    clt_text_free(&path);
    return status;
}
