#include "tests/data/files.h"

#include <cltrain/data.h>
#include <cltrain/log.h>
#include <cltrain/preprocessing.h>

#include "runtime/data/csv_date.h"
#include "runtime/data/csv_features.h"

static const float *x_of(const clt_dataset *d) {
    return clt_dataset_array(d, 0).data;
}

static const int32_t *labels_of(const clt_dataset *d) {
    return clt_dataset_array(d, 1).data;
}

static clt_dataset *read_csv(const char *text, clt_csv_options options) {
    clt_dataset *d = NULL;
    assert_ok(clt_dataset_csv(&d, write_text("t.csv", text), &options));
    return d;
}

static void refuse(const char *text, clt_csv_options options, clt_status status, const char *words) {
    clt_dataset *d;
    const char *path = write_text("bad.csv", text);
    watch_begin(-1);
    assert_status(clt_dataset_csv(&d, path, &options), status);
    watch_end();
    assert_detail("bad.csv");
    assert_detail(words);
}

static void reads_a_table(void **state) {
    clt_dataset *d = NULL;
    assert_ok(clt_dataset_csv(&d, write_text("t.csv", "a,b,class\n1,2.5,0\n-3e1, 4 ,2\n"), NULL));
    assert_int_equal(clt_dataset_samples(d), 2);
    assert_int_equal(clt_dataset_fields(d), 2);
    assert_int_equal(clt_dataset_classes(d), 3);
    assert_int_equal(clt_dataset_shape(d, 0).rank, 1);
    assert_int_equal(clt_dataset_shape(d, 0).dims[0], 2);
    assert_int_equal(clt_dataset_dtype(d, 1), CLT_I32);
    assert_int_equal(clt_dataset_shape(d, 1).rank, 0);
    assert_memory_equal(x_of(d), ((float[]){1, 2.5f, -30, 4}), 16);
    assert_memory_equal(labels_of(d), ((int32_t[]){0, 2}), 8);
    clt_dataset_destroy(d);
    (void)state;
}

/* The label may be any column; the features keep their order. */
static void finds_the_label(void **state) {
    static const char text[] = "a,label,c\n1,2,3\n4,5,6\n";
    static const struct {
        const char *label;
        float x[4];
        int32_t labels[2];
    } cases[] = {
        {"label", {1, 3, 4, 6}, {2, 5}}, {"a", {2, 3, 5, 6}, {1, 4}},  {"c", {1, 2, 4, 5}, {3, 6}},
        {"0", {2, 3, 5, 6}, {1, 4}},     {"1", {1, 3, 4, 6}, {2, 5}},  {"-1", {1, 2, 4, 5}, {3, 6}},
        {"-3", {2, 3, 5, 6}, {1, 4}},    {NULL, {1, 2, 4, 5}, {3, 6}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        clt_dataset *d = read_csv(text, (clt_csv_options){.label = cases[i].label});
        assert_memory_equal(x_of(d), cases[i].x, 16);
        assert_memory_equal(labels_of(d), cases[i].labels, 8);
        clt_dataset_destroy(d);
    }
    refuse(text, (clt_csv_options){.label = "3"}, CLT_E_RANGE, "label column 3 of 3");
    refuse(text, (clt_csv_options){.label = "-4"}, CLT_E_RANGE, "label column -4");
    refuse(text, (clt_csv_options){.label = "99999999999999999999"}, CLT_E_RANGE, "label column 9999");
    refuse(text, (clt_csv_options){.label = "d"}, CLT_E_NOT_FOUND, "no column is named \"d\"");
    refuse("1,2\n", (clt_csv_options){.label = "a"}, CLT_E_NOT_FOUND, "there is no header");
    (void)state;
}

static void reads_regression_targets(void **state) {
    clt_dataset *d = read_csv("1,-0.5\n2,1e3\n", (clt_csv_options){.regression = true});
    assert_int_equal(clt_dataset_dtype(d, 1), CLT_F32);
    assert_int_equal(clt_dataset_shape(d, 1).rank, 1);
    assert_int_equal(clt_dataset_shape(d, 1).dims[0], 1);
    assert_int_equal(clt_dataset_classes(d), 0);
    assert_memory_equal(clt_dataset_array(d, 1).data, ((float[]){-0.5f, 1000}), 8);
    clt_dataset_destroy(d);
    (void)state;
}

static void knows_headers(void **state) {
    clt_dataset *d = read_csv("1,2\n3,4\n", (clt_csv_options){0});
    assert_int_equal(clt_dataset_samples(d), 2);
    clt_dataset_destroy(d);
    d = read_csv("1,2\n3,4\n", (clt_csv_options){.header = true});
    assert_int_equal(clt_dataset_samples(d), 1);
    clt_dataset_destroy(d);
    d = read_csv("1,x\n3,4\n", (clt_csv_options){0});
    assert_int_equal(clt_dataset_samples(d), 1);
    clt_dataset_destroy(d);
    d = read_csv(",x\n3,4\n", (clt_csv_options){0});
    assert_int_equal(clt_dataset_samples(d), 1);
    clt_dataset_destroy(d);
    d = read_csv("# made by\n569,30,names\n3,4\n5,6\n", (clt_csv_options){.skip_lines = 2});
    assert_int_equal(clt_dataset_samples(d), 2);
    clt_dataset_destroy(d);
    refuse("1,x\n3,4\n", (clt_csv_options){.no_header = true}, CLT_E_FORMAT,
           "line 2, column 2: \"4\" is a number, and labels before it are texts");
    /* A first line with a fault is no header, which would hide the fault. */
    refuse("1,,3\n4,5,6\n", (clt_csv_options){0}, CLT_E_FORMAT, "line 1, column 2: \"\" is missing");
    refuse("1,NaN,3\n4,5,6\n", (clt_csv_options){0}, CLT_E_FORMAT,
           "line 1, column 2: \"NaN\" is missing");
    (void)state;
}

static void reads_other_line_ends_separators_and_quotes(void **state) {
    static const char *const texts[] = {
        "a,b\r\n1,2\r\n3,4\r\n\r\n\r\n",
        "a,b\n1,2\n3,4",
        "a,b\r\n1,2\r\n3,4\r",
        "a,b\n1,2\n3,4\n  \n\t\n",
        ("\xef\xbb\xbf"
         "a,b\n1,2\n3,4\n"),
        "a,b\n\"1\",2\n3,\"4\" \n",
        "\"a\",\"b\n,c\"\r\n\"1\",\"2\"\r\n3,\"4\"",
        "\"say \"\"a\"\"\",b\n1,2\n3,4\n",
    };
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        clt_dataset *d = read_csv(texts[i], (clt_csv_options){0});
        assert_int_equal(clt_dataset_samples(d), 2);
        assert_memory_equal(x_of(d), ((float[]){1, 3}), 8);
        assert_memory_equal(labels_of(d), ((int32_t[]){2, 4}), 8);
        clt_dataset_destroy(d);
    }
    clt_dataset *d = read_csv("1;2\n3;4\n", (clt_csv_options){.separator = ';'});
    assert_memory_equal(labels_of(d), ((int32_t[]){2, 4}), 8);
    clt_dataset_destroy(d);
    d = read_csv("1\t2\n\"3\"\t4\n", (clt_csv_options){.separator = '\t'});
    assert_memory_equal(labels_of(d), ((int32_t[]){2, 4}), 8);
    clt_dataset_destroy(d);
    d = read_csv("\"say \"\"a\"\"\",b\n1,2\n3,4\n", (clt_csv_options){.label = "say \"a\""});
    assert_memory_equal(labels_of(d), ((int32_t[]){1, 3}), 8);
    clt_dataset_destroy(d);
    (void)state;
}

static void reads_gzip(void **state) {
    char text[20000];
    size_t length = 0;
    for (int i = 0; i < 1000; i++) length += (size_t)sprintf(text + length, "%d,%d.5,%d\n", i, i, i % 3);
    clt_dataset *d = NULL;
    assert_ok(clt_dataset_csv(&d, write_gz("t.csv.gz", text, length), NULL));
    assert_int_equal(clt_dataset_samples(d), 1000);
    for (int i = 0; i < 1000; i++) {
        assert_true(x_of(d)[2 * i] == (float)i && x_of(d)[2 * i + 1] == (float)i + 0.5f);
        assert_int_equal(labels_of(d)[i], i % 3);
    }
    clt_dataset_destroy(d);
    (void)state;
}

static void names_line_and_column_of_faults(void **state) {
    static const clt_csv_options plain = {0};
    refuse("age,class\n1,0\n2,1\nold,0\n", plain, CLT_E_FORMAT,
           "bad.csv: line 4, column 1 (age): \"old\" is not a number");
    refuse("age,b,class\n1,2,0\n2,,1\n", plain, CLT_E_FORMAT,
           "line 3, column 2 (b): \"\" is missing: missing=drop leaves such lines out");
    refuse("age,class\n1,0\n2,\n", plain, CLT_E_FORMAT, "line 3, column 2 (class): \"\" is missing");
    refuse("1,0\n2, \n", plain, CLT_E_FORMAT, "line 2, column 2: \" \" is missing");
    refuse("1,0\nnan,1\n", plain, CLT_E_FORMAT, "line 2, column 1: \"nan\" is missing");
    refuse("1,0\n-inf,1\n", plain, CLT_E_FORMAT, "line 2, column 1");
    refuse("1,0\n0x10,1\n", plain, CLT_E_FORMAT, "line 2, column 1");
    refuse("1,0\n1e39,1\n", plain, CLT_E_FORMAT, "\"1e39\" is too large for f32");
    refuse("skipped\na,b\n1,0\n\nx,1\n", (clt_csv_options){.skip_lines = 1}, CLT_E_FORMAT,
           "line 4 is blank");
    refuse("skipped\na,b\n1,0\nx,1\n", (clt_csv_options){.skip_lines = 1}, CLT_E_FORMAT,
           "line 4, column 1 (a)");
    refuse("\"two\nlines\",b\n1,0\nx,1\n", plain, CLT_E_FORMAT, "line 4, column 1 (two?lines)");
    refuse("1,0\n1,\x01\x1b[2J\n", plain, CLT_E_FORMAT, "\"??[2J\" is a text, and labels before it are numbers");
    refuse("1,0\n1,aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\n", plain, CLT_E_FORMAT,
           "\"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa...\"");
    (void)state;
}

static void checks_labels(void **state) {
    static const clt_csv_options plain = {0};
    refuse("1,0\n1,-1\n", plain, CLT_E_RANGE, "line 2, column 2: \"-1\" is not a class label");
    refuse("1,0\n1,1.5\n", plain, CLT_E_RANGE, "line 2, column 2: \"1.5\" is not a class label");
    refuse("1,0\n1,16777216\n", plain, CLT_E_RANGE, "line 2, column 2");
    refuse("1,0\n1,1e30\n", plain, CLT_E_RANGE, "line 2, column 2");
    clt_dataset *d = read_csv("1,2.0\n1,16777215\n", plain);
    assert_int_equal(clt_dataset_classes(d), 16777216);
    clt_dataset_destroy(d);
    (void)state;
}

static void checks_the_number_of_fields(void **state) {
    static const clt_csv_options plain = {0};
    refuse("a,b,c\n1,2,3\n1,2\n", plain, CLT_E_FORMAT, "line 3 has 2 fields, not 3 as line 1");
    refuse("a,b,c\n1,2,3\n1,2,3,4,5\n", plain, CLT_E_FORMAT, "line 3 has 5 fields, not 3 as line 1");
    refuse("a,b,c\n1,2,3\n1\n", plain, CLT_E_FORMAT, "line 3 has 1 fields");
    refuse("1,2,3\n1,2,3,\n", plain, CLT_E_FORMAT, "line 2 has 4 fields");
    refuse("a;b;c\n1;2;3\n", plain, CLT_E_FORMAT, "one column");
    (void)state;
}

static void refuses_what_is_no_table(void **state) {
    static const clt_csv_options plain = {0};
    refuse("", plain, CLT_E_FORMAT, "holds no data");
    refuse("a,b\n", plain, CLT_E_FORMAT, "a header, but no data");
    refuse("1,2\n", (clt_csv_options){.skip_lines = 5}, CLT_E_FORMAT, "holds no data after what is skipped");
    refuse("1,2\n3,4", (clt_csv_options){.skip_lines = INT_MAX}, CLT_E_FORMAT, "holds no data after what is skipped");
    refuse("a,b\n1,\"2\n", plain, CLT_E_FORMAT, "line 2: a quote is never closed");
    refuse("a,b\n\"1\"x,2\n", plain, CLT_E_FORMAT, "line 2: text after a closing quote");
    clt_dataset *d;
    assert_status(clt_dataset_csv(&d, write_bytes("zero.csv", "1,2\n1\0,2\n", 9), NULL), CLT_E_FORMAT);
    assert_detail("line 2: a zero byte");
    assert_status(clt_dataset_csv(&d, support_path("absent.csv"), NULL), CLT_E_IO);
    assert_detail("absent.csv");
    assert_status(clt_dataset_csv(&d, support_folder(), NULL), CLT_E_IO);
    assert_status(clt_dataset_csv(&d, NULL, NULL), CLT_E_INVALID);
    assert_status(clt_dataset_csv(NULL, "x", NULL), CLT_E_INVALID);
    const char *path = write_text("t.csv", "1,2\n");
    assert_status(clt_dataset_csv(&d, path, &(clt_csv_options){.header = true, .no_header = true}),
                  CLT_E_INVALID);
    assert_status(clt_dataset_csv(&d, path, &(clt_csv_options){.skip_lines = -1}), CLT_E_INVALID);
    assert_status(clt_dataset_csv(&d, path, &(clt_csv_options){.separator = '"'}), CLT_E_INVALID);
    assert_status(clt_dataset_csv(&d, path, &(clt_csv_options){.separator = '.'}), CLT_E_INVALID);
    (void)state;
}

/* 64 MiB of zeros, or of commas: neither is kept in memory to find that it is no table. */
static void survives_bombs(void **state) {
    clt_dataset *d;
    const char *zeros = write_gz_zeros("zeros.csv.gz", "1,2\n", 4, 1 << 26);
    watch_begin(-1);
    assert_status(clt_dataset_csv(&d, zeros, NULL), CLT_E_FORMAT);
    assert_detail("a field of more than 65536 bytes");
    assert_true(watch_end() < 1 << 20);
    char *commas = malloc(4 << 20);
    assert_non_null(commas);
    memset(commas, ',', 4 << 20);
    const char *path = write_gz("commas.csv.gz", commas, 4 << 20);
    free(commas);
    watch_begin(-1);
    assert_status(clt_dataset_csv(&d, path, NULL), CLT_E_FORMAT);
    assert_detail("more than 1048576 columns");
    assert_true(watch_end() <= 16 << 20);
    (void)state;
}

/* Whichever allocation fails: an error, and nothing is left behind. */
static clt_preprocessing *preprocessing_of(const clt_dataset *d) {
    clt_preprocessing *p = NULL;
    assert_ok(clt_preprocessing_of(&p, d));
    return p;
}

static void assert_names(const clt_preprocessing *p, const char *features, const char *label, const char *classes) {
    char text[256] = "";
    const char *name;
    for (int i = 0; (name = clt_preprocessing_feature(p, i)); i++) strcat(strcat(text, name), " ");
    assert_string_equal(text, features);
    text[0] = 0;
    for (int i = 0; (name = clt_preprocessing_class(p, i)); i++) strcat(strcat(text, name), " ");
    assert_string_equal(text, classes);
    if (label) assert_string_equal(clt_preprocessing_label(p), label);
    else assert_null(clt_preprocessing_label(p));
}

static void survives_failing_memory(void **state) {
    const char *path = write_text("t.csv", "a,b,c\n1,u,y\n,v,x\n");
    const clt_csv_options options = {.missing = CLT_MISSING_MEAN};
    clt_status status = CLT_E_NO_MEMORY;
    int failed = 0;
    for (long at = 0; status != CLT_OK; at++) {
        clt_dataset *d = NULL;
        clt_preprocessing *p = NULL;
        watch_begin(at);
        status = clt_dataset_csv(&d, path, &options);
        if (status == CLT_OK) status = clt_preprocessing_of(&p, d);
        if (status != CLT_OK) assert_int_equal(status, CLT_E_NO_MEMORY);
        failed += status != CLT_OK;
        if (status == CLT_OK) assert_names(p, "a b=u b=v ", "c", "x y "); /* nothing is left out */
        clt_preprocessing_destroy(p);
        clt_dataset_destroy(d);
        watch_end();
    }
    assert_true(failed > 5);
    (void)state;
}

/* Classes are numbered in the order of their names, whichever comes first. */
static void reads_labels_that_are_texts(void **state) {
    (void)state;
    clt_dataset *d = read_csv("a,b,kind\n1,2,dog\n3,4, cat \n5,6,\"an, emu\"\n7,8,dog\n", (clt_csv_options){0});
    clt_preprocessing *p = preprocessing_of(d);
    assert_int_equal(clt_dataset_classes(d), 3);
    assert_memory_equal(labels_of(d), ((int32_t[]){2, 1, 0, 2}), 16);
    assert_names(p, "a b ", "kind", "an, emu cat dog ");
    assert_int_equal(clt_preprocessing_classes(p), 3);
    clt_preprocessing_destroy(p);
    clt_dataset_destroy(d);
    refuse("a,b\n1,cat\n2,3\n", (clt_csv_options){0}, CLT_E_FORMAT, "line 3, column 2 (b): \"3\" is a number, and labels before it are texts");
    refuse("a,b\n1,cat\n2,NA\n", (clt_csv_options){.missing = CLT_MISSING_MEAN}, CLT_E_FORMAT, "line 3, column 2 (b): \"NA\" is missing");
    refuse("a,b\n1,1.5\n", (clt_csv_options){0}, CLT_E_RANGE, "regression=1 any number as a target");
    refuse("a,b\n1,3\n2,cat\n", (clt_csv_options){0}, CLT_E_FORMAT, "line 3, column 2 (b): \"cat\" is a text, and labels before it are numbers");
    refuse("a,b\n1,cat\n2, \n", (clt_csv_options){0}, CLT_E_FORMAT, "line 3, column 2 (b): \" \" is missing: missing=drop leaves lines without a label out");
    refuse("a,b\n1,cat\n", (clt_csv_options){.regression = true}, CLT_E_FORMAT, "\"cat\" is not a number");
}

/* As the UCI's iris.data is. */
static void knows_texts_without_a_header(void **state) {
    (void)state;
    clt_dataset *d = read_csv("5.1,3.5,setosa\n4.9,3.0,setosa\n7,3.2,versicolor\n", (clt_csv_options){0});
    clt_preprocessing *p = preprocessing_of(d);
    assert_int_equal(clt_dataset_samples(d), 3);
    assert_memory_equal(x_of(d), ((float[]){5.1f, 3.5f, 4.9f, 3, 7, 3.2f}), 24);
    assert_memory_equal(labels_of(d), ((int32_t[]){0, 0, 1}), 12);
    assert_names(p, "", NULL, "setosa versicolor ");
    clt_preprocessing_destroy(p);
    clt_dataset_destroy(d);
    /* Texts among the features, too. */
    refuse("5.1,red,setosa\n4.9,blue,setosa\n", (clt_csv_options){0}, CLT_E_FORMAT,
           "line 1, column 2: \"red\" is not a number; features that are texts need a header");
    /* The names of pandas' columns of an array, and labels that are numbers, or texts. */
    d = read_csv("0,1,label\n5,6,cat\n7,8,dog\n", (clt_csv_options){0});
    assert_int_equal(clt_dataset_samples(d), 2);
    assert_int_equal(clt_dataset_classes(d), 2);
    clt_dataset_destroy(d);
    d = read_csv("0,1,label\n5,6,0\n7,8,1\n", (clt_csv_options){0});
    assert_int_equal(clt_dataset_samples(d), 2);
    clt_dataset_destroy(d);
    d = read_csv("5.1,3.5,setosa\n\n", (clt_csv_options){.no_header = true});
    assert_int_equal(clt_dataset_samples(d), 1);
    clt_dataset_destroy(d);
    refuse("1,2,x\n3,4\n", (clt_csv_options){0}, CLT_E_FORMAT, "line 2 has 2 fields, not 3");
}

static void leaves_columns_out(void **state) {
    (void)state;
    static const char text[] = "id,a,when,b,c\nx1,1,mon,2,0\nx2,3,tue,4,1\n";
    clt_dataset *d = read_csv(text, (clt_csv_options){.drop = "id,when"});
    clt_preprocessing *p = preprocessing_of(d);
    assert_memory_equal(x_of(d), ((float[]){1, 2, 3, 4}), 16);
    assert_names(p, "a b ", "c", "");
    clt_preprocessing_destroy(p);
    clt_dataset_destroy(d);
    d = read_csv(text, (clt_csv_options){.drop = "-1,0,2", .regression = true}); /* the label is the last that is kept */
    assert_int_equal(clt_dataset_shape(d, 0).dims[0], 1);
    assert_memory_equal(clt_dataset_array(d, 1).data, ((float[]){2, 4}), 8);
    clt_dataset_destroy(d);
    refuse("a,b,a,c\n1,2,3,0\n", (clt_csv_options){0}, CLT_E_FORMAT, "two columns are named \"a\": rename one, or leave it out by its index, as in drop=0");
    d = read_csv("a,b,a,c\n1,2,3,0\n", (clt_csv_options){.drop = "2"});
    assert_memory_equal(x_of(d), ((float[]){1, 2}), 8);
    clt_dataset_destroy(d);
    refuse(text, (clt_csv_options){.drop = "id,day"}, CLT_E_NOT_FOUND, "no column is named \"day\"; there are id");
    refuse(text, (clt_csv_options){.drop = "7"}, CLT_E_RANGE, "drop column 7 of 5 columns");
    refuse(text, (clt_csv_options){.drop = "id,when,c", .label = "c"}, CLT_E_INVALID, "column 4 is the label and is dropped");
    refuse(text, (clt_csv_options){.drop = "id,a,when,b"}, CLT_E_FORMAT, "no column is left for a feature");
    refuse(text, (clt_csv_options){.drop = "id,a,when,b,c"}, CLT_E_FORMAT, "no column is left for the label");
    refuse("1,0\n0,1\n", (clt_csv_options){.drop = "0,1"}, CLT_E_FORMAT, "no column is left for the label");
    assert_status(clt_dataset_csv(&d, write_text("t.csv", text), &(clt_csv_options){.no_label = true}), CLT_E_INVALID);
    assert_detail("no_label needs like");
}

/* Another order of columns, other classes first, columns more. */
static void reads_as_a_model_was_trained(void **state) {
    (void)state;
    clt_dataset *d = read_csv("a,b,kind\n1,2,cat\n3,4,dog\n5,6,emu\n", (clt_csv_options){0});
    clt_preprocessing *p = preprocessing_of(d);
    clt_dataset_destroy(d);
    d = read_csv("kind,b,a\ndog,20,10\ndog,40,30\n", (clt_csv_options){.like = p});
    assert_memory_equal(x_of(d), ((float[]){10, 20, 30, 40}), 16);
    assert_memory_equal(labels_of(d), ((int32_t[]){1, 1}), 8);
    assert_int_equal(clt_dataset_classes(d), 3);
    clt_dataset_destroy(d);
    d = read_csv("b,id,a\n20,x,10\n", (clt_csv_options){.like = p, .no_label = true});
    assert_int_equal(clt_dataset_fields(d), 1);
    assert_memory_equal(x_of(d), ((float[]){10, 20}), 8);
    clt_dataset_destroy(d);
    d = read_csv("b,kind,a,more\n20,nothing,10,z\n", (clt_csv_options){.like = p, .no_label = true});
    assert_memory_equal(x_of(d), ((float[]){10, 20}), 8);
    clt_dataset_destroy(d);
    d = read_csv("1,2,dog\n3,4,emu\n", (clt_csv_options){.like = p}); /* without names, by place */
    assert_memory_equal(labels_of(d), ((int32_t[]){1, 2}), 8);
    clt_dataset_destroy(d);
    d = read_csv("1,2\n3,4\n", (clt_csv_options){.like = p, .no_label = true});
    assert_int_equal(clt_dataset_samples(d), 2);
    clt_dataset_destroy(d);
    refuse("a,kind\n1,cat\n", (clt_csv_options){.like = p}, CLT_E_MISMATCH, "no column is named \"b\", which the model was trained on; there are a, kind");
    refuse("a,b,c,kind\n1,2,3,cat\n", (clt_csv_options){.like = p}, CLT_E_MISMATCH,
           "the model was not trained on column \"c\", but on a, b: leave it out with drop=c");
    refuse("a,b,type\n1,2,cat\n", (clt_csv_options){.like = p}, CLT_E_MISMATCH, "no column is named \"kind\", as the model's label is");
    refuse("a,b,kind\n1,2,cow\n", (clt_csv_options){.like = p}, CLT_E_RANGE, "\"cow\" is not a class of the model: cat, dog, emu");
    refuse("a,b,kind\n1,2,1\n", (clt_csv_options){.like = p}, CLT_E_RANGE, "\"1\" is not a class of the model: cat, dog, emu");
    refuse("1,2,3,cat\n1,2,3,cat\n", (clt_csv_options){.like = p}, CLT_E_MISMATCH, "3 features; the model was trained on 2");
    /* Without names nobody can tell which column is too many. */
    refuse("9,1,2\n9,3,4\n", (clt_csv_options){.like = p, .no_label = true}, CLT_E_MISMATCH, "3 features; the model was trained on 2");
    clt_preprocessing_destroy(p);
    d = read_csv("a,b\n1,0\n3,2\n", (clt_csv_options){0});
    p = preprocessing_of(d);
    clt_dataset_destroy(d);
    refuse("a,b\n1,3\n", (clt_csv_options){.like = p}, CLT_E_RANGE, "\"3\" is not a class of the model");
    refuse("a,b\n1,cat\n", (clt_csv_options){.like = p}, CLT_E_FORMAT, "\"cat\" is a text, and the model's classes are numbers");
    clt_preprocessing_destroy(p);
}

static const char mixed[] = "colour,size,when,kind\nred,1,a=b,x\nblue,2,a,y\n red ,3,a=b,x\n";

/* A text becomes an element for each that there is. */
static void reads_features_that_are_texts(void **state) {
    (void)state;
    clt_dataset *d = read_csv(mixed, (clt_csv_options){0});
    clt_preprocessing *p = preprocessing_of(d);
    assert_names(p, "colour=blue colour=red size when=a when=a=b ", "kind", "x y ");
    assert_memory_equal(x_of(d), ((float[]){0, 1, 1, 0, 1, 1, 0, 2, 1, 0, 0, 1, 3, 0, 1}), 60);
    clt_dataset_destroy(d);
    d = read_csv("when,kind,colour,size\na,x,red,7\na=b,y,blue,8\n", (clt_csv_options){.like = p});
    assert_memory_equal(x_of(d), ((float[]){0, 1, 7, 1, 0, 1, 0, 8, 0, 1}), 40);
    clt_dataset_destroy(d);
    refuse("colour,size,when,kind\ngreen,1,a,x\n", (clt_csv_options){.like = p}, CLT_E_RANGE,
           "line 2, column 1 (colour): \"green\" is a text that the model does not know: blue, red");
    refuse("colour,size,when,kind\nred,big,a,x\n", (clt_csv_options){.like = p}, CLT_E_FORMAT, "line 2, column 2 (size): \"big\" is not a number");
    refuse("colour,size,when,kind\nred,,a,x\n", (clt_csv_options){.like = p}, CLT_E_FORMAT, "the model was trained without such values");
    refuse("size,when,kind\n1,a,x\n", (clt_csv_options){.like = p}, CLT_E_MISMATCH, "no column is named \"colour\", which the model was trained on");
    refuse("red,1,a,x\nred,1,a,x\n", (clt_csv_options){.like = p, .no_header = true}, CLT_E_MISMATCH, "found by their names: a header is needed");
    clt_preprocessing_destroy(p);
    refuse("a,b,c\n1,2,0\nred,3,1\n", (clt_csv_options){0}, CLT_E_FORMAT,
           "line 3, column 1 (a): \"red\" is not a number: a value that is missing is empty, NA or \"?\"; texts=0 takes all as texts, drop=0 leaves the column out");
    refuse("a,b,c\nred,3,1\n1,2,0\n", (clt_csv_options){0}, CLT_E_FORMAT, "line 3, column 1 (a): \"1\" is a number, and fields before it are texts");
    refuse("a;b;c\n1,5;3;1\n", (clt_csv_options){.separator = ';'}, CLT_E_FORMAT, "column 1 (a): \"1,5\" is not a number: expected a decimal point");
    refuse("red,1,0\nred,2,1\n", (clt_csv_options){.no_header = true}, CLT_E_FORMAT, "line 1, column 1: \"red\" is not a number");
    /* Names with a sign between are no categories, and categories are of no such names. */
    d = read_csv("x=1,x=2,c\n1,2,0\n3,4,1\n", (clt_csv_options){0});
    p = preprocessing_of(d);
    clt_dataset_destroy(d);
    refuse("x,c\n1,0\n2,1\n", (clt_csv_options){.like = p}, CLT_E_MISMATCH, "no column is named \"x=1\"");
    clt_preprocessing_destroy(p);
    /* Dates are no categories, unless they are said to be texts; versions and others are. */
    refuse("day,b,c\n2024-03-31,1,0\n2024-04-01,2,1\n2024-03-31,1,0\n", (clt_csv_options){0}, CLT_E_FORMAT, "column 1 (day) holds dates, such as \"2024-04-01\": leave it out with drop=0");
    refuse("day,b,c\n2024-03-31,1,0\nunknown,2,1\n2024-04-01,1,0\n", (clt_csv_options){0}, CLT_E_FORMAT, "column 1 (day) holds dates");
    static const char *const dates[] = {"31.03.2024", "3/31/2024", "31-12-24", "2024/1/1", "2024-03-31 12:30", "2024-03-31T12:30:00Z",
                                        "2024-03", "3/2024", "1/3/99", "01 Jan 2020", "Jan 1, 2020", "january 2020", "Sun, 31 Mar 2024 12:30:00 GMT", "31-Mar-24", "March 3rd", "1 Sept 2020 1:05 PM"};
    static const char *const others[] = {"1.2.3", "2024-13", "1998-99", "12.2024", "3-5", "march", "Jan Novak 3", "may be 3", "Oct 1 Nov 2", "Mon 3", "10.0.0.1", "1-2-3-4", "2024-03-31x", "1-2.2024", "12-12345-12", "a-b-c", "12--2024"};
    for (size_t i = 0; i < sizeof dates / sizeof *dates; i++) assert_true(clt_csv_is_date(dates[i]));
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) assert_false(clt_csv_is_date(others[i]));
    d = read_csv("day,b,c\n2024-03-31,1,0\n2024-04-01,2,1\n", (clt_csv_options){.texts = "day"});
    assert_int_equal(clt_dataset_shape(d, 0).dims[0], 3);
    clt_dataset_destroy(d);
    d = read_csv("day,b,c\n2024-03-31,1,0\nnever,2,1\n", (clt_csv_options){0});
    clt_dataset_destroy(d);
    static char many[3000];
    size_t used = (size_t)sprintf(many, "a,b\n");
    for (int i = 0; i <= 100; i++) used += (size_t)sprintf(many + used, "t%d,0\n", i);
    refuse(many, (clt_csv_options){0}, CLT_E_RANGE, "\"t100\" is one text more than 100: leave the column out with drop=0");
    many[used -= strlen("t100,0\n")] = 0;
    refuse(many, (clt_csv_options){0}, CLT_E_FORMAT, "column 1 (a): 100 different texts in 100 lines, as identifiers have: leave it out with drop=0");
    d = read_csv(many, (clt_csv_options){.texts = "a"}); /* the caller knows better */
    clt_dataset_destroy(d);
    for (int i = 0; i < 100; i++) used += (size_t)sprintf(many + used, "t%d,1\n", i);
    d = read_csv(many, (clt_csv_options){0});
    assert_int_equal(clt_dataset_shape(d, 0).dims[0], 100);
    clt_dataset_destroy(d);
}

/* Codes are no amounts, and -1 and 1 no whole numbers from 0. */
static void takes_numbers_as_texts(void **state) {
    (void)state;
    clt_dataset *d = read_csv("code,b,sign\n30,1,-1\n7,2,1\nx,3,-1\n", (clt_csv_options){.texts = "code,sign"});
    clt_preprocessing *p = preprocessing_of(d);
    assert_names(p, "code=30 code=7 code=x b ", "sign", "-1 1 ");
    assert_memory_equal(x_of(d), ((float[]){1, 0, 0, 1, 0, 1, 0, 2, 0, 0, 1, 3}), 48);
    assert_memory_equal(labels_of(d), ((int32_t[]){0, 1, 0}), 12);
    clt_dataset_destroy(d);
    d = read_csv("sign,b,code\n1,5,7\n", (clt_csv_options){.like = p}); /* the model knows which */
    assert_memory_equal(x_of(d), ((float[]){0, 1, 0, 5}), 16);
    assert_int_equal(labels_of(d)[0], 1);
    clt_dataset_destroy(d);
    refuse("sign,b,code\n1,5,8\n", (clt_csv_options){.like = p}, CLT_E_RANGE, "\"8\" is a text that the model does not know: 30, 7, x");
    refuse("sign,b,code\n0,5,7\n", (clt_csv_options){.like = p}, CLT_E_RANGE, "\"0\" is not a class of the model: -1, 1");
    clt_preprocessing_destroy(p);
    d = read_csv("5,1\n-5,2\n", (clt_csv_options){.texts = "-2", .label = "0"}); /* of a table without a header the label alone */
    assert_int_equal(clt_dataset_classes(d), 2);
    clt_dataset_destroy(d);
    refuse("5,1\n-5,2\n", (clt_csv_options){.texts = "0"}, CLT_E_FORMAT, "features that are texts need a header");
    refuse("a,b\n1,0\n2,1\n", (clt_csv_options){.texts = "c"}, CLT_E_NOT_FOUND, "no column is named \"c\"");
    refuse("a,b,c\n1,0,1\n2,1,1\n", (clt_csv_options){.texts = "a", .drop = "a"}, CLT_E_INVALID, "column 0 is texts and is dropped");
    refuse("a,b\n1,-1\n", (clt_csv_options){0}, CLT_E_RANGE, "texts=COLUMN takes any text as a class");
}

static void knows_headers_of_numbers_by_the_model(void **state) {
    (void)state;
    clt_dataset *d = read_csv("1990,1991,kind\n1,2,x\n3,4,y\n", (clt_csv_options){.header = true});
    clt_preprocessing *p = preprocessing_of(d);
    clt_dataset_destroy(d);
    refuse("1991,1990\n20,10\n", (clt_csv_options){.like = p, .no_label = true}, CLT_E_FORMAT,
           "line 1 has the numbers that name the model's columns: header=1 takes it for names, header=0 for data");
    d = read_csv("1991,1990,kind\n20,10,x\n", (clt_csv_options){.like = p}); /* a text among them says it */
    assert_int_equal(clt_dataset_samples(d), 1);
    clt_dataset_destroy(d);
    d = read_csv("1991,1990\n20,10\n", (clt_csv_options){.like = p, .no_label = true, .header = true});
    assert_int_equal(clt_dataset_samples(d), 1);
    assert_memory_equal(x_of(d), ((float[]){10, 20}), 8);
    clt_dataset_destroy(d);
    d = read_csv("1991,1992\n20,10\n", (clt_csv_options){.like = p, .no_label = true}); /* another name: these are numbers */
    assert_int_equal(clt_dataset_samples(d), 2);
    clt_dataset_destroy(d);
    d = read_csv("1991,1990\n20,10\n", (clt_csv_options){.like = p, .no_label = true, .no_header = true});
    assert_int_equal(clt_dataset_samples(d), 2);
    clt_dataset_destroy(d);
    clt_preprocessing_destroy(p);
}

/* Of a table without names it is known where the label was. */
static void remembers_the_place_of_the_label(void **state) {
    (void)state;
    clt_dataset *d = read_csv("9,1,5,6\n9,0,7,8\n9,1,3,4\n", (clt_csv_options){.label = "1", .drop = "0"});
    clt_preprocessing *p = preprocessing_of(d);
    clt_dataset_destroy(d);
    d = read_csv("1,50,60\n0,70,80\n", (clt_csv_options){.like = p});
    assert_memory_equal(labels_of(d), ((int32_t[]){1, 0}), 8);
    assert_memory_equal(x_of(d), ((float[]){50, 60, 70, 80}), 16);
    clt_dataset_destroy(d);
    d = read_csv("1,50,60\n0,70,80\n", (clt_csv_options){.like = p, .no_label = true});
    assert_memory_equal(x_of(d), ((float[]){50, 60, 70, 80}), 16);
    clt_dataset_destroy(d);
    d = read_csv("50,60\n", (clt_csv_options){.like = p, .no_label = true});
    assert_memory_equal(x_of(d), ((float[]){50, 60}), 8);
    clt_dataset_destroy(d);
    clt_preprocessing_destroy(p);
}

static void refuses_headers_of_numbers(void **state) {
    (void)state;
    refuse("2019,2020,2021\n1,2,3\n2,3,1\n0,1,5\n", (clt_csv_options){.regression = true}, CLT_E_FORMAT,
           "line 1 has numbers far from all others, as names of columns may be: header=1 takes it for names, header=0 for data");
    refuse("1990,2000,kind\n0.5,1,cat\n0.7,2,dog\n0.1,3,cat\n", (clt_csv_options){0}, CLT_E_FORMAT, "line 1 has numbers far from all others");
    static const char *const beside_texts[] = {"species,0,1,2\nhi,3,4,5\nlo,6,7,8\n", "name,0,1,2,label\na,3,4,5,x\nb,6,7,8,y\n", ",0,1,2,label\n0,3,4,5,x\n1,6,7,8,y\n"};
    for (int i = 0; i < 3; i++) refuse(beside_texts[i], (clt_csv_options){0}, CLT_E_FORMAT, "line 1 is 0, 1, 2, ..., as pandas names columns");
    refuse("label,10,20\nhi,1,2\nlo,3,4\nhi,5,6\nlo,15,24\n", (clt_csv_options){.label = "0"}, CLT_E_FORMAT,
           "the label of line 1, \"label\", is that of no other line, as the name of its column may be: header=1 takes the line for names, header=0 for data");
    refuse("0,1,2\n0.5,1.25,1\n0.75,2,0\n", (clt_csv_options){0}, CLT_E_FORMAT, "line 1 is 0, 1, 2, ..., as pandas names columns: header=1 takes it for names, header=0 for data");
    clt_dataset *d = read_csv("0,1,2\n0.5,1.25,1\n0.75,2,0\n", (clt_csv_options){.header = true});
    assert_int_equal(clt_dataset_samples(d), 2);
    clt_dataset_destroy(d);
    d = read_csv("0,1\n0.5,1\n0.75,0\n", (clt_csv_options){0}); /* too few to tell */
    assert_int_equal(clt_dataset_samples(d), 3);
    clt_dataset_destroy(d);
    d = read_csv("x,y\n0.5,01\n0.75,1\n1,00\n", (clt_csv_options){.texts = "y"});
    assert_int_equal(clt_dataset_classes(d), 3);
    clt_dataset_destroy(d);
    refuse(",0,1\n0,0.5,1\n1,0.75,0\n", (clt_csv_options){.drop = "0"}, CLT_E_FORMAT, "as pandas names columns");
    d = read_csv("x,y\n0.5,01\n0.75,02\n1,10\n1,00\n", (clt_csv_options){0}); /* months are numbers */
    assert_int_equal(clt_dataset_classes(d), 11);
    clt_dataset_destroy(d);
    d = read_csv("2019,2020,1\n1,2,0\n2,3,1\n0,1,0\n", (clt_csv_options){.no_header = true});
    assert_int_equal(clt_dataset_samples(d), 4);
    clt_dataset_destroy(d);
    d = read_csv("2019,2,1\n1,2,0\n2,3,1\n0,1,0\n", (clt_csv_options){0}); /* one value alone is far */
    assert_int_equal(clt_dataset_samples(d), 4);
    clt_dataset_destroy(d);
    refuse("1,\"3,14\"\n2,\"2,71\"\n", (clt_csv_options){0}, CLT_E_FORMAT, "\"3,14\" is not a class label: expected a decimal point, or texts=COLUMN for texts");
}

static void refuses_names_that_are_categories(void **state) {
    (void)state;
    refuse("colour,colour=green,kind\nred,1,x\nblue,2,y\n", (clt_csv_options){0}, CLT_E_FORMAT,
           "column \"colour=green\" is named as a category of column \"colour\" is: rename one, or leave one out with drop=1");
    refuse("a=b,a,kind\nred,red,x\nblue,blue,y\n", (clt_csv_options){0}, CLT_E_FORMAT, "column \"a=b\" is named as a category of column \"a\"");
    clt_dataset *d = read_csv("colour,colour=green,colours,kind\n1,1,a,x\n2,2,b,y\n", (clt_csv_options){0}); /* it is numbers */
    clt_dataset_destroy(d);
}

static void fills_or_leaves_out_what_is_missing(void **state) {
    (void)state;
    static const char text[] = "a,colour,b,kind\n1,red,10,x\n,blue,NA,y\n3, ,20,x\nnan,red,60,y\n";
    refuse(text, (clt_csv_options){0}, CLT_E_FORMAT, "line 3, column 1 (a): \"\" is missing: missing=drop leaves such lines out, missing=mean");
    clt_dataset *d = read_csv(text, (clt_csv_options){.missing = CLT_MISSING_DROP});
    assert_memory_equal(x_of(d), ((float[]){1, 1, 10}), 12);
    assert_int_equal(clt_dataset_samples(d), 1);
    clt_dataset_destroy(d);
    d = read_csv(text, (clt_csv_options){.missing = CLT_MISSING_MEAN});
    assert_memory_equal(x_of(d), ((float[]){1, 0, 1, 10, 2, 1, 0, 30, 3, 0, 0, 20, 2, 0, 1, 60}), 64);
    clt_dataset *parts[2];
    assert_ok(clt_dataset_split(d, (double[]){0.5, 0.5}, 2, 1, parts)); /* each has all that is known */
    for (int i = 0; i < 4; i++) { /* also where a sample was */
        int64_t whole = clt_dataset_sample_index(parts[i / 2], i % 2);
        assert_in_range(whole, 0, 3);
        assert_memory_equal(x_of(parts[i / 2]) + i % 2 * 4, x_of(d) + whole * 4, 16);
        assert_int_equal(clt_dataset_sample_line(d, whole), 2 + whole);
    }
    clt_preprocessing *p = preprocessing_of(parts[1]);
    clt_dataset_destroy(parts[0]);
    clt_dataset_destroy(parts[1]);
    clt_dataset_destroy(d);
    d = read_csv("b,a,colour\nNULL,7,blue\n5,,N/A\n", (clt_csv_options){.like = p, .no_label = true}); /* what it was in training */
    assert_memory_equal(x_of(d), ((float[]){7, 1, 0, 30, 2, 0, 0, 5}), 32);
    clt_dataset_destroy(d);
    refuse("b,a,colour\nNULL,7,blue\n", (clt_csv_options){.like = p, .no_label = true, .missing = CLT_MISSING_REFUSE}, CLT_E_FORMAT,
           "line 2, column 1 (b): \"NULL\" is missing, and missing=refuse is given");
    clt_preprocessing_destroy(p);
    refuse("a,b\n1,0\n2,\n", (clt_csv_options){.missing = CLT_MISSING_MEAN}, CLT_E_FORMAT, "line 3, column 2 (b): \"\" is missing");
    refuse("a,b\n,0\nNA,1\n", (clt_csv_options){.missing = CLT_MISSING_MEAN}, CLT_E_FORMAT, "column 1 has no value at all: leave it out with drop=0");
    refuse("a,b\n,0\nNA,1\n", (clt_csv_options){.missing = CLT_MISSING_DROP}, CLT_E_FORMAT, "each line lacks a value");
    assert_status(clt_dataset_csv(&d, write_text("t.csv", text), &(clt_csv_options){.missing = 4}), CLT_E_INVALID);
    /* What stands in a line that is left out does not count, but for its length. */
    d = read_csv("a,kind,b\n1,cat,\n2,0,3\nx,2,NA\n5,1,7\n\n", (clt_csv_options){.missing = CLT_MISSING_DROP, .drop = "a", .label = "kind"});
    assert_memory_equal(x_of(d), ((float[]){3, 7}), 8);
    assert_int_equal(clt_dataset_sample_line(d, 0), 3);
    assert_int_equal(clt_dataset_sample_line(d, 1), 5);
    assert_int_equal(clt_dataset_sample_line(d, 2), 0);
    assert_int_equal(clt_dataset_classes(d), 2);
    clt_dataset_destroy(d);
    refuse("a,b\n1,0\n\n2,1\n", (clt_csv_options){.missing = CLT_MISSING_DROP}, CLT_E_FORMAT, "line 3 is blank, but data follow");
    refuse("a,b,kind\n1,,0,1\n2,3,0\n", (clt_csv_options){.missing = CLT_MISSING_DROP}, CLT_E_FORMAT, "line 2 has 4 fields, not 3");
}

static void names_more_lines_that_are_bad(void **state) {
    (void)state;
    static char many[20000];
    refuse("a,b\n1,0\n,1\n2,0\nx,1\n", (clt_csv_options){0}, CLT_E_FORMAT, "line 3, column 1 (a): \"\" is missing");
    assert_detail("there; other lines with fields that cannot be used: 5");
    refuse("a,b,c\n,,-1\n1,NA,0\n1,2,0\n1,2,0.5\n1,,0\n1,,0\n?,1,0\n", (clt_csv_options){0}, CLT_E_FORMAT, "line 2, column 1 (a)");
    assert_detail("cannot be used: 3, 5, 6 and 2 more"); /* a line counts once */
    refuse("a,b\n,0\n1,0\n", (clt_csv_options){0}, CLT_E_FORMAT, "line 2, column 1 (a)");
    assert_null(strstr(clt_error_detail(), "other lines"));
    refuse("a,b\n,0\n1,0,3\n", (clt_csv_options){0}, CLT_E_FORMAT, "line 3 has 3 fields"); /* of which nothing more can be read */
    size_t used = (size_t)sprintf(many, "a,b\n");
    for (int i = 0; i < 3000; i++) used += (size_t)sprintf(many + used, ",0\n");
    refuse(many, (clt_csv_options){0}, CLT_E_FORMAT, "cannot be used: 3, 4, 5 and more");
    refuse("a,gr\xfc\xdf,b\n1,2,0\n", (clt_csv_options){0}, CLT_E_FORMAT, "the name \"gr\\xfc\\xdf\" is not UTF-8: convert the table");
    refuse("a,b\n1,gr\xfcn\n", (clt_csv_options){0}, CLT_E_FORMAT, "is not UTF-8");
    refuse("a,b\xfc\n1,0\n", (clt_csv_options){0}, CLT_E_FORMAT, "is not UTF-8");
}

/* Any number up to the limit keeps its order. */
static void knows_many_texts(void **state) {
    (void)state;
    enum { MOST = 10000 };
    static char text[MOST * 20];
    for (int more = 0; more < 2; more++) {
        size_t used = (size_t)sprintf(text, "a,b\n");
        for (int i = 0; i < MOST + more; i++) used += (size_t)sprintf(text + used, "1,t%05d\n", (i * 7919 + 3) % 99991);
        if (more) {
            refuse(text, (clt_csv_options){0}, CLT_E_RANGE, "one text more than 10000: too many for classes");
            continue;
        }
        clt_dataset *d = read_csv(text, (clt_csv_options){0});
        clt_preprocessing *p = preprocessing_of(d);
        char name[16];
        for (int i = 0; i < MOST; i++) {
            sprintf(name, "t%05d", (i * 7919 + 3) % 99991);
            assert_string_equal(clt_preprocessing_class(p, labels_of(d)[i]), name);
            if (i) assert_true(strcmp(clt_preprocessing_class(p, i - 1), clt_preprocessing_class(p, i)) < 0);
        }
        clt_preprocessing_destroy(p);
        clt_dataset_destroy(d);
    }
}

/* More rows than are kept in memory at a time, of numbers, texts and missing values, with the label as said: 'c' classes, 't' texts, 'n' numbers. */
static const char *write_long_table(char label) {
    enum { ROWS = 9001 };
    static char text[ROWS * 60];
    static const char *const colours[] = {"red", "green", "blue", "?", "mauve"}, *const kinds[] = {"zebra", "ant", "mole"};
    size_t used = (size_t)sprintf(text, "x,colour,late,who,y\n");
    for (int i = 0; i < ROWS; i++) {
        used += (size_t)sprintf(text + used, "%s%d.25,%s,%s,p%d,", i % 7 ? "" : "-", i, colours[i * 13 % 5], i < 5000 ? "NA" : "3.5", i * 31 % 101);
        if (label == 't') used += (size_t)sprintf(text + used, "%s\n", kinds[i % 3]);
        else used += (size_t)sprintf(text + used, label == 'c' ? "%d\n" : "%d.5\n", label == 'c' ? i % 4 : i);
    }
    return write_text("long.csv", text);
}

static void assert_alike(const clt_dataset *a, const clt_dataset *b) {
    float x[2][16];
    int32_t y[2];
    assert_int_equal(clt_dataset_samples(a), clt_dataset_samples(b));
    assert_int_equal(clt_dataset_classes(a), clt_dataset_classes(b));
    assert_int_equal(clt_dataset_shape(a, 0).dims[0], clt_dataset_shape(b, 0).dims[0]);
    assert_int_equal(clt_dataset_dtype(a, 1), clt_dataset_dtype(b, 1));
    size_t bytes = (size_t)clt_dataset_shape(a, 0).dims[0] * sizeof(float);
    for (int64_t i = 0; i < clt_dataset_samples(a); i++) {
        assert_ok(clt_dataset_fetch(a, &(clt_sample){.index = i}, (void *[]){x[0], &y[0]}));
        assert_ok(clt_dataset_fetch(b, &(clt_sample){.index = i}, (void *[]){x[1], &y[1]}));
        assert_memory_equal(x[0], x[1], bytes);
        assert_int_equal(y[0], y[1]);
    }
}

static void spills_what_is_larger_than_memory(void **state) {
    (void)state;
    const clt_csv_options kinds[] = {{.missing = CLT_MISSING_MEAN}, {.missing = CLT_MISSING_MEAN, .group = "who"}, {.missing = CLT_MISSING_DROP, .drop = "who"},
                                     {.missing = CLT_MISSING_MEAN, .texts = "x", .drop = "colour,who,x"}};
    const char labels[] = "ctn";
    for (int k = 0; k < 4; k++)
        for (int l = 0; l < 3; l++) {
            clt_csv_options options = kinds[k];
            clt_dataset *read = NULL, *spilled = NULL, *parts[2][2];
            const char *path = write_long_table(labels[l]);
            options.regression = labels[l] == 'n';
            if (k == 0) options.drop = "who";
            if (k == 3) options.texts = NULL, options.drop = "colour,who,late";
            assert_ok(clt_dataset_csv(&read, path, &options));
            options.spill = support_folder();
            assert_ok(clt_dataset_csv(&spilled, path, &options));
            assert_null(clt_dataset_array(spilled, 0).data);
            assert_alike(read, spilled);
            assert_ok(clt_dataset_split(read, (double[]){0.7, 0.3}, 2, 5, parts[0]));
            assert_ok(clt_dataset_split(spilled, (double[]){0.7, 0.3}, 2, 5, parts[1]));
            for (int p = 0; p < 2; p++) assert_alike(parts[0][p], parts[1][p]);
            clt_preprocessing *a = preprocessing_of(read), *b = preprocessing_of(spilled); /* and what is read as the model's table */
            for (int64_t i = 0; clt_preprocessing_feature(a, i); i++) assert_string_equal(clt_preprocessing_feature(a, i), clt_preprocessing_feature(b, i));
            clt_dataset *again = NULL;
            options.like = b;
            assert_ok(clt_dataset_csv(&again, path, &options));
            assert_alike(read, again);
            clt_preprocessing_destroy(a), clt_preprocessing_destroy(b);
            for (int p = 0; p < 2; p++) clt_dataset_destroy(parts[0][p]), clt_dataset_destroy(parts[1][p]);
            clt_dataset_destroy(again), clt_dataset_destroy(read), clt_dataset_destroy(spilled);
        }
}

static void refuses_what_cannot_be_spilled(void **state) {
    (void)state;
    clt_dataset *d = NULL;
    const char *path = write_long_table('c');
    refuse("a,b\n1600000000.5,0\n1600000001.5,1\n1600000002.5,0\n", (clt_csv_options){.spill = support_folder()}, CLT_E_RANGE, "f32 cannot tell values from 1600000000.5 to 1600000002.5 apart");
    clt_csv_options options = {.missing = CLT_MISSING_MEAN, .drop = "who", .spill = support_path("nowhere")};
    assert_status(clt_dataset_csv(&d, path, &options), CLT_E_IO);
    assert_detail("nowhere: no file can be made there");
    options.spill = support_folder();
    options.missing = CLT_MISSING_REFUSE;
    assert_status(clt_dataset_csv(&d, path, &options), CLT_E_FORMAT);
    options.missing = CLT_MISSING_MEAN;
    for (int64_t at = 0; at < 60; at++) {
        watch_begin(at);
        clt_status status = clt_dataset_csv(&d, path, &options);
        if (status == CLT_OK) clt_dataset_destroy(d);
        else assert_int_equal(status, CLT_E_NO_MEMORY);
        watch_end();
    }
}

/* They are no feature and not the label, and say what is held out together. */
static void reads_groups(void **state) {
    (void)state;
    static char text[4096];
    size_t used = (size_t)sprintf(text, "age,patient,kind\n");
    for (int i = 0; i < 60; i++) used += (size_t)sprintf(text + used, "%d, %s%d,%d\n", i, i % 6 < 3 ? "p" : "", i % 6, i % 2);
    clt_dataset *d = read_csv(text, (clt_csv_options){.group = "patient"}), *parts[2];
    assert_int_equal(clt_dataset_shape(d, 0).dims[0], 1);
    assert_ok(clt_dataset_split(d, (double[]){0.5, 0.5}, 2, 1, parts));
    for (int p = 0; p < 2; p++) {
        int of_patient[6] = {0};
        const float *age = clt_dataset_array(parts[p], 0).data;
        for (int64_t i = 0; i < clt_dataset_samples(parts[p]); i++) of_patient[(int)age[i] % 6]++;
        for (int k = 0; k < 6; k++) assert_true(of_patient[k] == 0 || of_patient[k] == 10);
        clt_dataset_destroy(parts[p]);
    }
    clt_dataset_destroy(d);
    d = read_csv("a,b,g\n1,0,x\n2,1,y\n", (clt_csv_options){.group = "g"}); /* the label is the last that is left */
    assert_int_equal(clt_dataset_shape(d, 0).dims[0], 1);
    assert_int_equal(labels_of(d)[1], 1);
    clt_dataset_destroy(d);
    refuse("a,g,b\n1,x,0\n2,,1\n", (clt_csv_options){.group = "g"}, CLT_E_FORMAT, "line 3, column 2 (g): \"\" is missing: it tells which lines belong together");
    refuse("a,g,b\n1,x,0\n", (clt_csv_options){.group = "h"}, CLT_E_NOT_FOUND, "no column is named \"h\"");
    refuse("a,g,b\n1,x,0\n", (clt_csv_options){.group = "b", .label = "b"}, CLT_E_INVALID, "column 2 is the label and tells groups");
    refuse("a,g,b\n1,x,0\n", (clt_csv_options){.group = "g", .drop = "g"}, CLT_E_INVALID, "column 1 tells groups and is dropped");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_a_table),
        cmocka_unit_test(finds_the_label),
        cmocka_unit_test(reads_regression_targets),
        cmocka_unit_test(knows_headers),
        cmocka_unit_test(reads_other_line_ends_separators_and_quotes),
        cmocka_unit_test(reads_gzip),
        cmocka_unit_test(names_line_and_column_of_faults),
        cmocka_unit_test(checks_labels),
        cmocka_unit_test(checks_the_number_of_fields),
        cmocka_unit_test(refuses_what_is_no_table),
        cmocka_unit_test(survives_bombs),
        cmocka_unit_test(reads_labels_that_are_texts),
        cmocka_unit_test(knows_texts_without_a_header),
        cmocka_unit_test(leaves_columns_out),
        cmocka_unit_test(reads_as_a_model_was_trained),
        cmocka_unit_test(knows_many_texts),
        cmocka_unit_test(reads_features_that_are_texts),
        cmocka_unit_test(takes_numbers_as_texts),
        cmocka_unit_test(knows_headers_of_numbers_by_the_model),
        cmocka_unit_test(remembers_the_place_of_the_label),
        cmocka_unit_test(refuses_headers_of_numbers),
        cmocka_unit_test(refuses_names_that_are_categories),
        cmocka_unit_test(fills_or_leaves_out_what_is_missing),
        cmocka_unit_test(names_more_lines_that_are_bad),
        cmocka_unit_test(reads_groups),
        cmocka_unit_test(spills_what_is_larger_than_memory),
        cmocka_unit_test(refuses_what_cannot_be_spilled),
        cmocka_unit_test(survives_failing_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
