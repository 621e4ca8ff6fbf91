/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_PIPELINE_H
#define HEDDLE_PIPELINE_H

/*
 * heddle/pipeline.h - one network over several devices.
 *
 * A chain of layers is cut into stages, each on one device with a memory limit;
 * micro-batches follow each other through the stages. The result is the partition, a
 * schedule with a start for every operation, and the memory that each device needs.
 * heddle_pipeline_check() verifies a result without the code that made it.
 * docs/design/pipelines.md has the models and the proofs.
 *
 * Threads:  pure functions; any thread. Objects do not change once made.
 * Errors:   as in heddle/plan.h; a sentence is in opts->why.
 * Times:    those of the chain; machine->link_rate is bytes per that unit.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "heddle/alloc.h"
#include "heddle/plan.h"
#include "heddle/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What one micro-batch costs. `chain` has times, activations and tapes. */
struct heddle_pipeline_model {
    size_t size;
    const struct heddle_plan_chain *chain;
    const uint64_t *weights;   /* [n]; NULL: none */
    const double *weight_time; /* [n] the part of the backward time that makes
                                  gradients of weights, <= backward; NULL: half */
};

/* How micro-batches follow each other. */
enum heddle_pipeline_policy {
    HEDDLE_PIPELINE_BEST = 0,  /* the shortest of the next three, which flush */
    HEDDLE_PIPELINE_GPIPE,     /* all forwards, then all backwards */
    HEDDLE_PIPELINE_1F1B,      /* one forward, one backward; flush */
    HEDDLE_PIPELINE_ZB,        /* zero bubble: gradients of weights fill gaps */
    HEDDLE_PIPELINE_PERIODIC,  /* 1F1B*: least period for the memory, exactly */
    HEDDLE_PIPELINE_PIPEDREAM, /* balanced stages, a copy of weights for each
                                  micro-batch under way */
    HEDDLE_PIPELINE_SPECIAL    /* periodic; one device may have several stages */
};

/* One way to run a stage. */
struct heddle_pipeline_way {
    double extra;   /* time for recomputation, added to its backward */
    uint64_t saved; /* bytes from the start of a micro-batch's forward to the
                       end of its backward */
    uint64_t once;  /* more bytes while its forward or backward runs, at most */
};
#define HEDDLE_PIPELINE_WAYS 12 /* the most ways to run one stage */

/* Options; zero is a default everywhere. */
struct heddle_pipeline_opts {
    size_t size;
    uint32_t policy; /* enum heddle_pipeline_policy */
    uint32_t nmicro; /* micro-batches of a step; 0: 4 times the devices */
    uint32_t copies; /* a stage holds its weights so many times, counting gradients and
                        optimizer states; 0: 2 */
    bool keeps;      /* nothing is recomputed */
    /* Writes the ways to run layers first..last to `out`, at most HEDDLE_PIPELINE_WAYS, and
     * returns how many there are. The answer for the same layers is always the same. NULL:
     * tapes are kept, or recomputed as the table of chains says. */
    uint32_t (*ways)(void *user, uint32_t first, uint32_t last, struct heddle_pipeline_way *out);
    void *user;
    const struct heddle_allocator *alloc; /* NULL: the default */
    char *why;                            /* a sentence; may be NULL */
    size_t why_bytes;
};

/* A stage: consecutive layers on one device. */
struct heddle_pipeline_stage {
    uint32_t first, last; /* layers */
    uint32_t device;
    uint32_t in_flight; /* micro-batches in it, at most */
    double forward, backward;
    double weight; /* the part of `backward` for gradients of weights */
    double extra;  /* the part of `backward` for recomputation */
    double send;   /* its output to the next stage, and the gradient back */
    uint64_t saved, once;
    uint64_t fixed;              /* weights, and two buffers for each neighbour */
    uint32_t first_step, nsteps; /* of its backward, in heddle_pipeline.steps */
};

/* The steps of the backward pass of a stage. Layer i has input x[i] and makes x[i + 1], or
 * its tape, which contains x[i + 1]. */
enum heddle_pipeline_step_kind {
    HEDDLE_PIPELINE_KEEP = 0, /* the forward of the layer again; its tape stays */
    HEDDLE_PIPELINE_SAVE,     /* the forward of the layer again; its input stays */
    HEDDLE_PIPELINE_PASS,     /* the forward of the layer again; its input is dropped */
    HEDDLE_PIPELINE_UNDO      /* the backward of the layer: drops the tape, and the input
                                 unless that is saved */
};

/* One step of a backward pass. */
struct heddle_pipeline_step {
    uint32_t layer;
    uint32_t kind; /* enum heddle_pipeline_step_kind */
};

/* What an operation of the schedule does. */
enum heddle_pipeline_op_kind {
    HEDDLE_PIPELINE_FORWARD = 0,
    HEDDLE_PIPELINE_BACKWARD, /* without `weight` when there are WEIGHT ops */
    HEDDLE_PIPELINE_WEIGHT,
    HEDDLE_PIPELINE_SEND, /* the output to the next stage */
    HEDDLE_PIPELINE_BACK  /* the gradient from the next stage */
};

/* One operation of the schedule. */
struct heddle_pipeline_op {
    uint32_t stage, micro;
    uint32_t kind; /* enum heddle_pipeline_op_kind */
    double start, end;
};

/* A pipeline: stages, and a schedule of their operations. */
struct heddle_pipeline {
    size_t size;
    uint32_t policy;  /* never BEST */
    bool is_periodic; /* ops are those of micro-batch 0; number i does
                             the same i * period later */
    uint32_t ndevices, nstages, nops, nmicro, copies;
    double period;       /* time per micro-batch: of the steady state, or the mean */
    double makespan;     /* of nmicro micro-batches */
    double latency;      /* the longest time from the first forward of a micro-batch to its
                      last backward */
    double throughput;   /* micro-batches per unit of time */
    double bubble;       /* the share of time in which the device that waits most does nothing,
                      from its first start to its last end, or of the period */
    double period_bound; /* no partition has a smaller period */
    const struct heddle_pipeline_stage *stages;
    const struct heddle_pipeline_op *ops;     /* by start */
    const uint64_t *memory;                   /* [ndevices], at most */
    const uint8_t *layers;                    /* [n] enum heddle_pipeline_layer; NULL: opts.ways */
    const struct heddle_pipeline_step *steps; /* of backward passes; NULL: opts.ways */
    uint32_t nsteps;
};

/* What becomes of the tape of a layer between forward and backward. The input of layer i is
 * saved when layer i - 1 is not KEPT, unless layer i is AGAIN. */
enum heddle_pipeline_layer {
    HEDDLE_PIPELINE_KEPT = 0,
    HEDDLE_PIPELINE_AGAIN = 1, /* recomputed, with the layer before it */
    HEDDLE_PIPELINE_FIRST = 2  /* recomputed; a segment begins here */
};

/*
 * Cuts a chain into stages and makes a schedule.
 *
 * HEDDLE_OK      *out is a pipeline within the budget of each device
 * HEDDLE_ENOENT  no partition fits, or none was found
 * HEDDLE_EINVAL  also: more than 512 layers, 256 devices or 2^20 operations
 * HEDDLE_ENOMEM
 * PERIODIC is optimal among contiguous partitions and the ways given, to 1e-9.
 */
HEDDLE_API HEDDLE_MUST_USE heddle_status heddle_pipeline_solve(
    const struct heddle_pipeline_model *model, const struct heddle_plan_machine *m,
    const struct heddle_pipeline_opts *opts, struct heddle_pipeline **out);
/* Frees a pipeline. NULL is fine. */
HEDDLE_API void heddle_pipeline_destroy(struct heddle_pipeline *p);

/* Runs the schedule on paper until the steady state is reached, and checks that every
 * layer is in one stage, operations are in order, a device or link does one operation at a
 * time, memory is within the budget, and every number is as claimed. HEDDLE_EINVAL: the
 * sentence says what is wrong. */
HEDDLE_API HEDDLE_MUST_USE heddle_status heddle_pipeline_check(
    const struct heddle_pipeline_model *model, const struct heddle_plan_machine *m,
    const struct heddle_pipeline *p, const struct heddle_plan_opts *opts);

/* The name of a policy, "gpipe"; NULL: there is no such policy. */
HEDDLE_API const char *heddle_pipeline_get_policy(uint32_t policy);

#ifdef __cplusplus
}
#endif

#endif /* HEDDLE_PIPELINE_H */
