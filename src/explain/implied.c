/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * implied: dependencies that follow from the operands of tasks.
 *
 * Purpose    when a predecessor had ended before a task was submitted, the log has
 *            no dependency between the two, although the task could not have run
 *            before the predecessor. Paths and causes need these dependencies too.
 * Method     per handle two groups of tasks: the latest group, and the group before.
 *            Readers form a group, and so do tasks that commute or reduce; each
 *            writer is a group of its own. The first task of a group waits for the
 *            whole group before it, the other tasks for at most NJOIN of that group:
 *            with fewer edges than there are, no path becomes too long.
 * Limits     tasks of the main program only, whose order is that of their ids;
 *            the same handle only: views of one array are not seen.
 * Cost       linear in the accesses; at most 1 + NJOIN edges per access.
 */
#include "base/assert.h"
#include "base/mode.h"
#include "explain/explain.h"

enum { NJOIN = 2 };

struct group {
    uint32_t now, before; /* lists of members, or NONE */
    uint8_t mode;
};

struct heddle_explain_implied {
    struct group *group; /* [handles] */
    uint32_t *job;       /* [accesses] a member */
    uint32_t *next;      /* [accesses] and the next of its list */
    size_t access;       /* the next one to be looked at */
};

size_t heddle_explain_implied_max(const struct heddle_log_view *v)
{
    return v->naccesses < UINT32_MAX / (2 * (1 + NJOIN)) ? (1 + NJOIN) * v->naccesses : 0;
}

heddle_status heddle_explain_implied_create(const struct heddle_explain_work *w,
                                            struct heddle_scratch *mem,
                                            struct heddle_explain_implied **out)
{
    const struct heddle_log_view *v = w->v;
    struct heddle_explain_implied *m = heddle_scratch_get(mem, 1, sizeof(*m));

    if (m == NULL)
        return HEDDLE_ENOMEM;
    m->group = heddle_scratch_get(mem, v->nhandles, sizeof(*m->group));
    m->job = heddle_scratch_get(mem, v->naccesses, sizeof(*m->job));
    m->next = heddle_scratch_get(mem, v->naccesses, sizeof(*m->next));
    if (m->group == NULL || m->job == NULL || m->next == NULL)
        return HEDDLE_ENOMEM;
    for (size_t h = 0; h < v->nhandles; h++)
        m->group[h] = (struct group){HEDDLE_EXPLAIN_NONE, HEDDLE_EXPLAIN_NONE, 0};
    *out = m;
    return HEDDLE_OK;
}

/* Up to `most` members of a list become predecessors. */
static uint32_t link_list(const struct heddle_explain_implied *m, uint32_t list, uint32_t job,
                          size_t most, uint32_t *out)
{
    uint32_t n = 0;

    for (; list != HEDDLE_EXPLAIN_NONE && most > 0; list = m->next[list]) {
        if (m->job[list] != job)
            out[n++] = m->job[list];
        most--;
    }
    return n;
}

static uint32_t link_access(struct heddle_explain_implied *m, const struct heddle_log_access *x,
                            uint32_t job, uint32_t *out)
{
    const uint32_t i = (uint32_t)m->access;
    struct group *g = &m->group[x->handle];
    uint32_t n;

    if (g->now != HEDDLE_EXPLAIN_NONE && heddle_mode_is_alike(x->mode, g->mode)) {
        n = link_list(m, g->before, job, NJOIN, out);
    } else {
        g->before = g->now;
        g->now = HEDDLE_EXPLAIN_NONE;
        g->mode = x->mode;
        n = link_list(m, g->before, job, SIZE_MAX, out);
    }
    m->job[i] = job;
    m->next[i] = g->now;
    g->now = i;
    return n;
}

uint32_t heddle_explain_implied_of(const struct heddle_explain_work *w,
                                   struct heddle_explain_implied *m, uint32_t job, uint32_t *out)
{
    const struct heddle_log_view *v = w->v;
    const bool is_main = v->tasks[w->head[job]].parent == 0;
    uint32_t n = 0;

    while (m->access < v->naccesses && v->accesses[m->access].task < w->id[job])
        m->access++; /* of a task that the log does not have */
    for (; m->access < v->naccesses && v->accesses[m->access].task == w->id[job]; m->access++) {
        const struct heddle_log_access *x = &v->accesses[m->access];

        if (is_main && heddle_mode_is_known(x->mode) && heddle_mode_is_ordered(x->mode))
            n += link_access(m, x, job, out + n);
    }
    return n;
}
