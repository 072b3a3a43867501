/*
 * Compression of gradients on their way between ranks: a transformation of the step's graph.
 */
#ifndef CLT_TRAIN_COMPRESS_H
#define CLT_TRAIN_COMPRESS_H

#include "runtime/train/trainer.h"

/* The collective of one bucket's gradients. */
typedef struct clt_gradient_reduction {
    const clt_compress_options *options;
    int rank, size;
    const clt_bucket *bucket;
    int index; /* of the group */
    clt_tensor *flat;    /* sums over this rank's samples, f32 [bucket->elements]; its memory is what the result is put into */
    clt_tensor *samples; /* of all ranks, f32 [1] */
} clt_gradient_reduction;

/* compress.c: the mean gradient over the samples of all ranks, in the memory of `flat`. The same bits on all ranks. */
clt_tensor *clt_reduce_gradient(const clt_gradient_reduction *exchange);

/* powersgd.c: the same by PowerSGD. */
clt_tensor *clt_powersgd_reduce(const clt_gradient_reduction *exchange);

/* Fills in defaults; CLT_E_INVALID names what makes no sense. */
clt_status clt_compress_resolve(clt_compress_options *options);

/* Forgets residuals and factors: after a checkpoint was loaded, or when ranks were lost. Called by all ranks. */
clt_status clt_compress_reset(clt_trainer *trainer);

/* Whether a state of that name keeps something of one step for the next. */
bool clt_compress_keeps(const char *state_name);

/* compress_measure.c: with compression and several ranks, what it does to the bytes and the time of a collective, once; and says so in
 * the log. Called by all ranks. */
clt_status clt_compress_measure(clt_trainer *trainer);

/* State of one group that outlives steps: "compression.residual.0". */
clt_tensor *clt_compress_state(const clt_gradient_reduction *exchange, const char *what, int64_t elements);

#endif
