/*
 * From the bytes of a file to the field of a sample, as clt_image_folder_options say: decoded, cut out, resized, changed at random.
 */
#ifndef CLT_DATA_IMAGES_PICTURE_H
#define CLT_DATA_IMAGES_PICTURE_H

#include "runtime/base/base.h"
#include "runtime/data/data.h"

enum { CLT_PICTURE_MOST_BYTES = 1 << 30 }; /* of a file */

/* With the defaults filled in. CLT_E_INVALID for what is out of range, in the name of a function; CLT_E_UNSUPPORTED if the library reads no images. */
clt_status clt_picture_resolve(clt_image_folder_options *resolved, const clt_image_folder_options *given, const char *function);

/* u8 [3, size, size], or f32 with options.floats. What is random is drawn from the seed, the epoch and the sample. */
clt_status clt_picture_make(const clt_image_folder_options *options, const void *bytes, size_t length, const clt_sample *sample, void *field);

/* The fields of a source of pictures. */
void clt_picture_describe(const clt_image_folder_options *options, clt_dataset_source *source);

/* What is known of such a data set: its classes' names, if there are any, and the normalization. */
clt_status clt_picture_note(clt_dataset *dataset, const clt_names *classes);

#endif
