/* What a device tells of itself beside what selects it; and a small kernel that shows whether it works at all. */
#include <stdio.h>
#include <string.h>

#include "runtime/device/cl.h"
#include "runtime/measure/limits.h"

static const char source[] =
    "#ifdef FACTS_SUB_GROUPS\n"
    "#pragma OPENCL EXTENSION cl_khr_subgroups : enable\n"
    "#endif\n"
    "/* y[0] = the size of a sub-group; y[i] = 3 i + x */\n"
    "kernel void facts(global int *y, int x) {\n"
    "    int i = get_global_id(0), size = 0;\n"
    "#ifdef FACTS_SUB_GROUPS\n"
    "    size = get_max_sub_group_size();\n"
    "#endif\n"
    "    y[i] = i == 0 ? size : 3 * i + x;\n"
    "}\n";

enum { ITEMS = 128 };

/* What the driver does not know is 0; *status where it fails. */
static uint32_t number_of(clt_device *device, cl_device_info what, clt_status *status) {
    cl_uint value = 0;
    cl_int error = clGetDeviceInfo(device->id, what, sizeof value, &value, NULL);
    if (clt_cl_is_broken(error)) *status = clt_cl_fail(device, "asking for a fact", error);
    return value;
}

static cl_int cache_bytes(const clt_device *device, uint64_t *bytes) {
    cl_ulong told = 0;
    cl_int error = clGetDeviceInfo(device->id, CL_DEVICE_GLOBAL_MEM_CACHE_SIZE, sizeof told, &told, NULL);
    *bytes = CLT_MIN(told, (cl_ulong)1 << 40);
    return error;
}

uint64_t clt_device_cache_bytes(const clt_device *device) {
    uint64_t bytes;
    cache_bytes(device, &bytes);
    return bytes;
}

/* What it tells without running anything. */
static clt_status ask_all(clt_device *device, clt_device_facts *facts) {
    clt_status status = CLT_OK;
    *facts = (clt_device_facts){
        .vector_width_f16 = number_of(device, CL_DEVICE_NATIVE_VECTOR_WIDTH_HALF, &status),
        .vector_width_f32 = number_of(device, CL_DEVICE_NATIVE_VECTOR_WIDTH_FLOAT, &status),
        .vector_width_f64 = number_of(device, CL_DEVICE_NATIVE_VECTOR_WIDTH_DOUBLE, &status),
    };
    cl_int error = cache_bytes(device, &facts->cache_bytes);
    if (clt_cl_is_broken(error)) return clt_cl_fail(device, "asking for its cache", error);
    error = clGetDeviceInfo(device->id, CL_DEVICE_OPENCL_C_VERSION, sizeof facts->cl_c_version - 1, facts->cl_c_version, NULL);
    if (clt_cl_is_broken(error)) return clt_cl_fail(device, "asking for its version of OpenCL C", error);
    return status;
}

/* The multiple is asked of a kernel, in OpenCL 1.2. */
static clt_status ask_multiple(clt_device *device, const clt_module *module, uint32_t *found) {
    size_t multiple = 0;
    char hash[CLT_HASH_TEXT];
    clt_hash_text(module->text, strlen(module->text), hash);
    const clt_program *program = clt_device_find_program(device, hash, "facts");
    cl_int error;
    if (!program) return clt_fail(CLT_E_STATE, "the kernel of the facts was not built");
    cl_kernel kernel = clCreateKernel(program->program, "facts", &error);
    if (error != CL_SUCCESS) return clt_cl_fail(device, "making a small kernel", error);
    error = clGetKernelWorkGroupInfo(kernel, device->id, CL_KERNEL_PREFERRED_WORK_GROUP_SIZE_MULTIPLE, sizeof multiple,
                                     &multiple, NULL);
    clReleaseKernel(kernel);
    *found = (uint32_t)CLT_MIN(multiple, 65536);
    return clt_cl_is_broken(error) ? clt_cl_fail(device, "asking for the multiple of work-groups", error) : CLT_OK;
}

clt_status clt_device_get_facts(clt_device *device, clt_device_facts *facts, bool *wrong) {
    if (!device || !facts || !wrong) return clt_fail(CLT_E_INVALID, "clt_device_get_facts: an argument is NULL");
    clt_text text = {0};
    int32_t got[ITEMS] = {0};
    *wrong = false;
    CLT_TRY(ask_all(device, facts));
    clt_text_add(&text, "%s%s", clt_device_has(device, CLT_CAP_SUBGROUPS) ? "#define FACTS_SUB_GROUPS\n" : "", source);
    clt_module module = {.text = clt_text_data(&text), .isolated = true, .label = "facts"};
    clt_status status = text.status;
    if (status == CLT_OK) status = clt_device_build(device, &module, 1);
    if (status == CLT_OK) status = clt_run_on_words(device, &module, "facts", &(uint32_t){5}, 1, (uint32_t *)got, ITEMS);
    for (int i = 1; i < ITEMS && status == CLT_OK; i++) *wrong |= got[i] != 3 * i + 5;
    if (*wrong)
        status = clt_fail(CLT_E_DEVICE, "%s: a small kernel computed something else than it should", device->info.name);
    facts->sub_group_size = got[0] > 0 && got[0] <= 4096 ? (uint32_t)got[0] : 0;
    if (status == CLT_OK) status = ask_multiple(device, &module, &facts->group_multiple);
    clt_text_free(&text);
    return status;
}
