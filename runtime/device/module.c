/* Modules cut down to the kernels that are wanted of them. */
#include <ctype.h>
#include <string.h>

#include "runtime/device/cl.h"

static const char definition[] = "kernel void ";

/* If a kernel's definition begins at this line: its name's length. Names that a macro makes are not told. */
static size_t name_length(const char *line) {
    if (strncmp(line, definition, sizeof definition - 1)) return 0;
    const char *name = line + sizeof definition - 1;
    if (!islower((unsigned char)*name)) return 0;
    size_t length = 0;
    while (isalnum((unsigned char)name[length]) || name[length] == '_') length++;
    return name[length] == '(' ? length : 0;
}

/* Behind the brace that closes the first one; the end of the text if none does. */
static const char *end_of_definition(const char *at) {
    int depth = 0;
    for (; *at; at++) {
        if (*at == '{') depth++;
        if (*at == '}' && --depth == 0) return at + 1;
    }
    return at;
}

static bool wants(const clt_wanted *wanted, int n, int module, const char *name, size_t length) {
    for (int i = 0; i < n; i++)
        if (wanted[i].module == module && strlen(wanted[i].kernel) == length && !memcmp(wanted[i].kernel, name, length))
            return true;
    return false;
}

void clt_module_cut(const char *text, const clt_wanted *wanted, int n, int module, clt_text *out) {
    const char *kept = text;
    for (const char *line = text; *line;) {
        size_t length = name_length(line);
        const char *next = strchr(line, '\n');
        next = next ? next + 1 : line + strlen(line);
        if (length && !wants(wanted, n, module, line + sizeof definition - 1, length)) {
            clt_text_add_bytes(out, kept, (size_t)(line - kept));
            kept = next = end_of_definition(line);
        }
        line = next;
    }
    clt_text_add_bytes(out, kept, strlen(kept));
}
