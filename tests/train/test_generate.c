/* Text token by token, against predictions of the whole text so far. */
#include "tests/support.h"

#include <math.h>
#include <string.h>

#include <cltrain/cltrain.h>

#include "runtime/graph/graph.h"

enum { WORDS = 13, LONGEST = 40 };

SUPPORT_DEVICE

typedef struct language {
    clt_graph *graph;
    clt_predictor *predictor;
} language;

static clt_language_model small(clt_language_family family) {
    return (clt_language_model){
        .family = family,
        .vocabulary = WORDS,
        .positions = LONGEST,
        .end = -1,
        .gpt2 = {.vocabulary = WORDS, .positions = LONGEST, .width = 16, .layers = 2, .heads = 2},
        .llama = {.vocabulary = WORDS, .width = 16, .hidden = 24, .layers = 2, .heads = 4, .key_heads = 2},
        .lstm = {.vocabulary = WORDS, .hidden = 16, .layers = 2},
    };
}

typedef enum kind {
    WHOLE,    /* logits of all places */
    FIXED,    /* of one row; the length is the longest */
    ANY,      /* of one row, at any length */
    REMEMBERS /* the same with places, and what was before is remembered */
} kind;

/* With first values that are large enough for texts that are not the same token again and again. */
static language make(clt_language_family family, kind which, int64_t samples) {
    language l;
    clt_language_model model = small(family);
    assert_ok(clt_graph_create(&l.graph));
    bool recurrent = family == CLT_LANGUAGE_LSTM, one_length = which == FIXED || recurrent;
    clt_shape shape = CLT_SHAPE(samples, which == REMEMBERS && recurrent ? 1 : LONGEST);
    clt_tensor *tokens = one_length ? clt_input(l.graph, "tokens", CLT_I32, shape) : clt_sequence_input(l.graph, "tokens", CLT_I32, shape, 1);
    clt_tensor *rows = which == WHOLE ? NULL : clt_input(l.graph, "rows", CLT_I32, CLT_SHAPE(samples)), *ids = NULL;
    if (which == REMEMBERS) ids = one_length ? clt_input(l.graph, "position_ids", CLT_I32, shape) : clt_sequence_input(l.graph, "position_ids", CLT_I32, shape, 1);
    clt_tensor *logits = clt_language_model_build(&model, tokens, rows, ids);
    assert_ok(clt_predictor_create(&l.predictor, device, logits, &(clt_predictor_options){.seed = 2}));
    for (size_t i = 0; i < l.graph->n_variables; i++) {
        const clt_variable *v = l.graph->variables[i];
        static float values[WORDS * 1024];
        size_t n = (size_t)clt_shape_elements(&v->shape);
        assert_true(n <= sizeof values / sizeof *values);
        if (v->shape.rank < 2 || !clt_variable_is_kept(v)) continue;
        assert_ok(clt_predictor_get(l.predictor, v->name, values, n));
        for (size_t k = 0; k < n; k++) values[k] *= 20;
        assert_ok(clt_predictor_set(l.predictor, v->name, values, n));
    }
    return l;
}

static void destroy(language *l) {
    clt_predictor_destroy(l->predictor);
    clt_graph_destroy(l->graph);
}

typedef struct told {
    int32_t tokens[LONGEST];
    int n, most;
} told;

static bool tell(int32_t token, void *user) {
    told *t = user;
    t->tokens[t->n++] = token;
    return t->n != t->most;
}

static void goes_on_as_the_whole_text_says(void **state) {
    (void)state;
    static const int32_t prompt[] = {3, 1, 12};
    enum { PROMPT = 3, MADE = 30 };
    for (int family = 0; family < 2; family++) {
        language stepwise = make((clt_language_family)family, ANY, 1), fixed = make((clt_language_family)family, FIXED, 1);
        language whole = make((clt_language_family)family, WHOLE, 1), remembers = make((clt_language_family)family, REMEMBERS, 1);
        told by_length = {0}, by_longest = {0}, by_memory = {0}, another = {0};
        clt_generate_options options = {.tokens = MADE};
        assert_ok(clt_generate(stepwise.predictor, prompt, PROMPT, &options, tell, &by_length));
        assert_ok(clt_generate(fixed.predictor, prompt, PROMPT, &options, tell, &by_longest));
        assert_ok(clt_generate(remembers.predictor, (int32_t[]){7, 2, 2, 9}, 4, &options, tell, &another)); /* which is forgotten */
        assert_ok(clt_generate(remembers.predictor, prompt, PROMPT, &options, tell, &by_memory));
        assert_int_equal(by_length.n, MADE);
        assert_memory_equal(by_length.tokens, by_memory.tokens, MADE * sizeof *prompt);
        assert_memory_not_equal(another.tokens, by_memory.tokens, MADE * sizeof *prompt);
        assert_memory_equal(by_length.tokens, by_longest.tokens, MADE * sizeof *prompt);
        int32_t text[PROMPT + MADE];
        static float logits[LONGEST * WORDS];
        int different = 0;
        memcpy(text, prompt, sizeof prompt);
        for (int i = 0; i < MADE; i++) {
            int64_t length = PROMPT + i;
            int best = 0;
            clt_batch batch = {1, 1, {{CLT_I32, CLT_SHAPE(1, length), text}}};
            assert_ok(clt_predictor_run(whole.predictor, &batch, logits, (size_t)length * WORDS));
            const float *last = logits + (length - 1) * WORDS;
            for (int k = 1; k < WORDS; k++)
                if (last[k] > last[best]) best = k;
            assert_int_equal(by_length.tokens[i], best);
            text[length] = best;
            different += i > 0 && by_length.tokens[i] != by_length.tokens[i - 1];
        }
        assert_true(different > 5); /* no constant would do */
        destroy(&remembers);
        destroy(&whole);
        destroy(&fixed);
        destroy(&stepwise);
    }
}

static void a_state_goes_on_as_the_whole_text_says(void **state) {
    (void)state;
    enum { PROMPT = 3, MADE = 30 };
    language whole = make(CLT_LANGUAGE_LSTM, WHOLE, 1), remembers = make(CLT_LANGUAGE_LSTM, REMEMBERS, 1);
    int32_t text[LONGEST] = {3, 1, 12};
    static float logits[LONGEST * WORDS];
    told another = {0}, made = {0};
    clt_generate_options options = {.tokens = MADE};
    assert_ok(clt_generate(remembers.predictor, (int32_t[]){7, 2, 2, 9}, 4, &options, tell, &another)); /* which is forgotten */
    assert_ok(clt_generate(remembers.predictor, text, PROMPT, &options, tell, &made));
    assert_int_equal(made.n, MADE);
    assert_memory_not_equal(another.tokens, made.tokens, sizeof made.tokens);
    memcpy(text + PROMPT, made.tokens, MADE * sizeof *text);
    assert_ok(clt_predictor_run(whole.predictor, &(clt_batch){1, 1, {{CLT_I32, CLT_SHAPE(1, LONGEST), text}}}, logits, LONGEST * WORDS));
    int different = 0;
    for (int i = 0; i < MADE; i++) {
        const float *behind = logits + (PROMPT + i - 1) * WORDS;
        int best = 0;
        for (int k = 1; k < WORDS; k++)
            if (behind[k] > behind[best]) best = k;
        assert_int_equal(made.tokens[i], best);
        different += i > 0 && made.tokens[i] != made.tokens[i - 1];
    }
    assert_true(different > 5);
    destroy(&remembers);
    destroy(&whole);
}

/* x [2, T, 3] -> the states of two layers. */
static language recurrent(bool gru, int64_t length, bool remembers) {
    language l;
    assert_ok(clt_graph_create(&l.graph));
    clt_tensor *x = clt_input(l.graph, "x", CLT_F32, CLT_SHAPE(2, length, 3));
    clt_tensor *ids = remembers ? clt_input(l.graph, "position_ids", CLT_I32, CLT_SHAPE(2, length)) : NULL;
    clt_tensor *y = gru ? clt_gru(x, "rnn", 4, .layers = 2, .position_ids = ids) : clt_lstm(x, "rnn", 4, .layers = 2, .position_ids = ids);
    assert_ok(clt_predictor_create(&l.predictor, device, y, &(clt_predictor_options){.seed = 2}));
    return l;
}

/* Two sequences in pieces of two places; the second begins anew at its third. */
static void layers_go_on_where_they_were(void **state) {
    (void)state;
    static const int64_t begins[2] = {0, 2}; /* of the sequences' last parts */
    for (int gru = 0; gru < 2; gru++) {
        language whole = recurrent(gru, 4, false), parts = recurrent(gru, 2, true);
        float x[2][4][3], wanted[2][4][4], y[2][2][4];
        for (int i = 0; i < 24; i++) ((float *)x)[i] = sinf(3.7f * (float)i);
        for (int turn = 0; turn < 2; turn++) /* the same again: whatever a run left, place 0 begins at 0 */
            for (int part = 0; part < 2; part++) {
                float piece[2][2][3];
                int32_t ids[2][2];
                for (int s = 0; s < 2; s++)
                    for (int t = 0; t < 2; t++) {
                        memcpy(piece[s][t], x[s][2 * part + t], sizeof piece[s][t]);
                        ids[s][t] = (int32_t)(2 * part + t - begins[s] * part);
                    }
                clt_batch batch = {2, 2, {{CLT_F32, CLT_SHAPE(2, 2, 3), piece}, {CLT_I32, CLT_SHAPE(2, 2), ids}}};
                assert_ok(clt_predictor_run(parts.predictor, &batch, (float *)y, 16));
                float moved[2][4][3] = {{{0}}}; /* each sequence from its beginning on */
                for (int s = 0; s < 2; s++) memcpy(moved[s], x[s] + begins[s] * part, (size_t)(4 - begins[s] * part) * sizeof moved[s][0]);
                assert_ok(clt_predictor_run(whole.predictor, &(clt_batch){2, 1, {{CLT_F32, CLT_SHAPE(2, 4, 3), moved}}}, (float *)wanted, 32));
                for (int s = 0; s < 2; s++)
                    for (int t = 0; t < 2; t++)
                        for (int k = 0; k < 4; k++) assert_float_equal(y[s][t][k], wanted[s][2 * part + t - begins[s] * part][k], 1e-6);
            }
        destroy(&parts);
        destroy(&whole);
    }
}

/* Texts of a batch may be at places of their own: each sees what it was given before. */
static void each_sample_has_its_own_place(void **state) {
    (void)state;
    enum { FIRST = 6 };
    static const int32_t text[2][FIRST + 1] = {{4, 1, 8, 0, 12, 3, 5}, {9, 9, 2, 7, 11, 6, 10}}, next[2] = {10, 4};
    static const int64_t places[2] = {3, 6};
    static float logits[FIRST * 2 * WORDS + 2 * WORDS], wanted[2 * WORDS];
    for (int family = 0; family < 2; family++) {
        language whole = make((clt_language_family)family, WHOLE, 1), remembers = make((clt_language_family)family, REMEMBERS, 2);
        int32_t tokens[2][FIRST], ids[2][FIRST], rows[2] = {0, 1};
        for (int s = 0; s < 2; s++)
            for (int t = 0; t < FIRST; t++) tokens[s][t] = text[s][t], ids[s][t] = t;
        clt_array sequence = {CLT_I32, CLT_SHAPE(2, FIRST), tokens}, where = {CLT_I32, CLT_SHAPE(2, FIRST), ids};
        assert_ok(clt_predictor_run(remembers.predictor, &(clt_batch){2, 3, {sequence, {CLT_I32, CLT_SHAPE(2), rows}, where}}, logits, 2 * WORDS));
        int32_t one[2] = {next[0], next[1]}, at[2] = {(int32_t)places[0], (int32_t)places[1]};
        clt_batch batch = {2, 3, {{CLT_I32, CLT_SHAPE(2, 1), one}, {CLT_I32, CLT_SHAPE(2), rows}, {CLT_I32, CLT_SHAPE(2, 1), at}}};
        assert_ok(clt_predictor_run(remembers.predictor, &batch, logits, 2 * WORDS));
        for (int s = 0; s < 2; s++) {
            int32_t own[FIRST + 1];
            int64_t length = places[s] + 1;
            memcpy(own, text[s], sizeof own);
            own[places[s]] = next[s];
            static float all[(FIRST + 1) * WORDS];
            assert_ok(clt_predictor_run(whole.predictor, &(clt_batch){1, 1, {{CLT_I32, CLT_SHAPE(1, length), own}}}, all, (size_t)length * WORDS));
            memcpy(wanted + s * WORDS, all + (length - 1) * WORDS, WORDS * sizeof(float));
        }
        for (int i = 0; i < 2 * WORDS; i++) assert_float_equal(logits[i], wanted[i], 1e-3 * (1 + fabs((double)wanted[i])));
        at[1] = LONGEST;
        assert_status(clt_predictor_run(remembers.predictor, &batch, logits, 2 * WORDS), CLT_E_RANGE);
        at[1] = -1;
        assert_status(clt_predictor_run(remembers.predictor, &batch, logits, 2 * WORDS), CLT_E_RANGE);
        destroy(&remembers);
        destroy(&whole);
    }
}

static void ends_where_it_is_told_to(void **state) {
    (void)state;
    language l = make(CLT_LANGUAGE_GPT2, ANY, 1);
    told all = {0}, some = {.most = 4}, ended = {0}, drawn[2], other = {0};
    memset(drawn, 0, sizeof drawn);
    assert_ok(clt_generate(l.predictor, (int32_t[]){5}, 1, &(clt_generate_options){.tokens = LONGEST - 1}, tell, &all));
    assert_int_equal(all.n, LONGEST - 1);
    assert_ok(clt_generate(l.predictor, (int32_t[]){5}, 1, &(clt_generate_options){.tokens = 30}, tell, &some));
    assert_int_equal(some.n, 4);
    int last = 0; /* where its token was not before */
    for (int i = 0; i < all.n; i++) {
        bool seen = false;
        for (int k = 0; k < i; k++) seen |= all.tokens[k] == all.tokens[i];
        if (!seen) last = i;
    }
    assert_ok(clt_generate(l.predictor, (int32_t[]){5}, 1, &(clt_generate_options){.tokens = 39, .end = &all.tokens[last]}, tell, &ended));
    assert_int_equal(ended.n, last + 1);
    assert_memory_equal(ended.tokens, all.tokens, (size_t)ended.n * sizeof(int32_t));
    clt_generate_options options = {.tokens = 30, .sampling = {.temperature = 2, .seed = 6}};
    for (int i = 0; i < 2; i++) assert_ok(clt_generate(l.predictor, (int32_t[]){5}, 1, &options, tell, &drawn[i]));
    assert_memory_equal(&drawn[0], &drawn[1], sizeof drawn[0]);
    options.sampling.seed = 7;
    assert_ok(clt_generate(l.predictor, (int32_t[]){5}, 1, &options, tell, &other));
    assert_memory_not_equal(other.tokens, drawn[0].tokens, sizeof other.tokens);
    destroy(&l);
}

static void refuses_what_it_cannot_do(void **state) {
    (void)state;
    language l = make(CLT_LANGUAGE_GPT2, ANY, 1), without = make(CLT_LANGUAGE_GPT2, WHOLE, 1), two = make(CLT_LANGUAGE_GPT2, REMEMBERS, 2);
    told t = {0};
    assert_status(clt_generate(l.predictor, (int32_t[]){1, 2}, 2, &(clt_generate_options){.tokens = LONGEST - 1}, tell, &t), CLT_E_RANGE);
    assert_detail("39 tokens after 2 are more than the model's 40 positions");
    assert_status(clt_generate(l.predictor, (int32_t[]){1}, 1, NULL, tell, &t), CLT_E_RANGE); /* 64 by default */
    assert_status(clt_generate(l.predictor, (int32_t[]){1, WORDS}, 2, &(clt_generate_options){.tokens = 3}, tell, &t), CLT_E_RANGE);
    assert_detail("token 2 of the prompt is 13; the model has 13");
    assert_status(clt_generate(l.predictor, (int32_t[]){-1}, 1, &(clt_generate_options){.tokens = 3}, tell, &t), CLT_E_RANGE);
    assert_status(clt_generate(l.predictor, (int32_t[]){1}, 1, &(clt_generate_options){.tokens = -3}, tell, &t), CLT_E_INVALID);
    assert_status(clt_generate(l.predictor, (int32_t[]){1}, 1, &(clt_generate_options){.tokens = 3, .sampling = {.temperature = -1}}, tell, &t), CLT_E_INVALID);
    assert_status(clt_generate(l.predictor, (int32_t[]){1}, 0, NULL, tell, &t), CLT_E_INVALID);
    assert_status(clt_generate(NULL, (int32_t[]){1}, 1, NULL, tell, &t), CLT_E_INVALID);
    assert_status(clt_generate(l.predictor, NULL, 1, NULL, tell, &t), CLT_E_INVALID);
    assert_status(clt_generate(l.predictor, (int32_t[]){1}, 1, NULL, NULL, &t), CLT_E_INVALID);
    assert_status(clt_generate(without.predictor, (int32_t[]){1}, 1, &(clt_generate_options){.tokens = 3}, tell, &t), CLT_E_SHAPE);
    assert_detail("expected a graph with the inputs tokens i32 [1, T], rows i32 [1]");
    assert_status(clt_generate(two.predictor, (int32_t[]){1}, 1, &(clt_generate_options){.tokens = 3}, tell, &t), CLT_E_SHAPE);
    assert_int_equal(t.n, 0);
    destroy(&two);
    destroy(&without);
    destroy(&l);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(goes_on_as_the_whole_text_says),
        cmocka_unit_test(a_state_goes_on_as_the_whole_text_says),
        cmocka_unit_test(layers_go_on_where_they_were),
        cmocka_unit_test(each_sample_has_its_own_place),
        cmocka_unit_test(ends_where_it_is_told_to),
        cmocka_unit_test(refuses_what_it_cannot_do),
    };
    return cmocka_run_group_tests_name("generate", tests, open_device, close_device);
}
