#include "fingerprint.h"

#include <stdlib.h>
#include <string.h>

#include "tools/common/hash.h"

uint64_t fingerprint_labels(const clt_dataset *data) {
    size_t samples = (size_t)clt_dataset_samples(data);
    int32_t *labels = clt_dataset_classes(data) ? calloc(samples, sizeof *labels) : NULL;
    uint64_t hash = labels && clt_dataset_labels(data, labels) >= 0 ? hash_bytes(labels, samples * sizeof *labels) : 0;
    free(labels);
    return hash;
}

static size_t bytes_of(const clt_dataset *data, int field) {
    clt_shape shape = clt_dataset_shape(data, field);
    return (size_t)clt_shape_elements(&shape) * (clt_dataset_dtype(data, field) == CLT_U8 ? 1 : 4);
}

/* Some samples, wherever they lie. */
static uint64_t add_samples(uint64_t hash, const clt_dataset *data) {
    enum { MOST = 1 << 10 };
    void *fields[CLT_MAX_FIELDS] = {NULL};
    int n = clt_dataset_fields(data);
    int64_t samples = clt_dataset_samples(data), stride = samples / MOST + 1;
    bool room = true;
    for (int f = 0; f < n; f++) room &= (fields[f] = calloc(bytes_of(data, f) + 1, 1)) != NULL;
    for (int64_t i = 0; room && i < samples; i += stride)
        for (int f = 0; f < n && (f || clt_dataset_fetch(data, &(clt_sample){.index = i}, fields) >= 0); f++) hash = hash_add(hash, fields[f], bytes_of(data, f));
    for (int f = 0; f < n; f++) free(fields[f]);
    return hash;
}

uint64_t fingerprint(const clt_dataset *data) {
    const char *name = clt_dataset_sample_name(data, 0);
    uint64_t hash = fingerprint_labels(data);
    if (!name) return add_samples(hash, data);
    for (int64_t i = 0; (name = clt_dataset_sample_name(data, i)); i++) hash = hash_add(hash, name, strlen(name) + 1);
    return hash;
}
