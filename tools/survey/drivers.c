#define _GNU_SOURCE /* O_CLOEXEC */
#include "tools/survey/drivers.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
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

/* The first line of the file. What is no regular file, such as a FIFO, may keep a reader waiting for ever, the loader too. */
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
    if (!regular) snprintf(d->problem, sizeof d->problem, "it is no regular file");
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
