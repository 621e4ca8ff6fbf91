/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_PLAN_OPTS_H
#define HEDDLE_PLAN_OPTS_H

/*
 * Options and machines as the caller gave them, and sentences for the caller. Module
 * pipeline, whose functions take the same options, uses this header too.
 */
#include <stdint.h>

#include "base/compiler.h"
#include "base/why.h"
#include "heddle/plan.h"

/* Writes the sentence into o->why and returns st. */
#define HEDDLE_PLAN_FAIL(o, st, ...) heddle_why((o)->why, (o)->why_bytes, st, __VA_ARGS__)

/* The options of the caller, of whatever size, complete: with an allocator. */
HEDDLE_MUST_USE heddle_status heddle_plan_opts_get(const struct heddle_plan_opts *o,
                                                   struct heddle_plan_opts *out);

#define HEDDLE_PLAN_ALIGN_MAX ((uint64_t)1 << 30)

/* The same for a machine, checked; align becomes at least 1. */
HEDDLE_MUST_USE heddle_status heddle_plan_machine_get(const struct heddle_plan_machine *m,
                                                      const struct heddle_plan_opts *o,
                                                      struct heddle_plan_machine *out);

/* Name of an op for a sentence: "17 (conv3)". */
struct heddle_plan_label {
    char text[96];
};
struct heddle_plan_label heddle_plan_op_label(const struct heddle_plan_graph *g, uint32_t op);
/* A number of bytes for a sentence, exact and for people. */
struct heddle_plan_label heddle_plan_bytes_label(uint64_t bytes);

#endif /* HEDDLE_PLAN_OPTS_H */
