/* The file of tuning results, as it is read from the cache, from checkpoints, and as it is shipped. */
#include "backends/tune/database.c"
#include "tests/fuzz/fuzz.h"

#include "runtime/device/cl.h"

/* What is read can be written, and is then read the same. */
static void check_again(const clt_tuning_results *list) {
    clt_text text = {0};
    clt_tuning_results again = {0};
    FUZZ_CHECK(clt_tuning_results_write(list, &text) == CLT_OK);
    FUZZ_CHECK(clt_tuning_results_read(&again, clt_text_data(&text), text.length) == CLT_OK);
    FUZZ_CHECK(again.n == list->n);
    clt_tuning_results_free(&again);
    clt_text_free(&text);
}

static void check_shipped(const clt_device *device, fuzz_input input) {
    clt_tuning_results list = {0};
    const clt_shipped_tuning files[] = {{input.data, input.size}, {NULL, 0}};
    FUZZ_CHECK(clt_tune_read_shipped(device, files, &list) == CLT_OK);
    clt_tuning_results_free(&list);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static clt_device device = {.info = {.name = "a device", .platform = "Portable", .type = CLT_DEVICE_CPU}, .vector_width = 16, .settings = {.kernel_folder = ""}};
    fuzz_input input = {data, size};
    clt_tuning_results list = {0};
    clt_tune_run run = {0};
    clt_text text = {0};
    fuzz_begin(size);
    bool own = fuzz_byte(&input) & 1;
    check_shipped(&device, input);
    FUZZ_CHECK(clt_tuning_results_read(&list, (const char *)input.data, input.size) == CLT_OK);
    check_again(&list);
    for (size_t i = 0; i < list.n; i++) clt_tuning_results_find(&list, list.items[i].problem);
    if (own) FUZZ_CHECK(clt_tune_run_write(&run, &device, &text) == CLT_OK); /* a header that fits */
    clt_text_add_bytes(&text, (const char *)input.data, input.size);
    clt_text_add_bytes(&text, "", 1);
    bool taken;
    FUZZ_CHECK(clt_tune_run_read(&run, &device, text.data, &taken) == CLT_OK);
    FUZZ_CHECK(!own || taken);
    check_again(&run.choices);
    read_file(&device, fuzz_file("tuning_results.jsonl", (fuzz_input){(uint8_t *)text.data, text.length}, false), &list);
    clt_tune_run_free(&run);
    clt_tuning_results_free(&list);
    clt_text_free(&text);
    return 0;
}
