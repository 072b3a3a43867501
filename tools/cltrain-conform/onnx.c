/*
 * ONNX's own test cases: a network, values for its inputs, and what its outputs are to be. Inputs that a network must know before it is
 * built, such as axes and sizes, are fixed; data never are, so that the device computes with them.
 */
#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/cltrain-conform/suite.h"

enum { MOST_TENSORS = 32, MOST_FIXING = 3, MOST_SIZES = MOST_TENSORS * CLT_MAX_RANK };

/* As ONNX's own runner compares. */
static const double relative = 1e-3, absolute = 1e-7;

typedef struct network {
    clt_onnx *onnx;
    clt_array in[MOST_TENSORS], out[MOST_TENSORS];
    int32_t *narrow[MOST_TENSORS]; /* of inputs in i64 */
    size_t n_in, n_out;
    int fixing;
    clt_graph *graph;
} network;

static void network_free(network *n) {
    for (size_t i = 0; i < n->n_in; i++) clt_onnx_tensor_free(&n->in[i]), free(n->narrow[i]);
    for (size_t i = 0; i < n->n_out; i++) clt_onnx_tensor_free(&n->out[i]);
    clt_graph_destroy(n->graph);
    clt_onnx_close(n->onnx);
}

/* 0: no input; 1: integers and scalars, behind the first input; 2: lists of floats, too. */
static bool is_fixed(const network *n, size_t i) {
    const clt_array *a = &n->in[i];
    if (n->fixing == 0 || i == 0) return false;
    return a->dtype != CLT_F32 || a->shape.rank == 0 || (n->fixing == 2 && a->shape.rank == 1);
}

/* An input that is not a tensor, but a sequence or nothing at all: the network says so, and the file that has its value is not a tensor's. */
static clt_status explain(network *n, clt_status status) {
    clt_graph *graph = NULL;
    if (status != CLT_E_FORMAT || !n->onnx || clt_graph_create(&graph) < 0) return status;
    clt_status built = clt_onnx_build(n->onnx, graph, &(clt_onnx_options){.no_batch = true});
    clt_graph_destroy(graph);
    return built == CLT_E_UNSUPPORTED ? built : status;
}

static clt_status load(network *n, const char *folder) {
    char path[4096];
    clt_status status = CLT_OK;
    snprintf(path, sizeof path, "%s/model.onnx", folder);
    status = clt_onnx_open(&n->onnx, path);
    for (; status == CLT_OK && n->n_in < MOST_TENSORS && clt_onnx_input_name(n->onnx, n->n_in); n->n_in++) {
        snprintf(path, sizeof path, "%s/test_data_set_0/input_%zu.pb", folder, n->n_in);
        status = clt_onnx_tensor_load(&n->in[n->n_in], path);
    }
    for (; status == CLT_OK && n->n_out < MOST_TENSORS && clt_onnx_output_name(n->onnx, n->n_out); n->n_out++) {
        snprintf(path, sizeof path, "%s/test_data_set_0/output_%zu.pb", folder, n->n_out);
        status = clt_onnx_tensor_load(&n->out[n->n_out], path);
    }
    return status;
}

/* Of dimensions that have names: those of the data. */
static int sizes_of(const network *n, clt_onnx_size sizes[MOST_SIZES]) {
    int count = 0;
    for (size_t i = 0; i < n->n_in; i++)
        for (int d = 0; d < n->in[i].shape.rank && count < MOST_SIZES; d++) {
            const char *symbol = clt_onnx_input_symbol(n->onnx, i, d);
            if (symbol && *symbol) sizes[count++] = (clt_onnx_size){symbol, n->in[i].shape.dims[d]};
        }
    return count;
}

/* With as few inputs fixed as will do. */
static clt_status build(network *n) {
    clt_status status = CLT_E_UNSUPPORTED;
    clt_onnx_size sizes[MOST_SIZES];
    int n_sizes = sizes_of(n, sizes);
    for (n->fixing = 0; n->fixing < MOST_FIXING; n->fixing++) {
        clt_onnx_fixed fixed[MOST_TENSORS];
        clt_onnx_options o = {.no_batch = true, .sizes = sizes, .n_sizes = n_sizes, .fixed = fixed};
        for (size_t i = 0; i < n->n_in; i++)
            if (is_fixed(n, i)) fixed[o.n_fixed++] = (clt_onnx_fixed){clt_onnx_input_name(n->onnx, i), n->in[i]};
        status = clt_graph_create(&n->graph);
        clt_input(n->graph, "samples", CLT_F32, CLT_SHAPE(1)); /* predictors want one */
        if (status == CLT_OK) status = clt_onnx_build(n->onnx, n->graph, &o);
        if (status == CLT_OK) return status;
        clt_graph_destroy(n->graph);
        n->graph = NULL;
    }
    return status;
}

/* As the device has it: i64 as i32. */
static clt_array narrowed(network *n, size_t i) {
    clt_array a = n->in[i];
    int64_t elements = clt_shape_elements(&a.shape);
    if (a.dtype != CLT_I64) return a;
    if (!n->narrow[i]) n->narrow[i] = calloc((size_t)elements + 1, sizeof **n->narrow);
    for (int64_t e = 0; n->narrow[i] && e < elements; e++) n->narrow[i][e] = (int32_t)((const int64_t *)a.data)[e];
    return (clt_array){CLT_I32, a.shape, n->narrow[i]};
}

static clt_status compute(network *n, const bench *b, clt_tensor *output, float *values, size_t count) {
    clt_predictor *p;
    clt_batch batch = {.samples = 1, .n_fields = 1, .fields = {{CLT_F32, CLT_SHAPE(1), &(float){0}}}};
    clt_status status = clt_predictor_create(&p, b->device, output, NULL);
    if (status < 0) return status;
    for (size_t i = 0; status == CLT_OK && i < n->n_in; i++) {
        clt_array a = narrowed(n, i);
        if (is_fixed(n, i)) continue;
        status = clt_predictor_set_input(p, clt_onnx_input_name(n->onnx, i), &a);
        if (status == CLT_E_NOT_FOUND) status = CLT_OK; /* the output does not depend on it */
    }
    if (status == CLT_OK) status = clt_predictor_run(p, &batch, values, count);
    clt_predictor_destroy(p);
    return status;
}

static double value_of(const clt_array *a, int64_t i) {
    switch (a->dtype) {
    case CLT_F32: return (double)((const float *)a->data)[i];
    case CLT_I32: return ((const int32_t *)a->data)[i];
    case CLT_I64: return (double)((const int64_t *)a->data)[i];
    default: return ((const unsigned char *)a->data)[i];
    }
}

static bool is_near(double got, double wanted) {
    if (isnan(wanted)) return isnan(got);
    return got == wanted || fabs(got - wanted) <= absolute + relative * fabs(wanted);
}

static void compare(case_result *r, const char *name, const clt_array *wanted, const float *got) {
    int64_t n = clt_shape_elements(&wanted->shape);
    double error = 0, square = 0;
    for (int64_t i = 0; i < n; i++) {
        double w = value_of(wanted, i), g = (double)got[i];
        if (!is_near(g, w)) {
            result_say(r, &r->value, FAILED, "output \"%s\", element %lld: %.9g, not %.9g", name, (long long)i, g, w);
            return;
        }
        if (isfinite(w)) error += (g - w) * (g - w), square += w * w;
    }
    r->nmse = fmax(r->nmse, error > 0 ? error / square : 0);
    result_say(r, &r->value, PASSED, "%s", "");
}

static void run_output(network *n, bench *b, case_result *r, size_t i) {
    const char *name = clt_onnx_output_name(n->onnx, i);
    clt_tensor *output = clt_onnx_output(n->onnx, name);
    if (clt_tensor_dtype(output) != CLT_F32) output = clt_cast(output, CLT_F32);
    clt_shape shape = clt_tensor_shape(output);
    size_t count = (size_t)clt_shape_elements(&n->out[i].shape);
    bool same = shape.rank == n->out[i].shape.rank;
    for (int d = 0; same && d < shape.rank; d++) same = shape.dims[d] == n->out[i].shape.dims[d];
    if (!same) {
        result_say(r, &r->value, FAILED, "output \"%s\" has another shape", name);
        return;
    }
    float *got = calloc(count + 1, sizeof *got);
    clt_status status = got ? compute(n, b, output, got, count) : CLT_E_NO_MEMORY;
    if (status == CLT_E_RANGE) result_say(r, &r->supported, SKIPPED, "%s", "indices that are data count from 0");
    else if (status < 0) result_error(r, &r->supported, status, "computing it");
    else compare(r, name, &n->out[i], got);
    free(got);
}

static bool is_random(const char *name) {
    return strncmp(name, "test_training_dropout", 21) == 0 || strncmp(name, "test_bernoulli", 14) == 0;
}

static void run_case(const test_case *c, bench *b, case_result *r) {
    network n = {.n_in = 0};
    const char *folder = c->context, *slash = strrchr(folder, '/');
    if (is_random(slash ? slash + 1 : folder)) {
        result_say(r, &r->supported, SKIPPED, "random values");
        return;
    }
    clt_status status = load(&n, folder);
    status = status < 0 ? explain(&n, status) : build(&n);
    const clt_onnx_problem *problem = clt_onnx_problem_at(n.onnx, 0);
    if (status < 0 && problem) result_say(r, &r->supported, SKIPPED, "%s: %s", problem->op, problem->reason);
    else if (status < 0) result_say(r, &r->supported, status == CLT_E_UNSUPPORTED || status == CLT_E_INVALID ? SKIPPED : FAILED, "%s", clt_error_detail());
    else {
        result_say(r, &r->supported, PASSED, "%s", "");
        for (size_t i = 0; i < n.n_out && r->value != FAILED && r->supported == PASSED; i++) run_output(&n, b, r, i);
        judge_redzones(b, r);
    }
    network_free(&n);
}

void cases_onnx_free(case_list *list) {
    for (int i = 0; i < list->n; i++)
        if (list->items[i].run == run_case) free((void *)(uintptr_t)list->items[i].context);
}

bool cases_onnx(case_list *list, const char *folder) {
    struct dirent **entries;
    int n = scandir(folder, &entries, NULL, alphasort);
    bool made = true;
    for (int i = 0; i < n; i++) {
        const char *name = entries[i]->d_name;
        size_t length = strlen(folder) + strlen(name) + 16;
        char *path = malloc(length);
        made &= path != NULL;
        FILE *model = NULL;
        if (path && name[0] != '.') {
            snprintf(path, length, "%s/%s/model.onnx", folder, name);
            model = fopen(path, "rb");
        }
        if (model) {
            fclose(model);
            path[strlen(path) - strlen("/model.onnx")] = 0;
            test_case *c = case_add_run(list, "onnx", name, run_case);
            if (c) c->context = path, path = NULL;
            made &= c != NULL;
        }
        free(path);
        free(entries[i]);
    }
    if (n >= 0) free(entries);
    return made;
}
