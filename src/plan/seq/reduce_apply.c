/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * reduce_apply: carries out the best of the moves that were found.
 *
 * Moves are taken in the order of their scores until the peak is within the budget or the batch
 * is full. A move that would compute again what another move of the batch drops is left out.
 */
#include <string.h>

#include "plan/seq/heap.h"
#include "plan/seq/reduce.h"

#define GOOD 0.8 /* of the best score: so good moves are taken at once, by large batches */

static bool is_behind(const struct heddle_plan_reduce *r, uint32_t a, uint32_t b)
{
    if (r->ins_at[a] != r->ins_at[b])
        return r->ins_at[a] > r->ins_at[b];
    return r->ins_op[a] > r->ins_op[b];
}

static void sort_inserts(struct heddle_plan_reduce *r)
{
    for (uint32_t i = 0; i < r->nins; i++)
        r->ins_order[i] = i;
    for (uint32_t gap = r->nins / 2; gap > 0; gap /= 2)
        for (uint32_t i = gap; i < r->nins; i++) {
            const uint32_t t = r->ins_order[i];
            uint32_t k = i;

            for (; k >= gap && is_behind(r, r->ins_order[k - gap], t); k -= gap)
                r->ins_order[k] = r->ins_order[k - gap];
            r->ins_order[k] = t;
        }
}

/* Puts the insertions in; those of one position in the order of the graph, each
 * once. */
static bool insert_all(struct heddle_plan_reduce *r, struct heddle_plan_seq *s)
{
    uint32_t n = 0, left, from = s->n;

    sort_inserts(r);
    for (uint32_t i = 0; i < r->nins; i++) {
        const uint32_t k = r->ins_order[i];

        if (n > 0 && r->ins_at[r->ins_order[n - 1]] == r->ins_at[k] &&
            r->ins_op[r->ins_order[n - 1]] == r->ins_op[k])
            continue;
        r->ins_order[n++] = k;
    }
    if (n > s->cap - s->n)
        return false;
    for (left = n, s->n += n; left > 0; left--) {
        const uint32_t k = r->ins_order[left - 1];
        const uint32_t at = r->ins_at[k];

        memmove(&s->op[at + left], &s->op[at], (from - at) * sizeof(*s->op));
        s->op[at + left - 1] = r->ins_op[k];
        from = at;
    }
    return heddle_plan_seq_eval(s);
}

/* Of the numbers of moves in a heap: the better one first. */
static bool is_better(const void *of, uint32_t i, uint32_t j)
{
    const struct heddle_plan_reduce *r = of;
    const struct heddle_plan_reduce_move *a = &r->move[i], *b = &r->move[j];

    return a->score > b->score || (a->score == b->score && a->op < b->op);
}

bool heddle_plan_reduce_apply(struct heddle_plan_search *x, struct heddle_plan_seq *s)
{
    struct heddle_plan_reduce *r = x->reduce;
    int64_t excess = s->peak - x->budget;
    double good = 0;
    uint32_t done = 0, *heap = x->pick, n = r->nmove;

    r->nins = 0;
    r->round++;
    for (uint32_t i = 0; i < n; i++)
        heap[i] = i;
    for (uint32_t i = n / 2; i-- > 0;)
        heddle_plan_heap_sift(heap, n, i, is_better, r);
    while (n > 0 && excess > 0) {
        const struct heddle_plan_reduce_move *m = &r->move[heap[0]];
        bool is_clash = false;

        if (done == 0)
            good = m->score * GOOD;
        if (done >= x->batch && (x->batch < HEDDLE_PLAN_REDUCE_MANY || m->score < good))
            break;

        for (uint32_t k = 1; k < m->nset && done > 0; k++)
            is_clash |= r->taken[r->pool[m->set + k]] == r->round;
        if (!is_clash && r->nins + m->nset <= r->ins_cap) {
            for (uint32_t k = 0; k < m->nset; k++) {
                r->ins_at[r->nins] = m->at;
                r->ins_op[r->nins++] = r->pool[m->set + k];
            }
            r->taken[m->op] = r->round;
            excess -= m->relief;
            done++;
        }
        (void)heddle_plan_heap_pop(heap, &n, is_better, r);
    }
    return done > 0 && insert_all(r, s);
}
