#include "runtime/data/data.h"
#include "runtime/data/preprocessing.h"

#include <string.h>

/* Samples [height, width, channels] -> [channels, height, width], by way of one at a time. */
static void turn(char *samples, int64_t n, size_t pixels, size_t channels, size_t bytes, char *turned) {
    size_t sample_bytes = pixels * channels * bytes;
    for (int64_t i = 0; i < n; i++, samples += sample_bytes) {
        for (size_t p = 0; p < pixels; p++)
            for (size_t c = 0; c < channels; c++) memcpy(turned + (c * pixels + p) * bytes, samples + (p * channels + c) * bytes, bytes);
        memcpy(samples, turned, sample_bytes);
    }
}

clt_status clt_dataset_channels_first(clt_dataset *dataset) {
    if (!dataset) return clt_fail(CLT_E_INVALID, "clt_dataset_channels_first: the data set is NULL");
    CLT_TRY(clt_dataset_expect_memory(dataset, "channels_first"));
    clt_field *field = &dataset->fields[0];
    if (field->shape.rank != 3)
        return clt_fail(CLT_E_SHAPE, "channels_first: samples have %d dimensions; expected 3: [height, width, channels]", field->shape.rank);
    if (dataset->facts && dataset->facts->moments.n) return clt_fail(CLT_E_STATE, "channels_first: turn the images before they are standardized");
    int64_t height = field->shape.dims[0], width = field->shape.dims[1], channels = field->shape.dims[2];
    char *turned = clt_alloc(field->sample_bytes);
    if (!turned) return clt_fail_memory(field->sample_bytes);
    size_t pixels = (size_t)(height * width), bytes = clt_dtype_bytes(field->dtype);
    turn(field->data, dataset->samples, pixels, (size_t)channels, bytes, turned);
    if (field->low) turn((char *)field->low, dataset->samples, pixels, (size_t)channels, bytes, turned); /* of f32 */
    clt_free(turned);
    field->shape = (clt_shape){.rank = 3, .dims = {channels, height, width}};
    return CLT_OK;
}
