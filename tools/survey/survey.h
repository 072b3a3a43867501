/*
 * What devices there are, each driver asked in a child process of its own.
 */
#ifndef CLTRAIN_SURVEY_SURVEY_H
#define CLTRAIN_SURVEY_SURVEY_H

#include <jansson.h>

#include <cltrain/cltrain.h>

#include "tools/survey/drivers.h"

typedef struct survey_driver {
    char status[16], reason[400]; /* "ok", or why it gave no devices */
    double seconds;
    int n_devices;
} survey_driver;

typedef struct survey_device {
    int driver, index; /* its place among the driver's */
    clt_device_info info;
    char status[16], reason[400];
    json_t *probed; /* {"capabilities", "facts"}; NULL: not asked for, or it did not come so far */
} survey_device;

typedef struct survey {
    char where[4096];
    driver *drivers;
    survey_driver *driver_rows;
    int n_drivers;
    survey_device *devices; /* in the order of the drivers */
    int n_devices;
} survey;

/* `probe`: each device is opened too, and its capabilities found; `seconds`: how long a driver may say nothing.
 * Returns 0 or EXIT_FAILED after a message; a driver that fails is a row. Stopped by a signal without `probe`: EXIT_SIGNAL and its
 * number, and nothing of s is left. */
int survey_run(survey *s, bool probe, double seconds);
void survey_free(survey *s);

/* The usable device that a selector names (NULL: the best). EXIT_FAILED after a message if there is none. */
int survey_choose(const survey *s, const char *selector, const survey_device **chosen);

/* In a child: opens the device through its driver alone. `settings`: NULL, or what the environment is not asked for. */
clt_status survey_open(const survey *s, const survey_device *which, const clt_settings *settings, clt_device **device);

/* The device as documents have it: its facts, driver, status and reason ("": none). */
json_t *survey_device_json(const survey *s, const survey_device *which, const char *status, const char *reason);

/* All drivers: [{"icd", "library", "status", "reason", "devices", "seconds"}, …] */
json_t *survey_drivers_json(const survey *s);

/* The status of a row for an error of the library. */
const char *survey_error_status(clt_status status, bool wrong);

/* A message if nothing is there; 0 if something is. */
int survey_require_devices(const survey *s);

#endif
