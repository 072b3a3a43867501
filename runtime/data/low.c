/*
 * Numbers far from 0 and close together, as metres of UTM or seconds since 1970, of which f32 alone loses what matters: their low part is
 * kept until they are standardized.
 */
#include "runtime/data/data.h"
#include "runtime/data/preprocessing.h"

#include <math.h>
#include <stdio.h>

typedef struct range {
    double low, high;
} range;

static double number_at(const float *x, const float *low, size_t at) {
    return low ? (double)x[at] + (double)low[at] : (double)x[at];
}

enum { TOGETHER = 16 }; /* f32 of a cache line */

/* Of elements [first, first + n) of the samples, leaving out what is missing. */
static void find_ranges(const float *x, const float *low, size_t samples, size_t elements, size_t first, size_t n, range *r) {
    for (size_t e = 0; e < n; e++) r[e] = (range){INFINITY, -INFINITY};
    for (size_t i = 0; i < samples; i++)
        for (size_t e = 0; e < n; e++) {
            double value = number_at(x, low, i * elements + first + e);
            if (value < r[e].low) r[e].low = value;
            if (value > r[e].high) r[e].high = value;
        }
}

/* Rounding to f32 is some 1e-6 of the spread there, and more. */
static bool is_far(range r) {
    enum { FAR = 8 };
    return r.high >= r.low && fmax(fabs(r.low), fabs(r.high)) > FAR * (r.high - r.low);
}

bool clt_low_matters(const float *x, const float *low, size_t samples, size_t elements) {
    bool any = false, far = false;
    range r[TOGETHER];
    for (size_t at = 0; !any && at < samples * elements; at++) any = low[at] != 0;
    for (size_t first = 0; any && !far && first < elements; first += TOGETHER) {
        size_t n = CLT_MIN(elements - first, TOGETHER);
        find_ranges(x, low, samples, elements, first, n, r);
        for (size_t e = 0; e < n; e++) far |= is_far(r[e]);
    }
    return far;
}

clt_status clt_low_split(const double *values, size_t samples, size_t elements, float **x, float **low) {
    size_t bytes = samples * elements * sizeof **x; /* of doubles, which are there, there are twice as many */
    *x = clt_alloc(bytes);
    *low = clt_alloc(bytes);
    if (!*x || !*low) {
        clt_free(*x);
        clt_free(*low);
        return clt_fail_memory(bytes);
    }
    for (size_t at = 0; at < samples * elements; at++) {
        (*x)[at] = (float)values[at];
        (*low)[at] = clt_low_of(values[at]);
    }
    if (clt_low_matters(*x, *low, samples, elements)) return CLT_OK;
    clt_free(*low);
    *low = NULL;
    return CLT_OK;
}

/* "element 3 (time) of the samples" */
static const char *place_of(const clt_dataset *d, int field, size_t element, char text[CLT_SHOWN_TEXT + 64]) {
    const char *name = field ? NULL : clt_preprocessing_feature(d->facts, (int64_t)element);
    char shown[CLT_SHOWN_TEXT] = "";
    if (name) clt_show(name, shown);
    snprintf(text, CLT_SHOWN_TEXT + 64, "element %zu%s%s%s of the %s", element, name ? " (" : "", shown, name ? ")" : "", field ? "target" : "samples");
    return text;
}

static clt_status check_field(const clt_dataset *d, int field) {
    enum { FEW = 1 << 10, TOO_FEW = 1 << 4 };
    const clt_field *f = &d->fields[field];
    size_t elements = f->sample_bytes / sizeof(float);
    char place[CLT_SHOWN_TEXT + 64];
    for (size_t e = 0; f->low && e < elements; e++) {
        range r;
        find_ranges(f->data, f->low, (size_t)d->samples, elements, e, 1, &r);
        if (!(r.high > r.low)) continue;
        double spread = r.high - r.low, step = ldexp(1, ilogb(fmax(fabs(r.low), fabs(r.high))) - 23); /* of f32 there */
        if (spread >= FEW * step) continue;
        place_of(d, field, e, place);
        if (spread < TOO_FEW * step)
            return clt_fail(CLT_E_RANGE, "%s: f32 cannot tell values from %.12g to %.12g apart, its numbers are %.4g apart there: standardize the data, or subtract %.12g",
                            place, r.low, r.high, step, r.low);
        clt_log_message(CLT_LOG_WARNING, "%s: from %.12g to %.12g f32 has %.0f numbers, and values are rounded to these: standardizing the data, or subtracting "
                                         "%.12g, keeps them apart",
                        place, r.low, r.high, spread / step, r.low);
    }
    return CLT_OK;
}

clt_status clt_low_check(const clt_dataset *d) {
    for (int i = 0; i < d->n_fields; i++) CLT_TRY(check_field(d, i));
    return CLT_OK;
}
