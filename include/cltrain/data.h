/*
 * Data sets, their readers, splits, and the batch loader.
 *
 * A data set is a number of samples, each with the same fields: field 0 is what
 * the model sees, the last is the truth (label i32 [], or target f32 [k]).
 * Samples are in memory, or made by a function when a batch needs them (clt_dataset_create).
 * Readers check file sizes and headers before they allocate; every error names
 * the file, and the line and column or the byte where that says more.
 */
#ifndef CLTRAIN_DATA_H
#define CLTRAIN_DATA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cltrain/export.h>
#include <cltrain/status.h>
#include <cltrain/tensor.h>
#include <cltrain/text.h>

CLT_BEGIN_DECLS

/* A batch: borrowed arrays whose dimension 0 is `samples`. */
typedef struct clt_batch {
    int64_t samples;
    int n_fields;
    clt_array fields[CLT_MAX_FIELDS];
    const int64_t *indices; /* of a loader: which sample of the data set each one is; otherwise NULL */
} clt_batch;

/* Immutable once made, save for clt_dataset_standardize, clt_dataset_standardize_target, clt_preprocessing_apply and
 * clt_dataset_channels_first; may then be read by several threads. */
typedef struct clt_dataset clt_dataset;

/* What data are: see <cltrain/preprocessing.h>. */
typedef struct clt_preprocessing clt_preprocessing;

/* The UCI hand-written digits that the library carries: 1,797 images f32
 * [1, 8, 8] scaled to [0, 1], label i32 in [0, 10). */
CLT_API clt_status clt_dataset_digits(clt_dataset **dataset);

/* What becomes of a table's fields without a value: empty, NA, N/A, NaN, nan, null, NULL, None or ?. */
typedef enum clt_missing {
    CLT_MISSING_DEFAULT = 0, /* with `like` what became of them in training, else refused */
    CLT_MISSING_REFUSE,
    CLT_MISSING_DROP, /* their lines are left out, which is logged as a warning */
    CLT_MISSING_MEAN  /* a number becomes the mean of its column, a text no category; a label is refused */
} clt_missing;

typedef struct clt_csv_options {
    const char *label;   /* column name (needs a header) or index from 0, negative from the end;
                            default: the last */
    int skip_lines;      /* lines before the header or the data */
    bool no_header;      /* default: there is one if the first line has a field that is not a number,
                            but neither empty nor "nan" or "inf"; not where it has numbers, too, other than 0, 1, 2, ...
                            by column, and the second line has texts in the same places */
    bool header;         /* there is one, even if all its fields are numbers */
    char separator;      /* default ',' */
    bool regression;     /* the label is a f32 target; default: classes, whole numbers from 0 or texts */
    clt_missing missing;
    const char *drop;    /* columns that are left out, as `label` names them, separated by commas */
    const char *texts;   /* columns that are texts even where they look like numbers, such as codes, in the same way: features become an element
                            for each, and of the label each is a class, such as -1 and 1 */
    const char *group;   /* a column, as `label` names it, whose fields say which lines belong together (clt_dataset_set_groups); it is no feature */
    const char *spill;   /* a folder: values are kept in a file there that has no name, as f32, and read when a batch needs them: for tables that are larger
                            than memory; 4 bytes a value, and 4 of memory for each line. NULL: in memory. CLT_E_RANGE for numbers that f32 cannot tell apart */
    /* Read as the table that a model was trained on: columns are found by name, in the model's order; where either has no names,
     * by their place. Labels are the model's classes. What remains is clt_preprocessing_apply's. NULL: as the file is. Borrowed for
     * the call. */
    const clt_preprocessing *like;
    bool leave_out;      /* with `like`: columns that the model does not know are left out; default: refused */
    bool no_label;       /* with `like`: so is the label, if there is one, and the data set has the one field; implies leave_out */
} clt_csv_options;

/* A table: features f32 [elements], then the label. What f32 rounds off numbers, which matters far from 0, as of seconds since 1970, is kept until
 * clt_dataset_standardize or clt_preprocessing_apply has taken their mean off, and takes as much memory as they; a loader of data without that refuses a column whose values
 * f32 cannot tell apart (CLT_E_RANGE), and warns of one with few. A feature is numbers, or, in a table with a header, texts: then it is an
 * element for each different text, 1 where the line has it and else 0, named "colour=red"; 100 texts at most, and not
 * one for each line, as identifiers have, nor dates (CLT_E_FORMAT), unless `texts` names the column. The label may be text as well: the classes are then 10,000 at most. Both are in the order of their bytes. Fields may be quoted; the decimal
 * point is a point in every locale. A gzipped file is read too. CLT_E_FORMAT for an empty or non-numeric field and for a line
 * with too few or too many, CLT_E_RANGE for a label that is not a class; they name the line and the column, both counted from 1, and
 * the numbers of more such lines.
 * CLT_E_NOT_FOUND for a column that is named and that there is none of. With `like`, texts that were not there are refused, and CLT_E_MISMATCH is for columns that the file lacks or
 * the model does not know. */
CLT_API clt_status clt_dataset_csv(clt_dataset **dataset, const char *path,
                                   const clt_csv_options *options);

/* MNIST's format: images u8 [n, h, w] -> f32 [1, h, w] in [0, 1] and labels u8 [n].
 * Either file may be gzipped. */
CLT_API clt_status clt_dataset_idx(clt_dataset **dataset, const char *images_path,
                                   const char *labels_path);
/* The same, but images stay in their file, as in clt_dataset_npy_stream: not for gzipped files (CLT_E_UNSUPPORTED). */
CLT_API clt_status clt_dataset_idx_stream(clt_dataset **dataset, const char *images_path, const char *labels_path);

/* CIFAR-10's binary version: the files' records of 1 label and 3072 pixels, one
 * file after the other -> f32 [3, 32, 32] in [0, 1]. */
CLT_API clt_status clt_dataset_cifar10(clt_dataset **dataset, const char *const *paths, int n_paths);
/* CIFAR-100's: records of the superclass, which is left out, the label and 3072 pixels. */
CLT_API clt_status clt_dataset_cifar100(clt_dataset **dataset, const char *path);

/* Two .npy files (version 1 to 3, C order, little-endian: f2, f4, f8, bool, i1, u1, i2, u2, i4, u4, i8). X
 * [n, ...] becomes f32, [n] as [n, 1], values as they are; of [n, k] numbers far from 0 are as in a table. Y: integers [n] become labels;
 * floats [n] or [n, k] targets f32 [1] or [k]. CLT_E_UNSUPPORTED for other types and orders,
 * CLT_E_RANGE for a label below 0 or a number too large for its type here. y_path NULL: the data set has the one field. */
CLT_API clt_status clt_dataset_npy(clt_dataset **dataset, const char *x_path, const char *y_path);

/* The same, but X, and Y where it is targets, stay in their files, of which each sample is read when a batch needs it: for files that are larger than
 * memory. A sample with a number that is not finite is CLT_E_RANGE. Labels are read at once. Not for compressed files (CLT_E_UNSUPPORTED); numbers of f8 are rounded to f32. A file must not change meanwhile:
 * CLT_E_FORMAT for a sample that is gone. */
CLT_API clt_status clt_dataset_npy_stream(clt_dataset **dataset, const char *x_path, const char *y_path);

typedef struct clt_image_folder_options {
    int size;         /* images become [3, size, size]; default 224 */
    int resize;       /* without `augment`: the shorter side becomes this, and the centre is cut out; default size x 256 / 224 */
    bool augment;     /* a random part of each image, 0.08 to 1 of its area and 3:4 to 4:3 in shape, is brought to the size, and
                         every other one mirrored: torchvision's RandomResizedCrop and RandomHorizontalFlip */
    float jitter;     /* with `augment`: brightness, contrast and saturation are changed by a factor from 1 - jitter to 1 + jitter each, in a
                         random order; 0 (none) to 1 */
    float erase;      /* with `augment`: the part of the images of which a random box is filled with noise; 0 (none) to 1 */
    bool floats;      /* f32, normalized with ImageNet's mean and deviation as clt_model_normalize does: four times the bytes, for networks that take no u8 */
    bool exact;       /* JPEG files are decoded at their full size; default: at 1/2, 1/4 or 1/8 where that is still enough, which is faster */
    const clt_preprocessing *like; /* labels are this model's classes, by name; NULL: the folders in the order of their bytes. Borrowed for the call */
    bool no_label;    /* the data set has the one field, and images lie anywhere in the folder */
} clt_image_folder_options;

/* Images in a folder for each class, DIR/CLASS/.../NAME, as torchvision's ImageFolder has them: files .jpg, .jpeg and .png. Field 0 is u8 [3, size, size], RGB
 * from 0 to 255, field 1 the label. They are decoded when a batch needs them, by the loader's threads; random numbers are drawn from
 * the seed, the epoch and the sample alone. Options may be NULL. CLT_E_IO for a folder that cannot be read; CLT_E_FORMAT, with its name, for a class without
 * an image and for a link that leads out of the folder; CLT_E_MISMATCH for a class that is not in `like`; CLT_E_UNSUPPORTED if the library was built without
 * libjpeg and libpng. A sample whose file is damaged, has more than 100 million pixels or is gone: see clt_loader_options.broken. */
CLT_API clt_status clt_dataset_image_folder(clt_dataset **dataset, const char *folder, const clt_image_folder_options *options);

/* Images in tar archives, as WebDataset has them: the members of a sample follow each other, and have one name up to the first dot: 000123.jpg (or .jpeg, .png) with
 * the picture, 000123.cls with its class, a whole number from 0. Members of other kinds are passed over. The archives' headers are read once, so that samples are
 * read in any order. Options, fields and errors as of clt_dataset_image_folder; `like` gives the number of classes, and their names. CLT_E_FORMAT for what is no
 * archive, or is cut short, with its byte; for an image without a class, and a class that is no number. */
CLT_API clt_status clt_dataset_image_tar(clt_dataset **dataset, const char *const *paths, int n_paths, const clt_image_folder_options *options);

/* Sample i is f32, of class i % classes: that class's prototype, drawn from N(0, 1) with the
 * seed, plus noise N(0, 1). Learnable, for benchmarks. */
CLT_API clt_status clt_dataset_synthetic(clt_dataset **dataset, clt_shape sample, int classes,
                                         int64_t samples, uint64_t seed);

/* y = x w + b + noise N(0, noise^2), x ~ N(0, 1), w and b drawn from the seed: f32 [d] -> f32 [1]. */
CLT_API clt_status clt_dataset_synthetic_regression(clt_dataset **dataset, int64_t samples,
                                                    int64_t features, float noise, uint64_t seed);

/* Tokens in windows of `context`, for a language model: sample i has x = ids[i context ... (i + 1) context - 1] and y, the same one
 * place later; i32 [context] both. (count - 1) / context samples; the tokens behind the last are in none. Copied. CLT_E_RANGE for
 * fewer than context + 1 tokens. */
CLT_API clt_status clt_dataset_tokens(clt_dataset **dataset, const int32_t *ids, int64_t count, int64_t context);

typedef struct clt_text_options {
    const clt_tokenizer *tokenizer; /* required, but for files of tokens */
    int64_t context;                /* tokens of a sample; default 256 */
    double validation;              /* the last fraction of the tokens, for validation; default 0.1 */
} clt_text_options;

/* A text file, plain or gzipped, or a file of tokens as llm.c writes them (magic 20240520, version 1, u16 ids), in windows as
 * clt_dataset_tokens makes. `validation` may be NULL: then all tokens are for training. CLT_E_IO, CLT_E_FORMAT, CLT_E_RANGE for an id that is
 * not in the tokenizer's vocabulary and for a text that is too short. */
CLT_API clt_status clt_dataset_text(clt_dataset **train, clt_dataset **validation, const char *path, const clt_text_options *options);

/* The character tokenizer (clt_tokenizer_chars) of a text file, plain or gzipped. */
CLT_API clt_status clt_tokenizer_chars_of(clt_tokenizer **tokenizer, const char *path);

/* The caller's arrays (dimension 0 = samples; f32, i32, u8, or i64, which becomes i32), copied. CLT_E_RANGE for an i64 value
 * that does not fit. CLT_E_RANGE for a label
 * (last of several fields, i32 [n]) below 0. */
CLT_API clt_status clt_dataset_from_arrays(clt_dataset **dataset, const clt_array *fields, int n_fields);

/* Which sample is wanted. Augmentation that draws its random numbers from these three alone gives the same batches with any
 * number of threads and ranks, and after resuming. */
typedef struct clt_sample {
    int64_t index; /* in the data set, from 0; in a split, that of the data set that was split */
    uint64_t seed; /* of the loader */
    int64_t epoch; /* of the loader, from 0 */
} clt_sample;

/* Samples that a function makes, for data that are larger than memory or augmented. */
typedef struct clt_dataset_source {
    int64_t samples; /* > 0 */
    int n_fields;    /* 1 to CLT_MAX_FIELDS */
    clt_dtype dtypes[CLT_MAX_FIELDS]; /* f32, i32 or u8 */
    clt_shape shapes[CLT_MAX_FIELDS]; /* of one sample's field */
    int classes;     /* the labels (last of several fields, i32 []) are from 0 to classes - 1; 0: there are none */

    /* Writes each field of one sample to fields[0] ... fields[n_fields - 1], which have room for it. Several threads call it at once: a loader's, and
     * those that call clt_dataset_fetch. Anything but CLT_OK says that the sample cannot be had: see clt_loader_options.broken. */
    clt_status (*fetch)(void *user, const clt_sample *sample, void *const *fields);
    /* The label of a sample, without the rest of it, for stratified splits; may be NULL: it is fetched. */
    int32_t (*label)(void *user, int64_t index);
    /* What messages call a sample, such as its file: valid as long as the data set; may be NULL. */
    const char *(*name)(void *user, int64_t index);
    /* Called once, by clt_dataset_destroy; may be NULL. */
    void (*destroy)(void *user);
    void *user;
} clt_dataset_source;

/* The source is copied. On an error, `destroy` is not called. Splits of such a data set are views: they hold indices, and fetch from
 * the same source. Standardizing such a data set reads all its samples twice, and scales each as it is fetched from then on; loaders and views of it must be made
 * after. clt_dataset_channels_first is refused with CLT_E_UNSUPPORTED. */
CLT_API clt_status clt_dataset_create(clt_dataset **dataset, const clt_dataset_source *source);

typedef struct clt_mix_options {
    float mixup;       /* a of Beta(a, a), of which the share of a sample is drawn in a blend of two; 0.2 is usual; 0: none */
    float cutmix;      /* the same of the area, where a box of another sample [channels, height, width] is put into one; 1 is usual; 0: none. With both,
                          each sample is mixed in one of both ways, as drawn */
    float probability; /* with which a sample is mixed at all; 0: 1 */
} clt_mix_options;

/* A data set whose samples are mixtures of two of `base`, which must outlive it; mixup: Zhang et al. 2018, cutmix: Yun et al. 2019. Its fields are x; the other
 * sample's label, i32 []; the share of the sample itself, f32 []; and its label, i32 []. The loss is share x loss(label) + (1 - share) x loss(other label). What is
 * drawn depends on the loader's seed, the epoch and the sample alone. options NULL: nothing is mixed, as for a test of the same graph. CLT_E_DTYPE if base has not
 * two fields, f32 or u8 and a class. */
CLT_API clt_status clt_dataset_mix(clt_dataset **dataset, const clt_dataset *base, const clt_mix_options *options);

/* The name of a sample, such as its file; NULL where it has none. */
CLT_API const char *clt_dataset_sample_name(const clt_dataset *dataset, int64_t index);

/* The index of a sample of a part of a split, or of a part of a part, in the data set that was split first; `index` itself in any other data set. -1 for a
 * sample that there is none of. */
CLT_API int64_t clt_dataset_sample_index(const clt_dataset *dataset, int64_t index);
/* The line of a table, from 1, where a sample of the data set that was read from it begins; 0: it was not read from a table, or is a part of a split, whose
 * samples clt_dataset_sample_index finds in the whole. */
CLT_API int64_t clt_dataset_sample_line(const clt_dataset *dataset, int64_t index);

/* Copies one sample, or makes it: fields[i] has room for field i. May be called by several threads. CLT_E_RANGE for a sample that there is none of and, where a
 * function makes samples, for a label that is not a class. */
CLT_API clt_status clt_dataset_fetch(const clt_dataset *dataset, const clt_sample *sample, void *const *fields);

/* NULL is fine. Destroy loaders and splits first. */
CLT_API void clt_dataset_destroy(clt_dataset *dataset);

CLT_API int64_t clt_dataset_samples(const clt_dataset *dataset);
CLT_API int clt_dataset_fields(const clt_dataset *dataset);
/* Type and shape of one sample's field; rank -1 for a field that there is none of. */
CLT_API clt_dtype clt_dataset_dtype(const clt_dataset *dataset, int field);
CLT_API clt_shape clt_dataset_shape(const clt_dataset *dataset, int field);
/* Number of classes: 1 + the largest label, for a part of a split that of the whole; 0 if the
 * last field is no i32 label or the only field. */
CLT_API int clt_dataset_classes(const clt_dataset *dataset);
/* All samples of a field, borrowed: dimension 0 is the number of samples. data = NULL where a function makes them. */
CLT_API clt_array clt_dataset_array(const clt_dataset *dataset, int field);

/* Which samples belong together, as those of one patient or one place: any number for each sample, the same within a group; copied. Splits and folds
 * then put all samples of a group into one part, and parts are as large as they can be so; those that are stratified are refused with CLT_E_UNSUPPORTED.
 * NULL: no samples do. */
CLT_API clt_status clt_dataset_set_groups(clt_dataset *dataset, const int64_t *groups);

/* Splits into new data sets that share no sample, after a seeded shuffle:
 * floor(fraction x samples) go to each part of `fractions` (each > 0, their sum
 * <= 1 but for rounding), what remains to the first. `parts` receives n data sets, each the
 * caller's to destroy. CLT_E_RANGE if one would be empty. */
CLT_API clt_status clt_dataset_split(const clt_dataset *dataset, const double *fractions, int n,
                                     uint64_t seed, clt_dataset **parts);

/* The same, but each part has of each class as large a share as the whole has, but for one sample; CLT_E_DTYPE where there are no classes. */
CLT_API clt_status clt_dataset_split_stratified(const clt_dataset *dataset, const double *fractions, int n, uint64_t seed, clt_dataset **parts);

/* One of the `folds` parts, of equal size but for one sample, that cross-validation holds out by turns: number `fold`, from 0, after a seeded shuffle, becomes
 * `held_out`, and the others `train`. `stratified`: as above. Both are the caller's to destroy. CLT_E_INVALID if `folds` is not 2 to the number of samples. */
CLT_API clt_status clt_dataset_fold(const clt_dataset *dataset, int fold, int folds, uint64_t seed, bool stratified, clt_dataset **train, clt_dataset **held_out);

/* The label of each sample, for weights of classes or samples: labels has room for as many. CLT_E_DTYPE where there are no classes. Where a function makes the
 * samples, and has no `label`, all of them are made. */
CLT_API clt_status clt_dataset_labels(const clt_dataset *dataset, int32_t *labels);

/* Subtracts `like`'s mean and divides by its standard deviation, for each element
 * (of the population) of field 0 (f32), or for each channel where the sample has rank 3.
 * Elements without spread are only centred. `like` is usually the training part. To treat
 * several parts alike, do `like` itself last. CLT_E_RANGE if `like` has values that are not
 * finite; nothing is changed then. */
CLT_API clt_status clt_dataset_standardize(clt_dataset *dataset, const clt_dataset *like);

/* The same of the numbers to predict (the last field, f32), with one mean and one deviation for all of them: networks learn prices of
 * 300,000 badly. clt_preprocessing_target_mean and _deviation turn predictions back. CLT_E_DTYPE where there are classes, or none. */
CLT_API clt_status clt_dataset_standardize_target(clt_dataset *dataset, const clt_dataset *like);

/* Turns field 0 of samples [height, width, channels], as PIL, OpenCV and Keras have images, into [channels, height, width], which
 * convolutions take. CLT_E_SHAPE if its rank is not 3, CLT_E_STATE if it is standardized. Not for a data set that has been split: its parts have copies. */
CLT_API clt_status clt_dataset_channels_first(clt_dataset *dataset);

/* What becomes of samples that cannot be fetched: a broken file, for example. */
typedef enum clt_broken {
    CLT_BROKEN_STOP = 0, /* clt_loader_next fails as the function did */
    CLT_BROKEN_SKIP,     /* the next sample of the data set that can be fetched takes its place; each is logged as a warning, and counted */
    CLT_BROKEN_LEAVE_OUT /* the batch has as many samples less, or none; each is logged and counted. For tests, where no sample may count twice */
} clt_broken;

typedef struct clt_loader_options {
    int64_t batch;   /* default 32 */
    bool shuffle;    /* a new seeded order each epoch */
    bool drop_last;  /* leave out the smaller last batch */
    uint64_t seed;
    int prefetch;    /* batches made ahead by the loader's threads; default 2 */

    /* One of several loaders that share the batches: `batch` is then the sum over all of them, and the order of
     * samples, the batches and positions are the same however many share. Each hands out a consecutive piece of every
     * batch. */
    int rank, ranks;       /* which of how many; default 0 of 1 */
    const int64_t *shares; /* of a full batch, one a rank, their sum `batch`; copied. Default: equal but for one sample */

    /* One a sample, copied: each sample of a batch is drawn anew, in proportion to these, so that an epoch has as many samples as the data set, some of
     * them several times (PyTorch's WeightedRandomSampler). Finite, not negative, and not all 0; with `shuffle`. NULL: each sample once */
    const double *weights;

    int threads;       /* that gather batches, or make their samples; default 1, at most 256 */
    clt_broken broken; /* default: stop */
} clt_loader_options;

/* Hands out batches; threads of its own gather the next ones. One thread of the caller at a
 * time; the data set must outlive it. */
typedef struct clt_loader clt_loader;

CLT_API clt_status clt_loader_create(clt_loader **loader, const clt_dataset *dataset,
                                     const clt_loader_options *options);
/* Stops the threads. NULL is fine. */
CLT_API void clt_loader_destroy(clt_loader *loader);

/* The next batch, valid until the next call on this loader; CLT_END after the last of an
 * epoch, and the call after that begins the next epoch. A smaller last batch is cut in proportion
 * to the shares: a rank's piece may then be empty, and has samples = 0. Where a sample of the batch cannot be fetched, its error, and the position
 * stays. */
CLT_API clt_status clt_loader_next(clt_loader *loader, clt_batch *batch);

/* Cuts the batches that follow anew; the position stays. As in the options: among how many, which of them, and
 * their shares (NULL: equal). All loaders must do so at the same position. The batch at hand is gone.
 * CLT_E_INVALID: nothing has changed. */
CLT_API clt_status clt_loader_set_shares(clt_loader *loader, int rank, int ranks, const int64_t *shares);

CLT_API int64_t clt_loader_batches(const clt_loader *loader); /* per epoch */
/* Samples that could not be fetched, and were skipped or left out, in the batches handed out so far. */
CLT_API int64_t clt_loader_broken(const clt_loader *loader);
/* Seconds that clt_loader_next has waited for the threads: what more of them, or a faster source, would save. */
CLT_API double clt_loader_waited_seconds(const clt_loader *loader);
/* Samples of a full batch, all ranks' together. */
CLT_API int64_t clt_loader_batch(const clt_loader *loader);

/* Where the loader stands: epochs ended and batches handed out in this one. The
 * order of samples is a function of (seed, epoch) alone, so that these two and
 * the seed resume it, with any number of ranks. */
typedef struct clt_loader_position {
    uint64_t seed;
    int64_t epoch;
    int64_t batch;
} clt_loader_position;

CLT_API clt_loader_position clt_loader_get_position(const clt_loader *loader);
/* CLT_E_RANGE if the position is not inside an epoch of this loader. */
CLT_API clt_status clt_loader_set_position(clt_loader *loader, clt_loader_position position);

CLT_END_DECLS

#endif
