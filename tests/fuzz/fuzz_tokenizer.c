/* A tokenizer.json: what is taken encodes text to ids that decode. */
#include "tests/fuzz/fuzz.h"

#include <cltrain/text.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const char text[] = "ab abc <x> don't \xc3\xa9\n\n 123";
    int32_t ids[256];
    size_t count, bytes;
    clt_tokenizer *t = NULL;
    fuzz_begin(size);
    if (clt_tokenizer_load(&t, fuzz_file("tokenizer.json", (fuzz_input){data, size}, false)) < 0) return 0;
    FUZZ_CHECK(clt_tokenizer_vocabulary(t) > 0);
    if (clt_tokenizer_encode(t, text, sizeof text - 1, ids, 256, &count) == CLT_OK) {
        FUZZ_CHECK(count <= 256);
        FUZZ_CHECK(clt_tokenizer_decode(t, ids, count, NULL, 0, &bytes) == CLT_OK);
    }
    clt_tokenizer_destroy(t);
    return 0;
}
