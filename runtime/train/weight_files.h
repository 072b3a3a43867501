/*
 * The tensors of a safetensors file, or of the files that an index names, as Hugging Face's libraries write it beside them:
 *
 *     model.safetensors.index.json    {"metadata": {...}, "weight_map": {"name": "model-00001-of-00002.safetensors", ...}}
 *
 * An index is input like any other: its files lie in its folder, and each tensor that it names is where it says, and no other is there.
 * Every error names the file and what is wrong with it.
 */
#ifndef CLT_TRAIN_WEIGHT_FILES_H
#define CLT_TRAIN_WEIGHT_FILES_H

#include "runtime/train/safetensors.h"

/* A tensor, and the file that has its bytes. */
typedef struct clt_weight {
    const clt_safetensors_entry *entry;
    clt_safetensors *file;
} clt_weight;

typedef struct clt_weight_files clt_weight_files;

/* A path that ends with ".index.json" is an index. CLT_E_IO, CLT_E_FORMAT, CLT_E_NO_MEMORY. */
clt_status clt_weight_files_open(clt_weight_files **files, const char *path);
void clt_weight_files_close(clt_weight_files *files); /* NULL is fine */

/* A text of the metadata: of the first file that has it; NULL if none does. */
const char *clt_weight_files_metadata(const clt_weight_files *files, const char *key);
/* The file, or the first that the index names. */
clt_safetensors *clt_weight_files_first(const clt_weight_files *files);

/* In the order of their names. */
size_t clt_weight_files_count(const clt_weight_files *files);
const clt_weight *clt_weight_files_at(const clt_weight_files *files, size_t index);

/* By the name that a model has for it; NULL if there is none. A file of a language model without its head has names without what the head
 * puts before them: "wte.weight" is "transformer.wte.weight", "norm.weight" is "model.norm.weight". */
const clt_weight *clt_weight_files_find(const clt_weight_files *files, const char *name);

/* As f32: of F32, F16 or BF16, `bytes` are those of the f32 values; of other types, as they are. */
clt_status clt_weight_read(const clt_weight *weight, void *destination, size_t bytes);

/* Whether floats of that type become f32 without loss. */
bool clt_weight_widens(clt_safetensors_dtype dtype);

#endif
