/*
 * Settings of a device, in C or from the environment.
 *
 * A field that is NULL, or 0, is taken from its variable in the environment, and is the default where that is not set or empty.
 * "" is the default whatever the environment says. The environment is read when the device is opened (clt_device_open_with, in
 * cltrain/device.h), and never again: two devices of a process may have different settings. Messages of later calls name a setting
 * by its variable.
 */
#ifndef CLTRAIN_SETTINGS_H
#define CLTRAIN_SETTINGS_H

#include <stdint.h>

#include <cltrain/export.h>

CLT_BEGIN_DECLS

typedef struct clt_settings {
    const char *device;           /* CLTRAIN_DEVICE: a selector, see cltrain/device.h. Default: the fastest class that is present */
    const char *device_class;     /* CLTRAIN_CLASS: "cpu", "gpu" or "intel-gpu": work-items are taken as threads, as lanes, or as lanes with few registers. Default: by the device */
    const char *capabilities_off; /* CLTRAIN_CAPS_OFF: capabilities to be taken as missing, "fp16,subgroups". Default: none */
    const char *matmul_precision; /* CLTRAIN_MATMUL_PRECISION: "f32" (default); "tf32", "bf16" or "f16": matrix products and
                                     convolutions of f32 may round their operands so, for the sake of matrix units */
    const char *backends;         /* CLTRAIN_BACKENDS: backends to use alone, "native,reference", or with "-" before the name not
                                     to use. Default: all */
    const char *passes;           /* CLTRAIN_PASSES: passes over a plan's graph (overlap, cse, layout, fuse, hoist; none), likewise */
    const char *tune;             /* CLTRAIN_TUNE: "quick", "full" or "off", see cltrain/experimental/probe.h; default: quick, on CPUs
                                     nothing is measured on first use */
    const char *program_cache;    /* CLTRAIN_PROGRAM_CACHE: "on": compiled programs are saved, and loaded by later processes; "off":
                                     neither. Default: loaded, and saved but where the driver has a cache of its own (PoCL) */
    const char *kernel_folder;    /* CLTRAIN_KERNEL_FOLDER: OpenCL C files below it take the place of the library's. Default: none */
    const char *memory_limit;     /* CLTRAIN_MEMORY_LIMIT: "2G", "512M": no more of the device's memory is taken, as if it had no more (see
                                     clt_recompute in cltrain/graph.h). Units are of 1024; default: all of it */
    const char *bundle;           /* CLTRAIN_BUNDLE: a folder with compiled kernels, see cltrain/experimental/bundle.h. Default: none */
    const char *compiler;         /* CLTRAIN_COMPILER: "auto" (default): where the driver compiles one kernel after the other (PoCL), a second process
                                     compiles a part, for as long as there is work; "alone": this process compiles all; "never": no kernel is
                                     compiled, and no library used that does so by itself (CLBlast, clFFT); all are in the bundle, and nothing is
                                     tuned */
    const char *cache_folder;     /* an absolute path: compiled programs, tuning results and measurements are kept below it. Default:
                                     $XDG_CACHE_HOME/cltrain, else ~/.cache/cltrain */
    double timeout_seconds;       /* CLTRAIN_DEVICE_TIMEOUT: see clt_device_set_timeout. INFINITY, and the default: none */
} clt_settings;

/* A size as `memory_limit` has it, in bytes: a number with K, M, G, T or nothing behind it, and B or iB if one likes. 0: it is none. */
CLT_API uint64_t clt_settings_bytes(const char *text);

CLT_END_DECLS

#endif
