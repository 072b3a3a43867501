/*
 * Protocol buffers (https://protobuf.dev/programming-guides/encoding). They are read where they lie in a file: nothing is
 * copied, nothing is nested that the caller does not enter, and nothing past the end is looked at. They are written by appending fields to a text.
 */
#ifndef CLT_EXCHANGE_ONNX_WIRE_H
#define CLT_EXCHANGE_ONNX_WIRE_H

#include "runtime/base/base.h"

/* What is left of a message, or of a packed list. */
typedef struct clt_wire {
    const unsigned char *at, *end;
} clt_wire;

typedef enum clt_wire_type {
    CLT_WIRE_VARINT = 0,
    CLT_WIRE_64 = 1,    /* eight bytes */
    CLT_WIRE_BYTES = 2, /* texts, messages, packed lists */
    CLT_WIRE_32 = 5     /* four bytes */
} clt_wire_type;

typedef struct clt_wire_field {
    uint32_t number; /* from 1 */
    clt_wire_type type;
    uint64_t value; /* of all types but bytes */
    clt_wire bytes;
} clt_wire_field;

/* 1: a field; 0: the end; -1: malformed, as groups are, which are no longer written. */
int clt_wire_next(clt_wire *wire, clt_wire_field *field);

/* The next number of a packed list, in the same terms; `type` is not CLT_WIRE_BYTES. */
int clt_wire_value(clt_wire *wire, clt_wire_type type, uint64_t *value);

static inline size_t clt_wire_length(clt_wire wire) {
    return (size_t)(wire.end - wire.at);
}

/* A field behind those that a message has. Errors stick in the text. */
void clt_wire_put_int(clt_text *message, uint32_t number, int64_t value);
void clt_wire_put_float(clt_text *message, uint32_t number, float value);
void clt_wire_put_text(clt_text *message, uint32_t number, const char *text);
void clt_wire_put_ints(clt_text *message, uint32_t number, const int64_t *values, size_t n);
/* A message as a field of another one; `inner` is freed. */
void clt_wire_put_message(clt_text *message, uint32_t number, clt_text *inner);
/* What is in front of a field of as many bytes, which follow. */
void clt_wire_put_front(clt_text *message, uint32_t number, uint64_t length);

#endif
