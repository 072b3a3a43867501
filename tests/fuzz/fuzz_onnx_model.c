/* The messages of an ONNX file, and its tensors' values. */
#include "tests/fuzz/fuzz.h"

#include "runtime/exchange/onnx/literal.h"

static void read_values(clt_arena *arena, clt_onnx_file *file, const clt_onnx_tensor *tensor) {
    clt_literal *literal;
    if (clt_literal_takes(tensor) && clt_literal_of_tensor(arena, file, tensor, &literal) == CLT_OK) FUZZ_CHECK(literal->elements == tensor->elements);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    clt_onnx_file file;
    clt_arena arena = {.limit = 1 << 24};
    fuzz_begin(size);
    if (clt_onnx_file_open(&file, fuzz_file("model.onnx", (fuzz_input){data, size}, false)) == CLT_OK) {
        const clt_onnx_model *m = &file.model;
        for (size_t i = 0; i < m->n_initializers; i++) read_values(&arena, &file, &m->initializers[i]);
        for (size_t i = 0; i < m->n_nodes; i++)
            for (size_t k = 0; k < m->nodes[i].n_attributes; k++)
                if (m->nodes[i].attributes[k].tensor) read_values(&arena, &file, m->nodes[i].attributes[k].tensor);
    }
    clt_arena_free(&arena);
    clt_onnx_file_close(&file);
    return 0;
}
