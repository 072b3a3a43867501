/*
 * Pages of HTML that tools write: one file, with its style in it, no script but a known one, and nothing from elsewhere. All
 * text that is not the program's own goes through page_text, whatever drivers and files hold.
 */
#ifndef CLTRAIN_SURVEY_PAGE_H
#define CLTRAIN_SURVEY_PAGE_H

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

/* Escaped for elements and quoted attributes; what is not a printable UTF-8 becomes '?'. */
void page_text(FILE *page, const char *text);

/* So much of it as a name or a reason has; an ellipsis behind it where there is more. */
void page_short(FILE *page, const char *text);

/* As code, where "->" is not torn apart. */
void page_code(FILE *page, const char *text);

/* `title` is escaped. */
void page_begin(FILE *page, const char *title);
/* With a style besides the common one, and a script that the policy allows, by the hash of its bytes: "sha256-...". */
void page_begin_scripted(FILE *page, const char *title, const char *hash, const char *style, size_t style_bytes);
/* The page's data, as the element "data" has them, and the script. Returns 0, or EXIT_FAILED after saying why. */
int page_script(FILE *page, const json_t *data, const unsigned char *script, size_t bytes);
/* With the tool's name, version and commit, and when and where it ran, as `document` says ("tool", "host", "time_utc"). */
void page_end(FILE *page, const json_t *document);

/* A heading with what is below it, up to the next; `id` names it for links. */
void page_section(FILE *page, const char *id, const char *heading);
void page_section_end(FILE *page);

/* The word of a status, a verdict, or a change, beside a mark whose shape and colour say how good it is. */
void page_badge(FILE *page, const char *word);

/* ---- numbers ---- */

/* With so many decimals, in groups of three; far too large ones as 1.2e+30; no number at all: a dash. */
void page_number(FILE *page, double value, int decimals);
/* "16.0 GiB" */
void page_bytes(FILE *page, double bytes);
/* NAN where it is not a number. */
double page_json_number(const json_t *object, const char *key);

/* ---- tables: in a box of their own, which scrolls ---- */

typedef struct page_column {
    const char *head, *unit; /* escaped; unit may be NULL */
    bool number;             /* aligned right */
} page_column;

/* `caption` may be NULL. */
void page_table(FILE *page, const char *caption, const page_column *columns, int n);
void page_table_end(FILE *page);
void page_row(FILE *page);
void page_row_end(FILE *page);
void page_cell_text(FILE *page, const char *text);
void page_cell_number(FILE *page, double value, int decimals);
void page_cell_badge(FILE *page, const char *word);
/* The number of those in a row that counts. */
void page_cell_strong(FILE *page, double value, int decimals);
/* A status in small letters, and why, to be seen when it is pointed at. */
void page_cell_note(FILE *page, const char *word, const char *why);

/* ---- cards: what a thing is, in pairs ---- */

void page_card(FILE *page, const char *heading, const char *status);
void page_card_end(FILE *page);
/* A pair; nothing where `text` is empty. */
void page_fact(FILE *page, const char *name, const char *text);
void page_fact_number(FILE *page, const char *name, double value, const char *unit);
void page_fact_bytes(FILE *page, const char *name, double bytes);

/* A card of a device as documents have it ("name", "id", "driver", …); what is missing is left out. */
void page_device(FILE *page, const json_t *device);

#endif
