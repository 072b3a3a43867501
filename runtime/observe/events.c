#include "runtime/observe/observe.h"

#include <string.h>

#include "runtime/base/json.h"

clt_status clt_event_check_name(const char *what, const char *name) {
    if (!name || !name[0]) return clt_fail(CLT_E_INVALID, "%s is %s", what, name ? "empty" : "NULL");
    return clt_json_check_text(name);
}

clt_status clt_event_check(const char *call, const clt_events *events, const char *tag) {
    if (!events) return clt_fail(CLT_E_INVALID, "%s: events is NULL", call);
    clt_status status = clt_event_check_name("the tag", tag);
    return status < 0 ? clt_fail_context(status, "%s: ", call) : CLT_OK;
}

void clt_event_open(clt_events *events) {
    clt_record_begin(&events->record);
    clt_proto_double(&events->record, EVENT_WALL_TIME, clt_wall_seconds());
}

clt_status clt_event_write(clt_events *events) {
    clt_record_end(&events->record);
    clt_status status = events->record.status;
    if (status < 0) clt_text_free(&events->record); /* and with it the error, for the next call */
    return status < 0 ? status : clt_appender_write(events->file, events->record.data, events->record.length);
}

void clt_event_begin(clt_events *events, int64_t step) {
    clt_event_open(events);
    clt_proto_varint(&events->record, EVENT_STEP, (uint64_t)step);
    events->summary = clt_proto_begin(&events->record, EVENT_SUMMARY);
}

clt_status clt_event_end(clt_events *events) {
    clt_proto_end(&events->record, events->summary);
    return clt_event_write(events);
}

void clt_event_value_begin(clt_events *events, const char *tag) {
    events->value = clt_proto_begin(&events->record, SUMMARY_VALUE);
    clt_proto_text(&events->record, VALUE_TAG, tag);
}

void clt_event_value_end(clt_events *events) {
    clt_proto_end(&events->record, events->value);
}

void clt_event_plugin(clt_events *events, const char *name, const clt_text *content) {
    if (content->status < 0) events->record.status = content->status;
    size_t metadata = clt_proto_begin(&events->record, VALUE_METADATA);
    size_t plugin = clt_proto_begin(&events->record, METADATA_PLUGIN);
    clt_proto_text(&events->record, PLUGIN_NAME, name);
    clt_proto_bytes(&events->record, PLUGIN_CONTENT, clt_text_data(content), content->length);
    clt_proto_end(&events->record, plugin);
    clt_proto_end(&events->record, metadata);
}

void clt_event_add_scalar(clt_events *events, const char *tag, float value) {
    clt_event_value_begin(events, tag);
    clt_proto_float(&events->record, VALUE_SIMPLE, value);
    clt_event_value_end(events);
}

clt_status clt_events_open(clt_events **events, const char *folder) {
    if (!events || !folder) return clt_fail(CLT_E_INVALID, "clt_events_open: an argument is NULL");
    clt_events *e = clt_calloc(1, sizeof *e);
    if (!e) return clt_fail_memory(sizeof *e);
    clt_status status;
    CLT_TRY_GOTO(clt_appender_open(&e->file, folder, "events.out.tfevents"));
    clt_event_open(e);
    clt_proto_text(&e->record, EVENT_FILE_VERSION, "brain.Event:2");
    CLT_TRY_GOTO(clt_event_write(e));
    *events = e;
    return CLT_OK;
fail:
    clt_appender_close(e->file);
    clt_text_free(&e->record);
    clt_free(e);
    return status;
}

clt_status clt_events_scalar(clt_events *events, const char *tag, int64_t step, double value) {
    CLT_TRY(clt_event_check("clt_events_scalar", events, tag));
    clt_event_begin(events, step);
    clt_event_add_scalar(events, tag, (float)value);
    return clt_event_end(events);
}

static clt_status check_text(const char *text) {
    if (!text) return clt_fail(CLT_E_INVALID, "clt_events_text: text is NULL");
    clt_status status = clt_json_check_text(text);
    return status < 0 ? clt_fail_context(status, "clt_events_text: ") : CLT_OK;
}

clt_status clt_events_text(clt_events *events, const char *tag, int64_t step, const char *text) {
    CLT_TRY(clt_event_check("clt_events_text", events, tag));
    CLT_TRY(check_text(text));
    clt_event_begin(events, step);
    clt_event_value_begin(events, tag);
    size_t tensor = clt_proto_begin(&events->record, VALUE_TENSOR); /* of no dimensions */
    clt_proto_varint(&events->record, TENSOR_DTYPE, DTYPE_STRING);
    clt_proto_bytes(&events->record, TENSOR_SHAPE, "", 0);
    clt_proto_text(&events->record, TENSOR_STRINGS, text);
    clt_proto_end(&events->record, tensor);
    clt_event_plugin(events, "text", &(clt_text){0});
    clt_event_value_end(events);
    return clt_event_end(events);
}

static clt_status check_image(const uint8_t *pixels, int height, int width, int channels) {
    enum { MOST_BYTES = 1 << 30 };
    size_t row, all;
    if (!pixels) return clt_fail(CLT_E_INVALID, "clt_events_image: pixels is NULL");
    if (channels != 1 && channels != 3) return clt_fail(CLT_E_INVALID, "clt_events_image: %d channels; expected 1 or 3", channels);
    bool fits = height > 0 && width > 0 && clt_mul_size((size_t)width, (size_t)channels, &row);
    fits = fits && clt_mul_size(row + 1, (size_t)height, &all) && all <= MOST_BYTES;
    if (fits) return CLT_OK;
    return clt_fail(CLT_E_RANGE, "clt_events_image: an image of %d x %d pixels; expected 1 or more, and less than 1 GiB", width, height);
}

static void add_image(clt_events *events, const char *tag, const clt_text *png, int height, int width, int channels) {
    clt_event_value_begin(events, tag);
    size_t image = clt_proto_begin(&events->record, VALUE_IMAGE);
    clt_proto_varint(&events->record, IMAGE_HEIGHT, (uint64_t)height);
    clt_proto_varint(&events->record, IMAGE_WIDTH, (uint64_t)width);
    clt_proto_varint(&events->record, IMAGE_COLORSPACE, (uint64_t)channels);
    clt_proto_bytes(&events->record, IMAGE_ENCODED, png->data, png->length);
    clt_proto_end(&events->record, image);
    clt_event_value_end(events);
}

clt_status clt_events_image(clt_events *events, const char *tag, int64_t step, const uint8_t *pixels, int height, int width, int channels) {
    CLT_TRY(clt_event_check("clt_events_image", events, tag));
    CLT_TRY(check_image(pixels, height, width, channels));
    clt_text png = {0};
    clt_status status = clt_png_encode(&png, pixels, height, width, channels);
    if (status == CLT_OK) {
        clt_event_begin(events, step);
        add_image(events, tag, &png, height, width, channels);
        status = clt_event_end(events);
    }
    clt_text_free(&png);
    return status;
}

clt_status clt_events_flush(clt_events *events) {
    if (!events) return clt_fail(CLT_E_INVALID, "clt_events_flush: events is NULL");
    return clt_appender_sync(events->file);
}

clt_status clt_events_close(clt_events *events) {
    if (!events) return CLT_OK;
    clt_status status = clt_appender_close(events->file);
    clt_text_free(&events->record);
    clt_free(events);
    return status;
}
