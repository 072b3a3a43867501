/*
 * Devices for the rest of the library: buffers, kernels and their launches, with
 * nothing of OpenCL's headers in sight.
 *
 * A device has one in-order queue: commands are carried out in the order of their
 * enqueueing, so that whoever enqueues need not think of dependences. All
 * calls on a device come from one thread at a time.
 */
#ifndef CLT_DEVICE_DEVICE_H
#define CLT_DEVICE_DEVICE_H

#include <cltrain/device.h>

#include "runtime/base/base.h"

/* The device's settings, as they are in force: no text is NULL. Valid until it is closed. (settings.c) */
const clt_settings *clt_device_settings(const clt_device *device);
/* Puts texts that are not NULL in the place of the device's, while a graph is compiled that has its own: they are only borrowed. Returns
 * those before, by which another call restores them. */
clt_settings clt_device_override(clt_device *device, const clt_settings *by);

/* How many floats the device's own vectors hold (device.c): 1 where a work-item is a lane. */
int clt_device_vector_width(const clt_device *device);

/* What a work-item is, which decides what kernels suit the device: a thread with vector registers, or a lane
 * of many that go together. The setting device_class has a device taken as one of that class. */
typedef enum clt_device_class { CLT_CLASS_CPU, CLT_CLASS_GPU } clt_device_class;
clt_device_class clt_device_get_class(const clt_device *device);
/* Whether a work-item of a GPU has some 64 registers of 4 bytes, and not 128 and more. */
bool clt_device_has_few_registers(const clt_device *device);

/* As clt_device_peaks, but measured now (peaks.c). */
clt_status clt_device_measure_peaks(clt_device *device, clt_peaks *peaks);
/* The same device once more, with a context, queue and programs of its own, for trials: what goes wrong
 * there, or is built or allocated, is not the first one's. It saves no programs on disk. */
clt_status clt_device_open_again(const clt_device *device, clt_device **again);

/* What a room above keeps with a device, one thing in all; `release` is called when the device is
 * closed or something else is kept. */
void clt_device_keep(clt_device *device, void *kept, void (*release)(void *kept));
void *clt_device_kept(const clt_device *device); /* NULL: nothing yet */

/* ---- memory (memory.c) ---- */

typedef struct clt_memory clt_memory;

/* Sub-buffers begin at multiples of this on every device that is opened. */
size_t clt_device_alignment(const clt_device *device);

/* Memory from the pool, or new; contents undefined. CLT_E_DEVICE_MEMORY says how
 * much was asked for, how much there is, and the largest single buffer. */
clt_status clt_memory_create(clt_device *device, size_t bytes, clt_memory **buffer);

/* Memory for what lives within one use of it alone, such as a plan's run: since the device's queue is in order, many may have it. The smallest of at least
 * `bytes` that somebody has and that is not among the `n` others; NULL: there is none. Who takes it says so by clt_memory_share; each of those who have it
 * destroys it. On a device with red zones nothing is shared. */
clt_memory *clt_memory_find_shared(const clt_device *device, size_t bytes, clt_memory *const *others, size_t n);
void clt_memory_share(clt_memory *memory);
/* clt_memory_create, to be found from now on. */
clt_status clt_memory_create_shared(clt_device *device, size_t bytes, clt_memory **memory);

/* A part of another buffer, which must live longer. offset: a multiple of the alignment. */
clt_status clt_memory_slice(clt_memory *parent, size_t offset, size_t bytes, clt_memory **slice);

/* Gives the memory back to the pool (a slice only itself; what is shared when the last does). NULL is fine. */
void clt_memory_destroy(clt_memory *buffer);

/* On a device with red zones (<cltrain/experimental/measure.h>): a name for messages, and what stands for undefined contents. Elsewhere the
 * name is nobody's concern. */
bool clt_device_has_redzones(const clt_device *device);
void clt_memory_name(clt_memory *memory, const char *name);
clt_status clt_memory_poison(clt_memory *memory, unsigned char byte);

/* Really frees what the pool holds for reuse. */
void clt_device_trim(clt_device *device);
/* What is left of its memory, by what it says of it, or of the limit in its settings. Kept buffers count as left. */
uint64_t clt_device_left_bytes(const clt_device *device);
/* Whether the settings have such a limit. */
bool clt_device_is_limited(const clt_device *device);

/* Copies between host and device; return when done. */
clt_status clt_memory_write(clt_memory *buffer, size_t offset, const void *source, size_t bytes);
clt_status clt_memory_read(clt_memory *buffer, size_t offset, void *destination, size_t bytes);
/* Memory in the host's, pinned where the driver does so, and none of the device's: no kernel may have it as an argument. It is read, written, zeroed and
 * destroyed as other memory is. `folder`: it lies in a file there; NULL: it does not. */
clt_status clt_memory_create_host(clt_device *device, size_t bytes, const char *folder, clt_memory **memory);
/* Enqueue: a part of such memory to the begin of the device's, and back. */
clt_status clt_memory_from_host(const clt_memory *host, size_t offset, clt_memory *to, size_t bytes);
clt_status clt_memory_to_host(const clt_memory *from, clt_memory *host, size_t offset, size_t bytes);
/* Enqueue: all bytes zero. */
clt_status clt_memory_zero(clt_memory *buffer);
/* Enqueue: words of 4 bytes, and a copy to the begin of another buffer; neither is looked at more closely. */
clt_status clt_memory_fill(clt_memory *buffer, size_t offset, size_t bytes, uint32_t word);
clt_status clt_memory_copy(clt_memory *from, size_t offset, clt_memory *to, size_t bytes);

/* ---- feeding (staging.c) ---- */

/* The way of host data into what kernels read, again and again, with several slots in turn
 * so that filling the next does not wait for the last to be used up. Where host and device share
 * memory, a slot is what the kernels read (mapped, filled, unmapped: nothing is transferred); else it
 * is pinned host memory, transferred to one place on the device. */
typedef struct clt_staging clt_staging;
clt_status clt_staging_create(clt_device *device, size_t bytes, int slots, clt_staging **staging);
void clt_staging_destroy(clt_staging *staging);
/* What one would take of the device's memory. */
size_t clt_staging_bytes(const clt_device *device, size_t bytes, int slots);
/* The memory that kernels have to read from now on; changes with clt_staging_feed. */
clt_memory *clt_staging_memory(const clt_staging *staging);
/* Copies `source` into the next slot, waiting only if all slots are in use, and enqueues its transfer if
 * it needs one. `source` may be reused at once. */
clt_status clt_staging_feed(clt_staging *staging, const void *source, size_t bytes);
/* To be called after the kernels that read what was fed have been enqueued. */
clt_status clt_staging_used(clt_staging *staging);

/* ---- the way to the host and back (transit.c) ---- */

/* For memory that the host works on between launches, again and again, while others go on. Where host and device share
 * memory it is mapped, not copied. */
typedef struct clt_transit clt_transit;
clt_status clt_transit_create(clt_device *device, clt_memory *memory, size_t bytes, clt_transit **transit);
/* Ends what is under way. NULL is fine. */
void clt_transit_destroy(clt_transit *transit);
/* Enqueues the way of `bytes` from `offset` on to the host, after what is enqueued so far; nothing waits. */
clt_status clt_transit_begin(clt_transit *transit, size_t offset, size_t bytes);
/* Waits until they are there. *host is where byte 0 of the memory would be; all of it may be written. */
clt_status clt_transit_wait(clt_transit *transit, void **host);
/* Enqueues the way back of these bytes, before what is enqueued from now on. The host must not touch them any more. 0 bytes: nothing was
 * changed. Nothing is done if nothing was begun. */
clt_status clt_transit_end(clt_transit *transit, size_t offset, size_t bytes);

/* ---- between the host's memory (clt_memory_create_host) and the device's while kernels go on (async_copy.c) ---- */

typedef struct clt_async_copy {
    void *done; /* NULL: none is under way */
} clt_async_copy;
/* Enqueues it, after all that is enqueued so far: from byte `offset` of `host` on to the begin of the device's memory, or back. */
clt_status clt_async_copy_begin(clt_async_copy *copy, clt_memory *memory, clt_memory *host, size_t offset, size_t bytes, bool back);
/* What is enqueued from now on waits for it. */
clt_status clt_async_copy_end(clt_async_copy *copy, clt_device *device);
/* Waits for it, whatever becomes of it. */
void clt_async_copy_abandon(clt_async_copy *copy, clt_device *device);

/* ---- programs (program.c) ---- */

/* A piece of OpenCL C. Modules of a request are gathered into few programs, which
 * are built in parallel and kept in the cache on disk. */
typedef struct clt_module {
    const char *text;
    bool isolated; /* a program of its own: its names may clash with others' */
    const char *label; /* for messages: "reference/conv2d.cl" */
    /* Its kernels begin their lines with `kernel void NAME(`, and each can be left out for itself. */
    bool separable;
} clt_module;

/* Whether the setting `compiler` forbids that anything is built; it is there, or an error. */
bool clt_compiles_nothing(const clt_device *device);

/* Makes sure that all modules are built, whole. CLT_E_BUILD carries the end of the build log. */
clt_status clt_device_build(clt_device *device, const clt_module *modules, int n);

/* The same for kernels of modules, by the modules' indices. Others are left out where they can be: a driver would
 * compile them too, and once more to give the program's binary. */
typedef struct clt_wanted {
    int module;
    const char *kernel;
} clt_wanted;
clt_status clt_device_build_kernels(clt_device *device, const clt_module *modules, int n, const clt_wanted *wanted,
                                    int n_wanted);

/* Appends the program of one kernel alone. */
clt_status clt_module_source(const clt_device *device, const clt_module *module, const char *kernel, clt_text *out);

/* Saves the binaries of programs built from source since, on a thread of its own.
 * Best called after their kernels ran once: drivers compile some parts only then. */
void clt_device_save_programs(clt_device *device);
/* The same and waits for it: nothing is compiled beside what runs from then on. */
void clt_device_settle_programs(clt_device *device);

/* How many programs were built from source, and loaded from the cache, so far. */
typedef struct clt_build_counts {
    int built, loaded;
} clt_build_counts;
clt_build_counts clt_device_build_counts(const clt_device *device);

/* ---- kernels (kernel.c) ---- */

typedef struct clt_kernel clt_kernel;

/* A kernel of a module that was built. */
clt_status clt_kernel_create(clt_device *device, const clt_module *module, const char *name,
                             clt_kernel **kernel);
void clt_kernel_destroy(clt_kernel *kernel);
clt_status clt_kernel_set_memory(clt_kernel *kernel, int index, const clt_memory *buffer);
clt_status clt_kernel_set_value(clt_kernel *kernel, int index, const void *value, size_t bytes);
/* Largest work-group that this kernel can have on its device, 1 at least. */
clt_status clt_kernel_work_group_limit(clt_kernel *kernel, size_t *limit);

/* Work of a library, in a kernel's place: `run` enqueues it on the device's queue, on the memories that
 * were set as arguments (values cannot be). */
typedef struct clt_call {
    clt_status (*run)(clt_device *device, clt_memory *const *arguments, void *state);
    void *state;
    void (*release)(void *state); /* NULL: nothing to release */
} clt_call;
enum { CLT_CALL_MAX_ARGUMENTS = 8 };
/* Takes the state over, also on error. */
clt_status clt_kernel_from_call(clt_device *device, const clt_call *call, const char *name, clt_kernel **kernel);

/* What libraries are given: a cl_context, cl_device_id, cl_command_queue, cl_mem. */
typedef struct clt_handles {
    void *context, *device, *queue;
} clt_handles;
clt_handles clt_device_handles(const clt_device *device);
void *clt_memory_handle(const clt_memory *memory);

/* Whoever makes many kernels tells of each, when its arguments are set, how it will be launched; then a second process compiles some of them, the last
 * first, where that makes the first launches sooner (helper.c). */
void clt_kernel_announce(clt_kernel *kernel, int dims, const size_t *global, const size_t *local);
void clt_device_compile_beside(clt_device *device);

/* Enqueues with the arguments as they are now. */
clt_status clt_kernel_enqueue(clt_kernel *kernel, int dims, const size_t *global, const size_t *local);

/* ---- times of launches (timing.c) ---- */

typedef struct clt_timed_launch {
    int64_t tag;
    char kernel[64];
    double start_seconds, end_seconds; /* of the device's own clock */
} clt_timed_launch;

/* From now on each launch is timed, until the stop, which waits for all and gives their times in their order
 * (release with clt_free; NULL: not wanted). Timing costs some; what is not timed costs nothing. */
clt_status clt_device_time_start(clt_device *device);
clt_status clt_device_time_stop(clt_device *device, clt_timed_launch **launches, size_t *count);
/* What the next launches are marked with; nothing where launches are not timed. */
void clt_device_time_tag(clt_device *device, int64_t tag);

/* Who is told of launches (runtime/exec/observer.h); NULL: nobody. */
struct clt_observer *clt_device_observer(const clt_device *device);
void clt_device_set_observer(clt_device *device, struct clt_observer *observer);

/* ---- whose launches these are, for messages (lost.c) ---- */

enum { CLT_ORIGIN_TEXT = 192 };
/* Puts what an origin stands for into words. */
typedef void clt_describe(const void *origin, char text[CLT_ORIGIN_TEXT]);
/* The launches from now on are this one's (NULL: nobody's), which must live until they are finished. */
void clt_device_set_origin(clt_device *device, const void *origin);
void clt_device_describe_by(clt_device *device, clt_describe *describe);

/* An error, or a wait that came to no end, has shown that nothing can be done on it any more: all calls fail with CLT_E_DEVICE_LOST. */
bool clt_device_is_lost(const clt_device *device);

/* ---- the queue (device.c) ---- */

/* Hands what is enqueued to the driver. */
clt_status clt_device_flush(clt_device *device);
/* Waits until all enqueued work is done. */
clt_status clt_device_finish(clt_device *device);

#endif
