/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * move_time: when values leave and come back, once it is known which values do.
 *
 * Out   a copy out may begin after the operation that makes the value. Among copies that may
 *       begin, the first is the one whose room is needed first. The value is discarded as
 *       soon as its copy is complete, because all steps after a discard wait for the copy.
 * Back  copies back are placed from the last to the first: each as late as possible, so
 *       that it ends before its use and before the next copy begins, and so that there is
 *       room for the value from the beginning of the copy to its use.
 */
#include <math.h>

#include "base/assert.h"
#include "plan/offload/move.h"
#include "plan/seq/heap.h"

/* ---- when it leaves ----------------------------------------------------------- */

/* Copies that may begin, in one heap for each store: the one whose room is needed first
 * on top. The sweep has decided in that order. */
struct links {
    size_t *head, *next; /* actions before a step; k->nactions: none */
    uint32_t *heap[3], n[3];
    double end[3];
    uint32_t count; /* copies so far */
};

static bool is_needed_before(const void *of, uint32_t a, uint32_t b)
{
    (void)of;
    return a < b;
}

/* The next copy of a store, before step p. */
static void copy_next(struct heddle_plan_mover *k, struct links *l, uint32_t level, uint32_t p)
{
    struct heddle_plan_action *a =
        &k->action[heddle_plan_heap_pop(l->heap[level], &l->n[level], is_needed_before, NULL)];
    const uint32_t v = a->value;

    l->end[level] =
        fmax(l->end[level], k->made[v]) + (double)k->g->values[v].bytes / k->store[level]->out_rate;
    k->stored[v] = l->end[level];
    k->is_due[v] = false;
    a->pos = k->birth[v] = p; /* it does not leave before */
    a->since = ++l->count;
}

static heddle_status links_init(struct heddle_plan_mover *k, struct links *l)
{
    const size_t n = 2 * ((size_t)k->n + 1), none = k->nactions;

    l->head = heddle_scratch_get(k->mem, n, sizeof(*l->head));
    l->next = heddle_scratch_get(k->mem, none, sizeof(*l->next));
    l->heap[1] = heddle_scratch_get(k->mem, 2 * none, sizeof(*l->heap[1]));
    if (l->head == NULL || l->next == NULL || l->heap[1] == NULL || none > UINT32_MAX / 2)
        return heddle_plan_move_no_memory(k);
    l->heap[2] = l->heap[1] + none;
    for (size_t i = 0; i < n; i++)
        l->head[i] = none;
    for (size_t i = none; i-- > 0;) {
        const struct heddle_plan_action *a = &k->action[i];
        const size_t at = 2 * (size_t)a->pos + (a->what == HEDDLE_PLAN_ACT_DROP);

        if (a->what == HEDDLE_PLAN_ACT_OUT || (a->what == HEDDLE_PLAN_ACT_DROP && a->level != 0)) {
            l->next[i] = l->head[at];
            l->head[at] = i;
        }
    }
    return HEDDLE_OK;
}

/* The order of copies out, and when they are complete: k->stored. And when steps begin
 * then: the sweep knew only of the copies that it had decided about. */
static heddle_status time_copies(struct heddle_plan_mover *k)
{
    const size_t none = k->nactions;
    struct links l = {.count = 0};
    double now = 0;

    HEDDLE_TRY(links_init(k, &l));
    for (uint32_t p = 0; p <= k->n; p++) {
        for (uint32_t s = 1; s <= 2; s++)
            while (l.n[s] > 0 && l.end[s] <= now)
                copy_next(k, &l, s, p);
        for (size_t i = l.head[2 * (size_t)p]; i < none; i = l.next[i]) {
            const struct heddle_plan_action *a = &k->action[i];

            k->made[a->value] = now;
            k->is_due[a->value] = true;
            heddle_plan_heap_push(l.heap[a->level], &l.n[a->level], (uint32_t)i, is_needed_before,
                                  NULL);
        }
        for (size_t i = l.head[2 * (size_t)p + 1]; i < none; i = l.next[i]) {
            struct heddle_plan_action *a = &k->action[i];

            while (k->is_due[a->value])
                copy_next(k, &l, a->level, p);
            if (a->since < k->birth[a->value])
                a->since = k->birth[a->value];
            now = fmax(now, k->stored[a->value]);
        }
        k->time[p] = now;
        if (p < k->n && k->step[p].kind == HEDDLE_PLAN_COMPUTE)
            now += k->g->ops[k->step[p].what].time;
    }
    return HEDDLE_OK;
}

heddle_status heddle_plan_move_drop_early(struct heddle_plan_mover *k)
{
    if (k->mo->is_late)
        return HEDDLE_OK;
    HEDDLE_TRY(time_copies(k));
    for (size_t i = 0; i < k->nactions; i++) {
        struct heddle_plan_action *a = &k->action[i];

        if (a->what != HEDDLE_PLAN_ACT_DROP || a->level == 0)
            continue;
        for (; a->pos > a->since && k->time[a->pos - 1] >= k->stored[a->value]; a->pos--)
            if (k->step[a->pos - 1].kind == HEDDLE_PLAN_COMPUTE)
                k->level[a->pos - 1] -= k->g->values[a->value].bytes;
    }
    return HEDDLE_OK;
}

/* ---- when it comes back -------------------------------------------------------- */

/* The last step in (lo, hi] that begins by `t`; lo + 1 when there is none. */
static uint32_t step_at(const struct heddle_plan_mover *k, uint32_t lo, uint32_t hi, double t)
{
    uint32_t a = lo + 1, b = hi;

    while (a < b) {
        const uint32_t mid = a + (b - a + 1) / 2;

        if (k->time[mid] <= t)
            a = mid;
        else
            b = mid - 1;
    }
    return a;
}

void heddle_plan_move_hoist(struct heddle_plan_mover *k)
{
    double next[3] = {INFINITY, INFINITY, INFINITY};

    for (size_t i = k->nactions; i-- > 0;) {
        struct heddle_plan_action *a = &k->action[i];
        const uint64_t bytes = k->g->values[a->value].bytes;
        const uint32_t use = a->pos;
        uint32_t from, q;

        if (a->what != HEDDLE_PLAN_ACT_IN)
            continue;
        next[a->level] =
            fmin(next[a->level], k->time[use]) - (double)bytes / k->store[a->level]->in_rate;
        from = use > a->since ? step_at(k, a->since, use, next[a->level]) : use;
        for (q = use; q > from; q--)
            if (k->step[q - 1].kind == HEDDLE_PLAN_COMPUTE &&
                (k->level[q - 1] > k->mo->target || bytes > k->mo->target - k->level[q - 1]))
                break;
        while (q < use && k->step[q].kind != HEDDLE_PLAN_COMPUTE)
            q++; /* behind the discards there */
        for (uint32_t j = q; j < use; j++)
            k->level[j] += bytes;
        a->pos = q;
    }
}
