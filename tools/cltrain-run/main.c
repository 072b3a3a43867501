/*
 * cltrain-run: starts the ranks of a job on this host, and ends them.
 */
#include <stdio.h>
#include <string.h>

#include <errno.h>

#include "guard.h"
#include "output.h"
#include "supervise.h"
#include "tools/common/message.h"
#include "tools/common/streams.h"

const char program_name[] = PROGRAM;

/* Starts until one ends well, or may not be repeated. */
static int run_starts(job *j) {
    for (;;) {
        int code = agree_begin(j);
        if (code) return code;
        end_of_start end = supervise(j);
        if (end.kind == END_FAILED && j->restarts < j->options->max_restarts) j->restarts++;
        else if (end.kind != END_LOST || !agree_return(j)) {
            agree_part(j, &end);
            return end.status;
        }
        message_line(PROGRAM ": restart %lld of %lld", (long long)j->restarts, (long long)j->options->max_restarts);
    }
}

static int run(const run_options *options) {
    message_start(options->quiet ? -1 : 0);
    if (!guard_start()) return run_error("a process could not be started: %s", strerror(errno));
    int code = supervise_prepare();
    if (!code) code = outputs_begin();
    if (code) return code;
    job j;
    code = job_begin(&j, options);
    if (!code) code = run_starts(&j);
    job_end(&j);
    return outputs_end() || code ? code : EXIT_FAILED;
}

int main(int argc, char **argv) {
    streams_keep();
    run_options options;
    int code = options_read(&options, argc - 1, argv + 1);
    if (code) return code;
    if (options.help) options_print_help();
    else if (options.version) printf(PROGRAM " %s\n", clt_version());
    else return run(&options);
    return fflush(stdout) ? run_error("stdout cannot be written") : 0;
}
