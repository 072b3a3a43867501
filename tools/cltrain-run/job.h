/*
 * A job on this host: what all its starts have in common, and what ranks are told.
 */
#ifndef CLTRAIN_RUN_JOB_H
#define CLTRAIN_RUN_JOB_H

#include <cltrain/comm.h>

#include "options.h"

enum { TOKEN_BYTES = 65, NAME_BYTES = 160, ADDRESS_BYTES = 300 };

typedef struct job {
    const run_options *options;
    double started;                 /* seconds since 1970 */
    char name[NAME_BYTES];          /* CLTRAIN_COMM_JOB of the first start */
    char made_token[TOKEN_BYTES];   /* "" if one was given */
    char self[17];                  /* no other launcher's */
    char *file_token;               /* read from CLTRAIN_COMM_TOKEN_FILE */
    char *token_path;               /* that file, where ranks can read it again; else NULL */
    const char *token;              /* NULL: none is needed */
    char url[ADDRESS_BYTES + 8];    /* the store's, as the ranks are told; "" if it is options->store */
    char master[ADDRESS_BYTES], port[8]; /* MASTER_ADDR and MASTER_PORT; "" if not known */
    clt_comm_options store_options;
    clt_store *store; /* NULL: nobody here needs it */

    /* Of the start under way: */
    int64_t restarts;
    int first_rank, world; /* the rank of local rank 0; all ranks */
} job;

/* Finds token, name and addresses, and opens the store, which host 0 serves. Returns 0 or an exit code. */
int job_begin(job *j, const run_options *options);
void job_end(job *j);

/* Connects anew to the store that another host serves. Returns 0 or an exit code. */
int job_reopen_store(job *j);

/* What the ranks of the start under way call the job. A restart meets in a place of its own: nothing that the former start left in the
 * store is taken for its own. */
void job_name_of_start(const job *j, char name[NAME_BYTES]);

/* The store's url as it is. */
const char *job_url(const job *j);
/* Whether the store is this process' own, and goes with it. */
bool job_serves_store(const job *j);

/* The environment of a rank: the own one with what the rank is told in place. To be freed by job_free_environment; NULL: no memory. */
char **job_environment(const job *j, int local_rank);
void job_free_environment(char **environment);

#endif
