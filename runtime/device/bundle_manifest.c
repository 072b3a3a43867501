/* The manifest of a bundle: what is in it, and how it is read. */
#include <ctype.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <string.h>

#include "runtime/base/file.h"
#include "runtime/device/bundle.h"

enum { MOST_CLT_BUNDLE_MANIFEST = 1 << 24, MOST_IMAGES = 512, MOST_NAME = 64 };

clt_status clt_bundle_sha256(const void *bytes, size_t length, char text[CLT_SHA256_TEXT]) {
    unsigned char digest[32];
    unsigned int size = sizeof digest;
    if (!EVP_Digest(bytes, length, digest, &size, EVP_sha256(), NULL)) return clt_fail(CLT_E_SYSTEM, "OpenSSL computes no SHA-256");
    for (int i = 0; i < 32; i++) snprintf(text + 2 * i, 3, "%02x", digest[i]);
    return CLT_OK;
}

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

static clt_status parse_il(clt_bundle_il *il, const json_t *object, const char *of) {
    json_error_t error;
    json_t *found = json_object_get(object, "il");
    if (!found) return CLT_OK;
    if (json_unpack_ex(found, &error, 0, "{s:s, s:s}", "file", &il->file, "sha256", &il->sha256) < 0) return clt_fail(CLT_E_FORMAT, "il of %s: %s", of, error.text);
    if (!is_file(il->file) || !is_hex(il->sha256, CLT_SHA256_TEXT - 1)) return clt_fail(CLT_E_FORMAT, "il of %s: expected a file of the bundle's folder, and its SHA-256", of);
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
    if (!is_hex(image->sha256, CLT_SHA256_TEXT - 1) || !is_hex(image->source_sha256, CLT_SHA256_TEXT - 1) || !is_hex(image->key, CLT_HASH_TEXT - 1))
        return clt_fail(CLT_E_FORMAT, "image %zu: expected hashes in hexadecimal", index);
    if (!json_is_array(image->kernels) || !json_is_array(image->parts)) return clt_fail(CLT_E_FORMAT, "image %zu: expected arrays of kernels and parts", index);
    CLT_TRY(parse_il(&image->il, object, image->file));
    CLT_TRY(check_kernels(image));
    return check_parts(image);
}

/* Of what a later library tries out nothing is known here. */
static clt_status parse_experiment(clt_bundle *bundle, const json_t *object, size_t index) {
    json_error_t error;
    const char *name;
    clt_bundle_experiment e = {.capability = CLT_CAP_COUNT_};
    if (json_unpack_ex((json_t *)(uintptr_t)object, &error, 0, "{s:s, s:s, s:s}", "capability", &name, "source", &e.source, "source_sha256", &e.source_sha256) < 0)
        return clt_fail(CLT_E_FORMAT, "experiment %zu: %s", index, error.text);
    if (!is_file(e.source) || !is_hex(e.source_sha256, CLT_SHA256_TEXT - 1))
        return clt_fail(CLT_E_FORMAT, "experiment %zu: expected a file of the bundle's folder, and its SHA-256", index);
    CLT_TRY(parse_il(&e.il, object, e.source));
    for (int c = 0; c < CLT_CAP_COUNT_; c++)
        if (!strcmp(name, clt_capability_name((clt_capability)c))) e.capability = (clt_capability)c;
    for (size_t i = 0; i < bundle->n_experiments; i++)
        if (bundle->experiments[i].capability == e.capability) return clt_fail(CLT_E_FORMAT, "experiment %zu: there is another of the same capability", index);
    if (e.capability < CLT_CAP_COUNT_) bundle->experiments[bundle->n_experiments++] = e;
    return CLT_OK;
}

static clt_status parse_experiments(clt_bundle *bundle) {
    size_t i;
    json_t *all = json_object_get(bundle->root, "experiments"), *one;
    if (all && !json_is_array(all)) return clt_fail(CLT_E_FORMAT, "expected an array of experiments");
    json_array_foreach (all, i, one) CLT_TRY(parse_experiment(bundle, one, i));
    return CLT_OK;
}

clt_status clt_bundle_parse(clt_bundle *bundle, const char *text, size_t length) {
    json_error_t error;
    const char *format;
    json_t *images;
    bundle->root = json_loadb(text, length, JSON_REJECT_DUPLICATES, &error);
    if (!bundle->root) return clt_fail(CLT_E_FORMAT, "line %d: %s", error.line, error.text);
    if (json_unpack_ex(bundle->root, &error, 0, "{s:s}", "format", &format) < 0) return clt_fail(CLT_E_FORMAT, "%s", error.text);
    if (strcmp(format, CLT_BUNDLE_FORMAT) != 0) {
        char shown[CLT_SHOWN_TEXT];
        return clt_fail(CLT_E_FORMAT, "its format is '%s': expected '" CLT_BUNDLE_FORMAT "'", clt_show(format, shown));
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
    return parse_experiments(bundle);
}

void clt_bundle_free(clt_bundle *bundle) {
    clt_free(bundle->images);
    json_decref(bundle->root);
    *bundle = (clt_bundle){0};
}

static clt_status read_file(const char *folder, const char *name, size_t most, void **bytes, size_t *length) {
    clt_text path = {0};
    clt_text_add(&path, "%s/%s", folder, name);
    clt_status status = path.status < 0 ? path.status : clt_file_read(path.data, most, bytes, length);
    clt_text_free(&path);
    return status;
}

/* A file that has the SHA-256 that it should have. */
clt_status clt_bundle_read_file(const char *folder, const char *name, const char *expected, size_t most, void **bytes, size_t *length) {
    char found[CLT_SHA256_TEXT];
    CLT_TRY(read_file(folder, name, most, bytes, length));
    CLT_TRY(clt_bundle_sha256(*bytes, *length, found));
    return strcmp(found, expected) ? clt_fail(CLT_E_FORMAT, "%s: its SHA-256 is %s, expected %s", name, found, expected) : CLT_OK;
}

/* "HASH  manifest.json\n", which must be all that is there. */
static clt_status read_manifest(const char *folder, void **bytes, size_t *length) {
    char expected[CLT_SHA256_TEXT], wanted[CLT_SHA256_TEXT + sizeof CLT_BUNDLE_MANIFEST + 2];
    void *line = NULL;
    size_t line_length;
    CLT_TRY(read_file(folder, CLT_BUNDLE_MANIFEST, MOST_CLT_BUNDLE_MANIFEST, bytes, length));
    CLT_TRY(clt_bundle_sha256(*bytes, *length, expected));
    clt_status status = read_file(folder, CLT_BUNDLE_MANIFEST ".sha256", sizeof wanted, &line, &line_length);
    snprintf(wanted, sizeof wanted, "%s  " CLT_BUNDLE_MANIFEST "\n", expected);
    if (status == CLT_OK && (line_length != strlen(wanted) || memcmp(line, wanted, line_length)))
        status = clt_fail(CLT_E_FORMAT, CLT_BUNDLE_MANIFEST ": its SHA-256 is %s, which is not what " CLT_BUNDLE_MANIFEST ".sha256 says", expected);
    clt_free(line);
    return status;
}

clt_status clt_bundle_read(const char *folder, clt_bundle *bundle) {
    void *text = NULL;
    size_t length;
    clt_status status = read_manifest(folder, &text, &length);
    if (status >= 0) {
        status = clt_bundle_parse(bundle, text, length);
        if (status < 0) clt_fail_context(status, CLT_BUNDLE_MANIFEST ": ");
    }
    clt_free(text);
    return status;
}
