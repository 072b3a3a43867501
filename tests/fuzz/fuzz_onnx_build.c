/* A graph of an ONNX file, built without a device: what is refused is told, and what is not has its outputs. */
#include "tests/fuzz/fuzz.h"

#include <string.h>

#include <cltrain/onnx.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    clt_onnx *onnx = NULL;
    clt_graph *graph = NULL;
    fuzz_begin(size);
    if (clt_onnx_open(&onnx, fuzz_file("network.onnx", (fuzz_input){data, size}, false)) < 0) return 0;
    static const clt_onnx_size sizes[] = {{"length", 6}, {"sequence", 5}};
    static const int64_t whole[] = {1, 2};
    const clt_onnx_fixed fixed = {clt_onnx_input_name(onnx, 1), {CLT_I64, CLT_SHAPE(2), whole}};
    const clt_onnx_options each[] = {
        {.batch = 2, .sizes = sizes, .n_sizes = 2},
        {.no_batch = true, .sizes = sizes, .n_sizes = 2},
        {.batch = 3, .length_symbol = "length", .length = 6, .sizes = sizes + 1, .n_sizes = 1, .fixed = &fixed, .n_fixed = fixed.input != NULL},
    };
    for (int i = 0; i < 3; i++) {
        if (clt_graph_create(&graph) < 0) break;
        clt_status status = clt_onnx_build(onnx, graph, &each[i]);
        if (status == CLT_OK) FUZZ_CHECK(clt_tensor_shape(clt_onnx_output(onnx, NULL)).rank >= 0);
        for (size_t k = 0; clt_onnx_problem_at(onnx, k); k++) FUZZ_CHECK(clt_onnx_problem_at(onnx, k)->reason && status < 0);
        clt_graph_destroy(graph);
    }
    clt_onnx_close(onnx);
    return 0;
}
