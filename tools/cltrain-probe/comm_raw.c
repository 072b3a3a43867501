#include "comm_raw.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tools/common/message.h"

enum { PIECE = 256 * 1024, PATIENCE_MS = 60000, MOST_RANKS = 1024 };

struct raw_ring {
    int out, in;
    char *sent, *received; /* one piece each, sent again and again: nothing here costs time but TCP */
};

/* IPv4 address and port, as they are in a sockaddr_in. */
typedef struct place {
    uint8_t bytes[6];
} place;

/* The own address of the way to the master; loopback if there is none. */
static struct in_addr own_address(void) {
    struct in_addr own = {.s_addr = htonl(INADDR_LOOPBACK)};
    const char *master = getenv("MASTER_ADDR");
    struct addrinfo hints = {.ai_family = AF_INET, .ai_socktype = SOCK_DGRAM}, *found;
    if (!master || getaddrinfo(master, "9", &hints, &found)) return own;
    int s = socket(AF_INET, SOCK_DGRAM, 0);
    struct sockaddr_in name;
    socklen_t length = sizeof name;
    if (s >= 0 && connect(s, found->ai_addr, found->ai_addrlen) == 0 &&
        getsockname(s, (struct sockaddr *)&name, &length) == 0)
        own = name.sin_addr;
    if (s >= 0) close(s);
    freeaddrinfo(found);
    return own;
}

static int listen_somewhere(place *here) {
    struct sockaddr_in name = {.sin_family = AF_INET, .sin_addr = own_address()};
    socklen_t length = sizeof name;
    int s = socket(AF_INET, SOCK_STREAM, 0);
    if (s < 0 || bind(s, (struct sockaddr *)&name, sizeof name) || listen(s, 1) ||
        getsockname(s, (struct sockaddr *)&name, &length)) {
        if (s >= 0) close(s);
        return -1;
    }
    memcpy(here->bytes, &name.sin_addr, 4);
    memcpy(here->bytes + 4, &name.sin_port, 2);
    return s;
}

static int connect_to(const place *there) {
    struct sockaddr_in name = {.sin_family = AF_INET};
    memcpy(&name.sin_addr, there->bytes, 4);
    memcpy(&name.sin_port, there->bytes + 4, 2);
    int s = socket(AF_INET, SOCK_STREAM, 0);
    if (s >= 0 && connect(s, (struct sockaddr *)&name, sizeof name)) {
        close(s);
        return -1;
    }
    return s;
}

static int accept_one(int listener) {
    struct pollfd wait = {.fd = listener, .events = POLLIN};
    return poll(&wait, 1, PATIENCE_MS) == 1 ? accept(listener, NULL, NULL) : -1;
}

static bool make_fast(int s) {
    int yes = 1;
    return s >= 0 && setsockopt(s, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes) == 0 && fcntl(s, F_SETFL, O_NONBLOCK) == 0;
}

static int connect_ring(raw_ring *ring, clt_comm *comm, int listener, const place *here) {
    static place places[MOST_RANKS];
    static size_t counts[MOST_RANKS];
    int n = clt_comm_size(comm), rank = clt_comm_rank(comm);
    for (int r = 0; r < n; r++) counts[r] = sizeof *places;
    places[rank] = *here;
    clt_status status = clt_comm_all_gather(comm, places, counts, CLT_U8, NULL);
    if (status < 0) return library_error(status, "telling addresses");
    ring->out = connect_to(&places[(rank + 1) % n]);
    ring->in = accept_one(listener);
    if (!make_fast(ring->out) || !make_fast(ring->in)) return run_error("no plain connection to the next rank: %s", strerror(errno));
    return 0;
}

int raw_ring_open(raw_ring **out, clt_comm *comm) {
    place here;
    raw_ring *ring = *out = calloc(1, sizeof *ring);
    if (!ring) return run_error("out of memory");
    ring->out = ring->in = -1;
    ring->sent = calloc(1, PIECE);
    ring->received = malloc(PIECE);
    int listener = listen_somewhere(&here);
    int code = !ring->sent || !ring->received ? run_error("out of memory")
               : listener < 0                ? run_error("cannot listen: %s", strerror(errno))
                                             : connect_ring(ring, comm, listener, &here);
    if (listener >= 0) close(listener);
    if (code) raw_ring_close(ring), *out = NULL;
    return code;
}

/* One call of send or recv; *left goes down. False: the connection is gone. */
static bool move(ssize_t moved, size_t *left) {
    if (moved > 0) *left -= (size_t)moved;
    return moved > 0 || (moved < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR));
}

static size_t least(size_t a, size_t b) {
    return a < b ? a : b;
}

int raw_ring_exchange(raw_ring *ring, size_t bytes) {
    size_t to_send = bytes, to_receive = bytes;
    while (to_send || to_receive) {
        struct pollfd wait[2] = {{.fd = to_send ? ring->out : -1, .events = POLLOUT},
                                 {.fd = to_receive ? ring->in : -1, .events = POLLIN}};
        size_t before = to_send + to_receive;
        if (to_receive && !move(recv(ring->in, ring->received, least(to_receive, PIECE), MSG_DONTWAIT), &to_receive))
            return run_error("a plain connection was closed: %s", strerror(errno));
        if (to_send && !move(send(ring->out, ring->sent, least(to_send, PIECE), MSG_NOSIGNAL | MSG_DONTWAIT), &to_send))
            return run_error("a plain connection was closed: %s", strerror(errno));
        if (to_send + to_receive == before && poll(wait, 2, PATIENCE_MS) == 0) return run_error("a plain connection stands still");
    }
    return 0;
}

void raw_ring_close(raw_ring *ring) {
    if (!ring) return;
    if (ring->out >= 0) close(ring->out);
    if (ring->in >= 0) close(ring->in);
    free(ring->sent);
    free(ring->received);
    free(ring);
}
