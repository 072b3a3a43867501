#include "runtime/device/kernel_source.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/base/file.h"
#include "runtime/base/thread.h"

/* A file of the folder, kept for good: modules are known by where their text lies. */
typedef struct replacement {
    const clt_kernel_source *source;
    char *text; /* NULL: the folder has no such file */
    struct replacement *next;
} replacement;

enum { MOST_BYTES = 1 << 20, MOST_PATH = 4096 };

static clt_mutex mutex = PTHREAD_MUTEX_INITIALIZER;
static replacement *replacements;

static replacement *read_replacement(const char *folder, const clt_kernel_source *source) {
    char path[MOST_PATH];
    void *bytes = NULL;
    size_t length;
    replacement *r = clt_calloc(1, sizeof *r);
    if (!r) return NULL;
    if ((size_t)snprintf(path, sizeof path, "%s/%s", folder, source->path) < sizeof path &&
        clt_file_read(path, MOST_BYTES, &bytes, &length) == CLT_OK) {
        r->text = bytes;
        clt_log_message(CLT_LOG_WARNING, "CLTRAIN_KERNEL_FOLDER: kernels of %s are those of %s", source->path, path);
    }
    *r = (replacement){.source = source, .text = r->text, .next = replacements};
    return replacements = r;
}

/* NULL: none is named. */
static const char *folder_named(void) {
    const char *folder = getenv("CLTRAIN_KERNEL_FOLDER");
    return folder && folder[0] ? folder : NULL;
}

clt_status clt_kernel_source_check(void) {
    const char *folder = folder_named();
    struct stat facts;
    char path[MOST_PATH];
    if (!folder) return CLT_OK;
    if (stat(folder, &facts) < 0 || !S_ISDIR(facts.st_mode))
        return clt_fail(CLT_E_INVALID, "CLTRAIN_KERNEL_FOLDER: %s is no folder", folder);
    for (const clt_kernel_source *source = clt_kernel_sources; source->path; source++) {
        if ((size_t)snprintf(path, sizeof path, "%s/%s", folder, source->path) >= sizeof path)
            return clt_fail(CLT_E_INVALID, "CLTRAIN_KERNEL_FOLDER: %s is too long", folder);
        if (stat(path, &facts) == 0 && (access(path, R_OK) < 0 || !S_ISREG(facts.st_mode) || facts.st_size > MOST_BYTES))
            return clt_fail(CLT_E_INVALID, "CLTRAIN_KERNEL_FOLDER: %s is no file of at most %d bytes that can be read", path, MOST_BYTES);
    }
    return CLT_OK;
}

static const char *replaced(const clt_kernel_source *source) {
    const char *folder = folder_named();
    if (!folder) return source->text;
    clt_mutex_lock(&mutex);
    const replacement *r = replacements;
    while (r && r->source != source) r = r->next;
    if (!r) r = read_replacement(folder, source);
    clt_mutex_unlock(&mutex);
    return r && r->text ? r->text : source->text;
}

const char *clt_kernel_source_find(const char *path) {
    for (const clt_kernel_source *source = clt_kernel_sources; source->path; source++)
        if (!strcmp(source->path, path)) return replaced(source);
    return NULL;
}
