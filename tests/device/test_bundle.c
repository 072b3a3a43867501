/* Bundles: what was compiled once serves devices that compile nothing, and what is damaged, foreign or of other sources does not. */
#include "tests/support.h"

#include <dirent.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cltrain/experimental/bundle.h>

#include "runtime/base/file.h"
#include "runtime/device/bundle.h"
#include "runtime/device/kernel_source.h"

static char folder[4096];
static const char text[] = "static float one(float x) { return x + 1; }\nkernel void letter_a(global float *x) { x[0] = one(1); }\n"
                           "kernel void letter_b(global float *x) { x[0] = one(2); }\nkernel void letter_c(global float *x) { x[0] = one(3); }\n";
static const char whole_text[] = "kernel void seven(global float *x, float y) { x[0] = 7 + y; }\n";
static const clt_module modules[] = {{.text = text, .label = "letters.cl", .separable = true},
                                     {.text = whole_text, .label = "whole.cl", .isolated = true}};

static clt_status try_open(const char *compiler, clt_device **device) {
    return clt_device_open_with(device, &(clt_settings){.program_cache = "off", .bundle = folder, .compiler = compiler});
}

static clt_status build(clt_device *device, const char *letters) {
    char names[3][16];
    clt_wanted wanted[3];
    int n = (int)strlen(letters);
    for (int i = 0; i < n; i++) {
        snprintf(names[i], sizeof names[i], "letter_%c", letters[i]);
        wanted[i] = (clt_wanted){0, names[i]};
    }
    return clt_device_build_kernels(device, modules, 1, wanted, n);
}

static float result_of(clt_device *device, const clt_module *module, const char *name) {
    clt_kernel *kernel;
    clt_memory *memory;
    float result = 0, three = 3;
    assert_ok(clt_kernel_create(device, module, name, &kernel));
    assert_ok(clt_memory_create(device, sizeof result, &memory));
    assert_ok(clt_kernel_set_memory(kernel, 0, memory));
    if (module->isolated) assert_ok(clt_kernel_set_value(kernel, 1, &three, sizeof three));
    assert_ok(clt_kernel_enqueue(kernel, 1, (size_t[]){1}, NULL));
    assert_ok(clt_memory_read(memory, 0, &result, sizeof result));
    clt_memory_destroy(memory);
    clt_kernel_destroy(kernel);
    return result;
}

static int write_bundle(void **state) {
    clt_device *device;
    snprintf(folder, sizeof folder, "%s", support_path("bundle"));
    assert_ok(clt_device_open_with(&device, &(clt_settings){.program_cache = "on", .bundle = "", .compiler = "auto"}));
    assert_status(clt_bundle_write(device, folder), CLT_E_STATE);
    assert_ok(clt_bundle_begin(device));
    assert_status(clt_bundle_write(device, folder), CLT_E_STATE);
    assert_ok(build(device, "ab"));
    assert_ok(clt_device_build(device, &modules[1], 1));
    clt_device_has(device, CLT_CAP_FP64);
    assert_true(result_of(device, &modules[0], "letter_a") == 2);
    clt_status status = clt_bundle_write(device, folder);
    assert_status(clt_bundle_begin(device), CLT_E_STATE);
    clt_device_close(device);
    (void)state;
    return status == CLT_E_UNSUPPORTED ? -1 : (assert_ok(status), 0);
}

static void kernels_are_there_without_a_compiler(void **state) {
    clt_device *device;
    assert_ok(try_open("never", &device));
    assert_ok(build(device, "ab"));
    assert_ok(clt_device_build(device, &modules[1], 1));
    assert_int_equal(clt_device_build_counts(device).built, 0);
    assert_true(result_of(device, &modules[0], "letter_a") == 2);
    assert_true(result_of(device, &modules[0], "letter_b") == 3);
    assert_true(result_of(device, &modules[1], "seven") == 10);
    assert_true(device->capabilities[CLT_CAP_FP64] >= 0); /* known, and not tried out */
    assert_false(clt_device_has(device, CLT_CAP_FP16));
    assert_true(device->capabilities[CLT_CAP_FP16] < 0);
    assert_status(build(device, "abc"), CLT_E_BUILD);
    assert_detail("letter_c of letters.cl");
    assert_detail(folder);
    clt_device_close(device);
    (void)state;
}

static void what_is_missing_is_compiled(void **state) {
    clt_device *device;
    assert_ok(try_open("auto", &device));
    assert_ok(build(device, "abc"));
    assert_int_equal(clt_device_build_counts(device).built, 1);
    assert_true(result_of(device, &modules[0], "letter_c") == 4);
    clt_device_close(device);
    (void)state;
}

static void nothing_is_compiled_without_a_bundle(void **state) {
    clt_device *device;
    assert_ok(clt_device_open_with(&device, &(clt_settings){.bundle = "", .compiler = "never"}));
    assert_status(build(device, "ac"), CLT_E_BUILD);
    assert_detail("letter_a of letters.cl, letter_c of letters.cl");
    assert_status(clt_device_build(device, &modules[1], 1), CLT_E_BUILD);
    assert_detail("whole.cl");
    clt_device_close(device);
    (void)state;
}

/* ---- damage ---- */

static unsigned char *read_whole(const char *path, size_t *length) {
    void *bytes;
    assert_ok(clt_file_read(path, 1 << 28, &bytes, length));
    return bytes;
}

/* Neither believed without a compiler, nor with one; which compiles it then. */
static void assert_refused(clt_status expected, const char *words) {
    clt_device *device;
    clt_status status = try_open("never", &device);
    if (status == CLT_OK) clt_device_close(device);
    assert_status(status, expected);
    assert_detail(words);
    assert_ok(try_open("auto", &device));
    assert_ok(build(device, "ab"));
    assert_true(result_of(device, &modules[0], "letter_b") == 3);
    clt_device_close(device);
}

static int flip_bytes(void) {
    DIR *entries = opendir(folder);
    int files = 0;
    uint64_t random = 1;
    assert_non_null(entries);
    for (struct dirent *e; (e = readdir(entries));) {
        char path[8192];
        size_t length;
        if (e->d_name[0] == '.') continue;
        snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
        unsigned char *bytes = read_whole(path, &length);
        for (int i = 0; i < 12; i++) {
            clt_device *device;
            random = random * 6364136223846793005u + 1442695040888963407u;
            size_t at = i == 0 ? 0 : i == 1 ? length - 1 : (size_t)(random >> 33) % length;
            unsigned char bit = (unsigned char)(1 << (random >> 30 & 7));
            bytes[at] ^= bit;
            assert_ok(clt_file_write(path, bytes, length));
            clt_status status = try_open("never", &device);
            if (status == CLT_OK) fail_msg("byte %zu of %s", at, e->d_name);
            assert_status(status, CLT_E_FORMAT);
            assert_detail(strstr(e->d_name, "manifest") ? "manifest.json" : e->d_name);
            bytes[at] ^= bit;
        }
        assert_ok(clt_file_write(path, bytes, length - 1));
        assert_refused(CLT_E_FORMAT, strstr(e->d_name, "manifest") ? "manifest.json" : e->d_name);
        assert_ok(clt_file_write(path, bytes, length));
        clt_free(bytes);
        files++;
    }
    closedir(entries);
    return files;
}

static void a_flipped_byte_anywhere_is_refused(void **state) {
    assert_int_equal(flip_bytes(), 2 + 2 * 2 + 1); /* of two images and an experiment */
    (void)state;
}

static void write_sum(const char *manifest, size_t length) {
    unsigned char digest[32];
    char line[128], path[8192];
    assert_int_equal(EVP_Digest(manifest, length, digest, NULL, EVP_sha256(), NULL), 1);
    for (int i = 0; i < 32; i++) snprintf(line + 2 * i, 3, "%02x", digest[i]);
    snprintf(line + 64, sizeof line - 64, "  manifest.json\n");
    snprintf(path, sizeof path, "%s/manifest.json.sha256", folder);
    assert_ok(clt_file_write(path, line, strlen(line)));
}

/* The manifest with the first `from` in it as `to`, and the checksum that it should have then. */
static void assert_edited_is_refused(const char *from, const char *to, clt_status expected, const char *words) {
    char path[8192];
    size_t length;
    clt_text edited = {0};
    snprintf(path, sizeof path, "%s/manifest.json", folder);
    unsigned char *bytes = read_whole(path, &length);
    const char *manifest = (const char *)bytes;
    size_t at = 0;
    while (at < length && strncmp(manifest + at, from, strlen(from)) != 0) at++;
    if (at == length) fail_msg("there is no %s in\n%s", from, manifest);
    clt_text_add(&edited, "%.*s%s%s", (int)at, manifest, to, manifest + at + strlen(from));
    assert_ok(clt_file_write(path, edited.data, edited.length));
    write_sum(edited.data, edited.length);
    assert_refused(expected, words);
    assert_ok(clt_file_write(path, bytes, length));
    write_sum(manifest, length);
    clt_text_free(&edited);
    clt_free(bytes);
}

static void what_is_for_another_device_is_refused(void **state) {
    assert_edited_is_refused("\"driver\": \"", "\"driver\": \"0.", CLT_E_MISMATCH, "it is for driver '0.");
    assert_edited_is_refused("\"device\": \"", "\"device\": \"no ", CLT_E_MISMATCH, "it is for device 'no ");
    assert_edited_is_refused("\"platform\": \"", "\"platform\": \"no ", CLT_E_MISMATCH, "it is for platform 'no ");
    assert_edited_is_refused("-cl-denorms-are-zero", "-cl-opt-disable", CLT_E_MISMATCH, "it is for options ");
    assert_edited_is_refused("\"native\"", "\"spirv\"", CLT_E_MISMATCH, "it is for kind 'spirv'");
    assert_edited_is_refused("\"sources\": \"", "\"sources\": \"f", CLT_E_MISMATCH, "make it anew");
    assert_edited_is_refused("cltrain bundle 1", "cltrain bundle 2", CLT_E_FORMAT, "cltrain bundle 2");
    (void)state;
}

/* The checksums are right, and the images are not what the manifest says. */
static void what_is_not_what_it_should_be_is_refused(void **state) {
    assert_edited_is_refused("\"arguments\": 1", "\"arguments\": 2", CLT_E_FORMAT, "has 1 arguments, expected 2");
    assert_edited_is_refused("\"name\": \"seven\"", "\"name\": \"eight\"", CLT_E_FORMAT, "kernel eight cannot be made");
    assert_edited_is_refused("\"key\": \"", "\"key\": \"0", CLT_E_FORMAT, "hashes");
    char key[64], other[64], path[8192];
    clt_bundle bundle = {0};
    size_t length;
    snprintf(path, sizeof path, "%s/manifest.json", folder);
    unsigned char *bytes = read_whole(path, &length);
    assert_ok(clt_bundle_parse(&bundle, (const char *)bytes, length));
    snprintf(key, sizeof key, "\"key\": \"%s", bundle.images[0].key);
    memcpy(other, key, sizeof other);
    other[8] = other[8] == '1' ? '2' : '1';
    clt_bundle_free(&bundle);
    clt_free(bytes);
    assert_edited_is_refused(key, other, CLT_E_FORMAT, "it is of another source");
    assert_edited_is_refused("\"file\": \"", "\"file\": \"../", CLT_E_FORMAT, "files of the bundle's folder");
    assert_edited_is_refused("\"file\": \"", "\"file\": \"9", CLT_E_IO, ".bin");
    assert_edited_is_refused("\"kernel\": \"letter_a\"", "\"kernel\": \"letter_z\"", CLT_E_FORMAT, "kernel letter_z is not among");
    (void)state;
}

/* ---- portable images ---- */

/* The driver under the test takes "SPIR-V", which here is OpenCL C. */
static bool takes_il;

cl_int __real_clGetDeviceInfo(cl_device_id id, cl_device_info what, size_t room, void *value, size_t *bytes);
cl_int __wrap_clGetDeviceInfo(cl_device_id id, cl_device_info what, size_t room, void *value, size_t *bytes);
cl_int __wrap_clGetDeviceInfo(cl_device_id id, cl_device_info what, size_t room, void *value, size_t *bytes) {
    const char *told = what == CL_DEVICE_EXTENSIONS ? "cl_khr_il_program" : what == 0x105B ? "SPIR-V_1.0" : NULL;
    if (!takes_il || !told) return __real_clGetDeviceInfo(id, what, room, value, bytes);
    if (bytes) *bytes = strlen(told) + 1;
    if (value) memcpy(value, told, strlen(told) + 1);
    return CL_SUCCESS;
}

static cl_program CL_API_CALL create_with_il(cl_context context, const void *il, size_t length, cl_int *error) {
    const char *words = il;
    return clCreateProgramWithSource(context, 1, &words, &length, error);
}

void *__real_clGetExtensionFunctionAddressForPlatform(cl_platform_id platform, const char *name);
void *__wrap_clGetExtensionFunctionAddressForPlatform(cl_platform_id platform, const char *name);
void *__wrap_clGetExtensionFunctionAddressForPlatform(cl_platform_id platform, const char *name) {
    if (takes_il && !strcmp(name, "clCreateProgramWithILKHR")) return (void *)(uintptr_t)create_with_il;
    return __real_clGetExtensionFunctionAddressForPlatform(platform, name);
}

static clt_status copy_source(const char *source, const char *output, void *user) {
    void *bytes;
    size_t length;
    int *left = user;
    if ((*left)-- == 0) return clt_fail(CLT_E_BUILD, "the compiler has had enough");
    CLT_TRY(clt_file_read(source, 1 << 28, &bytes, &length));
    clt_status status = clt_file_write(output, bytes, length);
    clt_free(bytes);
    return status;
}

/* As if it had been made with another driver. */
static void make_foreign(const char *driver) {
    char path[8192], found[512];
    size_t length;
    clt_bundle bundle = {0};
    clt_text edited = {0};
    snprintf(path, sizeof path, "%s/manifest.json", folder);
    unsigned char *bytes = read_whole(path, &length);
    assert_ok(clt_bundle_parse(&bundle, (const char *)bytes, length));
    snprintf(found, sizeof found, "\"driver\": \"%s\"", bundle.images[0].driver);
    char *text_of = calloc(length + 1, 1);
    memcpy(text_of, bytes, length);
    const char *from = text_of;
    for (const char *at; (at = strstr(from, found)); from = at + strlen(found)) clt_text_add(&edited, "%.*s\"driver\": \"%s\"", (int)(at - from), from, driver);
    clt_text_add(&edited, "%s", from);
    assert_ok(clt_file_write(path, edited.data, edited.length));
    write_sum(edited.data, edited.length);
    clt_text_free(&edited);
    clt_bundle_free(&bundle);
    clt_free(bytes);
    free(text_of);
}

static void another_driver_takes_portable_images(void **state) {
    clt_device *device;
    int compiled = 1;
    char path[8192];
    (void)state;
    assert_status(clt_bundle_add_il(folder, "copy", copy_source, &compiled), CLT_E_BUILD);
    assert_detail("the compiler has had enough");
    assert_ok(try_open("never", &device)); /* as it was */
    clt_device_close(device);
    make_foreign("0.0");
    assert_refused(CLT_E_MISMATCH, "it is for driver '0.0'");
    compiled = 100;
    assert_ok(clt_bundle_add_il(folder, "copy", copy_source, &compiled));
    assert_int_equal(compiled, 100 - 3);
    assert_refused(CLT_E_MISMATCH, "it is for driver '0.0'"); /* this one takes no SPIR-V */
    takes_il = true;
    assert_ok(try_open("never", &device));
    assert_ok(build(device, "ab"));
    assert_true(result_of(device, &modules[0], "letter_a") == 2 && result_of(device, &modules[0], "letter_b") == 3);
    assert_true(result_of(device, &modules[1], "seven") == 10);
    assert_int_equal(clt_device_build_counts(device).built, 0);
    bool has = clt_device_has(device, CLT_CAP_FP64);
    clt_device_close(device);
    assert_ok(clt_device_open_with(&device, &(clt_settings){.bundle = "", .compiler = "auto"}));
    assert_int_equal(clt_device_has(device, CLT_CAP_FP64), has); /* found out, not believed */
    clt_device_close(device);
    clt_bundle bundle = {0};
    size_t length;
    assert_ok(clt_bundle_read(folder, &bundle));
    snprintf(path, sizeof path, "%s/%s", folder, bundle.experiments[0].il.file);
    clt_bundle_free(&bundle);
    assert_non_null(strstr(path, "capability-fp64."));
    unsigned char *bytes = read_whole(path, &length);
    memset(bytes, '!', length);
    assert_ok(clt_file_write(path, bytes, length));
    assert_refused(CLT_E_FORMAT, ".spv: its SHA-256 is");
    compiled = 100;
    assert_ok(clt_bundle_add_il(folder, "copy", copy_source, &compiled)); /* once more */
    clt_free(bytes);
    assert_int_equal(flip_bytes(), 2 + 2 * 3 + 2);
    takes_il = false;
}

static void a_folder_that_is_none_is_refused(void **state) {
    size_t length = strlen(folder);
    memcpy(folder + length, "/none", 6);
    assert_refused(CLT_E_IO, "CLTRAIN_BUNDLE");
    folder[length] = 0;
    (void)state;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kernels_are_there_without_a_compiler),
        cmocka_unit_test(what_is_missing_is_compiled),
        cmocka_unit_test(nothing_is_compiled_without_a_bundle),
        cmocka_unit_test(a_flipped_byte_anywhere_is_refused),
        cmocka_unit_test(what_is_for_another_device_is_refused),
        cmocka_unit_test(what_is_not_what_it_should_be_is_refused),
        cmocka_unit_test(a_folder_that_is_none_is_refused),
        cmocka_unit_test(another_driver_takes_portable_images),
    };
    return cmocka_run_group_tests(tests, write_bundle, NULL);
}
