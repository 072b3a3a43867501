/* Kernels are taken from the programs of earlier processes, of which each device here is one. */
#include "tests/support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/base/file.h"
#include "runtime/device/catalog.h"
#include "runtime/device/kernel_source.h"

static char text[1024];
static const char *kernel_folder; /* NULL: the library's */
static const clt_module module = {.text = text, .label = "letters.cl", .separable = true};

/* Three kernels that no earlier run of this test has built. */
static void begin_cache(const char *name, char folder[4096]) {
    snprintf(folder, 4096, "%s", support_path(name));
    snprintf(text, sizeof text,
             "/* %d */\nstatic float one(float x) { return x + 1; }\nkernel void letter_a(global float *x) { x[0] = one(1); }\n"
             "kernel void letter_b(global float *x) { x[0] = one(2); }\nkernel void letter_c(global float *x) { x[0] = one(3); }\n",
             (int)getpid());
}

static clt_device *open_one(const char *folder, const char *cache) {
    clt_device *device;
    assert_ok(clt_device_open_with(&device, &(clt_settings){.program_cache = cache, .cache_folder = folder, .kernel_folder = kernel_folder}));
    return device;
}

static float result_of(clt_device *device, const char *name) {
    clt_kernel *kernel;
    clt_memory *memory;
    float result = 0;
    assert_ok(clt_kernel_create(device, &module, name, &kernel));
    assert_ok(clt_memory_create(device, sizeof result, &memory));
    assert_ok(clt_kernel_set_memory(kernel, 0, memory));
    assert_ok(clt_kernel_enqueue(kernel, 1, (size_t[]){1}, NULL));
    assert_ok(clt_memory_read(memory, 0, &result, sizeof result));
    clt_memory_destroy(memory);
    clt_kernel_destroy(kernel);
    return result;
}

/* Builds the kernels of these letters; how many programs were built, and loaded: {built, loaded}. */
static clt_build_counts counts_of(const char *folder, const char *cache, const char *letters) {
    char names[3][16];
    clt_wanted wanted[3];
    int n = (int)strlen(letters);
    clt_device *device = open_one(folder, cache);
    for (int i = 0; i < n; i++) {
        snprintf(names[i], sizeof names[i], "letter_%c", letters[i]);
        wanted[i] = (clt_wanted){0, names[i]};
    }
    assert_ok(clt_device_build_kernels(device, &module, 1, wanted, n));
    clt_build_counts counts = clt_device_build_counts(device);
    for (int i = 0; i < n; i++) assert_true(result_of(device, names[i]) == (float)(letters[i] - 'a' + 2));
    clt_device_close(device);
    return counts;
}

static void assert_counts(clt_build_counts counts, int built, int loaded) {
    assert_int_equal(counts.built, built);
    assert_int_equal(counts.loaded, loaded);
}

static void what_is_there_is_not_built_again(void **state) {
    char folder[4096];
    begin_cache("catalog", folder);
    assert_counts(counts_of(folder, "on", "ab"), 1, 0);
    assert_counts(counts_of(folder, "on", "b"), 0, 1);
    assert_counts(counts_of(folder, "on", "bc"), 1, 1);  /* c alone */
    assert_counts(counts_of(folder, "on", "abc"), 0, 2); /* of two programs */
    assert_counts(counts_of(folder, "off", "abc"), 1, 0);
    (void)state;
}

/* Of the programs that have most, the smallest. */
static void the_smallest_is_chosen(void **state) {
    clt_catalog catalog = {0};
    clt_catalog_choice choice = {0};
    char list[1024], hash[33] = "0123456789abcdef0123456789abcdef";
    int n = 0;
    for (int p = 0; p < 3; p++)
        for (int k = 0; k < 3 - p; k++) n += snprintf(list + n, sizeof list - (size_t)n, "%032d %s k%d\n", p, hash, k);
    n += snprintf(list + n, sizeof list - (size_t)n, "%032d %s -\nno line\n%032d %s k%d", 7, "ffffffffffffffffffffffffffffffff", 8, hash, 9);
    assert_ok(clt_catalog_parse(&catalog, list, (size_t)n));
    assert_int_equal(catalog.n, 7); /* without the last, which is half */
    clt_program_part parts[] = {{.kernel = "k0"}, {.kernel = "k1"}, {.kernel = "any"}};
    for (int i = 0; i < 2; i++) memcpy(parts[i].module, hash, sizeof hash);
    memset(parts[2].module, 'f', 32);
    bool marked[3] = {0};
    assert_true(clt_catalog_choose(&catalog, parts, marked, 3, &choice));
    assert_int_equal(choice.parts - catalog.entries, 3); /* k0 and k1 */
    assert_int_equal(choice.n, 2);
    marked[0] = marked[1] = true;
    assert_true(clt_catalog_choose(&catalog, parts, marked, 3, &choice));
    assert_int_equal(choice.parts - catalog.entries, 6); /* a whole module has any kernel */
    marked[2] = true;
    assert_false(clt_catalog_choose(&catalog, parts, marked, 3, &choice));
    clt_catalog_free(&catalog);
    (void)state;
}

/* Files that are gone, or say something else: as if there were none, and the next one mends that. */
static void damaged_files_are_none(void **state) {
    char folder[4096], path[8192], key[CLT_HASH_TEXT];
    begin_cache("catalog_damaged", folder);
    for (int i = 0; i < 3; i++) {
        text[3] = (char)('0' + i); /* another program */
        clt_device *device = open_one(folder, "on");
        assert_ok(clt_device_build_kernels(device, &module, 1, (clt_wanted[]){{0, "letter_a"}, {0, "letter_b"}}, 2));
        memcpy(key, device->programs[0]->key, sizeof key);
        clt_device_close(device);
        assert_counts(counts_of(folder, "on", "a"), 0, 1);
        snprintf(path, sizeof path, "%s/programs/%s.cl", folder, key);
        if (i == 0) assert_int_equal(unlink(path), 0);
        if (i == 1) assert_int_equal(truncate(path, 100), 0);
        if (i == 2) assert_ok(clt_file_write(path, "kernel void letter_a(global float *x) { x[0] = 9; }\n", 52));
        assert_counts(counts_of(folder, "on", "a"), 1, 0);
        assert_counts(counts_of(folder, "on", "ab"), 1, 1); /* b alone */
        assert_counts(counts_of(folder, "on", "ab"), 0, 2);
    }
    (void)state;
}

/* It is part of every program, and of no kernel's own text. */
static void another_prelude_has_programs_of_its_own(void **state) {
    char folder[4096], kernels[4096], path[8192];
    begin_cache("catalog_prelude", folder);
    snprintf(kernels, sizeof kernels, "%s", support_path("catalog_kernels"));
    snprintf(path, sizeof path, "%s/" CLT_PRELUDE, kernels);
    assert_ok(clt_file_make_folder(kernels));
    assert_counts(counts_of(folder, "on", "a"), 1, 0);
    assert_counts(counts_of(folder, "on", "a"), 0, 1);
    assert_ok(clt_file_write(path, "#define LETTER 1\n", 17));
    kernel_folder = kernels;
    assert_counts(counts_of(folder, "on", "a"), 1, 0);
    assert_counts(counts_of(folder, "on", "a"), 0, 1);
    kernel_folder = NULL;
    (void)state;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_there_is_not_built_again),
        cmocka_unit_test(the_smallest_is_chosen),
        cmocka_unit_test(damaged_files_are_none),
        cmocka_unit_test(another_prelude_has_programs_of_its_own),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
