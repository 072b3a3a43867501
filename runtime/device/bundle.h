/*
 * Bundles (cltrain/experimental/bundle.h): programs from a folder, in the place of a compiler.
 */
#ifndef CLT_DEVICE_BUNDLE_H
#define CLT_DEVICE_BUNDLE_H

#include <jansson.h>

#include "runtime/device/cl.h"

/* Of the manifest, whose texts are `root`'s. */
typedef struct clt_bundle_image {
    const char *file, *sha256, *source, *source_sha256, *key; /* key: of the source */
    const char *kind, *platform, *name, *driver, *options;
    json_t *kernels, *parts; /* arrays */
} clt_bundle_image;

typedef struct clt_bundle {
    json_t *root, *capabilities;
    const char *library, *sources;
    clt_bundle_image *images;
    size_t n;
} clt_bundle;

/* CLT_E_FORMAT with what is wrong; *bundle is to be freed, also then. */
clt_status clt_bundle_parse(clt_bundle *bundle, const char *text, size_t length);
void clt_bundle_free(clt_bundle *bundle);

/* A kernel that tells which source it is of, by that one's key. */
void clt_bundle_add_check(clt_text *source, const char *key);

/* Loads what the setting `bundle` names: the device has its programs then. Where it cannot be believed that is an error, or, if there is a compiler, a
 * warning. */
clt_status clt_bundle_load(clt_device *device);

#endif
