/*
 * Pipelines: a model in stages, one a rank.
 */
#ifndef CLTRAIN_PIPELINE_H
#define CLTRAIN_PIPELINE_H

#include <cltrain/device.h>
#include <cltrain/export.h>

CLT_BEGIN_DECLS

/* In which order a stage of a pipeline computes forward and backward of a batch's parts. Results are the same. */
typedef enum clt_pipeline_schedule {
    CLT_PIPELINE_1F1B = 0, /* backward as soon as it can be, so that a stage keeps the activations of few micro-batches: Narayanan et al. 2019, "PipeDream" */
    CLT_PIPELINE_GPIPE,    /* all of forward, then all of backward: Huang et al. 2019 */
    CLT_PIPELINE_ZB_H1,    /* as 1F1B, and gradients of weights are computed where a stage would wait: Qi et al. 2023, "Zero Bubble Pipeline Parallelism" */
    CLT_PIPELINE_INTERLEAVED /* as 1F1B, and each rank has several chunks of the model, so that it waits less and sends more: Narayanan et al. 2021, "Efficient Large-Scale
                                Language Model Training on GPU Clusters" */
} clt_pipeline_schedule;

/* "1f1b", "gpipe", "zb-h1", "interleaved"; NULL: there is no such schedule. */
CLT_API const char *clt_pipeline_schedule_name(clt_pipeline_schedule schedule);

/* A model cut into stages, one a rank, and each batch into micro-batches that go through them (see "pipelines" in cltrain/train.h). Zero means the default in every field. */
typedef struct clt_pipeline_options {
    int stages;       /* as many as options.comm has ranks; rank r has stage r. 0: each rank has the whole model */
    int microbatches; /* into which a batch is cut, of equal size: as many as that divides it, this at most; default 2 stages. CLT_PIPELINE_INTERLEAVED wants a multiple of
                         the stages; a batch that has another number goes forward whole, then back */
    clt_pipeline_schedule schedule;
    int chunks;        /* of the model that each rank has, with CLT_PIPELINE_INTERLEAVED (or CLT_PIPELINE_GPIPE, default 1): rank r has chunks r, r + stages, r + 2 stages ... of it; default 2 */
    const char *split; /* where each stage (or chunk) but the first begins: names of layers, as "h.4" of "h.4.attn.weight", or of tensors (clt_tensor_set_name), in the order
                          of the graph with commas between them. NULL: by the ops' arithmetic and bytes, and the devices' memory */
    const clt_peaks *peaks; /* One a rank of the communicator, the same on all: what its device can do (clt_device_peaks), where the split is not given. NULL: they are alike */
} clt_pipeline_options;

CLT_END_DECLS

#endif
