/* Two .npy files. */
#include "tests/fuzz/fuzz_data.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    fuzz_input input = {data, size};
    clt_dataset *dataset = NULL;
    fuzz_begin(size);
    uint8_t packed = fuzz_byte(&input);
    const char *x = fuzz_file("x.npy", fuzz_piece(&input), packed & 1), *y = fuzz_file("y.npy", input, packed & 2);
    fuzz_dataset(clt_dataset_npy(&dataset, x, y), &dataset);
    return 0;
}
