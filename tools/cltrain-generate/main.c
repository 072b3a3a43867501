/*
 * cltrain-generate: goes on with a text by a language model.
 */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cltrain/cltrain.h>

#include "model.h"
#include "options.h"
#include "tools/common/clock.h"
#include "tools/common/message.h"
#include "tools/common/numbers.h"
#include "tools/common/streams.h"
#include "tools/survey/document.h"
#include "tools/survey/look.h"

const char program_name[] = PROGRAM;

typedef struct run {
    const options *given;
    model model;
    clt_tokenizer *tokenizer; /* NULL: tokens alone */
    int32_t *ids;             /* the prompt, and what is made behind it */
    size_t n_prompt, n;
    clt_device *device;
    clt_graph *graph;
    clt_predictor *predictor;
    clt_status shown; /* of the last token, as text */
    double seconds;
} run;

/* ---- the prompt ---- */

static int open_tokenizer(run *r) {
    const char *name = r->given->tokenizer ? r->given->tokenizer : r->model.tokenizer;
    clt_status status = CLT_OK;
    if (strcmp(name, "bytes") == 0) status = clt_tokenizer_bytes(&r->tokenizer);
    else if (strncmp(name, "chars:", 6) == 0) status = clt_tokenizer_chars_of(&r->tokenizer, name + 6);
    else if (name[0]) status = clt_tokenizer_load(&r->tokenizer, name);
    else status = clt_weights_tokenizer(&r->tokenizer, r->model.weights);
    if (status == CLT_E_NOT_FOUND && !name[0]) status = CLT_OK;
    if (status < 0) return library_error(status, "--tokenizer");
    if (!r->tokenizer && r->given->prompt)
        return usage_error("--prompt needs a tokenizer: %s has none; expected --tokenizer bytes, chars:FILE or a tokenizer.json, or --prompt-ids", r->given->model);
    int64_t known = r->tokenizer ? clt_tokenizer_vocabulary(r->tokenizer) : 0;
    if (known <= r->model.language.vocabulary) return 0;
    return run_error("the tokenizer has %lld tokens, the model %lld: it is another's", (long long)known, (long long)r->model.language.vocabulary);
}

/* Room for `n` tokens, and for those that are made. */
static int make_room(run *r, size_t n) {
    r->ids = calloc(n + (size_t)r->given->tokens, sizeof *r->ids);
    r->n = r->n_prompt = n;
    return r->ids ? 0 : run_error("no memory for %zu tokens", n);
}

static int encode(run *r) {
    const char *text = r->given->prompt;
    size_t n;
    clt_status status = clt_tokenizer_encode(r->tokenizer, text, strlen(text), NULL, 0, &n);
    if (status < 0) return library_error(status, "--prompt");
    int code = make_room(r, n);
    if (!code) status = clt_tokenizer_encode(r->tokenizer, text, strlen(text), r->ids, n, &n);
    return code ? code : status < 0 ? library_error(status, "--prompt") : 0;
}

static int read_ids(run *r) {
    const char *text = r->given->prompt_ids;
    size_t n = 1, at = 0;
    for (const char *c = text; *c; c++) n += *c == ',';
    int code = make_room(r, n);
    for (const char *part = text; !code && part; at++) {
        const char *comma = strchr(part, ',');
        char word[24] = "";
        int64_t id;
        size_t length = comma ? (size_t)(comma - part) : strlen(part);
        if (length < sizeof word) memcpy(word, part, length);
        if (!number_whole(word, 0, r->model.language.vocabulary - 1, &id))
            return usage_error("--prompt-ids '%s': expected tokens from 0 to %lld, separated by commas", text, (long long)r->model.language.vocabulary - 1);
        r->ids[at] = (int32_t)id;
        part = comma ? comma + 1 : NULL;
    }
    return code;
}

/* ---- the model ---- */

/* i32 [1, T]. */
static clt_tensor *token_input(const run *r, const char *name) {
    const clt_language_model *l = &r->model.language;
    int64_t wanted = (int64_t)r->n_prompt + r->given->tokens; /* which is what is remembered, too; clt_generate refuses more than the positions */
    if (l->family == CLT_LANGUAGE_LSTM) return clt_input(r->graph, name, CLT_I32, CLT_SHAPE(1, 1));
    return clt_sequence_input(r->graph, name, CLT_I32, CLT_SHAPE(1, wanted < l->positions ? wanted : l->positions), 1);
}

static int load(run *r) {
    const clt_language_model *l = &r->model.language;
    clt_status status = look_open(&r->device, r->given->device);
    if (status < 0) return library_error(status, "opening a device");
    status = clt_graph_create(&r->graph);
    if (status < 0) return library_error(status, "making the model");
    clt_tensor *tokens = token_input(r, "tokens"), *rows = clt_input(r->graph, "rows", CLT_I32, CLT_SHAPE(1));
    clt_tensor *logits = clt_language_model_build(l, tokens, rows, token_input(r, "position_ids"));
    status = r->given->lora ? clt_graph_add_lora_of(r->graph, r->given->lora) : clt_graph_add_lora_in(r->graph, r->model.weights);
    if (status < 0 && (r->given->lora || status != CLT_E_NOT_FOUND)) return library_error(status, r->given->lora ? "--lora" : "making the model");
    char positions[40] = "";
    if (l->family != CLT_LANGUAGE_LSTM) snprintf(positions, sizeof positions, ", %lld positions", (long long)l->positions);
    message_line("%s (%lld parameters%s) with %s", r->given->model, (long long)clt_graph_parameter_count(r->graph), positions, clt_device_get_info(r->device)->name);
    status = clt_predictor_create(&r->predictor, r->device, logits, &(clt_predictor_options){.weights = r->model.weights});
    if (status < 0) return library_error(status, "loading the model");
    status = r->given->lora ? clt_predictor_load_lora(r->predictor, r->given->lora) : CLT_OK;
    return status < 0 ? library_error(status, "--lora") : 0;
}

/* ---- the text ---- */

/* As bytes: a character may be several tokens. */
static clt_status write_token(const run *r, int32_t token) {
    char text[1024];
    size_t bytes;
    if (!r->tokenizer) return printf("%s%d", r->n > r->n_prompt + 1 ? "," : "", token), CLT_OK;
    clt_status status = clt_tokenizer_decode(r->tokenizer, &token, 1, text, sizeof text, &bytes);
    if (status == CLT_OK) fwrite(text, 1, bytes < sizeof text ? bytes : sizeof text, stdout);
    return status;
}

static bool take(int32_t token, void *user) {
    run *r = user;
    r->ids[r->n++] = token;
    if (r->given->json) return true;
    bool ends = token == r->model.language.end; /* which is not text */
    r->shown = ends ? CLT_OK : write_token(r, token);
    return r->shown >= 0 && fflush(stdout) == 0;
}

static int generate(run *r) {
    const options *o = r->given;
    clt_generate_options wanted = {.tokens = o->tokens,
                                   .end = r->model.language.end >= 0 ? &r->model.language.end : NULL,
                                   .sampling = {(float)o->temperature, (int)o->top_k, (float)o->top_p, (uint64_t)o->seed}};
    double start = now_seconds();
    if (!o->json && o->prompt) printf("%s", o->prompt);
    clt_status status = clt_generate(r->predictor, r->ids, (int64_t)r->n_prompt, &wanted, take, r);
    r->seconds = now_seconds() - start;
    if (r->shown < 0) status = r->shown;
    if (!o->json) printf("\n");
    return status < 0 ? library_error(status, "generating") : 0;
}

/* The new text; to be freed. NULL: there is no tokenizer, or no memory. */
static char *new_text(const run *r, size_t *bytes) {
    const int32_t *ids = r->ids + r->n_prompt;
    size_t n = r->n - r->n_prompt;
    if (n && ids[n - 1] == r->model.language.end) n--;
    if (!r->tokenizer || clt_tokenizer_decode(r->tokenizer, ids, n, NULL, 0, bytes) < 0) return NULL;
    char *text = malloc(*bytes + 1);
    if (text) clt_tokenizer_decode(r->tokenizer, ids, n, text, *bytes, bytes);
    return text;
}

static int print_json(const run *r) {
    size_t bytes = 0;
    char *text = new_text(r, &bytes);
    json_t *ids = json_array(), *string = text ? json_stringn(text, bytes) : NULL; /* NULL too where a character is cut */
    size_t made = r->n - r->n_prompt;
    for (size_t i = r->n_prompt; i < r->n; i++) json_array_append_new(ids, json_integer(r->ids[i]));
    json_t *object = json_pack("{s:s, s:s, s:o, s:o*, s:I, s:f, s:f}", "model", r->given->model, "device", clt_device_get_info(r->device)->name, "ids", ids, "text",
                               string, "prompt_tokens", (json_int_t)r->n_prompt, "seconds", r->seconds, "tokens_per_second",
                               r->seconds > 0 ? (double)made / r->seconds : 0.0);
    int code = object ? document_write_at(object, r->given->json) : run_error("no memory for the text");
    json_decref(object);
    free(text);
    return code;
}

static int go(run *r) {
    int code = model_find(&r->model, r->given->model);
    if (!code) code = open_tokenizer(r);
    if (!code) code = r->given->prompt ? encode(r) : read_ids(r);
    if (!code) code = load(r);
    if (!code) code = generate(r);
    if (!code && r->given->json) code = print_json(r);
    if (fflush(stdout) || ferror(stdout)) return code ? code : run_error("stdout cannot be written");
    return code;
}

int main(int argc, char **argv) {
    streams_keep();
    options given;
    int code = options_parse(&given, argc, argv);
    if (code) return code;
    message_start(given.quiet ? -1 : given.verbose);
    if (given.help || given.version) {
        if (given.help) options_print_help(stdout);
        else printf(PROGRAM " %s\n", clt_version());
        return fflush(stdout) ? run_error("stdout cannot be written") : 0;
    }
    code = look_for_devices(argv);
    if (code) return code;
    run r = {.given = &given};
    code = go(&r);
    clt_predictor_destroy(r.predictor);
    clt_graph_destroy(r.graph);
    clt_device_close(r.device);
    clt_tokenizer_destroy(r.tokenizer);
    free(r.ids);
    return code;
}
