/*
 * The limits of a device inside runtime/device/.
 */
#ifndef CLT_MEASURE_LIMITS_H
#define CLT_MEASURE_LIMITS_H

#include <cltrain/experimental/measure.h>

#include "runtime/device/device.h"

/* transfers.c: uploads and downloads; builds. Errors as clt_measure_limit. */
clt_status clt_measure_transfer(clt_device *device, clt_limit limit, const clt_measure_options *options,
                                clt_measurement *m);
clt_status clt_measure_build(clt_device *device, clt_limit limit, const clt_measure_options *options,
                             clt_measurement *m);

/* check.c: runs `items` work-items of a kernel of a module that is built, whose arguments are these words, in its memory, and then n
 * values of 32 bits; `words` becomes what it left there. */
clt_status clt_run_on_words(clt_device *device, const clt_module *module, const char *kernel, const uint32_t *values, int n,
                            uint32_t *words, size_t items);

/* What the driver tells of the cache of global memory (facts.c). */
uint64_t clt_device_cache_bytes(const clt_device *device);

#endif
