#include "tests/support.h"

#include <pthread.h>
#include <string.h>

#include "runtime/base/base.h"

static void test_names_and_messages(void **state) {
    (void)state;
    assert_string_equal(clt_status_name(CLT_OK), "CLT_OK");
    assert_string_equal(clt_status_name(CLT_E_SHAPE), "CLT_E_SHAPE");
    assert_string_equal(clt_status_message(CLT_E_SHAPE), "shapes do not fit");
    assert_string_equal(clt_status_name((clt_status)-9999), "unknown status");
    assert_string_equal(clt_status_message((clt_status)7), "unknown status");
    /* Errors are below zero, all else is not: callers test the sign. */
#define CHECK(name, value, message) assert_int_equal((name) < 0, strncmp(#name, "CLT_E_", 6) == 0);
    CLT_STATUS_MAP(CHECK)
#undef CHECK
}

static void test_detail(void **state) {
    (void)state;
    assert_int_equal(clt_fail(CLT_E_IO, "%s: line %d", "x.csv", 3), CLT_E_IO);
    assert_string_equal(clt_error_detail(), "x.csv: line 3");
    assert_int_equal(clt_fail_context(CLT_E_FORMAT, "reading %s: ", "data"), CLT_E_FORMAT);
    assert_string_equal(clt_error_detail(), "reading data: x.csv: line 3");
    assert_int_equal(clt_fail_memory(123), CLT_E_NO_MEMORY);
    assert_non_null(strstr(clt_error_detail(), "123 bytes"));
}

static void test_detail_kept_and_set_again(void **state) {
    (void)state;
    char kept[100];
    clt_fail(CLT_E_SHAPE, "the first");
    strcpy(kept, clt_error_detail());
    clt_fail(CLT_E_IO, "the second");
    assert_int_equal(clt_fail_again(CLT_E_SHAPE, kept), CLT_E_SHAPE);
    assert_string_equal(clt_error_detail(), "the first");
    /* The detail itself as the argument, and in its own message. */
    clt_fail_again(CLT_E_SHAPE, clt_error_detail());
    assert_string_equal(clt_error_detail(), "the first");
}

static void test_long_details_are_cut(void **state) {
    (void)state;
    char words[9000];
    memset(words, 'x', sizeof words - 1);
    words[sizeof words - 1] = 0;
    clt_fail(CLT_E_BUILD, "%s", words);
    size_t length = strlen(clt_error_detail());
    assert_in_range(length, 1000, sizeof words - 2);
    clt_fail_context(CLT_E_BUILD, "kernel: ");
    assert_int_equal(strlen(clt_error_detail()), length);
    assert_int_equal(strncmp(clt_error_detail(), "kernel: xxx", 11), 0);
    clt_fail_context(CLT_E_BUILD, "%s", words);
    assert_int_equal(strlen(clt_error_detail()), length);
}

static void *fail_elsewhere(void *empty_at_first) {
    *(bool *)empty_at_first = clt_error_detail()[0] == 0;
    clt_fail(CLT_E_DEVICE, "elsewhere");
    return NULL;
}

static void test_each_thread_has_its_detail(void **state) {
    (void)state;
    bool empty_at_first = false;
    clt_fail(CLT_E_IO, "here");
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, fail_elsewhere, &empty_at_first), 0);
    pthread_join(thread, NULL);
    assert_true(empty_at_first);
    assert_string_equal(clt_error_detail(), "here");
}

static clt_status tries(clt_status given, int *reached) {
    CLT_TRY(given);
    ++*reached;
    return CLT_END;
}

static clt_status tries_goto(clt_status given, int *cleaned) {
    clt_status status;
    CLT_TRY_GOTO(given);
    return status;
fail:
    ++*cleaned;
    return status;
}

static void test_try(void **state) {
    (void)state;
    int reached = 0, cleaned = 0;
    assert_int_equal(tries(CLT_E_IO, &reached), CLT_E_IO);
    assert_int_equal(reached, 0);
    assert_int_equal(tries(CLT_OK, &reached), CLT_END);
    assert_int_equal(tries(CLT_END, &reached), CLT_END); /* a notice is no error */
    assert_int_equal(reached, 2);
    assert_int_equal(tries_goto(CLT_END, &cleaned), CLT_END);
    assert_int_equal(cleaned, 0);
    assert_int_equal(tries_goto(CLT_E_STATE, &cleaned), CLT_E_STATE);
    assert_int_equal(cleaned, 1);
}

/* ---- log ---- */

static struct {
    int calls;
    clt_log_level level;
    char message[5000];
} logged;

static void keep(clt_log_level level, const char *message, void *user) {
    assert_ptr_equal(user, &logged);
    logged.calls++;
    logged.level = level;
    strcpy(logged.message, message);
}

static void test_log(void **state) {
    (void)state;
    clt_log_message(CLT_LOG_ERROR, "nobody listens");
    assert_false(clt_log_enabled(CLT_LOG_ERROR));
    clt_log_set(keep, CLT_LOG_INFO, &logged);
    clt_log_message(CLT_LOG_DEBUG, "too fine");
    assert_int_equal(logged.calls, 0);
    clt_log_message(CLT_LOG_INFO, "device %d of %s", 2, "pocl");
    assert_int_equal(logged.calls, 1);
    assert_int_equal(logged.level, CLT_LOG_INFO);
    assert_string_equal(logged.message, "device 2 of pocl");
    assert_true(clt_log_enabled(CLT_LOG_WARNING));
    assert_false(clt_log_enabled(CLT_LOG_DEBUG));
    clt_log_set(NULL, CLT_LOG_DEBUG, NULL);
    clt_log_message(CLT_LOG_ERROR, "nobody listens");
    assert_int_equal(logged.calls, 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names_and_messages),
        cmocka_unit_test(test_detail),
        cmocka_unit_test(test_detail_kept_and_set_again),
        cmocka_unit_test(test_long_details_are_cut),
        cmocka_unit_test(test_each_thread_has_its_detail),
        cmocka_unit_test(test_try),
        cmocka_unit_test(test_log),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
