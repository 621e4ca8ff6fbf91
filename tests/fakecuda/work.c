/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * work: what a stream does, and what a node of a graph does.
 *
 * Invariant  bytes are looked up when they are used, not when the work is given:
 *            memory that has been freed in between is an illegal address.
 * Threads    the bodies run on the threads of streams and graphs, without a lock.
 *            The sanitizers see what they read and write: memcpy() and memset()
 *            are theirs, kernels.c is compiled with them.
 */
#include "fakecuda.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct fc_work fc_work_copy(const struct fc_work *w)
{
    struct fc_work c = *w;

    if (w->blob != NULL) {
        c.blob = fc_new(w->blob_bytes);
        memcpy(c.blob, w->blob, w->blob_bytes);
    }
    return c;
}

void fc_work_fini(struct fc_work *w)
{
    free(w->blob);
    w->blob = NULL;
}

/* Memory of another device only when it was opened to this one. */
static bool is_open(CUcontext ctx, const struct fc_block *b)
{
    return b->kind != FC_DEVICE || b->ctx == ctx ||
           (b->pool != NULL ? fc_pool_allows(b->pool, ctx->device)
                            : (atomic_load(&ctx->peers) >> b->ctx->device & 1) != 0);
}

/* As a GPU, which knows no borders between one allocation and the next. */
int fakecuda_touch(CUcontext ctx, const void *at, size_t bytes)
{
    uintptr_t from = (uintptr_t)at;
    const uintptr_t end = from + bytes;
    struct fc_block b;

    while (from < end && fc_block_find((void *)from, 1, &b) && is_open(ctx, &b))
        from = b.base + b.bytes;
    if (from >= end)
        return 0;
    fc_lose(ctx, FC_EADDRESS);
    if (getenv("FAKECUDA_VERBOSE") != NULL)
        fprintf(stderr, "fakecuda: illegal address %p, %zu bytes\n", at, bytes);
    return FC_EADDRESS;
}

bool fakecuda_is_memory(const void *at, size_t bytes)
{
    return fc_block_find(at, bytes, NULL);
}

static void run_launch(const struct fc_work *w)
{
    const struct fc_kernel *k = w->u.launch.kernel;
    struct fc_launch l = {.ctx = w->ctx, .nthreads = w->u.launch.nthreads};
    char *at = w->blob;

    memcpy(l.grid, w->u.launch.grid, sizeof(l.grid));
    for (size_t i = 0; k->args[i] != '\0'; i++, at += 8)
        l.arg[i] = at;
    k->run(&l);
}

/* Valid for a copy: any device's memory, since copies between them go anyway. */
static bool is_copyable(const struct fc_work *w, const char *at, size_t pitch)
{
    const size_t bytes = pitch * (w->u.copy.height - 1) + w->u.copy.width;

    if (fc_block_find(at, bytes, NULL))
        return true;
    fc_lose(w->ctx, FC_EADDRESS);
    if (getenv("FAKECUDA_VERBOSE") != NULL)
        fprintf(stderr, "fakecuda: illegal copy at %p, %zu bytes\n", (const void *)at, bytes);
    return false;
}

static void run_copy(const struct fc_work *w)
{
    const char *src = w->u.copy.src;
    char *dst = w->u.copy.dst;

    if ((!w->u.copy.is_src_pageable && !is_copyable(w, src, w->u.copy.src_pitch)) ||
        (!w->u.copy.is_dst_pageable && !is_copyable(w, dst, w->u.copy.dst_pitch)))
        return;
    for (size_t y = 0; y < w->u.copy.height; y++) {
        memcpy(dst, src, w->u.copy.width);
        dst += w->u.copy.dst_pitch;
        src += w->u.copy.src_pitch;
    }
}

static void run_fill(const struct fc_work *w)
{
    const unsigned elem = w->u.fill.elem;

    if (fakecuda_touch(w->ctx, w->u.fill.at, w->u.fill.n * elem) != 0)
        return;
    if (elem == 1)
        memset(w->u.fill.at, (int)w->u.fill.value, w->u.fill.n);
    else
        for (size_t i = 0; i < w->u.fill.n; i++)
            memcpy(w->u.fill.at + i * elem, &w->u.fill.value, elem);
}

void fc_work_run(const struct fc_work *w)
{
    switch (w->kind) {
    case FC_WORK_EMPTY: break;
    case FC_WORK_KERNEL: run_launch(w); break;
    case FC_WORK_COPY: run_copy(w); break;
    case FC_WORK_FILL: run_fill(w); break;
    case FC_WORK_CALL: w->u.call(w->ctx, w->blob); break;
    }
}
