#include "predict_write.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "tools/common/message.h"

/* Quotes as the library's reader takes them: they enclose a field that begins with one; elsewhere they are text. */
typedef struct quotes {
    bool inside; /* a field, and within its quotes */
    bool field;  /* the field began with a quote */
    bool behind; /* the field's first byte */
} quotes;

static void take_byte(quotes *q, int c, char separator) {
    if (c == '"' && (q->field || !q->behind)) {
        q->inside = !q->inside;
        q->field = true;
    }
    q->behind = true;
    if (c == separator && !q->inside) *q = (quotes){0};
}

/* ---- the table's own records, plain or gzipped ---- */

typedef struct records {
    gzFile file;
    const char *path;
    char *text; /* the record at hand, without its line end */
    size_t length, capacity;
    char separator;
    bool begun; /* the first record was read */
} records;

static int open_records(records *r, const data_spec *spec) {
    *r = (records){.file = gzopen(spec->path, "rb"), .path = spec->path, .separator = spec->csv.separator ? spec->csv.separator : ','};
    if (!r->file) return run_error("%s cannot be read again", spec->path);
    for (int i = 0; i < spec->csv.skip_lines; i++)
        for (int c = gzgetc(r->file); c >= 0 && c != '\n';) c = gzgetc(r->file);
    return 0;
}

static void close_records(records *r) {
    if (r->file) gzclose(r->file);
    free(r->text);
}

static bool append(records *r, int c) {
    if (r->length + 1 >= r->capacity) {
        size_t capacity = 2 * r->capacity + 256;
        char *text = realloc(r->text, capacity);
        if (!text) return false;
        r->text = text;
        r->capacity = capacity;
    }
    r->text[r->length++] = (char)c;
    r->text[r->length] = 0;
    return true;
}

/* A line end within quotes is part of a field. False at the end, and at a blank line, behind which there are no data. */
static bool next_record(records *r) {
    static const char mark[] = "\xef\xbb\xbf"; /* of UTF-8, before the first */
    quotes q = {0};
    int c;
    r->length = 0;
    while ((c = gzgetc(r->file)) >= 0 && (q.inside || c != '\n')) {
        bool marks = !r->begun && r->length < 3 && c == (unsigned char)mark[r->length];
        if (!marks) take_byte(&q, c, r->separator);
        if (!append(r, c)) return false;
    }
    r->begun = true;
    if (r->length && r->text[r->length - 1] == '\r') r->text[--r->length] = 0;
    return r->length > 0 && r->text[strspn(r->text, " \t")] != 0;
}

static int64_t count_records(const data_spec *spec) {
    records r;
    int64_t count = 0;
    if (open_records(&r, spec)) return -1;
    while (next_record(&r)) count++;
    close_records(&r);
    return count;
}

/* ---- the columns that are added ---- */

/* Quoted where it must be. */
static void put_field(FILE *file, const char *before, const char *text, char separator) {
    fputs(before, file);
    if (!strchr(text, '"') && !strchr(text, separator) && !strpbrk(text, "\r\n")) {
        fputs(text, file);
        return;
    }
    fputc('"', file);
    for (; *text; text++) fputs(*text == '"' ? "\"\"" : (char[]){*text, 0}, file);
    fputc('"', file);
}

static const char *class_text(const predictions *p, int64_t class_index, char text[24]) {
    const char *name = clt_preprocessing_class(p->trained_on, (int)class_index);
    if (!name) snprintf(text, 24, "%lld", (long long)class_index);
    return name ? name : text;
}

/* Whether a field of the record is this name, without quotes and blanks around it. */
static bool has_column(const char *record, char separator, const char *name) {
    size_t length = strlen(name);
    for (const char *at = record;; at++) {
        bool quoted = *at == '"';
        const char *text = at + (quoted ? 1 : strspn(at, " \t")), *end = text + length;
        if (strncmp(text, name, length) == 0) {
            if (quoted && *end == '"') end++;
            end += strspn(end, " \t");
            if (!*end || *end == separator) return true;
        }
        for (quotes q = {0}; *at && (q.inside || *at != separator); at++) take_byte(&q, *at, separator);
        if (!*at) return false;
    }
}

static void put_name(const char *record, const char *name, const char *before, FILE *file, char separator) {
    char numbered[400];
    snprintf(numbered, sizeof numbered, "%s", name);
    for (int i = 2; record && has_column(record, separator, numbered); i++) snprintf(numbered, sizeof numbered, "%s_%d", name, i);
    put_field(file, before, numbered, separator);
}

/* Behind the table's own header, or, where there is none, as the whole of it. */
static void put_header(const predictions *p, const char *record, FILE *file, char separator) {
    char number[24], name[320];
    const char between[] = {separator, 0}, *before = record ? between : "";
    bool classes = clt_preprocessing_classes(p->trained_on) > 0;
    if (classes || p->width == 1) put_name(record, "prediction", before, file, separator), before = between;
    for (int64_t k = 0; (classes || p->width > 1) && k < p->width; k++, before = between) {
        if (classes) snprintf(name, sizeof name, "probability_%s", class_text(p, k, number));
        else snprintf(name, sizeof name, "prediction_%lld", (long long)k);
        put_name(record, name, before, file, separator);
    }
    fputc('\n', file);
}

static void put_prediction(const predictions *p, int64_t sample, bool alone, FILE *file, char separator) {
    char number[24];
    const char between[] = {separator, 0}, *before = alone ? "" : between;
    const double *values = p->values + sample * p->width;
    int64_t best = 0;
    for (int64_t k = 1; k < p->width; k++)
        if (values[k] > values[best]) best = k;
    if (clt_preprocessing_classes(p->trained_on)) put_field(file, before, class_text(p, best, number), separator), before = between;
    for (int64_t k = 0; k < p->width; k++, before = between) fprintf(file, "%s%.*g", before, p->digits, values[k]);
    fputc('\n', file);
}

static int write_alone(const predictions *p, FILE *file) {
    bool named = clt_dataset_sample_name(p->data, 0) != NULL;
    if (named) fputs("file", file);
    put_header(p, named ? "file" : NULL, file, ',');
    for (int64_t i = 0; i < p->samples; i++) {
        if (isnan(p->values[i * p->width])) continue;
        if (named) put_field(file, "", clt_dataset_sample_name(p->data, i), ',');
        put_prediction(p, i, !named, file, ',');
    }
    return 0;
}

int predict_write_table(const predictions *p, const data_spec *spec, FILE *file) {
    if (!spec) return write_alone(p, file);
    char separator = spec->csv.separator ? spec->csv.separator : ',';
    int64_t count = count_records(spec);
    records r;
    if (count != p->samples && count != p->samples + 1)
        return run_error("%s has changed: it had %lld lines of data", spec->path, (long long)p->samples);
    int code = open_records(&r, spec);
    if (code) return code;
    for (int64_t at = p->samples - count; at < p->samples && next_record(&r); at++) { /* -1: the header */
        fputs(r.text, file);
        if (at < 0) put_header(p, r.text, file, separator);
        else put_prediction(p, at, false, file, separator);
    }
    close_records(&r);
    return 0;
}

/* ---- arrays: https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html ---- */

static void put_word(uint64_t word, int bytes, FILE *file) {
    for (int i = 0; i < bytes; i++) fputc((int)(word >> 8 * i & 0xff), file);
}

int predict_write_array(const predictions *p, FILE *file) {
    enum { BYTES = 128 }; /* a multiple of 64, of magic, version, length and text */
    bool wide = p->digits > PREDICT_F32_DIGITS;
    char header[BYTES + 1];
    int length = snprintf(header + 10, BYTES - 10, "{'descr': '<f%d', 'fortran_order': False, 'shape': (%lld, %lld), }", wide ? 8 : 4,
                          (long long)p->samples, (long long)p->width);
    memcpy(header, "\x93NUMPY\x01\x00", 8);
    header[8] = (char)(BYTES - 10);
    header[9] = 0;
    memset(header + 10 + length, ' ', (size_t)(BYTES - 10 - length));
    header[BYTES - 1] = '\n';
    fwrite(header, 1, BYTES, file);
    for (int64_t i = 0; i < p->samples * p->width; i++) {
        float narrow = (float)p->values[i];
        uint64_t word = 0;
        uint32_t half_word;
        memcpy(&word, &p->values[i], sizeof word);
        memcpy(&half_word, &narrow, sizeof half_word);
        put_word(wide ? word : half_word, wide ? 8 : 4, file);
    }
    return 0;
}
