/*
 * Predictions as files: a table's lines with columns added, or an array.
 */
#ifndef CLTRAIN_TRAIN_PREDICT_WRITE_H
#define CLTRAIN_TRAIN_PREDICT_WRITE_H

#include <stdint.h>
#include <stdio.h>

#include <cltrain/preprocessing.h>

#include "data_spec.h"

/* Of each sample `width` values: probabilities of the classes, or the numbers that were predicted. */
typedef struct predictions {
    const clt_preprocessing *trained_on;
    const clt_dataset *data; /* samples that have names get them in the first column of a table */
    int64_t samples, width;
    const double *values; /* NaN: of a sample that could not be read; it is left out of a table */
    int digits; /* that tell them apart: PREDICT_F32_DIGITS, or more where they are far from 0 */
} predictions;

enum { PREDICT_F32_DIGITS = 9, PREDICT_F64_DIGITS = 17 };

/* The lines of the table, and behind each the class and the probability of each, or the numbers; these alone, with a header, if `spec` is
 * NULL, with the samples' names before them, if these have any. A column whose name the table has already is named "prediction_2". Returns 0, or EXIT_FAILED after saying why. */
int predict_write_table(const predictions *p, const data_spec *spec, FILE *file);

/* [samples, width] as NumPy stores it: f32, or f64 where f32 has too few digits. */
int predict_write_array(const predictions *p, FILE *file);

#endif
