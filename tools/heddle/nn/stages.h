/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_TOOLS_NN_STAGES_H
#define HEDDLE_TOOLS_NN_STAGES_H

/*
 * The stages of a route, which become tasks. Operators of one class with equally many changes of
 * class on the way to them are one stage, so stages depend on each other without a cycle.
 */
#include "heddle/task.h"
#include "nn/place.h"

enum { STAGES_NAME = 24, STAGES_OPERANDS = 250 };

/* A stage: the operators of one class between two changes of class. */
struct stage {
    uint32_t cls;
    uint32_t level; /* changes of class before it, at most */
    double ns;
    uint64_t bytes, streamed; /* of all operands; of weights, 0: none */
    uint32_t *operand;        /* values; those before nin are read, the others written */
    uint32_t nin, noperands;
    heddle_kernel kernel;
    char name[STAGES_NAME];
};

/* Stages, and who takes the results. */
struct route {
    double rate, credit;
    struct stage *stage; /* in an order in which values are made before they are read */
    uint32_t nstages;
    uint32_t *result; /* values that the port takes */
    uint32_t nresults;
    uint64_t result_bytes;
    heddle_kernel take;
    char name[STAGES_NAME];
};

/* The kernel of a stage, for one kind of device. The name is borrowed. */
void stages_kernel(heddle_kernel *k, const char *name, uint32_t kind);
/* `number` is in the names of kernels; is_streamed as in struct heddle_spread_result, NULL: none.
 * False: no memory, or more values than a task can have. */
bool stages_make(const struct problem *p, uint32_t number, const uint32_t *cls,
                 const uint8_t *is_streamed, struct route *r);
void stages_free(struct route *r);

#endif /* HEDDLE_TOOLS_NN_STAGES_H */
