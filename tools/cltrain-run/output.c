#include "output.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LINE_BYTES = 65536, READ_BYTES = 65536 };

static bool broken;

bool output_is_broken(void) {
    return broken;
}

/* Our own output may be non-blocking, if whoever gave it to us has made it so. */
static void write_all(int to, const char *bytes, size_t n) {
    while (n > 0) {
        ssize_t done = write(to, bytes, n);
        if (done < 0 && errno == EINTR) continue;
        if (done < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
            poll(&(struct pollfd){to, POLLOUT, 0}, 1, 1000);
            continue;
        }
        if (done <= 0) {
            broken |= errno == EPIPE && to == 1;
            return;
        }
        bytes += done;
        n -= (size_t)done;
    }
}

bool output_begin(output *o, int from, int to, int rank, int log) {
    static const int colours[] = {36, 33, 35, 32, 34, 31};
    *o = (output){.from = from, .to = to, .log = log, .line = malloc(LINE_BYTES)};
    const char *plain = getenv("NO_COLOR");
    bool coloured = isatty(to) && !(plain && plain[0]);
    if (rank >= 0 && coloured) snprintf(o->prefix, sizeof o->prefix, "\033[%dm[rank %d]\033[0m ", colours[rank % 6], rank);
    else if (rank >= 0) snprintf(o->prefix, sizeof o->prefix, "[rank %d] ", rank);
    return o->line;
}

/* One write, so that lines of several processes do not mix: below PIPE_BUF it is atomic. */
static void write_line(output *o, const char *end, size_t end_bytes) {
    static char whole[LINE_BYTES + sizeof o->prefix + 1];
    size_t prefix = strlen(o->prefix);
    memcpy(whole, o->prefix, prefix);
    memcpy(whole + prefix, o->line, o->length);
    memcpy(whole + prefix + o->length, end, end_bytes);
    write_all(o->to, whole, prefix + o->length + end_bytes);
    o->length = 0;
}

/* A line longer than the room for it is broken where that ends. */
static void take_bytes(output *o, const char *bytes, size_t n) {
    while (n > 0) {
        const char *end = memchr(bytes, '\n', n);
        size_t part = end ? (size_t)(end - bytes) : n, room = LINE_BYTES - o->length;
        if (part > room) part = room, end = NULL;
        memcpy(o->line + o->length, bytes, part);
        o->length += part;
        bytes += part;
        n -= part;
        if (end) bytes++, n--;
        if (end || o->length == LINE_BYTES) write_line(o, "\n", 1);
    }
}

bool output_move(output *o) {
    static char bytes[READ_BYTES];
    ssize_t n = read(o->from, bytes, sizeof bytes);
    if (n < 0) return errno == EINTR || errno == EAGAIN || errno == EWOULDBLOCK;
    if (n == 0) return false;
    if (o->log >= 0) write_all(o->log, bytes, (size_t)n);
    take_bytes(o, bytes, (size_t)n);
    return true;
}

void output_end(output *o) {
    if (o->length) write_line(o, "\n", 1);
    if (o->from >= 0) close(o->from);
    free(o->line);
    o->from = -1;
    o->line = NULL;
}
