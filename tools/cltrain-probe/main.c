/*
 * cltrain-probe: looks into a device, and tunes it; measures the network between ranks.
 */
#include <stdio.h>
#include <string.h>

#include "command.h"
#include "tools/common/message.h"

const char program_name[] = PROGRAM;

static const command commands[] = {
    {"tune", "finds the fastest rows and parameters for a model, and keeps them", run_tune},
    {"backends", "what serves each op on a device, and why", run_backends},
    {"comm", "how fast ranks reduce over the network, beside plain TCP", run_comm},
};

static void print_help(void) {
    printf("Usage: " PROGRAM " COMMAND [options]\n\nCommands:\n");
    for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++)
        printf("  %-12s%s\n", commands[i].name, commands[i].summary);
    printf("\n'" PROGRAM " COMMAND --help' has the options of each.\n"
           "\nExit status: 0 done; 1 it failed; 2 the command line makes no sense.\n");
}

static int run_option(const char *text) {
    if (strcmp(text, "--help") == 0 || strcmp(text, "-h") == 0) print_help();
    else if (strcmp(text, "--version") == 0 || strcmp(text, "-V") == 0) printf(PROGRAM " %s\n", clt_version());
    else return usage_error("unknown option '%s' before a command", text);
    return fflush(stdout) ? run_error("stdout cannot be written") : 0;
}

int main(int argc, char **argv) {
    if (argc < 2) return usage_error("no command given: expected tune, backends or comm");
    if (argv[1][0] == '-') return run_option(argv[1]);
    for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++)
        if (strcmp(commands[i].name, argv[1]) == 0) return commands[i].run(argc - 2, argv + 2);
    return usage_error("unknown command '%s': expected tune, backends or comm", argv[1]);
}
