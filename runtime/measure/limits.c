/*
 * The limits of <cltrain/experimental/measure.h>: arithmetic, memory, launches. Transfers and builds are in transfers.c. The kernels
 * are cl/probe/limits.cl. What the timed runs computed is looked at before their times count.
 */
#include "runtime/measure/limits.h"

#include <string.h>

#include "runtime/device/kernel_source.h"
#include "runtime/trial/sample.h"

static const char source_path[] = "probe/limits.cl";
static const double enough_seconds = 4e-3; /* for a run, so that the cost of a launch is lost in it */

enum { GROUP = 64, STEPS = 8, CHAINS = 12, UNROLL = 4, LOCAL_READS = 8, LOCAL_VECTORS = 256 };

static const char *const names[] = {
#define NAME(name, text, unit) text,
    CLT_LIMIT_MAP(NAME)
#undef NAME
};
static const char *const units[] = {
#define UNIT(name, text, unit) unit,
    CLT_LIMIT_MAP(UNIT)
#undef UNIT
};

const char *clt_limit_name(clt_limit limit) {
    return (unsigned)limit < CLT_LIMIT_COUNT_ ? names[limit] : "?";
}

const char *clt_limit_unit(clt_limit limit) {
    return (unsigned)limit < CLT_LIMIT_COUNT_ ? units[limit] : "?";
}

/* ---- the program ---- */

typedef struct bench {
    clt_device *device;
    clt_measurement *m;
    clt_module module;
    clt_text text;
    int width;
    size_t scalar_bytes, group;
    clt_kernel *kernel;
    clt_memory *x, *y, *z;
    size_t items; /* of a launch */
} bench;

typedef struct scalar {
    const char *name, *extension;
    size_t bytes;
} scalar;
static const scalar f32 = {"float", "", sizeof(float)};
static const scalar f16 = {"half", "#pragma OPENCL EXTENSION cl_khr_fp16 : enable\n", 2};
static const scalar f64 = {"double", "#pragma OPENCL EXTENSION cl_khr_fp64 : enable\n", sizeof(double)};

static clt_status open_bench(bench *b, clt_device *device, const scalar *type, const char *kernel, bool needs_ramp) {
    int floats = clt_device_vector_width(device);
    b->device = device;
    b->scalar_bytes = type->bytes;
    b->width = floats > 1 ? (int)(floats * sizeof(float) / type->bytes) : 1;
    if (b->width > 16) b->width = 16;
    if (b->width != 2 && b->width != 4 && b->width != 8 && b->width != 16) b->width = 1;
    clt_text_add(&b->text, "%s#define LIMIT_SCALAR %s\n#define LIMIT_WIDTH %d\n%s", type->extension, type->name,
                 b->width, clt_kernel_source_find(device, source_path));
    CLT_TRY(b->text.status);
    const clt_wanted wanted[] = {{0, kernel}, {0, "limit_ramp"}};
    b->module = (clt_module){.text = b->text.data, .label = source_path, .isolated = true, .separable = true};
    CLT_TRY(clt_device_build_kernels(device, &b->module, 1, wanted, needs_ramp ? 2 : 1));
    CLT_TRY(clt_kernel_create(device, &b->module, kernel, &b->kernel));
    CLT_TRY(clt_kernel_work_group_limit(b->kernel, &b->group));
    b->group = CLT_MIN((size_t)GROUP, b->group);
    return CLT_OK;
}

static void close_bench(bench *b) {
    clt_kernel_destroy(b->kernel);
    clt_memory_destroy(b->x);
    clt_memory_destroy(b->y);
    clt_memory_destroy(b->z);
    clt_device_trim(b->device);
    clt_text_free(&b->text);
}

static clt_status wrong(const bench *b, const char *what) {
    b->m->wrong = true;
    return clt_fail(CLT_E_DEVICE, "%s: %s computed something else than it should",
                    clt_device_get_info(b->device)->name, what);
}

static clt_status run(void *user, int times, double *seconds) {
    bench *b = user;
    CLT_TRY(clt_device_finish(b->device));
    double start = clt_seconds();
    for (int i = 0; i < times; i++) CLT_TRY(clt_kernel_enqueue(b->kernel, 1, &b->items, &b->group));
    CLT_TRY(clt_device_finish(b->device));
    *seconds = (clt_seconds() - start) / times;
    return CLT_OK;
}

/* The best of some, to choose sizes by. */
static clt_status quick(bench *b, double *seconds) {
    CLT_TRY(run(b, 1, seconds));
    double again;
    CLT_TRY(run(b, 1, &again));
    *seconds = CLT_MIN(*seconds, again);
    return CLT_OK;
}

/* A kernel that does nothing must not find what the last one left. */
static clt_status poison(clt_memory *memory, size_t bytes) {
    void *nothing = clt_alloc(bytes);
    if (!nothing) return clt_fail_memory(bytes);
    memset(nothing, 0xff, bytes);
    clt_status status = clt_memory_write(memory, 0, nothing, bytes);
    clt_free(nothing);
    return status;
}

/* ---- multiply-adds ---- */

static clt_status set_fma(const bench *b, float scale, float shift, int32_t rounds) {
    CLT_TRY(clt_kernel_set_memory(b->kernel, 0, b->y));
    CLT_TRY(clt_kernel_set_value(b->kernel, 1, &scale, sizeof scale));
    CLT_TRY(clt_kernel_set_value(b->kernel, 2, &shift, sizeof shift));
    return clt_kernel_set_value(b->kernel, 3, &rounds, sizeof rounds);
}

/* Of a half that holds a whole number from 0 to 2047. */
static double half_value(uint16_t bits) {
    int exponent = bits >> 10 & 31;
    double value = exponent ? 1024 + (bits & 1023) : 0;
    for (; exponent && exponent < 25; exponent++) value /= 2;
    return bits >> 15 || exponent > 25 ? -1 : value;
}

static double value_at(const bench *b, const void *values, size_t i) {
    if (b->scalar_bytes == sizeof(double)) return ((const double *)values)[i];
    if (b->scalar_bytes == sizeof(float)) return (double)((const float *)values)[i];
    return half_value(((const uint16_t *)values)[i]);
}

/* Each value is what it began as, and so much more. */
static clt_status check_fma(const bench *b, double more) {
    double got[CHAINS * 16];
    size_t last = b->items - 1, floats = (size_t)(CHAINS * b->width), bytes = floats * b->scalar_bytes;
    for (size_t item = 0; item <= last; item += CLT_MAX(last, 1)) {
        CLT_TRY(clt_memory_read(b->y, item * bytes, got, bytes));
        for (size_t i = 0; i < floats; i++)
            if (value_at(b, got, i) != (double)((item * CHAINS + i / (size_t)b->width) & 63) + more)
                return wrong(b, "limit_fma");
    }
    return CLT_OK;
}

/* With a scale of one the runs are counted, by few; with -1 and 1 every second brings the value back, and
 * a run may be as long as it likes. */
static clt_status multiply_adds(bench *b, const clt_measure_options *options) {
    const int32_t counted = 64, most_rounds = 1 << 22;
    int32_t rounds = counted;
    double seconds = 0;
    const clt_device_info *info = clt_device_get_info(b->device);
    if (b->width > 1) b->group = 1; /* work-items are threads */
    b->items = b->group * CLT_MAX(1u, CLT_MIN(info->compute_units, 65536u)) * (b->width > 1 ? 1 : 16);
    size_t bytes = b->items * (size_t)(CHAINS * b->width) * b->scalar_bytes;
    CLT_TRY(clt_memory_create(b->device, bytes, &b->y));
    CLT_TRY(poison(b->y, bytes));
    CLT_TRY(set_fma(b, 1, 1, counted));
    CLT_TRY(run(b, 1, &seconds));
    CLT_TRY(check_fma(b, UNROLL * counted));
    for (;; rounds *= 4) {
        CLT_TRY(set_fma(b, -1, 1, rounds));
        CLT_TRY(quick(b, &seconds));
        if (seconds >= enough_seconds || rounds >= most_rounds) break;
    }
    CLT_TRY(poison(b->y, bytes));
    CLT_TRY(clt_sample_times(run, b, options, b->m));
    CLT_TRY(check_fma(b, 0));
    b->m->amount = 2.0 * (double)b->items * b->width * CHAINS * UNROLL * rounds;
    return CLT_OK;
}

/* ---- memory ---- */

/* Floats of a buffer: four times the device's cache, within reason. */
static size_t buffer_floats(const bench *b) {
    const size_t mebibyte = (size_t)1 << 20;
    const clt_device_info *info = clt_device_get_info(b->device);
    uint64_t bytes = CLT_MIN(CLT_MAX(clt_device_cache_bytes(b->device) * 4, 32 * mebibyte), 256 * mebibyte);
    bytes = CLT_MIN(bytes, info->memory_bytes / 8);
    size_t step = (size_t)(GROUP * STEPS * b->width);
    return CLT_MAX((size_t)CLT_MIN(bytes, info->max_buffer_bytes) / sizeof(float) / step, 1) * step;
}

static clt_status fill_ramp(const bench *b, clt_memory *memory, size_t floats) {
    clt_kernel *ramp = NULL;
    int32_t count = (int32_t)floats;
    size_t group = b->group, items = (floats + group - 1) / group * group;
    CLT_TRY(clt_kernel_create(b->device, &b->module, "limit_ramp", &ramp));
    clt_status status = clt_kernel_set_memory(ramp, 0, memory);
    if (status == CLT_OK) status = clt_kernel_set_value(ramp, 1, &count, sizeof count);
    if (status == CLT_OK) status = clt_kernel_enqueue(ramp, 1, &items, &group);
    clt_kernel_destroy(ramp);
    return status;
}

static clt_status set_walk(bench *b, size_t floats) {
    int32_t count = (int32_t)(floats / (size_t)b->width), steps = STEPS;
    size_t span = b->group * STEPS;
    b->items = ((size_t)count + span - 1) / span * b->group;
    CLT_TRY(clt_kernel_set_memory(b->kernel, 0, b->x));
    CLT_TRY(clt_kernel_set_memory(b->kernel, 1, b->z));
    CLT_TRY(clt_kernel_set_memory(b->kernel, 2, b->y));
    CLT_TRY(clt_kernel_set_value(b->kernel, 3, &count, sizeof count));
    return clt_kernel_set_value(b->kernel, 4, &steps, sizeof steps);
}

/* y[i] at three places, in pieces of 1024. */
static clt_status check_walk(const bench *b, size_t floats, float factor, const char *kernel) {
    float got[1024];
    size_t n = CLT_MIN(CLT_COUNT_OF(got), floats);
    for (size_t part = 0; part < 3; part++) {
        size_t at = (floats - n) / 2 * part;
        CLT_TRY(clt_memory_read(b->y, at * sizeof *got, got, n * sizeof *got));
        for (size_t i = 0; i < n; i++)
            if (got[i] != factor * (float)((at + i) & 0xfff)) return wrong(b, kernel);
    }
    return CLT_OK;
}

/* What a work-item reads: its vector of the group's first step, then those a group's size further. */
static clt_status check_read(const bench *b) {
    float got[16];
    size_t width = (size_t)b->width;
    for (size_t item = 0; item < b->items; item += CLT_MAX(b->items - 1, 1)) {
        CLT_TRY(clt_memory_read(b->y, item * width * sizeof *got, got, width * sizeof *got));
        for (size_t k = 0; k < width; k++) {
            float sum = 0;
            for (size_t s = 0; s < STEPS; s++) {
                size_t vector = item / b->group * b->group * STEPS + item % b->group + s * b->group;
                sum += (float)((vector * width + k) & 0xfff);
            }
            if (got[k] != sum) return wrong(b, "limit_read");
        }
    }
    return CLT_OK;
}

typedef enum walk { WALK_COPY, WALK_TRIAD, WALK_READ } walk;

static clt_status memory(bench *b, walk kind, const clt_measure_options *options) {
    static const double passes[] = {2, 3, 1};
    size_t most = buffer_floats(b), floats = CLT_MIN((size_t)(GROUP * STEPS * b->width * 4), most);
    size_t bytes = most * sizeof(float);
    double seconds;
    CLT_TRY(clt_memory_create(b->device, bytes, &b->x));
    CLT_TRY(clt_memory_create(b->device, bytes, &b->y));
    CLT_TRY(clt_memory_create(b->device, kind == WALK_TRIAD ? bytes : 1, &b->z));
    /* A simulator has not the patience for all of it. */
    for (;; floats = CLT_MIN(floats * 8, most)) {
        CLT_TRY(fill_ramp(b, b->x, floats));
        if (kind == WALK_TRIAD) CLT_TRY(fill_ramp(b, b->z, floats));
        CLT_TRY(set_walk(b, floats));
        CLT_TRY(quick(b, &seconds));
        if (floats == most || seconds > 16 * enough_seconds) break;
    }
    CLT_TRY(poison(b->y, floats * sizeof(float)));
    CLT_TRY(clt_sample_times(run, b, options, b->m));
    if (kind == WALK_READ) CLT_TRY(check_read(b));
    else CLT_TRY(check_walk(b, floats, kind == WALK_COPY ? 1 : 3, kind == WALK_COPY ? "limit_copy" : "limit_triad"));
    b->m->amount = passes[kind] * (double)floats * sizeof(float);
    return CLT_OK;
}

/* ---- local memory ---- */

static clt_status check_local(const bench *b, int rounds) {
    float got[16], wanted = 0;
    size_t width = (size_t)b->width, lane = (b->items - 1) % b->group;
    for (int r = 0; r < rounds; r++)
        for (size_t k = 0; k < LOCAL_READS; k++) wanted += (float)((lane + (size_t)r + 32 * k) & 7);
    CLT_TRY(clt_memory_read(b->y, (b->items - 1) * width * sizeof *got, got, width * sizeof *got));
    for (size_t k = 0; k < width; k++)
        if (got[k] != wanted) return wrong(b, "limit_local");
    return CLT_OK;
}

static clt_status local_memory(bench *b, const clt_measure_options *options) {
    const clt_device_info *info = clt_device_get_info(b->device);
    const int32_t most_rounds = 65536; /* sums stay whole numbers below 2^24 */
    int32_t rounds = 16;
    size_t groups = (size_t)CLT_MAX(1u, CLT_MIN(info->compute_units, 4096u)) * 8;
    double seconds;
    if (info->local_memory_bytes < LOCAL_VECTORS * (size_t)b->width * sizeof(float))
        return clt_fail(CLT_E_UNSUPPORTED, "it has only %llu bytes of local memory",
                        (unsigned long long)info->local_memory_bytes);
    /* Where work-items are threads, one reads whole vectors; of several a compiler would make gathers. */
    if (clt_device_get_class(b->device) == CLT_CLASS_CPU) b->group = 1;
    b->items = groups * b->group;
    CLT_TRY(clt_memory_create(b->device, b->items * (size_t)b->width * sizeof(float), &b->y));
    CLT_TRY(clt_kernel_set_memory(b->kernel, 0, b->y));
    for (;; rounds *= 4) {
        CLT_TRY(clt_kernel_set_value(b->kernel, 1, &rounds, sizeof rounds));
        CLT_TRY(quick(b, &seconds));
        if (rounds >= most_rounds || seconds >= enough_seconds) break;
    }
    CLT_TRY(poison(b->y, b->items * (size_t)b->width * sizeof(float)));
    CLT_TRY(clt_sample_times(run, b, options, b->m));
    CLT_TRY(check_local(b, rounds));
    b->m->amount = (double)b->items * rounds * LOCAL_READS * b->width * sizeof(float);
    return CLT_OK;
}

/* ---- launches ---- */

typedef struct counting {
    bench *b;
    int64_t launches;
    bool waited;
} counting;

static clt_status run_count(void *user, int times, double *seconds) {
    enum { LEAST_PIPELINED = 256 };
    counting *c = user;
    const size_t one = 1;
    int n = c->waited ? times : CLT_MAX(times, LEAST_PIPELINED);
    CLT_TRY(clt_device_finish(c->b->device));
    double start = clt_seconds();
    for (int i = 0; i < n; i++) {
        CLT_TRY(clt_kernel_enqueue(c->b->kernel, 1, &one, &one));
        if (c->waited) CLT_TRY(clt_device_finish(c->b->device));
    }
    CLT_TRY(clt_device_finish(c->b->device));
    *seconds = (clt_seconds() - start) / n;
    c->launches += n;
    return CLT_OK;
}

static clt_status launches(bench *b, bool waited, const clt_measure_options *options) {
    int32_t count = 0;
    counting c = {.b = b, .waited = waited};
    CLT_TRY(clt_memory_create(b->device, sizeof count, &b->y));
    CLT_TRY(clt_memory_write(b->y, 0, &count, sizeof count));
    CLT_TRY(clt_kernel_set_memory(b->kernel, 0, b->y));
    CLT_TRY(clt_sample_times(run_count, &c, options, b->m));
    CLT_TRY(clt_memory_read(b->y, 0, &count, sizeof count));
    return count == (int32_t)c.launches ? CLT_OK : wrong(b, "limit_count");
}

/* ---- which ---- */

static clt_status measure(bench *b, clt_device *device, clt_limit limit, const clt_measure_options *options) {
    static const char *const walks[] = {"limit_copy", "limit_triad", "limit_read"};
    switch (limit) {
    case CLT_LIMIT_FMA_F32:
    case CLT_LIMIT_FMA_F16:
    case CLT_LIMIT_FMA_F64:
        if (limit == CLT_LIMIT_FMA_F16 && !clt_device_has(device, CLT_CAP_FP16))
            return clt_fail(CLT_E_UNSUPPORTED, "it has no half precision arithmetic");
        if (limit == CLT_LIMIT_FMA_F64 && !clt_device_has(device, CLT_CAP_FP64))
            return clt_fail(CLT_E_UNSUPPORTED, "it has no double precision arithmetic");
        CLT_TRY(open_bench(b, device, limit == CLT_LIMIT_FMA_F32 ? &f32 : limit == CLT_LIMIT_FMA_F16 ? &f16 : &f64,
                           "limit_fma", false));
        return multiply_adds(b, options);
    case CLT_LIMIT_COPY:
    case CLT_LIMIT_TRIAD:
    case CLT_LIMIT_READ:
        CLT_TRY(open_bench(b, device, &f32, walks[limit - CLT_LIMIT_COPY], true));
        return memory(b, (walk)(limit - CLT_LIMIT_COPY), options);
    case CLT_LIMIT_LOCAL:
        CLT_TRY(open_bench(b, device, &f32, "limit_local", false));
        return local_memory(b, options);
    case CLT_LIMIT_LAUNCH_PIPELINED:
    case CLT_LIMIT_LAUNCH_WAITED:
        CLT_TRY(open_bench(b, device, &f32, "limit_count", false));
        return launches(b, limit == CLT_LIMIT_LAUNCH_WAITED, options);
    case CLT_LIMIT_BUILD_COLD:
    case CLT_LIMIT_BUILD_CACHED: return clt_measure_build(device, limit, options, b->m);
    default: return clt_measure_transfer(device, limit, options, b->m);
    }
}

clt_status clt_measure_limit(clt_device *device, clt_limit limit, const clt_measure_options *options,
                             clt_measurement *measurement) {
    if (!device || !measurement || (unsigned)limit >= CLT_LIMIT_COUNT_)
        return clt_fail(CLT_E_INVALID, "clt_measure_limit: invalid argument");
    if (options && !(options->seconds >= 0 && options->most_samples >= 0 && options->spread >= 0))
        return clt_fail(CLT_E_INVALID, "clt_measure_limit: %g seconds, %d samples, a spread of %g", options->seconds,
                        options->most_samples, options->spread);
    *measurement = (clt_measurement){0};
    bench b = {.device = device, .m = measurement};
    clt_status status = measure(&b, device, limit, options);
    if (status < 0) measurement->n = 0;
    close_bench(&b);
    return status;
}
