/*
 * The native backend: contractions for CPU-class devices, whose work-items are threads with vector
 * registers of their own. A work-item is a tile or a run of tiles, so groups have one.
 */
#ifndef CLT_BACKENDS_NATIVE_CPU_H
#define CLT_BACKENDS_NATIVE_CPU_H

#include "backends/native/native.h"

/* The register tile, and how many steps of a sum the kernels pack at a time; see cl/native/cpu/tile.cl. */
typedef struct clt_cpu_tile {
    int width, rows, columns, depth;
} clt_cpu_tile;

/* True if the device is one that these kernels are for. */
bool clt_cpu_fits(const clt_device *device);
clt_cpu_tile clt_cpu_tile_of(const clt_device *device);

/* A variant of a text. */
typedef struct clt_cpu_variant {
    const char *defines; /* lines in front of the text itself, or NULL; its names must differ by them */
    clt_dtype storage;   /* CLT_STORAGE of cl/prelude.cl; CLT_RESULT of the last is the node's own */
    int rows;            /* of the register tile; 0: the device's */
    bool last;           /* it stores the results of the node that is lowered, with its epilogue, whose arguments clt_launch_epilogue appends when the
                          * kernel's own have been given */
} clt_cpu_variant;

/* clt_launch_begin with the device's tile defined in front of the text. */
void clt_cpu_begin(clt_lowering *l, const char *path, const char *kernel, int64_t count);
void clt_cpu_begin_as(clt_lowering *l, const clt_cpu_variant *variant, const char *path, const char *kernel, int64_t count);

/* In front of generated loops: those that cannot be vectors are no news. */
extern const char clt_cpu_no_warnings[];

/* Scratch for `count` floats. */
int clt_cpu_scratch(clt_lowering *l, int64_t count);
/* True if so many floats fit in a buffer of the device and in the kernels' 32-bit indices. */
bool clt_cpu_holds(const clt_device *device, double count);

int64_t clt_cpu_divide_up(int64_t a, int64_t b);

#endif
