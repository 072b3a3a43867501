#define _POSIX_C_SOURCE 200809L /* setenv, mkdir */
#include "tests/support.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <cltrain/cltrain.h>

#include "runtime/device/kernel_source.h"
#include "runtime/device/settings.h"
#include "runtime/exec/plan.h"
#include "runtime/train/trainer.h"

/* ---- each setting: the variable, a value of it and another, and what is wrong with a third (NULL: that is seen later) ---- */

typedef struct setting {
    const char *variable;
    size_t at;
    const char *value, *other, *wrong, *message;
} setting;

#define FIELD(name) offsetof(clt_settings, name)
static const setting all[] = {
    {"CLTRAIN_DEVICE", FIELD(device), "gpu", "cpu", NULL, NULL},
    {"CLTRAIN_CLASS", FIELD(device_class), "gpu", "cpu", "GPU", "there is no \"GPU\": there are cpu, gpu"},
    {"CLTRAIN_CAPS_OFF", FIELD(capabilities_off), "fp16", "fp64,subgroups", "fp16,half", "there is no \"half\": there are fp16, fp64"},
    {"CLTRAIN_CAPS_OFF", FIELD(capabilities_off), "groups", "fp16", "-fp16", "there is no \"-fp16\""},
    {"CLTRAIN_MATMUL_PRECISION", FIELD(matmul_precision), "tf32", "f32", "fp16", "there is no \"fp16\": there are f32, tf32, bf16, f16"},
    {"CLTRAIN_BACKENDS", FIELD(backends), "reference", "-native", NULL, NULL},
    {"CLTRAIN_PASSES", FIELD(passes), "none", "-fuse", NULL, NULL},
    {"CLTRAIN_TUNE", FIELD(tune), "off", "full", "none", "there is no \"none\": there are off, quick, full"},
    {"CLTRAIN_MEMORY_LIMIT", FIELD(memory_limit), "2G", "512MiB", "2X", "is '2X': expected a size, such as 512M or 2G"},
    {"CLTRAIN_PROGRAM_CACHE", FIELD(program_cache), "off", "on", "of", "there is no \"of\": there are on, off"},
    {"CLTRAIN_KERNEL_FOLDER", FIELD(kernel_folder), "/", "/usr", "/dev/null", "/dev/null is not a folder"},
};

static const char **field_of(clt_settings *s, const setting *one) {
    return (void *)((char *)s + one->at);
}

static int clear(void **state) {
    (void)state;
    for (size_t i = 0; i < CLT_COUNT_OF(all); i++) unsetenv(all[i].variable);
    return unsetenv("CLTRAIN_DEVICE_TIMEOUT");
}

/* Fails unless the field has the value, and all others are their defaults. */
static void assert_resolved(const clt_settings *given, const setting *one, const char *value) {
    clt_settings s;
    char *texts;
    assert_ok(clt_settings_resolve(given, &s, &texts));
    for (size_t i = 0; i < CLT_COUNT_OF(all); i++) assert_string_equal(*field_of(&s, &all[i]), all[i].at == one->at ? value : "");
    clt_free(texts);
}

static void assert_wrong(const clt_settings *given, const char *name, const char *message) {
    clt_settings s;
    char *texts;
    clt_device *device = NULL;
    assert_status(clt_settings_resolve(given, &s, &texts), CLT_E_INVALID);
    assert_detail(name);
    assert_detail(message);
    assert_status(clt_device_open_with(&device, given), CLT_E_INVALID);
    assert_detail(name);
    assert_null(device);
}

static void each_is_taken_from_c_or_else_from_the_environment(void **state) {
    (void)state;
    for (size_t i = 0; i < CLT_COUNT_OF(all); i++) {
        const setting *one = &all[i];
        clt_settings given = {0};
        clear(NULL);
        assert_resolved(NULL, one, "");
        setenv(one->variable, "", 1);
        assert_resolved(&given, one, "");
        setenv(one->variable, one->value, 1);
        assert_resolved(NULL, one, one->value);
        assert_resolved(&given, one, one->value);
        *field_of(&given, one) = one->other;
        assert_resolved(&given, one, one->other);
        *field_of(&given, one) = ""; /* the default, whatever the environment says */
        assert_resolved(&given, one, "");
        if (!one->wrong) continue;
        setenv(one->variable, one->wrong, 1);
        assert_resolved(&given, one, ""); /* what is not asked for cannot be wrong */
        assert_wrong(NULL, one->variable, one->message);
        *field_of(&given, one) = one->wrong;
        unsetenv(one->variable);
        assert_wrong(&given, "settings.", one->message);
    }
}

static void assert_cache(const char *xdg, const char *home, const char *given, const char *wanted) {
    clt_settings s;
    char *texts;
    if (xdg) setenv("XDG_CACHE_HOME", xdg, 1);
    else unsetenv("XDG_CACHE_HOME");
    if (home) setenv("HOME", home, 1);
    else unsetenv("HOME");
    assert_ok(clt_settings_resolve(&(clt_settings){.cache_folder = given}, &s, &texts));
    assert_string_equal(s.cache_folder, wanted);
    clt_free(texts);
}

static void the_folder_of_the_cache(void **state) {
    (void)state;
    assert_cache("/xdg", "/home/me", NULL, "/xdg/cltrain");
    assert_cache(NULL, "/home/me", NULL, "/home/me/.cache/cltrain");
    assert_cache("relative", "/home/me", NULL, "/home/me/.cache/cltrain"); /* to be ignored, by the XDG specification */
    assert_cache("", "/home/me", "", "/home/me/.cache/cltrain");
    assert_cache(NULL, NULL, NULL, "");
    assert_cache(NULL, "relative", NULL, "");
    assert_cache("/xdg", "/home/me", "/own", "/own");
    assert_wrong(&(clt_settings){.cache_folder = "own"}, "settings.cache_folder", "is 'own': expected an absolute path");
}

/* Of a program that is new: what one device built, another loads if they have one folder. */
static void devices_have_caches_of_their_own(void **state) {
    (void)state;
    static const struct { const char *folder; int loaded; } turns[] = {{"one", 0}, {"two", 0}, {"one", 1}, {"two", 1}, {"three", 0}};
    clt_module module = {"kernel void kept_here(global float *x) { x[0] = 7; }\n", true, "kept.cl"};
    for (size_t i = 0; i < CLT_COUNT_OF(turns); i++) {
        clt_device *device;
        assert_ok(clt_device_open_with(&device, &(clt_settings){.cache_folder = support_path(turns[i].folder), .program_cache = "on"}));
        assert_ok(clt_device_build(device, &module, 1));
        assert_int_equal(clt_device_build_counts(device).loaded, turns[i].loaded);
        clt_device_close(device);
    }
}

static void assert_timeout(double given, double wanted) {
    clt_settings s;
    char *texts;
    assert_ok(clt_settings_resolve(&(clt_settings){.timeout_seconds = given}, &s, &texts));
    assert_true(s.timeout_seconds == wanted);
    clt_free(texts);
}

static void timeouts(void **state) {
    (void)state;
    static const char *const wrong[] = {"soon", "-1", "inf", "nan", "1 s"};
    assert_timeout(0, INFINITY);
    assert_timeout(2.5, 2.5);
    setenv("CLTRAIN_DEVICE_TIMEOUT", "7.5", 1);
    assert_timeout(0, 7.5);
    assert_timeout(2.5, 2.5);
    assert_timeout(INFINITY, INFINITY);
    setenv("CLTRAIN_DEVICE_TIMEOUT", "0", 1);
    assert_timeout(0, INFINITY);
    for (size_t i = 0; i < CLT_COUNT_OF(wrong); i++) {
        char message[64];
        snprintf(message, sizeof message, "CLTRAIN_DEVICE_TIMEOUT=%s is not a number of seconds", wrong[i]);
        setenv("CLTRAIN_DEVICE_TIMEOUT", wrong[i], 1);
        assert_wrong(NULL, "CLTRAIN_DEVICE_TIMEOUT", message);
        assert_timeout(3, 3);
    }
    assert_wrong(&(clt_settings){.timeout_seconds = -1}, "settings.timeout_seconds", "is -1");
    assert_wrong(&(clt_settings){.timeout_seconds = NAN}, "settings.timeout_seconds", "nan");
}

static void a_device_is_selected_by_the_environment(void **state) {
    (void)state;
    static clt_device_info infos[2] = {{.id = "a", .name = "Radeon"}, {.id = "b", .name = "Stratix"}};
    size_t chosen = 9;
    setenv("CLTRAIN_DEVICE", "stratix", 1);
    assert_ok(clt_device_select(infos, 2, NULL, &chosen));
    assert_int_equal(chosen, 1);
    assert_ok(clt_device_select(infos, 2, "radeon", &chosen));
    assert_int_equal(chosen, 0);
    clt_device *device;
    setenv("CLTRAIN_DEVICE", "no such device", 1);
    assert_status(clt_device_open(&device, NULL), CLT_E_NO_DEVICE);
    assert_detail("no such device");
    assert_ok(clt_device_open_with(&device, &(clt_settings){.device = ""}));
    clt_device_close(device);
}

/* ---- of devices that are open ---- */

static void settings_are_fixed_when_the_device_is_opened(void **state) {
    (void)state;
    char text[] = "fp64";
    clt_device *device, *again;
    setenv("CLTRAIN_CLASS", "gpu", 1);
    assert_ok(clt_device_open_with(&device, &(clt_settings){.capabilities_off = text, .tune = "off", .timeout_seconds = 900}));
    strcpy(text, "fp16"); /* it has a copy */
    setenv("CLTRAIN_CLASS", "cpu", 1);
    setenv("CLTRAIN_TUNE", "none", 1); /* which nobody asks for any more */
    assert_int_equal(clt_device_get_class(device), CLT_CLASS_GPU);
    assert_string_equal(clt_device_lacks(device, CLT_CAP_FP64), "masked by CLTRAIN_CAPS_OFF");
    assert_ok(clt_device_open_again(device, &again)); /* for trials: as the first one is */
    assert_int_equal(clt_device_get_class(again), CLT_CLASS_GPU);
    assert_false(clt_device_has(again, CLT_CAP_FP64));
    assert_string_equal(clt_device_settings(again)->tune, "off");
    assert_true(clt_device_settings(again)->timeout_seconds == 900);
    clt_device_close(device); /* each has texts of its own */
    assert_false(clt_device_has(again, CLT_CAP_FP64));
    clt_device_close(again);
}

static const char *row_of(clt_device *device, const char *backends) {
    clt_graph *graph;
    clt_state_store *store;
    clt_plan *plan;
    size_t n;
    assert_ok(clt_graph_create(&graph));
    assert_ok(clt_state_store_create(device, &store));
    clt_tensor *y = clt_matmul(clt_input(graph, "a", CLT_F32, CLT_SHAPE(64, 64)), clt_input(graph, "b", CLT_F32, CLT_SHAPE(64, 64)));
    assert_ok(clt_plan_compile(&plan, &(clt_plan_options){.device = device, .store = store, .graph = graph, .targets = &y,
                                                          .n_targets = 1, .backends = backends}));
    const clt_plan_item *items = clt_plan_items(plan, &n);
    assert_int_equal(n, 1);
    const char *name = items[0].choice.row->name;
    clt_plan_destroy(plan);
    clt_state_store_destroy(store);
    clt_graph_destroy(graph);
    return name;
}

static void devices_of_a_process_differ(void **state) {
    (void)state;
    clt_device *plain, *usual;
    assert_ok(clt_device_open_with(&plain, &(clt_settings){.backends = "reference", .device_class = "gpu", .tune = "off"}));
    assert_ok(clt_device_open_with(&usual, &(clt_settings){.device_class = "gpu", .tune = "off"}));
    assert_string_equal(row_of(plain, NULL), "reference");
    assert_string_equal(row_of(usual, NULL), "native");
    assert_string_equal(row_of(plain, "native"), "native"); /* a plan's own go before the device's */
    assert_string_equal(row_of(usual, "-native"), "reference");
    assert_string_equal(row_of(plain, NULL), "reference");
    assert_string_equal(row_of(usual, NULL), "native");
    clt_device_close(plain);
    clt_device_close(usual);
}

static void write_kernel(const char *folder, const char *text) {
    char path[9000];
    assert_int_equal(mkdir(folder, 0777), 0);
    snprintf(path, sizeof path, "%s/prelude.cl", folder);
    support_write(path, text, strlen(text));
}

static void devices_have_folders_of_kernels_of_their_own(void **state) {
    (void)state;
    clt_device *one, *two, *none;
    const char *a = support_path("a"), *b = support_path("b");
    write_kernel(a, "of a"), write_kernel(b, "of b");
    assert_ok(clt_device_open_with(&one, &(clt_settings){.kernel_folder = a}));
    assert_ok(clt_device_open_with(&two, &(clt_settings){.kernel_folder = b}));
    assert_ok(clt_device_open(&none, NULL));
    for (int round = 0; round < 2; round++) {
        const char *text = clt_kernel_source_find(one, "prelude.cl");
        assert_string_equal(text, "of a");
        assert_ptr_equal(text, clt_kernel_source_find(one, "prelude.cl")); /* modules are known by where their text lies */
        assert_string_equal(clt_kernel_source_find(two, "prelude.cl"), "of b");
        assert_true(strlen(clt_kernel_source_find(none, "prelude.cl")) > 100);
        assert_ptr_equal(clt_kernel_source_find(one, "matrix/unit.cl"), clt_kernel_source_find(none, "matrix/unit.cl"));
    }
    clt_device_close(one), clt_device_close(two), clt_device_close(none);
}

/* ---- of a trainer ---- */

enum { BATCH = 8, WIDTH = 64 };

/* How many nodes of the newest plan are served by the reference, and by all. */
typedef struct rows_counted {
    size_t reference, all;
} rows_counted;

static rows_counted count_rows(const clt_trainer *t) {
    rows_counted counted = {0};
    const clt_plan_item *items = clt_plan_items(t->plans[t->n_plans - 1]->plan, &counted.all);
    for (size_t i = 0; i < counted.all; i++) counted.reference += strcmp(items[i].choice.row->name, "reference") == 0;
    return counted;
}

static void step(clt_trainer *t, int64_t samples) {
    static float x[BATCH * WIDTH];
    clt_batch batch = {.samples = samples, .n_fields = 1, .fields = {{CLT_F32, CLT_SHAPE(samples, WIDTH), x}}};
    assert_ok(clt_trainer_step(t, &batch));
}

static void trainers_of_a_device_differ(void **state) {
    (void)state;
    clt_device *device;
    clt_graph *graph;
    clt_trainer *usual, *plain;
    char backends[] = "reference", passes[] = "none";
    assert_ok(clt_device_open_with(&device, &(clt_settings){.device_class = "gpu", .tune = "off"}));
    assert_ok(clt_graph_create(&graph));
    clt_tensor *x = clt_input(graph, "x", CLT_F32, CLT_SHAPE(BATCH, WIDTH));
    clt_tensor *loss = clt_mean(clt_relu(clt_linear(x, "fc", WIDTH)), CLT_ALL_AXES);
    assert_ok(clt_trainer_create(&usual, device, loss, NULL));
    assert_ok(clt_trainer_create(&plain, device, loss, &(clt_train_options){.backends = backends, .passes = passes}));
    memset(backends, 'x', strlen(backends)), memset(passes, 'x', strlen(passes)); /* it has copies */
    rows_counted of_usual = count_rows(usual), of_plain = count_rows(plain);
    assert_true(of_usual.reference < of_usual.all);
    assert_int_equal(of_plain.reference, of_plain.all);
    assert_true(of_plain.all > of_usual.all); /* nothing is fused */
    step(plain, BATCH / 2); /* a plan of its own, as the first */
    rows_counted of_small = count_rows(plain);
    assert_int_equal(of_small.reference, of_plain.all);
    assert_int_equal(of_small.all, of_plain.all);
    clt_trainer_destroy(plain);
    clt_trainer_destroy(usual);
    assert_status(clt_trainer_create(&plain, device, loss, &(clt_train_options){.backends = "referense"}), CLT_E_INVALID);
    assert_detail("options.backends: there is no \"referense\"");
    assert_status(clt_trainer_create(&plain, device, loss, &(clt_train_options){.passes = "fusion"}), CLT_E_INVALID);
    assert_detail("options.passes: there is no \"fusion\"");
    clt_graph_destroy(graph);
    clt_device_close(device);
}

/* ---- what nothing reads ---- */

static int warnings;
static char last[1024];
static void keep_warning(clt_log_level level, const char *message, void *user) {
    (void)user;
    warnings += level == CLT_LOG_WARNING && strstr(message, "is set, but");
    snprintf(last, sizeof last, "%s", message);
}

static void a_variable_that_nothing_reads_is_told_once(void **state) {
    (void)state;
    const char *const fine[] = {"CLTRAIN_COMM_JOB", "CLTRAIN_DRIVERS", "CLTRAIN_TUNE", "CLTRAIN"};
    for (size_t i = 0; i < CLT_COUNT_OF(fine); i++) setenv(fine[i], "off", 1);
    setenv("CLTRAIN_BACKEND", "native", 1);
    clt_log_set(keep_warning, CLT_LOG_WARNING, NULL);
    for (int i = 0; i < 2; i++) {
        clt_settings s;
        char *texts;
        assert_ok(clt_settings_resolve(NULL, &s, &texts));
        clt_free(texts);
        assert_int_equal(warnings, 1);
    }
    clt_log_set(NULL, CLT_LOG_WARNING, NULL);
    assert_non_null(strstr(last, "CLTRAIN_BACKEND is set"));
    assert_non_null(strstr(last, "CLTRAIN_BACKENDS, "));
    for (size_t i = 0; i < CLT_COUNT_OF(fine); i++) unsetenv(fine[i]);
    unsetenv("CLTRAIN_BACKEND");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(a_variable_that_nothing_reads_is_told_once, clear),
        cmocka_unit_test_setup(each_is_taken_from_c_or_else_from_the_environment, clear),
        cmocka_unit_test_setup(timeouts, clear),
        cmocka_unit_test_setup(devices_have_caches_of_their_own, clear),
        cmocka_unit_test_setup(a_device_is_selected_by_the_environment, clear),
        cmocka_unit_test_setup(settings_are_fixed_when_the_device_is_opened, clear),
        cmocka_unit_test_setup(devices_of_a_process_differ, clear),
        cmocka_unit_test_setup(devices_have_folders_of_kernels_of_their_own, clear),
        cmocka_unit_test_setup(trainers_of_a_device_differ, clear),
        cmocka_unit_test_setup(the_folder_of_the_cache, clear), /* last: the variables are gone then */
    };
    return cmocka_run_group_tests_name("settings", tests, NULL, NULL);
}
