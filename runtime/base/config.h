/*
 * A configuration: a small JSON object in a file, such as the config.json of Hugging Face's libraries. It is input like any other; every error names
 * the file, the key, what was found and what is expected.
 */
#ifndef CLT_BASE_CONFIG_H
#define CLT_BASE_CONFIG_H

#include <jansson.h>

#include "runtime/base/base.h"

typedef struct clt_config {
    const char *path; /* the caller's */
    json_t *object;
} clt_config;

/* CLT_E_IO, CLT_E_FORMAT: the file holds no JSON object, or is longer than 1 MiB. */
clt_status clt_config_open(clt_config *config, const char *path);
void clt_config_close(clt_config *config);

/* NULL where there is none, or null. */
const json_t *clt_config_member(const clt_config *config, const char *key);

/* A whole number from 1 to `most`; `standard` where there is none, or CLT_E_FORMAT if that is 0. */
clt_status clt_config_size(const clt_config *config, const char *key, int64_t standard, int64_t most, int64_t *size);
/* `value`, the member of that key or of an object in it, as a number; `standard` where it is NULL. */
clt_status clt_config_real(const clt_config *config, const json_t *value, const char *key, double standard, float *number);

/* CLT_E_UNSUPPORTED: what it is, and what is expected. */
clt_status clt_config_refuse(const clt_config *config, const char *key, const char *expected);
/* Refused unless absent, null, or this. */
clt_status clt_config_expect_text(const clt_config *config, const char *key, const char *expected);
clt_status clt_config_expect_switch(const clt_config *config, const char *key, bool expected);
/* An array or object. */
clt_status clt_config_expect_empty(const clt_config *config, const char *key);

#endif
