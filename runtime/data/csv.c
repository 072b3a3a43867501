/*
 * A table of numbers as a data set.
 */
#include "runtime/base/json.h"
#include "runtime/base/number.h"
#include "runtime/base/table.h"
#include "runtime/data/csv_date.h"
#include "runtime/data/csv_features.h"
#include "runtime/data/csv_labels.h"
#include "runtime/data/csv_reader.h"
#include "runtime/data/csv_spill.h"
#include "runtime/data/data.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { MOST_COLUMNS = 1 << 20, MOST_LABEL_BYTES = 256, SHOWN_BYTES = 40, NAMED_LINES = 4, MOST_BAD_LINES = 1000 };

/* A record that is kept. */
typedef struct record {
    clt_text text;   /* its fields, a NUL behind each */
    size_t *offsets; /* where they begin in it */
    char **fields;   /* the same as pointers, without blanks around them */
    size_t n, capacity, fields_capacity;
    int64_t line;
} record;

/* Lines with fields that cannot be used: the first with its reason, some that follow, and their number. */
typedef struct bad_lines {
    clt_status status; /* of the first field, CLT_OK: there is none */
    clt_text reason;
    int64_t last, n, named[NAMED_LINES];
} bad_lines;

typedef struct table {
    const char *path;
    clt_csv_options options;
    clt_csv_reader *reader;
    record first, second; /* the second is kept where it tells whether the first is a header */
    record line;          /* the one at hand, where lines that lack a value are dropped */
    bool has_header;
    clt_csv_columns columns;
    clt_csv_features features;
    clt_csv_labels labels;
    int64_t dropped, first_dropped; /* how many lines, and the first of them */
    bad_lines bad;
    int64_t number_line; /* of the first label that is a number, 0: none yet */
    int64_t blank_line; /* the first blank line, 0: none yet */
    clt_rows rows;
    int64_t *groups; /* of each row */
    size_t groups_capacity;
    clt_csv_spill *spill; /* where rows go; NULL: they stay in memory */
    size_t noted;         /* rows whose numbers the features have seen */
    clt_csv_range target; /* of regression */
    clt_lines lines;
} table;

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
    if (t->has_header) show(t->first.fields[column], name);
    return clt_fail(status, "%s: line %lld, column %zu%s%s%s: \"%s\" is %s", t->path, (long long)line,
                    column + 1, t->has_header ? " (" : "", name, t->has_header ? ")" : "",
                    show(field, shown), what);
}

static bool is_blank(const char *text) {
    return text[strspn(text, " \t")] == 0;
}

static clt_status put_number(table *t, size_t column, int64_t line, const char *field, double value) {
    int64_t classes = t->options.like ? t->options.like->classes : CLT_MOST_CLASSES;
    if (t->labels.names.n) return fail_field(t, CLT_E_FORMAT, line, column, field, "a number, and labels before it are texts");
    if (!(value >= 0 && value < CLT_MOST_CLASSES && value == floor(value)))
        return fail_field(t, CLT_E_RANGE, line, column, field,
                          "not a class label: expected an integer >= 0; texts=COLUMN takes any text as a class, regression=1 any number as a target");
    if (value >= (double)classes) return fail_field(t, CLT_E_RANGE, line, column, field, "not a class of the model");
    if (!t->number_line) t->number_line = line;
    t->rows.y.label[t->rows.rows] = (int32_t)value;
    return CLT_OK;
}

/* Cuts blanks off both ends. */
static char *trim(char *text) {
    const char *begin = text;
    size_t length = clt_csv_trim(&begin);
    text += begin - text;
    text[length] = 0;
    return text;
}

/* "12,5" */
static bool has_decimal_comma(const char *field) {
    size_t whole = strspn(field, " \t+-0123456789"), part = strspn(field + whole + (field[whole] == ','), "0123456789");
    return whole > 0 && field[whole] == ',' && part > 0 && field[whole + 1 + part] == 0;
}

static clt_status put_text(table *t, size_t column, int64_t line, const char *field) {
    char text[MOST_LABEL_BYTES], names[CLT_NAMES_TEXT], what[CLT_NAMES_TEXT + 64];
    bool numbers = t->number_line || (t->options.like && !t->labels.fixed);
    snprintf(what, sizeof what, "a text, and %s", t->number_line ? "labels before it are numbers" : "the model's classes are numbers");
    if (numbers) return fail_field(t, CLT_E_FORMAT, line, column, field, what);
    if (!t->labels.fixed && !t->columns.texts[column] && has_decimal_comma(field))
        return fail_field(t, CLT_E_FORMAT, line, column, field, "not a class label: expected a decimal point, or texts=COLUMN for texts");
    if (strlen(field) >= sizeof text) return fail_field(t, CLT_E_RANGE, line, column, field, "too long for the name of a class");
    strcpy(text, field);
    clt_status status = clt_csv_labels_find(&t->labels, trim(text), &t->rows.y.label[t->rows.rows]);
    if (status != CLT_E_RANGE) return status;
    if (t->labels.fixed) snprintf(what, sizeof what, "not a class of the model: %s", clt_names_text(&t->labels.names, names));
    else snprintf(what, sizeof what, "one text more than %d: too many for classes", CLT_CSV_MOST_TEXTS);
    return fail_field(t, CLT_E_RANGE, line, column, field, what);
}

static clt_status put_label(table *t, size_t column, int64_t line, const char *field) {
    double value;
    if (clt_csv_is_missing(field))
        return fail_field(t, CLT_E_FORMAT, line, column, field, "missing: missing=drop leaves lines without a label out");
    bool is_number = clt_number_parse(field, &value);
    if (!t->options.regression && (!is_number || t->labels.fixed || t->columns.texts[column])) return put_text(t, column, line, field);
    if (!is_number) return fail_field(t, CLT_E_FORMAT, line, column, field, "not a number");
    if (!t->options.regression) return put_number(t, column, line, field, value);
    if (fabs(value) > FLT_MAX) return fail_field(t, CLT_E_FORMAT, line, column, field, "too large for f32");
    t->rows.y.target[t->rows.rows] = (float)value;
    t->rows.target_low[t->rows.rows] = clt_low_of(value);
    return CLT_OK;
}

static clt_status fail_mixed(const table *t, size_t column, int64_t line, const char *field, const char *what) {
    char words[200];
    snprintf(words, sizeof words, "%s: a value that is missing is empty, NA or \"?\"; texts=%zu takes all as texts, drop=%zu leaves the column out", what, column, column);
    return fail_field(t, CLT_E_FORMAT, line, column, field, words);
}

static clt_status put_category(table *t, size_t column, int64_t line, const char *field, clt_csv_feature *feature, float *x) {
    char text[MOST_LABEL_BYTES], names[CLT_NAMES_TEXT], what[CLT_NAMES_TEXT + 64];
    double number;
    if (feature->kind == CLT_CSV_TEXTS && !feature->codes && clt_number_parse(field, &number)) return fail_mixed(t, column, line, field, "a number, and fields before it are texts");
    if (feature->kind == CLT_CSV_NUMBERS) return fail_mixed(t, column, line, field, "not a number");
    if (!t->has_header) return fail_field(t, CLT_E_FORMAT, line, column, field, "not a number; features that are texts need a header");
    if (has_decimal_comma(field)) return fail_field(t, CLT_E_FORMAT, line, column, field, "not a number: expected a decimal point");
    if (strlen(field) >= sizeof text) return fail_field(t, CLT_E_RANGE, line, column, field, "too long for a category");
    strcpy(text, field);
    clt_status status = clt_csv_features_text(feature, trim(text), x);
    if (status != CLT_E_RANGE) return status;
    if (feature->categories.fixed) snprintf(what, sizeof what, "a text that the model does not know: %s", clt_names_text(&feature->categories.names, names));
    else snprintf(what, sizeof what, "one %s more than %d: leave the column out with drop=%zu", clt_csv_is_date(text) ? "date" : "text", CLT_CSV_MOST_CATEGORIES, column);
    return fail_field(t, CLT_E_RANGE, line, column, field, what);
}

static const char *missing_text(const clt_csv_options *o) {
    if (!o->like) return "missing: missing=drop leaves such lines out, missing=mean puts the column's mean there";
    if (o->like->fill) return "missing, and missing=refuse is given";
    return o->no_label ? "missing, and the model was trained without such values: training with missing=mean gives one that takes them"
                       : "missing, and the model was trained without such values: missing=drop leaves the line out";
}

static clt_status put_missing(table *t, size_t column, int64_t line, const char *field, clt_csv_feature *feature, float *x) {
    *x = NAN;
    if (!t->features.fills) return fail_field(t, CLT_E_FORMAT, line, column, field, missing_text(&t->options));
    feature->lacks = true;
    return CLT_OK;
}

static clt_status put_feature(table *t, size_t column, int64_t line, const char *field, int64_t place) {
    clt_csv_feature *feature = &t->features.items[place];
    size_t at = t->rows.rows * t->rows.row_elements + (size_t)place;
    float *x = &t->rows.x[at];
    double value;
    t->rows.low[at] = 0;
    if (clt_csv_is_missing(field)) return put_missing(t, column, line, field, feature, x);
    if (feature->kind == CLT_CSV_TEXTS || !clt_number_parse(field, &value)) return put_category(t, column, line, field, feature, x);
    if (fabs(value) > FLT_MAX)
        return fail_field(t, CLT_E_FORMAT, line, column, field, "too large for f32");
    feature->kind = CLT_CSV_NUMBERS;
    *x = (float)value;
    t->rows.low[at] = clt_low_of(value);
    return CLT_OK;
}

/* "…; other lines with fields that cannot be used: 7, 9, 12 and 31 more" */
static clt_status fail_bad_lines(bad_lines *bad) {
    int64_t named = CLT_MIN(bad->n, NAMED_LINES);
    for (int64_t i = 1; i < named; i++)
        clt_text_add(&bad->reason, "%s%lld", i > 1 ? ", " : "; other lines with fields that cannot be used: ", (long long)bad->named[i]);
    if (bad->n == MOST_BAD_LINES) clt_text_add(&bad->reason, " and more");
    else if (bad->n > named) clt_text_add(&bad->reason, " and %lld more", (long long)(bad->n - named));
    return bad->n ? clt_fail(bad->status, "%s", clt_text_data(&bad->reason)) : CLT_OK;
}

/* Reading goes on, to tell how many there are. */
static clt_status note_bad_line(bad_lines *bad, clt_status status, int64_t line) {
    if (bad->n && bad->last == line) return CLT_OK;
    if (!bad->n) {
        bad->status = status;
        clt_text_add(&bad->reason, "%s", clt_error_detail());
        CLT_TRY(bad->reason.status);
    }
    if (bad->n < NAMED_LINES) bad->named[bad->n] = line;
    bad->last = line;
    return ++bad->n < MOST_BAD_LINES ? CLT_OK : fail_bad_lines(bad);
}

static size_t count_rows(const table *t) {
    return t->rows.rows + (t->spill ? t->spill->rows : 0);
}

static clt_status put_group(table *t, size_t column, int64_t line, const char *field) {
    const char *name = field;
    size_t length = clt_csv_trim(&name);
    if (clt_csv_is_missing(field)) return fail_field(t, CLT_E_FORMAT, line, column, field, "missing: it tells which lines belong together");
    CLT_TRY(clt_grow(&t->groups, &t->groups_capacity, count_rows(t), sizeof *t->groups));
    t->groups[count_rows(t)] = (int64_t)clt_table_key(name, length);
    return CLT_OK;
}

static clt_status put_field(table *t, size_t column, int64_t line, const char *field) {
    int64_t place = t->columns.places[column];
    if (place == CLT_CSV_LEFT_OUT) return CLT_OK;
    clt_status status = place == CLT_CSV_LABEL ? put_label(t, column, line, field) : place == CLT_CSV_GROUP ? put_group(t, column, line, field) : put_feature(t, column, line, field, place);
    return status == CLT_E_FORMAT || status == CLT_E_RANGE ? note_bad_line(&t->bad, status, line) : status;
}

static void free_record(record *r) {
    clt_text_free(&r->text);
    clt_free(r->offsets);
    clt_free(r->fields);
}

/* In the place of what it held. */
static clt_status keep_record(table *t, record *r) {
    bool last = false;
    r->n = r->text.length = 0;
    while (!last) {
        if (r->n == MOST_COLUMNS)
            return clt_fail(CLT_E_FORMAT, "%s: line %lld has more than %d columns", t->path, (long long)r->line, MOST_COLUMNS);
        CLT_TRY(clt_csv_field(t->reader, &last));
        if (r->n == 0) r->line = t->reader->field_line;
        CLT_TRY(clt_grow(&r->offsets, &r->capacity, r->n, sizeof *r->offsets));
        r->offsets[r->n++] = r->text.length;
        clt_text_add_bytes(&r->text, t->reader->field, t->reader->length + 1);
        CLT_TRY(r->text.status);
    }
    for (size_t i = 0; i < r->n; i++) { /* the text has stopped moving */
        CLT_TRY(clt_grow(&r->fields, &r->fields_capacity, i, sizeof *r->fields));
        r->fields[i] = trim(r->text.data + r->offsets[i]);
    }
    return CLT_OK;
}

static clt_status read_first_record(table *t) {
    CLT_TRY(keep_record(t, &t->first));
    if (t->first.n > 1 || t->options.no_label) return CLT_OK;
    return clt_fail(CLT_E_FORMAT,
                    "%s: line %lld has one column, but a label and a feature are needed "
                    "(separator '%c')",
                    t->path, (long long)t->first.line, t->reader->separator);
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

static bool has_text(const record *r) {
    bool found = false;
    for (size_t i = 0; i < r->n; i++) found |= names_a_column(r->fields[i]);
    return found;
}

/* Names that tables have without any, 0, 1, 2, ..., or nothing but texts. */
static bool are_names(const record *r) {
    double value;
    for (size_t i = 0; i < r->n; i++)
        if (clt_number_parse(r->fields[i], &value) && value != (double)i) return false;
    return true;
}

static bool have_texts_in_the_same_places(const record *a, const record *b) {
    bool same = a->n == b->n;
    for (size_t i = 0; same && i < a->n; i++) same = names_a_column(a->fields[i]) == names_a_column(b->fields[i]);
    return same;
}

/* Numbers 0, 1, 2, ..., as pandas names columns that have no names, perhaps behind an index that has none either, and beside texts. */
static bool are_places(const record *r) {
    enum { FEW = 3 };
    double value;
    size_t n = 0, index = r->n > 0 && !r->fields[0][0];
    for (size_t i = index; i < r->n; i++) {
        if (names_a_column(r->fields[i])) continue;
        if (!clt_number_parse(r->fields[i], &value) || value != (double)n++) return false;
    }
    return n + index >= FEW;
}

/* A first line of numbers beside texts is data if the second is the same: then the texts are labels. */
static clt_status detect_header(table *t) {
    t->has_header = t->options.header;
    if (t->options.header || t->options.no_header) return CLT_OK;
    t->has_header = has_text(&t->first);
    if (t->options.like && clt_csv_columns_are_named(t->first.fields, (int64_t)t->first.n, t->options.like)) {
        if (t->has_header) return CLT_OK;
        return clt_fail(CLT_E_FORMAT, "%s: line %lld has the numbers that name the model's columns: header=1 takes it for names, header=0 for data", t->path,
                        (long long)t->first.line);
    }
    if (t->has_header && are_names(&t->first)) return CLT_OK;
    if (are_places(&t->first))
        return clt_fail(CLT_E_FORMAT, "%s: line %lld is 0, 1, 2, ..., as pandas names columns: header=1 takes it for names, header=0 for data", t->path,
                        (long long)t->first.line);
    if (!t->has_header || !clt_csv_more(t->reader)) return CLT_OK;
    CLT_TRY(keep_record(t, &t->second));
    t->has_header = !have_texts_in_the_same_places(&t->first, &t->second);
    return CLT_OK;
}

static clt_status find_columns(table *t) {
    static const clt_names none;
    const clt_preprocessing *like = t->options.like;
    t->columns = (clt_csv_columns){.path = t->path, .header = t->has_header ? t->first.fields : NULL, .n = (int64_t)t->first.n};
    CLT_TRY(clt_csv_columns_find(&t->columns, &t->options));
    CLT_TRY(clt_csv_features_begin(&t->features, &t->columns, &t->options));
    t->rows.row_elements = (size_t)t->columns.features;
    return clt_csv_labels_begin(&t->labels, like ? &like->class_names : &none);
}

static clt_status fail_count(const table *t, int64_t line, size_t count) {
    return clt_fail(CLT_E_FORMAT, "%s: line %lld has %zu fields, not %zu as line %lld", t->path,
                    (long long)line, count, t->first.n, (long long)t->first.line);
}

/* Blank lines may end a table. */
static clt_status pass_blank(table *t, int64_t line) {
    if (!t->blank_line) t->blank_line = line;
    return CLT_OK;
}

static clt_status begin_row(table *t) {
    if (t->blank_line) return clt_fail(CLT_E_FORMAT, "%s: line %lld is blank, but data follow", t->path, (long long)t->blank_line);
    CLT_TRY(clt_rows_reserve(&t->rows, 1));
    t->rows.y.label[t->rows.rows] = 0; /* where there is no label */
    t->rows.target_low[t->rows.rows] = 0;
    return CLT_OK;
}

/* What is put where values are missing, and whether the first line is names, is asked of all numbers; and what f32 has of them where they are spilled. */
static void note_rows(table *t) {
    clt_csv_features_note(&t->features, &t->rows, t->noted == 0);
    for (size_t r = 0; t->options.regression && r < t->rows.rows; r++)
        clt_csv_range_add(&t->target, t->rows.y.target[r], t->rows.target_low[r], t->noted == 0 && r == 0);
    t->noted += t->rows.rows;
}

/* Rows leave memory where they are spilled. */
static clt_status end_rows(table *t) {
    if (t->spill || t->features.fills || !t->has_header) note_rows(t);
    return t->spill ? clt_csv_spill_add(t->spill, &t->rows) : CLT_OK;
}

/* Of the row that is at its end. */
static clt_status note_line(clt_lines *lines, int64_t row, int64_t line) {
    const clt_line_run *last = lines->n ? &lines->runs[lines->n - 1] : NULL;
    if (last && line - last->line == row - last->sample) return CLT_OK;
    CLT_TRY(clt_grow(&lines->runs, &lines->capacity, lines->n, sizeof *lines->runs));
    lines->runs[lines->n++] = (clt_line_run){.sample = row, .line = line};
    return CLT_OK;
}

static clt_status end_row(table *t, int64_t line) {
    CLT_TRY(note_line(&t->lines, (int64_t)count_rows(t), line));
    t->rows.rows++;
    return t->spill && t->rows.rows == CLT_CSV_SPILL_ROWS ? end_rows(t) : CLT_OK;
}

static bool lacks_a_value(const table *t, const record *r) {
    for (size_t i = 0; i < r->n; i++)
        if (t->columns.places[i] != CLT_CSV_LEFT_OUT && clt_csv_is_missing(r->fields[i])) return true;
    return false;
}

static clt_status put_record(table *t, const record *r) {
    if (r->n == 1 && is_blank(r->fields[0])) return pass_blank(t, r->line);
    if (r->n != t->first.n) return fail_count(t, r->line, r->n);
    CLT_TRY(begin_row(t));
    if (t->options.missing == CLT_MISSING_DROP && lacks_a_value(t, r)) { /* nothing of it counts */
        if (!t->dropped++) t->first_dropped = r->line;
        return CLT_OK;
    }
    for (size_t column = 0; column < r->n; column++) CLT_TRY(put_field(t, column, r->line, r->fields[column]));
    return end_row(t, r->line);
}

/* As it is read: tables are long. */
static clt_status stream_record(table *t) {
    clt_csv_reader *r = t->reader;
    bool last;
    CLT_TRY(clt_csv_field(r, &last));
    int64_t line = r->field_line;
    if (last && is_blank(r->field)) return pass_blank(t, line);
    CLT_TRY(begin_row(t));
    CLT_TRY(put_field(t, 0, line, r->field));
    for (size_t column = 1; column < t->first.n; column++) {
        if (last) return fail_count(t, line, column);
        CLT_TRY(clt_csv_field(r, &last));
        CLT_TRY(put_field(t, column, r->field_line, r->field));
    }
    size_t count = t->first.n;
    for (; !last; count++) CLT_TRY(clt_csv_field(r, &last));
    if (count > t->first.n) return fail_count(t, line, count);
    return end_row(t, line);
}

static clt_status read_record(table *t) {
    if (t->options.missing != CLT_MISSING_DROP) return stream_record(t);
    CLT_TRY(keep_record(t, &t->line));
    return put_record(t, &t->line);
}

static clt_status read_table(table *t) {
    int skipped = 0;
    while (skipped < t->options.skip_lines && clt_csv_skip_line(t->reader)) skipped++;
    if (!clt_csv_more(t->reader))
        return clt_fail(CLT_E_FORMAT, "%s: holds no data%s", t->path, t->options.skip_lines ? " after what is skipped" : "");
    CLT_TRY(read_first_record(t));
    CLT_TRY(detect_header(t));
    CLT_TRY(find_columns(t));
    if (!t->has_header) CLT_TRY(put_record(t, &t->first));
    if (t->second.n) CLT_TRY(put_record(t, &t->second));
    while (clt_csv_more(t->reader)) CLT_TRY(read_record(t));
    CLT_TRY(fail_bad_lines(&t->bad));
    if (count_rows(t) == 0 && !t->dropped) return clt_fail(CLT_E_FORMAT, "%s: a header, but no data", t->path);
    return end_rows(t);
}

static clt_status check_options(clt_csv_options *options) {
    if (!options->separator) options->separator = ',';
    if (strchr("\"\r\n.+-0123456789eE", options->separator))
        return clt_fail(CLT_E_INVALID, "a CSV separator '%c'", options->separator);
    if (options->header && options->no_header)
        return clt_fail(CLT_E_INVALID, "a CSV table with and without a header at once");
    if ((unsigned)options->missing > CLT_MISSING_MEAN) return clt_fail(CLT_E_INVALID, "missing = %d: expected one of clt_missing", (int)options->missing);
    if (options->no_label && options->spill) return clt_fail(CLT_E_INVALID, "a CSV table without a label is read into memory: spill is given");
    if (options->no_label && !options->like)
        return clt_fail(CLT_E_INVALID, "a CSV table without a label is read for a model: no_label needs like");
    if (options->skip_lines < 0) return clt_fail(CLT_E_INVALID, "%d lines to skip", options->skip_lines);
    return CLT_OK;
}

static clt_status check_encoding(const table *t, const clt_names *names) {
    char shown[CLT_SHOWN_TEXT];
    for (int64_t i = 0; i < names->n; i++)
        if (clt_json_check_text(names->items[i]) == CLT_E_INVALID)
            return clt_fail(CLT_E_FORMAT, "%s: the name \"%s\" is not UTF-8: convert the table, as with iconv -f WINDOWS-1252 -t UTF-8", t->path,
                            clt_show(names->items[i], shown));
    return CLT_OK;
}

/* A number of the first line that is far from all others of its column: 1; not: -1; where that cannot be told: 0. */
static int is_far(const clt_csv_range *r) {
    double spread = r->high - r->low;
    if (isnan(r->first) || !(spread > 0)) return 0;
    return r->first < r->low - 10 * spread || r->first > r->high + 10 * spread ? 1 : -1;
}

static int32_t *labels_of(const table *t) {
    return t->spill ? t->spill->y.label : t->rows.y.label;
}

/* Whether the first line's label, a text, comes once, and all others more often. */
static bool is_only_label(const table *t) {
    const int32_t *labels = labels_of(t);
    bool once = t->labels.names.n > 1;
    for (int32_t class_index = 0; once && class_index < t->labels.names.n; class_index++) {
        size_t n = 0;
        for (size_t r = 0; r < count_rows(t); r++) n += labels[r] == class_index;
        once = class_index == labels[0] ? n == 1 : n > 1;
    }
    return once;
}

/* Names that are numbers, such as years, do not say that they are names. */
static clt_status check_first_line(const table *t) {
    enum { FEW = 4 };
    int far = 0, near = 0;
    if (t->has_header || t->options.no_header || t->options.like || count_rows(t) < FEW) return CLT_OK;
    if (is_only_label(t))
        return clt_fail(CLT_E_FORMAT, "%s: the label of line %lld, \"%s\", is that of no other line, as the name of its column may be: header=1 takes the line for names, "
                        "header=0 for data", t->path, (long long)t->first.line, clt_show(t->labels.names.items[0], (char[CLT_SHOWN_TEXT]){0}));
    for (int64_t i = 0; i < t->features.n + t->options.regression; i++) {
        bool target = i == t->features.n;
        if (!target && t->features.items[i].kind != CLT_CSV_NUMBERS) continue;
        int found = is_far(target ? &t->target : &t->features.items[i].range);
        far += found > 0;
        near += found < 0;
    }
    if (!far || near) return CLT_OK;
    return clt_fail(CLT_E_FORMAT, "%s: line %lld has numbers far from all others, as names of columns may be: header=1 takes it for names, header=0 for data", t->path,
                    (long long)t->first.line);
}

/* What the table tells of itself becomes the data set's. */
static clt_status make_facts(table *t, clt_preprocessing **facts) {
    clt_preprocessing *f = *facts = clt_calloc(1, sizeof *f);
    if (!f) return clt_fail_memory(sizeof *f);
    CLT_TRY(clt_csv_features_finish(&t->features, &t->columns, count_rows(t), f));
    CLT_TRY(clt_names_copy(&f->class_names, t->labels.names.items, t->labels.names.n));
    if (t->columns.header && t->columns.label >= 0 && !(f->label = clt_strdup(t->first.fields[t->columns.label])))
        return clt_fail_memory(strlen(t->first.fields[t->columns.label]) + 1);
    if (!t->columns.header && t->columns.label >= 0)
        for (int64_t i = 0; i <= t->columns.label; i++) f->label_column += t->columns.places[i] >= CLT_CSV_LABEL;
    CLT_TRY(check_encoding(t, &f->features));
    CLT_TRY(check_encoding(t, &f->class_names));
    return f->label ? check_encoding(t, &(clt_names){.items = &f->label, .n = 1}) : CLT_OK;
}

static clt_status finish_rows(table *t, clt_dtype truth, int classes, clt_dataset **d) {
    CLT_TRY(clt_csv_features_expand_all(&t->features, &t->rows));
    return clt_rows_finish(&t->rows, CLT_SHAPE((int64_t)t->rows.row_elements), truth, classes, d);
}

/* Batches are f32, which is not enough for numbers far from 0 and close together. */
static clt_status check_spilled(const table *t) {
    for (int64_t i = 0; i < t->features.n; i++) {
        clt_csv_range r = t->features.items[i].range;
        if (!r.rounded) continue;
        double low = fmin(r.low, r.first), high = fmax(r.high, r.first);
        if (high > low && high - low < CLT_LOW_TOO_FEW * clt_low_step(low, high))
            return clt_fail(CLT_E_RANGE, "%s: column %lld: f32 cannot tell values from %.12g to %.12g apart: subtract %.12g in the file, or leave the column out", t->path,
                            (long long)t->columns.columns[i] + 1, low, high, low);
    }
    return CLT_OK;
}

static clt_status finish_spill(table *t, clt_dtype truth, int classes, clt_dataset **d) {
    CLT_TRY(check_spilled(t));
    CLT_TRY(clt_csv_spill_finish(t->spill, &t->features, truth, classes, d));
    t->spill = NULL; /* the data set's */
    return CLT_OK;
}

static clt_status finish(table *t, clt_dataset **dataset) {
    clt_dtype truth = t->options.regression || t->options.no_label ? CLT_F32 : CLT_I32;
    clt_preprocessing *facts = NULL;
    clt_dataset *d = NULL;
    clt_status status = CLT_OK;
    CLT_TRY_GOTO(check_first_line(t));
    if (truth == CLT_I32) CLT_TRY_GOTO(clt_csv_labels_sort(&t->labels, labels_of(t), count_rows(t)));
    CLT_TRY_GOTO(make_facts(t, &facts));
    int classes = t->options.like && truth == CLT_I32 ? t->options.like->classes : (int)t->labels.names.n;
    CLT_TRY_GOTO(t->spill ? finish_spill(t, truth, classes, &d) : finish_rows(t, truth, classes, &d));
    if (t->dropped)
        clt_log_message(CLT_LOG_WARNING, "%s: %lld lines are left out, for they lack a value: line %lld is the first", t->path,
                        (long long)t->dropped, (long long)t->first_dropped);
    if (t->options.no_label) clt_dataset_drop_truth(d);
    d->facts = facts;
    d->groups = t->groups;
    t->groups = NULL;
    d->lines = t->lines;
    t->lines = (clt_lines){0};
    *dataset = d;
    return CLT_OK;
fail:
    clt_preprocessing_destroy(facts);
    return status;
}

clt_status clt_dataset_csv(clt_dataset **dataset, const char *path, const clt_csv_options *options) {
    if (!dataset || !path) return clt_fail(CLT_E_INVALID, "clt_dataset_csv: dataset or path is NULL");
    table t = {.path = path, .options = options ? *options : (clt_csv_options){0}, .target = clt_csv_no_range};
    clt_status status;
    CLT_TRY_GOTO(check_options(&t.options));
    CLT_TRY_GOTO(clt_csv_open(&t.reader, path, t.options.separator));
    if (t.options.spill) CLT_TRY_GOTO(clt_csv_spill_open(&t.spill, t.options.spill));
    CLT_TRY_GOTO(read_table(&t));
    status = finish(&t, dataset);
fail:
    clt_rows_free(&t.rows);
    clt_free(t.groups);
    clt_free(t.lines.runs);
    clt_csv_spill_close(t.spill);
    clt_csv_labels_free(&t.labels);
    clt_csv_features_free(&t.features);
    clt_csv_columns_free(&t.columns);
    free_record(&t.first);
    free_record(&t.second);
    free_record(&t.line);
    clt_text_free(&t.bad.reason);
    clt_csv_close(t.reader);
    return status;
}
