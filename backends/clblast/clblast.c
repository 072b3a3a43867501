/*
 * Matrix products by CLBlast. Its kernels are tuned for many GPUs, and compiled by itself the first
 * time a program uses them, for seconds. It serves on demand only: if a tuner found it fastest, or
 * the setting `backends` names it.
 *
 * What CLBlast compiled it keeps until the program ends.
 */
#include "backends/backend.h"

#ifdef CLT_WITH_CLBLAST
#include <clblast_c.h>
#include <stdlib.h>
#include <string.h>

/* One product, or several at even strides. */
typedef struct product {
    size_t m, n, k, batch;
    size_t a_stride, b_stride;
    bool transpose_a, transpose_b;
} product;

/* Whether matrix i of the flattened batch is `step` times i, from strides by dimension (in elements). */
static bool even_stride(const int64_t *size, const int64_t *strides, size_t *step) {
    int64_t within = 1, found = -1;
    for (int d = CLT_MAX_RANK - 1; d >= 0; d--) {
        if (size[d] == 1) continue;
        if (found < 0 && within == 1) found = strides[d];
        if (strides[d] != found * within) return false;
        within *= size[d];
    }
    *step = found > 0 ? (size_t)found : 0;
    return true;
}

/* False if the batch is not at even strides. */
static bool product_of(const clt_tensor *node, product *p) {
    const clt_matmul_attributes *at = node->attributes;
    const clt_tensor *a = node->inputs[0], *b = node->inputs[1];
    int rank = node->shape.rank;
    int64_t size[CLT_MAX_RANK], a_strides[CLT_MAX_RANK], b_strides[CLT_MAX_RANK];
    *p = (product){.m = (size_t)node->shape.dims[rank - 2], .n = (size_t)node->shape.dims[rank - 1]};
    p->k = (size_t)a->shape.dims[a->shape.rank - (at->transpose_a ? 2 : 1)];
    p->batch = (size_t)clt_tensor_elements(node) / (p->m * p->n);
    p->transpose_a = at->transpose_a;
    p->transpose_b = at->transpose_b;
    for (int d = 0; d < CLT_MAX_RANK; d++) {
        int i = d - (CLT_MAX_RANK - (rank - 2));
        size[d] = i >= 0 ? node->shape.dims[i] : 1;
    }
    clt_broadcast_strides(a, 2, a_strides);
    clt_broadcast_strides(b, 2, b_strides);
    if (!even_stride(size, a_strides, &p->a_stride) || !even_stride(size, b_strides, &p->b_stride)) return false;
    /* One b for all of a batch that lies together: a taller product. */
    if (p->batch > 1 && p->b_stride == 0 && p->a_stride == p->m * p->k && !p->transpose_a) {
        p->m *= p->batch;
        p->batch = 1;
    }
    return true;
}

static clt_status run(clt_device *device, clt_memory *const *arguments, void *state) {
    const product *p = state;
    cl_command_queue queue = clt_device_handles(device).queue;
    cl_mem a = clt_memory_handle(arguments[0]), b = clt_memory_handle(arguments[1]),
           c = clt_memory_handle(arguments[2]);
    CLBlastTranspose ta = p->transpose_a ? CLBlastTransposeYes : CLBlastTransposeNo;
    CLBlastTranspose tb = p->transpose_b ? CLBlastTransposeYes : CLBlastTransposeNo;
    size_t a_row = p->transpose_a ? p->m : p->k, b_row = p->transpose_b ? p->k : p->n;
    CLBlastStatusCode code =
        p->batch == 1
            ? CLBlastSgemm(CLBlastLayoutRowMajor, ta, tb, p->m, p->n, p->k, 1.0f, a, 0, a_row, b, 0, b_row, 0.0f, c, 0,
                           p->n, &queue, NULL)
            : CLBlastSgemmStridedBatched(CLBlastLayoutRowMajor, ta, tb, p->m, p->n, p->k, 1.0f, a, 0, a_row,
                                         p->a_stride, b, 0, b_row, p->b_stride, 0.0f, c, 0, p->n, p->m * p->n,
                                         p->batch, &queue, NULL);
    if (code == CLBlastSuccess) return CLT_OK;
    return clt_fail(CLT_E_DEVICE, "CLBlast's error %d in a product of %zu x %zu x %zu", (int)code, p->m, p->n, p->k);
}

static bool supports(const clt_candidate *c) {
    /* Below this, its launches cost more than they save. */
    enum { LEAST_PRODUCTS = 4096 };
    product p;
    /* On CPUs it is slow, and slower still to begin: nothing to try there unless told to. */
    if (clt_device_get_class(c->device) != CLT_CLASS_GPU && !clt_backend_is_named(c->device, "clblast")) return false;
    return product_of(c->node, &p) && (double)p.m * (double)p.n * (double)p.k * (double)p.batch >= LEAST_PRODUCTS;
}

static void lower(clt_lowering *l, const clt_tensor *node) {
    product *p = clt_alloc(sizeof *p);
    if (!p) {
        clt_lower_fail(l, clt_fail_memory(sizeof *p));
        return;
    }
    product_of(node, p);
    clt_launch_begin_call(l, "CLBlastSgemm", &(clt_call){.run = run, .state = p, .release = clt_free});
    clt_launch_tensor(l, node->inputs[0]);
    clt_launch_tensor(l, node->inputs[1]);
    clt_launch_tensor(l, node);
}

const clt_backend_row clt_clblast_rows[] = {
    {.op = &clt_op_matmul, .name = "clblast", .on_demand = true, .supports = supports, .lower = lower},
    {0},
};
#else
const clt_backend_row clt_clblast_rows[] = {{0}};
#endif
