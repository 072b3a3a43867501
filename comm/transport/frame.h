/*
 * What goes over the wire: frames of a header of 40 bytes, little-endian, and a payload; before the
 * first of them, who connected says hello and gets an answer.
 */
#ifndef CLT_COMM_TRANSPORT_FRAME_H
#define CLT_COMM_TRANSPORT_FRAME_H

#include "runtime/base/base.h"

enum { CLT_HEADER_BYTES = 40, CLT_HELLO_BYTES = 72, CLT_ANSWER_BYTES = 16, CLT_REASON_BYTES = 1000 };

typedef enum clt_frame_kind {
    CLT_FRAME_EAGER = 1, /* control: a whole small message */
    CLT_FRAME_READY,     /* control: the receiver of a large message waits for `total` bytes of `type` */
    CLT_FRAME_OFFER,     /* control: its sender has waited for that for long */
    CLT_FRAME_CREDIT,    /* control: `total` bytes of small messages were taken */
    CLT_FRAME_BEAT,      /* control: still there */
    CLT_FRAME_FAIL,      /* control: the group ended with status -`type`, for rank `slot` - 1 if that is lost; why */
    CLT_FRAME_GOODBYE,   /* control: nothing more will come */
    CLT_FRAME_BARRIER,   /* control: to rank 0: connected with all; from rank 0: all are */
    CLT_FRAME_DATA       /* data: a part of a large message */
} clt_frame_kind;

typedef struct clt_frame {
    clt_frame_kind kind;
    uint32_t type, length; /* of the payload */
    uint32_t ticket;       /* the receiver's number for a large message: told when ready, repeated in its data */
    uint64_t slot, offset, total;
} clt_frame;

void clt_frame_encode(const clt_frame *frame, unsigned char bytes[CLT_HEADER_BYTES]);
/* false: no such header. */
bool clt_frame_decode(clt_frame *frame, const unsigned char bytes[CLT_HEADER_BYTES]);

/* channel 0: control. */
typedef struct clt_hello {
    uint32_t version, size, from, to, channel, channels;
    int64_t generation;
    char job[CLT_HASH_TEXT]; /* hash of the job's name */
} clt_hello;

void clt_hello_encode(const clt_hello *hello, unsigned char bytes[CLT_HELLO_BYTES]);
/* Whether so many bytes may be the start of a hello. */
bool clt_hello_begins(const unsigned char *bytes, size_t n);
bool clt_hello_decode(clt_hello *hello, const unsigned char bytes[CLT_HELLO_BYTES]);

typedef enum clt_answer {
    CLT_WELCOME = 0,
    CLT_OTHER_VERSION,
    CLT_OTHER_JOB,
    CLT_OTHER_GENERATION,
    CLT_OTHER_SIZE,
    CLT_WRONG_RANK,
    CLT_WRONG_CHANNEL,
    CLT_DUPLICATE,
    CLT_COMPLETE,
    CLT_ANSWER_COUNT
} clt_answer;

void clt_answer_encode(clt_answer answer, unsigned char bytes[CLT_ANSWER_BYTES]);
bool clt_answer_decode(clt_answer *answer, const unsigned char bytes[CLT_ANSWER_BYTES]);
/* In words. */
const char *clt_answer_reason(clt_answer answer);

#endif
