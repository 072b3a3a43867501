#include "tools/survey/child.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>
#ifdef __linux__
#include <sys/prctl.h>
#endif

#include "tools/common/clock.h"

enum { MOST_AT_ONCE = 8, MOST_LINE = 1 << 20, MOST_BYTES = 1 << 26, TAIL = 512 };

typedef struct child {
    const child_job *job;
    child_end *end;
    pid_t pid;
    int lines, errors; /* ends of pipes; -1: closed */
    char *text;        /* what is not yet a whole line */
    size_t length, total;
    char tail[TAIL];   /* of what it wrote to stderr */
    size_t tail_length;
    double began, heard; /* heard: when it last said something */
    bool killed;
    bool told_all; /* its run() came to an end, and all that it said is here */
} child;

/* The last line of a child: one that ends without it was ended by a driver, whatever its exit code says. */
static const char last_line[] = ".";

static bool show_errors;
static volatile sig_atomic_t caught;

void child_show_errors(bool show) {
    show_errors = show;
}

static void note_signal(int number) {
    caught = number;
}

void child_catch_signals(void) {
    struct sigaction action = {.sa_handler = note_signal, .sa_flags = SA_RESETHAND}, hangup;
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    /* What nohup started outlives its terminal. */
    if (sigaction(SIGHUP, NULL, &hangup) == 0 && hangup.sa_handler != SIG_IGN) sigaction(SIGHUP, &action, NULL);
}

int child_caught(void) {
    return caught;
}

const char *child_status(const child_end *end) {
    switch (end->outcome) {
    case CHILD_DONE: return "ok";
    case CHILD_TIMEOUT:
    case CHILD_STOPPED: return "timeout";
    case CHILD_NONSENSE: return "suspect";
    default: return "crashed";
    }
}

/* ---- in the child ---- */

_Noreturn static void be_child(const child_job *job, int lines, int errors) {
    static const int reset[] = {SIGINT, SIGTERM, SIGHUP, SIGPIPE, SIGSEGV, SIGABRT, SIGBUS, SIGFPE, SIGILL};
    for (size_t i = 0; i < sizeof reset / sizeof reset[0]; i++) signal(reset[i], SIG_DFL);
    setpgid(0, 0);
#ifdef __linux__
    prctl(PR_SET_PDEATHSIG, SIGKILL); /* it does not outlive the program */
    prctl(PR_SET_DUMPABLE, 0);        /* nor leave a core behind */
#endif
    int nothing = open("/dev/null", O_RDWR);
    if (nothing >= 0) dup2(nothing, STDIN_FILENO);
    if (!show_errors) dup2(errors, STDERR_FILENO);
    dup2(STDERR_FILENO, STDOUT_FILENO); /* drivers print: stdout is the program's alone */
    FILE *file = fdopen(lines, "w");
    int code = file ? job->run(file, job->user) : 1;
    if (file) fprintf(file, "%s\n", last_line), fflush(file);
    _exit(code); /* what drivers do at exit is not asked for */
}

/* ---- beginning and end ---- */

static void fail_start(child *c, const char *what) {
    *c->end = (child_end){.outcome = CHILD_FAILED, .code = -1};
    snprintf(c->end->reason, sizeof c->end->reason, "%s: %s", what, strerror(errno));
}

static bool start(child *c, const child_job *job, child_end *end) {
    int lines[2], errors[2];
    *c = (child){.job = job, .end = end, .lines = -1, .errors = -1, .began = now_seconds()};
    c->heard = c->began;
    *end = (child_end){.outcome = CHILD_DONE};
    c->text = malloc(MOST_LINE + 1);
    if (!c->text || pipe(lines) < 0) {
        fail_start(c, "making a pipe");
        free(c->text);
        return false;
    }
    if (pipe(errors) < 0) {
        fail_start(c, "making a pipe");
        close(lines[0]), close(lines[1]), free(c->text);
        return false;
    }
    fflush(NULL);
    c->pid = fork();
    if (c->pid == 0) {
        close(lines[0]), close(errors[0]);
        be_child(job, lines[1], errors[1]);
    }
    if (c->pid < 0) fail_start(c, "starting a process");
    else setpgid(c->pid, c->pid);
    close(lines[1]), close(errors[1]);
    if (c->pid < 0) {
        close(lines[0]), close(errors[0]), free(c->text);
        return false;
    }
    c->lines = lines[0], c->errors = errors[0];
    return true;
}

static void kill_child(child *c, child_outcome outcome, const char *reason) {
    if (c->killed) return;
    c->killed = true;
    c->end->outcome = outcome;
    snprintf(c->end->reason, sizeof c->end->reason, "%s", reason);
    kill(-c->pid, SIGKILL);
    kill(c->pid, SIGKILL);
}

/* The last line that it wrote to stderr, which is often what killed it; printable. */
static const char *last_words(child *c) {
    while (c->tail_length && (unsigned char)c->tail[c->tail_length - 1] <= ' ') c->tail_length--;
    c->tail[c->tail_length] = 0;
    char *line = strrchr(c->tail, '\n');
    line = line ? line + 1 : c->tail;
    for (char *at = line; *at; at++)
        if (*at < ' ' || *at > '~') *at = '?';
    return line;
}

/* False: time is up. */
static bool await_end(const child *c, int *status, double seconds) {
    double end = now_seconds() + seconds;
    for (;;) {
        pid_t got = waitpid(c->pid, status, WNOHANG);
        if (got == c->pid || (got < 0 && errno != EINTR)) return true;
        if (now_seconds() > end) return false;
        poll(NULL, 0, 2);
    }
}

/* A driver that hangs in the kernel: its process ends when the kernel lets it. */
static void give_up(child *c) {
    char *reason = c->end->reason;
    size_t used = strlen(reason);
    c->end->outcome = CHILD_TIMEOUT;
    snprintf(reason + used, sizeof c->end->reason - used, "; process %ld cannot be killed", (long)c->pid);
}

/* One that hangs behind its last line, or in the driver's own end, is not waited for long, nor is one that was killed. */
static void wait_for(child *c, int *status) {
    const double patience = 2, patience_killed = 5;
    if (!c->killed && await_end(c, status, patience)) return;
    kill_child(c, CHILD_TIMEOUT, "it did not end");
    if (!await_end(c, status, patience_killed)) give_up(c);
}

static void finish(child *c) {
    int status = 0;
    if (c->lines >= 0) close(c->lines);
    if (c->errors >= 0) close(c->errors);
    wait_for(c, &status);
    kill(-c->pid, SIGKILL); /* what it may have started */
    child_end *e = c->end;
    e->seconds = now_seconds() - c->began;
    if (!c->killed && WIFSIGNALED(status)) {
        e->outcome = CHILD_CRASHED;
        snprintf(e->reason, sizeof e->reason, "ended by signal %d (%s)", WTERMSIG(status), strsignal(WTERMSIG(status)));
    } else if (!c->killed && WEXITSTATUS(status)) {
        e->outcome = CHILD_FAILED;
        e->code = WEXITSTATUS(status);
        snprintf(e->reason, sizeof e->reason, "ended with exit code %d", e->code);
    } else if (!c->killed && !c->told_all) {
        e->outcome = CHILD_FAILED;
        snprintf(e->reason, sizeof e->reason, "the process was ended, with exit code 0, before it had told all");
    }
    const char *words = last_words(c);
    size_t used = strlen(e->reason);
    if (e->outcome != CHILD_DONE && words[0])
        snprintf(e->reason + used, sizeof e->reason - used, "; it said: %.160s", words);
    free(c->text);
    c->pid = 0;
}

/* ---- what it says ---- */

static void take_lines(child *c) {
    char *begin = c->text, *end;
    c->text[c->length] = 0;
    while (!c->killed && (end = memchr(begin, '\n', c->length - (size_t)(begin - c->text)))) {
        *end = 0;
        if (strcmp(begin, last_line) == 0) c->told_all = true;
        else if (!c->job->line(begin, c->job->user)) kill_child(c, CHILD_STOPPED, "stopped");
        begin = end + 1;
    }
    c->length -= (size_t)(begin - c->text);
    memmove(c->text, begin, c->length);
}

static void hear_lines(child *c) {
    ssize_t got = read(c->lines, c->text + c->length, MOST_LINE - c->length);
    if (got <= 0) {
        if (got < 0 && (errno == EINTR || errno == EAGAIN)) return;
        close(c->lines);
        c->lines = -1;
        return;
    }
    c->heard = now_seconds();
    c->length += (size_t)got;
    c->total += (size_t)got;
    take_lines(c);
    if (c->length == MOST_LINE || c->total > MOST_BYTES) kill_child(c, CHILD_NONSENSE, "it said more than there can be");
}

static void hear_errors(child *c) {
    char text[TAIL];
    ssize_t got = read(c->errors, text, sizeof text - 1);
    if (got <= 0) {
        if (got < 0 && (errno == EINTR || errno == EAGAIN)) return;
        close(c->errors);
        c->errors = -1;
        return;
    }
    size_t keep = sizeof c->tail - 1 - (size_t)got;
    if (c->tail_length > keep) {
        memmove(c->tail, c->tail + c->tail_length - keep, keep);
        c->tail_length = keep;
    }
    memcpy(c->tail + c->tail_length, text, (size_t)got);
    c->tail_length += (size_t)got;
}

static bool is_readable(int file) {
    return file >= 0 && poll(&(struct pollfd){.fd = file, .events = POLLIN}, 1, 0) > 0;
}

/* It stays to be waited for. */
static bool has_ended(const child *c) {
    siginfo_t facts = {0};
    return waitid(P_PID, (id_t)c->pid, &facts, WEXITED | WNOHANG | WNOWAIT) == 0 && facts.si_pid == c->pid;
}

/* A child is over when the pipe of its lines is closed, or when it has ended: what a driver started may hold pipes open, and
 * write to them on and on. */
static bool is_over(child *c) {
    if (c->lines < 0) return true;
    if (!has_ended(c)) return false;
    while (!c->killed && is_readable(c->lines)) hear_lines(c);
    return true;
}

static void hear_last_errors(child *c) {
    const int most = 256;
    for (int i = 0; i < most && is_readable(c->errors); i++) hear_errors(c);
}

static void watch(child *children, int n) {
    struct pollfd fds[2 * MOST_AT_ONCE];
    for (int i = 0; i < n; i++) {
        fds[2 * i] = (struct pollfd){.fd = children[i].pid ? children[i].lines : -1, .events = POLLIN};
        fds[2 * i + 1] = (struct pollfd){.fd = children[i].pid ? children[i].errors : -1, .events = POLLIN};
    }
    poll(fds, (nfds_t)(2 * n), 50);
    double now = now_seconds();
    for (int i = 0; i < n; i++) {
        child *c = &children[i];
        char reason[96];
        if (!c->pid) continue;
        if (fds[2 * i + 1].revents) hear_errors(c);
        if (fds[2 * i].revents) hear_lines(c);
        if (caught) kill_child(c, CHILD_STOPPED, "the program was told to stop");
        snprintf(reason, sizeof reason, "it said nothing for %.3g s", c->job->silence_seconds);
        if (now - c->heard > c->job->silence_seconds) kill_child(c, CHILD_TIMEOUT, reason);
        if (c->killed || is_over(c)) {
            hear_last_errors(c);
            finish(c);
        }
    }
}

void child_run(const child_job *jobs, int n, int at_once, child_end *ends) {
    child running[MOST_AT_ONCE] = {{0}};
    int next = 0, slots = at_once < 1 ? 1 : at_once > MOST_AT_ONCE ? MOST_AT_ONCE : at_once;
    signal(SIGPIPE, SIG_IGN);
    for (bool any = true; any;) {
        any = false;
        for (int i = 0; i < slots; i++) {
            while (!running[i].pid && next < n && !caught) {
                if (!start(&running[i], &jobs[next], &ends[next])) running[i].pid = 0;
                next++;
            }
            any |= running[i].pid != 0;
        }
        if (any) watch(running, slots);
    }
    for (; next < n; next++) {
        ends[next] = (child_end){.outcome = CHILD_STOPPED};
        snprintf(ends[next].reason, sizeof ends[next].reason, "the program was told to stop");
    }
}
