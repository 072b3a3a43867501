#define _GNU_SOURCE /* sched_getaffinity */
#include "runtime/base/thread.h"

#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>

clt_status clt_thread_start(clt_thread *thread, void *(*run)(void *), void *argument) {
    /* Those that a fault of the thread itself raises would kill without anyone's handler, a sanitizer's too. */
    static const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT};
    sigset_t all, before;
    sigfillset(&all);
    for (size_t i = 0; i < CLT_COUNT_OF(faults); i++) sigdelset(&all, faults[i]);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int error = pthread_create(thread, NULL, run, argument);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (error) return clt_fail(CLT_E_SYSTEM, "a thread could not be started: %s", strerror(error));
    return CLT_OK;
}

void clt_thread_join(clt_thread thread) {
    pthread_join(thread, NULL);
}

void clt_thread_detach(clt_thread thread) {
    pthread_detach(thread);
}

clt_status clt_mutex_init(clt_mutex *mutex) {
    int error = pthread_mutex_init(mutex, NULL);
    if (error) return clt_fail(CLT_E_SYSTEM, "a mutex could not be made: %s", strerror(error));
    return CLT_OK;
}

void clt_mutex_destroy(clt_mutex *mutex) {
    pthread_mutex_destroy(mutex);
}

void clt_mutex_lock(clt_mutex *mutex) {
    pthread_mutex_lock(mutex);
}

void clt_mutex_unlock(clt_mutex *mutex) {
    pthread_mutex_unlock(mutex);
}

clt_status clt_condition_init(clt_condition *condition) {
    pthread_condattr_t attributes; /* the clock of clt_seconds, which nobody sets back */
    int error = pthread_condattr_init(&attributes);
    if (!error) {
        error = pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
        if (!error) error = pthread_cond_init(condition, &attributes);
        pthread_condattr_destroy(&attributes);
    }
    if (error) return clt_fail(CLT_E_SYSTEM, "a condition could not be made: %s", strerror(error));
    return CLT_OK;
}

void clt_condition_destroy(clt_condition *condition) {
    pthread_cond_destroy(condition);
}

void clt_condition_wait(clt_condition *condition, clt_mutex *mutex) {
    pthread_cond_wait(condition, mutex);
}

void clt_condition_wait_until(clt_condition *condition, clt_mutex *mutex, double deadline) {
    double whole = deadline > 0 ? CLT_MIN((double)(long)deadline, 1e9) : 0;
    struct timespec until = {.tv_sec = (time_t)whole, .tv_nsec = (long)(1e9 * CLT_MAX(0, deadline - whole))};
    if (until.tv_nsec > 999999999) until.tv_nsec = 999999999;
    pthread_cond_timedwait(condition, mutex, &until);
}

void clt_condition_wake_all(clt_condition *condition) {
    pthread_cond_broadcast(condition);
}

int clt_processor_count(void) {
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set)) return 1;
    return CLT_MAX(1, CPU_COUNT(&set));
}

typedef struct parallel_work {
    void (*run)(void *, int);
    void *argument;
    int count;
    atomic_int next;
} parallel_work;

static void *parallel_worker(void *argument) {
    parallel_work *work = argument;
    for (int i; (i = atomic_fetch_add(&work->next, 1)) < work->count;) work->run(work->argument, i);
    return NULL;
}

void clt_parallel_for(int count, int threads, void (*run)(void *, int), void *argument) {
    enum { MOST = 64 };
    parallel_work work = {.run = run, .argument = argument, .count = count};
    clt_thread others[MOST];
    int started = 0, wanted = CLT_MIN(CLT_MIN(threads, count) - 1, MOST);
    while (started < wanted && clt_thread_start(&others[started], parallel_worker, &work) == CLT_OK)
        started++;
    parallel_worker(&work);
    while (started > 0) clt_thread_join(others[--started]);
}

double clt_seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

double clt_wall_seconds(void) {
    struct timespec now = {0};
    clock_gettime(CLOCK_REALTIME, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}
