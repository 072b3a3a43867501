/* Images of another size: each row and column is a weighted sum of the old ones, so both are products with a matrix. */
#include <math.h>
#include <stdio.h>

#include "runtime/ops/ops.h"

/* Weights [to, from] of the old pixels in a new one. */
typedef void fill_weights(float *row, int64_t i, int64_t from, int64_t to);

/* Between the two nearest, of which centers are at i + 1/2. */
static void fill_bilinear(float *row, int64_t i, int64_t from, int64_t to) {
    double place = fmax(((double)i + 0.5) * (double)from / (double)to - 0.5, 0);
    int64_t low = CLT_MIN((int64_t)place, from - 1), high = CLT_MIN(low + 1, from - 1);
    row[low] += (float)(1 - (place - (double)low));
    row[high] += (float)(place - (double)low);
}

/* The mean of floor(i from / to) to before ceil((i + 1) from / to). */
static void fill_adaptive(float *row, int64_t i, int64_t from, int64_t to) {
    int64_t first = i * from / to, end = ((i + 1) * from + to - 1) / to;
    for (int64_t k = first; k < end; k++) row[k] = (float)(1.0 / (double)(end - first));
}

/* The constant, which images of the same sizes share. */
static clt_tensor *weights_of(clt_graph *graph, const char *what, fill_weights *fill, int64_t from, int64_t to) {
    char name[96];
    snprintf(name, sizeof name, "cltrain.%s.%lld.%lld", what, (long long)from, (long long)to);
    clt_tensor *found = clt_graph_find(graph, name);
    if (found) return found;
    float *values = clt_calloc((size_t)(from * to), sizeof *values);
    if (!values) return clt_graph_fail(graph, clt_fail_memory((size_t)(from * to) * sizeof *values));
    for (int64_t i = 0; i < to; i++) fill(values + i * from, i, from, to);
    clt_tensor *made = clt_constant(graph, name, &(clt_array){CLT_F32, CLT_SHAPE(to, from), values});
    clt_free(values);
    return made;
}

static clt_tensor *resample(const char *what, fill_weights *fill, clt_tensor *x, int64_t height, int64_t width) {
    enum { LARGEST = 1 << 14 };
    if (!clt_tensor_valid(x)) return x;
    char text[CLT_SHAPE_TEXT];
    const int64_t *dims = x->shape.dims;
    bool fits = x->shape.rank == 4 && height >= 1 && width >= 1 && height <= LARGEST && width <= LARGEST && dims[2] <= LARGEST && dims[3] <= LARGEST;
    clt_shape extent = clt_tensor_extent(x);
    fits = fits && extent.dims[2] == dims[2] && extent.dims[3] == dims[3];
    if (!fits)
        return clt_graph_fail(x->graph, clt_fail(CLT_E_SHAPE, "%s: expected x [N, C, H, W] of one size and a size of 1 to %d, got %s and %lldx%lld", what, LARGEST,
                                                 clt_shape_text(&x->shape, text), (long long)height, (long long)width));
    if (width != dims[3]) x = clt_matmul_with(x, weights_of(x->graph, what, fill, dims[3], width), (clt_matmul_options){.transpose_b = true});
    if (height != dims[2] && clt_tensor_valid(x)) x = clt_matmul(weights_of(x->graph, what, fill, dims[2], height), x);
    return x;
}

clt_tensor *clt_upsample_bilinear2d(clt_tensor *x, int64_t height, int64_t width) {
    return resample("upsample_bilinear2d", fill_bilinear, x, height, width);
}

clt_tensor *clt_adaptive_avg_pool2d(clt_tensor *x, int64_t height, int64_t width) {
    return resample("adaptive_avg_pool2d", fill_adaptive, x, height, width);
}
