/*
 * One row for each option: read by the parser and printed by --help.
 */
#ifndef CLTRAIN_TRAIN_OPTION_TABLE_H
#define CLTRAIN_TRAIN_OPTION_TABLE_H

#include <stddef.h>

typedef enum option_kind {
    OPTION_HEADING,      /* no option: `help` stands above the next rows */
    OPTION_FLAG,         /* bool */
    OPTION_COUNTER,      /* int: one more each time */
    OPTION_WHOLE,        /* int64_t from `low` to INT_MAX, so that products fit */
    OPTION_SEED,         /* int64_t from 0, as large as JSON takes it */
    OPTION_POSITIVE,     /* double above 0 */
    OPTION_NOT_NEGATIVE, /* double */
    OPTION_FRACTION,     /* double in [0, 1) */
    OPTION_CHOICE,       /* int: the index in `choices` */
    OPTION_TEXT,         /* const char *, not empty */
    OPTION_OPTIONAL      /* the same; `standard` without a value, which only follows a = */
} option_kind;

typedef struct option_row {
    option_kind kind;
    char letter; /* 0: none */
    const char *name;
    const char *argument; /* its name in --help */
    size_t offset;        /* in struct options */
    int low;
    const char *const *choices; /* NULL at its end */
    const char *standard;
    const char *help;           /* lines after the first are indented by the printer */
} option_row;

extern const option_row option_rows[];
extern const int option_row_count;

#endif
