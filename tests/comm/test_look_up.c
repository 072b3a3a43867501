/* Names of hosts: a resolver that does not answer holds nobody up beyond the deadline. */
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdatomic.h>
#include <string.h>

#include "comm/secure/secure.h"
#include "runtime/base/thread.h"
#include "tests/support.h"

/* ---- the resolver ---- */

static atomic_int asked, answered;
static atomic_bool released;

int __real_getaddrinfo(const char *host, const char *port, const struct addrinfo *hints, struct addrinfo **found);
int __wrap_getaddrinfo(const char *host, const char *port, const struct addrinfo *hints, struct addrinfo **found);

/* "slow" is answered when the test allows it, with loopback; "broken" with an error of the system. */
int __wrap_getaddrinfo(const char *host, const char *port, const struct addrinfo *hints, struct addrinfo **found) {
    if (hints->ai_flags & AI_NUMERICHOST) return __real_getaddrinfo(host, port, hints, found);
    asked++;
    while (strcmp(host, "slow") == 0 && !released) poll(NULL, 0, 1);
    answered++;
    if (strcmp(host, "broken") == 0) {
        errno = EMFILE;
        return EAI_SYSTEM;
    }
    return __real_getaddrinfo(strcmp(host, "slow") == 0 ? "127.0.0.1" : host, port, hints, found);
}

/* ---- the tests ---- */

static void test_numbers_ask_nobody(void **state) {
    (void)state;
    struct sockaddr_storage address;
    socklen_t bytes;
    asked = 0;
    assert_ok(clt_resolve("192.0.2.7:80", 0, &address, &bytes)); /* the deadline is over */
    assert_int_equal(ntohs(((struct sockaddr_in *)&address)->sin_port), 80);
    assert_ok(clt_resolve("[2001:db8::1]:443", 0, &address, &bytes));
    assert_int_equal(asked, 0);
}

static void test_deadline(void **state) {
    (void)state;
    struct sockaddr_storage address;
    socklen_t bytes;
    asked = answered = 0;
    released = false;
    assert_status(clt_resolve("slow:80", clt_seconds() + 0.2, &address, &bytes), CLT_E_TIMEOUT);
    assert_detail("host slow: no answer");
    assert_int_equal(answered, 0);
    /* The one that was left to itself comes to its end, and frees what it has. */
    released = true;
    while (answered < 1) poll(NULL, 0, 1);
    assert_ok(clt_resolve("slow:81", clt_seconds() + 60, &address, &bytes));
    assert_int_equal(asked, 2);
    assert_int_equal(ntohs(((struct sockaddr_in *)&address)->sin_port), 81);
}

static void test_errors(void **state) {
    (void)state;
    struct sockaddr_storage address;
    socklen_t bytes;
    assert_status(clt_resolve("broken:80", clt_seconds() + 60, &address, &bytes), CLT_E_NETWORK);
    assert_detail(strerror(EMFILE));
    assert_status(clt_resolve("no.such.host.invalid:1", clt_seconds() + 60, &address, &bytes), CLT_E_NETWORK);
    assert_detail("host no.such.host.invalid");
}

static void *ask_many(void *user) {
    for (int i = 0; i < 50; i++) {
        struct sockaddr_storage address;
        socklen_t bytes;
        /* Deadlines about as long as the answer takes: either may come first. */
        clt_status status = clt_resolve(i % 2 ? "slow:80" : "localhost:80", clt_seconds() + 1e-4 * (i % 7), &address, &bytes);
        if (status != CLT_OK && status != CLT_E_TIMEOUT) *(int *)user = status;
    }
    return NULL;
}

static void test_many_at_once(void **state) {
    (void)state;
    clt_thread threads[4];
    int wrong[4] = {0};
    asked = answered = 0;
    released = true;
    for (int i = 0; i < 4; i++) assert_ok(clt_thread_start(&threads[i], ask_many, &wrong[i]));
    for (int i = 0; i < 4; i++) clt_thread_join(threads[i]);
    for (int i = 0; i < 4; i++) assert_int_equal(wrong[i], 0);
    while (answered < asked) poll(NULL, 0, 1);
    poll(NULL, 0, 100); /* the last ones free what they have */
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_numbers_ask_nobody),
        cmocka_unit_test(test_deadline),
        cmocka_unit_test(test_errors),
        cmocka_unit_test(test_many_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
