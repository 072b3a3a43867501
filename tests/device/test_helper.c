/* A second process compiles what was announced, and this one launches nothing of it: what is in PoCL's cache is the other's. */
#define _GNU_SOURCE /* nftw, usleep */
#include "tests/support.h"

#include <dirent.h>
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/device/catalog.h"

enum { KERNELS = 8, WIDE = 1 << 16 };

static char text[8192];
static const clt_module module = {.text = text, .label = "digits.cl", .separable = true};
static char cache[4096];

/* Kernels that nobody has built. */
static void write_kernels(void) {
    static int count;
    int n = snprintf(text, sizeof text, "/* %d %d */\n", (int)getpid(), count++);
    for (int k = 0; k < KERNELS; k++)
        n += snprintf(text + n, sizeof text - (size_t)n,
                      "kernel void digit_%d(global float *x, local float *y, int add) {\n  y[get_local_id(0)] = (float)(%d + add);\n"
                      "  barrier(CLK_LOCAL_MEM_FENCE);\n  x[get_global_id(0)] = y[0];\n}\n", k, k);
}

static clt_device *open_with(const char *compiler, const char *program_cache) {
    clt_device *device;
    write_kernels();
    assert_ok(clt_device_open_with(&device, &(clt_settings){.compiler = compiler, .program_cache = program_cache, .cache_folder = support_path("cltrain")}));
    return device;
}

static void build(clt_device *device, int n) {
    char names[KERNELS][16];
    clt_wanted wanted[KERNELS];
    for (int k = 0; k < n; k++) {
        snprintf(names[k], sizeof names[k], "digit_%d", k);
        wanted[k] = (clt_wanted){0, names[k]};
    }
    assert_ok(clt_device_build_kernels(device, &module, 1, wanted, n));
}

/* Kernels that are compiled: for grids of any size, or for small ones. */
static int n_small, n_wide;

static int count_file(const char *path, const struct stat *status, int type, struct FTW *place) {
    if (type == FTW_F && clt_ends_with(path, ".so") && clt_text_contains(path, "/digit_")) {
        if (clt_text_contains(path, "-smallgrid/")) n_small++;
        else n_wide++;
    }
    (void)status, (void)place;
    return 0;
}

static void await_kernels(int small, int wide) {
    for (double end = clt_seconds() + WATCHDOG_SECONDS; clt_seconds() < end; usleep(20000)) {
        n_small = n_wide = 0;
        nftw(cache, count_file, 16, FTW_PHYS);
        if (n_small >= small && n_wide >= wide) break;
    }
    assert_int_equal(n_small, small);
    assert_int_equal(n_wide, wide);
}

/* What /proc/PID/NAME begins with, and a zero. */
static ssize_t read_fact(int pid, const char *name, char *fact, size_t bytes) {
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/%s", pid, name);
    int file = open(path, O_RDONLY);
    ssize_t got = file < 0 ? 0 : read(file, fact, bytes - 1);
    if (file >= 0) close(file);
    fact[got < 0 ? 0 : got] = 0;
    return got;
}

/* Whether it is a helper that has this process' cache. */
static bool is_ours(int pid) {
    static char environment[65536];
    char wanted[4200], name[32];
    snprintf(wanted, sizeof wanted, "POCL_CACHE_DIR=%s", cache);
    if (read_fact(pid, "comm", name, sizeof name) < 0 || strcmp(name, "cltrain-compile\n") != 0) return false;
    ssize_t bytes = read_fact(pid, "environ", environment, sizeof environment);
    for (ssize_t at = 0; at < bytes; at += (ssize_t)strlen(environment + at) + 1)
        if (!strcmp(environment + at, wanted)) return true;
    return false;
}

static int count_helpers(bool kill_them) {
    int n = 0;
    DIR *folder = opendir("/proc");
    assert_non_null(folder);
    for (struct dirent *entry; (entry = readdir(folder));) {
        int pid = atoi(entry->d_name);
        if (pid <= 0 || !is_ours(pid)) continue;
        n++;
        if (kill_them) kill(pid, SIGKILL);
    }
    closedir(folder);
    return n;
}

/* PoCL may have one more for a moment, which becomes its linker. */
static void await_helpers(int wanted) {
    double end = clt_seconds() + WATCHDOG_SECONDS;
    while (count_helpers(false) != wanted && clt_seconds() < end) usleep(20000);
    assert_int_equal(count_helpers(false), wanted);
}

static clt_kernel *announce(clt_device *device, int k, clt_memory *memory, size_t width) {
    char name[16];
    clt_kernel *kernel;
    size_t local = 4;
    snprintf(name, sizeof name, "digit_%d", k);
    assert_ok(clt_kernel_create(device, &module, name, &kernel));
    assert_ok(clt_kernel_set_memory(kernel, 0, memory));
    assert_ok(clt_kernel_set_value(kernel, 1, NULL, local * sizeof(float)));
    assert_ok(clt_kernel_set_value(kernel, 2, &(int){10}, sizeof(int)));
    clt_kernel_announce(kernel, 1, &width, &local);
    return kernel;
}

static void what_is_announced_is_compiled_by_another(void **state) {
    clt_kernel *kernels[KERNELS];
    clt_memory *memory;
    float result;
    clt_device *device = open_with(NULL, NULL);
    build(device, KERNELS);
    assert_non_null(device->helper);
    assert_ok(clt_memory_create(device, WIDE * sizeof(float), &memory));
    for (int k = 0; k < KERNELS; k++) kernels[k] = announce(device, k, memory, k == KERNELS - 1 ? WIDE : 16);
    clt_device_compile_beside(device);
    await_kernels(KERNELS - 1, 1);
    assert_ok(clt_kernel_enqueue(kernels[3], 1, (size_t[]){16}, (size_t[]){4}));
    assert_ok(clt_memory_read(memory, 60, &result, sizeof result));
    assert_true(result == 13);
    for (int k = 0; k < KERNELS; k++) clt_kernel_destroy(kernels[k]);
    clt_memory_destroy(memory);
    clt_device_close(device);
    await_helpers(0);
    (void)state;
}

/* Then this process compiles by itself, and starts another helper for what comes later. */
static void it_may_be_killed(void **state) {
    clt_memory *memory;
    float result;
    clt_device *device = open_with(NULL, NULL);
    build(device, KERNELS);
    assert_non_null(device->helper);
    await_helpers(1);
    count_helpers(true);
    await_helpers(0);
    assert_ok(clt_memory_create(device, 16 * sizeof(float), &memory));
    clt_kernel *kernel = announce(device, 0, memory, 16);
    clt_device_compile_beside(device);
    assert_ok(clt_kernel_enqueue(kernel, 1, (size_t[]){16}, (size_t[]){4}));
    assert_ok(clt_memory_read(memory, 0, &result, sizeof result));
    assert_true(result == 10);
    clt_kernel_destroy(kernel);
    /* Its end of the socket may be there a little longer than it is. */
    for (double end = clt_seconds() + WATCHDOG_SECONDS; !count_helpers(false) && clt_seconds() < end;) {
        write_kernels();
        build(device, KERNELS);
    }
    await_helpers(1);
    clt_memory_destroy(memory);
    clt_device_close(device);
    await_helpers(0);
    (void)state;
}

static void it_is_started_only_where_it_helps(void **state) {
    static const char *const ways[][2] = {{"alone", NULL}, {NULL, "off"}};
    for (size_t i = 0; i < 2; i++) {
        clt_device *device = open_with(ways[i][0], ways[i][1]);
        build(device, KERNELS);
        assert_null(device->helper);
        clt_device_close(device);
    }
    clt_device *device = open_with(NULL, NULL);
    build(device, KERNELS - 1);
    assert_null(device->helper);
    clt_device_close(device);
    await_helpers(0);
    (void)state;
}

/* What was built before is in PoCL's cache. */
static void nothing_is_compiled_twice(void **state) {
    clt_device *device = open_with(NULL, NULL);
    build(device, KERNELS);
    assert_non_null(device->helper);
    clt_device_close(device);
    assert_ok(clt_device_open_with(&device, &(clt_settings){.cache_folder = support_path("cltrain")}));
    build(device, KERNELS);
    assert_null(device->helper);
    clt_device_close(device);
    await_helpers(0);
    (void)state;
}

/* Nobody but the library writes to it; but what a version of it does not understand must end it, and say why. */
static void it_reads_with_care(void **state) {
    static const char *const inputs[][2] = {
        {"nonsense\n", ""},
        {"batch 99999999999\n", ""},
        {"batch 8\nnonsense", "a line does not end"},
        {"batch 9\nnonsense\n", "an argument of no kernel"},
        {"batch 10\nprogram 9\n", "a program is too large"},
        {"batch 25\nkernel 0 a 1 1 1 1 1 1 1\n", "a kernel of no program"},
        {"batch 60\nprogram 19\nkernel void a(){} \nkernel 0 a 1 1 1 1 1 1 1\nwhat\n", "expected a program"},
        {"batch 66\nprogram 19\nkernel void a(){} \nkernel 0 a 1 1 1 1 1 1 1\nvalue 0xyz\n", "a value is not hexadecimal"},
        {"batch 64\nprogram 19\nkernel void a(){} \nkernel 0 a 1 1 1 1 1 1 1\nmemory 0\n", "expected a program"},
    };
    clt_device *device = open_with("alone", NULL);
    for (size_t i = 0; i < CLT_COUNT_OF(inputs); i++) {
        char command[4096], said[1024];
        int input[2];
        assert_int_equal(pipe(input), 0);
        snprintf(command, sizeof command, "exec '%s' '%s' '%s' '' 2>&1 <&%d", CLT_TEST_HELPER, device->info.platform, device->info.name, input[0]);
        FILE *output = popen(command, "r");
        assert_non_null(output);
        assert_int_equal(write(input[1], inputs[i][0], strlen(inputs[i][0])), strlen(inputs[i][0]));
        size_t bytes = fread(said, 1, sizeof said - 1, output); /* until it ends, though its input does not */
        close(input[0]);
        close(input[1]);
        said[bytes] = 0;
        pclose(output);
        if (!strstr(said, inputs[i][1]) || (!inputs[i][1][0] && bytes)) fail_msg("input %zu: it said '%s'", i, said);
    }
    clt_device_close(device);
    (void)state;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_announced_is_compiled_by_another),
        cmocka_unit_test(it_may_be_killed),
        cmocka_unit_test(it_is_started_only_where_it_helps),
        cmocka_unit_test(nothing_is_compiled_twice),
        cmocka_unit_test(it_reads_with_care),
    };
    snprintf(cache, sizeof cache, "%s", support_path("pocl"));
    setenv("POCL_CACHE_DIR", cache, 1);
    clt_device *device;
    if (clt_device_open(&device, NULL) < 0) return 1;
    bool serves = clt_helper_serves(device) && !access(CLT_TEST_HELPER, X_OK);
    clt_device_close(device);
    if (serves) return cmocka_run_group_tests(tests, NULL, NULL);
    puts("skipped: another driver than PoCL, one processor, or no cltrain-compile");
    return 0;
}
