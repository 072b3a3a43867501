/*
 * Training that begins from another model's weights, leaves some of its own as they are, or trains adapters beside them.
 */
#ifndef TRAIN_FINETUNE_H
#define TRAIN_FINETUNE_H

#include <cltrain/cltrain.h>

#include "options.h"

/* --freeze: parameters whose names match one of the patterns, with commas between, are not trained. Returns 0, or an exit code after saying why not. */
int finetune_freeze(clt_graph *graph, const char *patterns);

/* --lora: adapters alone are trained. Returns 0, or an exit code after saying why not. */
int finetune_adapt(clt_graph *graph, const options *given);

/* --init, and --lora FOLDER: the trainer's first values, for data that are `own`. `tells`: what is left out is said, and what does not mean the same. Returns CLT_OK, or a status whose words say what to do. */
clt_status finetune_init(clt_trainer *trainer, const options *given, const clt_preprocessing *own, bool tells);

#endif
