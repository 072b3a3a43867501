/*
 * Runs every scenario with the Nth OpenCL call, or allocation, failing: once and for ever, N = 1 until nothing is left to
 * fail. Each time there must come back an error with words, or what comes back without a fault; nothing may be left
 * over; and the same device must then do the same work with the same bits, or say that it is lost, and do it opened anew.
 *
 *     loop SHIM [--kind calls|memory] [--scenario NAME] [--points P] [--seed S] [--nth N] [--from N] [--to N] [--once|--for-ever] [--call clName]
 *
 * --points: of each loop only so many N, evenly spread from where the seed says, half of them where a run is slow or compiles anew,
 * and no scenario that is dear, if it is not named. Default 0: every N.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <ftw.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/base/base.h"
#include "runtime/base/thread.h"
#include "runtime/device/device.h"
#include "tests/faults/allocations.h"
#include "tests/faults/scenarios.h"
#include "tests/faults/shim.h"

enum { DEADLINE_SECONDS = 120 };

typedef struct fault {
    bool memory, for_ever;
    const char *call;
    long nth;
} fault;

static struct {
    const char *scenario, *kind, *call;
    long points, seed, nth, from, to;
    int modes; /* 1: once, 2: for ever */
} options = {.points = 0, .seed = 1, .modes = 3};

static const shim_control *shim;
static char folder[400], now[256];
static long n_runs, n_injected, n_errors, n_harmless, n_lost, n_failures;

/* ---- what hangs or crashes says where ---- */

static _Atomic double deadline; /* 0: none */

static void *watch(void *argument) {
    (void)argument;
    for (;;) {
        usleep(250000);
        double at = deadline;
        if (at == 0 || clt_seconds() < at) continue;
        fprintf(stderr, "hangs: %s, first failed call %s\n", now, shim->first());
        abort();
    }
}

static void say_where(void) {
    fprintf(stderr, "crashes: %s, first failed call %s\n", now, shim ? shim->first() : "");
}

/* AddressSanitizer calls it before its report. */
void __asan_on_error(void);
void __asan_on_error(void) {
    say_where();
}

static void on_signal(int number) {
    say_where();
    signal(number, SIG_DFL);
    raise(number);
}

/* ---- folders ---- */

static int remove_one(const char *path, const struct stat *s, int type, struct FTW *f) {
    (void)s, (void)type, (void)f;
    return remove(path);
}

static void remove_tree(const char *path) {
    nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static void use_cache(const char *name, bool fresh) {
    char path[512];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    if (fresh) remove_tree(path);
    mkdir(path, 0700);
    setenv("XDG_CACHE_HOME", path, 1);
}

/* ---- one run ---- */

static void complain(const char *what, const char *detail) {
    n_failures++;
    printf("FAILED %s: %s%s%s (first failed call %s)\n", now, what, *detail ? ": " : "", detail, shim->first());
    fflush(stdout);
}

static void arm(const fault *f) {
    shim->arm(f->call, f->memory ? 0 : f->nth, f->for_ever);
    allocations_arm(f->memory ? f->nth : 0, f->for_ever);
}

static void disarm(void) {
    shim->disarm();
    allocations_disarm();
}

static long hits(const fault *f) {
    return f->memory ? allocations_hits() : shim->hits();
}

static long calls(const fault *f) {
    return f->memory ? allocations_calls() : shim->calls();
}

static bool same(const digest *a, const digest *b) {
    return a->hash == b->hash && !strcmp(a->words, b->words);
}

/* After a wait that failed nobody knows whether what it waited for was done: that is an error, or the device is lost. */
static bool is_told(const scenario *s, const fault *f, const clt_device *device) {
    bool waits = !strcmp(shim->first(), "clFinish") || !strcmp(shim->first(), "clWaitForEvents");
    return f->memory || !waits || !device || s->tries || clt_device_is_lost(device);
}

/* What came back under a fault. */
static void check_outcome(const scenario *s, clt_status status, const char *detail, long hit, const digest *got,
                          const digest *wanted) {
    if (status < 0 && !hit) complain("an error without a fault", detail);
    if (status < 0 && !*detail) complain("an error without words", clt_status_name(status));
    if (status < 0 && !strcmp(clt_status_name(status), "unknown status")) complain("a status that is none", detail);
    if (status >= 0 && !s->mute && !same(got, wanted)) complain("success with other bits", got->words);
    n_errors += status < 0;
    n_harmless += status >= 0 && hit;
}

/* A device that is lost says so in all that is asked of it, until it is opened anew. */
static void open_anew(const scenario *s, clt_device **device) {
    digest d = {0};
    clt_status status = s->run(*device, &d);
    if (status != CLT_E_DEVICE_LOST && !s->apart) complain("a lost device that does not say so", clt_status_name(status));
    clt_device_close(*device);
    if (clt_device_open(device, NULL) < 0) complain("no device", clt_error_detail());
    n_lost++;
}

static void check_usable(const scenario *s, clt_device **device, const digest *wanted) {
    digest d = {0};
    deadline = clt_seconds() + DEADLINE_SECONDS;
    if (*device && clt_device_is_lost(*device)) open_anew(s, device);
    clt_status status = s->run(*device, &d);
    if (status < 0) complain("not usable afterwards", clt_error_detail());
    else if (!same(&d, wanted)) complain("other bits afterwards", d.words);
}

/* What a driver's thread that calls back is about to free is no leak. */
static void check_leaks(long held) {
    char text[256];
    for (int i = 0; i < 200 && allocations_live() != held; i++) usleep(5000);
    if (shim->live(text)) complain("objects of OpenCL are left", text);
    if (allocations_live() == held) return;
    snprintf(text, sizeof text, "%ld blocks", allocations_live() - held);
    complain("memory is left", text);
}

/* True while the fault was met. */
static bool run_once(const scenario *s, const fault *f, const digest *wanted) {
    clt_device *device = NULL;
    digest d = {0};
    char detail[4096];
    long held = allocations_live();
    snprintf(now, sizeof now, "%s, %s %ld %s%s%s", s->name, f->memory ? "allocation" : "call", f->nth,
             f->for_ever ? "and all after it" : "once", f->call ? " of " : "", f->call ? f->call : "");
    use_cache(s->cold ? "cold" : "cache", s->cold);
    deadline = clt_seconds() + DEADLINE_SECONDS;
    if (!s->opens && clt_device_open(&device, NULL) < 0) return complain("no device", clt_error_detail()), false;
    clt_fail(CLT_OK, "%s", "");
    arm(f);
    clt_status status = s->run(device, &d);
    snprintf(detail, sizeof detail, "%s", clt_error_detail());
    long hit = hits(f);
    if (status >= 0 && hit && !is_told(s, f, device)) complain("a wait that failed, without a word", "");
    /* Of devices that fail for ever every other is closed while they do. */
    bool lost = f->for_ever && !s->opens && f->nth % 2;
    if (lost) clt_device_close(device);
    disarm();
    check_outcome(s, status, detail, hit, &d, wanted);
    if (!lost && hit) check_usable(s, &device, wanted);
    if (!lost) clt_device_close(device);
    check_leaks(held);
    deadline = 0;
    n_runs++;
    n_injected += hit;
    return hit > 0;
}

/* ---- all runs of a scenario ---- */

static long count_calls(const scenario *s, const fault *f, digest *wanted) {
    digest again = {0};
    clt_device *device = NULL;
    long n = 0;
    int runs = s->cold && options.points > 0 ? 1 : 2; /* of a cache that is empty each time the first tells how many; runs under faults compare bits, too */
    snprintf(now, sizeof now, "%s, no fault", s->name);
    for (int i = 0; i < runs; i++) {
        digest *d = i ? &again : wanted;
        *d = (digest){0};
        deadline = clt_seconds() + DEADLINE_SECONDS;
        use_cache(s->cold ? "cold" : "cache", s->cold);
        if (!s->opens && clt_device_open(&device, NULL) < 0) complain("no device", clt_error_detail());
        arm(&(fault){.memory = f->memory, .call = f->call});
        clt_status status = s->run(device, d);
        n = calls(f);
        disarm();
        if (!s->opens) clt_device_close(device);
        if (status < 0) complain("it fails by itself", clt_error_detail());
        if (i && !same(&again, wanted)) complain("its bits differ by themselves", again.words);
    }
    deadline = 0;
    return n;
}

static void run_loop(const scenario *s, fault f) {
    digest wanted;
    long failures = n_failures, runs = n_runs, injected = n_injected, errors = n_errors, harmless = n_harmless;
    double start = clt_seconds();
    long missed = 0;
    long total = count_calls(s, &f, &wanted);
    if (n_failures > failures) return;
    for (int mode = 1; mode <= 2; mode++) {
        if (!(options.modes & mode)) continue;
        f.for_ever = mode == 2;
        long points = (s->slow || s->cold) && !options.scenario ? (options.points + 1) / 2 : options.points;
        long step = points > 0 ? CLT_MAX(1, total / points) : 1;
        long first = options.nth ? options.nth : CLT_MAX(options.from, 1) + (options.seed * 7 + mode) % step;
        /* How many there are differs from run to run of a timed one: each N up to the number counted is tried, and beyond it what is met. */
        long most = options.nth ? options.nth : options.to ? options.to : s->timed ? 2 * total : total + 1;
        for (f.nth = first; f.nth <= most; f.nth += step) {
            bool met = run_once(s, &f, &wanted);
            if (!met && (!s->timed || f.nth > total)) break;
            missed += !met;
        }
    }
    printf("%-13s %-6s %6ld calls, %6ld runs, %8ld injected, %6ld errors, %5ld harmless, %ld not met, %ld failed, %.1f s\n", s->name,
           f.memory ? "memory" : "calls", total, n_runs - runs, n_injected - injected, n_errors - errors,
           n_harmless - harmless, missed, n_failures - failures, clt_seconds() - start);
    fflush(stdout);
}

/* ---- the program ---- */

static bool parse(int argc, char **argv) {
    for (int i = 2; i < argc; i++) {
        const char *value = i + 1 < argc ? argv[i + 1] : "";
        if (!strcmp(argv[i], "--once")) options.modes = 1;
        else if (!strcmp(argv[i], "--for-ever")) options.modes = 2;
        else if (!strcmp(argv[i], "--kind")) options.kind = value, i++;
        else if (!strcmp(argv[i], "--scenario")) options.scenario = value, i++;
        else if (!strcmp(argv[i], "--call")) options.call = value, i++;
        else if (!strcmp(argv[i], "--points")) options.points = atol(value), i++;
        else if (!strcmp(argv[i], "--seed")) options.seed = atol(value), i++;
        else if (!strcmp(argv[i], "--nth")) options.nth = atol(value), i++;
        else if (!strcmp(argv[i], "--from")) options.from = atol(value), i++;
        else if (!strcmp(argv[i], "--to")) options.to = atol(value), i++;
        else return false;
    }
    return argc >= 2;
}

/* Behind the shim is the PoCL of OCL_ICD_VENDORS, where that is a folder; else the one that is installed. */
static void choose_driver(void) {
    char path[512], driver[400];
    const char *vendors = getenv("OCL_ICD_VENDORS");
    snprintf(path, sizeof path, "%s/pocl.icd", vendors ? vendors : "");
    FILE *file = vendors ? fopen(path, "r") : NULL;
    if (!file) return;
    if (fscanf(file, "%399s", driver) == 1) setenv("SHIM_DRIVER", driver, 0);
    fclose(file);
}

/* The loader shows the shim alone. */
static bool show_shim(const char *path) {
    char vendors[480], icd[512];
    const char *temporary = getenv("TMPDIR");
    snprintf(folder, sizeof folder, "%.300s/faultsXXXXXX", temporary && *temporary ? temporary : "/tmp");
    if (!mkdtemp(folder)) return perror(folder), false;
    snprintf(vendors, sizeof vendors, "%s/vendors", folder);
    snprintf(icd, sizeof icd, "%s/shim.icd", vendors);
    mkdir(vendors, 0700);
    FILE *file = fopen(icd, "w");
    if (!file) return perror(icd), false;
    fprintf(file, "%s\n", path);
    fclose(file);
    choose_driver();
    setenv("OCL_ICD_VENDORS", vendors, 1);
    setenv("CLTRAIN_TUNE", "off", 1);
    setenv("CLTRAIN_PROGRAM_CACHE", "on", 1);
    /* What is asked is what calls do, not how fast kernels are: PoCL takes half of the time to compile them so. */
    setenv("POCL_EXTRA_BUILD_FLAGS", "-cl-opt-disable", 0);
    scenario_folder = folder;
    void *library = dlopen(path, RTLD_NOW);
    shim_control_get get = library ? (shim_control_get)dlsym(library, SHIM_CONTROL) : NULL;
    if (!get) return fprintf(stderr, "%s\n", dlerror()), false;
    shim = get();
    return true;
}

static void catch_signals(void) {
#ifndef __SANITIZE_ADDRESS__
    const int numbers[] = {SIGSEGV, SIGBUS, SIGFPE, SIGABRT};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) signal(numbers[i], on_signal);
#else
    (void)on_signal;
#endif
}

int main(int argc, char **argv) {
    clt_thread watcher;
    long scenarios_run = 0;
    if (!parse(argc, argv)) return fprintf(stderr, "usage: see the head of loop.c\n"), 2;
    if (!show_shim(argv[1])) return 1;
    catch_signals();
    allocations_install();
    if (clt_thread_start(&watcher, watch, NULL) < 0) return 1;
    for (size_t i = 0; i < n_scenarios; i++) {
        if (options.scenario ? strcmp(options.scenario, scenarios[i].name) : options.points > 0 && scenarios[i].dear) continue;
        scenarios_run++;
        for (int memory = 0; memory < 2; memory++)
            if (!options.kind || (*options.kind == 'm') == memory)
                run_loop(&scenarios[i], (fault){.memory = memory, .call = options.call});
    }
    remove_tree(folder);
    printf("scenarios %ld, runs %ld, injected %ld, errors %ld, harmless %ld, devices lost and opened anew %ld, failures %ld (seed %ld)\n",
           scenarios_run, n_runs, n_injected, n_errors, n_harmless, n_lost, n_failures, options.seed);
    if (options.call && !n_injected) printf("%s was called in none of them\n", options.call);
    return n_failures || !scenarios_run || (options.call && !n_injected);
}
