#include "tests/files/model.h"

enum { BATCH = 32 };

clt_status model_make(model *m, clt_device *device, clt_dataset *digits, int hidden) {
    const clt_train_options options = {.optimizer = CLT_ADAMW, .seed = 3};
    const clt_loader_options order = {.batch = BATCH, .shuffle = true, .drop_last = true, .seed = 5};
    *m = (model){0};
    clt_status status = clt_graph_create(&m->graph);
    if (status < 0) return status;
    clt_tensor *x = clt_input(m->graph, "image", CLT_F32, CLT_SHAPE(BATCH, 1, 8, 8));
    clt_tensor *y = clt_input(m->graph, "label", CLT_I32, CLT_SHAPE(BATCH));
    clt_tensor *h = clt_relu(clt_linear(clt_flatten(x), "fc1", hidden));
    status = clt_trainer_create(&m->trainer, device, clt_cross_entropy(clt_linear(h, "fc2", 10), y), &options);
    if (status == CLT_OK) status = clt_loader_create(&m->loader, digits, &order);
    if (status < 0) model_destroy(m);
    return status;
}

clt_status model_train(model *m, int steps) {
    clt_batch batch;
    while (steps > 0) {
        clt_status status = clt_loader_next(m->loader, &batch);
        if (status == CLT_END) continue;
        if (status == CLT_OK) status = clt_trainer_step(m->trainer, &batch);
        if (status < 0) return status;
        steps--;
    }
    return CLT_OK;
}

void model_destroy(model *m) {
    clt_trainer_destroy(m->trainer);
    clt_loader_destroy(m->loader);
    clt_graph_destroy(m->graph);
    *m = (model){0};
}
