/* --help, from the tables. */
#include "option_table.h"
#include "options.h"
#include "recipe.h"
#include "tools/common/help.h"

void options_print_help(FILE *file) {
    fprintf(file,
            "Usage: " PROGRAM " MODEL --data SPEC [options]\n"
            "\n"
            "Trains a neural network on an OpenCL device, and tests it on data held out.\n"
            "\n"
            "  " PROGRAM " convnet --data digits --epochs 30\n"
            "  " PROGRAM " logistic --data csv:table.csv,label=class --json\n"
            "  " PROGRAM " resnet18 --data cifar10:DIR --save model.safetensors\n"
            "  " PROGRAM " gpt2:nano --data text:FILE,context=256 --export FOLDER\n"
            "\n"
            "MODEL:\n");
    model_print(file);
    help_print(file, "\nSPEC:\n"), help_print(file, "%s", data_spec_help);
    option_print(option_rows, option_row_count, file);
    fprintf(file, "\n");
    recipe_print(file);
    help_print(file,
               "\nExit status: 0 done; 1 the run failed; 2 usage error;\n"
               "129 SIGHUP, 130 Ctrl-C, 143 SIGTERM: the step was finished, and saved if --save is given.\n");
}
