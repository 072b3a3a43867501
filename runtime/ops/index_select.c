/* Slices of a tensor by their places: the rows of a table, which an embedding gathers. */
#include "runtime/ops/ops.h"

/* The order with `axis` first, or the one that turns it back. */
static void order_of(int rank, int axis, bool back, int order[CLT_MAX_RANK]) {
    for (int d = 0; d < rank; d++) {
        int from = d == 0 ? axis : d <= axis ? d - 1 : d;
        order[back ? from : d] = back ? d : from;
    }
}

clt_tensor *clt_index_select(clt_tensor *x, int axis, clt_tensor *indices) {
    if (!x || !indices || !clt_tensor_valid(x)) return indices ? x : NULL;
    if (!clt_tensor_valid(indices)) return indices;
    char text[CLT_SHAPE_TEXT];
    int at = clt_shape_axis(&x->shape, axis), order[CLT_MAX_RANK];
    if (at < 0 || indices->dtype != CLT_I32 || indices->shape.rank != 1)
        return clt_graph_fail(x->graph, clt_fail(CLT_E_SHAPE, "index_select: expected an axis of %s and indices i32 [n], got axis %d and %s of rank %d",
                                                 clt_shape_text(&x->shape, text), axis, clt_dtype_name(indices->dtype), indices->shape.rank));
    clt_shape extent = clt_tensor_extent(x), turned = extent;
    if (at > 0 && extent.dims[at] != x->shape.dims[at])
        return clt_graph_fail(x->graph, clt_fail(CLT_E_SHAPE, "index_select: axis %d of %s follows the batch or the length", axis, clt_shape_text(&x->shape, text)));
    order_of(x->shape.rank, at, false, order);
    for (int d = 0; d < x->shape.rank; d++) turned.dims[d] = extent.dims[order[d]];
    clt_tensor *table = clt_reshape_to(clt_permute(x, order), CLT_SHAPE(at ? x->shape.dims[at] : 0, -1));
    turned.dims[0] = clt_tensor_extent(indices).dims[0];
    clt_tensor *rows = clt_reshape_to(clt_embedding_op(indices, table), turned);
    order_of(x->shape.rank, at, true, order);
    return clt_permute(rows, order);
}
