/*
 * The predictor inside.
 */
#ifndef CLT_TRAIN_PREDICTOR_H
#define CLT_TRAIN_PREDICTOR_H

#include <cltrain/predictor.h>

#include "runtime/train/trainer.h"

struct clt_predictor {
    clt_trainer *forward; /* without a loss */
    clt_tensor *output;
};

#endif
