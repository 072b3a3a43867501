/*
 * The OpenCL sources of cl/, embedded in the library at build time.
 */
#ifndef CLT_DEVICE_KERNEL_SOURCE_H
#define CLT_DEVICE_KERNEL_SOURCE_H

#include "runtime/base/base.h"

typedef struct clt_kernel_source {
    const char *path; /* below cl/: "reference/conv2d.cl" */
    const char *text;
} clt_kernel_source;

extern const clt_kernel_source clt_kernel_sources[]; /* ended by a NULL path */

/* NULL if there is none of that path. With CLTRAIN_KERNEL_FOLDER in the environment a file of that path there takes the
 * place of the embedded one: for tests of the tests, that break a kernel and want to see it found. */
const char *clt_kernel_source_find(const char *path);

/* CLT_E_INVALID if that names no folder, or one with a file that cannot take a place. */
clt_status clt_kernel_source_check(void);

#endif
