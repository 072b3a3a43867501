/* Where the library's own files are: plugins, and a program that it starts. */
#ifndef CLT_BASE_INSTALL_H
#define CLT_BASE_INSTALL_H

#include "runtime/base/base.h"

/* Where the i-th place has a file of that name: beside the library, in `cltrain` there, and where it was to be installed (programs that link it statically
 * have nothing beside them). False: there are no more places. */
bool clt_install_path(int i, const char *name, char *path, size_t bytes);

#endif
