#include "tests/support.h"

#include <signal.h>
#include <stdatomic.h>

#include "runtime/base/thread.h"

enum { MOST = 1000 };

static struct {
    atomic_int calls[MOST];
    atomic_int running, most_running;
} work;

static void visit(void *argument, int i) {
    assert_ptr_equal(argument, &work);
    int running = atomic_fetch_add(&work.running, 1) + 1, most = atomic_load(&work.most_running);
    while (running > most && !atomic_compare_exchange_weak(&work.most_running, &most, running)) {}
    atomic_fetch_add(&work.calls[i], 1);
    atomic_fetch_sub(&work.running, 1);
}

static void check_parallel_for(int count, int threads) {
    for (int i = 0; i < MOST; i++) atomic_store(&work.calls[i], 0);
    atomic_store(&work.most_running, 0);
    clt_parallel_for(count, threads, visit, &work);
    for (int i = 0; i < MOST; i++) assert_int_equal(atomic_load(&work.calls[i]), i < count);
    assert_true(atomic_load(&work.most_running) <= (threads > 1 ? threads : 1));
}

static void test_parallel_for(void **state) {
    (void)state;
    check_parallel_for(0, 4);
    check_parallel_for(1, 4);
    check_parallel_for(3, 1);
    check_parallel_for(3, 0);
    check_parallel_for(MOST, 2);
    check_parallel_for(MOST, 500); /* more than are ever started */
}

static struct {
    clt_mutex mutex;
    clt_condition condition;
    int arrived;
    long sum;
} meeting;

/* Returns only when all others came too: they must run at the same time. */
static void meet(void *argument, int i) {
    (void)argument, (void)i;
    clt_mutex_lock(&meeting.mutex);
    meeting.arrived++;
    clt_condition_wake_all(&meeting.condition);
    while (meeting.arrived < 4) clt_condition_wait(&meeting.condition, &meeting.mutex);
    clt_mutex_unlock(&meeting.mutex);
    for (int k = 0; k < 10000; k++) {
        clt_mutex_lock(&meeting.mutex);
        meeting.sum++;
        clt_mutex_unlock(&meeting.mutex);
    }
}

static void test_threads_run_at_once(void **state) {
    (void)state;
    assert_ok(clt_mutex_init(&meeting.mutex));
    assert_ok(clt_condition_init(&meeting.condition));
    clt_parallel_for(4, 4, meet, NULL);
    assert_int_equal(meeting.arrived, 4);
    assert_int_equal(meeting.sum, 40000);
    clt_condition_destroy(&meeting.condition);
    clt_mutex_destroy(&meeting.mutex);
}

static void test_a_wait_ends_at_its_deadline(void **state) {
    (void)state;
    clt_mutex mutex;
    clt_condition condition;
    assert_ok(clt_mutex_init(&mutex));
    assert_ok(clt_condition_init(&condition));
    clt_mutex_lock(&mutex);
    double before = clt_seconds();
    while (clt_seconds() < before + 0.05) clt_condition_wait_until(&condition, &mutex, before + 0.05);
    clt_condition_wait_until(&condition, &mutex, -1); /* long over */
    clt_mutex_unlock(&mutex);
    clt_condition_destroy(&condition);
    clt_mutex_destroy(&mutex);
}

static void *read_mask(void *mask) {
    pthread_sigmask(SIG_BLOCK, NULL, mask);
    return mask;
}

static void test_signals_stay_with_the_program(void **state) {
    (void)state;
    sigset_t there, here;
    clt_thread thread;
    assert_ok(clt_thread_start(&thread, read_mask, &there));
    clt_thread_join(thread);
    assert_int_equal(sigismember(&there, SIGINT), 1);
    assert_int_equal(sigismember(&there, SIGTERM), 1);
    pthread_sigmask(SIG_BLOCK, NULL, &here);
    assert_int_equal(sigismember(&here, SIGINT), 0);
}

static void test_facts(void **state) {
    (void)state;
    assert_true(clt_processor_count() >= 1);
    double before = clt_seconds(), after = clt_seconds();
    assert_true(before > 0 && after >= before && after - before < 60);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parallel_for),
        cmocka_unit_test(test_threads_run_at_once),
        cmocka_unit_test(test_a_wait_ends_at_its_deadline),
        cmocka_unit_test(test_signals_stay_with_the_program),
        cmocka_unit_test(test_facts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
