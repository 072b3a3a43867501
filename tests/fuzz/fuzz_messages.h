/*
 * In the place of tools/common/message.c: what a tool says is put together, and not written.
 */
#ifndef CLT_TESTS_FUZZ_MESSAGES_H
#define CLT_TESTS_FUZZ_MESSAGES_H

#include <stdarg.h>
#include <stdio.h>

#include "tools/common/message.h"

const char program_name[] = "fuzz";

#define FUZZ_FORMAT_(format)                     \
    do {                                         \
        char text[1024];                         \
        va_list arguments;                       \
        va_start(arguments, format);             \
        vsnprintf(text, sizeof text, format, arguments); \
        va_end(arguments);                       \
    } while (0)

int usage_error(const char *format, ...) {
    FUZZ_FORMAT_(format);
    return EXIT_USAGE;
}

int run_error(const char *format, ...) {
    FUZZ_FORMAT_(format);
    return EXIT_FAILED;
}

void warning(const char *format, ...) {
    FUZZ_FORMAT_(format);
}

void message_line(const char *format, ...) {
    FUZZ_FORMAT_(format);
}

int library_error(clt_status status, const char *doing) {
    (void)doing;
    return status < 0 ? EXIT_FAILED : 0;
}

void message_transient(const char *text) {
    (void)text;
}

void message_wipe(void) {
}

void message_start(int verbosity) {
    (void)verbosity;
}

bool message_quiet(void) {
    return true;
}

#endif
