/* Memory that lies in a file. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "runtime/base/file.h"

/* On file systems that know no file without a name it has one for a moment. */
static int open_named(const char *folder) {
    clt_text path = {0};
    clt_text_add(&path, "%s/.cltrain-XXXXXX", folder);
    int file = path.status < 0 ? -1 : mkstemp(path.data);
    if (file >= 0) unlink(path.data);
    if (file >= 0) fcntl(file, F_SETFD, FD_CLOEXEC);
    clt_text_free(&path);
    return file;
}

static int open_space(const char *folder) {
#ifdef O_TMPFILE
    int file = open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (file >= 0 || (errno != EOPNOTSUPP && errno != EISDIR && errno != EINVAL)) return file;
#endif
    return open_named(folder);
}

static clt_status fail(const char *folder, size_t bytes, int error) {
    char shown[CLT_SHOWN_TEXT];
    return clt_fail(CLT_E_IO, "%s: no file of %zu bytes can be made there: %s", clt_show(folder, shown), bytes, strerror(error));
}

clt_status clt_file_space_create(const char *folder, size_t bytes, void **space) {
    int file = open_space(folder);
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
