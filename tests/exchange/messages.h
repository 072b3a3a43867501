/* Protocol buffers, written for tests. */
#ifndef TESTS_EXCHANGE_MESSAGES_H
#define TESTS_EXCHANGE_MESSAGES_H

#include <string.h>

#include "runtime/exchange/onnx/wire.h"

typedef struct message {
    unsigned char bytes[8192];
    size_t length;
} message;

static inline void put_varint(message *m, uint64_t value) {
    do {
        m->bytes[m->length++] = (unsigned char)((value & 0x7f) | (value > 0x7f ? 0x80 : 0));
        value >>= 7;
    } while (value);
}

static inline void put_number(message *m, unsigned field, uint64_t value) {
    put_varint(m, (uint64_t)field << 3 | CLT_WIRE_VARINT);
    put_varint(m, value);
}

static inline void put_bytes(message *m, unsigned field, const void *bytes, size_t length) {
    put_varint(m, (uint64_t)field << 3 | CLT_WIRE_BYTES);
    put_varint(m, length);
    memcpy(m->bytes + m->length, bytes, length);
    m->length += length;
}

static inline void put_text(message *m, unsigned field, const char *text) {
    put_bytes(m, field, text, strlen(text));
}

static inline void put_message(message *m, unsigned field, const message *inner) {
    put_bytes(m, field, inner->bytes, inner->length);
}

static inline void put_float(message *m, unsigned field, float value) {
    put_varint(m, (uint64_t)field << 3 | CLT_WIRE_32);
    memcpy(m->bytes + m->length, &value, sizeof value);
    m->length += sizeof value;
}

static inline clt_wire wire_of(const message *m) {
    return (clt_wire){m->bytes, m->bytes + m->length};
}

#endif
