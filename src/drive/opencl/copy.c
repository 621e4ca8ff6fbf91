/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * copy: copies between the host and a buffer.
 *
 * Structure  simplified first. One run: a plain command. One or two dimensions of
 *            runs that fit OpenCL's idea of a box: one rectangle command. Anything
 *            else goes through dense memory on the host: gathered when the copy is
 *            given, scattered when progress() finds that it has ended.
 * Order      with staging, the host's side moves at another moment than the
 *            queue's. A copy that touches host memory which an earlier copy out
 *            has still to write therefore waits for that one (settle). It needs
 *            an odd shape and the same host memory at once: rare.
 */
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "drive/opencl/dev.h"
#include "drive/runs.h"

/* New memory costs more than the copy into it: this much is kept for the next. */
#define KEEP_BYTES ((size_t)64 << 20)

void heddle_opencl_copy_scatter(struct heddle_opencl_flight *f)
{
    heddle_runs_scatter(&f->runs, f->staging, f->host);
}

void heddle_opencl_copy_unstage(struct heddle_opencl_flight *f)
{
    struct heddle_dev *dev = f->dev;

    if (f->staging == NULL)
        return;
    if (f->staging_bytes <= KEEP_BYTES && f->staging_bytes > dev->spare_staging_bytes) {
        heddle_free(dev->env.alloc, dev->spare_staging, dev->spare_staging_bytes);
        dev->spare_staging = f->staging;
        dev->spare_staging_bytes = f->staging_bytes;
    } else {
        heddle_free(dev->env.alloc, f->staging, f->staging_bytes);
    }
    f->staging = NULL;
}

/* Waits for a copy out and puts its bytes in place; it ends in progress(), like
 * every other. */
static void copy_settle(struct heddle_opencl_flight *f)
{
    struct heddle_dev *dev = f->dev;
    const bool is_ok = heddle_opencl_wait(dev, f->end);

    if (f->staging == NULL)
        return;
    if (is_ok)
        heddle_opencl_copy_scatter(f);
    heddle_opencl_copy_unstage(f);
    dev->nstaged--;
}

/* Some implementations read the host's memory when a copy is given to them. */
static void copy_settle_overlaps(struct heddle_dev *dev, const struct heddle_copy *c)
{
    const bool gathers = c->kind == HEDDLE_COPY_IN;
    const char *from = c->host;
    const char *to = from + heddle_runs_span(&c->runs);

    if (dev->nstaged == 0 && !gathers)
        return;
    for (unsigned s = 0; s < HEDDLE_OPENCL_QUEUES; s++) {
        struct heddle_opencl_flight *f = dev->stream[s].first;

        for (; f != NULL; f = f->next)
            if (f->is_out && (f->staging != NULL || gathers) && f->host < to &&
                from < f->host + f->host_span)
                copy_settle(f);
    }
}

/* Can OpenCL walk these runs by itself? */
static bool copy_is_box(const struct heddle_runs *r)
{
    if (r->ndim == 1)
        return r->step[0] >= r->run_bytes;
    return r->ndim == 2 && r->step[1] >= r->run_bytes && r->step[0] / r->step[1] >= r->count[1] &&
           r->step[0] % r->step[1] == 0;
}

static cl_int copy_line(struct heddle_opencl_flight *f, const struct heddle_copy *c, void *host,
                        size_t bytes)
{
    const struct heddle_opencl_api *api = &f->dev->api;
    cl_command_queue q = f->dev->stream[f->stream].queue;

    if (c->kind == HEDDLE_COPY_IN)
        return api->clEnqueueWriteBuffer(q, c->ptr, CL_FALSE, 0, bytes, host, 0, NULL, &f->end);
    return api->clEnqueueReadBuffer(q, c->ptr, CL_FALSE, 0, bytes, host, 0, NULL, &f->end);
}

static cl_int copy_box(struct heddle_opencl_flight *f, const struct heddle_copy *c,
                       const struct heddle_runs *r)
{
    const struct heddle_opencl_api *api = &f->dev->api;
    cl_command_queue q = f->dev->stream[f->stream].queue;
    const size_t rows = r->count[r->ndim - 1];
    const size_t slices = r->ndim == 2 ? r->count[0] : 1;
    const size_t pitch = r->step[r->ndim - 1];
    const size_t slice = r->ndim == 2 ? r->step[0] : 0;
    const size_t region[3] = {r->run_bytes, rows, slices};
    const size_t zero[3] = {0, 0, 0};
    const size_t dense = r->run_bytes * rows;

    if (c->kind == HEDDLE_COPY_IN)
        return api->clEnqueueWriteBufferRect(q, c->ptr, CL_FALSE, zero, zero, region, r->run_bytes,
                                             dense, pitch, slice, c->host, 0, NULL, &f->end);
    return api->clEnqueueReadBufferRect(q, c->ptr, CL_FALSE, zero, zero, region, r->run_bytes,
                                        dense, pitch, slice, c->host, 0, NULL, &f->end);
}

static heddle_status copy_stage(struct heddle_opencl_flight *f, const struct heddle_copy *c)
{
    struct heddle_dev *dev = f->dev;
    const size_t bytes = heddle_runs_bytes(&c->runs);

    if (dev->spare_staging_bytes >= bytes) {
        f->staging = dev->spare_staging;
        f->staging_bytes = dev->spare_staging_bytes;
        dev->spare_staging = NULL;
        dev->spare_staging_bytes = 0;
    } else {
        f->staging = heddle_alloc(dev->env.alloc, bytes);
        f->staging_bytes = bytes;
    }
    if (f->staging == NULL)
        return HEDDLE_ENOMEM;
    if (c->kind == HEDDLE_COPY_IN)
        heddle_runs_gather(&c->runs, c->host, f->staging);
    return HEDDLE_OK;
}

static heddle_status copy_give(struct heddle_opencl_flight *f, const struct heddle_copy *c)
{
    struct heddle_dev *dev = f->dev;
    const struct heddle_runs r = heddle_runs_simplify(&c->runs);
    const bool is_staged = r.ndim != 0 && !copy_is_box(&r);
    cl_int err;

    copy_settle_overlaps(dev, c);
    if (is_staged)
        HEDDLE_TRY(copy_stage(f, c));
    f->given_ns = heddle_opencl_now(dev);
    if (is_staged)
        err = copy_line(f, c, f->staging, heddle_runs_bytes(&r));
    else if (r.ndim == 0)
        err = copy_line(f, c, c->host, r.run_bytes);
    else
        err = copy_box(f, c, &r);
    if (err != CL_SUCCESS)
        return heddle_opencl_fail(dev, err, "copy");
    f->runs = r;
    f->is_out = c->kind == HEDDLE_COPY_OUT;
    f->host = c->host;
    f->host_span = heddle_runs_span(&r);
    if (f->is_out && is_staged)
        dev->nstaged++;
    return HEDDLE_OK;
}

heddle_status heddle_opencl_copy(struct heddle_dev *dev, const struct heddle_copy *c,
                                 unsigned stream, struct heddle_op *op)
{
    struct heddle_opencl_flight *f;
    heddle_status st;

    if (dev->is_lost)
        return HEDDLE_EDEV;
    if (c->kind == HEDDLE_COPY_PEER)
        return HEDDLE_ENOSYS;
    HEDDLE_ASSERT(heddle_runs_bytes(&c->runs) > 0);
    f = heddle_opencl_flight_get(dev, stream, op);
    if (f == NULL)
        return HEDDLE_ENOMEM;
    st = copy_give(f, c);
    if (st != HEDDLE_OK) {
        heddle_opencl_flight_put(f);
        return st;
    }
    heddle_opencl_flight_start(f);
    return HEDDLE_OK;
}
