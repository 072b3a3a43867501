#include "board.h"

#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cltrain/cltrain.h>

#include "options.h"
#include "recipe.h"
#include "tools/common/message.h"
#include "tools/common/recipes.h"

enum { SHOWN = 16, ACROSS = 4, MOST_CURVES = 10, THRESHOLDS = 201, MOST_VALUES = 1 << 20, MOST_SIDE = 512 };

/* Images beside each other, ACROSS a row, with a line between them. */
typedef struct grid {
    uint8_t *pixels; /* of SHOWN images */
    int channels, height, width, n; /* of one, with its line */
    double low, high; /* the values that are black and white */
} grid;

struct board {
    clt_events *events;
    bool broken;
    bool goes_on; /* the folder has the events of an earlier run, whose graph it shows */
    const char *tested; /* the part whose metrics were told last, and the step */
    int64_t tested_at;
    grid mistakes;
    float *scores;  /* [n, curves] */
    uint8_t *labels; /* [n, curves]: whether it is of the class */
    int64_t n, room;
    int curves;
};

static void check(board *b, clt_status status) {
    if (status >= 0 || b->broken) return;
    warning("--tensorboard: %s", clt_error_detail());
    b->broken = true;
}

static void put(board *b, const char *part, const char *name, int64_t step, double value) {
    char tag[96];
    if (!isfinite(value)) return;
    snprintf(tag, sizeof tag, "%s%s%s", part, *part ? "/" : "", name);
    check(b, clt_events_scalar(b->events, tag, step, value));
}

static bool has_events(const char *folder) {
    DIR *dir = opendir(folder);
    bool found = false;
    for (struct dirent *entry; dir && !found && (entry = readdir(dir));) found = strncmp(entry->d_name, "events.out.tfevents", 19) == 0;
    if (dir) closedir(dir);
    return found;
}

board *board_open(const char *folder) {
    board *b = calloc(1, sizeof *b);
    if (b) b->goes_on = has_events(folder);
    if (b && clt_events_open(&b->events, folder) >= 0) return b;
    if (b) library_error(CLT_E_IO, "--tensorboard");
    else run_error("no memory for --tensorboard");
    free(b);
    return NULL;
}

/* ---- images ---- */

static bool is_image(const clt_array *x) {
    const int64_t *d = x->shape.dims;
    return x->shape.rank == 4 && (d[1] == 1 || d[1] == 3) && d[2] <= MOST_SIDE && d[3] <= MOST_SIDE && (x->dtype == CLT_U8 || x->dtype == CLT_F32);
}

/* From the least to the largest value of a batch; of bytes all of them. */
static void set_range(grid *g, const clt_array *x) {
    g->low = 0, g->high = 255;
    if (x->dtype == CLT_U8) return;
    const float *values = x->data;
    g->low = INFINITY, g->high = -INFINITY;
    for (int64_t i = 0, n = clt_shape_elements(&x->shape); i < n; i++) g->low = fmin(g->low, (double)values[i]), g->high = fmax(g->high, (double)values[i]);
}

static bool begin_grid(grid *g, const clt_array *x) {
    if (g->pixels || !is_image(x)) return g->pixels != NULL;
    *g = (grid){.channels = (int)x->shape.dims[1], .height = (int)x->shape.dims[2] + 1, .width = (int)x->shape.dims[3] + 1};
    size_t bytes = (size_t)(SHOWN * g->channels * g->height * g->width);
    g->pixels = malloc(bytes);
    if (g->pixels) memset(g->pixels, 128, bytes);
    set_range(g, x);
    return g->pixels != NULL;
}

static uint8_t pixel_of(const grid *g, const clt_array *x, int64_t at) {
    double value = x->dtype == CLT_U8 ? ((const uint8_t *)x->data)[at] : (double)((const float *)x->data)[at];
    double scaled = g->high > g->low ? (value - g->low) / (g->high - g->low) * 255 : 0;
    return (uint8_t)fmin(fmax(lrint(scaled), 0), 255);
}

/* Sample i of x, [n, channels, height, width], becomes the next image. */
static void add_image(grid *g, const clt_array *x, int64_t i) {
    if (!begin_grid(g, x) || g->n == SHOWN) return;
    int row = g->n / ACROSS, column = g->n % ACROSS, height = g->height - 1, width = g->width - 1;
    for (int c = 0; c < g->channels; c++)
        for (int y = 0; y < height; y++)
            for (int k = 0; k < width; k++) {
                size_t at = (((size_t)row * (size_t)g->height + (size_t)y) * ACROSS + (size_t)column) * (size_t)g->width + (size_t)k;
                g->pixels[at * (size_t)g->channels + (size_t)c] = pixel_of(g, x, ((i * g->channels + c) * height + y) * width + k);
            }
    g->n++;
}

static void put_grid(board *b, grid *g, const char *tag, int64_t step) {
    int rows = (g->n + ACROSS - 1) / ACROSS;
    if (g->n) check(b, clt_events_image(b->events, tag, step, g->pixels, rows * g->height, ACROSS * g->width, g->channels));
    free(g->pixels);
    *g = (grid){0};
}

static void put_samples(board *b, const clt_dataset *data) {
    clt_loader *loader;
    clt_batch batch;
    grid g = {0};
    if (clt_loader_create(&loader, data, &(clt_loader_options){.batch = SHOWN, .broken = CLT_BROKEN_LEAVE_OUT}) < 0) return;
    if (clt_loader_next(loader, &batch) == CLT_OK)
        for (int64_t i = 0; i < batch.samples; i++) add_image(&g, &batch.fields[0], i);
    put_grid(b, &g, "samples", 0);
    clt_loader_destroy(loader);
}

/* ---- while it runs ---- */

void board_start(board *b, const report *r, const data_parts *data, const clt_tensor *network) {
    if (!b) return;
    const options *o = r->options;
    const clt_hparam all[] = {{"model", o->model, 0}, {"data", o->data, 0}, {"optimizer", optimizer_names[o->optimizer], 0}, {"schedule", recipe_schedule_name(o->schedule), 0},
                              {"lr", NULL, o->lr}, {"weight_decay", NULL, o->weight_decay}, {"batch", NULL, (double)o->whole_batch}, {"accumulate", NULL, (double)o->accumulate},
                              {"seed", NULL, (double)o->seed}, {"ranks", NULL, o->ranks}, {"parameters", NULL, (double)r->parameters}, {"device", r->device->name, 0}};
    char loss[32], second[32];
    snprintf(loss, sizeof loss, "%s/loss", r->held_out);
    snprintf(second, sizeof second, "%s/%s", r->held_out, r->classification ? "accuracy" : "mse");
    const char *metrics[] = {loss, second};
    check(b, clt_events_hparams(b->events, all, sizeof all / sizeof *all, metrics, 2));
    if (!b->goes_on || !r->steps) check(b, clt_events_graph(b->events, network));
    put_samples(b, data->test);
}

static void put_metrics(board *b, const char *part, int64_t step, const clt_metrics *m, bool classification) {
    put(b, part, "loss", step, m->loss);
    put(b, part, classification ? "accuracy" : "mse", step, classification ? m->accuracy : m->mse);
}

/* Once a step and part. */
static void put_test(board *b, const report *r) {
    if (b->tested == r->held_out && b->tested_at == r->steps) return;
    b->tested = r->held_out;
    b->tested_at = r->steps;
    put_metrics(b, r->held_out, r->steps, &r->test, r->classification);
    if (r->tokens) put(b, r->held_out, "perplexity", r->steps, exp(r->test.loss));
}

void board_progress(board *b, const report *r, double lr, const clt_metrics *train, double rate) {
    int64_t step = r->steps;
    if (!b) return;
    put_metrics(b, "train", step, train, r->classification);
    put(b, "", "lr", step, lr);
    if (r->options->precision == CLT_PRECISION_F16) put(b, "", "loss_scale", step, (double)r->loss_scale);
    put(b, "", "samples_per_second", step, rate);
}

/* Every k-th value, so that there are not too many. */
static size_t thin(float *values, size_t n) {
    size_t stride = (n + MOST_VALUES - 1) / MOST_VALUES, kept = 0;
    for (size_t i = 0; i < n; i += stride) values[kept++] = values[i];
    return kept;
}

typedef clt_status get_function(clt_trainer *trainer, const char *name, float *values, size_t count);

static void put_histogram(board *b, const char *part, const char *name, int64_t step, clt_trainer *trainer, get_function *get, size_t n) {
    char tag[256];
    float *values = malloc(n * sizeof *values);
    snprintf(tag, sizeof tag, "%s/%s", part, name);
    if (values && get(trainer, name, values, n) >= 0) check(b, clt_events_histogram(b->events, tag, step, values, thin(values, n))); /* else there is none */
    free(values);
}

void board_epoch(board *b, const report *r, double lr, clt_trainer *trainer, const clt_graph *graph) {
    clt_shape shape;
    const char *name;
    if (!b) return;
    board_progress(b, r, lr, &r->train, r->samples_per_second);
    put_test(b, r);
    put(b, "", "epoch_seconds", r->steps, r->epoch_seconds);
    for (int64_t i = 0; (name = clt_graph_parameter(graph, i, &shape)) && !b->broken; i++) {
        put_histogram(b, "weights", name, r->steps, trainer, clt_trainer_get, (size_t)clt_shape_elements(&shape));
        put_histogram(b, "gradients", name, r->steps, trainer, clt_trainer_get_gradient, (size_t)clt_shape_elements(&shape));
    }
}

void board_test(board *b, const report *r) {
    if (b) put_test(b, r);
}

/* ---- the last test ---- */

static bool make_room(board *b) {
    if (b->n < b->room) return true;
    int64_t room = b->room ? 2 * b->room : 1024;
    float *grown = realloc(b->scores, (size_t)(room * b->curves) * sizeof *grown);
    if (grown) b->scores = grown;
    uint8_t *labels = grown ? realloc(b->labels, (size_t)(room * b->curves)) : NULL;
    if (!labels) return false;
    b->labels = labels;
    b->room = room;
    return true;
}

static void add_scores(board *b, const float *logits, int64_t width, int64_t best, int32_t label) {
    if (b->n >= MOST_VALUES || !make_room(b)) return;
    double most = (double)logits[best], sum = scores_sum(logits, width, best);
    for (int c = 0; c < b->curves; c++) {
        int64_t k = b->curves == 1 ? 1 : c;
        b->scores[b->n * b->curves + c] = (float)(exp((double)logits[k] - most) / sum);
        b->labels[b->n * b->curves + c] = label == k;
    }
    b->n++;
}

void board_add(board *b, const clt_batch *batch, const float *output, int64_t width) {
    const clt_array *truth = &batch->fields[batch->n_fields - 1];
    if (!b || truth->dtype != CLT_I32 || width < 2) return;
    b->curves = width == 2 ? 1 : width <= MOST_CURVES ? (int)width : 0;
    for (int64_t i = 0; i < batch->samples; i++) {
        int32_t label = ((const int32_t *)truth->data)[i];
        const float *logits = output + i * width;
        int64_t best = scores_best(logits, width);
        if (best != label) add_image(&b->mistakes, &batch->fields[0], i);
        if (b->curves) add_scores(b, logits, width, best, label);
    }
}

static void put_curve(board *b, int c, int64_t step, const clt_preprocessing *p) {
    char tag[160], number[24];
    int class_index = b->curves == 1 ? 1 : c;
    const char *name = clt_preprocessing_class(p, class_index);
    float *of_class = malloc((size_t)b->n * sizeof *of_class);
    uint8_t *labels = malloc((size_t)b->n);
    snprintf(number, sizeof number, "%d", class_index);
    snprintf(tag, sizeof tag, "class/%.120s", name ? name : number);
    for (int64_t i = 0; of_class && labels && i < b->n; i++) of_class[i] = b->scores[i * b->curves + c], labels[i] = b->labels[i * b->curves + c];
    if (of_class && labels) check(b, clt_events_pr_curve(b->events, tag, step, labels, of_class, (size_t)b->n, THRESHOLDS));
    free(of_class);
    free(labels);
}

void board_end(board *b, const report *r, const clt_preprocessing *p, bool success) {
    if (!b) return;
    const clt_evaluation *s = &r->scores;
    const struct {
        const char *name;
        double value;
    } all[] = {{"precision", s->precision}, {"recall", s->recall}, {"f1", s->f1}, {"auc", s->auc}, {"average_precision", s->average_precision}, {"top5", s->top5},
               {"calibration_error", s->calibration_error}, {"mae", s->mae}, {"r2", s->r2}};
    put_test(b, r);
    for (size_t i = 0; s->samples && i < sizeof all / sizeof *all; i++) put(b, r->held_out, all[i].name, r->steps, all[i].value);
    put(b, "", "peak_device_bytes", r->steps, (double)r->peak_device_bytes);
    put_grid(b, &b->mistakes, "mistakes", r->steps);
    for (int c = 0; b->n && c < b->curves; c++) put_curve(b, c, r->steps, p);
    check(b, clt_events_session_end(b->events, success));
}

void board_close(board *b) {
    if (!b) return;
    check(b, clt_events_close(b->events));
    free(b->mistakes.pixels);
    free(b->scores);
    free(b->labels);
    free(b);
}
