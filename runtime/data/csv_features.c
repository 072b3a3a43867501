#include "runtime/data/csv_features.h"

#include <math.h>
#include <string.h>

#include "runtime/data/csv_date.h"

/* ---- the numbers of a column ---- */

const clt_csv_range clt_csv_no_range = {.first = NAN, .low = INFINITY, .high = -INFINITY};

void clt_csv_range_add(clt_csv_range *range, float x, float low, bool first) {
    double value = (double)x + (double)low;
    if (first) range->first = value;
    if (isnan(value)) return;
    range->sum += value;
    range->n++;
    range->rounded |= low != 0;
    if (!first) range->low = fmin(range->low, value), range->high = fmax(range->high, value);
}

void clt_csv_features_note(clt_csv_features *features, const clt_rows *rows, bool begins) {
    for (size_t r = 0; r < rows->rows; r++)
        for (size_t i = 0; i < (size_t)features->n; i++) {
            size_t at = r * rows->row_elements + i;
            if (features->items[i].kind == CLT_CSV_NUMBERS) clt_csv_range_add(&features->items[i].range, rows->x[at], rows->low[at], begins && r == 0);
        }
}

/* ---- what a column is ---- */

/* A model's categories of the feature, from its names of elements "column=category". */
static clt_status take_categories(clt_csv_feature *f, const clt_csv_columns *c, int64_t feature, const clt_preprocessing *like) {
    clt_names names = {0};
    int64_t first = c->elements[feature], n = c->categories[feature];
    if (n) {
        size_t skip = strlen(c->header[c->columns[feature]]) + 1;
        names.items = clt_calloc((size_t)n, sizeof *names.items);
        if (!names.items) return clt_fail_memory((size_t)n * sizeof *names.items);
        for (; names.n < n; names.n++) names.items[names.n] = like->features.items[first + names.n] + skip;
    }
    f->kind = n ? CLT_CSV_TEXTS : CLT_CSV_NUMBERS;
    f->codes = n > 0; /* the model has settled which */
    clt_status status = clt_csv_labels_begin(&f->categories, &names);
    clt_free(names.items); /* whose texts are the model's */
    return status;
}

clt_status clt_csv_features_begin(clt_csv_features *features, const clt_csv_columns *c, const clt_csv_options *options) {
    const clt_preprocessing *like = options->like;
    *features = (clt_csv_features){.items = clt_calloc((size_t)c->features, sizeof *features->items)};
    if (!features->items) return clt_fail_memory((size_t)c->features * sizeof *features->items);
    features->n = c->features;
    features->fills = like ? like->fill && options->missing != CLT_MISSING_REFUSE : options->missing == CLT_MISSING_MEAN;
    for (int64_t i = 0; i < c->features; i++) {
        clt_csv_feature *f = &features->items[i];
        f->fill = NAN;
        f->range = clt_csv_no_range;
        f->codes = c->texts[c->columns[i]];
        if (f->codes) f->kind = CLT_CSV_TEXTS;
        if (!like) continue;
        if (like->fill) f->fill = like->fill[c->elements[i]];
        CLT_TRY(take_categories(f, c, i, like));
    }
    return CLT_OK;
}

void clt_csv_features_free(clt_csv_features *features) {
    for (int64_t i = 0; i < features->n; i++) {
        clt_csv_labels_free(&features->items[i].categories);
        clt_free(features->items[i].ranks);
    }
    clt_free(features->items);
    *features = (clt_csv_features){0};
}

/* ---- fields ---- */

size_t clt_csv_trim(const char **field) {
    *field += strspn(*field, " \t");
    size_t length = strlen(*field);
    while (length && strchr(" \t", (*field)[length - 1])) length--;
    return length;
}

bool clt_csv_is_missing(const char *field) {
    static const char *const words[] = {"", "NA", "N/A", "NaN", "nan", "null", "NULL", "None", "?"};
    size_t length = clt_csv_trim(&field);
    for (size_t i = 0; i < CLT_COUNT_OF(words); i++)
        if (strlen(words[i]) == length && !strncmp(field, words[i], length)) return true;
    return false;
}

clt_status clt_csv_features_text(clt_csv_feature *feature, const char *text, float *value) {
    int32_t category;
    if (feature->kind == CLT_CSV_NUMBERS) return CLT_E_FORMAT;
    clt_status status = clt_csv_labels_find(&feature->categories, text, &category);
    if (status == CLT_OK && category >= CLT_CSV_MOST_CATEGORIES && !feature->categories.fixed) status = CLT_E_RANGE;
    if (status < 0) return status;
    feature->kind = CLT_CSV_TEXTS;
    *value = (float)category;
    return CLT_OK;
}

/* ---- samples ---- */

static int64_t elements_of(const clt_csv_feature *f) {
    return f->kind == CLT_CSV_TEXTS ? f->categories.names.n : 1;
}

int64_t clt_csv_features_elements(const clt_csv_features *features) {
    int64_t count = 0;
    for (int64_t i = 0; i < features->n; i++) count += elements_of(&features->items[i]);
    return count;
}

/* A number that is known where it is missing: the model's, or the mean. */
static clt_status find_fill(clt_csv_feature *f, int64_t i, const clt_csv_columns *c) {
    if (f->kind == CLT_CSV_TEXTS || !isnan(f->fill)) return CLT_OK;
    if (!f->range.n)
        return clt_fail(CLT_E_FORMAT, "%s: column %lld has no value at all: leave it out with drop=%lld", c->path, (long long)c->columns[i] + 1, (long long)c->columns[i]);
    f->fill = f->range.sum / (double)f->range.n;
    return CLT_OK;
}

static clt_status check_dates(const clt_csv_feature *f, int64_t i, const clt_csv_columns *c) {
    char name[CLT_SHOWN_TEXT], shown[CLT_SHOWN_TEXT];
    if (f->kind != CLT_CSV_TEXTS || f->categories.fixed || c->texts[c->columns[i]]) return CLT_OK;
    int64_t dates = 0, example = 0;
    for (int64_t k = 0; k < f->categories.names.n; k++)
        if (clt_csv_is_date(f->categories.names.items[k])) dates++, example = k;
    if (2 * dates <= f->categories.names.n) return CLT_OK; /* others say more */
    clt_show(c->header[c->columns[i]], name);
    return clt_fail(CLT_E_FORMAT, "%s: column %lld (%s) holds dates, such as \"%s\": leave it out with drop=%lld, write numbers in its place, or take each date as a category with texts=%lld",
                    c->path, (long long)c->columns[i] + 1, name, clt_show(f->categories.names.items[example], shown), (long long)c->columns[i], (long long)c->columns[i]);
}

/* Identifiers are texts, too, of which nothing can be learned; but the caller may know better. */
static clt_status check_categories(const clt_csv_feature *f, int64_t i, const clt_csv_columns *c, size_t rows) {
    enum { FEW = 10 };
    int64_t n = f->categories.names.n;
    if (f->kind != CLT_CSV_TEXTS || f->categories.fixed || c->texts[c->columns[i]] || n <= FEW || (size_t)n * 2 <= rows) return CLT_OK;
    char name[CLT_SHOWN_TEXT];
    return clt_fail(CLT_E_FORMAT, "%s: column %lld (%s): %lld different texts in %lld lines, as identifiers have: leave it out with drop=%lld", c->path,
                    (long long)c->columns[i] + 1, clt_show(c->header[c->columns[i]], name), (long long)n, (long long)rows, (long long)c->columns[i]);
}

/* Names of elements tell columns apart by what stands before "=". */
static clt_status check_names(const clt_csv_features *features, const clt_csv_columns *c) {
    char shown[CLT_SHOWN_TEXT], other[CLT_SHOWN_TEXT];
    for (int64_t i = 0; c->header && i < features->n; i++) {
        const char *texts = c->header[c->columns[i]];
        size_t length = strlen(texts);
        for (int64_t k = 0; features->items[i].kind == CLT_CSV_TEXTS && k < features->n; k++) {
            const char *name = c->header[c->columns[k]];
            if (strncmp(name, texts, length) != 0 || name[length] != '=') continue;
            return clt_fail(CLT_E_FORMAT, "%s: column \"%s\" is named as a category of column \"%s\" is: rename one, or leave one out with drop=%lld", c->path,
                            clt_show(name, shown), clt_show(texts, other), (long long)c->columns[k]);
        }
    }
    return CLT_OK;
}

/* Categories in the order of their names; those of a model have it already. */
static clt_status sort_categories(clt_csv_features *features) {
    for (int64_t i = 0; i < features->n; i++) {
        clt_csv_feature *f = &features->items[i];
        size_t n = (size_t)f->categories.names.n;
        if (f->kind != CLT_CSV_TEXTS || f->categories.fixed || !n) continue;
        f->ranks = clt_alloc(n * sizeof *f->ranks);
        if (!f->ranks) return clt_fail_memory(n * sizeof *f->ranks);
        clt_csv_labels_ranks(&f->categories, f->ranks);
        CLT_TRY(clt_csv_labels_sort(&f->categories, NULL, 0));
    }
    return CLT_OK;
}

void clt_csv_features_expand(const clt_csv_features *features, const float *from, const float *from_low, float *x, float *low) {
    for (int64_t i = 0; i < features->n; i++) {
        const clt_csv_feature *f = &features->items[i];
        int64_t n = elements_of(f);
        bool missing = isnan(from[i]), number = f->kind != CLT_CSV_TEXTS;
        for (int64_t k = 0; k < n; k++) x[k] = 0;
        if (number) x[0] = missing ? (float)f->fill : from[i];
        else if (!missing) x[f->ranks ? f->ranks[(int)from[i]] : (int)from[i]] = 1;
        for (int64_t k = 0; low && k < n; k++) low[k] = !number ? 0 : missing ? clt_low_of(f->fill) : from_low[i];
        x += n;
        if (low) low += n;
    }
}

static bool are_as_read(const clt_csv_features *features) {
    bool same = true;
    for (int64_t i = 0; i < features->n; i++) same &= features->items[i].kind != CLT_CSV_TEXTS && !features->items[i].lacks;
    return same;
}

clt_status clt_csv_features_expand_all(const clt_csv_features *features, clt_rows *rows) {
    size_t elements = (size_t)clt_csv_features_elements(features), count, bytes;
    float *x = NULL, *low = NULL;
    if (are_as_read(features)) return CLT_OK;
    if (clt_mul_size(rows->rows, elements, &count) && clt_mul_size(count, sizeof(float), &bytes)) x = clt_alloc(bytes), low = clt_alloc(bytes);
    if (!x || !low) {
        clt_free(x);
        clt_free(low);
        return clt_fail_memory(rows->rows * elements * sizeof(float));
    }
    for (size_t r = 0; r < rows->rows; r++) {
        size_t from = r * rows->row_elements, to = r * elements;
        clt_csv_features_expand(features, rows->x + from, rows->low + from, x + to, low + to);
    }
    clt_free(rows->x);
    clt_free(rows->low);
    rows->x = x;
    rows->low = low;
    rows->row_elements = elements;
    rows->capacity = rows->rows;
    return CLT_OK;
}

/* The names of elements: "width", "colour=red". */
static clt_status put_names(const clt_csv_features *features, const clt_csv_columns *c, int64_t elements, clt_names *names) {
    if (!c->header) return CLT_OK;
    names->items = clt_calloc((size_t)elements, sizeof *names->items);
    if (!names->items) return clt_fail_memory((size_t)elements * sizeof *names->items);
    for (int64_t i = 0; i < features->n; i++) {
        const clt_csv_feature *f = &features->items[i];
        for (int64_t k = 0; k < elements_of(f); k++) {
            clt_text name = {0};
            clt_text_add(&name, "%s", c->header[c->columns[i]]);
            if (f->kind == CLT_CSV_TEXTS) clt_text_add(&name, "=%s", f->categories.names.items[k]);
            clt_status status = name.status;
            if (status < 0) {
                clt_text_free(&name);
                return status;
            }
            names->items[names->n++] = name.data;
        }
    }
    return CLT_OK;
}

static clt_status put_texts(const clt_csv_features *features, const clt_csv_columns *c, clt_names *texts) {
    enum { MANY = 20 };
    texts->items = clt_calloc((size_t)features->n, sizeof *texts->items);
    if (!texts->items) return clt_fail_memory((size_t)features->n * sizeof *texts->items);
    for (int64_t i = 0; i < features->n; i++) {
        const clt_csv_feature *f = &features->items[i];
        if (f->kind != CLT_CSV_TEXTS) continue;
        const char *name = c->header[c->columns[i]];
        texts->items[texts->n] = clt_strdup(name);
        if (!texts->items[texts->n]) return clt_fail_memory(strlen(name) + 1);
        texts->n++;
        if (f->categories.names.n > MANY && !f->categories.fixed)
            clt_log_message(CLT_LOG_WARNING, "%s: column %lld (%s) is texts of %lld kinds, each of which becomes a feature", c->path,
                            (long long)c->columns[i] + 1, name, (long long)f->categories.names.n);
    }
    return CLT_OK;
}

static clt_status put_fill(const clt_csv_features *features, int64_t elements, clt_preprocessing *facts) {
    if (!features->fills) return CLT_OK;
    facts->fill = clt_calloc((size_t)elements, sizeof *facts->fill);
    if (!facts->fill) return clt_fail_memory((size_t)elements * sizeof *facts->fill);
    double *to = facts->fill;
    for (int64_t i = 0; i < features->n; i++) {
        const clt_csv_feature *f = &features->items[i];
        if (f->kind != CLT_CSV_TEXTS) *to = f->fill;
        to += elements_of(f);
    }
    return CLT_OK;
}

clt_status clt_csv_features_finish(clt_csv_features *features, const clt_csv_columns *c, size_t rows, clt_preprocessing *facts) {
    int64_t elements = clt_csv_features_elements(features);
    if (rows == 0) return clt_fail(CLT_E_FORMAT, "%s: each line lacks a value", c->path);
    for (int64_t i = 0; i < features->n; i++) {
        CLT_TRY(check_dates(&features->items[i], i, c));
        CLT_TRY(check_categories(&features->items[i], i, c, rows));
        if (features->fills) CLT_TRY(find_fill(&features->items[i], i, c));
    }
    CLT_TRY(check_names(features, c));
    CLT_TRY(sort_categories(features));
    facts->dtype = CLT_F32;
    facts->shape = CLT_SHAPE(elements);
    CLT_TRY(put_names(features, c, elements, &facts->features));
    CLT_TRY(put_texts(features, c, &facts->texts));
    return put_fill(features, elements, facts);
}
