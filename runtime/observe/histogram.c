/* Histograms as TensorFlow makes them: its tensorflow/core/lib/histogram/histogram.cc. */
#include "runtime/observe/observe.h"

#include <float.h>
#include <string.h>

enum { SIDE = 775, LIMITS = 2 * SIDE + 1 }; /* limits of one sign, 1e-12 x 1.1^k below 1e20 and the largest number; all, with 0 */

typedef struct histogram {
    double limits[LIMITS], counts[LIMITS];
    double min, max, number, sum, squares;
    size_t nonfinite;
} histogram;

static void set_limits(histogram *h) {
    double v = 1e-12;
    for (int i = 1; i <= SIDE; i++, v *= 1.1) {
        h->limits[SIDE + i] = i < SIDE ? v : DBL_MAX;
        h->limits[SIDE - i] = -h->limits[SIDE + i];
    }
}

/* The first whose limit is above the value, which no f32's is not. */
static int bucket_of(const histogram *h, double value) {
    int low = 0, high = LIMITS - 1;
    while (low < high) {
        int middle = (low + high) / 2;
        if (h->limits[middle] > value) high = middle;
        else low = middle + 1;
    }
    return low;
}

static void count_values(histogram *h, const float *values, size_t n) {
    for (size_t i = 0; i < n; i++) {
        double v = values[i];
        if (!isfinite(v)) {
            h->nonfinite++;
            continue;
        }
        h->min = h->number > 0 ? CLT_MIN(h->min, v) : v;
        h->max = h->number > 0 ? CLT_MAX(h->max, v) : v;
        h->number++;
        h->sum += v;
        h->squares += v * v;
        h->counts[bucket_of(h, v)]++;
    }
}

/* Leaves what is written at the beginning of limits and counts; how many these are. */
static size_t join_empty(histogram *h) {
    size_t kept = 0;
    for (int i = 0; i < LIMITS; i++) {
        bool joins = h->counts[i] == 0 && (kept == 0 || h->counts[kept - 1] == 0);
        if (joins && kept == 0) continue;
        if (!joins) kept++;
        h->limits[kept - 1] = h->limits[i];
        h->counts[kept - 1] = h->counts[i];
    }
    return kept > 0 && h->counts[kept - 1] == 0 ? kept - 1 : kept;
}

static void add_histogram(clt_events *events, const char *tag, histogram *h) {
    clt_event_value_begin(events, tag);
    clt_text *to = &events->record;
    size_t message = clt_proto_begin(to, VALUE_HISTOGRAM), buckets = join_empty(h);
    clt_proto_double(to, HISTOGRAM_MIN, h->min);
    clt_proto_double(to, HISTOGRAM_MAX, h->max);
    clt_proto_double(to, HISTOGRAM_NUM, h->number);
    clt_proto_double(to, HISTOGRAM_SUM, h->sum);
    clt_proto_double(to, HISTOGRAM_SQUARES, h->squares);
    clt_proto_doubles(to, HISTOGRAM_LIMITS, h->limits, buckets);
    clt_proto_doubles(to, HISTOGRAM_BUCKETS, h->counts, buckets);
    clt_proto_end(to, message);
    clt_event_value_end(events);
}

static void add_nonfinite(clt_events *events, const char *tag, size_t count) {
    clt_text name = {0};
    clt_text_add(&name, "%s/nonfinite", tag);
    if (name.status < 0) events->record.status = name.status;
    else clt_event_add_scalar(events, name.data, (float)count);
    clt_text_free(&name);
}

clt_status clt_events_histogram(clt_events *events, const char *tag, int64_t step, const float *values, size_t n) {
    CLT_TRY(clt_event_check("clt_events_histogram", events, tag));
    if (!values || n == 0) return clt_fail(CLT_E_INVALID, "clt_events_histogram: there are no values");
    histogram *h = clt_calloc(1, sizeof *h);
    if (!h) return clt_fail_memory(sizeof *h);
    set_limits(h);
    count_values(h, values, n);
    clt_event_begin(events, step);
    add_histogram(events, tag, h);
    if (h->nonfinite > 0) add_nonfinite(events, tag, h->nonfinite);
    clt_free(h);
    return clt_event_end(events);
}
