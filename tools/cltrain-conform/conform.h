/*
 * A run of the suite: devices, the rows of each, and what became of every case. In the parent; nothing of OpenCL is called here.
 */
#ifndef CONFORM_CONFORM_H
#define CONFORM_CONFORM_H

#include "tools/cltrain-conform/suite.h"
#include "tools/survey/survey.h"

typedef struct conform_options {
    const char *device, *ops, *dtype, *one, *onnx, *json, *junit, *html;
    bool all, quick, full, list, help, version;
    double timeout;
    int64_t jobs, sample, sample_reference;
    int verbose;
} conform_options;

enum { MOST_ROWS = 12 };

/* With what the library has to serve the cases. */
typedef struct row_choice {
    char name[32];
    char backends[64]; /* "": as the environment says */
    const char *passes, *class_, *precision; /* NULL: as the environment says */
    bool backend;      /* it is one that has to serve some of a case */
} row_choice;

typedef struct device_column {
    const survey_device *device;
    char who[32];                  /* in names of files */
    char status[16], reason[400];  /* "ok", or why the device gave no results */
    json_t *table;                 /* [{"op", "backend", "missing"}, …] */
    row_choice rows[MOST_ROWS];
    int n_rows;
    json_t *left_out;              /* [{"row", "reason"}, …] */
    json_t **results;              /* by case and row; NULL: not run */
    double seconds;
} device_column;

typedef struct conform {
    const conform_options *options;
    survey survey;
    case_list cases;
    bool *selected; /* by case */
    int *ordinal;   /* by case: among the selected ones of its op */
    int n_selected;
    const char *only_row; /* of --case ID@ROW */
    device_column *columns;
    int n_columns;
    bool small;           /* CLTRAIN_CONFORM_SMALL: what is too much for a simulator is skipped */
    char folder[64];
    json_t *coverage; /* by device: [{"op", "status", "reason"}, …] */
    double started;
    bool complete; /* nobody told it to stop */
} conform;

enum { N_STATUS = 5 };
extern const char *const status_names[N_STATUS]; /* passed, skipped, failed, crashed, timeout */

json_t **result_at(const conform *c, const device_column *column, int which, int row);
int status_of(const json_t *result); /* index in status_names */

/* run.c: asks the devices for their rows, runs what is selected. Returns 0 or an exit code; 0 and c->complete unset when told
 * to stop. */
int conform_run(conform *c);
/* rows.c: adds the rows of a device whose table is known. */
void rows_make(device_column *column, bool full);
bool row_runs(const conform *c, const test_case *one, const row_choice *r);
/* 0 if a case is run in the row that was asked for by name, or none was; else an exit code after a message. */
int rows_require(const conform *c);
/* check.c: what is seen only when all is there: losses of devices beside one another, ops without a case. */
void conform_compare(conform *c);
void conform_cover(conform *c);
/* The line that runs this case alone. */
enum { RERUN_LINE = 4096 };
void rerun_line(const conform *c, const device_column *column, const test_case *one, const row_choice *row, char line[RERUN_LINE]);

/* report.c: cases, and apart from them the library's ops, of each whether a case launched it. */
void report_count(const conform *c, const device_column *column, int counts[N_STATUS]);
void report_count_coverage(const conform *c, const device_column *column, int counts[N_STATUS]);
/* [{"op", "status", "reason"}, …]; NULL if it was not looked at. */
json_t *report_coverage(const conform *c, const device_column *column);
/* A driver or device that failed, not one that lacks something. */
bool report_is_bad(const char *status);
int report_text(const conform *c);
json_t *report_document(const conform *c); /* as docs/cltrain-conform.schema.json has it */
/* junit.c */
int report_junit(const conform *c, FILE *file);
/* page.c */
int report_html(const json_t *document, FILE *page);

#endif
