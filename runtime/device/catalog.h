/*
 * What was built for a device before: which kernels are in which program, and the programs' sources. A plan whose sizes changed wants mostly kernels that
 * there are. They are taken from the programs that they are in, whose binaries the cache or the driver has, and the rest alone is built.
 *
 * In the cache's folder programs/ a device has a list, a line a kernel, in which a program's lines are together, and each program has KEY.cl, its
 * source. What is damaged, or gone, is as if it had not been built.
 */
#ifndef CLT_DEVICE_CATALOG_H
#define CLT_DEVICE_CATALOG_H

#include "runtime/device/cl.h"

/* Of the list of the device, once. Nothing where there is none. */
void clt_catalog_read(clt_device *device);

/* The lines of a list; those that are none are left out. */
clt_status clt_catalog_parse(clt_catalog *catalog, const char *text, size_t length);

/* A program of the catalog, its parts one after the other. */
typedef struct clt_catalog_choice {
    const clt_catalog_entry *parts;
    size_t n;
} clt_catalog_choice;

/* The one that has most of these parts, and of such the smallest; those that are marked do not count. False: none has any. */
bool clt_catalog_choose(const clt_catalog *catalog, const clt_program_part *parts, const bool *marked, size_t n, clt_catalog_choice *choice);

/* Its source. False where that is gone, or is another one than its key tells: then it is chosen no more. */
bool clt_catalog_source(clt_device *device, clt_catalog_choice choice, clt_text *source);

/* A program that was built. What cannot be written is not kept. */
void clt_catalog_add(clt_device *device, const clt_program *program, const clt_text *source);

void clt_catalog_free(clt_catalog *catalog);

#endif
