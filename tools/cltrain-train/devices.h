/*
 * --list-devices, and opening one to train on.
 */
#ifndef CLTRAIN_TRAIN_DEVICES_H
#define CLTRAIN_TRAIN_DEVICES_H

#include <stdbool.h>

#include <cltrain/cltrain.h>

/* Prints the devices on stdout; `json` (may be NULL): as a JSON object in that file, "-": on stdout. Returns 0; EXIT_FAILED after saying why
 * if there are none. */
int devices_print(const char *json);

/* Opens one, with a limit on how long a kernel may take, unless the environment has one: a kernel that never ends would hold the run, and all
 * other ranks, for ever. Returns 0, or EXIT_FAILED after saying why. */
int device_open(clt_device **device, const char *selector);

#endif
