/* Rotary positions, of other ops: tables of cosines and sines are constants of the graph, one for all that need the same. */
#include <math.h>
#include <stdio.h>

#include "runtime/ops/ops.h"

/* [length, pairs] of cos or sin of position x base^(-pair / pairs): in single precision, as models have been trained with them. */
static clt_tensor *make_table(clt_graph *graph, const char *name, int64_t length, int64_t pairs, float base, bool sine) {
    float *values = clt_alloc((size_t)(length * pairs) * sizeof *values);
    if (!values) return clt_graph_fail(graph, clt_fail_memory((size_t)(length * pairs) * sizeof *values));
    for (int64_t p = 0; p < pairs; p++) {
        float frequency = 1.0f / powf(base, (float)(2 * p) / (float)(2 * pairs));
        for (int64_t t = 0; t < length; t++) {
            double angle = (double)((float)t * frequency);
            values[t * pairs + p] = (float)(sine ? sin(angle) : cos(angle));
        }
    }
    clt_tensor *table = clt_constant(graph, name, &(clt_array){CLT_F32, CLT_SHAPE(length, pairs), values});
    clt_free(values);
    return table;
}

/* Of the places of x: [T, pairs], or by their numbers [N, 1, T, pairs]. */
static clt_tensor *table_of(clt_tensor *x, float base, bool sine, clt_tensor *position_ids) {
    char name[96];
    int64_t length = x->shape.dims[2], pairs = x->shape.dims[3] / 2;
    snprintf(name, sizeof name, "rotary.%.9g.%lldx%lld.%s", (double)base, (long long)length, (long long)pairs, sine ? "sin" : "cos");
    clt_tensor *table = clt_graph_find(x->graph, name);
    if (!table) table = make_table(x->graph, name, length, pairs, base, sine);
    if (!position_ids) return clt_slice_like(table, x, 2);
    return clt_reshape_to(clt_embedding_op(position_ids, table), CLT_SHAPE(CLT_BATCH, 1, -1, pairs));
}

/* With a dimension more, of the two elements of a pair. */
static clt_tensor *for_pairs(clt_tensor *table) {
    return clt_reshape(table, table->shape.rank == 2 ? CLT_SHAPE(0, 0, 1) : CLT_SHAPE(CLT_BATCH, 1, 0, 0, 1));
}

clt_tensor *clt_rotary_with(clt_tensor *x, clt_rotary_options options) {
    if (!clt_tensor_valid(x)) return x;
    char text[CLT_SHAPE_TEXT];
    float base = clt_or_default(options.base, 10000);
    if (x->shape.rank != 4 || x->shape.dims[3] % 2 || !(base > 0 && base < INFINITY))
        return clt_graph_fail(x->graph, clt_fail(CLT_E_SHAPE, "rotary: expected x [N, heads, T, D] with an even D and a base above 0, got %s and %g",
                                                 clt_shape_text(&x->shape, text), (double)base));
    const clt_tensor *ids = options.position_ids;
    if (ids && !clt_shape_equal(&ids->shape, &CLT_SHAPE(x->shape.dims[0], x->shape.dims[2])))
        return clt_graph_fail(x->graph, clt_fail(CLT_E_SHAPE, "rotary: expected position_ids [%lld, %lld], got %s", (long long)x->shape.dims[0],
                                                 (long long)x->shape.dims[2], clt_shape_text(&ids->shape, text)));
    int64_t width = x->shape.dims[3];
    clt_tensor *cosine = table_of(x, base, false, options.position_ids), *sine = table_of(x, base, true, options.position_ids), *parts[2], *turned[2];
    if (options.interleaved) {
        x = clt_reshape_to(x, CLT_SHAPE(0, 0, 0, width / 2, 2));
        cosine = for_pairs(cosine);
        sine = for_pairs(sine);
    }
    int64_t half = options.interleaved ? 1 : width / 2;
    for (int i = 0; i < 2; i++) parts[i] = clt_slice(x, -1, i * half, (i + 1) * half, 1);
    turned[0] = clt_sub(clt_mul(parts[0], cosine), clt_mul(parts[1], sine));
    turned[1] = clt_add(clt_mul(parts[1], cosine), clt_mul(parts[0], sine));
    clt_tensor *y = clt_concat(turned, 2, -1);
    return options.interleaved ? clt_reshape(y, CLT_SHAPE(0, 0, 0, -1)) : y;
}
