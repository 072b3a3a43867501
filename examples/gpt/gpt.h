/* A GPT of single ops (Radford et al. 2018, 2019): learned positions, tied embedding, sequences of up to GPT_LONGEST tokens. */
#ifndef GPT_H
#define GPT_H

#include <cltrain/cltrain.h>

enum { GPT_LONGEST = 64, GPT_WORDS = 256, GPT_WIDTH = 64, GPT_HEADS = 4, GPT_LAYERS = 4 };

typedef struct gpt {
    clt_graph *graph;
    clt_tensor *logits; /* [batch, length, GPT_WORDS] */
    clt_tensor *loss;
} gpt;

/* Inputs "tokens" and "next", both i32 [batch, length], and the fixed input "positions", which gpt_set_positions fills. An error is the graph's. */
clt_status gpt_build(gpt *model, int64_t batch);
clt_status gpt_set_positions(clt_trainer *trainer);

#endif
