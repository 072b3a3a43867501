/*
 * Command lines by a table: one row for each option, read by the parser and printed by --help.
 */
#ifndef CLTRAIN_TOOLS_OPTION_PARSER_H
#define CLTRAIN_TOOLS_OPTION_PARSER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

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
    OPTION_TEXT,         /* const char *, not empty; `standard`, if there is one, where no word follows but another option */
    OPTION_OPTIONAL      /* the same; `standard` without a value, which only follows a =, as words may follow */
} option_kind;

typedef struct option_row {
    option_kind kind;
    char letter; /* 0: none */
    const char *name;
    const char *argument; /* its name in --help */
    size_t offset;        /* in the struct that is filled */
    int low;              /* of OPTION_OPTIONAL: 1: a word that follows and ends with .json is the value */
    const char *const *choices; /* NULL at its end */
    const char *standard;
    const char *aliases;        /* what PyTorch's tools and others call it, by spaces; NULL: nothing else */
    const char *help;           /* is broken into lines by the printer */
} option_row;

/* Not given: whole numbers and choices have UNSET; the caller sets that before. */
#define OPTION_UNSET (-1)

/* Reads argv[0 … argc) into the struct `into`. Words that are no options go to take_word, which returns 0 or
 * what usage_error returned. Returns 0, or EXIT_USAGE after saying what was expected. A name may have _ for -, and one - in front; the value of a letter
 * may follow it at once. */
int option_parse(const option_row *rows, int n_rows, int argc, char **argv, void *into,
                 int (*take_word)(void *into, const char *text));
/* The same up to the first word that is not an option, or behind "--": *n arguments were read. */
int option_parse_front(const option_row *rows, int n_rows, int argc, char **argv, void *into, int *n);

/* Whether the option's field differs in a struct that was read from one in which nothing is given. */
bool option_given(const option_row *row, const void *read, const void *standard);

/* The table as --help has it. */
void option_print(const option_row *rows, int n_rows, FILE *file);

#endif
