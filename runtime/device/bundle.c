#include "runtime/device/bundle.h"

#include <ctype.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <string.h>

#include <cltrain/experimental/bundle.h>
#include <cltrain/version.h>

#include "runtime/base/file.h"
#include "runtime/base/json.h"
#include "runtime/device/kernel_source.h"

#define FORMAT "cltrain bundle 1"
#define MANIFEST "manifest.json"
#define CHECK "clt_image_check"
enum { MOST_MANIFEST = 1 << 24, MOST_SOURCE = 1 << 26, MOST_IMAGES = 512, MOST_NAME = 64, SHA256_TEXT = 65 };

static clt_status sha256(const void *bytes, size_t length, char text[SHA256_TEXT]) {
    unsigned char digest[32];
    unsigned int size = sizeof digest;
    if (!EVP_Digest(bytes, length, digest, &size, EVP_sha256(), NULL)) return clt_fail(CLT_E_SYSTEM, "OpenSSL computes no SHA-256");
    for (int i = 0; i < 32; i++) snprintf(text + 2 * i, 3, "%02x", digest[i]);
    return CLT_OK;
}

/* What all images have of the library beside their own source: build options and prelude. */
static void hash_common(const clt_device *device, char hash[CLT_HASH_TEXT]) {
    const char *prelude = clt_kernel_source_find(device, CLT_PRELUDE);
    hash[0] = 0;
    clt_hash_add(hash, clt_build_options, strlen(clt_build_options));
    if (prelude) clt_hash_add(hash, prelude, strlen(prelude));
}

/* What the kernel of an image that tells its source gives. */
static cl_uint check_value(const char *key) {
    unsigned int value = 0;
    sscanf(key, "%8x", &value);
    return value;
}

void clt_bundle_add_check(clt_text *source, const char *key) {
    clt_text_add(source, "kernel void " CHECK "(global uint *value) { value[0] = 0x%08xu; }\n", check_value(key));
}

/* ---- the manifest ---- */

static bool is_hex(const char *text, size_t length) {
    for (size_t i = 0; i < length; i++)
        if (!isxdigit((unsigned char)text[i])) return false; /* a NUL, too */
    return text[length] == 0;
}

static bool is_name(const char *text) {
    size_t length = strlen(text);
    for (size_t i = 0; i < length; i++)
        if (!isalnum((unsigned char)text[i]) && text[i] != '_') return false;
    return length < MOST_NAME;
}

/* A file of the folder. */
static bool is_file(const char *text) {
    return text[0] && text[0] != '.' && !strchr(text, '/');
}

static clt_status check_kernels(const clt_bundle_image *image) {
    size_t i;
    json_t *kernel;
    json_array_foreach (image->kernels, i, kernel) {
        const char *name;
        int arguments;
        if (json_unpack(kernel, "{s:s, s:i}", "name", &name, "arguments", &arguments) < 0 || !is_name(name) || arguments < 0)
            return clt_fail(CLT_E_FORMAT, "kernel %zu of %s: expected a name and a number of arguments", i, image->file);
    }
    return CLT_OK;
}

static bool has_kernel(const clt_bundle_image *image, const char *name) {
    size_t i;
    json_t *kernel;
    json_array_foreach (image->kernels, i, kernel)
        if (!strcmp(json_string_value(json_object_get(kernel, "name")), name)) return true;
    return false;
}

/* Of a whole module a part names no kernel. */
static clt_status check_parts(const clt_bundle_image *image) {
    size_t i;
    json_t *part;
    json_array_foreach (image->parts, i, part) {
        const char *module, *kernel;
        if (json_unpack(part, "{s:s, s:s}", "module", &module, "kernel", &kernel) < 0 || !is_hex(module, CLT_HASH_TEXT - 1) || !is_name(kernel))
            return clt_fail(CLT_E_FORMAT, "part %zu of %s: expected a module's hash and a kernel's name", i, image->file);
        if (*kernel && !has_kernel(image, kernel)) return clt_fail(CLT_E_FORMAT, "part %zu of %s: kernel %s is not among the image's kernels", i, image->file, kernel);
    }
    return CLT_OK;
}

static clt_status parse_image(clt_bundle_image *image, json_t *object, size_t index) {
    json_error_t error;
    json_t *serves;
    if (json_unpack_ex(object, &error, 0, "{s:s, s:s, s:s, s:s, s:s, s:o, s:o, s:o}", "file", &image->file, "sha256", &image->sha256, "source", &image->source,
                       "source_sha256", &image->source_sha256, "key", &image->key, "kernels", &image->kernels, "parts", &image->parts, "for", &serves) < 0 ||
        json_unpack_ex(serves, &error, 0, "{s:s, s:s, s:s, s:s, s:s}", "kind", &image->kind, "platform", &image->platform, "device", &image->name, "driver",
                       &image->driver, "options", &image->options) < 0)
        return clt_fail(CLT_E_FORMAT, "image %zu: %s", index, error.text);
    if (!is_file(image->file) || !is_file(image->source)) return clt_fail(CLT_E_FORMAT, "image %zu: expected files of the bundle's folder", index);
    if (!is_hex(image->sha256, SHA256_TEXT - 1) || !is_hex(image->source_sha256, SHA256_TEXT - 1) || !is_hex(image->key, CLT_HASH_TEXT - 1))
        return clt_fail(CLT_E_FORMAT, "image %zu: expected hashes in hexadecimal", index);
    if (!json_is_array(image->kernels) || !json_is_array(image->parts)) return clt_fail(CLT_E_FORMAT, "image %zu: expected arrays of kernels and parts", index);
    CLT_TRY(check_kernels(image));
    return check_parts(image);
}

clt_status clt_bundle_parse(clt_bundle *bundle, const char *text, size_t length) {
    json_error_t error;
    const char *format;
    json_t *images;
    bundle->root = json_loadb(text, length, JSON_REJECT_DUPLICATES, &error);
    if (!bundle->root) return clt_fail(CLT_E_FORMAT, "line %d: %s", error.line, error.text);
    if (json_unpack_ex(bundle->root, &error, 0, "{s:s}", "format", &format) < 0) return clt_fail(CLT_E_FORMAT, "%s", error.text);
    if (strcmp(format, FORMAT) != 0) {
        char shown[CLT_SHOWN_TEXT];
        return clt_fail(CLT_E_FORMAT, "its format is '%s': expected '" FORMAT "'", clt_show(format, shown));
    }
    if (json_unpack_ex(bundle->root, &error, 0, "{s:s, s:s, s:o, s:o}", "library", &bundle->library, "sources", &bundle->sources, "capabilities",
                       &bundle->capabilities, "images", &images) < 0)
        return clt_fail(CLT_E_FORMAT, "%s", error.text);
    if (!json_is_array(images) || !json_is_object(bundle->capabilities)) return clt_fail(CLT_E_FORMAT, "expected an array of images, and an object of capabilities");
    if (json_array_size(images) < 1 || json_array_size(images) > MOST_IMAGES)
        return clt_fail(CLT_E_FORMAT, "it has %zu images: expected 1 to %d", json_array_size(images), MOST_IMAGES);
    bundle->images = clt_calloc(json_array_size(images) + 1, sizeof *bundle->images);
    if (!bundle->images) return clt_fail_memory(json_array_size(images) * sizeof *bundle->images);
    for (; bundle->n < json_array_size(images); bundle->n++) CLT_TRY(parse_image(&bundle->images[bundle->n], json_array_get(images, bundle->n), bundle->n));
    return CLT_OK;
}

void clt_bundle_free(clt_bundle *bundle) {
    clt_free(bundle->images);
    json_decref(bundle->root);
    *bundle = (clt_bundle){0};
}

/* ---- loading ---- */

static clt_status read_file(const char *folder, const char *name, size_t most, void **bytes, size_t *length) {
    clt_text path = {0};
    clt_text_add(&path, "%s/%s", folder, name);
    clt_status status = path.status < 0 ? path.status : clt_file_read(path.data, most, bytes, length);
    clt_text_free(&path);
    return status;
}

/* A file that has the SHA-256 that it should have. */
static clt_status read_known(const char *folder, const char *name, const char *expected, size_t most, void **bytes, size_t *length) {
    char found[SHA256_TEXT];
    CLT_TRY(read_file(folder, name, most, bytes, length));
    CLT_TRY(sha256(*bytes, *length, found));
    return strcmp(found, expected) ? clt_fail(CLT_E_FORMAT, "%s: its SHA-256 is %s, expected %s", name, found, expected) : CLT_OK;
}

/* "HASH  manifest.json\n", which must be all that is there. */
static clt_status read_manifest(const char *folder, void **bytes, size_t *length) {
    char expected[SHA256_TEXT], wanted[SHA256_TEXT + sizeof MANIFEST + 2];
    void *line = NULL;
    size_t line_length;
    CLT_TRY(read_file(folder, MANIFEST, MOST_MANIFEST, bytes, length));
    CLT_TRY(sha256(*bytes, *length, expected));
    clt_status status = read_file(folder, MANIFEST ".sha256", sizeof wanted, &line, &line_length);
    snprintf(wanted, sizeof wanted, "%s  " MANIFEST "\n", expected);
    if (status == CLT_OK && (line_length != strlen(wanted) || memcmp(line, wanted, line_length)))
        status = clt_fail(CLT_E_FORMAT, MANIFEST ": its SHA-256 is %s, which is not what " MANIFEST ".sha256 says", expected);
    clt_free(line);
    return status;
}

static clt_status compare(const char *what, const char *is_for, const char *found) {
    char shown[2][CLT_SHOWN_TEXT];
    if (!strcmp(is_for, found)) return CLT_OK;
    return clt_fail(CLT_E_MISMATCH, "it is for %s '%s', but this is '%s'", what, clt_show(is_for, shown[0]), clt_show(found, shown[1]));
}

static clt_status check_target(const clt_device *device, const clt_bundle_image *image) {
    CLT_TRY(compare("kind", image->kind, "native"));
    CLT_TRY(compare("platform", image->platform, device->info.platform));
    CLT_TRY(compare("device", image->name, device->info.name));
    CLT_TRY(compare("driver", image->driver, device->info.driver));
    return compare("options", image->options, clt_build_options);
}

/* All kernels can be made, and have the arguments that they should have. */
static clt_status try_kernels(cl_program program, const clt_bundle_image *image) {
    size_t i;
    json_t *one;
    json_array_foreach (image->kernels, i, one) {
        cl_int error;
        cl_uint found = 0;
        const char *name = json_string_value(json_object_get(one, "name"));
        json_int_t expected = json_integer_value(json_object_get(one, "arguments"));
        cl_kernel kernel = clCreateKernel(program, name, &error);
        error = clt_cl_made(kernel, error);
        if (error != CL_SUCCESS) return clt_fail(CLT_E_FORMAT, "kernel %s cannot be made (OpenCL error %d)", name, error);
        error = clGetKernelInfo(kernel, CL_KERNEL_NUM_ARGS, sizeof found, &found, NULL);
        clReleaseKernel(kernel);
        if (error != CL_SUCCESS || found != expected) return clt_fail(CLT_E_FORMAT, "kernel %s has %u arguments, expected %lld", name, found, (long long)expected);
    }
    return CLT_OK;
}

static cl_int run_check_kernel(clt_device *device, cl_kernel kernel, cl_uint *value) {
    cl_int error;
    const size_t one = 1;
    cl_mem memory = clCreateBuffer(device->context, CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR, sizeof *value, value, &error);
    error = clt_cl_made(memory, error);
    if (error == CL_SUCCESS) error = clSetKernelArg(kernel, 0, sizeof memory, &memory);
    if (error == CL_SUCCESS) error = clEnqueueNDRangeKernel(device->queue, kernel, 1, NULL, &one, &one, 0, NULL, NULL);
    if (error == CL_SUCCESS) error = clEnqueueReadBuffer(device->queue, memory, CL_TRUE, 0, sizeof *value, value, 0, NULL, NULL);
    if (memory) clReleaseMemObject(memory);
    return error;
}

static clt_status run_check(clt_device *device, cl_program program, const char *key) {
    cl_int error;
    cl_uint value = 0;
    CLT_TRY(clt_cl_before_blocking(device, "checking an image of a bundle"));
    cl_kernel kernel = clCreateKernel(program, CHECK, &error);
    error = clt_cl_made(kernel, error);
    if (error == CL_SUCCESS) error = run_check_kernel(device, kernel, &value);
    if (kernel) clReleaseKernel(kernel);
    if (error != CL_SUCCESS) return clt_cl_fail(device, "running kernel " CHECK, error);
    if (value != check_value(key)) return clt_fail(CLT_E_FORMAT, "kernel " CHECK " gives %08x, expected %08x: it is of another source", value, check_value(key));
    return CLT_OK;
}

static clt_status load_image(clt_device *device, const char *folder, const clt_bundle_image *image, cl_program *program) {
    void *source = NULL, *binary = NULL;
    size_t length;
    clt_status status;
    CLT_TRY(check_target(device, image));
    CLT_TRY_GOTO(read_known(folder, image->source, image->source_sha256, MOST_SOURCE, &source, &length));
    CLT_TRY_GOTO(read_known(folder, image->file, image->sha256, CLT_MOST_BINARY, &binary, &length));
    *program = clt_program_from_binary(device, binary, length);
    CLT_TRY_GOTO(*program ? CLT_OK : clt_fail(CLT_E_FORMAT, "the driver does not take it"));
    CLT_TRY_GOTO(try_kernels(*program, image));
    status = run_check(device, *program, image->key);
fail:
    clt_free(source);
    clt_free(binary);
    return status;
}

static clt_status take_parts(clt_program *program, const clt_bundle_image *image) {
    size_t i;
    json_t *part;
    json_array_foreach (image->parts, i, part)
        CLT_TRY(clt_program_add_part(program, json_string_value(json_object_get(part, "module")), json_string_value(json_object_get(part, "kernel"))));
    return CLT_OK;
}

static clt_status take_image(clt_device *device, const char *folder, const clt_bundle *bundle, size_t index) {
    const clt_bundle_image *image = &bundle->images[index];
    clt_program *program = clt_calloc(1, sizeof *program);
    if (!program) return clt_fail_memory(sizeof *program);
    program->saved = true;
    clt_status status = load_image(device, folder, image, &program->program);
    if (status < 0) clt_fail_context(status, "image %zu: ", index);
    else status = take_parts(program, image);
    if (status == CLT_OK) return clt_program_adopt(device, program);
    clt_program_free(device, program);
    return status;
}

static void take_capabilities(clt_device *device, const clt_bundle *bundle) {
    for (int i = 0; i < CLT_CAP_COUNT_; i++) {
        json_t *known = json_object_get(bundle->capabilities, clt_capability_name((clt_capability)i));
        if (json_is_boolean(known)) device->capabilities[i] = json_is_true(known);
    }
}

static clt_status read_bundle(const char *folder, clt_bundle *bundle) {
    void *text = NULL;
    size_t length;
    clt_status status = read_manifest(folder, &text, &length);
    if (status >= 0) {
        status = clt_bundle_parse(bundle, text, length);
        if (status < 0) clt_fail_context(status, MANIFEST ": ");
    }
    clt_free(text);
    return status;
}

static clt_status load_all(clt_device *device, const char *folder, clt_bundle *bundle) {
    char common[CLT_HASH_TEXT];
    CLT_TRY(read_bundle(folder, bundle));
    hash_common(device, common);
    if (strcmp(bundle->sources, common) != 0)
        return clt_fail(CLT_E_MISMATCH, "it is of cltrain %.32s with other kernels than those of this one (%s): make it anew", bundle->library, clt_version());
    for (size_t i = 0; i < bundle->n; i++) CLT_TRY(take_image(device, folder, bundle, i));
    take_capabilities(device, bundle);
    return CLT_OK;
}

clt_status clt_bundle_load(clt_device *device) {
    clt_bundle bundle = {0};
    const char *folder = device->settings.bundle;
    if (!folder[0]) return CLT_OK;
    clt_status status = load_all(device, folder, &bundle);
    clt_bundle_free(&bundle);
    if (status < 0) clt_fail_context(status, "CLTRAIN_BUNDLE=%s: ", folder);
    if (status == CLT_OK || clt_compiles_nothing(device) || status == CLT_E_NO_MEMORY) return status;
    clt_log_message(CLT_LOG_WARNING, "%s; kernels that are missing are compiled", clt_error_detail());
    return CLT_OK;
}

/* ---- writing ---- */

clt_status clt_bundle_begin(clt_device *device) {
    if (!device) return clt_fail(CLT_E_INVALID, "clt_bundle_begin: device is NULL");
    if (device->n_programs) return clt_fail(CLT_E_STATE, "clt_bundle_begin: the device has built something before; call it first");
    device->keeps_sources = true;
    return CLT_OK;
}

typedef struct bundle_writer {
    clt_device *device;
    const char *folder;
    json_t *images;
} bundle_writer;

static clt_status write_file(const bundle_writer *w, const char *name, const void *bytes, size_t length) {
    clt_text path = {0};
    clt_text_add(&path, "%s/%s", w->folder, name);
    clt_status status = path.status < 0 ? path.status : clt_file_write(path.data, bytes, length);
    clt_text_free(&path);
    return status;
}

static clt_status add_kernel(clt_device *device, json_t *kernels, cl_program program, const char *name) {
    cl_int error;
    cl_uint arguments = 0;
    cl_kernel kernel = clCreateKernel(program, name, &error);
    error = clt_cl_made(kernel, error);
    if (error == CL_SUCCESS) error = clGetKernelInfo(kernel, CL_KERNEL_NUM_ARGS, sizeof arguments, &arguments, NULL);
    if (kernel) clReleaseKernel(kernel);
    if (error != CL_SUCCESS) return clt_cl_fail(device, "asking for a kernel's arguments", error);
    json_t *one = json_pack("{s:s, s:i}", "name", name, "arguments", (int)arguments);
    return json_array_append_new(kernels, one) < 0 ? clt_fail_memory(strlen(name)) : CLT_OK;
}

/* Their names come as "a;b;c". */
static clt_status list_kernels(clt_device *device, cl_program program, json_t *kernels) {
    size_t bytes = 0;
    cl_int error = clGetProgramInfo(program, CL_PROGRAM_KERNEL_NAMES, 0, NULL, &bytes);
    if (error != CL_SUCCESS) return clt_cl_fail(device, "asking for a program's kernels", error);
    if (bytes > MOST_SOURCE) return clt_fail(CLT_E_UNSUPPORTED, "%s (driver %s) says that names of kernels have %zu bytes", device->info.name, device->info.driver, bytes);
    char *names = clt_calloc(bytes + 1, 1);
    if (!names) return clt_fail_memory(bytes);
    error = clGetProgramInfo(program, CL_PROGRAM_KERNEL_NAMES, bytes, names, NULL);
    clt_status status = error == CL_SUCCESS ? CLT_OK : clt_cl_fail(device, "asking for a program's kernels", error);
    for (char *name = names, *next; *name && status == CLT_OK; name = next) {
        size_t length = strcspn(name, ";");
        next = name + length + (name[length] == ';');
        name[length] = 0;
        status = add_kernel(device, kernels, program, name);
    }
    clt_free(names);
    return status;
}

static clt_status list_parts(const clt_program *program, json_t *parts) {
    for (size_t i = 0; i < program->n_parts; i++) {
        json_t *one = json_pack("{s:s, s:s}", "module", program->parts[i].module, "kernel", program->parts[i].kernel);
        if (json_array_append_new(parts, one) < 0) return clt_fail_memory(sizeof *program->parts);
    }
    return CLT_OK;
}

/* The files of one image, and what the manifest tells of it. */
static clt_status write_image(bundle_writer *w, const clt_program *program) {
    clt_device *device = w->device;
    const clt_text *source = &program->source;
    char file[CLT_HASH_TEXT + 4], source_file[CLT_HASH_TEXT + 4], hash[SHA256_TEXT], source_hash[SHA256_TEXT];
    unsigned char *binary = NULL;
    size_t bytes = 0;
    json_t *kernels = json_array(), *parts = json_array();
    clt_status status = kernels && parts ? clt_program_binary(device, program->program, &binary, &bytes) : clt_fail_memory(sizeof *kernels);
    snprintf(file, sizeof file, "%s.bin", program->key); /* who writes another bundle there at the same time writes other files, or the same */
    snprintf(source_file, sizeof source_file, "%s.cl", program->key);
    if (status == CLT_OK) status = list_kernels(device, program->program, kernels);
    if (status == CLT_OK) status = list_parts(program, parts);
    if (status == CLT_OK) status = sha256(binary, bytes, hash);
    if (status == CLT_OK) status = sha256(source->data, source->length, source_hash);
    if (status == CLT_OK) status = write_file(w, file, binary, bytes);
    if (status == CLT_OK) status = write_file(w, source_file, source->data, source->length);
    clt_free(binary);
    if (status == CLT_OK) {
        json_t *image = json_pack("{s:s, s:s, s:s, s:s, s:s, s:{s:s, s:s, s:s, s:s, s:s}, s:O, s:O}", "file", file, "sha256", hash, "source", source_file, "source_sha256",
                                  source_hash, "key", program->key, "for", "kind", "native", "platform", device->info.platform, "device", device->info.name, "driver",
                                  device->info.driver, "options", clt_build_options, "kernels", kernels, "parts", parts);
        if (json_array_append_new(w->images, image) < 0) status = clt_fail_memory(bytes);
    }
    json_decref(kernels);
    json_decref(parts);
    return status;
}

/* Of the program that has run: a driver that compiles for the work-groups of launches, as PoCL does, has put that into its binary. */
static clt_status add_image(bundle_writer *w, const clt_program *program) {
    if (!program->source.data) return CLT_OK; /* of a bundle itself */
    CLT_TRY(run_check(w->device, program->program, program->key));
    return write_image(w, program);
}

static clt_status write_manifest(bundle_writer *w) {
    char common[CLT_HASH_TEXT], hash[SHA256_TEXT], line[SHA256_TEXT + sizeof MANIFEST + 2];
    clt_text text = {0};
    json_t *capabilities = json_object();
    clt_status status = CLT_OK;
    hash_common(w->device, common);
    for (int i = 0; i < CLT_CAP_COUNT_ && status == CLT_OK; i++)
        if (w->device->capabilities[i] >= 0)
            status = clt_json_set(capabilities, clt_capability_name((clt_capability)i), json_boolean(clt_device_has(w->device, (clt_capability)i)));
    json_t *root = json_pack("{s:s, s:s, s:s, s:o, s:O}", "format", FORMAT, "library", clt_version(), "sources", common, "capabilities", capabilities, "images", w->images);
    if (status == CLT_OK && !root) status = clt_fail_memory(sizeof *root);
    if (status == CLT_OK) status = clt_json_dump(root, JSON_INDENT(1), &text);
    json_decref(root);
    if (status == CLT_OK) status = sha256(text.data, text.length, hash);
    if (status == CLT_OK) status = write_file(w, MANIFEST, text.data, text.length);
    if (status == CLT_OK) {
        snprintf(line, sizeof line, "%s  " MANIFEST "\n", hash);
        status = write_file(w, MANIFEST ".sha256", line, strlen(line));
    }
    clt_text_free(&text);
    return status;
}

clt_status clt_bundle_write(clt_device *device, const char *folder) {
    if (!device || !folder || !*folder) return clt_fail(CLT_E_INVALID, "clt_bundle_write: device or folder is NULL or empty");
    if (!device->keeps_sources) return clt_fail(CLT_E_STATE, "clt_bundle_write: clt_bundle_begin was not called");
    if (!device->n_programs) return clt_fail(CLT_E_STATE, "clt_bundle_write: nothing was built on the device; do once what is to be done later");
    CLT_TRY(clt_file_make_folder(folder));
    bundle_writer w = {.device = device, .folder = folder, .images = json_array()};
    clt_status status = w.images ? CLT_OK : clt_fail_memory(sizeof *w.images);
    for (size_t i = 0; i < device->n_programs && status == CLT_OK; i++) status = add_image(&w, device->programs[i]);
    if (status == CLT_OK) status = write_manifest(&w);
    json_decref(w.images);
    return status;
}
