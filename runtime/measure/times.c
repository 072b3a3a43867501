/* Timings: what they are of, and as text. */
#include "runtime/measure/times.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

void clt_timings_free(clt_timings *list) {
    clt_free(list->items);
    *list = (clt_timings){0};
}

/* ---- what they are of ---- */

static void append(char key[CLT_TUNE_KEY], const char *word, const clt_fused *fused) {
    size_t used = strlen(key);
    snprintf(key + used, CLT_TUNE_KEY - used, " %s:%s:%d", word, fused->stages[fused->n_stages - 1].form.name, fused->n_stages);
}

void clt_timing_of(const clt_plan_item *item, clt_timing *t) {
    char parameters[CLT_TUNE_PARAMETERS], id[CLT_TUNE_NAME];
    const clt_tensor *node = item->node;
    clt_cost cost = clt_node_cost(node);
    *t = (clt_timing){.flops = clt_backend_flops(item->choice.row, cost.flops), .bytes = cost.bytes, .launches = (double)item->launches};
    clt_tune_words(node, t->problem);
    if (node->op == &clt_op_fused) append(t->problem, "chain", node->attributes);
    if (node->epilogue) append(t->problem, "then", node->epilogue);
    clt_choice_text(&item->choice, parameters);
    snprintf(t->row, sizeof t->row, "%s%s%.60s", clt_backend_row_id(item->choice.row, id), parameters[0] ? " " : "", parameters);
}

void clt_timing_of_feed(uint64_t bytes, clt_timing *t) {
    *t = (clt_timing){.bytes = 2 * (double)bytes};
    snprintf(t->problem, sizeof t->problem, "feed %llu", (unsigned long long)bytes);
}

/* Bytes too: what a `pack` copies depends on where its parts lie. */
bool clt_timing_same(const clt_timing *a, const clt_timing *b) {
    return fabs(a->bytes - b->bytes) < 0.5 && !strcmp(a->problem, b->problem) && !strcmp(a->row, b->row);
}

static void drop(clt_timings *list, size_t i) {
    memmove(list->items + i, list->items + i + 1, (list->n - i - 1) * sizeof *list->items);
    list->n--;
}

clt_status clt_timings_put(clt_timings *list, const clt_timing *timing) {
    clt_timing copy = *timing;
    CLT_TRY(clt_grow(&list->items, &list->capacity, list->n, sizeof *list->items));
    for (size_t i = 0; i < list->n; i++) {
        if (!clt_timing_same(&list->items[i], &copy)) continue;
        drop(list, i);
        break;
    }
    if (list->n == CLT_TIMES_MOST) drop(list, 0);
    list->items[list->n++] = copy;
    return CLT_OK;
}

/* ---- text ---- */

clt_status clt_timings_write(const clt_timings *list, clt_text *text) {
    for (size_t i = 0; i < list->n; i++) {
        const clt_timing *t = &list->items[i];
        json_t *object = json_pack("{s:s, s:s, s:f, s:f, s:f, s:f, s:f, s:I, s:I, s:I}", "problem", t->problem, "row", t->row, "us",
                                   t->us, "gap_us", t->gap_us, "spread", t->spread, "own", t->own, "degrees", t->degrees, "flops",
                                   (json_int_t)t->flops, "bytes", (json_int_t)t->bytes, "launches", (json_int_t)t->launches);
        CLT_TRY(clt_tune_write_line(object, text));
    }
    return text->status;
}

static bool take_text(const json_t *object, const char *name, char *into, size_t bytes, bool may_be_empty) {
    const char *text = json_string_value(json_object_get(object, name));
    if (!text || strlen(text) >= bytes || (text[0] ? !clt_tune_key_valid(text) : !may_be_empty)) return false;
    memcpy(into, text, strlen(text) + 1);
    return true;
}

/* A number that times and amounts may be. */
static bool take_number(const json_t *object, const char *name, double least, double *into) {
    const json_t *value = json_object_get(object, name);
    const double most = 1e15; /* whole numbers up to there are exact */
    *into = json_number_value(value);
    return json_is_number(value) && *into >= least && *into <= most;
}

/* In microseconds: three hours are no time of a problem. */
static bool take_time(const json_t *object, const char *name, double *into) {
    const double most_us = 1e10;
    return take_number(object, name, 0, into) && *into <= most_us;
}

static bool take_whole(const json_t *object, const char *name, double *into) {
    return json_is_integer(json_object_get(object, name)) && take_number(object, name, 0, into);
}

static bool take_timing(const json_t *object, clt_timing *t) {
    *t = (clt_timing){.us = 0};
    return take_text(object, "problem", t->problem, sizeof t->problem, false) &&
           take_text(object, "row", t->row, sizeof t->row, true) && take_time(object, "us", &t->us) &&
           take_number(object, "gap_us", -1e12, &t->gap_us) && take_number(object, "spread", 0, &t->spread) &&
           take_number(object, "own", 0, &t->own) && take_number(object, "degrees", 1, &t->degrees) &&
           take_whole(object, "flops", &t->flops) && take_whole(object, "bytes", &t->bytes) &&
           take_whole(object, "launches", &t->launches);
}

clt_status clt_timings_read(clt_timings *list, const char *text, size_t length) {
    size_t lines = 0;
    for (const char *line = text, *end = text + length; line < end && lines < CLT_TIMES_MOST; lines++) {
        const char *stop = memchr(line, '\n', (size_t)(end - line));
        if (!stop) return list->skipped++, CLT_OK; /* a last line without its end was cut off */
        json_error_t error;
        clt_timing timing;
        json_t *object = json_loadb(line, (size_t)(stop - line), JSON_REJECT_DUPLICATES, &error);
        bool taken = json_is_object(object) && take_timing(object, &timing);
        json_decref(object);
        if (taken) CLT_TRY(clt_timings_put(list, &timing));
        else list->skipped++;
        line = stop + 1;
    }
    return CLT_OK;
}
