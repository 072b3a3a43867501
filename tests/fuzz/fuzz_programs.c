/* A file of the cache of kernels' binaries. With the first byte odd, what follows it gets a header that fits, of which the
 * bytes behind change some. */
#include "runtime/device/program.c"
#include "tests/fuzz/fuzz.h"

#include <stdlib.h>

static const char key[CLT_HASH_TEXT] = "0123456789abcdef0123456789abcdef";

static size_t with_header(fuzz_input input, unsigned char *bytes) {
    uint8_t place = fuzz_byte(&input), change = fuzz_byte(&input);
    cache_header header = {.payload_bytes = input.size};
    memcpy(header.magic, cache_magic, sizeof cache_magic);
    memcpy(header.key, key, CLT_HASH_TEXT);
    clt_hash_text(input.data, input.size, header.payload_hash);
    memcpy(bytes, &header, sizeof header);
    if (input.size) memcpy(bytes + sizeof header, input.data, input.size);
    bytes[place % sizeof header] ^= change;
    return sizeof header + input.size;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    fuzz_input input = {data, size};
    size_t length = size, payload = 0;
    fuzz_begin(size);
    unsigned char *bytes = malloc(size + sizeof(cache_header));
    FUZZ_CHECK(bytes != NULL);
    bool made = fuzz_byte(&input) & 1;
    if (made) length = with_header(input, bytes);
    else if (size) memcpy(bytes, data, size);
    unsigned char *own = malloc(length + 1); /* of its own size */
    memcpy(own, bytes, length);
    const unsigned char *start = cache_payload(own, length, key, &payload);
    FUZZ_CHECK(!start || (payload > 0 && start >= own && start + payload == own + length));
    if (made && input.size > 2 && data[2] == 0) FUZZ_CHECK(start != NULL);
    free(own);
    free(bytes);
    return 0;
}
