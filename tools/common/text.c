#include "tools/common/text.h"

#include <string.h>

/* Marks, embeddings, overrides and isolates of direction; separators of lines and paragraphs. */
static bool turns_text(unsigned long letter) {
    return letter == 0x061c || (letter >= 0x200e && letter <= 0x200f) || (letter >= 0x2028 && letter <= 0x202e) ||
           (letter >= 0x2066 && letter <= 0x2069);
}

size_t text_letter_bytes(const char *text) {
    static const unsigned long least[] = {0, 0, 0xa0, 0x800, 0x10000}; /* 0x80 to 0x9f are control characters */
    const unsigned char *c = (const unsigned char *)text;
    if (c[0] < 0x80) return c[0] >= ' ' && c[0] != 0x7f;
    size_t n = c[0] >= 0xf0 && c[0] < 0xf5 ? 4 : c[0] >= 0xe0 && c[0] < 0xf0 ? 3 : c[0] >= 0xc2 && c[0] < 0xe0 ? 2 : 0;
    if (n == 0) return 0;
    unsigned long letter = c[0] & (0x7fu >> n);
    for (size_t i = 1; i < n; i++) {
        if ((c[i] & 0xc0) != 0x80) return 0;
        letter = letter << 6 | (c[i] & 0x3f);
    }
    bool surrogate = letter >= 0xd800 && letter <= 0xdfff, none = (letter & 0xfffe) == 0xfffe; /* XML has no U+FFFF */
    return letter < least[n] || letter > 0x10ffff || surrogate || none || turns_text(letter) ? 0 : n;
}

void text_clean(char *text, const char *spaces) {
    for (size_t n; *text; text += n) {
        n = text_letter_bytes(text);
        if (n > 0) continue;
        if (!strchr(spaces, *text)) *text = strchr("\n\t", *text) ? ' ' : '?';
        n = 1;
    }
}

bool text_has_suffix(const char *text, const char *suffix) {
    size_t n = strlen(text), m = strlen(suffix);
    return n >= m && strcmp(text + n - m, suffix) == 0;
}
