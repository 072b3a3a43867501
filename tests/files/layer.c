#define _GNU_SOURCE /* O_TMPFILE, struct stat64 */
#include "tests/files/layer.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MOST_DESCRIPTORS = 4096 };

/* A driver's thread may close a file while another opens one. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static bool counting, recording;
static fault armed;
static int calls, hits, failed_unlinks, open_files;
static bool ours[MOST_DESCRIPTORS];
static int numbers[MOST_DESCRIPTORS]; /* of what was created, from 1 */
static layer_journal journal;

/* ---- counting ---- */

void layer_begin(const fault *wanted) {
    pthread_mutex_lock(&lock);
    armed = wanted ? *wanted : (fault){0};
    calls = hits = failed_unlinks = 0;
    counting = true;
    pthread_mutex_unlock(&lock);
}

int layer_end(int *hit) {
    pthread_mutex_lock(&lock);
    counting = false;
    int count = calls;
    if (hit) *hit = hits;
    pthread_mutex_unlock(&lock);
    return count;
}

int layer_failed_unlinks(void) {
    pthread_mutex_lock(&lock);
    int count = failed_unlinks;
    pthread_mutex_unlock(&lock);
    return count;
}

int layer_open_files(void) {
    pthread_mutex_lock(&lock);
    int count = open_files;
    pthread_mutex_unlock(&lock);
    return count;
}

/* Whether this call is one that is to go wrong. */
static bool is_hit(bool moves_bytes) {
    pthread_mutex_lock(&lock);
    bool hit = false;
    if (counting && (armed.error > 0 || moves_bytes || !armed.nth)) {
        calls++;
        hit = armed.nth && (calls == armed.nth || (armed.for_ever && calls > armed.nth));
        hits += hit;
    }
    pthread_mutex_unlock(&lock);
    return hit;
}

static bool fails(void) {
    if (!is_hit(false)) return false;
    errno = armed.error;
    return true;
}

/* How many bytes a read or write may move: all, some, none, or -1 with an error. That none is read means the end of the file. */
static ssize_t allowance(size_t bytes, bool writes) {
    if (!is_hit(writes || armed.error != LAYER_NOTHING)) return (ssize_t)bytes;
    if (armed.error == LAYER_NOTHING) return 0;
    if (armed.error == LAYER_SHORT) return (ssize_t)(bytes > 1 ? bytes / 2 : bytes);
    errno = armed.error;
    return -1;
}

/* ---- recording ---- */

static void *must(void *memory) {
    if (memory) return memory;
    fprintf(stderr, "no memory for the layer of files\n");
    abort();
}

static void record(layer_event event, const void *bytes) {
    if (!recording) return;
    pthread_mutex_lock(&lock);
    journal.events = must(realloc(journal.events, (size_t)(journal.n + 1) * sizeof *journal.events));
    if (event.name) event.name = must(strdup(event.name));
    if (event.to) event.to = must(strdup(event.to));
    if (bytes) event.bytes = memcpy(must(malloc(event.length + 1)), bytes, event.length);
    journal.events[journal.n++] = event;
    pthread_mutex_unlock(&lock);
}

void layer_journal_begin(void) {
    journal = (layer_journal){0};
    recording = true;
}

layer_journal layer_journal_end(void) {
    recording = false;
    return journal;
}

void layer_journal_free(layer_journal *j) {
    for (int i = 0; i < j->n; i++) {
        free(j->events[i].name);
        free(j->events[i].to);
        free(j->events[i].bytes);
    }
    free(j->events);
    *j = (layer_journal){0};
}

/* ---- descriptors ---- */

static bool is_ours(int file) {
    pthread_mutex_lock(&lock);
    bool known = file >= 0 && file < MOST_DESCRIPTORS && ours[file];
    pthread_mutex_unlock(&lock);
    return known;
}

static int opened(int file, const char *path, int flags) {
    if (file < 0 || file >= MOST_DESCRIPTORS) return file;
    pthread_mutex_lock(&lock);
    ours[file] = true;
    open_files++;
    numbers[file] = recording && (flags & O_CREAT) ? ++journal.files : 0;
    pthread_mutex_unlock(&lock);
    if (flags & O_CREAT) record((layer_event){.kind = LAYER_CREATE, .file = numbers[file], .name = (char *)(size_t)path}, NULL);
    return file;
}

static mode_t mode_of(int flags, va_list arguments) {
    return flags & O_CREAT ? (mode_t)va_arg(arguments, unsigned) : 0;
}

#define WRAP_OPEN(name)                                       \
    int __real_##name(const char *, int, ...);                \
    int __wrap_##name(const char *, int, ...);                \
    int __wrap_##name(const char *path, int flags, ...) {     \
        va_list arguments;                                    \
        va_start(arguments, flags);                           \
        mode_t mode = mode_of(flags, arguments);              \
        va_end(arguments);                                    \
        if (fails()) return -1;                               \
        return opened(__real_##name(path, flags, mode), path, flags); \
    }
WRAP_OPEN(open)
WRAP_OPEN(open64)

#define WRAP_OPENAT(name)                                          \
    int __real_##name(int, const char *, int, ...);                \
    int __wrap_##name(int, const char *, int, ...);                \
    int __wrap_##name(int folder, const char *path, int flags, ...) { \
        va_list arguments;                                         \
        va_start(arguments, flags);                                \
        mode_t mode = mode_of(flags, arguments);                   \
        va_end(arguments);                                         \
        if (fails()) return -1;                                    \
        return opened(__real_##name(folder, path, flags, mode), path, flags); \
    }
WRAP_OPENAT(openat)
WRAP_OPENAT(openat64)

int __real_close(int);
int __wrap_close(int);
/* The descriptor is gone, whatever close says: so it is on Linux. */
int __wrap_close(int file) {
    if (!is_ours(file)) return __real_close(file);
    bool failing = fails();
    int error = errno;
    pthread_mutex_lock(&lock);
    ours[file] = false;
    open_files--;
    pthread_mutex_unlock(&lock);
    int result = __real_close(file);
    errno = failing ? error : errno;
    return failing ? -1 : result;
}

ssize_t __real_read(int, void *, size_t);
ssize_t __wrap_read(int, void *, size_t);
ssize_t __wrap_read(int file, void *bytes, size_t length) {
    ssize_t most = is_ours(file) ? allowance(length, false) : (ssize_t)length;
    return most < 0 ? -1 : __real_read(file, bytes, (size_t)most);
}

ssize_t __real_write(int, const void *, size_t);
ssize_t __wrap_write(int, const void *, size_t);
ssize_t __wrap_write(int file, const void *bytes, size_t length) {
    if (!is_ours(file)) return __real_write(file, bytes, length);
    ssize_t most = allowance(length, true);
    if (most < 0) return -1;
    ssize_t done = __real_write(file, bytes, (size_t)most);
    if (done > 0 && numbers[file])
        record((layer_event){.kind = LAYER_WRITE, .file = numbers[file], .length = (size_t)done}, bytes);
    return done;
}

int __wrap_fsync(int);
/* The disk's own time is not what is tested. After one that failed, nothing of the file is sure to be there. */
int __wrap_fsync(int file) {
    char link[64], path[4096] = "";
    if (fails()) {
        if (ftruncate(file, 0)) errno = EIO;
        errno = armed.error;
        return -1;
    }
    if (numbers[file]) {
        record((layer_event){.kind = LAYER_SYNC, .file = numbers[file]}, NULL);
        return 0;
    }
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    ssize_t length = readlink(link, path, sizeof path - 1);
    path[length < 0 ? 0 : length] = 0;
    record((layer_event){.kind = LAYER_SYNC_FOLDER, .name = path}, NULL);
    return 0;
}

/* ---- names ---- */

int __real_rename(const char *, const char *);
int __wrap_rename(const char *, const char *);
int __wrap_rename(const char *from, const char *to) {
    if (fails()) return -1;
    record((layer_event){.kind = LAYER_RENAME, .name = (char *)(size_t)from, .to = (char *)(size_t)to}, NULL);
    return __real_rename(from, to);
}

int __real_unlink(const char *);
int __wrap_unlink(const char *);
int __wrap_unlink(const char *path) {
    if (fails()) {
        pthread_mutex_lock(&lock);
        failed_unlinks++;
        pthread_mutex_unlock(&lock);
        return -1;
    }
    record((layer_event){.kind = LAYER_UNLINK, .name = (char *)(size_t)path}, NULL);
    return __real_unlink(path);
}

int __real_unlinkat(int, const char *, int);
int __wrap_unlinkat(int, const char *, int);
int __wrap_unlinkat(int folder, const char *path, int flags) {
    return fails() ? -1 : __real_unlinkat(folder, path, flags);
}

int __real_renameat(int, const char *, int, const char *);
int __wrap_renameat(int, const char *, int, const char *);
int __wrap_renameat(int a, const char *from, int b, const char *to) {
    return fails() ? -1 : __real_renameat(a, from, b, to);
}

int __real_linkat(int, const char *, int, const char *, int);
int __wrap_linkat(int, const char *, int, const char *, int);
int __wrap_linkat(int a, const char *from, int b, const char *to, int flags) {
    return fails() ? -1 : __real_linkat(a, from, b, to, flags);
}

int __real_mkdir(const char *, mode_t);
int __wrap_mkdir(const char *, mode_t);
int __wrap_mkdir(const char *path, mode_t mode) {
    return fails() ? -1 : __real_mkdir(path, mode);
}

int __real_fchmod(int, mode_t);
int __wrap_fchmod(int, mode_t);
int __wrap_fchmod(int file, mode_t mode) {
    return fails() ? -1 : __real_fchmod(file, mode);
}

char *__real_realpath(const char *, char *);
char *__wrap_realpath(const char *, char *);
char *__wrap_realpath(const char *path, char *resolved) {
    return fails() ? NULL : __real_realpath(path, resolved);
}

DIR *__real_opendir(const char *);
DIR *__wrap_opendir(const char *);
DIR *__wrap_opendir(const char *path) {
    return fails() ? NULL : __real_opendir(path);
}

#define WRAP_STAT(name, type)                                \
    int __real_##name(const char *, struct type *);          \
    int __wrap_##name(const char *, struct type *);          \
    int __wrap_##name(const char *path, struct type *facts) { \
        return fails() ? -1 : __real_##name(path, facts);    \
    }
WRAP_STAT(stat, stat)
WRAP_STAT(stat64, stat64)
WRAP_STAT(lstat, stat)
WRAP_STAT(lstat64, stat64)

#define WRAP_FSTAT(name, type)                          \
    int __real_##name(int, struct type *);              \
    int __wrap_##name(int, struct type *);              \
    int __wrap_##name(int file, struct type *facts) {   \
        return fails() ? -1 : __real_##name(file, facts); \
    }
WRAP_FSTAT(fstat, stat)
WRAP_FSTAT(fstat64, stat64)

/* ---- streams ---- */

#define WRAP_FOPEN(name)                                                  \
    FILE *__real_##name(const char *, const char *);                      \
    FILE *__wrap_##name(const char *, const char *);                      \
    FILE *__wrap_##name(const char *path, const char *mode) {             \
        FILE *file = fails() ? NULL : __real_##name(path, mode);          \
        pthread_mutex_lock(&lock);                                        \
        open_files += file != NULL;                                       \
        pthread_mutex_unlock(&lock);                                      \
        return file;                                                      \
    }
WRAP_FOPEN(fopen)
WRAP_FOPEN(fopen64)

int __real_fclose(FILE *);
int __wrap_fclose(FILE *);
int __wrap_fclose(FILE *file) {
    bool failing = fails();
    pthread_mutex_lock(&lock);
    open_files--;
    pthread_mutex_unlock(&lock);
    int result = __real_fclose(file);
    if (failing) errno = armed.error;
    return failing ? EOF : result;
}

size_t __real_fread(void *, size_t, size_t, FILE *);
size_t __wrap_fread(void *, size_t, size_t, FILE *);

/* A stream's own error flag cannot be set from here, but by reading a descriptor that cannot be read. */
static size_t fail_read(FILE *file) {
    int kept = dup(fileno(file)), unreadable = __real_open("/dev/null", O_WRONLY);
    char byte;
    dup2(unreadable, fileno(file));
    setvbuf(file, NULL, _IONBF, 0);
    size_t got = __real_fread(&byte, 1, 1, file);
    dup2(kept, fileno(file));
    __real_close(kept);
    __real_close(unreadable);
    errno = armed.error;
    return got;
}

size_t __wrap_fread(void *bytes, size_t size, size_t count, FILE *file) {
    ssize_t most = allowance(size * count, false);
    if (most < 0) return fail_read(file);
    /* fread itself repeats short reads: one that gives less has met the end. */
    return __real_fread(bytes, size, count, file);
}

#define WRAP_FSEEKO(name)                                             \
    int __real_##name(FILE *, off_t, int);                            \
    int __wrap_##name(FILE *, off_t, int);                            \
    int __wrap_##name(FILE *file, off_t to, int whence) {             \
        return fails() ? -1 : __real_##name(file, to, whence);        \
    }
WRAP_FSEEKO(fseeko)
WRAP_FSEEKO(fseeko64)

#define WRAP_FTELLO(name)                              \
    off_t __real_##name(FILE *);                       \
    off_t __wrap_##name(FILE *);                       \
    off_t __wrap_##name(FILE *file) {                  \
        return fails() ? -1 : __real_##name(file);     \
    }
WRAP_FTELLO(ftello)
WRAP_FTELLO(ftello64)
