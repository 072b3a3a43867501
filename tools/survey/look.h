/*
 * Drivers that crash or hang, beside good ones, of tools that open devices in their own process.
 */
#ifndef CLTRAIN_SURVEY_LOOK_H
#define CLTRAIN_SURVEY_LOOK_H

#include <cltrain/device.h>

/* Looks for devices, before anything else is done with OpenCL. Where a driver crashes, ends the process or says nothing for some
 * seconds, the program begins anew with CLTRAIN_DRIVERS=ask: each driver is asked in a child process, and those that fail there are
 * left out, with a warning. Returns 0, or EXIT_FAILED after a message: no driver is left that has a device. */
int look_for_devices(char **argv);

/* clt_device_open, of one thread at a time. A driver that ends the process meanwhile, crashes then or later, or says nothing for 20 s, does not do so in
 * silence. */
clt_status look_open(clt_device **device, const char *selector);

#endif
