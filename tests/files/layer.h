/*
 * A layer between the library and the system's calls on files, by the linker's --wrap: the Nth call fails, or does less than
 * it was asked for; and what is written is recorded, for power cuts.
 *
 * Counted are the calls of the library alone, on files: not those of drivers, nor those on sockets and pipes.
 */
#ifndef CLT_TESTS_FILES_LAYER_H
#define CLT_TESTS_FILES_LAYER_H

#include <stdbool.h>
#include <stddef.h>

enum { LAYER_SHORT = 0, LAYER_NOTHING = -1 };

typedef struct fault {
    int error;     /* errno of the call that fails; or reads and writes move less than they were asked to; or writes, nothing */
    int nth;       /* from 1 */
    bool for_ever; /* that one and all behind it, else that one alone */
} fault;

/* From now on calls are counted, and fail as told. NULL: they are only counted. */
void layer_begin(const fault *fault);
/* How many calls were made since; *hit: how many of them failed or fell short. Nothing fails any more. */
int layer_end(int *hit);
/* Of those, how many were to remove a file. */
int layer_failed_unlinks(void);
/* Descriptors and streams that are open, of those that were opened through the layer. */
int layer_open_files(void);

/* ---- what was written, in order ---- */

typedef enum layer_kind { LAYER_CREATE, LAYER_WRITE, LAYER_SYNC, LAYER_RENAME, LAYER_UNLINK, LAYER_SYNC_FOLDER } layer_kind;

typedef struct layer_event {
    layer_kind kind;
    int file;             /* CREATE, WRITE, SYNC: a number, one for each file that was created */
    char *name, *to;      /* CREATE, RENAME, UNLINK: paths; SYNC_FOLDER: the folder's */
    unsigned char *bytes; /* WRITE: behind what was written before */
    size_t length;
} layer_event;

typedef struct layer_journal {
    layer_event *events;
    int n, files;
} layer_journal;

/* Records until layer_journal_end, which hands the journal over. */
void layer_journal_begin(void);
layer_journal layer_journal_end(void);
void layer_journal_free(layer_journal *journal);

#endif
