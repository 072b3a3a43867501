/* An index of files of weights, beside two files: what is taken has each tensor that it names, once. */
#include "tests/fuzz/fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/train/weight_files.h"

static void make_file(const char *name, const char *first, const char *second) {
    const clt_safetensors_entry entries[] = {{.name = first, .dtype = CLT_SAFETENSORS_F32, .shape = CLT_SHAPE(2)},
                                             {.name = second, .dtype = CLT_SAFETENSORS_BF16, .shape = CLT_SHAPE(1, 2)}};
    clt_safetensors_writer *writer;
    FUZZ_CHECK(clt_safetensors_writer_open(&writer, fuzz_path(name), entries, 2, NULL, 0) == CLT_OK);
    FUZZ_CHECK(clt_safetensors_writer_write(writer, (float[2]){1, 2}, 8) == CLT_OK);
    FUZZ_CHECK(clt_safetensors_writer_write(writer, (uint16_t[2]){0x3f80, 0x4000}, 4) == CLT_OK);
    FUZZ_CHECK(clt_safetensors_writer_commit(writer) == CLT_OK);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static bool made;
    clt_weight_files *files;
    fuzz_begin(size);
    if (!made) make_file("a.safetensors", "x", "y"), make_file("b.safetensors", "z", "w");
    made = true;
    if (clt_weight_files_open(&files, fuzz_file("m.index.json", (fuzz_input){data, size}, false)) < 0) return 0;
    size_t n = clt_weight_files_count(files);
    FUZZ_CHECK(n == 2 || n == 4);
    for (size_t i = 0; i < n; i++) {
        const clt_weight *weight = clt_weight_files_at(files, i);
        float values[2] = {0, 0};
        FUZZ_CHECK(clt_weight_files_find(files, weight->entry->name) == weight);
        FUZZ_CHECK(clt_weight_read(weight, values, sizeof values) == CLT_OK && values[0] == 1 && values[1] == 2);
    }
    FUZZ_CHECK(!clt_weight_files_find(files, "v"));
    clt_weight_files_close(files);
    return 0;
}
