/*
 * ONNX's own node cases, computed as an import computes sizes and constants: fold_cases FOLDER [CASE...]. A case is a folder with model.onnx and
 * test_data_set_0/input_N.pb, output_N.pb. Those of one node that is computed so, of types that are, must give the values that are there. Prints how many did,
 * by op; exit code 1 where one does not.
 */
#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/exchange/onnx/fold.h"

enum { MOST_VALUES = 16, MOST_OPS = 64 };

static struct {
    const char *op;
    int passed;
} counts[MOST_OPS];

static void count(const char *op) {
    int i = 0;
    while (counts[i].op && strcmp(counts[i].op, op)) i++;
    if (!counts[i].op) counts[i].op = strdup(op);
    counts[i].passed++;
}

/* CLT_E_UNSUPPORTED and CLT_E_RANGE: no literal has that type, or as many elements. */
static clt_status read_literal(clt_arena *arena, const char *folder, const char *kind, size_t i, clt_literal **literal) {
    char path[4096];
    clt_onnx_file file;
    clt_onnx_tensor tensor;
    snprintf(path, sizeof path, "%s/test_data_set_0/%s_%zu.pb", folder, kind, i);
    clt_status status = clt_onnx_file_open_tensor(&file, path, &tensor);
    if (status == CLT_OK && tensor.type == CLT_ONNX_DOUBLE) status = clt_fail(CLT_E_UNSUPPORTED, "f64 is rounded");
    if (status == CLT_OK) status = clt_literal_of_tensor(arena, &file, &tensor, literal);
    clt_onnx_file_close(&file);
    return status;
}

static bool near(float a, float b) {
    return a == b || (isnan(a) && isnan(b)) || fabsf(a - b) <= 1e-6f * fabsf(b);
}

static bool same(const clt_literal *got, const clt_literal *wanted) {
    if (got->type != wanted->type || !clt_shape_equal(&got->shape, &wanted->shape)) return false;
    for (int64_t i = 0; i < got->elements; i++)
        if (got->type == CLT_ONNX_FLOAT ? !near(got->floats[i], wanted->floats[i]) : got->integers[i] != wanted->integers[i]) return false;
    return true;
}

/* 1: as wanted; 0: not for folding; -1: wrong. */
static int try_case(clt_onnx_file *file, const char *folder, clt_arena *arena) {
    const clt_onnx_model *m = &file->model;
    const clt_onnx_node *node = m->nodes;
    clt_literal *in[MOST_VALUES] = {0}, *out[MOST_VALUES] = {0}, *wanted;
    size_t next = 0;
    if (m->n_nodes != 1 || node->n_inputs > MOST_VALUES || node->n_outputs > MOST_VALUES) return 0;
    clt_onnx_fold *fold = *node->domain ? NULL : clt_onnx_fold_of(node->op);
    if (!fold) return 0;
    for (size_t i = 0; i < node->n_inputs; i++)
        if (*node->inputs[i] && read_literal(arena, folder, "input", next++, &in[i]) < 0) return 0;
    clt_onnx_folding f = {.arena = arena, .file = file, .node = node, .opset = m->opsets[0].version, .in = in, .out = out};
    clt_status status = fold(&f);
    if (status == CLT_E_UNSUPPORTED) return 0;
    if (status < 0) return -1;
    for (size_t i = 0; i < node->n_outputs; i++) {
        if (read_literal(arena, folder, "output", i, &wanted) < 0) return 0;
        if (!same(out[i], wanted)) return -1;
    }
    count(node->op);
    return 1;
}

static bool is_wanted(const char *name, int argc, char **argv) {
    for (int i = 2; i < argc; i++)
        if (!strcmp(argv[i], name)) return true;
    return argc == 2 && name[0] != '.';
}

int main(int argc, char **argv) {
    int passed = 0, failed = 0;
    DIR *cases = argc > 1 ? opendir(argv[1]) : NULL;
    if (!cases) return fprintf(stderr, "no folder of cases: skipped\n"), 77;
    for (struct dirent *entry; (entry = readdir(cases));) {
        char folder[2048], path[2100];
        clt_onnx_file file;
        clt_arena arena = {.limit = 1 << 28};
        if (!is_wanted(entry->d_name, argc, argv)) continue;
        snprintf(folder, sizeof folder, "%s/%s", argv[1], entry->d_name);
        snprintf(path, sizeof path, "%s/model.onnx", folder);
        clt_status status = clt_onnx_file_open(&file, path);
        int got = status == CLT_OK ? try_case(&file, folder, &arena) : -1;
        if (got < 0) printf("FAILED: %s: %s\n", entry->d_name, clt_error_detail());
        passed += got > 0;
        failed += got < 0;
        clt_onnx_file_close(&file);
        clt_arena_free(&arena);
    }
    closedir(cases);
    for (int i = 0; counts[i].op; i++) printf("%s %d%s", counts[i].op, counts[i].passed, counts[i + 1].op ? ", " : "\n");
    printf("%d cases as they should be, %d not\n", passed, failed);
    return failed || !passed;
}
