/* --help, from the tables. */
#include <string.h>

#include "message.h"
#include "option_table.h"
#include "options.h"
#include "recipe.h"

#define HELP_COLUMN 26

/* "  -d, --data SPEC         first line", further lines below it. */
static void print_row(FILE *file, const option_row *row) {
    char left[64], letter[8] = "    ";
    if (row->letter) snprintf(letter, sizeof letter, "-%c, ", row->letter);
    snprintf(left, sizeof left, "  %s--%s%s%s%s", letter, row->name, row->argument ? row->kind == OPTION_OPTIONAL ? "[=" : " " : "",
             row->argument ? row->argument : "", row->kind == OPTION_OPTIONAL ? "]" : "");
    fprintf(file, "%-*s", HELP_COLUMN, left);
    for (const char *line = row->help; line;) {
        const char *end = strchr(line, '\n');
        int length = end ? (int)(end - line) : (int)strlen(line);
        fprintf(file, "%*s%.*s\n", line == row->help ? 0 : HELP_COLUMN, "", length, line);
        line = end ? end + 1 : NULL;
    }
}

void options_print_help(FILE *file) {
    fprintf(file,
            "Usage: " PROGRAM " MODEL --data SPEC [options]\n"
            "\n"
            "Trains a neural network on an OpenCL device, and tests it on data held out.\n"
            "\n"
            "  " PROGRAM " convnet --data digits --epochs 30\n"
            "  " PROGRAM " logistic --data csv:table.csv,label=class --json\n"
            "  " PROGRAM " resnet18 --data cifar10:DIR --save model.safetensors\n"
            "\n"
            "MODEL:\n"
            "  linear       regression: one linear layer\n"
            "  logistic     classification: one linear layer\n"
            "  mlp[:H1,...] linear layers with ReLU between; default 128 hidden\n"
            "  convnet      two 3x3 convolutions, each with ReLU and pooling; 128 hidden\n"
            "  resnet18     He et al. 2015, in the form for 32x32 images\n"
            "\n"
            "SPEC:\n%s", data_spec_help);
    for (int i = 0; i < option_row_count; i++) {
        if (option_rows[i].kind == OPTION_HEADING) fprintf(file, "\n%s\n", option_rows[i].help);
        else print_row(file, &option_rows[i]);
    }
    fprintf(file, "\n");
    recipe_print(file);
    fprintf(file,
            "\nExit status: 0 done; 1 the run failed; 2 the command line makes no sense;\n"
            "130 Ctrl-C, 143 SIGTERM: the step was finished, and saved if --save is given.\n");
}
