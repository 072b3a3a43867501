#include "backends/reference/reference.h"

static const char path[] = "reference/metric.cl";

void clt_reference_metric_add(clt_lowering *l, const clt_tensor *node) {
    const clt_metric_attributes *at = node->attributes;
    clt_launch_begin(l, path, "ref_metric_add", 1, 1);
    clt_launch_tensor(l, node->inputs[0]);
    clt_launch_tensor(l, node->inputs[1]);
    clt_launch_float(l, at->weight);
    clt_launch_int(l, at->finite);
}

void clt_reference_metric_correct(clt_lowering *l, const clt_tensor *node) {
    const clt_tensor *logits = node->inputs[1];
    clt_launch_begin(l, path, "ref_metric_correct", CLT_REFERENCE_GROUP, CLT_REFERENCE_GROUP);
    for (int i = 0; i < node->n_inputs; i++) clt_launch_tensor(l, node->inputs[i]);
    clt_launch_int(l, logits->shape.dims[0]);
    clt_launch_int(l, logits->shape.dims[1]);
}
