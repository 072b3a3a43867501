#define _GNU_SOURCE /* pipe2, strsignal */
#include "supervise.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "ranks.h"
#include "tools/common/clock.h"
#include "tools/common/message.h"

enum { IDLE_MS = 1000, FIRST_OUTPUT = 3 };

/* ---- signals: each is a byte in a pipe ---- */

static int signals[2];

static void note_signal(int number) {
    int error = errno;
    unsigned char byte = (unsigned char)number;
    if (write(signals[1], &byte, 1) < 0) errno = 0; /* full: enough is known */
    if (number != SIGCHLD && number != SIGUSR1 && number != SIGUSR2) outputs_hurry();
    errno = error;
}

enum { CAUGHT = 7 };
static const int caught[CAUGHT] = {SIGCHLD, SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2};
static struct sigaction before[CAUGHT];

int supervise_prepare(void) {
    if (pipe2(signals, O_CLOEXEC | O_NONBLOCK)) return run_error("a pipe: %s", strerror(errno));
    signal(SIGPIPE, SIG_IGN);
    /* What ranks leave behind becomes ours, to be ended. */
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    return 0;
}

/* Without SA_RESTART: a signal ends what we wait for. What is ignored (nohup) stays so. */
static void take_over_signals(void) {
    struct sigaction action = {.sa_handler = note_signal};
    sigfillset(&action.sa_mask);
    for (int i = 0; i < CAUGHT; i++) {
        sigaction(caught[i], NULL, &before[i]);
        if (before[i].sa_handler != SIG_IGN || caught[i] == SIGCHLD) sigaction(caught[i], &action, NULL);
    }
}

/* While there are no ranks, a signal ends the launcher as it does any program. */
static void give_signals_back(void) {
    for (int i = 0; i < CAUGHT; i++) sigaction(caught[i], &before[i], NULL);
}

/* ---- a start ---- */

typedef struct start {
    const job *j;
    ranks r;
    int news;            /* a descriptor; -1: none (more) to come */
    end_of_start end;    /* once it is decided, here or elsewhere */
    int first_status, first_rank; /* of the first rank here that failed; 0: none */
    int last_status;     /* of the one that ended last */
    bool stopping, killed, interrupted;
    double kill_at, give_up_at, late_at; /* late_at: 0 until a rank has ended well */
    bool late;               /* those left are taken for hung */
    struct pollfd *polled;
} start;

static void stop(start *s, int number) {
    ranks_signal(&s->r, number);
    ranks_signal(&s->r, SIGCONT); /* one that was stopped shall hear it */
    if (s->stopping) return;
    s->stopping = true;
    s->kill_at = now_seconds() + s->j->options->grace_seconds;
}

static void decide(start *s, end_kind kind, int status, int rank) {
    if (s->end.kind != END_NONE) return;
    s->end = (end_of_start){kind, status, rank};
    agree_tell(s->j, &s->end);
}

static void describe_end(const rank_process *p) {
    if (p->status > EXIT_SIGNAL && strsignal(p->status - EXIT_SIGNAL))
        message_line(PROGRAM ": rank %d ended with status %d (%s)", p->rank, p->status, strsignal(p->status - EXIT_SIGNAL));
    else message_line(PROGRAM ": rank %d ended with status %d", p->rank, p->status);
}

static void note_end(start *s, const rank_process *p) {
    if (!s->late) s->last_status = p->status;
    if (p->status == 0 && !s->late_at) s->late_at = now_seconds() + s->j->options->late_seconds;
    if (p->status == 0) return;
    if (!s->stopping || !s->first_status) describe_end(p);
    if (!s->first_status) {
        s->first_status = p->status;
        s->first_rank = p->rank;
    }
    if (s->stopping) return;
    if (s->j->options->on_failure == ON_FAILURE_CONTINUE) {
        if (s->r.living) agree_lost(s->j, p->rank, p->status);
        return;
    }
    decide(s, END_FAILED, p->status, p->rank);
    stop(s, SIGTERM);
}

static void reap(start *s) {
    for (rank_process *p; (p = ranks_reap(&s->r));) note_end(s, p);
}

static void kill_all(start *s) {
    const double patience = 5;
    ranks_signal(&s->r, SIGKILL);
    if (!s->killed) s->give_up_at = now_seconds() + patience;
    s->killed = true;
}

static void give_up_killed(start *s) {
    if (!s->killed || now_seconds() < s->give_up_at) return;
    for (rank_process *p; (p = ranks_give_up(&s->r));) {
        message_line(PROGRAM ": rank %d (process %ld) cannot be killed: it is left", p->rank, (long)p->pid);
        note_end(s, p);
    }
}

/* The second time it is meant. */
static void interrupt(start *s, int number) {
    if (s->interrupted) {
        kill_all(s);
        return;
    }
    s->interrupted = true;
    stop(s, number);
    decide(s, END_STOPPED, EXIT_SIGNAL + number, -1);
}

static void take_signals(start *s) {
    unsigned char number;
    while (read(signals[0], &number, 1) == 1) {
        if (number == SIGUSR1 || number == SIGUSR2) ranks_signal(&s->r, number);
        else if (number != SIGCHLD) interrupt(s, number);
    }
    reap(s);
}

static void take_news(start *s) {
    end_of_start news = agree_news();
    s->news = -1;
    if (s->end.kind == END_NONE) {
        s->end = news;
        if (news.kind == END_FAILED) message_line(PROGRAM ": rank %d, on another host, ended with status %d", news.rank, news.status);
        if (news.kind == END_STOPPED) message_line(PROGRAM ": another host ended the job");
        if (news.kind == END_LOST) run_error("the launcher that serves the store is gone, or was out of reach for %g s (--outage)", s->j->options->outage_seconds);
    }
    if (s->r.living) stop(s, SIGTERM);
}

/* ---- waiting ---- */

/* Ranks of a job end together. With "continue" one may be hung, and the others have gone on without it: it would never end. */
static bool is_late(const start *s) {
    return s->j->options->on_failure == ON_FAILURE_CONTINUE && s->late_at && now_seconds() >= s->late_at;
}

static void give_up_late(start *s) {
    if (s->late || s->stopping || !s->r.living || !is_late(s)) return;
    message_line(PROGRAM ": %d rank%s still at work %g s after another ended well (--late): ended", s->r.living,
                 PLURAL(s->r.living), s->j->options->late_seconds);
    s->late = true;
    stop(s, SIGTERM);
}

static int milliseconds_to_wait(const start *s) {
    double left = s->kill_at - now_seconds();
    if (!s->stopping || s->killed) return IDLE_MS;
    return left <= 0 ? 0 : left > 1 ? IDLE_MS : (int)(left * 1000) + 1;
}

static void move_output(output *o, const struct pollfd *polled) {
    if (polled->revents && !output_move(o)) output_end(o);
}

/* Once, whatever comes first. */
static void wait_and_act(start *s) {
    struct pollfd *p = s->polled;
    nfds_t n = FIRST_OUTPUT;
    p[0] = (struct pollfd){signals[0], POLLIN, 0};
    p[1] = (struct pollfd){s->news, POLLIN, 0};
    p[2] = (struct pollfd){outputs_room(), POLLIN, 0};
    for (int i = 0; i < s->r.n; i++) {
        p[n++] = (struct pollfd){output_source(&s->r.all[i].out), POLLIN, 0};
        p[n++] = (struct pollfd){output_source(&s->r.all[i].err), POLLIN, 0};
    }
    if (poll(p, n, milliseconds_to_wait(s)) < 0) return; /* a signal: it is in the pipe */
    for (int i = 0; i < s->r.n; i++) {
        move_output(&s->r.all[i].out, &p[FIRST_OUTPUT + 2 * i]);
        move_output(&s->r.all[i].err, &p[FIRST_OUTPUT + 2 * i + 1]);
    }
    if (p[0].revents) take_signals(s);
    if (p[1].revents) take_news(s);
    if (p[2].revents) outputs_take_room();
    outputs_look();
    if (outputs_are_broken() && !s->interrupted) interrupt(s, SIGPIPE);
    give_up_late(s);
    if (s->stopping && !s->killed && now_seconds() >= s->kill_at) {
        if (s->r.living) message_line(PROGRAM ": %d rank%s did not end by themselves: killed", s->r.living, PLURAL(s->r.living));
        kill_all(s);
    }
    give_up_killed(s);
}

/* ---- the whole ---- */

/* The status of this host's ranks, when all have ended. */
static int local_status(const start *s) {
    if (s->j->options->on_failure == ON_FAILURE_CONTINUE && !s->interrupted && s->last_status == 0) return 0;
    return s->first_status;
}

static void await_ranks(start *s) {
    int code = ranks_start(&s->r, s->j);
    if (code) {
        decide(s, END_STOPPED, code, -1);
        stop(s, SIGTERM);
    }
    while (s->r.living) wait_and_act(s);
    ranks_end(&s->r);
}

/* The other hosts' ranks may still be at work. */
static void await_others(start *s) {
    if (s->end.kind == END_NONE) agree_done(s->j, local_status(s));
    if (!s->late_at) s->late_at = now_seconds() + s->j->options->late_seconds;
    while (s->end.kind == END_NONE && !is_late(s)) wait_and_act(s);
    if (s->end.kind != END_NONE) return;
    message_line(PROGRAM ": another host said nothing %g s after the ranks here ended (--late)", s->j->options->late_seconds);
    decide(s, END_DONE, local_status(s), -1);
}

static end_of_start conclude(const start *s) {
    end_of_start end = s->end;
    if (s->j->options->nodes == 1 && end.kind == END_NONE) end = (end_of_start){END_DONE, local_status(s), s->first_rank};
    /* Asked to end, and all did so well: then it is well. */
    if (s->interrupted && end.kind == END_STOPPED) end.status = outputs_are_broken() ? EXIT_SIGNAL + SIGPIPE : s->first_status;
    if (end.kind == END_DONE && end.status) end.kind = END_FAILED; /* with "continue": nobody was left */
    if (s->interrupted && end.kind == END_FAILED) end.kind = END_STOPPED;
    return end;
}

end_of_start supervise(const job *j) {
    start s = {.j = j, .news = -1, .first_rank = -1, .end.rank = -1};
    take_over_signals();
    s.polled = calloc(FIRST_OUTPUT + 2 * (size_t)j->options->ranks, sizeof *s.polled);
    int code = s.polled ? agree_listen(j, &s.news) : run_error("no memory for %d ranks", (int)j->options->ranks);
    if (code) {
        s.end = (end_of_start){END_STOPPED, code, -1};
        agree_tell(j, &s.end);
    } else {
        await_ranks(&s);
        if (j->options->nodes > 1) await_others(&s);
    }
    agree_listen_end();
    give_signals_back();
    free(s.polled);
    return conclude(&s);
}
