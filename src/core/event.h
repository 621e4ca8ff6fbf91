/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_CORE_EVENT_H
#define HEDDLE_CORE_EVENT_H

/* Events: some complete with a task, others are completed by the program. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/atomic.h"
#include "core/object.h"
#include "heddle/task.h"
#include "task/task.h"

struct heddle_event {
    struct heddle_object obj; /* first */
    _Atomic uint32_t refs;
    _Atomic uint32_t users; /* of these, the program's */
    _Atomic int status;     /* HEDDLE_AGAIN until complete */
    heddle_ref ref;         /* the task, or the cell that stands for a manual one */
    uint64_t task;          /* its id; 0: manual */
    bool is_manual;
    _Atomic int64_t missing; /* manual: completions to come */
    _Atomic int first;       /* manual: status to complete with */
    /* Guarded by ctx->event_lock: events this one waits for. */
    heddle_event **pred;
    uint32_t npreds, pred_cap;
    uint32_t walk; /* last search that came here */
    heddle_event *walk_next;
    bool is_said;    /* manual: completed by hand */
    bool is_noticed; /* manual: its cell has run; written by that task */
};

/* References of the engine. */
heddle_event *heddle_event_hold(heddle_event *e);
void heddle_event_drop(heddle_event *e);
/* Completes it and drops the task's reference. */
void heddle_event_finish(heddle_event *e, heddle_status st);
/* Remembers what the task of e waits for, to find cycles. */
void heddle_event_follow(heddle_event *e, heddle_event *const *pred, size_t n);
/* A new event of a task that is being submitted. */
heddle_status heddle_event_adopt(heddle_ctx *ctx, heddle_event **e_out);

#endif /* HEDDLE_CORE_EVENT_H */
