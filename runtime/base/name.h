/*
 * What tensors may be called, so that every checkpoint can hold them.
 */
#ifndef CLT_BASE_NAME_H
#define CLT_BASE_NAME_H

#include "runtime/base/base.h"

/* What optimizers keep is in checkpoints under this and the variable's name. */
#define CLT_STATE_PREFIX "cltrain.optimizer."
/* The count of a batch normalization's steps is there under this, beside its running mean. */
#define CLT_TRACKED_SUFFIX ".num_batches_tracked"

/* Any tensor of a safetensors file. CLT_E_INVALID: the name is not UTF-8, or "__metadata__". */
clt_status clt_tensor_name_check(const char *name);
/* A parameter or buffer: CLT_E_INVALID, too, where it begins or ends as these do. */
clt_status clt_variable_name_check(const char *name);

/* Bytes of the layer's name in that of its weight: without ".weight", if it ends so. */
size_t clt_layer_name_length(const char *weight);

/* "*" in the pattern stands for any characters, "?" for one. */
bool clt_name_matches(const char *name, const char *pattern);

#endif
