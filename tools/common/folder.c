#define _GNU_SOURCE /* dirfd, unlinkat */
#include "tools/common/folder.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

bool folder_remove(const char *path) {
    enum { MOST_PATH = 4096 };
    char inner[MOST_PATH];
    DIR *folder = opendir(path);
    for (const struct dirent *entry; folder && (entry = readdir(folder));) {
        if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, "..")) continue;
        bool is_folder = unlinkat(dirfd(folder), entry->d_name, 0) && (errno == EISDIR || errno == EPERM);
        if (is_folder && snprintf(inner, sizeof inner, "%s/%s", path, entry->d_name) < MOST_PATH) folder_remove(inner);
    }
    if (folder) closedir(folder);
    return rmdir(path) == 0;
}
