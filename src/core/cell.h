/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_CORE_CELL_H
#define HEDDLE_CORE_CELL_H

/* The engine's part of a task: the flags of its cell, and its extension. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/ctx.h"
#include "heddle/task.h"
#include "sched/sched.h"
#include "task/task.h"

/* Internal: the task cannot start now, back to the scheduler with it. */
#define TASK_PUT_BACK ((heddle_status)1000)

/* Cell flags. Low byte: number of operands; next: commute locks held. */
enum {
    TASK_NOPS = 0xff,
    TASK_TURNS = 0xff00,
    TASK_TURN = 1 << 8,
    TASK_SLOW = 1 << 16,   /* anything but run and end */
    TASK_HIDDEN = 1 << 17, /* the engine's own: not logged, never cancelled */
    TASK_LOOSE = 1 << 18,  /* heddle_wait() does not wait for it */
    TASK_AHEAD = 1 << 19,  /* it has a record in dev/ahead.c */
    TASK_ALONE = 1 << 20,  /* no operands, no event: no task can wait for it by an edge */
    TASK_ARG_SHIFT = 24,   /* bytes of the inline argument, 0 .. 16 */
};

/* The seldom used part of a task; lives in a further cell. */
struct task_ext {
    uint64_t succ; /* the cell's word: never touched, see task.h */
    const char *name;
    heddle_event *event;
    heddle_group *group;
    void (*done)(void *user, heddle_status st);
    void *done_user;
    uint64_t deadline_ns;   /* heddle_clock_ns(); 0: none */
    void *arg;              /* inline elsewhere: NULL */
    heddle_handle **op;     /* more operands than fit: all of them */
    enum heddle_mode *mode; /* other modes than the kernel's */
    heddle_event **after;
    uint32_t nafter;
    uint32_t arg_bytes;
    uint16_t retries;
    uint8_t variant;
    uint8_t devices; /* kinds that may run it; 0: any */
    uint16_t nmode;
    uint16_t digits;
    uint16_t nfailed;          /* runs on devices that failed: they use up retries, too */
    enum heddle_mode own_mode; /* of a grant */
};

_Static_assert(sizeof(struct task_ext) <= sizeof(struct heddle_cell), "fits a cell");

static inline struct task_ext *heddle_cell_ext(heddle_ctx *ctx, struct heddle_cell *c)
{
    return c->ext == 0 ? NULL : (void *)heddle_pool_cell(&ctx->pool, c->ext);
}

/* Cells are 128 bytes and hold the scheduler's part at byte 48; nodes of graphs
 * hold it at a multiple of 32. So bit 4 of the address tells them apart. */
static inline bool heddle_is_node(const struct heddle_sched_task *t)
{
    return ((uintptr_t)t & 16) == 0;
}

static inline struct heddle_cell *heddle_task_cell(struct heddle_sched_task *t)
{
    return (struct heddle_cell *)((char *)t - offsetof(struct heddle_cell, sched));
}

_Static_assert((offsetof(struct heddle_cell, sched) & 16) != 0, "heddle_is_node");

#endif /* HEDDLE_CORE_CELL_H */
