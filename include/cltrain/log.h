/*
 * Log messages. The library writes to no stream by itself: without a callback,
 * messages vanish.
 */
#ifndef CLTRAIN_LOG_H
#define CLTRAIN_LOG_H

#include <cltrain/export.h>

CLT_BEGIN_DECLS

typedef enum clt_log_level {
    CLT_LOG_ERROR = 0,
    CLT_LOG_WARNING = 1,
    CLT_LOG_INFO = 2, /* which device was chosen and why, where a checkpoint went */
    CLT_LOG_DEBUG = 3 /* builds, cache hits, memory plans */
} clt_log_level;

/* Called with one message, without a newline, valid during the call. May be
 * called from several threads at once, and from threads of the library. Must
 * not call the library. */
typedef void (*clt_log_callback)(clt_log_level level, const char *message, void *user);

/* Sends messages up to and including `level` to `callback`; NULL silences.
 * Process-wide. Set it before other threads use the library. */
CLT_API void clt_log_set(clt_log_callback callback, clt_log_level level, void *user);

CLT_END_DECLS

#endif
