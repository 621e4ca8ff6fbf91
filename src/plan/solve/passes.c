/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * passes: the operations that one end of the graph needs are planned by themselves.
 *
 * Purpose   the least memory. A network that is unrolled over many steps adds up the
 *           gradients of several weights, and these sums are alive all the time. When
 *           no result has to stay, each sum may have a pass of its own, from the
 *           beginning, in which the other sums are not alive.
 * Structure the end (an operation whose output no operation reads) with the most bytes of
 *           its own is one graph, the operations that the other ends need are another;
 *           operations that both need are in both. A graph for which blocks find a plan
 *           is not cut further.
 */
#include "plan/blocks/blocks.h"

#include <string.h>

#include "base/clock.h"

#define NONE     HEDDLE_PLAN_NONE
#define MIXED    (NONE - 1)
#define DEPTH    6 /* of cutting */
#define PLACE_NS (HEDDLE_NS_PER_S / 4)

struct passes {
    const struct heddle_plan_job *job;
    struct heddle_scratch mem;
    const char *solver;     /* of a pass */
    bool is_quick, is_long; /* only sweeps; no sweeps */
    uint32_t *op;           /* [room] the sequence */
    uint32_t n, room;
};

/* Whether operations may be computed again in another order. */
static bool is_possible(const struct heddle_plan_graph *g)
{
    for (uint32_t v = 0; v < g->nvalues; v++)
        if ((g->values[v].flags & HEDDLE_PLAN_RESULT) != 0 ||
            heddle_plan_is_initial(&g->values[v]) != (g->values[v].op == NONE))
            return false;
    for (uint32_t i = 0; i < g->nops; i++)
        if (g->ops[i].inplace != NONE || (g->ops[i].flags & HEDDLE_PLAN_ONCE) != 0)
            return false;
    return true;
}

/* ---- where to cut ------------------------------------------------------------ */

/* The end for which an operation of `in` is made, or MIXED, or NONE: not in it. */
static void find_owners(const struct heddle_plan_job *job, const uint8_t *in, uint32_t *owner)
{
    const struct heddle_plan_graph *g = job->g;

    for (uint32_t i = g->nops; i-- > 0;) {
        const struct heddle_plan_op *o = &g->ops[i];

        owner[i] = NONE;
        if (!in[i])
            continue;
        for (uint32_t v = o->first_value; v < o->first_value + o->nvalues; v++)
            for (uint32_t k = job->users.first[v]; k < job->users.first[v + 1]; k++) {
                const uint32_t by = owner[job->users.user[k]];

                if (by != NONE)
                    owner[i] = owner[i] == NONE || owner[i] == by ? by : MIXED;
            }
        if (owner[i] == NONE)
            owner[i] = i;
    }
}

/* The end with the most bytes of its own; NONE: there is only one, or nothing is
 * won. */
static uint32_t find_heaviest(const struct heddle_plan_graph *g, const uint32_t *owner,
                              double *bytes)
{
    uint32_t best = NONE, nends = 0;

    memset(bytes, 0, g->nops * sizeof(*bytes));
    for (uint32_t i = 0; i < g->nops; i++) {
        nends += owner[i] == i;
        if (owner[i] == NONE || owner[i] == MIXED)
            continue;
        for (uint32_t k = 0; k < g->ops[i].nvalues; k++)
            bytes[owner[i]] += (double)g->values[g->ops[i].first_value + k].bytes;
    }
    for (uint32_t i = 0; i < g->nops; i++)
        if (bytes[i] > 0 && (best == NONE || bytes[i] > bytes[best]))
            best = i;
    return nends > 1 ? best : NONE;
}

/* Marks what the marked operations need. */
static void close_cone(const struct heddle_plan_graph *g, uint8_t *in)
{
    for (uint32_t i = g->nops; i-- > 0;)
        for (uint32_t k = 0; k < g->ops[i].ninputs && in[i]; k++) {
            const uint32_t v = g->inputs[g->ops[i].first_input + k];

            if (g->values[v].op != NONE)
                in[g->values[v].op] = 1;
        }
}

/* ---- one pass ---------------------------------------------------------------- */

/* Inputs of an operation are sorted. */
static void add_input(uint32_t *input, uint32_t first, uint32_t *n, uint32_t v)
{
    uint32_t at = (*n)++;

    for (; at > first && input[at - 1] > v; at--)
        input[at] = input[at - 1];
    input[at] = v;
}

/* A graph of the marked operations; `id` is what they are called here. */
static heddle_status make_graph(const struct heddle_plan_job *job, const uint8_t *in,
                                struct heddle_scratch *mem, uint32_t **id_out,
                                struct heddle_plan_graph **out)
{
    const struct heddle_plan_graph *g = job->g;
    struct heddle_plan_graph sub = *g;
    struct heddle_plan_op *op = heddle_scratch_get(mem, g->nops, sizeof(*op));
    struct heddle_plan_value *value = heddle_scratch_get(mem, g->nvalues, sizeof(*value));
    uint32_t *input = heddle_scratch_get(mem, g->ninputs, sizeof(*input));
    uint32_t *local = heddle_scratch_get(mem, g->nvalues, sizeof(*local));
    uint32_t *id = heddle_scratch_get(mem, g->nops, sizeof(*id));

    if (op == NULL || value == NULL || input == NULL || local == NULL || id == NULL)
        return HEDDLE_ENOMEM;
    sub.nops = sub.nvalues = sub.ninputs = 0;
    for (uint32_t v = 0; v < g->nvalues; v++)
        if (g->values[v].op == NONE) {
            local[v] = sub.nvalues;
            value[sub.nvalues++] = g->values[v];
        }
    for (uint32_t i = 0; i < g->nops; i++) {
        const struct heddle_plan_op *o = &g->ops[i];

        if (!in[i])
            continue;
        op[sub.nops] = *o;
        op[sub.nops].first_value = sub.nvalues;
        op[sub.nops].first_input = sub.ninputs;
        for (uint32_t k = 0; k < o->ninputs; k++)
            add_input(input, op[sub.nops].first_input, &sub.ninputs,
                      local[g->inputs[o->first_input + k]]);
        for (uint32_t k = 0; k < o->nvalues; k++) {
            local[o->first_value + k] = sub.nvalues;
            value[sub.nvalues] = g->values[o->first_value + k];
            value[sub.nvalues++].op = sub.nops;
        }
        id[sub.nops++] = i;
    }
    sub.ops = op;
    sub.values = value;
    sub.inputs = input;
    *id_out = id;
    return heddle_plan_graph_create(&sub, &job->opts.base, out);
}

/* Appends a plan of the marked operations, within what is left of the time. */
static heddle_status one_pass(struct passes *p, const uint8_t *in)
{
    const struct heddle_plan_job *job = p->job;
    const uint64_t now = heddle_clock_ns();
    const double seconds = job->deadline_ns > now ? (double)(job->deadline_ns - now) / 1e9 : 0;
    struct heddle_scratch mem = heddle_scratch_make(job->opts.base.alloc);
    const struct heddle_plan_solve_opts opts = {.size = sizeof(opts),
                                                .solver = p->solver,
                                                .time_limit_s = seconds,
                                                .seed = job->opts.seed,
                                                .alloc = job->opts.base.alloc,
                                                .why = job->opts.base.why,
                                                .why_bytes = job->opts.base.why_bytes};
    struct heddle_plan_graph *g = NULL;
    struct heddle_plan *plan = NULL;
    uint32_t *id = NULL;
    heddle_status st;

    if (!(seconds > 0))
        return HEDDLE_ENOENT;
    st = make_graph(job, in, &mem, &id, &g);
    if (st == HEDDLE_OK)
        st = heddle_plan_solve(g, job->m, &opts, &plan);
    for (uint32_t i = 0; st == HEDDLE_OK && i < plan->nsteps; i++) {
        if (plan->steps[i].kind != HEDDLE_PLAN_COMPUTE)
            continue;
        if (p->n == p->room)
            st = HEDDLE_ENOENT;
        else
            p->op[p->n++] = id[plan->steps[i].what];
    }
    heddle_plan_destroy(plan);
    heddle_plan_graph_destroy(g);
    heddle_scratch_drop(&mem);
    return st;
}

static bool is_late(const struct passes *p)
{
    return heddle_clock_ns() >= p->job->deadline_ns;
}

/* All that is marked, in one pass or in several. */
static heddle_status all_passes(struct passes *p, uint8_t *in, uint32_t depth)
{
    const struct heddle_plan_graph *g = p->job->g;
    uint8_t *rest = heddle_scratch_get(&p->mem, g->nops, 1);
    uint32_t *owner = heddle_scratch_get(&p->mem, g->nops, sizeof(*owner));
    double *bytes = heddle_scratch_get(&p->mem, g->nops, sizeof(*bytes));
    const uint32_t n = p->n;
    uint32_t end;
    heddle_status st;

    if (rest == NULL || owner == NULL || bytes == NULL)
        return HEDDLE_ENOMEM;
    /* the whole graph was tried by others */
    st = depth > 0 ? one_pass(p, in) : HEDDLE_ENOENT;
    if (st != HEDDLE_ENOENT || depth == DEPTH || is_late(p))
        return st;
    p->n = n;
    find_owners(p->job, in, owner);
    end = find_heaviest(g, owner, bytes);
    if (end == NONE)
        return HEDDLE_ENOENT;
    for (uint32_t i = 0; i < g->nops; i++)
        rest[i] = owner[i] == i && i != end;
    memset(in, 0, g->nops);
    in[end] = 1;
    close_cone(g, in);
    close_cone(g, rest);
    st = one_pass(p, in);
    return st == HEDDLE_OK ? all_passes(p, rest, depth + 1) : st;
}

/* ---- all of it --------------------------------------------------------------- */

/* A sequence with passes of p->solver. */
static heddle_status find_with(struct passes *p, const char *solver)
{
    uint8_t *in = heddle_scratch_get(&p->mem, p->job->g->nops, 1);

    if (in == NULL)
        return HEDDLE_ENOMEM;
    memset(in, 1, p->job->g->nops);
    p->solver = solver;
    p->n = 0;
    return all_passes(p, in, 0);
}

static int passes_rank(const struct heddle_plan_job *job)
{
    (void)job;
    return 0;
}

/* Each pass had addresses that fit. All of them together get as much work, and when
 * the time is over a little more of it; half of the time (is_half) when others come
 * behind it. */
static heddle_status place(const struct passes *p, bool is_half, struct heddle_plan **out)
{
    const struct heddle_plan_opts *o = &p->job->opts.base;
    const struct heddle_plan_claim claim = {.solver = "passes"};
    const uint64_t now = heddle_clock_ns(), soon = now + PLACE_NS;
    struct heddle_plan_job job = *p->job;
    struct heddle_plan_draft d;
    heddle_status st;

    if (is_half && job.deadline_ns > now)
        job.deadline_ns -= (job.deadline_ns - now) / 2;
    job.deadline_ns = soon > job.deadline_ns ? soon : job.deadline_ns;
    heddle_plan_draft_init(&d, o->alloc);
    st = heddle_plan_draft_from_sequence(job.g, p->op, p->n, o, &d);
    if (st == HEDDLE_OK)
        st = heddle_plan_finish(&job, &d, &claim, NULL, out);
    heddle_plan_draft_fini(&d);
    return st;
}

/* The graph as it is, if it fits. */
static heddle_status solve_one(struct passes *p, struct heddle_plan **out)
{
    for (p->n = 0; p->n < p->job->g->nops; p->n++)
        p->op[p->n] = p->n;
    return place(p, false, out);
}

/* Sweeps give a plan at once, blocks a shorter one when there is time for it. */
static heddle_status solve_several(struct passes *p, struct heddle_plan **out)
{
    static const char *const solver[] = {"sweep", "blocks"};
    struct heddle_plan *best = NULL;
    heddle_status st = HEDDLE_OK;

    for (int k = p->is_long; k < 2 - p->is_quick && st == HEDDLE_OK; k++) {
        struct heddle_plan *plan = NULL;

        if (k > 0 && is_late(p))
            break;
        st = find_with(p, solver[k]);
        if (st == HEDDLE_OK)
            st = place(p, k == 0, &plan);
        if (st == HEDDLE_OK && (best == NULL || plan->makespan < best->makespan)) {
            heddle_plan_destroy(best);
            best = plan;
        } else {
            heddle_plan_destroy(plan);
        }
        st = st == HEDDLE_ENOENT ? HEDDLE_OK : st;
    }
    if (st != HEDDLE_OK)
        heddle_plan_destroy(best);
    else if (best == NULL)
        st = HEDDLE_ENOENT;
    else
        *out = best;
    return st;
}

static heddle_status solve(struct passes *p, struct heddle_plan **out)
{
    const struct heddle_plan_graph *g = p->job->g;

    p->room = heddle_plan_seq_room(g);
    p->op = heddle_scratch_raw(&p->mem, p->room, sizeof(*p->op));
    if (p->op == NULL)
        return HEDDLE_ENOMEM;
    if (heddle_plan_peak(g) <= p->job->m->budget)
        return solve_one(p, out);
    return is_possible(g) ? solve_several(p, out) : HEDDLE_ENOENT;
}

heddle_status heddle_plan_passes(const struct heddle_plan_job *job, bool is_quick, bool is_long,
                                 struct heddle_plan **out)
{
    const struct heddle_plan_opts *o = &job->opts.base;
    struct passes p = {.job = job,
                       .mem = heddle_scratch_make(job->opts.base.alloc),
                       .is_quick = is_quick,
                       .is_long = is_long};
    heddle_status st = solve(&p, out);

    if (st == HEDDLE_ENOENT)
        st = HEDDLE_PLAN_FAIL(o, st,
                              "no plan found with a pass for each end of the "
                              "graph");
    else if (st == HEDDLE_ENOMEM)
        st = HEDDLE_PLAN_FAIL(o, st, "no memory for the solver");
    heddle_scratch_drop(&p.mem);
    return st;
}

static heddle_status passes_solve(const struct heddle_plan_job *job, struct heddle_plan **out)
{
    return heddle_plan_passes(job, false, false, out);
}

const struct heddle_plan_solver_ops heddle_plan_solver_passes = {
    .face = {.name = "passes", .help = "a pass for each end of the graph, for the least memory"},
    .rank = passes_rank,
    .solve = passes_solve,
};
