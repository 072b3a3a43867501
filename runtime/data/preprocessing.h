/*
 * What data are: the inside of <cltrain/preprocessing.h>.
 */
#ifndef CLT_DATA_PREPROCESSING_H
#define CLT_DATA_PREPROCESSING_H

#include <cltrain/preprocessing.h>

#include "runtime/base/base.h"

typedef struct clt_names {
    char **items; /* NULL: there are none */
    int64_t n;
} clt_names;

/* Copies of n names, which are counted whether they succeed or not. */
clt_status clt_names_copy(clt_names *names, char *const *items, int64_t n);
void clt_names_free(clt_names *names);
/* "a, b, c", cut short. */
#define CLT_NAMES_TEXT 200
const char *clt_names_text(const clt_names *names, char text[CLT_NAMES_TEXT]);

/* Of the elements of a sample that share them: one alone, a channel's plane, or all of a target. */
typedef struct clt_moments {
    size_t n;                 /* of groups; 0: none are known */
    double *mean, *deviation; /* of each; one block of memory. Where there is no spread the deviation is 1 */
} clt_moments;

clt_status clt_moments_make(clt_moments *moments, size_t n);

struct clt_preprocessing {
    clt_dtype dtype;
    clt_shape shape;
    clt_names features, class_names;
    clt_names texts; /* columns of a table whose texts are elements of a sample, "colour=red" */
    char *label;
    int64_t label_column; /* of a table without a header, from 1, among those that are not left out; 0: it is not known */
    int classes;
    clt_shape target; /* of numbers; rank -1: there are none */
    clt_moments moments, target_moments; /* of samples; of numbers to predict, one for all */
    double *fill; /* of each element of a table: what a missing value becomes; NULL: there must be none */
};

clt_status clt_preprocessing_copy(clt_preprocessing **copy, const clt_preprocessing *p);

/* CLT_E_MISMATCH where data of `other` do not suit a model of `p`; `path` is the model's file. */
clt_status clt_preprocessing_compare(const clt_preprocessing *p, const clt_preprocessing *other, const char *path);

clt_status clt_moments_copy(clt_moments *copy, const clt_moments *moments);

/* (x - mean) / deviation, of field 0; of samples that a function makes, when they are fetched. */
clt_status clt_dataset_scale(clt_dataset *dataset, const clt_moments *moments);
/* The same of the numbers to predict, if there are any. */
clt_status clt_dataset_scale_target(clt_dataset *dataset, const clt_moments *moments);

#endif
