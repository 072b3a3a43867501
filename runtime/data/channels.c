#include "runtime/data/data.h"
#include "runtime/data/preprocessing.h"

#include <string.h>

/* One sample [height, width, channels] -> [channels, height, width]. */
static void turn(const char *from, char *to, size_t pixels, size_t channels, size_t bytes) {
    for (size_t p = 0; p < pixels; p++)
        for (size_t c = 0; c < channels; c++) memcpy(to + (c * pixels + p) * bytes, from + (p * channels + c) * bytes, bytes);
}

clt_status clt_dataset_channels_first(clt_dataset *dataset) {
    if (!dataset) return clt_fail(CLT_E_INVALID, "clt_dataset_channels_first: the data set is NULL");
    clt_field *field = &dataset->fields[0];
    if (field->shape.rank != 3)
        return clt_fail(CLT_E_SHAPE, "channels_first: samples have %d dimensions; expected 3: [height, width, channels]", field->shape.rank);
    if (dataset->facts && dataset->facts->moments.n) return clt_fail(CLT_E_STATE, "channels_first: turn the images before they are standardized");
    int64_t height = field->shape.dims[0], width = field->shape.dims[1], channels = field->shape.dims[2];
    char *turned = clt_alloc(field->sample_bytes);
    if (!turned) return clt_fail_memory(field->sample_bytes);
    void *parts[] = {field->data, field->low}; /* the low part is of f32 */
    for (int64_t i = 0; i < 2 * dataset->samples; i++) {
        if (!parts[i % 2]) continue;
        char *sample = (char *)parts[i % 2] + (size_t)(i / 2) * field->sample_bytes;
        turn(sample, turned, (size_t)(height * width), (size_t)channels, clt_dtype_bytes(field->dtype));
        memcpy(sample, turned, field->sample_bytes);
    }
    clt_free(turned);
    field->shape = (clt_shape){.rank = 3, .dims = {channels, height, width}};
    return CLT_OK;
}
