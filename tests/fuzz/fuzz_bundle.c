/* The manifest of a bundle. */
#include "runtime/device/bundle.h"
#include "tests/fuzz/fuzz.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    clt_bundle bundle = {0};
    fuzz_begin(size);
    clt_status status = clt_bundle_parse(&bundle, (const char *)data, size);
    for (size_t i = 0; status == CLT_OK && i < bundle.n; i++) {
        const clt_bundle_image *image = &bundle.images[i];
        FUZZ_CHECK(image->file && !strchr(image->file, '/') && image->file[0] != '.' && strlen(image->key) == 32 && strlen(image->sha256) == 64);
        FUZZ_CHECK(json_is_array(image->kernels) && json_is_array(image->parts) && image->driver);
    }
    for (size_t i = 0; status == CLT_OK && i < bundle.n_experiments; i++) {
        const clt_bundle_experiment *e = &bundle.experiments[i];
        FUZZ_CHECK(e->capability < CLT_CAP_COUNT_ && e->source && !strchr(e->source, '/') && (!e->il.file || (strlen(e->il.sha256) == 64 && !strchr(e->il.file, '/'))));
    }
    clt_bundle_free(&bundle);
    return 0;
}
