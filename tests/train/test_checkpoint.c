#include "tests/support.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include <cltrain/cltrain.h>

#include "runtime/base/file.h"
#include "runtime/train/safetensors.h"

enum { BATCH = 32, HIDDEN = 24 };

static clt_device *device;
static clt_dataset *digits;

static int open_all(void **state) {
    (void)state;
    assert_ok(clt_device_open(&device, NULL));
    assert_ok(clt_dataset_digits(&digits));
    return 0;
}

static int close_all(void **state) {
    (void)state;
    clt_dataset_destroy(digits);
    clt_device_close(device);
    return 0;
}

/* A network with a buffer (batch norm) and random numbers (dropout). */
typedef struct model {
    clt_graph *graph;
    clt_trainer *trainer;
    clt_loader *loader;
} model;

static model make(int hidden, clt_train_options options) {
    model m;
    if (!options.seed) options.seed = 4;
    assert_ok(clt_graph_create(&m.graph));
    clt_tensor *x = clt_input(m.graph, "image", CLT_F32, CLT_SHAPE(BATCH, 1, 8, 8));
    clt_tensor *y = clt_input(m.graph, "label", CLT_I32, CLT_SHAPE(BATCH));
    clt_tensor *h = clt_linear(clt_flatten(x), "fc1", hidden);
    h = clt_dropout(clt_relu(clt_batch_norm(h, "bn")), 0.3f);
    assert_ok(clt_trainer_create(&m.trainer, device, clt_cross_entropy(clt_linear(h, "fc2", 10), y), &options));
    assert_ok(clt_loader_create(&m.loader, digits, &(clt_loader_options){.batch = BATCH, .shuffle = true, .seed = options.seed + 5, .drop_last = true}));
    return m;
}

static void destroy(model *m) {
    clt_trainer_destroy(m->trainer);
    clt_loader_destroy(m->loader);
    clt_graph_destroy(m->graph);
}

static void train(model *m, int batches) {
    clt_batch batch;
    while (batches > 0) {
        clt_status status = clt_loader_next(m->loader, &batch);
        if (status == CLT_END) continue;
        assert_ok(status);
        assert_ok(clt_trainer_step(m->trainer, &batch));
        batches--;
    }
}

static void assert_same_files(const char *a, const char *b) {
    void *x, *y;
    size_t n, k;
    assert_ok(clt_file_read(a, 1 << 26, &x, &n));
    assert_ok(clt_file_read(b, 1 << 26, &y, &k));
    assert_int_equal(n, k);
    assert_memory_equal(x, y, n);
    clt_free(x);
    clt_free(y);
}

/* Stopped in the middle of an epoch and gone on with in another trainer: the same bytes as without. */
static void resumed(clt_train_options options, int before, int after) {
    const char *half = support_path("half"), *whole = support_path("whole"), *joined = support_path("joined");
    model m = make(HIDDEN, options);
    train(&m, before);
    assert_ok(clt_checkpoint_save(m.trainer, m.loader, half));
    train(&m, after);
    assert_ok(clt_checkpoint_save(m.trainer, m.loader, whole));
    destroy(&m);
    options.seed = 1000; /* the file's own counts, as all that was there is replaced */
    m = make(HIDDEN, options);
    train(&m, 3);
    assert_ok(clt_checkpoint_load(m.trainer, m.loader, half));
    train(&m, after);
    assert_ok(clt_checkpoint_save(m.trainer, m.loader, joined));
    destroy(&m);
    assert_same_files(whole, joined);
}

static void resuming_gives_the_same_bytes(void **state) {
    (void)state;
    resumed((clt_train_options){.optimizer = CLT_ADAMW}, 70, 25);
    resumed((clt_train_options){.optimizer = CLT_SGD, .momentum = 0.9f, .nesterov = true}, 20, 45);
    resumed((clt_train_options){.optimizer = CLT_ADAM, .accumulate = 3, .clip_norm = 1}, 22, 20); /* between updates */
    resumed((clt_train_options){.optimizer = CLT_SGD, .schedule = CLT_SCHEDULE_COSINE, .total_steps = 60}, 30, 30);
}

/* ---- refusals: the trainer stays as it was ---- */

static void refused(model *m, const char *path, clt_status status, const char *words) {
    const char *before = support_path("before"), *now = support_path("now");
    assert_ok(clt_checkpoint_save(m->trainer, m->loader, before));
    assert_status(clt_checkpoint_load(m->trainer, m->loader, path), status);
    assert_detail(words);
    assert_ok(clt_checkpoint_save(m->trainer, m->loader, now));
    assert_same_files(before, now);
}

static const char *saved(int hidden, clt_train_options options, const char *name) {
    static char path[4096];
    model m = make(hidden, options);
    strncpy(path, support_path(name), sizeof path - 1);
    train(&m, 4);
    assert_ok(clt_checkpoint_save(m.trainer, m.loader, path));
    destroy(&m);
    return path;
}

static void other_models_are_refused(void **state) {
    (void)state;
    model m = make(HIDDEN, (clt_train_options){.optimizer = CLT_ADAM});
    train(&m, 4);
    refused(&m, saved(HIDDEN + 1, (clt_train_options){.optimizer = CLT_ADAM}, "wide"), CLT_E_MISMATCH, "\"fc1.weight\"");
    refused(&m, saved(HIDDEN, (clt_train_options){.optimizer = CLT_SGD}, "sgd"), CLT_E_MISMATCH, "sgd");
    refused(&m, saved(HIDDEN, (clt_train_options){.optimizer = CLT_ADAM, .accumulate = 2}, "two"), CLT_E_MISMATCH, "micro-batches");
    refused(&m, support_path("missing"), CLT_E_IO, "missing");
    support_write(support_path("noise"), "not a checkpoint", 16);
    refused(&m, support_path("noise"), CLT_E_FORMAT, "noise");
    destroy(&m);
}

static void write_tensors(const char *path, const char *const *names, int n) {
    clt_safetensors_writer *writer;
    clt_safetensors_entry entries[8] = {0};
    float zeros[HIDDEN * 64] = {0};
    for (int i = 0; i < n; i++) {
        clt_shape shape = {.rank = 1, .dims = {HIDDEN}};
        if (!strcmp(names[i], "fc1.weight")) shape = CLT_SHAPE(HIDDEN, 64);
        if (!strcmp(names[i], "fc2.weight")) shape = CLT_SHAPE(10, HIDDEN);
        if (!strcmp(names[i], "fc2.bias")) shape = CLT_SHAPE(10);
        entries[i] = (clt_safetensors_entry){.name = names[i], .dtype = CLT_SAFETENSORS_F32, .shape = shape};
    }
    assert_ok(clt_safetensors_writer_open(&writer, path, entries, (size_t)n, NULL, 0));
    for (int i = 0; i < n; i++)
        assert_ok(clt_safetensors_writer_write(writer, zeros, (size_t)clt_shape_elements(&entries[i].shape) * sizeof(float)));
    assert_ok(clt_safetensors_writer_commit(writer));
}

static void weights_alone(void **state) {
    (void)state;
    const char *const names[] = {"fc1.weight", "fc1.bias", "bn.weight", "bn.bias", "bn.running_mean", "bn.running_var",
                                 "fc2.weight", "fc2.bias"};
    model m = make(HIDDEN, (clt_train_options){.optimizer = CLT_ADAM});
    float bias[10];
    train(&m, 4);
    write_tensors(support_path("seven"), names, 7);
    refused(&m, support_path("seven"), CLT_E_MISMATCH, "\"fc2.bias\"");
    write_tensors(support_path("eight"), names, 8);
    assert_ok(clt_checkpoint_load(m.trainer, NULL, support_path("eight")));
    assert_ok(clt_trainer_get(m.trainer, "fc2.bias", bias, 10));
    for (int i = 0; i < 10; i++) assert_true(bias[i] == 0);
    assert_int_equal(clt_trainer_steps(m.trainer), 4); /* the rest stays */
    /* What weights_save writes has these names and PyTorch's counter, and nothing else. */
    clt_safetensors *file;
    assert_ok(clt_weights_save(m.trainer, support_path("export")));
    assert_ok(clt_safetensors_open(&file, support_path("export")));
    assert_int_equal(clt_safetensors_count(file), 9);
    for (int i = 0; i < 8; i++) assert_non_null(clt_safetensors_find(file, names[i]));
    assert_non_null(clt_safetensors_find(file, "bn.num_batches_tracked"));
    clt_safetensors_close(file);
    destroy(&m);
}

static void note_left_out(clt_left_out what, const char *name, const char *words, void *user) {
    static const char *const kinds[] = {"missing", "over", "misfit"};
    assert_true(words[0] != 0);
    clt_text_add(user, "%s %s; ", kinds[what], name);
}

/* From another network's weights what fits is taken, and the rest is told. */
static void weights_that_match(void **state) {
    (void)state;
    model m = make(HIDDEN, (clt_train_options){.optimizer = CLT_ADAM});
    clt_text told = {0};
    float own[HIDDEN * 64], bias[HIDDEN], before[10], now[10];
    train(&m, 4);
    assert_ok(clt_trainer_get(m.trainer, "fc1.weight", own, HIDDEN * 64));
    assert_ok(clt_trainer_get(m.trainer, "fc2.bias", before, 10));
    write_tensors(support_path("other"), (const char *const[]){"fc1.bias", "bn.weight", "bn.num_batches_tracked", "head", "cltrain.optimizer.exp_avg.x"}, 5);
    assert_ok(clt_weights_load_matching(m.trainer, support_path("other"), note_left_out, &told));
    assert_string_equal(clt_text_data(&told), "over head; missing fc1.weight; missing bn.bias; missing bn.running_mean; missing bn.running_var; "
                                              "missing fc2.weight; missing fc2.bias; ");
    assert_ok(clt_trainer_get(m.trainer, "fc1.bias", bias, HIDDEN));
    for (int i = 0; i < HIDDEN; i++) assert_true(bias[i] == 0);
    assert_ok(clt_trainer_get(m.trainer, "fc2.bias", now, 10));
    assert_memory_equal(now, before, sizeof now);
    assert_int_equal(clt_trainer_steps(m.trainer), 4);
    /* A checkpoint of a wider network has the last bias alone like this one. */
    clt_text_free(&told);
    const char *wide = saved(HIDDEN + 1, (clt_train_options){.optimizer = CLT_SGD}, "wide");
    assert_ok(clt_weights_load_matching(m.trainer, wide, note_left_out, &told));
    assert_string_equal(clt_text_data(&told), "misfit fc1.weight; misfit fc1.bias; misfit bn.weight; misfit bn.bias; misfit bn.running_mean; "
                                              "misfit bn.running_var; misfit fc2.weight; ");
    float kept[HIDDEN * 64];
    assert_ok(clt_trainer_get(m.trainer, "fc1.weight", kept, HIDDEN * 64));
    assert_memory_equal(kept, own, sizeof own);
    assert_ok(clt_trainer_get(m.trainer, "fc2.bias", now, 10));
    assert_memory_not_equal(now, before, sizeof now);
    clt_text_free(&told);
    /* Nothing fits: nothing is changed. */
    write_tensors(support_path("none"), (const char *const[]){"fc2.weights"}, 1);
    assert_status(clt_weights_load_matching(m.trainer, support_path("none"), NULL, NULL), CLT_E_MISMATCH);
    assert_detail("no tensor with a name, shape and type of the model's");
    assert_status(clt_weights_load_matching(m.trainer, support_path("missing"), NULL, NULL), CLT_E_IO);
    assert_status(clt_weights_load_matching(NULL, "x", NULL, NULL), CLT_E_INVALID);
    destroy(&m);
}

static bool reading_fails;

static clt_status read_twos(void *user, int64_t first, int64_t count, float *values) {
    (void)user, (void)first;
    for (int64_t i = 0; i < count; i++) values[i] = 2;
    return reading_fails ? clt_fail(CLT_E_IO, "gone") : CLT_OK;
}

/* It is in neither file, files without it load, and it keeps its value over a load. Where it cannot begin anew, nothing is loaded. */
static void unsaved_buffers(void **state) {
    (void)state;
    clt_graph *graph;
    clt_trainer *t;
    float value = 5, found = 0;
    assert_ok(clt_graph_create(&graph));
    clt_tensor *x = clt_input(graph, "x", CLT_F32, CLT_SHAPE(2, 3)), *w = clt_parameter(graph, "w", CLT_SHAPE(3), (clt_init){CLT_INIT_CONSTANT, 1, 0});
    clt_init two = {CLT_INIT_CONSTANT, 2, 0};
    clt_tensor *scratch = clt_buffer_with(graph, "scratch", CLT_SHAPE(1), (clt_init){CLT_INIT_READ, .read = read_twos}, (clt_buffer_options){.unsaved = true});
    clt_tensor *saved_too = clt_buffer(graph, "kept", CLT_SHAPE(1), two);
    clt_tensor *loss = clt_mean(clt_mul(clt_mul(clt_mul(x, w), scratch), saved_too), CLT_ALL_AXES);
    assert_ok(clt_trainer_create(&t, device, loss, NULL));
    assert_ok(clt_trainer_get(t, "scratch", &found, 1));
    assert_true(found == 2);
    assert_ok(clt_trainer_set(t, "scratch", &value, 1));
    for (int weights = 0; weights < 2; weights++) {
        clt_safetensors *file;
        assert_ok(weights ? clt_weights_save(t, support_path("unsaved")) : clt_checkpoint_save(t, NULL, support_path("unsaved")));
        assert_ok(clt_safetensors_open(&file, support_path("unsaved")));
        assert_null(clt_safetensors_find(file, "scratch"));
        assert_non_null(clt_safetensors_find(file, "kept"));
        clt_safetensors_close(file);
        assert_ok(weights ? clt_weights_load(t, support_path("unsaved")) : clt_checkpoint_load(t, NULL, support_path("unsaved")));
        assert_ok(clt_trainer_get(t, "scratch", &found, 1));
        assert_true(found == (weights ? 5 : 2)); /* a training that goes on begins with the first values */
        assert_ok(clt_trainer_set(t, "scratch", &value, 1));
    }
    assert_ok(clt_checkpoint_save(t, NULL, support_path("unsaved")));
    assert_ok(clt_trainer_set(t, "kept", &value, 1));
    reading_fails = true;
    assert_status(clt_checkpoint_load(t, NULL, support_path("unsaved")), CLT_E_IO);
    assert_detail("first values of \"scratch\": gone");
    assert_ok(clt_trainer_get(t, "kept", &found, 1));
    assert_true(found == 5);
    assert_ok(clt_trainer_step(t, &(clt_batch){.samples = 2, .n_fields = 1, .fields = {{CLT_F32, CLT_SHAPE(2, 3), (float[6]){0}}}}));
    reading_fails = false;
    assert_ok(clt_checkpoint_load(t, NULL, support_path("unsaved")));
    clt_trainer_destroy(t);
    clt_graph_destroy(graph);
}

/* Numbers that no run can have written, and that would overflow where they are used. */
static void hostile_metadata_is_refused(void **state) {
    (void)state;
    static const char *const bad[][2] = {{"cltrain.steps", "4611686018427387903"}, {"cltrain.steps", "-1"},
                                         {"cltrain.steps", "1e3"}, {"cltrain.micro", "4"},
                                         {"cltrain.seed", "18446744073709551616"}, {"cltrain.loader.seed", "1"},
                                         {"cltrain.format", "cltrain/99"}, {"cltrain.steps", "70368744177664"},
                                         {"cltrain.steps", "+3"}, {"cltrain.accumulate", "0"}, {"cltrain.skipped", "4"}, {"cltrain.optimizer", "rprop"}};
    model m = make(HIDDEN, (clt_train_options){.optimizer = CLT_SGD, .accumulate = 4});
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        clt_safetensors_pair pairs[7] = {{"cltrain.format", "cltrain/1"}, {"cltrain.optimizer", "sgd"},
                                         {"cltrain.steps", "3"}, {"cltrain.accumulate", "4"}, {"cltrain.micro", "0"},
                                         {"cltrain.seed", "1"}, {"unused", "1"}};
        size_t k = 0;
        while (k < 6 && strcmp(pairs[k].key, bad[i][0])) k++;
        pairs[k] = (clt_safetensors_pair){bad[i][0], bad[i][1]};
        clt_safetensors_writer *writer;
        assert_ok(clt_safetensors_writer_open(&writer, support_path("bad"), NULL, 0, pairs, 7));
        assert_ok(clt_safetensors_writer_commit(writer));
        refused(&m, support_path("bad"), CLT_E_FORMAT, i == 5 ? "cltrain.loader" : bad[i][0][8] == 'f' ? "cltrain/99" : bad[i][0]);
    }
    destroy(&m);
}

static void a_tensor_left_over_is_refused(void **state) {
    (void)state;
    const char *const names[] = {"fc1.bias", "extra"};
    clt_graph *graph;
    clt_trainer *trainer;
    assert_ok(clt_graph_create(&graph));
    clt_tensor *x = clt_input(graph, "x", CLT_F32, CLT_SHAPE(2, HIDDEN));
    clt_tensor *bias = clt_parameter(graph, "fc1.bias", CLT_SHAPE(HIDDEN), (clt_init){0});
    assert_ok(clt_trainer_create(&trainer, device, clt_mean(clt_add(x, bias), CLT_ALL_AXES), NULL));
    write_tensors(support_path("extra"), names, 2);
    assert_status(clt_checkpoint_load(trainer, NULL, support_path("extra")), CLT_E_MISMATCH);
    assert_detail("\"extra\"");
    clt_trainer_destroy(trainer);
    clt_graph_destroy(graph);
}

/* A disk that is full in the middle of writing: an error, and the old file is whole. */
static void a_full_disk_keeps_the_old_file(void **state) {
    (void)state;
    model m = make(HIDDEN, (clt_train_options){.optimizer = CLT_ADAM});
    const char *path = support_path("kept"), *copy = support_path("copy");
    struct rlimit old, tight;
    train(&m, 2);
    assert_ok(clt_checkpoint_save(m.trainer, m.loader, path));
    assert_ok(clt_checkpoint_save(m.trainer, m.loader, copy));
    train(&m, 2);
    assert_ok(clt_trainer_wait(m.trainer)); /* the driver may still be compiling, into files */
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
    tight = old;
    tight.rlim_cur = 5000;
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &tight), 0);
    clt_status status = clt_checkpoint_save(m.trainer, m.loader, path);
    setrlimit(RLIMIT_FSIZE, &old);
    assert_int_equal(status, CLT_E_IO);
    assert_same_files(path, copy);
    assert_status(clt_checkpoint_save(m.trainer, m.loader, support_path("no/such/folder")), CLT_E_IO);
    assert_detail("no/such/folder");
    assert_status(clt_checkpoint_save(m.trainer, m.loader, ""), CLT_E_IO);
    assert_detail("path is empty");
    assert_status(clt_checkpoint_load(m.trainer, m.loader, ""), CLT_E_IO);
    assert_detail("path is empty");
    destroy(&m);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(resuming_gives_the_same_bytes),
        cmocka_unit_test(other_models_are_refused),
        cmocka_unit_test(weights_alone),
        cmocka_unit_test(weights_that_match),
        cmocka_unit_test(unsaved_buffers),
        cmocka_unit_test(hostile_metadata_is_refused),
        cmocka_unit_test(a_tensor_left_over_is_refused),
        cmocka_unit_test(a_full_disk_keeps_the_old_file),
    };
    return cmocka_run_group_tests(tests, open_all, close_all);
}
