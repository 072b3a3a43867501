/* A table, with options as the first two bytes have it and, in the first line, the label and, behind bars, what is dropped, what is texts, and the column of groups. */
#include "tests/fuzz/fuzz_data.h"

#include <cltrain/preprocessing.h>

#include <string.h>

#include "runtime/base/number.h"

/* What it may be read for. */
static const char *const models[] = {
    "{\"dtype\":\"f32\",\"shape\":[2],\"features\":[\"a\",\"b\"],\"label\":\"c\",\"classes\":[\"y\",\"x\"]}",
    "{\"dtype\":\"f32\",\"shape\":[2],\"features\":[\"a\",\"b\"],\"label\":\"c\",\"classes\":3}",
    "{\"dtype\":\"f32\",\"shape\":[1],\"classes\":[\"\",\"x\"]}",
    "{\"dtype\":\"f32\",\"shape\":[3],\"features\":[\"a\",\"a\",\"b\"],\"target\":[1]}",
    "{\"dtype\":\"f32\",\"shape\":[3],\"features\":[\"a=u\",\"a=v\",\"b\"],\"texts\":[\"a\"],\"missing\":[0,0,1.5],\"target\":[1]}",
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const char separators[] = {0, ';', '\t', '|', ' ', '"', '.', ','};
    fuzz_input input = {data, size};
    clt_dataset *dataset = NULL;
    double value;
    fuzz_begin(size);
    uint8_t how = fuzz_byte(&input);
    clt_csv_options options = {.no_header = how & 1, .header = how & 2, .regression = how & 4, .separator = separators[how >> 5]};
    uint8_t model = fuzz_byte(&input);
    options.skip_lines = model & 1;
    options.missing = how & 1 ? (model & 2 ? CLT_MISSING_REFUSE : CLT_MISSING_DEFAULT) : model & 2 ? CLT_MISSING_MEAN : CLT_MISSING_DROP;
    char *label = fuzz_line(&input), *bar = strchr(label, '|'), *second = bar ? strchr(bar + 1, '|') : NULL, *third = second ? strchr(second + 1, '|') : NULL;
    if (bar) *bar = 0, options.drop = bar + 1;
    if (second) *second = 0, options.texts = second + 1;
    if (third) *third = 0, options.group = third + 1;
    if (how & 16) options.spill = fuzz_path(".");
    if (label[0]) options.label = label;
    clt_preprocessing *like = NULL;
    if (model & 4) FUZZ_CHECK(clt_preprocessing_parse(&like, models[(model >> 5) % (sizeof models / sizeof *models)]) == CLT_OK);
    options.like = like;
    options.leave_out = model & 8;
    options.no_label = model & 16;
    if (clt_number_parse(label, &value)) FUZZ_CHECK(value == value); /* no NaN */
    fuzz_dataset(clt_dataset_csv(&dataset, fuzz_file("table.csv", input, how & 8), &options), &dataset);
    clt_preprocessing_destroy(like);
    fuzz_free(label);
    return 0;
}
