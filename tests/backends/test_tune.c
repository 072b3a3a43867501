#define _POSIX_C_SOURCE 200809L /* setenv */
/*
 * Results of tuning: problems as text, the file and what may be in it, and which row they choose.
 */
#include "tests/support.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "backends/tune/shipped.h"
#include "backends/tune/tune.h"
#include "runtime/base/file.h"
#include "runtime/device/cl.h"

/* ---- rows of the test: for matrix products, and never run ---- */

static void lower_nothing(clt_lowering *l, const clt_tensor *node) {
    (void)l, (void)node;
}

static bool no_odd_pair(const clt_candidate *c, const int *parameters) {
    (void)c;
    return parameters[0] != 3 || parameters[1] != 1;
}

static bool not_for_thin(const clt_candidate *c) {
    return c->node->shape.dims[0] >= 4;
}

static const clt_tunable tunables[] = {{"tile", 3, {2, 3, 4}}, {"splits", 2, {1, 8}}, {0}};
static const clt_backend_row test_rows[] = {
    {.op = &clt_op_matmul, .name = "plain", .lower = lower_nothing},
    {.op = &clt_op_matmul, .name = "tiled", .supports = not_for_thin, .lower = lower_nothing,
     .tunables = tunables, .valid = no_odd_pair},
    {.op = &clt_op_matmul, .name = "tiled", .supports = not_for_thin, .lower = lower_nothing},
    {0},
};

/* ---- fixture ---- */

static clt_device *device;
static clt_graph *graph;
static int graphs;

/* What is shipped for this device would be in the way. */
static void open_device(void) {
    assert_ok(clt_device_open_with(&device, &(clt_settings){.backends = "", .tune = "quick"}));
    clt_tuning_results_free(&clt_tune_database_of(device)->shipped);
}

static int set_up(void **state) {
    (void)state;
    char name[64];
    snprintf(name, sizeof name, "cache%d", graphs++);
    setenv("XDG_CACHE_HOME", support_path(name), 1);
    clt_backend_more_rows = test_rows;
    open_device();
    assert_ok(clt_graph_create(&graph));
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    clt_backend_more_rows = NULL;
    clt_graph_destroy(graph);
    clt_device_close(device);
    return 0;
}

static void open_again(void) {
    clt_device_close(device);
    open_device();
}

static clt_tensor *product(int64_t m, int64_t k, int64_t n) {
    static int number;
    char a[32], b[32];
    snprintf(a, sizeof a, "a%d", number);
    snprintf(b, sizeof b, "b%d", number++);
    return clt_matmul(clt_input(graph, a, CLT_F32, CLT_SHAPE(m, k)), clt_input(graph, b, CLT_F32, CLT_SHAPE(k, n)));
}

static const char *key_of(const clt_tensor *node) {
    static char key[CLT_TUNE_KEY];
    assert_true(clt_tune_key(node, key));
    return key;
}

static clt_tuning_result result_on(const char *problem, const char *row, int tile, int splits) {
    clt_tuning_result v = {.effort = CLT_TUNE_QUICK, .tried = 3, .us = 10, .default_us = 20};
    snprintf(v.problem, sizeof v.problem, "%s", problem);
    snprintf(v.row, sizeof v.row, "%s", row);
    if (tile) {
        v.n_parameters = 2;
        strcpy(v.parameters[0].name, "tile");
        strcpy(v.parameters[1].name, "splits");
        v.parameters[0].value = tile;
        v.parameters[1].value = splits;
    }
    return v;
}

static void learn(const clt_tensor *node, const char *row, int tile, int splits) {
    clt_tuning_result v = result_on(key_of(node), row, tile, splits);
    assert_ok(clt_tuning_results_put(&clt_tune_database_of(device)->measured, &v));
}

/* ---- keys ---- */

static void problems_are_text(void **state) {
    (void)state;
    clt_tensor *a = clt_input(graph, "a", CLT_F32, CLT_SHAPE(128, 3072)), *b = clt_input(graph, "b", CLT_F32, CLT_SHAPE(1024, 3072));
    clt_tensor *x = clt_input(graph, "x", CLT_F32, CLT_SHAPE(64, 3, 32, 30)), *w = clt_input(graph, "w", CLT_F32, CLT_SHAPE(8, 3, 3, 5));
    clt_conv2d_attributes at = {3, 5, 1, 2, 1, 1, 1, 1, 1, {0}};
    assert_string_equal(key_of(clt_matmul_with(a, b, (clt_matmul_options){.transpose_b = true})),
                        "matmul 128x3072 1024x3072^T -> 128x1024");
    clt_tensor *y = clt_node(NULL, &clt_op_conv2d, &at, (clt_tensor *[]){x, w}, 2);
    assert_string_equal(key_of(y), "conv2d k3,5 s1,2 p1 d1 g1 64x3x32x30 8x3x3x5 -> 64x8x32x14");
    y->layout = CLT_LAYOUT_CHANNELS_LAST;
    assert_string_equal(key_of(y), "conv2d k3,5 s1,2 p1 d1 g1 64x3x32x30 8x3x3x5 -> 64x8x32x14:nhwc");
    char key[CLT_TUNE_KEY];
    assert_false(clt_tune_key(clt_relu(x), key)); /* its attributes have no words */
}

static void distance_is_of_dimensions_alone(void **state) {
    (void)state;
    const char *p = "matmul 128x64 64x32 -> 128x32";
    assert_true(clt_tune_distance(p, p) == 0);
    assert_float_equal(clt_tune_distance(p, "matmul 256x64 64x32 -> 256x32"), sqrt(2), 1e-6);
    assert_float_equal(clt_tune_distance(p, "matmul 128x64 64x4 -> 128x4"), 3 * sqrt(2), 1e-6);
    static const char *const others[] = {
        "matmul 128x64 64x32^T -> 128x32", "matmul 128x64:nhwc 64x32 -> 128x32", "matmul 128x64x1 64x32 -> 128x32",
        "matmu 128x64 64x32 -> 128x32",    "matmul 128x64 64x32 -> 128",         "matmul g2 128x64 64x32 -> 128x32",
        "",                                "matmul 0x64 64x32 -> 0x32",          "matmul 128x64 64x32 -> 128x32 ",
        "matmul 99999999999999999999999x64 64x32 -> x",
    };
    for (size_t i = 0; i < CLT_COUNT_OF(others); i++) assert_true(clt_tune_distance(p, others[i]) == INFINITY);
    assert_true(clt_tune_distance("conv2d k3 s1 8x8 -> 8", "conv2d k3 s2 8x8 -> 8") == INFINITY);
    assert_true(clt_tune_distance("embedding 8:i32 -> 8", "embedding 8:u8 -> 8") == INFINITY);
}

/* ---- choosing ---- */

static void check_choice(const clt_tensor *node, const char *row, int tile, int splits, clt_why why) {
    clt_reason reason;
    char id[CLT_TUNE_NAME];
    clt_choice choice = clt_tune_choose(node, device, &reason);
    assert_string_equal(clt_backend_row_id(choice.row, id), row);
    if (tile) assert_int_equal(choice.parameters[0], tile);
    if (tile) assert_int_equal(choice.parameters[1], splits);
    assert_int_equal(reason.why, why);
}

static void results_choose(void **state) {
    (void)state;
    clt_tensor *node = product(64, 64, 64);
    check_choice(node, "tiled#2", 0, 0, CLT_WHY_DEFAULT);
    learn(node, "tiled", 4, 8);
    check_choice(node, "tiled", 4, 8, CLT_WHY_MEASURED);
    assert_string_equal(clt_backend_choose(node, device).row->name, "tiled");
    learn(node, "reference", 0, 0);
    check_choice(node, "reference", 0, 0, CLT_WHY_MEASURED);
}

/* A tuning result whose row is gone, masked, does not fit or cannot have these parameters is none. */
static void results_that_do_not_apply_are_passed_over(void **state) {
    (void)state;
    clt_tensor *node = product(64, 64, 64), *thin = product(2, 64, 64);
    learn(node, "gone", 0, 0);
    check_choice(node, "tiled#2", 0, 0, CLT_WHY_DEFAULT);
    learn(node, "tiled", 5, 1); /* no such value */
    check_choice(node, "tiled#2", 0, 0, CLT_WHY_DEFAULT);
    learn(node, "tiled", 3, 1); /* not together */
    check_choice(node, "tiled#2", 0, 0, CLT_WHY_DEFAULT);
    learn(thin, "tiled", 4, 8);
    check_choice(thin, "plain", 0, 0, CLT_WHY_DEFAULT);
    learn(node, "plain", 0, 0);
    clt_device_override(device, &(clt_settings){.backends = "-plain"});
    check_choice(node, "tiled#2", 0, 0, CLT_WHY_DEFAULT);
    clt_device_override(device, &(clt_settings){.backends = "reference"});
    check_choice(node, "reference", 0, 0, CLT_WHY_ONLY);
    clt_device_override(device, &(clt_settings){.backends = ""});
    check_choice(node, "plain", 0, 0, CLT_WHY_MEASURED);
}

static void unseen_shapes_take_the_nearest(void **state) {
    (void)state;
    learn(product(64, 64, 64), "tiled", 4, 8);
    learn(product(512, 64, 64), "plain", 0, 0);
    check_choice(product(96, 64, 64), "tiled", 4, 8, CLT_WHY_NEAREST);
    check_choice(product(400, 64, 64), "plain", 0, 0, CLT_WHY_NEAREST);
    check_choice(product(64, 4096, 64), "tiled#2", 0, 0, CLT_WHY_DEFAULT); /* too far */
    learn(product(96, 64, 65), "gone", 0, 0);
    check_choice(product(96, 64, 66), "tiled", 4, 8, CLT_WHY_NEAREST); /* the nearest that applies */
}

static void off_leaves_out_what_was_measured(void **state) {
    (void)state;
    clt_tensor *node = product(64, 64, 64);
    learn(node, "plain", 0, 0);
    clt_device_override(device, &(clt_settings){.tune = "off"});
    check_choice(node, "tiled#2", 0, 0, CLT_WHY_DEFAULT);
    check_choice(product(65, 64, 64), "tiled#2", 0, 0, CLT_WHY_DEFAULT);
}

/* What would be chosen without measuring, of which one problem is shipped for this kind of device. */
static void shipped_results_come_after_measured_ones(void **state) {
    (void)state;
    clt_tune_database *db = clt_tune_database_of(device);
    clt_tensor *node = product(64, 64, 64);
    clt_tuning_result v = result_on(key_of(node), "tiled", 2, 8);
    assert_ok(clt_tuning_results_put(&db->shipped, &v));
    check_choice(node, "tiled", 2, 8, CLT_WHY_SHIPPED);
    check_choice(product(70, 64, 64), "tiled", 2, 8, CLT_WHY_SHIPPED_NEAREST);
    learn(product(72, 64, 64), "plain", 0, 0);
    check_choice(product(70, 64, 64), "plain", 0, 0, CLT_WHY_NEAREST);
    check_choice(node, "tiled", 2, 8, CLT_WHY_SHIPPED);
    learn(node, "plain", 0, 0);
    check_choice(node, "plain", 0, 0, CLT_WHY_MEASURED);
    assert_string_equal(clt_tune_choose_untuned(node, device).row->name, "tiled");
}

static size_t shipped_for(const char *header) {
    clt_text text = {0};
    clt_tuning_results list = {0};
    clt_text_add(&text, "%s\n{\"problem\": \"matmul 2x2 2x2 -> 2x2\", \"row\": \"plain\", \"effort\": \"full\"}\n", header);
    clt_shipped_tuning files[2] = {{(const unsigned char *)text.data, text.length}, {0}};
    assert_ok(clt_tune_read_shipped(device, files, &list));
    size_t n = list.n;
    clt_tuning_results_free(&list);
    clt_text_free(&text);
    return n;
}

/* A file is for devices of the class that its header names. */
static void shipped_files_are_for_a_class(void **state) {
    (void)state;
    const clt_device_info *info = clt_device_get_info(device);
    const char *type = info->type == CLT_DEVICE_CPU ? "cpu" : "gpu", *other = info->type == CLT_DEVICE_CPU ? "gpu" : "cpu";
    int width = clt_device_vector_width(device);
    char header[1024];
    const char *format = "{\"cltrain-tune\": %d, \"platform\": \"%s\", \"type\": \"%s\", \"vector_width\": %d}";
    snprintf(header, sizeof header, format, 1, info->platform, type, width);
    assert_int_equal(shipped_for(header), 1);
    snprintf(header, sizeof header, format, 2, info->platform, type, width);
    assert_int_equal(shipped_for(header), 0);
    snprintf(header, sizeof header, format, 1, "Another Platform", type, width);
    assert_int_equal(shipped_for(header), 0);
    snprintf(header, sizeof header, format, 1, info->platform, other, width);
    assert_int_equal(shipped_for(header), 0);
    snprintf(header, sizeof header, format, 1, info->platform, type, width + 1);
    assert_int_equal(shipped_for(header), 0);
    assert_int_equal(shipped_for("nonsense"), 0);
}

/* What was found last is there in the next run, however many were found before. */
static void full_lists_forget_the_oldest(void **state) {
    (void)state;
    clt_tuning_results list = {0}, again = {0};
    clt_text text = {0};
    clt_tuning_result v = {.row = "native", .effort = CLT_TUNE_KEPT};
    for (int i = 0; i < CLT_TUNING_RESULTS_MOST + 10; i++) {
        snprintf(v.problem, sizeof v.problem, "matmul %dx1 1x1 -> %dx1", i + 1, i + 1);
        assert_ok(clt_tuning_results_put(&list, &v));
    }
    assert_true(list.n <= CLT_TUNING_RESULTS_MOST && list.n > CLT_TUNING_RESULTS_MOST / 2);
    assert_non_null(clt_tuning_results_find(&list, v.problem));
    assert_null(clt_tuning_results_find(&list, "matmul 1x1 1x1 -> 1x1"));
    assert_ok(clt_tuning_results_write(&list, &text));
    /* A file of more lines, of which the last count. */
    clt_text file = {0};
    for (int i = 0; i < 2; i++) clt_text_add_bytes(&file, text.data, text.length);
    clt_text_add(&file, "%s", "{\"problem\": \"matmul 7x7 7x7 -> 7x7\", \"row\": \"native\", \"effort\": \"kept\"}\n");
    assert_ok(clt_tuning_results_read(&again, file.data, file.length));
    assert_non_null(clt_tuning_results_find(&again, "matmul 7x7 7x7 -> 7x7"));
    assert_non_null(clt_tuning_results_find(&again, v.problem));
    clt_text_free(&text);
    clt_text_free(&file);
    clt_tuning_results_free(&list);
    clt_tuning_results_free(&again);
}

/* What is part of the library is whole: each of its files has a header and reads to its end. */
static void shipped_files_are_whole(void **state) {
    (void)state;
    size_t files = 0;
    for (const clt_shipped_tuning *s = clt_shipped; s->bytes; s++, files++) {
        clt_tuning_results list = {0};
        size_t lines = 0;
        for (size_t i = 0; i < s->length; i++) lines += s->bytes[i] == '\n';
        assert_ok(clt_tuning_results_read(&list, (const char *)s->bytes, s->length));
        assert_true(list.n > 0 && list.n + 1 == lines);
        static const char begin[] = "{\"cltrain-tune\": 1, ";
        assert_true(s->length > sizeof begin);
        assert_memory_equal(s->bytes, begin, sizeof begin - 1);
        clt_tuning_results_free(&list);
    }
    assert_true(files > 0);
}

/* ---- the file ---- */

static char *read_text(const char *path, size_t *length) {
    void *bytes;
    assert_ok(clt_file_read(path, 1 << 24, &bytes, length));
    return bytes;
}

static const char *file_path(void) {
    return clt_tune_database_of(device)->path;
}

static void the_file_brings_results_back(void **state) {
    (void)state;
    clt_tensor *node = product(64, 64, 64);
    learn(node, "tiled", 4, 8);
    clt_choice broken = {.row = &test_rows[0]};
    clt_tuning_result failed;
    clt_tuning_result_of(key_of(node), &broken, &failed);
    strcpy(failed.failed, "wrong");
    assert_ok(clt_tuning_results_put(&clt_tune_database_of(device)->measured, &failed));
    assert_ok(clt_tune_store(device));
    open_again();
    check_choice(node, "tiled", 4, 8, CLT_WHY_MEASURED);
    const clt_tuning_results *list = &clt_tune_database_of(device)->measured;
    const clt_tuning_result *v = clt_tuning_results_find(list, key_of(node));
    assert_true(v->tried == 3 && v->us == 10 && v->default_us == 20 && v->effort == CLT_TUNE_QUICK);
    assert_true(clt_tuning_results_failed(list, key_of(node), &broken));
    assert_false(clt_tuning_results_failed(list, key_of(node), &(clt_choice){.row = &test_rows[1]}));
}

/* Writes the device's file as a good one with `middle` in it, and opens the device anew. */
static void put_file(const char *header, const char *middle, size_t bytes, const char *end) {
    clt_text text = {0};
    clt_text_add(&text, "%s", header);
    clt_text_add_bytes(&text, middle, bytes);
    clt_text_add(&text, "%s", end);
    support_write(file_path(), text.data, text.length);
    clt_text_free(&text);
    open_again();
}

static const char good[] = "{\"problem\": \"matmul 64x64 64x64 -> 64x64\", \"row\": \"plain\", \"effort\": \"quick\"}\n";

static void hostile_lines_are_skipped(void **state) {
    (void)state;
    static const char *const lines[] = {
        "garbage", "{", "[]", "null", "{}", "\"text\"", "{\"problem\": 3}", "\xff\xfe\x80",
        "{\"problem\": \"matmul 64x64 64x64 -> 64x64\", \"row\": \"reference\"}",
        "{\"problem\": \"matmul 64x64 64x64 -> 64x64\", \"row\": \"reference\", \"effort\": \"heroic\"}",
        "{\"problem\": \"matmul 64x64 64x64 -> 64x64\", \"row\": 7, \"effort\": \"full\"}",
        "{\"problem\": \"matmul 64x64 64x64 -> 64x64\", \"row\": \"\\u0000reference\", \"effort\": \"full\"}",
        "{\"problem\": \"matmul 64x64 64x64 -> 64x64\", \"row\": \"tiled\", \"effort\": \"full\", \"parameters\": 3}",
        "{\"problem\": \"matmul 64x64 64x64 -> 64x64\", \"row\": \"tiled\", \"effort\": \"full\", "
        "\"parameters\": {\"tile\": 99999999999, \"splits\": 1}}",
        "{\"problem\": \"matmul 64x64 64x64 -> 64x64\", \"row\": \"tiled\", \"effort\": \"full\", \"parameters\": "
        "{\"a\":1,\"b\":1,\"c\":1,\"d\":1,\"e\":1,\"f\":1,\"g\":1,\"h\":1,\"i\":1}}",
        "{\"problem\": \"matmul 64x64 64x64 -> 64x64\", \"row\": \"a name that is longer than any row's can be\", "
        "\"effort\": \"full\"}",
        "{\"problem\": \"matmul 64x64 64x64 -> 64x64\", \"row\": \"reference\", \"effort\": \"full\", \"failed\": \"\\n\"}",
        "{\"future\": true}",
    };
    size_t length;
    clt_tensor *node = product(64, 64, 64);
    assert_ok(clt_tune_store(device));
    char *header = read_text(file_path(), &length);
    for (size_t i = 0; i < CLT_COUNT_OF(lines); i++) {
        clt_text middle = {0};
        clt_text_add(&middle, "%s\n", lines[i]);
        put_file(header, middle.data, middle.length, good);
        check_choice(node, "plain", 0, 0, CLT_WHY_MEASURED);
        clt_text_free(&middle);
    }
    /* Figures that make no sense are left out, and the tuning result stays. */
    static const char odd[] = "{\"problem\": \"matmul 64x64 64x64 -> 64x64\", \"row\": \"tiled\", \"effort\": \"full\", "
                              "\"us\": -3, \"nmse\": \"x\", \"tried\": 1e30, \"parameters\": {\"splits\": 8, \"tile\": 4}}\n";
    put_file(header, odd, strlen(odd), good);
    check_choice(node, "tiled", 4, 8, CLT_WHY_MEASURED);
    clt_free(header);
}

static void a_file_cut_anywhere_is_read_as_far_as_it_goes(void **state) {
    (void)state;
    size_t length;
    clt_tensor *node = product(64, 64, 64);
    learn(node, "plain", 0, 0);
    learn(product(64, 64, 65), "plain", 0, 0);
    assert_ok(clt_tune_store(device));
    char *text = read_text(file_path(), &length);
    for (size_t cut = 0; cut < length; cut += 7) {
        support_write(file_path(), text, cut);
        open_again();
        assert_true(clt_tune_database_of(device)->measured.n <= 2);
        if (cut > length - 3) check_choice(node, "plain", 0, 0, CLT_WHY_MEASURED);
    }
    clt_free(text);
}

/* Another device, library or form of file: nothing of it counts, and it is no error to write anew. */
static void foreign_files_are_no_results(void **state) {
    (void)state;
    size_t length;
    clt_tensor *node = product(64, 64, 64);
    assert_ok(clt_tune_store(device));
    char *header = read_text(file_path(), &length);
    static const char *const fields[] = {"\"cltrain-tune\": 1", "\"library\": \"", "\"id\": \""};
    for (size_t i = 0; i < CLT_COUNT_OF(fields); i++) {
        char *changed = strdup(header), *at = strstr(changed, fields[i]);
        assert_non_null(at);
        at += strlen(fields[i]);
        if (i == 0) at[-1] = '2';
        else *at = *at == 'x' ? 'y' : 'x';
        put_file(changed, "", 0, good);
        check_choice(node, "tiled#2", 0, 0, CLT_WHY_DEFAULT);
        free(changed);
    }
    put_file("", "", 0, good);
    check_choice(node, "tiled#2", 0, 0, CLT_WHY_DEFAULT);
    learn(node, "plain", 0, 0);
    assert_ok(clt_tune_store(device));
    open_again();
    check_choice(node, "plain", 0, 0, CLT_WHY_MEASURED);
    clt_free(header);
}

static void a_folder_in_the_place_of_the_file(void **state) {
    (void)state;
    clt_tensor *node = product(64, 64, 64);
    assert_int_equal(mkdir(file_path(), 0777), 0);
    open_again();
    check_choice(node, "tiled#2", 0, 0, CLT_WHY_DEFAULT);
    learn(node, "plain", 0, 0);
    assert_status(clt_tune_store(device), CLT_E_IO);
    /* What could not be kept does not count either: the next run will not know it. */
    check_choice(node, "tiled#2", 0, 0, CLT_WHY_DEFAULT);
}

static void more_effort_wins_and_the_disk_among_equals(void **state) {
    (void)state;
    clt_tensor *node = product(64, 64, 64);
    clt_tuning_result v = result_on(key_of(node), "plain", 0, 0);
    clt_device *other;
    assert_ok(clt_device_open(&other, NULL));
    assert_int_equal(clt_tune_database_of(other)->measured.n, 0);
    learn(node, "tiled", 4, 8);
    assert_ok(clt_tune_store(device));
    assert_ok(clt_tuning_results_put(&clt_tune_database_of(other)->measured, &v));
    assert_ok(clt_tune_store(other)); /* made at once: the first to be stored stays */
    assert_string_equal(clt_tuning_results_find(&clt_tune_database_of(other)->measured, v.problem)->row, "tiled");
    v.effort = CLT_TUNE_FULL;
    assert_ok(clt_tuning_results_put(&clt_tune_database_of(other)->measured, &v));
    assert_ok(clt_tune_store(other));
    clt_device_close(other);
    open_again();
    check_choice(node, "plain", 0, 0, CLT_WHY_MEASURED);
}

/* ---- two processes ---- */

enum { STORES = 25 };

/* In a process of its own: stores result after result. */
static int store_many(const char *name) {
    char problem[64];
    clt_backend_more_rows = test_rows;
    if (clt_device_open(&device, NULL) < 0) return 1;
    for (int i = 0; i < STORES; i++) {
        snprintf(problem, sizeof problem, "%s %d", name, i);
        clt_tuning_result v = result_on(problem, "plain", 0, 0);
        if (clt_tuning_results_put(&clt_tune_database_of(device)->measured, &v) < 0 || clt_tune_store(device) < 0) return 1;
    }
    clt_device_close(device);
    return 0;
}

static pid_t start(const char *name) {
    pid_t child = fork();
    if (child == 0) {
        execl("/proc/self/exe", "test_tune", name, (char *)NULL);
        _exit(127);
    }
    return child;
}

static void await(pid_t child) {
    int code;
    assert_int_equal(waitpid(child, &code, 0), child);
    assert_int_equal(code, 0);
}

/* How many tuning results of each the file has. */
static void count_stored(int found[2]) {
    size_t length, lines = 0;
    open_again();
    const clt_tuning_results *list = &clt_tune_database_of(device)->measured;
    found[0] = found[1] = 0;
    for (size_t i = 0; i < list->n; i++) found[list->items[i].problem[0] == 't']++;
    char *text = read_text(file_path(), &length);
    for (size_t i = 0; i < length; i++) lines += text[i] == '\n';
    assert_int_equal(lines, list->n + 1); /* every line is whole */
    clt_free(text);
}

/* Who writes last has all of its own, and of the other's what was there when it looked: of two at once perhaps nothing, of one before the other all. */
static void two_processes_do_not_spoil_the_file(void **state) {
    (void)state;
    int found[2];
    pid_t children[2] = {start("one"), start("two")};
    for (int i = 0; i < 2; i++) await(children[i]);
    count_stored(found);
    assert_true(found[0] == STORES || found[1] == STORES);
    await(start("one"));
    await(start("two"));
    count_stored(found);
    assert_true(found[0] == STORES && found[1] == STORES);
}

static void driver_texts_that_are_no_json_are_left_out(void **state) {
    (void)state;
    static const clt_device odd = {.info = {.name = "Ger\xe4t", .platform = "Portable"}, .settings = {.kernel_folder = ""}};
    clt_text text = {0};
    assert_ok(clt_tune_write_header(&odd, "cltrain-tune", &text));
    assert_null(strstr(text.data, "\"device\""));
    assert_non_null(strstr(text.data, "\"platform\": \"Portable\""));
    assert_true(clt_tune_header_fits(&odd, "cltrain-tune", text.data, text.length, false));
    clt_text_free(&text);
}

/* ---- runs ---- */

static clt_choice run_choice(clt_tune_run *run, const clt_tensor *node) {
    clt_choice choice;
    assert_ok(clt_tune_run_choose(run, node, device, &choice));
    return choice;
}

static void a_run_keeps_its_choices(void **state) {
    (void)state;
    clt_tune_run run = {.begun = false}, resumed = {.begun = false};
    clt_tensor *node = product(64, 64, 64), *near = product(64, 64, 80);
    clt_text text = {0};
    learn(node, "tiled", 4, 8);
    assert_string_equal(run_choice(&run, node).row->name, "tiled");
    run.begun = true;
    learn(node, "plain", 0, 0);
    learn(near, "plain", 0, 0);
    assert_int_equal(run_choice(&run, node).parameters[0], 4);
    assert_int_equal(run_choice(&run, near).parameters[0], 4); /* its own nearest, not what was learnt since */
    assert_ok(clt_tune_run_write(&run, device, &text));
    bool taken = false;
    assert_ok(clt_tune_run_read(&resumed, device, text.data, &taken));
    assert_true(taken);
    assert_int_equal(run_choice(&resumed, node).parameters[0], 4);
    assert_int_equal(run_choice(&resumed, near).parameters[0], 4);
    char *id = strstr(text.data, "\"id\": \"");
    assert_non_null(id);
    id[7] = id[7] == 'x' ? 'y' : 'x';
    const char *const others[] = {text.data /* another device's */, "", "nonsense\n"};
    for (size_t i = 0; i < CLT_COUNT_OF(others); i++) {
        assert_ok(clt_tune_run_read(&resumed, device, others[i], &taken));
        assert_false(taken);
    }
    assert_int_equal(run_choice(&resumed, node).parameters[0], 4);
    clt_tune_run_free(&run);
    clt_tune_run_free(&resumed);
    clt_text_free(&text);
}

/* So a problem takes the same row, whatever the run has had before. */
static void a_run_s_defaults_are_of_their_own_problems(void **state) {
    (void)state;
    clt_tune_run run = {.begun = false}, resumed = {.begun = false};
    clt_tensor *thin = product(3, 64, 64), *near = product(4, 64, 64);
    clt_text text = {0};
    const char *own = clt_tune_choose(near, device, NULL).row->name;
    bool taken = false;
    assert_string_equal(run_choice(&run, thin).row->name, "plain");
    assert_string_not_equal(own, "plain");
    run.begun = true;
    assert_string_equal(run_choice(&run, near).row->name, own);
    assert_ok(clt_tune_run_write(&run, device, &text));
    assert_ok(clt_tune_run_read(&resumed, device, text.data, &taken));
    assert_true(taken);
    assert_string_equal(run_choice(&resumed, near).row->name, own);
    clt_tune_run_free(&run);
    clt_tune_run_free(&resumed);
    clt_text_free(&text);
}

/* Rows too long for the loops of one work-item are for workgroup, which is then what others are compared with. */
static void long_rows_have_another_oracle(void **state) {
    (void)state;
    static const struct {
        int64_t length;
        const char *name, *has, *lacks; /* of the input, and the oracle where loops may be long and where not */
    } rows[] = {{20000, "short", "reference", "reference"},
                {20001, "long", "reference", "workgroup"},
                {350000, "longest", "workgroup", "workgroup"}};
    for (size_t i = 0; i < CLT_COUNT_OF(rows); i++) {
        clt_tensor *node = clt_softmax(clt_input(graph, rows[i].name, CLT_F32, CLT_SHAPE(2, rows[i].length)), 1);
        bool has = clt_device_has(device, CLT_CAP_LONG_LOOPS);
        assert_string_equal(clt_backend_oracle(node, device)->name, has ? rows[i].has : rows[i].lacks);
        clt_device_override(device, &(clt_settings){.capabilities_off = "long_loops"});
        assert_string_equal(clt_backend_oracle(node, device)->name, rows[i].lacks);
        clt_device_override(device, &(clt_settings){.capabilities_off = ""});
    }
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(problems_are_text, set_up, tear_down),
        cmocka_unit_test_setup_teardown(distance_is_of_dimensions_alone, set_up, tear_down),
        cmocka_unit_test_setup_teardown(results_choose, set_up, tear_down),
        cmocka_unit_test_setup_teardown(results_that_do_not_apply_are_passed_over, set_up, tear_down),
        cmocka_unit_test_setup_teardown(unseen_shapes_take_the_nearest, set_up, tear_down),
        cmocka_unit_test_setup_teardown(off_leaves_out_what_was_measured, set_up, tear_down),
        cmocka_unit_test_setup_teardown(shipped_results_come_after_measured_ones, set_up, tear_down),
        cmocka_unit_test_setup_teardown(shipped_files_are_for_a_class, set_up, tear_down),
        cmocka_unit_test(full_lists_forget_the_oldest),
        cmocka_unit_test_setup_teardown(shipped_files_are_whole, set_up, tear_down),
        cmocka_unit_test_setup_teardown(the_file_brings_results_back, set_up, tear_down),
        cmocka_unit_test_setup_teardown(hostile_lines_are_skipped, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_file_cut_anywhere_is_read_as_far_as_it_goes, set_up, tear_down),
        cmocka_unit_test_setup_teardown(foreign_files_are_no_results, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_folder_in_the_place_of_the_file, set_up, tear_down),
        cmocka_unit_test_setup_teardown(more_effort_wins_and_the_disk_among_equals, set_up, tear_down),
        cmocka_unit_test_setup_teardown(two_processes_do_not_spoil_the_file, set_up, tear_down),
        cmocka_unit_test(driver_texts_that_are_no_json_are_left_out),
        cmocka_unit_test_setup_teardown(a_run_keeps_its_choices, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_run_s_defaults_are_of_their_own_problems, set_up, tear_down),
        cmocka_unit_test_setup_teardown(long_rows_have_another_oracle, set_up, tear_down),
    };
    if (argc > 1) return store_many(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
