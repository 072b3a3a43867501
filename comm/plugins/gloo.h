/*
 * Gloo's algorithms over a transport that is not Gloo's: the C face of gloo_collectives.cc, which is in Gloo's plugin.
 *
 * Gloo's new-style algorithms move data by gloo::transport::UnboundBuffer alone. The shim is such a buffer, whose work is done by the calls
 * below. No exception leaves it; one thread at a time.
 */
#ifndef CLT_COMM_PLUGINS_GLOO_H
#define CLT_COMM_PLUGINS_GLOO_H

#include <stddef.h>
#include <stdint.h>

#include <cltrain/status.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct clt_gloo clt_gloo;

/* What the shim asks of the transport, for the operation under way. */
typedef struct clt_gloo_calls {
    void *context;
    /* Begin a message; NULL: it failed. Messages between two ranks with one slot are taken in order. */
    void *(*send)(void *context, int to, uint64_t slot, const void *data, size_t bytes);
    void *(*receive)(void *context, int from, uint64_t slot, void *data, size_t bytes);
    /* Until the message is done, or the deadline. It is gone afterwards. */
    clt_status (*wait)(void *context, void *message);
    /* Gives up a message that is not done. */
    void (*forget)(void *context, void *message);
    /* into = a op b, of so many elements; into may be a. */
    void (*reduce)(void *context, void *into, const void *a, const void *b, size_t count);
} clt_gloo_calls;

typedef enum clt_gloo_algorithm { CLT_GLOO_RING, CLT_GLOO_BCUBE } clt_gloo_algorithm;
enum { CLT_GLOO_WORDS = 512 };

/* Elements of 1, 2 or 4 bytes. On an error `failed` of a call says what; CLT_E_SYSTEM: Gloo's own words are in `words`. */
typedef struct clt_gloo_functions {
    int abi; /* CLT_GLOO_ABI */
    /* NULL if there is no memory. `calls` lives as long. */
    clt_gloo *(*create)(int rank, int size, const clt_gloo_calls *calls);
    void (*destroy)(clt_gloo *gloo);
    clt_status (*all_reduce)(clt_gloo *gloo, void *data, size_t count, size_t element_bytes, clt_gloo_algorithm algorithm, char words[CLT_GLOO_WORDS]);
    clt_status (*all_gather)(clt_gloo *gloo, void *data, const size_t *counts, size_t element_bytes, char words[CLT_GLOO_WORDS]);
    clt_status (*broadcast)(clt_gloo *gloo, void *data, size_t bytes, int root, char words[CLT_GLOO_WORDS]);
    clt_status (*barrier)(clt_gloo *gloo, char words[CLT_GLOO_WORDS]);
} clt_gloo_functions;

enum { CLT_GLOO_ABI = 1 };
/* What the plugin exports. */
#define CLT_GLOO_SYMBOL "clt_gloo_plugin"
typedef const clt_gloo_functions *clt_gloo_plugin_function(void);

#ifdef __cplusplus
}
#endif

#endif
