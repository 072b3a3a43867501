#include "labels.h"

#include <stdlib.h>

#include "tools/common/hash.h"

uint64_t labels_hash(const clt_dataset *data) {
    size_t samples = (size_t)clt_dataset_samples(data);
    int32_t *labels = clt_dataset_classes(data) ? calloc(samples, sizeof *labels) : NULL;
    uint64_t hash = labels && clt_dataset_labels(data, labels) >= 0 ? hash_bytes(labels, samples * sizeof *labels) : 0;
    free(labels);
    return hash;
}
