/*
 * cltrain-probe: which devices there are, how fast they are, whether they can be believed; tunes them; measures the
 * network between ranks.
 */
#include <stdio.h>
#include <string.h>

#include "command.h"
#include "hooks.h"
#include "tools/common/help.h"
#include "tools/common/message.h"
#include "tools/common/streams.h"

const char program_name[] = PROGRAM;

static const command commands[] = { /* the first one is done without a name, too */
    {"list", "drivers and devices, what they can do, and why not; also without a command", run_list},
    {"bench", "measures a device: its limits, and training ops at the shapes of models", run_bench},
    {"compare", "what became faster or slower between two benches", run_compare},
    {"report", "a page of HTML of what other commands wrote", run_report},
    {"verify", "whether a device's memory and arithmetic hold", run_verify},
    {"model", "predicts a model's training step on a device: its time, its memory, the largest batch", run_model},
    {"recommend", "which device for a model, and how to share a batch among several", run_recommend},
    {"shapes", "writes the shapes of a model for bench", run_shapes},
    {"tune", "finds the fastest rows and parameters for a model, and keeps them", run_tune},
    {"backends", "what serves each op on a device, and why", run_backends},
    {"simulate", "a step of a pipeline, by given times", run_simulate},
    {"comm", "how fast ranks reduce over the network, beside plain TCP", run_comm},
};

enum { COMMANDS = sizeof commands / sizeof commands[0] };

static void print_help(void) {
    help_print(stdout, "Usage: " PROGRAM " [COMMAND] [options]\n\nCommands:\n");
    for (size_t i = 0; i < COMMANDS; i++)
        help_print(stdout, "  %-12s%s\n", commands[i].name, commands[i].summary);
    printf("\n'" PROGRAM " COMMAND --help' has the options of each.\n"
           "\nExit status: 0 done; 1 it failed; 2 usage error.\n");
}

static bool is_either(const char *text, const char *a, const char *b) {
    return strcmp(text, a) == 0 || strcmp(text, b) == 0;
}

static int run_command(const command *c, int argc, char **argv) {
    message_command(c->name);
    return c->run(argc, argv);
}

/* Without a command: options of list, or of the program. */
static int run_without_command(int argc, char **argv) {
    if (argc > 1 && is_either(argv[1], "--help", "-h")) print_help();
    else if (argc > 1 && is_either(argv[1], "--version", "-V")) printf(PROGRAM " %s\n", clt_version());
    else return run_command(&commands[0], argc - 1, argv + 1);
    return fflush(stdout) ? run_error("stdout cannot be written") : 0;
}

int main(int argc, char **argv) {
    streams_keep();
    int code = streams_allow_many();
    if (code) return code;
    if (hook_any()) warning("CLTRAIN_PROBE_TEST is set, for tests of this program: what is measured is not to be believed");
    if (argc < 2 || argv[1][0] == '-') return run_without_command(argc, argv);
    for (size_t i = 0; i < COMMANDS; i++)
        if (strcmp(commands[i].name, argv[1]) == 0) return run_command(&commands[i], argc - 2, argv + 2);
    char names[512] = "";
    for (size_t i = 0; i < COMMANDS; i++) {
        size_t used = strlen(names);
        snprintf(names + used, sizeof names - used, "%s%s", i == 0 ? "" : i + 1 < COMMANDS ? ", " : " or ", commands[i].name);
    }
    return usage_error("unknown command '%s': expected %s", argv[1], names);
}
