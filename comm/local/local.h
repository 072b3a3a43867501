/* The engine of clt_comm_create_local, as tests see it. */
#ifndef CLT_COMM_LOCAL_LOCAL_H
#define CLT_COMM_LOCAL_LOCAL_H

#include <cltrain/comm.h>

enum { CLT_LOCAL_RANKS = 64 };

/* As if the rank had died: its operations fail, and those of the others, with CLT_E_PEER and a detail that names it. It can still be
 * destroyed. clt_comm_shrink gives the others a group without it. */
void clt_local_lose(clt_comm *comm);

/* The same, as soon as the rank begins another collective after so many. */
void clt_local_lose_after(clt_comm *comm, int collectives);

#endif
