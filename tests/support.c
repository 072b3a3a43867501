#define _XOPEN_SOURCE 700 /* nftw, mkdtemp */
#include "tests/support.h"

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cltrain/train.h>

void support_assert_status(clt_status got, clt_status wanted, const char *expression, const char *file,
                           int line) {
    if (got == wanted) return;
    print_error("%s gave %s, not %s: %s\n", expression, clt_status_name(got), clt_status_name(wanted),
                clt_error_detail());
    _fail(file, line);
}

void support_assert_detail(const char *words, const char *file, int line) {
    if (strstr(clt_error_detail(), words)) return;
    print_error("the error does not say \"%s\" but \"%s\"\n", words, clt_error_detail());
    _fail(file, line);
}

static char folder[4096];

static int remove_entry(const char *path, const struct stat *facts, int kind, struct FTW *place) {
    (void)facts, (void)kind, (void)place;
    return remove(path);
}

static void remove_folder(void) {
    nftw(folder, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

const char *support_folder(void) {
    if (folder[0]) return folder;
    const char *base = getenv("TMPDIR");
    snprintf(folder, sizeof folder, "%s/cltrain-test-XXXXXX", base ? base : "/tmp");
    if (!mkdtemp(folder)) fail_msg("no temporary folder: %s", folder);
    atexit(remove_folder);
    return folder;
}

const char *support_path(const char *name) {
    static char ring[8][8192];
    static int next;
    char *path = ring[next++ % 8];
    snprintf(path, sizeof ring[0], "%s/%s", support_folder(), name);
    return path;
}

void support_write(const char *path, const void *bytes, size_t length) {
    FILE *file = fopen(path, "wb");
    if (!file || fwrite(bytes, 1, length, file) != length || fclose(file)) fail_msg("cannot write %s", path);
}

float *support_parameters(clt_trainer *trainer, const clt_graph *graph, size_t *count) {
    float *values = NULL;
    clt_shape shape;
    const char *name;
    *count = 0;
    for (int64_t i = 0; (name = clt_graph_parameter(graph, i, &shape)); i++) {
        size_t n = (size_t)clt_shape_elements(&shape);
        values = realloc(values, (*count + n) * sizeof *values);
        assert_non_null(values);
        assert_ok(clt_trainer_get(trainer, name, values + *count, n));
        *count += n;
    }
    return values;
}
