/*
 * Trains, and saves a checkpoint after each step, until it is killed.
 *
 *     saver CHECKPOINT STEPS HIDDEN [wait]
 *
 * Goes on from CHECKPOINT where it is there. Tells "begun N" and "saved N", the step, as it goes, and ends when STEPS were made.
 * With `wait` it goes on behind a save when a line came from stdin.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "tests/files/model.h"

static int fail(const char *what) {
    fprintf(stderr, "%s: %s\n", what, clt_error_detail());
    return 1;
}

static void tell(const char *what, const clt_trainer *trainer) {
    printf("%s %lld\n", what, (long long)clt_trainer_steps(trainer));
    fflush(stdout);
}

static int run(model *m, const char *path, long steps, bool wait) {
    if (access(path, F_OK) == 0 && clt_checkpoint_load(m->trainer, m->loader, path) < 0) return fail("loading");
    tell("begun", m->trainer);
    while (clt_trainer_steps(m->trainer) < steps) {
        if (model_train(m, 1) < 0) return fail("training");
        if (clt_checkpoint_save(m->trainer, m->loader, path) < 0) return fail("saving");
        tell("saved", m->trainer);
        for (int c = 0; wait && c != '\n' && c != EOF;) c = getchar();
    }
    return 0;
}

int main(int argc, char **argv) {
    clt_device *device;
    clt_dataset *digits;
    model m;
    if (argc < 4) return fprintf(stderr, "usage: saver CHECKPOINT STEPS HIDDEN [wait]\n"), 2;
    if (clt_device_open(&device, NULL) < 0) return fail("opening a device");
    if (clt_dataset_digits(&digits) < 0) return fail("opening the digits");
    if (model_make(&m, device, digits, atoi(argv[3])) < 0) return fail("making a model");
    int code = run(&m, argv[1], strtol(argv[2], NULL, 10), argc > 4);
    model_destroy(&m);
    clt_dataset_destroy(digits);
    clt_device_close(device);
    return code;
}
