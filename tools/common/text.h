/*
 * Text of others (drivers, files) as it may be shown: on a terminal, in JSON, on a page.
 */
#ifndef CLTRAIN_TOOLS_TEXT_H
#define CLTRAIN_TOOLS_TEXT_H

#include <stdbool.h>
#include <stddef.h>

/* Bytes of the UTF-8 letter at `text`; 0 if there is none, or one that may not be shown: control characters, and those that
 * change the direction or end the line of what is beside them. */
size_t text_letter_bytes(const char *text);

/* In place: each byte of what may not be shown becomes '?', but for ends of lines and tabs, which become spaces; those of `spaces`
 * ("\n\t") stay. */
void text_clean(char *text, const char *spaces);

/* "X.npy" has ".npy". */
bool text_has_suffix(const char *text, const char *suffix);

#endif
