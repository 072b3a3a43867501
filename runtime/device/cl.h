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
    cl_mem memory;             /* NULL: it lies in a file */
    size_t bytes;
    bool is_slice;
    void *host;                /* of memory in the host's: where it is mapped for as long as it lives; else NULL */
    struct clt_memory *parent; /* of a slice: what it was cut from, no slice itself; and where */
    size_t offset;
    bool redzones_on;     /* lies between guards in `parent`, which is its own (redzone.c) */
    char label[96];  /* of what has red zones */
    int users;               /* of what is shared; else 0 */
    struct clt_memory *next; /* of the device's that are shared */
};

/* A built program and the modules in it. */
/* A kernel of a module, or all of them if it has no name. */
typedef struct clt_program_part {
    char module[CLT_HASH_TEXT]; /* hash of its whole text */
    char kernel[64];            /* "": all of it */
} clt_program_part;

typedef struct clt_program {
    cl_program program;
    clt_program_part *parts;
    size_t n_parts, parts_capacity;
    char key[CLT_HASH_TEXT]; /* of its file in the cache */
    bool saved;
    clt_text source; /* of a device that keeps them */
} clt_program;

/* catalog.h: a kernel of a program that was built before. */
typedef struct clt_catalog_entry {
    char key[CLT_HASH_TEXT];
    clt_program_part part;
    bool gone; /* of a program's first one: it cannot be had */
} clt_catalog_entry;

typedef struct clt_catalog {
    clt_catalog_entry *entries;
    size_t n, capacity;
    bool read;
} clt_catalog;

typedef struct clt_timer clt_timer; /* timing.c */
typedef struct clt_watch clt_watch; /* watch.c */
typedef struct clt_helper clt_helper; /* helper.c */

struct clt_device {
    clt_settings settings; /* in force; see clt_device_override */
    char *settings_texts;  /* of those that it was opened with */
    clt_device_info info;
    cl_platform_id platform;
    cl_device_id id;
    cl_context context;
    cl_command_queue queue;
    cl_command_queue mapping_queue; /* maps and unmaps host-visible memory, without waiting for kernels */
    cl_command_queue transfer_queue; /* of transfers beside kernels; NULL: there was none yet */
    size_t alignment;
    int vector_width; /* of floats */
    clt_timer *timer; /* while launches are timed */
    clt_watch *watch; /* with a timeout */
    const void *origin; /* of what is launched next; see clt_device_set_origin */
    clt_describe *describe;
    bool lost;  /* nothing is asked of it any more */
    bool hangs; /* nor released: that might wait for ever */
    char lost_words[640];
    struct clt_observer *observer;
    char identity[CLT_HASH_TEXT]; /* device, driver and platform: part of every cache key */

    /* buffer pool */
    clt_memory **pool;
    size_t n_pool, pool_capacity;
    clt_memory *shared; /* the first of what is shared */
    uint64_t bytes, peak_bytes;
    bool memory_limited;  /* info.memory_bytes is a limit of the settings */

    /* what has red zones, and the first write outside of it that was seen */
    bool redzones_on;
    clt_memory **redzones;
    size_t n_redzones, redzones_capacity;
    char trespass[320];

    /* programs; `saver` reads them while it runs */
    clt_program **programs;
    size_t n_programs, programs_capacity;
    clt_build_counts counts;
    clt_catalog catalog; /* of earlier processes; when a request begins it does not change any more */
    clt_mutex mutex; /* guards programs' `saved` and n_programs against the saver */
    clt_thread saver;
    bool saver_running;
    bool for_trials; /* programs are not saved */
    bool keeps_sources; /* for a bundle */
    clt_helper *helper; /* NULL: none was started */

    void *kept; /* by a room above */
    void (*kept_release)(void *kept);

    /* capabilities: -1 not asked yet, else 0 or 1 */
    int capabilities[CLT_CAP_COUNT_];
};

/* "CL_OUT_OF_RESOURCES" … or "OpenCL error -9999". */
const char *clt_cl_error_name(cl_int error, char text[64]);

/* Whether a question failed because the driver did, and not because it does not know the thing. */
bool clt_cl_is_broken(cl_int error);

/* ---- lost.c ---- */

/* A driver may say that it made something, and give nothing. */
static inline cl_int clt_cl_made(const void *object, cl_int error) {
    return error == CL_SUCCESS && !object ? CL_OUT_OF_HOST_MEMORY : error;
}

/* The same for the event of what was enqueued, NULL until then; `event` is NULL if none was asked for. */
static inline cl_int clt_cl_with_event(const cl_event *event, cl_int error) {
    return error == CL_SUCCESS && event && !*event ? CL_INVALID_EVENT : error;
}

/* Fails with the device, what was tried and the error's name; device and host memory errors get their own status, and
 * errors that say that the device is gone mark it as lost. */
clt_status clt_cl_fail(clt_device *device, const char *what, cl_int error);
/* The same without a mark: on threads that build. */
clt_status clt_cl_fail_build(const clt_device *device, const char *what, cl_int error);
/* The same for a wait, or a command that has failed: whatever the error, work that was accepted is lost. */
clt_status clt_cl_fail_wait(clt_device *device, const char *what, cl_int error);
/* Marks it, unless it is already. */
clt_status clt_device_lose(clt_device *device, bool hangs, const char *why);
/* Fails as when it was lost. */
clt_status clt_device_fail_lost(const clt_device *device);
#ifdef __clang_analyzer__ /* as in base.h */
#define clt_cl_fail(device, what, error) (clt_cl_fail(device, what, error), CLT_E_DEVICE)
#define clt_cl_fail_build(device, what, error) (clt_cl_fail_build(device, what, error), CLT_E_DEVICE)
#define clt_cl_fail_wait(device, what, error) (clt_cl_fail_wait(device, what, error), CLT_E_DEVICE_LOST)
#define clt_device_lose(device, hangs, why) (clt_device_lose(device, hangs, why), CLT_E_DEVICE_LOST)
#define clt_device_fail_lost(device) (clt_device_fail_lost(device), CLT_E_DEVICE_LOST)
#endif

#define CLT_TRY_CL(device, what, expression)                                     \
    do {                                                                         \
        if ((device)->lost) return clt_device_fail_lost(device);                 \
        cl_int cl_error_ = (expression);                                         \
        if (cl_error_ != CL_SUCCESS) return clt_cl_fail(device, what, cl_error_); \
    } while (0)

/* Objects of a device that hangs are left to the driver. */
#define CLT_RELEASE(device, expression)     \
    do {                                    \
        if (!(device)->hangs) (expression); \
    } while (0)

/* ---- watch.c: whatever waits for the device waits here ---- */

/* A launch under way. */
typedef struct clt_watched {
    cl_event event; /* NULL: there is none */
    const void *origin;
    char kernel[64]; /* or the call of OpenCL, of what is none */
} clt_watched;

/* With a timeout both return an error when no launch has finished for that long, or one has failed. */
clt_status clt_cl_wait_event(clt_device *device, cl_event event, const char *what);
clt_status clt_cl_wait_queue(clt_device *device, cl_command_queue queue, const char *what);
/* Before a call that blocks by itself. */
clt_status clt_cl_before_blocking(clt_device *device, const char *what);
/* Maps memory from its beginning on, by the queue for mapping, and waits. */
clt_status clt_cl_map(clt_device *device, cl_mem memory, cl_map_flags flags, size_t bytes, const char *what, void **host);

/* In a device with a timeout: takes over the event of a launch, by its kernel's name or the call's. An error: one long before it failed. */
clt_status clt_watch_add(clt_device *device, const char *name, cl_event event);
/* The last launch that finished and the first that did not; false if nothing is known. */
bool clt_watch_find(clt_device *device, clt_watched *done, clt_watched *stuck);
/* With the timeout of another, or none. */
clt_status clt_watch_as(clt_device *device, const clt_device *other);
void clt_watch_free(clt_device *device);

/* Of bundles: whether its experiment was made; the text of that; and what comes of it, as a program that is built (NULL: it cannot be). (capability.c) */
bool clt_capability_is_tried(const clt_device *device, clt_capability capability);
clt_status clt_capability_source(const clt_device *device, clt_capability capability, clt_text *source);
void clt_capability_judge(clt_device *device, clt_capability capability, cl_program program);
/* CLT_E_INVALID where the list has a word that is not a capability. `name`: of the setting, for the message. (capability.c) */
clt_status clt_capability_list_check(const char *name, const char *list);

/* ---- helper.c: a second process that compiles ---- */

/* Whether one would be of use. */
bool clt_helper_serves(const clt_device *device);
/* Starts one that gets ready while so many kernels are built here, if it is worth it and there is none. */
void clt_helper_start(clt_device *device, size_t kernels);
/* It is to build a program, of which this key is, and to compile what a launch takes; all is sent by clt_device_compile_beside. Nothing is done where there
 * is no helper. `arguments`: a line each, as tools/cltrain-compile reads them. */
clt_status clt_helper_add_program(clt_device *device, const char *key, const clt_text *source);
bool clt_helper_has_program(const clt_device *device, const char *key);
clt_status clt_helper_add_kernel(clt_device *device, const char *program, const char *name, const clt_text *arguments, int dims, const size_t *global,
                                 const size_t *local);
/* It ends with what it does now. */
void clt_helper_end(clt_device *device);

/* ---- platform.c: what there is ---- */

typedef struct clt_found_device {
    clt_device_info info;
    cl_platform_id platform;
    cl_device_id id;
} clt_found_device;

/* All devices of all platforms in their order; released with clt_free. With none, the detail says why. */
clt_status clt_devices_find(clt_found_device **found, size_t *count);
/* The one a selector names, as clt_device_open documents, or with "" the best; `reason` says why it was chosen. */
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

/* ---- redzone.c: on a device with red zones ---- */

clt_status clt_redzone_create(clt_device *device, size_t bytes, clt_memory **memory);
void clt_redzone_destroy(clt_memory *memory);

/* ---- timing.c: in a device with a timer ---- */

/* Makes room for a launch to be added. */
clt_status clt_timer_reserve(clt_device *device);
/* Takes over the launch's event. */
void clt_timer_add(clt_device *device, const char *kernel, cl_event event);

/* ---- program.c ---- */

void clt_device_free_programs(clt_device *device);
/* What the compiler said; to be freed. NULL: no memory. */
char *clt_program_log(const clt_device *device, cl_program program);
/* The key of a program by its source. */
void clt_program_key(const clt_device *device, const char *source, size_t length, char key[CLT_HASH_TEXT]);
/* What every program is built with. */
#define CLT_DENORMS_ARE_ZERO "-cl-denorms-are-zero"
extern const char clt_build_options[];
/* False where a driver says that it built a program, and has lost the kernels. */
bool clt_program_has_kernels(cl_program program);
enum { CLT_MOST_BINARY = 1 << 28 }; /* what a driver says that it has beyond that nobody believes */
/* NULL: the driver does not take it. */
cl_program clt_program_from_binary(clt_device *device, const unsigned char *binary, size_t bytes);
/* *binary is to be freed, also on error. CLT_E_UNSUPPORTED: the driver gives none. */
clt_status clt_program_binary(const clt_device *device, cl_program program, unsigned char **binary, size_t *bytes);
/* By any thread. `label`: of the source, for messages. */
clt_status clt_program_build(clt_device *device, const char *source, const char *label, cl_program *program);
clt_status clt_program_add_part(clt_program *program, const char *module_hash, const char *kernel);
/* NULL is fine. */
void clt_program_free(clt_device *device, clt_program *program);
/* The device has it from now on; it is freed on error. */
clt_status clt_program_adopt(clt_device *device, clt_program *program);
/* Whether a part has that kernel. */
bool clt_part_serves(const clt_program_part *part, const char *module_hash, const char *kernel);
/* The program that a module was built into; NULL if it was not. */
const clt_program *clt_device_find_program(const clt_device *device, const char *module_hash, const char *kernel);

/* module.c: adds the text without the kernels of its that are not among those wanted of `module`. */
void clt_module_cut(const char *text, const clt_wanted *wanted, int n, int module, clt_text *out);

#endif
