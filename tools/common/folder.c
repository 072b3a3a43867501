#define _GNU_SOURCE /* dirfd, unlinkat */
#include "tools/common/folder.h"

#include <dirent.h>
#include <string.h>
#include <unistd.h>

bool folder_remove(const char *path) {
    DIR *folder = opendir(path);
    for (const struct dirent *entry; folder && (entry = readdir(folder));)
        if (strcmp(entry->d_name, ".") && strcmp(entry->d_name, "..")) unlinkat(dirfd(folder), entry->d_name, 0);
    if (folder) closedir(folder);
    return rmdir(path) == 0;
}
