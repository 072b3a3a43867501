/*
 * Bundles (cltrain/experimental/bundle.h): programs from a folder, in the place of a compiler.
 */
#ifndef CLT_DEVICE_BUNDLE_H
#define CLT_DEVICE_BUNDLE_H

#include <jansson.h>

#include "runtime/device/cl.h"

#define CLT_BUNDLE_FORMAT "cltrain bundle 1"
#define CLT_BUNDLE_MANIFEST "manifest.json"
enum { CLT_SHA256_TEXT = 65 };

/* A file in SPIR-V; NULL: there is none. */
typedef struct clt_bundle_il {
    const char *file, *sha256;
} clt_bundle_il;

/* Of the manifest, whose texts are `root`'s. */
typedef struct clt_bundle_image {
    const char *file, *sha256, *source, *source_sha256, *key; /* key: of the source */
    clt_bundle_il il; /* for devices of any kind */
    const char *kind, *platform, *name, *driver, *options;
    json_t *kernels, *parts; /* arrays */
} clt_bundle_image;

/* By which another device finds out what it has. */
typedef struct clt_bundle_experiment {
    clt_capability capability;
    const char *source, *source_sha256;
    clt_bundle_il il;
} clt_bundle_experiment;

typedef struct clt_bundle {
    json_t *root, *capabilities;
    clt_bundle_experiment experiments[CLT_CAP_COUNT_];
    size_t n_experiments;
    const char *library, *sources;
    clt_bundle_image *images;
    size_t n;
} clt_bundle;

/* CLT_E_FORMAT with what is wrong; *bundle is to be freed, also then. */
clt_status clt_bundle_parse(clt_bundle *bundle, const char *text, size_t length);
void clt_bundle_free(clt_bundle *bundle);

/* Its manifest of a folder, which must have the checksum that is beside it; as clt_bundle_parse. */
clt_status clt_bundle_read(const char *folder, clt_bundle *bundle);
/* A file that has the SHA-256 that it should have. */
clt_status clt_bundle_read_file(const char *folder, const char *name, const char *expected, size_t most, void **bytes, size_t *length);
/* Writes the manifest, and its checksum. */
clt_status clt_bundle_write_manifest(const char *folder, const json_t *root);
clt_status clt_bundle_write_file(const char *folder, const char *name, const void *bytes, size_t length);
clt_status clt_bundle_sha256(const void *bytes, size_t length, char text[CLT_SHA256_TEXT]);
/* What all images have of the library beside their own source: build options and prelude. */
void clt_bundle_hash_common(const clt_device *device, char hash[CLT_HASH_TEXT]);
/* Runs the kernel that tells which source an image is of. */
clt_status clt_bundle_check(clt_device *device, cl_program program, const char *key);

/* A kernel that tells which source it is of, by that one's key. */
void clt_bundle_add_check(clt_text *source, const char *key);

/* Loads what the setting `bundle` names: the device has its programs then. Where it cannot be believed that is an error, or, if there is a compiler, a
 * warning. */
clt_status clt_bundle_load(clt_device *device);

#endif
