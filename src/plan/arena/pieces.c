/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pieces: which pieces of the arena a list of steps needs, and from when to when.
 *
 * The steps have passed heddle_plan_eval(): nothing is checked again.
 */
#include <string.h>

#include "base/assert.h"
#include "plan/arena/arena.h"

struct maker {
    const struct heddle_plan_graph *g;
    struct heddle_plan_block *block;
    struct heddle_plan_place *place;
    uint32_t *of;   /* [nplaces] block of a place */
    uint32_t *cur;  /* [nvalues] block of a value in memory; NONE: no bytes */
    uint8_t *is_in; /* [nvalues] */
    uint32_t nblocks, nplaces, nsteps;
};

/* At most so many places. */
static size_t count(const struct heddle_plan_graph *g, const struct heddle_plan_step *step,
                    uint32_t nsteps)
{
    size_t n = 0;

    for (uint32_t v = 0; v < g->nvalues; v++)
        n += heddle_plan_is_initial(&g->values[v]);
    for (uint32_t s = 0; s < nsteps; s++)
        if (step[s].kind == HEDDLE_PLAN_COMPUTE)
            n += (size_t)__builtin_popcountll(step[s].outputs) + 1;
        else
            n += step[s].kind == HEDDLE_PLAN_PREFETCH;
    return n;
}

static uint32_t open_block(struct maker *m, uint32_t step, uint64_t bytes)
{
    m->block[m->nblocks] =
        (struct heddle_plan_block){.bytes = bytes, .begin = step, .end = m->nsteps};
    return m->nblocks++;
}

/* Puts a place where the order wants it: only those of step 0 can be out of it,
 * where values from the beginning meet outputs. */
static void add_place(struct maker *m, uint32_t step, uint32_t value, uint32_t block)
{
    uint32_t i = m->nplaces++;

    while (i > 0 && m->place[i - 1].step == step && m->place[i - 1].value > value) {
        m->place[i] = m->place[i - 1];
        m->of[i] = m->of[i - 1];
        i--;
    }
    m->place[i] = (struct heddle_plan_place){.step = step, .value = value};
    m->of[i] = block;
}

static void bring(struct maker *m, uint32_t step, uint32_t v)
{
    m->is_in[v] = 1;
    m->cur[v] = HEDDLE_PLAN_NONE;
    if (m->g->values[v].bytes == 0)
        return;
    m->cur[v] = open_block(m, step, m->g->values[v].bytes);
    add_place(m, step, v, m->cur[v]);
}

static void drop(struct maker *m, uint32_t end, uint32_t v)
{
    m->is_in[v] = 0;
    if (m->cur[v] != HEDDLE_PLAN_NONE)
        m->block[m->cur[v]].end = end;
}

/* The first output takes the memory of an input. */
static void replace(struct maker *m, uint32_t step, const struct heddle_plan_op *op)
{
    const uint32_t from = op->inplace, to = op->first_value;

    m->is_in[from] = 0;
    m->is_in[to] = 1;
    m->cur[to] = HEDDLE_PLAN_NONE;
    if (m->g->values[to].bytes > 0) {
        m->cur[to] = m->cur[from];
        add_place(m, step, to, m->cur[to]);
    } else if (m->cur[from] != HEDDLE_PLAN_NONE) {
        m->block[m->cur[from]].end = step + 1;
    }
}

static void compute(struct maker *m, uint32_t at, const struct heddle_plan_step *s)
{
    const struct heddle_plan_op *op = &m->g->ops[s->what];

    if (s->in_place)
        replace(m, at, op);
    for (uint32_t i = 0; i < op->nvalues; i++)
        if ((s->outputs >> i & 1) != 0 && !m->is_in[op->first_value + i])
            bring(m, at, op->first_value + i);
    if (op->work_bytes > 0) {
        const uint32_t b = open_block(m, at, op->work_bytes);

        m->block[b].end = at + 1;
        add_place(m, at, HEDDLE_PLAN_NONE, b);
    }
}

heddle_status heddle_plan_blocks_make(const struct heddle_plan_graph *g,
                                      const struct heddle_plan_step *step, uint32_t nsteps,
                                      const struct heddle_plan_opts *o, struct heddle_scratch *mem,
                                      struct heddle_plan_block **block_out, uint32_t *nblocks_out,
                                      struct heddle_plan_place **place_out,
                                      uint32_t **block_of_place_out, uint32_t *nplaces_out)
{
    struct maker m = {.g = g, .nsteps = nsteps};
    const size_t n = count(g, step, nsteps);

    if (n >= HEDDLE_PLAN_NONE)
        return HEDDLE_PLAN_FAIL(o, HEDDLE_EOVERFLOW, "too many places");
    m.block = heddle_scratch_get(mem, n, sizeof(*m.block));
    m.place = heddle_scratch_get(mem, n, sizeof(*m.place));
    m.of = heddle_scratch_get(mem, n, sizeof(*m.of));
    m.cur = heddle_scratch_get(mem, g->nvalues, sizeof(*m.cur));
    m.is_in = heddle_scratch_get(mem, g->nvalues, sizeof(*m.is_in));
    if (m.block == NULL || m.place == NULL || m.of == NULL || m.cur == NULL || m.is_in == NULL)
        return HEDDLE_PLAN_FAIL(o, HEDDLE_ENOMEM, "no memory for addresses");
    for (uint32_t v = 0; v < g->nvalues; v++)
        if (heddle_plan_is_initial(&g->values[v]))
            bring(&m, 0, v);
    for (uint32_t s = 0; s < nsteps; s++) {
        if (step[s].kind == HEDDLE_PLAN_COMPUTE)
            compute(&m, s, &step[s]);
        else if (step[s].kind == HEDDLE_PLAN_PREFETCH)
            bring(&m, s, step[s].what);
        else if (step[s].kind == HEDDLE_PLAN_DISCARD)
            drop(&m, s, step[s].what);
    }
    *block_out = m.block;
    *nblocks_out = m.nblocks;
    *place_out = m.place;
    *block_of_place_out = m.of;
    *nplaces_out = m.nplaces;
    return HEDDLE_OK;
}
