/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * error: the first failure of a context and its sentence.
 *
 * Invariants (1) the function that decides which error it is calls this once;
 *                functions that only return its status do not
 *            (2) the first failure of a task stays until a wait has returned it;
 *                until then refused calls do not replace it
 *            (3) a task that did not run because data or an event had failed before
 *                counts only while there is no failure: then the next wait returns
 *                HEDDLE_ECANCELED, with the sentence of the first cause
 * Threads    ctx->lock guards ctx->error; the message callback runs without it.
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/compiler.h"
#include "base/lock.h"
#include "base/sized.h"
#include "core/ctx.h"
#include "core/error.h"
#include "core/exec.h"
#include "core/kinfo.h"
#include "core/outside.h"
#include "core/worker.h"
#include "data/data.h"

/*
 * The failure of a task, or of something else that the next wait returns (is_waited), goes
 * before everything but an earlier one. A refused call was told to its caller, so the
 * latest of these is of interest, and only while no failure waits.
 */
static void error_keep(heddle_ctx *ctx, const struct heddle_error *e, bool is_waited)
{
    const struct worker *w = is_waited ? NULL : heddle_ctx_self(ctx);

    heddle_mutex_lock(&ctx->lock);
    if (ctx->waited == HEDDLE_OK || (is_waited && ctx->is_missing)) {
        ctx->error = *e;
        ctx->is_refusal = !is_waited;
        ctx->refused_in = w != NULL ? w->current->id : 0;
        if (is_waited) {
            ctx->waited = e->status;
            ctx->is_missing = false;
            snprintf(ctx->cause, sizeof(ctx->cause), "%s", e->message);
        }
    }
    snprintf(ctx->untold, sizeof(ctx->untold), "%s", e->message);
    heddle_mutex_unlock(&ctx->lock);
}

void heddle_tell(heddle_ctx *ctx)
{
    char text[sizeof(ctx->untold)];

    if (ctx->message == NULL)
        return;
    heddle_mutex_lock(&ctx->lock);
    memcpy(text, ctx->untold, sizeof(text));
    ctx->untold[0] = '\0';
    heddle_mutex_unlock(&ctx->lock);
    if (text[0] != '\0')
        ctx->message(ctx->message_user, HEDDLE_ERROR, text);
}

static void error_vkeep(heddle_ctx *ctx, heddle_status st, bool is_waited, const char *fmt,
                        va_list ap)
{
    struct heddle_error e = {.size = sizeof(e), .status = st};

    vsnprintf(e.message, sizeof(e.message), fmt, ap);
    error_keep(ctx, &e, is_waited);
}

heddle_status heddle_take(heddle_ctx *ctx, const char *name, void *to, size_t known,
                          const void *from)
{
    char why[200];
    const heddle_status st = heddle_sized_get(name, to, known, from, why, sizeof(why));

    return st == HEDDLE_OK ? HEDDLE_OK : heddle_refuse(ctx, st, "%s", why);
}

heddle_status heddle_may_fill(heddle_ctx *ctx, const char *name, const void *out, size_t known)
{
    char why[200];
    const heddle_status st = heddle_sized_room(name, out, known, sizeof(size_t), why, sizeof(why));

    return st == HEDDLE_OK ? HEDDLE_OK : heddle_fail(ctx, st, "%s", why);
}

heddle_status heddle_refuse(heddle_ctx *ctx, heddle_status st, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    error_vkeep(ctx, st, false, fmt, ap);
    va_end(ap);
    return st;
}

heddle_status heddle_fail(heddle_ctx *ctx, heddle_status st, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    error_vkeep(ctx, st, false, fmt, ap);
    va_end(ap);
    heddle_tell(ctx);
    return st;
}

heddle_status heddle_fail_data(heddle_ctx *ctx, heddle_status st, const heddle_handle *h)
{
    char name[64], cause[sizeof(ctx->cause)];

    heddle_mutex_lock(&ctx->lock);
    memcpy(cause, ctx->cause, sizeof(cause));
    heddle_mutex_unlock(&ctx->lock);
    return heddle_fail(ctx, st, "%s was not computed: %.200s",
                       heddle_unit_name(h, name, sizeof(name)),
                       cause[0] != '\0' ? cause : heddle_status_text(st));
}

void heddle_fail_wait(heddle_ctx *ctx, heddle_status st, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    error_vkeep(ctx, st, true, fmt, ap);
    va_end(ap);
    heddle_tell(ctx);
}

void heddle_report(heddle_ctx *ctx, enum heddle_severity severity, const char *fmt, ...)
{
    char text[512];
    va_list ap;

    if (ctx->message == NULL)
        return;
    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    ctx->message(ctx->message_user, severity, text);
}

/* Everything but the sentence. */
static void error_of_task(struct heddle_exec *x, heddle_status st, struct heddle_error *e)
{
    const char *name = x->slow != NULL ? x->slow->name : NULL;

    *e = (struct heddle_error){.size = sizeof(*e), .status = st, .task = x->id};
    snprintf(e->task_name, sizeof(e->task_name), "%s", name != NULL ? name : "");
    snprintf(e->kernel, sizeof(e->kernel), "%s", x->kinfo->kernel->name);
}

static void error_task(struct heddle_exec *x, heddle_status st, const char *why)
{
    struct heddle_error e;
    const char *name = x->slow != NULL ? x->slow->name : NULL;
    const char *kernel = x->kinfo->kernel->name;

    error_of_task(x, st, &e);
    if (name != NULL)
        snprintf(e.message, sizeof(e.message), "task %s (kernel %s) failed: %s", name, kernel, why);
    else
        snprintf(e.message, sizeof(e.message), "task %llu (kernel %s) failed: %s",
                 (unsigned long long)x->id, kernel, why);
    error_keep(x->ctx, &e, true);
    heddle_tell(x->ctx);
}

/* Invariant (3). */
static void error_missing(struct heddle_exec *x)
{
    heddle_ctx *ctx = x->ctx;
    struct heddle_error *e = &ctx->error;
    bool is_first;

    heddle_mutex_lock(&ctx->lock);
    is_first = ctx->waited == HEDDLE_OK;
    if (is_first) {
        error_of_task(x, HEDDLE_ECANCELED, e);
        snprintf(e->message, sizeof(e->message), "task %llu (kernel %s) did not run: %.200s",
                 (unsigned long long)x->id, e->kernel,
                 ctx->cause[0] != '\0' ? ctx->cause : "what it needs has failed");
        ctx->waited = HEDDLE_ECANCELED;
        ctx->is_missing = true;
        ctx->is_refusal = false;
        snprintf(ctx->untold, sizeof(ctx->untold), "%s", e->message);
    }
    heddle_mutex_unlock(&ctx->lock);
    if (is_first)
        heddle_tell(ctx);
}

/* The sentence of the call that the task made last, if it was refused with this status:
 * the task passes it on. Else "". */
static void error_of_call(struct heddle_exec *x, heddle_status st, char *why, size_t bytes)
{
    heddle_ctx *ctx = x->ctx;

    heddle_mutex_lock(&ctx->lock);
    if (ctx->is_refusal && ctx->refused_in == x->id && ctx->error.status == st)
        snprintf(why, bytes, "%s", ctx->error.message);
    heddle_mutex_unlock(&ctx->lock);
}

void heddle_fail_task(struct heddle_exec *x, heddle_status st)
{
    char call[sizeof(x->ctx->error.message)] = "";
    const char *why = heddle_status_text(st);

    if (st == HEDDLE_ECANCELED && x->slow != NULL && x->slow->is_skipped) {
        if (x->slow->is_missing)
            error_missing(x);
        return; /* a consequence: the cause has its own sentence */
    }
    error_of_call(x, st, call, sizeof(call));
    if (x->slow != NULL && x->slow->message[0] != '\0')
        why = x->slow->message;
    else if (call[0] != '\0')
        why = call;
    error_task(x, st, why);
}

heddle_status heddle_exec_fail(struct heddle_exec *x, heddle_status st, const char *message)
{
    if (x == NULL || st >= HEDDLE_OK)
        return st;
    if (message == NULL)
        message = heddle_status_text(st);
    if (x->slow != NULL)
        snprintf(x->slow->message, sizeof(x->slow->message), "%s", message);
    else
        error_task(x, st, message); /* a plain task keeps no message */
    return st;
}

heddle_status heddle_ctx_error(heddle_ctx *ctx, struct heddle_error *error_out)
{
    HEDDLE_CHECK(ctx != NULL);
    HEDDLE_TRY(HEDDLE_SIZED_ROOM(struct heddle_error, error_out, NULL, 0));
    heddle_mutex_lock(&ctx->lock);
    heddle_sized_put(error_out, &ctx->error, sizeof(ctx->error));
    heddle_mutex_unlock(&ctx->lock);
    return HEDDLE_OK;
}
