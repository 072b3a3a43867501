/*
 * A group of communicators between threads of one process: the library's own queue over shared memory in the network's
 * place. All operations and data types; results in the order of ranks.
 */
#ifndef CLT_TESTS_COMM_THREADS_H
#define CLT_TESTS_COMM_THREADS_H

#include <cltrain/comm.h>

/* comms[0 … n-1], to be used by a thread each and destroyed one by one. Timeout 0: 300 s. */
clt_status clt_test_group(clt_comm **comms, int n, double timeout_seconds);

/* As if the rank had died: its operations fail, and those of the others, with CLT_E_PEER and a detail that names it. It can still be
 * destroyed. clt_comm_shrink gives the others a group without it. */
void clt_test_group_lose(clt_comm *comm);

/* The same, as soon as the rank begins another collective after so many. */
void clt_test_group_lose_after(clt_comm *comm, int collectives);

#endif
