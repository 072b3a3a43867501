/* Two trainers of one graph that share its parameters, as of a generative adversarial network (Goodfellow et al. 2014). */
#include "tests/support.h"

#include <cltrain/cltrain.h>

#include <string.h>

#include "runtime/base/random.h"

enum { BATCH = 8, NOISE = 5, HIDDEN = 12, PIXELS = 64, STEPS = 6 };

static clt_device *device;
static float noise[STEPS][BATCH][NOISE];
static clt_dataset *digits;

static int open_all(void **state) {
    (void)state;
    clt_random random;
    clt_random_init(&random, 9, 0);
    for (int i = 0; i < STEPS * BATCH * NOISE; i++) (&noise[0][0][0])[i] = (float)clt_random_normal(&random);
    assert_ok(clt_dataset_digits(&digits));
    assert_ok(clt_device_open(&device, NULL));
    return 0;
}

static int close_all(void **state) {
    (void)state;
    clt_dataset_destroy(digits);
    clt_device_close(device);
    return 0;
}

static const struct {
    const char *name;
    int count;
} parameters[] = {{"g.1.weight", HIDDEN * NOISE}, {"g.1.bias", HIDDEN}, {"g.2.weight", PIXELS *HIDDEN}, {"g.2.bias", PIXELS},
                  {"d.1", HIDDEN *PIXELS},        {"d.2", HIDDEN},      {"d.offset", 1}};
enum { PARAMETERS = sizeof parameters / sizeof *parameters, GENERATORS = 4, VALUES = HIDDEN * NOISE + 2 * HIDDEN + 2 * PIXELS * HIDDEN + PIXELS + 1 };

typedef struct gan {
    clt_graph *graph;
    clt_tensor *weights[3]; /* of the discriminator */
    clt_tensor *loss_g, *loss_d;
    clt_trainer *g, *d;
} gan;

static clt_tensor *judge(gan *n, clt_tensor *image) {
    clt_tensor *h = clt_relu(clt_linear_op(image, n->weights[0], NULL));
    return clt_add(clt_linear_op(h, n->weights[1], NULL), n->weights[2]);
}

static clt_tensor *judged_as(gan *n, clt_tensor *image, clt_tensor *wanted) {
    return clt_bce_with_logits(judge(n, image), clt_expand(wanted, CLT_SHAPE(CLT_BATCH, 1)));
}

static void build(gan *n) {
    clt_init small = {CLT_INIT_XAVIER_NORMAL, 1, 0};
    assert_ok(clt_graph_create(&n->graph));
    clt_tensor *z = clt_input(n->graph, "noise", CLT_F32, CLT_SHAPE(BATCH, NOISE)), *real = clt_input(n->graph, "real", CLT_F32, CLT_SHAPE(BATCH, 1, 8, 8));
    n->weights[0] = clt_parameter(n->graph, "d.1", CLT_SHAPE(HIDDEN, PIXELS), small);
    n->weights[1] = clt_parameter(n->graph, "d.2", CLT_SHAPE(1, HIDDEN), small);
    n->weights[2] = clt_parameter(n->graph, "d.offset", CLT_SHAPE(1), (clt_init){0});
    clt_tensor *fake = clt_sigmoid(clt_linear(clt_relu(clt_linear(z, "g.1", HIDDEN)), "g.2", PIXELS));
    clt_tensor *yes = clt_constant(n->graph, "yes", &(clt_array){CLT_F32, CLT_SHAPE(1, 1), &(float){1}});
    clt_tensor *no = clt_constant(n->graph, "no", &(clt_array){CLT_F32, CLT_SHAPE(1, 1), &(float){0}});
    n->loss_g = judged_as(n, fake, yes);
    n->loss_d = clt_add(judged_as(n, clt_flatten(real), yes), judged_as(n, fake, no));
    assert_ok(clt_graph_status(n->graph));
}

static const clt_train_options options_g = {.optimizer = CLT_ADAM, .lr = 0.01f, .seed = 7},
                               options_d = {.optimizer = CLT_SGD, .lr = 0.1f, .momentum = 0.9f, .seed = 7};

static clt_offload offload_g, offload_d;

static clt_status make_d(gan *n, clt_trainer *shares) {
    clt_train_options options = options_d;
    options.shares = shares;
    options.offload = offload_d;
    assert_ok(clt_graph_set_trained(n->graph, "*", false));
    assert_ok(clt_graph_set_trained(n->graph, "d.*", true));
    return clt_trainer_create(&n->d, device, n->loss_d, &options);
}

static clt_status make_g(gan *n, clt_trainer *shares) {
    clt_train_options options = options_g;
    options.shares = shares;
    options.offload = offload_g;
    assert_ok(clt_graph_set_trained(n->graph, "*", false));
    assert_ok(clt_graph_set_trained(n->graph, "g.*", true));
    return clt_trainer_create(&n->g, device, n->loss_g, &options);
}

static void destroy(gan *n) {
    clt_trainer_destroy(n->g);
    clt_trainer_destroy(n->d);
    clt_graph_destroy(n->graph);
}

/* Of the discriminator; the generator needs the noise alone. */
static clt_batch batch_of(int step, int samples) {
    clt_array real = clt_dataset_array(digits, 0);
    real.shape.dims[0] = samples;
    real.data = (const float *)real.data + step * BATCH * PIXELS;
    return (clt_batch){.samples = samples, .n_fields = 2, .fields = {{CLT_F32, CLT_SHAPE(samples, NOISE), noise[step]}, real}};
}

static void step_g(clt_trainer *g, int step, int samples) {
    clt_batch batch = batch_of(step, samples);
    batch.n_fields = 1;
    assert_ok(clt_trainer_step(g, &batch));
}

static void step_d(clt_trainer *d, int step, int samples) {
    clt_batch batch = batch_of(step, samples);
    assert_ok(clt_trainer_step(d, &batch));
}

static void get(clt_trainer *t, float values[VALUES]) {
    for (int i = 0, at = 0; i < PARAMETERS; at += parameters[i++].count)
        assert_ok(clt_trainer_get(t, parameters[i].name, values + at, (size_t)parameters[i].count));
}

static void set(clt_trainer *t, const float values[VALUES]) {
    for (int i = 0, at = 0; i < PARAMETERS; at += parameters[i++].count)
        assert_ok(clt_trainer_set(t, parameters[i].name, values + at, (size_t)parameters[i].count));
}

/* The generator's come first. */
static void assert_changed(const float *before, const float *now, bool generator, bool discriminator) {
    size_t of_g = 0;
    for (int i = 0; i < GENERATORS; i++) of_g += (size_t)parameters[i].count;
    assert_int_equal(memcmp(before, now, of_g * sizeof *now) != 0, generator);
    assert_int_equal(memcmp(before + of_g, now + of_g, (VALUES - of_g) * sizeof *now) != 0, discriminator);
}

/* ---- tests ---- */

/* Each leaves the other's bytes alone, and both have the bits of trainers between which all values are carried by hand. */
static void each_trains_its_own(void **state) {
    (void)state;
    static float before[VALUES], now[VALUES], seen[VALUES], carried[VALUES];
    gan shared = {0}, apart = {0};
    build(&shared);
    build(&apart);
    assert_ok(make_g(&shared, NULL));
    assert_ok(make_d(&shared, shared.g));
    assert_ok(make_g(&apart, NULL));
    assert_ok(make_d(&apart, NULL));
    get(shared.d, before);
    get(apart.g, carried);
    assert_memory_equal(before, carried, sizeof before);
    for (int step = 0; step < STEPS; step++) {
        int samples = step == 3 ? BATCH - 2 : BATCH;
        step_d(shared.d, step, samples);
        get(shared.g, now);
        assert_changed(before, now, false, true);
        set(apart.d, carried);
        step_d(apart.d, step, samples);
        get(apart.d, carried);
        assert_memory_equal(now, carried, sizeof now);
        step_g(shared.g, step, samples);
        get(shared.d, before);
        assert_changed(now, before, true, false);
        get(shared.g, seen);
        assert_memory_equal(before, seen, sizeof seen);
        set(apart.g, carried);
        step_g(apart.g, step, samples);
        get(apart.g, carried);
        assert_memory_equal(before, carried, sizeof before);
    }
    destroy(&shared);
    destroy(&apart);
}

/* Plans of the first that were there before the second have the right memory after it; either may go first. */
static void either_may_go_first(void **state) {
    (void)state;
    static float before[VALUES], now[VALUES];
    for (int first = 0; first < 2; first++) {
        gan n = {0};
        build(&n);
        assert_ok(make_g(&n, NULL));
        step_g(n.g, 0, BATCH);
        get(n.g, before);
        assert_ok(make_d(&n, n.g));
        get(n.d, now);
        assert_memory_equal(before, now, sizeof now); /* not the first values again */
        step_d(n.d, 0, BATCH);
        step_g(n.g, 1, BATCH);
        get(n.g, before);
        clt_trainer_destroy(first ? n.d : n.g);
        clt_trainer *rest = first ? n.g : n.d;
        if (first) n.d = NULL;
        else n.g = NULL;
        get(rest, now);
        assert_memory_equal(before, now, sizeof now);
        if (first) step_g(n.g, 2, BATCH);
        else step_d(n.d, 2, BATCH);
        get(rest, now);
        assert_changed(before, now, first, !first);
        /* The place is free for another one. */
        assert_ok(first ? make_d(&n, n.g) : make_g(&n, n.d));
        get(first ? n.d : n.g, before);
        assert_memory_equal(before, now, sizeof now);
        step_d(n.d, 3, BATCH);
        step_g(n.g, 3, BATCH);
        get(n.g, before);
        assert_changed(before, now, true, true);
        destroy(&n);
    }
}

static void checkpoints_go_on(void **state) {
    (void)state;
    static float wanted[VALUES], now[VALUES];
    gan n = {0}, again = {0};
    build(&n);
    assert_ok(make_g(&n, NULL));
    assert_ok(make_d(&n, n.g));
    for (int step = 0; step < 4; step++) {
        step_d(n.d, step, BATCH);
        step_g(n.g, step, BATCH);
        if (step == 1) {
            assert_ok(clt_checkpoint_save(n.g, NULL, support_path("g")));
            assert_ok(clt_checkpoint_save(n.d, NULL, support_path("d")));
        }
    }
    get(n.g, wanted);
    build(&again);
    assert_ok(make_d(&again, NULL));
    assert_ok(make_g(&again, again.d));
    assert_ok(clt_checkpoint_load(again.g, NULL, support_path("g")));
    assert_ok(clt_checkpoint_load(again.d, NULL, support_path("d")));
    for (int step = 2; step < 4; step++) {
        step_d(again.d, step, BATCH);
        step_g(again.g, step, BATCH);
    }
    get(again.g, now);
    assert_memory_equal(now, wanted, sizeof now);
    destroy(&n);
    destroy(&again);
}

/* What does not go together: nothing is changed, and the first goes on. */
static void refusals(void **state) {
    (void)state;
    static float before[VALUES], now[VALUES];
    gan n = {0}, other = {0};
    clt_trainer *t;
    build(&n);
    build(&other);
    assert_ok(make_g(&n, NULL));
    step_g(n.g, 0, BATCH);
    get(n.g, before);
    assert_ok(clt_graph_set_trained(n.graph, "d.*", true));
    assert_status(clt_trainer_create(&t, device, n.loss_d, &(clt_train_options){.shares = n.g}), CLT_E_STATE);
    assert_detail("another trainer trains it");
    assert_status(clt_trainer_create(&t, device, other.loss_d, &(clt_train_options){.shares = n.g}), CLT_E_INVALID);
    assert_detail("option shares: the other trainer is of another graph");
    get(n.g, now);
    assert_memory_equal(before, now, sizeof now);
    step_g(n.g, 1, BATCH);
    assert_ok(make_d(&n, n.g));
    step_d(n.d, 1, BATCH);
    /* The discriminator needs images. */
    clt_batch batch = batch_of(0, BATCH);
    batch.n_fields = 1;
    assert_status(clt_trainer_step(n.d, &batch), CLT_E_SHAPE);
    /* What is given is looked at, needed or not. */
    batch = batch_of(0, BATCH);
    batch.fields[1].shape.dims[3] = 4;
    assert_status(clt_trainer_step(n.g, &batch), CLT_E_SHAPE);
    destroy(&n);
    destroy(&other);
}

static int reads_that_fail;

static clt_status read_ones(void *user, int64_t first, int64_t count, float *values) {
    (void)user, (void)first;
    if (reads_that_fail-- > 0) return CLT_E_IO;
    for (int64_t i = 0; i < count; i++) values[i] = 1;
    return CLT_OK;
}

/* What a trainer that could not be made has begun, the next one begins anew. */
static void a_trainer_that_failed_leaves_nothing(void **state) {
    (void)state;
    clt_graph *g;
    clt_trainer *first, *second;
    float values[3];
    assert_ok(clt_graph_create(&g));
    clt_tensor *x = clt_input(g, "x", CLT_F32, CLT_SHAPE(2, 3)), *a = clt_parameter(g, "a", CLT_SHAPE(3), (clt_init){CLT_INIT_NORMAL, .value = 1});
    assert_ok(clt_trainer_create(&first, device, clt_mean(clt_mul(x, a), CLT_ALL_AXES), NULL));
    clt_tensor *b = clt_parameter(g, "b", CLT_SHAPE(3), (clt_init){CLT_INIT_READ, .read = read_ones}), *loss = clt_mean(clt_mul(x, b), CLT_ALL_AXES);
    reads_that_fail = 1;
    assert_status(clt_trainer_create(&second, device, loss, &(clt_train_options){.shares = first}), CLT_E_IO);
    assert_string_equal(clt_error_detail(), "first values of \"b\": a function of the caller's failed");
    assert_ok(clt_trainer_create(&second, device, loss, &(clt_train_options){.shares = first}));
    assert_ok(clt_trainer_get(second, "b", values, 3));
    for (int i = 0; i < 3; i++) assert_true(values[i] == 1);
    clt_trainer_destroy(second);
    clt_trainer_destroy(first);
    clt_graph_destroy(g);
}

/* Whoever put it there. */
static void averages_are_in_the_place_of_all(void **state) {
    (void)state;
    clt_trainer *other;
    clt_batch batch = {.samples = 1, .n_fields = 1, .fields = {{CLT_F32, CLT_SHAPE(1, 1), noise}}};
    clt_graph *g;
    assert_ok(clt_graph_create(&g));
    clt_tensor *x = clt_input(g, "x", CLT_F32, CLT_SHAPE(1, 1)), *loss = clt_mean(clt_mul(x, clt_parameter(g, "w", CLT_SHAPE(1), (clt_init){CLT_INIT_CONSTANT, .value = 1})), CLT_ALL_AXES);
    clt_trainer *own;
    float before, after;
    assert_ok(clt_trainer_create(&own, device, loss, &(clt_train_options){.lr = 0.5f, .average = 0.5f}));
    loss = clt_mean(clt_mul(x, clt_parameter(g, "v", CLT_SHAPE(1), (clt_init){CLT_INIT_CONSTANT, .value = 1})), CLT_ALL_AXES);
    assert_ok(clt_trainer_create(&other, device, loss, &(clt_train_options){.lr = 0.5f, .shares = own}));
    assert_ok(clt_trainer_step(own, &batch));
    assert_ok(clt_trainer_get(own, "w", &before, 1));
    assert_ok(clt_trainer_use_average(own, true));
    assert_status(clt_trainer_step(other, &batch), CLT_E_STATE);
    assert_detail("the average of a trainer that shares them");
    clt_trainer_destroy(own); /* which puts the parameters back */
    assert_ok(clt_trainer_get(other, "w", &after, 1));
    assert_true(before == after);
    assert_ok(clt_trainer_step(other, &batch));
    clt_trainer_destroy(other);
    clt_graph_destroy(g);
}

/* What one of them trains lies in the host's memory, also when that one is gone. */
static void each_in_the_host(void **state) {
    for (int i = 1; i < 4; i++) {
        offload_g = i & 1 ? CLT_OFFLOAD_ALL : CLT_OFFLOAD_NONE;
        offload_d = i & 2 ? CLT_OFFLOAD_PARAMETERS : CLT_OFFLOAD_NONE;
        each_trains_its_own(state);
        either_may_go_first(state);
    }
    offload_g = offload_d = CLT_OFFLOAD_AUTO;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_trains_its_own),
        cmocka_unit_test(either_may_go_first),
        cmocka_unit_test(each_in_the_host),
        cmocka_unit_test(checkpoints_go_on),
        cmocka_unit_test(refusals),
        cmocka_unit_test(a_trainer_that_failed_leaves_nothing),
        cmocka_unit_test(averages_are_in_the_place_of_all),
    };
    return cmocka_run_group_tests_name("shares", tests, open_all, close_all);
}
