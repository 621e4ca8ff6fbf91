/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * oracle: runs a program in plain memory, one operation after another.
 *
 * Purpose    says what Heddle has to do: all bytes, which tasks run, which are
 *            cancelled, what waits return.
 * Structure  a place is a box of a store (the memory of one root). A task is
 *            carried out on places; children on parts of them.
 * Invariants (1) a mark is a box that a failed task should have written. A task
 *                that reads any of it is cancelled; a task that overwrites all
 *                of it (W) removes it
 *            (2) `unknown` bytes are those whose contents the contract leaves
 *                open: written by a task that failed, or reduced into by one
 *                crowd with a failure in it. They are always marked
 * Threads    one.
 */
#include <stdlib.h>
#include <string.h>

#include "mix.h"
#include "place.h"
#include "prog.h"
#include "tests/test.h"

struct oracle {
    struct prog *p;
    struct store *store; /* one per unit number; roots use theirs */
    size_t nstores;
    struct marks marks;
    bool *event_failed; /* per event */
    int nevents;
    bool *group_failed; /* per group, since the last wait */
    int ngroups;
    bool has_failure; /* since the last wait */
    bool has_missing; /* a task did not run since then, as an earlier one had failed */
    bool is_lost;     /* the last task reduced into what cannot be read */
};

static struct place place_unit(struct oracle *o, int unit)
{
    const struct prog_unit *u = &o->p->unit[unit];

    return place_make(&o->store[u->root], u);
}

/* --- tasks ---------------------------------------------------------------------- */

static bool mode_reads(enum heddle_mode m)
{
    return m == HEDDLE_R || m == HEDDLE_RW || m == HEDDLE_COMMUTE;
}

static bool mode_writes(enum heddle_mode m)
{
    return m != HEDDLE_R && m != HEDDLE_SCRATCH;
}

/* What the task needs has failed before: the next wait says so. */
static heddle_status task_missing(struct oracle *o)
{
    o->has_missing = true;
    return HEDDLE_ECANCELED;
}

static heddle_status task_start(struct oracle *o, const struct prog_task *t, const struct place *pl)
{
    if (t->is_doomed)
        return HEDDLE_ECANCELED;
    for (unsigned i = 0; i < t->nafter; i++)
        if (o->event_failed[t->after[i]])
            return task_missing(o);
    if (t->fail == FAIL_TIMEOUT)
        return HEDDLE_ETIMEDOUT;
    for (unsigned i = 0; i < t->nops; i++)
        if (mode_reads(t->op[i].mode) && mark_meets(&o->marks, &pl[i]))
            return task_missing(o);
    return HEDDLE_OK;
}

/* What is left behind by a task that ended with st. */
static void task_settle(struct oracle *o, const struct prog_task *t, const struct place *pl,
                        heddle_status st)
{
    o->is_lost = false;
    for (unsigned i = 0; i < t->nops; i++) {
        const enum heddle_mode m = t->op[i].mode;

        if (!mode_writes(m))
            continue;
        if (st != HEDDLE_OK)
            mark_set(&o->marks, &pl[i]);
        else if (m == HEDDLE_W)
            mark_clear(&o->marks, &pl[i]);
        if (m == HEDDLE_REDUCE && mark_meets(&o->marks, &pl[i])) {
            mark_set(&o->marks, &pl[i]); /* combined with what cannot be read */
            place_set_unknown(&pl[i], true);
            o->is_lost = true;
        }
    }
}

static void task_gather(const struct prog_task *t, const struct place *pl, struct mix_mem *mem)
{
    for (unsigned i = 0; i < t->nops; i++) {
        mem[i] = place_mem(&pl[i], t->op[i].mode);
        if (mode_reads(mem[i].mode))
            CHECK(!place_is_unknown(&pl[i])); /* invariant (2) */
    }
}

static heddle_status task_exec(struct oracle *o, struct prog_task *t, const struct place *pl,
                               const unsigned char *arg);

static void locals_create(const struct prog_task *t, struct store *store, struct place *pl)
{
    for (unsigned i = 0; i < t->nlocals; i++) {
        const struct prog_unit *u = &t->local[i];

        store_init(&store[i], u);
        pl[i] = place_make(&store[i], u);
    }
}

static void locals_destroy(struct oracle *o, const struct prog_task *t, struct store *store)
{
    for (unsigned i = 0; i < t->nlocals; i++) {
        mark_forget(&o->marks, &store[i]);
        store_fini(&store[i]);
    }
}

/* The children in order. *left: the failure of those nobody waited for. */
static heddle_status task_children(struct oracle *o, struct prog_task *t, const struct place *pl,
                                   const struct mix_mem *mem, heddle_status *left)
{
    struct store *store = calloc(t->nlocals + 1, sizeof(*store));
    struct place *local = calloc(t->nlocals + 1, sizeof(*local));
    heddle_status st = HEDDLE_OK;

    CHECK(store != NULL && local != NULL);
    locals_create(t, store, local);
    for (unsigned c = 0; c < t->nchildren && st == HEDDLE_OK; c++) {
        struct prog_task *k = t->child[c];
        struct place *part = calloc(k->nops + 1, sizeof(*part));
        heddle_status child;

        CHECK(part != NULL);
        for (unsigned i = 0; i < k->nops; i++) {
            const struct prog_operand *op = &k->op[i];
            const struct place *from = op->unit >= 0 ? &pl[op->unit] : &local[-1 - op->unit];

            part[i] = op->is_whole ? *from : place_part(from, &op->rel);
        }
        child = task_exec(o, k, part, k->arg);
        if (child == HEDDLE_OK && o->is_lost)
            child = HEDDLE_ECANCELED; /* the combination is a child, too */
        if (*left == HEDDLE_OK)
            *left = child;
        free(part);
        if ((t->waits >> c & 1) == 0)
            continue;
        if (*left == HEDDLE_OK)
            mix_again(mem, t->nops, t->id + c);
        else if (!t->swallows)
            st = *left;
        *left = HEDDLE_OK;
    }
    locals_destroy(o, t, store);
    free(store);
    free(local);
    return st;
}

static heddle_status task_body(struct oracle *o, struct prog_task *t, const struct place *pl,
                               const unsigned char *arg)
{
    struct mix_mem *mem = calloc(t->nops + 1, sizeof(*mem));
    heddle_status st = HEDDLE_OK, left = HEDDLE_OK;
    const size_t origin[PROG_DIMS] = {0};
    uint64_t salt;

    CHECK(mem != NULL);
    task_gather(t, pl, mem);
    memcpy(&salt, arg + 8, sizeof(salt));
    for (unsigned i = 0; i < t->nops; i++) {
        if (t->op[i].mode == HEDDLE_W) { /* written from here on */
            mark_clear(&o->marks, &pl[i]);
            place_set_unknown(&pl[i], false);
        }
        if (t->fail == FAIL_DIRTY && mode_writes(t->op[i].mode))
            place_set_unknown(&pl[i], true);
    }
    if (t->fail == FAIL_CLEAN || t->fail == FAIL_DIRTY) {
        st = HEDDLE_ETASK;
        for (unsigned i = 0; i < t->nops; i++)
            if (t->op[i].mode == HEDDLE_W)
                place_set_unknown(&pl[i], true);
    } else if (t->shape == SHAPE_RECURSE || t->shape == SHAPE_DIVIDE) {
        mix_part(&mem[0], salt, origin);
    } else {
        mix_task(mem, t->nops, arg + 8, t->arg_bytes - 8, NULL);
        st = task_children(o, t, pl, mem, &left);
        if (st == HEDDLE_OK && t->fail == FAIL_LATE)
            st = HEDDLE_ETASK;
    }
    free(mem);
    if (st != HEDDLE_OK)
        o->has_failure = true; /* whatever a function returns is its own */
    return st != HEDDLE_OK ? st : left;
}

static heddle_status task_exec(struct oracle *o, struct prog_task *t, const struct place *pl,
                               const unsigned char *arg)
{
    heddle_status st = task_start(o, t, pl);

    if (st == HEDDLE_OK) {
        t->want_runs++;
        st = task_body(o, t, pl, arg);
        if (st != HEDDLE_OK && t->nchildren > 0)
            t->is_exact = false;
        /* With several memories, what a failed task wrote may be nowhere. */
        for (unsigned i = 0; i < t->nops && st != HEDDLE_OK; i++)
            if (t->prog->config.is_virtual && mode_writes(t->op[i].mode))
                place_set_unknown(&pl[i], true);
    } else if (st == HEDDLE_ETIMEDOUT) {
        o->has_failure = true;
    }
    task_settle(o, t, pl, st);
    t->want = st;
    t->want_ends++;
    if (t->event >= 0)
        o->event_failed[t->event] = st != HEDDLE_OK;
    if (t->group >= 0 && st != HEDDLE_OK)
        o->group_failed[t->group] = true;
    return st;
}

/* A task of the program, its units replaced as `l` (may be NULL) says. */
static struct place *task_places(struct oracle *o, const struct prog_task *t,
                                 const struct prog_launch *l)
{
    struct place *pl = calloc(t->nops + 1, sizeof(*pl));

    CHECK(pl != NULL);
    for (unsigned i = 0; i < t->nops; i++) {
        int unit = t->op[i].unit;

        for (unsigned b = 0; l != NULL && b < l->nbindings; b++)
            if (l->recorded[b] == t->op[i].unit && t->op[i].mode != HEDDLE_SCRATCH)
                unit = l->actual[b];
        pl[i] = place_unit(o, unit);
    }
    return pl;
}

static bool task_may_fail(const struct oracle *o, const struct prog_task *t)
{
    if (t->fail != FAIL_NONE || t->is_doomed)
        return true;
    for (unsigned i = 0; i < t->nafter; i++)
        if (o->event_failed[t->after[i]])
            return true;
    for (unsigned c = 0; c < t->nchildren; c++)
        if (task_may_fail(o, t->child[c]))
            return true;
    return false;
}

bool oracle_predict(struct oracle *o, const struct prog_task *t)
{
    struct place *pl = task_places(o, t, NULL);
    bool ok = task_start(o, t, pl) == HEDDLE_OK && !task_may_fail(o, t);

    /* Writing a part does not clear the mark of the whole: children that read
     * the part are cancelled. */
    for (unsigned i = 0; i < t->nops && t->nchildren > 0; i++)
        ok = ok && !mark_meets(&o->marks, &pl[i]);
    free(pl);
    return ok;
}

/* --- launches --------------------------------------------------------------------- */

static heddle_status launch_pass(struct oracle *o, const struct prog_graph *g,
                                 const struct prog_launch *l)
{
    heddle_status first = HEDDLE_OK;

    for (unsigned i = 0; i < g->ntasks; i++) {
        struct place *pl = task_places(o, g->task[i], l);
        const unsigned char *arg = g->task[i]->arg;
        heddle_status st;

        for (unsigned a = 0; a < l->nargs; a++)
            if (l->index[a] == i)
                arg = l->arg[a];
        st = task_exec(o, g->task[i], pl, arg);
        if (first == HEDDLE_OK)
            first = st;
        free(pl);
    }
    return first;
}

/* A launch that does not start marks all it would have written. */
static void launch_cancel(struct oracle *o, const struct prog_graph *g, const struct prog_launch *l)
{
    for (unsigned i = 0; i < g->ntasks; i++) {
        struct place *pl = task_places(o, g->task[i], l);

        task_settle(o, g->task[i], pl, HEDDLE_ECANCELED);
        free(pl);
    }
}

static void launch_exec(struct oracle *o, struct prog_op *op)
{
    struct prog_launch *l = op->launch;
    const struct prog_graph *g = &o->p->graph[op->a];
    struct prog_task *t = l->task;
    heddle_status st = task_start(o, t, NULL);

    if (st != HEDDLE_OK)
        launch_cancel(o, g, l);
    for (bool more = st == HEDDLE_OK; more;) {
        st = launch_pass(o, g, l);
        more = st == HEDDLE_OK && ++l->want_passes < l->passes;
    }
    t->want = st;
    t->is_exact = st == HEDDLE_OK;
    t->want_ends++;
    if (t->event >= 0)
        o->event_failed[t->event] = st != HEDDLE_OK;
    if (t->group >= 0 && st != HEDDLE_OK)
        o->group_failed[t->group] = true;
}

/* --- operations -------------------------------------------------------------------- */

void prog_init_memory(const struct prog *p, int root, void *mem)
{
    const struct prog_unit *u = &p->unit[root];
    const size_t bytes = u->span * heddle_dtype_bytes(u->layout.dtype);
    unsigned char *c = mem;

    for (size_t i = 0; i < bytes; i++)
        c[i] = (unsigned char)prog_mix(p->seed + (uint64_t)root * 9973 + i);
}

static void oracle_root(struct oracle *o, int unit)
{
    const struct prog_unit *u = &o->p->unit[unit];
    struct store *s = &o->store[unit];

    store_init(s, u);
    if (!u->is_runtime)
        prog_init_memory(o->p, unit, s->mem);
}

static void oracle_acquire(struct oracle *o, struct prog_op *op)
{
    struct place pl = place_unit(o, op->a);
    struct mix_mem m = place_mem(&pl, op->mode);

    op->want = HEDDLE_OK;
    if (mode_reads(op->mode) && mark_meets(&o->marks, &pl)) {
        op->want = HEDDLE_ECANCELED;
        return;
    }
    if (mode_reads(op->mode))
        op->want_hash = mix_hash(&m);
    mix_acquired(&m, op->salt);
    if (op->mode == HEDDLE_W) {
        mark_clear(&o->marks, &pl);
        place_set_unknown(&pl, false);
    }
}

static void oracle_tasks(struct oracle *o, struct prog_op *op)
{
    for (unsigned i = 0; i < op->ntasks; i++) {
        struct place *pl = task_places(o, op->task[i], NULL);

        (void)task_exec(o, op->task[i], pl, op->task[i]->arg);
        free(pl);
    }
}

static void oracle_restore(struct oracle *o, int unit)
{
    const struct place pl = place_unit(o, unit);

    mark_clear(&o->marks, &pl);
}

static void oracle_grow_bools(bool **p, int *n, int need)
{
    if (need <= *n)
        return;
    *p = realloc(*p, (size_t)need * sizeof(bool));
    CHECK(*p != NULL);
    memset(*p + *n, 0, (size_t)(need - *n) * sizeof(bool));
    *n = need;
}

static void oracle_grow(struct oracle *o)
{
    CHECK(o->p->nunits <= o->nstores);
    oracle_grow_bools(&o->event_failed, &o->nevents, o->p->nevents + 1);
    oracle_grow_bools(&o->group_failed, &o->ngroups, o->p->ngroups + 1);
}

void oracle_op(struct oracle *o, struct prog_op *op)
{
    oracle_grow(o);
    switch (op->kind) {
    case OP_ROOT: oracle_root(o, op->a); break;
    case OP_TASK: oracle_tasks(o, op); break;
    case OP_ACQUIRE:
    case OP_ACQUIRE_ASYNC: oracle_acquire(o, op); break;
    case OP_EVENT: o->event_failed[op->a] = op->st != HEDDLE_OK; break;
    case OP_EVENT_AFTER:
        if (o->event_failed[op->b])
            o->event_failed[op->a] = true;
        break;
    case OP_EVENT_WAIT: op->want = o->event_failed[op->a] ? HEDDLE_ECANCELED : HEDDLE_OK; break;
    case OP_GROUP_WAIT:
        op->want = o->group_failed[op->a] ? HEDDLE_ECANCELED : HEDDLE_OK;
        o->group_failed[op->a] = false;
        break;
    case OP_WAIT:
        op->want = o->has_failure ? HEDDLE_ETASK : o->has_missing ? HEDDLE_ECANCELED : HEDDLE_OK;
        if (op->b != WAIT_BESIDE)
            o->has_failure = o->has_missing = false;
        break;
    case OP_LAUNCH: launch_exec(o, op); break;
    case OP_RESTORE: oracle_restore(o, op->a); break;
    default: break;
    }
}

bool oracle_is_defined(struct oracle *o, int unit)
{
    const struct place pl = place_unit(o, unit);

    return !place_is_unknown(&pl);
}

bool oracle_is_marked(struct oracle *o, int unit)
{
    const struct place pl = place_unit(o, unit);

    return mark_meets(&o->marks, &pl);
}

bool oracle_event_failed(struct oracle *o, int event)
{
    return o->event_failed[event];
}

const unsigned char *oracle_memory(struct oracle *o, int root)
{
    return o->store[root].mem;
}

const bool *oracle_unknown(struct oracle *o, int root)
{
    return o->store[root].unknown;
}

struct oracle *oracle_create(struct prog *p)
{
    struct oracle *o = calloc(1, sizeof(*o));

    CHECK(o != NULL);
    o->p = p;
    o->nstores = 1024;
    o->store = calloc(o->nstores, sizeof(*o->store));
    CHECK(o->store != NULL);
    return o;
}

void oracle_destroy(struct oracle *o)
{
    for (size_t i = 0; i < o->nstores; i++)
        store_fini(&o->store[i]);
    free(o->store);
    free(o->marks.mark);
    free(o->event_failed);
    free(o->group_failed);
    free(o);
}
