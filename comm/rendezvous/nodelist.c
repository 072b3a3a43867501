#include "comm/rendezvous/nodelist.h"

#include <string.h>

static clt_status malformed(const char *list) {
    return clt_fail(CLT_E_INVALID, "'%.200s' is not a list of nodes such as n[01-04,7],m3", list);
}

static bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

/* "01-04,7]": checks it up to the bracket; *first of `length` digits, *end behind the bracket. */
static bool read_bracket(const char *text, size_t *length, const char **end) {
    const char *c = text;
    *length = 0;
    for (;;) {
        size_t digits = 0;
        for (; is_digit(*c); c++) digits++;
        if (!digits) return false;
        if (!*length) *length = digits;
        if (*c == '-') {
            if (!is_digit(*++c)) return false;
            while (is_digit(*c)) c++;
        }
        if (*c == ']') break;
        if (*c++ != ',') return false;
    }
    *end = c + 1;
    return true;
}

clt_status clt_nodelist_first(const char *list, char *node, size_t capacity) {
    size_t used = 0;
    const char *c = list;
    while (*c && *c != ',') {
        const char *piece = c, *end = c + 1;
        size_t length = 1;
        if (*c == '[' && !read_bracket(piece = c + 1, &length, &end)) return malformed(list);
        if (*c == ']' || *c == ' ') return malformed(list);
        if (used + length >= capacity)
            return clt_fail(CLT_E_INVALID, "'%.200s': the first node's name is too long", list);
        memcpy(node + used, piece, length);
        used += length;
        c = end;
    }
    if (!used) return malformed(list);
    node[used] = 0;
    return CLT_OK;
}
