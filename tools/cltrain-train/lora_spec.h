/*
 * --lora rank=N[,alpha=X][,dropout=X],targets=LAYER,... or --lora FOLDER.
 */
#ifndef CLTRAIN_TRAIN_LORA_SPEC_H
#define CLTRAIN_TRAIN_LORA_SPEC_H

#include <cltrain/lora.h>

typedef struct lora_spec {
    clt_lora_options options;
    const char *targets; /* within the text: names of layers, or their last parts, with commas between; NULL: the folder tells */
} lora_spec;

/* Returns 0, or EXIT_USAGE after saying what was expected. */
int lora_spec_parse(lora_spec *spec, const char *text);

#endif
