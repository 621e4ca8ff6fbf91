/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * back_write: the way that was found backwards, as a sequence.
 *
 * Between two states the steps that simplified a set are done again, and their log read
 * forwards. A small value is computed once, in front of its first reader.
 */
#include <string.h>

#include "plan/seq/back.h"

#define NONE HEDDLE_PLAN_NONE

static bool append(struct heddle_plan_back *b, uint32_t a)
{
    if (b->s->n == b->s->cap)
        return false;
    b->s->op[b->s->n++] = a;
    b->is_done[a] = 1;
    return true;
}

/* The operation of input i of a, if that has not run; NONE. */
static uint32_t missing_op(const struct heddle_plan_back *b, uint32_t a, uint32_t i)
{
    const uint32_t by = b->g->values[b->g->inputs[b->g->ops[a].first_input + i]].op;

    return by != NONE && !b->is_done[by] ? by : NONE;
}

static uint32_t first_missing(const struct heddle_plan_back *b, uint32_t a)
{
    uint32_t by = NONE;

    for (uint32_t i = 0; i < b->g->ops[a].ninputs && by == NONE; i++)
        by = missing_op(b, a, i);
    return by;
}

/* What reads something new and what no large value needs, as soon as it can run. */
static bool emit_idle(struct heddle_plan_back *b)
{
    const struct heddle_plan_users *u = &b->x->job->users;

    for (; b->nfresh < b->s->n; b->nfresh++) {
        const struct heddle_plan_op *o = &b->g->ops[b->s->op[b->nfresh]];

        for (uint32_t v = o->first_value; v < o->first_value + o->nvalues; v++)
            for (uint32_t k = u->first[v]; k < u->first[v + 1]; k++) {
                const uint32_t r = u->user[k];

                if (!b->is_done[r] && !b->is_needed[r] && first_missing(b, r) == NONE &&
                    !append(b, r))
                    return false;
            }
    }
    return true;
}

/* An operation, behind the small ones that it needs. False: no room. */
static bool emit(struct heddle_plan_back *b, uint32_t a)
{
    uint32_t n = 0;

    b->stack[n++] = a;
    while (n > 0) {
        const uint32_t top = b->stack[n - 1];
        const uint32_t by = first_missing(b, top);

        if (by != NONE)
            b->stack[n++] = by;
        else if (append(b, top))
            n--;
        else
            return false;
    }
    return emit_idle(b);
}

/* Operations that a target or a large value needs, and these. */
static void find_needed(struct heddle_plan_back *b)
{
    const struct heddle_plan_graph *g = b->g;

    memset(b->is_needed, 0, g->nops);
    for (uint32_t i = 0; i < b->ntargets; i++)
        b->is_needed[b->target[i].op] = 1;
    for (uint32_t i = 0; i < b->n; i++)
        b->is_needed[b->node[i].op] = 1;
    for (uint32_t a = g->nops; a-- > 0;)
        for (uint32_t i = 0; i < g->ops[a].ninputs && b->is_needed[a]; i++) {
            const uint32_t by = g->values[g->inputs[g->ops[a].first_input + i]].op;

            if (by != NONE)
                b->is_needed[by] = 1;
        }
}

/* The way from the beginning to the end. */
bool heddle_plan_back_write(struct heddle_plan_back *b, uint32_t id)
{
    b->s->n = b->nfresh = 0;
    memset(b->is_done, 0, b->g->nops);
    find_needed(b);
    for (; b->state[id].from != NONE; id = b->state[id].from) {
        const struct heddle_plan_back_state *to = &b->state[b->state[id].from];
        const uint32_t x = b->state[id].over;
        uint32_t end;

        (void)heddle_plan_back_step(b, to, x);
        if (b->state[id].is_bold)
            heddle_plan_back_exchange(b, true);
        end = b->nlog;
        for (uint32_t k = b->nevent; k-- > 0;) {
            for (uint32_t i = b->event[k]; i < end; i++)
                if (!emit(b, b->node[b->log[i]].op))
                    return false;
            end = b->event[k];
        }
        if (!emit(b, x != NONE ? b->node[x].op : b->target[to->left - 1].op))
            return false;
    }
    for (uint32_t a = 0; a < b->g->nops; a++)
        if (!b->is_done[a] && !emit(b, a))
            return false;
    return true;
}
