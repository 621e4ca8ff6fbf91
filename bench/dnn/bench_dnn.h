/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_BENCH_DNN_BENCH_DNN_H
#define HEDDLE_BENCH_DNN_BENCH_DNN_H

/*
 * bench dnn: what the main program, our side and a peer share. A side makes a runner for a case, or
 * says that the case is none of its own.
 */
#include <stdbool.h>
#include <stddef.h>

#include "dnn/dnn.h"

enum case_kind { CASE_CONV, CASE_MATMUL, CASE_ATTENTION, CASE_NORM, CASE_MAP };

struct bench_case {
    const char *network;
    enum case_kind kind;
    unsigned count;
    size_t v[10]; /* the numbers of cases.def, in their order */
    enum dnn_fn act;
};

/* Something that can be run again and again. part of nparts: the peer takes 0 of 1 only. */
struct runner {
    void *self;
    void (*run)(void *self, size_t part, size_t nparts);
    void (*close)(void *self);
    double flops, bytes;
};

bool bench_ours(const struct bench_case *c, const char *isa, struct runner *out);
/* oneDNN with one thread; false: it is not there, or has no such kernel. */
bool bench_peer(const struct bench_case *c, struct runner *out);
const char *bench_peer_name(void);

#endif /* HEDDLE_BENCH_DNN_BENCH_DNN_H */
