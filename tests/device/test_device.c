#include "tests/support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "runtime/base/file.h"
#include "runtime/device/cl.h"

/* ---- selection, on devices made up for it ---- */

static clt_found_device made_up(const char *id, const char *name, const char *platform, clt_device_type type, uint32_t units) {
    clt_found_device d = {0};
    snprintf(d.info.id, sizeof d.info.id, "%s", id);
    snprintf(d.info.name, sizeof d.info.name, "%s", name);
    snprintf(d.info.platform, sizeof d.info.platform, "%s", platform);
    d.info.type = type;
    d.info.compute_units = units;
    d.info.clock_mhz = 1000;
    return d;
}

enum { N = 5 };

static void make_shelf(clt_found_device shelf[N]) {
    shelf[0] = made_up("portable/cpu", "EPYC", "Portable", CLT_DEVICE_CPU, 64);
    shelf[1] = made_up("pci:0000:03:00.0", "Radeon Small", "AMD", CLT_DEVICE_GPU, 10);
    shelf[2] = made_up("pci:0000:04:00.0", "Radeon Large", "AMD", CLT_DEVICE_GPU, 90);
    shelf[3] = made_up("pci:0000:05:00.0", "Stratix", "Intel FPGA", CLT_DEVICE_ACCELERATOR, 500);
    shelf[4] = made_up("sim/all", "Simulator", "Sim", CLT_DEVICE_OTHER, 1000);
}

static void assert_chosen(const char *selector, size_t wanted) {
    clt_found_device shelf[N];
    size_t chosen = 99;
    char reason[256];
    make_shelf(shelf);
    assert_ok(clt_devices_select(shelf, N, selector, &chosen, reason));
    assert_int_equal(chosen, wanted);
    assert_true(strlen(reason) > 0);
}

static void assert_refused(const char *selector, const char *words) {
    clt_found_device shelf[N];
    size_t chosen = 99;
    char reason[256];
    make_shelf(shelf);
    assert_status(clt_devices_select(shelf, N, selector, &chosen, reason), CLT_E_NO_DEVICE);
    assert_detail(words);
    assert_detail("Radeon Large"); /* what is there is told */
}

static void selectors(void **state) {
    (void)state;
    assert_chosen("", 2);
    assert_chosen("3", 3);
    assert_chosen("gpu", 2);
    assert_chosen("cpu", 0);
    assert_chosen("accelerator", 3);
    assert_chosen("pci:0000:03:00.0", 1);
    assert_chosen("03:00", 1);
    assert_chosen("radeon SMALL", 1);
    assert_chosen("stratix", 3);
    assert_refused("radeon", "several");
    assert_refused("abacus", "none");
    assert_refused("5", "index");
    assert_refused("99999999999999999999999", "index");
    assert_chosen("epyc", 0);
}

static void unusable_devices(void **state) {
    (void)state;
    clt_found_device shelf[N];
    size_t chosen;
    char reason[256];
    make_shelf(shelf);
    snprintf(shelf[2].info.unusable, sizeof shelf[2].info.unusable, "it has OpenCL 1.1; 1.2 is needed");
    assert_ok(clt_devices_select(shelf, N, "", &chosen, reason));
    assert_int_equal(chosen, 1); /* the next best of its class */
    assert_status(clt_devices_select(shelf, N, "2", &chosen, reason), CLT_E_NO_DEVICE);
    assert_detail("OpenCL 1.1");
}

/* ---- the device that is there ---- */

static int open_device(void **state) {
    assert_ok(clt_device_open((clt_device **)state, NULL));
    return 0;
}

static int open_device_that_saves(void **state) {
    assert_ok(clt_device_open_with((clt_device **)state, &(clt_settings){.program_cache = "on"}));
    return 0;
}

static int close_device(void **state) {
    clt_device_close(*state);
    return 0;
}

static void enumeration(void **state) {
    clt_device_info *infos;
    size_t count;
    const clt_device_info *own = clt_device_get_info(*state);
    bool found = false;
    assert_ok(clt_device_enumerate(&infos, &count));
    for (size_t i = 0; i < count; i++) {
        found |= !strcmp(infos[i].id, own->id);
        for (size_t k = 0; k < i; k++) assert_string_not_equal(infos[i].id, infos[k].id);
    }
    assert_true(found);
    assert_true(own->memory_bytes > 0 && own->max_buffer_bytes > 0 && own->compute_units > 0);
    clt_device_infos_free(infos);
}

static void capabilities(void **state) {
    clt_device *device = *state;
    clt_device_override(device, &(clt_settings){.capabilities_off = "fp16,fp64"});
    assert_false(clt_device_has(device, CLT_CAP_FP64));
    assert_string_equal(clt_device_lacks(device, CLT_CAP_FP64), "masked by CLTRAIN_CAPS_OFF");
    clt_device_override(device, &(clt_settings){.capabilities_off = "fp16"});
    bool has = clt_device_has(device, CLT_CAP_FP64);
    clt_device_override(device, &(clt_settings){.capabilities_off = ""});
    assert_int_equal(clt_device_has(device, CLT_CAP_FP64), has);
    if (strstr(clt_device_get_info(device)->cl_version, "PoCL")) assert_true(has);
    clt_device *again; /* the verdict is remembered, and is the same */
    assert_ok(clt_device_open(&again, clt_device_get_info(device)->id));
    assert_int_equal(clt_device_has(again, CLT_CAP_FP64), has);
    for (int c = 0; c < CLT_CAP_COUNT_; c++) { /* and so is why */
        const char *why = clt_device_lacks(device, (clt_capability)c), *later = clt_device_lacks(again, (clt_capability)c);
        assert_int_equal(!why, clt_device_has(device, (clt_capability)c));
        assert_true(why == later || (why && later && !strcmp(why, later)));
    }
    clt_device_close(again);
}

static void memory_is_pooled(void **state) {
    clt_device *device = *state;
    clt_memory *a, *b;
    uint64_t before = clt_device_bytes(device);
    assert_ok(clt_memory_create(device, 100000, &a));
    uint64_t with = clt_device_bytes(device);
    assert_true(with >= before + 100000);
    clt_memory_destroy(a);
    assert_ok(clt_memory_create(device, 99000, &b));
    assert_int_equal(clt_device_bytes(device), with); /* the same block again */
    clt_memory_destroy(b);
    clt_device_trim(device);
    assert_int_equal(clt_device_bytes(device), before);
    assert_true(clt_device_peak_bytes(device) >= with);
}

static void too_large_a_buffer(void **state) {
    clt_device *device = *state;
    char words[64];
    clt_memory *memory;
    uint64_t limit = clt_device_get_info(device)->max_buffer_bytes;
    snprintf(words, sizeof words, "largest buffer is %llu", (unsigned long long)limit);
    assert_status(clt_memory_create(device, (size_t)limit + 1, &memory), CLT_E_DEVICE_MEMORY);
    assert_detail(words);
}

static void slices_lie_in_their_parent(void **state) {
    clt_device *device = *state;
    clt_memory *parent, *slice;
    size_t at = clt_device_alignment(device);
    unsigned char wrote[16], read[16], zeros[16] = {0};
    memset(wrote, 0xab, sizeof wrote);
    assert_ok(clt_memory_create(device, 4 * at, &parent));
    assert_ok(clt_memory_zero(parent));
    assert_ok(clt_memory_slice(parent, at, sizeof wrote, &slice));
    assert_ok(clt_memory_write(slice, 0, wrote, sizeof wrote));
    assert_ok(clt_memory_read(parent, at, read, sizeof read));
    assert_memory_equal(read, wrote, sizeof read);
    assert_ok(clt_memory_read(parent, 2 * at, read, sizeof read));
    assert_memory_equal(read, zeros, sizeof read);
    clt_memory_destroy(slice);
    clt_memory_destroy(parent);
}

/* Also where it is not a whole number of words. */
static void any_number_of_bytes_is_zeroed(void **state) {
    clt_device *device = *state;
    clt_memory *parent, *slice;
    unsigned char bytes[16];
    for (size_t n = 1; n <= 8; n++) {
        memset(bytes, 0xab, sizeof bytes);
        assert_ok(clt_memory_create(device, sizeof bytes, &parent));
        assert_ok(clt_memory_write(parent, 0, bytes, sizeof bytes));
        assert_ok(clt_memory_slice(parent, 0, n, &slice));
        assert_ok(clt_memory_zero(slice));
        assert_ok(clt_memory_read(parent, 0, bytes, sizeof bytes));
        for (size_t i = 0; i < sizeof bytes; i++) assert_int_equal(bytes[i], i < n ? 0 : 0xab);
        clt_memory_destroy(slice);
        clt_memory_destroy(parent);
    }
}

static void a_kernel_that_does_not_build(void **state) {
    clt_module module = {"kernel void broken(global float *x) { x[0] = no_such_thing; }\n", true, "broken.cl"};
    assert_status(clt_device_build(*state, &module, 1), CLT_E_BUILD);
    assert_detail("broken.cl");
    assert_detail("no_such_thing");
    clt_module whole = {"kernel void whole(global float *x) { x[0] = 1; }\n", true, "whole.cl"};
    clt_kernel *kernel;
    assert_status(clt_kernel_create(*state, &whole, "whole", &kernel), CLT_E_STATE);
    assert_ok(clt_device_build(*state, &whole, 1));
    assert_status(clt_kernel_create(*state, &whole, "half", &kernel), CLT_E_BUILD);
    assert_detail("half");
}

/* Helpers stay, kernels go where they are not wanted: what is left out could not even be built. */
static void kernels_that_nobody_wants(void **state) {
    static const char text[] = "static float twice(float x) { return 2 * x; }\n"
                               "kernel void first_of_three(global float *x) { x[0] = twice(x[0]); }\n"
                               "kernel void broken_of_three(global float *x) {\n    { x[0] = no_such_thing; }\n}\n"
                               "#define IN_GROUPS_OF_ONE __attribute__((reqd_work_group_size(1, 1, 1)))\n"
                               "kernel IN_GROUPS_OF_ONE void broken_too(global float *x) { x[0] = no_such_thing; }\n"
                               "kernel IN_GROUPS_OF_ONE void last_of_three(global float *x) { x[0] += 1; }\n";
    clt_module module = {.text = text, .label = "three.cl", .separable = true}, whole = {.text = text, .label = "three.cl"};
    const clt_wanted first[] = {{0, "first_of_three"}, {0, "first_of_three"}};
    const clt_wanted both[] = {{0, "last_of_three"}, {0, "first_of_three"}};
    clt_kernel *kernel;
    assert_status(clt_device_build_kernels(*state, &whole, 1, first, 1), CLT_E_BUILD);
    assert_ok(clt_device_build_kernels(*state, &module, 1, first, 2));
    assert_ok(clt_kernel_create(*state, &module, "first_of_three", &kernel));
    clt_kernel_destroy(kernel);
    assert_status(clt_kernel_create(*state, &module, "last_of_three", &kernel), CLT_E_STATE);
    int ready = clt_device_build_counts(*state).built + clt_device_build_counts(*state).loaded;
    assert_ok(clt_device_build_kernels(*state, &module, 1, both, 2));
    assert_ok(clt_device_build_kernels(*state, &module, 1, both, 2));
    assert_int_equal(clt_device_build_counts(*state).built + clt_device_build_counts(*state).loaded, ready + 1);
    assert_ok(clt_kernel_create(*state, &module, "last_of_three", &kernel));
    clt_kernel_destroy(kernel);
}

/* ---- the cache of programs ---- */

/* Of a program that an earlier device built: is it there, or built again? */
static clt_build_counts counts_of_another(const clt_module *module, const char *cache) {
    clt_device *device;
    assert_ok(clt_device_open_with(&device, &(clt_settings){.program_cache = cache}));
    assert_ok(clt_device_build(device, module, 1));
    clt_build_counts counts = clt_device_build_counts(device);
    clt_device_close(device);
    return counts;
}

static void programs_are_kept_unless_told_not_to(void **state) {
    bool pocl = strstr(((clt_device *)*state)->info.platform, "Portable Computing Language");
    char text[128], other[128];
    clt_module module = {text, true, "kept.cl"};
    snprintf(text, sizeof text, "kernel void kept_%lx_%d(global float *x) { x[0] = 7; }\n", (unsigned long)time(NULL), (int)getpid());
    assert_int_equal(counts_of_another(&module, "off").built, 1); /* and not written */
    if (pocl) { /* which keeps its own: nor by default */
        assert_int_equal(unsetenv("POCL_KERNEL_CACHE"), 0);
        assert_int_equal(counts_of_another(&module, "").built, 1);
        assert_int_equal(counts_of_another(&module, "").built, 1);
        assert_int_equal(setenv("POCL_KERNEL_CACHE", "0", 1), 0);
    }
    assert_int_equal(counts_of_another(&module, "").built, 1); /* written now */
    assert_int_equal(counts_of_another(&module, "").loaded, 1);
    assert_int_equal(unsetenv("POCL_KERNEL_CACHE"), 0);
    assert_int_equal(counts_of_another(&module, "").loaded, 1); /* what is there is read */
    assert_int_equal(counts_of_another(&module, "off").loaded, 0); /* not read */
    module.text = other;
    snprintf(other, sizeof other, "kernel void other_%lx_%d(global float *x) { x[0] = 7; }\n", (unsigned long)time(NULL), (int)getpid());
    assert_int_equal(counts_of_another(&module, "on").built, 1); /* written on every driver */
    assert_int_equal(counts_of_another(&module, "on").loaded, 1);
}

/* As the library's, in front of a binary; see runtime/device/program.c. */
typedef struct cache_header {
    char magic[8], key[CLT_HASH_TEXT], payload_hash[CLT_HASH_TEXT];
    uint64_t payload_bytes;
} cache_header;

static unsigned char *binary_of(const clt_device *device, const char *source, size_t *bytes) {
    cl_int error;
    cl_program program = clCreateProgramWithSource(device->context, 1, &source, NULL, &error);
    assert_int_equal(error, CL_SUCCESS);
    assert_int_equal(clBuildProgram(program, 1, &device->id, "-cl-std=CL1.2", NULL, NULL), CL_SUCCESS);
    assert_int_equal(clGetProgramInfo(program, CL_PROGRAM_BINARY_SIZES, sizeof *bytes, bytes, NULL), CL_SUCCESS);
    unsigned char *binary = malloc(*bytes);
    assert_int_equal(clGetProgramInfo(program, CL_PROGRAM_BINARIES, sizeof binary, &binary, NULL), CL_SUCCESS);
    clReleaseProgram(program);
    return binary;
}

/* What a driver left that lost the kernels: the file is whole, and the driver takes it. */
static void write_hollow(const clt_device *device, const char *key) {
    cache_header header = {.magic = "CLTBIN1"};
    size_t bytes;
    unsigned char *binary = binary_of(device, "float hollow(float x) { return x + 1; }\n", &bytes);
    clt_text path = {0};
    assert_ok(clt_file_cache_folder(device->settings.cache_folder, "programs", &path));
    clt_text_add(&path, "/%s.clbin", key);
    memcpy(header.key, key, sizeof header.key);
    clt_hash_text(binary, bytes, header.payload_hash);
    header.payload_bytes = bytes;
    FILE *file = fopen(path.data, "r+b"); /* the library's own is there */
    assert_non_null(file);
    assert_int_equal(ftruncate(fileno(file), 0), 0);
    assert_int_equal(fwrite(&header, sizeof header, 1, file), 1);
    assert_int_equal(fwrite(binary, 1, bytes, file), bytes);
    assert_int_equal(fclose(file), 0);
    clt_text_free(&path);
    free(binary);
}

static void programs_without_kernels_are_none(void **state) {
    char text[128], key[CLT_HASH_TEXT];
    clt_module module = {text, true, "whole.cl"}, none = {"float hollow(float x) { return x - 1; }\n", true, "hollow.cl"};
    clt_device *device = *state;
    clt_kernel *kernel;
    snprintf(text, sizeof text, "kernel void whole_%lx_%d(global float *x) { x[0] = 7; }\n", (unsigned long)time(NULL), (int)getpid());
    assert_ok(clt_device_build(device, &module, 1));
    memcpy(key, device->programs[device->n_programs - 1]->key, sizeof key);
    clt_device_settle_programs(device);
    assert_int_equal(counts_of_another(&module, "on").loaded, 1);
    write_hollow(device, key);
    assert_int_equal(counts_of_another(&module, "on").built, 1);
    assert_int_equal(counts_of_another(&module, "on").loaded, 1); /* the file was mended */
    assert_status(clt_device_build(device, &none, 1), CLT_E_BUILD);
    assert_detail("hollow.cl");
    assert_status(clt_kernel_create(device, &none, "hollow", &kernel), CLT_E_STATE);
}

/* ---- feeding, as on a device that shares memory and as on one that does not ---- */

static void feed_both_ways(clt_device *device, bool shared) {
    enum { COUNT = 1000 };
    clt_staging *staging;
    float data[COUNT], result[COUNT];
    device->info.unified_memory = shared;
    assert_ok(clt_staging_create(device, sizeof data, 2, &staging));
    for (int round = 0; round < 20; round++) {
        for (int i = 0; i < COUNT; i++) data[i] = (float)(i + 1000 * round);
        assert_ok(clt_staging_feed(staging, data, sizeof data));
        memset(data, 0, sizeof data);
        assert_ok(clt_staging_used(staging));
        assert_ok(clt_memory_read(clt_staging_memory(staging), 0, result, sizeof result));
        for (int i = 0; i < COUNT; i++) assert_true(result[i] == (float)(i + 1000 * round));
    }
    clt_staging_destroy(staging);
}

static void feeding(void **state) {
    clt_device *device = *state;
    bool own = device->info.unified_memory;
    feed_both_ways(device, false);
    feed_both_ways(device, true);
    device->info.unified_memory = own;
}

static void misspelt_names_are_refused(void **state) {
    static const char *const all[][2] = {{"CLTRAIN_CAPS_OFF", "fp16,half"}, {"CLTRAIN_CAPS_OFF", "-fp16"}, {"CLTRAIN_CLASS", "GPU"},
                                          {"CLTRAIN_PROGRAM_CACHE", "of"}};
    (void)state;
    for (size_t i = 0; i < CLT_COUNT_OF(all); i++) {
        clt_device *device = NULL;
        setenv(all[i][0], all[i][1], 1);
        assert_status(clt_device_open(&device, NULL), CLT_E_INVALID);
        assert_detail(all[i][0]);
        unsetenv(all[i][0]);
        assert_null(device);
    }
}

/* Who chose the device that is not there. */
static void selectors_of_the_environment_are_named(void **state) {
    (void)state;
    clt_device *device = NULL;
    char kept[256] = "";
    if (getenv("CLTRAIN_DEVICE")) snprintf(kept, sizeof kept, "%s", getenv("CLTRAIN_DEVICE"));
    setenv("CLTRAIN_DEVICE", "nope", 1);
    assert_status(clt_device_open(&device, NULL), CLT_E_NO_DEVICE);
    assert_detail("CLTRAIN_DEVICE: device \"nope\" matches none");
    assert_status(clt_device_open(&device, "no such"), CLT_E_NO_DEVICE);
    assert_null(strstr(clt_error_detail(), "CLTRAIN_DEVICE"));
    if (kept[0]) setenv("CLTRAIN_DEVICE", kept, 1);
    else unsetenv("CLTRAIN_DEVICE");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(selectors_of_the_environment_are_named),
        cmocka_unit_test(selectors),
        cmocka_unit_test(unusable_devices),
        cmocka_unit_test(misspelt_names_are_refused),
        cmocka_unit_test_setup_teardown(enumeration, open_device, close_device),
        cmocka_unit_test_setup_teardown(capabilities, open_device, close_device),
        cmocka_unit_test_setup_teardown(memory_is_pooled, open_device, close_device),
        cmocka_unit_test_setup_teardown(too_large_a_buffer, open_device, close_device),
        cmocka_unit_test_setup_teardown(slices_lie_in_their_parent, open_device, close_device),
        cmocka_unit_test_setup_teardown(any_number_of_bytes_is_zeroed, open_device, close_device),
        cmocka_unit_test_setup_teardown(a_kernel_that_does_not_build, open_device, close_device),
        cmocka_unit_test_setup_teardown(kernels_that_nobody_wants, open_device, close_device),
        cmocka_unit_test_setup_teardown(programs_are_kept_unless_told_not_to, open_device, close_device),
        cmocka_unit_test_setup_teardown(programs_without_kernels_are_none, open_device_that_saves, close_device),
        cmocka_unit_test_setup_teardown(feeding, open_device, close_device),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
