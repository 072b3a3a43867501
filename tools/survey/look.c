#define _DEFAULT_SOURCE /* mkdtemp, symlink */
#include "tools/survey/look.h"

#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/common/message.h"
#include "tools/survey/survey.h"

enum { LOOK_SECONDS = 2, ASK_SECONDS = 10, PATIENT_SECONDS = 60 };

static const char variable[] = "CLTRAIN_DRIVERS";

extern char **environ;

/* ---- in this process ---- */

static volatile sig_atomic_t looking;
static char **arguments;

/* Of what may be called in a handler alone. */
static void begin_anew(void) {
    looking = 0;
    alarm(0);
    execve("/proc/self/exe", arguments, environ);
    _exit(EXIT_FAILED);
}

static void on_signal(int number) {
    if (looking) begin_anew();
    signal(number, SIG_DFL);
    raise(number);
}

static void on_exit_within(void) {
    if (looking) begin_anew();
}

/* Drivers may have handlers of their own by now. */
static void give_back(int number, const struct sigaction *kept) {
    struct sigaction now;
    if (sigaction(number, NULL, &now) == 0 && now.sa_handler == on_signal) sigaction(number, kept, NULL);
}

static size_t enumerate(void) {
    clt_device_info *infos = NULL;
    size_t count = 0;
    clt_device_enumerate(&infos, &count);
    clt_device_infos_free(infos);
    return count;
}

static size_t look(char **argv) {
    static const int numbers[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGALRM};
    enum { NUMBERS = sizeof numbers / sizeof numbers[0] };
    struct sigaction kept[NUMBERS], own = {.sa_handler = on_signal, .sa_flags = SA_NODEFER};
    sigemptyset(&own.sa_mask);
    arguments = argv;
    atexit(on_exit_within);
    setenv(variable, "ask", 1);
    for (int i = 0; i < NUMBERS; i++) sigaction(numbers[i], &own, &kept[i]);
    looking = 1;
    alarm(LOOK_SECONDS);
    size_t count = enumerate();
    alarm(0);
    looking = 0;
    for (int i = 0; i < NUMBERS; i++) give_back(numbers[i], &kept[i]);
    unsetenv(variable);
    return count;
}

/* ---- in a child each ---- */

static bool fails(const survey_driver *row) {
    return strcmp(row->status, "ok") && strcmp(row->status, "unsupported");
}

/* From now on the loader sees the other drivers alone: it reads a folder of links to them once. */
static int leave_out(const survey *s) {
    char folder[4096], link[4608];
    const char *above = getenv("TMPDIR");
    snprintf(folder, sizeof folder, "%.4000s/cltrain-drivers-XXXXXX", above && *above ? above : "/tmp");
    if (!mkdtemp(folder)) return run_error("no folder for the drivers that are left can be made: %s", folder);
    for (int i = 0; i < s->n_drivers; i++) {
        snprintf(link, sizeof link, "%s/%d.icd", folder, i);
        if (fails(&s->driver_rows[i])) warning("the OpenCL driver %s is left out: %s: %s", s->drivers[i].name, s->driver_rows[i].status, s->driver_rows[i].reason);
        else if (symlink(s->drivers[i].vendors, link)) warning("%s: no link can be made", link);
    }
    setenv("OCL_ICD_VENDORS", folder, 1);
    unsetenv("OPENCL_VENDOR_PATH");
    unsetenv("OCL_ICD_FILENAMES");
    enumerate();
    for (int i = 0; i < s->n_drivers; i++) {
        snprintf(link, sizeof link, "%s/%d.icd", folder, i);
        unlink(link);
    }
    rmdir(folder);
    return 0;
}

static bool any_silent(const survey *s) {
    bool any = false;
    for (int i = 0; i < s->n_drivers; i++) any |= !strcmp(s->driver_rows[i].status, "timeout");
    return any;
}

/* What keeps devices away: of drivers that others stand beside, what is nobody's choice. Who wants a device tells that there is none. */
static void tell_hints(bool none) {
    driver *drivers;
    char where[4096], hint[256];
    int n = drivers_find(&drivers, where);
    for (int i = 0; i < n; i++)
        if ((none ? driver_hint : driver_fault)(&drivers[i], hint)) warning("%s: %s", drivers[i].name, hint);
    if (n >= 0) free(drivers);
}

static int ask(void) {
    survey s;
    bool any = false;
    unsetenv(variable);
    message_line("One of the OpenCL drivers ends the program or does not answer: each is asked by itself.");
    int code = survey_run(&s, false, ASK_SECONDS);
    if (!code && !s.n_devices && any_silent(&s)) { /* slow, perhaps: there is no other */
        message_line("None has answered in %d s: they get %d s.", ASK_SECONDS, PATIENT_SECONDS);
        survey_free(&s);
        code = survey_run(&s, false, PATIENT_SECONDS);
    }
    if (!code) code = survey_require_devices(&s);
    if (!code) tell_hints(false);
    for (int i = 0; !code && i < s.n_drivers; i++) any |= fails(&s.driver_rows[i]);
    if (any) code = leave_out(&s);
    survey_free(&s);
    return code;
}

/* ---- one device, opened and used in this process ---- */

enum { OPEN_SECONDS = 20 };

static volatile sig_atomic_t opening;
static char remedy[400]; /* of a handler, which may not make texts */

static void tell(const char *what) {
    const char *const texts[] = {program_name, what, remedy};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        if (write(STDERR_FILENO, texts[i], strlen(texts[i])) < 0) return;
}

enum { CRASHES = 4 };
static const int crashes[CRASHES] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE};
static struct sigaction before[CRASHES]; /* of drivers, whose compilers have handlers, or sanitizers */

static void on_crash(int number) {
    tell(opening ? ": a crash while the device was opened" : ": a crash, in this program or in the device's driver");
    for (int i = 0; i < CRASHES; i++)
        if (crashes[i] == number) sigaction(number, &before[i], NULL);
    raise(number);
}

static void on_slow(int number) {
    (void)number;
    if (opening) tell(": the device's driver has taken 20 s to open it, and may hang");
}

static void on_exit_of_driver(void) {
    if (!opening) return;
    tell(": the device's driver ended the process while it was opened");
    _exit(EXIT_FAILED);
}

/* Once a process. */
static void catch_failures(void) {
    struct sigaction crash = {.sa_handler = on_crash}, slow = {.sa_handler = on_slow, .sa_flags = SA_RESTART};
    static bool caught;
    if (caught) return;
    caught = true;
    for (int i = 0; i < CRASHES; i++) sigaction(crashes[i], &crash, &before[i]);
    sigaction(SIGALRM, &slow, NULL);
    atexit(on_exit_of_driver);
}

clt_status look_open(clt_device **device, const char *selector) {
    snprintf(remedy, sizeof remedy, ".\n%s: cltrain-probe asks each driver in a process of its own; --device chooses another device than %.100s\n", program_name,
             selector && *selector ? selector : "the fastest class");
    catch_failures();
    opening = 1;
    alarm(OPEN_SECONDS);
    clt_status status = clt_device_open(device, selector);
    alarm(0);
    opening = 0;
    return status;
}

int look_for_devices(char **argv) {
    const char *how = getenv(variable);
    if (how && !strcmp(how, "ask")) return ask();
    tell_hints(look(argv) == 0);
    return 0;
}
