/*
 * The native backend: kernels for a class of devices, CPUs (cpu/) or GPUs (gpu/).
 */
#ifndef CLT_BACKENDS_NATIVE_H
#define CLT_BACKENDS_NATIVE_H

#include "backends/backend.h"

/* How a row of this backend begins. */
#define CLT_NATIVE(op_suffix) .op = &clt_op_##op_suffix, .name = "native"

#endif
