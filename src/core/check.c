/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * check: does a task touch what it declared, as it declared it?
 *
 * Structure  A checked body works on copies of its operands ("shadows"), which
 *            keep the strides and the alignment of the originals. Random bytes
 *            lie before, behind and between the elements; an operand that is
 *            only written starts as random bytes as well, as NaNs where the
 *            type has them. After the body the shadow is compared with its
 *            image, the same bytes as they were lent, and goes back to the
 *            original. Of all arrays of the context a hash is taken before and
 *            after the body. So these are found: writes next to an operand,
 *            writes to a read-only operand, outputs that were left unwritten,
 *            and writes to data that were not declared, or not through
 *            heddle_exec_ptr().
 *            Children work on the originals: the shadows go back before a child
 *            is submitted and are read again when the children have ended.
 * Invariants (1) between a flush and the next change by the body, shadow and
 *                image agree in every element; what differs was written since
 *            (2) bytes that are no element never change in the image
 *            (3) an original is written only after the hashes were compared
 * Limits     Reads are not seen. Operands of one task that are different units
 *            and overlap, and those past the first HEDDLE_KERNEL_OPERANDS, have
 *            no shadow; a whole array is then taken as declared if one of them
 *            may write to it. Data that the program has acquired, and memory of
 *            a handle that it has let go, are not looked at. Reductions and
 *            scratch operands have private memory anyway.
 * Threads    the worker that runs the body, the only one of the context. Other
 *            threads make and drop handles meanwhile: the registry's lock is
 *            held where its list is walked.
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/atomic.h"
#include "base/compiler.h"
#include "base/lock.h"
#include "base/mode.h"
#include "base/spin.h"
#include "base/why.h"
#include "core/check.h"
#include "core/ctx.h"
#include "core/exec.h"
#include "core/shadow.h"
#include "core/worker.h"
#include "data/data.h"

enum {
    GUARD = 256, /* random bytes before and behind; a multiple of ALIGN */
    ALIGN = 64,  /* up to this the shadow is aligned like the original */
};

/* An array as it was before the body. */
struct print {
    uint32_t id;
    uint64_t hash;
};

struct check {
    struct shadow shadow[HEDDLE_KERNEL_OPERANDS];
    struct print *print; /* descending ids, as in the list of units */
    size_t nprints, cap;
    uint64_t epoch; /* tasks that had ended when the prints were taken */
    bool is_stale;  /* another body has run on this stack since */
    bool is_lent;   /* children may use the operands */
    bool has_lent;
    bool is_bad;
    char why[sizeof(((struct exec_slow *)0)->message)];
};

/* The first fault is the one to report: the others may follow from it. */
HEDDLE_PRINTF(2, 3)
static void check_blame(struct check *c, const char *fmt, ...)
{
    va_list ap;

    if (c->is_bad)
        return;
    c->is_bad = true;
    va_start(ap, fmt);
    (void)heddle_why_va(c->why, sizeof(c->why), HEDDLE_OK, fmt, ap);
    va_end(ap);
}

/* --- hashes of everything ------------------------------------------------- */

/* Grows whenever a task ends anywhere: then other data may have changed. */
static uint64_t check_epoch(heddle_ctx *ctx)
{
    uint64_t n = 0;

    /* Acquire: a release of data, seen here, has happened. */
    for (unsigned i = 0; i <= ctx->nworkers; i++)
        n += heddle_load_acq(&ctx->worker[i].done);
    return n;
}

static bool unit_is_acquired(heddle_handle *h)
{
    bool is_acquired;

    heddle_spin_lock(&h->extra.lock);
    is_acquired = h->extra.acquired != NULL;
    heddle_spin_unlock(&h->extra.lock);
    return is_acquired;
}

/* Its memory is there, and only tasks that declare it write it. A task may do
 * as it likes with data it has registered itself. Registry lock held. */
static bool root_is_guarded(heddle_handle *h, uint64_t task)
{
    if (h->root != h || (task != 0 && h->creator == task) || heddle_load_acq(&h->base) == NULL)
        return false;
    /* Acquire: who dropped the last reference may free its memory. */
    if (!h->owns_memory && heddle_load_acq(&h->refs) == 0)
        return false;
    for (uint32_t i = 0; i < heddle_unit_noverlaps(h); i++)
        if (unit_is_acquired(h->overlap[i]))
            return false;
    return !unit_is_acquired(h);
}

/* May the body write to this array through an operand without a shadow? */
static bool root_is_open(const struct heddle_exec *x, const struct check *c,
                         const heddle_handle *root)
{
    for (unsigned i = 0; i < x->nops; i++) {
        bool has_shadow = false;

        if (x->op[i]->root != root || !heddle_mode_writes(x->mode[i]))
            continue;
        for (unsigned k = 0; k < HEDDLE_KERNEL_OPERANDS; k++)
            has_shadow = has_shadow || c->shadow[k].unit == x->op[i];
        if (!has_shadow)
            return true;
    }
    return false;
}

static size_t prints_count(struct heddle_registry *reg)
{
    size_t n = 0;

    heddle_mutex_lock(&reg->lock);
    for (heddle_handle *h = reg->units; h != NULL; h = h->next)
        n += h->root == h;
    heddle_mutex_unlock(&reg->lock);
    return n;
}

static heddle_status prints_take(struct heddle_exec *x, struct check *c)
{
    struct heddle_registry *reg = &x->ctx->reg;
    const size_t need = prints_count(reg);

    c->nprints = 0;
    if (need > c->cap) {
        heddle_free(&x->ctx->alloc, c->print, c->cap * sizeof(*c->print));
        c->print = heddle_zalloc(&x->ctx->alloc, need, sizeof(*c->print));
        c->cap = c->print == NULL ? 0 : need;
        if (c->print == NULL)
            return HEDDLE_ENOMEM;
    }
    c->is_stale = false;
    c->epoch = check_epoch(x->ctx);
    heddle_mutex_lock(&reg->lock);
    for (heddle_handle *h = reg->units; h != NULL && c->nprints < c->cap; h = h->next)
        if (root_is_guarded(h, x->id) && !root_is_open(x, c, h))
            c->print[c->nprints++] = (struct print){
                .id = h->id, .hash = heddle_shadow_hash(&h->layout, heddle_load_acq(&h->base))};
    heddle_mutex_unlock(&reg->lock);
    return HEDDLE_OK;
}

static void root_blame(const struct heddle_exec *x, struct check *c, const heddle_handle *root)
{
    char buf[32];
    const char *kind = root->name != NULL ? "handle " : "";
    const char *name = heddle_unit_name(root, buf, sizeof(buf));

    for (unsigned i = 0; i < x->nops; i++)
        if (x->op[i]->root == root) {
            check_blame(c,
                        "changed %s%s, which holds its operand %u, but not "
                        "through heddle_exec_ptr()",
                        kind, name, i);
            return;
        }
    check_blame(c, "changed %s%s, which it did not declare", kind, name);
}

static void prints_compare(struct heddle_exec *x, struct check *c)
{
    struct heddle_registry *reg = &x->ctx->reg;
    size_t i = 0;

    if (c->is_stale || c->epoch != check_epoch(x->ctx))
        return; /* others may have written as well */
    heddle_mutex_lock(&reg->lock);
    for (heddle_handle *h = reg->units; h != NULL; h = h->next) {
        while (i < c->nprints && c->print[i].id > h->id)
            i++; /* gone meanwhile */
        if (i == c->nprints)
            break;
        if (c->print[i].id == h->id && root_is_guarded(h, x->id) &&
            c->print[i].hash != heddle_shadow_hash(&h->layout, heddle_load_acq(&h->base)))
            root_blame(x, c, h);
    }
    heddle_mutex_unlock(&reg->lock);
}

/* --- operands ------------------------------------------------------------- */

/* Can operand i have a shadow? Not if the body can reach its elements through
 * an operand that has another one, or none. */
static bool operand_is_separate(const struct heddle_exec *x, unsigned i)
{
    const heddle_handle *h = x->op[i];

    for (unsigned k = 0; k < x->nops; k++) {
        const heddle_handle *o = x->op[k];

        if (heddle_mode_is_private(x->mode[k]))
            continue;
        if (o == h
                ? k >= HEDDLE_KERNEL_OPERANDS
                : o->root == h->root && heddle_box_overlap(&o->box, &h->box, h->root->layout.ndim))
            return false;
    }
    return true;
}

static size_t layout_span(const struct heddle_layout *l)
{
    size_t last = 0;

    for (unsigned d = 0; d < l->ndim; d++)
        last += (l->extent[d] - 1) * l->stride[d];
    return (last + 1) * heddle_dtype_bytes(l->dtype);
}

static heddle_status shadow_make(struct heddle_exec *x, struct shadow *s, unsigned i)
{
    heddle_handle *h = x->op[i];
    const uintptr_t base = (uintptr_t)heddle_unit_base(h);
    const size_t first = GUARD + base % ALIGN;
    bool reads = false, writes = false;

    for (unsigned k = 0; k < x->nops; k++) {
        reads = reads || (x->op[k] == h && heddle_mode_reads(x->mode[k]));
        writes = writes || (x->op[k] == h && heddle_mode_writes(x->mode[k]));
    }
    s->first = first;
    /* Spans of layouts are far below SIZE_MAX / 2 (data). */
    s->bytes = (first + layout_span(&h->layout) + GUARD + 7) & ~(size_t)7;
    s->can_write = writes;
    s->is_output = !reads;
    s->buf = heddle_alloc_aligned(&x->ctx->alloc, 2 * s->bytes, ALIGN);
    if (s->buf == NULL)
        return HEDDLE_ENOMEM;
    s->unit = h;
    s->image = s->buf + s->bytes;
    heddle_shadow_fill(s, x->id << 8 | i);
    memcpy(s->image, s->buf, s->bytes);
    if (!s->is_output)
        heddle_shadow_read(s);
    x->slow->ptr[i] = s->buf + s->first;
    return HEDDLE_OK;
}

/* A unit that stands twice has one shadow, at its first place. */
static heddle_status check_lend_operand(struct heddle_exec *x, struct check *c, unsigned i)
{
    if (heddle_mode_is_private(x->mode[i]) || !operand_is_separate(x, i))
        return HEDDLE_OK;
    for (unsigned k = 0; k < i; k++)
        if (c->shadow[k].unit == x->op[i]) {
            x->slow->ptr[i] = x->slow->ptr[k];
            return HEDDLE_OK;
        }
    return shadow_make(x, &c->shadow[i], i);
}

static void check_operand(struct check *c, unsigned i, heddle_status st)
{
    const struct shadow *s = &c->shadow[i];
    const size_t n = s->unit->count, same = heddle_shadow_unchanged(s);
    char buf[32];
    const char *name = heddle_unit_name(s->unit, buf, sizeof(buf));

    if (!heddle_shadow_is_tight(s))
        check_blame(c, "wrote outside of operand %u (%s)", i, name);
    if (!s->can_write && same != n)
        check_blame(c, "wrote operand %u (%s), which it declared read-only", i, name);
    if (s->is_output && st == HEDDLE_OK && !c->has_lent && same > heddle_shadow_luck(s->unit))
        check_blame(c,
                    "left %soperand %u (%s) unwritten%s, which it declared as "
                    "output",
                    same < n ? "part of " : "", i, name,
                    heddle_shadow_float(s->unit->layout.dtype) != 0 ? " or added to its old value"
                                                                    : "");
}

/* The original of an operand gets what the body wrote. */
static void check_give_back(struct check *c, struct shadow *s, heddle_status st)
{
    if (!s->can_write)
        return;
    /* An output is stored whole: a written element may be equal to its image.
     * Not so when parts of it are known or likely to be unwritten. */
    if (s->is_output && st == HEDDLE_OK && !c->has_lent && !c->is_bad)
        heddle_shadow_store(s);
    else
        heddle_shadow_flush(s);
}

static void check_free(struct heddle_exec *x, struct check *c)
{
    const struct heddle_allocator *a = &x->ctx->alloc;

    for (unsigned i = 0; i < HEDDLE_KERNEL_OPERANDS; i++) {
        if (i < x->nops && !heddle_mode_is_private(x->mode[i]))
            x->slow->ptr[i] = NULL;
        heddle_free(a, c->shadow[i].buf, 2 * c->shadow[i].bytes);
    }
    heddle_free(a, c->print, c->cap * sizeof(*c->print));
    heddle_free(a, c, sizeof(*c));
    x->slow->check = NULL;
}

heddle_status heddle_check_before(struct heddle_exec *x, void **state_out)
{
    struct check *c = heddle_zalloc(&x->ctx->alloc, 1, sizeof(*c));
    heddle_status st = c == NULL ? HEDDLE_ENOMEM : HEDDLE_OK;

    for (unsigned i = 0; st == HEDDLE_OK && i < x->nops && i < HEDDLE_KERNEL_OPERANDS; i++)
        st = check_lend_operand(x, c, i);
    if (st == HEDDLE_OK)
        st = prints_take(x, c);
    if (st != HEDDLE_OK) {
        snprintf(x->slow->message, sizeof(x->slow->message),
                 "no memory for the access checker's copies");
        if (c != NULL)
            check_free(x, c);
        return st;
    }
    x->slow->check = c;
    *state_out = c;
    return HEDDLE_OK;
}

heddle_status heddle_check_after(struct heddle_exec *x, void *state, heddle_status st)
{
    struct check *c = state;

    if (st == HEDDLE_AGAIN) { /* it did not run */
        check_free(x, c);
        return st;
    }
    if (!c->is_lent)
        prints_compare(x, c); /* invariant (3) */
    for (unsigned i = 0; i < HEDDLE_KERNEL_OPERANDS; i++)
        if (c->shadow[i].unit != NULL)
            check_operand(c, i, st);
    for (unsigned i = 0; i < HEDDLE_KERNEL_OPERANDS; i++)
        if (c->shadow[i].unit != NULL)
            check_give_back(c, &c->shadow[i], st);
    /* The bodies below on this stack did not write this. */
    for (struct heddle_exec *o = x->worker->current; o != NULL; o = o->outer)
        if (o != x && o->slow != NULL && o->slow->check != NULL)
            ((struct check *)o->slow->check)->is_stale = true;
    if (c->is_bad) {
        memcpy(x->slow->message, c->why, sizeof(c->why));
        st = HEDDLE_EACCESS;
    }
    check_free(x, c);
    return st;
}

void heddle_check_lend(struct heddle_exec *x, bool is_return)
{
    struct check *c = x->slow->check;

    if (is_return && !c->is_lent)
        return;
    if (!c->is_lent)
        prints_compare(x, c); /* invariant (3) */
    for (unsigned i = 0; i < HEDDLE_KERNEL_OPERANDS; i++) {
        struct shadow *s = &c->shadow[i];

        if (s->unit == NULL || !s->can_write)
            continue;
        if (s->is_output && !c->has_lent && !heddle_shadow_is_untouched(s))
            heddle_shadow_store(s);
        else
            heddle_shadow_flush(s);
        if (is_return)
            heddle_shadow_read(s);
    }
    c->is_lent = !is_return;
    c->has_lent = true;
    /* Without memory for the hashes the rest of the body goes unwatched. */
    if (is_return && prints_take(x, c) != HEDDLE_OK)
        c->nprints = 0;
}
