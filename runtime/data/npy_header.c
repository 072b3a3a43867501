#include "runtime/data/npy_header.h"

#include <string.h>

enum { MOST_HEADER_BYTES = 1 << 16, WORD_BYTES = 32 };

typedef struct parser {
    const char *path;
    const char *next;
    bool has_descr, has_order, has_shape;
    char descr[WORD_BYTES];
    bool fortran_order;
    clt_shape shape;
} parser;

static void skip_blanks(parser *p) {
    while (*p->next == ' ' || *p->next == '\n' || *p->next == '\t') p->next++;
}

/* Takes the character if it comes next. */
static bool take(parser *p, char wanted) {
    skip_blanks(p);
    if (*p->next != wanted) return false;
    p->next++;
    return true;
}

static clt_status malformed(const parser *p, const char *what) {
    return clt_fail(CLT_E_FORMAT, "%s: its NPY header is malformed: %s", p->path, what);
}

static clt_status parse_string(parser *p, char out[WORD_BYTES]) {
    skip_blanks(p);
    char quote = *p->next;
    if (quote != '\'' && quote != '"') return malformed(p, "no quoted word where one belongs");
    const char *begin = p->next + 1, *end = strchr(begin, quote);
    if (!end || end - begin >= WORD_BYTES) return malformed(p, "a word without an end, or too long");
    memcpy(out, begin, (size_t)(end - begin));
    out[end - begin] = 0;
    p->next = end + 1;
    return CLT_OK;
}

static clt_status parse_bool(parser *p, bool *value) {
    skip_blanks(p);
    *value = !strncmp(p->next, "True", 4);
    if (!*value && strncmp(p->next, "False", 5)) return malformed(p, "neither True nor False");
    p->next += *value ? 4 : 5;
    return CLT_OK;
}

static clt_status parse_dimension(parser *p, int64_t *dim) {
    *dim = 0;
    if (*p->next < '0' || *p->next > '9') return malformed(p, "a dimension is not a number");
    for (; *p->next >= '0' && *p->next <= '9'; p->next++)
        if (__builtin_mul_overflow(*dim, 10, dim) || __builtin_add_overflow(*dim, *p->next - '0', dim))
            return malformed(p, "a dimension has too many digits");
    return CLT_OK;
}

/* (), (3,), (3, 4), (3, 4,) */
static clt_status parse_shape(parser *p) {
    if (!take(p, '(')) return malformed(p, "no shape in parentheses");
    p->shape.rank = 0;
    bool comma = true;
    while (!take(p, ')')) {
        if (!comma) return malformed(p, "no comma between dimensions");
        if (p->shape.rank == CLT_MAX_RANK)
            return clt_fail(CLT_E_SHAPE, "%s: more than %d dimensions", p->path, CLT_MAX_RANK);
        CLT_TRY(parse_dimension(p, &p->shape.dims[p->shape.rank++]));
        comma = take(p, ',');
    }
    if (p->shape.rank == 1 && !comma) return malformed(p, "a shape of one dimension has no comma");
    return CLT_OK;
}

static clt_status parse_entry(parser *p) {
    char key[WORD_BYTES];
    CLT_TRY(parse_string(p, key));
    if (!take(p, ':')) return malformed(p, "no colon after a key");
    bool *seen = !strcmp(key, "descr")           ? &p->has_descr
                 : !strcmp(key, "fortran_order") ? &p->has_order
                 : !strcmp(key, "shape")         ? &p->has_shape
                                                 : NULL;
    if (!seen) return malformed(p, "an unknown key");
    if (*seen) return malformed(p, "a key twice");
    *seen = true;
    if (seen == &p->has_order) return parse_bool(p, &p->fortran_order);
    if (seen == &p->has_shape) return parse_shape(p);
    skip_blanks(p);
    if (*p->next == '[')
        return clt_fail(CLT_E_UNSUPPORTED, "%s: an array of records; plain numbers are read", p->path);
    return parse_string(p, p->descr);
}

static clt_status parse_header(parser *p) {
    bool comma = true;
    if (!take(p, '{')) return malformed(p, "no dictionary");
    while (!take(p, '}')) {
        if (!comma) return malformed(p, "no comma between entries");
        CLT_TRY(parse_entry(p));
        comma = take(p, ',');
    }
    skip_blanks(p);
    if (*p->next) return malformed(p, "text after the dictionary");
    if (!p->has_descr || !p->has_order || !p->has_shape)
        return malformed(p, "descr, fortran_order or shape is missing");
    return CLT_OK;
}

static clt_status check_header(const parser *p, clt_npy_header *header) {
    static const char *const names[] = {"<f2", "<f4", "<f8", "|b1", "|i1", "|u1", "<i2", "<u2", "<i4", "<u4", "<i8"}; /* as clt_npy_type */
    size_t type = 0;
    while (type < CLT_COUNT_OF(names) && strcmp(p->descr, names[type])) type++;
    if (type == CLT_COUNT_OF(names))
        return clt_fail(CLT_E_UNSUPPORTED, "%s: its type is %s; <f2, <f4, <f8, |b1, |i1, |u1, <i2, <u2, <i4, <u4 and <i8 are read: save "
                        "numpy.asarray(x, '<f4'), or '<i8' of labels", p->path, p->descr);
    if (p->fortran_order)
        return clt_fail(CLT_E_UNSUPPORTED, "%s: in Fortran order; save it with numpy.ascontiguousarray",
                        p->path);
    if (p->shape.rank == 0)
        return clt_fail(CLT_E_SHAPE, "%s: a scalar, not an array of samples", p->path);
    header->type = (clt_npy_type)type;
    header->shape = p->shape;
    header->elements = clt_shape_elements(&p->shape);
    if (header->elements < 0) return clt_fail(CLT_E_FORMAT, "%s: its dimensions are too large", p->path);
    if (header->elements == 0) return clt_fail(CLT_E_SHAPE, "%s: a dimension is 0", p->path);
    return CLT_OK;
}

static clt_status read_header_bytes(clt_source *source, size_t *bytes) {
    static const char magic[] = "\x93NUMPY";
    const char *path = clt_source_path(source);
    unsigned char start[12];
    CLT_TRY(clt_source_read_exactly(source, start, 10, "its header"));
    if (memcmp(start, magic, 6)) return clt_fail(CLT_E_FORMAT, "%s: not an NPY file%s", path, memcmp(start, "PK", 2) ? "" : " but a zip, as numpy.savez makes it: save each of its arrays with numpy.save");
    if (start[6] < 1 || start[6] > 3)
        return clt_fail(CLT_E_UNSUPPORTED, "%s: NPY version %d; 1 to 3 are read", path, start[6]);
    *bytes = start[8] | (size_t)start[9] << 8;
    if (start[6] > 1) {
        CLT_TRY(clt_source_read_exactly(source, start + 10, 2, "its header"));
        *bytes |= (size_t)start[10] << 16 | (size_t)start[11] << 24;
    }
    if (*bytes > MOST_HEADER_BYTES)
        return clt_fail(CLT_E_FORMAT, "%s: an NPY header of %zu bytes", path, *bytes);
    return CLT_OK;
}

clt_status clt_npy_read_header(clt_source *source, clt_npy_header *header) {
    size_t bytes = 0;
    CLT_TRY(read_header_bytes(source, &bytes));
    char *text = clt_calloc(bytes + 1, 1);
    if (!text) return clt_fail_memory(bytes + 1);
    parser p = {.path = clt_source_path(source), .next = text};
    clt_status status;
    CLT_TRY_GOTO(clt_source_read_exactly(source, text, bytes, "its header"));
    CLT_TRY_GOTO(strlen(text) < bytes ? malformed(&p, "a zero byte") : CLT_OK);
    CLT_TRY_GOTO(parse_header(&p));
    CLT_TRY_GOTO(check_header(&p, header));
fail:
    clt_free(text);
    return status;
}
