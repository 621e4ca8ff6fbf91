/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_TESTS_PROPERTY_BODY_H
#define HEDDLE_TESTS_PROPERTY_BODY_H

/* Tasks of a program as Heddle sees them: kernels, calls, bodies. */
#include "prog.h"

/* Everything a heddle_call points to. */
struct body_call {
    struct heddle_call call;
    struct heddle_task_opts opts;
    heddle_handle *operand[32];
    enum heddle_mode mode[32];
    heddle_event *after[PROG_AFTER];
};

/* Gives every task of the program its kernel. */
void body_make_kernels(struct prog *p);

/* The call of t; c->operand and c->after are filled in by the caller. The
 * options are used when t needs some and `has_opts`. */
void body_make_call(struct prog_task *t, struct body_call *c, bool has_opts);

/* Counts the end of a task; for heddle_task_opts.done. */
void body_done(void *user, heddle_status st);

#endif /* HEDDLE_TESTS_PROPERTY_BODY_H */
