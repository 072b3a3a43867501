/* A model's config.json: what is taken can be built, where it is small. */
#include "tests/fuzz/fuzz.h"

#include <cltrain/models.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    enum { SMALL = 64 };
    fuzz_input input = {data, size};
    clt_language_model m;
    clt_graph *graph;
    fuzz_begin(size);
    if (clt_language_model_read(&m, fuzz_file("config.json", input, false)) < 0) return 0;
    FUZZ_CHECK(m.vocabulary >= 1 && m.positions >= 1 && m.end >= -1 && m.end < m.vocabulary);
    int layers = m.family == CLT_LANGUAGE_LLAMA ? m.llama.layers : m.gpt2.layers;
    int64_t width = m.family == CLT_LANGUAGE_LLAMA ? m.llama.width : m.gpt2.width;
    if (layers > 2 || width > SMALL || m.vocabulary > SMALL || clt_graph_create(&graph) < 0) return 0;
    clt_tensor *tokens = clt_input(graph, "tokens", CLT_I32, CLT_SHAPE(1, 1));
    clt_language_model_build(&m, tokens, NULL, size % 2 ? clt_input(graph, "position_ids", CLT_I32, CLT_SHAPE(1, 1)) : NULL);
    FUZZ_CHECK(clt_graph_status(graph) == CLT_OK);
    clt_graph_destroy(graph);
    return 0;
}
