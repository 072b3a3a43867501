/*
 * OpenCL inside runtime/device/: the structures, and errors by name.
 */
#ifndef CLT_DEVICE_CL_H
#define CLT_DEVICE_CL_H

#include <CL/cl.h>

#include "runtime/base/thread.h"
#include "runtime/device/device.h"

struct clt_memory {
    clt_device *device;
    cl_mem memory;
    size_t bytes;
    bool is_slice;
    struct clt_memory *parent; /* of a slice: what it was cut from, no slice itself; and where */
    size_t offset;
    bool fenced;     /* lies between guards in `parent`, which is its own (fence.c) */
    char label[96];  /* of what is fenced */
};

/* A built program and the modules in it. */
/* A kernel of a module, or all of them if it has no name. */
typedef struct clt_program_part {
    char module[CLT_HASH_TEXT]; /* hash of its whole text */
    char kernel[64];
} clt_program_part;

typedef struct clt_program {
    cl_program program;
    clt_program_part *parts;
    size_t n_parts, parts_capacity;
    char key[CLT_HASH_TEXT]; /* of its file in the cache */
    bool saved;
} clt_program;

typedef struct clt_timer clt_timer; /* timing.c */

struct clt_device {
    clt_device_info info;
    cl_platform_id platform;
    cl_device_id id;
    cl_context context;
    cl_command_queue queue;
    cl_command_queue mapping_queue; /* maps and unmaps host-visible memory, without waiting for kernels */
    size_t alignment;
    int vector_width; /* of floats */
    clt_timer *timer; /* while launches are timed */
    struct clt_profile *profile;
    char identity[CLT_HASH_TEXT]; /* device, driver and platform: part of every cache key */

    /* buffer pool */
    clt_memory **pool;
    size_t n_pool, pool_capacity;
    uint64_t bytes, peak_bytes;

    /* what is fenced, and the first write outside of it that was seen */
    bool fenced;
    clt_memory **fences;
    size_t n_fences, fences_capacity;
    char trespass[320];

    /* programs; `saver` reads them while it runs */
    clt_program **programs;
    size_t n_programs, programs_capacity;
    clt_build_counts counts;
    clt_mutex mutex; /* guards programs' `saved` and n_programs against the saver */
    clt_thread saver;
    bool saver_running;
    bool for_trials; /* programs are not saved */

    void *kept; /* by a room above */
    void (*kept_release)(void *kept);

    /* capabilities: -1 not asked yet, else 0 or 1 */
    int capabilities[CLT_CAP_COUNT_];
};

/* "CL_OUT_OF_RESOURCES" … or "OpenCL error -9999". */
const char *clt_cl_error_name(cl_int error, char text[64]);

/* Whether a question failed because the driver did, and not because it does not know the thing. */
bool clt_cl_is_broken(cl_int error);

/* Fails with the device, what was tried and the error's name; device and host memory errors
 * get their own status. */
clt_status clt_cl_fail(const clt_device *device, const char *what, cl_int error);
#ifdef __clang_analyzer__ /* as in base.h */
#define clt_cl_fail(device, what, error) (clt_cl_fail(device, what, error), CLT_E_DEVICE)
#endif

#define CLT_TRY_CL(device, what, expression)                                     \
    do {                                                                         \
        cl_int cl_error_ = (expression);                                         \
        if (cl_error_ != CL_SUCCESS) return clt_cl_fail(device, what, cl_error_); \
    } while (0)

/* ---- platform.c: what there is ---- */

typedef struct clt_found_device {
    clt_device_info info;
    cl_platform_id platform;
    cl_device_id id;
} clt_found_device;

/* All devices of all platforms in their order; released with clt_free. With none, the detail says why. */
clt_status clt_devices_find(clt_found_device **found, size_t *count);
/* The one a selector names, as clt_device_open documents; `reason` says why it was chosen. */
clt_status clt_devices_select(const clt_found_device *found, size_t count, const char *selector,
                              size_t *chosen, char reason[256]);

/* ---- memory.c ---- */

/* Takes over `memory`, also on error. */
clt_status clt_memory_wrap(clt_device *device, cl_mem memory, size_t bytes, bool is_slice, clt_memory **wrapped);
/* Fails with how much was asked for and what there is. */
clt_status clt_memory_fail(const clt_device *device, size_t bytes, cl_int error);
#ifdef __clang_analyzer__
#define clt_memory_fail(device, bytes, error) (clt_memory_fail(device, bytes, error), CLT_E_DEVICE_MEMORY)
#endif

/* A buffer of just that size, a multiple of the alignment, and its end; without the pool. */
clt_status clt_memory_allocate(clt_device *device, size_t bytes, clt_memory **buffer);
void clt_memory_free(clt_memory *buffer);

/* ---- fence.c: on a fenced device ---- */

clt_status clt_fence_create(clt_device *device, size_t bytes, clt_memory **memory);
void clt_fence_destroy(clt_memory *memory);

/* ---- timing.c: in a device with a timer ---- */

/* Makes room for a launch to be added. */
clt_status clt_timer_reserve(clt_device *device);
/* Takes over the launch's event. */
void clt_timer_add(clt_device *device, const char *kernel, cl_event event);

/* ---- program.c ---- */

void clt_device_free_programs(clt_device *device);
/* The program that a module was built into; NULL if it was not. */
const clt_program *clt_device_find_program(const clt_device *device, const char *module_hash, const char *kernel);

/* module.c: adds the text without the kernels of its that are not among those wanted of `module`. */
void clt_module_cut(const char *text, const clt_wanted *wanted, int n, int module, clt_text *out);

#endif
