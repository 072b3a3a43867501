/*
 * What a test tells the shim driver (shim_icd.c) that stands between the loader and a real driver, and what it asks
 * of it. The functions are found in the loaded driver by dlsym.
 */
#ifndef CLT_TESTS_FAULTS_SHIM_H
#define CLT_TESTS_FAULTS_SHIM_H

#include <stdbool.h>

typedef struct shim_control {
    /* From now on calls are counted, and number `nth` (from 1; 0: none) of those named `only` (NULL: of all) fails; with
     * `for_ever` all after it too. */
    void (*arm)(const char *only, long nth, bool for_ever);
    void (*disarm)(void);
    long (*calls)(void);        /* counted since arm */
    long (*hits)(void);         /* of them failed */
    const char *(*first)(void); /* name of the first of those; "" */
    /* Objects made and retained less those released, of all kinds; `text` says of which kinds. */
    long (*live)(char text[256]);
} shim_control;

/* The symbol's type and name. */
typedef const shim_control *(*shim_control_get)(void);
#define SHIM_CONTROL "shim_get_control"

#endif
