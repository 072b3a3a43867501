/* A case of ONNX whose dimensions have names: named_case CONFORM writes it, and CONFORM must pass it at the sizes of its data. */
#include "tests/exchange/networks.h"

#include <sys/stat.h>

#include "runtime/graph/graph.h"

enum { ROWS = 3, COLUMNS = 2 };

static void write_tensor(const char *path, const float *values) {
    message m = {.length = 0};
    put_number(&m, 1, ROWS);
    put_number(&m, 1, COLUMNS);
    put_number(&m, 2, CLT_ONNX_FLOAT);
    put_bytes(&m, 9, values, ROWS * COLUMNS * sizeof *values);
    support_write(path, m.bytes, m.length);
}

/* A path within the folder, which is made. */
static const char *within(const char *folder, const char *name) {
    static char path[4096];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    if (!strchr(name, '.')) mkdir(path, 0700);
    return path;
}

int main(int argc, char **argv) {
    static const float x[ROWS * COLUMNS] = {-1, 2, -3, 4, 0, -6}, y[ROWS * COLUMNS] = {0, 2, 0, 4, 0, 0};
    char command[8192], line[512], folder[2048];
    bool passed = false;
    network n = {0};
    if (argc < 2) return 2;
    snprintf(folder, sizeof folder, "%s", support_path("cases"));
    mkdir(folder, 0700);
    within(folder, "named");
    within(folder, "named/test_data_set_0");
    add_info(&n, 11, "x", CLT_ONNX_FLOAT, CLT_SHAPE(-1, -2));
    NODE(&n, "Relu", "y", "x");
    add_info(&n, 12, "y", CLT_ONNX_FLOAT, CLT_SHAPE(-1, -2));
    assert_int_equal(rename(write_network(&n), within(folder, "named/model.onnx")), 0);
    write_tensor(within(folder, "named/test_data_set_0/input_0.pb"), x);
    write_tensor(within(folder, "named/test_data_set_0/output_0.pb"), y);
    snprintf(command, sizeof command, "%s --onnx %s --case 'onnx/*@reference'", argv[1], folder);
    FILE *out = popen(command, "r");
    while (out && fgets(line, sizeof line, out)) {
        passed |= strstr(line, "1 passed, 0 skipped, 0 failed") != NULL;
        fputs(line, stdout);
    }
    return out && pclose(out) == 0 && passed ? 0 : 1;
}
