#include "runtime/train/position.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "runtime/base/number.h"

static const char format_name[] = "cltrain/1";
static const char *const optimizer_names[] = {[CLT_SGD] = "sgd", [CLT_ADAM] = "adam", [CLT_ADAMW] = "adamw"};

const char *clt_run_position_optimizer(clt_optimizer optimizer) {
    return optimizer_names[optimizer];
}

/* ---- writing ---- */

typedef struct writer {
    clt_safetensors_pair *pairs;
    clt_position_texts *texts;
    size_t n;
} writer;

static void add_text(writer *w, const char *key, const char *value) {
    w->pairs[w->n++] = (clt_safetensors_pair){key, value};
}

static void add_number(writer *w, const char *key, uint64_t value) {
    char *text = w->texts->texts[w->n];
    snprintf(text, CLT_POSITION_TEXT, "%" PRIu64, value);
    add_text(w, key, text);
}

static void add_real(writer *w, const char *key, double value) {
    char *text = w->texts->texts[w->n];
    snprintf(text, CLT_POSITION_TEXT, "%.9g", value);
    add_text(w, key, text);
}

size_t clt_run_position_write(const clt_run_position *p, clt_safetensors_pair pairs[CLT_POSITION_PAIRS], clt_position_texts *texts) {
    writer w = {pairs, texts, 0};
    add_text(&w, "cltrain.format", format_name);
    add_text(&w, "cltrain.optimizer", optimizer_names[p->optimizer]);
    add_number(&w, "cltrain.steps", (uint64_t)p->steps);
    add_number(&w, "cltrain.accumulate", (uint64_t)p->accumulate);
    add_number(&w, "cltrain.micro", (uint64_t)p->micro);
    if (p->skipped) add_number(&w, "cltrain.skipped", (uint64_t)p->skipped);
    add_number(&w, "cltrain.seed", p->seed);
    if (p->loss_scale > 0) add_real(&w, "cltrain.loss_scale", (double)p->loss_scale);
    if (p->loss_scale > 0) add_number(&w, "cltrain.loss_scale_steps", (uint64_t)p->loss_scale_steps);
    if (!p->has_loader) return w.n;
    add_number(&w, "cltrain.loader.seed", p->loader.seed);
    add_number(&w, "cltrain.loader.epoch", (uint64_t)p->loader.epoch);
    add_number(&w, "cltrain.loader.batch", (uint64_t)p->loader.batch);
    add_number(&w, "cltrain.loader.batches", (uint64_t)p->loader_batches);
    return w.n;
}

/* ---- reading ---- */

typedef struct reader {
    const clt_safetensors *file;
    const char *path;
} reader;

static clt_status read_number(const reader *r, const char *key, uint64_t most, uint64_t *value) {
    const char *text = clt_safetensors_metadata(r->file, key);
    if (!text) return clt_fail(CLT_E_FORMAT, "%s: metadata \"%s\" is missing", r->path, key);
    if (clt_number_whole(text, most, value)) return CLT_OK;
    return clt_fail(CLT_E_FORMAT, "%s: metadata \"%s\" is %.64s, no number up to %" PRIu64, r->path, key, text, most);
}

/* From `least` to `most`. */
static clt_status read_count(const reader *r, const char *key, int64_t least, int64_t most, int64_t *value) {
    uint64_t number;
    CLT_TRY(read_number(r, key, (uint64_t)most, &number));
    *value = (int64_t)number;
    return *value >= least ? CLT_OK
                           : clt_fail(CLT_E_FORMAT, "%s: metadata \"%s\" is %" PRId64 ", less than %" PRId64, r->path, key, *value, least);
}

static clt_status read_optimizer(const reader *r, clt_optimizer *optimizer) {
    const char *text = clt_safetensors_metadata(r->file, "cltrain.optimizer");
    for (size_t i = 0; text && i < CLT_COUNT_OF(optimizer_names); i++) {
        if (strcmp(text, optimizer_names[i])) continue;
        *optimizer = (clt_optimizer)i;
        return CLT_OK;
    }
    return clt_fail(CLT_E_FORMAT, "%s: metadata \"cltrain.optimizer\" is %.64s: no optimizer of this version", r->path, text ? text : "missing");
}

static clt_status read_updates(const reader *r, clt_run_position *p) {
    CLT_TRY(read_count(r, "cltrain.accumulate", 1, INT32_MAX, &p->accumulate));
    CLT_TRY(read_count(r, "cltrain.micro", 0, p->accumulate - 1, &p->micro));
    CLT_TRY(read_count(r, "cltrain.steps", 0, CLT_POSITION_LIMIT / p->accumulate - 1, &p->steps));
    if (clt_safetensors_metadata(r->file, "cltrain.skipped")) CLT_TRY(read_count(r, "cltrain.skipped", 0, p->steps, &p->skipped));
    return read_number(r, "cltrain.seed", UINT64_MAX, &p->seed);
}

/* A power of two, as scales are. */
static clt_status read_loss_scale(const reader *r, clt_run_position *p) {
    const char *text = clt_safetensors_metadata(r->file, "cltrain.loss_scale");
    double value;
    int exponent;
    if (!text) return CLT_OK;
    if (!clt_number_parse(text, &value) || !(value > 0) || !isfinite((float)value) || frexp(value, &exponent) != 0.5)
        return clt_fail(CLT_E_FORMAT, "%s: metadata \"cltrain.loss_scale\" is %.64s, no power of two", r->path, text);
    p->loss_scale = (float)value;
    return read_count(r, "cltrain.loss_scale_steps", 0, 2000, &p->loss_scale_steps);
}

static clt_status read_loader(const reader *r, clt_run_position *p) {
    p->has_loader = clt_safetensors_metadata(r->file, "cltrain.loader.seed") || clt_safetensors_metadata(r->file, "cltrain.loader.epoch");
    if (!p->has_loader) return CLT_OK;
    CLT_TRY(read_count(r, "cltrain.loader.batches", 0, CLT_POSITION_LIMIT - 1, &p->loader_batches));
    CLT_TRY(read_count(r, "cltrain.loader.batch", 0, p->loader_batches, &p->loader.batch));
    CLT_TRY(read_count(r, "cltrain.loader.epoch", 0, CLT_POSITION_LIMIT - 1, &p->loader.epoch));
    return read_number(r, "cltrain.loader.seed", UINT64_MAX, &p->loader.seed);
}

clt_status clt_run_position_read(clt_run_position *p, const clt_safetensors *file, const char *path) {
    const reader r = {file, path};
    const char *format = clt_safetensors_metadata(file, "cltrain.format");
    *p = (clt_run_position){0};
    if (!format) return CLT_OK;
    if (strcmp(format, format_name))
        return clt_fail(CLT_E_FORMAT, "%s: format \"%.64s\" is not known to this version", path, format);
    p->whole = true;
    CLT_TRY(read_optimizer(&r, &p->optimizer));
    CLT_TRY(read_updates(&r, p));
    CLT_TRY(read_loss_scale(&r, p));
    return read_loader(&r, p);
}
