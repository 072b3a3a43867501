/* A folder of PEFT, a piece of config and the tensors, and these as a checkpoint: what is taken is built. */
#include "tests/fuzz/fuzz.h"

#include <stdio.h>
#include <string.h>

#include <cltrain/lora.h>
#include <cltrain/ops.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    fuzz_input input = {data, size};
    char folder[512], checkpoint[512];
    clt_graph *graph;
    fuzz_begin(size);
    snprintf(folder, sizeof folder, "%s", fuzz_file("adapter_config.json", fuzz_piece(&input), false));
    *strrchr(folder, '/') = 0;
    snprintf(checkpoint, sizeof checkpoint, "%s", fuzz_file("adapter_model.safetensors", input, false));
    if (clt_graph_create(&graph) < 0) return 0;
    clt_linear(clt_input(graph, "x", CLT_F32, CLT_SHAPE(2, 3)), "fc", 4);
    if (clt_graph_add_lora_of(graph, folder) >= 0) {
        FUZZ_CHECK(clt_graph_status(graph) == CLT_OK);
        FUZZ_CHECK(clt_graph_find(graph, "fc.lora_A.weight") && clt_graph_find(graph, "fc.lora_B.weight"));
    }
    clt_graph_destroy(graph);
    if (clt_graph_create(&graph) < 0) return 0;
    clt_linear(clt_input(graph, "x", CLT_F32, CLT_SHAPE(2, 3)), "fc", 4);
    if (clt_graph_add_lora_in(graph, checkpoint) >= 0) FUZZ_CHECK(clt_graph_status(graph) == CLT_OK);
    clt_graph_destroy(graph);
    return 0;
}
