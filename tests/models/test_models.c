#include "tests/support.h"

#include <cltrain/graph.h>
#include <cltrain/models.h>
#include <cltrain/ops.h>

#include "runtime/graph/graph.h"

static clt_graph *graph;
static clt_tensor *images, *tokens;

static int begin(void **state) {
    (void)state;
    assert_ok(clt_graph_create(&graph));
    images = clt_input(graph, "x", CLT_F32, CLT_SHAPE(2, 3, 224, 224));
    tokens = clt_input(graph, "tokens", CLT_I32, CLT_SHAPE(2, 5));
    return 0;
}

static int end(void **state) {
    (void)state;
    clt_graph_destroy(graph);
    return 0;
}

static void assert_model(const clt_tensor *output, int64_t last, int64_t parameters) {
    assert_ok(clt_graph_status(graph));
    clt_shape shape = clt_tensor_shape(output);
    assert_int_equal(shape.dims[0], 2);
    assert_int_equal(shape.dims[shape.rank - 1], last);
    assert_int_equal(clt_graph_parameter_count(graph), parameters);
}

static void assert_parameter(const char *name, clt_shape wanted) {
    const clt_tensor *found = clt_graph_find(graph, name);
    if (!found) fail_msg("there is no %s", name);
    clt_shape shape = clt_tensor_shape(found);
    assert_int_equal(shape.rank, wanted.rank);
    for (int i = 0; i < shape.rank; i++) assert_int_equal(shape.dims[i], wanted.dims[i]);
}

/* Numbers of parameters: torchvision's documentation of each model, and of GPT-2 (tied) Hugging Face's. */

static void resnet18(void **state) {
    (void)state;
    assert_model(clt_model_resnet(images, .depth = 18), 1000, 11689512);
    assert_parameter("layer4.1.bn2.running_var", CLT_SHAPE(512));
    assert_parameter("layer2.0.downsample.0.weight", CLT_SHAPE(128, 64, 1, 1));
}

/* Of milesial's Pytorch-UNet(3, 2), each way. */
static void unet(void **state) {
    (void)state;
    clt_tensor *y = clt_model_unet(images, .outputs = 2);
    assert_int_equal(clt_tensor_shape(y).dims[2], 224);
    assert_model(y, 224, 31037698);
    assert_parameter("down4.maxpool_conv.1.double_conv.4.running_var", CLT_SHAPE(1024));
    assert_parameter("up1.up.weight", CLT_SHAPE(1024, 512, 2, 2));
}

static void unet_bilinear(void **state) {
    (void)state;
    assert_model(clt_model_unet(images, .bilinear = true), 224, 17263042);
    assert_parameter("up1.conv.double_conv.0.weight", CLT_SHAPE(512, 1024, 3, 3));
}

static void resnet34(void **state) {
    (void)state;
    assert_model(clt_model_resnet(images, .depth = 34), 1000, 21797672);
}

static void resnet50(void **state) {
    (void)state;
    assert_model(clt_model_resnet(images, .depth = 50), 1000, 25557032);
    assert_parameter("layer1.0.downsample.0.weight", CLT_SHAPE(256, 64, 1, 1));
    assert_parameter("layer3.5.conv3.weight", CLT_SHAPE(1024, 256, 1, 1));
}

static void resnet101(void **state) {
    (void)state;
    assert_model(clt_model_resnet(images, .depth = 101), 1000, 44549160);
}

static void resnet_of_small_images(void **state) {
    (void)state;
    clt_tensor *small = clt_input(graph, "small", CLT_F32, CLT_SHAPE(2, 3, 32, 32));
    assert_model(clt_model_resnet(small, .small_images = true, .outputs = 10), 10, 11173962);
}

static void mobilenet_v2(void **state) {
    (void)state;
    assert_model(clt_model_mobilenet_v2(images, .width = 1), 1000, 3504872);
    assert_parameter("features.1.conv.1.weight", CLT_SHAPE(16, 32, 1, 1));
    assert_parameter("features.17.conv.0.0.weight", CLT_SHAPE(960, 160, 1, 1));
    assert_parameter("features.18.1.running_mean", CLT_SHAPE(1280));
}

static void vit(void **state) {
    (void)state;
    assert_model(clt_model_vit(images, .patch = 16), 1000, 86567656);
    assert_parameter("encoder.layers.encoder_layer_11.self_attention.in_proj_weight", CLT_SHAPE(2304, 768));
    assert_parameter("encoder.pos_embedding", CLT_SHAPE(1, 197, 768));
}

static void gpt2(void **state) {
    (void)state;
    assert_model(clt_model_gpt2(tokens, .layers = 12), 50257, 124439808);
    assert_parameter("transformer.h.11.attn.c_attn.weight", CLT_SHAPE(768, 2304));
    assert_parameter("transformer.h.0.mlp.c_proj.weight", CLT_SHAPE(3072, 768));
}

/* Tokens that are a sequence may be fewer in a batch. */
static void gpt2_of_any_length(void **state) {
    (void)state;
    clt_tensor *sequence = clt_sequence_input(graph, "sequence", CLT_I32, CLT_SHAPE(2, 8), 1);
    clt_tensor *logits = clt_model_gpt2(sequence, .layers = 2, .heads = 2, .width = 16, .positions = 9, .vocabulary = 11, .dropout = 0.1f), **copies;
    assert_ok(clt_graph_status(graph));
    for (int64_t length = 1; length <= 8; length++) {
        clt_graph *clone;
        assert_ok(clt_graph_clone(graph, &logits, 1, (clt_sizes){3, length}, &clone, &copies));
        clt_shape shape = clt_tensor_shape(copies[logits->index]), wanted = CLT_SHAPE(3, length, 11);
        assert_true(clt_shape_equal(&shape, &wanted));
        clt_free(copies);
        clt_graph_destroy(clone);
    }
}

/* TinyLlama 1.1B: its configuration on Hugging Face. */
static void llama(void **state) {
    (void)state;
    assert_model(clt_model_llama(tokens, .layers = 22), 32000, 1100048384);
    assert_parameter("model.layers.21.self_attn.k_proj.weight", CLT_SHAPE(256, 2048));
    assert_parameter("model.layers.0.mlp.down_proj.weight", CLT_SHAPE(2048, 5632));
    assert_parameter("lm_head.weight", CLT_SHAPE(32000, 2048));
}

static void llama_of_any_length(void **state) {
    (void)state;
    clt_tensor *sequence = clt_sequence_input(graph, "sequence", CLT_I32, CLT_SHAPE(2, 8), 1);
    clt_tensor *logits = clt_model_llama(sequence, .layers = 2, .heads = 4, .key_heads = 2, .width = 16, .hidden = 24, .vocabulary = 11, .tied = true), **copies;
    assert_ok(clt_graph_status(graph));
    assert_null(clt_graph_find(graph, "lm_head.weight"));
    for (int64_t length = 1; length <= 8; length++) {
        clt_graph *clone;
        assert_ok(clt_graph_clone(graph, &logits, 1, (clt_sizes){3, length}, &clone, &copies));
        clt_shape shape = clt_tensor_shape(copies[logits->index]), wanted = CLT_SHAPE(3, length, 11);
        assert_true(clt_shape_equal(&shape, &wanted));
        clt_free(copies);
        clt_graph_destroy(clone);
    }
}

static void refuses_key_heads_that_do_not_divide(void **state) {
    (void)state;
    clt_model_llama(tokens, .heads = 8, .key_heads = 3, .width = 64);
    assert_status(clt_graph_status(graph), CLT_E_INVALID);
    assert_detail("8 heads, 3 key heads");
}

/* An error within the model sticks. */
static void refuses_a_second_llama(void **state) {
    (void)state;
    for (int i = 0; i < 2; i++) clt_model_llama(tokens, .layers = 1, .heads = 2, .width = 8, .hidden = 8, .vocabulary = 9);
    assert_status(clt_graph_status(graph), CLT_E_INVALID);
    assert_detail("\"model.embed_tokens.weight\" exists already");
}

static void refuses_odd_rotary(void **state) {
    (void)state;
    clt_rotary(clt_input(graph, "q", CLT_F32, CLT_SHAPE(1, 2, 3, 5)), .base = 10);
    assert_status(clt_graph_status(graph), CLT_E_SHAPE);
    assert_detail("an even D and a base above 0, got [1, 2, 3, 5]");
}

static void mlp(void **state) {
    (void)state;
    assert_model(clt_model_mlp(images, (int64_t[]){7, 5}, 2, 4), 4, 150528 * 7 + 7 + 7 * 5 + 5 + 5 * 4 + 4);
}

/* ---- what makes no sense ---- */

static void refuses_another_depth(void **state) {
    (void)state;
    clt_model_resnet(images, .depth = 19);
    assert_status(clt_graph_status(graph), CLT_E_INVALID);
    assert_detail("expected a depth of 18, 34, 50, 101 or 152, got 19");
}

static void refuses_images_without_whole_patches(void **state) {
    (void)state;
    clt_model_vit(images, .patch = 15);
    assert_status(clt_graph_status(graph), CLT_E_SHAPE);
    assert_detail("multiples of the patch's 15");
}

static void refuses_long_sequences(void **state) {
    (void)state;
    clt_model_gpt2(tokens, .positions = 4);
    assert_status(clt_graph_status(graph), CLT_E_SHAPE);
    assert_detail("a sequence of 5 tokens is longer than the model's 4 positions");
}

static void refuses_heads_that_do_not_divide(void **state) {
    (void)state;
    clt_model_gpt2(tokens, .heads = 7);
    assert_status(clt_graph_status(graph), CLT_E_INVALID);
    assert_detail("width 768, 7 heads");
}

static void refuses_images_as_tokens(void **state) {
    (void)state;
    clt_model_gpt2(images, .layers = 1);
    assert_status(clt_graph_status(graph), CLT_E_SHAPE);
    assert_detail("expected tokens i32 [N, T], got f32");
}

static void lstm(void **state) {
    (void)state;
    assert_model(clt_model_lstm(tokens, .layers = 2), 10000, 4653200);
    assert_parameter("encoder.weight", CLT_SHAPE(10000, 200));
    assert_parameter("rnn.weight_hh_l1", CLT_SHAPE(800, 200));
    assert_parameter("decoder.bias", CLT_SHAPE(10000));
}

static void lstm_of_one_weight(void **state) {
    (void)state;
    assert_model(clt_model_lstm(tokens, .tied = true, .vocabulary = 50, .hidden = 8, .layers = 1, .dropout = 0.5f), 50, 50 * 8 + 4 * 8 * 16 + 2 * 32 + 50);
    if (clt_graph_find(graph, "decoder.weight")) fail_msg("the head has a weight of its own");
}

static void refuses_a_tied_head_of_another_width(void **state) {
    (void)state;
    clt_model_lstm(tokens, .tied = true, .width = 8);
    assert_status(clt_graph_status(graph), CLT_E_INVALID);
    assert_detail("equal where the head is tied, got 2, 200 and 8");
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, begin, end)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(unet), TEST(unet_bilinear), TEST(resnet18), TEST(resnet34), TEST(resnet50), TEST(resnet101), TEST(resnet_of_small_images),
        TEST(mobilenet_v2), TEST(vit), TEST(gpt2), TEST(gpt2_of_any_length), TEST(llama), TEST(llama_of_any_length),
        TEST(refuses_key_heads_that_do_not_divide), TEST(refuses_a_second_llama), TEST(refuses_odd_rotary),
        TEST(mlp), TEST(refuses_another_depth), TEST(refuses_images_without_whole_patches),
        TEST(refuses_long_sequences),
        TEST(lstm), TEST(lstm_of_one_weight), TEST(refuses_a_tied_head_of_another_width),
        TEST(refuses_heads_that_do_not_divide), TEST(refuses_images_as_tokens),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
