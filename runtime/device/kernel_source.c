#include "runtime/device/kernel_source.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/base/file.h"
#include "runtime/base/thread.h"
#include "runtime/device/device.h"

/* A file of a folder, kept for good: modules are known by where their text lies. */
typedef struct replacement {
    char *folder;
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
    char *kept = clt_strdup(folder);
    if (!r || !kept) {
        clt_free(r);
        clt_free(kept);
        return NULL;
    }
    if ((size_t)snprintf(path, sizeof path, "%s/%s", folder, source->path) < sizeof path &&
        clt_file_read(path, MOST_BYTES, &bytes, &length) == CLT_OK) {
        r->text = bytes;
        clt_log_message(CLT_LOG_WARNING, "CLTRAIN_KERNEL_FOLDER: kernels of %s are those of %s", source->path, path);
    }
    *r = (replacement){.folder = kept, .source = source, .text = r->text, .next = replacements};
    return replacements = r;
}

clt_status clt_kernel_folder_check(const char *name, const char *folder) {
    struct stat facts;
    char path[MOST_PATH];
    if (stat(folder, &facts) < 0 || !S_ISDIR(facts.st_mode))
        return clt_fail(CLT_E_INVALID, "%s: %s is not a folder", name, folder);
    for (const clt_kernel_source *source = clt_kernel_sources; source->path; source++) {
        if ((size_t)snprintf(path, sizeof path, "%s/%s", folder, source->path) >= sizeof path)
            return clt_fail(CLT_E_INVALID, "%s: %s is too long", name, folder);
        if (stat(path, &facts) == 0 && (access(path, R_OK) < 0 || !S_ISREG(facts.st_mode) || facts.st_size > MOST_BYTES))
            return clt_fail(CLT_E_INVALID, "%s: %s is not a file of at most %d bytes that can be read", name, path, MOST_BYTES);
    }
    return CLT_OK;
}

static const char *replaced(const char *folder, const clt_kernel_source *source) {
    if (!folder[0]) return source->text;
    clt_mutex_lock(&mutex);
    const replacement *r = replacements;
    while (r && (r->source != source || strcmp(r->folder, folder))) r = r->next;
    if (!r) r = read_replacement(folder, source);
    clt_mutex_unlock(&mutex);
    return r && r->text ? r->text : source->text;
}

const char *clt_kernel_source_find(const clt_device *device, const char *path) {
    for (const clt_kernel_source *source = clt_kernel_sources; source->path; source++)
        if (!strcmp(source->path, path)) return replaced(clt_device_settings(device)->kernel_folder, source);
    return NULL;
}
