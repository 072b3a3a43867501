#include "compress_spec.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "tools/common/message.h"
#include "tools/common/numbers.h"

static bool parse_method(clt_compress_options *options, const char *name) {
    for (int method = CLT_COMPRESS_F16; method <= CLT_COMPRESS_POWERSGD; method++)
        if (!strcmp(name, clt_compression_name((clt_compression)method))) {
            options->method = (clt_compression)method;
            return true;
        }
    return false;
}

static bool parse_key(clt_compress_options *options, const char *key, const char *value) {
    double number;
    int64_t whole;
    bool topk = options->method == CLT_COMPRESS_TOPK;
    if (!strcmp(key, "force")) return options->force = !strcmp(value, "1");
    if (topk && !strcmp(key, "ratio")) {
        if (!number_real(value, &number) || !(number > 0 && number <= 1)) return false;
        options->ratio = (float)number;
        return options->ratio > 0;
    }
    if (topk && !strcmp(key, "values")) {
        options->f32_values = !strcmp(value, "f32");
        return options->f32_values || !strcmp(value, "bf16");
    }
    if (options->method != CLT_COMPRESS_POWERSGD || strcmp(key, "rank") != 0) return false;
    if (!number_whole(value, 1, CLT_COMPRESS_MAX_RANK, &whole)) return false;
    options->rank = (int)whole;
    return true;
}

static bool parse(clt_compress_options *options, char *text) {
    char *next = strchr(text, ',');
    if (next) *next++ = '\0';
    if (!parse_method(options, text)) return false;
    for (char *part = next; part; part = next) {
        char *value = strchr(part, '=');
        next = strchr(part, ',');
        if (next) *next++ = '\0';
        if (!value) return false;
        *value++ = '\0';
        if (!parse_key(options, part, value)) return false;
    }
    return true;
}

int compress_spec_parse(clt_compress_options *options, const char *text) {
    char copy[128];
    *options = (clt_compress_options){0};
    if (snprintf(copy, sizeof copy, "%s", text) < (int)sizeof copy && parse(options, copy)) return 0;
    return usage_error("--compress %s: expected f16, bf16, int8, onebit, topk[,ratio=X][,values=f32|bf16] with X above 0 and at "
                       "most 1, or powersgd[,rank=N] with N from 1 to %d; force=1 after any",
                       text, CLT_COMPRESS_MAX_RANK);
}
