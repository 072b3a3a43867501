/* Text by a language model, token by token. */
#include "runtime/train/predictor.h"

#include <string.h>

enum { SHORTEST = 16, TOKENS = 64 };

typedef struct text {
    clt_predictor *predictor;
    const clt_generate_options *options;
    int32_t *tokens;
    int64_t n, made, limit, longest, vocabulary; /* limit: of tokens that are made */
    bool fixed;                                  /* the length is the longest, always */
    bool remembers;                              /* the tokens that it was given, at the places of `ids` */
    bool one_by_one;                             /* it is given a single token each time, and remembers a state */
    int32_t *ids;
    float *logits;
} text;

/* ---- what is asked for ---- */

static clt_status check_graph(text *x) {
    const clt_trainer *t = x->predictor->forward;
    const clt_tensor *tokens = t->inputs[0], *rows = t->inputs[1], *ids = t->inputs[2], *output = x->predictor->output;
    x->remembers = t->n_inputs == 3;
    bool fits = (t->n_inputs == 2 || x->remembers) && tokens->dtype == CLT_I32 && tokens->shape.rank == 2 && tokens->shape.dims[0] == 1 && rows->dtype == CLT_I32 &&
                rows->shape.rank == 1 && rows->shape.dims[0] == 1 && output->shape.rank == 2 && output->shape.dims[0] == 1;
    x->one_by_one = fits && x->remembers && tokens->length_axis != 1 && tokens->shape.dims[1] == 1;
    if (x->remembers) fits = fits && ids->dtype == CLT_I32 && clt_shape_equal(&ids->shape, &tokens->shape) && ids->length_axis == tokens->length_axis &&
                             (x->one_by_one || tokens->length_axis == 1);
    if (!fits)
        return clt_fail(CLT_E_SHAPE, "clt_generate: expected a graph with the inputs tokens i32 [1, T], rows i32 [1] and, if it is to remember, position_ids i32 "
                                     "[1, T], all of sequences or of T = 1, and the output [1, vocabulary]");
    x->longest = x->one_by_one ? INT32_MAX : tokens->shape.dims[1];
    x->fixed = tokens->length_axis != 1;
    x->vocabulary = output->shape.dims[1];
    return CLT_OK;
}

static clt_status check_prompt(const text *x, const int32_t *prompt) {
    if (x->limit < 0) return clt_fail(CLT_E_INVALID, "clt_generate: %lld tokens", (long long)x->limit);
    if (x->limit > x->longest || x->n > x->longest - x->limit)
        return clt_fail(CLT_E_RANGE, "%lld tokens after %lld are more than the model's %lld positions", (long long)x->limit, (long long)x->n, (long long)x->longest);
    for (int64_t i = 0; i < x->n; i++)
        if (prompt[i] < 0 || prompt[i] >= x->vocabulary)
            return clt_fail(CLT_E_RANGE, "token %lld of the prompt is %d; the model has %lld", (long long)i + 1, prompt[i], (long long)x->vocabulary);
    return CLT_OK;
}

/* ---- one token ---- */

/* A plan serves all lengths up to its own: of a causal model what comes behind a row does not change it. What is remembered of it is overwritten
 * before a token sees it. */
static int64_t padded(const text *x) {
    int64_t length = SHORTEST;
    while (length < x->n + x->made) length *= 2;
    return x->fixed ? x->longest : CLT_MIN(length, x->longest);
}

/* The logits behind token `last`, of those from `first` on. */
static clt_status read_tokens(text *x, int64_t first, int64_t length, int64_t last) {
    int32_t row = (int32_t)(last - first);
    clt_shape sequence = CLT_SHAPE(1, length);
    clt_batch batch = {1, x->remembers ? 3 : 2, {{CLT_I32, sequence, x->tokens + first}, {CLT_I32, CLT_SHAPE(1), &row}, {CLT_I32, sequence, x->ids + first}}};
    return clt_predictor_run(x->predictor, &batch, x->logits, (size_t)x->vocabulary);
}

static clt_status next_token(text *x, int32_t *token) {
    int64_t last = x->n + x->made - 1;
    bool alone = x->one_by_one || (x->remembers && x->made);
    CLT_TRY(read_tokens(x, alone ? last : 0, alone ? 1 : padded(x), last));
    return clt_sample_token(x->logits, x->vocabulary, &x->options->sampling, (uint64_t)x->made, token);
}

static clt_status generate(text *x, clt_token_visitor visit, void *user) {
    for (int64_t i = 0; x->one_by_one && i < x->n - 1; i++) CLT_TRY(read_tokens(x, i, 1, i));
    for (bool more = true; more && x->made < x->limit;) {
        int32_t token;
        CLT_TRY(next_token(x, &token));
        x->tokens[x->n + x->made++] = token;
        more = visit(token, user) && !(x->options->end && token == *x->options->end);
    }
    return CLT_OK;
}

clt_status clt_generate(clt_predictor *predictor, const int32_t *prompt, int64_t n, const clt_generate_options *options, clt_token_visitor visit, void *user) {
    static const clt_generate_options none;
    text x = {.predictor = predictor, .options = options ? options : &none, .n = n};
    if (!predictor || !prompt || !visit || n < 1) return clt_fail(CLT_E_INVALID, "clt_generate: an argument is NULL, or %lld tokens to begin with", (long long)n);
    x.limit = x.options->tokens ? x.options->tokens : TOKENS;
    CLT_TRY(check_graph(&x));
    CLT_TRY(check_prompt(&x, prompt));
    int64_t most = x.one_by_one ? n + x.limit : x.longest;
    x.tokens = clt_calloc((size_t)most, sizeof *x.tokens);
    x.ids = clt_alloc((size_t)most * sizeof *x.ids);
    x.logits = clt_alloc((size_t)x.vocabulary * sizeof *x.logits);
    clt_status status = x.tokens && x.ids && x.logits ? CLT_OK : clt_fail_memory((size_t)(2 * most + x.vocabulary) * sizeof *x.logits);
    for (int64_t i = 0; status == CLT_OK && i < most; i++) x.ids[i] = (int32_t)i;
    if (status == CLT_OK) memcpy(x.tokens, prompt, (size_t)n * sizeof *prompt);
    if (status == CLT_OK) status = generate(&x, visit, user);
    clt_free(x.logits);
    clt_free(x.ids);
    clt_free(x.tokens);
    return status;
}
