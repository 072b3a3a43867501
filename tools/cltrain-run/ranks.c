#define _GNU_SOURCE /* execvpe, pipe2 */
#include "ranks.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "guard.h"
#include "tools/common/message.h"

enum { EXIT_NOT_EXECUTABLE = 126, EXIT_NOT_FOUND = 127, DRAIN_MS = 1000 };

/* What a new process is given: descriptors, or -1 for the launcher's own. */
typedef struct streams {
    int in, out, err, report; /* report: the error of a failed exec goes there */
} streams;

/* ---- in the new process ---- */

static void take_descriptor(int from, int to) {
    if (from >= 0) dup2(from, to);
}

/* Between fork and exec of a process that has threads: system calls alone. */
static _Noreturn void become_rank(const job *j, const streams *s, char **environment, pid_t launcher) {
    sigset_t mask;
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != launcher) _exit(EXIT_FAILED); /* it died before that */
    for (int i = 1; i < NSIG; i++) signal(i, SIG_DFL);
    sigemptyset(&mask);
    sigprocmask(SIG_SETMASK, &mask, NULL);
    take_descriptor(s->in, 0);
    take_descriptor(s->out, 1);
    take_descriptor(s->err, 2);
    execvpe(j->options->program[0], j->options->program, environment);
    int error = errno;
    sigfillset(&mask); /* the launcher ends the others at once, and its signal is not to be how this one ended */
    sigprocmask(SIG_SETMASK, &mask, NULL);
    if (write(s->report, &error, sizeof error) < 0) _exit(EXIT_FAILED);
    _exit(error == ENOENT ? EXIT_NOT_FOUND : EXIT_NOT_EXECUTABLE);
}

/* ---- starting ---- */

static int fail_start(const char *what) {
    return run_error("%s: %s", what, strerror(errno));
}

static void close_one(int descriptor) {
    if (descriptor >= 0) close(descriptor);
}

/* DIR/rank-R.log, of a restart DIR/rank-R.restart-K.log. */
static int open_log(rank_process *p, const job *j) {
    char path[4096];
    const char *folder = j->options->log_dir;
    p->log = -1;
    if (!folder) return 0;
    if (mkdir(folder, 0777) && errno != EEXIST) return fail_start(folder);
    int length = j->restarts ? snprintf(path, sizeof path, "%s/rank-%d.restart-%lld.log", folder, p->rank, (long long)j->restarts)
                             : snprintf(path, sizeof path, "%s/rank-%d.log", folder, p->rank);
    if (length < 0 || (size_t)length >= sizeof path) return run_error("--log-dir: the path is too long");
    p->log = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    return p->log < 0 ? fail_start(path) : 0;
}

static bool inherits_output(const job *j) {
    return j->world == 1 && !j->options->prefix && !j->options->log_dir;
}

/* The pipes of a rank: our ends go into the outputs, its own into `s`. */
static int open_streams(rank_process *p, const job *j, streams *s) {
    int code = open_log(p, j), out[2], err[2];
    if (code) return code;
    bool feeds = p->rank == 0 && !isatty(0);
    if (!feeds) s->in = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (inherits_output(j)) return 0;
    int shown = p->rank == 0 && !j->options->prefix ? -1 : p->rank;
    if (pipe2(out, O_CLOEXEC)) return fail_start("a pipe");
    s->out = out[1];
    if (!output_begin(&p->out, out[0], 1, shown, p->log)) return fail_start("a rank's output");
    if (pipe2(err, O_CLOEXEC)) return fail_start("a pipe");
    s->err = err[1];
    if (!output_begin(&p->err, err[0], 2, shown, p->log)) return fail_start("a rank's output");
    return 0;
}

/* Waits until the program runs, or could not be. */
static int await_exec(const job *j, int report) {
    int error = 0;
    ssize_t got;
    do got = read(report, &error, sizeof error);
    while (got < 0 && errno == EINTR);
    if (got != sizeof error) return 0;
    run_error("%s: %s", j->options->program[0], strerror(error));
    return error == ENOENT ? EXIT_NOT_FOUND : EXIT_NOT_EXECUTABLE;
}

static int start_process(rank_process *p, const job *j, streams *s, char **environment) {
    int report[2];
    if (pipe2(report, O_CLOEXEC)) return fail_start("a pipe");
    s->report = report[1];
    sigset_t all, before;
    sigfillset(&all);
    pid_t launcher = getpid();
    sigprocmask(SIG_SETMASK, &all, &before); /* no handler of ours runs in the new process */
    pid_t pid = fork();
    if (pid == 0) become_rank(j, s, environment, launcher);
    sigprocmask(SIG_SETMASK, &before, NULL);
    close(report[1]);
    int code = pid < 0 ? fail_start("a process could not be started") : 0;
    if (pid > 0) {
        setpgid(pid, pid); /* as it does itself: whoever comes first */
        guard_add(pid);
        p->pid = pid;
        code = await_exec(j, report[0]);
    }
    close(report[0]);
    return code;
}

static int start_one(rank_process *p, const job *j, int local_rank) {
    streams s = {-1, -1, -1, -1};
    char **environment = job_environment(j, local_rank);
    int code = environment ? open_streams(p, j, &s) : run_error("no memory for a rank's environment");
    if (!code) code = start_process(p, j, &s, environment);
    close_one(s.in);
    close_one(s.out);
    close_one(s.err);
    job_free_environment(environment);
    return code;
}

int ranks_start(ranks *r, const job *j) {
    *r = (ranks){.n = (int)j->options->ranks};
    r->all = calloc((size_t)r->n, sizeof *r->all);
    if (!r->all) return run_error("no memory for %d ranks", r->n);
    for (int i = 0; i < r->n; i++)
        r->all[i] = (rank_process){.rank = j->first_rank + i, .ended = true, .log = -1, .out.from = -1, .err.from = -1};
    for (int i = 0; i < r->n; i++) {
        int code = start_one(&r->all[i], j, i);
        if (r->all[i].pid) {
            r->all[i].ended = false;
            r->living++;
        }
        if (code) return code;
    }
    return 0;
}

/* ---- their end ---- */

void ranks_signal(const ranks *r, int signal) {
    for (int i = 0; i < r->n; i++)
        if (r->all[i].pid && !r->all[i].ended) kill(-r->all[i].pid, signal);
}

static int status_of(int status) {
    return WIFSIGNALED(status) ? EXIT_SIGNAL + WTERMSIG(status) : WEXITSTATUS(status);
}

static rank_process *find_rank(ranks *r, pid_t pid) {
    for (int i = 0; i < r->n; i++)
        if (r->all[i].pid == pid && !r->all[i].ended) return &r->all[i];
    return NULL;
}

static void note_end(ranks *r, rank_process *p, int status) {
    p->ended = true;
    p->status = status;
    r->living--;
}

/* One that has ended. What it left in its group goes before its number does: that may be given to others. */
static void bury(ranks *r, rank_process *p) {
    int status = 0;
    kill(-p->pid, SIGKILL);
    while (waitpid(p->pid, &status, 0) < 0 && errno == EINTR) continue;
    guard_remove(p->pid);
    note_end(r, p, status_of(status));
}

rank_process *ranks_give_up(ranks *r) {
    for (int i = 0; i < r->n; i++) {
        if (r->all[i].ended) continue;
        note_end(r, &r->all[i], EXIT_SIGNAL + SIGKILL);
        return &r->all[i];
    }
    return NULL;
}

rank_process *ranks_reap(ranks *r) {
    for (;;) {
        siginfo_t who = {.si_pid = 0};
        if (waitid(P_ALL, 0, &who, WEXITED | WNOHANG | WNOWAIT) || !who.si_pid) return NULL;
        rank_process *p = find_rank(r, who.si_pid);
        if (p) {
            bury(r, p);
            return p;
        }
        waitpid(who.si_pid, NULL, WNOHANG); /* somebody whom a rank left */
    }
}

/* We are the parent of what lost its own, so nobody who was started by a rank is missed, wherever it put itself. */
static int kill_children(void) {
    char path[64], text[4096];
    snprintf(path, sizeof path, "/proc/self/task/%ld/children", (long)getpid());
    int file = open(path, O_RDONLY | O_CLOEXEC), n = 0;
    if (file < 0) return 0;
    ssize_t got = read(file, text, sizeof text - 1);
    close(file);
    text[got > 0 ? got : 0] = 0;
    for (char *next = text, *end;; next = end) {
        long pid = strtol(next, &end, 10);
        if (end == next) break;
        if (pid == guard_pid()) continue;
        kill((pid_t)pid, SIGKILL);
        n++;
    }
    return n;
}

/* Children of those that are killed become ours in turn. */
static void kill_strays(void) {
    for (int round = 0; round < 100 && kill_children(); round++) {
        nanosleep(&(struct timespec){0, 5000000}, NULL);
        while (waitpid(-1, NULL, WNOHANG) > 0) continue;
    }
}

/* What still is in the pipe. */
static void drain(output *o) {
    struct pollfd one = {o->from, POLLIN, 0};
    while (o->from >= 0 && output_await_room(o) && poll(&one, 1, DRAIN_MS) > 0 && output_move(o)) continue;
    output_end(o);
}

void ranks_end(ranks *r) {
    kill_strays();
    for (int i = 0; i < r->n; i++) {
        drain(&r->all[i].out);
        drain(&r->all[i].err);
        close_one(r->all[i].log);
    }
    free(r->all);
    *r = (ranks){0};
}
