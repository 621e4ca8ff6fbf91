/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * sim/replay: an ideal cache under the order of a run; see sim/replay.h.
 *
 * Structure  per handle the nodes that hold a valid copy, when each was used
 *            last, and the list of its accesses with a cursor at the next one.
 * Cost       a victim looks at all handles of the device.
 */
#include "sim/replay.h"

#include <stdlib.h>

#include "base/mode.h"

#define NEVER SIZE_MAX

/* --- the log ------------------------------------------------------------- */

static heddle_status read_step(struct sim_step *s, const heddle_log *log,
                               const struct heddle_log_view *v, size_t i)
{
    size_t first, last;

    s->node = v->lanes[v->tasks[i].lane].node;
    heddle_log_find_accesses(log, v->tasks[i].id, &first, &last);
    if (s->node >= SIM_NODES || last - first > SIM_OPERANDS)
        return HEDDLE_EINVAL;
    for (; first < last; first++) {
        const struct heddle_log_access *a = &v->accesses[first];

        if (v->handles[a->handle].parent != a->handle)
            return HEDDLE_EINVAL;
        s->op[s->nops].handle = a->handle;
        s->op[s->nops++].mode = heddle_mode_of(a->mode);
    }
    return HEDDLE_OK;
}

heddle_status sim_replay_read(struct sim_replay *r, const heddle_log *log)
{
    const struct heddle_log_view *v = heddle_log_get_view(log);
    heddle_status st = HEDDLE_OK;

    *r = (struct sim_replay){.nhandles = v->nhandles};
    r->step = calloc(v->ntasks + 1, sizeof(*r->step));
    r->bytes = calloc(v->nhandles + 1, sizeof(*r->bytes));
    if (r->step == NULL || r->bytes == NULL)
        return HEDDLE_ENOMEM;
    for (size_t h = 0; h < v->nhandles; h++)
        r->bytes[h] = v->handles[h].bytes;
    for (size_t i = 0; i < v->ntasks && st == HEDDLE_OK; i++)
        if (v->tasks[i].status == HEDDLE_LOG_OK)
            st = read_step(&r->step[r->nsteps++], log, v, i);
    return st;
}

void sim_replay_free(struct sim_replay *r)
{
    free(r->step);
    free(r->bytes);
    r->step = NULL;
    r->bytes = NULL;
}

/* --- state --------------------------------------------------------------- */

struct access {
    size_t step;
    uint32_t node;
    uint32_t writes;
};

struct cached {
    uint64_t valid;          /* nodes; bit 0: the host */
    size_t first, next, end; /* its accesses; those before next are past */
};

struct cache {
    const struct sim_replay *r;
    struct cached *h;
    struct access *access;
    size_t *last_use; /* [handle * SIM_NODES + node] */
    uint32_t *resident[SIM_NODES];
    size_t nresident[SIM_NODES];
    uint64_t used[SIM_NODES];
    struct sim_traffic *out;
    enum sim_victim victim;
};

static uint64_t bit(uint32_t node)
{
    return UINT64_C(1) << node;
}

/* All accesses, sorted by handle, then in order. */
static bool fill_accesses(struct cache *c)
{
    const struct sim_replay *r = c->r;
    size_t n = 0;

    for (size_t i = 0; i < r->nsteps; i++)
        for (uint32_t o = 0; o < r->step[i].nops; o++)
            c->h[r->step[i].op[o].handle].end++;
    for (size_t h = 0; h < r->nhandles; h++) {
        const size_t count = c->h[h].end;

        c->h[h] = (struct cached){.valid = 1, .first = n, .next = n, .end = n};
        n += count;
    }
    c->access = calloc(n + 1, sizeof(*c->access));
    if (c->access == NULL)
        return false;
    for (size_t i = 0; i < r->nsteps; i++)
        for (uint32_t o = 0; o < r->step[i].nops; o++)
            c->access[c->h[r->step[i].op[o].handle].end++] =
                (struct access){i, r->step[i].node, heddle_mode_writes(r->step[i].op[o].mode)};
    return true;
}

/* The step at which the copy on `node` is of use again. */
static size_t next_use(const struct cache *c, uint32_t handle, uint32_t node, size_t now)
{
    const struct cached *h = &c->h[handle];

    for (size_t a = h->next; a < h->end; a++) {
        if (c->access[a].step <= now)
            continue;
        if (c->access[a].node == node)
            return c->access[a].step;
        if (c->access[a].writes)
            break;
    }
    return NEVER;
}

static void drop(struct cache *c, uint32_t handle, uint32_t node)
{
    uint32_t *list = c->resident[node];
    size_t i = 0;

    c->h[handle].valid &= ~bit(node);
    if (node == 0)
        return;
    while (list[i] != handle)
        i++;
    list[i] = list[--c->nresident[node]];
    c->used[node] -= c->r->bytes[handle];
}

static void hold(struct cache *c, uint32_t handle, uint32_t node)
{
    if (node == 0)
        return;
    c->resident[node][c->nresident[node]++] = handle;
    c->used[node] += c->r->bytes[handle];
}

/* --- victims ------------------------------------------------------------- */

static bool is_operand(const struct sim_step *s, uint32_t handle)
{
    for (uint32_t o = 0; o < s->nops; o++)
        if (s->op[o].handle == handle)
            return true;
    return false;
}

/* Larger is the better victim; the last bit: no write-back. */
static size_t score(const struct cache *c, uint32_t handle, uint32_t node, size_t now)
{
    const size_t clean = (c->h[handle].valid & ~bit(node)) != 0;
    size_t use;

    if (c->victim == SIM_LRU)
        return NEVER / 4 - c->last_use[handle * SIM_NODES + node];
    use = next_use(c, handle, node, now);
    return (use == NEVER ? NEVER / 4 : use) * 2 + clean;
}

static bool evict(struct cache *c, const struct sim_step *s, size_t now)
{
    const uint32_t node = s->node;
    uint32_t best = UINT32_MAX;
    size_t most = 0;

    for (size_t i = 0; i < c->nresident[node]; i++) {
        const uint32_t h = c->resident[node][i];
        const size_t v = is_operand(s, h) ? 0 : score(c, h, node, now);

        if (v <= most)
            continue;
        most = v;
        best = h;
    }
    if (best == UINT32_MAX)
        return false;
    if (c->h[best].valid == bit(node)) {
        c->out->home_bytes += c->r->bytes[best];
        c->h[best].valid |= 1;
    }
    drop(c, best, node);
    return true;
}

/* --- tasks --------------------------------------------------------------- */

static void load(struct cache *c, uint32_t handle, uint32_t node)
{
    const uint64_t bytes = c->r->bytes[handle];
    struct cached *h = &c->h[handle];

    if (node == 0) {
        c->out->home_bytes += bytes;
    } else {
        if ((h->valid & (c->r->link[node] | 1)) == 0) {
            c->out->home_bytes += bytes;
            h->valid |= 1;
        }
        c->out->load_bytes += bytes;
    }
    h->valid |= bit(node);
}

/* Room for everything first, then what is missing. */
static bool bring(struct cache *c, const struct sim_step *s, size_t now)
{
    const uint64_t capacity = c->r->capacity[s->node];
    uint64_t need = 0;

    for (uint32_t o = 0; o < s->nops; o++)
        if ((c->h[s->op[o].handle].valid & bit(s->node)) == 0)
            need += c->r->bytes[s->op[o].handle];
    while (capacity != 0 && s->node != 0 && c->used[s->node] + need > capacity)
        if (!evict(c, s, now))
            return false;
    for (uint32_t o = 0; o < s->nops; o++) {
        const uint32_t h = s->op[o].handle;

        if ((c->h[h].valid & bit(s->node)) != 0)
            continue;
        hold(c, h, s->node);
        if (heddle_mode_reads(s->op[o].mode))
            load(c, h, s->node);
        else
            c->h[h].valid |= bit(s->node);
    }
    return true;
}

static void touch(struct cache *c, const struct sim_step *s, size_t now)
{
    for (uint32_t o = 0; o < s->nops; o++) {
        const uint32_t handle = s->op[o].handle;
        struct cached *h = &c->h[handle];

        /* Operands of one task: the last is the latest. */
        c->last_use[handle * SIM_NODES + s->node] = now * SIM_OPERANDS + o + 1;
        while (h->next < h->end && c->access[h->next].step <= now)
            h->next++;
        for (uint32_t n = 0; n < SIM_NODES && heddle_mode_writes(s->op[o].mode); n++)
            if (n != s->node && (h->valid & bit(n)) != 0)
                drop(c, handle, n);
    }
}

static heddle_status replay(struct cache *c)
{
    const struct sim_replay *r = c->r;
    bool is_ok;

    c->h = calloc(r->nhandles + 1, sizeof(*c->h));
    c->last_use = calloc(r->nhandles * SIM_NODES + 1, sizeof(*c->last_use));
    is_ok = c->h != NULL && c->last_use != NULL && fill_accesses(c);
    for (unsigned n = 0; n < SIM_NODES && is_ok; n++) {
        c->resident[n] = calloc(r->nhandles + 1, sizeof(uint32_t));
        is_ok = c->resident[n] != NULL;
    }
    if (!is_ok)
        return HEDDLE_ENOMEM;
    for (size_t i = 0; i < r->nsteps; i++) {
        if (!bring(c, &r->step[i], i))
            return HEDDLE_EINVAL;
        touch(c, &r->step[i], i);
    }
    return HEDDLE_OK;
}

heddle_status sim_replay_run(const struct sim_replay *r, enum sim_victim victim,
                             struct sim_traffic *out)
{
    struct cache c = {.r = r, .out = out, .victim = victim};
    heddle_status st;

    *out = (struct sim_traffic){0};
    st = replay(&c);
    for (unsigned n = 0; n < SIM_NODES; n++)
        free(c.resident[n]);
    free(c.h);
    free(c.access);
    free(c.last_use);
    return st;
}
