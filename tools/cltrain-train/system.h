/*
 * What the program needs of the operating system: terminal, signals.
 */
#ifndef CLTRAIN_TRAIN_SYSTEM_H
#define CLTRAIN_TRAIN_SYSTEM_H

#include <stdbool.h>
#include <stdint.h>

/* Is stderr a terminal that can overwrite a line? */
bool terminal_present(void);

/* At the start of the program, before drivers set handlers of their own: whether SIGHUP is ignored, as nohup has it. */
void signals_look(void);

/* From now on the first SIGINT or SIGTERM is only noted; another one of the same kills as usual. */
void signals_catch(void);
/* The signal that came, or 0. */
int signals_caught(void);

bool file_readable(const char *path);
/* Bytes of a file, and of memory that is there; 0: not known. */
int64_t file_bytes(const char *path);
int64_t memory_bytes(void);

/* Those that this process may use, but no more than `most`. */
int processors(int most);

bool folder_exists(const char *path);
/* `since`: seconds since 1970. */
bool file_written_since(const char *path, double since);

#endif
