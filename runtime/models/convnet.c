#include "runtime/models/models.h"

clt_tensor *clt_model_convnet(clt_tensor *x, int64_t outputs) {
    x = clt_relu(clt_conv2d(x, "conv1", 32, .kernel = 3, .padding = 1));
    x = clt_max_pool2d(x, .kernel = 2);
    x = clt_relu(clt_conv2d(x, "conv2", 64, .kernel = 3, .padding = 1));
    x = clt_max_pool2d(x, .kernel = 2);
    x = clt_relu(clt_linear(clt_flatten(x), "fc1", 128));
    return clt_linear(x, "fc2", outputs);
}
