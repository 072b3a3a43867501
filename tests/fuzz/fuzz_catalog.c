/* The list of programs that were built. */
#include "runtime/device/catalog.h"
#include "tests/fuzz/fuzz.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    fuzz_input input = {data, size};
    clt_catalog catalog = {0};
    clt_catalog_choice choice = {0};
    clt_program_part parts[4];
    bool marked[4] = {0};
    size_t n = 0;
    fuzz_begin(size);
    FUZZ_CHECK(clt_catalog_parse(&catalog, (const char *)input.data, input.size) == CLT_OK);
    for (; n < catalog.n && n < 4; n++) parts[n] = catalog.entries[catalog.n - 1 - n].part;
    for (size_t left = n; left && clt_catalog_choose(&catalog, parts, marked, n, &choice);) {
        FUZZ_CHECK(choice.n > 0 && choice.parts >= catalog.entries && choice.parts + choice.n <= catalog.entries + catalog.n);
        for (size_t i = 0; i < n; i++)
            for (size_t k = 0; k < choice.n && !marked[i]; k++)
                if (clt_part_serves(&choice.parts[k].part, parts[i].module, parts[i].kernel)) marked[i] = true, left--;
    }
    for (size_t i = 0; i < n; i++) FUZZ_CHECK(marked[i]); /* what is listed is found */
    clt_catalog_free(&catalog);
    return 0;
}
