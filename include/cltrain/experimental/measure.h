/*
 * What a device can do, measured: multiply-adds, memory, latencies, transfers, builds; and
 * whether its memory and arithmetic hold.
 *
 * All that is timed is checked: a kernel that computed something wrong, or nothing, gives no time but
 * CLT_E_DEVICE and `wrong`. Times are of the host's clock, around work that is waited for.
 *
 * All functions block, and belong to the device's thread. What they allocate they free.
 *
 * Experimental: what is declared here may change in any release.
 */
#ifndef CLTRAIN_MEASURE_H
#define CLTRAIN_MEASURE_H

#include <stdbool.h>
#include <stdint.h>

#include <cltrain/device.h>
#include <cltrain/export.h>
#include <cltrain/status.h>

CLT_BEGIN_DECLS

/* ---- samples ---- */

enum { CLT_MOST_SAMPLES = 16 };

typedef struct clt_measure_options {
    double seconds;   /* for the samples together, warming up not counted; 0 means 0.25 */
    int most_samples; /* 0 means CLT_MOST_SAMPLES */
    double spread;    /* enough samples are taken when (p90 - p10) / p50 is below; 0: as many as time allows */
} clt_measure_options;

typedef struct clt_measurement {
    int n;
    double seconds[CLT_MOST_SAMPLES]; /* of one run each; each the mean of so many runs that the clock sees them */
    double amount;                    /* of one run: operations or bytes; 0 where the time itself is meant */
    bool wrong;                       /* what was computed was not what should have been */
} clt_measurement;

/* ---- limits ---- */

/* X(name, text, unit of what is told: "flops", "bytes" a second, or "seconds") */
#define CLT_LIMIT_MAP(X)                                                                              \
    X(FMA_F32, "fma_f32", "flops")          /* multiply-adds from registers, two operations each */   \
    X(FMA_F16, "fma_f16", "flops")                                                                    \
    X(FMA_F64, "fma_f64", "flops")                                                                    \
    X(COPY, "copy", "bytes")                /* y = x; bytes read and written, as for the next two */  \
    X(TRIAD, "triad", "bytes")              /* y = x + s z */                                         \
    X(READ, "read", "bytes")                /* the sum of x */                                        \
    X(LOCAL, "local", "bytes")              /* read from local memory */                              \
    X(LAUNCH_PIPELINED, "launch_pipelined", "seconds") /* a launch among many that nobody waits for */ \
    X(LAUNCH_WAITED, "launch_waited", "seconds")       /* a launch that is waited for */              \
    X(UPLOAD_PINNED, "upload_pinned", "bytes")         /* host to device, from memory that it allocated */ \
    X(UPLOAD_PAGEABLE, "upload_pageable", "bytes")     /* from the program's own memory */            \
    X(DOWNLOAD_PINNED, "download_pinned", "bytes")                                                    \
    X(DOWNLOAD_PAGEABLE, "download_pageable", "bytes")                                                \
    X(BUILD_COLD, "build_cold", "seconds")   /* a small program from source to the end of its first run */ \
    X(BUILD_CACHED, "build_cached", "seconds") /* the same from its binary */

typedef enum clt_limit {
#define CLT_LIMIT_ENUM_(name, text, unit) CLT_LIMIT_##name,
    CLT_LIMIT_MAP(CLT_LIMIT_ENUM_)
#undef CLT_LIMIT_ENUM_
    CLT_LIMIT_COUNT_
} clt_limit;

CLT_API const char *clt_limit_name(clt_limit limit);
CLT_API const char *clt_limit_unit(clt_limit limit);

/* Errors: CLT_E_UNSUPPORTED where the device lacks it, CLT_E_BUILD, CLT_E_DEVICE, CLT_E_DEVICE_MEMORY.
 * `options` may be NULL. */
CLT_API clt_status clt_measure_limit(clt_device *device, clt_limit limit, const clt_measure_options *options,
                                     clt_measurement *measurement);

/* ---- facts that a device tells, beside clt_device_info ---- */

typedef struct clt_device_facts {
    uint32_t vector_width_f16, vector_width_f32, vector_width_f64; /* of its own vectors; 0: not at all */
    uint32_t sub_group_size; /* of a kernel that asks for it; 0: it has none */
    uint32_t group_multiple; /* work-groups should be multiples of that */
    uint64_t cache_bytes;    /* of global memory */
    char cl_c_version[64];
} clt_device_facts;

/* Builds and runs a small kernel, and compares what it computed: CLT_E_DEVICE and *wrong if that was not right. */
CLT_API clt_status clt_device_get_facts(clt_device *device, clt_device_facts *facts, bool *wrong);

/* ---- does it hold ---- */

typedef struct clt_check_report {
    uint64_t checked_bytes;   /* of memory, written and read back in all */
    uint64_t largest_bytes;   /* the largest single buffer that could be had */
    uint64_t together_bytes;  /* in all buffers at once */
    uint64_t values;          /* that were computed, and compared with the host's */
    uint64_t errors;          /* that were not what they should be */
    char first[192];          /* the first error: where, what it was, what it should have been */
} clt_check_report;

/* Allocates the largest buffer, then more, until `most_bytes` are held or nothing more is to be had; writes a
 * pattern that no two places share, reads it with kernels and, in parts, from the host; then its complement. Errors
 * of memory are counted, they are no error of the call. `seed`: another pattern. CLT_E_DEVICE_MEMORY if not even
 * 1 MiB is to be had. Adds to *report. */
CLT_API clt_status clt_check_memory(clt_device *device, uint64_t most_bytes, uint32_t seed,
                                    clt_check_report *report);

/* Integer and single precision arithmetic whose results are exact, on many work-items for some 10^8 operations, against
 * the host's. Adds to *report. */
CLT_API clt_status clt_check_arithmetic(clt_device *device, uint32_t seed, clt_check_report *report);

/* ---- does it stay where it belongs ---- */

/* For tests of devices and kernels: from now on each buffer that is made on the device lies between guard bytes, nothing shares
 * memory, and what a training or evaluation step computes is overwritten before it with values that show in a result:
 * NaN in one run, huge ones in the next. Slower, and takes more memory. CLT_E_STATE once there are buffers on the device. */
CLT_API clt_status clt_device_enable_redzones(clt_device *device);

/* Waits for the device. CLT_E_DEVICE if something was written outside of a buffer since the last call, also of one that is
 * freed by now; the detail says what it held and where. CLT_E_STATE if the device has no red zones. */
CLT_API clt_status clt_device_check_redzones(clt_device *device);

CLT_END_DECLS

#endif
