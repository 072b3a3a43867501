/* A file of --config. */
#include <stdlib.h>

#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/fuzz_messages.h"
#include "tools/cltrain-train/config.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char word[] = "--config", program[] = "fuzz", path[512];
    fuzz_begin(size);
    snprintf(path, sizeof path, "%s", fuzz_file("options.json", (fuzz_input){data, size}, false));
    options *into = calloc(1, sizeof *into);
    char *argv[] = {program, word, path};
    config_read(into, 3, argv);
    free(into);
    return 0;
}
