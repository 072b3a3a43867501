#include "runtime/trial/witness.h"

static const uint32_t unwritten = 0xffffffff; /* a NaN, as a float */

clt_status clt_witness_init(clt_witness *w, clt_device *device, clt_plan *plan, const clt_tensor *result) {
    enum { MOST_WORDS = 1024 };
    *w = (clt_witness){.device = device, .result = clt_plan_memory(plan, result)};
    if (!w->result || result->dtype != CLT_F32) return clt_fail(CLT_E_INVALID, "%s is not looked at", clt_node_name(result));
    w->result_words = (size_t)clt_tensor_elements(result);
    w->words = CLT_MIN(w->result_words, (size_t)MOST_WORDS);
    clt_random_init(&w->random, 21, 0);
    w->read = clt_alloc(w->words * sizeof *w->read);
    if (!w->read) return clt_fail_memory(w->words * sizeof *w->read);
    return clt_memory_create(device, w->words * sizeof *w->read, &w->kept);
}

void clt_witness_free(clt_witness *w) {
    clt_memory_destroy(w->kept);
    clt_free(w->read);
    *w = (clt_witness){.result = NULL};
}

int clt_witness_choose(clt_witness *w, int times) {
    w->at = clt_random_u32(&w->random) % (w->result_words - w->words + 1);
    return (int)(clt_random_u32(&w->random) % (uint32_t)times);
}

clt_status clt_witness_before(clt_witness *w) {
    return clt_memory_fill(w->result, w->at * sizeof unwritten, w->words * sizeof unwritten, unwritten);
}

clt_status clt_witness_after(clt_witness *w) {
    return clt_memory_copy(w->result, w->at * sizeof unwritten, w->kept, w->words * sizeof unwritten);
}

clt_status clt_witness_judge(clt_witness *w) {
    bool missing = false;
    CLT_TRY(clt_memory_read(w->kept, 0, w->read, w->words * sizeof *w->read));
    for (size_t i = 0; i < w->words; i++) missing |= w->read[i] == unwritten;
    w->looked++;
    w->missing += missing;
    return CLT_OK;
}
