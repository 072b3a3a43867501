/*
 * Shared libraries that are loaded at run time, since they bring others that few need: libcltrain-mpi.so and libcltrain-gloo.so, beside the library or where
 * the loader finds them. What a plugin is made of is in this folder, too; what it exports is told by comm/mover/mover.h and gloo.h.
 */
#ifndef CLT_COMM_PLUGINS_PLUGINS_H
#define CLT_COMM_PLUGINS_PLUGINS_H

#include "comm/mover/mover.h"
#include "comm/plugins/gloo.h"

/* Each stays loaded. CLT_E_UNSUPPORTED names what is missing. */
clt_status clt_plugin_mover(const clt_mover **mover, const char *name); /* "mpi", "gloo" */
clt_status clt_plugin_gloo(const clt_gloo_functions **functions);

#endif
