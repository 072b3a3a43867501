/*
 * stdin, stdout and stderr.
 */
#ifndef CLTRAIN_COMMON_STREAMS_H
#define CLTRAIN_COMMON_STREAMS_H

/* At the start of a program, before it opens anything: streams that it was started without become ones that nothing can be read
 * from, or written to, so that no file or pipe gets their numbers. */
void streams_keep(void);

#endif
