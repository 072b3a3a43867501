#include "runtime/device/il.h"

#include <CL/cl_ext.h>
#include <string.h>

enum { MOST_EXTENSIONS = 1 << 16 };

/* By headers of any version. */
typedef cl_program CL_API_CALL create_with_il(cl_context context, const void *il, size_t length, cl_int *error);
#define DEVICE_IL_VERSION 0x105B

static bool says(const clt_device *device, cl_device_info what, const char *word) {
    size_t bytes = 0;
    if (clGetDeviceInfo(device->id, what, 0, NULL, &bytes) != CL_SUCCESS || !bytes || bytes > MOST_EXTENSIONS) return false;
    char *text = clt_calloc(bytes + 1, 1);
    bool found = text && clGetDeviceInfo(device->id, what, bytes, text, NULL) == CL_SUCCESS && strstr(text, word);
    clt_free(text);
    return found;
}

static create_with_il *find_function(const clt_device *device) {
    return (create_with_il *)clGetExtensionFunctionAddressForPlatform(device->platform, "clCreateProgramWithILKHR");
}

bool clt_il_is_taken(const clt_device *device) {
    return says(device, CL_DEVICE_EXTENSIONS, "cl_khr_il_program") && says(device, DEVICE_IL_VERSION, "SPIR-V") && find_function(device);
}

cl_program clt_program_from_il(clt_device *device, const void *il, size_t bytes) {
    cl_int error;
    create_with_il *create = find_function(device);
    cl_program program = create ? create(device->context, il, bytes, &error) : NULL;
    if (!program || error != CL_SUCCESS) return NULL;
    if (clBuildProgram(program, 1, &device->id, CLT_DENORMS_ARE_ZERO, NULL, NULL) == CL_SUCCESS && clt_program_has_kernels(program)) return program;
    CLT_RELEASE(device, clReleaseProgram(program));
    return NULL;
}
