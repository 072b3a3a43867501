#define _GNU_SOURCE /* sched_getaffinity */
#include "system.h"

#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

bool terminal_present(void) {
    const char *kind = getenv("TERM");
    return isatty(STDERR_FILENO) && !(kind && strcmp(kind, "dumb") == 0);
}

static volatile sig_atomic_t caught;

static void note_signal(int number) {
    caught = number;
}

static bool ignores_hangup;

void signals_look(void) {
    struct sigaction hangup;
    ignores_hangup = sigaction(SIGHUP, NULL, &hangup) == 0 && hangup.sa_handler == SIG_IGN;
}

void signals_catch(void) {
    /* SA_RESETHAND: the second one finds the default action. SA_RESTART: reads and writes under
     * way, those of the OpenCL driver among them, are not cut short. */
    struct sigaction action = {.sa_handler = note_signal, .sa_flags = SA_RESETHAND | SA_RESTART}, ignore = {.sa_handler = SIG_IGN};
    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGHUP, ignores_hangup ? &ignore : &action, NULL); /* a terminal that was closed */
}

int signals_caught(void) {
    return caught;
}

int64_t file_bytes(const char *path) {
    struct stat facts;
    return stat(path, &facts) == 0 ? (int64_t)facts.st_size : 0;
}

int64_t memory_bytes(void) {
    return (int64_t)sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE);
}

int processors(int most) {
    cpu_set_t allowed;
    int n = sched_getaffinity(0, sizeof allowed, &allowed) == 0 ? CPU_COUNT(&allowed) : 1;
    return n < most ? n : most;
}

bool folder_exists(const char *path) {
    struct stat facts;
    return stat(path, &facts) == 0 && S_ISDIR(facts.st_mode);
}

bool file_written_since(const char *path, double since) {
    struct stat facts;
    if (!file_readable(path) || stat(path, &facts)) return false;
    /* The clock of files may be behind by a tick. */
    return (double)facts.st_mtim.tv_sec + 1e-9 * (double)facts.st_mtim.tv_nsec >= since - 0.1;
}

bool file_readable(const char *path) {
    return access(path, R_OK) == 0;
}
