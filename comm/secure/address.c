#define _GNU_SOURCE /* NI_*, SOCK_CLOEXEC, ifaddrs */
#include "comm/secure/parts.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "runtime/base/number.h"

enum { BACKLOG = 1024, ANY_PORT_OF_ROUTE = 9 };

void clt_address_text(const struct sockaddr *address, socklen_t bytes, char text[64]) {
    char host[NI_MAXHOST], port[NI_MAXSERV];
    strcpy(text, "?");
    if (getnameinfo(address, bytes, host, sizeof host, port, sizeof port,
                    NI_NUMERICHOST | NI_NUMERICSERV))
        return;
    if (strlen(host) + strlen(port) + 4 > 64) return;
    snprintf(text, 64, address->sa_family == AF_INET6 ? "[%.50s]:%.6s" : "%.50s:%.6s", host, port);
}

static bool read_port(const char *text, unsigned *port) {
    uint64_t number;
    if (!clt_number_whole(text, 65535, &number) || number == 0) return false;
    *port = (unsigned)number;
    return true;
}

static bool is_port(const char *text) {
    unsigned port;
    return read_port(text, &port);
}

/* HOST, HOST:PORT, [HOST]:PORT, or an IPv6 address alone, which has no port. */
static clt_status split(const char *text, char host[CLT_HOST_BYTES], const char **port) {
    const char *colon = strrchr(text, ':'), *start = text, *end = colon ? colon : text + strlen(text);
    *port = colon ? colon + 1 : NULL;
    if (text[0] == '[') {
        const char *bracket = strchr(text, ']');
        if (!bracket || (bracket[1] && bracket[1] != ':'))
            return clt_fail(CLT_E_INVALID, "%.200s: no address", text);
        start = text + 1, end = bracket;
        *port = bracket[1] ? bracket + 2 : NULL;
    } else if (colon && strchr(text, ':') != colon) {
        end = text + strlen(text);
        *port = NULL;
    }
    size_t length = (size_t)(end - start);
    if (length == 0 || length >= CLT_HOST_BYTES) return clt_fail(CLT_E_INVALID, "%.200s: no address", text);
    if (*port && !is_port(*port))
        return clt_fail(CLT_E_INVALID, "%.200s: no port between 1 and 65535", text);
    memcpy(host, start, length);
    host[length] = '\0';
    return CLT_OK;
}

clt_status clt_resolve(const char *host_and_port, double deadline, struct sockaddr_storage *address, socklen_t *bytes) {
    char host[CLT_HOST_BYTES];
    const char *port;
    CLT_TRY(split(host_and_port, host, &port));
    if (!port) return clt_fail(CLT_E_INVALID, "%.200s: no port after the host", host_and_port);
    return clt_look_up(host, port, deadline, address, bytes);
}

static void set_port(struct sockaddr_storage *address, unsigned port) {
    if (address->ss_family == AF_INET6)
        ((struct sockaddr_in6 *)address)->sin6_port = htons((uint16_t)port);
    else ((struct sockaddr_in *)address)->sin_port = htons((uint16_t)port);
}

/* Which address of this host packets to another leave from: a datagram socket is told so without
 * sending one. */
static clt_status address_towards(const char *towards, struct sockaddr_storage *own, socklen_t *bytes) {
    char host[CLT_HOST_BYTES];
    const char *port;
    struct sockaddr_storage other;
    CLT_TRY(split(towards, host, &port));
    CLT_TRY(clt_look_up(host, port, clt_seconds() + CLT_LOOK_UP_SECONDS, &other, bytes));
    if (!port) set_port(&other, ANY_PORT_OF_ROUTE);
    int probe = socket(other.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (probe < 0) return clt_fail(CLT_E_SYSTEM, "no socket: %s", strerror(errno));
    clt_status status = CLT_OK;
    socklen_t room = sizeof *own;
    if (connect(probe, (struct sockaddr *)&other, *bytes) ||
        getsockname(probe, (struct sockaddr *)own, &room))
        status = clt_fail(CLT_E_NETWORK, "no route to %s: %s", towards, strerror(errno));
    close(probe);
    *bytes = room;
    return status;
}

/* How well an interface's address serves to be reached at; 0: not at all. */
static int worth(const struct sockaddr *address) {
    if (!address) return 0;
    if (address->sa_family == AF_INET) return 3;
    if (address->sa_family != AF_INET6) return 0;
    return IN6_IS_ADDR_LINKLOCAL(&((const struct sockaddr_in6 *)address)->sin6_addr) ? 1 : 2;
}

static clt_status address_of_interface(const char *name, struct sockaddr_storage *own,
                                       socklen_t *bytes) {
    struct ifaddrs *all;
    if (getifaddrs(&all))
        return clt_fail(CLT_E_SYSTEM, "interfaces cannot be listed: %s", strerror(errno));
    int best = 0;
    clt_text names = {0};
    for (const struct ifaddrs *one = all; one; one = one->ifa_next) {
        int value = worth(one->ifa_addr);
        if (value == 0) continue;
        if (!clt_text_contains(clt_text_data(&names), one->ifa_name))
            clt_text_add(&names, " %s", one->ifa_name);
        if (strcmp(one->ifa_name, name) != 0 || value <= best) continue;
        best = value;
        *bytes = one->ifa_addr->sa_family == AF_INET6 ? sizeof(struct sockaddr_in6)
                                                      : sizeof(struct sockaddr_in);
        memcpy(own, one->ifa_addr, *bytes);
    }
    freeifaddrs(all);
    clt_status status = CLT_OK;
    if (!best)
        status = clt_fail(CLT_E_INVALID,
                          "network %.200s: no interface of that name has an address; there are:%s", name,
                          clt_text_data(&names));
    clt_text_free(&names);
    return status;
}

static bool is_unspecified(const struct sockaddr_storage *address) {
    if (address->ss_family == AF_INET6)
        return IN6_IS_ADDR_UNSPECIFIED(&((const struct sockaddr_in6 *)address)->sin6_addr);
    return ((const struct sockaddr_in *)address)->sin_addr.s_addr == htonl(INADDR_ANY);
}

static clt_status find_own_address(const char *network, const char *towards,
                                   struct sockaddr_storage *own, socklen_t *bytes) {
    memset(own, 0, sizeof *own);
    if (!network) return address_towards(towards ? towards : "127.0.0.1", own, bytes);
    struct addrinfo hints = {.ai_family = AF_UNSPEC,
                             .ai_socktype = SOCK_STREAM,
                             .ai_flags = AI_NUMERICHOST},
                    *found;
    if (getaddrinfo(network, NULL, &hints, &found)) return address_of_interface(network, own, bytes);
    memcpy(own, found->ai_addr, found->ai_addrlen);
    *bytes = found->ai_addrlen;
    freeaddrinfo(found);
    if (is_unspecified(own))
        return clt_fail(CLT_E_INVALID, "network %s: not an address to be reached at", network);
    return CLT_OK;
}

clt_status clt_own_address(const char *network, const char *towards, char text[64]) {
    struct sockaddr_storage own;
    socklen_t bytes;
    CLT_TRY(find_own_address(network, towards, &own, &bytes));
    int error = getnameinfo((const struct sockaddr *)&own, bytes, text, 64, NULL, 0, NI_NUMERICHOST);
    return error ? clt_fail(CLT_E_NETWORK, "the own address: %s", gai_strerror(error)) : CLT_OK;
}

static clt_status read_ports(const char *ports, unsigned *low, unsigned *high) {
    *low = *high = 0;
    if (!ports || !*ports) return CLT_OK;
    char first[6] = "";
    const char *dash = strchr(ports, '-'), *last = dash ? dash + 1 : ports;
    size_t length = dash ? (size_t)(dash - ports) : strlen(ports);
    if (length < sizeof first) memcpy(first, ports, length);
    if (!read_port(first, low) || !read_port(last, high))
        return clt_fail(CLT_E_INVALID, "ports %.50s: neither a port nor a range such as 29600-29699",
                        ports);
    if (*low > *high) return clt_fail(CLT_E_INVALID, "ports %.50s: the range is empty", ports);
    return CLT_OK;
}

/* CLT_END: the port is taken. */
static clt_status listen_at(const struct sockaddr_storage *own, socklen_t bytes, int *descriptor) {
    int one = 1, s = socket(own->ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (s < 0) return clt_fail(CLT_E_SYSTEM, "no socket: %s", strerror(errno));
    /* A port whose former connections still fade away is free. */
    setsockopt(s, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (bind(s, (const struct sockaddr *)own, bytes) == 0 && listen(s, BACKLOG) == 0) {
        *descriptor = s;
        return CLT_OK;
    }
    int error = errno;
    close(s);
    if (error == EADDRINUSE || error == EACCES) return CLT_END;
    char text[64];
    clt_address_text((const struct sockaddr *)own, bytes, text);
    return clt_fail(CLT_E_INVALID, "cannot listen on %s: %s", text, strerror(error));
}

static clt_status listen_in(struct sockaddr_storage *own, socklen_t bytes, const char *ports,
                            int *descriptor) {
    unsigned low, high;
    CLT_TRY(read_ports(ports, &low, &high));
    for (unsigned port = low; port <= high; port++) {
        set_port(own, port);
        clt_status status = listen_at(own, bytes, descriptor);
        if (status != CLT_END) return status;
    }
    return clt_fail(CLT_E_INVALID, "ports %s: none is free here", ports ? ports : "of any number");
}

clt_status clt_listen(const char *network, const char *towards, const char *ports, int *descriptor,
                      char text[64]) {
    struct sockaddr_storage own;
    socklen_t bytes;
    *descriptor = -1;
    CLT_TRY(find_own_address(network, towards, &own, &bytes));
    CLT_TRY(listen_in(&own, bytes, ports, descriptor));
    bytes = sizeof own;
    if (getsockname(*descriptor, (struct sockaddr *)&own, &bytes) == 0)
        clt_address_text((struct sockaddr *)&own, bytes, text);
    else strcpy(text, "?");
    if (text[0] != '?') return CLT_OK;
    close(*descriptor);
    *descriptor = -1;
    return clt_fail(CLT_E_INVALID, "network %.100s: its address cannot be told to others",
                    network ? network : "");
}
