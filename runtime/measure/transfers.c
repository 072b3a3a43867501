/* Transfers between host and device, and builds of programs. */
#include <stdio.h>
#include <string.h>

#include "runtime/device/cl.h"
#include "runtime/measure/limits.h"
#include "runtime/trial/sample.h"

/* ---- transfers ---- */

typedef struct transfer {
    clt_device *device;
    bool upload, pinned;
    size_t bytes;
    cl_mem memory, host_memory; /* host_memory: pinned, mapped as `host` */
    unsigned char *host;
    unsigned char *check;
} transfer;

static clt_status run_transfer(void *user, int times, double *seconds) {
    transfer *t = user;
    cl_command_queue queue = t->device->queue;
    CLT_TRY(clt_device_finish(t->device));
    double start = clt_seconds();
    for (int i = 0; i < times; i++)
        CLT_TRY_CL(t->device, "transferring",
                   t->upload ? clEnqueueWriteBuffer(queue, t->memory, CL_TRUE, 0, t->bytes, t->host, 0, NULL, NULL)
                             : clEnqueueReadBuffer(queue, t->memory, CL_TRUE, 0, t->bytes, t->host, 0, NULL, NULL));
    *seconds = (clt_seconds() - start) / times;
    return CLT_OK;
}

static clt_status open_transfer(transfer *t) {
    cl_int error;
    clt_device *d = t->device;
    t->check = clt_alloc(t->bytes);
    if (!t->check) return clt_fail_memory(t->bytes);
    t->memory = clCreateBuffer(d->context, CL_MEM_READ_WRITE, t->bytes, NULL, &error);
    error = clt_cl_made(t->memory, error);
    if (error != CL_SUCCESS) return clt_memory_fail(d, t->bytes, error);
    if (!t->pinned) {
        t->host = clt_alloc(t->bytes);
        return t->host ? CLT_OK : clt_fail_memory(t->bytes);
    }
    t->host_memory = clCreateBuffer(d->context, CL_MEM_READ_WRITE | CL_MEM_ALLOC_HOST_PTR, t->bytes, NULL, &error);
    error = clt_cl_made(t->host_memory, error);
    if (error != CL_SUCCESS) return clt_memory_fail(d, t->bytes, error);
    t->host = clEnqueueMapBuffer(d->queue, t->host_memory, CL_TRUE, CL_MAP_READ | CL_MAP_WRITE, 0, t->bytes, 0, NULL,
                                 NULL, &error);
    error = clt_cl_made(t->host, error);
    return error == CL_SUCCESS ? CLT_OK : clt_cl_fail(d, "mapping host memory", error);
}

static void close_transfer(transfer *t) {
    if (t->pinned && t->host) clEnqueueUnmapMemObject(t->device->queue, t->host_memory, t->host, 0, NULL, NULL);
    else if (!t->pinned) clt_free(t->host);
    clFinish(t->device->queue);
    if (t->host_memory) clReleaseMemObject(t->host_memory);
    if (t->memory) clReleaseMemObject(t->memory);
    clt_free(t->check);
}

/* Bytes that no shift by a power of two brings over each other. */
static void fill(unsigned char *bytes, size_t n, unsigned seed) {
    for (size_t i = 0; i < n; i++) bytes[i] = (unsigned char)(i % 251 + seed);
}

/* What the timed transfers moved must have arrived. */
static clt_status timed_transfer(transfer *t, const clt_measure_options *options, clt_measurement *m) {
    cl_command_queue queue = t->device->queue;
    CLT_TRY(open_transfer(t));
    fill(t->check, t->bytes, 7);
    memset(t->host, 0, t->bytes);
    if (t->upload) fill(t->host, t->bytes, 7);
    else
        CLT_TRY_CL(t->device, "writing a buffer",
                   clEnqueueWriteBuffer(queue, t->memory, CL_TRUE, 0, t->bytes, t->check, 0, NULL, NULL));
    CLT_TRY(clt_sample_times(run_transfer, t, options, m));
    if (t->upload) {
        memset(t->host, 0, t->bytes);
        CLT_TRY_CL(t->device, "reading a buffer",
                   clEnqueueReadBuffer(queue, t->memory, CL_TRUE, 0, t->bytes, t->host, 0, NULL, NULL));
    }
    m->wrong = memcmp(t->host, t->check, t->bytes) != 0;
    m->amount = (double)t->bytes;
    return m->wrong ? clt_fail(CLT_E_DEVICE, "%s: bytes were lost on the way", t->device->info.name) : CLT_OK;
}

clt_status clt_measure_transfer(clt_device *device, clt_limit limit, const clt_measure_options *options,
                                clt_measurement *m) {
    uint64_t bytes = CLT_MIN(device->info.max_buffer_bytes, device->info.memory_bytes / 16);
    transfer t = {.device = device,
                  .upload = limit == CLT_LIMIT_UPLOAD_PINNED || limit == CLT_LIMIT_UPLOAD_PAGEABLE,
                  .pinned = limit == CLT_LIMIT_UPLOAD_PINNED || limit == CLT_LIMIT_DOWNLOAD_PINNED,
                  .bytes = (size_t)CLT_MAX(CLT_MIN(bytes, (uint64_t)64 << 20), 4096)};
    clt_status status = timed_transfer(&t, options, m);
    close_transfer(&t);
    return status;
}

/* ---- builds ---- */

enum { SOURCE = 1024 };

/* A loop with a barrier and an inner branch: work for a compiler, as small kernels have it. `salt` makes
 * the text a new one, that no cache knows. */
static void write_source(char source[SOURCE], unsigned long long salt) {
    snprintf(source, SOURCE,
             "/* %llu */\n"
             "kernel void build_probe(global float *y, float x, int n) {\n"
             "    local float kept[64];\n"
             "    int lane = get_local_id(0);\n"
             "    float sum = %llu.0f - %llu.0f;\n"
             "    for (int i = 0; i < n; i++) {\n"
             "        kept[lane] = x * i;\n"
             "        barrier(CLK_LOCAL_MEM_FENCE);\n"
             "        sum += lane & 1 ? kept[lane ^ 1] : kept[lane];\n"
             "        barrier(CLK_LOCAL_MEM_FENCE);\n"
             "    }\n"
             "    y[get_global_id(0)] = sum;\n"
             "}\n",
             salt, salt % 1000, salt % 1000);
}

typedef struct build {
    clt_device *device;
    cl_mem y;
    bool cached;
    unsigned long long salt;
    unsigned char *binary;
    size_t binary_bytes;
    bool wrong;
} build;

static clt_status run_program(build *b, cl_program program) {
    cl_int error;
    clt_device *d = b->device;
    float x = 1, got[64] = {0};
    cl_int n = 4;
    const char *what = "running what was built";
    const size_t items = 64;
    CLT_TRY_CL(d, "building", clBuildProgram(program, 1, &d->id, "", NULL, NULL));
    cl_kernel kernel = clCreateKernel(program, "build_probe", &error);
    if (error != CL_SUCCESS) return clt_cl_fail(d, "making a kernel", error);
    error = clSetKernelArg(kernel, 0, sizeof b->y, &b->y);
    if (error == CL_SUCCESS) error = clSetKernelArg(kernel, 1, sizeof x, &x);
    if (error == CL_SUCCESS) error = clSetKernelArg(kernel, 2, sizeof n, &n);
    if (error == CL_SUCCESS) error = clEnqueueNDRangeKernel(d->queue, kernel, 1, NULL, &items, &items, 0, NULL, NULL);
    clt_status status = error == CL_SUCCESS ? clt_cl_before_blocking(d, what) : clt_cl_fail(d, what, error);
    if (status == CLT_OK) error = clEnqueueReadBuffer(d->queue, b->y, CL_TRUE, 0, sizeof got, got, 0, NULL, NULL);
    CLT_RELEASE(d, clReleaseKernel(kernel));
    CLT_TRY(status);
    if (error != CL_SUCCESS) return clt_cl_fail(d, what, error);
    for (int i = 0; i < 64; i++) b->wrong |= got[i] != 6; /* 0 + 1 + 2 + 3 */
    return CLT_OK;
}

/* The binary after the run: some drivers compile a part only then. */
static clt_status keep_binary(build *b, cl_program program) {
    size_t bytes = 0;
    if (b->binary) return CLT_OK;
    CLT_TRY_CL(b->device, "asking for a binary",
               clGetProgramInfo(program, CL_PROGRAM_BINARY_SIZES, sizeof bytes, &bytes, NULL));
    if (bytes == 0 || bytes > (size_t)1 << 28) return clt_fail(CLT_E_UNSUPPORTED, "the driver gives no binaries");
    b->binary = clt_alloc(bytes);
    b->binary_bytes = bytes;
    if (!b->binary) return clt_fail_memory(bytes);
    CLT_TRY_CL(b->device, "asking for a binary",
               clGetProgramInfo(program, CL_PROGRAM_BINARIES, sizeof b->binary, &b->binary, NULL));
    return CLT_OK;
}

static clt_status build_once(build *b, bool from_binary) {
    char source[SOURCE];
    const char *text = source;
    const unsigned char *binary = b->binary;
    cl_int error, accepted = CL_SUCCESS;
    if (clt_compiles_nothing(b->device)) return clt_fail(CLT_E_UNSUPPORTED, "nothing is compiled with CLTRAIN_COMPILER=never");
    write_source(source, b->salt + (unsigned long long)(1e9 * clt_seconds()));
    cl_program program =
        from_binary ? clCreateProgramWithBinary(b->device->context, 1, &b->device->id, &b->binary_bytes, &binary,
                                                &accepted, &error)
                    : clCreateProgramWithSource(b->device->context, 1, &text, NULL, &error);
    if (error != CL_SUCCESS || accepted != CL_SUCCESS) {
        if (error == CL_SUCCESS) clReleaseProgram(program);
        return clt_cl_fail(b->device, "making a program", error != CL_SUCCESS ? error : accepted);
    }
    clt_status status = run_program(b, program);
    if (status == CLT_OK && !from_binary && b->cached) status = keep_binary(b, program);
    CLT_RELEASE(b->device, clReleaseProgram(program));
    return status;
}

static clt_status run_build(void *user, int times, double *seconds) {
    build *b = user;
    double start = clt_seconds();
    for (int i = 0; i < times; i++) CLT_TRY(build_once(b, b->cached));
    *seconds = (clt_seconds() - start) / times;
    return CLT_OK;
}

/* Nothing to warm up: each is a first one. */
static clt_status build_cold(build *b, const clt_measure_options *options, clt_measurement *m) {
    double start = clt_seconds(), seconds = options && options->seconds > 0 ? options->seconds : 0.25;
    int most = options && options->most_samples > 0 ? options->most_samples : CLT_MOST_SAMPLES;
    while (m->n < CLT_MIN(most, CLT_MOST_SAMPLES) && (m->n == 0 || clt_seconds() - start < seconds)) {
        CLT_TRY(run_build(b, 1, &m->seconds[m->n]));
        m->n++;
    }
    return CLT_OK;
}

clt_status clt_measure_build(clt_device *device, clt_limit limit, const clt_measure_options *options,
                             clt_measurement *m) {
    cl_int error;
    build b = {.device = device, .cached = limit == CLT_LIMIT_BUILD_CACHED, .salt = (uintptr_t)&b};
    b.y = clCreateBuffer(device->context, CL_MEM_READ_WRITE, 64 * sizeof(float), NULL, &error);
    if (error != CL_SUCCESS) return clt_memory_fail(device, 64 * sizeof(float), error);
    clt_status status = build_once(&b, false); /* the first starts the compiler too */
    if (status == CLT_OK) status = b.cached ? clt_sample_times(run_build, &b, options, m) : build_cold(&b, options, m);
    if (status == CLT_OK && b.wrong) {
        m->wrong = true;
        status = clt_fail(CLT_E_DEVICE, "%s: what was built computed something else than it should", device->info.name);
    }
    clReleaseMemObject(b.y);
    clt_free(b.binary);
    return status;
}
