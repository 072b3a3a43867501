/*
 * The library's allocator and jansson's, counted, with single requests that fail; but for those of jansson's parser, which
 * are neither counted nor fail.
 */
#ifndef CLT_TESTS_FAULTS_ALLOCATIONS_H
#define CLT_TESTS_FAULTS_ALLOCATIONS_H

#include <stdbool.h>

void allocations_install(void);
/* From now on requests are counted, and number `nth` (from 1; 0: none) fails; with `for_ever` all after it too. */
void allocations_arm(long nth, bool for_ever);
void allocations_disarm(void);
long allocations_calls(void);
long allocations_hits(void);
/* Blocks that are held. */
long allocations_live(void);

#endif
