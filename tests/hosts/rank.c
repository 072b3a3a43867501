/*
 * A rank for the tests over real hosts: joins the job that the environment tells it of, and does all-reduces whose sums it checks, until its
 * time is up or the group ends. A line on stdout for each thing that happens, with the monotonic clock:
 *
 *     joined TIME RANK SIZE | step TIME | ended TIME CODE DETAIL | shrunk TIME RANK SIZE | done TIME STEPS
 *
 * Exit status: 0 done; 1 it did not join; 3 the group ended; 4 a sum was wrong.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cltrain/cltrain.h>

typedef struct wishes {
    double seconds, heartbeat, timeout, connect;
    size_t count; /* elements of an all-reduce, at most: sizes vary below it */
    int shrink;   /* goes on with the survivors */
} wishes;

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static int say_end(clt_status status) {
    printf("ended %.4f %s %s\n", now(), clt_status_name(status), clt_error_detail());
    fflush(stdout);
    return 3;
}

static void print_log(clt_log_level level, const char *text, void *user) {
    (void)level, (void)user;
    fprintf(stderr, "%s\n", text);
}

/* Element i of rank r is (r + 1) * (i % 61 + 1): sums are whole numbers that f32 holds. */
static void fill(float *data, size_t n, int rank) {
    for (size_t i = 0; i < n; i++) data[i] = (float)((rank + 1) * (int)(i % 61 + 1));
}

static size_t count_wrong(const float *data, size_t n, int size) {
    size_t wrong = 0;
    for (size_t i = 0; i < n; i++) wrong += data[i] != (float)(size * (size + 1) / 2 * (int)(i % 61 + 1));
    return wrong;
}

/* One all-reduce, whose first element says who wants to end. Returns 0 to go on, 1 to end, else the exit status. */
static int step(clt_comm *comm, float *data, size_t n, int wants_end, clt_status *status) {
    int size = clt_comm_size(comm);
    fill(data, n, clt_comm_rank(comm));
    data[0] = (float)wants_end;
    *status = clt_comm_all_reduce(comm, data, n, CLT_F32, CLT_REDUCE_SUM, NULL);
    if (*status < 0) return 3;
    int ends = data[0] != 0;
    data[0] = (float)(size * (size + 1) / 2);
    size_t wrong = count_wrong(data, n, size);
    if (!wrong) return ends;
    printf("wrong %.4f %zu of %zu\n", now(), wrong, n);
    return 4;
}

/* Sizes from 1 to w->count, the same on all ranks. */
static size_t vary(size_t count, long steps) {
    static const size_t parts[] = {1, 4096, 16, 1, 256, 3};
    size_t n = count / parts[steps % 6];
    return n ? n : 1;
}

static int work(clt_comm **comm, const wishes *w, float *data) {
    double begin = now();
    for (long steps = 0;; steps++) {
        clt_status status;
        int code = step(*comm, data, vary(w->count, steps), now() - begin > w->seconds, &status);
        if (steps == 0 && code == 0) printf("step %.4f\n", now()), fflush(stdout);
        if (code == 1) printf("done %.4f %ld\n", now(), steps);
        if (code == 1) return 0;
        if (code == 0) continue;
        if (code != 3) return code;
        say_end(status);
        clt_comm *rest;
        if (!w->shrink) return 3;
        status = clt_comm_shrink(*comm, &rest);
        if (status < 0) return say_end(status);
        clt_comm_destroy(*comm);
        *comm = rest;
        printf("shrunk %.4f %d %d\n", now(), clt_comm_rank(rest), clt_comm_size(rest));
        fflush(stdout);
        steps = -1;
        begin = now();
    }
}

static int join_and_work(const wishes *w) {
    clt_comm *comm;
    clt_status status = clt_comm_create(&comm, &(clt_comm_options){.connect_seconds = w->connect, .timeout_seconds = w->timeout,
                                                                   .heartbeat_seconds = w->heartbeat});
    if (status < 0) return say_end(status), 1;
    printf("joined %.4f %d %d\n", now(), clt_comm_rank(comm), clt_comm_size(comm));
    fflush(stdout);
    float *data = malloc(w->count * sizeof *data);
    int code = data ? work(&comm, w, data) : 1;
    free(data);
    clt_comm_destroy(comm);
    return code;
}

int main(int argc, char **argv) {
    wishes w = {.seconds = 1, .heartbeat = 1, .timeout = 60, .connect = 60, .count = 65536};
    for (int i = 1; i + 1 < argc; i += 2) {
        double value = strtod(argv[i + 1], NULL);
        if (!strcmp(argv[i], "--seconds")) w.seconds = value;
        else if (!strcmp(argv[i], "--heartbeat")) w.heartbeat = value;
        else if (!strcmp(argv[i], "--timeout")) w.timeout = value;
        else if (!strcmp(argv[i], "--connect")) w.connect = value;
        else if (!strcmp(argv[i], "--count")) w.count = (size_t)value;
        else if (!strcmp(argv[i], "--shrink")) w.shrink = value != 0;
        else return 2;
    }
    if (w.count < 1) return 2;
    clt_log_set(print_log, CLT_LOG_WARNING, NULL);
    return join_and_work(&w);
}
