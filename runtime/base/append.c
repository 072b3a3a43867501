#define _GNU_SOURCE /* O_CLOEXEC */
#include "runtime/base/append.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "runtime/base/file.h"

struct clt_appender {
    int file;
    char *path;
    off_t length; /* of the whole records */
    bool torn;    /* there is a part of one behind them */
};

static clt_status fail_io(const clt_appender *a, const char *what) {
    return clt_fail(CLT_E_IO, "%s: %s: %s", a->path, what, strerror(errno));
}

static void appender_free(clt_appender *a) {
    if (a->file >= 0) close(a->file);
    clt_free(a->path);
    clt_free(a);
}

static void host_name(char host[65]) {
    memset(host, 0, 65);
    if (gethostname(host, 64) || !host[0]) memcpy(host, "localhost", sizeof "localhost");
    for (char *c = host; *c; c++)
        if (*c == '/') *c = '_';
}

static clt_status name_file(clt_appender *a, const char *folder, const char *prefix, unsigned number) {
    char host[65];
    clt_text path = {0};
    host_name(host);
    clt_text_add(&path, "%s/%s.%010lld.%s.%ld.%u", folder, prefix, (long long)clt_wall_seconds(), host, (long)getpid(), number);
    clt_free(a->path);
    a->path = path.data;
    return path.status;
}

/* Processes of containers may have the same PID, and hosts the same name: what they took is passed over. */
static clt_status make_file(clt_appender *a, const char *folder, const char *prefix) {
    static atomic_uint numbers;
    enum { TRIES = 1000 };
    for (int i = 0; i < TRIES; i++) {
        CLT_TRY(name_file(a, folder, prefix, atomic_fetch_add(&numbers, 1)));
        a->file = open(a->path, O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0666);
        if (a->file >= 0) return CLT_OK;
        if (errno != EEXIST) break;
    }
    return fail_io(a, "cannot be made");
}

clt_status clt_appender_open(clt_appender **appender, const char *folder, const char *prefix) {
    CLT_TRY(clt_file_make_folder(folder));
    clt_appender *a = clt_calloc(1, sizeof *a);
    if (!a) return clt_fail_memory(sizeof *a);
    a->file = -1;
    clt_status status = make_file(a, folder, prefix);
    if (status < 0) appender_free(a);
    else *appender = a;
    return status;
}

static clt_status write_all(clt_appender *a, const char *next, size_t length) {
    while (length > 0) {
        ssize_t n = write(a->file, next, length);
        if (n < 0 && errno == EINTR) continue;
        if (n == 0) errno = EIO; /* nor would the next call move anything */
        if (n <= 0) return fail_io(a, "cannot be written");
        next += n;
        length -= (size_t)n;
        a->torn = length > 0;
    }
    return CLT_OK;
}

clt_status clt_appender_write(clt_appender *a, const void *bytes, size_t length) {
    if (a->torn) return clt_fail(CLT_E_IO, "%s: a record could not be written whole, and cannot be taken off", a->path);
    clt_status status = write_all(a, bytes, length);
    if (status == CLT_OK) a->length += (off_t)length;
    else if (a->torn) a->torn = ftruncate(a->file, a->length) != 0;
    return status;
}

clt_status clt_appender_sync(clt_appender *a) {
    /* Some file systems refuse it, and pipes do (EINVAL). */
    return fsync(a->file) && errno != EINVAL ? fail_io(a, "cannot be synced") : CLT_OK;
}

clt_status clt_appender_close(clt_appender *a) {
    if (!a) return CLT_OK;
    int file = a->file;
    a->file = -1;
    clt_status status = close(file) && errno != EINTR ? fail_io(a, "cannot be closed") : CLT_OK;
    appender_free(a);
    return status;
}
