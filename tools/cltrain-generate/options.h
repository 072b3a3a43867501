/*
 * The command line.
 */
#ifndef CLTRAIN_GENERATE_OPTIONS_H
#define CLTRAIN_GENERATE_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#define PROGRAM "cltrain-generate"

typedef struct options {
    const char *model; /* a folder, or a file */
    const char *prompt, *prompt_ids, *tokenizer, *lora, *device;
    int64_t tokens, top_k, seed;
    double temperature, top_p;
    const char *json; /* a path, "-": stdout; NULL: text */
    bool quiet, help, version;
    int verbose;
} options;

/* Returns 0, or EXIT_USAGE after saying what was expected. */
int options_parse(options *into, int argc, char **argv);
void options_print_help(FILE *file);

#endif
