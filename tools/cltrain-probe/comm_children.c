#include "comm_children.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>
#ifdef __linux__
#include <sys/prctl.h>
#endif

#include "tools/common/clock.h"
#include "tools/common/folder.h"
#include "tools/common/message.h"
#include "tools/survey/child.h"

enum { MOST_PATH = 4096 };

typedef struct family {
    int (*run)(int rank, const char *store, void *user);
    void *user;
    char folder[MOST_PATH], store[3 * MOST_PATH + 8];
    int alive;     /* writing end of a pipe that nobody writes to; the program and its ranks hold it */
    pid_t cleaner; /* removes the folder when none of them is left */
    pid_t ranks[COMM_MOST_CHILDREN]; /* 0: it has ended */
    int n;
} family;

/* ---- the folder ---- */

/* The folder as the address of a store: there %41 is an A. */
static void write_address(family *f) {
    size_t bytes = sizeof f->store, used = (size_t)snprintf(f->store, bytes, "file://");
    for (const char *at = f->folder; *at; at++)
        used += (size_t)snprintf(f->store + used, bytes - used, *at == '%' ? "%%25" : "%c", *at);
}

static int make_folder(family *f) {
    const char *base = getenv("TMPDIR");
    if (!base || !base[0]) base = "/tmp";
    if ((size_t)snprintf(f->folder, sizeof f->folder, "%s/cltrain-probe-XXXXXX", base) >= sizeof f->folder)
        return run_error("the path of TMPDIR is too long: %s", base);
    if (!mkdtemp(f->folder)) return run_error("no temporary folder %s: %s", f->folder, strerror(errno));
    write_address(f);
    return 0;
}

static void remove_folder(const family *f) {
    if (!folder_remove(f->folder)) warning("%s could not be removed: %s", f->folder, strerror(errno));
}

/* A process that waits until all who hold the pipe are gone, however they went: ranks write to the folder to their end. It holds
 * nothing else of the program's, and is not in the group that a terminal's Ctrl-C goes to. */
_Noreturn static void clean_up(const family *f, int alive) {
    char byte;
    ssize_t got;
    setsid();
    signal(SIGINT, SIG_IGN);
    signal(SIGTERM, SIG_IGN);
    signal(SIGHUP, SIG_IGN);
    close(STDIN_FILENO), close(STDOUT_FILENO);
    do got = read(alive, &byte, 1);
    while (got < 0 && errno == EINTR);
    remove_folder(f);
    _exit(0);
}

static int start_cleaner(family *f) {
    int ends[2];
    if (pipe(ends)) return run_error("making a pipe: %s", strerror(errno));
    fflush(NULL);
    f->cleaner = fork();
    if (f->cleaner == 0) {
        close(ends[1]);
        clean_up(f, ends[0]);
    }
    close(ends[0]);
    f->alive = ends[1];
    return f->cleaner > 0 ? 0 : run_error("a process could not be started: %s", strerror(errno));
}

static void end_cleaner(const family *f) {
    if (f->alive >= 0) close(f->alive);
    if (f->cleaner <= 0) remove_folder(f);
    else while (waitpid(f->cleaner, NULL, 0) < 0 && errno == EINTR) {}
}

/* ---- the ranks ---- */

_Noreturn static void be_rank(const family *f, int rank, pid_t program) {
    signal(SIGINT, SIG_DFL);
    signal(SIGTERM, SIG_DFL);
    signal(SIGHUP, SIG_DFL);
#ifdef __linux__
    prctl(PR_SET_PDEATHSIG, SIGKILL);
#endif
    if (getppid() != program) _exit(EXIT_FAILED); /* it was gone before that */
    exit(f->run(rank, f->store, f->user));
}

static int start_ranks(family *f, int n) {
    pid_t program = getpid();
    fflush(NULL);
    for (; f->n < n && !child_caught(); f->n++) {
        f->ranks[f->n] = fork();
        if (f->ranks[f->n] == 0) be_rank(f, f->n, program);
        if (f->ranks[f->n] < 0) return run_error("a process could not be started: %s", strerror(errno));
    }
    return 0;
}

static void kill_all(const family *f, int number) {
    for (int i = 0; i < f->n; i++)
        if (f->ranks[i]) kill(f->ranks[i], number);
}

static int judge_end(int rank, int status) {
    if (child_caught()) return 0; /* it was told to */
    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGPIPE) return EXIT_SIGNAL + SIGPIPE; /* whoever read its table has seen enough */
    if (WIFSIGNALED(status)) return run_error("rank %d was ended by signal %d", rank, WTERMSIG(status));
    return WEXITSTATUS(status);
}

/* Takes those that have ended; how many there still are. */
static int reap(family *f, int *code) {
    int left = 0;
    for (int i = 0; i < f->n; i++) {
        int status = 0;
        if (!f->ranks[i]) continue;
        pid_t got = waitpid(f->ranks[i], &status, WNOHANG);
        if (got == 0 || (got < 0 && errno == EINTR)) {
            left++;
            continue;
        }
        f->ranks[i] = 0;
        int end = got > 0 ? judge_end(i, status) : EXIT_FAILED;
        if (!*code) *code = end;
    }
    return left;
}

/* All must do well; the first that does not takes the others along by their connections to it. Told to stop, they have a while. */
static int wait_for(family *f, bool stop) {
    const double patience = 2;
    const int often_ms = 20;
    double end = 0;
    int code = 0;
    while (reap(f, &code)) {
        if ((stop || child_caught()) && end == 0) {
            kill_all(f, SIGTERM);
            end = now_seconds() + patience;
        }
        if (end > 0 && now_seconds() > end) kill_all(f, SIGKILL);
        poll(NULL, 0, often_ms);
    }
    return code;
}

int comm_children_run(int n, int (*run)(int rank, const char *store, void *user), void *user) {
    family f = {.run = run, .user = user, .alive = -1};
    child_catch_signals();
    int code = make_folder(&f);
    if (code) return code;
    code = start_cleaner(&f);
    if (!code) code = start_ranks(&f, n);
    int waited = wait_for(&f, code != 0);
    end_cleaner(&f);
    if (child_caught()) return EXIT_SIGNAL + child_caught();
    return code ? code : waited;
}
