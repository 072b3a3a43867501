/*
 * What lies in tar archives of images, as WebDataset has them: members of one sample follow each other, with one name up to the first dot: 000123.jpg, 000123.cls.
 */
#ifndef CLT_DATA_IMAGES_TAR_INDEX_H
#define CLT_DATA_IMAGES_TAR_INDEX_H

#include "runtime/base/base.h"
#include "runtime/base/file.h"

typedef struct clt_tar_sample {
    uint64_t offset; /* of the image's bytes */
    uint32_t bytes;
    int32_t label;
    int32_t shard;
    size_t name; /* in `names` */
} clt_tar_sample;

typedef struct clt_tar_index {
    clt_file_view *shards;
    char **paths;
    int n_shards;
    clt_tar_sample *samples;
    size_t n, capacity;
    clt_text names; /* each with its NUL */
    int classes;     /* 1 + the largest label */
    int absent;      /* of these, how many have no sample */
    int64_t ignored; /* samples without an image */
} clt_tar_index;

/* Reads the headers of all archives. `labelled`: each sample with an image has a member .cls, a whole number from 0. CLT_E_IO, CLT_E_FORMAT with the archive and the
 * byte or the sample: no archive, a member that does not end, an image without a label. Starts as {0}; to be freed also after an error. */
clt_status clt_tar_read(clt_tar_index *index, const char *const *paths, int n, bool labelled);
void clt_tar_free(clt_tar_index *index);

#endif
