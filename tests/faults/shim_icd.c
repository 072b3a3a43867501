/*
 * An OpenCL driver that hands out the objects of a real one, and lets single calls fail.
 *
 * All objects of a driver begin with a pointer to its dispatch table, which the loader calls through. That table
 * is patched in place: so every object is the real driver's own, and what it does by itself is not touched.
 *
 * Failing calls return the codes that the specification has for them and leave their outputs as drivers do: no object,
 * *errcode_ret set, no event, nothing else written. Three kinds are done all the same: releases (else the test would leak
 * what the library cannot help), unmapping (else drivers hold the memory for ever), and waiting (a queue that
 * is lost does not run on).
 *
 * In the environment: SHIM_DRIVER, the real driver's library (libpocl.so.2); and for programs that do not know of the
 * shim: SHIM_NTH, SHIM_FOREVER=1, SHIM_ONLY=clName as in shim.h, SHIM_REPORT=FILE, which gets the counts at exit;
 * SHIM_WHEN=NAME=VALUE, only in processes where that variable is so when the driver is loaded. SHIM_DROP=repeats, or N: all launches
 * of a kernel but its first, or all of these but one in N at random, are not done and said to be. SHIM_DELAY: microseconds that each
 * launch takes longer, as on a slow device. SHIM_DEED, what the call does rather than fail:
 *     exit, crash, hang
 *     null                 it says that all is well, and makes nothing; of what is enqueued no event
 *     later                the launch is taken, and its event alone tells that it failed
 *     early                it calls back at once, and not again
 *     twice                it calls back twice
 *     timeless, backward   all times of launches are 0, or what is later is less
 *     huge                 a build fails and its log has SIZE_MAX bytes; a binary has 2 GiB
 */
#define _GNU_SOURCE
#include <CL/cl_icd.h>

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "shim.h"

#define EXPORT __attribute__((visibility("default")))

/* ---- what is to fail, and what was counted ---- */

typedef enum kind { CONTEXT, QUEUE, MEMORY, PROGRAM, KERNEL, EVENT, KINDS } kind;
static const char *const kind_names[KINDS] = {"contexts", "queues", "buffers", "programs", "kernels", "events"};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct {
    bool counting, for_ever;
    char only[64], first[64];
    long nth, calls, hits, live[KINDS];
} state;

static void arm(const char *only, long nth, bool for_ever) {
    pthread_mutex_lock(&mutex);
    state.counting = true;
    state.for_ever = for_ever;
    snprintf(state.only, sizeof state.only, "%s", only ? only : "");
    state.first[0] = 0;
    state.nth = nth;
    state.calls = state.hits = 0;
    pthread_mutex_unlock(&mutex);
}

static void disarm(void) {
    pthread_mutex_lock(&mutex);
    state.counting = false;
    pthread_mutex_unlock(&mutex);
}

static long calls(void) {
    pthread_mutex_lock(&mutex);
    long n = state.calls;
    pthread_mutex_unlock(&mutex);
    return n;
}

static long hits(void) {
    pthread_mutex_lock(&mutex);
    long n = state.hits;
    pthread_mutex_unlock(&mutex);
    return n;
}

static const char *first(void) {
    return state.first;
}

static long live(char text[256]) {
    long sum = 0, length = 0;
    text[0] = 0;
    pthread_mutex_lock(&mutex);
    for (int k = 0; k < KINDS; k++) {
        sum += state.live[k] < 0 ? -state.live[k] : state.live[k];
        if (state.live[k])
            length += snprintf(text + length, 256 - (size_t)length, " %ld %s", state.live[k], kind_names[k]);
    }
    pthread_mutex_unlock(&mutex);
    return sum;
}

EXPORT const shim_control *shim_get_control(void);
EXPORT const shim_control *shim_get_control(void) {
    static const shim_control control = {arm, disarm, calls, hits, first, live};
    return &control;
}

/* What drivers do at worst; of the environment. */
static void do_deed(void) {
    const char *deed = getenv("SHIM_DEED");
    if (!deed) return;
    if (!strcmp(deed, "exit")) _exit(0);
    if (!strcmp(deed, "crash")) abort(); /* PoCL catches SIGSEGV */
    if (!strcmp(deed, "hang"))
        for (;;) pause();
}

static bool deed_is(const char *name) {
    const char *deed = getenv("SHIM_DEED");
    return deed && !strcmp(deed, name);
}

/* What a call that makes something says when it makes nothing. */
static cl_int without_object(cl_int error) {
    return deed_is("null") ? CL_SUCCESS : error;
}

/* Counts a call; 0: it goes on to the driver. Else the code it fails with, one of the two by turns. */
static cl_int strike(const char *name, cl_int code, cl_int other) {
    cl_int error = CL_SUCCESS;
    pthread_mutex_lock(&mutex);
    if (state.counting && (!state.only[0] || !strcmp(state.only, name))) {
        long n = ++state.calls;
        if (state.nth && (n == state.nth || (state.for_ever && n > state.nth))) {
            if (!state.hits++) snprintf(state.first, sizeof state.first, "%s", name);
            error = n % 2 ? code : other;
            do_deed();
        }
    }
    pthread_mutex_unlock(&mutex);
    return error;
}

static void count(kind k, long change) {
    pthread_mutex_lock(&mutex);
    state.live[k] += change;
    pthread_mutex_unlock(&mutex);
}

/* ---- the calls ---- */

static cl_icd_dispatch real; /* the driver's own functions */

/* What returns a status and changes nothing but that. */
#define CALL(name, code, other, parameters, arguments)            \
    static cl_int CL_API_CALL shim_##name parameters {            \
        cl_int error_ = strike(#name, code, other);               \
        return error_ ? error_ : real.name arguments;             \
    }

/* What is done all the same. */
#define DONE(name, code, other, parameters, arguments)            \
    static cl_int CL_API_CALL shim_##name parameters {            \
        cl_int error_ = strike(#name, code, other);               \
        cl_int done_ = real.name arguments;                       \
        return error_ ? error_ : done_;                           \
    }

#define MAKE(type, name, kind, code, other, parameters, arguments) \
    MAKE_AS(shim_##name, type, name, kind, code, other, parameters, arguments)
#define MAKE_AS(function, type, name, kind, code, other, parameters, arguments) \
    static type CL_API_CALL function parameters {                  \
        cl_int error_ = strike(#name, code, other);                \
        if (error_) {                                              \
            if (errcode) *errcode = without_object(error_);        \
            return NULL;                                           \
        }                                                          \
        type made_ = real.name arguments;                          \
        if (made_) count(kind, 1);                                 \
        return made_;                                              \
    }

#define RETAIN_RELEASE(type, Name, kind)                                            \
    static cl_int CL_API_CALL shim_clRetain##Name(type object) {                    \
        cl_int error_ = strike("clRetain" #Name, CL_OUT_OF_RESOURCES, CL_OUT_OF_HOST_MEMORY); \
        if (error_) return error_;                                                  \
        error_ = real.clRetain##Name(object);                                       \
        if (error_ == CL_SUCCESS) count(kind, 1);                                   \
        return error_;                                                              \
    }                                                                               \
    static cl_int CL_API_CALL shim_clRelease##Name(type object) {                   \
        cl_int error_ = strike("clRelease" #Name, CL_OUT_OF_RESOURCES, CL_OUT_OF_HOST_MEMORY); \
        cl_int done_ = real.clRelease##Name(object);                                \
        if (done_ == CL_SUCCESS) count(kind, -1);                                   \
        return error_ ? error_ : done_;                                             \
    }

#define ENQUEUE(name, code, other, parameters, arguments)         \
    static cl_int CL_API_CALL shim_##name parameters {            \
        cl_int error_ = strike(#name, code, other);               \
        if (error_ && !deed_is("null")) return error_;            \
        if (error_) event = NULL;                                 \
        error_ = real.name arguments;                             \
        if (event && error_ == CL_SUCCESS) count(EVENT, 1);       \
        return error_;                                            \
    }

#define WAITS cl_uint n, const cl_event *wait, cl_event *event

CALL(clGetPlatformInfo, CL_OUT_OF_HOST_MEMORY, CL_INVALID_PLATFORM,
     (cl_platform_id p, cl_platform_info what, size_t room, void *to, size_t *needed), (p, what, room, to, needed))
CALL(clGetDeviceIDs, CL_OUT_OF_HOST_MEMORY, CL_DEVICE_NOT_FOUND,
     (cl_platform_id p, cl_device_type t, cl_uint room, cl_device_id *ids, cl_uint *n), (p, t, room, ids, n))
CALL(clGetDeviceInfo, CL_OUT_OF_RESOURCES, CL_OUT_OF_HOST_MEMORY,
     (cl_device_id d, cl_device_info what, size_t room, void *to, size_t *needed), (d, what, room, to, needed))
CALL(clGetContextInfo, CL_OUT_OF_RESOURCES, CL_OUT_OF_HOST_MEMORY,
     (cl_context c, cl_context_info what, size_t room, void *to, size_t *needed), (c, what, room, to, needed))
CALL(clGetCommandQueueInfo, CL_OUT_OF_RESOURCES, CL_OUT_OF_HOST_MEMORY,
     (cl_command_queue q, cl_command_queue_info what, size_t room, void *to, size_t *needed), (q, what, room, to, needed))
CALL(clGetMemObjectInfo, CL_OUT_OF_RESOURCES, CL_OUT_OF_HOST_MEMORY,
     (cl_mem m, cl_mem_info what, size_t room, void *to, size_t *needed), (m, what, room, to, needed))

static cl_int CL_API_CALL shim_clGetProgramInfo(cl_program p, cl_program_info what, size_t room, void *to, size_t *needed) {
    cl_int error = strike("clGetProgramInfo", CL_OUT_OF_RESOURCES, CL_OUT_OF_HOST_MEMORY);
    if (!error || !deed_is("huge")) return error ? error : real.clGetProgramInfo(p, what, room, to, needed);
    error = real.clGetProgramInfo(p, what, room, to, needed);
    if (what == CL_PROGRAM_BINARY_SIZES && to) *(size_t *)to = (size_t)1 << 31;
    return error;
}

static cl_int CL_API_CALL shim_clGetProgramBuildInfo(cl_program p, cl_device_id d, cl_program_build_info what, size_t room,
                                                     void *to, size_t *needed) {
    cl_int error = strike("clGetProgramBuildInfo", CL_OUT_OF_RESOURCES, CL_OUT_OF_HOST_MEMORY);
    if (error && !deed_is("huge")) return error;
    if (what == CL_PROGRAM_BUILD_LOG && deed_is("huge")) {
        if (needed) *needed = SIZE_MAX;
        if (to) memset(to, 'x', room);
        return CL_SUCCESS;
    }
    return real.clGetProgramBuildInfo(p, d, what, room, to, needed);
}

CALL(clGetKernelInfo, CL_OUT_OF_RESOURCES, CL_OUT_OF_HOST_MEMORY,
     (cl_kernel k, cl_kernel_info what, size_t room, void *to, size_t *needed), (k, what, room, to, needed))
CALL(clGetKernelWorkGroupInfo, CL_OUT_OF_RESOURCES, CL_OUT_OF_HOST_MEMORY,
     (cl_kernel k, cl_device_id d, cl_kernel_work_group_info what, size_t room, void *to, size_t *needed),
     (k, d, what, room, to, needed))

static unsigned long long draws = 1; /* Knuth's linear congruential generator: no rhythm that callers could share */

static unsigned draw(void) {
    pthread_mutex_lock(&mutex);
    draws = draws * 6364136223846793005u + 1442695040888963407u;
    unsigned drawn = (unsigned)(draws >> 33);
    pthread_mutex_unlock(&mutex);
    return drawn;
}

/* Where callbacks are at fault every other event has not happened yet, so that there are some, however fast the device is. */
static cl_int CL_API_CALL shim_clGetEventInfo(cl_event e, cl_event_info what, size_t room, void *to, size_t *needed) {
    cl_int error = strike("clGetEventInfo", CL_OUT_OF_RESOURCES, CL_OUT_OF_HOST_MEMORY);
    if (error) return error;
    error = real.clGetEventInfo(e, what, room, to, needed);
    bool asked = error == CL_SUCCESS && what == CL_EVENT_COMMAND_EXECUTION_STATUS && to && *(cl_int *)to == CL_COMPLETE;
    if (asked && (deed_is("early") || deed_is("twice")) && draw() % 2) *(cl_int *)to = CL_RUNNING;
    return error;
}

static cl_int CL_API_CALL shim_clGetEventProfilingInfo(cl_event e, cl_profiling_info what, size_t room, void *to, size_t *needed) {
    cl_int error = strike("clGetEventProfilingInfo", CL_PROFILING_INFO_NOT_AVAILABLE, CL_OUT_OF_RESOURCES);
    if (error && !deed_is("timeless") && !deed_is("backward")) return error;
    cl_int told = real.clGetEventProfilingInfo(e, what, room, to, needed);
    if (error && to) *(cl_ulong *)to = deed_is("timeless") ? 0 : ~*(cl_ulong *)to >> 1; /* what is later is less */
    return told;
}

static cl_int CL_API_CALL shim_clSetEventCallback(cl_event e, cl_int when,
                                                  void(CL_CALLBACK *notify)(cl_event, cl_int, void *), void *user) {
    cl_int error = strike("clSetEventCallback", CL_OUT_OF_RESOURCES, CL_OUT_OF_HOST_MEMORY);
    if (!error) return real.clSetEventCallback(e, when, notify, user);
    if (deed_is("twice")) {
        real.clSetEventCallback(e, when, notify, user);
        return real.clSetEventCallback(e, when, notify, user);
    }
    if (!deed_is("early")) return error;
    notify(e, CL_COMPLETE, user);
    return CL_SUCCESS;
}

MAKE(cl_context, clCreateContext, CONTEXT, CL_DEVICE_NOT_AVAILABLE, CL_OUT_OF_RESOURCES,
     (const cl_context_properties *p, cl_uint n, const cl_device_id *ids,
      void(CL_CALLBACK *notify)(const char *, const void *, size_t, void *), void *user, cl_int *errcode),
     (p, n, ids, notify, user, errcode))
MAKE(cl_command_queue, clCreateCommandQueue, QUEUE, CL_OUT_OF_RESOURCES, CL_INVALID_QUEUE_PROPERTIES,
     (cl_context c, cl_device_id d, cl_command_queue_properties p, cl_int *errcode), (c, d, p, errcode))
MAKE(cl_mem, clCreateBuffer, MEMORY, CL_MEM_OBJECT_ALLOCATION_FAILURE, CL_OUT_OF_RESOURCES,
     (cl_context c, cl_mem_flags f, size_t bytes, void *host, cl_int *errcode), (c, f, bytes, host, errcode))
MAKE(cl_mem, clCreateSubBuffer, MEMORY, CL_OUT_OF_RESOURCES, CL_MISALIGNED_SUB_BUFFER_OFFSET,
     (cl_mem m, cl_mem_flags f, cl_buffer_create_type t, const void *region, cl_int *errcode), (m, f, t, region, errcode))
MAKE(cl_program, clCreateProgramWithSource, PROGRAM, CL_OUT_OF_RESOURCES, CL_OUT_OF_HOST_MEMORY,
     (cl_context c, cl_uint n, const char **texts, const size_t *lengths, cl_int *errcode),
     (c, n, texts, lengths, errcode))

static cl_program CL_API_CALL shim_clCreateProgramWithBinary(cl_context c, cl_uint n, const cl_device_id *ids,
                                                             const size_t *lengths, const unsigned char **binaries,
                                                             cl_int *statuses, cl_int *errcode) {
    cl_int error = strike("clCreateProgramWithBinary", CL_INVALID_BINARY, CL_OUT_OF_HOST_MEMORY);
    if (error) {
        for (cl_uint i = 0; statuses && error == CL_INVALID_BINARY && i < n; i++) statuses[i] = error;
        if (errcode) *errcode = error;
        return NULL;
    }
    cl_program made = real.clCreateProgramWithBinary(c, n, ids, lengths, binaries, statuses, errcode);
    if (made) count(PROGRAM, 1);
    return made;
}

RETAIN_RELEASE(cl_context, Context, CONTEXT)
RETAIN_RELEASE(cl_command_queue, CommandQueue, QUEUE)
RETAIN_RELEASE(cl_mem, MemObject, MEMORY)
RETAIN_RELEASE(cl_program, Program, PROGRAM)
RETAIN_RELEASE(cl_kernel, Kernel, KERNEL)
RETAIN_RELEASE(cl_event, Event, EVENT)

CALL(clBuildProgram, CL_BUILD_PROGRAM_FAILURE, CL_OUT_OF_RESOURCES,
     (cl_program p, cl_uint n, const cl_device_id *ids, const char *options, void(CL_CALLBACK *notify)(cl_program, void *),
      void *user),
     (p, n, ids, options, notify, user))
CALL(clSetKernelArg, CL_OUT_OF_RESOURCES, CL_INVALID_ARG_VALUE,
     (cl_kernel k, cl_uint i, size_t bytes, const void *value), (k, i, bytes, value))

DONE(clFinish, CL_OUT_OF_RESOURCES, CL_INVALID_COMMAND_QUEUE, (cl_command_queue q), (q))
DONE(clFlush, CL_OUT_OF_RESOURCES, CL_OUT_OF_HOST_MEMORY, (cl_command_queue q), (q))
DONE(clWaitForEvents, CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST, CL_OUT_OF_RESOURCES,
     (cl_uint n, const cl_event *events), (n, events))

/* ---- launches that are dropped ---- */

enum { MOST_LAUNCHED = 1024 };
static cl_kernel launched[MOST_LAUNCHED]; /* once or more */
static int n_launched;

static int find_launched(cl_kernel kernel) {
    int i = 0;
    while (i < n_launched && launched[i] != kernel) i++;
    return i;
}

MAKE_AS(make_kernel, cl_kernel, clCreateKernel, KERNEL, CL_OUT_OF_RESOURCES, CL_INVALID_PROGRAM_EXECUTABLE,
        (cl_program p, const char *name, cl_int *errcode), (p, name, errcode))

/* It may be where another one was. */
static cl_kernel CL_API_CALL shim_clCreateKernel(cl_program p, const char *name, cl_int *errcode) {
    cl_kernel made = make_kernel(p, name, errcode);
    pthread_mutex_lock(&mutex);
    int i = find_launched(made);
    if (i < n_launched) launched[i] = launched[--n_launched];
    pthread_mutex_unlock(&mutex);
    return made;
}

static bool is_dropped(cl_kernel kernel) {
    const char *drop = getenv("SHIM_DROP");
    if (!drop || !*drop) return false;
    int kept = atoi(drop);
    pthread_mutex_lock(&mutex);
    int i = find_launched(kernel);
    bool dropped = i < n_launched;
    if (i == n_launched && n_launched < MOST_LAUNCHED) launched[n_launched++] = kernel;
    pthread_mutex_unlock(&mutex);
    return dropped && (kept <= 0 || draw() % (unsigned)kept != 0);
}

static cl_int fail_later(cl_command_queue q, cl_int error, cl_event *event) {
    cl_context context;
    if (!event) return CL_SUCCESS;
    real.clGetCommandQueueInfo(q, CL_QUEUE_CONTEXT, sizeof context, &context, NULL);
    *event = real.clCreateUserEvent(context, NULL);
    count(EVENT, 1);
    return real.clSetUserEventStatus(*event, error);
}

/* The caller waits, whose thread is the device's. */
static void delay(void) {
    const char *wanted = getenv("SHIM_DELAY");
    long microseconds = wanted ? atol(wanted) : 0;
    if (microseconds > 0) nanosleep(&(struct timespec){microseconds / 1000000, microseconds % 1000000 * 1000}, NULL);
}

static cl_int CL_API_CALL shim_clEnqueueNDRangeKernel(cl_command_queue q, cl_kernel k, cl_uint dims, const size_t *offset,
                                                      const size_t *global, const size_t *local, WAITS) {
    cl_int error = strike("clEnqueueNDRangeKernel", CL_OUT_OF_RESOURCES, CL_MEM_OBJECT_ALLOCATION_FAILURE);
    if (error && !deed_is("null")) return deed_is("later") ? fail_later(q, error, event) : error;
    if (error) event = NULL;
    delay();
    if (is_dropped(k)) error = event ? real.clEnqueueMarkerWithWaitList(q, n, wait, event) : CL_SUCCESS;
    else error = real.clEnqueueNDRangeKernel(q, k, dims, offset, global, local, n, wait, event);
    if (event && error == CL_SUCCESS) count(EVENT, 1);
    return error;
}

ENQUEUE(clEnqueueReadBuffer, CL_OUT_OF_RESOURCES, CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST,
        (cl_command_queue q, cl_mem m, cl_bool block, size_t offset, size_t bytes, void *to, WAITS),
        (q, m, block, offset, bytes, to, n, wait, event))
ENQUEUE(clEnqueueWriteBuffer, CL_OUT_OF_RESOURCES, CL_MEM_OBJECT_ALLOCATION_FAILURE,
        (cl_command_queue q, cl_mem m, cl_bool block, size_t offset, size_t bytes, const void *from, WAITS),
        (q, m, block, offset, bytes, from, n, wait, event))
ENQUEUE(clEnqueueCopyBuffer, CL_OUT_OF_RESOURCES, CL_MEM_OBJECT_ALLOCATION_FAILURE,
        (cl_command_queue q, cl_mem from, cl_mem to, size_t a, size_t b, size_t bytes, WAITS),
        (q, from, to, a, b, bytes, n, wait, event))
ENQUEUE(clEnqueueFillBuffer, CL_OUT_OF_RESOURCES, CL_MEM_OBJECT_ALLOCATION_FAILURE,
        (cl_command_queue q, cl_mem m, const void *pattern, size_t size, size_t offset, size_t bytes, WAITS),
        (q, m, pattern, size, offset, bytes, n, wait, event))
ENQUEUE(clEnqueueMarkerWithWaitList, CL_OUT_OF_RESOURCES, CL_OUT_OF_HOST_MEMORY, (cl_command_queue q, WAITS),
        (q, n, wait, event))
ENQUEUE(clEnqueueBarrierWithWaitList, CL_OUT_OF_RESOURCES, CL_OUT_OF_HOST_MEMORY, (cl_command_queue q, WAITS),
        (q, n, wait, event))

static cl_int CL_API_CALL shim_clEnqueueUnmapMemObject(cl_command_queue q, cl_mem m, void *host, WAITS) {
    cl_int error = strike("clEnqueueUnmapMemObject", CL_OUT_OF_RESOURCES, CL_INVALID_VALUE);
    if (error) {
        real.clEnqueueUnmapMemObject(q, m, host, n, wait, NULL);
        return error;
    }
    error = real.clEnqueueUnmapMemObject(q, m, host, n, wait, event);
    if (event && error == CL_SUCCESS) count(EVENT, 1);
    return error;
}

static void *CL_API_CALL shim_clEnqueueMapBuffer(cl_command_queue q, cl_mem m, cl_bool block, cl_map_flags flags,
                                                 size_t offset, size_t bytes, WAITS, cl_int *errcode) {
    cl_int error = strike("clEnqueueMapBuffer", CL_MAP_FAILURE, CL_OUT_OF_RESOURCES);
    if (error) {
        if (errcode) *errcode = without_object(error);
        return NULL;
    }
    void *host = real.clEnqueueMapBuffer(q, m, block, flags, offset, bytes, n, wait, event, errcode);
    if (event && host) count(EVENT, 1);
    return host;
}

/* ---- the table ---- */

#define EACH(X)                                                                                                        \
    X(clGetPlatformInfo) X(clGetDeviceIDs) X(clGetDeviceInfo) X(clGetContextInfo) X(clGetCommandQueueInfo)             \
    X(clGetMemObjectInfo) X(clGetProgramInfo) X(clGetProgramBuildInfo) X(clGetKernelInfo) X(clGetKernelWorkGroupInfo)  \
    X(clGetEventInfo) X(clGetEventProfilingInfo) X(clCreateContext) X(clCreateCommandQueue) X(clCreateBuffer)          \
    X(clCreateSubBuffer) X(clCreateProgramWithSource) X(clCreateProgramWithBinary) X(clCreateKernel)                   \
    X(clRetainContext) X(clReleaseContext) X(clRetainCommandQueue) X(clReleaseCommandQueue) X(clRetainMemObject)       \
    X(clReleaseMemObject) X(clRetainProgram) X(clReleaseProgram) X(clRetainKernel) X(clReleaseKernel) X(clRetainEvent) \
    X(clReleaseEvent) X(clBuildProgram) X(clSetKernelArg) X(clFinish) X(clFlush) X(clWaitForEvents)                    \
    X(clEnqueueNDRangeKernel) X(clEnqueueReadBuffer) X(clEnqueueWriteBuffer) X(clEnqueueCopyBuffer)                    \
    X(clEnqueueFillBuffer) X(clEnqueueMarkerWithWaitList) X(clEnqueueBarrierWithWaitList) X(clEnqueueUnmapMemObject)   \
    X(clEnqueueMapBuffer) X(clSetEventCallback)

/* Tables may lie in memory that is read-only once it is relocated. */
static bool patch(cl_icd_dispatch *table) {
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    char *start = (char *)((size_t)table / page * page);
    size_t bytes = (size_t)((char *)&table->clEnqueueBarrierWithWaitList + sizeof(void *) - start);
    if (mprotect(start, bytes, PROT_READ | PROT_WRITE)) return false;
#define PATCH(name)          \
    real.name = table->name; \
    table->name = shim_##name;
    EACH(PATCH)
#undef PATCH
    real.clCreateUserEvent = table->clCreateUserEvent; /* called here alone */
    real.clSetUserEventStatus = table->clSetUserEventStatus;
    return true;
}

typedef cl_int(CL_API_CALL *platform_ids_function)(cl_uint, cl_platform_id *, cl_uint *);
static platform_ids_function real_platform_ids;
static void *driver;

static void open_driver(void) {
    const char *name = getenv("SHIM_DRIVER");
    driver = dlopen(name && *name ? name : "libpocl.so.2", RTLD_NOW | RTLD_LOCAL);
    if (!driver) {
        fprintf(stderr, "shim: %s\n", dlerror());
        return;
    }
    void *(*address)(const char *) = (void *(*)(const char *))dlsym(driver, "clGetExtensionFunctionAddress");
    real_platform_ids = address ? (platform_ids_function)address("clIcdGetPlatformIDsKHR") : NULL;
    cl_platform_id platform = NULL;
    if (!real_platform_ids || real_platform_ids(1, &platform, NULL) != CL_SUCCESS || !platform ||
        !patch(*(cl_icd_dispatch **)platform)) {
        fprintf(stderr, "shim: the driver has no platform, or a table that cannot be changed\n");
        real_platform_ids = NULL;
    }
}

static cl_int CL_API_CALL platform_ids(cl_uint room, cl_platform_id *ids, cl_uint *n) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, open_driver);
    return real_platform_ids ? real_platform_ids(room, ids, n) : -1001;
}

EXPORT cl_int CL_API_CALL clIcdGetPlatformIDsKHR(cl_uint room, cl_platform_id *ids, cl_uint *n);
EXPORT cl_int CL_API_CALL clIcdGetPlatformIDsKHR(cl_uint room, cl_platform_id *ids, cl_uint *n) {
    return platform_ids(room, ids, n);
}

/* Of the loader itself, while it looks at the driver. */
EXPORT cl_int CL_API_CALL clGetPlatformInfo(cl_platform_id id, cl_platform_info what, size_t room, void *to,
                                            size_t *needed) {
    return real.clGetPlatformInfo(id, what, room, to, needed);
}

EXPORT void *CL_API_CALL clGetExtensionFunctionAddress(const char *name) {
    if (!strcmp(name, "clIcdGetPlatformIDsKHR")) return (void *)platform_ids;
    if (!strcmp(name, "clGetPlatformInfo")) return (void *)clGetPlatformInfo;
    return NULL;
}

/* ---- for programs that do not know of it ---- */

static bool is_meant(const char *when) {
    const char *equals = when ? strchr(when, '=') : NULL;
    char name[64];
    if (!equals) return !when;
    snprintf(name, sizeof name, "%.*s", (int)(equals - when), when);
    const char *value = getenv(name);
    return value && !strcmp(value, equals + 1);
}

__attribute__((constructor)) static void read_environment(void) {
    if (!is_meant(getenv("SHIM_WHEN"))) return;
    const char *nth = getenv("SHIM_NTH"), *for_ever = getenv("SHIM_FOREVER");
    if (nth || getenv("SHIM_REPORT")) arm(getenv("SHIM_ONLY"), nth ? atol(nth) : 0, for_ever && atoi(for_ever));
}

__attribute__((destructor)) static void report(void) {
    const char *path = getenv("SHIM_REPORT");
    FILE *file = path ? fopen(path, "w") : NULL;
    char text[256];
    if (!file) return;
    long left = live(text);
    fprintf(file, "calls %ld\nfailed %ld %s\nlive %ld%s\n", state.calls, state.hits, state.first, left, text);
    fclose(file);
}
