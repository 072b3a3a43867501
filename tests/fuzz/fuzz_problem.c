/* A problem as text, and the distance between two. */
#include "tests/fuzz/fuzz.h"

#include <math.h>

#include <cltrain/cltrain.h>

#include "backends/tune/tune.h"

/* What was taken is told in the same words. */
static void check_words(const char *text) {
    clt_graph *graph;
    clt_tensor *node;
    bool marked;
    char words[CLT_TUNE_KEY];
    FUZZ_CHECK(clt_graph_create(&graph) == CLT_OK);
    FUZZ_CHECK(clt_problem_parse(text, graph, &node, &marked) == CLT_OK);
    if (clt_tune_key(node, words)) FUZZ_CHECK(clt_problem_check(words) == CLT_OK);
    clt_graph_destroy(graph);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    fuzz_input input = {data, size};
    fuzz_begin(size);
    char *first = fuzz_line(&input), *second = fuzz_line(&input);
    if (clt_problem_check(first) == CLT_OK) check_words(first);
    clt_problem_check(second);
    double distance = clt_tune_distance(first, second), back = clt_tune_distance(second, first);
    FUZZ_CHECK(distance >= 0 && (distance == back || fabs(distance - back) < 1e-9));
    fuzz_free(first);
    fuzz_free(second);
    return 0;
}
