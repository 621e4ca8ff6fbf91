/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * dev/task: the records of tasks on devices, and what a task has tried in vain.
 *
 * Structure  records are used again: the device thread has a list of its own, all other
 *            threads share one. A note says which classes a task is barred from and how often
 *            it has failed; most tasks have none.
 * Threads    any.
 */
#include <stdlib.h>

#include "base/alloc.h"
#include "base/atomic.h"
#include "base/compiler.h"
#include "base/map.h"
#include "base/spin.h"
#include "core/cell.h"
#include "core/ctx.h"
#include "core/dev/dev.h"
#include "core/dev/devs.h"
#include "core/dev/task.h"
#include "core/exec.h"
#include "core/worker.h"
#include "sched/sched.h"

/* --- records ------------------------------------------------------------------ */

struct dev_task *heddle_dev_task_new(struct worker *w)
{
    struct heddle_devs *d = w->ctx->dev;
    const bool is_driver = w == d->ctx->driver;
    struct dev_task *dt = is_driver ? d->spare : NULL;

    if (dt != NULL) {
        d->spare = dt->next;
    } else {
        heddle_spin_lock(&d->pool_lock);
        dt = d->free;
        if (dt != NULL)
            d->free = dt->next;
        heddle_spin_unlock(&d->pool_lock);
    }
    if (dt == NULL)
        dt = heddle_zalloc(&d->ctx->alloc, 1, sizeof(*dt));
    if (dt == NULL)
        return NULL;
    dt->ctx = d->ctx;
    dt->worker = dt->on = NULL;
    dt->ahead = NULL;
    dt->is_flying = dt->has_heir = dt->is_held = dt->was_ahead = false;
    dt->work_ns = 0;
    dt->ext = NULL;
    dt->more = NULL;
    dt->model = NULL;
    dt->nraw = 0;
    dt->is_out = dt->is_lent = dt->has_run = false;
    dt->raw_status = HEDDLE_OK;
    dt->req.nops = dt->req.nprivate = 0;
    dt->req.op = dt->req.local;
    dt->req.is_forced = dt->req.is_last = dt->req.keeps = false;
    dt->req.stays = false;
    dt->req.user = dt->req.task = 0;
    dt->req.is_watched = false;
    dt->wait = DEV_WAIT_NONE;
    dt->s.dev = NULL;
    dt->s.gang = NULL;
    dt->s.message[0] = '\0';
    return dt;
}

void heddle_dev_task_free(struct worker *w, struct dev_task *dt)
{
    struct heddle_devs *d = w->ctx->dev;

    if (dt->more != NULL)
        heddle_free(&d->ctx->alloc, dt->more, (TASK_NOPS + 1) * sizeof(*dt->more));
    if (w == d->ctx->driver) {
        dt->next = d->spare;
        d->spare = dt;
        return;
    }
    heddle_spin_lock(&d->pool_lock);
    dt->next = d->free;
    d->free = dt;
    heddle_spin_unlock(&d->pool_lock);
}

/* --- notes -------------------------------------------------------------------- */

uint64_t heddle_dev_note(struct heddle_devs *d, const struct heddle_sched_task *t)
{
    uint64_t v = 0;

    if (heddle_load_acq(&d->nnotes) == 0)
        return 0;
    heddle_spin_lock(&d->note_lock);
    (void)heddle_map_get(&d->notes, (uintptr_t)t, &v);
    heddle_spin_unlock(&d->note_lock);
    return v;
}

bool heddle_dev_set_note(struct heddle_devs *d, const struct heddle_sched_task *t, uint64_t v)
{
    heddle_status st;

    heddle_spin_lock(&d->note_lock);
    st = heddle_map_put(&d->notes, (uintptr_t)t, v);
    heddle_store_rel(&d->nnotes, (uint32_t)heddle_map_count(&d->notes));
    heddle_spin_unlock(&d->note_lock);
    return st == HEDDLE_OK;
}

void heddle_dev_drop_note(struct heddle_devs *d, const struct heddle_sched_task *t)
{
    if (heddle_load_acq(&d->nnotes) == 0)
        return;
    heddle_spin_lock(&d->note_lock);
    (void)heddle_map_remove(&d->notes, (uintptr_t)t, NULL);
    heddle_store_rel(&d->nnotes, (uint32_t)heddle_map_count(&d->notes));
    heddle_spin_unlock(&d->note_lock);
}

bool heddle_dev_is_barred(struct heddle_devs *d, const struct heddle_sched_task *t, unsigned cls)
{
    return (heddle_dev_note(d, t) >> cls & 1) != 0;
}
