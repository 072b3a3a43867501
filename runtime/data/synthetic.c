#include "runtime/data/data.h"
#include "runtime/base/thread.h"

#include <math.h>

/* Each sample draws from a stream of its own, so that threads may share the work and the
 * numbers are the same however many there are. */
typedef struct drawing {
    uint64_t seed;
    int64_t samples;
    size_t elements; /* of a sample */
    int64_t classes;
    const float *model; /* prototypes [classes, elements], or weights [elements] and the bias */
    double noise;
    float *x, *target;
    int32_t *label;
    int blocks;
} drawing;

static void draw_model(uint64_t seed, float *values, size_t count) {
    clt_random random;
    clt_random_init(&random, seed, CLT_RANDOM_STREAM(CLT_RANDOM_SYNTHETIC_MODEL, 0));
    for (size_t i = 0; i < count; i++) values[i] = (float)clt_random_normal(&random);
}

static void draw_image(const drawing *d, int64_t sample, clt_random *random) {
    int64_t label = sample % d->classes;
    const float *prototype = d->model + (size_t)label * d->elements;
    float *x = d->x + (size_t)sample * d->elements;
    for (size_t e = 0; e < d->elements; e++) x[e] = prototype[e] + (float)clt_random_normal(random);
    d->label[sample] = (int32_t)label;
}

static void draw_regression(const drawing *d, int64_t sample, clt_random *random) {
    float *x = d->x + (size_t)sample * d->elements;
    double y = d->model[d->elements];
    for (size_t e = 0; e < d->elements; e++) {
        x[e] = (float)clt_random_normal(random);
        y += (double)x[e] * d->model[e];
    }
    d->target[sample] = (float)(y + d->noise * clt_random_normal(random));
}

static void draw_block(void *argument, int block) {
    const drawing *d = argument;
    int64_t each = d->samples / d->blocks, first = each * block;
    int64_t end = block == d->blocks - 1 ? d->samples : first + each;
    for (int64_t i = first; i < end; i++) {
        clt_random random;
        clt_random_init(&random, d->seed, CLT_RANDOM_STREAM(CLT_RANDOM_SYNTHETIC_SAMPLE, i));
        if (d->label) draw_image(d, i, &random);
        else draw_regression(d, i, &random);
    }
}

static void draw_samples(drawing *d) {
    d->blocks = (int)CLT_MIN(d->samples, 64);
    clt_parallel_for(d->blocks, clt_processor_count(), draw_block, d);
}

/* Fields, model and samples of either kind; `models` x elements + extra values make the model. */
static clt_status make(clt_dataset **dataset, clt_shape sample, clt_dtype truth, drawing *d,
                       size_t models, size_t extra) {
    const clt_shape index = {0}, value = CLT_SHAPE(1);
    clt_dataset *made = NULL;
    float *model = NULL;
    clt_status status;
    CLT_TRY_GOTO(clt_dataset_new(&made, d->samples));
    CLT_TRY_GOTO(clt_dataset_add(made, CLT_F32, sample, NULL));
    CLT_TRY_GOTO(clt_dataset_add(made, truth, truth == CLT_I32 ? index : value, NULL));
    d->elements = made->fields[0].sample_bytes / sizeof(float);
    size_t values = SIZE_MAX, bytes = SIZE_MAX;
    if (clt_mul_size(models, d->elements, &values) &&
        clt_mul_size(values + extra, sizeof(float), &bytes))
        model = clt_alloc(bytes);
    if (!model) {
        status = clt_fail_memory(bytes);
        goto fail;
    }
    draw_model(d->seed, model, values + extra);
    d->model = model;
    d->x = made->fields[0].data;
    if (truth == CLT_I32) d->label = made->fields[1].data;
    else d->target = made->fields[1].data;
    draw_samples(d);
    *dataset = made;
    made = NULL;
fail:
    clt_free(model);
    clt_dataset_destroy(made);
    return status;
}

static clt_status check_samples(int64_t samples) {
    if (samples < 1 || samples >> 48)
        return clt_fail(CLT_E_INVALID, "a synthetic data set of %lld samples", (long long)samples);
    return CLT_OK;
}

clt_status clt_dataset_synthetic(clt_dataset **dataset, clt_shape sample, int classes, int64_t samples,
                                 uint64_t seed) {
    if (!dataset) return clt_fail(CLT_E_INVALID, "clt_dataset_synthetic: dataset is NULL");
    CLT_TRY(check_samples(samples));
    if (classes < 1) return clt_fail(CLT_E_INVALID, "a synthetic data set of %d classes", classes);
    drawing d = {.seed = seed, .samples = samples, .classes = classes};
    CLT_TRY(make(dataset, sample, CLT_I32, &d, (size_t)classes, 0));
    (*dataset)->classes = classes; /* even where there are fewer samples */
    return CLT_OK;
}

clt_status clt_dataset_synthetic_regression(clt_dataset **dataset, int64_t samples, int64_t features,
                                            float noise, uint64_t seed) {
    if (!dataset) return clt_fail(CLT_E_INVALID, "clt_dataset_synthetic_regression: dataset is NULL");
    CLT_TRY(check_samples(samples));
    if (features < 1 || !(noise >= 0) || !isfinite(noise))
        return clt_fail(CLT_E_INVALID, "synthetic regression of %lld features with noise %g",
                        (long long)features, (double)noise);
    drawing d = {.seed = seed, .samples = samples, .noise = noise};
    return make(dataset, CLT_SHAPE(features), CLT_F32, &d, 1, 1);
}
