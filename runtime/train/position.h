/*
 * Where a run stands, as the metadata of its checkpoint tells it: texts under keys that begin with "cltrain.".
 */
#ifndef CLT_TRAIN_POSITION_H
#define CLT_TRAIN_POSITION_H

#include <cltrain/train.h>

#include "runtime/train/safetensors.h"

/* Of the count of micro-batches, and of a loader's epochs, the random numbers take this many bits: at a microsecond each, nine years. */
#define CLT_POSITION_LIMIT ((int64_t)1 << 48)

typedef struct clt_run_position {
    bool whole; /* else the file has weights alone, and nothing below is told */
    clt_optimizer optimizer;
    int64_t steps;      /* updates done; with `micro`, less than CLT_POSITION_LIMIT micro-batches */
    int64_t accumulate; /* micro-batches an update */
    int64_t micro;      /* since the last one */
    float loss_scale;   /* 0: none */
    int64_t loss_scale_steps; /* updates since it changed */
    int64_t skipped;    /* of the updates, those that were left out */
    uint64_t seed;
    bool has_loader; /* else no data loader was saved */
    clt_loader_position loader;
    int64_t loader_batches; /* an epoch */
} clt_run_position;

/* The optimizer's word in the file. */
const char *clt_run_position_optimizer(clt_optimizer optimizer);

enum { CLT_POSITION_PAIRS = 13, CLT_POSITION_TEXT = 24 };
typedef struct clt_position_texts {
    char texts[CLT_POSITION_PAIRS][CLT_POSITION_TEXT];
} clt_position_texts;

/* Fills pairs, whose numbers lie in `texts`; how many. */
size_t clt_run_position_write(const clt_run_position *position, clt_safetensors_pair pairs[CLT_POSITION_PAIRS], clt_position_texts *texts);

/* `path` is for errors. CLT_E_FORMAT names the entry that is missing, no number, or beyond what a run can reach. */
clt_status clt_run_position_read(clt_run_position *position, const clt_safetensors *file, const char *path);

#endif
