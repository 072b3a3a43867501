#include "lora_spec.h"

#include <string.h>

#include "tools/common/message.h"
#include "tools/common/numbers.h"

static bool parse_number(lora_spec *spec, const char *key, const char *value) {
    double number;
    int64_t whole;
    if (!strcmp(key, "rank")) {
        if (!number_whole(value, 1, CLT_LORA_MAX_RANK, &whole)) return false;
        spec->options.rank = (int)whole;
        return true;
    }
    if (!number_real(value, &number)) return false;
    if (!strcmp(key, "alpha")) spec->options.alpha = (float)number;
    else if (!strcmp(key, "dropout")) spec->options.dropout = (float)number;
    else return false;
    return strcmp(key, "alpha") ? number >= 0 && number < 1 : number > 0;
}

/* KEY=VALUE up to the next comma; false at the targets, which are all behind it, and where it makes no sense. */
static bool parse_part(lora_spec *spec, const char **at) {
    char key[16], value[64];
    const char *equals = strchr(*at, '=');
    size_t length = strcspn(*at, ",");
    if (!equals || equals > *at + length) return false;
    size_t name = (size_t)(equals - *at), digits = length - name - 1;
    if (name >= sizeof key || digits >= sizeof value) return false;
    memcpy(key, *at, name);
    memcpy(value, equals + 1, digits);
    key[name] = value[digits] = 0;
    *at += length + ((*at)[length] == ',');
    return parse_number(spec, key, value);
}

int lora_spec_parse(lora_spec *spec, const char *text) {
    static const char targets[] = "targets=";
    const char *at = text;
    *spec = (lora_spec){.targets = NULL};
    if (text[0] && !strchr(text, '=')) return 0; /* a folder */
    while (strncmp(at, targets, strlen(targets)) != 0)
        if (!parse_part(spec, &at))
            return usage_error("--lora '%s': expected rank=N[,alpha=X][,dropout=X],targets=LAYER,... with N from 1 to %d, X above 0 and a dropout below 1, or a "
                               "folder of PEFT", text, CLT_LORA_MAX_RANK);
    spec->targets = at + strlen(targets);
    return 0;
}
