/*
 * Protocol buffers as they lie in a file (https://protobuf.dev/programming-guides/encoding), read where they are: nothing is
 * copied, nothing is nested that the caller does not enter, and nothing past the end is looked at.
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

#endif
