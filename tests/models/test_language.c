/* config.json, which is a stranger's. */
#include "tests/support.h"

#include <stdio.h>
#include <string.h>

#include <cltrain/models.h>

#include "runtime/graph/graph.h"

static clt_status read_text(clt_language_model *model, const char *text) {
    const char *path = support_path("config.json");
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    fputs(text, file);
    assert_int_equal(fclose(file), 0);
    return clt_language_model_read(model, path);
}

#define GPT2 "\"model_type\":\"gpt2\",\"vocab_size\":20,\"n_embd\":8,\"n_layer\":2,\"n_head\":2"
#define LLAMA "\"model_type\":\"llama\",\"vocab_size\":20,\"hidden_size\":16,\"intermediate_size\":24,\"num_hidden_layers\":2,\"num_attention_heads\":4"

static void reads_gpt2(void **state) {
    (void)state;
    clt_language_model m;
    assert_ok(read_text(&m, "{" GPT2 "}"));
    assert_int_equal(m.family, CLT_LANGUAGE_GPT2);
    assert_true(m.vocabulary == 20 && m.positions == 1024 && m.end == -1);
    assert_true(m.gpt2.width == 8 && m.gpt2.hidden == 32 && m.gpt2.layers == 2 && m.gpt2.heads == 2 && m.gpt2.eps == 1e-5f && m.gpt2.dropout == 0);
    assert_ok(read_text(&m, "{" GPT2 ",\"n_positions\":64,\"n_inner\":40,\"eos_token_id\":19,\"layer_norm_epsilon\":1e-6,\"activation_function\":\"gelu_new\","
                            "\"scale_attn_weights\":true,\"rotary\":1,\"resid_pdrop\":0.1,\"n_ctx\":64}"));
    assert_true(m.positions == 64 && m.gpt2.positions == 64 && m.gpt2.hidden == 40 && m.end == 19 && m.gpt2.eps == 1e-6f);
    assert_ok(read_text(&m, "{" GPT2 ",\"n_inner\":null,\"eos_token_id\":null}"));
    assert_true(m.gpt2.hidden == 32 && m.end == -1);
}

static void reads_llama(void **state) {
    (void)state;
    clt_language_model m;
    assert_ok(read_text(&m, "{" LLAMA "}"));
    assert_int_equal(m.family, CLT_LANGUAGE_LLAMA);
    assert_true(m.positions == 2048 && m.llama.width == 16 && m.llama.hidden == 24 && m.llama.layers == 2 && m.llama.heads == 4 && m.llama.key_heads == 4);
    assert_true(m.llama.eps == 1e-6f && m.llama.base == 10000 && !m.llama.tied && m.llama.vocabulary == 20);
    assert_ok(read_text(&m, "{" LLAMA ",\"num_key_value_heads\":2,\"max_position_embeddings\":99,\"rms_norm_eps\":1e-5,\"rope_theta\":500000.0,"
                            "\"rope_scaling\":null,\"tie_word_embeddings\":true,\"eos_token_id\":[3,4],\"head_dim\":4,\"hidden_act\":\"silu\"}"));
    assert_true(m.llama.key_heads == 2 && m.positions == 99 && m.llama.eps == 1e-5f && m.llama.base == 500000 && m.llama.tied && m.end == 3);
    assert_ok(read_text(&m, "{" LLAMA ",\"rope_parameters\":{\"rope_type\":\"default\",\"rope_theta\":20000}}"));
    assert_true(m.llama.base == 20000);
}

/* The graph is that of the family's builder; rows pick positions. */
static void builds_what_it_read(void **state) {
    (void)state;
    const char *const texts[] = {"{" GPT2 ",\"n_positions\":8}", "{" LLAMA "}"};
    for (int i = 0; i < 2; i++) {
        clt_language_model m;
        clt_graph *graph;
        assert_ok(read_text(&m, texts[i]));
        assert_ok(clt_graph_create(&graph));
        clt_tensor *tokens = clt_input(graph, "tokens", CLT_I32, CLT_SHAPE(3, 5)), *rows = clt_input(graph, "rows", CLT_I32, CLT_SHAPE(3));
        clt_shape shape = clt_tensor_shape(clt_language_model_build(&m, tokens, rows, NULL));
        assert_ok(clt_graph_status(graph));
        assert_true(shape.rank == 2 && shape.dims[0] == 3 && shape.dims[1] == 20);
        clt_graph_destroy(graph);
        assert_ok(clt_graph_create(&graph));
        shape = clt_tensor_shape(clt_language_model_build(&m, clt_input(graph, "tokens", CLT_I32, CLT_SHAPE(3, 5)), NULL, NULL));
        assert_true(shape.rank == 3 && shape.dims[1] == 5 && shape.dims[2] == 20);
        clt_graph_destroy(graph);
    }
    assert_null(clt_language_model_build(NULL, NULL, NULL, NULL));
}

static void refuses_what_it_cannot_build(void **state) {
    (void)state;
    static const struct {
        const char *text;
        clt_status status;
        const char *words;
    } wrong[] = {
        {"", CLT_E_FORMAT, "line 1"},
        {"{" GPT2, CLT_E_FORMAT, "line 1"},
        {"[]", CLT_E_FORMAT, "is not a JSON object"},
        {"{}", CLT_E_FORMAT, "\"model_type\" is missing"},
        {"{\"model_type\":3}", CLT_E_FORMAT, "\"model_type\" is missing"},
        {"{\"model_type\":\"bert\",\"vocab_size\":9}", CLT_E_UNSUPPORTED, "\"model_type\" is \"bert\": expected gpt2 or llama"},
        {"{\"model_type\":\"gpt2\",\"model_type\":\"llama\"}", CLT_E_FORMAT, "duplicate"},
        {"{\"model_type\":\"gpt2\"}", CLT_E_FORMAT, "\"vocab_size\" is missing"},
        {"{\"model_type\":\"gpt2\",\"vocab_size\":\"20\"}", CLT_E_FORMAT, "\"vocab_size\" is not a whole number"},
        {"{\"model_type\":\"gpt2\",\"vocab_size\":-5}", CLT_E_RANGE, "\"vocab_size\" is -5: expected 1 to"},
        {"{\"model_type\":\"gpt2\",\"vocab_size\":20,\"n_embd\":9000000000000000000,\"n_layer\":2,\"n_head\":2}", CLT_E_RANGE, "\"n_embd\""},
        {"{\"model_type\":\"gpt2\",\"vocab_size\":20,\"n_embd\":9,\"n_layer\":2,\"n_head\":2}", CLT_E_RANGE, "\"n_head\" is 2, which does not divide \"n_embd\", 9"},
        {"{" GPT2 ",\"n_positions\":0}", CLT_E_RANGE, "\"n_positions\""},
        {"{" GPT2 ",\"activation_function\":\"relu\"}", CLT_E_UNSUPPORTED, "\"activation_function\" is \"relu\": expected gelu_new"},
        {"{" GPT2 ",\"scale_attn_by_inverse_layer_idx\":true}", CLT_E_UNSUPPORTED, "expected false"},
        {"{" GPT2 ",\"tie_word_embeddings\":false}", CLT_E_UNSUPPORTED, "\"tie_word_embeddings\" is false: expected true"},
        {"{" GPT2 ",\"layer_norm_epsilon\":-1}", CLT_E_RANGE, "\"layer_norm_epsilon\" is -1"},
        {"{" GPT2 ",\"layer_norm_epsilon\":\"x\"}", CLT_E_FORMAT, "\"layer_norm_epsilon\" is not a number"},
        {"{" GPT2 ",\"eos_token_id\":20}", CLT_E_RANGE, "\"eos_token_id\" is not a token of 20"},
        {"{" GPT2 ",\"eos_token_id\":1.5}", CLT_E_RANGE, "\"eos_token_id\""},
        {"{" LLAMA ",\"rope_scaling\":{\"factor\":8}}", CLT_E_UNSUPPORTED, "\"rope_scaling\" is {\"factor\":8}: expected null"},
        {"{" LLAMA ",\"rope_parameters\":{\"rope_type\":\"llama3\"}}", CLT_E_UNSUPPORTED, "\"rope_parameters\""},
        {"{" LLAMA ",\"num_key_value_heads\":3}", CLT_E_RANGE, "\"num_key_value_heads\" is 3, which does not divide 4 heads"},
        {"{" LLAMA ",\"head_dim\":8}", CLT_E_UNSUPPORTED, "4 heads of 8 do not make \"hidden_size\", 16"},
        {"{" LLAMA ",\"attention_bias\":true}", CLT_E_UNSUPPORTED, "\"attention_bias\" is true: expected false"},
        {"{" LLAMA ",\"hidden_act\":\"gelu\"}", CLT_E_UNSUPPORTED, "\"hidden_act\""},
        {"{" LLAMA ",\"rope_theta\":0}", CLT_E_RANGE, "\"rope_theta\""},
    };
    clt_language_model m = {.vocabulary = 77};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        assert_status(read_text(&m, wrong[i].text), wrong[i].status);
        assert_detail(wrong[i].words);
        assert_int_equal(m.vocabulary, 77); /* nothing is half read */
    }
    assert_status(clt_language_model_read(&m, "/nowhere"), CLT_E_IO);
    assert_status(clt_language_model_read(NULL, "x"), CLT_E_INVALID);
    assert_status(clt_language_model_read(&m, NULL), CLT_E_INVALID);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_gpt2),
        cmocka_unit_test(reads_llama),
        cmocka_unit_test(builds_what_it_read),
        cmocka_unit_test(refuses_what_it_cannot_build),
    };
    return cmocka_run_group_tests_name("language", tests, NULL, NULL);
}
