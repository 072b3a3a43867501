#include "tools/common/message.h"

#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "tools/common/text.h"

enum { TEXT_BYTES = 4096 };

static int verbosity;
static _Thread_local bool one_of_several, hushed;
static const char *command; /* NULL: none */
/* A transient line stands on the terminal. Messages of the library come from its threads too. */
static atomic_bool line_open;
static void (*_Atomic elsewhere)(const char *);

/* One write each, so that lines of several threads do not mix. */
static void print_line(const char *prefix, const char *text) {
    const char *erase = atomic_exchange(&line_open, false) ? "\r\033[K" : "";
    void (*through)(const char *) = atomic_load(&elsewhere);
    size_t bytes = strlen(erase) + strlen(prefix) + strlen(text) + 2;
    char *whole = through ? malloc(bytes) : NULL;
    if (whole) {
        snprintf(whole, bytes, "%s%s%s\n", erase, prefix, text);
        through(whole);
        free(whole);
    } else {
        fprintf(stderr, "%s%s%s\n", erase, prefix, text);
    }
}

void message_through(void (*write)(const char *)) {
    atomic_store(&elsewhere, write);
}

/* Whether another thread has printed that error. */
static bool was_printed(const char *text) {
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static char last[TEXT_BYTES];
    if (!one_of_several) return false;
    pthread_mutex_lock(&lock);
    bool same = strcmp(last, text) == 0;
    strcpy(last, text);
    pthread_mutex_unlock(&lock);
    return same;
}

/* `kind` NULL: a plain line; else the program's name and the kind go before it, "" for an error. False: it is an error that was printed before. */
static bool print_format(const char *kind, const char *format, va_list arguments) {
    char text[TEXT_BYTES], prefix[64] = "";
    if (kind) snprintf(prefix, sizeof prefix, "%s: %s", program_name, kind);
    vsnprintf(text, sizeof text, format, arguments);
    text_clean(text, "\n\t"); /* what a driver, a file or another rank said may be in it */
    bool is_error = kind && !kind[0];
    if (is_error && was_printed(text)) return false;
    print_line(prefix, text);
    return true;
}

void message_command(const char *name) {
    command = name;
}

int (usage_error)(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    bool printed = print_format("", format, arguments);
    va_end(arguments);
    char hint[128];
    snprintf(hint, sizeof hint, "Try '%s%s%s --help'.", program_name, command ? " " : "", command ? command : "");
    if (printed) print_line("", hint);
    return EXIT_USAGE;
}

int (run_error)(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    print_format("", format, arguments);
    va_end(arguments);
    return EXIT_FAILED;
}

int (library_error)(clt_status status, const char *doing) {
    const char *detail = clt_error_detail();
    return run_error("%s: %s", doing, detail[0] ? detail : clt_status_message(status));
}

void warning(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    if (!message_quiet()) print_format("warning: ", format, arguments);
    va_end(arguments);
}

void message_line(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    if (!message_quiet()) print_format(NULL, format, arguments);
    va_end(arguments);
}

int message_columns(void) {
    struct winsize size = {.ws_col = 0};
    return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

/* Cuts clean text behind the last letter that fits. Letters of three bytes and more count as wide, as many of them are. */
static void cut_to(char *text, int columns) {
    size_t bytes;
    for (; *text; text += bytes) {
        bytes = text_letter_bytes(text);
        columns -= bytes > 2 ? 2 : 1;
        if (columns < 0) break;
    }
    *text = '\0';
}

/* What is wiped is one line: of one that wraps the first part would stay. */
void message_transient(const char *text) {
    char clean[1024];
    if (message_quiet()) return;
    snprintf(clean, sizeof clean, "%s", text);
    text_clean(clean, "");
    cut_to(clean, message_columns() - 1); /* in the last column terminals wait to wrap */
    atomic_store(&line_open, true);
    fprintf(stderr, "\r\033[K%s", clean);
    fflush(stderr);
}

void message_wipe(void) {
    if (atomic_exchange(&line_open, false)) fputs("\r\033[K", stderr);
    fflush(stderr);
}

static void print_log(clt_log_level level, const char *text, void *user) {
    (void)user;
    static const char *const prefixes[] = {"error: ", "warning: ", "", "debug: "};
    char *clean = strdup(text);
    if (!clean) return;
    text_clean(clean, "\n\t");
    print_line(level <= CLT_LOG_DEBUG ? prefixes[level] : "", clean);
    free(clean);
}

void message_start(int wanted) {
    static const clt_log_level levels[] = {CLT_LOG_ERROR, CLT_LOG_WARNING, CLT_LOG_INFO,
                                           CLT_LOG_DEBUG};
    signal(SIGXFSZ, SIG_IGN); /* a file that may not grow is a failed write, not the end of the program */
    verbosity = wanted < -1 ? -1 : wanted > 2 ? 2 : wanted;
    clt_log_set(print_log, levels[verbosity + 1], NULL);
}

void message_of_thread(bool wanted) {
    one_of_several = true;
    hushed = wanted;
}

bool message_quiet(void) {
    return verbosity < 0 || hushed;
}
