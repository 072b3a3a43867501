/*
 * Files: read whole with a limit, written atomically.
 */
#ifndef CLT_BASE_FILE_H
#define CLT_BASE_FILE_H

#include "runtime/base/base.h"

/* Reads a whole regular file into a new block (release with clt_free), followed
 * by a NUL that is not counted. CLT_E_IO if it cannot be read, CLT_E_FORMAT if
 * larger than `limit_bytes`; the size is checked before memory is taken. */
clt_status clt_file_read(const char *path, size_t limit_bytes, void **bytes, size_t *length);

/* Size of a regular file. */
clt_status clt_file_size(const char *path, uint64_t *bytes);

bool clt_file_exists(const char *path);
/* Whether both paths lead to one file that is there. */
bool clt_file_same(const char *a, const char *b);

/* A regular file that is looked at where the system keeps it, and read piece by piece. To be closed also after an error; starts as {.file = -1}.
 * Of a file that another program cuts meanwhile the missing bytes must not be looked at: the system ends programs that do. */
typedef struct clt_file_view {
    int file;
    const unsigned char *bytes; /* NULL if there are none */
    size_t length;
} clt_file_view;
clt_status clt_file_view_open(clt_file_view *view, const char *path);
/* CLT_E_FORMAT if the file ends before `offset` + `length`, or does so by now. */
clt_status clt_file_view_read(const clt_file_view *view, const char *path, uint64_t offset, void *to, size_t length);
void clt_file_view_close(clt_file_view *view);

/* Opens a new file of the folder, to be read and written, which has no name any more and is gone when it is closed. -1, and errno: it cannot be made. */
int clt_file_open_unnamed(const char *folder);

/* Memory that lies in such a file, for more than the machine has: zeros. Its place on the disk is taken at once, so that there is
 * room for what is written. CLT_E_IO: there is no such folder, or no room. NULL is fine. */
clt_status clt_file_space_create(const char *folder, size_t bytes, void **space);
void clt_file_space_destroy(void *space, size_t bytes);

/* The path, links followed, of a file that another one names: `relative` counts from that one's folder. What is not inside
 * that folder, or, where `path` is a link, inside the one of what it names, is CLT_E_FORMAT: absolute paths, "..", links that lead
 * elsewhere. CLT_E_IO: there is none. */
clt_status clt_file_beside(const char *path, const char *relative, clt_text *real);

/* A file being written beside its final name. Until commit, the old file is untouched; the new one has its permissions. */
typedef struct clt_file_writer clt_file_writer;
clt_status clt_file_writer_open(clt_file_writer **writer, const char *path);
clt_status clt_file_writer_write(clt_file_writer *writer, const void *bytes, size_t length);
/* fsync, close, rename over `path`, fsync the folder. Frees the writer, also on error. */
clt_status clt_file_writer_commit(clt_file_writer *writer);
/* Removes the temporary and frees the writer. NULL is fine. */
void clt_file_writer_abort(clt_file_writer *writer);
/* Either, by how writing went: gives `status` where that is an error. */
clt_status clt_file_writer_end(clt_file_writer *writer, clt_status status);

/* All of the above for one block of bytes. */
clt_status clt_file_write(const char *path, const void *bytes, size_t length);

/* Makes a folder and its parents; one that exists is fine. */
clt_status clt_file_make_folder(const char *path);

/* The cache's folder with `name` behind it, made if missing. CLT_E_IO where it is "", since there is no home, or cannot be made. */
clt_status clt_file_cache_folder(const char *cache, const char *name, clt_text *path);

#endif
