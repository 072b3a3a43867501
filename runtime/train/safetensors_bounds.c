/* What the text of a header may be before it is parsed: a parser takes a hundred times the bytes of "{},". */
#include "runtime/train/safetensors.h"

/* The quote that ends a string, or some place behind the text if none does. */
static size_t end_of_string(const char *text, size_t length, size_t start) {
    size_t at = start + 1;
    while (at < length && text[at] != '"') at += text[at] == '\\' ? 2 : 1;
    return at;
}

static bool may_open(char bracket, unsigned depth) {
    return bracket == '{' ? depth < 2 : depth == 2;
}

/* Brackets that close are not told apart, nor is anything else held against JSON's rules: the parser ends at the first place where
 * that matters. A value is counted by the bracket or comma before it. */
clt_status clt_safetensors_check_bounds(const char *text, size_t length) {
    unsigned depth = 0, values = 0;
    for (size_t at = 0; at < length; at++) {
        char c = text[at];
        bool opens = c == '{' || c == '[', closes = c == '}' || c == ']';
        if (c == '"') at = end_of_string(text, length, at);
        if (opens && !may_open(c, depth))
            return clt_fail(CLT_E_FORMAT, "the header has an %s where there can be none, at byte %zu",
                            c == '{' ? "object" : "array", at);
        depth += opens;
        depth -= closes && depth;
        values += opens || c == ',';
        if (values > CLT_SAFETENSORS_MOST_VALUES)
            return clt_fail(CLT_E_FORMAT, "the header has more than %u values, at byte %zu",
                            CLT_SAFETENSORS_MOST_VALUES, at);
    }
    return CLT_OK;
}
