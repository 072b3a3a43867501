#include "options.h"

#include <stddef.h>

#include "tools/common/help.h"
#include "tools/common/message.h"
#include "tools/common/option_parser.h"

#define AT(field) offsetof(options, field)

static const option_row rows[] = {
    {OPTION_HEADING, .help = "Text:"},
    {OPTION_TEXT, 'p', "prompt", "TEXT", AT(prompt), .help = "what the text begins with"},
    {OPTION_TEXT, 0, "prompt-ids", "N,N,...", AT(prompt_ids), .help = "the same as tokens: no tokenizer is needed"},
    {OPTION_TEXT, 0, "tokenizer", "NAME", AT(tokenizer),
     .help = "bytes, chars:FILE (the text that the model was trained on), or a\n"
             "tokenizer.json (default: that of the folder, or of the file)"},
    {OPTION_TEXT, 0, "lora", "FOLDER", AT(lora), .help = "adapters for the model, of PEFT or of cltrain-train --export-lora"},
    {OPTION_WHOLE, 'n', "tokens", "N", AT(tokens), .low = 1, .aliases = "max-new-tokens", .help = "how many are made, at most (default 64)"},

    {OPTION_HEADING, .help = "Choice of tokens:"},
    {OPTION_NOT_NEGATIVE, 't', "temperature", "X", AT(temperature),
     .help = "below 1 the likely tokens become likelier; 0 takes the likeliest\n"
             "(default 1)"},
    {OPTION_WHOLE, 0, "top-k", "N", AT(top_k), .low = 1, .help = "only of the N likeliest"},
    {OPTION_FRACTION, 0, "top-p", "X", AT(top_p), .help = "only of the likeliest that have this probability together"},
    {OPTION_SEED, 's', "seed", "N", AT(seed), .help = "the same seed gives the same text (default 0)"},

    {OPTION_HEADING, .help = "Device and output:"},
    {OPTION_TEXT, 0, "device", "NAME", AT(device), .help = "as cltrain-train has it (default: $CLTRAIN_DEVICE, else the best)"},
    {OPTION_OPTIONAL, 0, "json", "FILE", AT(json), .standard = "-", .help = "one JSON object at the end, on stdout or in FILE: the new tokens and their text"},
    {OPTION_FLAG, 'q', "quiet", NULL, AT(quiet), .help = "no messages on stderr"},
    {OPTION_COUNTER, 'v', "verbose", NULL, AT(verbose), .help = "what the library does, on stderr; twice: all of it"},
    {OPTION_FLAG, 'h', "help", NULL, AT(help), .help = "this text"},
    {OPTION_FLAG, 'V', "version", NULL, AT(version), .help = "the version"},
};
enum { ROWS = sizeof rows / sizeof *rows };

static int take_model(void *given, const char *text) {
    options *into = given;
    if (into->model) return usage_error("one FOLDER or FILE expected, but there are '%s' and '%s'", into->model, text);
    into->model = text;
    return 0;
}

static int check(const options *o) {
    if (!o->model) return usage_error("no model given: expected FOLDER (of save_pretrained), or FILE (of cltrain-train --export)");
    if (!o->prompt == !o->prompt_ids) return usage_error("expected --prompt TEXT or --prompt-ids N,N,...");
    return 0;
}

int options_parse(options *into, int argc, char **argv) {
    *into = (options){.tokens = 64, .temperature = 1};
    int code = option_parse(rows, ROWS, argc - 1, argv + 1, into, take_model);
    return code || into->help || into->version ? code : check(into);
}

void options_print_help(FILE *file) {
    help_print(file,
               "Usage: " PROGRAM " FOLDER|FILE --prompt TEXT [options]\n"
               "\n"
               "Goes on with a text by a language model (GPT-2, Llama, LSTM) on an OpenCL device.\n"
               "FOLDER is what save_pretrained of transformers wrote: config.json, model.safetensors\n"
               "and tokenizer.json. FILE is what cltrain-train --export or --save wrote.\n"
               "\n"
               "  " PROGRAM " ./gpt2 --prompt 'Once upon a time' --top-p 0.9\n"
               "  " PROGRAM " shakespeare.safetensors --prompt ROMEO:\n");
    option_print(rows, ROWS, file);
    fprintf(file, "\nExit status: 0 done; 1 the run failed; 2 usage error.\n");
}
