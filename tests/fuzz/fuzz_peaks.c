/* The file of a device's peaks. */
#include "runtime/measure/peaks.c"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const clt_device device = {.info = {.type = CLT_DEVICE_CPU, .compute_units = 2, .clock_mhz = 3000}, .vector_width = 8};
    clt_peaks peaks = {0};
    fuzz_begin(size);
    int count = recall(&device, fuzz_file("peaks", (fuzz_input){data, size}, false), &peaks);
    FUZZ_CHECK(count >= 0 && peaks.fma_flops >= 0 && peaks.copy_bytes >= 0 && peaks.fma_flops < 1e12 && peaks.copy_bytes < 1e13);
    FUZZ_CHECK(count > 0 || (peaks.fma_flops == 0 && peaks.copy_bytes == 0));
    return 0;
}
