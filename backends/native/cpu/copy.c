/* The ops that only move elements (backends/copies.h), in rows and planes (cl/native/cpu/copy.cl). */
#include <stdio.h>

#include "backends/copies.h"
#include "backends/native/cpu/cpu.h"

enum { RUN = 8192, SIDE = 64 /* CPU_COPY_SIDE */, NARROW = 4 };

static const char *type_of(const clt_tensor *y) {
    size_t bytes = clt_dtype_bytes(y->dtype);
    return bytes == 4 ? "uint" : bytes == 2 ? "ushort" : "uchar";
}

static void begin(clt_lowering *l, const char *kernel, const clt_tensor *y, int64_t items) {
    char defines[64], name[48];
    snprintf(defines, sizeof defines, "#undef CPU_COPY\n#define CPU_COPY %s\n", type_of(y));
    snprintf(name, sizeof name, "%s_%s", kernel, type_of(y));
    clt_cpu_begin_as(l, &(clt_cpu_variant){.defines = defines}, "native/cpu/copy.cl", name, items);
}

static void launch_rows(clt_lowering *l, const clt_tensor *x, const clt_tensor *y, const clt_copy *c) {
    int64_t rows = 1, length = c->size[c->rank - 1];
    for (int d = 0; d + 1 < c->rank; d++) rows *= c->size[d];
    int64_t segments = clt_cpu_divide_up(length, RUN), segment = clt_cpu_divide_up(length, segments);
    int64_t item_rows = segments > 1 ? 1 : CLT_MAX(1, CLT_MIN(rows, RUN / length));
    begin(l, "cpu_copy_rows", y, clt_cpu_divide_up(rows, item_rows) * segments);
    clt_copy_launch(l, x, y, c);
    clt_launch_ints(l, (int64_t[]){rows, item_rows, segments, segment}, 4, 4);
}

static void launch_planes(clt_lowering *l, const clt_tensor *x, const clt_tensor *y, const clt_copy *c, int across) {
    begin(l, "cpu_copy_planes", y, clt_copy_tiles(c, across, SIDE));
    clt_copy_launch_planes(l, x, y, c, across);
}

static void copy(clt_lowering *l, const clt_tensor *x, const clt_tensor *y, const clt_copy *box) {
    clt_copy c = clt_copy_collapsed(box);
    if (!c.rank) c = (clt_copy){.rank = 1, .size = {1}, .x_stride = {1}, .y_stride = {1}, .x_offset = c.x_offset, .y_offset = c.y_offset};
    int across = clt_copy_across(&c, NARROW);
    if (across < 0) launch_rows(l, x, y, &c);
    else launch_planes(l, x, y, &c, across);
}

static void fill(clt_lowering *l, const clt_tensor *y, float value) {
    int64_t count = clt_tensor_elements(y);
    begin(l, "cpu_fill", y, clt_cpu_divide_up(count, RUN));
    clt_launch_tensor(l, y);
    clt_launch_int(l, count);
    clt_launch_int(l, RUN);
    clt_launch_int(l, clt_copy_bits(y->dtype, value));
}

static const clt_copier copier = {copy, fill};

static bool supports(const clt_candidate *c) {
    return clt_cpu_fits(c->device);
}

CLT_COPIES_LOWER(permute, &copier)
CLT_COPIES_LOWER(slice, &copier)
CLT_COPIES_LOWER(slice_grad, &copier)
CLT_COPIES_LOWER(concat, &copier)
CLT_COPIES_LOWER(pad, &copier)
CLT_COPIES_LOWER(pack, &copier)

#define ROW(op_suffix) {CLT_NATIVE(op_suffix), .types = CLT_ANY_FLOAT, .supports = supports, .lower = lower_##op_suffix}
const clt_backend_row clt_cpu_copy_rows[] = {ROW(permute), ROW(slice), ROW(slice_grad), ROW(concat), ROW(pad), ROW(pack), {0}};
