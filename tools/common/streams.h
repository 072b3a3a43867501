/*
 * stdin, stdout and stderr; and how many more there may be.
 */
#ifndef CLTRAIN_COMMON_STREAMS_H
#define CLTRAIN_COMMON_STREAMS_H

/* At the start of a program, before it opens anything: streams that it was started without become ones that nothing can be read
 * from, or written to, so that no file or pipe gets their numbers. */
void streams_keep(void);

/* As many open files as the system allows this program. Where these are too few for drivers, whose failures would be told as theirs: says
 * so and returns the exit code; 0 otherwise. */
int streams_allow_many(void);

#endif
