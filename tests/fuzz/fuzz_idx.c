/* MNIST's two files, gzipped or not: by this program, or as the bytes have it. */
#include "tests/fuzz/fuzz_data.h"

#include "runtime/base/source.h"

/* The same bytes where they lie, as the library reads what is built into it. */
static void read_memory(fuzz_input bytes, size_t most) {
    clt_source *source;
    unsigned char chunk[100];
    size_t got = 1, total = 0;
    if (clt_source_open_memory(&source, "memory", bytes.data, bytes.size) < 0) return;
    clt_source_limit(source, most);
    while (got && clt_source_read(source, chunk, sizeof chunk, &got) == CLT_OK) total += got;
    FUZZ_CHECK(total <= (most > bytes.size ? most : bytes.size));
    clt_source_close(source);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    fuzz_input input = {data, size};
    clt_dataset *dataset = NULL;
    fuzz_begin(size);
    uint8_t packed = fuzz_byte(&input);
    fuzz_input first = fuzz_piece(&input);
    const char *images = fuzz_file("images", first, packed & 1);
    read_memory(first, packed & 4 ? 5 : 1000);
    const char *labels = fuzz_file("labels", input, packed & 2);
    fuzz_dataset(clt_dataset_idx(&dataset, images, labels), &dataset);
    dataset = NULL;
    if (clt_dataset_idx_stream(&dataset, images, labels) < 0) return 0;
    FUZZ_CHECK(clt_dataset_samples(dataset) > 0);
    clt_dataset_destroy(dataset);
    return 0;
}
