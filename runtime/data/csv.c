/*
 * A table of numbers as a data set.
 */
#include "runtime/base/number.h"
#include "runtime/data/csv_reader.h"
#include "runtime/data/data.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_COLUMNS = 1 << 20, MOST_CLASSES = 1 << 24, SHOWN_BYTES = 40 };

typedef struct table {
    const char *path;
    clt_csv_options options;
    clt_csv_reader *reader;
    clt_text first;  /* the first record's fields, a NUL behind each */
    size_t *offsets; /* where they begin in it */
    size_t columns, offset_capacity;
    size_t label; /* its column */
    bool has_header;
    int64_t first_line;
    int64_t blank_line; /* the first blank line, 0: none yet */
    clt_rows rows;
} table;

static const char *first_field(const table *t, size_t column) {
    return clt_text_data(&t->first) + t->offsets[column];
}

/* What stood in the file, short and printable. */
static const char *show(const char *field, char shown[SHOWN_BYTES + 4]) {
    size_t i = 0;
    for (; i < SHOWN_BYTES && field[i]; i++)
        shown[i] = (unsigned char)field[i] < 32 || field[i] == 127 ? '?' : field[i];
    strcpy(shown + i, field[i] ? "..." : "");
    return shown;
}

static clt_status fail_field(const table *t, clt_status status, int64_t line, size_t column,
                             const char *field, const char *what) {
    char name[SHOWN_BYTES + 4] = "", shown[SHOWN_BYTES + 4];
    if (t->has_header) show(first_field(t, column), name);
    return clt_fail(status, "%s: line %lld, column %zu%s%s%s: \"%s\" is %s", t->path, (long long)line,
                    column + 1, t->has_header ? " (" : "", name, t->has_header ? ")" : "",
                    show(field, shown), what);
}

static bool is_blank(const char *text) {
    return text[strspn(text, " \t")] == 0;
}

static clt_status put_label(table *t, size_t column, int64_t line, const char *field, double value) {
    if (!(value >= 0 && value < MOST_CLASSES && value == floor(value)))
        return fail_field(t, CLT_E_RANGE, line, column, field,
                          "no class: labels are whole numbers from 0 (a regression takes others)");
    t->rows.y.label[t->rows.rows] = (int32_t)value;
    return CLT_OK;
}

static clt_status put_field(table *t, size_t column, int64_t line, const char *field) {
    double value;
    if (!clt_number_parse(field, &value))
        return fail_field(t, CLT_E_FORMAT, line, column, field,
                          is_blank(field) ? "empty: a value is missing" : "not a number");
    if (fabs(value) > FLT_MAX)
        return fail_field(t, CLT_E_FORMAT, line, column, field, "too large for f32");
    if (column == t->label && !t->options.regression) return put_label(t, column, line, field, value);
    float *x = t->rows.x + t->rows.rows * t->rows.row_elements;
    if (column == t->label) t->rows.y.target[t->rows.rows] = (float)value;
    else x[column - (column > t->label)] = (float)value;
    return CLT_OK;
}

static clt_status read_first_record(table *t) {
    bool last = false;
    while (!last) {
        if (t->columns == MOST_COLUMNS)
            return clt_fail(CLT_E_FORMAT, "%s: line %lld has more than %d columns", t->path,
                            (long long)t->first_line, MOST_COLUMNS);
        CLT_TRY(clt_csv_field(t->reader, &last));
        if (t->columns == 0) t->first_line = t->reader->field_line;
        CLT_TRY(clt_grow(&t->offsets, &t->offset_capacity, t->columns, sizeof *t->offsets));
        t->offsets[t->columns++] = t->first.length;
        clt_text_add_bytes(&t->first, t->reader->field, t->reader->length + 1);
        CLT_TRY(t->first.status);
    }
    if (t->columns < 2)
        return clt_fail(CLT_E_FORMAT,
                        "%s: line %lld has one column, but a label and a feature are needed "
                        "(separator '%c')",
                        t->path, (long long)t->first_line, t->reader->separator);
    return CLT_OK;
}

static bool is_not_finite(const char *field) {
    static const char *const words[] = {"nan", "inf", "infinity"};
    char word[12] = "";
    size_t length = 0;
    for (const char *c = field + strspn(field, " \t+-"); *c; c++) {
        if (strchr(" \t", *c)) continue;
        if (length == sizeof word - 1) return false;
        word[length++] = (char)(*c >= 'A' && *c <= 'Z' ? *c - 'A' + 'a' : *c);
    }
    for (size_t i = 0; i < CLT_COUNT_OF(words); i++)
        if (!strcmp(word, words[i])) return true;
    return false;
}

/* A number that is missing or not finite is a fault in the data, not the name of a column. */
static bool names_a_column(const char *field) {
    double value;
    return !is_blank(field) && !clt_number_parse(field, &value) && !is_not_finite(field);
}

static bool detect_header(const table *t) {
    if (t->options.header || t->options.no_header) return t->options.header;
    for (size_t i = 0; i < t->columns; i++)
        if (names_a_column(first_field(t, i))) return true;
    return false;
}

static clt_status find_label_index(table *t, const char *label) {
    char *end;
    long long index = strtoll(label, &end, 10), columns = (long long)t->columns;
    if (end == label || *end) {
        char shown[SHOWN_BYTES + 4];
        return clt_fail(CLT_E_NOT_FOUND, "%s: no column is named \"%s\"%s", t->path, show(label, shown),
                        t->has_header ? "" : ": there is no header");
    }
    if (index < -columns || index >= columns)
        return clt_fail(CLT_E_RANGE, "%s: label column %s of %lld columns", t->path, label, columns);
    t->label = (size_t)(index < 0 ? index + columns : index);
    return CLT_OK;
}

static clt_status find_label(table *t) {
    const char *label = t->options.label;
    t->label = t->columns - 1;
    if (!label) return CLT_OK;
    for (size_t i = 0; t->has_header && i < t->columns; i++) {
        if (strcmp(first_field(t, i), label)) continue;
        t->label = i;
        return CLT_OK;
    }
    return find_label_index(t, label);
}

static clt_status fail_count(const table *t, int64_t line, size_t count) {
    return clt_fail(CLT_E_FORMAT, "%s: line %lld has %zu fields, not %zu as line %lld", t->path,
                    (long long)line, count, t->columns, (long long)t->first_line);
}

static clt_status read_record(table *t) {
    clt_csv_reader *r = t->reader;
    bool last;
    CLT_TRY(clt_csv_field(r, &last));
    int64_t line = r->field_line;
    if (last && is_blank(r->field)) {
        if (!t->blank_line) t->blank_line = line;
        return CLT_OK;
    }
    if (t->blank_line)
        return clt_fail(CLT_E_FORMAT, "%s: line %lld is blank, but data follow", t->path,
                        (long long)t->blank_line);
    CLT_TRY(clt_rows_reserve(&t->rows, 1));
    CLT_TRY(put_field(t, 0, line, r->field));
    for (size_t column = 1; column < t->columns; column++) {
        if (last) return fail_count(t, line, column);
        CLT_TRY(clt_csv_field(r, &last));
        CLT_TRY(put_field(t, column, r->field_line, r->field));
    }
    size_t count = t->columns;
    for (; !last; count++) CLT_TRY(clt_csv_field(r, &last));
    if (count > t->columns) return fail_count(t, line, count);
    t->rows.rows++;
    return CLT_OK;
}

static clt_status read_first_as_data(table *t) {
    CLT_TRY(clt_rows_reserve(&t->rows, 1));
    for (size_t column = 0; column < t->columns; column++)
        CLT_TRY(put_field(t, column, t->first_line, first_field(t, column)));
    t->rows.rows++;
    return CLT_OK;
}

static clt_status read_table(table *t) {
    int skipped = 0;
    while (skipped < t->options.skip_lines && clt_csv_skip_line(t->reader)) skipped++;
    if (!clt_csv_more(t->reader))
        return clt_fail(CLT_E_FORMAT, "%s: holds no data%s", t->path, t->options.skip_lines ? " behind what is skipped" : "");
    CLT_TRY(read_first_record(t));
    t->has_header = detect_header(t);
    CLT_TRY(find_label(t));
    t->rows.row_elements = t->columns - 1;
    if (!t->has_header) CLT_TRY(read_first_as_data(t));
    while (clt_csv_more(t->reader)) CLT_TRY(read_record(t));
    if (t->rows.rows == 0) return clt_fail(CLT_E_FORMAT, "%s: a header, but no data", t->path);
    return CLT_OK;
}

static clt_status check_options(clt_csv_options *options) {
    if (!options->separator) options->separator = ',';
    if (strchr("\"\r\n.+-0123456789eE", options->separator))
        return clt_fail(CLT_E_INVALID, "a CSV separator '%c'", options->separator);
    if (options->header && options->no_header)
        return clt_fail(CLT_E_INVALID, "a CSV table with and without a header at once");
    if (options->skip_lines < 0) return clt_fail(CLT_E_INVALID, "%d lines to skip", options->skip_lines);
    return CLT_OK;
}

clt_status clt_dataset_csv(clt_dataset **dataset, const char *path, const clt_csv_options *options) {
    if (!dataset || !path) return clt_fail(CLT_E_INVALID, "clt_dataset_csv: dataset or path is NULL");
    table t = {.path = path, .options = options ? *options : (clt_csv_options){0}};
    clt_status status;
    CLT_TRY_GOTO(check_options(&t.options));
    CLT_TRY_GOTO(clt_csv_open(&t.reader, path, t.options.separator));
    CLT_TRY_GOTO(read_table(&t));
    status = clt_rows_finish(&t.rows, CLT_SHAPE((int64_t)t.columns - 1),
                             t.options.regression ? CLT_F32 : CLT_I32, 0, dataset);
fail:
    clt_rows_free(&t.rows);
    clt_text_free(&t.first);
    clt_free(t.offsets);
    clt_csv_close(t.reader);
    return status;
}
