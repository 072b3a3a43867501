/* What a model's file tells of its data: what is taken makes sense, and is told again in words that are taken again. */
#include "tests/fuzz/fuzz.h"

#include <cltrain/preprocessing.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

static void check(const clt_preprocessing *p) {
    clt_shape shape = clt_preprocessing_shape(p);
    int64_t elements = 1, features = 0, names = 0;
    FUZZ_CHECK(shape.rank >= 0 && shape.rank < CLT_MAX_RANK);
    for (int i = 0; i < shape.rank; i++) elements *= shape.dims[i];
    FUZZ_CHECK(elements >= 1 && elements <= INT32_MAX);
    while (clt_preprocessing_feature(p, features)) features++;
    FUZZ_CHECK(features == 0 || features == elements);
    while (clt_preprocessing_class(p, (int)names)) names++;
    FUZZ_CHECK(names == 0 || names == clt_preprocessing_classes(p));
}

/* Samples of that shape, if they are few. */
static void apply(const clt_preprocessing *p) {
    enum { MOST = 64 };
    static float values[MOST];
    clt_shape shape = clt_preprocessing_shape(p), all = {.rank = shape.rank + 1, .dims = {1}};
    int64_t elements = 1;
    for (int i = 0; i < shape.rank; i++) all.dims[i + 1] = shape.dims[i], elements *= shape.dims[i];
    if (elements > MOST || clt_preprocessing_dtype(p) != CLT_F32) return;
    clt_dataset *d;
    clt_array field = {CLT_F32, all, values};
    if (clt_dataset_from_arrays(&d, &field, 1) < 0) return;
    FUZZ_CHECK(clt_preprocessing_apply(p, d) == CLT_OK);
    FUZZ_CHECK(clt_preprocessing_apply(p, d) == CLT_OK); /* as it is */
    clt_dataset_destroy(d);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    fuzz_input input = {data, size};
    clt_preprocessing *p = NULL, *again = NULL;
    fuzz_begin(size);
    char *text = fuzz_line(&input);
    clt_status status = clt_preprocessing_parse(&p, text);
    fuzz_free(text);
    if (status < 0) return 0;
    check(p);
    apply(p);
    size_t bytes = clt_preprocessing_json(p, NULL, 0) + 1;
    char *json = malloc(bytes), *copy = malloc(bytes);
    if (json && copy) {
        FUZZ_CHECK(clt_preprocessing_json(p, json, bytes) + 1 == bytes);
        FUZZ_CHECK(clt_preprocessing_parse(&again, json) == CLT_OK);
        FUZZ_CHECK(clt_preprocessing_json(again, copy, bytes) + 1 == bytes && !strcmp(json, copy));
    }
    free(json);
    free(copy);
    clt_preprocessing_destroy(again);
    clt_preprocessing_destroy(p);
    return 0;
}
