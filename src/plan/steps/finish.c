/* SPDX-License-Identifier: BSD-3-Clause */
/* finish: a draft becomes a plan. Every number of it is computed here. */
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/sort.h"
#include "plan/arena/arena.h"

struct plan_box {
    struct heddle_plan p;
    struct heddle_scratch mem;
};

struct heddle_plan *heddle_plan_alloc(const struct heddle_allocator *a,
                                      struct heddle_scratch **mem_out)
{
    struct heddle_scratch mem = heddle_scratch_make(a);
    struct plan_box *b = heddle_scratch_get(&mem, 1, sizeof(*b));

    if (b == NULL)
        return NULL;
    b->p.size = sizeof(b->p);
    b->mem = mem;
    *mem_out = &b->mem;
    return &b->p;
}

void heddle_plan_destroy(struct heddle_plan *p)
{
    struct heddle_scratch mem;

    if (p == NULL)
        return;
    mem = ((struct plan_box *)p)->mem;
    heddle_scratch_drop(&mem);
}

const char *heddle_plan_keep_text(struct heddle_scratch *mem, const char *s)
{
    const size_t n = strlen(s) + 1;
    char *r = heddle_scratch_get(mem, n, 1);

    return r != NULL ? memcpy(r, s, n) : NULL;
}

/* The highest end at each computation. */
static void find_tops(const struct heddle_plan *p, const struct heddle_plan_block *block,
                      uint32_t nblocks, uint32_t *nth, uint64_t *top)
{
    uint32_t n = 0;

    /* nth: computations in front of a step */
    for (uint32_t s = 0; s < p->nsteps; s++) {
        nth[s] = n;
        if (p->steps[s].kind == HEDDLE_PLAN_COMPUTE)
            top[n++] = 0;
    }
    nth[p->nsteps] = n;
    for (uint32_t i = 0; i < nblocks; i++) {
        const uint64_t end = block[i].offset + block[i].bytes;

        for (uint32_t k = nth[block[i].begin]; k < nth[block[i].end]; k++)
            top[k] = end > top[k] ? end : top[k];
    }
}

/* The places of a plan's steps, and the blocks behind them. */
struct layout {
    struct heddle_plan_block *block;
    struct heddle_plan_place *place;
    uint32_t *of; /* block of a place */
    uint32_t nblocks, nplaces;
};

static heddle_status lay_out(const struct heddle_plan_job *job, const struct heddle_plan *p,
                             struct heddle_scratch *tmp, struct layout *l)
{
    return heddle_plan_blocks_make(job->g, p->steps, p->nsteps, &job->opts.base, tmp, &l->block,
                                   &l->nblocks, &l->place, &l->of, &l->nplaces);
}

static void set_places(struct heddle_plan_place *place, const struct layout *l)
{
    for (uint32_t i = 0; i < l->nplaces; i++) {
        place[i] = l->place[i];
        place[i].offset = l->block[l->of[i]].offset;
    }
}

/* Many blocks: the plain passes take the square of their number. */
#define MANY      6000
#define LONG_WORK 4 /* times as much: it is for plans that have no other way */

/* The plain passes, unless what the blocks have, an arena of `arena_out`, is
 * better. */
static heddle_status assign_better(const struct heddle_plan_job *job,
                                   struct heddle_plan_block *block, uint32_t n, double work,
                                   uint64_t *arena_out)
{
    const struct heddle_allocator *a = job->opts.base.alloc;
    struct heddle_scratch tmp = heddle_scratch_make(a);
    uint64_t *was = heddle_scratch_raw(&tmp, n, sizeof(*was));
    const uint64_t arena = *arena_out;
    heddle_status st = HEDDLE_ENOMEM;

    if (was != NULL) {
        for (uint32_t i = 0; i < n; i++)
            was[i] = block[i].offset;
        st = heddle_plan_assign(block, n, job->m->align, job->m->budget, work, job->deadline_ns, a,
                                arena_out);
    }
    if (st == HEDDLE_OK && *arena_out > arena) {
        for (uint32_t i = 0; i < n; i++)
            block[i].offset = was[i];
        *arena_out = arena;
    }
    heddle_scratch_drop(&tmp);
    return st;
}

static heddle_status assign(const struct heddle_plan_job *job, struct heddle_plan_block *block,
                            uint32_t n, double work, uint64_t *arena_out)
{
    const struct heddle_allocator *a = job->opts.base.alloc;
    heddle_status st = HEDDLE_ENOENT;

    if (n > MANY)
        st = heddle_plan_assign_long(block, n, job->m->align, job->m->budget, LONG_WORK * work,
                                     job->deadline_ns != 0 ? job->deadline_ns : UINT64_MAX, a,
                                     arena_out);
    if (st == HEDDLE_ENOMEM || (st == HEDDLE_OK && (*arena_out <= job->m->budget || n > 2 * MANY)))
        return st;
    if (st == HEDDLE_OK)
        return assign_better(job, block, n, work, arena_out);
    return heddle_plan_assign(block, n, job->m->align, job->m->budget, work, job->deadline_ns, a,
                              arena_out);
}

/* The blocks of a plan of several passes: at some moments nothing is there, and
 * what is in front of such a moment has nothing to do with what is behind it. */
static heddle_status assign_all(const struct heddle_plan_job *job, const struct layout *l,
                                double work, struct heddle_scratch *tmp, uint64_t *arena_out)
{
    struct heddle_pair *by = heddle_scratch_get(tmp, 2 * (size_t)l->nblocks, sizeof(*by));
    struct heddle_plan_block *part = heddle_scratch_get(tmp, l->nblocks, sizeof(*part));
    uint32_t first = 0, end = 0;
    heddle_status st = by != NULL && part != NULL ? HEDDLE_OK : HEDDLE_ENOMEM;

    *arena_out = 0;
    for (uint32_t i = 0; i < l->nblocks && st == HEDDLE_OK; i++)
        by[i] = (struct heddle_pair){l->block[i].begin, i};
    if (st == HEDDLE_OK)
        heddle_sort_pairs(by, by + l->nblocks, l->nblocks);
    for (uint32_t i = 0; i < l->nblocks && st == HEDDLE_OK; i++) {
        const bool is_last = i + 1 == l->nblocks;
        uint64_t arena = 0;

        part[i] = l->block[by[i].idx];
        end = part[i].end > end ? part[i].end : end;
        if (!is_last && by[i + 1].key < end)
            continue;
        st = first == 0 && is_last ? assign(job, l->block, l->nblocks, work, &arena)
                                   : assign(job, &part[first], i + 1 - first, work, &arena);
        for (uint32_t k = first; k <= i && !(first == 0 && is_last); k++)
            l->block[by[k].idx].offset = part[k].offset;
        first = i + 1;
        *arena_out = arena > *arena_out ? arena : *arena_out;
    }
    return st;
}

/* Addresses; p->arena_bytes is also set when they do not fit. */
static heddle_status give_addresses(const struct heddle_plan_job *job, struct heddle_plan *p,
                                    double work, uint64_t *top, struct heddle_scratch *mem)
{
    const struct heddle_plan_opts *o = &job->opts.base;
    struct heddle_scratch tmp = heddle_scratch_make(o->alloc);
    struct heddle_plan_place *kept = NULL;
    struct layout l = {.nblocks = 0};
    uint32_t *nth = NULL;
    heddle_status st = lay_out(job, p, &tmp, &l);

    if (st == HEDDLE_OK)
        st = assign_all(job, &l, work, &tmp, &p->arena_bytes);
    if (st == HEDDLE_OK) {
        kept = heddle_scratch_get(mem, l.nplaces, sizeof(*kept));
        nth = heddle_scratch_get(&tmp, (size_t)p->nsteps + 1, sizeof(*nth));
        st = kept != NULL && nth != NULL ? HEDDLE_OK : HEDDLE_ENOMEM;
    }
    if (st == HEDDLE_OK) {
        set_places(kept, &l);
        p->places = kept;
        p->nplaces = l.nplaces;
        if (top != NULL)
            find_tops(p, l.block, l.nblocks, nth, top);
    }
    heddle_scratch_drop(&tmp);
    if (st == HEDDLE_ENOMEM)
        return HEDDLE_PLAN_FAIL(o, st, "no memory for addresses");
    return st;
}

heddle_status heddle_plan_lower(const struct heddle_plan_job *job, struct heddle_plan *p)
{
    const struct heddle_plan_opts *o = &job->opts.base;
    struct heddle_scratch tmp = heddle_scratch_make(o->alloc);
    struct layout l = {.nblocks = 0};
    heddle_status st;

    if (p->nplaces > 2 * MANY) /* it would take too long */
        return HEDDLE_OK;
    st = lay_out(job, p, &tmp, &l);
    /* the same steps, so the same places in the same order */
    for (uint32_t i = 0; i < l.nplaces && st == HEDDLE_OK; i++)
        l.block[l.of[i]].offset = p->places[i].offset;
    if (st == HEDDLE_OK)
        st = heddle_plan_assign_lower(l.block, l.nblocks, job->m->align, HEDDLE_PLAN_WORK_MUCH,
                                      job->deadline_ns, o->alloc, &p->arena_bytes);
    if (st == HEDDLE_OK)
        set_places((struct heddle_plan_place *)(uintptr_t)p->places, &l);
    heddle_scratch_drop(&tmp);
    if (st == HEDDLE_ENOMEM)
        return HEDDLE_PLAN_FAIL(o, st, "no memory for addresses");
    return st;
}

static heddle_status set_claims(const struct heddle_plan_job *job,
                                const struct heddle_plan_claim *claim, struct heddle_plan *p,
                                struct heddle_scratch *mem)
{
    const struct heddle_plan_opts *o = &job->opts.base;
    const char *note = claim->bound_note;

    p->budget = job->m->budget;
    p->baseline = heddle_plan_sum_times(job->g);
    p->lower_bound = claim->lower_bound;
    if (!(p->lower_bound > p->baseline)) {
        p->lower_bound = p->baseline;
        note = note != NULL ? note : "every operation once";
    }
    if (p->lower_bound > p->makespan * (1 + 1e-9))
        return HEDDLE_PLAN_FAIL(o, HEDDLE_EINVAL, "the bound of solver %s is above its plan",
                                claim->solver);
    if (p->lower_bound > p->makespan)
        p->lower_bound = p->makespan;
    p->solver = heddle_plan_keep_text(mem, claim->solver);
    p->bound_note = heddle_plan_keep_text(mem, note != NULL ? note : "");
    p->seconds = heddle_plan_job_seconds(job);
    if (p->solver == NULL || p->bound_note == NULL)
        return HEDDLE_PLAN_FAIL(o, HEDDLE_ENOMEM, "no memory for the plan");
    return HEDDLE_OK;
}

static heddle_status over(const struct heddle_plan_job *job, const char *what, uint64_t need,
                          uint64_t *over_out)
{
    if (over_out != NULL)
        *over_out = need;
    return HEDDLE_PLAN_FAIL(&job->opts.base, HEDDLE_ENOENT, "%s needs %s; the budget is %s", what,
                            heddle_plan_bytes_label(need).text,
                            heddle_plan_bytes_label(job->m->budget).text);
}

static heddle_status fill(const struct heddle_plan_job *job, const struct heddle_plan_draft *d,
                          const struct heddle_plan_claim *claim, double work, uint64_t *over_out,
                          uint64_t *top, struct heddle_plan *p, struct heddle_scratch *mem)
{
    const struct heddle_plan_opts *o = &job->opts.base;
    struct heddle_plan_step *step;
    struct heddle_plan_cost cost;

    HEDDLE_TRY(heddle_plan_eval(job->g, job->m, d->step, d->n, o, &cost));
    p->peak_bytes = cost.peak_bytes;
    p->makespan = cost.makespan;
    p->compute = cost.compute;
    p->link_busy = cost.link_busy;
    if (p->peak_bytes > job->m->budget)
        return over(job, "what is alive", p->peak_bytes, over_out);
    step = heddle_scratch_get(mem, d->n, sizeof(*step));
    if (step == NULL)
        return HEDDLE_PLAN_FAIL(o, HEDDLE_ENOMEM, "no memory for the plan");
    memcpy(step, d->step, d->n * sizeof(*step));
    p->steps = step;
    p->nsteps = d->n;
    HEDDLE_TRY(give_addresses(job, p, work, top, mem));
    if (p->arena_bytes > job->m->budget)
        return over(job, "the arena", p->arena_bytes, over_out);
    return set_claims(job, claim, p, mem);
}

heddle_status heddle_plan_finish(const struct heddle_plan_job *job,
                                 const struct heddle_plan_draft *d,
                                 const struct heddle_plan_claim *claim, uint64_t *over_out,
                                 struct heddle_plan **out)
{
    const double work = job->deadline_ns != 0 ? HEDDLE_PLAN_WORK_SOME : HEDDLE_PLAN_WORK_LITTLE;

    return heddle_plan_finish_tops(job, d, claim, work, over_out, NULL, out);
}

heddle_status heddle_plan_finish_tops(const struct heddle_plan_job *job,
                                      const struct heddle_plan_draft *d,
                                      const struct heddle_plan_claim *claim, double work,
                                      uint64_t *over_out, uint64_t *top, struct heddle_plan **out)
{
    struct heddle_scratch *mem = NULL;
    struct heddle_plan *p;
    heddle_status st;

    if (over_out != NULL)
        *over_out = 0;
    if (d->st != HEDDLE_OK)
        return HEDDLE_PLAN_FAIL(&job->opts.base, d->st, "no memory for the steps");
    p = heddle_plan_alloc(job->opts.base.alloc, &mem);
    if (p == NULL)
        return HEDDLE_PLAN_FAIL(&job->opts.base, HEDDLE_ENOMEM, "no memory for the plan");
    st = fill(job, d, claim, work, over_out, top, p, mem);
    if (st != HEDDLE_OK)
        heddle_plan_destroy(p);
    else
        *out = p;
    return st;
}
