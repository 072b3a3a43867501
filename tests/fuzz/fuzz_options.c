/* The command line of cltrain-train, a line of the input for each word, and the texts that its options take. */
#include "tests/fuzz/fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "tests/fuzz/fuzz_messages.h"
#include "tools/cltrain-train/compress_spec.h"
#include "tools/cltrain-train/options.h"
#include "tools/common/numbers.h"

enum { MOST_WORDS = 16 };

static void parse_texts(const char *text) {
    clt_compress_options compress;
    data_spec *spec = malloc(sizeof *spec);
    int64_t sizes[8], whole;
    double real;
    char problem[512];
    model_spec model;
    if (compress_spec_parse(&compress, text) == 0) FUZZ_CHECK(compress.rank >= 0 && compress.rank <= CLT_COMPRESS_MAX_RANK);
    if (data_spec_parse(spec, text) == 0) FUZZ_CHECK(strlen(spec->path) < sizeof spec->path && spec->shape.rank <= CLT_MAX_RANK);
    if (data_spec_parse_new(spec, text) == 0) FUZZ_CHECK(spec->source == DATA_CSV || spec->source == DATA_NPY || data_has_images(spec));
    int n = number_sizes(text, 'x', sizes, 8);
    FUZZ_CHECK(n >= 0 && n <= 8);
    for (int i = 0; i < n; i++) FUZZ_CHECK(sizes[i] >= 1);
    if (number_whole(text, -5, 1000, &whole)) FUZZ_CHECK(whole >= -5 && whole <= 1000);
    if (number_real(text, &real)) FUZZ_CHECK(real - real == 0);
    number_too_large(text);
    model_parse(&model, text, problem, sizeof problem);
    free(spec);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    fuzz_input input = {data, size};
    char *words[MOST_WORDS + 1] = {NULL};
    int n = 0;
    fuzz_begin(size);
    options *into = calloc(1, sizeof *into);
    for (; input.size && n < MOST_WORDS; n++) words[n] = fuzz_line(&input);
    if (n) parse_texts(words[0]);
    if (n && options_parse(into, n, words) == 0)
        FUZZ_CHECK(into->help || into->version || into->list_devices || ((into->model || into->from) && into->data));
    for (int i = 0; i < n; i++) fuzz_free(words[i]);
    options_free(into);
    free(into);
    return 0;
}
