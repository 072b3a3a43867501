/*
 * What the files of this room share: event files by their layers, from records up to what is in them.
 */
#ifndef CLT_OBSERVE_OBSERVE_H
#define CLT_OBSERVE_OBSERVE_H

#include <cltrain/events.h>

#include "runtime/base/append.h"
#include "runtime/base/base.h"
#include "runtime/observe/protobuf.h"

/* ---- record.c: TFRecord's framing ---- */

uint32_t clt_crc32c(const void *bytes, size_t length); /* Castagnoli's polynomial */

/* Data added between the two become a record: u64 length, u32 masked CRC of that, the data, u32 masked CRC of them. */
void clt_record_begin(clt_text *record);
void clt_record_end(clt_text *record);

/* ---- events.c ---- */

struct clt_events {
    clt_appender *file;
    clt_text record;       /* being made; its memory is kept */
    size_t summary, value; /* where these messages begin in it */
};

/* What is to be UTF-8, and not empty; `what` names it. */
clt_status clt_event_check_name(const char *what, const char *name);

/* Of what each call that adds something takes. */
clt_status clt_event_check(const char *call, const clt_events *events, const char *tag);

/* An Event of any other kind. */
void clt_event_open(clt_events *events);
clt_status clt_event_write(clt_events *events);

/* An Event with a Summary, that with values between the two: the second writes it, or gives the error that stuck. After a begin
 * there must be an end. */
void clt_event_begin(clt_events *events, int64_t step);
clt_status clt_event_end(clt_events *events);

/* A Summary.Value of that tag; its other fields are added between the two. */
void clt_event_value_begin(clt_events *events, const char *tag);
void clt_event_value_end(clt_events *events);

/* The field of metadata that says which plugin shows a value, and what it is to know; an error that stuck in that sticks in the event. */
void clt_event_plugin(clt_events *events, const char *name, const clt_text *content);

void clt_event_add_scalar(clt_events *events, const char *tag, float value);

/* ---- png.c ---- */

/* Adds a PNG file of rows of u8 [height, width, channels], 1 or 3 channels; sizes are as clt_events_image takes them. */
clt_status clt_png_encode(clt_text *png, const uint8_t *pixels, int height, int width, int channels);

/* ---- numbers of TensorFlow's messages ---- */

enum { EVENT_WALL_TIME = 1, EVENT_STEP = 2, EVENT_FILE_VERSION = 3, EVENT_GRAPH = 4, EVENT_SUMMARY = 5, SUMMARY_VALUE = 1 };
enum { VALUE_TAG = 1, VALUE_SIMPLE = 2, VALUE_IMAGE = 4, VALUE_HISTOGRAM = 5, VALUE_TENSOR = 8, VALUE_METADATA = 9 };
enum { METADATA_PLUGIN = 1, PLUGIN_NAME = 1, PLUGIN_CONTENT = 2 };
enum { IMAGE_HEIGHT = 1, IMAGE_WIDTH = 2, IMAGE_COLORSPACE = 3, IMAGE_ENCODED = 4 };
enum { HISTOGRAM_MIN = 1, HISTOGRAM_MAX = 2, HISTOGRAM_NUM = 3, HISTOGRAM_SUM = 4, HISTOGRAM_SQUARES = 5 };
enum { HISTOGRAM_LIMITS = 6, HISTOGRAM_BUCKETS = 7 };
enum { TENSOR_DTYPE = 1, TENSOR_SHAPE = 2, TENSOR_CONTENT = 4, TENSOR_STRINGS = 8, SHAPE_DIM = 2, DIM_SIZE = 1, DTYPE_FLOAT = 1, DTYPE_STRING = 7 };

#endif
