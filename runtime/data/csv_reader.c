#include "runtime/data/csv_reader.h"

#include <string.h>

enum { END = -1, MOST_FIELD_BYTES = 1 << 16 };

/* For a compressed table, which may expand without end. */
static const uint64_t MOST_EXPANDED_BYTES = (uint64_t)16 << 30;

static int peek(clt_csv_reader *r) {
    if (r->next == r->end) {
        if (r->status < 0) return END;
        r->next = r->end = 0;
        size_t got;
        r->status = clt_source_read(r->source, r->buffer, sizeof r->buffer, &got);
        if (r->status < 0 || got == 0) return END;
        r->end = got;
    }
    return r->buffer[r->next];
}

static int get(clt_csv_reader *r) {
    int c = peek(r);
    if (c == END) return END;
    r->next++;
    if (c == '\n') r->line++;
    return c;
}

static clt_status fail_at(const clt_csv_reader *r, const char *what) {
    return clt_fail(CLT_E_FORMAT, "%s: line %lld: %s", clt_source_path(r->source),
                    (long long)r->field_line, what);
}

static clt_status append(clt_csv_reader *r, int c) {
    if (r->length == MOST_FIELD_BYTES) return fail_at(r, "a field of more than 65536 bytes");
    CLT_TRY(clt_grow(&r->field, &r->capacity, r->length + 1, 1)); /* one for the NUL */
    r->field[r->length++] = (char)c;
    return CLT_OK;
}

static void skip_byte_order_mark(clt_csv_reader *r) {
    if (peek(r) == 0xef && r->end - r->next >= 3 && !memcmp(r->buffer + r->next, "\xef\xbb\xbf", 3))
        r->next += 3;
}

clt_status clt_csv_open(clt_csv_reader **reader, const char *path, char separator) {
    clt_csv_reader *r = clt_alloc(sizeof *r);
    if (!r) return clt_fail_memory(sizeof *r);
    memset(r, 0, offsetof(clt_csv_reader, buffer));
    r->separator = separator;
    r->line = 1;
    clt_status status;
    CLT_TRY_GOTO(clt_source_open(&r->source, path));
    clt_source_limit(r->source, MOST_EXPANDED_BYTES);
    CLT_TRY_GOTO(clt_grow(&r->field, &r->capacity, 0, 1));
    skip_byte_order_mark(r);
    *reader = r;
    return CLT_OK;
fail:
    clt_csv_close(r);
    return status;
}

void clt_csv_close(clt_csv_reader *reader) {
    if (!reader) return;
    clt_source_close(reader->source);
    clt_free(reader->field);
    clt_free(reader);
}

bool clt_csv_more(clt_csv_reader *reader) {
    return peek(reader) != END || reader->status < 0;
}

bool clt_csv_skip_line(clt_csv_reader *reader) {
    int c;
    do c = get(reader);
    while (c != END && c != '\n');
    return c != END;
}

/* The text behind the opening quote, up to the closing one. */
static clt_status read_quoted(clt_csv_reader *r) {
    for (;;) {
        int c = get(r);
        if (c == END) return r->status < 0 ? r->status : fail_at(r, "a quote is never closed");
        if (c == '"') {
            if (peek(r) != '"') return CLT_OK;
            get(r);
        }
        CLT_TRY(append(r, c));
    }
}

static clt_status read_separator(clt_csv_reader *r, bool *last) {
    int c = get(r);
    while (c != r->separator && (c == ' ' || c == '\t')) c = get(r);
    if (c == '\r' && (peek(r) == '\n' || peek(r) == END)) c = get(r);
    *last = c == '\n' || c == END;
    if (!*last && c != r->separator) return fail_at(r, "text after a closing quote");
    return CLT_OK;
}

static clt_status read_plain(clt_csv_reader *r, bool *last) {
    for (;;) {
        int c = get(r);
        *last = c == '\n' || c == END;
        if (*last || c == r->separator) break;
        CLT_TRY(append(r, c));
    }
    if (*last && r->length > 0 && r->field[r->length - 1] == '\r') r->length--;
    return CLT_OK;
}

clt_status clt_csv_field(clt_csv_reader *reader, bool *last) {
    reader->length = 0;
    reader->field_line = reader->line;
    if (peek(reader) == '"') {
        get(reader);
        CLT_TRY(read_quoted(reader));
        CLT_TRY(read_separator(reader, last));
    } else {
        CLT_TRY(read_plain(reader, last));
    }
    reader->field[reader->length] = 0;
    if (strlen(reader->field) < reader->length) return fail_at(reader, "a zero byte: this is not text");
    return reader->status;
}
