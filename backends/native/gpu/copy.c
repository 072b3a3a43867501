/* The ops that only move elements (backends/copies.h), for GPU-class devices (cl/native/gpu/copy.cl). */
#include "backends/copies.h"
#include "backends/native/gpu/gpu.h"
#include "runtime/device/kernel_source.h"

enum {
    ITEMS = 64,
    SIDE = 32,  /* COPY_SIDE */
    NARROW = 8, /* a plane that is not worth a tile */
    WIDEST = 16 /* bytes that a work-item moves at once */
};

static void begin(clt_lowering *l, const char *kernel, int64_t bytes, int rank, int64_t items) {
    static const char path[] = "native/gpu/copy.cl";
    const char *type = bytes == 16 ? "uint4" : bytes == 8 ? "uint2" : bytes == 4 ? "uint" : bytes == 2 ? "ushort" : "uchar";
    clt_text text = {0};
    clt_gpu_group_text(&text, l->device, ITEMS);
    clt_text_add(&text, "#define GPU_COPY %s\n#define GPU_RANK %d\n%s", type, rank, clt_kernel_source_find(l->device, path));
    if (text.status < 0) clt_lower_fail(l, text.status);
    else clt_launch_begin_text(l, path, text.data, true, kernel, items, ITEMS);
    clt_text_free(&text);
    clt_launch_fix_group(l, ITEMS);
}

/* Whether the box can be copied by n elements at once. */
static bool goes_by(const clt_copy *c, int64_t n) {
    int inner = c->rank - 1;
    bool fits = c->size[inner] % n == 0 && c->x_offset % n == 0 && c->y_offset % n == 0 && c->x_stride[inner] == 1 && c->y_stride[inner] == 1;
    for (int d = 0; d < inner; d++) fits &= c->x_stride[d] % n == 0 && c->y_stride[d] % n == 0;
    return fits;
}

/* The box in elements of n. */
static void widen(clt_copy *c, int64_t n) {
    c->size[c->rank - 1] /= n;
    c->x_offset /= n;
    c->y_offset /= n;
    for (int d = 0; d + 1 < c->rank; d++) {
        c->x_stride[d] /= n;
        c->y_stride[d] /= n;
    }
}

static void launch_elements(clt_lowering *l, const clt_tensor *x, const clt_tensor *y, clt_copy *c) {
    int64_t bytes = (int64_t)clt_dtype_bytes(y->dtype), n = WIDEST / bytes, count = 1;
    while (n > 1 && !(c->rank && goes_by(c, n))) n /= 2;
    if (n > 1) widen(c, n);
    for (int d = 0; d < c->rank; d++) count *= c->size[d];
    begin(l, "gpu_copy", n * bytes, c->rank, count);
    clt_copy_launch(l, x, y, c);
    clt_launch_int(l, count);
}

static void launch_planes(clt_lowering *l, const clt_tensor *x, const clt_tensor *y, const clt_copy *c, int across) {
    begin(l, "gpu_copy_planes", (int64_t)clt_dtype_bytes(y->dtype), c->rank - 2, clt_copy_tiles(c, across, SIDE) * ITEMS);
    clt_copy_launch_planes(l, x, y, c, across);
}

static void copy(clt_lowering *l, const clt_tensor *x, const clt_tensor *y, const clt_copy *box) {
    clt_copy c = clt_copy_collapsed(box);
    int across = clt_copy_across(&c, NARROW);
    if (across < 0) launch_elements(l, x, y, &c);
    else launch_planes(l, x, y, &c, across);
}

static void fill(clt_lowering *l, const clt_tensor *y, float value) {
    int64_t bytes = clt_tensor_elements(y) * (int64_t)clt_dtype_bytes(y->dtype), width = WIDEST;
    while (bytes % width) width /= 2;
    begin(l, "gpu_fill", width, 1, bytes / width);
    clt_launch_tensor(l, y);
    clt_launch_int(l, bytes / width);
    clt_launch_int(l, clt_copy_bits(y->dtype, value));
}

static const clt_copier copier = {copy, fill};

static bool supports(const clt_candidate *c) {
    const clt_device_info *info = clt_device_get_info(c->device);
    return clt_gpu_fits(c->device) && info->max_work_group_size >= ITEMS && info->local_memory_bytes >= SIDE * (SIDE + 1) * sizeof(float);
}

CLT_COPIES_LOWER(permute, &copier)
CLT_COPIES_LOWER(slice, &copier)
CLT_COPIES_LOWER(slice_grad, &copier)
CLT_COPIES_LOWER(concat, &copier)
CLT_COPIES_LOWER(pad, &copier)
CLT_COPIES_LOWER(pack, &copier)

#define ROW(op_suffix) \
    {CLT_NATIVE(op_suffix), .types = CLT_ANY_FLOAT, .requires = 1u << CLT_CAP_GROUPS, .supports = supports, .lower = lower_##op_suffix}
const clt_backend_row clt_gpu_copy_rows[] = {ROW(permute), ROW(slice), ROW(slice_grad), ROW(concat), ROW(pad), ROW(pack), {0}};
