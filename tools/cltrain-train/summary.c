#include "summary.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "tools/common/message.h"
#include "tools/survey/document.h"

typedef struct summary {
    double samples; /* of a batch */
    json_t *layers; /* NULL: lines are printed */
    clt_layer sum;  /* of the layers so far */
} summary;

static void print_line(const char *name, const char *op, const char *shape, const clt_layer *layer, double samples) {
    printf("%-28s %-10s %-18s %11lld %8.4g\n", name, op, shape, (long long)layer->parameters, layer->flops / samples / 1e6);
}

static void add_json(summary *s, const clt_layer *layer) {
    json_t *shape = json_array();
    for (int i = 0; i < layer->shape.rank; i++) json_array_append_new(shape, json_integer(layer->shape.dims[i]));
    json_array_append_new(s->layers, json_pack("{s:o, s:o, s:o, s:I, s:I, s:f}", "name", document_text(layer->name), "op", document_text(layer->op), "shape", shape, "parameters",
                                               (json_int_t)layer->parameters, "trained_parameters", (json_int_t)layer->trained, "flops", layer->flops / s->samples));
}

static bool visit_layer(const clt_layer *layer, void *user) {
    summary *s = user;
    char shape[256];
    task_shape_text(layer->shape, shape, sizeof shape);
    s->sum.flops += layer->flops;
    s->sum.parameters += layer->parameters;
    if (s->layers) add_json(s, layer);
    else print_line(layer->name, layer->op, shape, layer, s->samples);
    return true;
}

static int print_json(const summary *s, const options *given, const clt_layer *total, const clt_step_memory *m) {
    json_t *memory = json_pack("{s:I, s:I, s:I, s:I, s:I}", "activations", (json_int_t)m->activations, "states", (json_int_t)m->states, "inputs", (json_int_t)m->inputs, "total", (json_int_t)m->total,
                               "host", (json_int_t)m->host);
    json_t *object = json_pack("{s:o, s:I, s:O, s:I, s:I, s:f, s:o}", "model", document_text(given->model), "batch", (json_int_t)given->batch, "layers", s->layers, "parameters",
                               (json_int_t)total->parameters, "trained_parameters", (json_int_t)total->trained, "flops", total->flops / s->samples, "memory_bytes", memory);
    int code = object ? document_write_at(object, given->json) : run_error("no memory for the summary");
    json_decref(object);
    return code;
}

static int print_end(const summary *s, const options *given, const clt_layer *total, const clt_step_memory *m) {
    const double mib = 1 << 20;
    clt_layer rest = {.parameters = total->parameters - s->sum.parameters, .flops = total->flops - s->sum.flops};
    print_line("other ops", "", "", &rest, s->samples);
    print_line("total", "", "", total, s->samples);
    printf("\nMFLOP are of one sample, forward.\n");
    if (total->trained != total->parameters) printf("%lld of the parameters are trained.\n", (long long)total->trained);
    printf("A training step of %lld samples takes %.1f MiB: %.1f of activations,\n%.1f of parameters, gradients and optimizer state, %.1f of batches.\n", (long long)given->batch,
           (double)m->total / mib, (double)m->activations / mib, (double)m->states / mib, (double)m->inputs / mib);
    if (m->host) printf("Another %.1f MiB lie in the host's memory.\n", (double)m->host / mib);
    return fflush(stdout) ? run_error("stdout cannot be written") : 0;
}

int summary_print(const options *given, const task *made, clt_device *device, const clt_train_options *training) {
    summary s = {.samples = (double)given->batch, .layers = given->json ? json_array() : NULL};
    clt_step_memory memory;
    clt_layer total;
    clt_status status = clt_predict_memory(device, made->loss, training, 0, &memory);
    if (status >= 0 && !given->json) printf("%-28s %-10s %-18s %11s %8s\n", "layer", "op", "result", "parameters", "MFLOP");
    if (status >= 0) status = clt_graph_layers(made->loss, visit_layer, &s, &total);
    int code = status < 0 ? library_error(status, "--summary") : given->json ? print_json(&s, given, &total, &memory) : print_end(&s, given, &total, &memory);
    json_decref(s.layers);
    return code;
}
