#include "runtime/data/csv_columns.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/base/shape.h"

void clt_csv_columns_free(clt_csv_columns *c) {
    clt_free(c->places); /* the others are behind it */
    clt_free(c->texts);
    c->places = NULL;
    c->texts = NULL;
}

/* ---- a column by its name, or by its index ---- */

/* `likely`: where to look first. -1: there is none of that name. */
static int64_t find_name(const clt_csv_columns *c, const char *name, int64_t likely) {
    if (!c->header) return -1;
    if (likely < c->n && !strcmp(c->header[likely], name)) return likely;
    for (int64_t i = 0; i < c->n; i++)
        if (!strcmp(c->header[i], name)) return i;
    return -1;
}

static const char *names_of(const clt_csv_columns *c, char text[CLT_NAMES_TEXT]) {
    const clt_names names = {(char **)(uintptr_t)c->header, c->n};
    return clt_names_text(&names, text);
}

static clt_status find_column(const clt_csv_columns *c, const char *text, const char *what, int64_t *column) {
    char *end, shown[CLT_SHOWN_TEXT], names[CLT_NAMES_TEXT];
    *column = find_name(c, text, 0);
    if (*column >= 0) return CLT_OK;
    long long index = strtoll(text, &end, 10), columns = (long long)c->n;
    if (end == text || *end)
        return clt_fail(CLT_E_NOT_FOUND, "%s: no column is named \"%s\"%s%s", c->path, clt_show(text, shown),
                        c->header ? "; there are " : ": there is no header", c->header ? names_of(c, names) : "");
    if (index < -columns || index >= columns) return clt_fail(CLT_E_RANGE, "%s: %s column %s of %lld columns", c->path, what, text, columns);
    *column = index < 0 ? index + columns : index;
    return CLT_OK;
}

/* ---- what is left out, and the label ---- */

/* The columns of a list, one after the other: *at is what is left of it. */
static clt_status next_column(const clt_csv_columns *c, const char **at, const char *what, int64_t *column) {
    char name[256];
    size_t length = strcspn(*at, ",");
    if (length == 0 || length >= sizeof name) return clt_fail(CLT_E_INVALID, "%s \"%.80s\": no name of a column", what, *at);
    memcpy(name, *at, length);
    name[length] = 0;
    *at += length + ((*at)[length] != 0);
    return find_column(c, name, what, column);
}

static clt_status mark_columns(clt_csv_columns *c, const clt_csv_options *o) {
    int64_t column;
    for (const char *at = o->drop; at && *at;) {
        CLT_TRY(next_column(c, &at, "drop", &column));
        c->places[column] = CLT_CSV_LEFT_OUT;
    }
    for (const char *at = o->texts; at && *at;) {
        CLT_TRY(next_column(c, &at, "texts", &column));
        if (c->places[column] == CLT_CSV_LEFT_OUT) return clt_fail(CLT_E_INVALID, "%s: column %lld is texts and is dropped", c->path, (long long)column);
        c->texts[column] = true;
    }
    return CLT_OK;
}

/* It tells nothing of a sample: so nothing of it is left for a model that reads a table without labels. */
static clt_status mark_group(clt_csv_columns *c, const clt_csv_options *o) {
    int64_t column;
    if (!o->group) return CLT_OK;
    CLT_TRY(find_column(c, o->group, "group", &column));
    if (c->places[column] == CLT_CSV_LEFT_OUT) return clt_fail(CLT_E_INVALID, "%s: column %lld tells groups and is dropped", c->path, (long long)column);
    c->places[column] = o->no_label ? CLT_CSV_LEFT_OUT : CLT_CSV_GROUP;
    return CLT_OK;
}

static bool is_kept(const clt_csv_columns *c, int64_t column) {
    return c->places[column] != CLT_CSV_LEFT_OUT && c->places[column] != CLT_CSV_GROUP;
}

static int64_t last_kept(const clt_csv_columns *c) {
    int64_t column = c->n - 1;
    while (column >= 0 && !is_kept(c, column)) column--;
    return column;
}

static int64_t count_kept(const clt_csv_columns *c) {
    int64_t count = 0;
    for (int64_t i = 0; i < c->n; i++) count += is_kept(c, i);
    return count;
}

/* The n-th that is kept, from 1. */
static int64_t kept_column(const clt_csv_columns *c, int64_t n) {
    int64_t column = 0;
    for (; column < c->n; column++)
        if (is_kept(c, column) && --n == 0) break;
    return column < c->n ? column : -1;
}

/* By the option, by the model's name for it or, without names, its place, or the last one. */
static clt_status find_label(clt_csv_columns *c, const clt_csv_options *o) {
    const clt_preprocessing *like = o->like;
    if (o->label) CLT_TRY(find_column(c, o->label, "label", &c->label));
    else if (like && like->label && c->header) c->label = find_name(c, like->label, c->n - 1);
    else if (like && like->label_column && count_kept(c) == clt_shape_elements(&like->shape) + 1) c->label = kept_column(c, like->label_column);
    else if (!o->no_label || (like && !like->features.n && count_kept(c) > clt_shape_elements(&like->shape))) c->label = last_kept(c);
    bool named = like && like->label && c->header;
    if (c->label < 0 && !o->no_label && !named) return clt_fail(CLT_E_FORMAT, "%s: no column is left for the label", c->path);
    if (c->label < 0 && !o->no_label) {
        char text[CLT_SHOWN_TEXT], names[CLT_NAMES_TEXT];
        return clt_fail(CLT_E_MISMATCH, "%s: no column is named \"%s\", as the model's label is; there are %s: label=COLUMN names it", c->path,
                        clt_show(like->label, text), names_of(c, names));
    }
    if (c->label >= 0 && c->places[c->label] == CLT_CSV_LEFT_OUT && !o->no_label)
        return clt_fail(CLT_E_INVALID, "%s: column %lld is the label and is dropped", c->path, (long long)c->label);
    if (c->label >= 0 && c->places[c->label] == CLT_CSV_GROUP) return clt_fail(CLT_E_INVALID, "%s: column %lld is the label and tells groups", c->path, (long long)c->label);
    if (c->label >= 0) c->places[c->label] = o->no_label ? CLT_CSV_LEFT_OUT : CLT_CSV_LABEL;
    if (o->no_label) c->label = -1;
    return CLT_OK;
}

/* ---- features ---- */

static int by_name(const void *a, const void *b) {
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Of two columns of one name nobody can tell which is meant. */
static clt_status check_names(const clt_csv_columns *c) {
    char shown[CLT_SHOWN_TEXT];
    if (!c->header) return CLT_OK;
    char **names = clt_calloc((size_t)c->n, sizeof *names);
    if (!names) return clt_fail_memory((size_t)c->n * sizeof *names);
    int64_t n = 0, twice = -1;
    for (int64_t i = 0; i < c->n; i++)
        if (c->places[i] != CLT_CSV_LEFT_OUT) names[n++] = c->header[i];
    qsort(names, (size_t)n, sizeof *names, by_name);
    for (int64_t i = 1; i < n && twice < 0; i++)
        if (!strcmp(names[i - 1], names[i])) twice = i;
    clt_status status = twice < 0 ? CLT_OK
                                  : clt_fail(CLT_E_FORMAT, "%s: two columns are named \"%s\": rename one, or leave it out by its index, as in drop=0", c->path,
                                             clt_show(names[twice], shown));
    clt_free(names);
    return status;
}

static void add_feature(clt_csv_columns *c, int64_t column, int64_t element, int64_t categories) {
    c->places[column] = c->features;
    c->columns[c->features] = column;
    c->elements[c->features] = element;
    c->categories[c->features++] = categories;
}

static clt_status take_all(clt_csv_columns *c, const clt_preprocessing *like) {
    for (int64_t i = 0; i < c->n; i++)
        if (c->places[i] >= 0) add_feature(c, i, c->features, 0);
    if (like && like->texts.n)
        return clt_fail(CLT_E_MISMATCH, "%s: the model was trained on columns with texts, which are found by their names: a header is needed", c->path);
    if (like && c->features != clt_shape_elements(&like->shape))
        return clt_fail(CLT_E_MISMATCH, "%s: %lld features; the model was trained on %lld", c->path, (long long)c->features,
                        (long long)clt_shape_elements(&like->shape));
    return CLT_OK;
}

static clt_status fail_unknown(const clt_csv_columns *c, const clt_preprocessing *like, int64_t column) {
    char text[CLT_NAMES_TEXT], shown[CLT_SHOWN_TEXT];
    clt_show(c->header[column], shown);
    return clt_fail(CLT_E_MISMATCH, "%s: the model was not trained on column \"%s\", but on %s: leave it out with drop=%s", c->path, shown,
                    clt_names_text(&like->features, text), shown);
}

static clt_status fail_missing(const clt_csv_columns *c, const char *name) {
    char text[CLT_NAMES_TEXT], shown[CLT_SHOWN_TEXT];
    return clt_fail(CLT_E_MISMATCH, "%s: no column is named \"%s\", which the model was trained on; there are %s", c->path,
                    clt_show(name, shown), names_of(c, text));
}

/* The text column that an element is a category of, "colour" of "colour=red"; NULL: it is numbers. */
static const char *text_column(const clt_preprocessing *like, const char *name) {
    for (int64_t i = 0; i < like->texts.n; i++) {
        size_t length = strlen(like->texts.items[i]);
        if (!strncmp(like->texts.items[i], name, length) && name[length] == '=') return like->texts.items[i];
    }
    return NULL;
}

/* In the model's order; what it does not know is left out where nothing is learned from it. */
static clt_status take_named(clt_csv_columns *c, const clt_preprocessing *like, bool leave_out) {
    enum { FREE = INT32_MAX };
    for (int64_t i = 0; i < c->n; i++)
        if (c->places[i] >= 0) c->places[i] = FREE;
    for (int64_t e = 0; e < like->features.n; e++) {
        const char *texts = text_column(like, like->features.items[e]), *name = texts ? texts : like->features.items[e];
        int64_t column = find_name(c, name, c->features), last = c->features - 1;
        bool more = texts && last >= 0 && c->columns[last] == column && c->categories[last] > 0;
        if (column < 0 || (!more && c->places[column] != FREE)) return fail_missing(c, name);
        if (more) c->categories[last]++;
        else add_feature(c, column, e, texts != NULL);
    }
    for (int64_t i = 0; i < c->n; i++) {
        if (c->places[i] != FREE) continue;
        if (!leave_out) return fail_unknown(c, like, i);
        c->places[i] = CLT_CSV_LEFT_OUT;
    }
    return CLT_OK;
}

bool clt_csv_columns_are_named(char *const *fields, int64_t n, const clt_preprocessing *like) {
    const clt_csv_columns line = {.header = fields, .n = n};
    bool all = like->features.n > 0;
    for (int64_t e = 0; all && e < like->features.n; e++) {
        const char *texts = text_column(like, like->features.items[e]);
        all = find_name(&line, texts ? texts : like->features.items[e], e) >= 0;
    }
    return all;
}

clt_status clt_csv_columns_find(clt_csv_columns *c, const clt_csv_options *o) {
    const clt_preprocessing *like = o->like;
    c->label = -1;
    c->features = 0;
    c->places = clt_calloc((size_t)c->n, 4 * sizeof *c->places);
    if (!c->places) return clt_fail_memory((size_t)c->n * 4 * sizeof *c->places);
    c->columns = c->places + c->n;
    c->elements = c->columns + c->n;
    c->categories = c->elements + c->n;
    c->texts = clt_calloc((size_t)c->n, sizeof *c->texts);
    if (!c->texts) return clt_fail_memory((size_t)c->n * sizeof *c->texts);
    CLT_TRY(mark_columns(c, o));
    CLT_TRY(mark_group(c, o));
    CLT_TRY(find_label(c, o));
    CLT_TRY(check_names(c));
    if (like && like->features.n && c->header) CLT_TRY(take_named(c, like, o->leave_out || o->no_label));
    else CLT_TRY(take_all(c, like));
    return c->features ? CLT_OK : clt_fail(CLT_E_FORMAT, "%s: no column is left for a feature", c->path);
}
