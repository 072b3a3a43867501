/*
 * Documents of this tool as a page of HTML.
 */
#ifndef CLTRAIN_PROBE_REPORT_H
#define CLTRAIN_PROBE_REPORT_H

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

/* Reads a document of this tool's schema; its strings may be shown. Returns 0, or 2 after a message. */
int report_load(json_t **document, const char *path);

/* Writes the page of some documents, of any kinds, in this order of kinds: devices, comparison, benches, models,
 * memory checks. Returns 0 or EXIT_FAILED after a message. */
int report_write(FILE *page, const json_t *const *documents, int n);

/* ---- parts of a page ---- */

/* report_bench.c: limits and ops. `ids` goes before the ids of its sections; `rooflines`: what is drawn. */
void report_bench(FILE *page, const json_t *bench, const char *ids, const char *name, json_t *rooflines);

/* report_roofline.c: a figure, and what roofline.js draws in it, one more of `rooflines`. */
void report_roofline(FILE *page, const json_t *bench, json_t *rooflines);

/* report_other.c: `a` and `b`, the benches compared, may be NULL. One that could not be made has a "why". */
void report_comparison(FILE *page, const json_t *comparison, const json_t *a, const json_t *b);
void report_no_comparison(FILE *page, const char *heading, const json_t *comparison);
void report_verify(FILE *page, const json_t *verify);

/* report_models.c */
void report_models(FILE *page, const json_t *const *documents, int n);
void report_recommend(FILE *page, const json_t *recommend);

#endif
