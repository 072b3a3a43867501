/* A table, with options as the first two bytes have it and the label of the first line. */
#include "tests/fuzz/fuzz_data.h"

#include "runtime/base/number.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const char separators[] = {0, ';', '\t', '|', ' ', '"', '.', ','};
    fuzz_input input = {data, size};
    clt_dataset *dataset = NULL;
    double value;
    fuzz_begin(size);
    uint8_t how = fuzz_byte(&input);
    clt_csv_options options = {.no_header = how & 1, .header = how & 2, .regression = how & 4, .separator = separators[how >> 5]};
    options.skip_lines = fuzz_byte(&input) % 4;
    char *label = fuzz_line(&input);
    if (label[0]) options.label = label;
    if (clt_number_parse(label, &value)) FUZZ_CHECK(value == value); /* no NaN */
    fuzz_dataset(clt_dataset_csv(&dataset, fuzz_file("table.csv", input, how & 8), &options), &dataset);
    fuzz_free(label);
    return 0;
}
