/*
 * Samples that are mixtures of two. mixup: Zhang et al. 2018, "mixup: beyond empirical risk minimization"; CutMix: Yun et al. 2019, "CutMix: regularization
 * strategy to train strong classifiers with localizable features".
 */
#include "runtime/data/data.h"

#include <math.h>
#include <string.h>

enum { X, OTHER_LABEL, SHARE, LABEL, FIELDS };

typedef struct mixer {
    const clt_dataset *base;
    clt_mix_options options;
} mixer;

/* ---- Beta(a, a) ---- */

/* Marsaglia and Tsang 2000, for a >= 1. */
static double draw_gamma(clt_random *random, double a) {
    double d = a - 1.0 / 3, c = 1 / sqrt(9 * d);
    for (;;) {
        double z = clt_random_normal(random), v = 1 + c * z, u = 1 - clt_random_uniform(random);
        v = v * v * v;
        if (v > 0 && log(u) < 0.5 * z * z + d - d * v + d * log(v)) return d * v;
    }
}

/* Below 1 by Jöhnk 1964, in logarithms: powers of a small a have no number. Rounded, so that the last bit of a C library's logarithm hardly ever shows. */
static double draw_beta(clt_random *random, double a) {
    double share;
    if (a >= 1) {
        double x = draw_gamma(random, a), y = draw_gamma(random, a);
        share = x / (x + y);
    } else {
        double x, y;
        do {
            x = log(1 - clt_random_uniform(random)) / a;
            y = log(1 - clt_random_uniform(random)) / a;
        } while (fmax(x, y) + log1p(exp(-fabs(x - y))) > 0); /* log(e^x + e^y) */
        share = 1 / (1 + exp(y - x));
    }
    return rint(share * 65536) / 65536;
}

/* ---- both ways ---- */

static void blend(const clt_field *field, double share, void *own, const void *other) {
    size_t n = field->sample_bytes / clt_dtype_bytes(field->dtype);
    float a = (float)share, b = (float)(1 - share);
    if (field->dtype == CLT_F32) {
        float *x = own;
        for (size_t i = 0; i < n; i++) x[i] = a * x[i] + b * ((const float *)other)[i];
    } else {
        uint8_t *x = own;
        for (size_t i = 0; i < n; i++) x[i] = (uint8_t)(a * x[i] + b * ((const uint8_t *)other)[i] + 0.5f);
    }
}

/* A box of 1 - share of the area, its centre anywhere, as far as it lies in the picture. Returns what is left of the own picture. */
static double cut(const clt_field *field, clt_random *random, double share, char *own, const char *other) {
    int64_t channels = field->shape.dims[0], h = field->shape.dims[1], w = field->shape.dims[2];
    int64_t half_h = (int64_t)(0.5 * sqrt(1 - share) * (double)h), half_w = (int64_t)(0.5 * sqrt(1 - share) * (double)w);
    int64_t y = (int64_t)clt_random_below(random, (uint64_t)h), x = (int64_t)clt_random_below(random, (uint64_t)w);
    int64_t top = CLT_MAX(y - half_h, 0), bottom = CLT_MIN(y + half_h, h), left = CLT_MAX(x - half_w, 0), right = CLT_MIN(x + half_w, w);
    size_t bytes = clt_dtype_bytes(field->dtype), row = (size_t)(right - left) * bytes;
    for (int64_t c = 0; c < channels; c++)
        for (int64_t r = top; r < bottom; r++) {
            size_t at = (size_t)((c * h + r) * w + left) * bytes;
            memcpy(own + at, other + at, row);
        }
    return 1 - (double)((bottom - top) * (right - left)) / (double)(h * w);
}

static bool cuts(const mixer *m, clt_random *random) {
    if (m->options.mixup > 0 && m->options.cutmix > 0) return clt_random_uniform(random) < 0.5;
    return m->options.cutmix > 0;
}

/* Epochs have numbers of their own, as of augmentation. */
static clt_random random_of(const clt_sample *sample) {
    clt_random random;
    clt_random_init(&random, sample->seed, CLT_RANDOM_STREAM(CLT_RANDOM_MIX, sample->index));
    random.counter = (uint64_t)sample->epoch << 24;
    return random;
}

static clt_status mix(const mixer *m, const clt_sample *sample, void *const *fields, void *scratch) {
    clt_random random = random_of(sample);
    const clt_field *x = &m->base->fields[0];
    clt_sample other = *sample;
    if (clt_random_uniform(&random) >= (m->options.probability > 0 ? (double)m->options.probability : 1)) return CLT_OK;
    other.index = (int64_t)clt_random_below(&random, (uint64_t)m->base->samples);
    CLT_TRY(clt_dataset_fetch(m->base, &other, (void *[]){scratch, fields[OTHER_LABEL]}));
    bool cutting = cuts(m, &random);
    double share = draw_beta(&random, (double)(cutting ? m->options.cutmix : m->options.mixup));
    if (cutting) share = cut(x, &random, share, fields[X], scratch);
    else blend(x, share, fields[X], scratch);
    *(float *)fields[SHARE] = (float)share;
    return CLT_OK;
}

static clt_status fetch(void *user, const clt_sample *sample, void *const *fields) {
    const mixer *m = user;
    CLT_TRY(clt_dataset_fetch(m->base, sample, (void *[]){fields[X], fields[LABEL]}));
    memcpy(fields[OTHER_LABEL], fields[LABEL], sizeof(int32_t));
    *(float *)fields[SHARE] = 1;
    if (!(m->options.mixup > 0 || m->options.cutmix > 0)) return CLT_OK;
    void *scratch = clt_alloc(m->base->fields[0].sample_bytes);
    if (!scratch) return clt_fail_memory(m->base->fields[0].sample_bytes);
    clt_status status = mix(m, sample, fields, scratch);
    clt_free(scratch);
    return status;
}

static int32_t label_of(void *user, int64_t index) {
    int32_t label = -1;
    return clt_dataset_label(((const mixer *)user)->base, index, &label) < 0 ? -1 : label;
}

static const char *name_of(void *user, int64_t index) {
    return clt_dataset_sample_name(((const mixer *)user)->base, index);
}

static clt_status check(const clt_dataset *base, const clt_mix_options *o) {
    const clt_field *x = &base->fields[0];
    if (!base->classes || base->n_fields != 2 || (x->dtype != CLT_F32 && x->dtype != CLT_U8))
        return clt_fail(CLT_E_DTYPE, "clt_dataset_mix: expected samples of two fields, f32 or u8 and a class");
    if (!(o->mixup >= 0 && o->mixup <= 1000) || !(o->cutmix >= 0 && o->cutmix <= 1000) || !(o->probability >= 0 && o->probability <= 1))
        return clt_fail(CLT_E_INVALID, "clt_dataset_mix: mixup %g, cutmix %g, probability %g: expected 0 to 1000, 0 to 1000, and 0 to 1", (double)o->mixup, (double)o->cutmix,
                        (double)o->probability);
    if (o->cutmix > 0 && x->shape.rank != 3) return clt_fail(CLT_E_SHAPE, "clt_dataset_mix: cutmix is for samples [channels, height, width]; these have rank %d", x->shape.rank);
    return CLT_OK;
}

clt_status clt_dataset_mix(clt_dataset **dataset, const clt_dataset *base, const clt_mix_options *options) {
    if (!dataset || !base) return clt_fail(CLT_E_INVALID, "clt_dataset_mix: dataset or base is NULL");
    clt_mix_options o = options ? *options : (clt_mix_options){0};
    CLT_TRY(check(base, &o));
    mixer *m = clt_alloc(sizeof *m);
    if (!m) return clt_fail_memory(sizeof *m);
    *m = (mixer){base, o};
    clt_dataset_source source = {.samples = base->samples, .n_fields = FIELDS, .dtypes = {base->fields[0].dtype, CLT_I32, CLT_F32, CLT_I32},
                                 .shapes = {base->fields[0].shape}, .classes = base->classes, .fetch = fetch, .label = label_of, .name = name_of,
                                 .destroy = clt_free, .user = m};
    clt_status status = clt_dataset_create(dataset, &source);
    if (status < 0) {
        clt_free(m);
        return status;
    }
    if (base->facts) status = clt_preprocessing_copy(&(*dataset)->facts, base->facts);
    if (status < 0) {
        clt_dataset_destroy(*dataset);
        *dataset = NULL;
    }
    return status;
}
