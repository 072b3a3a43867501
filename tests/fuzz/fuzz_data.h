/* What every data set that a reader makes must be. */
#ifndef CLT_TESTS_FUZZ_DATA_H
#define CLT_TESTS_FUZZ_DATA_H

#include <stdlib.h>

#include <cltrain/data.h>

#include "tests/fuzz/fuzz.h"

/* What a function makes: the last sample has to be like the first. */
static inline void fuzz_fetch(const clt_dataset *dataset) {
    void *fields[CLT_MAX_FIELDS] = {NULL};
    for (int f = 0; f < clt_dataset_fields(dataset); f++) {
        clt_shape shape = clt_dataset_shape(dataset, f);
        size_t n = sizeof(float);
        for (int i = 0; i < shape.rank; i++) n *= (size_t)shape.dims[i];
        fields[f] = malloc(n);
    }
    for (int last = 0; last < 2; last++) FUZZ_CHECK(clt_dataset_fetch(dataset, &(clt_sample){.index = last ? clt_dataset_samples(dataset) - 1 : 0}, fields) == CLT_OK);
    for (int f = 0; f < clt_dataset_fields(dataset); f++) free(fields[f]);
}

/* Reads all of it once, and frees it; nothing where there was an error. */
static inline void fuzz_dataset(clt_status status, clt_dataset *const *made) {
    if (status < 0) return;
    clt_dataset *dataset = *made;
    FUZZ_CHECK(clt_dataset_samples(dataset) > 0 && clt_dataset_fields(dataset) >= 1 && clt_dataset_fields(dataset) <= 2);
    for (int f = 0; f < clt_dataset_fields(dataset); f++) {
        clt_array array = clt_dataset_array(dataset, f);
        const unsigned char *bytes = array.data;
        size_t n = sizeof(float), zeros = 0;
        FUZZ_CHECK(array.shape.dims[0] == clt_dataset_samples(dataset));
        if (!bytes) continue;
        for (int i = 0; i < array.shape.rank; i++) n *= (size_t)array.shape.dims[i];
        for (size_t i = 0; i < n; i++) zeros += bytes[i] == 0;
        FUZZ_CHECK(zeros <= n);
    }
    if (!clt_dataset_array(dataset, 0).data) fuzz_fetch(dataset);
    clt_dataset_destroy(dataset);
}

#endif
