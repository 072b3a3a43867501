/* Files without a name, and memory that lies in one. */
#define _GNU_SOURCE /* mkostemp */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "runtime/base/file.h"

int clt_file_open_unnamed(const char *folder) {
    char path[PATH_MAX];
    if (snprintf(path, sizeof path, "%s/cltrain-XXXXXX", folder) >= (int)sizeof path) {
        errno = ENAMETOOLONG;
        return -1;
    }
    int file = mkostemp(path, O_CLOEXEC);
    if (file >= 0) unlink(path);
    return file;
}

static clt_status fail(const char *folder, size_t bytes, int error) {
    char shown[CLT_SHOWN_TEXT];
    return clt_fail(CLT_E_IO, "%s: no file of %zu bytes can be made there: %s", clt_show(folder, shown), bytes, strerror(error));
}

clt_status clt_file_space_create(const char *folder, size_t bytes, void **space) {
    int file = clt_file_open_unnamed(folder);
    if (file < 0) return fail(folder, bytes, errno);
    int error = posix_fallocate(file, 0, (off_t)bytes);
    void *made = error ? MAP_FAILED : mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (!error && made == MAP_FAILED) error = errno;
    close(file);
    if (error) return fail(folder, bytes, error);
    *space = made;
    return CLT_OK;
}

void clt_file_space_destroy(void *space, size_t bytes) {
    if (space) munmap(space, bytes);
}
