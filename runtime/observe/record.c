#include "runtime/observe/observe.h"

#include "runtime/base/bytes.h"

enum { LENGTH_BYTES = 8, CRC_BYTES = 4, HEADER_BYTES = LENGTH_BYTES + CRC_BYTES };

/* By four bits at a time: a table that can be written down. */
uint32_t clt_crc32c(const void *bytes, size_t length) {
    static const uint32_t table[16] = {0x00000000, 0x105ec76f, 0x20bd8ede, 0x30e349b1, 0x417b1dbc, 0x5125dad3, 0x61c69362, 0x7198540d,
                                       0x82f63b78, 0x92a8fc17, 0xa24bb5a6, 0xb21572c9, 0xc38d26c4, 0xd3d3e1ab, 0xe330a81a, 0xf36e6f75};
    const unsigned char *next = bytes;
    uint32_t crc = ~UINT32_C(0);
    for (size_t i = 0; i < length; i++) {
        crc ^= next[i];
        crc = crc >> 4 ^ table[crc & 15];
        crc = crc >> 4 ^ table[crc & 15];
    }
    return ~crc;
}

/* A CRC that is itself covered by another one would be a weak one: so the format changes its bits. */
static uint32_t masked_crc(const void *bytes, size_t length) {
    uint32_t crc = clt_crc32c(bytes, length);
    return (crc >> 15 | crc << 17) + UINT32_C(0xa282ead8);
}

void clt_record_begin(clt_text *record) {
    static const char header[HEADER_BYTES];
    record->length = 0;
    clt_text_add_bytes(record, header, sizeof header);
}

void clt_record_end(clt_text *record) {
    unsigned char crc[CRC_BYTES];
    if (record->status < 0) return;
    unsigned char *header = (unsigned char *)record->data;
    size_t length = record->length - HEADER_BYTES;
    clt_bytes_put(header, length, LENGTH_BYTES);
    clt_bytes_put(header + LENGTH_BYTES, masked_crc(header, LENGTH_BYTES), CRC_BYTES);
    clt_bytes_put(crc, masked_crc(header + HEADER_BYTES, length), CRC_BYTES);
    clt_text_add_bytes(record, (const char *)crc, CRC_BYTES);
}
