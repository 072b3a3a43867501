/* A file of a model's shapes, as cltrain-probe's bench reads it. */
#include "tests/fuzz/fuzz.h"

#include <string.h>

#include "tests/fuzz/fuzz_messages.h"
#include "tools/cltrain-probe/command.h"
#include "tools/cltrain-probe/shapes.h"

const shape_file embedded_shapes[] = {{"convnet", "forward 1 matmul 8x4 16x4^T -> 8x16\n"}, {NULL, NULL}};

/* What shapes.c has of other files of cltrain-probe, for the command that writes shapes. */
shared_options shared_options_unset(void) {
    return (shared_options){.batch = OPTION_UNSET};
}

int refuse_word(void *into, const char *text) {
    (void)into, (void)text;
    return EXIT_USAGE;
}

int probe_model_build(probe_model *model, const shared_options *options, const char *name) {
    (void)model, (void)options, (void)name;
    return EXIT_FAILED;
}

void probe_model_free(probe_model *model) {
    (void)model;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    fuzz_input input = {data, size};
    shape_list list = {.n = 0};
    fuzz_begin(size);
    char *names = fuzz_line(&input);
    shapes_add_embedded(&list, names);
    if (shapes_add_file(&list, fuzz_file("shapes.txt", input, false)) == 0)
        for (int i = 0; i < list.n; i++) {
            FUZZ_CHECK(list.lines[i].count >= 1 && strlen(list.lines[i].phase) < sizeof list.lines[i].phase);
            FUZZ_CHECK(clt_problem_check(list.lines[i].problem) == CLT_OK);
        }
    shapes_free(&list);
    fuzz_free(names);
    return 0;
}
