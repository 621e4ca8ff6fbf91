/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fuzz/check: the program in plain memory, and the comparison.
 *
 * Invariants (1) a task that ended well read nothing that is marked, and did to
 *                the data what the oracle does now
 *            (2) a task that did not had a reason: it was meant to fail, a
 *                failure was injected, it would have read what is marked, or a
 *                device was lost
 *            (3) copies and allocations that fail, and devices that slow down,
 *                are no reason
 *            (4) bytes between elements are never touched
 */
#include <string.h>

#include "base/atomic.h"
#include "fuzz/fuzz.h"

struct check {
    struct fuzz_run *r;
    struct fuzz_prog *p;
    unsigned nfailed; /* by injected failures, or so it must be */
};

/* A unit as the oracle sees it. */
struct spot {
    const struct fuzz_unit *root;
    struct heddle_layout layout; /* strides in the root's memory */
    size_t offset;
};

static struct spot spot_of(struct check *c, int unit)
{
    const struct fuzz_unit *u = &c->p->unit[unit];

    return (struct spot){.root = &c->p->unit[u->root], .layout = u->layout, .offset = u->offset};
}

static struct spot spot_part(const struct spot *s, const struct fuzz_box *b)
{
    struct spot part = *s;

    for (unsigned d = 0; d < s->layout.ndim; d++) {
        part.offset += b->first[d] * s->layout.stride[d];
        part.layout.extent[d] = b->extent[d];
        part.layout.stride[d] *= b->step[d];
    }
    return part;
}

static size_t spot_count(const struct spot *s)
{
    size_t n = 1;

    for (unsigned d = 0; d < s->layout.ndim; d++)
        n *= s->layout.extent[d];
    return n;
}

static struct fuzz_mem spot_mem(const struct spot *s, enum heddle_mode mode)
{
    return (struct fuzz_mem){.ptr = s->root->want + s->offset * heddle_dtype_bytes(s->layout.dtype),
                             .layout = &s->layout,
                             .mode = mode};
}

/* --- flags of elements --------------------------------------------------- */

/* Goes on to the next element; false: there is none. */
static bool spot_next(const struct spot *s, size_t index[HEDDLE_MAX_DIMS], size_t *at)
{
    for (unsigned d = s->layout.ndim; d-- > 0;) {
        *at += s->layout.stride[d];
        if (++index[d] < s->layout.extent[d])
            return true;
        *at -= s->layout.extent[d] * s->layout.stride[d];
        index[d] = 0;
    }
    return false;
}

/* All flags together; then those in `clear` go and those in `set` come. */
static unsigned spot_flags(const struct spot *s, unsigned clear, unsigned set)
{
    size_t index[HEDDLE_MAX_DIMS] = {0}, at = s->offset;
    unsigned all = 0;

    do {
        unsigned char *flag = &s->root->flag[at];

        all |= *flag;
        *flag = (unsigned char)((*flag & ~clear) | set);
    } while (spot_next(s, index, &at));
    return all;
}

/* --- tasks --------------------------------------------------------------- */

/* What a task reads is marked for sure, or perhaps, or unknown. */
static unsigned task_sees(struct check *c, const struct fuzz_task *t, const struct spot *s,
                          bool with_open)
{
    unsigned flags = 0;

    if (!c->p->config.has_faults)
        return 0;
    for (unsigned i = 0; i < t->nops; i++)
        /* A child reads what its parent overwrites: the mark is still there. */
        if ((fuzz_reads(t->mode[i]) || (with_open && t->nchildren > 0)) &&
            (with_open || !heddle_mode_is_in_turn(t->mode[i])))
            flags |= spot_flags(&s[i], 0, 0);
    return flags;
}

static void task_fails(const struct fuzz_task *t, const struct spot *s, unsigned flags)
{
    for (unsigned i = 0; i < t->nops; i++)
        if (fuzz_writes(t->mode[i]))
            spot_flags(&s[i], FLAG_MUST, flags);
}

static void task_mix(struct check *c, const struct fuzz_task *t, const struct spot *s,
                     uint64_t salt)
{
    struct fuzz_mem mem[FUZZ_OPERANDS];
    unsigned n = 0;
    bool is_unknown;

    is_unknown = (task_sees(c, t, s, false) & FLAG_UNKNOWN) != 0;
    for (unsigned i = 0; i < t->nops && c->p->config.has_faults; i++) {
        const bool is_whole = spot_count(&s[i]) == s[i].root->count;

        if (!fuzz_writes(t->mode[i]))
            continue;
        if (heddle_mode_combines(t->mode[i]) && (spot_flags(&s[i], 0, 0) & FLAG_MAY) != 0)
            spot_flags(&s[i], 0, FLAG_UNKNOWN | FLAG_MAY); /* as a whole */
        if (heddle_mode_overwrites(t->mode[i]))            /* the mark goes */
            spot_flags(&s[i], FLAG_UNKNOWN | FLAG_MUST | (is_whole ? FLAG_MAY : 0), 0);
        if (is_unknown)
            spot_flags(&s[i], 0, FLAG_UNKNOWN);
    }
    for (unsigned i = 0; i < t->nops; i++)
        mem[n++] = spot_mem(&s[i], t->mode[i]);
    /* Scratch is not the handle's memory. The index of an operand counts. */
    for (unsigned i = 0; i < n; i++)
        if (heddle_mode_is_scratch(mem[i].mode))
            mem[i] = (struct fuzz_mem){.mode = (enum heddle_mode)0};
    (void)fuzz_mix(mem, n, salt);
}

static void task_exec(struct check *c, const struct fuzz_task *t, const struct spot *s,
                      uint64_t salt)
{
    struct spot part[FUZZ_OPERANDS];

    task_mix(c, t, s, salt);
    for (unsigned i = 0; i < t->nchildren; i++) {
        const struct fuzz_task *k = t->child[i];

        for (unsigned n = 0; n < k->nops; n++)
            part[n] = k->is_whole[n] ? s[k->unit[n]] : spot_part(&s[k->unit[n]], &k->part[n]);
        task_mix(c, k, part, k->salt);
    }
}

static bool after_failed(struct check *c, const struct fuzz_task *t)
{
    for (unsigned i = 0; i < t->nafter; i++)
        for (unsigned k = 0; k < c->p->nops; k++) {
            const struct fuzz_op *op = &c->p->op[k];

            if (op->kind == OP_TASK && (int)op->task->id == t->after[i] &&
                heddle_load_rlx(&op->task->status) < 0)
                return true;
        }
    return false;
}

static bool takes_turns(const struct fuzz_task *t)
{
    for (unsigned i = 0; i < t->nops; i++)
        if (heddle_mode_is_in_turn(t->mode[i]))
            return true;
    return false;
}

/* Why did it fail? */
static void check_failure(struct check *c, const struct fuzz_task *t, const struct spot *s,
                          heddle_status st)
{
    const struct fuzz_config *f = &c->p->config;
    const unsigned sees = task_sees(c, t, s, true);

    if (c->r->is_lost)
        return; /* whatever was there alone is lost */
    if (st == HEDDLE_ETASK) {
        if (t->fail_runs > t->retries)
            return;
        c->nfailed++;
        /* Its own failures and injected ones share its retries. */
        if (t->retries < t->fail_runs + f->nkernel_faults && f->nkernel_faults > 0)
            return;
    }
    if (st == HEDDLE_ECANCELED && ((sees & (FLAG_MUST | FLAG_MAY)) != 0 || after_failed(c, t) ||
                                   (takes_turns(t) && (f->nkernel_faults > 0 || f->has_faults))))
        return;
    fuzz_wrong(c->r, "task %u ended with %s for no reason", t->id, heddle_status_name(st));
}

static void check_task(struct check *c, const struct fuzz_task *t)
{
    heddle_status st = (heddle_status)heddle_load_rlx(&t->status);
    const unsigned ends = heddle_load_rlx(&t->ends);
    struct spot s[FUZZ_OPERANDS];

    if (t->is_refused)
        return;
    for (unsigned i = 0; i < t->nops; i++)
        s[i] = spot_of(c, t->unit[i]);
    if (t->has_opts && ends != 1)
        fuzz_wrong(c->r, "task %u ended %u times", t->id, ends);
    if (!t->has_opts && st == HEDDLE_AGAIN)
        st = HEDDLE_OK; /* the event did not tell; the wait did */
    if (st != HEDDLE_OK) {
        check_failure(c, t, s, st);
        task_fails(t, s, FLAG_UNKNOWN | FLAG_MUST | FLAG_MAY);
        return;
    }
    /* A run that goes down with its device does not count. */
    if (t->fail_runs > t->retries && !c->r->is_lost)
        fuzz_wrong(c->r, "task %u ended well and was meant to fail", t->id);
    if ((task_sees(c, t, s, false) & FLAG_MUST) != 0)
        fuzz_wrong(c->r, "task %u read marked data and ended well", t->id);
    if (after_failed(c, t))
        fuzz_wrong(c->r, "task %u ran after a failed event", t->id);
    task_exec(c, t, s, t->salt);
}

/* The tasks of a graph tell nothing: all went well, or anything is possible. */
static void check_launch(struct check *c, const struct fuzz_op *op)
{
    const heddle_status st = (heddle_status)heddle_load_rlx(&op->task->status);
    const bool is_ok = st == HEDDLE_OK || !op->task->has_opts;
    const unsigned all = op->graph->ntasks * (is_ok ? op->launch.passes : 1);
    struct spot s[FUZZ_OPERANDS];
    unsigned sees = 0;

    if (op->task->has_opts && heddle_load_rlx(&op->task->ends) != 1)
        fuzz_wrong(c->r, "a launch did not end once");
    for (unsigned n = 0; n < all; n++) {
        const unsigned i = n % op->graph->ntasks;
        const struct fuzz_task *t = op->graph->task[i];

        for (unsigned k = 0; k < t->nops; k++)
            s[k] = spot_of(c, fuzz_launch_unit(&op->launch, t->unit[k]));
        sees |= task_sees(c, t, s, true);
        if (is_ok && (task_sees(c, t, s, false) & FLAG_MUST) != 0)
            fuzz_wrong(c->r, "task %u of a launch read marked data", t->id);
        if (is_ok)
            task_exec(c, t, s, fuzz_launch_salt(op, i));
        else
            task_fails(t, s, FLAG_UNKNOWN | FLAG_MAY);
    }
    if (!is_ok && !c->r->is_lost && c->p->config.nkernel_faults == 0 &&
        (sees & (FLAG_MUST | FLAG_MAY)) == 0)
        fuzz_wrong(c->r, "a launch ended with %s for no reason", heddle_status_name(st));
}

/* --- acquires ------------------------------------------------------------ */

static void check_bytes(struct check *c, const struct fuzz_op *op, const struct spot *s)
{
    const size_t elem = heddle_dtype_bytes(s->layout.dtype);
    const unsigned char *got = op->copy;
    size_t index[HEDDLE_MAX_DIMS] = {0}, at = s->offset, n = 0;

    do {
        if ((s->root->flag[at] & FLAG_UNKNOWN) == 0 &&
            memcmp(got, s->root->want + at * elem, elem) != 0) {
            fuzz_wrong(c->r,
                       "operation %u: element %zu of unit %d is not what the "
                       "tasks before have written",
                       (unsigned)(op - c->p->op), n, op->unit);
            return;
        }
        got += elem;
        n++;
    } while (spot_next(s, index, &at));
}

static void check_acquire(struct check *c, struct fuzz_op *op)
{
    const struct spot s = spot_of(c, op->unit);
    const struct fuzz_mem m = spot_mem(&s, op->mode);
    const unsigned sees = heddle_mode_overwrites(op->mode) ? 0 : spot_flags(&s, 0, 0);
    const bool is_whole = s.root->count == spot_count(&s);

    if (op->st != HEDDLE_OK) {
        if (!c->r->is_lost && (sees & (FLAG_MUST | FLAG_MAY)) == 0)
            fuzz_wrong(c->r, "operation %u: an acquire ended with %s for no reason",
                       (unsigned)(op - c->p->op), heddle_status_name(op->st));
        return;
    }
    if ((sees & FLAG_MUST) != 0)
        fuzz_wrong(c->r, "operation %u: marked data were acquired", (unsigned)(op - c->p->op));
    if (!heddle_mode_overwrites(op->mode))
        check_bytes(c, op, &s);
    else
        spot_flags(&s, FLAG_UNKNOWN | FLAG_MUST | (is_whole ? FLAG_MAY : 0), 0);
    if (fuzz_writes(op->mode) && (sees & FLAG_UNKNOWN) != 0)
        spot_flags(&s, 0, FLAG_UNKNOWN); /* what is written depends on all that was there */
    fuzz_mix_acquired(&m, op->salt);
}

/* --- the user's memory --------------------------------------------------- */

static void check_user(struct check *c, int unit)
{
    const struct fuzz_unit *u = &c->p->unit[unit];
    const struct spot s = spot_of(c, unit);
    const size_t elem = heddle_dtype_bytes(u->layout.dtype);

    spot_flags(&s, 0, FLAG_TOUCHED);
    for (size_t i = 0; i < u->span; i++) {
        const bool is_element = (u->flag[i] & FLAG_TOUCHED) != 0;

        if (is_element && ((u->flag[i] & FLAG_UNKNOWN) != 0 || c->r->is_lost))
            continue;
        if (memcmp(u->mem + i * elem, u->want + i * elem, elem) != 0) {
            fuzz_wrong(c->r,
                       is_element ? "at the end place %zu of the user's memory of unit "
                                    "%d is wrong"
                                  : "place %zu of unit %d is no element and was "
                                    "overwritten",
                       i, unit);
            return;
        }
    }
}

void fuzz_check(struct fuzz_run *r)
{
    struct check c = {.r = r, .p = r->prog};

    for (unsigned i = 0; i < c.p->nops && !r->is_wrong; i++) {
        struct fuzz_op *op = &c.p->op[i];

        if (op->kind == OP_TASK)
            check_task(&c, op->task);
        else if (op->kind == OP_LAUNCH)
            check_launch(&c, op);
        else if (op->kind == OP_ACQUIRE)
            check_acquire(&c, op);
    }
    if (c.nfailed > c.p->config.nkernel_faults && !r->is_lost)
        fuzz_wrong(r, "%u tasks failed by %u injected failures", c.nfailed,
                   c.p->config.nkernel_faults);
    if (heddle_load_rlx(&r->scratch_errors) != 0)
        fuzz_wrong(r, "scratch memory was not private");
    for (unsigned i = 0; i < c.p->nops && !r->is_wrong; i++)
        if (c.p->op[i].kind == OP_ROOT && !c.p->unit[c.p->op[i].unit].is_runtime)
            check_user(&c, c.p->op[i].unit);
}
