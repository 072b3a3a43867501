#define _GNU_SOURCE /* dladdr */
#include "runtime/base/install.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

/* The folder of this library, with a slash; "" if it is not known. */
static void own_folder(char *folder, size_t bytes) {
    Dl_info info;
    const char *slash = NULL;
    folder[0] = 0;
    if (!dladdr((void *)(uintptr_t)clt_install_path, &info) || !info.dli_fname || !(slash = strrchr(info.dli_fname, '/'))) return;
    snprintf(folder, bytes, "%.*s", (int)(slash - info.dli_fname + 1), info.dli_fname);
}

bool clt_install_path(int i, const char *name, char *path, size_t bytes) {
    char own[3072];
    own_folder(own, sizeof own);
    const char *const folders[][2] = {{own, ""}, {own, "cltrain/"}, {CLT_INSTALL_FOLDER "/", ""}};
    if (i < 0 || (size_t)i >= CLT_COUNT_OF(folders)) return false;
    snprintf(path, bytes, "%s%s%s", folders[i][0], folders[i][1], name);
    return true;
}
