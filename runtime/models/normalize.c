#include "runtime/base/imagenet.h"
#include "runtime/base/shape.h"
#include "runtime/models/models.h"

clt_tensor *clt_model_normalize(clt_tensor *x) {
    char text[CLT_SHAPE_TEXT];
    float factor[3], shift[3];
    if (!clt_tensor_valid(x)) return x;
    if (x->dtype != CLT_U8)
        return clt_graph_fail(x->graph, clt_fail(CLT_E_DTYPE, "clt_model_normalize: expected images u8, got %s", clt_dtype_name(x->dtype)));
    if (x->shape.rank != 4 || x->shape.dims[1] != 3)
        return clt_graph_fail(x->graph, clt_fail(CLT_E_SHAPE, "clt_model_normalize: expected images [N, 3, H, W], got %s", clt_shape_text(&x->shape, text)));
    for (int c = 0; c < 3; c++) {
        float mean = (float)clt_imagenet_mean[c], deviation = (float)clt_imagenet_deviation[c];
        factor[c] = 1 / (255 * deviation);
        shift[c] = -mean / deviation;
    }
    clt_array values[] = {{CLT_F32, CLT_SHAPE(3, 1, 1), factor}, {CLT_F32, CLT_SHAPE(3, 1, 1), shift}};
    x = clt_mul(clt_cast(x, CLT_F32), clt_constant(x->graph, "normalize.factor", &values[0]));
    return clt_add(x, clt_constant(x->graph, "normalize.shift", &values[1]));
}
