/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * slow: what only some tasks need before their function: cancellation, deadlines,
 * turns, partial results, scratch, memory.
 *
 * Structure  heddle_slow_run() brings a task to its function (variant.c) and from
 *            there to its end (end.c); heddle_slow_body() is the part that graphs
 *            and simulated cores share.
 * Threads    the slot that runs the task.
 */
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/atomic.h"
#include "base/clock.h"
#include "base/compiler.h"
#include "base/mode.h"
#include "core/cell.h"
#include "core/ctx.h"
#include "core/dev/dev.h"
#include "core/end.h"
#include "core/engine.h"
#include "core/event.h"
#include "core/exec.h"
#include "core/group.h"
#include "core/hidden.h"
#include "core/kinfo.h"
#include "core/slow.h"
#include "core/time.h"
#include "core/turn.h"
#include "core/variant.h"
#include "core/worker.h"
#include "data/data.h"
#include "sched/sched.h"
#include "task/task.h"
#include "trace/trace.h"

/* --- before the function -------------------------------------------------- */

heddle_status heddle_slow_may_start(struct heddle_exec *x, const struct task_ext *ext)
{
    heddle_ctx *ctx = x->ctx;
    heddle_group *group;

    if (heddle_load_rlx(&ctx->is_cancelled) != 0)
        return HEDDLE_ECANCELED;
    group = heddle_exec_group(x);
    if (group != NULL && heddle_load_acq(&group->is_cancelled) != 0)
        return HEDDLE_ECANCELED;
    if (ext != NULL) {
        for (uint32_t i = 0; i < ext->nafter; i++)
            if (heddle_load_acq(&ext->after[i]->status) < 0) {
                x->slow->is_missing = true;
                return HEDDLE_ECANCELED;
            }
        if (ext->deadline_ns != 0 && heddle_clock_ns() > ext->deadline_ns) {
            snprintf(x->slow->message, sizeof(x->slow->message), "not started before its deadline");
            return HEDDLE_ETIMEDOUT;
        }
    }
    if (heddle_load_acq(&ctx->reg.nmarks) == 0)
        return HEDDLE_OK;
    for (unsigned i = 0; i < x->nops; i++)
        if (heddle_mode_reads(x->mode[i]) && heddle_unit_marked(x->op[i]) != HEDDLE_OK) {
            x->slow->is_missing = true;
            return HEDDLE_ECANCELED;
        }
    return HEDDLE_OK;
}

/* Private memory for one body: the variant's scratch, then SCRATCH operands. */
static heddle_status slow_scratch_bytes(const struct heddle_exec *x, size_t *bytes_out)
{
    size_t bytes = 0;

    for (unsigned v = 0; v < x->kinfo->nvariants; v++)
        if (x->kinfo->kernel->variants[v].device == HEDDLE_DEV_CPU &&
            x->kinfo->kernel->variants[v].scratch_bytes > bytes)
            bytes = x->kinfo->kernel->variants[v].scratch_bytes;
    if (bytes > SIZE_MAX / 2)
        return HEDDLE_ENOMEM;
    bytes = (bytes + 63) & ~(size_t)63;
    for (unsigned i = 0; i < x->nops; i++)
        if (heddle_mode_is_scratch(x->mode[i]) &&
            !heddle_add(&bytes, bytes, (x->op[i]->bytes + 63) & ~(size_t)63))
            return HEDDLE_ENOMEM;
    *bytes_out = bytes;
    return HEDDLE_OK;
}

static heddle_status slow_take_scratch(struct heddle_exec *x, size_t bytes)
{
    struct exec_slow *s = x->slow;
    char *p = heddle_alloc_aligned(&x->ctx->alloc, bytes, 64);

    if (p == NULL)
        return HEDDLE_ENOMEM;
    s->scratch = p;
    p += bytes;
    for (unsigned i = x->nops; i-- > 0;)
        if (heddle_mode_is_scratch(x->mode[i])) {
            p -= (x->op[i]->bytes + 63) & ~(size_t)63;
            s->ptr[i] = p;
        }
    return HEDDLE_OK;
}

static heddle_status slow_take_partials(struct heddle_exec *x)
{
    struct exec_slow *s = x->slow;

    for (unsigned i = 0; i < x->nops; i++) {
        if (!heddle_mode_combines(x->mode[i]))
            continue;
        s->partial[i] = heddle_partial_take(x->op[i]);
        if (s->partial[i] == NULL)
            return HEDDLE_ENOMEM;
        s->ptr[i] = s->partial[i]->mem;
    }
    return HEDDLE_OK;
}

static void slow_give_back(struct heddle_exec *x, size_t scratch_bytes)
{
    struct exec_slow *s = x->slow;

    for (unsigned i = 0; i < x->nops && i < HEDDLE_KERNEL_OPERANDS; i++) {
        if (s->partial[i] != NULL)
            heddle_partial_give(x->op[i], s->partial[i]);
        heddle_free(&x->ctx->alloc, s->backup[i], x->op[i]->bytes);
        s->partial[i] = NULL;
        s->backup[i] = NULL;
    }
    heddle_free(&x->ctx->alloc, s->scratch, scratch_bytes);
    s->scratch = NULL;
}

/* All operands have memory: runtime-allocated data come into being here. */
static heddle_status slow_touch(struct heddle_exec *x)
{
    for (unsigned i = 0; i < x->nops; i++) {
        if (heddle_mode_is_scratch(x->mode[i]) ||
            (heddle_mode_combines(x->mode[i]) && x->ctx->dev != NULL))
            continue; /* private; the data may be elsewhere */
        if (heddle_unit_base(x->op[i]) == NULL)
            return HEDDLE_ENOMEM;
    }
    return HEDDLE_OK;
}

heddle_status heddle_slow_body(struct heddle_exec *x, struct exec_slow *s,
                               const struct task_ext *ext)
{
    size_t scratch = 0;
    heddle_status st;

    memset(s, 0, offsetof(struct exec_slow, message) + 1);
    s->name = ext != NULL ? ext->name : NULL;
    x->slow = s;
    st = heddle_slow_may_start(x, ext);
    s->is_skipped = st != HEDDLE_OK;
    if (st != HEDDLE_OK)
        return st;
    st = slow_scratch_bytes(x, &scratch);
    if (st == HEDDLE_OK && scratch != 0)
        st = slow_take_scratch(x, scratch);
    if (st == HEDDLE_OK)
        st = slow_take_partials(x);
    if (st == HEDDLE_OK)
        st = slow_touch(x);
    if (st == HEDDLE_ENOMEM)
        snprintf(s->message, sizeof(s->message), "no memory for its operands or scratch space");
    if (st == HEDDLE_OK)
        st = heddle_variant_call(x, ext);
    slow_give_back(x, scratch);
    return st;
}

struct heddle_sched_task *heddle_slow_run(struct worker *w, struct heddle_cell *c)
{
    struct task_ext *ext = heddle_cell_ext(w->ctx, c);
    const uint64_t start =
        heddle_trace_is_on(w->lane, HEDDLE_TRACE_TASK) ? heddle_ctx_ticks(w->ctx) : 0;
    struct heddle_sched_task *next;
    struct exec_slow s;
    struct heddle_exec x;
    heddle_status st;

    if (heddle_hidden_run(w, c, &next))
        return next;
    heddle_cell_exec_ext(w, c, ext, &x);
    if (!heddle_turns_take(&x))
        return NULL;
    if (w->ctx->dev != NULL && heddle_dev_supply(w, &c->sched, &x, ext) == HEDDLE_AGAIN)
        return NULL;
    st = heddle_slow_body(&x, &s, ext);
    if (st == TASK_PUT_BACK) { /* a gang that cannot form now */
        heddle_engine_put_back(w, &c->sched, false);
        return NULL;
    }
    return heddle_end_after(&x, st, start);
}
