/*
 * Temporary folders.
 */
#ifndef CLTRAIN_TOOLS_FOLDER_H
#define CLTRAIN_TOOLS_FOLDER_H

#include <stdbool.h>

/* Removes a folder and what is in it. False, and errno, if something of it is left. */
bool folder_remove(const char *path);

#endif
