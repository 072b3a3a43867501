/* The file of times of problems: as it is read, and what is told of other problems by it. */
#include <math.h>

#include "runtime/measure/times.h"
#include "tests/fuzz/fuzz.h"

/* What is read can be written, and is then read the same. */
static void check_again(const clt_timings *list) {
    clt_text text = {0};
    clt_timings again = {0};
    FUZZ_CHECK(clt_timings_write(list, &text) == CLT_OK);
    FUZZ_CHECK(clt_timings_read(&again, clt_text_data(&text), text.length) == CLT_OK);
    FUZZ_CHECK(again.n == list->n);
    for (size_t i = 0; i < list->n; i++) FUZZ_CHECK(clt_timing_same(&again.items[i], &list->items[i]));
    clt_timings_free(&again);
    clt_text_free(&text);
}

/* Each of them told by the others. */
static void estimate_all(clt_timings *list) {
    const clt_peaks peaks = {.fma_flops = 1e11, .copy_bytes = 1e10};
    const int counts[32] = {1, 2, 3};
    clt_estimate step[32];
    for (size_t i = 0; i < list->n && i < 32; i++) {
        clt_estimate e = clt_timings_estimate(list, &list->items[i], &peaks, CLT_TIMES_BATCHES, &list->items[i]);
        FUZZ_CHECK(isfinite(e.us));
        step[i] = clt_timings_estimate(list, &list->items[i], &peaks, i % 2 ? CLT_TIMES_BATCHES : CLT_TIMES_MEASURED, NULL);
    }
    if (list->n < 32) {
        double band = clt_timings_band(list, &peaks, step, counts, CLT_MIN(list->n, 3));
        FUZZ_CHECK(isnan(band) || band >= 0);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    clt_timings list = {0};
    fuzz_begin(size);
    FUZZ_CHECK(clt_timings_read(&list, (const char *)data, size) == CLT_OK);
    FUZZ_CHECK(list.n <= CLT_TIMES_MOST);
    check_again(&list);
    estimate_all(&list);
    clt_timings_free(&list);
    return 0;
}
