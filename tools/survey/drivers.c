#define _GNU_SOURCE /* O_CLOEXEC */
#include "tools/survey/drivers.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tools/common/message.h"
#include "tools/common/text.h"

enum { MOST_DRIVERS = 64 };

static bool ends_with_icd(const char *name) {
    size_t length = strlen(name);
    return length > 4 && strcmp(name + length - 4, ".icd") == 0;
}

/* The first line of the file. What is not a regular file, such as a FIFO, may keep a reader waiting for ever, the loader too. */
static void read_library(driver *d) {
    struct stat facts;
    int file = open(d->vendors, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (file < 0) {
        snprintf(d->problem, sizeof d->problem, "it cannot be read: %s", strerror(errno));
        return;
    }
    bool regular = fstat(file, &facts) == 0 && S_ISREG(facts.st_mode);
    ssize_t length = regular ? read(file, d->library, sizeof d->library - 1) : 0;
    close(file);
    if (!regular) snprintf(d->problem, sizeof d->problem, "it is not a regular file");
    d->library[length > 0 ? length : 0] = 0;
    d->library[strcspn(d->library, "\r\n")] = 0;
}

static int by_name(const void *a, const void *b) {
    return strcmp(((const driver *)a)->name, ((const driver *)b)->name);
}

static int read_folder(const char *folder, driver *drivers) {
    int n = 0;
    DIR *entries = opendir(folder);
    if (!entries) return -1;
    for (const struct dirent *entry; n < MOST_DRIVERS && (entry = readdir(entries));) {
        if (!ends_with_icd(entry->d_name)) continue;
        driver *d = &drivers[n++];
        snprintf(d->name, sizeof d->name, "%s", entry->d_name);
        text_clean(d->name, "");
        snprintf(d->vendors, sizeof d->vendors, "%s/%s", folder, entry->d_name);
        read_library(d);
    }
    closedir(entries);
    qsort(drivers, (size_t)n, sizeof *drivers, by_name);
    return n;
}

/* A file, or what only the loader understands. */
static int single(const char *value, driver *d) {
    const char *slash = strrchr(value, '/');
    snprintf(d->name, sizeof d->name, "%s", slash ? slash + 1 : value);
    text_clean(d->name, "");
    snprintf(d->vendors, sizeof d->vendors, "%s", value);
    if (ends_with_icd(value)) read_library(d);
    else snprintf(d->library, sizeof d->library, "%.500s", value);
    return 1;
}

int drivers_find(driver **drivers, char where[4096]) {
    struct stat facts;
    const char *given = getenv("OCL_ICD_VENDORS");
    if (!given || !given[0]) given = getenv("OPENCL_VENDOR_PATH");
    const char *folder = given && given[0] ? given : "/etc/OpenCL/vendors";
    *drivers = calloc(MOST_DRIVERS, sizeof **drivers);
    if (!*drivers) return run_error("no memory"), -1;
    snprintf(where, 4096, "%s", folder);
    bool is_folder = stat(folder, &facts) == 0 && S_ISDIR(facts.st_mode);
    int n = is_folder ? read_folder(folder, *drivers) : given && given[0] ? single(folder, *drivers) : 1;
    if (n < 0) {
        free(*drivers);
        run_error("the folder %s of OpenCL drivers cannot be read", folder);
    }
    return n;
}

/* Two loaders are in use: ocl-icd takes a file in OCL_ICD_VENDORS; Khronos's takes folders alone there, but libraries in
 * OCL_ICD_FILENAMES. */
void driver_isolate(const driver *d) {
    if (!d->vendors[0]) return;
    setenv("OCL_ICD_VENDORS", d->vendors, 1);
    unsetenv("OPENCL_VENDOR_PATH");
    if (d->library[0]) setenv("OCL_ICD_FILENAMES", d->library, 1);
    else unsetenv("OCL_ICD_FILENAMES");
}

/* ---- what keeps devices away ---- */

/* Mesa's driver is there for whoever asks for its devices by name. */
static bool is_shut_rusticl(const driver *d) {
    const char *enabled = getenv("RUSTICL_ENABLE");
    bool named = strstr(d->name, "rusticl") || strstr(d->library, "Rusticl") || strstr(d->library, "rusticl");
    return named && (!enabled || !enabled[0]);
}

/* Of PoCL's kernels, by the names that it looks at, in its order. */
static void find_pocl_cache(char folder[4096]) {
    static const struct {
        const char *variable, *below;
    } places[] = {{"POCL_CACHE_DIR", ""}, {"XDG_CACHE_HOME", "/pocl/kcache"}, {"HOME", "/.cache/pocl/kcache"}};
    snprintf(folder, 4096, "/tmp/pocl/kcache");
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        const char *value = getenv(places[i].variable);
        if (!value || !value[0]) continue;
        snprintf(folder, 4096, "%s%s", value, places[i].below);
        return;
    }
}

/* Whether the folder can be written in; errno: why not. It is made, as PoCL makes it: root may do anything by its rights, but nothing in /proc. */
static bool may_write(const char *folder) {
    char path[4096];
    snprintf(path, sizeof path, "%s", folder);
    for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = 0;
        if (mkdir(path, 0777) && errno != EEXIST) return false;
        *slash = '/';
    }
    return (mkdir(path, 0777) == 0 || errno == EEXIST) && access(path, W_OK | X_OK) == 0;
}

bool driver_hint(const driver *d, char hint[256]) {
    if (!is_shut_rusticl(d)) return driver_fault(d, hint);
    snprintf(hint, 256, "Mesa's rusticl shows devices only with RUSTICL_ENABLE=radeonsi, iris, llvmpipe or others");
    return true;
}

bool driver_fault(const driver *d, char hint[256]) {
    char folder[4096];
    if (!strstr(d->name, "pocl") && !strstr(d->library, "pocl")) return false;
    find_pocl_cache(folder);
    if (may_write(folder)) return false;
    const char *why = strerror(errno);
    snprintf(hint, 256, "PoCL cannot write its cache, %.96s (%.40s): POCL_CACHE_DIR, XDG_CACHE_HOME or HOME should name a folder where it can",
             folder, why);
    return true;
}
