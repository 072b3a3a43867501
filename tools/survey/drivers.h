/*
 * The OpenCL drivers (ICDs) of this machine, one by one, so that each can be loaded alone.
 */
#ifndef CLTRAIN_SURVEY_DRIVERS_H
#define CLTRAIN_SURVEY_DRIVERS_H

#include <stdbool.h>

typedef struct driver {
    char name[256];     /* "pocl.icd" */
    char library[512];  /* what the file names; "" if it is not known */
    char problem[160];  /* why the loader is not to be asked for it; "": it may */
    char vendors[4352]; /* what OCL_ICD_VENDORS has to be for it alone; "": the environment stays as it is */
} driver;

/* The drivers that the loader would load, in the order of their files' names: those of the folder OCL_ICD_VENDORS (or
 * OPENCL_VENDOR_PATH) names, or the one of that file; else /etc/OpenCL/vendors. Where there is no such folder at all, one without
 * a name: the loader as it is. Returns their number in a new array (free), -1 after a message. *where: the folder. */
int drivers_find(driver **drivers, char where[4096]);

/* In a child: from now on the loader sees this one alone. */
void driver_isolate(const driver *driver);

/* What of the environment keeps this driver's devices away, where none is there, or nothing can be built. False: nothing that is
 * known of. */
bool driver_hint(const driver *driver, char hint[256]);
/* The same of what nobody wants so, such as a cache that cannot be written. */
bool driver_fault(const driver *driver, char hint[256]);

#endif
