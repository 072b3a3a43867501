/* What a child that measures may say to cltrain-probe's bench. */
#include "tests/fuzz/fuzz.h"

#include "tests/fuzz/fuzz_messages.h"
#include "tools/cltrain-probe/bench_run.c"

enum { ROWS_HERE = 3 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    fuzz_input input = {data, size};
    child_end end = {.reason = "it ended"};
    static const survey_device device = {.info = {.type = CLT_DEVICE_CPU, .compute_units = 2, .clock_mhz = 3000}};
    bench b = {.n_rows = ROWS_HERE, .passes = BENCH_PASSES, .device = &device};
    fuzz_begin(size);
    b.rows = calloc(ROWS_HERE, sizeof *b.rows);
    uint8_t how = fuzz_byte(&input);
    work w = {.b = &b, .pass = how % BENCH_PASSES, .begun = -1};
    end.outcome = (child_outcome)((how >> 3) % 6);
    for (int i = 0; i < ROWS_HERE; i++) snprintf(b.rows[i].status, sizeof b.rows[i].status, "ok");
    while (input.size) {
        char *line = fuzz_line(&input);
        take_line(line, &w);
        fuzz_free(line);
    }
    judge_end(&w, &end);
    for (int i = 0; i < ROWS_HERE; i++)
        for (int p = 0; p < BENCH_PASSES; p++) FUZZ_CHECK(b.rows[i].n[p] >= 0 && b.rows[i].n[p] <= BENCH_SAMPLES);
    bench_place(&b);
    free(b.rows);
    return 0;
}
