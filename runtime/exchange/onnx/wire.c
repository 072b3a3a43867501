#include "runtime/exchange/onnx/wire.h"

#include <string.h>

#include "runtime/base/bytes.h"

/* Seven bits a byte, the lowest first; the highest bit of a byte says that another follows. */
static int read_varint(clt_wire *wire, uint64_t *value) {
    *value = 0;
    for (int shift = 0; shift < 70 && wire->at < wire->end; shift += 7) {
        unsigned char byte = *wire->at++;
        *value |= (uint64_t)(byte & 0x7f) << shift; /* of the tenth byte one bit has room */
        if (byte < 0x80) return 1;
    }
    return -1;
}

static int read_fixed(clt_wire *wire, int bytes, uint64_t *value) {
    if (clt_wire_length(*wire) < (size_t)bytes) return -1;
    *value = clt_bytes_get(wire->at, bytes);
    wire->at += bytes;
    return 1;
}

int clt_wire_value(clt_wire *wire, clt_wire_type type, uint64_t *value) {
    if (wire->at == wire->end) return 0;
    switch (type) {
    case CLT_WIRE_VARINT: return read_varint(wire, value);
    case CLT_WIRE_64: return read_fixed(wire, 8, value);
    case CLT_WIRE_32: return read_fixed(wire, 4, value);
    default: return -1;
    }
}

int clt_wire_next(clt_wire *wire, clt_wire_field *field) {
    uint64_t key, length;
    if (wire->at == wire->end) return 0;
    if (read_varint(wire, &key) < 0 || key >> 3 == 0 || key > UINT32_MAX) return -1;
    field->number = (uint32_t)(key >> 3);
    field->type = (clt_wire_type)(key & 7);
    if (field->type != CLT_WIRE_BYTES) return clt_wire_value(wire, field->type, &field->value) == 1 ? 1 : -1;
    if (read_varint(wire, &length) < 0 || length > clt_wire_length(*wire)) return -1;
    field->bytes = (clt_wire){wire->at, wire->at + length};
    wire->at += length;
    return 1;
}

/* ---- writing ---- */

static void put_varint(clt_text *to, uint64_t value) {
    char bytes[10];
    size_t n = 0;
    for (; value >= 0x80; value >>= 7) bytes[n++] = (char)(value | 0x80);
    bytes[n++] = (char)value;
    clt_text_add_bytes(to, bytes, n);
}

static void put_key(clt_text *to, uint32_t number, clt_wire_type type) {
    put_varint(to, (uint64_t)number << 3 | type);
}

void clt_wire_put_int(clt_text *message, uint32_t number, int64_t value) {
    put_key(message, number, CLT_WIRE_VARINT);
    put_varint(message, (uint64_t)value);
}

void clt_wire_put_float(clt_text *message, uint32_t number, float value) {
    unsigned char bytes[sizeof value];
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    clt_bytes_put(bytes, bits, sizeof bytes);
    put_key(message, number, CLT_WIRE_32);
    clt_text_add_bytes(message, (const char *)bytes, sizeof bytes);
}

void clt_wire_put_front(clt_text *message, uint32_t number, uint64_t length) {
    put_key(message, number, CLT_WIRE_BYTES);
    put_varint(message, length);
}

void clt_wire_put_text(clt_text *message, uint32_t number, const char *text) {
    clt_wire_put_front(message, number, strlen(text));
    clt_text_add_bytes(message, text, strlen(text));
}

void clt_wire_put_message(clt_text *message, uint32_t number, clt_text *inner) {
    clt_wire_put_front(message, number, inner->length);
    if (inner->length) clt_text_add_bytes(message, inner->data, inner->length);
    if (message->status == CLT_OK) message->status = inner->status;
    clt_text_free(inner);
}

void clt_wire_put_ints(clt_text *message, uint32_t number, const int64_t *values, size_t n) {
    clt_text packed = {0};
    for (size_t i = 0; i < n; i++) put_varint(&packed, (uint64_t)values[i]);
    clt_wire_put_message(message, number, &packed);
}
