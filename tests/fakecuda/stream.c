/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * stream: queues with a thread each, and events.
 *
 * Structure  a stream's thread takes one operation after the other, waits a little
 *            (so that the order of streams is different each time) and does it. An
 *            event points to the mark of its last record; a thread that waits for
 *            the event keeps that mark.
 * Invariant  an operation on a lost context does nothing, but it ends: marks are
 *            set, memory is given back.
 * Threads    see fakecuda.h. fc_release(s) after each operation: a thread that has
 *            waited for the stream sees everything that the stream did.
 */
#include "fakecuda.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>

/* --- marks --------------------------------------------------------------- */

struct fc_mark *fc_mark_new(unsigned refs)
{
    struct fc_mark *m = fc_new(sizeof(*m));

    atomic_store(&m->refs, refs);
    return m;
}

void fc_mark_unref(struct fc_mark *m)
{
    if (m != NULL && atomic_fetch_sub(&m->refs, 1) == 1)
        free(m); /* the sanitizer saw nobody use it */
}

void fc_mark_set(struct fc_mark *m)
{
    fc_release(m);
    fc_lock(&m->lock);
    m->ns = fc_now_ns();
    m->is_done = true;
    fc_wake(&m->cond);
    fc_unlock(&m->lock);
}

bool fc_mark_test(struct fc_mark *m)
{
    bool is_done;

    fc_lock(&m->lock);
    is_done = m->is_done;
    fc_unlock(&m->lock);
    if (is_done)
        fc_acquire(m);
    return is_done;
}

void fc_mark_wait(struct fc_mark *m)
{
    fc_lock(&m->lock);
    while (!m->is_done)
        fc_wait(&m->cond, &m->lock);
    fc_unlock(&m->lock);
    fc_acquire(m);
}

/* --- the thread ---------------------------------------------------------- */

static void delay(void)
{
    const uint32_t dice = fc_random();

    if (fc_settings.delay_ns > 0 && dice % 4 == 0)
        fc_pause((dice >> 2) % fc_settings.delay_ns);
}

static void memory_back(CUcontext ctx, const struct fc_op *op)
{
    struct fc_block b;

    if (fc_block_take(op->base, &b))
        fc_memory_free(&b);
    fc_lock(&ctx->mlock);
    ctx->ngoing--;
    fc_wake(&ctx->mcond);
    fc_unlock(&ctx->mlock);
}

static void op_run(CUstream s, struct fc_op *op)
{
    const bool is_lost = atomic_load(&s->obj.ctx->sticky) != 0;

    switch (op->kind) {
    case FC_OP_WORK:
        if (!is_lost)
            fc_work_run(&op->work);
        fc_work_fini(&op->work);
        break;
    case FC_OP_RECORD:
        fc_mark_set(op->mark);
        fc_mark_unref(op->mark);
        break;
    case FC_OP_WAIT:
        fc_mark_wait(op->mark);
        fc_mark_unref(op->mark);
        break;
    case FC_OP_PLAN:
        if (!is_lost)
            fc_plan_run(op->plan);
        fc_plan_unref(op->plan);
        break;
    case FC_OP_ALLOC:
        if (fc_block_find((void *)op->base, op->bytes, NULL))
            fc_memory_garbage((void *)op->base, op->bytes);
        break;
    case FC_OP_FREE: memory_back(s->obj.ctx, op); break;
    case FC_OP_STOP: break;
    }
}

static struct fc_op *stream_take(CUstream s)
{
    struct fc_op *op;

    fc_lock(&s->lock);
    while (s->head == NULL)
        fc_wait(&s->cond, &s->lock);
    op = s->head;
    s->head = op->next;
    fc_unlock(&s->lock);
    fc_acquire(op);
    return op;
}

static void *stream_thread(void *arg)
{
    CUstream s = arg;
    CUcontext ctx = s->obj.ctx;

    prctl(PR_SET_TIMERSLACK, 1000UL);
    for (bool goes_on = true; goes_on;) {
        struct fc_op *op = stream_take(s);

        goes_on = op->kind != FC_OP_STOP;
        if (op->kind == FC_OP_WORK || op->kind == FC_OP_PLAN)
            delay();
        op_run(s, op);
        free(op);
        fc_release(s);
        fc_lock(&s->lock);
        s->ndone++;
        fc_wake(&s->cond);
        fc_unlock(&s->lock);
    }
    free(s);
    fc_lock(&ctx->lock);
    ctx->nthreads--;
    fc_wake(&ctx->cond);
    fc_unlock(&ctx->lock);
    return NULL;
}

static CUresult stream_new(CUcontext ctx, unsigned flags, int priority, CUstream *out)
{
    CUstream s = fc_new(sizeof(*s));
    pthread_attr_t attr;
    pthread_t t;
    int rc;

    s->is_blocking = (flags & 1) == 0;
    s->priority = priority;
    fc_obj_add(&s->obj, FC_OBJ_STREAM, ctx);
    fc_lock(&ctx->lock);
    ctx->nthreads++;
    fc_unlock(&ctx->lock);
    pthread_attr_init(&attr);
    pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    rc = pthread_create(&t, &attr, stream_thread, s);
    pthread_attr_destroy(&attr);
    if (rc != 0) {
        fprintf(stderr, "fakecuda: no thread\n");
        abort();
    }
    *out = s;
    return FC_OK;
}

void fc_stream_close(CUstream s)
{
    const struct fc_op stop = {.kind = FC_OP_STOP};

    fc_capture_forget_stream(s);
    fc_obj_remove(&s->obj);
    fc_stream_put(s, &stop);
}

/* --- giving work --------------------------------------------------------- */

static void put(CUstream s, const struct fc_op *op)
{
    struct fc_op *o = fc_new(sizeof(*o));

    *o = *op;
    o->next = NULL;
    fc_release(o);
    fc_lock(&s->lock);
    if (s->head != NULL)
        s->tail->next = o;
    else
        s->head = o;
    s->tail = o;
    s->ngiven++;
    fc_wake(&s->cond);
    fc_unlock(&s->lock);
}

static bool is_idle(CUstream s)
{
    bool idle;

    fc_lock(&s->lock);
    idle = s->ngiven == s->ndone;
    fc_unlock(&s->lock);
    return idle;
}

/* `s` waits for all that `on` has been given. */
static void stream_follow(CUstream s, CUstream on)
{
    struct fc_mark *m = fc_mark_new(2);
    const struct fc_op record = {.kind = FC_OP_RECORD, .mark = m};
    const struct fc_op wait = {.kind = FC_OP_WAIT, .mark = m};

    put(on, &record);
    put(s, &wait);
}

/* The stream 0 and the blocking ones wait for each other. */
static void stream_legacy(CUstream s)
{
    CUcontext ctx = s->obj.ctx;

    fc_lock(&ctx->lock);
    if (s != ctx->null && ctx->null != NULL && !is_idle(ctx->null))
        stream_follow(s, ctx->null);
    for (struct fc_obj *o = ctx->objects; s == ctx->null && o; o = o->next) {
        CUstream other = (void *)o;

        if (o->what == FC_OBJ_STREAM && other != s && other->is_blocking &&
            other->capture == NULL && !is_idle(other))
            stream_follow(s, other);
    }
    fc_unlock(&ctx->lock);
}

void fc_stream_put(CUstream s, const struct fc_op *op)
{
    if (s->is_blocking && op->kind != FC_OP_STOP)
        stream_legacy(s);
    put(s, op);
}

CUresult fc_stream_work(CUstream s, struct fc_work *w)
{
    struct fc_op op = {.kind = FC_OP_WORK};
    bool is_taken;
    const CUresult r = fc_capture_work(s, w, &is_taken);

    if (r != FC_OK || is_taken)
        return r;
    op.work = *w;
    fc_stream_put(s, &op);
    return FC_OK;
}

void fc_stream_wait(CUstream s)
{
    uint64_t n;

    fc_lock(&s->lock);
    n = s->ngiven;
    while (s->ndone < n)
        fc_wait(&s->cond, &s->lock);
    fc_unlock(&s->lock);
    fc_acquire(s);
}

void fc_context_wait(CUcontext ctx)
{
    fc_lock(&ctx->lock);
    for (struct fc_obj *o = ctx->objects; o != NULL; o = o->next)
        if (o->what == FC_OBJ_STREAM)
            fc_stream_wait((void *)o);
    fc_unlock(&ctx->lock);
}

static CUstream null_stream(CUcontext ctx)
{
    static struct fc_lock lock;
    CUstream s;

    fc_lock(&lock);
    if (ctx->null == NULL)
        stream_new(ctx, 0, 0, &ctx->null);
    s = ctx->null;
    fc_unlock(&lock);
    return s;
}

CUresult fc_stream_of(CUstream h, CUcontext *ctx_out, CUstream *stream_out)
{
    CUresult r;

    /* 0, and CU_STREAM_LEGACY */
    if (h == NULL || (uintptr_t)h == 1) {
        r = fc_enter(ctx_out);
        if (r == FC_OK)
            *stream_out = null_stream(*ctx_out);
        return r;
    }
    *stream_out = h;
    return fc_enter_obj(ctx_out, h, FC_OBJ_STREAM);
}

CUresult fakecuda_host_call(CUstream h, fakecuda_fn fn, const void *arg, size_t bytes)
{
    struct fc_work w = {.kind = FC_WORK_CALL, .u.call = fn};
    CUcontext ctx;
    CUstream s;
    CUresult r = fc_stream_of(h, &ctx, &s);

    if (r == FC_OK)
        r = fc_fail(ctx, FC_FAIL_LAUNCH);
    if (r != FC_OK)
        return r;
    w.ctx = s->obj.ctx;
    w.blob = fc_new(bytes);
    w.blob_bytes = bytes;
    memcpy(w.blob, arg, bytes);
    return fc_stream_work(s, &w);
}

/* --- streams of the API -------------------------------------------------- */

CU(cuStreamCreateWithPriority, CUstream *out, unsigned flags, int priority)
{
    CUcontext ctx;
    const CUresult r = fc_enter(&ctx);

    if (r != FC_OK)
        return r;
    return flags > 1 ? FC_EVALUE : stream_new(ctx, flags, priority, out);
}

CU(cuStreamCreate, CUstream *out, unsigned flags)
{
    return cuStreamCreateWithPriority(out, flags, 0);
}

CU(cuStreamDestroy_v2, CUstream h)
{
    CUcontext ctx;
    const CUresult r = fc_enter_obj(&ctx, h, FC_OBJ_STREAM);

    if (r == FC_OK)
        fc_stream_close(h);
    return r;
}

CU(cuStreamSynchronize, CUstream h)
{
    CUcontext ctx;
    CUstream s;
    CUresult r = fc_stream_of(h, &ctx, &s);

    if (r == FC_OK)
        r = fc_capture_refuse(s);
    if (r == FC_OK)
        r = fc_capture_unsafe();
    if (r != FC_OK)
        return r;
    fc_stream_wait(s);
    return (CUresult)atomic_load(&s->obj.ctx->sticky);
}

CU(cuStreamQuery, CUstream h)
{
    CUcontext ctx;
    CUstream s;
    CUresult r = fc_stream_of(h, &ctx, &s);

    if (r == FC_OK)
        r = fc_capture_refuse(s);
    if (r == FC_OK)
        r = fc_capture_unsafe();
    if (r != FC_OK)
        return r;
    if (!is_idle(s))
        return FC_ENOTREADY;
    fc_acquire(s);
    return (CUresult)atomic_load(&s->obj.ctx->sticky);
}

CU(cuStreamGetPriority, CUstream h, int *out)
{
    CUcontext ctx;
    CUstream s;
    const CUresult r = fc_stream_of(h, &ctx, &s);

    if (r == FC_OK)
        *out = s->priority;
    return r;
}

CU(cuStreamGetCtx, CUstream h, CUcontext *out)
{
    CUcontext ctx;
    CUstream s;
    const CUresult r = fc_stream_of(h, &ctx, &s);

    if (r == FC_OK)
        *out = s->obj.ctx;
    return r;
}

struct host_fn {
    void (*fn)(void *);
    void *user;
};

static void host_fn_call(CUcontext ctx, void *arg)
{
    const struct host_fn *h = arg;

    (void)ctx;
    h->fn(h->user);
}

CU(cuLaunchHostFunc, CUstream h, void (*fn)(void *), void *user)
{
    const struct host_fn arg = {fn, user};

    if (fn == NULL)
        return FC_EVALUE;
    return fakecuda_host_call(h, host_fn_call, &arg, sizeof(arg));
}

CU(cuStreamWaitEvent, CUstream h, CUevent e, unsigned flags)
{
    struct fc_op op = {.kind = FC_OP_WAIT};
    CUcontext ctx;
    CUstream s;
    bool is_taken;
    CUresult r = fc_stream_of(h, &ctx, &s);

    if (r == FC_OK)
        r = fc_enter_obj(&ctx, e, FC_OBJ_EVENT);
    if (r != FC_OK)
        return r;
    if (flags != 0)
        return FC_ENOTSUPPORTED;
    r = fc_capture_wait(s, e, &is_taken);
    if (r != FC_OK || is_taken)
        return r;
    fc_lock(&e->lock);
    op.mark = e->mark;
    if (op.mark != NULL)
        atomic_fetch_add(&op.mark->refs, 1);
    fc_unlock(&e->lock);
    if (op.mark != NULL)
        fc_stream_put(s, &op);
    return FC_OK;
}

/* --- events -------------------------------------------------------------- */

enum { EVENT_NO_TIME = 2, EVENT_FLAGS = 7 };

CU(cuEventCreate, CUevent *out, unsigned flags)
{
    CUcontext ctx;
    CUresult r = fc_enter(&ctx);

    if (r == FC_OK)
        r = fc_fail(ctx, FC_FAIL_EVENT);
    if (r != FC_OK)
        return r;
    if (flags > EVENT_FLAGS)
        return FC_EVALUE;
    *out = fc_new(sizeof(**out));
    (*out)->flags = flags;
    fc_obj_add(&(*out)->obj, FC_OBJ_EVENT, ctx);
    return FC_OK;
}

void fc_event_close(CUevent e)
{
    fc_capture_forget_event(e);
    fc_obj_remove(&e->obj);
    fc_mark_unref(e->mark);
    free(e);
}

CU(cuEventDestroy_v2, CUevent e)
{
    CUcontext ctx;
    const CUresult r = fc_enter_obj(&ctx, e, FC_OBJ_EVENT);

    if (r == FC_OK)
        fc_event_close(e);
    return r;
}

CU(cuEventRecord, CUevent e, CUstream h)
{
    struct fc_op op = {.kind = FC_OP_RECORD};
    struct fc_mark *old;
    CUcontext ctx;
    CUstream s;
    bool is_taken;
    CUresult r = fc_stream_of(h, &ctx, &s);

    if (r == FC_OK)
        r = fc_enter_obj(&ctx, e, FC_OBJ_EVENT);
    if (r == FC_OK && e->obj.ctx != s->obj.ctx)
        r = FC_EHANDLE;
    if (r == FC_OK)
        r = fc_fail(ctx, FC_FAIL_EVENT);
    if (r == FC_OK)
        r = fc_capture_record(s, e, &is_taken);
    if (r != FC_OK || is_taken)
        return r;
    op.mark = fc_mark_new(2);
    fc_lock(&e->lock);
    old = e->mark;
    e->mark = op.mark;
    fc_unlock(&e->lock);
    fc_mark_unref(old);
    fc_stream_put(s, &op);
    return FC_OK;
}

/* The mark of the last record, for the caller to give back; NULL: none. */
static CUresult event_mark(CUevent e, struct fc_mark **out)
{
    CUcontext ctx;
    CUresult r = fc_enter_obj(&ctx, e, FC_OBJ_EVENT);

    if (r == FC_OK)
        r = fc_capture_event(e);
    if (r == FC_OK)
        r = fc_capture_unsafe();
    if (r != FC_OK)
        return r;
    fc_lock(&e->lock);
    *out = e->mark;
    if (*out != NULL)
        atomic_fetch_add(&(*out)->refs, 1);
    fc_unlock(&e->lock);
    return FC_OK;
}

CU(cuEventQuery, CUevent e)
{
    struct fc_mark *m = NULL;
    CUresult r = event_mark(e, &m);

    if (r != FC_OK)
        return r;
    if (m != NULL && !fc_mark_test(m))
        r = FC_ENOTREADY;
    fc_mark_unref(m);
    /* Lost before it came to the record? */
    return atomic_load(&e->obj.ctx->sticky) != 0 ? (CUresult)atomic_load(&e->obj.ctx->sticky) : r;
}

CU(cuEventSynchronize, CUevent e)
{
    struct fc_mark *m = NULL;
    const CUresult r = event_mark(e, &m);

    if (r != FC_OK)
        return r;
    if (m != NULL)
        fc_mark_wait(m);
    fc_mark_unref(m);
    return (CUresult)atomic_load(&e->obj.ctx->sticky);
}

CU(cuEventElapsedTime, float *ms_out, CUevent begin, CUevent end)
{
    struct fc_mark *a = NULL, *b = NULL;
    CUresult r = event_mark(begin, &a);

    if (r == FC_OK)
        r = event_mark(end, &b);
    if (r == FC_OK &&
        (a == NULL || b == NULL || ((begin->flags | end->flags) & EVENT_NO_TIME) != 0 ||
         begin->obj.ctx != end->obj.ctx))
        r = FC_EHANDLE;
    if (r == FC_OK && (!fc_mark_test(a) || !fc_mark_test(b)))
        r = FC_ENOTREADY;
    if (r == FC_OK)
        *ms_out = (float)((double)(int64_t)(b->ns - a->ns) * 1e-6);
    fc_mark_unref(a);
    fc_mark_unref(b);
    return r;
}

CU(cuEventElapsedTime_v2, float *ms_out, CUevent begin, CUevent end)
{
    return cuEventElapsedTime(ms_out, begin, end);
}
