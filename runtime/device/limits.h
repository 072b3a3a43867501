/*
 * The limits of a device inside runtime/device/.
 */
#ifndef CLT_DEVICE_LIMITS_H
#define CLT_DEVICE_LIMITS_H

#include <cltrain/measure.h>

#include "runtime/device/device.h"

/* transfers.c: uploads and downloads; builds. Errors as clt_measure_limit. */
clt_status clt_measure_transfer(clt_device *device, clt_limit limit, const clt_measure_options *options,
                                clt_measurement *m);
clt_status clt_measure_build(clt_device *device, clt_limit limit, const clt_measure_options *options,
                             clt_measurement *m);

/* What the driver tells of the cache of global memory (facts.c). */
uint64_t clt_device_cache_bytes(const clt_device *device);

#endif
