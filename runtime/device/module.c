/* Modules cut down to the kernels that are wanted of them. */
#include <ctype.h>
#include <string.h>

#include "runtime/device/cl.h"
#include "runtime/device/kernel_source.h"

static bool is_word(char c) {
    return isalnum((unsigned char)c) || c == '_';
}

static bool skip(const char **at, const char *text) {
    size_t length = strlen(text);
    if (strncmp(*at, text, length)) return false;
    *at += length;
    return true;
}

/* If a kernel's definition begins at this line, "kernel void name(" or "kernel ATTRIBUTE void name(": its name, whose length is
 * *length; else NULL. Names that a macro makes are not told. */
static const char *name_of(const char *line, size_t *length) {
    if (!skip(&line, "kernel ")) return NULL;
    if (isupper((unsigned char)*line)) {
        while (is_word(*line)) line++;
        if (!skip(&line, " ")) return NULL;
    }
    if (!skip(&line, "void ") || !islower((unsigned char)*line)) return NULL;
    *length = 0;
    while (is_word(line[*length])) ++*length;
    return line[*length] == '(' ? line : NULL;
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
        size_t length;
        const char *name = name_of(line, &length);
        const char *next = strchr(line, '\n');
        next = next ? next + 1 : line + strlen(line);
        if (name && !wants(wanted, n, module, name, length)) {
            clt_text_add_bytes(out, kept, (size_t)(line - kept));
            kept = next = end_of_definition(line);
        }
        line = next;
    }
    clt_text_add_bytes(out, kept, strlen(kept));
}

clt_status clt_module_source(const clt_device *device, const clt_module *module, const char *kernel, clt_text *out) {
    const clt_wanted wanted = {.kernel = kernel};
    const char *prelude = clt_kernel_source_find(device, CLT_PRELUDE);
    if (prelude && !module->isolated) clt_text_add(out, "%s\n", prelude);
    if (module->separable) clt_module_cut(module->text, &wanted, 1, 0, out);
    else clt_text_add_bytes(out, module->text, strlen(module->text));
    return out->status;
}
