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
    clt_launch_indices(l, size, 4, 4);
    clt_launch_indices(l, stride, 4, 4);
}

static void launch_boxes(clt_lowering *l, const box *kept, const box *reduced) {
    clt_launch_index(l, kept->elements);
    launch_box(l, kept);
    clt_launch_index(l, reduced->elements);
    launch_box(l, reduced);
}

static void begin(clt_lowering *l, const clt_tensor *node, const char *kernel, int64_t count) {
    clt_launch_begin_typed(l, path, node->dtype, kernel, count, CLT_REFERENCE_GROUP);
}

static void reduce_by_item(clt_lowering *l, const clt_tensor *node, const box *boxes, bool max, float scale) {
    begin(l, node, max ? "ref_reduce_max_item" : "ref_reduce_sum_item", boxes[0].elements);
    clt_launch_tensor(l, node->inputs[0]);
    clt_launch_tensor(l, node);
    launch_boxes(l, &boxes[0], &boxes[1]);
    if (!max) clt_launch_float(l, scale);
}

/* The results of their chunks. */
static void reduce_parts(clt_lowering *l, const clt_tensor *node, int parts, int64_t chunks, bool max, float scale) {
    int64_t outputs = clt_tensor_elements(node);
    begin(l, node, max ? "ref_reduce_max_parts" : "ref_reduce_sum_parts", outputs * CLT_REFERENCE_GROUP);
    clt_launch_scratch(l, parts);
    clt_launch_tensor(l, node);
    clt_launch_index(l, outputs);
    clt_launch_index(l, chunks);
    if (!max) clt_launch_float(l, scale);
}

static void reduce_by_group(clt_lowering *l, const clt_tensor *node, const box *boxes, bool max, float scale) {
    int64_t outputs = boxes[0].elements;
    begin(l, node, max ? "ref_reduce_max_group" : "ref_reduce_sum_group", outputs * CLT_REFERENCE_GROUP);
    clt_launch_tensor(l, node->inputs[0]);
    clt_launch_tensor(l, node);
    launch_boxes(l, &boxes[0], &boxes[1]);
    if (!max) clt_launch_float(l, scale);
}

static void reduce_by_chunk(clt_lowering *l, const clt_tensor *node, const box *boxes, bool max, float scale) {
    int64_t outputs = boxes[0].elements, chunks = (boxes[1].elements + CHUNK - 1) / CHUNK;
    int parts = clt_lower_scratch(l, (size_t)(outputs * chunks) * sizeof(float));
    begin(l, node, max ? "ref_reduce_max_chunk" : "ref_reduce_sum_chunk", outputs * chunks * CLT_REFERENCE_GROUP);
    clt_launch_tensor(l, node->inputs[0]);
    clt_launch_scratch(l, parts);
    launch_boxes(l, &boxes[0], &boxes[1]);
    clt_launch_index(l, chunks);
    clt_launch_index(l, CHUNK);
    reduce_parts(l, node, parts, chunks, max, scale);
}

static void lower_reduce(clt_lowering *l, const clt_tensor *node) {
    const clt_reduce_attributes *at = node->attributes;
    box boxes[2];
    int innermost = split(&node->inputs[0]->shape, at->axes, boxes);
    int64_t outputs = boxes[0].elements, n = boxes[1].elements;
    bool max = at->reduction == CLT_AXES_MAX;
    float scale = at->reduction == CLT_AXES_MEAN ? (float)(1.0 / (double)n) : 1.0f;
    bool columns = innermost == 0 && outputs >= COLUMN && n <= COLUMN_LENGTH;
    if (n < SHORT || columns) reduce_by_item(l, node, boxes, max, scale);
    else if (n <= CHUNK || outputs >= FEW_OUTPUTS) reduce_by_group(l, node, boxes, max, scale);
    else reduce_by_chunk(l, node, boxes, max, scale);
}

const clt_backend_row clt_reference_reduce_rows[] = {
    {CLT_REFERENCE(reduce), .types = CLT_ANY_FLOAT, .large = true, .lower = lower_reduce},
    {0},
};
