#include "backends/native/cpu/cpu.h"

#include <string.h>

#include "backends/codegen.h"
#include "runtime/device/kernel_source.h"

static bool has_width(int width) {
    return width == 4 || width == 8 || width == 16;
}

bool clt_cpu_fits(const clt_device *device) {
    return clt_device_get_class(device) == CLT_CLASS_CPU && has_width(clt_device_vector_width(device));
}

/* 16 registers hold 6 x 2 sums, 32 hold 12 x 2, each with room for two vectors and a broadcast. */
clt_cpu_tile clt_cpu_tile_of(const clt_device *device) {
    int width = clt_device_vector_width(device);
    return (clt_cpu_tile){
        .width = width,
        .rows = width == 16 ? 12 : 6,
        .columns = 2 * width,
        .depth = 4096 / (2 * width),
    };
}

/* Plans of large batches have many thousands of launches, each with its text: formatting it would be most of the work. */
static void add_whole(clt_text *text, const char *more) {
    clt_text_add_bytes(text, more, strlen(more));
}

/* Storage types, epilogues, and other rows in a tile than the device's make the same names mean something else, so the module is a program of
 * its own. */
static void begin(clt_lowering *l, const clt_cpu_variant *v, const char *epilogue, const char *path, const char *kernel, int64_t count) {
    clt_cpu_tile tile = clt_cpu_tile_of(l->device);
    int rows = v->rows ? v->rows : tile.rows;
    clt_dtype result = v->last ? l->node->dtype : v->storage;
    bool isolated = epilogue || rows != tile.rows || v->storage != CLT_F32 || result != v->storage;
    const char *shared = clt_kernel_source_find(l->device, "native/cpu/tile.cl"), *own = clt_kernel_source_find(l->device, path);
    clt_text text = {0};
    if (!shared || !own) {
        clt_lower_fail(l, clt_fail(CLT_E_NOT_FOUND, "no kernel source %s in the library", path));
        return;
    }
    if (v->storage != CLT_F32) clt_text_add(&text, "#define CLT_STORAGE %s\n", clt_dtype_name(v->storage));
    if (result != v->storage) clt_text_add(&text, "#define CLT_RESULT %s\n", clt_dtype_name(result));
    /* Programs of many modules have the prelude anyway. */
    if (isolated) add_whole(&text, clt_kernel_source_find(l->device, CLT_PRELUDE));
    if (epilogue) add_whole(&text, epilogue);
    clt_text_add(&text, "#define CPU_WIDTH %d\n#define CPU_ROWS %d\n", tile.width, rows);
    add_whole(&text, shared);
    if (v->defines) add_whole(&text, v->defines);
    add_whole(&text, own);
    if (text.status < 0) clt_lower_fail(l, text.status);
    else
        clt_launch_begin_module(
            l, &(clt_module){.text = text.data, .isolated = isolated, .label = path, .separable = true}, kernel, count, 1);
    clt_text_free(&text);
}

void clt_cpu_begin(clt_lowering *l, const char *path, const char *kernel, int64_t count) {
    begin(l, &(clt_cpu_variant){0}, NULL, path, kernel, count);
}

void clt_cpu_begin_as(clt_lowering *l, const clt_cpu_variant *variant, const char *path, const char *kernel, int64_t count) {
    clt_text epilogue = {0};
    if (variant->last && l->node->epilogue) clt_epilogue_define(&epilogue, l->node);
    if (epilogue.status < 0) clt_lower_fail(l, epilogue.status);
    else begin(l, variant, epilogue.data, path, kernel, count);
    clt_text_free(&epilogue);
}

const char clt_cpu_no_warnings[] = "#ifdef __clang__\n#pragma clang diagnostic ignored \"-Wpass-failed\"\n#endif\n";

int clt_cpu_scratch(clt_lowering *l, int64_t count) {
    return clt_lower_scratch(l, (size_t)count * sizeof(float));
}

bool clt_cpu_holds(const clt_device *device, double count) {
    return count < INT32_MAX &&
           count * sizeof(float) <= (double)clt_device_get_info(device)->max_buffer_bytes;
}

int64_t clt_cpu_divide_up(int64_t a, int64_t b) {
    return (a + b - 1) / b;
}
