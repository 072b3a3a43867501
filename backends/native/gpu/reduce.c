/* Sums, means and maxima of what lies side by side (cl/native/gpu/reduce.cl). */
#include <stdio.h>

#include "backends/native/gpu/gpu.h"

enum {
    ITEMS = 128,
    LEAST = 16,          /* elements that lie side by side */
    CHUNK = 4096,        /* parts of what is reduced for a work-group, where groups are few */
    MANY_GROUPS = 1024,  /* fill a device */
    MOST_PARTS = 3000000 /* for a work-group: rounds of a work-item stay short, see cl/prelude.cl */
};

/* x as [outer, kept, inner]; inner in parts of `vector`. */
typedef struct span {
    int64_t outer, kept, inner, chunks, length;
    int vector;
} span;

/* Of neighbouring dimensions of x, from *d down, that are reduced, or that are not, how many elements there are. */
static int64_t take(const clt_shape *x, unsigned axes, bool reduced, int *d) {
    int64_t n = 1;
    for (; *d >= 0 && (x->dims[*d] == 1 || (bool)(axes >> *d & 1) == reduced); --*d) n *= x->dims[*d];
    return n;
}

/* By the shape alone, for the same bits on all devices. */
static span span_of(int64_t outer, int64_t kept, int64_t inner) {
    span s = {.outer = outer, .kept = kept, .vector = inner % 4 == 0 ? 4 : 1};
    s.inner = inner / s.vector;
    int64_t parts = s.outer * s.inner;
    s.length = kept >= MANY_GROUPS && parts <= MOST_PARTS ? parts : CHUNK;
    s.chunks = (parts + s.length - 1) / s.length;
    return s;
}

static bool is_span(const clt_tensor *node, span *s) {
    const clt_reduce_attributes *at = node->attributes;
    const clt_shape *x = &node->inputs[0]->shape;
    int d = x->rank - 1;
    int64_t inner = take(x, at->axes, true, &d), kept = take(x, at->axes, false, &d), outer = take(x, at->axes, true, &d);
    *s = span_of(outer, kept, inner);
    return d < 0;
}

static void begin(clt_lowering *l, const span *s, clt_dtype from, clt_dtype to) {
    const clt_reduce_attributes *at = l->node->attributes;
    char definitions[96];
    snprintf(definitions, sizeof definitions, "#define GPU_RESULT %s\n#define GPU_VECTOR %d\n#define GPU_LARGEST %d\n", clt_dtype_name(to), s->vector,
             at->reduction == CLT_AXES_MAX);
    clt_gpu_begin(l, "native/gpu/reduce.cl", from, definitions, "gpu_reduce", s->kept * s->chunks * ITEMS, ITEMS);
    clt_launch_fix_group(l, ITEMS);
}

static void end(clt_lowering *l, const span *s, float scale) {
    clt_launch_ints(l, (int64_t[]){s->outer, s->kept, s->inner, s->chunks}, 4, 4);
    clt_launch_int(l, s->length);
    clt_launch_float(l, scale);
}

static void lower(clt_lowering *l, const clt_tensor *node) {
    const clt_reduce_attributes *at = node->attributes;
    const clt_tensor *x = node->inputs[0];
    span s;
    is_span(node, &s);
    float scale = at->reduction == CLT_AXES_MEAN ? (float)(1.0 / (double)(s.outer * s.inner * s.vector)) : 1.0f;
    bool parts = s.chunks > 1;
    int partial = parts ? clt_lower_scratch(l, (size_t)(s.kept * s.chunks) * sizeof(float)) : 0;
    begin(l, &s, x->dtype, parts ? CLT_F32 : node->dtype);
    clt_launch_tensor(l, x);
    if (parts) clt_launch_scratch(l, partial);
    else clt_launch_tensor(l, node);
    end(l, &s, parts ? 1 : scale);
    if (!parts) return;
    span joined = {.outer = 1, .kept = s.kept, .inner = s.chunks, .vector = 1, .chunks = 1, .length = s.chunks};
    begin(l, &joined, CLT_F32, node->dtype);
    clt_launch_scratch(l, partial);
    clt_launch_tensor(l, node);
    end(l, &joined, scale);
}

static bool supports(const clt_candidate *c) {
    const clt_device_info *info = clt_device_get_info(c->device);
    span s;
    return clt_gpu_fits(c->device) && info->max_work_group_size >= ITEMS && info->local_memory_bytes >= ITEMS * sizeof(float) && is_span(c->node, &s) &&
           s.inner * s.vector >= LEAST && s.chunks <= MOST_PARTS && s.kept * s.chunks * ITEMS <= INT32_MAX;
}

const clt_backend_row clt_gpu_reduce_rows[] = {
    {CLT_NATIVE(reduce), .types = CLT_ANY_FLOAT, .requires = 1u << CLT_CAP_GROUPS, .supports = supports, .lower = lower},
    {0},
};
