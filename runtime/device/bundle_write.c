/* What was compiled on a device becomes a bundle. */
#include <stdio.h>
#include <string.h>

#include <cltrain/experimental/bundle.h>
#include <cltrain/version.h>

#include "runtime/base/file.h"
#include "runtime/base/json.h"
#include "runtime/device/bundle.h"

enum { MOST_NAMES = 1 << 26 };

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

clt_status clt_bundle_write_file(const char *folder, const char *name, const void *bytes, size_t length) {
    clt_text path = {0};
    clt_text_add(&path, "%s/%s", folder, name);
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
    if (bytes > MOST_NAMES) return clt_fail(CLT_E_UNSUPPORTED, "%s (driver %s) says that names of kernels have %zu bytes", device->info.name, device->info.driver, bytes);
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
    char file[CLT_HASH_TEXT + 4], source_file[CLT_HASH_TEXT + 4], hash[CLT_SHA256_TEXT], source_hash[CLT_SHA256_TEXT];
    unsigned char *binary = NULL;
    size_t bytes = 0;
    json_t *kernels = json_array(), *parts = json_array();
    clt_status status = kernels && parts ? clt_program_binary(device, program->program, &binary, &bytes) : clt_fail_memory(sizeof *kernels);
    snprintf(file, sizeof file, "%s.bin", program->key); /* who writes another bundle there at the same time writes other files, or the same */
    snprintf(source_file, sizeof source_file, "%s.cl", program->key);
    if (status == CLT_OK) status = list_kernels(device, program->program, kernels);
    if (status == CLT_OK) status = list_parts(program, parts);
    if (status == CLT_OK) status = clt_bundle_sha256(binary, bytes, hash);
    if (status == CLT_OK) status = clt_bundle_sha256(source->data, source->length, source_hash);
    if (status == CLT_OK) status = clt_bundle_write_file(w->folder, file, binary, bytes);
    if (status == CLT_OK) status = clt_bundle_write_file(w->folder, source_file, source->data, source->length);
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
    CLT_TRY(clt_bundle_check(w->device, program->program, program->key));
    return write_image(w, program);
}

clt_status clt_bundle_write_manifest(const char *folder, const json_t *root) {
    char hash[CLT_SHA256_TEXT], line[CLT_SHA256_TEXT + sizeof CLT_BUNDLE_MANIFEST + 2];
    clt_text text = {0};
    clt_status status = clt_json_dump(root, JSON_INDENT(1), &text);
    if (status == CLT_OK) status = clt_bundle_sha256(text.data, text.length, hash);
    if (status == CLT_OK) status = clt_bundle_write_file(folder, CLT_BUNDLE_MANIFEST, text.data, text.length);
    if (status == CLT_OK) {
        snprintf(line, sizeof line, "%s  " CLT_BUNDLE_MANIFEST "\n", hash);
        status = clt_bundle_write_file(folder, CLT_BUNDLE_MANIFEST ".sha256", line, strlen(line));
    }
    clt_text_free(&text);
    return status;
}

/* The source of an experiment that was made, for another device to make it. */
static clt_status write_experiment(const bundle_writer *w, clt_capability capability, json_t *experiments) {
    char file[64], hash[CLT_SHA256_TEXT];
    clt_text source = {0};
    snprintf(file, sizeof file, "capability-%s.cl", clt_capability_name(capability));
    clt_status status = clt_capability_source(w->device, capability, &source);
    if (status == CLT_OK) status = clt_bundle_sha256(source.data, source.length, hash);
    if (status == CLT_OK) status = clt_bundle_write_file(w->folder, file, source.data, source.length);
    clt_text_free(&source);
    if (status < 0) return status;
    json_t *one = json_pack("{s:s, s:s, s:s}", "capability", clt_capability_name(capability), "source", file, "source_sha256", hash);
    return json_array_append_new(experiments, one) < 0 ? clt_fail_memory(sizeof file) : CLT_OK;
}

static clt_status write_manifest(const bundle_writer *w) {
    char common[CLT_HASH_TEXT];
    json_t *capabilities = json_object(), *experiments = json_array();
    clt_status status = CLT_OK;
    clt_bundle_hash_common(w->device, common);
    for (int i = 0; i < CLT_CAP_COUNT_ && status == CLT_OK; i++) {
        clt_capability capability = (clt_capability)i;
        if (w->device->capabilities[i] >= 0) status = clt_json_set(capabilities, clt_capability_name(capability), json_boolean(clt_device_has(w->device, capability)));
        if (status == CLT_OK && clt_capability_is_tried(w->device, capability)) status = write_experiment(w, capability, experiments);
    }
    json_t *root = json_pack("{s:s, s:s, s:s, s:o, s:O, s:o}", "format", CLT_BUNDLE_FORMAT, "library", clt_version(), "sources", common, "capabilities", capabilities, "images",
                             w->images, "experiments", experiments);
    if (status == CLT_OK && !root) status = clt_fail_memory(sizeof *root);
    if (status == CLT_OK) status = clt_bundle_write_manifest(w->folder, root);
    json_decref(root);
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

/* ---- portable images ---- */

typedef struct il_adder {
    const char *folder, *command;
    clt_bundle_compile *compile;
    void *user;
} il_adder;

/* Compiles a source of the bundle; the file gets its name by what is in it, so that what a manifest names is never replaced. */
static clt_status make_il(const il_adder *a, const char *source, char file[128], char hash[CLT_SHA256_TEXT]) {
    void *bytes = NULL;
    size_t length = 0;
    clt_text from = {0}, to = {0};
    clt_text_add(&from, "%s/%s", a->folder, source);
    clt_text_add(&to, "%s/%s.new", a->folder, source);
    clt_status status = from.status < 0 ? from.status : to.status;
    if (status == CLT_OK) status = a->compile(from.data, to.data, a->user);
    if (status == CLT_OK) status = clt_file_read(to.data, CLT_MOST_BINARY, &bytes, &length);
    if (status == CLT_OK && !length) status = clt_fail(CLT_E_BUILD, "%s: the compiler has written nothing", source);
    if (status == CLT_OK) status = clt_bundle_sha256(bytes, length, hash);
    if (status == CLT_OK) {
        snprintf(file, 128, "%.*s.%.16s.spv", (int)CLT_MIN(strcspn(source, "."), 80), source, hash);
        status = clt_bundle_write_file(a->folder, file, bytes, length);
    }
    if (to.data) remove(to.data);
    clt_free(bytes);
    clt_text_free(&from);
    clt_text_free(&to);
    return status;
}

/* `of`: what has the source; gets the member "il". */
static clt_status add_il(const il_adder *a, json_t *of, const char *source, const char *source_sha256) {
    char file[128], hash[CLT_SHA256_TEXT];
    void *bytes = NULL;
    size_t length;
    clt_status status = clt_bundle_read_file(a->folder, source, source_sha256, CLT_MOST_BINARY, &bytes, &length);
    clt_free(bytes);
    CLT_TRY(status);
    CLT_TRY(make_il(a, source, file, hash));
    json_t *il = json_pack("{s:s, s:s, s:s}", "file", file, "sha256", hash, "command", a->command);
    return json_object_set_new(of, "il", il) < 0 ? clt_fail_memory(sizeof file) : CLT_OK;
}

clt_status clt_bundle_add_il(const char *folder, const char *command, clt_bundle_compile *compile, void *user) {
    if (!folder || !*folder || !command || !compile) return clt_fail(CLT_E_INVALID, "clt_bundle_add_il: an argument is NULL or empty");
    const il_adder a = {folder, command, compile, user};
    clt_bundle bundle = {0};
    size_t i;
    json_t *one;
    clt_status status = clt_bundle_read(folder, &bundle);
    json_array_foreach (json_object_get(bundle.root, "images"), i, one)
        if (status == CLT_OK) status = add_il(&a, one, bundle.images[i].source, bundle.images[i].source_sha256);
    json_array_foreach (json_object_get(bundle.root, "experiments"), i, one)
        if (status == CLT_OK) status = add_il(&a, one, json_string_value(json_object_get(one, "source")), json_string_value(json_object_get(one, "source_sha256")));
    if (status == CLT_OK) status = clt_bundle_write_manifest(folder, bundle.root);
    clt_bundle_free(&bundle);
    return status < 0 ? clt_fail_context(status, "%s: ", folder) : status;
}
