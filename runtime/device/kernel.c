#include <stdio.h>
#include <string.h>

#include "runtime/device/cl.h"
#include "runtime/device/kernel_source.h"

struct clt_kernel {
    clt_device *device;
    cl_kernel kernel;
    char name[64];
    const clt_program *announced; /* its program, if the helper is to be told of it, and its arguments */
    clt_text arguments_told;
    clt_call call; /* in the kernel's place if it has `run` */
    clt_memory *arguments[CLT_CALL_MAX_ARGUMENTS];
};

static clt_status fail_kernel(clt_kernel *kernel, const char *what, cl_int error) {
    char words[128];
    snprintf(words, sizeof words, "kernel %s: %s", kernel->name, what);
    return clt_cl_fail(kernel->device, words, error);
}

clt_status clt_kernel_create(clt_device *device, const clt_module *module, const char *name, clt_kernel **kernel) {
    char hash[CLT_HASH_TEXT];
    clt_hash_text(module->text, strlen(module->text), hash);
    const clt_program *program = clt_device_find_program(device, hash, name);
    if (!program) return clt_fail(CLT_E_STATE, "%s of module %s was not built", name, module->label);
    if (device->lost) return clt_device_fail_lost(device);
    clt_kernel *k = clt_calloc(1, sizeof *k);
    if (!k) return clt_fail_memory(sizeof *k);
    cl_int error;
    k->device = device;
    k->announced = clt_helper_has_program(device, program->key) ? program : NULL;
    strncpy(k->name, name, sizeof k->name - 1);
    k->kernel = clCreateKernel(program->program, name, &error);
    if (error != CL_SUCCESS) {
        clt_status status = fail_kernel(k, "making it", error);
        clt_free(k);
        return error == CL_INVALID_KERNEL_NAME
                   ? clt_fail(CLT_E_BUILD, "%s has no kernel \"%s\"", module->label, name)
                   : status;
    }
    *kernel = k;
    return CLT_OK;
}

clt_status clt_kernel_from_call(clt_device *device, const clt_call *call, const char *name, clt_kernel **kernel) {
    clt_kernel *k = clt_calloc(1, sizeof *k);
    if (!k) {
        if (call->release) call->release(call->state);
        return clt_fail_memory(sizeof *k);
    }
    k->device = device;
    k->call = *call;
    strncpy(k->name, name, sizeof k->name - 1);
    *kernel = k;
    return CLT_OK;
}

void clt_kernel_destroy(clt_kernel *kernel) {
    if (!kernel) return;
    if (kernel->kernel) CLT_RELEASE(kernel->device, clReleaseKernel(kernel->kernel));
    if (kernel->call.release) kernel->call.release(kernel->call.state);
    clt_text_free(&kernel->arguments_told);
    clt_free(kernel);
}

static clt_status set_argument(clt_kernel *kernel, int index, const void *value, size_t bytes) {
    cl_int error = clSetKernelArg(kernel->kernel, (cl_uint)index, bytes, value);
    return error == CL_SUCCESS ? CLT_OK : fail_kernel(kernel, "setting an argument", error);
}

static void tell_value(clt_kernel *kernel, const void *value, size_t bytes) {
    const unsigned char *data = value;
    clt_text *told = &kernel->arguments_told;
    if (!value) {
        clt_text_add(told, "local %zu\n", bytes);
        return;
    }
    clt_text_add(told, "value ");
    for (size_t i = 0; i < bytes; i++) clt_text_add(told, "%02x", data[i]);
    clt_text_add(told, "\n");
}

clt_status clt_kernel_set_memory(clt_kernel *kernel, int index, const clt_memory *buffer) {
    if (kernel->call.run) {
        if (index >= CLT_CALL_MAX_ARGUMENTS)
            return clt_fail(CLT_E_UNSUPPORTED, "%s has more than %d arguments", kernel->name, CLT_CALL_MAX_ARGUMENTS);
        kernel->arguments[index] = (clt_memory *)(uintptr_t)buffer;
        return CLT_OK;
    }
    if (kernel->announced) clt_text_add(&kernel->arguments_told, "memory %zu\n", buffer->bytes);
    return set_argument(kernel, index, &buffer->memory, sizeof buffer->memory);
}

clt_status clt_kernel_set_value(clt_kernel *kernel, int index, const void *value, size_t bytes) {
    if (kernel->call.run) return clt_fail(CLT_E_UNSUPPORTED, "%s takes no values", kernel->name);
    if (kernel->announced) tell_value(kernel, value, bytes);
    return set_argument(kernel, index, value, bytes);
}

void clt_kernel_announce(clt_kernel *kernel, int dims, const size_t *global, const size_t *local) {
    if (!kernel->announced || !kernel->device->helper) return;
    if (kernel->arguments_told.status == CLT_OK) clt_helper_add_kernel(kernel->device, kernel->announced->key, kernel->name, &kernel->arguments_told, dims, global, local);
    clt_text_free(&kernel->arguments_told);
    kernel->announced = NULL;
}

clt_status clt_kernel_work_group_limit(clt_kernel *kernel, size_t *limit) {
    *limit = 1;
    if (kernel->call.run) return CLT_OK;
    cl_int error = clGetKernelWorkGroupInfo(kernel->kernel, kernel->device->id, CL_KERNEL_WORK_GROUP_SIZE, sizeof *limit,
                                            limit, NULL);
    *limit = CLT_MAX(*limit, 1);
    return error == CL_SUCCESS ? CLT_OK : fail_kernel(kernel, "asking for its largest work-group", error);
}

clt_status clt_kernel_enqueue(clt_kernel *kernel, int dims, const size_t *global, const size_t *local) {
    clt_device *device = kernel->device;
    cl_event event = NULL, *wanted = device->timer || device->watch ? &event : NULL;
    cl_int error;
    if (device->lost) return clt_device_fail_lost(device);
    if (device->timer) CLT_TRY(clt_timer_reserve(device));
    if (kernel->call.run) {
        clt_status status = kernel->call.run(device, kernel->arguments, kernel->call.state);
        if (status < 0) return clt_fail_context(status, "%s: ", kernel->name);
        /* What a library enqueues has no event of ours: its time shows between the launches. */
        error = wanted ? clEnqueueMarkerWithWaitList(device->queue, 0, NULL, wanted) : CL_SUCCESS;
    } else {
        error = clEnqueueNDRangeKernel(device->queue, kernel->kernel, (cl_uint)dims, NULL, global, local, 0, NULL, wanted);
    }
    error = clt_cl_with_event(wanted, error);
    if (error != CL_SUCCESS) return fail_kernel(kernel, "launching it", error);
    if (device->timer && device->watch) clRetainEvent(event);
    if (device->timer) clt_timer_add(device, kernel->name, event);
    return device->watch ? clt_watch_add(device, kernel->name, event) : CLT_OK;
}
