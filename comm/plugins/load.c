#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "comm/plugins/plugins.h"
#include "runtime/base/install.h"

/* For all who load later, too: parts of Open MPI miss its symbols otherwise. */
static void *load_file(const char *path) {
    return dlopen(path, RTLD_NOW | RTLD_GLOBAL);
}

/* Where the library's files are, or where the system looks. `why`: of the first that is there. */
static void *load(const char *name, char *why, size_t bytes) {
    char file[64], path[4096];
    snprintf(file, sizeof file, "libcltrain-%s.so", name);
    void *library = NULL;
    bool there = false;
    for (int i = 0; !library && clt_install_path(i, file, path, sizeof path); i++) {
        library = load_file(path);
        if (library || there) continue;
        there = access(path, F_OK) == 0;
        if (there || i == 0) snprintf(why, bytes, "%s", dlerror());
    }
    return library ? library : load_file(file);
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
