/*
 * The files of a folder of images: FOLDER/CLASS/.../NAME.jpg
 */
#ifndef CLT_DATA_IMAGES_LISTING_H
#define CLT_DATA_IMAGES_LISTING_H

#include "runtime/base/base.h"
#include "runtime/data/preprocessing.h"

typedef struct clt_listed {
    size_t path; /* where it begins, in `paths` */
    int32_t label; /* the index of its class */
} clt_listed;

typedef struct clt_listing {
    char *root;
    clt_names classes; /* by the order of their bytes, or those that were asked for */
    clt_text paths;    /* one after the other, each with its NUL: from the root */
    clt_listed *files;
    size_t n, capacity;
    int64_t ignored; /* files that are no images, by their names */
} clt_listing;

/* Reads the folder, with all its folders. `flat`: all files are of one class, and lie where they like. With `like`, classes are these, in their order, and there must be no others.
 * Errors name the folder or the file: CLT_E_IO, CLT_E_FORMAT for no class, a class without an image and a link that leads out of the folder,
 * CLT_E_MISMATCH for a class that is not in `like`. Starts as {0}; to be freed also after an error. */
clt_status clt_listing_read(clt_listing *listing, const char *root, const clt_names *like, bool flat);
void clt_listing_free(clt_listing *listing);

#endif
