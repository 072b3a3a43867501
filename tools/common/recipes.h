/*
 * What a model is trained with unless the command line says otherwise: by cltrain-train, and where cltrain-probe predicts its steps.
 */
#ifndef CLTRAIN_TOOLS_RECIPES_H
#define CLTRAIN_TOOLS_RECIPES_H

#include <cltrain/train.h>

#include "tools/common/models.h"

typedef struct recipe {
    clt_optimizer optimizer;
    double lr, momentum, weight_decay;
    bool nesterov;
    clt_schedule schedule;
    int64_t batch_least, batch_most; /* by the size of the data */
} recipe;

/* Words of the command line, ended by NULL: in the order of clt_optimizer. */
extern const char *const optimizer_names[];
extern const char *const precision_names[], *const recompute_names[], *const offload_names[], *const shard_names[]; /* of clt_precision, clt_recompute, clt_offload and clt_shard */

const recipe *recipe_of_model(model_id id);

/* What an optimizer starts from when it was chosen by name, rather than by the model. */
recipe recipe_of_optimizer(clt_optimizer optimizer);

#endif
