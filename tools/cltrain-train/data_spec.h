/*
 * --data SPEC: reading the text, and opening what it names.
 */
#ifndef CLTRAIN_TRAIN_DATA_SPEC_H
#define CLTRAIN_TRAIN_DATA_SPEC_H

#include <stdbool.h>
#include <stdint.h>

#include <cltrain/data.h>
#include <cltrain/preprocessing.h>
#include <cltrain/text.h>

#define DATA_PATH_BYTES 4096

typedef enum data_source {
    DATA_DIGITS,
    DATA_IDX,
    DATA_CIFAR10,
    DATA_CIFAR100,
    DATA_FOLDER,
    DATA_TAR,
    DATA_CSV,
    DATA_NPY,
    DATA_TEXT,
    DATA_SYNTHETIC,
    DATA_SYNTHETIC_REGRESSION
} data_source;

typedef enum data_layout { LAYOUT_UNSAID, LAYOUT_NCHW, LAYOUT_NHWC } data_layout;

typedef struct data_spec {
    data_source source;
    const char *text;           /* the whole SPEC, borrowed */
    char path[DATA_PATH_BYTES]; /* idx, cifar10, cifar100, folder: folder; csv, npy: file */
    char path_y[DATA_PATH_BYTES]; /* npy: of labels; tar: of the test part */
    char label[256], group[256], drop[1024], texts[1024];
    clt_csv_options csv; /* its label, group, drop and texts point into this struct or are NULL */
    int task;            /* csv: 1 regression, 0 classes, -1 as the model wants */
    clt_shape shape;
    int64_t classes, samples, features;
    double noise;
    char tokenizer[DATA_PATH_BYTES]; /* text: bytes, chars, gpt2 (a file of tokens), or a tokenizer.json */
    int64_t context;
    data_layout layout; /* npy: of images */
    int stream;         /* idx, npy, csv: 1: from the files, batch by batch; 0: read at once; -1: as their size says */
    bool stratify;      /* what is held out has each class's share */
    double validation;  /* the fraction of the training part that is held out of it, too; 0: none */
    int fold, folds;    /* which of how many is held out, from 0; 0 folds: a fifth is */
    clt_image_folder_options images; /* folder, tar; its `like` is not used */
} data_spec;

/* Returns 0, or EXIT_USAGE after saying what was expected. Opens nothing. `spec` must stay where it
 * is. */
int data_spec_parse(data_spec *spec, const char *text);

/* The same of what a trained model is used on: a table or an array, which may be named by its file ("new.csv" is "csv:new.csv"), or a folder of images. */
int data_spec_parse_new(data_spec *spec, const char *text);

/* Every form of a SPEC with a line of explanation, for --help. */
extern const char data_spec_help[];

/* Pictures that are decoded as batches need them. */
static inline bool data_has_images(const data_spec *spec) {
    return spec->source == DATA_FOLDER || spec->source == DATA_TAR;
}

/* The i-th file that it may name, from 0; false where there are no more. */
bool data_spec_file(const data_spec *spec, int i, char path[2 * DATA_PATH_BYTES]);

typedef struct data_parts {
    clt_dataset *whole, *train, *test; /* whole is NULL where files bring a test part */
    clt_dataset *validation;           /* of the training part, for decisions on the way; NULL: the test is for those */
    clt_dataset *plain;                /* folder, tar: what `whole` is, or `first` where there is none, without augmentation, for what is held out */
    clt_dataset *first, *plain_first;  /* the training part, and the same of `plain`, before the validation part was held out */
    bool table; /* read from a CSV file */
    bool standardized;
    bool of_model; /* they are brought to what a model was trained on */
    clt_preprocessing *preprocessing; /* of the training part */
    int64_t vocabulary; /* of text; else 0 */
    clt_tokenizer *tokenizer; /* of text; NULL for files of tokens */
} data_parts;

/* Opens archives: "shards-{000..099}.tar" names a hundred. Returns 0, or an exit code after saying what went wrong, in the name of an option. */
int data_open_tar(clt_dataset **dataset, const char *pattern, const clt_image_folder_options *images, const char *option);

/* Arrays, from memory or, where the options or their size say so, from their files; labels: NULL: none. */
clt_status data_read_npy(clt_dataset **dataset, const data_spec *spec, const char *labels, bool *stream);
/* Where the values of a table are kept, by its options or its size; NULL: in memory. */
const char *data_spill_folder(const data_spec *spec);

/* Opens the data; where it has no test part of its own, a fifth is held out by `seed`. Tables (csv,
 * npy) are standardized on the training part if `standardize`; or all are brought to what a model was trained on, `like` (may be
 * NULL). `regression` says what the model
 * wants of a csv. Returns 0, or an exit code after saying what went wrong; `parts` is then empty. */
int data_open(data_parts *parts, const data_spec *spec, bool regression, bool standardize,
              uint64_t seed, const clt_preprocessing *like);
void data_close(data_parts *parts);

/* Warns where the numbers of data, as the model takes them (clt_preprocessing_apply), are much smaller or larger than those it was trained on, if these were standardized. */
void data_check_scale(const clt_dataset *data, const clt_preprocessing *model, const char *option, const char *what);

/* Refuses regression=0|1 of a table where the model predicts the other. Returns 0, or EXIT_USAGE after saying so. */
int data_check_task(const data_spec *spec, const clt_preprocessing *model, const char *option);

#endif
