#define _GNU_SOURCE /* dladdr */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "comm/plugins/plugins.h"
#include "runtime/base/base.h"

/* The folder of this library, with a slash; "" if it is not known. */
static void own_folder(char *folder, size_t bytes) {
    Dl_info info;
    const char *slash = NULL;
    folder[0] = 0;
    if (!dladdr((void *)(uintptr_t)clt_plugin_mover, &info) || !info.dli_fname || !(slash = strrchr(info.dli_fname, '/'))) return;
    snprintf(folder, bytes, "%.*s", (int)(slash - info.dli_fname + 1), info.dli_fname);
}

/* Beside this library, in its folder of plugins, in that of the installed library (programs that link it statically have none beside them), or
 * where the system looks. For all who load later, too: parts of Open MPI miss its symbols otherwise. `why`: of the first that is there. */
static void *load(const char *name, char *why, size_t bytes) {
    char own[3072], path[4096];
    own_folder(own, sizeof own);
    const char *const folders[][2] = {{own, ""}, {own, "cltrain/"}, {CLT_PLUGIN_FOLDER "/", ""}, {"", ""}};
    void *library = NULL;
    bool there = false;
    for (size_t i = 0; !library && i < CLT_COUNT_OF(folders); i++) {
        snprintf(path, sizeof path, "%s%slibcltrain-%s.so", folders[i][0], folders[i][1], name);
        library = dlopen(path, RTLD_NOW | RTLD_GLOBAL);
        if (library || there) continue;
        there = access(path, F_OK) == 0;
        if (there || i == 0) snprintf(why, bytes, "%s", dlerror());
    }
    return library;
}

static clt_status find(const char *name, const char *symbol, void **function) {
    char why[1024] = "";
    void *library = load(name, why, sizeof why);
    if (!library)
        return clt_fail(CLT_E_UNSUPPORTED, "the plugin for %s cannot be loaded: %s. It is built where %s", name, why,
                        strcmp(name, "gloo") ? "MPI is installed (Debian: libopenmpi-dev or libmpich-dev)" : "Gloo is installed (Debian: libgloo-dev)");
    *function = dlsym(library, symbol);
    return CLT_OK;
}

static clt_status refuse_version(const char *name) {
    return clt_fail(CLT_E_UNSUPPORTED, "the plugin for %s: libcltrain-%s.so is of another version of this library", name, name);
}

clt_status clt_plugin_mover(const clt_mover **mover, const char *name) {
    void *function = NULL;
    CLT_TRY(find(name, CLT_MOVER_SYMBOL, &function));
    *mover = function ? ((clt_mover_plugin_function *)(uintptr_t)function)() : NULL;
    return *mover && (*mover)->abi == CLT_MOVER_ABI ? CLT_OK : refuse_version(name);
}

clt_status clt_plugin_gloo(const clt_gloo_functions **functions) {
    void *function = NULL;
    CLT_TRY(find("gloo", CLT_GLOO_SYMBOL, &function));
    *functions = function ? ((clt_gloo_plugin_function *)(uintptr_t)function)() : NULL;
    return *functions && (*functions)->abi == CLT_GLOO_ABI ? CLT_OK : refuse_version("gloo");
}
