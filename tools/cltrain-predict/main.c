/*
 * cltrain-predict: what a trained model says of new data, or how well it does on labelled ones. The rest of it is cltrain-train's, which does the same
 * with --predict and --test.
 */
#include <stddef.h>
#include <stdio.h>

#include <cltrain/cltrain.h>

#include "tools/cltrain-train/options.h"
#include "tools/cltrain-train/option_table.h"
#include "tools/cltrain-train/predict.h"
#include "tools/common/help.h"
#include "tools/common/message.h"
#include "tools/common/option_parser.h"
#include "tools/common/streams.h"
#include "tools/survey/look.h"

const char program_name[] = "cltrain-predict";

typedef struct predict_options {
    options all;
    const char *data;
    bool test;
} predict_options;

#define AT(field) offsetof(predict_options, field)

static const option_row rows[] = {
    {OPTION_HEADING, .help = "Model and data:"},
    {OPTION_TEXT, 'w', "weights", "FILE", AT(all.from), .aliases = "from checkpoint",
     .help = "a file that cltrain-train --save or --export has written;\nrequired"},
    {OPTION_TEXT, 'm', "model", "MODEL", AT(all.model), .help = "the same as the word MODEL"},
    {OPTION_TEXT, 'd', "data", "SPEC", AT(data),
     .help = "X.csv: its lines, with the class and the probabilities, or the\n"
             "number, after each; X.npy: an array of these; folder:DIR: a line\n"
             "for each image in it; csv: and npy: as of cltrain-train; required"},
    {OPTION_FLAG, 't', "test", NULL, AT(test), .aliases = "evaluate",
     .help = "the data are labelled: loss, accuracy, F1 and others, in the\nplace of predictions"},
    {OPTION_CHOICE, 0, "broken-samples", "NAME", AT(all.broken_samples), .choices = broken_names,
     .help = "images that cannot be read: stop, or skip: they are left out and\ncounted, NaN in an array (default stop)"},
    {OPTION_HEADING, .help = "Device and output:"},
    {OPTION_TEXT, 0, "device", "NAME", AT(all.device), .help = "as cltrain-train has it (default: $CLTRAIN_DEVICE, else the best)"},
    {OPTION_TEXT, 'o', "output", "FILE", AT(all.output), .help = "FILE.csv: a table; FILE.npy: an array (default: stdout)"},
    {OPTION_OPTIONAL, 0, "json", "FILE", AT(all.json), .standard = "-", .help = "with --test: one JSON object, on stdout or in FILE"},
    {OPTION_FLAG, 'q', "quiet", NULL, AT(all.quiet), .help = "no messages on stderr"},
    {OPTION_COUNTER, 'v', "verbose", NULL, AT(all.verbose), .help = "what the library does, on stderr; twice: all of it"},
    {OPTION_FLAG, 'h', "help", NULL, AT(all.help), .help = "this text"},
    {OPTION_FLAG, 'V', "version", NULL, AT(all.version), .help = "the version"},
};
enum { ROWS = sizeof rows / sizeof rows[0] };

static int take_model(void *into, const char *text) {
    predict_options *o = into;
    if (o->all.model) return usage_error("one MODEL expected, but there are '%s' and '%s'", o->all.model, text);
    o->all.model = text;
    return 0;
}

static int check(predict_options *o) {
    if (!o->all.from) return usage_error("no --weights FILE given, such as one that cltrain-train --save has written");
    if (!o->data) return usage_error("no --data SPEC given, such as --data new.csv");
    *(o->test ? &o->all.test : &o->all.predict) = o->data;
    return options_check_use(&o->all);
}

static int print_help(void) {
    help_print(stdout, "Usage: cltrain-predict [MODEL] --weights FILE --data SPEC [options]\n"
                       "\n"
                       "Predicts by a trained model. The file tells which one it is of, and how its data were prepared; MODEL, if it\n"
                       "is given, has to be that one.\n");
    option_print(rows, ROWS, stdout);
    help_print(stdout, "\nExit status: 0 done; 1 it failed; 2 usage error.\n");
    return fflush(stdout) ? run_error("stdout cannot be written") : 0;
}

int main(int argc, char **argv) {
    streams_keep();
    predict_options o = {.all = options_standard()};
    o.all.from_name = "--weights";
    o.all.data_name = "--data";
    int code = option_parse(rows, ROWS, argc - 1, argv + 1, &o, take_model);
    if (code) return code;
    if (o.all.help) return print_help();
    if (o.all.version) return printf("cltrain-predict %s\n", clt_version()), fflush(stdout) ? run_error("stdout cannot be written") : 0;
    code = check(&o);
    if (code) return code;
    message_start(o.all.quiet ? -1 : o.all.verbose);
    code = look_for_devices(argv);
    return code ? code : predict_run(&o.all);
}
