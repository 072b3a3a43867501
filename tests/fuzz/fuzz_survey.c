/* What a child that asks a driver may say to cltrain-probe: a driver that writes over its memory says anything. */
#include "tests/fuzz/fuzz.h"

#include "tests/fuzz/fuzz_messages.h"
#include "tools/survey/survey.c"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    fuzz_input input = {data, size};
    driver one = {.name = "a driver"};
    survey s = {.drivers = &one, .n_drivers = 1};
    child_end end = {.outcome = CHILD_DONE};
    fuzz_begin(size);
    s.driver_rows = calloc(1, sizeof *s.driver_rows);
    s.devices = calloc(MOST_DEVICES + 1, sizeof *s.devices);
    uint8_t how = fuzz_byte(&input);
    task t = {.s = &s, .probe = how & 8, .begun = -1};
    end.outcome = (child_outcome)(how % 6);
    while (input.size) {
        char *line = fuzz_line(&input);
        take_line(line, &t);
        fuzz_free(line);
    }
    FUZZ_CHECK(s.n_devices <= MOST_DEVICES);
    judge_end(&t, &end);
    FUZZ_CHECK(t.first >= 0 && t.first <= s.n_devices);
    number_equal_ids(&s);
    for (int i = 0; i < s.n_devices; i++) {
        char reason[256];
        find_nonsense(&s.devices[i].info, reason);
        json_decref(document_device(&s.devices[i].info));
        json_decref(s.devices[i].probed);
    }
    free(s.driver_rows);
    free(s.devices);
    return 0;
}
