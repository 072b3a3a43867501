#define _GNU_SOURCE /* pipe2 */
#include "guard.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

enum { MOST_GROUPS = 8192 };

typedef struct guard_message {
    pid_t group;
    bool living;
} guard_message;

static int to_guard = -1;
static pid_t guard;

static void note(pid_t *groups, int *n, const guard_message *m) {
    for (int i = 0; i < *n; i++)
        if (groups[i] == m->group) groups[i--] = groups[--*n];
    if (m->living && *n < MOST_GROUPS) groups[(*n)++] = m->group;
}

static void watch(int from) {
    static pid_t groups[MOST_GROUPS];
    int n = 0;
    guard_message m;
    for (;;) {
        ssize_t got = read(from, &m, sizeof m); /* as they were written: whole */
        if (got < 0 && errno == EINTR) continue;
        if (got != sizeof m) break;
        note(groups, &n, &m);
    }
    for (int i = 0; i < n; i++) kill(-groups[i], SIGKILL);
    _exit(0);
}

bool guard_start(void) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC)) return false;
    guard = fork();
    if (guard < 0) {
        close(ends[0]);
        close(ends[1]);
        return false;
    }
    if (guard == 0) {
        setpgid(0, 0); /* what a terminal or a scheduler sends to the launcher's group is not for us */
        for (int fd = 0; fd < 1024; fd++)
            if (fd != ends[0]) close(fd);
        for (int s = 1; s < NSIG; s++) signal(s, SIG_IGN);
        watch(ends[0]);
    }
    close(ends[0]);
    to_guard = ends[1];
    return true;
}

pid_t guard_pid(void) {
    return guard;
}

static void tell(pid_t group, bool living) {
    guard_message m;
    memset(&m, 0, sizeof m);
    m.group = group;
    m.living = living;
    while (to_guard >= 0 && write(to_guard, &m, sizeof m) < 0 && errno == EINTR) continue;
}

void guard_add(pid_t group) {
    tell(group, true);
}

void guard_remove(pid_t group) {
    tell(group, false);
}
