#include "backends/reference/reference.h"

static const char path[] = "reference/reduce.cl";

enum {
    SHORT = 64,          /* fewer elements than this are no work for a group */
    COLUMN = 4096,       /* so many neighbouring outputs fill a device by themselves … */
    COLUMN_LENGTH = 4096, /* … if no sum is so long that it loses digits */
    CHUNK = 4096,        /* of a long reduction, for one group */
    FEW_OUTPUTS = 256    /* fewer groups than this leave a device idle */
};

/* Dimensions, innermost first. Dimensions of one kind that lie behind each other count as one, so
 * that kept and reduced ones alternate: at most four of each. */
typedef struct box {
    int rank;
    int64_t size[4], stride[4], elements;
} box;

static void box_add(box *b, int64_t size, int64_t stride, bool merge) {
    if (!merge) {
        b->size[b->rank] = 1;
        b->stride[b->rank++] = stride;
    }
    b->size[b->rank - 1] *= size;
    b->elements *= size;
}

/* boxes[0] is what is kept, boxes[1] what is reduced. Tells which of them holds the innermost dimension. */
static int split(const clt_shape *x, unsigned axes, box boxes[2]) {
    int innermost = -1, last = -1;
    int64_t stride = 1;
    boxes[0] = boxes[1] = (box){.elements = 1};
    for (int d = x->rank - 1; d >= 0; d--) {
        int kind = axes >> d & 1;
        if (x->dims[d] == 1) continue;
        box_add(&boxes[kind], x->dims[d], stride, kind == last);
        if (innermost < 0) innermost = kind;
        last = kind;
        stride *= x->dims[d];
    }
    return innermost;
}

static void launch_box(clt_lowering *l, const box *b) {
    int64_t size[4], stride[4];
    for (int i = 0; i < 4; i++) {
        size[3 - i] = i < b->rank ? b->size[i] : 1;
        stride[3 - i] = i < b->rank ? b->stride[i] : 0;
    }
    clt_launch_ints(l, size, 4, 4);
    clt_launch_ints(l, stride, 4, 4);
}

static void launch_boxes(clt_lowering *l, const box *kept, const box *reduced) {
    clt_launch_int(l, kept->elements);
    launch_box(l, kept);
    clt_launch_int(l, reduced->elements);
    launch_box(l, reduced);
}

static void reduce_by_item(clt_lowering *l, const clt_tensor *node, const box *boxes, bool max, float scale) {
    clt_launch_begin(l, path, max ? "ref_reduce_max_item" : "ref_reduce_sum_item", boxes[0].elements,
                     CLT_REFERENCE_GROUP);
    clt_launch_tensor(l, node->inputs[0]);
    clt_launch_tensor(l, node);
    launch_boxes(l, &boxes[0], &boxes[1]);
    if (!max) clt_launch_float(l, scale);
}

static void finish_group(clt_lowering *l, const box *boxes, bool max, int64_t chunks, int64_t length, float scale) {
    launch_boxes(l, &boxes[0], &boxes[1]);
    clt_launch_int(l, chunks);
    clt_launch_int(l, length);
    if (!max) clt_launch_float(l, scale);
}

static void reduce_by_group(clt_lowering *l, const clt_tensor *node, const box *boxes, bool max, float scale) {
    const char *kernel = max ? "ref_reduce_max_group" : "ref_reduce_sum_group";
    int64_t outputs = boxes[0].elements, n = boxes[1].elements, chunks = (n + CHUNK - 1) / CHUNK;
    if (chunks == 1 || outputs >= FEW_OUTPUTS) {
        clt_launch_begin(l, path, kernel, outputs * CLT_REFERENCE_GROUP, CLT_REFERENCE_GROUP);
        clt_launch_tensor(l, node->inputs[0]);
        clt_launch_tensor(l, node);
        finish_group(l, boxes, max, 1, n, scale);
        return;
    }
    int partials = clt_lower_scratch(l, (size_t)(outputs * chunks) * sizeof(float));
    clt_launch_begin(l, path, kernel, outputs * chunks * CLT_REFERENCE_GROUP, CLT_REFERENCE_GROUP);
    clt_launch_tensor(l, node->inputs[0]);
    clt_launch_scratch(l, partials);
    finish_group(l, boxes, max, chunks, CHUNK, 1);

    box rows[2] = {{1, {outputs}, {chunks}, outputs}, {1, {chunks}, {1}, chunks}};
    clt_launch_begin(l, path, kernel, outputs * CLT_REFERENCE_GROUP, CLT_REFERENCE_GROUP);
    clt_launch_scratch(l, partials);
    clt_launch_tensor(l, node);
    finish_group(l, rows, max, 1, chunks, scale);
}

void clt_reference_reduce(clt_lowering *l, const clt_tensor *node) {
    const clt_reduce_attributes *at = node->attributes;
    box boxes[2];
    int innermost = split(&node->inputs[0]->shape, at->axes, boxes);
    int64_t outputs = boxes[0].elements, n = boxes[1].elements;
    bool max = at->reduction == CLT_AXES_MAX;
    float scale = at->reduction == CLT_AXES_MEAN ? (float)(1.0 / (double)n) : 1.0f;
    bool columns = innermost == 0 && outputs >= COLUMN && n <= COLUMN_LENGTH;
    if (n < SHORT || columns) reduce_by_item(l, node, boxes, max, scale);
    else reduce_by_group(l, node, boxes, max, scale);
}
