#include "runtime/data/preprocessing.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "runtime/base/shape.h"
#include "runtime/data/data.h"

/* ---- names ---- */

clt_status clt_names_copy(clt_names *names, char *const *items, int64_t n) {
    *names = (clt_names){0};
    if (!items || n < 1) return CLT_OK;
    names->items = clt_calloc((size_t)n, sizeof *names->items);
    if (!names->items) return clt_fail_memory((size_t)n * sizeof *names->items);
    for (; names->n < n; names->n++) {
        names->items[names->n] = clt_strdup(items[names->n]);
        if (!names->items[names->n]) return clt_fail_memory(strlen(items[names->n]) + 1);
    }
    return CLT_OK;
}

void clt_names_free(clt_names *names) {
    for (int64_t i = 0; i < names->n; i++) clt_free(names->items[i]);
    clt_free(names->items);
    *names = (clt_names){0};
}

const char *clt_names_text(const clt_names *names, char text[CLT_NAMES_TEXT]) {
    char shown[CLT_SHOWN_TEXT];
    size_t used = 0;
    text[0] = 0;
    for (int64_t i = 0; i < names->n; i++) {
        clt_show(names->items[i], shown);
        if (used + strlen(shown) + sizeof ", ..." > CLT_NAMES_TEXT) {
            snprintf(text + used, CLT_NAMES_TEXT - used, "%s...", i ? ", " : "");
            break;
        }
        used += (size_t)snprintf(text + used, CLT_NAMES_TEXT - used, "%s%s", i ? ", " : "", shown);
    }
    return text;
}

/* ---- mean and deviation ---- */

clt_status clt_moments_make(clt_moments *m, size_t n) {
    *m = (clt_moments){.n = n};
    if (!n) return CLT_OK;
    m->mean = clt_calloc(n, 2 * sizeof(double));
    if (!m->mean) return clt_fail_memory(2 * n * sizeof(double));
    m->deviation = m->mean + n;
    return CLT_OK;
}

clt_status clt_moments_copy(clt_moments *copy, const clt_moments *m) {
    CLT_TRY(clt_moments_make(copy, m->n));
    if (m->n) memcpy(copy->mean, m->mean, 2 * m->n * sizeof(double));
    return CLT_OK;
}

/* ---- making it ---- */

clt_status clt_preprocessing_copy(clt_preprocessing **copy, const clt_preprocessing *p) {
    clt_preprocessing *c = clt_calloc(1, sizeof *c);
    clt_status status;
    if (!c) return clt_fail_memory(sizeof *c);
    c->dtype = p->dtype;
    c->shape = p->shape;
    c->classes = p->classes;
    c->target = p->target;
    CLT_TRY_GOTO(clt_names_copy(&c->features, p->features.items, p->features.n));
    CLT_TRY_GOTO(clt_names_copy(&c->class_names, p->class_names.items, p->class_names.n));
    CLT_TRY_GOTO(clt_names_copy(&c->texts, p->texts.items, p->texts.n));
    CLT_TRY_GOTO(clt_moments_copy(&c->moments, &p->moments));
    CLT_TRY_GOTO(clt_moments_copy(&c->target_moments, &p->target_moments));
    if (p->fill) {
        size_t bytes = (size_t)clt_shape_elements(&p->shape) * sizeof *c->fill;
        c->fill = clt_alloc(bytes);
        status = c->fill ? CLT_OK : clt_fail_memory(bytes);
        if (!c->fill) goto fail;
        memcpy(c->fill, p->fill, bytes);
    }
    c->label_column = p->label_column;
    if (p->label && !(c->label = clt_strdup(p->label))) {
        status = clt_fail_memory(strlen(p->label) + 1);
        goto fail;
    }
    *copy = c;
    return CLT_OK;
fail:
    clt_preprocessing_destroy(c);
    return status;
}

clt_status clt_preprocessing_of(clt_preprocessing **preprocessing, const clt_dataset *dataset) {
    if (!preprocessing || !dataset) return clt_fail(CLT_E_INVALID, "clt_preprocessing_of: an argument is NULL");
    static const clt_preprocessing nothing;
    clt_preprocessing facts = dataset->facts ? *dataset->facts : nothing;
    facts.dtype = dataset->fields[0].dtype;
    facts.shape = dataset->fields[0].shape;
    facts.classes = dataset->classes;
    bool numbers = dataset->n_fields > 1 && !dataset->classes;
    facts.target = numbers ? dataset->fields[dataset->n_fields - 1].shape : (clt_shape){.rank = -1};
    return clt_preprocessing_copy(preprocessing, &facts);
}

clt_status clt_dataset_note_pixels(clt_dataset *dataset, double most) {
    CLT_TRY(clt_preprocessing_of(&dataset->facts, dataset));
    clt_moments *m = &dataset->facts->moments;
    CLT_TRY(clt_moments_make(m, (size_t)dataset->fields[0].shape.dims[0]));
    for (size_t i = 0; i < m->n; i++) m->deviation[i] = most;
    return CLT_OK;
}

void clt_preprocessing_destroy(clt_preprocessing *p) {
    if (!p) return;
    clt_names_free(&p->features);
    clt_names_free(&p->class_names);
    clt_names_free(&p->texts);
    clt_free(p->label);
    clt_free(p->moments.mean);
    clt_free(p->target_moments.mean);
    clt_free(p->fill);
    clt_free(p);
}

/* ---- what suits it ---- */

static clt_status compare_class_names(const clt_preprocessing *p, const clt_preprocessing *other, const char *path) {
    char wanted[CLT_NAMES_TEXT], found[CLT_NAMES_TEXT];
    bool same = p->class_names.n == other->class_names.n;
    for (int64_t i = 0; same && i < p->class_names.n; i++) same = !strcmp(p->class_names.items[i], other->class_names.items[i]);
    if (same) return CLT_OK;
    return clt_fail(CLT_E_MISMATCH, "%s was trained on the classes %s, and the data have %s", path,
                    p->class_names.n ? clt_names_text(&p->class_names, wanted) : "0, 1, ...",
                    other->class_names.n ? clt_names_text(&other->class_names, found) : "0, 1, ...");
}

static clt_status compare_classes(const clt_preprocessing *p, const clt_preprocessing *other, const char *path) {
    if (!p->classes != !other->classes)
        return clt_fail(CLT_E_MISMATCH, "%s was trained on %s, and the data have %s", path, p->classes ? "classes" : "numbers to predict",
                        other->classes ? "classes" : "numbers to predict");
    if (p->classes != other->classes)
        return clt_fail(CLT_E_MISMATCH, "%s was trained on %d classes, and the data have %d", path, p->classes, other->classes);
    return compare_class_names(p, other, path);
}

static clt_status compare_features(const clt_preprocessing *p, const clt_preprocessing *other, const char *path) {
    char wanted[CLT_NAMES_TEXT], found[CLT_NAMES_TEXT];
    bool same = !p->features.n || !other->features.n || p->features.n == other->features.n;
    for (int64_t i = 0; same && i < p->features.n && i < other->features.n; i++)
        same = !strcmp(p->features.items[i], other->features.items[i]);
    if (same) return CLT_OK;
    return clt_fail(CLT_E_MISMATCH, "%s was trained on the columns %s, and the data have %s", path, clt_names_text(&p->features, wanted),
                    clt_names_text(&other->features, found));
}

static bool close_to(double a, double b, double deviation) {
    return fabs(a - b) <= 1e-6 * deviation;
}

/* `what`: "element", "channel" or "target" */
static clt_status compare_moments(const clt_moments *a, const clt_moments *b, const char *what, const char *path) {
    static const char remedy[] = "apply those of the file to data as they were read (clt_preprocessing_apply)";
    if (a->n != b->n)
        return clt_fail(CLT_E_MISMATCH, "%s was trained on %ss that were %s, and those of the data %s: %s", path, what,
                        a->n ? "standardized" : "not standardized", b->n ? "are" : "are not", remedy);
    for (size_t i = 0; i < a->n; i++)
        if (!close_to(a->mean[i], b->mean[i], a->deviation[i]) || !close_to(a->deviation[i], b->deviation[i], a->deviation[i]))
            return clt_fail(CLT_E_MISMATCH, "%s was trained with mean %g and deviation %g of %s %zu, and the data were standardized with %g and %g: %s",
                            path, a->mean[i], a->deviation[i], what, i, b->mean[i], b->deviation[i], remedy);
    return CLT_OK;
}

clt_status clt_preprocessing_compare(const clt_preprocessing *p, const clt_preprocessing *other, const char *path) {
    CLT_TRY(compare_features(p, other, path));
    CLT_TRY(compare_classes(p, other, path));
    CLT_TRY(compare_moments(&p->moments, &other->moments, p->shape.rank == 3 ? "channel" : "element", path));
    return compare_moments(&p->target_moments, &other->target_moments, "target", path);
}

static bool same_moments(const clt_moments *a, const clt_moments *b) {
    bool same = a->n == b->n;
    for (size_t i = 0; same && i < a->n; i++)
        same = close_to(a->mean[i], b->mean[i], a->deviation[i]) && close_to(a->deviation[i], b->deviation[i], a->deviation[i]);
    return same;
}

static clt_status check_samples(const clt_preprocessing *p, const clt_dataset *d) {
    char wanted[CLT_SHAPE_TEXT], found[CLT_SHAPE_TEXT];
    const clt_field *x = &d->fields[0];
    if (x->dtype != p->dtype || (p->moments.n && !clt_shape_equal(&x->shape, &p->shape)))
        return clt_fail(CLT_E_MISMATCH, "the model was trained on samples %s %s, and the data are %s %s", clt_dtype_name(p->dtype),
                        clt_shape_text(&p->shape, wanted), clt_dtype_name(x->dtype), clt_shape_text(&x->shape, found));
    if (d->facts && d->facts->moments.n && !same_moments(&p->moments, &d->facts->moments)) return clt_fail(CLT_E_MISMATCH, "the data are standardized already: apply it to data as they were read");
    if (d->facts && d->facts->target_moments.n && !same_moments(&p->target_moments, &d->facts->target_moments))
        return clt_fail(CLT_E_MISMATCH, "the data's target is standardized already: apply it to data as they were read");
    if (d->facts) CLT_TRY(compare_features(p, d->facts, "the model"));
    if (d->facts && d->facts->class_names.n) CLT_TRY(compare_class_names(p, d->facts, "the model"));
    if (d->n_fields > 1 && !p->classes != !d->classes)
        return clt_fail(CLT_E_MISMATCH, "the model was trained on %s, and the data have %s", p->classes ? "classes" : "numbers to predict",
                        d->classes ? "classes" : "numbers to predict");
    if (d->classes > p->classes)
        return clt_fail(CLT_E_MISMATCH, "the model was trained on %d classes, and the data have %d", p->classes, d->classes);
    return CLT_OK;
}

clt_status clt_preprocessing_apply(const clt_preprocessing *p, clt_dataset *dataset) {
    if (!p || !dataset) return clt_fail(CLT_E_INVALID, "clt_preprocessing_apply: an argument is NULL");
    CLT_TRY(check_samples(p, dataset));
    bool done = dataset->facts && dataset->facts->moments.n, target_done = dataset->facts && dataset->facts->target_moments.n;
    clt_preprocessing *facts;
    CLT_TRY(clt_preprocessing_copy(&facts, p));
    clt_preprocessing_destroy(dataset->facts);
    dataset->facts = facts;
    if (dataset->n_fields > 1) dataset->classes = p->classes;
    if (!done) CLT_TRY(clt_dataset_scale(dataset, &facts->moments));
    return target_done ? CLT_OK : clt_dataset_scale_target(dataset, &facts->target_moments);
}

/* ---- what it tells ---- */

clt_dtype clt_preprocessing_dtype(const clt_preprocessing *p) {
    return p ? p->dtype : CLT_F32;
}

clt_shape clt_preprocessing_shape(const clt_preprocessing *p) {
    return p ? p->shape : (clt_shape){.rank = -1};
}

static const char *name_at(const clt_names *names, int64_t i) {
    return i >= 0 && i < names->n ? names->items[i] : NULL;
}

const char *clt_preprocessing_feature(const clt_preprocessing *p, int64_t feature) {
    return p ? name_at(&p->features, feature) : NULL;
}

const char *clt_preprocessing_label(const clt_preprocessing *p) {
    return p ? p->label : NULL;
}

int clt_preprocessing_classes(const clt_preprocessing *p) {
    return p ? p->classes : 0;
}

clt_shape clt_preprocessing_target(const clt_preprocessing *p) {
    return p ? p->target : (clt_shape){.rank = -1};
}

const char *clt_preprocessing_class(const clt_preprocessing *p, int class_index) {
    return p ? name_at(&p->class_names, class_index) : NULL;
}

int clt_preprocessing_standardizes(const clt_preprocessing *p) {
    return p && p->moments.n > 0;
}

double clt_preprocessing_target_mean(const clt_preprocessing *p) {
    return p && p->target_moments.n ? p->target_moments.mean[0] : 0;
}

double clt_preprocessing_target_deviation(const clt_preprocessing *p) {
    return p && p->target_moments.n ? p->target_moments.deviation[0] : 1;
}
