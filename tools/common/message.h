/*
 * What a program says on stderr, and its exit codes.
 */
#ifndef CLTRAIN_TOOLS_MESSAGE_H
#define CLTRAIN_TOOLS_MESSAGE_H

#include <stdbool.h>

#include <cltrain/cltrain.h>

/* The name that messages begin with; each program defines its own. */
extern const char program_name[];

#define PLURAL(count) ((count) == 1 ? "" : "s")

enum { EXIT_DONE = 0, EXIT_FAILED = 1, EXIT_USAGE = 2, EXIT_SIGNAL = 128 /* + the signal */ };

/* The command of a program that has several, for where its help is; lives as long as the program. NULL: none. */
void message_command(const char *name);

/* "PROGRAM: …" and where help is; returns EXIT_USAGE. */
int usage_error(const char *format, ...) CLT_PRINTF(1, 2);

/* "PROGRAM: …"; returns EXIT_FAILED. */
int run_error(const char *format, ...) CLT_PRINTF(1, 2);

/* "PROGRAM: doing: the library's detail of its last error"; returns EXIT_FAILED. */
int library_error(clt_status status, const char *doing);

#ifdef __clang_analyzer__ /* sees one file at a time: it has to be told that none of these returns 0 */
#define usage_error(...) (usage_error(__VA_ARGS__), EXIT_USAGE)
#define run_error(...) (run_error(__VA_ARGS__), EXIT_FAILED)
#define library_error(status, doing) (library_error(status, doing), EXIT_FAILED)
#endif

/* "PROGRAM: warning: …" */
void warning(const char *format, ...) CLT_PRINTF(1, 2);

/* A plain line, unless the program was told to be quiet. */
void message_line(const char *format, ...) CLT_PRINTF(1, 2);

/* A line that the next one overwrites, for terminals; as much of it as fits one line there. */
void message_transient(const char *text);
/* Of the terminal that stderr is; 80 where it does not say. */
int message_columns(void);
/* Wipes it away, if one stands there: before stdout is written to. */
void message_wipe(void);

/* Lines are handed to `write`, by any thread, in stderr's place; NULL: not any more. */
void message_through(void (*write)(const char *text));

/* verbosity -1: errors alone; 0: progress and warnings; 1: what the library tells; 2: all of it. */
void message_start(int verbosity);
/* The calling thread is one of several that do the same: an error that another has printed is not printed again; hushed: errors alone. */
void message_of_thread(bool hushed);
bool message_quiet(void);

#endif
