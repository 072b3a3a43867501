#define _GNU_SOURCE /* O_CLOEXEC, realpath */
#include "tools/survey/output.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tools/common/files.h"
#include "tools/common/message.h"

static int cannot_be_written(const char *path, const char *why) {
    return run_error("%s cannot be written: %s", path, why);
}

/* ---- those that are open ---- */

static output *opened;

static void remember(output *o) {
    o->next = opened;
    opened = o;
}

static void forget(output *o) {
    for (output **at = &opened; *at; at = &(*at)->next) {
        if (*at != o) continue;
        *at = o->next;
        return;
    }
}

int output_failed(const FILE *file) {
    const char *why = errno ? strerror(errno) : "not all of it was taken";
    for (const output *o = opened; o; o = o->next)
        if (o->file == file) return cannot_be_written(o->path, why);
    return file == stdout ? run_error("stdout cannot be written") : run_error("a file cannot be written: %s", why);
}

/* ---- which file ---- */

bool output_is_stdout(const char *path) {
    struct stat facts, own;
    if (!path) return false;
    if (strcmp(path, "-") == 0) return true;
    return stat(path, &facts) == 0 && fstat(STDOUT_FILENO, &own) == 0 && file_same(&facts, &own) && !file_is_null_device(&facts);
}

/* ---- opening ---- */

static int open_in_place(output *o) {
    const char *why;
    o->file = file_open_in_place(o->path, 0, &why);
    return o->file ? 0 : cannot_be_written(o->path, why);
}

/* `old`: the file that is to be replaced, whose mode is kept; NULL: there is none. */
static int open_beside(output *o, const struct stat *old) {
    enum { TRIES = 16 };
    int file = -1;
    for (int i = 0; i < TRIES && file < 0; i++) {
        snprintf(o->temporary, sizeof o->temporary, "%s.%ld.%d.part", o->path, (long)getpid(), i);
        file = open(o->temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, old ? 0600 : 0666);
        if (file < 0 && errno != EEXIST) break;
    }
    bool has_mode = file >= 0 && (!old || fchmod(file, old->st_mode & 0777) == 0);
    if (has_mode && (o->file = fdopen(file, "w"))) return 0;
    int error = errno;
    if (file >= 0) close(file), unlink(o->temporary);
    return cannot_be_written(o->path, strerror(error));
}

/* The file that a link names is replaced, not the link. */
static int follow_links(output *o, const char *path) {
    char *real = realpath(path, NULL);
    if (!real) return cannot_be_written(path, strerror(errno));
    bool fits = (size_t)snprintf(o->path, sizeof o->path, "%s", real) < sizeof o->path;
    free(real);
    return fits ? 0 : cannot_be_written(path, strerror(ENAMETOOLONG));
}

static int open_file(output *o, const char *path) {
    struct stat facts;
    if ((size_t)snprintf(o->path, sizeof o->path, "%s", path) >= sizeof o->path)
        return run_error("the path is too long: %s", path);
    if (stat(path, &facts)) return lstat(path, &facts) ? open_beside(o, NULL) : cannot_be_written(path, "it is a link to nothing");
    if (S_ISDIR(facts.st_mode)) return cannot_be_written(path, "it is a directory");
    if (!S_ISREG(facts.st_mode)) return open_in_place(o);
    int code = follow_links(o, path);
    return code ? code : open_beside(o, &facts);
}

int output_open(output *o, const char *path) {
    *o = (output){.file = NULL};
    if (!path) return 0;
    if (output_is_stdout(path)) {
        o->file = stdout;
        return 0;
    }
    int code = open_file(o, path);
    if (!code) remember(o);
    return code;
}

/* ---- the end ---- */

void output_abort(output *o) {
    if (!o->file || o->file == stdout) return;
    forget(o);
    fclose(o->file);
    if (o->temporary[0]) unlink(o->temporary);
    o->file = NULL;
}

static int commit_in_place(output *o, bool bad) {
    bad |= fclose(o->file) != 0;
    o->file = NULL;
    return bad ? cannot_be_written(o->path, strerror(errno)) : 0;
}

int output_commit(output *o) {
    if (!o->file) return 0;
    bool bad = fflush(o->file) || ferror(o->file);
    if (o->file == stdout) return bad ? run_error("stdout cannot be written") : 0;
    forget(o);
    if (!o->temporary[0]) return commit_in_place(o, bad);
    bad |= fsync(fileno(o->file)) != 0;
    bad |= fclose(o->file) != 0;
    o->file = NULL;
    if (!bad && rename(o->temporary, o->path) == 0) return 0;
    int error = errno;
    unlink(o->temporary);
    return cannot_be_written(o->path, strerror(error));
}
