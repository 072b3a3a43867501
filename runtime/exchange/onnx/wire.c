#include "runtime/exchange/onnx/wire.h"

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
