/*
 * What data are, so that a model trained on some can be used on others: the shape of a sample, the mean and the standard
 * deviation, the names of features and of classes.
 *
 * A trainer that is given it (clt_train_options) keeps it in checkpoints and files of weights, under the key
 * "cltrain.preprocessing" of their metadata, as a JSON object:
 *
 *     "dtype": "f32", "shape": [4]                 of a sample
 *     "features": ["width", "colour=red", …]       the columns of a table, in the order of a sample's elements; absent: they have no names
 *     "texts": ["colour", …]                       those of them whose texts are elements, which are 1 or 0; absent: all are numbers
 *     "missing": […]                               what a missing value of each becomes; absent: there must be none
 *     "mean": […], "deviation": […]                of each element, or of each channel of [channels, height, width]; absent: the model
 *                                                  takes samples as they are, else (x - mean) / deviation; of MNIST's and CIFAR-10's
 *                                                  files (x - 0) / 255: others are pixels as these have them
 *     "label": "species"                           the column of the truth; absent: it has no name
 *     "label_column": 1                            its place, from 1, in a table without a header, of the columns that are not left out
 *     "classes": 3 or ["setosa", "virginica", …]   how many, or their names; absent: the truth is numbers
 *     "target": [1]                                the shape of numbers to predict, of a sample; absent: there are none
 *     "target_mean": …, "target_deviation": …      what the model predicts is (number - mean) / deviation; absent: it is the number
 */
#ifndef CLTRAIN_PREPROCESSING_H
#define CLTRAIN_PREPROCESSING_H

#include <stdint.h>

#include <cltrain/data.h>
#include <cltrain/export.h>
#include <cltrain/status.h>
#include <cltrain/tensor.h>

CLT_BEGIN_DECLS

/* That of a data set, as it was read and standardized; the caller's to destroy. */
CLT_API clt_status clt_preprocessing_of(clt_preprocessing **preprocessing, const clt_dataset *dataset);

/* That which a checkpoint or a file of weights holds. CLT_E_NOT_FOUND: it holds none. CLT_E_FORMAT, CLT_E_IO. */
CLT_API clt_status clt_preprocessing_load(clt_preprocessing **preprocessing, const char *path);

/* From and to the JSON above, for programs that keep it elsewhere. `json` receives up to `bytes` with a NUL; returns the length of
 * all, 0 on an error. */
CLT_API clt_status clt_preprocessing_parse(clt_preprocessing **preprocessing, const char *json);
CLT_API size_t clt_preprocessing_json(const clt_preprocessing *preprocessing, char *json, size_t bytes);

/* NULL is fine. */
CLT_API void clt_preprocessing_destroy(clt_preprocessing *preprocessing);

/* Makes the data set what the model was trained on: its mean and deviation are applied to field 0 (f32), and those of the target to the
 * numbers to predict, its classes become the data set's. For data as they were read; those that it was applied to stay as they are. A table is read with clt_csv_options.like before.
 * CLT_E_MISMATCH, and nothing is changed: samples of another type or shape, other columns or classes, more classes, numbers in the place of
 * classes. */
CLT_API clt_status clt_preprocessing_apply(const clt_preprocessing *preprocessing, clt_dataset *dataset);

CLT_API clt_dtype clt_preprocessing_dtype(const clt_preprocessing *preprocessing);
CLT_API clt_shape clt_preprocessing_shape(const clt_preprocessing *preprocessing);
/* Names are borrowed; NULL: there is none. Features are counted from 0, and are as many as a sample of rank 1 has elements. */
CLT_API const char *clt_preprocessing_feature(const clt_preprocessing *preprocessing, int64_t feature);
CLT_API const char *clt_preprocessing_label(const clt_preprocessing *preprocessing);
CLT_API int clt_preprocessing_classes(const clt_preprocessing *preprocessing); /* 0: the truth is numbers */
CLT_API clt_shape clt_preprocessing_target(const clt_preprocessing *preprocessing); /* of numbers to predict; rank -1: there are none */
CLT_API const char *clt_preprocessing_class(const clt_preprocessing *preprocessing, int class_index);
CLT_API int clt_preprocessing_standardizes(const clt_preprocessing *preprocessing); /* 1: samples become (x - mean) / deviation; else 0 */


/* A number y that the model predicts stands for y * deviation + mean, and a mean squared error e for e * deviation². 0 and 1 where the
 * target was not standardized. */
CLT_API double clt_preprocessing_target_mean(const clt_preprocessing *preprocessing);
CLT_API double clt_preprocessing_target_deviation(const clt_preprocessing *preprocessing);

CLT_END_DECLS

#endif
