/*
 * cltrain-train: trains a model on a data set, tests it, reports, saves and resumes.
 */
#include <stdio.h>

#include <cltrain/cltrain.h>

#include "devices.h"
#include "job.h"
#include "options.h"
#include "predict.h"
#include "system.h"
#include "tools/common/message.h"
#include "tools/common/streams.h"
#include "tools/survey/look.h"

const char program_name[] = PROGRAM;

static int do_as_given(options *given, char **argv) {
    message_start(given->quiet ? -1 : given->verbose);
    int code = given->help || given->version ? 0 : look_for_devices(argv);
    if (code) return code;
    if (given->list_devices) return devices_print(given->json);
    if (!given->help && !given->version) return given->predict || given->test ? predict_run(given) : job_run(given);
    if (given->help) options_print_help(stdout);
    else printf(PROGRAM " %s\n", clt_version());
    return fflush(stdout) ? run_error("stdout cannot be written") : 0;
}

int main(int argc, char **argv) {
    streams_keep();
    signals_look();
    options given;
    int code = options_parse(&given, argc, argv);
    if (!code) code = do_as_given(&given, argv);
    options_free(&given);
    return code;
}
