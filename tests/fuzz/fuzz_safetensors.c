/* A safetensors file: what is taken can be read, and written again. */
#include "tests/fuzz/fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/train/safetensors.h"

static void check_entries(clt_safetensors *file, fuzz_input whole) {
    uint64_t total = 0;
    for (size_t i = 0; i < clt_safetensors_count(file); i++) {
        const clt_safetensors_entry *entry = clt_safetensors_entry_at(file, i);
        FUZZ_CHECK(clt_safetensors_find(file, entry->name) == entry);
        FUZZ_CHECK(entry->bytes <= whole.size);
        char *values = malloc((size_t)entry->bytes + 1);
        FUZZ_CHECK(values && clt_safetensors_read(file, entry, values, (size_t)entry->bytes) == CLT_OK);
        FUZZ_CHECK(clt_safetensors_read(file, entry, values, (size_t)entry->bytes + 1) == CLT_E_INVALID);
        free(values);
        total += entry->bytes;
    }
    FUZZ_CHECK(total <= whole.size && !clt_safetensors_entry_at(file, clt_safetensors_count(file)));
    FUZZ_CHECK(!clt_safetensors_find(file, "no such name, surely"));
    const char *format = clt_safetensors_metadata(file, "cltrain.format");
    FUZZ_CHECK(!format || strlen(format) < whole.size);
}

static void copy_values(clt_safetensors *file, clt_safetensors_writer *writer) {
    for (size_t i = 0; i < clt_safetensors_count(file); i++) {
        const clt_safetensors_entry *entry = clt_safetensors_entry_at(file, i);
        char *values = malloc((size_t)entry->bytes + 1);
        FUZZ_CHECK(values && clt_safetensors_read(file, entry, values, (size_t)entry->bytes) == CLT_OK);
        FUZZ_CHECK(clt_safetensors_writer_write(writer, values, (size_t)entry->bytes) == CLT_OK);
        free(values);
    }
}

static void check_copy(clt_safetensors *file) {
    size_t n = clt_safetensors_count(file);
    const char *path = fuzz_path("copy.safetensors");
    clt_safetensors_entry *entries = calloc(n + 1, sizeof *entries);
    clt_safetensors_writer *writer;
    clt_safetensors *copy;
    for (size_t i = 0; i < n; i++) entries[i] = *clt_safetensors_entry_at(file, i);
    FUZZ_CHECK(clt_safetensors_writer_open(&writer, path, entries, n, NULL, 0) == CLT_OK);
    copy_values(file, writer);
    FUZZ_CHECK(clt_safetensors_writer_commit(writer) == CLT_OK);
    free(entries);
    FUZZ_CHECK(clt_safetensors_open(&copy, path) == CLT_OK && clt_safetensors_count(copy) == n);
    clt_safetensors_close(copy);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    clt_safetensors *file;
    fuzz_begin(size);
    if (clt_safetensors_open(&file, fuzz_file("file.safetensors", (fuzz_input){data, size}, false)) < 0) return 0;
    check_entries(file, (fuzz_input){data, size});
    check_copy(file);
    clt_safetensors_close(file);
    return 0;
}
