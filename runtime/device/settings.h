/*
 * The settings of a device: the one place of the device's side that reads CLTRAIN_… from the environment.
 */
#ifndef CLT_DEVICE_SETTINGS_H
#define CLT_DEVICE_SETTINGS_H

#include <cltrain/settings.h>

#include "runtime/base/base.h"

/* Every field as given, else from the environment, else the default: no text is NULL. What is resolved already stays as it is, and is
 * only copied. The texts lie in *texts, to be freed. NULL `given`: nothing is. CLT_E_INVALID names the field or variable
 * that makes no sense; names of backends and passes are checked where they are known, when a graph is compiled. */
clt_status clt_settings_resolve(const clt_settings *given, clt_settings *resolved, char **texts);

/* The selector of a device, where it is chosen without being opened. "": none. */
const char *clt_settings_selector(const char *given);

/* That of this process, for one that it starts. */
char **clt_settings_environment(void);

/* Whether the platform's driver keeps what it compiles on the disk by itself. */
bool clt_settings_driver_caches(const char *platform);

#endif
