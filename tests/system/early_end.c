/* Preloaded into a rank: it ends at its send number CLTRAIN_TEST_ENDS_AT, or waits CLTRAIN_TEST_LATE_MS before each time it receives, so that
 * others have already come through what it is still in. */
#define _GNU_SOURCE /* RTLD_NEXT */
#include <dlfcn.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

static int setting(const char *name) {
    const char *text = getenv(name);
    return text ? atoi(text) : 0;
}

__attribute__((visibility("default"))) ssize_t sendmsg(int to, const struct msghdr *message, int flags) {
    static atomic_int sends;
    ssize_t (*next)(int, const struct msghdr *, int) = (ssize_t (*)(int, const struct msghdr *, int))dlsym(RTLD_NEXT, "sendmsg");
    if (atomic_fetch_add(&sends, 1) + 1 == setting("CLTRAIN_TEST_ENDS_AT")) _exit(1);
    return next(to, message, flags);
}

__attribute__((visibility("default"))) ssize_t recv(int from, void *data, size_t bytes, int flags) {
    ssize_t (*next)(int, void *, size_t, int) = (ssize_t (*)(int, void *, size_t, int))dlsym(RTLD_NEXT, "recv");
    usleep((useconds_t)setting("CLTRAIN_TEST_LATE_MS") * 1000);
    return next(from, data, bytes, flags);
}
