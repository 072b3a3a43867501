#define _GNU_SOURCE /* O_CLOEXEC, O_DIRECTORY */
#include "runtime/base/file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static clt_status fail_io(const char *what, const char *path) {
    return clt_fail(CLT_E_IO, "%s: %s: %s", path, what, strerror(errno));
}

/* Nothing else that is said of it would name it. */
static clt_status check_path(const char *path) {
    return path[0] ? CLT_OK : clt_fail(CLT_E_IO, "a file's path is empty");
}

static clt_status open_regular(const char *path, int *file, uint64_t *bytes) {
    CLT_TRY(check_path(path));
    *file = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC); /* a FIFO must not block: it is refused below */
    if (*file < 0) return fail_io("cannot be opened", path);
    struct stat facts;
    if (fstat(*file, &facts)) {
        clt_status status = fail_io("cannot be examined", path);
        close(*file);
        return status;
    }
    if (!S_ISREG(facts.st_mode)) {
        close(*file);
        return clt_fail(CLT_E_IO, "%s: not a regular file", path);
    }
    *bytes = (uint64_t)facts.st_size;
    return CLT_OK;
}

clt_status clt_file_size(const char *path, uint64_t *bytes) {
    int file;
    CLT_TRY(open_regular(path, &file, bytes));
    close(file);
    return CLT_OK;
}

bool clt_file_exists(const char *path) {
    struct stat status;
    return !stat(path, &status);
}

bool clt_file_same(const char *a, const char *b) {
    struct stat left, right;
    return !stat(a, &left) && !stat(b, &right) && left.st_dev == right.st_dev && left.st_ino == right.st_ino;
}

clt_status clt_file_read(const char *path, size_t limit_bytes, void **bytes, size_t *length) {
    int file;
    uint64_t size;
    CLT_TRY(open_regular(path, &file, &size));
    clt_status status = CLT_OK;
    char *block = NULL;
    if (size > limit_bytes || size >= SIZE_MAX) {
        status = clt_fail(CLT_E_FORMAT, "%s: %llu bytes, more than the %zu that are read here", path,
                          (unsigned long long)size, limit_bytes);
        goto fail;
    }
    block = clt_alloc((size_t)size + 1);
    if (!block) {
        status = clt_fail_memory((size_t)size + 1);
        goto fail;
    }
    size_t done = 0;
    while (done < size) {
        ssize_t n = read(file, block + done, (size_t)size - done);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) {
            status = fail_io("cannot be read", path);
            goto fail;
        }
        if (n == 0) break; /* shortened meanwhile: what is there counts */
        done += (size_t)n;
    }
    block[done] = 0;
    close(file);
    *bytes = block;
    *length = done;
    return CLT_OK;
fail:
    clt_free(block);
    close(file);
    return status;
}

struct clt_file_writer {
    int file;
    char *path;
    char *temporary;
    bool replaces; /* a file that is there, of these permissions */
    mode_t mode;
};

static void writer_free(clt_file_writer *writer) {
    if (writer->file >= 0) close(writer->file);
    clt_free(writer->path);
    clt_free(writer->temporary);
    clt_free(writer);
}

/* A symbolic link is followed, so that the file it names is replaced, not the link. What is no regular
 * file (a device, a FIFO, a folder, a link to nothing) is never replaced by one. */
static clt_status resolve_target(clt_file_writer *w, const char *path) {
    struct stat facts;
    w->replaces = stat(path, &facts) == 0;
    if (w->replaces ? !S_ISREG(facts.st_mode) : lstat(path, &facts) == 0)
        return clt_fail(CLT_E_IO, "%s: not a regular file, so it is not replaced", path);
    w->mode = w->replaces ? facts.st_mode & 0777 : 0666;
    char *real = realpath(path, NULL);
    w->path = clt_strdup(real ? real : path);
    free(real);
    return w->path ? CLT_OK : clt_fail_memory(strlen(path));
}

/* Temporaries are PATH.HOST.PID.NUMBER.tmp, so that one whose writer was killed can be told from one that is being
 * written. In containers all processes may have one PID: numbers go up from one that each process draws by the clock. */
static atomic_uint first_number, numbers_taken;

static unsigned take_number(void) {
    struct timespec now = {0};
    unsigned none = 0;
    clock_gettime(CLOCK_REALTIME, &now);
    unsigned drawn = (unsigned)now.tv_nsec ^ (unsigned)now.tv_sec << 20;
    atomic_compare_exchange_strong(&first_number, &none, drawn | 1);
    return atomic_load(&first_number) + atomic_fetch_add(&numbers_taken, 1);
}

static const char *name_in_folder(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* PATH.HOST. Of a long name the beginning only, so that the temporary's is no longer than file systems allow. */
static clt_text temporaries_of(const char *path, const char *host) {
    enum { LONGEST_NAME = 128 };
    const char *name = name_in_folder(path);
    clt_text text = {0};
    clt_text_add_bytes(&text, path, (size_t)(name - path) + strnlen(name, LONGEST_NAME));
    clt_text_add(&text, ".%s.", host);
    return text;
}

static clt_status name_temporary(const char *path, const char *host, char **name) {
    clt_text text = temporaries_of(path, host);
    clt_text_add(&text, "%ld.%u.tmp", (long)getpid(), take_number());
    clt_free(*name);
    *name = text.data;
    return text.status;
}

/* Whether nobody writes it any more. Of the own PID, but not by this process: by one before it, or by one that lives in
 * another container, which would have touched it. */
static bool is_stale(DIR *folder, const char *name, long pid, unsigned number) {
    enum { LONGEST_WRITE_SECONDS = 3600 };
    struct stat facts;
    if (pid <= 0) return false;
    if (pid != (long)getpid()) return kill((pid_t)pid, 0) && errno == ESRCH;
    if (number - atomic_load(&first_number) < atomic_load(&numbers_taken)) return false;
    return fstatat(dirfd(folder), name, &facts, AT_SYMLINK_NOFOLLOW) == 0 &&
           time(NULL) - facts.st_mtime > LONGEST_WRITE_SECONDS;
}

/* Removes what writers of this host that are no more left beside `path`. */
static void remove_stale_temporaries(const char *path, const char *host) {
    clt_text folder = {0}, all = temporaries_of(path, host);
    clt_text_add_bytes(&folder, path, (size_t)(name_in_folder(path) - path));
    if (folder.length == 0) clt_text_add(&folder, "./");
    DIR *entries = folder.status == CLT_OK && all.status == CLT_OK ? opendir(folder.data) : NULL;
    const char *prefix = entries ? name_in_folder(all.data) : "";
    size_t length = strlen(prefix);
    for (struct dirent *entry; entries && (entry = readdir(entries));) {
        long pid;
        unsigned number;
        int end = 0;
        if (strncmp(entry->d_name, prefix, length)) continue;
        if (sscanf(entry->d_name + length, "%ld.%u.tmp%n", &pid, &number, &end) != 2) continue;
        if (end == 0 || entry->d_name[length + (size_t)end]) continue;
        if (is_stale(entries, entry->d_name, pid, number)) unlinkat(dirfd(entries), entry->d_name, 0);
    }
    if (entries) closedir(entries);
    clt_text_free(&folder);
    clt_text_free(&all);
}

/* Under a name that nobody has taken, and open to nobody who could not open what it replaces. */
static clt_status open_temporary(clt_file_writer *w, const char *host) {
    enum { TRIES = 16 };
    for (int i = 0; i < TRIES; i++) {
        CLT_TRY(name_temporary(w->path, host, &w->temporary));
        if (i == 0) remove_stale_temporaries(w->path, host);
        w->file = open(w->temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, w->mode);
        if (w->file >= 0) return CLT_OK;
        if (errno != EEXIST) break;
    }
    return fail_io("a temporary file beside it cannot be made", w->path);
}

/* What is replaced keeps its permissions: the umask may have taken some. Where a file system gives the same to all, nothing is asked of it. */
static clt_status keep_mode(const clt_file_writer *w) {
    struct stat own;
    if (!w->replaces || (fstat(w->file, &own) == 0 && (own.st_mode & 0777) == w->mode)) return CLT_OK;
    return fchmod(w->file, w->mode) ? fail_io("its permissions cannot be kept", w->path) : CLT_OK;
}

clt_status clt_file_writer_open(clt_file_writer **writer, const char *path) {
    char host[65] = "";
    CLT_TRY(check_path(path));
    gethostname(host, sizeof host - 1);
    clt_file_writer *w = clt_calloc(1, sizeof *w);
    if (!w) return clt_fail_memory(sizeof *w);
    w->file = -1;
    clt_status status;
    CLT_TRY_GOTO(resolve_target(w, path));
    CLT_TRY_GOTO(open_temporary(w, host));
    CLT_TRY_GOTO(keep_mode(w));
    *writer = w;
    return CLT_OK;
fail:
    if (w->file >= 0) unlink(w->temporary);
    writer_free(w);
    return status;
}

clt_status clt_file_writer_write(clt_file_writer *writer, const void *bytes, size_t length) {
    const char *next = bytes;
    while (length > 0) {
        ssize_t n = write(writer->file, next, length);
        if (n < 0 && errno == EINTR) continue;
        if (n == 0) errno = EIO; /* nor would the next call move anything */
        if (n <= 0) return fail_io("cannot be written", writer->temporary);
        next += n;
        length -= (size_t)n;
    }
    return CLT_OK;
}

static clt_status sync_folder_of(const char *path) {
    clt_text folder = {0};
    const char *slash = strrchr(path, '/');
    if (!slash) clt_text_add(&folder, ".");
    else clt_text_add_bytes(&folder, path, slash == path ? 1 : (size_t)(slash - path));
    clt_status status = folder.status;
    if (status == CLT_OK) {
        int file = open(folder.data, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (file < 0) status = fail_io("cannot be opened", folder.data);
        /* Some file systems refuse fsync on folders (EINVAL): then rename is all there is. */
        else if (fsync(file) && errno != EINVAL) status = fail_io("cannot be synced", folder.data);
        if (file >= 0) close(file);
    }
    clt_text_free(&folder);
    return status;
}

clt_status clt_file_writer_commit(clt_file_writer *writer) {
    clt_status status = CLT_OK;
    if (fsync(writer->file)) {
        status = fail_io("cannot be synced", writer->temporary);
        goto fail;
    }
    int file = writer->file;
    writer->file = -1;
    if (close(file)) {
        status = fail_io("cannot be closed", writer->temporary);
        goto fail;
    }
    if (rename(writer->temporary, writer->path)) {
        status = fail_io("cannot be replaced", writer->path);
        goto fail;
    }
    status = sync_folder_of(writer->path);
    writer_free(writer);
    return status;
fail:
    clt_file_writer_abort(writer);
    return status;
}

void clt_file_writer_abort(clt_file_writer *writer) {
    if (!writer) return;
    unlink(writer->temporary);
    writer_free(writer);
}

clt_status clt_file_writer_end(clt_file_writer *writer, clt_status status) {
    if (status >= 0) return clt_file_writer_commit(writer);
    clt_file_writer_abort(writer);
    return status;
}

clt_status clt_file_write(const char *path, const void *bytes, size_t length) {
    clt_file_writer *writer;
    CLT_TRY(clt_file_writer_open(&writer, path));
    return clt_file_writer_end(writer, clt_file_writer_write(writer, bytes, length));
}

clt_status clt_file_make_folder(const char *path) {
    clt_text part = {0};
    if (!path[0]) return clt_fail(CLT_E_IO, "a folder's path is empty");
    clt_text_add(&part, "%s", path);
    clt_status status = part.status;
    for (char *c = status == CLT_OK ? part.data + 1 : NULL; c; c++) {
        if (*c != '/' && *c != 0) continue;
        char kept = *c;
        *c = 0;
        if (mkdir(part.data, 0777) && errno != EEXIST) {
            status = fail_io("the folder cannot be made", part.data);
            break;
        }
        *c = kept;
        if (!kept) break;
    }
    clt_text_free(&part);
    return status;
}

clt_status clt_file_cache_folder(const char *cache, const char *name, clt_text *path) {
    if (!cache[0]) return clt_fail(CLT_E_IO, "neither XDG_CACHE_HOME nor HOME names a folder");
    clt_text_add(path, "%s/%s", cache, name);
    CLT_TRY(path->status);
    return clt_file_make_folder(path->data);
}
