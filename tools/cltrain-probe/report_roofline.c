/*
 * The roofline (Williams, Waterman, Patterson 2009): ops by arithmetic intensity and speed, both as logarithms, under
 * the most that memory and arithmetic allow.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "report.h"
#include "report_labels.h"
#include "tools/survey/document.h"
#include "tools/survey/page.h"

/* ---- families ---- */

static const struct {
    const char *word, *name; /* of the first, what all of the family have in their op's name */
} families[] = {{"matmul", "matrix product"}, {"conv", "convolution"}, {"pool", "pooling"}, {"norm", "normalization"},
                {"reduce", "reduction"},      {"sgd", "update"},       {"", "other"}};
enum { FAMILIES = sizeof families / sizeof families[0], UPDATE = 6, OTHER = FAMILIES };

int report_family(const char *problem) {
    char op[64];
    snprintf(op, sizeof op, "%.*s", (int)strcspn(problem, " "), problem);
    for (int i = 0; i < FAMILIES - 1; i++)
        if (strstr(op, families[i].word)) return i + 1;
    return strncmp(op, "adam", 4) == 0 ? UPDATE : OTHER;
}

void report_mark(FILE *page, int family, double x, double y, double radius) {
    double r = radius, w = r * 0.38;
    fputs("<path class=\"mark\" d=\"", page);
    switch (family) {
    case 1: fprintf(page, "M%.1f %.1fa%.1f %.1f 0 1 0 %.1f 0a%.1f %.1f 0 1 0 %.1f 0z", x - r, y, r, r, 2 * r, r, r, -2 * r); break;
    case 2: r *= 0.88, fprintf(page, "M%.1f %.1fh%.1fv%.1fh%.1fz", x - r, y - r, 2 * r, 2 * r, -2 * r); break;
    case 3: r *= 1.1, fprintf(page, "M%.1f %.1fL%.1f %.1fH%.1fz", x, y - r, x + r, y + r * 0.8, x - r); break;
    case 4: r *= 1.15, fprintf(page, "M%.1f %.1fl%.1f %.1fl%.1f %.1fl%.1f %.1fz", x, y - r, r, r, -r, r, -r, -r); break;
    case 5: r *= 1.1, fprintf(page, "M%.1f %.1fL%.1f %.1fH%.1fz", x, y + r, x + r, y - r * 0.8, x - r); break;
    case 6:
        fprintf(page, "M%.1f %.1fh%.1fv%.1fh%.1fv%.1fh%.1fv%.1fh%.1fv%.1fh%.1fv%.1fh%.1fz", x - w, y - r, 2 * w, r - w, r - w,
                2 * w, w - r, r - w, -2 * w, w - r, w - r, -2 * w, r - w);
        break;
    default:
        fprintf(page, "M%.1f %.1fl%.1f %.1fv%.1fl%.1f %.1fl%.1f %.1fv%.1fz", x, y - r, r * 0.87, r / 2, r, -r * 0.87, r / 2,
                -r * 0.87, -r / 2, -r);
    }
    fputs("\"/>", page);
}

/* ---- what is drawn ---- */

typedef struct point {
    const json_t *row;
    int number, family;
    double x, y; /* flop/byte, GFLOP/s */
    double us;   /* in a step */
    bool suspect;
} point;

typedef struct roofline {
    point *points;
    int n, left_out; /* timed, but not on any scale */
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
    const char *status = document_string(row, "status"), *bound = document_string(json_object_get(row, "roof"), "bound");
    double flops = done_flops(row), bytes = page_json_number(row, "bytes");
    double us = page_json_number(json_object_get(row, "time_us"), "p50");
    bool suspect = strcmp(status, "suspect") == 0;
    if (strcmp(status, "ok") != 0 && !suspect) return;
    point p = {.row = row, .number = number, .family = report_family(document_string(row, "problem")), .suspect = suspect};
    p.x = flops / bytes, p.y = 1e-3 * flops / us;
    p.us = us * fmax(1, page_json_number(row, "count"));
    if (on_scale(p.x) && on_scale(p.y)) r->points[r->n++] = p;
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

/* What takes longest gets its label first. */
static int by_time(const void *a, const void *b) {
    const point *p = a, *q = b;
    if (p->us != q->us) return p->us > q->us ? -1 : 1;
    return p->number - q->number;
}

static bool read_bench(roofline *r, const json_t *bench) {
    const json_t *row, *results = json_object_get(bench, "results");
    size_t i;
    int number = 0;
    *r = (roofline){.points = calloc(json_array_size(results) + 1, sizeof *r->points)};
    if (!r->points) return false;
    json_array_foreach(results, i, row) {
        if (strcmp(document_string(row, "kind"), "op") == 0) read_op(r, row, ++number);
        else read_limit(r, row);
    }
    qsort(r->points, (size_t)r->n, sizeof *r->points, by_time);
    return true;
}

/* ---- scales ---- */

typedef struct chart {
    double width, height;            /* of the drawing */
    double left, top, right, bottom; /* of the frame */
    double x0, x1, y0, y1;           /* decades */
    double font, radius;
    int rings; /* see label_map */
} chart;

static double place_x(const chart *c, double value) {
    return c->left + (log10(value) - c->x0) / (c->x1 - c->x0) * (c->right - c->left);
}

static double place_y(const chart *c, double value) {
    return c->bottom - (log10(value) - c->y0) / (c->y1 - c->y0) * (c->bottom - c->top);
}

static void widen(double *low, double *high, double value) {
    if (!on_scale(value)) return;
    *low = fmin(*low, log10(value));
    *high = fmax(*high, log10(value));
}

static void pad(double *low, double *high, double share, double least) {
    double more = fmax(share * (*high - *low), (least - (*high - *low)) / 2);
    *low -= more, *high += more;
}

static void scale(chart *c, const roofline *r) {
    c->x0 = c->y0 = INFINITY, c->x1 = c->y1 = -INFINITY;
    for (int i = 0; i < r->n; i++) widen(&c->x0, &c->x1, r->points[i].x), widen(&c->y0, &c->y1, r->points[i].y);
    /* The ridge, with some of the roofline behind it. */
    if (r->gflops > 0 && r->gbytes > 0) widen(&c->x0, &c->x1, r->gflops / r->gbytes), widen(&c->x0, &c->x1, 3 * r->gflops / r->gbytes);
    widen(&c->y0, &c->y1, r->gflops);
    if (!(c->x0 <= c->x1)) c->x0 = 0, c->x1 = 1;
    if (!(c->y0 <= c->y1)) c->y0 = 0, c->y1 = 1;
    pad(&c->x0, &c->x1, 0.05, 2);
    pad(&c->y0, &c->y1, 0.07, 2);
}

/* ---- drawing ---- */

/* "0.01", "20"; what would be long: "2e-4". */
static void tick_text(char text[16], int digit, int decade) {
    if (decade < -2 || decade > 4) snprintf(text, 16, "%de%d", digit, decade);
    else snprintf(text, 16, "%g", digit * pow(10, decade));
}

static void tick(FILE *page, const chart *c, bool vertical, int digit, int decade, bool labelled) {
    char text[16];
    double value = digit * pow(10, decade), x = place_x(c, value), y = place_y(c, value);
    tick_text(text, digit, decade);
    if (vertical) fprintf(page, "<path class=\"grid\" d=\"M%.1f %.1fV%.1f\"/>\n", x, c->top, c->bottom);
    else fprintf(page, "<path class=\"grid\" d=\"M%.1f %.1fH%.1f\"/>\n", c->left, y, c->right);
    if (!labelled) return;
    double half = (double)strlen(text) * c->font * 0.32;
    fprintf(page, "<text class=\"tick\" text-anchor=\"%s\" x=\"%.1f\" y=\"%.1f\">%s</text>\n", vertical ? "middle" : "end",
            vertical ? fmin(x, c->width - half - 1) : c->left - 6, vertical ? c->bottom + 17 : y + 4, text);
}

static void ticks(FILE *page, const chart *c, bool vertical) {
    double low = vertical ? c->x0 : c->y0, high = vertical ? c->x1 : c->y1;
    double length = vertical ? c->right - c->left : c->bottom - c->top;
    double per_decade = length / (high - low);
    int every = per_decade > 44 ? 1 : (int)ceil(44 / per_decade);
    for (int decade = (int)floor(low); decade <= (int)ceil(high); decade++)
        for (int digit = 1; digit < 10; digit += digit == 1 ? 1 : digit == 2 ? 3 : 9) {
            double at = decade + log10(digit);
            /* "10000" and "20000" stand 0.3 decades apart. */
            if (at < low || at > high || (digit > 1 && per_decade < (vertical ? 160 : 130))) continue;
            tick(page, c, vertical, digit, decade, digit > 1 || decade % every == 0);
        }
}

static void axes(FILE *page, const chart *c) {
    ticks(page, c, true);
    ticks(page, c, false);
    fprintf(page, "<rect class=\"frame\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\"/>\n", c->left, c->top, c->right - c->left,
            c->bottom - c->top);
    fprintf(page, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"end\">Arithmetic intensity, flop/byte</text>\n", c->right, c->height - 4);
    fprintf(page, "<text x=\"%.1f\" y=\"14\">GFLOP/s</text>\n", 2.0);
}

/* Where the slope meets the left or lower side, and where it ends: at the ridge, or the frame. */
static bool slope_ends(const chart *c, const roofline *r, double x[2], double y[2]) {
    if (r->gbytes <= 0) return false;
    double low = fmax(c->x0, c->y0 - log10(r->gbytes)), high = fmin(c->x1, c->y1 - log10(r->gbytes));
    if (r->gflops > 0) high = fmin(high, log10(r->gflops / r->gbytes));
    if (low >= high) return false;
    x[0] = place_x(c, pow(10, low)), x[1] = place_x(c, pow(10, high));
    y[0] = place_y(c, pow(10, low) * r->gbytes), y[1] = place_y(c, pow(10, high) * r->gbytes);
    return true;
}

/* The boxes along a text that begins at (x, y) above a line in direction (dx, dy). */
enum { PIECES = 24, STEPS = 64 }; /* boxes along a text, and along a line */
static void text_boxes(label_box boxes[PIECES], double x, double y, double dx, double dy, double length, double font) {
    for (int i = 0; i < PIECES; i++) {
        double along = length * (i + 0.5) / PIECES, half = length / PIECES;
        double cx = x + dx * along + dy * font * 0.4, cy = y + dy * along - dx * font * 0.4;
        double w = half * fabs(dx) / 2 + font * 0.55 * fabs(dy) + 1, h = half * fabs(dy) / 2 + font * 0.55 * fabs(dx) + 1;
        boxes[i] = (label_box){cx - w, cy - h, cx + w, cy + h};
    }
}

/* Where a text along a line is to begin: `at` along it, above or below. */
static void text_origin(double origin[2], const double x[2], double dx, double dy, const double y[2], double at, double gap) {
    origin[0] = x[0] + dx * at + dy * gap;
    origin[1] = y[0] + dy * at - dx * gap;
}

static int count_hits(const label_map *map, int n_points, const label_box boxes[PIECES]) {
    int hits = 0;
    for (int k = 0; k < PIECES; k++) {
        label_box b = boxes[k], f = map->frame;
        hits += label_count_hits(map, n_points, b) + (b.x0 < f.x0 || b.y0 < f.y0 || b.x1 > f.x1 || b.y1 > f.y1 ? 100 : 0);
    }
    return hits;
}

/* The best place of a text along a line, rather above it; how many points it covers, -1 if it is too long. */
static int seek_place(const chart *c, const label_map *map, int n_points, const char *text, const double x[2], const double y[2],
                      double place[2]) {
    enum { TRIES = 25 };
    const double gaps[2] = {6, -6 - 0.75 * c->font};
    double run = hypot(x[1] - x[0], y[1] - y[0]), dx = (x[1] - x[0]) / run, dy = (y[1] - y[0]) / run;
    double length = (double)strlen(text) * c->font * 0.62, from[2];
    int fewest = -1;
    label_box boxes[PIECES];
    for (int i = 0; length + 8 <= run && i < 2 * TRIES; i++) {
        text_origin(from, x, dx, dy, y, 4 + (run - length - 8) * (TRIES - 1 - i % TRIES) / (TRIES - 1), gaps[i / TRIES]);
        text_boxes(boxes, from[0], from[1], dx, dy, length, c->font);
        int hits = count_hits(map, n_points, boxes);
        if (fewest < 0 || hits < fewest) fewest = hits, place[0] = from[0], place[1] = from[1];
    }
    return fewest;
}

/* Writes along a line from (x0, y0) to (x1, y1) the name of a roofline, or where there is no room its figure alone. */
static void roofline_label(FILE *page, const chart *c, label_map *map, int n_points, const char *name, const char *figure,
                       const double x[2], const double y[2]) {
    char text[96];
    double place[2] = {0, 0}, run = hypot(x[1] - x[0], y[1] - y[0]), dx = (x[1] - x[0]) / run, dy = (y[1] - y[0]) / run;
    label_box boxes[PIECES];
    snprintf(text, sizeof text, "%s %s", name, figure);
    int hits = seek_place(c, map, n_points, text, x, y, place);
    if (hits != 0) {
        snprintf(text, sizeof text, "%s", figure);
        hits = seek_place(c, map, n_points, text, x, y, place);
    }
    if (hits < 0) return;
    text_boxes(boxes, place[0], place[1], dx, dy, (double)strlen(text) * c->font * 0.62, c->font);
    for (int k = 0; k < PIECES; k++) label_take(map, boxes[k]);
    fprintf(page, "<text class=\"halo roofname\" transform=\"translate(%.1f %.1f) rotate(%.2f)\">", place[0], place[1],
            atan2(dy, dx) * 180 / acos(-1));
    page_text(page, text);
    fputs("</text>\n", page);
}

static bool flat_ends(const chart *c, const roofline *r, double x[2], double y[2]) {
    if (r->gflops <= 0) return false;
    x[0] = r->gbytes > 0 ? fmax(c->left, place_x(c, r->gflops / r->gbytes)) : c->left, x[1] = c->right;
    y[0] = y[1] = place_y(c, r->gflops);
    return true;
}

static void draw_peaks(FILE *page, const chart *c, const roofline *r) {
    double x[2], y[2];
    const char *form = "<path class=\"roof\" d=\"M%.1f %.1fL%.1f %.1f\"/>\n";
    if (slope_ends(c, r, x, y)) fprintf(page, form, x[0], y[0], x[1], y[1]);
    if (flat_ends(c, r, x, y)) fprintf(page, form, x[0], y[0], x[1], y[1]);
}

/* Numbers stay off the lines. */
static void take_line(label_map *map, const double x[2], const double y[2]) {
    double w = fabs(x[1] - x[0]) / STEPS / 2 + 1, h = fabs(y[1] - y[0]) / STEPS / 2 + 1;
    for (int i = 0; i < STEPS; i++) {
        double t = (i + 0.5) / STEPS, cx = x[0] + t * (x[1] - x[0]), cy = y[0] + t * (y[1] - y[0]);
        label_take(map, (label_box){cx - w, cy - h, cx + w, cy + h});
    }
}

/* Returns from where on the map holds their names. */
static int name_peaks(FILE *page, const chart *c, label_map *map, const roofline *r) {
    char text[96];
    double x[2], y[2];
    int n_points = map->n;
    if (slope_ends(c, r, x, y)) take_line(map, x, y);
    if (flat_ends(c, r, x, y)) take_line(map, x, y);
    int first = map->n;
    if (slope_ends(c, r, x, y)) {
        snprintf(text, sizeof text, "%.4g GB/s", r->gbytes);
        roofline_label(page, c, map, n_points, "memory", text, x, y);
    }
    if (flat_ends(c, r, x, y)) {
        snprintf(text, sizeof text, "%.4g GFLOP/s", r->gflops);
        roofline_label(page, c, map, n_points, "FMA f32", text, x, y);
    }
    return first;
}

static void draw_point(FILE *page, const chart *c, const point *p) {
    fprintf(page, "<g class=\"point f%d%s\"><title>%d: ", p->family, p->suspect ? " suspect" : "", p->number);
    page_text(page, document_string(p->row, "problem"));
    if (p->suspect) fputs(": suspect</title>", page);
    else fprintf(page, ": %.4g GFLOP/s at %.4g flop/byte</title>", p->y, p->x);
    report_mark(page, p->family, place_x(c, p->x), place_y(c, p->y), c->radius);
    fputs("</g>\n", page);
}

static void draw_label(FILE *page, const chart *c, label_map *map, const point *p, int first) {
    char text[16];
    label_box box;
    bool far;
    double x = place_x(c, p->x), y = place_y(c, p->y), font = c->font - 1;
    int length = snprintf(text, sizeof text, "%d", p->number);
    if (!label_place(map, x, y, c->radius, length * font * 0.66 + 2, font + 1, first, &box, &far)) return;
    if (far) {
        double tx = fmin(fmax(x, box.x0), box.x1), ty = fmin(fmax(y, box.y0), box.y1), run = hypot(tx - x, ty - y), r = c->radius;
        fprintf(page, "<path class=\"leader\" d=\"M%.1f %.1fL%.1f %.1f\"/>", x + (tx - x) / run * r, y + (ty - y) / run * r, tx, ty);
    }
    fprintf(page, "<text class=\"label halo\" text-anchor=\"middle\" x=\"%.1f\" y=\"%.1f\">%s</text>\n", (box.x0 + box.x1) / 2,
            box.y1 - font * 0.2, text);
}

static void draw_points(FILE *page, const chart *c, const roofline *r) {
    label_map map;
    double reach = c->radius * 1.1;
    for (int i = r->n - 1; i >= 0; i--) draw_point(page, c, &r->points[i]);
    if (!label_map_make(&map, (label_box){c->left + 1, c->top + 1, c->right - 1, c->bottom - 1}, 2 * r->n + 2 * (PIECES + STEPS), c->rings)) return;
    for (int i = 0; i < r->n; i++) {
        double x = place_x(c, r->points[i].x), y = place_y(c, r->points[i].y);
        label_take(&map, (label_box){x - reach, y - reach, x + reach, y + reach});
    }
    int first = name_peaks(page, c, &map, r);
    for (int i = 0; i < r->n; i++) draw_label(page, c, &map, &r->points[i], first);
    label_map_free(&map);
}

static void draw(FILE *page, const roofline *r, const char *class, double width, double height, double font, int rings) {
    chart c = {.width = width, .height = height, .left = 46, .top = 24, .right = width - 8, .bottom = height - 46, .font = font, .radius = 4.5, .rings = rings};
    scale(&c, r);
    fprintf(page, "<svg class=\"%s\" viewBox=\"0 0 %.0f %.0f\" role=\"img\" aria-label=\"Roofline: %d ops by arithmetic intensity and "
                  "speed\">\n", class, width, height, r->n);
    axes(page, &c);
    draw_peaks(page, &c, r);
    draw_points(page, &c, r);
    fputs("</svg>\n", page);
}

/* ---- beside it ---- */

static void legend(FILE *page, const roofline *r) {
    int n[FAMILIES + 1] = {0}, suspects = 0;
    for (int i = 0; i < r->n; i++) n[r->points[i].family]++, suspects += r->points[i].suspect;
    fputs("<ul class=\"legend\">", page);
    for (int f = 1; f <= FAMILIES; f++) {
        if (n[f] == 0) continue;
        fprintf(page, "<li><svg class=\"f%d\" viewBox=\"0 0 12 12\" aria-hidden=\"true\">", f);
        report_mark(page, f, 6, 6, 5);
        fprintf(page, "</svg>%s (%d)</li>", families[f - 1].name, n[f]);
    }
    if (suspects) {
        fputs("<li><svg class=\"f6 suspect\" viewBox=\"0 0 12 12\" aria-hidden=\"true\">", page);
        report_mark(page, 1, 6, 6, 5);
        fprintf(page, "</svg>hollow: suspect (%d)</li>", suspects);
    }
    fputs("</ul>\n", page);
}

static void notes(FILE *page, const roofline *r) {
    fputs("<p class=\"note\">Numbers are those of the table of ops. The lines are the most that this device\xe2\x80\x99s memory and "
          "arithmetic were measured to do. Above them lies what works from a cache, or what needs an unknown number of "
          "fewer operations than are counted (Fourier); Winograd\xe2\x80\x99s are those that it does; what a cache bounds has no roofline here, since none was measured. Where points crowd, those that take longest are numbered.", page);
    if (r->left_out) fprintf(page, " %d timed op%s no place on such axes.", r->left_out, r->left_out == 1 ? " has" : "s have");
    fputs("</p>\n", page);
}

void report_roofline(FILE *page, const json_t *bench) {
    roofline r;
    if (!read_bench(&r, bench)) return;
    if (r.n == 0) {
        fprintf(page, "<p>%s, so there is no roofline.</p>\n", r.left_out ? "No timed op has a place on such axes" : "No op was timed");
    } else {
        fputs("<figure>\n", page);
        draw(page, &r, "roofline wide", 1000, 600, 13, 7);
        draw(page, &r, "roofline narrow", 340, 480, 12, 2);
        legend(page, &r);
        fputs("</figure>\n", page);
        notes(page, &r);
    }
    free(r.points);
}
