/*
 * Compiles kernels for a process that is about to launch them. The library starts it (runtime/device/helper.c); it is not for people.
 *
 * Some drivers compile a kernel when it is first launched, one at a time in a process, and keep it in a cache on disk. So this process launches the
 * kernels of a plan too, each once and on memory of its own, the last first, and the other finds them in the cache.
 *
 *     cltrain-compile PLATFORM DEVICE OPTIONS
 *
 * with the names of the platform and the device, and the compiler's options. Standard input has batches; a line is followed by as many bytes as it says:
 *
 *     batch BYTES
 *     program BYTES                              its source; programs are counted from 0
 *     kernel PROGRAM NAME DIMENSIONS GLOBAL GLOBAL GLOBAL LOCAL LOCAL LOCAL
 *     memory BYTES | local BYTES | value HEX     the last kernel's next argument
 *
 * It ends soon after standard input does, or when there was nothing to do for IDLE_SECONDS.
 */
#define CL_USE_DEPRECATED_OPENCL_1_2_APIS
#define CL_TARGET_OPENCL_VERSION 120
#define _POSIX_C_SOURCE 200809L
#include <CL/cl.h>

#include <dirent.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* PoCL compiles kernels apart for launches that have this many work-items, or more, in one dimension. */
enum { LARGE_GRID = 65535 };
enum { IDLE_SECONDS = 10, MOST_SECONDS = 600, LAST_SECONDS = 20, MOST_BATCH = 1 << 26, MOST_PROGRAMS = 256, MOST_KERNELS = 4096, MOST_ARGUMENTS = 64, MOST_VALUE = 128,
       ALIGNMENT = 4096 };

typedef struct argument {
    char kind; /* m, l or v */
    size_t bytes;
    unsigned char value[MOST_VALUE];
} argument;

typedef struct launch {
    int program, dimensions, n_arguments;
    char name[64];
    size_t global[3], local[3];
    argument arguments[MOST_ARGUMENTS];
} launch;

typedef struct work {
    cl_device_id device;
    cl_context context;
    cl_command_queue queue;
    const char *options;
    cl_program programs[MOST_PROGRAMS];
    int n_programs;
    struct source {
        const char *text;
        size_t bytes;
    } sources[MOST_PROGRAMS]; /* of programs of the batch */
} work;

/* ---- the device ---- */

static bool has_name(cl_device_id device, const char *name) {
    char found[1024] = "";
    return clGetDeviceInfo(device, CL_DEVICE_NAME, sizeof found, found, NULL) == CL_SUCCESS && !strcmp(found, name);
}

static bool find_device(cl_platform_id platform, const char *name, cl_device_id *device) {
    cl_device_id devices[64];
    cl_uint n = 0;
    if (clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 64, devices, &n) != CL_SUCCESS) return false;
    for (cl_uint i = 0; i < n && i < 64; i++)
        if (has_name(devices[i], name)) return *device = devices[i], true;
    return false;
}

static bool find(const char *platform, const char *name, cl_device_id *device) {
    cl_platform_id platforms[64];
    cl_uint n = 0;
    if (clGetPlatformIDs(64, platforms, &n) != CL_SUCCESS) return false;
    for (cl_uint i = 0; i < n && i < 64; i++) {
        char found[1024] = "";
        if (clGetPlatformInfo(platforms[i], CL_PLATFORM_NAME, sizeof found, found, NULL) == CL_SUCCESS && !strcmp(found, platform) &&
            find_device(platforms[i], name, device))
            return true;
    }
    return false;
}

static cl_program build(const work *w, const char *source, size_t bytes) {
    cl_program program = clCreateProgramWithSource(w->context, 1, &source, &bytes, NULL);
    if (program) clBuildProgram(program, 1, &w->device, w->options, NULL, NULL); /* kernels of what does not build cannot be made */
    return program;
}

/* A compiler has much to read before its first program. */
static bool open_device(work *w, char **arguments) {
    static const char nothing[] = "kernel void nothing(void) {}";
    if (!find(arguments[1], arguments[2], &w->device)) return false;
    w->options = arguments[3];
    w->context = clCreateContext(NULL, 1, &w->device, NULL, NULL, NULL);
    w->queue = w->context ? clCreateCommandQueue(w->context, w->device, 0, NULL) : NULL;
    if (!w->queue) return false;
    clReleaseProgram(build(w, nothing, sizeof nothing - 1));
    return true;
}

/* ---- launching ---- */

/* Where vectors may begin. */
static void *align(char *memory) {
    return memory + (ALIGNMENT - (uintptr_t)memory % ALIGNMENT);
}

static bool set_argument(const work *w, cl_kernel kernel, cl_uint index, const argument *a, void **host, cl_mem *memory) {
    if (a->kind == 'v') return clSetKernelArg(kernel, index, a->bytes, a->value) == CL_SUCCESS;
    if (a->kind == 'l') return clSetKernelArg(kernel, index, a->bytes, NULL) == CL_SUCCESS;
    *host = calloc(1, a->bytes + ALIGNMENT); /* zeros, which take no memory until they are written if there are many */
    if (*host) *memory = clCreateBuffer(w->context, CL_MEM_USE_HOST_PTR, a->bytes, align(*host), NULL);
    return *memory && clSetKernelArg(kernel, index, sizeof *memory, memory) == CL_SUCCESS;
}

/* One work-group, unless that would be compiled as something else. */
static void choose_grid(const launch *l, size_t grid[3]) {
    int widest = 0;
    for (int i = 1; i < l->dimensions; i++)
        if (l->global[i] > l->global[widest]) widest = i;
    for (int i = 0; i < l->dimensions; i++) grid[i] = i == widest && l->global[i] >= LARGE_GRID ? l->global[i] : l->local[i];
}

static void launch_once(const work *w, const launch *l) {
    void *host[MOST_ARGUMENTS] = {0};
    cl_mem memory[MOST_ARGUMENTS] = {0};
    size_t grid[3];
    cl_kernel kernel = clCreateKernel(w->programs[l->program], l->name, NULL);
    bool ready = kernel != NULL;
    for (int i = 0; i < l->n_arguments && ready; i++) ready = set_argument(w, kernel, (cl_uint)i, &l->arguments[i], &host[i], &memory[i]);
    choose_grid(l, grid);
    if (ready && clEnqueueNDRangeKernel(w->queue, kernel, (cl_uint)l->dimensions, NULL, grid, l->local, 0, NULL, NULL) == CL_SUCCESS) clFinish(w->queue);
    for (int i = 0; i < l->n_arguments; i++) {
        if (memory[i]) clReleaseMemObject(memory[i]);
        free(host[i]);
    }
    if (kernel) clReleaseKernel(kernel);
}

/* ---- reading ---- */

static void fail(const char *what) {
    fprintf(stderr, "cltrain-compile: standard input: %s\n", what);
    exit(2);
}

static int digit_of(char c) {
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static void parse_value(const char *hex, argument *a) {
    for (a->kind = 'v'; digit_of(hex[0]) >= 0 && digit_of(hex[1]) >= 0; hex += 2) {
        if (a->bytes == MOST_VALUE) fail("a value is too long");
        a->value[a->bytes++] = (unsigned char)(digit_of(hex[0]) << 4 | digit_of(hex[1]));
    }
    if (*hex || !a->bytes) fail("a value is not hexadecimal");
}

static void parse_argument(const char *line, launch *l) {
    char hex[2 * MOST_VALUE + 2];
    argument a = {0};
    if (l->n_arguments == MOST_ARGUMENTS) fail("a kernel has too many arguments");
    if (sscanf(line, "value %257s", hex) == 1) parse_value(hex, &a);
    else if (sscanf(line, "memory %zu", &a.bytes) == 1) a.kind = 'm';
    else if (sscanf(line, "local %zu", &a.bytes) == 1) a.kind = 'l';
    if (!a.kind || !a.bytes || a.bytes > SIZE_MAX / 2) fail("expected a program, a kernel or an argument");
    l->arguments[l->n_arguments++] = a;
}

static bool parse_kernel(const char *line, const work *w, launch *l) {
    *l = (launch){0};
    if (sscanf(line, "kernel %d %63s %d %zu %zu %zu %zu %zu %zu", &l->program, l->name, &l->dimensions, &l->global[0], &l->global[1], &l->global[2],
               &l->local[0], &l->local[1], &l->local[2]) != 9)
        return false;
    if (l->program < 0 || l->program >= w->n_programs || l->dimensions < 1 || l->dimensions > 3) fail("a kernel of no program, or no dimensions");
    return true;
}

/* Behind the line at `at`, which ends with a zero from now on. */
static char *end_line(char *at, const char *end) {
    char *newline = memchr(at, '\n', (size_t)(end - at));
    if (!newline) fail("a line does not end");
    *newline = 0;
    return newline + 1;
}

static int parse(char *at, const char *end, work *w, launch *launches) {
    int n = 0;
    for (char *next; at < end; at = next) {
        size_t bytes;
        next = end_line(at, end);
        if (sscanf(at, "program %zu", &bytes) == 1) {
            if (bytes > (size_t)(end - next) || w->n_programs == MOST_PROGRAMS) fail("a program is too large, or one too many");
            w->sources[w->n_programs++] = (struct source){next, bytes};
            next += bytes;
        } else if (n < MOST_KERNELS && parse_kernel(at, w, &launches[n])) {
            n++;
        } else if (n == 0) {
            fail("an argument of no kernel");
        } else {
            parse_argument(at, &launches[n - 1]);
        }
    }
    return n;
}

/* ---- batches, read while others are worked on ---- */

typedef struct batch {
    char *data;
    size_t bytes;
    struct batch *next;
} batch;

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static batch *first;
static bool working = true; /* or getting ready for it */
static atomic_bool ended;   /* standard input */

static bool is_idle(void) {
    pthread_mutex_lock(&mutex);
    bool idle = !working && !first;
    pthread_mutex_unlock(&mutex);
    return idle;
}

/* False when there will be no more. */
static bool wait_for_input(void) {
    struct pollfd input = {.fd = 0, .events = POLLIN};
    for (int seconds = 0, idle = 0; seconds < MOST_SECONDS && idle < IDLE_SECONDS; seconds++) {
        int ready = poll(&input, 1, 1000);
        if (ready) return ready > 0;
        idle = is_idle() ? idle + 1 : 0;
    }
    return false;
}

static bool read_batch(void) {
    size_t bytes;
    char line[64];
    if (!wait_for_input() || !fgets(line, sizeof line, stdin)) return false;
    if (sscanf(line, "batch %zu", &bytes) != 1 || bytes > MOST_BATCH) return false;
    batch *b = calloc(1, sizeof *b);
    if (!b || !(b->data = malloc(bytes + 1)) || fread(b->data, 1, bytes, stdin) != bytes) return false;
    b->bytes = bytes;
    pthread_mutex_lock(&mutex);
    batch **end = &first;
    while (*end) end = &(*end)->next;
    *end = b;
    pthread_cond_signal(&changed);
    pthread_mutex_unlock(&mutex);
    return true;
}

/* Nobody waits for it any more, but a kernel that is begun is finished, so that nothing half is left in the driver's cache. */
static void *read_all(void *unused) {
    while (read_batch()) {}
    pthread_mutex_lock(&mutex);
    ended = true;
    pthread_cond_signal(&changed);
    pthread_mutex_unlock(&mutex);
    sleep(LAST_SECONDS);
    _exit(0);
    return unused;
}

static batch *take_batch(void) {
    pthread_mutex_lock(&mutex);
    working = false;
    while (!first && !ended) pthread_cond_wait(&changed, &mutex);
    working = true;
    batch *b = ended ? NULL : first;
    if (b) first = b->next;
    pthread_mutex_unlock(&mutex);
    return b;
}

static void work_on(work *w, batch *b) {
    static launch launches[MOST_KERNELS];
    int built = w->n_programs, n = parse(b->data, b->data + b->bytes, w, launches);
    for (int i = w->n_programs; i-- > built && !ended;) w->programs[i] = build(w, w->sources[i].text, w->sources[i].bytes);
    while (n-- > 0 && !ended) launch_once(w, &launches[n]);
    free(b->data);
    free(b);
}

/* What the other process has open is none of this one's. */
static void close_files(void) {
    DIR *folder = opendir("/proc/self/fd");
    for (struct dirent *entry; folder && (entry = readdir(folder));) {
        int file = atoi(entry->d_name);
        if (file > 2 && file != dirfd(folder)) close(file);
    }
    if (folder) closedir(folder);
}

int main(int count, char **arguments) {
    static work w;
    pthread_t reader;
    if (count != 4) {
        fprintf(stderr, "cltrain-compile is started by libcltrain, to compile kernels beside it\n");
        return 2;
    }
    close_files();
    setvbuf(stdin, NULL, _IONBF, 0); /* what is read ahead poll() would not tell of */
    /* On its own: whoever started it waits for no more than this. */
    pid_t child = fork();
    if (child) return child > 0 ? 0 : 1;
    if (pthread_create(&reader, NULL, read_all, NULL) || !open_device(&w, arguments)) return 1;
    for (batch *b; (b = take_batch());) work_on(&w, b);
    _exit(0);
}
