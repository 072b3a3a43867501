/* Views and a broadcast: each pixel becomes a square. */
#include "runtime/ops/ops.h"

clt_tensor *clt_upsample_nearest2d(clt_tensor *x, int scale) {
    if (!clt_tensor_valid(x)) return x;
    char text[CLT_SHAPE_TEXT];
    if (x->shape.rank != 4 || scale < 1 || scale > 4096)
        return clt_graph_fail(x->graph, clt_fail(CLT_E_SHAPE, "upsample_nearest2d: expected x [N, C, H, W] and a scale of 1 to 4096, got %s and %d",
                                                 clt_shape_text(&x->shape, text), scale));
    clt_shape e = clt_tensor_extent(x), places = clt_reshape_places(x);
    clt_tensor *apart = clt_reshape_to(x, CLT_SHAPE(0, 0, places.dims[2], 1, places.dims[3], 1));
    clt_tensor *wide = clt_expand(apart, CLT_SHAPE(-1, -1, -1, scale, -1, scale));
    int64_t height = clt_dim_times(e.dims[2], scale), width = clt_dim_times(e.dims[3], scale);
    if (height == -1 && width == -1) {
        wide = clt_reshape_to(wide, CLT_SHAPE(0, 0, -1, CLT_DIM_OF(4), CLT_DIM_OF(5)));
        height = 0;
    }
    return clt_reshape_to(wide, CLT_SHAPE(0, 0, height, width));
}
