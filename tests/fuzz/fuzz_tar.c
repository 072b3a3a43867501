/* An archive of images. */
#include <cltrain/data.h>

#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    fuzz_input input = {data, size};
    clt_dataset *d = NULL;
    uint8_t pixels[3 * 8 * 8];
    int32_t label;
    bool labelled = !(fuzz_byte(&input) & 1);
    fuzz_begin(size + (1 << 16)); /* a progressive picture is held whole */
    const char *path = fuzz_file("a.tar", input, false);
    if (clt_dataset_image_tar(&d, &path, 1, &(clt_image_folder_options){.size = 8, .no_label = !labelled}) < 0) return 0;
    int64_t n = clt_dataset_samples(d);
    FUZZ_CHECK(n > 0 && (size_t)n <= size / 512);
    for (int64_t i = 0; i < n && i < 8; i++) {
        FUZZ_CHECK(clt_dataset_sample_name(d, i) != NULL);
        if (clt_dataset_fetch(d, &(clt_sample){.index = i}, (void *[]){pixels, &label}) == CLT_OK && labelled)
            FUZZ_CHECK(label >= 0 && label < clt_dataset_classes(d));
    }
    clt_dataset_destroy(d);
    return 0;
}
