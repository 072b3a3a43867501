#include "runtime/text/tokenizer.h"

size_t clt_utf8_read(const char *text, size_t bytes, uint32_t *code) {
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    const unsigned char *b = (const unsigned char *)text;
    if (!bytes) return 0;
    size_t length = b[0] < 0x80 ? 1 : b[0] < 0xc2 ? 0 : b[0] < 0xe0 ? 2 : b[0] < 0xf0 ? 3 : b[0] < 0xf5 ? 4 : 0;
    if (!length || length > bytes) return 0;
    uint32_t value = length == 1 ? b[0] : b[0] & (0x7fu >> length);
    for (size_t i = 1; i < length; i++) {
        if ((b[i] & 0xc0) != 0x80) return 0;
        value = value << 6 | (b[i] & 0x3f);
    }
    if (value < least[length] || value > 0x10ffff || (value >= 0xd800 && value < 0xe000)) return 0;
    *code = value;
    return length;
}

size_t clt_utf8_write(uint32_t code, char text[4]) {
    static const unsigned char marks[] = {0, 0, 0xc0, 0xe0, 0xf0};
    size_t length = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    for (size_t i = length; i-- > 1; code >>= 6) text[i] = (char)(0x80 | (code & 0x3f));
    text[0] = (char)(marks[length] | code);
    return length;
}

clt_status clt_utf8_check(const char *text, size_t bytes) {
    uint32_t code;
    for (size_t i = 0, length; i < bytes; i += length) {
        length = clt_utf8_read(text + i, bytes - i, &code);
        if (!length)
            return clt_fail(CLT_E_FORMAT, "expected UTF-8 text, found the byte 0x%02x at byte %zu", (unsigned char)text[i], i);
    }
    return CLT_OK;
}
