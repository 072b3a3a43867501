#include "runtime/base/name.h"

#include <string.h>

#include "runtime/base/json.h"

clt_status clt_tensor_name_check(const char *name) {
    if (!strcmp(name, "__metadata__")) return clt_fail(CLT_E_INVALID, "\"%s\" is reserved", name);
    return clt_json_check_text(name);
}

clt_status clt_variable_name_check(const char *name) {
    if (!strncmp(name, CLT_STATE_PREFIX, strlen(CLT_STATE_PREFIX)))
        return clt_fail(CLT_E_INVALID, "\"%.120s\" begins with " CLT_STATE_PREFIX ", which is reserved", name);
    size_t length = strlen(name), suffix = strlen(CLT_TRACKED_SUFFIX);
    if (length >= suffix && !strcmp(name + length - suffix, CLT_TRACKED_SUFFIX))
        return clt_fail(CLT_E_INVALID, "\"%.120s\" ends with " CLT_TRACKED_SUFFIX ", which is reserved", name);
    return clt_tensor_name_check(name);
}

size_t clt_layer_name_length(const char *weight) {
    static const char suffix[] = ".weight";
    return strlen(weight) - (clt_ends_with(weight, suffix) ? sizeof suffix - 1 : 0);
}

/* Where a star was passed it can take one character more: only the last one need be tried again. */
bool clt_name_matches(const char *name, const char *pattern) {
    const char *after_star = NULL, *again = NULL;
    while (*name) {
        if (*pattern == '*') {
            after_star = ++pattern;
            again = name;
        } else if (*pattern == '?' || *pattern == *name) {
            pattern++;
            name++;
        } else if (after_star) {
            pattern = after_star;
            name = ++again;
        } else {
            return false;
        }
    }
    while (*pattern == '*') pattern++;
    return *pattern == 0;
}
