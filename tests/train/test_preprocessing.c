/* What data are: as text, in files of models, and held against other data. */
#include "tests/data/files.h"

#include <math.h>

#include <cltrain/cltrain.h>

#include "runtime/data/preprocessing.h"
#include "runtime/train/preprocessing.h"

static clt_dataset *read_table(const char *text, const clt_preprocessing *like) {
    clt_dataset *d = NULL;
    clt_csv_options options = {.like = like};
    assert_ok(clt_dataset_csv(&d, write_text("t.csv", text), &options));
    return d;
}

static const char table[] = "width,height,kind\n1,20,dog\n3,10,cat\n5,60,dog\n7,30,cat\n";

static clt_preprocessing *of(const clt_dataset *d) {
    clt_preprocessing *p = NULL;
    assert_ok(clt_preprocessing_of(&p, d));
    return p;
}

static const char *json_of(const clt_preprocessing *p) {
    static char json[4096];
    assert_in_range(clt_preprocessing_json(p, json, sizeof json), 1, sizeof json - 1);
    return json;
}

/* ---- as text ---- */

static void text_and_back(void **state) {
    (void)state;
    clt_dataset *d = read_table(table, NULL);
    assert_ok(clt_dataset_standardize(d, d));
    clt_preprocessing *p = of(d), *again = NULL;
    assert_string_equal(json_of(p), "{\"dtype\":\"f32\",\"shape\":[2],\"features\":[\"width\",\"height\"],\"mean\":[4.0,30.0],"
                                    "\"deviation\":[2.2360679774997898,18.708286933869708],\"label\":\"kind\",\"classes\":[\"cat\",\"dog\"]}");
    char json[1024];
    strcpy(json, json_of(p));
    assert_ok(clt_preprocessing_parse(&again, json));
    assert_string_equal(json_of(again), json);
    assert_string_equal(clt_preprocessing_feature(again, 1), "height");
    assert_null(clt_preprocessing_feature(again, 2));
    assert_null(clt_preprocessing_feature(again, -1));
    assert_string_equal(clt_preprocessing_class(again, 0), "cat");
    assert_int_equal(clt_preprocessing_classes(again), 2);
    assert_int_equal(clt_preprocessing_standardizes(again), 1);
    assert_int_equal(clt_preprocessing_target(again).rank, -1);
    assert_int_equal(clt_preprocessing_json(again, json, 10), strlen(json_of(p))); /* cut short */
    assert_string_equal(json, "{\"dtype\":");
    clt_preprocessing_destroy(again);
    clt_preprocessing_destroy(p);
    clt_dataset_destroy(d);
    clt_preprocessing_destroy(NULL);
}

static void hostile_texts(void **state) {
    (void)state;
    static const struct {
        const char *json, *words;
    } cases[] = {
        {"", "not a JSON object"},
        {"[1]", "not a JSON object"},
        {"{", "not a JSON object"},
        {"{}", "\"dtype\" is not f32, i32 or u8"},
        {"{\"dtype\":\"f64\",\"shape\":[2]}", "\"dtype\" is not"},
        {"{\"dtype\":\"f32\"}", "\"shape\" is not"},
        {"{\"dtype\":\"f32\",\"shape\":[0]}", "\"shape\" is not"},
        {"{\"dtype\":\"f32\",\"shape\":[65536,65536]}", "\"shape\" is not"},
        {"{\"dtype\":\"f32\",\"shape\":[1,1,1,1,1,1,1,1]}", "\"shape\" is not"},
        {"{\"dtype\":\"f32\",\"shape\":[2],\"features\":[\"a\"]}", "\"features\" is not as many names"},
        {"{\"dtype\":\"f32\",\"shape\":[2],\"features\":[\"a\",1]}", "\"features\" is not a list of names"},
        {"{\"dtype\":\"f32\",\"shape\":[2],\"features\":[\"a\",\"b\\u0000c\"]}", "not a JSON object"},
        {"{\"dtype\":\"f32\",\"shape\":[2],\"mean\":[1]}", "\"mean\" is not a number for each"},
        {"{\"dtype\":\"f32\",\"shape\":[2],\"mean\":[1,2]}", "\"deviation\" is not as long"},
        {"{\"dtype\":\"f32\",\"shape\":[2],\"mean\":[1,2],\"deviation\":[1,0]}", "\"deviation\" is not above 0"},
        {"{\"dtype\":\"f32\",\"shape\":[2],\"mean\":[1,2],\"deviation\":[1,1e-320]}", "\"deviation\" is not above 0"},
        {"{\"dtype\":\"f32\",\"shape\":[2],\"mean\":[1,\"2\"],\"deviation\":[1,1]}", "\"mean\" is not a list of numbers"},
        {"{\"dtype\":\"i32\",\"shape\":[1],\"mean\":[1],\"deviation\":[1]}", "\"mean\" is not"},
        {"{\"dtype\":\"f32\",\"shape\":[2],\"classes\":0}", "\"classes\" is not"},
        {"{\"dtype\":\"f32\",\"shape\":[2],\"classes\":1e3}", "\"classes\" is not"},
        {"{\"dtype\":\"f32\",\"shape\":[2],\"classes\":[]}", "\"classes\" is not"},
        {"{\"dtype\":\"f32\",\"shape\":[2],\"classes\":99999999999}", "\"classes\" is not"},
        {"{\"dtype\":\"f32\",\"shape\":[2],\"label\":3}", "\"label\" is not a name"},
        {"{\"dtype\":\"f32\",\"shape\":[2],\"target\":3}", "\"target\" is not"},
        {"{\"dtype\":\"f32\",\"shape\":[2],\"missing\":[3]}", "\"missing\" is not"},
        {"{\"dtype\":\"f32\",\"shape\":[2],\"missing\":[3,null]}", "\"missing\" is not a list of numbers"},
        {"{\"dtype\":\"f32\",\"dtype\":\"f32\",\"shape\":[2]}", "not a JSON object"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        clt_preprocessing *p = NULL;
        clt_status status = clt_preprocessing_parse(&p, cases[i].json);
        if (status != CLT_E_FORMAT) fail_msg("%s: %s", cases[i].json, clt_status_name(status));
        assert_null(p);
        assert_detail(cases[i].words);
    }
    static char many[5000000];
    memset(many, ',', sizeof many - 1);
    clt_preprocessing *p = NULL;
    assert_status(clt_preprocessing_parse(&p, many), CLT_E_FORMAT);
    assert_detail("more than 4000000 values");
    assert_status(clt_preprocessing_parse(&p, NULL), CLT_E_INVALID);
    assert_status(clt_preprocessing_of(&p, NULL), CLT_E_INVALID);
}

static void survives_failing_memory(void **state) {
    (void)state;
    clt_dataset *d = NULL;
    assert_ok(clt_dataset_csv(&d, write_text("t.csv", "width,height,kind\n1,20,5\n3,10,7\n"), &(clt_csv_options){.regression = true}));
    assert_ok(clt_dataset_standardize(d, d));
    assert_ok(clt_dataset_standardize_target(d, d));
    clt_status status = CLT_E_NO_MEMORY;
    int failed = 0;
    for (long at = 0; status != CLT_OK; at++) {
        clt_preprocessing *p = NULL, *again = NULL;
        clt_text text = {0};
        watch_begin(at);
        status = clt_preprocessing_of(&p, d);
        if (status == CLT_OK) status = clt_preprocessing_write(p, &text);
        if (status == CLT_OK) status = clt_preprocessing_read(&again, text.data, "file");
        if (status != CLT_OK) assert_int_equal(status, CLT_E_NO_MEMORY);
        failed += status != CLT_OK;
        clt_preprocessing_destroy(again);
        clt_preprocessing_destroy(p);
        clt_text_free(&text);
        watch_end();
    }
    assert_true(failed > 10);
    clt_dataset_destroy(d);
}

/* ---- applied ---- */

static void what_is_applied_is_what_was_measured(void **state) {
    (void)state;
    clt_dataset *d = read_table(table, NULL), *other = NULL;
    assert_ok(clt_dataset_standardize(d, d));
    clt_preprocessing *p = of(d);
    other = read_table(table, p);
    assert_ok(clt_preprocessing_apply(p, other));
    assert_memory_equal(clt_dataset_array(other, 0).data, clt_dataset_array(d, 0).data, 32); /* every bit */
    assert_ok(clt_preprocessing_apply(p, other)); /* as it is */
    assert_memory_equal(clt_dataset_array(other, 0).data, clt_dataset_array(d, 0).data, 32);
    clt_dataset *anew = read_table("width,height,kind\n1,21,dog\n3,10,cat\n", NULL);
    assert_ok(clt_dataset_standardize(anew, anew));
    assert_status(clt_preprocessing_apply(p, anew), CLT_E_MISMATCH);
    assert_detail("standardized already");
    clt_dataset_destroy(anew);
    /* Twice is one after the other. */
    clt_preprocessing *first = of(other), *second = NULL;
    assert_string_equal(json_of(first), json_of(p));
    const float shifted[] = {1, 2, 3, 6};
    clt_array fields[] = {{CLT_F32, CLT_SHAPE(4, 1), (void *)(uintptr_t)shifted}};
    clt_dataset *one = NULL, *two = NULL;
    assert_ok(clt_dataset_from_arrays(&one, fields, 1));
    assert_ok(clt_dataset_from_arrays(&two, fields, 1));
    assert_ok(clt_dataset_standardize(two, one));
    assert_ok(clt_dataset_standardize(two, one));
    second = of(two);
    assert_non_null(strstr(json_of(second), "\"mean\":[8.6"));
    assert_ok(clt_preprocessing_apply(second, one));
    for (int i = 0; i < 4; i++)
        assert_float_equal(((const float *)clt_dataset_array(one, 0).data)[i], ((const float *)clt_dataset_array(two, 0).data)[i], 1e-6);
    clt_preprocessing_destroy(second);
    clt_preprocessing_destroy(first);
    clt_preprocessing_destroy(p);
    clt_dataset_destroy(two);
    clt_dataset_destroy(one);
    clt_dataset_destroy(other);
    clt_dataset_destroy(d);
}

/* Of two numbers a sample: one mean and one deviation, against the definition. */
static void a_target_is_standardized_as_one(void **state) {
    (void)state;
    enum { N = 4, T = 2 };
    const float x[N] = {1, 2, 3, 4}, y[N * T] = {300000, 300010, 299980, 300030, 300000, 299940, 300020, 300020};
    double mean = 0, variance = 0;
    for (int i = 0; i < N * T; i++) mean += (double)y[i] / (N * T);
    for (int i = 0; i < N * T; i++) variance += (y[i] - mean) * (y[i] - mean) / (N * T);
    clt_array fields[] = {{CLT_F32, CLT_SHAPE(N, 1), (void *)(uintptr_t)x}, {CLT_F32, CLT_SHAPE(N, T), (void *)(uintptr_t)y}};
    clt_dataset *d = NULL, *raw = NULL, *twice = NULL, *classes = read_table(table, NULL);
    assert_ok(clt_dataset_from_arrays(&d, fields, 2));
    assert_ok(clt_dataset_from_arrays(&raw, fields, 2));
    assert_ok(clt_dataset_from_arrays(&twice, fields, 2));
    clt_preprocessing *untouched = of(raw);
    assert_true(clt_preprocessing_target_mean(untouched) == 0 && clt_preprocessing_target_deviation(untouched) == 1);
    assert_ok(clt_dataset_standardize_target(d, d));
    assert_memory_equal(clt_dataset_array(d, 0).data, x, sizeof x);
    clt_preprocessing *p = of(d), *again = NULL;
    const float *got = clt_dataset_array(d, 1).data;
    for (int i = 0; i < N * T; i++) assert_float_equal(got[i], (y[i] - mean) / sqrt(variance), 1e-6);
    assert_float_equal(clt_preprocessing_target_mean(p), mean, 1e-6);
    assert_float_equal(clt_preprocessing_target_deviation(p), sqrt(variance), 1e-9);
    assert_int_equal(clt_preprocessing_standardizes(p), 0); /* samples are as they were */
    assert_ok(clt_preprocessing_parse(&again, json_of(p)));
    assert_true(clt_preprocessing_target_deviation(again) == clt_preprocessing_target_deviation(p));
    assert_ok(clt_preprocessing_apply(again, raw));
    assert_memory_equal(clt_dataset_array(raw, 1).data, got, sizeof y);
    assert_ok(clt_preprocessing_apply(again, raw)); /* as it is */
    assert_memory_equal(clt_dataset_array(raw, 1).data, got, sizeof y);
    assert_ok(clt_dataset_standardize_target(twice, twice));
    assert_ok(clt_dataset_standardize_target(twice, d)); /* of mean 0 and deviation 1 */
    assert_ok(clt_preprocessing_apply(p, twice));
    assert_ok(clt_dataset_standardize_target(twice, raw));
    clt_dataset_destroy(twice);
    assert_ok(clt_dataset_from_arrays(&twice, (clt_array[]){fields[0], {CLT_F32, CLT_SHAPE(N, T), (float[N * T]){1, 2, 3}}}, 2));
    assert_ok(clt_dataset_standardize_target(twice, twice));
    assert_status(clt_preprocessing_apply(p, twice), CLT_E_MISMATCH);
    assert_detail("target is standardized already");
    clt_preprocessing *other = of(twice);
    assert_status(clt_preprocessing_compare(p, other, "m.safetensors"), CLT_E_MISMATCH);
    assert_detail("and deviation 26.9258 of target 0, and the data were standardized with 0.75");
    assert_status(clt_preprocessing_compare(p, untouched, "m.safetensors"), CLT_E_MISMATCH);
    assert_detail("m.safetensors was trained on targets that were standardized, and those of the data are not");
    assert_status(clt_dataset_standardize_target(classes, classes), CLT_E_DTYPE);
    assert_status(clt_dataset_standardize_target(d, classes), CLT_E_DTYPE);
    assert_status(clt_dataset_standardize_target(NULL, d), CLT_E_INVALID);
    static const char *const hostile[] = {"\"target\":[1],\"target_mean\":1", "\"target\":[1],\"target_mean\":1,\"target_deviation\":0",
                                          "\"target\":[1],\"target_mean\":1,\"target_deviation\":-2", "\"target_mean\":1,\"target_deviation\":2",
                                          "\"target\":[1],\"target_mean\":1,\"target_deviation\":1e-320", "\"target\":[1],\"target_mean\":\"1\",\"target_deviation\":2",
                                          "\"target\":[1],\"target_deviation\":2"};
    for (size_t i = 0; i < sizeof hostile / sizeof *hostile; i++) {
        char text[256];
        clt_preprocessing *none = NULL;
        snprintf(text, sizeof text, "{\"dtype\":\"f32\",\"shape\":[1],%s}", hostile[i]);
        assert_status(clt_preprocessing_parse(&none, text), CLT_E_FORMAT);
        assert_detail("target_");
    }
    clt_preprocessing_destroy(other);
    clt_preprocessing_destroy(untouched);
    clt_preprocessing_destroy(again);
    clt_preprocessing_destroy(p);
    clt_dataset_destroy(classes);
    clt_dataset_destroy(twice);
    clt_dataset_destroy(raw);
    clt_dataset_destroy(d);
}

/* A model of the digits takes pixels as the files of the digits have them. */
static void pixels_are_divided(void **state) {
    (void)state;
    clt_dataset *digits = NULL, *same = NULL, *raw = NULL;
    static float pixels[3 * 64];
    assert_ok(clt_dataset_digits(&digits));
    assert_ok(clt_dataset_digits(&same));
    const float *x = clt_dataset_array(digits, 0).data;
    for (int i = 0; i < 3 * 64; i++) pixels[i] = 16 * x[i];
    clt_array fields[] = {{CLT_F32, CLT_SHAPE(3, 1, 8, 8), pixels}};
    assert_ok(clt_dataset_from_arrays(&raw, fields, 1));
    clt_preprocessing *p = of(digits);
    assert_string_equal(json_of(p), "{\"dtype\":\"f32\",\"shape\":[1,8,8],\"mean\":[0.0],\"deviation\":[16.0],\"classes\":10}");
    assert_ok(clt_preprocessing_apply(p, same));
    assert_ok(clt_preprocessing_apply(p, raw));
    for (int i = 0; i < 3 * 64; i++) {
        assert_true(((const float *)clt_dataset_array(same, 0).data)[i] == x[i]);
        assert_float_equal(((const float *)clt_dataset_array(raw, 0).data)[i], x[i], 1e-7);
    }
    clt_preprocessing_destroy(p);
    clt_dataset_destroy(raw);
    clt_dataset_destroy(same);
    clt_dataset_destroy(digits);
}

static void what_does_not_suit_is_refused(void **state) {
    (void)state;
    clt_dataset *d = read_table(table, NULL), *other = NULL;
    clt_preprocessing *p = NULL;
    assert_ok(clt_dataset_standardize(d, d));
    p = of(d);
    /* A table that was not read as the model's. */
    other = read_table("height,width,kind\n1,20,dog\n3,10,cat\n", NULL);
    assert_status(clt_preprocessing_apply(p, other), CLT_E_MISMATCH);
    assert_detail("trained on the columns width, height, and the data have height, width");
    clt_dataset_destroy(other);
    other = read_table("width,height,kind\n1,20,dog\n3,10,cow\n", NULL);
    assert_status(clt_preprocessing_apply(p, other), CLT_E_MISMATCH);
    assert_detail("trained on the classes cat, dog, and the data have cow, dog");
    clt_dataset_destroy(other);
    const float x[] = {1, 2, 3, 4, 5, 6};
    const int32_t y[] = {0, 2};
    clt_array fields[] = {{CLT_F32, CLT_SHAPE(2, 3), (void *)(uintptr_t)x}, {CLT_I32, CLT_SHAPE(2), (void *)(uintptr_t)y}};
    assert_ok(clt_dataset_from_arrays(&other, fields, 2));
    assert_status(clt_preprocessing_apply(p, other), CLT_E_MISMATCH);
    assert_detail("samples f32 [2], and the data are f32 [3]");
    clt_dataset_destroy(other);
    fields[0].shape = CLT_SHAPE(2, 2);
    assert_ok(clt_dataset_from_arrays(&other, fields, 2));
    assert_status(clt_preprocessing_apply(p, other), CLT_E_MISMATCH);
    assert_detail("trained on 2 classes, and the data have 3");
    clt_dataset_destroy(other);
    fields[1] = (clt_array){CLT_F32, CLT_SHAPE(2, 1), (void *)(uintptr_t)x};
    assert_ok(clt_dataset_from_arrays(&other, fields, 2));
    assert_status(clt_preprocessing_apply(p, other), CLT_E_MISMATCH);
    assert_detail("trained on classes, and the data have numbers to predict");
    clt_dataset_destroy(other);
    assert_ok(clt_dataset_from_arrays(&other, fields, 1)); /* without a truth */
    assert_ok(clt_preprocessing_apply(p, other));
    assert_int_equal(clt_dataset_classes(other), 0);
    clt_dataset_destroy(other);
    clt_preprocessing_destroy(p);
    clt_dataset_destroy(d);
}

/* ---- in files ---- */

static clt_device *device;

typedef struct model {
    clt_graph *graph;
    clt_tensor *output;
    clt_trainer *trainer;
} model;

static clt_status make(model *m, const clt_preprocessing *p, int classes) {
    assert_ok(clt_graph_create(&m->graph));
    clt_tensor *x = clt_input(m->graph, "x", CLT_F32, CLT_SHAPE(2, 2)), *y = clt_input(m->graph, "y", CLT_I32, CLT_SHAPE(2));
    m->output = clt_linear(x, "fc", classes);
    clt_train_options options = {.lr = 0.5f, .output = m->output, .preprocessing = p, .model = "logistic"};
    return clt_trainer_create(&m->trainer, device, clt_cross_entropy(m->output, y), &options);
}

static void destroy(model *m) {
    clt_trainer_destroy(m->trainer);
    clt_graph_destroy(m->graph);
    *m = (model){0};
}

static clt_batch batch_of(const clt_dataset *d) {
    return (clt_batch){.samples = 2, .n_fields = clt_dataset_fields(d),
                       .fields = {{CLT_F32, CLT_SHAPE(2, 2), clt_dataset_array(d, 0).data},
                                  {CLT_I32, CLT_SHAPE(2), clt_dataset_fields(d) > 1 ? clt_dataset_array(d, 1).data : NULL}}};
}

/* Trained on one table, and used on another by what the file tells. */
static void a_file_is_enough(void **state) {
    (void)state;
    clt_dataset *d = read_table(table, NULL);
    assert_ok(clt_dataset_standardize(d, d));
    clt_preprocessing *p = of(d), *loaded = NULL;
    model m;
    float wanted[4], found[4];
    char text[64];
    clt_batch batch = batch_of(d);
    assert_ok(make(&m, p, 2));
    clt_preprocessing_destroy(p); /* it has a copy */
    for (int i = 0; i < 3; i++) assert_ok(clt_trainer_step(m.trainer, &batch));
    assert_ok(clt_trainer_predict(m.trainer, m.output, &batch, wanted, 4));
    assert_ok(clt_trainer_set_note(m.trainer, "\xff"));
    assert_status(clt_weights_save(m.trainer, support_path("w.safetensors")), CLT_E_INVALID);
    assert_detail("cltrain.note");
    assert_status(clt_trainer_set_note(NULL, "x"), CLT_E_INVALID);
    assert_ok(clt_trainer_set_note(m.trainer, "another"));
    assert_ok(clt_trainer_set_note(m.trainer, "{\"note\": \"\xc3\xa9\"}"));
    assert_ok(clt_checkpoint_save(m.trainer, NULL, support_path("c.safetensors")));
    assert_ok(clt_weights_save(m.trainer, support_path("w.safetensors")));
    assert_ok(clt_trainer_set_note(m.trainer, NULL));
    assert_ok(clt_weights_save(m.trainer, support_path("n.safetensors")));
    assert_status(clt_weights_metadata(support_path("n.safetensors"), "cltrain.note", text, sizeof text), CLT_E_NOT_FOUND);
    destroy(&m);
    clt_dataset_destroy(d);
    for (int i = 0; i < 2; i++) {
        const char *path = support_path(i ? "w.safetensors" : "c.safetensors");
        assert_ok(clt_preprocessing_load(&loaded, path));
        assert_ok(clt_weights_metadata(path, "cltrain.model", text, sizeof text));
        assert_string_equal(text, "logistic");
        assert_ok(clt_weights_metadata(path, "cltrain.note", text, sizeof text));
        assert_string_equal(text, "{\"note\": \"\xc3\xa9\"}");
        clt_csv_options options = {.like = loaded, .no_label = true};
        assert_ok(clt_dataset_csv(&d, write_text("new.csv", "height,id,width\n20,a,1\n10,b,3\n"), &options));
        assert_ok(clt_preprocessing_apply(loaded, d));
        assert_ok(make(&m, loaded, clt_preprocessing_classes(loaded)));
        assert_ok(clt_checkpoint_load(m.trainer, NULL, path));
        assert_ok(clt_weights_save(m.trainer, support_path("again.safetensors"))); /* whose note is the checkpoint's; of weights none is taken over */
        assert_status(clt_weights_metadata(support_path("again.safetensors"), "cltrain.note", text, sizeof text), i ? CLT_E_NOT_FOUND : CLT_OK);
        batch = batch_of(d);
        assert_ok(clt_trainer_predict(m.trainer, m.output, &batch, found, 4));
        for (int k = 0; k < 4; k++) assert_float_equal(found[k], wanted[k], 1e-5);
        destroy(&m);
        clt_dataset_destroy(d);
        clt_preprocessing_destroy(loaded);
    }
    assert_status(clt_weights_metadata(support_path("w.safetensors"), "nothing", text, sizeof text), CLT_E_NOT_FOUND);
    assert_status(clt_weights_metadata(support_path("w.safetensors"), "cltrain.model", text, 8), CLT_E_RANGE);
    assert_status(clt_preprocessing_load(&loaded, "/nowhere"), CLT_E_IO);
}

/* The checkpoint of one table does not go on with another. */
static void other_data_are_refused(void **state) {
    (void)state;
    static const struct {
        const char *text, *words;
        bool standardized;
    } others[] = {
        {"width,height,kind\n1,21,dog\n3,10,cat\n", "was trained with mean 4 and deviation 2.23607 of element 0, and the data were standardized with", true},
        {table, "was trained on elements that were standardized, and those of the data are not", false},
        {"width,depth,kind\n1,20,dog\n3,10,cat\n", "was trained on the columns width, height, and the data have width, depth", true},
        {"width,height,kind\n1,20,dog\n3,10,cow\n", "was trained on the classes cat, dog, and the data have cow, dog", true},
        {"width,height,kind\n1,20,1\n3,10,0\n", "was trained on the classes cat, dog, and the data have 0, 1, ...", true},
    };
    clt_dataset *d = read_table(table, NULL);
    assert_ok(clt_dataset_standardize(d, d));
    clt_preprocessing *p = of(d);
    model m;
    assert_ok(make(&m, p, 2));
    assert_ok(clt_checkpoint_save(m.trainer, NULL, support_path("of.safetensors")));
    assert_ok(clt_checkpoint_load(m.trainer, NULL, support_path("of.safetensors")));
    destroy(&m);
    clt_preprocessing_destroy(p);
    clt_dataset_destroy(d);
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        d = read_table(others[i].text, NULL);
        if (others[i].standardized) assert_ok(clt_dataset_standardize(d, d));
        p = of(d);
        assert_ok(make(&m, p, 2));
        assert_status(clt_checkpoint_load(m.trainer, NULL, support_path("of.safetensors")), CLT_E_MISMATCH);
        assert_detail("of.safetensors");
        assert_detail(others[i].words);
        destroy(&m);
        clt_preprocessing_destroy(p);
        clt_dataset_destroy(d);
    }
    assert_ok(make(&m, NULL, 2)); /* a program that tells nothing of its data */
    assert_ok(clt_checkpoint_load(m.trainer, NULL, support_path("of.safetensors")));
    assert_ok(clt_weights_save(m.trainer, support_path("untold.safetensors")));
    assert_status(clt_preprocessing_load(&p, support_path("untold.safetensors")), CLT_E_NOT_FOUND);
    assert_detail("does not tell what data");
    destroy(&m);
}

static int open_device(void **state) {
    (void)state;
    return clt_device_open(&device, NULL) < 0;
}

static int close_device(void **state) {
    (void)state;
    clt_device_close(device);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(text_and_back),
        cmocka_unit_test(hostile_texts),
        cmocka_unit_test(survives_failing_memory),
        cmocka_unit_test(what_is_applied_is_what_was_measured),
        cmocka_unit_test(a_target_is_standardized_as_one),
        cmocka_unit_test(pixels_are_divided),
        cmocka_unit_test(what_does_not_suit_is_refused),
        cmocka_unit_test(a_file_is_enough),
        cmocka_unit_test(other_data_are_refused),
    };
    return cmocka_run_group_tests_name("preprocessing", tests, open_device, close_device);
}
