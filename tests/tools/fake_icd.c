/*
 * An OpenCL driver that misbehaves, for the tests of cltrain-probe. Built several times, with one of
 *     FAKE_CRASH      crashes when it is asked for devices
 *     FAKE_LOAD       crashes while it is loaded
 *     FAKE_HANG       never answers when it is asked for devices
 *     FAKE_NONSENSE   has two devices: one of absurd sizes and an endless vendor, one whose names are garbage
 *     FAKE_HOLLOW     has three devices: one without compute units, one with work-groups of nothing, one without room for buffers
 *     FAKE_LATE       has three devices, the second of which crashes when a context is made on it
 *     FAKE_STALL      has one device, and never comes back from making a context on it
 *     FAKE_WRONG      has one device that builds and runs everything and computes nothing
 *     FAKE_EMPTY      has no device
 *     FAKE_EXIT       has one device, and ends the process, with exit code 0, when a context is made on it
 *     FAKE_LEAVE      ends the process so when it is asked for devices
 *     FAKE_HELPER     has one device, and leaves a process of its own behind, which holds all files open for a while
 */
#include <CL/cl_icd.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

typedef struct object {
    const cl_icd_dispatch *dispatch;
    int number;
    unsigned char bytes[1 << 16]; /* of a buffer */
} object;

static cl_icd_dispatch table;
static object platform = {&table, 0, {0}};
static object devices[3] = {{&table, 0, {0}}, {&table, 1, {0}}, {&table, 2, {0}}};

#if defined FAKE_NONSENSE
enum { DEVICES = 2 };
#elif defined FAKE_LATE || defined FAKE_HOLLOW
enum { DEVICES = 3 };
#else
enum { DEVICES = 1 };
#endif

static cl_int give(const void *from, size_t bytes, size_t room, void *to, size_t *needed) {
    if (needed) *needed = bytes;
    if (!to) return CL_SUCCESS;
    if (room < bytes) return CL_INVALID_VALUE;
    memcpy(to, from, bytes);
    return CL_SUCCESS;
}

static cl_int give_text(const char *text, size_t room, void *to, size_t *needed) {
    return give(text, strlen(text) + 1, room, to, needed);
}

static cl_int CL_API_CALL get_platform_info(cl_platform_id id, cl_platform_info what, size_t room, void *to,
                                            size_t *needed) {
    (void)id;
    switch (what) {
    case CL_PLATFORM_NAME: return give_text("Fake", room, to, needed);
    case CL_PLATFORM_EXTENSIONS: return give_text("cl_khr_icd", room, to, needed);
    case CL_PLATFORM_ICD_SUFFIX_KHR: return give_text("FAKE", room, to, needed);
    case CL_PLATFORM_VERSION: return give_text("OpenCL 1.2 fake", room, to, needed);
    default: return give_text("fake", room, to, needed);
    }
}

static cl_int CL_API_CALL get_device_ids(cl_platform_id id, cl_device_type type, cl_uint room, cl_device_id *ids,
                                         cl_uint *n) {
    (void)id, (void)type;
#ifdef FAKE_CRASH
    fprintf(stderr, "fake driver: about to dereference nothing\n");
    raise(SIGSEGV);
#endif
#ifdef FAKE_LEAVE
    exit(0);
#endif
#ifdef FAKE_EMPTY
    return CL_DEVICE_NOT_FOUND;
#endif
#ifdef FAKE_HANG
    for (;;) pause();
#endif
    printf("fake driver: this line is not for stdout\n");
    fflush(stdout);
    if (n) *n = DEVICES;
    for (cl_uint i = 0; ids && i < room && i < DEVICES; i++) ids[i] = (cl_device_id)&devices[i];
    return CL_SUCCESS;
}

#ifdef FAKE_NONSENSE
static const cl_ulong absurd_bytes = 0xfffffffffffffff0u;
static const char *const names[] = {"absurd", "garb\xff\xfe\x01\x1b[31mage"};
#else
static const char *const names[] = {"first", "second", "third"};
#endif

static const cl_ulong memory_bytes = 1u << 28, buffer_bytes = 1u << 26;
static const cl_uint units = 4;

static cl_int CL_API_CALL get_device_info(cl_device_id id, cl_device_info what, size_t room, void *to, size_t *needed) {
    const cl_bool yes = CL_TRUE;
    const cl_uint number = 1024;
    const cl_ulong local_bytes = 32768;
    const size_t group = 256;
    const cl_device_type type = CL_DEVICE_TYPE_GPU;
    int garbage = DEVICES == 2 && ((object *)id)->number == 1;
#ifdef FAKE_HOLLOW
    static const cl_device_info empty[] = {CL_DEVICE_MAX_COMPUTE_UNITS, CL_DEVICE_MAX_WORK_GROUP_SIZE, CL_DEVICE_MAX_MEM_ALLOC_SIZE};
    const cl_ulong nothing = 0;
    if (what == empty[((object *)id)->number])
        return give(&nothing, what == CL_DEVICE_MAX_COMPUTE_UNITS ? sizeof(cl_uint) : sizeof nothing, room, to, needed);
#endif
#ifdef FAKE_NONSENSE
    static char endless[100000];
    memset(endless, 'v', sizeof endless - 1);
    if (!garbage && what == CL_DEVICE_VENDOR) return give_text(endless, room, to, needed);
    if (!garbage && (what == CL_DEVICE_GLOBAL_MEM_SIZE || what == CL_DEVICE_MAX_MEM_ALLOC_SIZE))
        return give(&absurd_bytes, sizeof absurd_bytes, room, to, needed);
#endif
    switch (what) {
    case CL_DEVICE_TYPE: return give(&type, sizeof type, room, to, needed);
    case CL_DEVICE_NAME: return give_text(names[((object *)id)->number], room, to, needed);
    case CL_DEVICE_VENDOR:
        if (garbage && !to) return *needed = ~(size_t)0, CL_SUCCESS; /* more than there is */
        return give_text("nobody", room, to, needed);
    case CL_DEVICE_PLATFORM: return give(&(cl_platform_id){(cl_platform_id)&platform}, sizeof(void *), room, to, needed);
    case CL_DEVICE_VERSION: return give_text(garbage ? "\x80\x81" : "OpenCL 1.2 fake", room, to, needed);
    case CL_DEVICE_OPENCL_C_VERSION: return give_text("OpenCL C 1.2", room, to, needed);
    case CL_DRIVER_VERSION: return give_text("1.0", room, to, needed);
    case CL_DEVICE_MAX_COMPUTE_UNITS: return give(&units, sizeof units, room, to, needed);
    case CL_DEVICE_GLOBAL_MEM_SIZE: return give(&memory_bytes, sizeof memory_bytes, room, to, needed);
    case CL_DEVICE_MAX_MEM_ALLOC_SIZE: return give(&buffer_bytes, sizeof buffer_bytes, room, to, needed);
    case CL_DEVICE_LOCAL_MEM_SIZE: return give(&local_bytes, sizeof local_bytes, room, to, needed);
    case CL_DEVICE_MAX_WORK_GROUP_SIZE: return give(&group, sizeof group, room, to, needed);
    case CL_DEVICE_MEM_BASE_ADDR_ALIGN:
    case CL_DEVICE_MAX_CLOCK_FREQUENCY: return give(&number, sizeof number, room, to, needed);
    case CL_DEVICE_AVAILABLE:
    case CL_DEVICE_ENDIAN_LITTLE:
    case CL_DEVICE_COMPILER_AVAILABLE: return give(&yes, sizeof yes, room, to, needed);
    default: return CL_INVALID_VALUE;
    }
}

/* ---- enough to look as if it worked ---- */

static object *make(cl_int *error) {
    object *o = calloc(1, sizeof *o);
    o->dispatch = &table;
    if (error) *error = CL_SUCCESS;
    return o;
}

static cl_context CL_API_CALL create_context(const cl_context_properties *properties, cl_uint n, const cl_device_id *ids,
                                             void(CL_CALLBACK *notify)(const char *, const void *, size_t, void *),
                                             void *user, cl_int *error) {
    (void)properties, (void)n, (void)notify, (void)user, (void)ids;
#ifdef FAKE_LATE
    if (((object *)ids[0])->number == 1) abort();
#endif
#ifdef FAKE_STALL
    for (;;) pause();
#endif
#ifdef FAKE_EXIT
    exit(0);
#endif
#ifdef FAKE_WRONG
    return (cl_context)make(error);
#else
    *error = CL_OUT_OF_RESOURCES;
    return NULL;
#endif
}

static cl_command_queue CL_API_CALL create_queue(cl_context c, cl_device_id d, cl_command_queue_properties p, cl_int *error) {
    (void)c, (void)d, (void)p;
    return (cl_command_queue)make(error);
}

static cl_mem CL_API_CALL create_buffer(cl_context c, cl_mem_flags flags, size_t bytes, void *host, cl_int *error) {
    (void)c, (void)flags, (void)bytes, (void)host;
    return (cl_mem)make(error);
}

static cl_program CL_API_CALL create_program(cl_context c, cl_uint n, const char **texts, const size_t *lengths,
                                             cl_int *error) {
    (void)c, (void)n, (void)texts, (void)lengths;
    return (cl_program)make(error);
}

static cl_int CL_API_CALL build_program(cl_program p, cl_uint n, const cl_device_id *d, const char *options,
                                        void(CL_CALLBACK *notify)(cl_program, void *), void *user) {
    (void)p, (void)n, (void)d, (void)options, (void)notify, (void)user;
    return CL_SUCCESS;
}

static cl_kernel CL_API_CALL create_kernel(cl_program p, const char *name, cl_int *error) {
    (void)p, (void)name;
    return (cl_kernel)make(error);
}

static cl_int CL_API_CALL set_arg(cl_kernel k, cl_uint i, size_t bytes, const void *value) {
    (void)k, (void)i, (void)bytes, (void)value;
    return CL_SUCCESS;
}

static cl_int CL_API_CALL enqueue_kernel(cl_command_queue q, cl_kernel k, cl_uint dims, const size_t *offset,
                                         const size_t *global, const size_t *local, cl_uint n, const cl_event *wait,
                                         cl_event *event) {
    (void)q, (void)k, (void)dims, (void)offset, (void)global, (void)local, (void)n, (void)wait, (void)event;
    return CL_SUCCESS;
}

static cl_int CL_API_CALL read_buffer(cl_command_queue q, cl_mem m, cl_bool block, size_t offset, size_t bytes, void *to,
                                      cl_uint n, const cl_event *wait, cl_event *event) {
    (void)q, (void)m, (void)block, (void)offset, (void)n, (void)wait, (void)event;
    memset(to, 0, bytes);
    return CL_SUCCESS;
}

static cl_int CL_API_CALL write_buffer(cl_command_queue q, cl_mem m, cl_bool block, size_t offset, size_t bytes,
                                       const void *from, cl_uint n, const cl_event *wait, cl_event *event) {
    (void)q, (void)m, (void)block, (void)offset, (void)bytes, (void)from, (void)n, (void)wait, (void)event;
    return CL_SUCCESS;
}

static cl_int CL_API_CALL group_info(cl_kernel k, cl_device_id d, cl_kernel_work_group_info what, size_t room, void *to,
                                     size_t *needed) {
    const size_t limit = 64;
    (void)k, (void)d, (void)what;
    return give(&limit, sizeof limit, room, to, needed);
}

static cl_int CL_API_CALL program_info(cl_program p, cl_program_info what, size_t room, void *to, size_t *needed) {
    (void)p, (void)what, (void)room, (void)to, (void)needed;
    return CL_INVALID_VALUE;
}

static cl_int CL_API_CALL release(void *o) {
    (void)o;
    return CL_SUCCESS;
}

static cl_int CL_API_CALL finish(cl_command_queue q) {
    (void)q;
    return CL_SUCCESS;
}

#ifdef FAKE_HELPER
static void start_helper(void) {
    if (fork() != 0) return;
    setsid();
    sleep(20);
    _exit(0);
}
#endif

__attribute__((constructor)) static void fill_table(void) {
#ifdef FAKE_HELPER
    start_helper();
#endif
#ifdef FAKE_LOAD
    abort();
#endif
    table.clGetPlatformInfo = get_platform_info;
    table.clGetDeviceIDs = get_device_ids;
    table.clGetDeviceInfo = get_device_info;
    table.clCreateContext = create_context;
    table.clCreateCommandQueue = create_queue;
    table.clCreateBuffer = create_buffer;
    table.clCreateProgramWithSource = create_program;
    table.clBuildProgram = build_program;
    table.clCreateKernel = create_kernel;
    table.clSetKernelArg = set_arg;
    table.clEnqueueNDRangeKernel = enqueue_kernel;
    table.clEnqueueReadBuffer = read_buffer;
    table.clEnqueueWriteBuffer = write_buffer;
    table.clGetKernelWorkGroupInfo = group_info;
    table.clGetProgramInfo = program_info;
    table.clFinish = finish;
    table.clFlush = finish;
    table.clReleaseContext = (void *)release;
    table.clReleaseCommandQueue = (void *)release;
    table.clReleaseMemObject = (void *)release;
    table.clReleaseProgram = (void *)release;
    table.clReleaseKernel = (void *)release;
}

static cl_int CL_API_CALL platform_ids(cl_uint room, cl_platform_id *ids, cl_uint *n) {
    if (n) *n = 1;
    if (ids && room) ids[0] = (cl_platform_id)&platform;
    return CL_SUCCESS;
}

EXPORT cl_int CL_API_CALL clIcdGetPlatformIDsKHR(cl_uint room, cl_platform_id *ids, cl_uint *n);
EXPORT cl_int CL_API_CALL clIcdGetPlatformIDsKHR(cl_uint room, cl_platform_id *ids, cl_uint *n) {
    return platform_ids(room, ids, n);
}

EXPORT cl_int CL_API_CALL clGetPlatformInfo(cl_platform_id id, cl_platform_info what, size_t room, void *to,
                                            size_t *needed) {
    return get_platform_info(id, what, room, to, needed);
}

EXPORT void *CL_API_CALL clGetExtensionFunctionAddress(const char *name) {
    if (strcmp(name, "clIcdGetPlatformIDsKHR") == 0) return (void *)platform_ids;
    return NULL;
}
