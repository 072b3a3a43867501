#include "comm/transport/frame.h"

#include <string.h>

#include "runtime/base/bytes.h"

static const unsigned char hello_magic[8] = "CLTRAIN\n", answer_magic[8] = "CLTREPLY";
enum { FRAME_MAGIC = 0xc17a };

void clt_frame_encode(const clt_frame *frame, unsigned char bytes[CLT_HEADER_BYTES]) {
    clt_bytes_put(bytes, FRAME_MAGIC, 2);
    clt_bytes_put(bytes + 2, frame->kind, 2);
    clt_bytes_put(bytes + 4, frame->type, 4);
    clt_bytes_put(bytes + 8, frame->length, 4);
    clt_bytes_put(bytes + 12, frame->ticket, 4);
    clt_bytes_put(bytes + 16, frame->slot, 8);
    clt_bytes_put(bytes + 24, frame->offset, 8);
    clt_bytes_put(bytes + 32, frame->total, 8);
}

bool clt_frame_decode(clt_frame *frame, const unsigned char bytes[CLT_HEADER_BYTES]) {
    uint64_t kind = clt_bytes_get(bytes + 2, 2);
    if (clt_bytes_get(bytes, 2) != FRAME_MAGIC || kind < CLT_FRAME_EAGER || kind > CLT_FRAME_DATA) return false;
    *frame = (clt_frame){
        .kind = (clt_frame_kind)kind,
        .type = (uint32_t)clt_bytes_get(bytes + 4, 4),
        .length = (uint32_t)clt_bytes_get(bytes + 8, 4),
        .ticket = (uint32_t)clt_bytes_get(bytes + 12, 4),
        .slot = clt_bytes_get(bytes + 16, 8),
        .offset = clt_bytes_get(bytes + 24, 8),
        .total = clt_bytes_get(bytes + 32, 8),
    };
    return true;
}

void clt_hello_encode(const clt_hello *hello, unsigned char bytes[CLT_HELLO_BYTES]) {
    const uint32_t numbers[] = {hello->version, hello->size,    hello->from,
                                hello->to,      hello->channel, hello->channels};
    memcpy(bytes, hello_magic, 8);
    for (size_t i = 0; i < 6; i++) clt_bytes_put(bytes + 8 + 4 * i, numbers[i], 4);
    clt_bytes_put(bytes + 32, (uint64_t)hello->generation, 8);
    memcpy(bytes + 40, hello->job, 32);
}

bool clt_hello_begins(const unsigned char *bytes, size_t n) {
    return memcmp(bytes, hello_magic, CLT_MIN(n, 8)) == 0;
}

bool clt_hello_decode(clt_hello *hello, const unsigned char bytes[CLT_HELLO_BYTES]) {
    if (!clt_hello_begins(bytes, 8)) return false;
    uint32_t *numbers[] = {&hello->version, &hello->size,    &hello->from,
                           &hello->to,      &hello->channel, &hello->channels};
    for (size_t i = 0; i < 6; i++) *numbers[i] = (uint32_t)clt_bytes_get(bytes + 8 + 4 * i, 4);
    hello->generation = (int64_t)clt_bytes_get(bytes + 32, 8);
    memcpy(hello->job, bytes + 40, 32);
    hello->job[32] = '\0';
    return true;
}

void clt_answer_encode(clt_answer answer, unsigned char bytes[CLT_ANSWER_BYTES]) {
    memcpy(bytes, answer_magic, 8);
    clt_bytes_put(bytes + 8, answer, 8);
}

bool clt_answer_decode(clt_answer *answer, const unsigned char bytes[CLT_ANSWER_BYTES]) {
    uint64_t value = clt_bytes_get(bytes + 8, 8);
    if (memcmp(bytes, answer_magic, 8) != 0 || value >= CLT_ANSWER_COUNT) return false;
    *answer = (clt_answer)value;
    return true;
}

const char *clt_answer_reason(clt_answer answer) {
    switch (answer) {
    case CLT_WELCOME:
        return "welcome";
    case CLT_OTHER_VERSION:
        return "it speaks another version of the protocol";
    case CLT_OTHER_JOB:
        return "it belongs to another job";
    case CLT_OTHER_GENERATION:
        return "it belongs to another generation of the job";
    case CLT_OTHER_SIZE:
        return "its job has another number of ranks or channels";
    case CLT_WRONG_RANK:
        return "no rank of that number connects here";
    case CLT_WRONG_CHANNEL:
        return "there is no such channel";
    case CLT_DUPLICATE:
        return "that rank is connected already";
    case CLT_COMPLETE:
        return "all ranks are connected already";
    case CLT_ANSWER_COUNT:
        break;
    }
    return "unknown";
}
