#include "runtime/observe/protobuf.h"

#include <string.h>

#include "runtime/base/bytes.h"

enum { WIRE_VARINT = 0, WIRE_64 = 1, WIRE_BYTES = 2, WIRE_32 = 5, LONGEST_VARINT = 10 };

static size_t encode(uint64_t value, unsigned char out[LONGEST_VARINT]) {
    size_t length = 0;
    for (; value >= 0x80; value >>= 7) out[length++] = (unsigned char)(value | 0x80);
    out[length++] = (unsigned char)value;
    return length;
}

static void add_number(clt_text *to, uint64_t value) {
    unsigned char bytes[LONGEST_VARINT];
    clt_text_add_bytes(to, (const char *)bytes, encode(value, bytes));
}

static void add_key(clt_text *to, int field, int wire) {
    add_number(to, (uint64_t)field << 3 | (uint64_t)wire);
}

static void add_fixed(clt_text *to, uint64_t value, int n) {
    unsigned char bytes[8];
    clt_bytes_put(bytes, value, n);
    clt_text_add_bytes(to, (const char *)bytes, (size_t)n);
}

static void add_double(clt_text *to, double value) {
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    add_fixed(to, bits, 8);
}

void clt_proto_varint(clt_text *to, int field, uint64_t value) {
    add_key(to, field, WIRE_VARINT);
    add_number(to, value);
}

void clt_proto_double(clt_text *to, int field, double value) {
    add_key(to, field, WIRE_64);
    add_double(to, value);
}

void clt_proto_float(clt_text *to, int field, float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    add_key(to, field, WIRE_32);
    add_fixed(to, bits, 4);
}

void clt_proto_bytes(clt_text *to, int field, const void *bytes, size_t length) {
    add_key(to, field, WIRE_BYTES);
    add_number(to, length);
    clt_text_add_bytes(to, bytes, length);
}

void clt_proto_text(clt_text *to, int field, const char *text) {
    clt_proto_bytes(to, field, text, strlen(text));
}

void clt_proto_doubles(clt_text *to, int field, const double *values, size_t n) {
    size_t place = clt_proto_begin(to, field);
    for (size_t i = 0; i < n; i++) add_double(to, values[i]);
    clt_proto_end(to, place);
}

size_t clt_proto_begin(clt_text *to, int field) {
    add_key(to, field, WIRE_BYTES);
    return to->length;
}

/* The length, known by now, moves in before the message. */
void clt_proto_end(clt_text *to, size_t place) {
    unsigned char bytes[LONGEST_VARINT];
    size_t message = to->length - place, length = encode(message, bytes);
    clt_text_add_bytes(to, (const char *)bytes, length);
    if (to->status < 0) return;
    memmove(to->data + place + length, to->data + place, message);
    memcpy(to->data + place, bytes, length);
}
