/*
 * The roofline (Williams, Waterman, Patterson 2009): ops by arithmetic intensity and speed, and the most that memory and arithmetic
 * allow. roofline.js draws it.
 */
#include <math.h>
#include <string.h>

#include "report.h"
#include "tools/survey/document.h"
#include "tools/survey/page.h"

/* What all of a family have in their op's name; the last is all others. roofline.js has their names. */
static const char *const families[] = {"matmul", "conv", "pool", "norm", "reduce", "sgd", ""};
enum { FAMILIES = sizeof families / sizeof families[0], UPDATE = 6, OTHER = FAMILIES };

/* From 1. */
static int family_of(const char *problem) {
    char op[64];
    snprintf(op, sizeof op, "%.*s", (int)strcspn(problem, " "), problem);
    for (int i = 0; i < FAMILIES - 1; i++)
        if (strstr(op, families[i])) return i + 1;
    return strncmp(op, "adam", 4) == 0 ? UPDATE : OTHER;
}

typedef struct roofline {
    json_t *points;
    int left_out; /* timed, but not on any scale */
    double gflops, gbytes; /* the peaks, a second; 0: not known */
} roofline;

static bool on_scale(double value) {
    return value > 1e-9 && value < 1e12;
}

static double larger(double a, double b) {
    return b > a && on_scale(b) ? b : a;
}

/* What an algorithm does of the arithmetic that is counted, where that is told. */
static double done_flops(const json_t *row) {
    double flops = page_json_number(json_object_get(row, "roof"), "flops");
    return flops > 0 ? flops : page_json_number(row, "flops");
}

static void read_op(roofline *r, const json_t *row, int number) {
    const char *status = document_string(row, "status"), *bound = document_string(json_object_get(row, "roof"), "bound"), *problem = document_string(row, "problem");
    double flops = done_flops(row), bytes = page_json_number(row, "bytes");
    double us = page_json_number(json_object_get(row, "time_us"), "p50"), x = flops / bytes, y = 1e-3 * flops / us;
    bool suspect = strcmp(status, "suspect") == 0;
    if (strcmp(status, "ok") != 0 && !suspect) return;
    if (on_scale(x) && on_scale(y))
        json_array_append_new(r->points, json_pack("{s:i, s:o, s:i, s:b, s:f, s:f, s:f}", "number", number, "problem", document_text(problem), "family", family_of(problem), "suspect", suspect,
                                                   "x", x, "y", y, "us", us * fmax(1, page_json_number(row, "count"))));
    else r->left_out++;
    /* The peaks that the bench knew: those of this run, or better ones of earlier runs. */
    double least_us = page_json_number(json_object_get(row, "roof"), "least_us");
    if (strcmp(bound, "compute") == 0) r->gflops = larger(r->gflops, 1e-3 * flops / least_us);
    if (strcmp(bound, "memory") == 0) r->gbytes = larger(r->gbytes, 1e-3 * bytes / least_us);
}

static double best_rate(const json_t *row) {
    double best = 0;
    size_t p, i;
    const json_t *pass, *sample;
    json_array_foreach(json_object_get(row, "samples_us"), p, pass) {
        json_array_foreach(pass, i, sample) best = larger(best, 1e6 / json_number_value(sample));
    }
    return best;
}

static void read_limit(roofline *r, const json_t *row) {
    static const char *const memory[] = {"limit copy", "limit triad", "limit read"};
    const char *key = document_string(row, "key");
    if (strcmp(document_string(row, "status"), "ok") != 0) return;
    if (strcmp(key, "limit fma_f32") == 0) r->gflops = larger(r->gflops, best_rate(row));
    for (size_t i = 0; i < sizeof memory / sizeof memory[0]; i++)
        if (strcmp(key, memory[i]) == 0) r->gbytes = larger(r->gbytes, best_rate(row));
}

static void read_bench(roofline *r, const json_t *bench) {
    const json_t *row, *results = json_object_get(bench, "results");
    size_t i;
    int number = 0;
    *r = (roofline){.points = json_array()};
    json_array_foreach(results, i, row) {
        if (strcmp(document_string(row, "kind"), "op") == 0) read_op(r, row, ++number);
        else read_limit(r, row);
    }
}

static void notes(FILE *page, const roofline *r) {
    fputs("<p class=\"note\">Numbers are those of the table of ops. The lines are the most that this device\xe2\x80\x99s memory and "
          "arithmetic were measured to do. Above them lies what works from a cache, or what needs an unknown number of "
          "fewer operations than are counted (Fourier); Winograd\xe2\x80\x99s are those that it does; what a cache bounds has no roofline here, since none was measured. Where points crowd, those that take longest are numbered.", page);
    if (r->left_out) fprintf(page, " %d timed op%s no place on such axes.", r->left_out, r->left_out == 1 ? " has" : "s have");
    fputs("</p>\n", page);
}

void report_roofline(FILE *page, const json_t *bench, json_t *rooflines) {
    roofline r;
    read_bench(&r, bench);
    if (json_array_size(r.points) == 0) {
        fprintf(page, "<p>%s, so there is no roofline.</p>\n", r.left_out ? "No timed op has a place on such axes" : "No op was timed");
        json_decref(r.points);
        return;
    }
    fputs("<noscript><p>The roofline is drawn by a script, which is not run here: all values are below.</p></noscript>\n<figure class=\"roofline\"></figure>\n", page);
    notes(page, &r);
    json_array_append_new(rooflines, json_pack("{s:o, s:f, s:f}", "points", r.points, "gflops", r.gflops, "gbytes", r.gbytes));
}
