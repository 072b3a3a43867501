/* Numbers far from 0 and close together: standardized as they stand in the file, not as f32 rounds them. */
#include "tests/data/files.h"

#include <math.h>

#include <cltrain/data.h>
#include <cltrain/log.h>
#include <cltrain/preprocessing.h>

enum { ROWS = 60 };

/* Seconds since 1970 some minutes apart, metres of UTM, a column near 0, and a price. */
static double value_of(int row, int column) {
    double bits = (double)(row * 2654435761u >> 8 & 0xffff) / 65536;
    const double values[] = {1.7e9 + floor(bits * 100), 5.4e6 + bits * 3, bits, 7.3e8 + bits * 20};
    return values[column];
}

static double noise_of(int row, int column) {
    return value_of(row + 31 * column, column);
}

static const char *write_table(const char *name, int rows, bool with_label) {
    static char text[1 << 14];
    size_t used = (size_t)sprintf(text, "time,north,x,colour%s\n", with_label ? ",price" : "");
    for (int r = 0; r < rows; r++) {
        used += (size_t)sprintf(text + used, "%.17g,%.17g,%.17g,%s", noise_of(r, 0), noise_of(r, 1), noise_of(r, 2), r % 3 ? "red" : "blue");
        used += (size_t)(with_label ? sprintf(text + used, ",%.17g\n", noise_of(r, 3)) : sprintf(text + used, "\n"));
    }
    return write_text(name, text);
}

/* Of rows [0, ROWS). */
static void moments_of(int column, double *mean, double *deviation) {
    *mean = *deviation = 0;
    for (int r = 0; r < ROWS; r++) *mean += (noise_of(r, column) - noise_of(0, column)) / ROWS;
    *mean += noise_of(0, column);
    for (int r = 0; r < ROWS; r++) *deviation += pow(noise_of(r, column) - *mean, 2) / ROWS;
    *deviation = sqrt(*deviation);
}

static void assert_standardized(const float *x, int rows, size_t step, int column) {
    double mean, deviation;
    moments_of(column, &mean, &deviation);
    for (int r = 0; r < rows; r++) assert_true(fabs((double)x[(size_t)r * step] - (noise_of(r, column) - mean) / deviation) < 1e-6);
}

static clt_dataset *read_table(const char *path, clt_csv_options options) {
    clt_dataset *d = NULL;
    assert_ok(clt_dataset_csv(&d, path, &options));
    return d;
}

static const float *values(const clt_dataset *d, int field) {
    return clt_dataset_array(d, field).data;
}

static void standardizes_tables(void **state) {
    (void)state;
    clt_dataset *d = read_table(write_table("far.csv", ROWS, true), (clt_csv_options){.regression = true}), *few;
    clt_preprocessing *p;
    assert_ok(clt_dataset_standardize_target(d, d));
    assert_ok(clt_dataset_standardize(d, d));
    for (int column = 0; column < 3; column++) assert_standardized(values(d, 0) + column, ROWS, 5, column);
    assert_standardized(values(d, 1), ROWS, 1, 3);
    assert_ok(clt_preprocessing_of(&p, d));
    for (int rows = 1; rows < 4; rows += 2) { /* new ones, of which one alone has no spread */
        few = read_table(write_table("few.csv", rows, false), (clt_csv_options){.like = p, .no_label = true});
        assert_ok(clt_preprocessing_apply(p, few));
        for (int column = 0; column < 3; column++) assert_standardized(values(few, 0) + column, rows, 5, column);
        clt_dataset_destroy(few);
    }
    clt_preprocessing_destroy(p);
    clt_dataset_destroy(d);
}

static void standardizes_parts(void **state) {
    (void)state;
    clt_dataset *whole = read_table(write_table("far.csv", ROWS, true), (clt_csv_options){.regression = true}), *parts[2];
    assert_ok(clt_dataset_split(whole, (double[]){0.8, 0.2}, 2, 1, parts));
    assert_ok(clt_dataset_standardize(parts[0], whole));
    assert_ok(clt_dataset_standardize(parts[1], whole));
    double mean, deviation, sum = 0, wanted = 0;
    moments_of(0, &mean, &deviation);
    for (int p = 0; p < 2; p++)
        for (int64_t i = 0; i < clt_dataset_samples(parts[p]); i++) sum += pow((double)values(parts[p], 0)[i * 5], 3);
    for (int r = 0; r < ROWS; r++) wanted += pow((noise_of(r, 0) - mean) / deviation, 3);
    assert_true(fabs(sum - wanted) < 1e-4);
    clt_dataset_destroy(parts[0]);
    clt_dataset_destroy(parts[1]);
    clt_dataset_destroy(whole);
}

static void fills_what_is_missing(void **state) {
    (void)state;
    const char *text = "t,kind\n1700000000,a\n,b\n1700000002,a\n1700000004,b\n";
    clt_dataset *d = read_table(write_text("missing.csv", text), (clt_csv_options){.missing = CLT_MISSING_MEAN});
    assert_ok(clt_dataset_standardize(d, d));
    const float *x = values(d, 0);
    assert_true(fabs((double)x[1]) < 1e-6 && fabs((double)x[2]) < 1e-6 && fabs((double)x[0] + (double)x[3]) < 1e-6);
    assert_true(fabs((double)x[3] - sqrt(2)) < 1e-6);
    clt_dataset_destroy(d);
}

/* A file of NumPy of rows. */
static const char *write_rows(const char *name, const char *type, int rows, int columns, const void *data) {
    char dict[128];
    snprintf(dict, sizeof dict, "{'descr': '%s', 'fortran_order': False, 'shape': (%d, %d), }", type, rows, columns);
    return write_npy(name, 1, dict, data, (size_t)(rows * columns) * 8);
}

/* One row that is far off, as where 0 stands for what is not known, costs the others nothing. */
static void an_odd_row_changes_no_other(void **state) {
    (void)state;
    clt_dataset *d = read_table(write_table("far.csv", ROWS, true), (clt_csv_options){.regression = true}), *few;
    clt_preprocessing *p;
    char text[1024];
    assert_ok(clt_dataset_standardize(d, d));
    assert_ok(clt_preprocessing_of(&p, d));
    size_t used = (size_t)sprintf(text, "time,north,x,colour\n");
    for (int r = 0; r < 3; r++) used += (size_t)sprintf(text + used, "%.17g,%.17g,%.17g,red\n", noise_of(r, 0), noise_of(r, 1), noise_of(r, 2));
    sprintf(text + used, "0,0,0,blue\n");
    few = read_table(write_text("odd.csv", text), (clt_csv_options){.like = p, .no_label = true});
    assert_ok(clt_preprocessing_apply(p, few));
    for (int column = 0; column < 3; column++) assert_standardized(values(few, 0) + column, 3, 5, column);
    clt_dataset_destroy(few);
    double rows[4][5] = {{0}};
    for (int r = 0; r < 3; r++)
        for (int column = 0; column < 3; column++) rows[r][column] = noise_of(r, column);
    assert_ok(clt_dataset_npy(&few, write_rows("odd.npy", "<f8", 4, 5, rows), NULL));
    assert_ok(clt_preprocessing_apply(p, few));
    for (int column = 0; column < 3; column++) assert_standardized(values(few, 0) + column, 3, 5, column);
    clt_dataset_destroy(few);
    clt_preprocessing_destroy(p);
    clt_dataset_destroy(d);
}

/* Windows [1, 2] of a sample, and images whose channels are turned to the front. */
static void standardizes_arrays_of_more_dimensions(void **state) {
    (void)state;
    double x[ROWS][2];
    char dict[128];
    for (int r = 0; r < ROWS; r++)
        for (int c = 0; c < 2; c++) x[r][c] = noise_of(r, c);
    for (int images = 0; images < 2; images++) {
        clt_dataset *d;
        snprintf(dict, sizeof dict, "{'descr': '<f8', 'fortran_order': False, 'shape': (%d, %s1, 2), }", ROWS, images ? "1, " : "");
        assert_ok(clt_dataset_npy(&d, write_npy("more.npy", 1, dict, x, sizeof x), NULL));
        if (images) assert_ok(clt_dataset_channels_first(d));
        assert_ok(clt_dataset_standardize(d, d));
        for (int column = 0; column < 2; column++) assert_standardized(values(d, 0) + column, ROWS, 2, column);
        clt_dataset_destroy(d);
    }
}

static void standardizes_arrays(void **state) {
    (void)state;
    double x[ROWS][2], y[ROWS];
    int64_t whole[ROWS];
    char x_path[512], y_path[512];
    for (int r = 0; r < ROWS; r++) {
        whole[r] = (int64_t)noise_of(r, 0);
        y[r] = noise_of(r, 3);
        for (int c = 0; c < 2; c++) x[r][c] = noise_of(r, c);
    }
    snprintf(x_path, sizeof x_path, "%s", write_rows("x.npy", "<f8", ROWS, 2, x));
    snprintf(y_path, sizeof y_path, "%s", write_rows("y.npy", "<f8", ROWS, 1, y));
    for (int kind = 0; kind < 2; kind++) {
        clt_dataset *d = NULL;
        assert_ok(clt_dataset_npy(&d, kind ? write_rows("i.npy", "<i8", ROWS, 1, whole) : x_path, y_path));
        assert_true(values(d, 0)[0] == (float)noise_of(0, 0)); /* until then they are f32's */
        assert_ok(clt_dataset_standardize_target(d, d));
        assert_ok(clt_dataset_standardize(d, d));
        for (int column = 0; column < 2 - kind; column++) assert_standardized(values(d, 0) + column, ROWS, kind ? 1 : 2, column);
        assert_standardized(values(d, 1), ROWS, 1, 3);
        clt_dataset_destroy(d);
    }
}

static int warnings;
static void count_warning(clt_log_level level, const char *message, void *user) {
    (void)message, (void)user;
    warnings += level == CLT_LOG_WARNING;
}

static clt_status load(const char *text, clt_csv_options options, bool standardize) {
    clt_dataset *d = read_table(write_text("load.csv", text), options);
    clt_loader *loader = NULL;
    if (standardize) assert_ok(clt_dataset_standardize(d, d));
    clt_status status = clt_loader_create(&loader, d, NULL);
    clt_loader_destroy(loader);
    clt_dataset_destroy(d);
    return status;
}

/* Numbers of f32 are 128 apart at 1.7e9. */
static void tells_what_f32_cannot_tell_apart(void **state) {
    (void)state;
    static const char near[] = "time,b,kind\n1700000000,1,x\n1700000100,2,y\n", some[] = "time,b,kind\n1700000000,1,x\n1700004000,2,y\n";
    assert_status(load(near, (clt_csv_options){0}, false), CLT_E_RANGE);
    assert_detail("element 0 (time) of the samples: f32 cannot tell values from 1700000000 to 1700000100 apart, its numbers are 128 apart there: "
                  "standardize the data, or subtract 1700000000");
    assert_ok(load(near, (clt_csv_options){0}, true));
    assert_status(load("-1,1700002000\n2,1700000000\n", (clt_csv_options){.regression = true}, true), CLT_E_RANGE);
    assert_detail("element 0 of the target: f32 cannot tell");
    clt_log_set(count_warning, CLT_LOG_WARNING, NULL);
    assert_ok(load(some, (clt_csv_options){0}, false)); /* some 30 numbers */
    assert_int_equal(warnings, 1);
    assert_ok(load(some, (clt_csv_options){0}, true));
    assert_ok(load("time,b,kind\n1700000000,1,x\n1700000000,2,y\n", (clt_csv_options){0}, false)); /* no two */
    assert_ok(load("time,b,kind\n1700000000,1,x\n1700200000,2,y\n", (clt_csv_options){0}, false));
    assert_int_equal(warnings, 1);
    clt_log_set(NULL, CLT_LOG_WARNING, NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(standardizes_tables), cmocka_unit_test(standardizes_parts),  cmocka_unit_test(fills_what_is_missing),
        cmocka_unit_test(an_odd_row_changes_no_other),
        cmocka_unit_test(standardizes_arrays_of_more_dimensions),
        cmocka_unit_test(standardizes_arrays), cmocka_unit_test(tells_what_f32_cannot_tell_apart),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
