/*
 * New files that grow by whole records.
 */
#ifndef CLT_BASE_APPEND_H
#define CLT_BASE_APPEND_H

#include "runtime/base/base.h"

typedef struct clt_appender clt_appender;

/* A file FOLDER/PREFIX.SECONDS.HOST.PID.NUMBER that was not there before; the folder is made if missing. */
clt_status clt_appender_open(clt_appender **appender, const char *folder, const char *prefix);

/* One write(2), unless the system wants more. What it took of a record that does not fit is taken off again; where that fails, so
 * does every later call. */
clt_status clt_appender_write(clt_appender *appender, const void *bytes, size_t length);

/* fsync. */
clt_status clt_appender_sync(clt_appender *appender);

/* Frees the appender, also on error. NULL is fine. */
clt_status clt_appender_close(clt_appender *appender);

#endif
