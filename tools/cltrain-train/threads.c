#include "threads.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "devices.h"
#include "tools/common/message.h"

enum { MOST_DEVICES = 64 };

typedef struct rank_thread {
    options given;
    ranks group;
    const data_parts *data;
    rank_training *train;
    clt_comm *comm;
    clt_device *device;
    pthread_t thread;
    bool started;
    int code;
} rank_thread;

typedef struct rank_threads {
    char *names; /* of the devices, cut at the commas */
    int n;
    rank_thread each[MOST_DEVICES];
} rank_threads;

static void *run(void *argument) {
    rank_thread *t = argument;
    ranks_join_local(&t->group, &t->given, t->comm);
    t->code = t->train(&t->given, t->data, &t->group, t->device);
    ranks_leave(&t->group); /* those who still wait for this one learn that it is gone */
    return NULL;
}

/* Each takes its part of --devices. */
static int split(rank_threads *all, const options *given, const data_parts *data, rank_training *train) {
    all->names = strdup(given->devices);
    if (!all->names) return run_error("no memory for --devices");
    for (char *name = all->names, *next; name; name = next) {
        next = strchr(name, ',');
        if (next) *next++ = '\0';
        if (!*name) return usage_error("--devices '%s': a device without a name; expected A,B,...", given->devices);
        if (all->n == MOST_DEVICES) return usage_error("--devices: more than %d", MOST_DEVICES);
        all->each[all->n] = (rank_thread){.given = *given, .data = data, .train = train};
        all->each[all->n++].given.device = name;
    }
    return 0;
}

static int open_devices(rank_threads *all) {
    for (int i = 0; i < all->n; i++) {
        int code = device_open(&all->each[i].device, all->each[i].given.device);
        if (code) return code;
        for (int other = 0; other < i && !all->each[i].given.pipeline; other++) /* stages may have one device */
            if (!strcmp(clt_device_get_info(all->each[i].device)->id, clt_device_get_info(all->each[other].device)->id))
                return usage_error("--devices: '%s' and '%s' are the same device, which serves one rank of a process: cltrain-run -n %d starts a process each",
                                   all->each[other].given.device, all->each[i].given.device, all->n);
    }
    return 0;
}

/* Signals are for the main thread, but for those that a fault raises. */
static void start(rank_threads *all) {
    sigset_t signals, before;
    sigfillset(&signals);
    sigdelset(&signals, SIGSEGV), sigdelset(&signals, SIGBUS), sigdelset(&signals, SIGFPE), sigdelset(&signals, SIGILL), sigdelset(&signals, SIGABRT);
    pthread_sigmask(SIG_SETMASK, &signals, &before);
    for (int i = 0; i < all->n; i++) {
        rank_thread *t = &all->each[i];
        int error = pthread_create(&t->thread, NULL, run, t);
        t->started = !error;
        if (error) t->code = run_error("a thread for device %s could not be started: %s", t->given.device, strerror(error));
        if (error) clt_comm_destroy(t->comm);
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

static int await(rank_threads *all) {
    int code = 0;
    for (int i = 0; i < all->n; i++) {
        if (all->each[i].started) pthread_join(all->each[i].thread, NULL);
        if (!code) code = all->each[i].code;
    }
    return code;
}

static int train_on_all(rank_threads *all) {
    clt_comm *comms[MOST_DEVICES];
    clt_status status = clt_comm_create_local(comms, all->n, 0);
    if (status < 0) return library_error(status, "--devices");
    for (int i = 0; i < all->n; i++) all->each[i].comm = comms[i];
    start(all);
    return await(all);
}

int train_on_threads(const options *given, const data_parts *data, rank_training *train) {
    rank_threads *all = calloc(1, sizeof *all);
    if (!all) return run_error("no memory for --devices");
    int code = split(all, given, data, train);
    if (!code) code = open_devices(all);
    if (!code) code = train_on_all(all);
    for (int i = 0; i < all->n; i++) clt_device_close(all->each[i].device);
    free(all->names);
    free(all);
    return code;
}
