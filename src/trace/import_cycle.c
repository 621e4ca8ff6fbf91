/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * import_cycle: tasks that wait for each other in a circle, or are inside of each other.
 *
 * A run has no such tasks, so the file is damaged or made up; what works on the log would
 * have to leave out one of the dependencies, and could not say which.
 *
 * Method   Ids get numbers as they appear. Tasks that wait for nothing are taken away,
 *          again and again (Kahn); of what stays, every task waits for another one that
 *          stays, so a walk from any of these tasks towards what it waits for ends in a
 *          circle.
 */
#include <string.h>

#include "base/assert.h"
#include "base/scratch.h"
#include "trace/import.h"

#define NONE UINT32_MAX

/* Edges from a task to what it waits for; as arrays by number. */
struct circle {
    struct heddle_scratch mem;
    struct heddle_map number_of;
    uint64_t *id;
    uint32_t *first; /* [n] of the edges that lead to a number */
    uint32_t *next;  /* [edges] */
    uint32_t *from;  /* [edges] who waits */
    uint32_t *to;    /* [edges] */
    uint32_t *waits; /* [n] edges from a number whose end was not taken away */
    uint32_t *stack; /* [n] */
    uint32_t n, nedges;
};

static heddle_status circle_init(struct circle *c, size_t nedges)
{
    const size_t n = 2 * nedges;

    c->id = heddle_scratch_get(&c->mem, n, sizeof(*c->id));
    c->first = heddle_scratch_get(&c->mem, n, sizeof(*c->first));
    c->waits = heddle_scratch_get(&c->mem, n, sizeof(*c->waits));
    c->stack = heddle_scratch_get(&c->mem, n, sizeof(*c->stack));
    c->next = heddle_scratch_get(&c->mem, nedges, sizeof(*c->next));
    c->from = heddle_scratch_get(&c->mem, nedges, sizeof(*c->from));
    c->to = heddle_scratch_get(&c->mem, nedges, sizeof(*c->to));
    if (c->id == NULL || c->first == NULL || c->waits == NULL || c->stack == NULL ||
        c->next == NULL || c->from == NULL || c->to == NULL)
        return HEDDLE_ENOMEM;
    memset(c->first, 0xff, n * sizeof(*c->first));
    return HEDDLE_OK;
}

static heddle_status number(struct circle *c, uint64_t id, uint32_t *out)
{
    uint64_t *place;

    HEDDLE_TRY(heddle_map_slot(&c->number_of, id, &place));
    if (*place == 0) {
        c->id[c->n] = id;
        *place = ++c->n;
    }
    *out = (uint32_t)(*place - 1);
    return HEDDLE_OK;
}

static heddle_status add(struct circle *c, uint64_t who, uint64_t what)
{
    const uint32_t e = c->nedges++;

    HEDDLE_TRY(number(c, who, &c->from[e]));
    HEDDLE_TRY(number(c, what, &c->to[e]));
    c->next[e] = c->first[c->to[e]];
    c->first[c->to[e]] = e;
    c->waits[c->from[e]]++;
    return HEDDLE_OK;
}

/* A number that is in a circle; NONE: there is no circle. */
static uint32_t find(struct circle *c)
{
    uint32_t top = 0, left = c->n, at = 0;

    for (uint32_t i = 0; i < c->n; i++)
        if (c->waits[i] == 0)
            c->stack[top++] = i;
    while (top > 0) {
        left--;
        for (uint32_t e = c->first[c->stack[--top]]; e != NONE;) {
            const uint32_t who = c->from[e];

            e = c->next[e];
            if (--c->waits[who] == 0)
                c->stack[top++] = who;
        }
    }
    if (left == 0)
        return NONE;
    /* One edge of each task that stays, to another one that stays. */
    for (uint32_t e = 0; e < c->nedges; e++)
        if (c->waits[c->from[e]] > 0 && c->waits[c->to[e]] > 0) {
            c->stack[c->from[e]] = c->to[e];
            at = c->from[e];
        }
    for (uint32_t i = 0; i < c->n; i++)
        at = c->stack[at];
    return at;
}

static heddle_status add_all(struct circle *c, const struct heddle_import *m, bool is_nested)
{
    HEDDLE_TRY(circle_init(c, is_nested ? m->ntasks : m->ndeps));
    for (size_t i = 0; !is_nested && i < m->ndeps; i++)
        HEDDLE_TRY(add(c, m->deps[i].succ, m->deps[i].pred));
    for (size_t i = 0; is_nested && i < m->ntasks; i++)
        if (m->tasks[i].parent != 0)
            HEDDLE_TRY(add(c, m->tasks[i].id, m->tasks[i].parent));
    return HEDDLE_OK;
}

static heddle_status check(const struct heddle_import *m, bool is_nested)
{
    struct circle c = {.mem = heddle_scratch_make(m->a)};
    heddle_status st;
    uint64_t line = 0;

    heddle_map_init(&c.number_of, m->a);
    st = add_all(&c, m, is_nested);
    if (st == HEDDLE_OK) {
        const uint32_t at = find(&c);

        if (at != NONE) {
            (void)heddle_map_get(&m->tasks_seen, c.id[at], &line);
            st = heddle_import_refuse(m, (size_t)line,
                                      is_nested
                                          ? "the task is inside of itself, by way of its parents"
                                          : "the task waits for itself, by way of other tasks");
        }
    }
    heddle_map_fini(&c.number_of);
    heddle_scratch_drop(&c.mem);
    return st;
}

heddle_status heddle_import_check_cycles(const struct heddle_import *m)
{
    if (m->ndeps > UINT32_MAX / 4 || m->ntasks > UINT32_MAX / 4)
        return HEDDLE_EOVERFLOW;
    HEDDLE_TRY(check(m, false));
    return check(m, true);
}
