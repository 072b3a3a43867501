/*
 * ONNX's own node cases, computed on a device: node_cases FOLDER LEAST [CASE...]. Inputs that a network must know before it is built (axes, sizes) are fixed, data never.
 * Within 1e-3, as in ONNX's own runner. Prints a line for each case that is not as it should be, or not computed, with the reason, and counts; exit code 1 where a
 * value is wrong, or fewer than LEAST pass.
 */
#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cltrain/cltrain.h>

#include "runtime/exchange/onnx/literal.h"
#include "runtime/exchange/onnx/onnx.h"

enum { MOST = 16 };

typedef struct onnx_case {
    char folder[2048];
    clt_arena arena;
    clt_literal *in[MOST], *out[MOST];
    size_t n_in, n_out;
} onnx_case;

static clt_status read_literal(clt_arena *arena, const char *folder, const char *kind, size_t i, clt_literal **literal) {
    char path[4096];
    clt_onnx_file file;
    clt_onnx_tensor tensor;
    snprintf(path, sizeof path, "%s/test_data_set_0/%s_%zu.pb", folder, kind, i);
    clt_status status = clt_onnx_file_open_tensor(&file, path, &tensor);
    if (status == CLT_OK) status = clt_literal_of_tensor(arena, &file, &tensor, literal);
    clt_onnx_file_close(&file);
    return status;
}

/* A literal as an array of the host. */
static clt_array array_of(clt_arena *arena, const clt_literal *l, bool wide) {
    clt_array a = {.shape = l->shape};
    if (l->type == CLT_ONNX_FLOAT) return a.dtype = CLT_F32, a.data = l->floats, a;
    if (l->type != CLT_ONNX_BOOL && wide) return a.dtype = CLT_I64, a.data = l->integers, a;
    int32_t *narrow = NULL;
    unsigned char *bytes = NULL;
    clt_arena_take(arena, (size_t)l->elements + 1, sizeof *narrow, &narrow);
    bytes = (unsigned char *)narrow;
    for (int64_t i = 0; i < l->elements; i++) {
        if (l->type == CLT_ONNX_BOOL) bytes[i] = l->integers[i] != 0;
        else narrow[i] = (int32_t)l->integers[i];
    }
    a.dtype = l->type == CLT_ONNX_BOOL ? CLT_U8 : CLT_I32;
    a.data = narrow;
    return a;
}

static bool near(double got, double wanted) {
    if (isnan(wanted)) return isnan(got);
    return got == wanted || fabs(got - wanted) <= 1e-7 + 1e-3 * fabs(wanted);
}

/* 0: no; 1: integers and scalars behind the first input; 2: lists of floats, too. */
static bool is_fixed(const onnx_case *k, size_t i, int fixing) {
    const clt_literal *l = k->in[i];
    if (fixing == 0 || i == 0) return false;
    return l->type != CLT_ONNX_FLOAT || l->shape.rank == 0 || (fixing > 1 && l->shape.rank == 1);
}

static clt_status compare(clt_device *device, onnx_case *k, clt_graph *graph, clt_tensor *output, size_t i, int fixing, const clt_onnx *onnx, bool *same) {
    clt_predictor *p = NULL;
    const clt_literal *wanted = k->out[i];
    float *got = calloc((size_t)wanted->elements + 1, sizeof *got);
    *same = true;
    if (clt_tensor_dtype(output) != CLT_F32) output = clt_cast(output, CLT_F32);
    clt_shape shape = clt_tensor_shape(output);
    clt_status status = clt_graph_status(graph);
    if (status == CLT_OK && !clt_shape_equal(&shape, &wanted->shape)) {
        char a[CLT_SHAPE_TEXT], b[CLT_SHAPE_TEXT];
        *same = false;
        printf("    shape %s, not %s\n", clt_shape_text(&shape, a), clt_shape_text(&wanted->shape, b));
        free(got);
        return CLT_OK;
    }
    if (status == CLT_OK) status = clt_predictor_create(&p, device, output, NULL);
    for (size_t n = 0; status == CLT_OK && n < k->n_in; n++) {
        clt_array a = array_of(&k->arena, k->in[n], false);
        if (is_fixed(k, n, fixing)) continue;
        status = clt_predictor_set_input(p, onnx->file.model.inputs[n].name, &a);
        if (status == CLT_E_NOT_FOUND) status = CLT_OK; /* the output does not depend on it */
    }
    clt_batch batch = {.samples = 1, .n_fields = 1, .fields = {{CLT_F32, CLT_SHAPE(1), &(float){0}}}};
    if (status == CLT_OK) status = clt_predictor_run(p, &batch, got, (size_t)wanted->elements);
    for (int64_t e = 0; status == CLT_OK && e < wanted->elements && *same; e++) {
        double w = wanted->type == CLT_ONNX_FLOAT ? (double)wanted->floats[e] : (double)wanted->integers[e];
        *same = near((double)got[e], w);
        if (!*same) printf("    element %lld: %.9g, not %.9g\n", (long long)e, (double)got[e], w);
    }
    clt_predictor_destroy(p);
    free(got);
    return status;
}

/* What became of a case. */
typedef enum outcome { PASSED, FOLDED, SKIPPED, FAILED } outcome;

static outcome try_case(clt_device *device, onnx_case *k, clt_onnx *onnx) {
    const clt_onnx_model *m = &onnx->file.model;
    clt_status status = CLT_OK;
    k->n_in = m->n_inputs;
    k->n_out = m->n_outputs;
    if (k->n_in > MOST || k->n_out > MOST) return clt_fail(CLT_E_UNSUPPORTED, "many inputs"), SKIPPED;
    for (size_t i = 0; status == CLT_OK && i < k->n_in; i++) status = read_literal(&k->arena, k->folder, "input", i, &k->in[i]);
    for (size_t i = 0; status == CLT_OK && i < k->n_out; i++) status = read_literal(&k->arena, k->folder, "output", i, &k->out[i]);
    if (status < 0) return SKIPPED;
    clt_graph *graph = NULL;
    int fixing = 0;
    for (; fixing < 3; fixing++) {
        clt_onnx_fixed fixed[MOST];
        clt_onnx_options o = {.no_batch = true, .fixed = fixed};
        for (size_t i = 0; i < k->n_in; i++)
            if (is_fixed(k, i, fixing)) fixed[o.n_fixed++] = (clt_onnx_fixed){m->inputs[i].name, array_of(&k->arena, k->in[i], true)};
        clt_graph_create(&graph);
        clt_input(graph, "no batch", CLT_F32, CLT_SHAPE(1)); /* predictors want one */
        status = clt_onnx_build(onnx, graph, &o);
        if (status == CLT_OK) break;
        clt_graph_destroy(graph);
        graph = NULL;
    }
    if (status < 0) return SKIPPED;
    outcome result = PASSED;
    if (strstr(k->folder, "training_dropout")) result = SKIPPED, clt_fail(CLT_E_UNSUPPORTED, "random values");
    for (size_t i = 0; i < k->n_out && result != FAILED && result != SKIPPED; i++) {
        bool same = true;
        clt_tensor *output = clt_onnx_output(onnx, m->outputs[i].name);
        if (onnx->values[onnx->output_ids[i]].literals[0]) result = FOLDED;
        status = compare(device, k, graph, output, i, fixing, onnx, &same);
        if (status < 0) result = SKIPPED;
        else if (!same) result = FAILED;
    }
    clt_graph_destroy(graph);
    return result;
}

static bool is_wanted(const char *name, int argc, char **argv) {
    for (int i = 3; i < argc; i++)
        if (!strcmp(argv[i], name)) return true;
    return argc <= 3;
}

int main(int argc, char **argv) {
    int counts[4] = {0};
    struct dirent **entries;
    clt_device *device;
    int n = argc > 1 ? scandir(argv[1], &entries, NULL, alphasort) : -1;
    if (n < 0) return printf("no folder of cases: skipped\n"), 77;
    if (clt_device_open(&device, NULL) < 0) return printf("%s\n", clt_error_detail()), 2;
    for (int i = 0; i < n; i++) {
        static const char *const words[] = {"passed", "folded", "skipped", "FAILED"};
        onnx_case k = {.arena.limit = 1 << 28};
        clt_onnx *onnx;
        char path[2100];
        if (entries[i]->d_name[0] == '.' || !is_wanted(entries[i]->d_name, argc, argv)) continue;
        snprintf(k.folder, sizeof k.folder, "%s/%s", argv[1], entries[i]->d_name);
        snprintf(path, sizeof path, "%s/model.onnx", k.folder);
        outcome result = SKIPPED;
        if (clt_onnx_open(&onnx, path) == CLT_OK) {
            result = try_case(device, &k, onnx);
            clt_onnx_close(onnx);
        }
        counts[result]++;
        printf("%s %s%s%s\n", words[result], entries[i]->d_name, result == SKIPPED ? ": " : "", result == SKIPPED ? clt_error_detail() : "");
        fflush(stdout);
        clt_arena_free(&k.arena);
    }
    for (int i = 0; i < n; i++) free(entries[i]);
    free(entries);
    clt_device_close(device);
    printf("%d passed, %d folded, %d skipped, %d failed\n", counts[PASSED], counts[FOLDED], counts[SKIPPED], counts[FAILED]);
    return counts[FAILED] > 0 || (argc > 2 && counts[PASSED] < atoi(argv[2]));
}
