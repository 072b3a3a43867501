/*
 * The store in a folder that all ranks see: a file a key. A file appears under its name whole: by rename, or, where the first shall stay, by
 * link, which fails if the name is taken. What lies in the folder is read with a limit, and only if it is a regular file.
 */
#define _GNU_SOURCE /* O_CLOEXEC, O_DIRECTORY, O_NOFOLLOW */
#include "comm/rendezvous/store.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/base/file.h"

enum { NAME_BYTES = 256 };

typedef struct file_store {
    int folder;
    char *path;
} file_store;

static clt_status fail_file(const file_store *s, const char *name, const char *what) {
    return clt_fail(CLT_E_IO, "%s/%s: %s: %s", s->path, name, what, strerror(errno));
}

static void file_close(void *store) {
    file_store *s = store;
    if (s->folder >= 0) close(s->folder);
    clt_free(s->path);
    clt_free(s);
}

static clt_status open_folder(file_store *s, const char *rest) {
    if (rest[0] != '/') return clt_fail(CLT_E_INVALID, "file://%s: expected file:///FOLDER, with the whole path", rest);
    s->path = clt_strdup(rest);
    if (!s->path) return clt_fail_memory(strlen(rest));
    CLT_TRY(clt_url_decode(s->path));
    if (mkdir(s->path, 0700) && errno != EEXIST) CLT_TRY(clt_file_make_folder(s->path));
    s->folder = open(s->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (s->folder < 0) return clt_fail(CLT_E_IO, "%s: the store's folder cannot be opened: %s", s->path, strerror(errno));
    return CLT_OK;
}

static clt_status file_open(void **store, const char *rest, const clt_rendezvous_options *options, double deadline) {
    (void)options, (void)deadline;
    file_store *s = clt_calloc(1, sizeof *s);
    if (!s) return clt_fail_memory(sizeof *s);
    s->folder = -1;
    clt_status status = open_folder(s, rest);
    if (status < 0) {
        file_close(s);
        return status;
    }
    *store = s;
    return CLT_OK;
}

/* "JOB/gen 0/x" is the file "k.JOB+gen%200+x"; a name that would be too long is a hash. No two keys share a name, none begins
 * with a dot or is that of a temporary. */
static void file_name(const char *key, char name[NAME_BYTES]) {
    char encoded[3 * CLT_STORE_KEY_BYTES + 1], hash[CLT_HASH_TEXT];
    char *out = encoded;
    for (const char *part = key;;) {
        size_t length = strcspn(part, "/");
        char copy[CLT_STORE_KEY_BYTES + 1];
        memcpy(copy, part, length);
        copy[length] = 0;
        clt_url_encode(copy, out, sizeof encoded - (size_t)(out - encoded));
        out += strlen(out);
        part += length;
        if (!*part++) break;
        *out++ = '+';
        *out = 0;
    }
    clt_hash_text(key, strlen(key), hash);
    if (strlen(encoded) < NAME_BYTES - 8) snprintf(name, NAME_BYTES, "k.%.*s", NAME_BYTES - 8, encoded);
    else snprintf(name, NAME_BYTES, "h.%s", hash);
}

static clt_status write_whole(file_store *s, int file, const char *name, const void *value, size_t bytes) {
    const char *next = value;
    while (bytes > 0) {
        ssize_t n = write(file, next, bytes);
        if (n < 0 && errno == EINTR) continue;
        if (n == 0) errno = EIO; /* nor would the next call move anything */
        if (n <= 0) return fail_file(s, name, "cannot be written");
        next += n;
        bytes -= (size_t)n;
    }
    return CLT_OK;
}

/* A value under a name that nobody else uses: several processes of several hosts share the folder. */
static clt_status write_temporary(file_store *s, const void *value, size_t bytes, char name[NAME_BYTES]) {
    static atomic_uint number;
    char host[65] = "";
    gethostname(host, sizeof host - 1);
    for (char *c = host; *c; c++)
        if (*c == '/') *c = '_';
    int file, tries = 0;
    do { /* a dead process that had our number may have left one */
        snprintf(name, NAME_BYTES, "t.%s.%ld.%u", host, (long)getpid(), atomic_fetch_add(&number, 1));
        file = openat(s->folder, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    } while (file < 0 && errno == EEXIST && ++tries < 1000);
    if (file < 0) return fail_file(s, name, "cannot be made");
    clt_status status = write_whole(s, file, name, value, bytes);
    if (close(file) && status == CLT_OK) status = fail_file(s, name, "cannot be closed");
    if (status < 0) unlinkat(s->folder, name, 0);
    return status;
}

static clt_status file_set(void *store, const char *key, const void *value, size_t bytes, double deadline) {
    (void)deadline;
    file_store *s = store;
    char name[NAME_BYTES], temporary[NAME_BYTES];
    file_name(key, name);
    CLT_TRY(write_temporary(s, value, bytes, temporary));
    if (renameat(s->folder, temporary, s->folder, name) == 0) return CLT_OK;
    clt_status status = fail_file(s, name, "cannot be replaced");
    unlinkat(s->folder, temporary, 0);
    return status;
}

static clt_status read_whole(file_store *s, int file, const char *name, char *value, size_t *bytes) {
    struct stat facts;
    char extra;
    if (fstat(file, &facts)) return fail_file(s, name, "cannot be examined");
    if (!S_ISREG(facts.st_mode)) return clt_fail(CLT_E_IO, "%s/%s: not a regular file", s->path, name);
    size_t done = 0;
    for (;;) {
        bool full = done == CLT_RENDEZVOUS_VALUE_BYTES;
        ssize_t n = full ? read(file, &extra, 1) : read(file, value + done, CLT_RENDEZVOUS_VALUE_BYTES - done);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return fail_file(s, name, "cannot be read");
        if (n > 0 && full)
            return clt_fail(CLT_E_FORMAT, "%s/%s: more than the %d bytes of a value", s->path, name, CLT_RENDEZVOUS_VALUE_BYTES);
        if (n == 0) break;
        done += (size_t)n;
    }
    *bytes = done;
    return CLT_OK;
}

static clt_status file_look(void *store, const char *key, void *value, size_t *bytes, double deadline) {
    (void)deadline;
    file_store *s = store;
    char name[NAME_BYTES];
    file_name(key, name);
    int file = openat(s->folder, name, O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC); /* a FIFO must not block */
    if (file < 0 && errno == ENOENT) return CLT_END;
    if (file < 0) return fail_file(s, name, "cannot be opened");
    clt_status status = read_whole(s, file, name, value, bytes);
    close(file);
    return status;
}

/* Over NFS a link that was made can be answered with an error, when the answer got lost: the count of links tells. */
static bool is_linked(const file_store *s, const char *temporary) {
    struct stat facts;
    int error = errno;
    bool linked = fstatat(s->folder, temporary, &facts, AT_SYMLINK_NOFOLLOW) == 0 && facts.st_nlink == 2;
    errno = error;
    return linked;
}

static clt_status file_set_once(void *store, const char *key, const void *value, size_t bytes, void *stands, size_t *stands_bytes,
                                double deadline) {
    file_store *s = store;
    char name[NAME_BYTES], temporary[NAME_BYTES];
    file_name(key, name);
    CLT_TRY(write_temporary(s, value, bytes, temporary));
    clt_status status;
    do { /* again if the one in our way was removed */
        if (linkat(s->folder, temporary, s->folder, name, 0) == 0 || is_linked(s, temporary)) {
            if (bytes) memcpy(stands, value, bytes);
            *stands_bytes = bytes;
            status = CLT_OK;
        } else if (errno == EEXIST) {
            status = file_look(s, key, stands, stands_bytes, deadline);
        } else {
            status = fail_file(s, name, "cannot be linked (does the file system have hard links?)");
        }
    } while (status == CLT_END && clt_seconds() < deadline);
    if (status == CLT_END) status = clt_fail(CLT_E_TIMEOUT, "%s/%s: does not stay in the store", s->path, name);
    unlinkat(s->folder, temporary, 0);
    return status;
}

static clt_status file_remove(void *store, const char *key, double deadline) {
    (void)deadline;
    file_store *s = store;
    char name[NAME_BYTES];
    file_name(key, name);
    if (unlinkat(s->folder, name, 0) && errno != ENOENT) return fail_file(s, name, "cannot be removed");
    return CLT_OK;
}

const clt_store_ops clt_store_file = {.scheme = "file://", .open = file_open, .close = file_close, .set = file_set,
                                      .set_once = file_set_once, .look = file_look, .remove = file_remove};
