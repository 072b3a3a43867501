/* Matrix products of few rows (cl/native/cpu/matmul_few.cl). */
#include <stdio.h>

#include "backends/codegen.h"
#include "backends/native/cpu/cpu.h"

enum { MOST_ROWS = 4 };

/* c [m, n] = a [m, k] b; m counts the rows of all matrices of a. */
typedef struct product {
    int64_t m, n, k;
    bool turned; /* b is [n, k] */
} product;

static product product_of(const clt_tensor *node) {
    const clt_matmul_attributes *at = node->attributes;
    const clt_tensor *a = node->inputs[0];
    int64_t n = node->shape.dims[node->shape.rank - 1];
    return (product){clt_tensor_elements(node) / n, n, a->shape.dims[a->shape.rank - (at->transpose_a ? 2 : 1)], at->transpose_b};
}

static bool supports(const clt_candidate *c) {
    const clt_matmul_attributes *at = c->node->attributes;
    product p = product_of(c->node);
    int64_t b = clt_tensor_elements(c->node->inputs[1]);
    return clt_cpu_fits(c->device) && p.m <= MOST_ROWS && (!at->transpose_a || p.m == 1) && b == p.n * p.k &&
           clt_tensor_elements(c->node->inputs[0]) == p.m * p.k && clt_cpu_holds(c->device, (double)b);
}

/* As many as registers hold sums of, but enough work-items: by the shape alone, so that results are the same on any number of processors. */
static int64_t vectors_of(const product *p, int width) {
    enum { ENOUGH_ITEMS = 16, LEAST = 2 };
    int64_t vectors = width == 16 ? 8 : 4;
    if (p->m > 2) vectors /= 2;
    while (vectors > LEAST && p->n < ENOUGH_ITEMS * vectors * width) vectors /= 2;
    return vectors;
}

static void lower(clt_lowering *l, const clt_tensor *node) {
    enum { MOST_ITEMS = 128 };
    product p = product_of(node);
    int width = clt_cpu_tile_of(l->device).width;
    int64_t vectors = p.turned ? 1 : vectors_of(&p, width), run = clt_cpu_divide_up(p.n, MOST_ITEMS * (int64_t)width);
    char defines[160], kernel[64];
    snprintf(defines, sizeof defines, "#undef CPU_FEW_ROWS\n#define CPU_FEW_ROWS %d\n#undef CPU_FEW_VECTORS\n#define CPU_FEW_VECTORS %d\n", (int)p.m, (int)vectors);
    snprintf(kernel, sizeof kernel, "cpu_matmul_few%s_%dx%d", p.turned ? "_turned" : "", (int)p.m, (int)vectors);
    clt_cpu_begin_as(l, &(clt_cpu_variant){.defines = defines, .storage = node->inputs[0]->dtype, .last = true}, "native/cpu/matmul_few.cl", kernel,
                     clt_cpu_divide_up(p.n, (p.turned ? run : vectors) * width));
    for (int i = 0; i < 2; i++) clt_launch_tensor(l, node->inputs[i]);
    clt_launch_tensor(l, node);
    clt_launch_int(l, p.n);
    clt_launch_int(l, p.k);
    if (p.turned) clt_launch_int(l, run);
    clt_launch_epilogue(l, node);
}

const clt_backend_row clt_cpu_matmul_few_rows[] = {
    {CLT_NATIVE(matmul), .types = CLT_ANY_FLOAT, .epilogue = true, .any_epilogue = true, .supports = supports, .lower = lower}, {0}};
