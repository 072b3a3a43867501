/* Two benches that cltrain-probe compares, and the page of them; what it says goes nowhere. */
#include "tests/fuzz/fuzz.h"

#include <stdio.h>
#include <string.h>

#include "tests/fuzz/fuzz_messages.h"
#include "tools/cltrain-probe/command.h"

shared_options shared_options_unset(void) {
    return (shared_options){.batch = OPTION_UNSET};
}

int refuse_word(void *into, const char *text) {
    (void)into, (void)text;
    return EXIT_USAGE;
}

static void silence(void) {
    static bool done;
    if (!done) FUZZ_CHECK(freopen("/dev/null", "w", stdout) != NULL);
    done = true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static char json[] = "--json", threshold[] = "--threshold=7.5", page[640];
    fuzz_input input = {data, size};
    char paths[2][512];
    int n = 2;
    fuzz_begin(size);
    silence();
    uint8_t how = fuzz_byte(&input);
    snprintf(paths[0], sizeof paths[0], "%s", fuzz_file("a.json", fuzz_piece(&input), false));
    snprintf(paths[1], sizeof paths[1], "%s", how & 1 ? paths[0] : fuzz_file("b.json", input, false));
    char *words[6] = {paths[0], paths[1]};
    if (how & 2) words[n++] = json;
    if (how & 4) words[n++] = threshold;
    snprintf(page, sizeof page, "--html=%s", fuzz_file("page.html", (fuzz_input){(const uint8_t *)"", 0}, false));
    if (how & 8) words[n++] = page;
    int code = run_compare(n, words);
    FUZZ_CHECK(code >= 0 && code <= 2);
    if (how & 1) FUZZ_CHECK(code != 1); /* with itself, nothing became worse */
    return 0;
}
