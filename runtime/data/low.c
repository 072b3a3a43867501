/*
 * What f32 rounds off numbers, which matters where they are far from 0 and close together, as metres of UTM or seconds since 1970: this low
 * part is kept until they are standardized. How much of it matters is told by the mean and deviation that are taken off, often those of other data.
 */
#include "runtime/data/data.h"
#include "runtime/data/preprocessing.h"

#include <math.h>
#include <stdio.h>

typedef struct range {
    double low, high;
} range;

enum { TOGETHER = 16 }; /* f32 of a cache line */

/* Of elements [first, first + n) of the samples, leaving out what is missing. */
static void find_ranges(const clt_field *f, size_t samples, size_t elements, size_t first, size_t n, range *r) {
    for (size_t e = 0; e < n; e++) r[e] = (range){INFINITY, -INFINITY};
    for (size_t i = 0; i < samples; i++)
        for (size_t e = 0; e < n; e++) {
            double value = clt_field_number(f, i * elements + first + e);
            if (value < r[e].low) r[e].low = value;
            if (value > r[e].high) r[e].high = value;
        }
}

bool clt_low_matters(const float *low, size_t count) {
    bool any = false;
    for (size_t at = 0; !any && at < count; at++) any = low[at] != 0;
    return any;
}

clt_status clt_low_split(const double *values, size_t count, float **x, float **low) {
    size_t bytes = count * sizeof **x; /* of doubles, which are there, there are twice as many */
    *x = clt_alloc(bytes);
    *low = clt_alloc(bytes);
    if (!*x || !*low) {
        clt_free(*x);
        clt_free(*low);
        return clt_fail_memory(bytes);
    }
    for (size_t at = 0; at < count; at++) {
        (*x)[at] = (float)values[at];
        (*low)[at] = clt_low_of(values[at]);
    }
    if (clt_low_matters(*low, count)) return CLT_OK;
    clt_free(*low);
    *low = NULL;
    return CLT_OK;
}

double clt_low_step(double low, double high) {
    return ldexp(1, ilogb(fmax(fabs(low), fabs(high))) - 23);
}

/* "element 3 (time) of the samples" */
static const char *place_of(const clt_dataset *d, int field, size_t element, char text[CLT_SHOWN_TEXT + 64]) {
    const char *name = field ? NULL : clt_preprocessing_feature(d->facts, (int64_t)element);
    char shown[CLT_SHOWN_TEXT] = "";
    if (name) clt_show(name, shown);
    snprintf(text, CLT_SHOWN_TEXT + 64, "element %zu%s%s%s of the %s", element, name ? " (" : "", shown, name ? ")" : "", field ? "target" : "samples");
    return text;
}

static clt_status check_range(const clt_dataset *d, int field, size_t element, range r) {
    enum { FEW = 1 << 10 };
    char place[CLT_SHOWN_TEXT + 64];
    if (!(r.high > r.low)) return CLT_OK;
    double spread = r.high - r.low, step = clt_low_step(r.low, r.high);
    if (spread >= FEW * step) return CLT_OK;
    place_of(d, field, element, place);
    if (spread < CLT_LOW_TOO_FEW * step)
        return clt_fail(CLT_E_RANGE, "%s: f32 cannot tell values from %.12g to %.12g apart, its numbers are %.4g apart there: standardize the data, or subtract %.12g",
                        place, r.low, r.high, step, r.low);
    clt_log_message(CLT_LOG_WARNING, "%s: from %.12g to %.12g f32 has %.0f numbers, and values are rounded to these: standardizing the data, or subtracting "
                                     "%.12g, keeps them apart",
                    place, r.low, r.high, spread / step, r.low);
    return CLT_OK;
}

static clt_status check_field(const clt_dataset *d, int field) {
    const clt_field *f = &d->fields[field];
    size_t elements = f->sample_bytes / sizeof(float);
    range r[TOGETHER];
    for (size_t first = 0; f->low && first < elements; first += TOGETHER) {
        size_t n = CLT_MIN(elements - first, TOGETHER);
        find_ranges(f, (size_t)d->samples, elements, first, n, r);
        for (size_t e = 0; e < n; e++) CLT_TRY(check_range(d, field, first + e, r[e]));
    }
    return CLT_OK;
}

clt_status clt_low_check(const clt_dataset *d) {
    for (int i = 0; i < d->n_fields; i++) CLT_TRY(check_field(d, i));
    return CLT_OK;
}
