/* A bundle takes the place of the compiler: its images are compared with what they should be, tried, and adopted. */
#include <stdio.h>
#include <string.h>

#include <cltrain/version.h>

#include "runtime/device/bundle.h"
#include "runtime/device/il.h"
#include "runtime/device/kernel_source.h"

#define CHECK "clt_image_check"
enum { MOST_SOURCE = 1 << 26 };

/* What all images have of the library beside their own source: build options and prelude. */
void clt_bundle_hash_common(const clt_device *device, char hash[CLT_HASH_TEXT]) {
    const char *prelude = clt_kernel_source_find(device, CLT_PRELUDE);
    hash[0] = 0;
    clt_hash_add(hash, clt_build_options, strlen(clt_build_options));
    if (prelude) clt_hash_add(hash, prelude, strlen(prelude));
}

/* What the kernel of an image that tells its source gives. */
static cl_uint check_value(const char *key) {
    unsigned int value = 0;
    sscanf(key, "%8x", &value);
    return value;
}

void clt_bundle_add_check(clt_text *source, const char *key) {
    clt_text_add(source, "kernel void " CHECK "(global uint *value) { value[0] = 0x%08xu; }\n", check_value(key));
}

static clt_status compare(const char *what, const char *is_for, const char *found) {
    char shown[2][CLT_SHOWN_TEXT];
    if (!strcmp(is_for, found)) return CLT_OK;
    return clt_fail(CLT_E_MISMATCH, "it is for %s '%s', but this is '%s'", what, clt_show(is_for, shown[0]), clt_show(found, shown[1]));
}

static clt_status check_target(const clt_device *device, const clt_bundle_image *image) {
    CLT_TRY(compare("kind", image->kind, "native"));
    CLT_TRY(compare("platform", image->platform, device->info.platform));
    CLT_TRY(compare("device", image->name, device->info.name));
    CLT_TRY(compare("driver", image->driver, device->info.driver));
    return compare("options", image->options, clt_build_options);
}

/* All kernels can be made, and have the arguments that they should have. */
static clt_status try_kernels(cl_program program, const clt_bundle_image *image) {
    size_t i;
    json_t *one;
    json_array_foreach (image->kernels, i, one) {
        cl_int error;
        cl_uint found = 0;
        const char *name = json_string_value(json_object_get(one, "name"));
        json_int_t expected = json_integer_value(json_object_get(one, "arguments"));
        cl_kernel kernel = clCreateKernel(program, name, &error);
        error = clt_cl_made(kernel, error);
        if (error != CL_SUCCESS) return clt_fail(CLT_E_FORMAT, "kernel %s cannot be made (OpenCL error %d)", name, error);
        error = clGetKernelInfo(kernel, CL_KERNEL_NUM_ARGS, sizeof found, &found, NULL);
        clReleaseKernel(kernel);
        if (error != CL_SUCCESS || found != expected) return clt_fail(CLT_E_FORMAT, "kernel %s has %u arguments, expected %lld", name, found, (long long)expected);
    }
    return CLT_OK;
}

static cl_int run_check_kernel(clt_device *device, cl_kernel kernel, cl_uint *value) {
    cl_int error;
    const size_t one = 1;
    cl_mem memory = clCreateBuffer(device->context, CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR, sizeof *value, value, &error);
    error = clt_cl_made(memory, error);
    if (error == CL_SUCCESS) error = clSetKernelArg(kernel, 0, sizeof memory, &memory);
    if (error == CL_SUCCESS) error = clEnqueueNDRangeKernel(device->queue, kernel, 1, NULL, &one, &one, 0, NULL, NULL);
    if (error == CL_SUCCESS) error = clEnqueueReadBuffer(device->queue, memory, CL_TRUE, 0, sizeof *value, value, 0, NULL, NULL);
    if (memory) clReleaseMemObject(memory);
    return error;
}

clt_status clt_bundle_check(clt_device *device, cl_program program, const char *key) {
    cl_int error;
    cl_uint value = 0;
    CLT_TRY(clt_cl_before_blocking(device, "checking an image of a bundle"));
    cl_kernel kernel = clCreateKernel(program, CHECK, &error);
    error = clt_cl_made(kernel, error);
    if (error == CL_SUCCESS) error = run_check_kernel(device, kernel, &value);
    if (kernel) clReleaseKernel(kernel);
    if (error != CL_SUCCESS) return clt_cl_fail(device, "running kernel " CHECK, error);
    if (value != check_value(key)) return clt_fail(CLT_E_FORMAT, "kernel " CHECK " gives %08x, expected %08x: it is of another source", value, check_value(key));
    return CLT_OK;
}

/* It is for another device, or driver: what is portable of it may serve. */
static bool is_foreign(const clt_device *device, const clt_bundle_image *image) {
    const clt_device_info *i = &device->info;
    return !strcmp(image->kind, "native") && (strcmp(image->platform, i->platform) != 0 || strcmp(image->name, i->name) != 0 || strcmp(image->driver, i->driver) != 0);
}

/* program NULL: it is read alone, and must not be damaged. */
static clt_status load_il(clt_device *device, const char *folder, const clt_bundle_il *il, cl_program *program) {
    void *bytes = NULL;
    size_t length;
    if (!il->file) return CLT_OK;
    clt_status status = clt_bundle_read_file(folder, il->file, il->sha256, CLT_MOST_BINARY, &bytes, &length);
    if (status == CLT_OK && program) *program = clt_program_from_il(device, bytes, length);
    clt_free(bytes);
    return status;
}

/* All of its files must be whole, whichever serves. */
static clt_status load_image(clt_device *device, const char *folder, const clt_bundle_image *image, cl_program *program) {
    void *source = NULL, *binary = NULL;
    size_t length;
    clt_status status;
    bool portable = is_foreign(device, image) && image->il.file && clt_il_is_taken(device);
    CLT_TRY(portable ? compare("options", image->options, clt_build_options) : check_target(device, image));
    CLT_TRY_GOTO(clt_bundle_read_file(folder, image->source, image->source_sha256, MOST_SOURCE, &source, &length));
    CLT_TRY_GOTO(clt_bundle_read_file(folder, image->file, image->sha256, CLT_MOST_BINARY, &binary, &length));
    CLT_TRY_GOTO(load_il(device, folder, &image->il, portable ? program : NULL));
    if (!portable) *program = clt_program_from_binary(device, binary, length);
    CLT_TRY_GOTO(*program ? CLT_OK : clt_fail(CLT_E_FORMAT, "the driver does not take it"));
    CLT_TRY_GOTO(try_kernels(*program, image));
    status = clt_bundle_check(device, *program, image->key);
fail:
    clt_free(source);
    clt_free(binary);
    return status;
}

static clt_status take_parts(clt_program *program, const clt_bundle_image *image) {
    size_t i;
    json_t *part;
    json_array_foreach (image->parts, i, part)
        CLT_TRY(clt_program_add_part(program, json_string_value(json_object_get(part, "module")), json_string_value(json_object_get(part, "kernel"))));
    return CLT_OK;
}

static clt_status take_image(clt_device *device, const char *folder, const clt_bundle *bundle, size_t index) {
    const clt_bundle_image *image = &bundle->images[index];
    clt_program *program = clt_calloc(1, sizeof *program);
    if (!program) return clt_fail_memory(sizeof *program);
    program->saved = true;
    clt_status status = load_image(device, folder, image, &program->program);
    if (status < 0) clt_fail_context(status, "image %zu: ", index);
    else status = take_parts(program, image);
    if (status == CLT_OK) return clt_program_adopt(device, program);
    clt_program_free(device, program);
    return status;
}

static clt_status try_out(clt_device *device, const char *folder, const clt_bundle_experiment *e, bool foreign) {
    void *source = NULL;
    size_t length;
    cl_program program = NULL;
    clt_status status = clt_bundle_read_file(folder, e->source, e->source_sha256, MOST_SOURCE, &source, &length);
    clt_free(source);
    if (status == CLT_OK) status = load_il(device, folder, &e->il, foreign ? &program : NULL);
    if (status == CLT_OK && foreign && e->il.file) clt_capability_judge(device, e->capability, program);
    if (program) CLT_RELEASE(device, clReleaseProgram(program));
    return status;
}

/* What the device has that the bundle was made on is not said of another. */
static clt_status take_capabilities(clt_device *device, const char *folder, const clt_bundle *bundle) {
    bool foreign = is_foreign(device, &bundle->images[0]);
    for (size_t i = 0; i < bundle->n_experiments; i++) CLT_TRY(try_out(device, folder, &bundle->experiments[i], foreign));
    for (int i = 0; !foreign && i < CLT_CAP_COUNT_; i++) {
        json_t *known = json_object_get(bundle->capabilities, clt_capability_name((clt_capability)i));
        if (json_is_boolean(known)) device->capabilities[i] = json_is_true(known);
    }
    return CLT_OK;
}

static clt_status load_all(clt_device *device, const char *folder, clt_bundle *bundle) {
    char common[CLT_HASH_TEXT];
    CLT_TRY(clt_bundle_read(folder, bundle));
    clt_bundle_hash_common(device, common);
    if (strcmp(bundle->sources, common) != 0)
        return clt_fail(CLT_E_MISMATCH, "it is of cltrain %.32s with other kernels than those of this one (%s): make it anew", bundle->library, clt_version());
    for (size_t i = 0; i < bundle->n; i++) CLT_TRY(take_image(device, folder, bundle, i));
    return take_capabilities(device, folder, bundle);
}

clt_status clt_bundle_load(clt_device *device) {
    clt_bundle bundle = {0};
    const char *folder = device->settings.bundle;
    if (!folder[0]) return CLT_OK;
    clt_status status = load_all(device, folder, &bundle);
    clt_bundle_free(&bundle);
    if (status < 0) clt_fail_context(status, "CLTRAIN_BUNDLE=%s: ", folder);
    if (status == CLT_OK || clt_compiles_nothing(device) || status == CLT_E_NO_MEMORY) return status;
    clt_log_message(CLT_LOG_WARNING, "%s; kernels that are missing are compiled", clt_error_detail());
    return CLT_OK;
}
