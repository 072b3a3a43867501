/*
 * What tests of cltrain-probe itself may have it do, so that what a report makes of it can be looked at: rows that end their
 * process, or take long, at a place that no driver can be told of. All in one variable of the environment,
 * CLTRAIN_PROBE_TEST, which nothing else reads,
 * with `;` between several:
 *     only TEXT|TEXT  a bench has the rows alone whose name has one of these in it
 *     crash TEXT      the process that measures a row whose name has TEXT in it aborts
 *     hang TEXT       … never goes on
 *     slow=F TEXT     … says that it took F times as long
 *     samples=N       rows of a bench have no more than N samples in a pass
 *     apart           two drivers' devices are never taken for the same processor
 */
#ifndef CLTRAIN_PROBE_HOOKS_H
#define CLTRAIN_PROBE_HOOKS_H

#include <stdbool.h>

#include <jansson.h>

#include <cltrain/experimental/measure.h>

/* Whether there is any of them: what is measured is not to be believed. */
bool hook_any(void);
/* only: whether a bench has the row of that name. */
bool hook_has_row(const char *name);
/* crash, hang: of the row of that name. */
void hook_row(const char *name);
/* samples */
void hook_measure(clt_measure_options *options);
/* slow: the row's samples, an array of numbers, or NULL. */
void hook_samples(const char *name, json_t *us);
/* apart */
bool hook_apart(void);

#endif
