/*
 * What --help prints, in 80 columns.
 */
#ifndef CLTRAIN_TOOLS_HELP_H
#define CLTRAIN_TOOLS_HELP_H

#include <stdio.h>

#include <cltrain/export.h>

enum { HELP_COLUMN = 26 }; /* where the words of a row begin, at most */

/* Words, of which so many columns are printed already; further lines begin at `column`. Ends the line. */
void help_words(FILE *file, int column, int printed, const char *words);

/* A text: paragraphs, and rows that begin with two spaces: what it is, then, behind two or more, words, with lines far in that go on with them. */
void help_print(FILE *file, const char *format, ...) CLT_PRINTF(2, 3);

#endif
