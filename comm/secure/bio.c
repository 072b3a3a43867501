/*
 * What OpenSSL reads from and writes to. OpenSSL's own BIO for sockets uses write(2), which raises
 * SIGPIPE; this one goes through the clt_socket, and gathers records, so that several go out, and come
 * in, with one call of the system.
 */
#include "comm/secure/socket.h"

#include <string.h>

/* Makes room at the end by moving what is there to the start. */
static void close_up(clt_stream *stream) {
    memmove(stream->data, stream->data + stream->start, stream->end - stream->start);
    stream->end -= stream->start;
    stream->start = 0;
}

static int write_bio(BIO *bio, const char *data, size_t bytes, size_t *written) {
    clt_socket *socket = BIO_get_data(bio);
    clt_stream *out = &socket->out;
    BIO_clear_retry_flags(bio);
    if (!out->data) {
        struct iovec piece = {(void *)(uintptr_t)data, bytes};
        if (!clt_socket_send_raw(socket, &piece, 1, written)) return 0;
    } else {
        if (CLT_STREAM_BYTES - out->end < bytes) {
            if (!clt_socket_flush(socket)) return 0;
            close_up(out);
        }
        *written = CLT_MIN(bytes, CLT_STREAM_BYTES - out->end);
        memcpy(out->data + out->end, data, *written);
        out->end += *written;
    }
    if (*written == 0) BIO_set_retry_write(bio);
    return *written > 0;
}

static int read_bio(BIO *bio, char *data, size_t bytes, size_t *read) {
    clt_socket *socket = BIO_get_data(bio);
    clt_stream *in = &socket->in;
    BIO_clear_retry_flags(bio);
    *read = 0;
    if (!in->data) {
        if (!clt_socket_receive_raw(socket, data, bytes, read)) return 0;
    } else {
        if (in->start == in->end) {
            in->start = in->end = 0;
            if (!clt_socket_receive_raw(socket, in->data, CLT_STREAM_BYTES, &in->end)) return 0;
        }
        *read = CLT_MIN(bytes, in->end - in->start);
        memcpy(data, in->data + in->start, *read);
        in->start += *read;
    }
    if (*read == 0) BIO_set_retry_read(bio);
    return *read > 0;
}

static long control_bio(BIO *bio, int command, long number, void *pointer) {
    (void)bio, (void)number, (void)pointer;
    return command == BIO_CTRL_FLUSH;
}

BIO_METHOD *clt_bio_method(void) {
    int type = BIO_get_new_index();
    BIO_METHOD *method = type == -1 ? NULL : BIO_meth_new(type | BIO_TYPE_SOURCE_SINK, "clt_socket");
    if (!method) return NULL;
    if (BIO_meth_set_write_ex(method, write_bio) && BIO_meth_set_read_ex(method, read_bio) &&
        BIO_meth_set_ctrl(method, control_bio))
        return method;
    BIO_meth_free(method);
    return NULL;
}
