/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * move: makes given steps fit by moving values out and back.
 *
 * One sweep in program order decides what leaves: before an operation that has no
 * room, values that it does not read go, those first that cost least per byte of
 * room: the waiting that the copies would cause, and the price of the link. Then
 * move_time.c says when.
 */
#include <math.h>
#include <string.h>

#include "base/assert.h"
#include "plan/offload/move.h"

/* The price of the link for values that should not move. */
#define OTHERS 8.0

heddle_status heddle_plan_move_no_memory(const struct heddle_plan_mover *k)
{
    return HEDDLE_PLAN_FAIL(k->o, HEDDLE_ENOMEM, "no memory for the solver");
}

static heddle_status act(struct heddle_plan_mover *k, uint32_t pos, uint32_t what, uint32_t value,
                         uint32_t level, uint32_t since)
{
    if (k->nactions == k->cap) {
        const size_t cap = k->cap == 0 ? 64 : 2 * k->cap;
        struct heddle_plan_action *a = heddle_scratch_get(k->mem, cap, sizeof(*a));

        if (a == NULL)
            return heddle_plan_move_no_memory(k);
        if (k->nactions > 0)
            memcpy(a, k->action, k->nactions * sizeof(*a));
        k->action = a;
        k->cap = cap;
    }
    k->action[k->nactions++] = (struct heddle_plan_action){pos, what, value, level, since};
    return HEDDLE_OK;
}

/* ---- what is in memory ------------------------------------------------------ */

static void come(struct heddle_plan_mover *k, uint32_t v)
{
    k->is_here[v] = true;
    k->slot[v] = k->nlive;
    k->live[k->nlive++] = v;
    k->bytes += k->g->values[v].bytes;
}

static void go(struct heddle_plan_mover *k, uint32_t v)
{
    const uint32_t last = k->live[--k->nlive];

    k->is_here[v] = false;
    k->live[k->slot[v]] = last;
    k->slot[last] = k->slot[v];
    k->bytes -= k->g->values[v].bytes;
}

static heddle_status find_readers(struct heddle_plan_mover *k)
{
    const uint32_t nv = k->g->nvalues;
    size_t total = 0;

    for (uint32_t i = 0; i < k->n; i++)
        if (k->step[i].kind == HEDDLE_PLAN_COMPUTE)
            total += k->g->ops[k->step[i].what].ninputs;
    k->first = heddle_scratch_get(k->mem, (size_t)nv + 2, sizeof(*k->first));
    k->reader = heddle_scratch_get(k->mem, total, sizeof(*k->reader));
    if (k->first == NULL || k->reader == NULL || total > UINT32_MAX - 1)
        return heddle_plan_move_no_memory(k);
    for (int pass = 0; pass < 2; pass++) {
        for (uint32_t i = 0; i < k->n; i++) {
            const struct heddle_plan_op *op;

            if (k->step[i].kind != HEDDLE_PLAN_COMPUTE)
                continue;
            op = &k->g->ops[k->step[i].what];
            for (uint32_t j = 0; j < op->ninputs; j++) {
                const uint32_t v = k->g->inputs[op->first_input + j];

                if (pass == 0)
                    k->first[v + 2]++;
                else
                    k->reader[k->first[v + 1]++] = i;
            }
        }
        for (uint32_t v = 0; v < nv && pass == 0; v++)
            k->first[v + 2] += k->first[v + 1];
    }
    return HEDDLE_OK;
}

static heddle_status mover_init(struct heddle_plan_mover *k)
{
    const size_t nv = k->g->nvalues;
    uint32_t *w = heddle_scratch_get(k->mem, 6 * nv, sizeof(*w));
    double *t = heddle_scratch_get(k->mem, 2 * nv, sizeof(*t));

    k->copies = heddle_scratch_get(k->mem, nv, sizeof(*k->copies));
    k->is_here = heddle_scratch_get(k->mem, 2 * nv, sizeof(*k->is_here));
    k->time = heddle_scratch_get(k->mem, (size_t)k->n + 1, sizeof(*k->time));
    k->level = heddle_scratch_get(k->mem, (size_t)k->n + 1, sizeof(*k->level));
    if (w == NULL || t == NULL || k->copies == NULL || k->is_here == NULL || k->time == NULL ||
        k->level == NULL)
        return heddle_plan_move_no_memory(k);
    k->is_due = k->is_here + nv;
    k->next = w;
    k->birth = w + nv;
    k->left = w + 2 * nv;
    k->stamp = w + 3 * nv;
    k->slot = w + 4 * nv;
    k->live = w + 5 * nv;
    k->made = t;
    k->stored = t + nv;
    HEDDLE_TRY(find_readers(k));
    for (uint32_t v = 0; v < nv; v++) {
        k->next[v] = k->first[v];
        if (heddle_plan_is_initial(&k->g->values[v])) {
            come(k, v);
        } else if (k->g->values[v].op == HEDDLE_PLAN_NONE) {
            k->copies[v] = 1 << 1;
            k->used[1] += k->g->values[v].bytes;
        }
    }
    return HEDDLE_OK;
}

/* ---- what leaves ------------------------------------------------------------- */

/* The store for a value: where it is, or the first one with room. 0: none. */
static unsigned store_for(const struct heddle_plan_mover *k, uint32_t v)
{
    const uint64_t bytes = k->g->values[v].bytes;

    for (unsigned l = 1; l <= 2; l++)
        if ((k->copies[v] >> l & 1) != 0)
            return l;
    for (unsigned l = 1; l <= 2; l++)
        if (k->store[l]->out_rate > 0 &&
            (k->store[l]->bytes == 0 ||
             (k->used[l] <= k->store[l]->bytes && bytes <= k->store[l]->bytes - k->used[l])))
            return l;
    return 0;
}

/* When a copy to the store would be complete. */
static double copied_at(const struct heddle_plan_mover *k, uint32_t v, unsigned l)
{
    const double from = k->mo->is_late ? k->now : k->made[v];

    if ((k->copies[v] >> l & 1) != 0)
        return k->stored[v];
    return fmax(k->out_at[l], from) + (double)k->g->values[v].bytes / k->store[l]->out_rate;
}

struct victim {
    uint32_t value;
    unsigned level;
    uint32_t next; /* the step that needs it; UINT32_MAX: none */
    double score;
};

static struct victim judge(const struct heddle_plan_mover *k, uint32_t v, unsigned l, uint64_t need)
{
    const uint64_t bytes = k->g->values[v].bytes;
    const bool is_read = k->next[v] < k->first[v + 1];
    const double out = (k->copies[v] >> l & 1) != 0 ? 0 : (double)bytes / k->store[l]->out_rate;
    const double in = is_read ? (double)bytes / k->store[l]->in_rate : 0;
    const double done = copied_at(k, v, l);
    const bool is_first = k->mo->is_moved == NULL || k->mo->is_moved[v];
    double wait = fmax(0, done - k->now);

    if (is_read) {
        const double use = k->time[k->reader[k->next[v]]] + k->lag + wait;

        wait += fmax(0, in - fmax(0, use - fmax(k->now, done)));
    }
    return (struct victim){.value = v,
                           .level = l,
                           .next = is_read ? k->reader[k->next[v]] : UINT32_MAX,
                           .score = (wait + (is_first ? k->mo->price : OTHERS) * (in + out)) /
                                    (double)(bytes < need ? bytes : need)};
}

static bool is_better(const struct heddle_plan_mover *k, const struct victim *a,
                      const struct victim *b)
{
    const uint8_t *is_moved = k->mo->is_moved;

    if (a->score != b->score)
        return a->score < b->score;
    /* All that is meant to leave will: the copy that may begin first is on the way. */
    if (is_moved != NULL && is_moved[a->value] && is_moved[b->value] &&
        k->made[a->value] != k->made[b->value])
        return k->made[a->value] < k->made[b->value];
    if (a->next != b->next)
        return a->next > b->next;
    if (k->g->values[a->value].bytes != k->g->values[b->value].bytes)
        return k->g->values[a->value].bytes > k->g->values[b->value].bytes;
    return a->value < b->value;
}

/* The first step behind which no op reads `v` before it leaves. */
static uint32_t last_used(const struct heddle_plan_mover *k, uint32_t v)
{
    const uint32_t used = k->next[v] > k->first[v] ? k->reader[k->next[v] - 1] + 1 : k->birth[v];

    return used > k->birth[v] ? used : k->birth[v];
}

static heddle_status leave(struct heddle_plan_mover *k, uint32_t at, const struct victim *c)
{
    const uint32_t v = c->value;
    const double done = copied_at(k, v, c->level);

    if ((k->copies[v] >> c->level & 1) == 0) {
        HEDDLE_TRY(act(k, k->mo->is_late ? at : k->birth[v], HEDDLE_PLAN_ACT_OUT, v, c->level, 0));
        k->out_at[c->level] = k->stored[v] = done;
        k->used[c->level] += k->g->values[v].bytes;
        k->copies[v] |= (uint8_t)(1u << c->level);
    }
    if (done > k->now) {
        k->lag += done - k->now;
        k->now = done;
    }
    k->left[v] = at;
    go(k, v);
    return act(k, at, HEDDLE_PLAN_ACT_DROP, v, c->level, last_used(k, v));
}

static heddle_status make_room(struct heddle_plan_mover *k, uint32_t at, uint64_t room)
{
    while (room > k->mo->target || k->bytes > k->mo->target - room) {
        const uint64_t need = room > k->mo->target ? 0 : k->bytes - (k->mo->target - room);
        struct victim best = {.value = HEDDLE_PLAN_NONE};

        for (uint32_t i = 0; i < k->nlive && need > 0; i++) {
            const uint32_t v = k->live[i];
            struct victim c;
            unsigned l;

            if (k->stamp[v] == at + 1 || k->g->values[v].bytes == 0)
                continue;
            l = store_for(k, v);
            if (l == 0)
                continue;
            c = judge(k, v, l, need);
            if (best.value == HEDDLE_PLAN_NONE || is_better(k, &c, &best))
                best = c;
        }
        if (best.value == HEDDLE_PLAN_NONE)
            return HEDDLE_PLAN_FAIL(k->o, HEDDLE_ENOENT,
                                    "operation %s finds no room, whatever is "
                                    "moved",
                                    heddle_plan_op_label(k->g, k->step[at].what).text);
        HEDDLE_TRY(leave(k, at, &best));
    }
    return HEDDLE_OK;
}

/* Its copies are not needed any more. */
static heddle_status forget(struct heddle_plan_mover *k, uint32_t pos, uint32_t v)
{
    if (k->g->values[v].op == HEDDLE_PLAN_NONE)
        return HEDDLE_OK;
    for (unsigned l = 1; l <= 2; l++)
        if ((k->copies[v] >> l & 1) != 0) {
            k->used[l] -= k->g->values[v].bytes;
            HEDDLE_TRY(act(k, pos, HEDDLE_PLAN_ACT_FORGET, v, l, 0));
        }
    k->copies[v] = 0;
    return HEDDLE_OK;
}

static heddle_status fetch(struct heddle_plan_mover *k, uint32_t at, uint32_t v)
{
    const unsigned l = store_for(k, v);

    if (k->copies[v] == 0)
        return HEDDLE_PLAN_FAIL(k->o, HEDDLE_EINVAL, "step %u reads value %u, which is nowhere", at,
                                v);
    come(k, v);
    return act(k, at, HEDDLE_PLAN_ACT_IN, v, l, k->left[v]);
}

static heddle_status compute(struct heddle_plan_mover *k, uint32_t at)
{
    const struct heddle_plan_step *s = &k->step[at];
    const struct heddle_plan_op *op = &k->g->ops[s->what];
    uint64_t room = op->work_bytes, sum;

    for (uint32_t i = 0; i < op->ninputs; i++) {
        const uint32_t v = k->g->inputs[op->first_input + i];

        k->stamp[v] = at + 1;
        room += k->is_here[v] ? 0 : k->g->values[v].bytes;
        while (k->next[v] < k->first[v + 1] && k->reader[k->next[v]] <= at)
            k->next[v]++;
    }
    for (uint32_t i = 0; i < op->nvalues; i++) {
        const uint32_t v = op->first_value + i;

        if ((s->outputs >> i & 1) == 0)
            continue;
        k->stamp[v] = at + 1;
        if (!k->is_here[v] && (i > 0 || !s->in_place))
            room += k->g->values[v].bytes;
    }
    HEDDLE_TRY(make_room(k, at, room));
    k->time[at] = k->now;
    for (uint32_t i = 0; i < op->ninputs; i++) {
        const uint32_t v = k->g->inputs[op->first_input + i];

        if (!k->is_here[v])
            HEDDLE_TRY(fetch(k, at, v));
    }
    k->now += op->time;
    for (uint32_t i = 0; i < op->nvalues; i++) {
        const uint32_t v = op->first_value + i;

        if ((s->outputs >> i & 1) == 0 || k->is_here[v])
            continue;
        come(k, v);
        k->birth[v] = at + 1;
        k->made[v] = k->now;
    }
    sum = k->bytes + op->work_bytes;
    if (s->in_place) {
        sum -= k->g->values[op->first_value].bytes;
        go(k, op->inplace);
        HEDDLE_TRY(forget(k, at + 1, op->inplace));
    }
    k->level[at] = sum;
    return HEDDLE_OK;
}

static heddle_status sweep(struct heddle_plan_mover *k)
{
    double t = 0;

    for (uint32_t i = 0; i < k->n; i++) {
        k->time[i] = t; /* without waiting, for what lies ahead */
        if (k->step[i].kind == HEDDLE_PLAN_COMPUTE)
            t += k->g->ops[k->step[i].what].time;
    }
    k->time[k->n] = t;
    for (uint32_t i = 0; i < k->n; i++) {
        const struct heddle_plan_step *s = &k->step[i];

        k->time[i] = k->now;
        if (s->kind == HEDDLE_PLAN_COMPUTE) {
            HEDDLE_TRY(compute(k, i));
        } else if (s->kind == HEDDLE_PLAN_DISCARD) {
            if (k->is_here[s->what]) {
                go(k, s->what);
                HEDDLE_TRY(act(k, i, HEDDLE_PLAN_ACT_DROP, s->what, 0, 0));
            }
            HEDDLE_TRY(forget(k, i, s->what));
        }
    }
    k->time[k->n] = k->now;
    return HEDDLE_OK;
}

/* ---- steps ---------------------------------------------------------------------- */

static bool is_before(const struct heddle_plan_action *a, const struct heddle_plan_action *b)
{
    if (a->pos != b->pos)
        return a->pos < b->pos;
    return a->what != b->what ? a->what < b->what
                              : a->what == HEDDLE_PLAN_ACT_OUT && a->since < b->since;
}

/* Merge sort: the order of equals is that of the link. */
static heddle_status sort_actions(struct heddle_plan_mover *k)
{
    struct heddle_plan_action *from = k->action;
    struct heddle_plan_action *to = heddle_scratch_get(k->mem, k->nactions, sizeof(*to));

    if (to == NULL)
        return heddle_plan_move_no_memory(k);
    for (size_t w = 1; w < k->nactions; w *= 2) {
        struct heddle_plan_action *t = from;

        for (size_t lo = 0; lo < k->nactions; lo += 2 * w) {
            const size_t mid = lo + w < k->nactions ? lo + w : k->nactions;
            const size_t hi = lo + 2 * w < k->nactions ? lo + 2 * w : k->nactions;
            size_t i = lo, j = mid;

            for (size_t n = lo; n < hi; n++)
                to[n] =
                    j == hi || (i < mid && !is_before(&from[j], &from[i])) ? from[i++] : from[j++];
        }
        from = to;
        to = t;
    }
    k->action = from;
    return HEDDLE_OK;
}

static void emit_action(const struct heddle_plan_action *a, struct heddle_plan_draft *d)
{
    switch (a->what) {
    case HEDDLE_PLAN_ACT_OUT: heddle_plan_draft_offload(d, a->value, a->level); break;
    case HEDDLE_PLAN_ACT_DROP: heddle_plan_draft_discard(d, a->value); break;
    case HEDDLE_PLAN_ACT_IN: heddle_plan_draft_prefetch(d, a->value, a->level); break;
    default: heddle_plan_draft_forget(d, a->value, a->level); break;
    }
}

static heddle_status emit(struct heddle_plan_mover *k, struct heddle_plan_draft *d)
{
    size_t at = 0;

    HEDDLE_TRY(sort_actions(k));
    for (uint32_t i = 0; i <= k->n; i++) {
        for (; at < k->nactions && k->action[at].pos == i; at++)
            emit_action(&k->action[at], d);
        if (i < k->n && k->step[i].kind == HEDDLE_PLAN_COMPUTE)
            heddle_plan_draft_compute(d, k->step[i].what, k->step[i].outputs, k->step[i].in_place);
    }
    return d->st == HEDDLE_OK ? HEDDLE_OK : heddle_plan_move_no_memory(k);
}

heddle_status heddle_plan_move(const struct heddle_plan_graph *g,
                               const struct heddle_plan_machine *m,
                               const struct heddle_plan_step *step, uint32_t nsteps,
                               const struct heddle_plan_move_opts *mo,
                               const struct heddle_plan_opts *o, struct heddle_plan_draft *out)
{
    struct heddle_scratch mem = heddle_scratch_make(o->alloc);
    struct heddle_plan_mover k = {.g = g,
                                  .store = {NULL, &m->host, &m->disk},
                                  .step = step,
                                  .n = nsteps,
                                  .mo = mo,
                                  .o = o,
                                  .mem = &mem};
    heddle_status st = mover_init(&k);

    if (st == HEDDLE_OK)
        st = sweep(&k);
    if (st == HEDDLE_OK)
        st = heddle_plan_move_drop_early(&k);
    if (st == HEDDLE_OK) {
        heddle_plan_move_hoist(&k);
        st = emit(&k, out);
    }
    heddle_scratch_drop(&mem);
    return st;
}
