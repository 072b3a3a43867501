/* A log of cltrain-train --log, as cltrain-report reads it. */
#include <string.h>

#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/fuzz_messages.h"
#include "tools/cltrain-report/runs.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    run r;
    fuzz_begin(size);
    if (run_read(&r, fuzz_file("run.jsonl", (fuzz_input){data, size}, false))) return 0;
    FUZZ_CHECK(r.start && json_is_array(r.records) && json_is_array(r.epochs));
    FUZZ_CHECK(json_array_size(r.epochs) <= json_array_size(r.records));
    FUZZ_CHECK(!strcmp(r.held_out, "test") || !strcmp(r.held_out, "validation"));
    run_free(&r);
    return 0;
}
