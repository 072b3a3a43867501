/*
 * Files that options name: which are the same, and what can be written.
 */
#ifndef CLTRAIN_TOOLS_FILES_H
#define CLTRAIN_TOOLS_FILES_H

#include <stdbool.h>
#include <stdio.h>
#include <sys/stat.h>

typedef enum file_role {
    FILE_READ,
    FILE_WRITTEN,
    FILE_OR_STDOUT /* written; -: stdout */
} file_role;

typedef struct file_use {
    const char *option, *path; /* path: NULL: not given */
    file_role role;
} file_use;

bool file_same(const struct stat *a, const struct stat *b);

/* Several may write there: nothing is lost that would be kept. */
bool file_is_null_device(const struct stat *facts);

/* Refuses a file that is written, and read or written for another option as well. Returns 0 or EXIT_USAGE. */
int file_check_distinct(const file_use *files, int n);

/* What a file is, by how it begins. */
typedef enum file_kind { FILE_SAFETENSORS, FILE_ONNX, FILE_JSON, FILE_MARKUP, FILE_BENCH_TABLE, FILE_LOG } file_kind;

/* Whether the library can put a file in that place, or in the place of one of the same kind, or of an empty one, as its own savings do: other files are not
 * replaced. Returns 0, or EXIT_FAILED after saying why not. NULL: nothing is to be put anywhere. */
int file_check_replaceable(const char *option, const char *path, file_kind kind);

/* Whether a regular file is there that is neither empty nor of this kind. */
bool file_is_another(const char *path, file_kind kind);
/* Such a file is not replaced: 0, or EXIT_FAILED after saying so. Others, and what is no regular file, are left to who writes. NULL: 0. */
int file_refuse_another(const char *option, const char *path, file_kind kind);

/* Which file is at a path, to see later whether it is another one. */
typedef struct file_identity {
    bool there;
    struct stat facts;
} file_identity;
file_identity file_identify(const char *path);
/* Whether it is still that file, or still none: what is saved is a new file each time. */
bool file_is_still(const char *path, const file_identity *identity);

/* file_check_replaceable of safetensors in a folder, which is made if it is not there. */
int file_check_replaceable_in(const char *option, const char *folder, const char *name);

/* Opens it for writing in its place, with O_CREAT, O_APPEND and O_TRUNC in `flags` as wanted. A FIFO that nobody reads would be
 * waited for for ever: it is refused. NULL and *why on failure. */
FILE *file_open_in_place(const char *path, int flags, const char **why);

#endif
