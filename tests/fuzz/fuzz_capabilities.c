/* The file of a verdict on a capability. */
#include "runtime/device/capability.c"
#include "tests/fuzz/fuzz.h"

#include <sys/stat.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static clt_device device = {.identity = "0123456789abcdef0123456789abcdef"};
    static clt_text path;
    fuzz_begin(size);
    if (!path.data) {
        device.settings.cache_folder = fuzz_path("cache");
        FUZZ_CHECK(verdict_path(&device, &tests[CLT_CAP_FP16], &path) == CLT_OK);
    }
    FUZZ_CHECK(clt_file_write(path.data, data, size) == CLT_OK);
    verdict known = recall(&device, &tests[CLT_CAP_FP16]);
    bool right = size == 2 && data[0] >= '0' && data[0] <= '4' && data[1] == '\n';
    FUZZ_CHECK(known == (right ? data[0] - '0' : -1));
    return 0;
}
