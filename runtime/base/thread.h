/*
 * Threads, mutexes and conditions over POSIX threads.
 */
#ifndef CLT_BASE_THREAD_H
#define CLT_BASE_THREAD_H

#include <pthread.h>

#include "runtime/base/base.h"

typedef pthread_t clt_thread;
typedef pthread_mutex_t clt_mutex;
typedef pthread_cond_t clt_condition;

/* The thread runs with all signals blocked but those of faults: they belong to the program's own threads. */
clt_status clt_thread_start(clt_thread *thread, void *(*run)(void *), void *argument);
void clt_thread_join(clt_thread thread);
/* Nobody waits for it; what it uses is its own. */
void clt_thread_detach(clt_thread thread);

clt_status clt_mutex_init(clt_mutex *mutex);
void clt_mutex_destroy(clt_mutex *mutex);
void clt_mutex_lock(clt_mutex *mutex);
void clt_mutex_unlock(clt_mutex *mutex);

clt_status clt_condition_init(clt_condition *condition);
void clt_condition_destroy(clt_condition *condition);
void clt_condition_wait(clt_condition *condition, clt_mutex *mutex);
/* Returns at `deadline` (clt_seconds) at the latest. */
void clt_condition_wait_until(clt_condition *condition, clt_mutex *mutex, double deadline);
void clt_condition_wake_all(clt_condition *condition);

/* Processors this process may use; 1 at least. */
int clt_processor_count(void);

/* Calls run(argument, i) for i in [0, count) on up to `threads` threads, the caller's among
 * them, and returns when all are done. If threads cannot be started, the caller does the work. */
void clt_parallel_for(int count, int threads, void (*run)(void *argument, int i), void *argument);

#endif
