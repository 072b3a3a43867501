/*
 * The OpenCL sources of cl/, embedded in the library at build time.
 */
#ifndef CLT_DEVICE_KERNEL_SOURCE_H
#define CLT_DEVICE_KERNEL_SOURCE_H

#include <cltrain/device.h>

#include "runtime/base/base.h"

typedef struct clt_kernel_source {
    const char *path; /* below cl/: "reference/conv2d.cl" */
    const char *text;
} clt_kernel_source;

/* What stands in front of every program's kernels. */
#define CLT_PRELUDE "prelude.cl"

extern const clt_kernel_source clt_kernel_sources[]; /* ended by a NULL path */

/* NULL if there is none of that path. With the setting kernel_folder a file of that path there takes the
 * place of the embedded one: for tests of the tests, that break a kernel and want to see it found. */
const char *clt_kernel_source_find(const clt_device *device, const char *path);

/* CLT_E_INVALID if it is not a folder, or one with a file that cannot take a place. `name`: of the setting, for the message. */
clt_status clt_kernel_folder_check(const char *name, const char *folder);

#endif
