#define _GNU_SOURCE /* dladdr */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "comm/mover/engine.h"
#include "runtime/base/base.h"

/* The folder of this library, with a slash; "" if it is not known. */
static void own_folder(char *folder, size_t bytes) {
    Dl_info info;
    const char *slash = NULL;
    folder[0] = 0;
    if (!dladdr((void *)(uintptr_t)clt_mover_load, &info) || !info.dli_fname || !(slash = strrchr(info.dli_fname, '/'))) return;
    snprintf(folder, bytes, "%.*s", (int)(slash - info.dli_fname + 1), info.dli_fname);
}

/* For all who load later, too: parts of Open MPI miss its symbols otherwise. */
static void *load(const char *name, char *why, size_t bytes) {
    char folder[3072], path[4096];
    own_folder(folder, sizeof folder);
    snprintf(path, sizeof path, "%slibcltrain-%s.so", folder, name);
    void *library = dlopen(path, RTLD_NOW | RTLD_GLOBAL);
    if (!library) {
        snprintf(why, bytes, "%s", dlerror());
        snprintf(path, sizeof path, "libcltrain-%s.so", name);
        library = dlopen(path, RTLD_NOW | RTLD_GLOBAL);
    }
    return library;
}

clt_status clt_mover_load(const clt_mover **mover, const char *name) {
    char why[1024] = "";
    void *library = load(name, why, sizeof why);
    if (!library)
        return clt_fail(CLT_E_UNSUPPORTED, "engine \"%s\": its plugin cannot be loaded: %s. It is built where %s", name, why,
                        strcmp(name, "gloo") ? "MPI is installed (Debian: libopenmpi-dev or libmpich-dev)" : "Gloo is installed (Debian: libgloo-dev)");
    clt_mover_plugin_function *plugin = (clt_mover_plugin_function *)(uintptr_t)dlsym(library, CLT_MOVER_SYMBOL);
    *mover = plugin ? plugin() : NULL;
    if (*mover && (*mover)->abi == CLT_MOVER_ABI) return CLT_OK;
    return clt_fail(CLT_E_UNSUPPORTED, "engine \"%s\": libcltrain-%s.so is of another version of this library", name, name);
}
