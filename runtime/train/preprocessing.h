/*
 * What data are, as the metadata of a file tells it: JSON, see <cltrain/preprocessing.h>.
 */
#ifndef CLT_TRAIN_PREPROCESSING_H
#define CLT_TRAIN_PREPROCESSING_H

#include <cltrain/preprocessing.h>

#include "runtime/train/safetensors.h"

extern const char clt_preprocessing_key[]; /* in the metadata */
extern const char clt_model_key[];

/* CLT_E_INVALID: a name is not UTF-8. */
clt_status clt_preprocessing_write(const clt_preprocessing *preprocessing, clt_text *text);

/* `path` is for errors. CLT_E_FORMAT names what is missing or makes no sense. */
clt_status clt_preprocessing_read(clt_preprocessing **preprocessing, const char *text, const char *path);

#endif
