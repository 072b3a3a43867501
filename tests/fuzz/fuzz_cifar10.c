/* CIFAR-10's records, in one file or two. The first of them is given whole by its label alone: else few inputs had one. */
#include "tests/fuzz/fuzz_data.h"

#include <string.h>

enum { RECORD = 3073 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    fuzz_input input = {data, size};
    static uint8_t whole[4 * RECORD];
    clt_dataset *dataset = NULL;
    fuzz_begin(size);
    uint8_t how = fuzz_byte(&input), records = (how >> 3) % 4;
    for (int i = 0; i < records; i++) whole[i * RECORD] = fuzz_byte(&input);
    bool packed = how & 1, two = how & 2;
    const char *paths[2] = {fuzz_file("first.bin", (fuzz_input){whole, (size_t)records * RECORD}, packed), NULL};
    if (how & 4) paths[0] = fuzz_file("first.bin", input, packed);
    if (two) paths[1] = fuzz_file("second.bin", input, false);
    fuzz_dataset(clt_dataset_cifar10(&dataset, paths, two ? 2 : 1), &dataset);
    return 0;
}
