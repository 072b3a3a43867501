#include "note.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "scores.h"
#include "system.h"
#include "tools/common/message.h"
#include "tools/common/recipes.h"
#include "tools/common/text.h"

enum { MOST_NOTE = 4096, SPLIT_TEXT = 512, HASH_TEXT = 17 };

/* The key of the value: "best_loss", "best_f1". */
static const char *key_of(const options *given, char key[SCORES_KEY]) {
    return scores_key(key, "best", scores_monitored[options_monitor(given)]);
}

/* As the options have it; "": a fifth at random. */
static void put_split(const options *given, char text[SPLIT_TEXT]) {
    char fold[64] = "", validation[64] = "", group[320] = "";
    if (given->fold) snprintf(fold, sizeof fold, " --fold %.40s", given->fold);
    if (given->validation > 0) snprintf(validation, sizeof validation, " --validation %g", given->validation);
    if (given->data_spec.group[0]) snprintf(group, sizeof group, " group=%s", given->data_spec.group);
    int used = snprintf(text, SPLIT_TEXT, "%s%s%s%s", fold, validation, given->stratify ? " --stratify" : "", group);
    if (used > 0) memmove(text, text + 1, (size_t)used); /* the first blank */
    text_clean(text, ""); /* as it is read back */
}

/* Of which the split is made: more, or fewer, are dealt out otherwise. */
static int64_t samples_of(const report *r) {
    return r->train_samples + r->validation_samples + r->test_samples;
}

/* JSON has no numbers that large. */
static void put_hash(const report *r, char text[HASH_TEXT]) {
    snprintf(text, HASH_TEXT, "%016llx", (unsigned long long)r->train_hash);
}

/* So many digits are the same however often the training was interrupted. */
static void put_real(json_t *object, const char *key, double value) {
    char text[32];
    snprintf(text, sizeof text, "%.8g", value);
    if (isfinite(value)) json_object_set_new(object, key, json_real(strtod(text, NULL)));
}

static void put_counts(json_t *object, const note_counts *counts) {
    const clt_metrics *epoch = &counts->epoch;
    json_object_set_new(object, "skipped_steps", json_integer(counts->skipped));
    json_object_set_new(object, "broken_samples", json_integer(counts->broken));
    json_t *best = counts->best[0] ? json_loads(counts->best, 0, NULL) : NULL;
    if (best) json_object_update(object, best);
    json_decref(best);
    if (!epoch->samples) return;
    json_t *metrics = json_object();
    json_object_set_new(metrics, "samples", json_integer(epoch->samples));
    put_real(metrics, "loss", epoch->loss);
    put_real(metrics, "accuracy", epoch->accuracy);
    put_real(metrics, "mse", epoch->mse);
    json_object_set_new(object, "epoch", metrics);
}

clt_status note_keep(clt_trainer *trainer, const report *r, const note_counts *counts) {
    char key[SCORES_KEY], split[SPLIT_TEXT], hash[HASH_TEXT];
    put_split(r->options, split);
    json_t *object = json_object();
    json_object_set_new(object, "split", json_string(split));
    json_object_set_new(object, "seed", json_integer(r->options->seed));
    json_object_set_new(object, "samples", json_integer(samples_of(r)));
    json_object_set_new(object, "precision", json_string(precision_names[options_precision(r->options)]));
    put_hash(r, hash);
    if (r->train_hash) json_object_set_new(object, "data", json_string(hash));
    if (r->best_epoch) json_object_set_new(object, "best_epoch", json_integer(r->best_epoch));
    if (r->best_epoch) json_object_set_new(object, key_of(r->options, key), json_real(r->best_loss));
    if (r->best_epoch) json_object_set_new(object, "best_unimproved", json_integer(r->unimproved));
    if (counts) put_counts(object, counts);
    char *text = object ? json_dumps(object, JSON_COMPACT) : NULL;
    clt_status status = text ? clt_trainer_set_note(trainer, text) : CLT_E_NO_MEMORY;
    free(text);
    json_decref(object);
    return status;
}

/* NULL where the file tells none. */
static json_t *read_note(const char *path) {
    char text[MOST_NOTE];
    return clt_weights_metadata(path, "cltrain.note", text, sizeof text) < 0 ? NULL : json_loads(text, 0, NULL);
}

/* Values that were mended are no harm; lines that were moved, or replaced, are. */
static void warn_of_data(const json_t *note, const char *path, const report *r) {
    char hash[HASH_TEXT];
    const char *then = json_string_value(json_object_get(note, "data"));
    put_hash(r, hash);
    if (then && r->train_hash && strcmp(then, hash))
        warning("%s: the samples of %s are not those that %s was trained on, or not in their order: if some were moved or replaced, the test sees samples that were trained on",
                r->options->evaluate ? "--evaluate" : "--resume", r->options->data, path);
}

static void warn_of_precision(const json_t *note, const char *path, const report *r) {
    const char *then = json_string_value(json_object_get(note, "precision")), *now = precision_names[options_precision(r->options)];
    if (then && r->options->resume && strcmp(then, now)) warning("--resume: %s was trained in %s, and goes on in %s; --precision %s goes on as it was", path, then, now, then);
}

int note_check_split(const char *path, const report *r, bool drawn, bool seeds) {
    const options *given = r->options;
    char split[SPLIT_TEXT];
    put_split(given, split);
    json_t *note = read_note(path), *seed = json_object_get(note, "seed"), *samples = json_object_get(note, "samples");
    const char *then = json_string_value(json_object_get(note, "split"));
    int code = 0;
    if (drawn && samples && json_integer_value(samples) != samples_of(r))
        code = usage_error("%s: %s was trained where the data had %lld samples, not %lld, of which others are held out: the test would see samples that were trained on; cltrain-predict --test is for other data",
                           given->evaluate ? "--evaluate" : "--resume", path, (long long)json_integer_value(samples), (long long)samples_of(r));
    else if (seeds && seed && json_integer_value(seed) != given->seed)
        code = usage_error("%s: %s was trained with --seed %lld, not %lld, which holds out other samples: the test would see samples that were trained on",
                           given->evaluate ? "--evaluate" : "--resume", path, (long long)json_integer_value(seed), (long long)given->seed);
    else if (then && strcmp(then, split))
        code = usage_error("%s: %s was trained with another split of the data: %s, not %s; with this one the test would see samples that were trained on; cltrain-predict --test is for other data",
                           given->evaluate ? "--evaluate" : "--resume", path, *then ? then : "the default one", *split ? split : "the default one");
    if (!code && drawn) warn_of_data(note, path, r);
    if (!code) warn_of_precision(note, path, r);
    json_decref(note);
    return code;
}

typedef struct lowest {
    int64_t epoch, unimproved;
    double loss;
} lowest;

/* No epoch where the file tells none, or nonsense. */
static lowest read_best(const char *path, const options *given, int64_t epochs) {
    char key[SCORES_KEY];
    json_t *note = read_note(path), *value = json_object_get(note, key_of(given, key));
    lowest found = {.epoch = json_integer_value(json_object_get(note, "best_epoch")), .loss = json_number_value(value)};
    const json_t *unimproved = json_object_get(note, "best_unimproved"); /* earlier versions did not tell */
    found.unimproved = json_is_integer(unimproved) ? json_integer_value(unimproved) : epochs - found.epoch;
    bool usable = found.epoch > 0 && found.epoch <= epochs && found.unimproved >= 0 && isfinite(found.loss) && json_is_number(value);
    json_decref(note);
    return usable ? found : (lowest){0};
}

/* NaN where there is none. */
static double real_of(const json_t *object, const char *key) {
    const json_t *value = json_object_get(object, key);
    return json_is_number(value) ? json_number_value(value) : (double)NAN;
}

static int64_t count_of(const json_t *object, const char *key) {
    json_int_t value = json_integer_value(json_object_get(object, key));
    return value > 0 ? value : 0;
}

/* All that is known of it, whatever was monitored. */
static void put_best(const json_t *note, char *text, size_t bytes) {
    const char *key;
    json_t *value, *best = json_object();
    json_object_foreach((json_t *)(uintptr_t)note, key, value) if (strncmp(key, "best_", 5) == 0) json_object_set(best, key, value);
    size_t length = json_object_size(best) ? json_dumpb(best, text, bytes - 1, JSON_COMPACT) : 0;
    text[length < bytes ? length : 0] = '\0';
    json_decref(best);
}

static note_counts read_counts(const char *path) {
    json_t *note = read_note(path);
    const json_t *epoch = json_object_get(note, "epoch");
    note_counts counts = {.skipped = count_of(note, "skipped_steps"), .broken = count_of(note, "broken_samples")};
    counts.epoch = (clt_metrics){.samples = count_of(epoch, "samples"), .loss = real_of(epoch, "loss"), .accuracy = real_of(epoch, "accuracy"), .mse = real_of(epoch, "mse")};
    put_best(note, counts.best, sizeof counts.best);
    json_decref(note);
    return counts;
}

clt_status note_recall(const char *path, int64_t epochs, const ranks *group, report *r, note_counts *counts) {
    struct {
        lowest best;
        note_counts counts;
    } found = {0};
    if (ranks_lead(group)) found.counts = read_counts(path);
    if (ranks_lead(group) && r->options->patience != OPTION_UNSET) {
        found.best = read_best(path, r->options, epochs);
        found.counts.best[0] = '\0';
    }
    if (group->comm) {
        clt_status status = clt_comm_broadcast(group->comm, &found, sizeof found, CLT_U8, 0, NULL);
        if (status < 0) return status;
    }
    *counts = found.counts;
    if (!found.best.epoch) return CLT_OK;
    r->best_epoch = found.best.epoch;
    r->best_loss = found.best.loss;
    r->unimproved = found.best.unimproved;
    return CLT_OK;
}

bool note_is_of_best(const char *path, const report *r) {
    if (!file_readable(path) || !text_has_suffix(path, ".safetensors")) return file_readable(path); /* ONNX and folders tell nothing */
    lowest found = read_best(path, r->options, r->best_epoch);
    return found.epoch == r->best_epoch && found.loss <= r->best_loss && found.loss >= r->best_loss;
}
