#include "comm/rendezvous/store.h"

#include <string.h>

static int hex_digit(char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return -1;
}

clt_status clt_url_decode(char *text) {
    char *out = text;
    for (const char *c = text; *c; c++) {
        if (*c != '%') {
            *out++ = *c;
            continue;
        }
        int high = hex_digit(c[1]), low = high < 0 ? -1 : hex_digit(c[2]);
        if (low < 0 || (high == 0 && low == 0))
            return clt_fail(CLT_E_INVALID, "a '%%' in the url is not followed by the two hex digits of a character");
        *out++ = (char)(high * 16 + low);
        c += 2;
    }
    *out = 0;
    return CLT_OK;
}

static bool stands_for_itself(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_' || c == '.';
}

bool clt_url_encode(const char *text, char *out, size_t capacity) {
    static const char digits[] = "0123456789ABCDEF";
    size_t used = 0;
    for (; *text; text++) {
        unsigned char c = (unsigned char)*text;
        bool plain = stands_for_itself(*text);
        if (used + (plain ? 1 : 3) >= capacity) return false;
        if (!plain) {
            out[used++] = '%';
            out[used++] = digits[c >> 4];
        }
        out[used++] = plain ? *text : digits[c & 15];
    }
    if (used >= capacity) return false;
    out[used] = 0;
    return true;
}
