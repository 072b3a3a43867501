/*
 * Capabilities by experiment: a small kernel is built, run, and its result
 * compared. Extension strings are not believed: NVIDIA computes with half and
 * does not say so; others say so and fail. Verdicts are remembered in a file for each
 * device and driver.
 */
#include <stdio.h>
#include <string.h>

#include "runtime/base/file.h"
#include "runtime/device/cl.h"
#include "runtime/device/kernel_source.h"

/* Each test writes 1.5 + 2.25 (or a sum of ones) to y[0] and the wanted value is given. */
typedef struct capability_test {
    const char *name;
    const char *source;
    float wanted;
    size_t group;       /* work-items, all in one group; 0: 64 */
    const char *vendor; /* of the only devices that may have it: others are not asked; NULL: all */
    bool is_unit;       /* `source` is in front of the texts of a matrix unit and its test */
} capability_test;

#define UNIT(unit, format) \
    "#define UNIT UNIT_" unit "\n#define UNIT_FORMAT UNIT_" format "\n#define UNIT_EMULATED 0\n"
#define NVIDIA_UNIT(format)    UNIT("MMA", format), 1.0f, 64, "nvidia", true
#define INTEL8_UNIT(format)    UNIT("DPAS8", format), 1.0f, 16, "intel", true
#define INTEL16_UNIT(format)   UNIT("DPAS16", format), 1.0f, 32, "intel", true
#define AMD_UNIT(kind, format, lanes) UNIT(kind, format), 1.0f, 2 * lanes, "advanced micro|amd", true

static const capability_test tests[CLT_CAP_COUNT_] = {
    [CLT_CAP_FP16] = {"fp16",
                      "#pragma OPENCL EXTENSION cl_khr_fp16 : enable\n"
                      "kernel void test(global float *y, float x) {\n"
                      "    half h = (half)x;\n"
                      "    if (get_global_id(0) == 0) y[0] = (float)(h * h + (half)1.5f);\n"
                      "}\n",
                      7.75f},
    [CLT_CAP_FP64] = {"fp64",
                      "#pragma OPENCL EXTENSION cl_khr_fp64 : enable\n"
                      "kernel void test(global float *y, float x) {\n"
                      "    double d = (double)x + 1e-12;\n"
                      "    if (get_global_id(0) == 0) y[0] = (float)((d - (double)x) * 1e12 + 0.5) > 1.4f ? 3.0f : 0.0f;\n"
                      "}\n",
                      3.0f},
    [CLT_CAP_SUBGROUPS] = {"subgroups",
                           "#pragma OPENCL EXTENSION cl_khr_subgroups : enable\n"
                           "kernel void test(global float *y, float x) {\n"
                           "    float sum = sub_group_reduce_add(x);\n"
                           "    if (get_global_id(0) == 0)\n"
                           "        y[0] = sum == x * (float)get_sub_group_size() && get_sub_group_size() > 1 ? 1.0f : 0.0f;\n"
                           "}\n",
                           1.0f},
    [CLT_CAP_GROUPS] = {"groups",
                        "kernel __attribute__((reqd_work_group_size(256, 1, 1))) void test(global float *y, float x) {\n"
                        "    local float all[256];\n"
                        "    int item = get_local_id(0);\n"
                        "    all[item] = x * item;\n"
                        "    barrier(CLK_LOCAL_MEM_FENCE);\n"
                        "    float other = all[255 - item];\n"
                        "    barrier(CLK_LOCAL_MEM_FENCE);\n"
                        "    all[item] = other;\n"
                        "    barrier(CLK_LOCAL_MEM_FENCE);\n"
                        "    if (item == 0) y[0] = all[0] + all[200];\n"
                        "}\n",
                        775.0f, 256},
    [CLT_CAP_MMA_TF32] = {"mma_tf32", NVIDIA_UNIT("TF32")},
    [CLT_CAP_MMA_F16] = {"mma_f16", NVIDIA_UNIT("F16")},
    [CLT_CAP_MMA_BF16] = {"mma_bf16", NVIDIA_UNIT("BF16")},
    [CLT_CAP_DPAS8_F16] = {"dpas8_f16", INTEL8_UNIT("F16")},
    [CLT_CAP_DPAS8_BF16] = {"dpas8_bf16", INTEL8_UNIT("BF16")},
    [CLT_CAP_DPAS16_TF32] = {"dpas16_tf32", INTEL16_UNIT("TF32")},
    [CLT_CAP_DPAS16_F16] = {"dpas16_f16", INTEL16_UNIT("F16")},
    [CLT_CAP_DPAS16_BF16] = {"dpas16_bf16", INTEL16_UNIT("BF16")},
    [CLT_CAP_WMMA_F16] = {"wmma_f16", AMD_UNIT("WMMA", "F16", 32)},
    [CLT_CAP_WMMA_BF16] = {"wmma_bf16", AMD_UNIT("WMMA", "BF16", 32)},
    [CLT_CAP_MFMA_F16] = {"mfma_f16", AMD_UNIT("MFMA", "F16", 64)},
    [CLT_CAP_MFMA_BF16] = {"mfma_bf16", AMD_UNIT("MFMA", "BF16", 64)},
    /* 2.5078125 lies half way between two values, and goes to the even one below. */
    [CLT_CAP_BF16_STORAGE] = {"bf16_storage",
                              "kernel void test(global float *y, float x) {\n"
                              "    local ushort kept[64];\n"
                              "    uint bits = as_uint(x + 0.0078125f);\n"
                              "    kept[get_local_id(0)] = (ushort)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);\n"
                              "    barrier(CLK_LOCAL_MEM_FENCE);\n"
                              "    if (get_global_id(0) == 0) y[0] = as_float((uint)kept[63 - get_local_id(0)] << 16);\n"
                              "}\n",
                              2.5f},
    /* What 100000 steps of a linear congruential generator leave. */
    [CLT_CAP_LONG_LOOPS] = {"long_loops",
                            "kernel void test(global float *y, float x) {\n"
                            "    uint state = 1;\n"
                            "    if (get_global_id(0)) return;\n"
                            "    for (int i = 0; i < (int)(x * 40000); i++) state = state * 1664525u + 1013904223u;\n"
                            "    y[0] = (float)(state >> 16);\n"
                            "}\n",
                            10591.0f},
};

const char *clt_capability_name(clt_capability capability) {
    return (unsigned)capability < CLT_CAP_COUNT_ ? tests[capability].name : "?";
}

/* ---- masking ---- */

clt_status clt_capability_list_check(const char *name, const char *list) {
    const char *names[CLT_CAP_COUNT_];
    for (int i = 0; i < CLT_CAP_COUNT_; i++) names[i] = tests[i].name;
    return clt_list_check(name, list, false, names, CLT_CAP_COUNT_);
}

/* ---- the experiment ---- */

/* A test's whole text. */
static void test_text(const clt_device *device, const capability_test *test, clt_text *text) {
    static const char *const parts[] = {"matrix/unit.cl", "matrix/test.cl"};
    clt_text_add(text, "%s", test->source);
    for (size_t i = 0; test->is_unit && i < CLT_COUNT_OF(parts); i++)
        clt_text_add(text, "%s", clt_kernel_source_find(device, parts[i]));
}

/* Some drivers print what does not build: a vendor's instructions are tried on its GPUs alone. */
static bool may_have(const clt_device *device, const capability_test *test) {
    if (!test->vendor) return true;
    if (device->info.type == CLT_DEVICE_CPU) return false;
    char fragment[32];
    for (const char *at = test->vendor; *at; at += strcspn(at, "|"), at += *at == '|') {
        snprintf(fragment, sizeof fragment, "%.*s", (int)strcspn(at, "|"), at);
        if (clt_text_contains(device->info.vendor, fragment)) return true;
    }
    return false;
}

/* What is known, as in the file: never renumbered. LACKS: as older versions of this library wrote it, without why. */
typedef enum verdict { UNKNOWN = -1, LACKS = 0, HAS = 1, NOT_BUILT = 2, NOT_RUN = 3, WRONG = 4, LAST_VERDICT = WRONG } verdict;

static bool compiler_says_why(const clt_device *device, cl_program program) {
    char *log = clt_program_log(device, program);
    bool says = log && strstr(log, "error:");
    clt_free(log);
    return says;
}

/* What the kernel of a program that is built gives. */
static verdict run_kernel(clt_device *device, const capability_test *test, cl_program program) {
    cl_int error;
    float y[1] = {0}, x = 2.5f;
    char what[96];
    snprintf(what, sizeof what, "trying out %s, which CLTRAIN_CAPS_OFF=%s leaves out", test->name, test->name);
    size_t global = test->group ? test->group : 64, local = global;
    verdict came = NOT_RUN;
    cl_kernel kernel = NULL;
    cl_mem memory = clCreateBuffer(device->context, CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR, sizeof y, y, &error);
    if (error == CL_SUCCESS) {
        kernel = clCreateKernel(program, "test", &error);
        if (error != CL_SUCCESS) came = NOT_BUILT;
    }
    if (kernel && clSetKernelArg(kernel, 0, sizeof memory, &memory) == CL_SUCCESS &&
        clSetKernelArg(kernel, 1, sizeof x, &x) == CL_SUCCESS &&
        clEnqueueNDRangeKernel(device->queue, kernel, 1, NULL, &global, &local, 0, NULL, NULL) == CL_SUCCESS &&
        clt_cl_before_blocking(device, what) == CLT_OK &&
        clEnqueueReadBuffer(device->queue, memory, CL_TRUE, 0, sizeof y, y, 0, NULL, NULL) == CL_SUCCESS)
        came = y[0] == test->wanted ? HAS : WRONG;
    if (kernel) CLT_RELEASE(device, clReleaseKernel(kernel));
    if (memory) CLT_RELEASE(device, clReleaseMemObject(memory));
    return came;
}

/* *refused: by a compiler that says why. */
static verdict run_test(clt_device *device, const capability_test *test, bool *refused) {
    cl_int error;
    clt_text text = {0};
    test_text(device, test, &text);
    if (text.status < 0) return NOT_RUN;
    const char *source = clt_text_data(&text);
    cl_program program = clCreateProgramWithSource(device->context, 1, &source, NULL, &error);
    clt_text_free(&text);
    if (error != CL_SUCCESS) return NOT_BUILT;
    error = clBuildProgram(program, 1, &device->id, "", NULL, NULL);
    *refused = error == CL_BUILD_PROGRAM_FAILURE && compiler_says_why(device, program);
    verdict came = error == CL_SUCCESS ? run_kernel(device, test, program) : NOT_BUILT;
    CLT_RELEASE(device, clReleaseProgram(program));
    return came;
}

/* UNKNOWN where nothing runs on the device at present. What fails once is tried again: a verdict stands for as long as the driver
 * does, and other rows serve with it than without. What does not compile never will. */
static verdict experiment(clt_device *device, const capability_test *test) {
    static const capability_test plain = {
        "plain", "kernel void test(global float *y, float x) { if (get_global_id(0) == 0) y[0] = x + 1.0f; }\n", 3.5f};
    bool refused = false, any;
    verdict came = run_test(device, test, &refused);
    if (came != HAS && !refused) came = run_test(device, test, &refused);
    if (came != HAS && !refused && run_test(device, &plain, &any) != HAS) return UNKNOWN;
    return came;
}

/* ---- memory of verdicts: a digit a file ---- */

static clt_status verdict_path(const clt_device *device, const capability_test *test, clt_text *path) {
    char key[CLT_HASH_TEXT] = "";
    clt_text text = {0};
    test_text(device, test, &text);
    clt_hash_add(key, device->identity, CLT_HASH_TEXT);
    clt_hash_add(key, clt_text_data(&text), text.length);
    clt_status status = text.status;
    clt_text_free(&text);
    CLT_TRY(status);
    CLT_TRY(clt_file_cache_folder(device->settings.cache_folder, "capabilities", path));
    clt_text_add(path, "/%s-%s", test->name, key);
    return path->status;
}

static verdict recall(const clt_device *device, const capability_test *test) {
    clt_text path = {0};
    void *bytes = NULL;
    size_t length;
    verdict known = UNKNOWN;
    if (verdict_path(device, test, &path) == CLT_OK && clt_file_read(path.data, 64, &bytes, &length) == CLT_OK) {
        const char *text = bytes;
        if (length == 2 && text[0] >= '0' && text[0] <= '0' + LAST_VERDICT && text[1] == '\n') known = (verdict)(text[0] - '0');
    }
    clt_free(bytes);
    clt_text_free(&path);
    return known;
}

static void remember(const clt_device *device, const capability_test *test, verdict known) {
    clt_text path = {0};
    const char text[] = {(char)('0' + known), '\n'};
    if (verdict_path(device, test, &path) == CLT_OK) clt_file_write(path.data, text, sizeof text);
    clt_text_free(&path);
}

static verdict find_out(clt_device *device, clt_capability capability) {
    const capability_test *test = &tests[capability];
    int *known = &device->capabilities[capability];
    if (*known == UNKNOWN && clt_compiles_nothing(device)) return LACKS; /* the bundle would know */
    if (*known == UNKNOWN) *known = recall(device, test);
    if (*known == UNKNOWN) {
        *known = experiment(device, test);
        if (*known != UNKNOWN) remember(device, test, (verdict)*known);
    }
    return (verdict)*known;
}

/* ---- experiments of a bundle ---- */

bool clt_capability_is_tried(const clt_device *device, clt_capability capability) {
    return device->capabilities[capability] != UNKNOWN && may_have(device, &tests[capability]);
}

clt_status clt_capability_source(const clt_device *device, clt_capability capability, clt_text *source) {
    test_text(device, &tests[capability], source);
    return source->status;
}

void clt_capability_judge(clt_device *device, clt_capability capability, cl_program program) {
    device->capabilities[capability] = program ? (int)run_kernel(device, &tests[capability], program) : NOT_BUILT;
}

const char *clt_device_lacks(clt_device *device, clt_capability capability) {
    if (!device || (unsigned)capability >= CLT_CAP_COUNT_) return "there is no such device, or capability";
    const capability_test *test = &tests[capability];
    if (clt_list_names(device->settings.capabilities_off, test->name)) return "masked by CLTRAIN_CAPS_OFF";
    if (!may_have(device, test)) return "not tried: only GPUs of another vendor have it";
    switch (find_out(device, capability)) {
    case HAS: return NULL;
    case NOT_BUILT: return "its trial kernel does not build";
    case NOT_RUN: return "its trial kernel does not run";
    case WRONG: return "its trial kernel gave a wrong result";
    case LACKS: return "its trial kernel failed";
    default: return "no kernel runs on the device at present";
    }
}

bool clt_device_has(clt_device *device, clt_capability capability) {
    return clt_device_lacks(device, capability) == NULL;
}
