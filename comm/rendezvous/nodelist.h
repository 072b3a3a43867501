/* Slurm's compressed lists of nodes. */
#ifndef CLT_COMM_NODELIST_H
#define CLT_COMM_NODELIST_H

#include "runtime/base/base.h"

/* The first node of "n[01-04,7],m3": "n01". Brackets may follow each other, "r[1-2]n[0-3]". CLT_E_INVALID: malformed, or longer than `capacity`. */
clt_status clt_nodelist_first(const char *list, char *node, size_t capacity);

#endif
