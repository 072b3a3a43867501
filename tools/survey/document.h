/*
 * The JSON documents that the tools write, as their schemas in docs/ describe them, and the files they go to.
 */
#ifndef CLTRAIN_SURVEY_DOCUMENT_H
#define CLTRAIN_SURVEY_DOCUMENT_H

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

#include <cltrain/cltrain.h>

#include "tools/survey/output.h"

/* {"schema": "PROGRAM/1", "kind", "tool", "host", "time_utc"}; NULL without memory. */
json_t *document_new(const char *kind);

/* A string for JSON, whatever a driver gives: what may not be shown (tools/common/text.h) becomes '?'. */
json_t *document_text(const char *text);
/* True if nothing had to be replaced. */
bool document_text_clean(const char *text);

/* A member that is a string; "" if there is none. */
const char *document_string(const json_t *object, const char *key);

/* Of a document from elsewhere: all its strings become such. Names of members stay. */
void document_clean(json_t *document);

/* One line, as children write them; takes the object over. */
void document_line(FILE *lines, json_t *object);

/* ---- devices ---- */

json_t *document_device(const clt_device_info *info);
/* Back from JSON that a child wrote; false if something is missing. */
bool document_read_device(const json_t *object, clt_device_info *info);
const char *document_type_name(clt_device_type type);

/* ---- files ---- */

/* As it would be read back: with as many digits as a file has. NULL without memory. */
json_t *document_as_written(const json_t *document);
/* To the file (NULL: stdout), indented. Returns 0 or EXIT_FAILED. */
int document_write(const json_t *document, FILE *file);
/* In a file, which is replaced when all is written; "-": on stdout. */
int document_write_at(const json_t *document, const char *path);

#endif
