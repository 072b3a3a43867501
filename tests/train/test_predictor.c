/* Prediction without a trainer. */
#include "tests/support.h"

#include <string.h>

#include <cltrain/cltrain.h>

#include "runtime/graph/graph.h"

enum { BATCH = 6, WIDTH = 5, CLASSES = 3, STEPS = 4 };

static clt_device *device;
static float x_values[2 * BATCH * WIDTH];
static int32_t labels[2 * BATCH];

static int open_device(void **state) {
    (void)state;
    for (int i = 0; i < 2 * BATCH * WIDTH; i++) x_values[i] = (float)((i * 7919) % 100) / 50 - 1;
    for (int i = 0; i < 2 * BATCH; i++) labels[i] = i % CLASSES;
    return clt_device_open(&device, NULL) < 0;
}

static int close_device(void **state) {
    (void)state;
    clt_device_close(device);
    return 0;
}

typedef struct model {
    clt_graph *graph;
    clt_tensor *output, *loss;
} model;

/* Batch norm and dropout, which predict otherwise than they train, and a buffer that is in no file. */
static model make_with(int hidden, bool fixed) {
    model m;
    assert_ok(clt_graph_create(&m.graph));
    clt_tensor *x = clt_input(m.graph, "x", CLT_F32, CLT_SHAPE(BATCH, WIDTH)), *y = clt_input(m.graph, "y", CLT_I32, CLT_SHAPE(BATCH));
    clt_tensor *h = clt_dropout(clt_relu(clt_batch_norm(clt_linear(x, "fc1", hidden), "bn")), 0.5f);
    h = clt_add(h, clt_buffer_with(m.graph, "shift", CLT_SHAPE(1), (clt_init){CLT_INIT_CONSTANT, .value = 0.25f}, (clt_buffer_options){.unsaved = true}));
    if (fixed) h = clt_mul(h, clt_fixed_input(m.graph, "gain", CLT_F32, CLT_SHAPE(1)));
    m.output = clt_softmax(clt_linear(h, "fc2", CLASSES), 1);
    m.loss = clt_cross_entropy(clt_log(m.output), y);
    assert_ok(clt_graph_status(m.graph));
    return m;
}

static model make(void) {
    return make_with(8, false);
}

static clt_batch batch_of(int64_t samples, bool labelled) {
    clt_batch batch = {samples, labelled ? 2 : 1, {{CLT_F32, CLT_SHAPE(samples, WIDTH), x_values}}};
    if (labelled) batch.fields[1] = (clt_array){CLT_I32, CLT_SHAPE(samples), labels};
    return batch;
}

/* Trains a little, saves, and keeps what the trainer itself predicts of `samples` samples. */
static void train(const char *weights, const char *checkpoint, int64_t samples, float *predicted) {
    model m = make();
    clt_trainer *t = NULL;
    clt_batch batch = batch_of(BATCH, true), other = batch_of(samples, false);
    assert_ok(clt_trainer_create(&t, device, m.loss, &(clt_train_options){.optimizer = CLT_ADAM, .lr = 0.1f, .output = m.output}));
    for (int i = 0; i < STEPS; i++) assert_ok(clt_trainer_step(t, &batch));
    assert_ok(clt_weights_save(t, weights));
    assert_ok(clt_checkpoint_save(t, NULL, checkpoint));
    assert_ok(clt_trainer_predict(t, m.output, &other, predicted, (size_t)samples * CLASSES));
    clt_trainer_destroy(t);
    clt_graph_destroy(m.graph);
}

static void predicts_the_bits_of_the_trainer(void **state) {
    (void)state;
    enum { SAMPLES = 2 * BATCH };
    char weights[256], checkpoint[256];
    float wanted[SAMPLES * CLASSES], got[SAMPLES * CLASSES], one[CLASSES];
    strcpy(weights, support_path("weights"));
    strcpy(checkpoint, support_path("checkpoint"));
    train(weights, checkpoint, SAMPLES, wanted);
    const char *files[] = {weights, checkpoint};
    for (int i = 0; i < 2; i++) {
        model m = make();
        clt_predictor *p = NULL;
        assert_ok(clt_predictor_create(&p, device, m.output, &(clt_predictor_options){.weights = files[i], .seed = 9}));
        for (int round = 0; round < 2; round++) {
            clt_batch batch = batch_of(SAMPLES, round), first = batch_of(1, false);
            assert_ok(clt_predictor_run(p, &batch, got, SAMPLES * CLASSES));
            assert_memory_equal(got, wanted, sizeof got);
            assert_ok(clt_predictor_run(p, &first, one, CLASSES));
            for (int k = 0; k < CLASSES; k++) assert_float_equal(one[k], wanted[k], 1e-6);
        }
        clt_predictor_destroy(p);
        clt_graph_destroy(m.graph);
    }
}

/* First values are a trainer's, and values are set and read by name. */
static void begins_as_a_trainer_does(void **state) {
    (void)state;
    model m = make_with(8, true);
    clt_trainer *t = NULL;
    clt_predictor *p = NULL;
    float of_trainer[8 * WIDTH], of_predictor[8 * WIDTH], got[2][CLASSES], gain = 2;
    clt_batch batch = batch_of(1, false);
    assert_ok(clt_trainer_create(&t, device, m.loss, &(clt_train_options){.seed = 5}));
    assert_ok(clt_predictor_create(&p, device, m.output, &(clt_predictor_options){.seed = 5}));
    assert_ok(clt_trainer_get(t, "fc1.weight", of_trainer, 8 * WIDTH));
    assert_ok(clt_predictor_get(p, "fc1.weight", of_predictor, 8 * WIDTH));
    assert_memory_equal(of_trainer, of_predictor, sizeof of_trainer);
    assert_status(clt_predictor_run(p, &batch, got[0], CLASSES), CLT_E_STATE);
    assert_detail("fixed input \"gain\" has no values yet");
    assert_ok(clt_predictor_set_input(p, "gain", &(clt_array){CLT_F32, CLT_SHAPE(1), &gain}));
    assert_ok(clt_predictor_run(p, &batch, got[0], CLASSES));
    memset(of_predictor, 0, sizeof of_predictor);
    assert_ok(clt_predictor_set(p, "fc1.weight", of_predictor, 8 * WIDTH));
    assert_ok(clt_predictor_run(p, &batch, got[1], CLASSES));
    assert_memory_not_equal(got[0], got[1], sizeof got[0]);
    assert_status(clt_predictor_set(p, "gain", &gain, 1), CLT_E_INVALID);
    assert_status(clt_predictor_get(p, "fc3.weight", &gain, 1), CLT_E_NOT_FOUND);
    clt_predictor_destroy(p);
    clt_trainer_destroy(t);
    clt_graph_destroy(m.graph);
}

/* Weights once, and no optimizer: less than a third of what a trainer with Adam has for them. */
static void takes_the_memory_of_the_weights(void **state) {
    (void)state;
    enum { WIDE = 60000 };
    uint64_t weights = 4 * ((WIDTH + 5) * WIDE + CLASSES * WIDE), before = clt_device_bytes(device);
    model m = make_with(WIDE, false);
    clt_predictor *p = NULL;
    float got[CLASSES];
    clt_batch batch = batch_of(1, false);
    assert_ok(clt_predictor_create(&p, device, m.output, NULL));
    assert_ok(clt_predictor_run(p, &batch, got, CLASSES));
    uint64_t taken = clt_device_bytes(device) - before;
    assert_in_range(taken, weights, weights + 16 * WIDE); /* and a few activations */
    clt_predictor_destroy(p);
    clt_graph_destroy(m.graph);
}

static void lengths_of_sequences_have_plans(void **state) {
    (void)state;
    enum { LONGEST = 9, WORDS = 4 };
    static const int32_t tokens[2 * LONGEST] = {1, 2, 3, 0, 1, 1, 2, 3, 3, 0, 1, 0, 2, 3, 1, 2, 2, 0};
    clt_graph *graph;
    float whole[LONGEST * WORDS], part[LONGEST * WORDS];
    clt_predictor *p = NULL;
    assert_ok(clt_graph_create(&graph));
    clt_tensor *input = clt_sequence_input(graph, "tokens", CLT_I32, CLT_SHAPE(1, LONGEST), 1);
    clt_tensor *logits = clt_model_gpt2(input, .vocabulary = WORDS, .positions = LONGEST, .width = 8, .layers = 2, .heads = 2);
    assert_ok(clt_predictor_create(&p, device, logits, NULL));
    clt_batch batch = {1, 1, {{CLT_I32, CLT_SHAPE(1, LONGEST), tokens}}};
    assert_ok(clt_predictor_run(p, &batch, whole, LONGEST * WORDS));
    for (int64_t length = 1; length < LONGEST; length++) { /* causal: what comes behind changes nothing */
        batch.fields[0].shape.dims[1] = length;
        assert_ok(clt_predictor_run(p, &batch, part, (size_t)length * WORDS));
        for (int64_t i = 0; i < length * WORDS; i++) assert_float_equal(part[i], whole[i], 1e-5);
    }
    batch.fields[0].shape.dims[1] = LONGEST + 1;
    assert_status(clt_predictor_run(p, &batch, part, LONGEST * WORDS), CLT_E_SHAPE);
    assert_detail("length 10; those of the graph are at most 9 long");
    batch = (clt_batch){1, 1, {{CLT_I32, CLT_SHAPE(1, 2), (int32_t[]){1, 4}}}};
    assert_status(clt_predictor_run(p, &batch, part, 2 * WORDS), CLT_E_RANGE);
    clt_predictor_destroy(p);
    clt_graph_destroy(graph);
}

static void what_is_wrong_is_refused(void **state) {
    (void)state;
    char weights[256], checkpoint[256];
    float values[2 * BATCH * CLASSES];
    strcpy(weights, support_path("weights"));
    strcpy(checkpoint, support_path("checkpoint"));
    train(weights, checkpoint, 1, values);
    model m = make(), other = make_with(7, false);
    clt_predictor *p = NULL;
    assert_status(clt_predictor_create(&p, device, other.output, &(clt_predictor_options){.weights = weights}), CLT_E_MISMATCH);
    assert_detail("\"fc1.weight\" is F32 [8, 5]; the model has F32 [7, 5]");
    assert_status(clt_predictor_create(&p, device, m.output, &(clt_predictor_options){.weights = "/nowhere"}), CLT_E_IO);
    assert_status(clt_predictor_create(&p, NULL, m.output, NULL), CLT_E_INVALID);
    assert_status(clt_predictor_create(&p, device, NULL, NULL), CLT_E_INVALID);
    assert_status(clt_predictor_create(NULL, device, m.output, NULL), CLT_E_INVALID);
    assert_status(clt_predictor_create(&p, device, clt_input(other.graph, "i", CLT_I32, CLT_SHAPE(BATCH)), NULL), CLT_E_DTYPE);
    assert_null(p);
    assert_ok(clt_predictor_create(&p, device, m.output, &(clt_predictor_options){.weights = weights}));
    clt_batch batch = batch_of(3, false), none = batch_of(0, false);
    assert_status(clt_predictor_run(p, &batch, values, 2), CLT_E_SHAPE);
    assert_detail("room for 2 predicted values; the tensor is [3, 3]");
    assert_status(clt_predictor_run(p, &none, values, 0), CLT_E_INVALID);
    assert_status(clt_predictor_run(p, NULL, values, 9), CLT_E_INVALID);
    assert_status(clt_predictor_run(NULL, &batch, values, 9), CLT_E_INVALID);
    assert_status(clt_predictor_load(p, "/nowhere"), CLT_E_IO);
    float again[9];
    assert_ok(clt_predictor_run(p, &batch, values, 9));
    assert_ok(clt_predictor_load(p, checkpoint));
    assert_ok(clt_predictor_run(p, &batch, again, 9));
    assert_memory_equal(values, again, sizeof again);
    clt_predictor_destroy(p);
    clt_predictor_destroy(NULL);
    clt_matmul(m.output, m.output); /* poisons the graph */
    assert_status(clt_predictor_create(&p, device, m.output, NULL), CLT_E_SHAPE);
    clt_graph_destroy(m.graph);
    clt_graph_destroy(other.graph);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(predicts_the_bits_of_the_trainer), cmocka_unit_test(begins_as_a_trainer_does),
        cmocka_unit_test(takes_the_memory_of_the_weights),  cmocka_unit_test(lengths_of_sequences_have_plans),
        cmocka_unit_test(what_is_wrong_is_refused),
    };
    return cmocka_run_group_tests_name("predictor", tests, open_device, close_device);
}
