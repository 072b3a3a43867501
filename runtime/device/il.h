/*
 * Programs in SPIR-V, which drivers with cl_khr_il_program take, whatever the device is.
 */
#ifndef CLT_DEVICE_IL_H
#define CLT_DEVICE_IL_H

#include "runtime/device/cl.h"

bool clt_il_is_taken(const clt_device *device);
/* Built; NULL: the driver does not take it. */
cl_program clt_program_from_il(clt_device *device, const void *il, size_t bytes);

#endif
