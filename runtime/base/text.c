#include "runtime/base/base.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

static bool reserve(clt_text *text, size_t more) {
    if (text->status < 0) return false;
    size_t needed = text->length + more + 1;
    if (needed <= text->capacity) return true;
    size_t capacity = CLT_MAX(needed, text->capacity * 2);
    char *data = clt_realloc(text->data, capacity);
    if (!data) {
        text->status = clt_fail_memory(capacity);
        return false;
    }
    text->data = data;
    text->capacity = capacity;
    return true;
}

void clt_text_add(clt_text *text, const char *format, ...) {
    va_list arguments, again;
    va_start(arguments, format);
    va_copy(again, arguments);
    int length = vsnprintf(NULL, 0, format, arguments);
    if (length >= 0 && reserve(text, (size_t)length)) {
        vsnprintf(text->data + text->length, (size_t)length + 1, format, again);
        text->length += (size_t)length;
    }
    va_end(again);
    va_end(arguments);
}

void clt_text_add_bytes(clt_text *text, const char *bytes, size_t length) {
    if (!reserve(text, length)) return;
    memcpy(text->data + text->length, bytes, length);
    text->length += length;
    text->data[text->length] = 0;
}

const char *clt_text_data(const clt_text *text) {
    return text->data ? text->data : "";
}

void clt_text_free(clt_text *text) {
    clt_free(text->data);
    *text = (clt_text){0};
}

bool clt_ends_with(const char *text, const char *suffix) {
    size_t n = strlen(text), m = strlen(suffix);
    return n >= m && !strcmp(text + n - m, suffix);
}

const char *clt_show(const char *text, char shown[CLT_SHOWN_TEXT]) {
    size_t length = 0;
    for (; *text && length < CLT_SHOWN_TEXT - 8; text++)
        length += (size_t)snprintf(shown + length, CLT_SHOWN_TEXT - length, *text >= ' ' && *text <= '~' ? "%c" : "\\x%02x",
                                   (unsigned char)*text);
    snprintf(shown + length, CLT_SHOWN_TEXT - length, "%s", *text ? "..." : "");
    return shown;
}

bool clt_text_contains(const char *text, const char *fragment) {
    size_t length = strlen(fragment);
    for (; *text || !length; text++) {
        size_t i = 0;
        while (i < length && tolower((unsigned char)text[i]) == tolower((unsigned char)fragment[i])) i++;
        if (i == length) return true;
    }
    return false;
}

bool clt_list_allows(const char *list, const char *name) {
    size_t length = strlen(name);
    bool listed = false, only = false;
    for (const char *at = list; at && *at;) {
        size_t span = strcspn(at, ",");
        bool minus = at[0] == '-';
        bool same = span - minus == length && !strncmp(at + minus, name, length);
        if (minus && same) return false;
        if (!minus && span > 0) only = true;
        listed |= !minus && same;
        at += span + (at[span] == ',');
    }
    return listed || !only;
}

bool clt_list_names(const char *list, const char *name) {
    size_t length = strlen(name);
    while (list && *list) {
        size_t span = strcspn(list, ",");
        if (span == length && !strncmp(list, name, length)) return true;
        list += span + (list[span] == ',');
    }
    return false;
}

static clt_status check_word(const char *what, const char *word, size_t length, const char *const *names, size_t n) {
    char all[400] = "";
    for (size_t i = 0; i < n; i++)
        if (strlen(names[i]) == length && !memcmp(names[i], word, length)) return CLT_OK;
    for (size_t i = 0; i < n; i++) {
        bool told = false;
        size_t used = strlen(all);
        for (size_t k = 0; k < i; k++) told |= strcmp(names[k], names[i]) == 0;
        if (!told) snprintf(all + used, sizeof all - used, "%s%s", used ? ", " : "", names[i]);
    }
    return clt_fail(CLT_E_INVALID, "%s: there is no \"%.*s\": there are %s", what, (int)CLT_MIN(length, 64), word, all);
}

clt_status clt_choice_check(const char *what, const char *text, const char *const *names, size_t n) {
    return text && *text ? check_word(what, text, strlen(text), names, n) : CLT_OK;
}

clt_status clt_list_check(const char *what, const char *list, bool minus, const char *const *names, size_t n) {
    while (list && *list) {
        size_t length = strcspn(list, ","), skip = minus && list[0] == '-';
        if (length > 0) CLT_TRY(check_word(what, list + skip, length - skip, names, n));
        list += length + (list[length] == ',');
    }
    return CLT_OK;
}

void clt_hash_text(const void *bytes, size_t length, char out[CLT_HASH_TEXT]) {
    XXH128_hash_t hash = XXH3_128bits(bytes, length);
    snprintf(out, CLT_HASH_TEXT, "%016llx%016llx", (unsigned long long)hash.high64,
             (unsigned long long)hash.low64);
}

void clt_hash_add(char out[CLT_HASH_TEXT], const void *bytes, size_t length) {
    char both[2 * CLT_HASH_TEXT] = {0};
    memcpy(both, out, strlen(out));
    clt_hash_text(bytes, length, both + CLT_HASH_TEXT);
    clt_hash_text(both, sizeof both, out);
}
