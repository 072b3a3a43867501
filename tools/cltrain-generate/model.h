/*
 * A language model and its weights, from a folder or a file.
 */
#ifndef CLTRAIN_GENERATE_MODEL_H
#define CLTRAIN_GENERATE_MODEL_H

#include <cltrain/cltrain.h>

enum { PATH_BYTES = 4096 };

typedef struct model {
    clt_language_model language;
    char weights[PATH_BYTES];
    char tokenizer[PATH_BYTES]; /* "": the model has none of its own */
} model;

/* Returns 0, or EXIT_FAILED after saying why. */
int model_find(model *m, const char *path);

#endif
