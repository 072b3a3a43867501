/*
 * Loss scaling, by the rules and numbers of PyTorch's torch.amp.GradScaler: the loss is multiplied by a scale, so that gradients of f16 do not vanish, and
 * gradients of f32 are divided by it before they are clipped. Where one is not finite the update is left out and the scale halved; after 2000 good updates
 * it is doubled. All of it is done on the device (the ops hyper_unscale and loss_scale); here is what the host knows.
 */
#include <math.h>

#include "runtime/train/parallel.h"
#include "runtime/train/stage.h"

const char clt_loss_scale_name[] = "loss_scale";

bool clt_loss_scaled(const clt_trainer *t) {
    return t->options.precision == CLT_PRECISION_F16;
}

clt_status clt_loss_scale_agree(clt_trainer *t) {
    clt_comm *comm = clt_trainer_group(t);
    int64_t batch = t->inputs[0]->shape.dims[0];
    double samples = (double)(t->stage ? batch / clt_stage_micros(t, batch) : batch);
    if (!comm) return CLT_OK;
    CLT_TRY(clt_parallel_sum(comm, &samples, 1));
    if (t->options.comm && clt_loss_scaled(t)) t->sample_weight = (float)exp2(-round(log2(samples / clt_comm_size(comm))));
    return CLT_OK;
}

static clt_memory *find(const clt_trainer *t) {
    size_t bytes;
    return clt_state_store_find(t->store, clt_loss_scale_name, &bytes);
}

clt_status clt_loss_scale_begin(clt_trainer *t) {
    clt_memory *memory = find(t);
    if (!clt_loss_scaled(t) || t->scale_begun || !memory) return CLT_OK;
    CLT_TRY(clt_memory_write(memory, 0, t->loss_scale, sizeof t->loss_scale));
    t->scale_begun = true;
    return CLT_OK;
}

clt_status clt_loss_scale_read(const clt_trainer *t, float values[CLT_LOSS_SCALE_COUNT]) {
    for (int i = 0; i < CLT_LOSS_SCALE_COUNT; i++) values[i] = t->loss_scale[i];
    return t->scale_begun ? clt_memory_read(find(t), 0, values, sizeof t->loss_scale) : CLT_OK;
}

clt_status clt_loss_scale_restore(clt_trainer *t, float scale, int64_t steps) {
    t->loss_scale[CLT_LOSS_SCALE] = scale > 0 ? scale : CLT_LOSS_SCALE_FIRST;
    t->loss_scale[CLT_LOSS_SCALE_STEPS] = (float)steps;
    t->scale_begun = false;
    return clt_loss_scale_begin(t);
}

clt_status clt_trainer_loss_scale(clt_trainer *t, float *scale) {
    float values[CLT_LOSS_SCALE_COUNT];
    if (!t || !scale) return clt_fail(CLT_E_INVALID, "clt_trainer_loss_scale: trainer or scale is NULL");
    *scale = 1;
    if (!clt_loss_scaled(t)) return CLT_OK;
    CLT_TRY(clt_loss_scale_read(t, values));
    *scale = values[CLT_LOSS_SCALE];
    return CLT_OK;
}
