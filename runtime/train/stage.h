/*
 * A trainer that has one stage of a model, or several chunks of it (options.pipeline): each rank builds the step's whole graph and keeps its part (pipeline/cut.h). A step is a
 * list of turns; between them what crosses goes over the communicator. Micro-batches in flight have a plan each.
 */
#ifndef CLT_TRAIN_STAGE_H
#define CLT_TRAIN_STAGE_H

#include "runtime/pipeline/cut.h"
#include "runtime/train/trainer.h"

struct clt_stage {
    clt_comm *all;      /* of a grid: pipelines one behind the other, rank = pipeline * stages + stage */
    clt_comm *comm;     /* of the own pipeline: all of them, or a part */
    clt_comm *replicas; /* those that have the same stage; NULL: this one alone */
    clt_pipeline shape;  /* micros: the most */
    clt_cut cut;         /* which stages this rank has */
    clt_tensor **begins; /* of the user's graph: the first node of each stage but the first */
    int *rank_of;        /* by variable: whose it is */
    bool *others;        /* by variable: it is another rank's to train, keep and save */
    bool *reached;       /* by variable: it is trained, and the loss depends on it */
    clt_turn *turns;     /* of a step */
    size_t n_turns;      /* of the last step, if it was timed */
    bool timed;
    int summed;          /* micro-batches whose gradients have been added up in this step */
    float scale;         /* of the sum of gradients, in this step */
    int in_flight;       /* the most so far */
};

/* With options.pipeline: settles what the stages are. */
clt_status clt_stage_create(clt_trainer *trainer);
void clt_stage_destroy(clt_stage *stage);

/* stage_split.c: where they begin. Called by all ranks. */
clt_status clt_stage_split(const clt_trainer *trainer, const clt_stage *stage);

/* The nodes of a step's graph of forward get their stage. map: from the user's graph. */
clt_status clt_stage_assign(clt_trainer *trainer, clt_step *step, clt_tensor *const *map);
bool clt_stage_is_last(const clt_trainer *trainer);
/* A tensor of the step's graph is computed here. */
bool clt_stage_has(const clt_trainer *trainer, const clt_tensor *tensor);

/* Into how many micro-batches of equal size a batch is cut. */
int clt_stage_micros(const clt_trainer *trainer, int64_t samples);
/* The samples of one of so many. */
clt_batch clt_stage_part(const clt_batch *batch, int index, int parts);

/* Makes the plans of as many micro-batches as are in flight at once of a batch of so many samples: what has no room for them is found out before training. */
clt_status clt_stage_prepare(clt_trainer *trainer, clt_step *first, int64_t samples);
/* All of a training step, whose plan is that of a micro-batch; and the run of a plan of forward alone, which has been fed. */
clt_status clt_stage_run(clt_trainer *trainer, clt_step *step, const clt_batch *batch);
clt_status clt_stage_forward(clt_trainer *trainer, clt_step *step);
/* What a step's result is, on all ranks, from the one that has computed it. */
clt_status clt_stage_read_result(clt_trainer *trainer, clt_step *step, float *result, size_t count);

#endif
