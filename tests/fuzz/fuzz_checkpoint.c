/* The metadata of a checkpoint, a line of the input for each entry: the first character chooses its key. */
#include <float.h>

#include "runtime/train/position.c"
#include "tests/fuzz/fuzz.h"

static const char *const keys[] = {
    "cltrain.format", "cltrain.optimizer", "cltrain.steps", "cltrain.accumulate", "cltrain.micro", "cltrain.skipped",
    "cltrain.seed", "cltrain.loader.seed", "cltrain.loader.epoch", "cltrain.loader.batch", "cltrain.loader.batches",
    "cltrain.loss_scale", "cltrain.loss_scale_steps",
};
enum { KEYS = sizeof keys / sizeof keys[0] };
static const char *values[KEYS]; /* NULL: it is not there */

const char *clt_safetensors_metadata(const clt_safetensors *file, const char *key) {
    (void)file;
    for (int i = 0; i < KEYS; i++)
        if (!strcmp(key, keys[i])) return values[i];
    FUZZ_CHECK(!"a key that is never written");
    return NULL;
}

static void check_ranges(const clt_run_position *p) {
    FUZZ_CHECK(p->accumulate >= 1 && p->accumulate <= INT32_MAX && p->micro >= 0 && p->micro < p->accumulate);
    FUZZ_CHECK(p->steps >= 0 && p->steps < CLT_POSITION_LIMIT / p->accumulate);
    FUZZ_CHECK(p->steps * p->accumulate + p->micro < CLT_POSITION_LIMIT);
    FUZZ_CHECK(p->skipped >= 0 && p->skipped <= p->steps && p->optimizer <= CLT_ADAMW);
    FUZZ_CHECK(p->loss_scale >= 0 && p->loss_scale <= FLT_MAX && p->loss_scale_steps >= 0 && p->loss_scale_steps <= 2000);
    FUZZ_CHECK(p->loader.epoch >= 0 && p->loader.epoch < CLT_POSITION_LIMIT && p->loader.batch >= 0 && p->loader.batch <= p->loader_batches);
}

/* What was taken is written, and is taken again as the same. */
static void check_copy(const clt_run_position *p) {
    clt_safetensors_pair pairs[CLT_POSITION_PAIRS];
    clt_position_texts texts;
    clt_run_position copy;
    size_t n = clt_run_position_write(p, pairs, &texts);
    memset(values, 0, sizeof values);
    for (size_t i = 0; i < n; i++)
        for (int k = 0; k < KEYS; k++)
            if (!strcmp(pairs[i].key, keys[k])) values[k] = pairs[i].value;
    FUZZ_CHECK(clt_run_position_read(&copy, NULL, "copy") == CLT_OK && copy.whole && copy.optimizer == p->optimizer);
    FUZZ_CHECK(copy.steps == p->steps && copy.accumulate == p->accumulate && copy.micro == p->micro && copy.skipped == p->skipped);
    FUZZ_CHECK(copy.loss_scale == p->loss_scale && copy.loss_scale_steps == p->loss_scale_steps);
    FUZZ_CHECK(copy.seed == p->seed && copy.has_loader == p->has_loader && copy.loader_batches == p->loader_batches);
    FUZZ_CHECK(copy.loader.seed == p->loader.seed && copy.loader.epoch == p->loader.epoch && copy.loader.batch == p->loader.batch);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    fuzz_input input = {data, size};
    char *lines[2 * KEYS];
    int n = 0;
    clt_run_position p;
    fuzz_begin(size);
    memset(values, 0, sizeof values);
    while (input.size && n < 2 * KEYS) {
        char *line = lines[n++] = fuzz_line(&input);
        if (line[0]) values[(unsigned char)(line[0] - 'a') % KEYS] = line + 1;
    }
    if (clt_run_position_read(&p, NULL, "file") == CLT_OK && p.whole) {
        check_ranges(&p);
        check_copy(&p);
    }
    for (int i = 0; i < n; i++) fuzz_free(lines[i]);
    return 0;
}
