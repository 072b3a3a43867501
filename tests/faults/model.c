#include "tests/faults/model.h"

#include <stdio.h>
#include <string.h>

#include "runtime/base/base.h"

void digest_add(digest *d, const void *bytes, size_t n) {
    const unsigned char *at = bytes;
    if (!d->hash) d->hash = 14695981039346656037u;
    for (size_t i = 0; i < n; i++) d->hash = (d->hash ^ at[i]) * 1099511628211u;
}

void digest_add_text(digest *d, const char *text) {
    digest_add(d, text, strlen(text) + 1);
}

static clt_status add_bytes(digest *d, const char *path, int end) {
    FILE *file = fopen(path, "rb");
    if (!file) return clt_fail(CLT_E_IO, "the test cannot read %s", path);
    for (int byte; (byte = getc(file)) != EOF && byte != end;) digest_add(d, &(char){(char)byte}, 1);
    fclose(file);
    return CLT_OK;
}

clt_status digest_add_file(digest *d, const char *path) {
    return add_bytes(d, path, EOF);
}

clt_status digest_add_first_line(digest *d, const char *path) {
    return add_bytes(d, path, '\n');
}

void scenario_path(char path[512], const char *name) {
    snprintf(path, 512, "%s/%s", scenario_folder, name);
}

/* ---- models ---- */

enum { SAMPLES = 44 };

clt_tensor *model_mlp(clt_graph *g, clt_tensor **label) {
    clt_tensor *x = clt_input(g, "x", CLT_F32, CLT_SHAPE(BATCH, 1, 6, 6));
    *label = clt_input(g, "label", CLT_I32, CLT_SHAPE(BATCH));
    clt_tensor *h = clt_relu(clt_linear(clt_flatten(x), "fc1", 12));
    return clt_linear(clt_dropout(h, 0.25f), "fc2", CLASSES);
}

clt_tensor *model_convnet(clt_graph *g, clt_tensor **label) {
    clt_tensor *x = clt_input(g, "x", CLT_F32, CLT_SHAPE(BATCH, 1, 6, 6));
    *label = clt_input(g, "label", CLT_I32, CLT_SHAPE(BATCH));
    clt_tensor *h = clt_relu(clt_batch_norm(clt_conv2d(x, "conv", 8, .kernel = 3, .padding = 1), "bn"));
    return clt_linear(clt_flatten(clt_max_pool2d(h, .kernel = 2)), "fc", CLASSES);
}

clt_status model_create(model *m, clt_device *device, make_model make, clt_train_options options,
                        clt_loader_options loading) {
    clt_status status;
    clt_tensor *label;
    TRY(clt_dataset_synthetic(&m->data, CLT_SHAPE(1, 6, 6), CLASSES, SAMPLES, 3));
    loading.batch = loading.batch ? loading.batch : BATCH;
    loading.shuffle = true;
    TRY(clt_loader_create(&m->loader, m->data, &loading));
    TRY(clt_graph_create(&m->graph));
    m->output = make(m->graph, &label);
    m->loss = clt_cross_entropy(m->output, label);
    options.output = m->output;
    TRY(clt_trainer_create(&m->trainer, device, m->loss, &options));
done:
    return status;
}

void model_destroy(model *m) {
    clt_trainer_destroy(m->trainer);
    clt_graph_destroy(m->graph);
    clt_loader_destroy(m->loader);
    clt_dataset_destroy(m->data);
}

clt_status model_train(model *m, int batches) {
    clt_status status = CLT_OK;
    clt_batch batch;
    while (batches > 0) {
        TRY(clt_loader_next(m->loader, &batch));
        if (status == CLT_END) continue;
        TRY(clt_trainer_step(m->trainer, &batch));
        batches--;
    }
done:
    return status < 0 ? status : CLT_OK;
}

clt_status digest_add_values(digest *d, clt_trainer *t, const char *name, size_t count) {
    float values[1024];
    clt_status status = clt_trainer_get(t, name, values, count);
    if (status == CLT_OK) digest_add(d, values, count * sizeof *values);
    return status;
}

clt_status digest_add_mlp(digest *d, model *m) {
    clt_status status;
    TRY(digest_add_values(d, m->trainer, "fc1.weight", 36 * 12));
    TRY(digest_add_values(d, m->trainer, "fc1.bias", 12));
    TRY(digest_add_values(d, m->trainer, "fc2.weight", 12 * CLASSES));
done:
    return status;
}

clt_status digest_add_convnet(digest *d, model *m) {
    clt_status status;
    TRY(digest_add_values(d, m->trainer, "conv.weight", 72));
    TRY(digest_add_values(d, m->trainer, "bn.running_var", 8));
    TRY(digest_add_values(d, m->trainer, "fc.weight", 72 * CLASSES));
done:
    return status;
}

clt_status model_evaluate(model *m, digest *d) {
    clt_status status;
    clt_batch batch;
    clt_metrics metrics;
    float result[BATCH * CLASSES];
    TRY(clt_trainer_train_metrics(m->trainer, &metrics, true));
    digest_add(d, &metrics.loss, sizeof metrics.loss);
    do TRY(clt_loader_next(m->loader, &batch));
    while (status == CLT_END || batch.samples != BATCH);
    TRY(clt_trainer_evaluate(m->trainer, &batch));
    TRY(clt_trainer_eval_metrics(m->trainer, &metrics, false));
    digest_add(d, &metrics.loss, sizeof metrics.loss);
    digest_add(d, &metrics.accuracy, sizeof metrics.accuracy);
    TRY(clt_trainer_predict(m->trainer, m->output, &batch, result, BATCH * CLASSES));
    digest_add(d, result, sizeof result);
done:
    return status;
}
