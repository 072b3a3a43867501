#include "tests/parity/networks.h"

#include <string.h>

#include <cltrain/models.h>
#include <cltrain/ops.h>

static clt_tensor *recurrent(clt_tensor *x, int64_t classes) {
    x = clt_lstm(x, "lstm", 12, .layers = 2, .bidirectional = true);
    x = clt_gru(x, "gru", 8);
    return clt_linear(clt_squeeze(clt_slice(x, 1, -1, INT64_MAX, 1), 1), "fc", classes);
}

/* The mean of the classes of a quarter of the image each, of which the first counts twice. */
static clt_tensor *unet(clt_tensor *x, int64_t classes, bool bilinear) {
    clt_tensor *pixels = clt_model_unet(x, .outputs = classes, .width = 4, .bilinear = bilinear);
    clt_tensor *quarters = clt_adaptive_avg_pool2d(pixels, 2, 2);
    return clt_add(clt_mean(quarters, CLT_AXES(2, 3)), clt_reshape(clt_slice(clt_slice(quarters, 2, 0, 1, 1), 3, 0, 1, 1), CLT_SHAPE(0, classes)));
}

clt_tensor *network_build(const char *name, clt_tensor *x, int64_t classes) {
    if (!strcmp(name, "recurrent")) return recurrent(x, classes);
    if (!strncmp(name, "unet", 4)) return unet(x, classes, !strcmp(name, "unet-bilinear"));
    return NULL;
}
