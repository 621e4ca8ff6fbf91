/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * dev/partial: the partial results of a task on a device: copied there before its
 * launch, back afterwards.
 *
 * Threads    the device thread.
 */
#include <string.h>

#include "base/alloc.h"
#include "base/atomic.h"
#include "base/compiler.h"
#include "core/ctx.h"
#include "core/dev/devs.h"
#include "core/dev/end.h"
#include "core/dev/partial.h"
#include "core/dev/task.h"
#include "core/dev/time.h"
#include "core/dev/worker.h"
#include "drive/drive.h"

enum { RAW_TRIES = 3 };

static void raw_done(struct heddle_op *op, heddle_status st);

static heddle_status raw_copy(struct dev_task *dt, unsigned i)
{
    struct dev_class *c = &dt->ctx->dev->cls[dt->worker->cls];
    const struct heddle_copy copy = {.kind = dt->is_out ? HEDDLE_COPY_OUT : HEDDLE_COPY_IN,
                                     .ptr = dt->s.ptr[i],
                                     .host = dt->is_out ? dt->raw[i].back : dt->s.partial[i]->mem,
                                     .runs = {.run_bytes = dt->x.op[i]->bytes, .nruns = 1}};

    dt->raw[i].op = (struct heddle_op){.done = raw_done};
    dt->raw[i].owner = dt;
    return c->drv->copy(c->dev, &copy, dt->on->stream, &dt->raw[i].op);
}

/* Partial results are back. When the device is gone, or one of them did not come,
 * the task runs again: then they must be what they were before it. */
static void raw_settle(struct dev_task *dt)
{
    struct heddle_devs *d = dt->ctx->dev;
    const bool counts =
        dt->raw_status == HEDDLE_OK && heddle_load_rlx(&d->cls[dt->worker->cls].is_lost) == 0;

    for (unsigned i = 0; i < dt->x.nops; i++) {
        const size_t bytes = dt->x.op[i]->bytes;

        if (dt->s.partial[i] == NULL || dt->raw[i].back == NULL)
            continue;
        if (counts)
            memcpy(dt->s.partial[i]->mem, dt->raw[i].back, bytes);
        heddle_free(&dt->ctx->alloc, dt->raw[i].back, bytes);
        dt->raw[i].back = NULL;
    }
}

static void raw_end(struct dev_task *dt)
{
    if (dt->nraw != 0)
        return;
    if (dt->is_out)
        raw_settle(dt);
    if (dt->is_out || dt->raw_status != HEDDLE_OK)
        heddle_dev_end(dt, dt->raw_status);
    else
        dt->ctx->dev->time->launch(dt);
}

static void raw_done(struct heddle_op *op, heddle_status st)
{
    struct dev_raw *r = (struct dev_raw *)(void *)op;
    struct dev_task *dt = r->owner;

    if (st != HEDDLE_OK && st != HEDDLE_EDEV && r->tries++ < RAW_TRIES) {
        st = raw_copy(dt, (unsigned)(r - dt->raw));
        if (st == HEDDLE_OK)
            return; /* once more */
    }
    dt->nraw--;
    if (st != HEDDLE_OK && dt->raw_status == HEDDLE_OK)
        dt->raw_status = st;
    raw_end(dt);
}

/* All of them at once; one extra count, so that none ends it too early. */
void heddle_dev_move_partials(struct dev_task *dt, bool is_out)
{
    dt->is_out = is_out;
    dt->nraw = 1;
    for (unsigned i = 0; i < dt->x.nops && dt->raw_status == HEDDLE_OK; i++)
        if (dt->s.partial[i] != NULL) {
            dt->raw[i].tries = 0;
            dt->raw[i].back = is_out ? heddle_alloc(&dt->ctx->alloc, dt->x.op[i]->bytes) : NULL;
            dt->nraw++;
            dt->raw_status = is_out && dt->raw[i].back == NULL ? HEDDLE_ENOMEM : raw_copy(dt, i);
            if (dt->raw_status != HEDDLE_OK)
                dt->nraw--;
        }
    dt->nraw--;
    raw_end(dt);
}
