#include "runtime/base/base.h"

#include <stdarg.h>
#include <stdio.h>

static clt_log_callback log_callback;
static clt_log_level log_level;
static void *log_user;

void clt_log_set(clt_log_callback callback, clt_log_level level, void *user) {
    log_callback = callback;
    log_level = level;
    log_user = user;
}

bool clt_log_enabled(clt_log_level level) {
    return log_callback && level <= log_level;
}

void clt_log_message(clt_log_level level, const char *format, ...) {
    if (!clt_log_enabled(level)) return;
    char message[4096];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    log_callback(level, message, log_user);
}
