/*
 * Messages of Protocol Buffers, written field by field. Errors stick in the text's status.
 */
#ifndef CLT_OBSERVE_PROTOBUF_H
#define CLT_OBSERVE_PROTOBUF_H

#include "runtime/base/base.h"

void clt_proto_varint(clt_text *to, int field, uint64_t value); /* int32, int64 (negative ones as two's complement), uint32, enum, bool */
void clt_proto_double(clt_text *to, int field, double value);
void clt_proto_float(clt_text *to, int field, float value);
void clt_proto_bytes(clt_text *to, int field, const void *bytes, size_t length);
void clt_proto_text(clt_text *to, int field, const char *text);

/* A packed list of n doubles. */
void clt_proto_doubles(clt_text *to, int field, const double *values, size_t n);

/* What is written between the two is a message of its own, in that field; `place` is what the first gave. */
size_t clt_proto_begin(clt_text *to, int field);
void clt_proto_end(clt_text *to, size_t place);

#endif
