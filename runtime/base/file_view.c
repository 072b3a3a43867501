#define _GNU_SOURCE /* O_CLOEXEC, realpath */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/base/file.h"

static clt_status fail_io(const char *what, const char *path) {
    return clt_fail(CLT_E_IO, "%s: %s: %s", path, what, strerror(errno));
}

clt_status clt_file_view_open(clt_file_view *view, const char *path) {
    struct stat facts;
    *view = (clt_file_view){.file = -1};
    view->file = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC); /* a FIFO must not block: it is refused below */
    if (view->file < 0) return fail_io("cannot be opened", path);
    if (fstat(view->file, &facts)) return fail_io("cannot be examined", path);
    if (!S_ISREG(facts.st_mode)) return clt_fail(CLT_E_IO, "%s: not a regular file", path);
    if ((uint64_t)facts.st_size > SIZE_MAX) return clt_fail(CLT_E_RANGE, "%s: larger than this process can address", path);
    if (facts.st_size == 0) return CLT_OK;
    void *bytes = mmap(NULL, (size_t)facts.st_size, PROT_READ, MAP_PRIVATE, view->file, 0);
    if (bytes == MAP_FAILED) return fail_io("cannot be mapped", path);
    view->bytes = bytes;
    view->length = (size_t)facts.st_size;
    return CLT_OK;
}

clt_status clt_file_view_read(const clt_file_view *view, const char *path, uint64_t offset, void *to, size_t length) {
    unsigned char *next = to;
    uint64_t end;
    if (__builtin_add_overflow(offset, length, &end) || end > view->length)
        return clt_fail(CLT_E_FORMAT, "%s: %zu bytes from byte %llu are needed, and it has %zu", path, length, (unsigned long long)offset, view->length);
    while (length > 0) {
        ssize_t n = pread(view->file, next, length, (off_t)offset);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return fail_io("cannot be read", path);
        if (n == 0) return clt_fail(CLT_E_FORMAT, "%s: ends at byte %llu, which it did not when it was opened", path, (unsigned long long)offset);
        next += n;
        offset += (uint64_t)n;
        length -= (size_t)n;
    }
    return CLT_OK;
}

void clt_file_view_close(clt_file_view *view) {
    if (view->bytes) munmap((void *)(uintptr_t)view->bytes, view->length);
    if (view->file >= 0) close(view->file);
    *view = (clt_file_view){.file = -1};
}

/* ---- files that files name ---- */

static bool climbs(const char *relative) {
    for (const char *part = relative; part; part = strchr(part, '/')) {
        if (part != relative) part++;
        if (!strncmp(part, "..", 2) && (part[2] == '/' || part[2] == 0)) return true;
    }
    return false;
}

static size_t folder_length(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash ? (size_t)(slash - path) + 1 : 0;
}

/* The folder of `path`, with a slash at its end; links in it are followed, and with `of_target` that which the path itself may be. */
static clt_status real_folder(const char *path, bool of_target, clt_text *folder) {
    clt_text named = {0};
    if (of_target) clt_text_add(&named, "%s", path);
    else clt_text_add_bytes(&named, path, folder_length(path));
    if (!of_target) clt_text_add(&named, ".");
    char *real = named.status == CLT_OK ? realpath(named.data, NULL) : NULL;
    clt_status status = real ? CLT_OK : named.status < 0 ? named.status : fail_io("cannot be found", path);
    if (real && of_target) clt_text_add_bytes(folder, real, folder_length(real));
    else if (real) clt_text_add(folder, "%s%s", real, real[1] ? "/" : "");
    if (status == CLT_OK) status = folder->status;
    free(real);
    clt_text_free(&named);
    return status;
}

/* Whether a real path is inside the folder of `path`, as it is named or as it is. */
static clt_status check_inside(const char *path, const char *real, bool *inside) {
    *inside = false;
    for (int of_target = 0; of_target < 2 && !*inside; of_target++) {
        clt_text folder = {0};
        clt_status status = real_folder(path, of_target, &folder);
        if (status == CLT_OK) *inside = !strncmp(real, folder.data, folder.length);
        clt_text_free(&folder);
        CLT_TRY(status);
    }
    return CLT_OK;
}

clt_status clt_file_beside(const char *path, const char *relative, clt_text *real) {
    char shown[CLT_SHOWN_TEXT];
    clt_text named = {0};
    if (relative[0] == '/' || !relative[0] || climbs(relative))
        return clt_fail(CLT_E_FORMAT, "%s: the path \"%s\" leads out of its folder, or nowhere", path, clt_show(relative, shown));
    clt_text_add_bytes(&named, path, folder_length(path));
    clt_text_add(&named, "%s", relative);
    char *found = named.status == CLT_OK ? realpath(named.data, NULL) : NULL;
    bool inside = false;
    clt_status status = found ? check_inside(path, found, &inside) : named.status < 0 ? named.status : fail_io("cannot be found", named.data);
    if (status == CLT_OK && !inside)
        status = clt_fail(CLT_E_FORMAT, "%s: \"%s\" is a link that leads out of its folder", path, clt_show(relative, shown));
    if (status == CLT_OK) {
        clt_text_add(real, "%s", found);
        status = real->status;
    }
    free(found);
    clt_text_free(&named);
    return status;
}
