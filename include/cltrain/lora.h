/*
 * Low-rank adapters: fine-tuning that trains a few thin matrices beside the weights of a model; LoRA, Hu et al. 2021.
 *
 * Each product x W with an adapted weight becomes x W + alpha / rank (x A^T) B^T. W is not trained any more; A, drawn as a linear layer's weight,
 * and B, 0 at first, are: so the model begins as it was. Names and files are those of Hugging Face's PEFT.
 */
#ifndef CLTRAIN_LORA_H
#define CLTRAIN_LORA_H

#include <cltrain/export.h>
#include <cltrain/graph.h>
#include <cltrain/predictor.h>
#include <cltrain/status.h>
#include <cltrain/train.h>

CLT_BEGIN_DECLS

#define CLT_LORA_MAX_RANK 4096

/* Zero means the default in every field. */
typedef struct clt_lora_options {
    int rank;      /* of A and B; default 8 */
    float alpha;   /* default: the rank, so that the product is added as it is */
    float dropout; /* of what A reads, while training; default 0 */
} clt_lora_options;

/* Adapts the weights whose names match the pattern ("*" stands for any characters, "?" for one) and which linear layers or clt_matmul multiply by: weight
 * [out, in], or [in, out] of clt_matmul. The others that match stay as they are, such as an embedding that serves as the head, too. "NAME.weight" gets the parameters "NAME.lora_A.weight" [rank, in] and
 * "NAME.lora_B.weight" [out, rank]. To be called on a whole graph, before trainers and predictors are created. Other parameters are trained as before:
 * clt_graph_set_trained(graph, "*", false) in front of it freezes them. `options` may be NULL. CLT_E_NOT_FOUND: no such weight
 * matches; CLT_E_INVALID: an invalid option. A weight that is adapted already is CLT_E_INVALID, and sticks in the graph, as other errors do. */
CLT_API clt_status clt_graph_add_lora(clt_graph *graph, const char *pattern, const clt_lora_options *options);

/* The same as a folder of PEFT has it (adapter_config.json and adapter_model.safetensors): for each of its matrices A and B. clt_lora_load reads their values.
 * CLT_E_IO, CLT_E_FORMAT: a file is no such; CLT_E_UNSUPPORTED: it asks for more than LoRA of linear layers, which is named; CLT_E_MISMATCH: the graph has no
 * such weight, or one of another shape. */
CLT_API clt_status clt_graph_add_lora_of(clt_graph *graph, const char *folder);

/* The same as a checkpoint of a trainer with adapters has it, which then fits: for clt_predictor_create, and clt_weights_load. CLT_E_NOT_FOUND: it has none. */
CLT_API clt_status clt_graph_add_lora_in(clt_graph *graph, const char *checkpoint);

/* Writes the adapters as a folder of PEFT, which is made if it is not there. CLT_E_STATE: the graph has none; CLT_E_UNSUPPORTED: their alpha or dropout differ;
 * CLT_E_IO. Of several ranks one calls it. clt_weights_save writes the whole model with the adapters merged into its weights. */
CLT_API clt_status clt_lora_save(clt_trainer *trainer, const char *folder);

/* Takes the adapters' values from such a folder, all of which it must have; nothing is changed on an error. Ranks as clt_weights_load. */
CLT_API clt_status clt_lora_load(clt_trainer *trainer, const char *folder);
CLT_API clt_status clt_predictor_load_lora(clt_predictor *predictor, const char *folder);

CLT_END_DECLS

#endif
