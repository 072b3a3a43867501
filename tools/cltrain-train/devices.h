/*
 * --list-devices.
 */
#ifndef CLTRAIN_TRAIN_DEVICES_H
#define CLTRAIN_TRAIN_DEVICES_H

#include <stdbool.h>

/* Prints the devices on stdout, as a JSON object if `json`. Returns 0; EXIT_FAILED after saying why
 * if there are none. */
int devices_print(bool json);

#endif
