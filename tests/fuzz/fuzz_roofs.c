/* The file of a device's roofs. */
#include "runtime/device/roofs.c"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    clt_roofs roofs = {0};
    fuzz_begin(size);
    int count = recall(fuzz_file("roofs", (fuzz_input){data, size}, false), &roofs);
    FUZZ_CHECK(count >= 0 && roofs.fma_flops >= 0 && roofs.copy_bytes >= 0 && roofs.fma_flops < 1e18);
    FUZZ_CHECK(count > 0 || (roofs.fma_flops == 0 && roofs.copy_bytes == 0));
    return 0;
}
