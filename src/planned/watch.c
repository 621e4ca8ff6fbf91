/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * watch: the time of each task, and the memory of the arena that is in use.
 *
 * Threads  the workers that run the tasks. A node is one worker's at a time, a block
 *          counts the nodes that use it. Launches of one planned graph follow each other,
 *          and a block's counters are back at their beginning when its last node ends.
 */
#include "base/assert.h"
#include "base/clock.h"
#include "planned/planned.h"

static void watch_raise(_Atomic uint64_t *most, uint64_t x)
{
    uint64_t seen = heddle_load_rlx(most);

    while (seen < x && !heddle_cas_weak_acqrel(most, &seen, x))
        ;
}

static void watch_lower(_Atomic uint64_t *least, uint64_t x)
{
    uint64_t seen = heddle_load_rlx(least);

    while (seen > x && !heddle_cas_weak_acqrel(least, &seen, x))
        ;
}

void heddle_planned_watch_begin(void *user, uint32_t node)
{
    struct heddle_planned *p = user;
    struct planned_node *n = &p->node[node];

    for (uint32_t i = n[0].first_block; i < n[1].first_block; i++) {
        struct planned_memory *m = &p->block[p->used.at[i]];
        uint32_t none = 0;
        uint64_t live;

        if (heddle_load_rlx(&m->is_live) != 0 || !heddle_cas_acqrel(&m->is_live, &none, 1u))
            continue;
        live = heddle_add_acqrel(&p->live, m->bytes) + m->bytes;
        HEDDLE_ASSERT(live <= p->plan->arena_bytes);
        HEDDLE_ASSERT(m->at + m->bytes <= p->plan->arena_bytes);
        watch_raise(&p->real_peak, live);
        watch_raise(&p->real_arena, m->at + m->bytes);
    }
    n->start_ns = heddle_clock_ns();
}

void heddle_planned_watch_end(void *user, uint32_t node, heddle_status st)
{
    struct heddle_planned *p = user;
    const struct planned_node *n = &p->node[node];

    if (st == HEDDLE_OK && n->task != PLANNED_NONE)
        watch_lower(&p->least_ns[n->task], heddle_clock_ns() - n->start_ns);
    for (uint32_t i = n[0].first_block; i < n[1].first_block; i++) {
        struct planned_memory *m = &p->block[p->used.at[i]];

        if (heddle_sub_acqrel(&m->left, 1u) != 1)
            continue;
        heddle_store_rlx(&m->left, m->nnodes);
        heddle_store_rel(&m->is_live, 0u);
        (void)heddle_sub_acqrel(&p->live, m->bytes);
    }
}
