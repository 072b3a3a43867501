#include <stdio.h>
#include <string.h>

#include "backends/backend.h"
#include "runtime/device/kernel_source.h"

void clt_lower_fail(clt_lowering *l, clt_status status) {
    if (l->status == CLT_OK) l->status = status;
}

/* ---- modules ---- */

static int find_module(const clt_lowering *l, const char *text) {
    for (size_t i = 0; i < l->n_modules; i++)
        if (l->modules[i].text == text || !strcmp(l->modules[i].text, text)) return (int)i;
    return -1;
}

/* `owned` (may be NULL) belongs to the lowering from then on. */
static int add_module(clt_lowering *l, const clt_module *module, char *owned) {
    clt_status status = clt_grow(&l->modules, &l->modules_capacity, l->n_modules, sizeof *l->modules);
    if (status == CLT_OK)
        status = clt_grow(&l->owned_texts, &l->owned_capacity, l->n_modules, sizeof *l->owned_texts);
    if (status < 0) {
        clt_free(owned);
        clt_lower_fail(l, status);
        return 0;
    }
    l->modules[l->n_modules] = *module;
    l->owned_texts[l->n_modules] = owned;
    return (int)l->n_modules++;
}

/* ---- launches ---- */

static void begin(clt_lowering *l, int module, const char *kernel, int64_t count, int group) {
    clt_status status = clt_grow(&l->launches, &l->launches_capacity, l->n_launches, sizeof *l->launches);
    if (status < 0) {
        clt_lower_fail(l, status);
        return;
    }
    size_t limit = (size_t)clt_device_get_info(l->device)->max_work_group_size;
    size_t local = CLT_MIN((size_t)group, limit ? limit : 1);
    clt_launch *launch = &l->launches[l->n_launches++];
    *launch = (clt_launch){.node = l->node, .row = l->row ? l->row->name : NULL, .module = module, .dims = 1};
    snprintf(launch->kernel, sizeof launch->kernel, "%s", kernel);
    launch->local[0] = local;
    launch->global[0] = ((size_t)count + local - 1) / local * local;
}

void clt_launch_begin(clt_lowering *l, const char *path, const char *kernel, int64_t count, int group) {
    if (l->status < 0) return;
    const char *text = clt_kernel_source_find(l->device, path);
    if (!text) {
        clt_lower_fail(l, clt_fail(CLT_E_NOT_FOUND, "no kernel source %s in the library", path));
        return;
    }
    int module = find_module(l, text);
    if (module < 0) module = add_module(l, &(clt_module){.text = text, .label = path, .separable = true}, NULL);
    if (l->status == CLT_OK) begin(l, module, kernel, count, group);
}

/* Its kernels have the names that those of f32 have, so it is a program of its own, with the prelude that is made for it. */
static void begin_own(clt_lowering *l, const char *path, const char *definitions, bool wide, const char *kernel, int64_t count, int group) {
    const char *prelude = clt_kernel_source_find(l->device, CLT_PRELUDE), *own = clt_kernel_source_find(l->device, path);
    clt_text text = {0};
    if (!prelude || !own) {
        clt_lower_fail(l, clt_fail(CLT_E_NOT_FOUND, "no kernel source %s in the library", own ? CLT_PRELUDE : path));
        return;
    }
    clt_text_add(&text, "%s", definitions);
    clt_text_add_bytes(&text, prelude, strlen(prelude));
    clt_text_add_bytes(&text, own, strlen(own));
    clt_module module = {.text = text.data, .isolated = true, .label = path, .separable = true};
    if (text.status < 0) clt_lower_fail(l, text.status);
    else clt_launch_begin_module(l, &module, kernel, count, group);
    if (l->status == CLT_OK) l->launches[l->n_launches - 1].wide = wide;
    clt_text_free(&text);
}

void clt_launch_begin_typed(clt_lowering *l, const char *path, clt_dtype storage, const char *kernel, int64_t count, int group) {
    bool wide = clt_node_is_large(l->node);
    if (l->status < 0) return;
    if (storage == CLT_F32 && !wide) {
        clt_launch_begin(l, path, kernel, count, group);
        return;
    }
    char definitions[96];
    snprintf(definitions, sizeof definitions, "#define CLT_STORAGE %s\n#define CLT_INDEX %s\n", clt_dtype_name(storage), wide ? "long" : "int");
    begin_own(l, path, definitions, wide, kernel, count, group);
}

void clt_launch_begin_floats(clt_lowering *l, const char *path, int width, clt_dtype storage, const char *kernel, int64_t count, int group) {
    char definitions[160];
    if (l->status < 0) return;
    if (width == 1) {
        clt_launch_begin_typed(l, path, storage, kernel, count, group);
        return;
    }
    snprintf(definitions, sizeof definitions,
             "#define CLT_STORAGE %s\n#define CLT_FLOATS float%d\n#define CLT_STORE_FLOATS(p, i, x) CLT_STORE_VECTOR(%d, p, %d * (i), x)\n",
             clt_dtype_name(storage), width, width, width);
    begin_own(l, path, definitions, false, kernel, count, group);
}

void clt_launch_begin_module(clt_lowering *l, const clt_module *given, const char *kernel, int64_t count, int group) {
    if (l->status < 0) return;
    int module = find_module(l, given->text);
    if (module < 0) {
        clt_module own = *given;
        char *copy = clt_strdup(given->text);
        own.text = copy;
        if (!copy) clt_lower_fail(l, clt_fail_memory(strlen(given->text)));
        else module = add_module(l, &own, copy);
    }
    if (l->status == CLT_OK) begin(l, module, kernel, count, group);
}

void clt_launch_begin_text(clt_lowering *l, const char *label, const char *text, bool isolated, const char *kernel,
                           int64_t count, int group) {
    clt_launch_begin_module(l, &(clt_module){.text = text, .isolated = isolated, .label = label}, kernel, count, group);
}

void clt_launch_begin_call(clt_lowering *l, const char *name, const clt_call *call) {
    size_t before = l->n_launches;
    if (l->status == CLT_OK) begin(l, -1, name, 1, 1);
    if (l->n_launches > before) l->launches[before].call = *call;
    else if (call->release) call->release(call->state);
}

clt_status clt_launch_kernel(clt_lowering *l, clt_launch *launch, clt_kernel **kernel) {
    clt_call call = launch->call;
    if (!call.run) return clt_kernel_create(l->device, &l->modules[launch->module], launch->kernel, kernel);
    launch->call.release = NULL;
    return clt_kernel_from_call(l->device, &call, launch->kernel, kernel);
}

void clt_launch_fix_group(clt_lowering *l, int group) {
    if (l->status < 0) return;
    clt_launch *launch = &l->launches[l->n_launches - 1];
    launch->fixed_group = true;
    if (launch->local[0] != (size_t)group)
        clt_lower_fail(l, clt_fail(CLT_E_UNSUPPORTED, "kernel %s needs work-groups of %d; the device has %zu at most",
                                   launch->kernel, group, launch->local[0]));
}

static clt_argument *next_argument(clt_lowering *l, clt_argument_kind kind) {
    if (l->status < 0) return NULL;
    clt_launch *launch = &l->launches[l->n_launches - 1];
    if (launch->n_arguments == CLT_LAUNCH_MAX_ARGUMENTS) {
        clt_lower_fail(l, clt_fail(CLT_E_UNSUPPORTED, "kernel %s has more than %d arguments", launch->kernel,
                                   CLT_LAUNCH_MAX_ARGUMENTS));
        return NULL;
    }
    clt_argument *argument = &launch->arguments[launch->n_arguments++];
    argument->kind = kind;
    return argument;
}

void clt_launch_tensor(clt_lowering *l, const clt_tensor *tensor) {
    clt_argument *argument = next_argument(l, CLT_ARGUMENT_TENSOR);
    if (argument) argument->tensor = tensor;
}

void clt_launch_scratch(clt_lowering *l, int scratch) {
    clt_argument *argument = next_argument(l, CLT_ARGUMENT_SCRATCH);
    if (argument) argument->scratch = scratch;
}

static void launch_value(clt_lowering *l, const void *value, size_t bytes) {
    clt_argument *argument = next_argument(l, CLT_ARGUMENT_VALUE);
    if (!argument) return;
    memcpy(argument->value, value, bytes);
    argument->value_bytes = bytes;
}

void clt_launch_ints(clt_lowering *l, const int64_t *values, int n, int width) {
    int32_t narrow[8] = {0};
    for (int i = 0; i < n; i++) {
        narrow[i] = (int32_t)values[i];
        if (narrow[i] != values[i])
            clt_lower_fail(l, clt_fail(CLT_E_UNSUPPORTED, "a size of %lld does not fit the kernel's 32 bits",
                                       (long long)values[i]));
    }
    launch_value(l, narrow, (size_t)width * sizeof narrow[0]);
}

void clt_launch_int(clt_lowering *l, int64_t value) {
    clt_launch_ints(l, &value, 1, 1);
}

void clt_launch_indices(clt_lowering *l, const int64_t *values, int n, int width) {
    int64_t wide[CLT_MAX_RANK] = {0};
    if (l->status < 0) return;
    if (!l->launches[l->n_launches - 1].wide) {
        clt_launch_ints(l, values, n, width);
        return;
    }
    memcpy(wide, values, (size_t)n * sizeof *wide);
    launch_value(l, wide, (size_t)width * sizeof *wide);
}

void clt_launch_index(clt_lowering *l, int64_t value) {
    clt_launch_indices(l, &value, 1, 1);
}

void clt_launch_float(clt_lowering *l, float value) {
    launch_value(l, &value, sizeof value);
}

void clt_broadcast_strides(const clt_tensor *x, int trailing, int64_t strides[CLT_MAX_RANK]) {
    int64_t own[CLT_MAX_RANK] = {0};
    clt_shape_strides(&x->shape, own);
    for (int d = 0; d < CLT_MAX_RANK; d++) {
        int i = d - (CLT_MAX_RANK - (x->shape.rank - trailing));
        strides[d] = i >= 0 && x->shape.dims[i] > 1 ? own[i] : 0;
    }
}

int clt_lower_scratch(clt_lowering *l, size_t bytes) {
    clt_status status = clt_grow(&l->scratch, &l->scratch_capacity, l->n_scratch, sizeof *l->scratch);
    if (status < 0) {
        clt_lower_fail(l, status);
        return 0;
    }
    l->scratch[l->n_scratch] = (clt_scratch){l->node, bytes};
    return (int)l->n_scratch++;
}

clt_status clt_lowering_build(const clt_lowering *l) {
    clt_wanted *wanted = clt_alloc(l->n_launches * sizeof *wanted + 1);
    if (!wanted) return clt_fail_memory(l->n_launches * sizeof *wanted);
    for (size_t i = 0; i < l->n_launches; i++)
        wanted[i] = (clt_wanted){l->launches[i].module, l->launches[i].kernel};
    clt_status status = clt_device_build_kernels(l->device, l->modules, (int)l->n_modules, wanted, (int)l->n_launches);
    clt_free(wanted);
    return status;
}

void clt_lowering_free(clt_lowering *l) {
    for (size_t i = 0; i < l->n_modules; i++) clt_free(l->owned_texts[i]);
    for (size_t i = 0; i < l->n_launches; i++)
        if (l->launches[i].call.release) l->launches[i].call.release(l->launches[i].call.state);
    clt_free(l->owned_texts);
    clt_free(l->modules);
    clt_free(l->launches);
    clt_free(l->scratch);
    *l = (clt_lowering){0};
}
