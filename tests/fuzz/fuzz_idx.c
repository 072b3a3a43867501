/* MNIST's two files, gzipped or not: by this program, or as the bytes have it. */
#include "tests/fuzz/fuzz_data.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    fuzz_input input = {data, size};
    clt_dataset *dataset = NULL;
    fuzz_begin(size);
    uint8_t packed = fuzz_byte(&input);
    const char *images = fuzz_file("images", fuzz_piece(&input), packed & 1);
    const char *labels = fuzz_file("labels", input, packed & 2);
    fuzz_dataset(clt_dataset_idx(&dataset, images, labels), &dataset);
    return 0;
}
