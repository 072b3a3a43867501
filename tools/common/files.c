#define _GNU_SOURCE /* O_CLOEXEC, realpath */
#include "tools/common/files.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/common/message.h"

bool file_same(const struct stat *a, const struct stat *b) {
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

bool file_is_null_device(const struct stat *facts) {
    struct stat nothing;
    return S_ISCHR(facts->st_mode) && stat("/dev/null", &nothing) == 0 && facts->st_rdev == nothing.st_rdev;
}

/* That the file is in, or will be; the name follows it in `path`. NULL: it is too long. */
static const char *split(const char *path, char folder[PATH_MAX]) {
    const char *slash = strrchr(path, '/');
    size_t length = slash ? (size_t)(slash - path) + 1 : 1;
    if (length >= PATH_MAX) return NULL;
    memcpy(folder, slash ? path : ".", length);
    folder[length] = 0;
    return slash ? slash + 1 : path;
}

/* ---- the same file ---- */

/* That of the file, or of the folder that it will be in. */
static bool examine(const char *path, struct stat *facts, const char **name) {
    char folder[PATH_MAX];
    *name = NULL;
    if (stat(path, facts) == 0) return true;
    *name = split(path, folder);
    return *name && stat(folder, facts) == 0;
}

static bool same_target(const char *a, const char *b) {
    struct stat of_a, of_b;
    const char *name_a, *name_b;
    if (strcmp(a, b) == 0) return examine(a, &of_a, &name_a) ? !file_is_null_device(&of_a) : true;
    if (!examine(a, &of_a, &name_a) || !examine(b, &of_b, &name_b) || !file_same(&of_a, &of_b)) return false;
    return name_a && name_b ? strcmp(name_a, name_b) == 0 : !name_a && !name_b && !file_is_null_device(&of_a);
}

static bool is_file(const file_use *use) {
    return use->path && !(use->role == FILE_OR_STDOUT && strcmp(use->path, "-") == 0);
}

int file_check_distinct(const file_use *files, int n) {
    for (int i = 0; i < n; i++)
        for (int k = 0; k < i; k++) {
            const file_use *a = &files[k], *b = &files[i];
            if (!is_file(a) || !is_file(b) || (a->role == FILE_READ && b->role == FILE_READ) || !same_target(a->path, b->path)) continue;
            return usage_error("%s %s and %s %s are the same file", a->option, a->path, b->option, b->path);
        }
    return 0;
}

/* ---- what can be written ---- */

/* A link is followed, so that the file it names is replaced; what is not a regular file never is. */
static const char *why_not_replaceable(const char *path) {
    struct stat facts;
    char folder[PATH_MAX];
    bool there = stat(path, &facts) == 0;
    if (!path[0]) return "the path is empty";
    if (there ? !S_ISREG(facts.st_mode) : lstat(path, &facts) == 0) return "not a regular file, so it is not replaced";
    char *real = realpath(path, NULL);
    bool fits = split(real ? real : path, folder) != NULL;
    free(real);
    if (!fits) return strerror(ENAMETOOLONG);
    return access(folder, W_OK | X_OK) ? strerror(errno) : NULL;
}

static bool is_of_kind(const unsigned char *begin, size_t n, file_kind kind) {
    switch (kind) {
    case FILE_SAFETENSORS: return n > 8 && begin[8] == '{' && !begin[4] && !begin[5] && !begin[6] && !begin[7]; /* a length below 2^32, and JSON */
    case FILE_MARKUP: return n > 0 && begin[0] == '<';
    case FILE_BENCH_TABLE: return n > 4 && !memcmp(begin, "key,", 4);
    case FILE_LOG: return n > 7 && !memcmp(begin, "{\"event\"", 8);
    case FILE_ONNX: return n > 1 && begin[0] == 8 && begin[1] < 128; /* ModelProto.ir_version */
    default: return n > 0 && (begin[0] == '{' || begin[0] == '[');
    }
}

/* Somebody's table or pictures, for example, are not. What cannot be read is left to who writes. */
bool file_is_another(const char *path, file_kind kind) {
    unsigned char begin[9];
    struct stat facts;
    FILE *file = stat(path, &facts) == 0 && S_ISREG(facts.st_mode) ? fopen(path, "rb") : NULL;
    size_t n = file ? fread(begin, 1, sizeof begin, file) : 0;
    if (file) fclose(file);
    return n > 0 && !is_of_kind(begin, n, kind);
}

int file_refuse_another(const char *option, const char *path, file_kind kind) {
    static const char *const kinds[] = {"a safetensors file", "an ONNX file", "JSON", "XML or HTML", "a table of a bench", "a log of an earlier run"};
    if (!path || !file_is_another(path, kind)) return 0;
    return run_error("%s: %s is there, and is not %s: it is not replaced. Choose another name, or delete it", option, path, kinds[kind]);
}

int file_check_replaceable(const char *option, const char *path, file_kind kind) {
    const char *why = path ? why_not_replaceable(path) : NULL;
    return why ? run_error("%s: %s cannot be written: %s", option, path, why) : file_refuse_another(option, path, kind);
}

file_identity file_identify(const char *path) {
    file_identity identity = {0};
    identity.there = stat(path, &identity.facts) == 0;
    return identity;
}

bool file_is_still(const char *path, const file_identity *identity) {
    file_identity now = file_identify(path);
    if (!now.there || !identity->there) return now.there == identity->there;
    return file_same(&now.facts, &identity->facts);
}

/* With those that it lies in. */
static int make_folder(char *path) {
    for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = 0;
        int made = mkdir(path, 0777);
        *slash = '/';
        if (made && errno != EEXIST) return made;
    }
    return mkdir(path, 0777) && errno != EEXIST ? -1 : 0;
}

int file_check_replaceable_in(const char *option, const char *folder, const char *name) {
    char path[PATH_MAX];
    if (!folder) return 0;
    if (!folder[0] || snprintf(path, sizeof path, "%s/%s", folder, name) >= (int)sizeof path)
        return run_error("%s: '%s' is not a path of a folder", option, folder);
    path[strlen(folder)] = 0;
    if (make_folder(path)) return run_error("%s: folder %s cannot be made: %s", option, folder, strerror(errno));
    path[strlen(folder)] = '/';
    return file_check_replaceable(option, path, FILE_SAFETENSORS);
}

FILE *file_open_in_place(const char *path, int flags, const char **why) {
    int file = open(path, flags | O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, 0666);
    int now = file < 0 ? -1 : fcntl(file, F_GETFL);
    FILE *opened = now < 0 || fcntl(file, F_SETFL, now & ~O_NONBLOCK) < 0 ? NULL : fdopen(file, flags & O_APPEND ? "a" : "w");
    if (opened) return opened;
    *why = file < 0 && errno == ENXIO ? "no process reads from this pipe" : strerror(errno);
    if (file >= 0) close(file);
    return NULL;
}
