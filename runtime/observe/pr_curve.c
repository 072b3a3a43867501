/* Precision-recall curves, as TensorBoard's plugin pr_curves reads them: a tensor of six rows, and the number of thresholds. */
#include "runtime/observe/observe.h"

#include <string.h>

#include "runtime/base/bytes.h"

enum { TRUE_POSITIVES, FALSE_POSITIVES, TRUE_NEGATIVES, FALSE_NEGATIVES, PRECISION, RECALL, ROWS };
enum { MOST_THRESHOLDS = 65536 };

static float threshold_of(int k, int thresholds) {
    return (float)k / (float)(thresholds - 1);
}

/* The last one that is not above the score; -1: all are. */
static int last_threshold(float score, int thresholds) {
    if (!(score >= 0)) return -1;
    if (score >= 1) return thresholds - 1;
    int k = (int)(score * (float)(thresholds - 1)); /* or the next to it: the product is rounded */
    while (k + 1 < thresholds && score >= threshold_of(k + 1, thresholds)) k++;
    while (score < threshold_of(k, thresholds)) k--;
    return k;
}

/* counts[k] by label: samples whose last threshold is k - 1. */
static void count_samples(uint64_t (*counts)[2], const uint8_t *labels, const float *scores, size_t n, int thresholds) {
    for (size_t i = 0; i < n; i++) counts[last_threshold(scores[i], thresholds) + 1][labels[i] != 0]++;
}

static float ratio(uint64_t part, uint64_t rest) {
    return part ? (float)((double)part / ((double)part + (double)rest)) : 0;
}

static void put(unsigned char *tensor, int thresholds, int row, int k, float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    clt_bytes_put(tensor + ((size_t)row * (size_t)thresholds + (size_t)k) * sizeof bits, bits, sizeof bits);
}

static void fill_tensor(unsigned char *tensor, uint64_t (*counts)[2], int thresholds) {
    uint64_t above[2] = {0, 0}, all[2] = {0, 0};
    for (int k = 0; k <= thresholds; k++) all[0] += counts[k][0], all[1] += counts[k][1];
    for (int k = thresholds - 1; k >= 0; k--) {
        above[0] += counts[k + 1][0], above[1] += counts[k + 1][1];
        put(tensor, thresholds, TRUE_POSITIVES, k, (float)above[1]);
        put(tensor, thresholds, FALSE_POSITIVES, k, (float)above[0]);
        put(tensor, thresholds, TRUE_NEGATIVES, k, (float)(all[0] - above[0]));
        put(tensor, thresholds, FALSE_NEGATIVES, k, (float)(all[1] - above[1]));
        put(tensor, thresholds, PRECISION, k, ratio(above[1], above[0]));
        put(tensor, thresholds, RECALL, k, ratio(above[1], all[1] - above[1]));
    }
}

static void add_dimension(clt_text *to, int size) {
    size_t dimension = clt_proto_begin(to, SHAPE_DIM);
    clt_proto_varint(to, DIM_SIZE, (uint64_t)size);
    clt_proto_end(to, dimension);
}

static void add_curve(clt_events *events, const char *tag, const unsigned char *tensor, size_t bytes, int thresholds) {
    enum { NUM_THRESHOLDS = 2 }; /* of PrCurvePluginData; version 0 goes without saying */
    clt_text content = {0}, *to = &events->record;
    clt_proto_varint(&content, NUM_THRESHOLDS, (uint64_t)thresholds);
    clt_event_value_begin(events, tag);
    size_t message = clt_proto_begin(to, VALUE_TENSOR);
    clt_proto_varint(to, TENSOR_DTYPE, DTYPE_FLOAT);
    size_t shape = clt_proto_begin(to, TENSOR_SHAPE);
    add_dimension(to, ROWS);
    add_dimension(to, thresholds);
    clt_proto_end(to, shape);
    clt_proto_bytes(to, TENSOR_CONTENT, tensor, bytes);
    clt_proto_end(to, message);
    clt_event_plugin(events, "pr_curves", &content);
    clt_event_value_end(events);
    clt_text_free(&content);
}

static clt_status check_samples(const uint8_t *labels, const float *scores, size_t n, int thresholds) {
    if (!labels || !scores || n == 0) return clt_fail(CLT_E_INVALID, "clt_events_pr_curve: there are no samples");
    if (thresholds >= 2 && thresholds <= MOST_THRESHOLDS) return CLT_OK;
    return clt_fail(CLT_E_RANGE, "clt_events_pr_curve: %d thresholds; expected 2 to %d", thresholds, MOST_THRESHOLDS);
}

clt_status clt_events_pr_curve(clt_events *events, const char *tag, int64_t step, const uint8_t *labels, const float *scores, size_t n,
                               int thresholds) {
    CLT_TRY(clt_event_check("clt_events_pr_curve", events, tag));
    CLT_TRY(check_samples(labels, scores, n, thresholds));
    size_t bytes = ROWS * sizeof(float) * (size_t)thresholds, counts_bytes = sizeof(uint64_t[2]) * ((size_t)thresholds + 1);
    uint64_t (*counts)[2] = clt_calloc(1, counts_bytes);
    unsigned char *tensor = clt_alloc(bytes);
    clt_status status = counts && tensor ? CLT_OK : clt_fail_memory(bytes + counts_bytes);
    if (status == CLT_OK) {
        count_samples(counts, labels, scores, n, thresholds);
        fill_tensor(tensor, counts, thresholds);
        clt_event_begin(events, step);
        add_curve(events, tag, tensor, bytes, thresholds);
        status = clt_event_end(events);
    }
    clt_free(counts);
    clt_free(tensor);
    return status;
}
