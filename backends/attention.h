/*
 * What the kernels of attention are told besides its operands that are always there.
 */
#ifndef CLT_BACKENDS_ATTENTION_H
#define CLT_BACKENDS_ATTENTION_H

#include "backends/backend.h"

/* Queries, keys, values and gradients are of one storage type; statistics, and a mask, of f32. */
bool clt_attention_is_of_one_type(const clt_tensor *node);
/* Adds reference/scores.cl and the kernels' own text. */
void clt_attention_add_text(clt_text *text, const clt_device *device, const char *path);
/* All arguments of a kernel that has them as reference/attention.cl. */
void clt_attention_launch_all(clt_lowering *l, const clt_tensor *node);
/* Mask, position_ids and state of random numbers: each a tensor, whether it is read or not. */
void clt_attention_launch_options(clt_lowering *l, const clt_tensor *node);
/* The mask's strides, how places are told, the mask's kind, the site of dropout, the scale and the dropout, 0 outside of training. */
void clt_attention_launch_scalars(clt_lowering *l, const clt_tensor *node);

#endif
