/* SPDX-License-Identifier: BSD-3-Clause */
/* solve: the table of solvers, and the choice among them. */
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/clock.h"
#include "base/cond.h"
#include "base/sized.h"
#include "plan/plan.h"

#define HEDDLE_PLAN_SOLVER(name, on)                                                               \
    HEDDLE_IF(on, extern const struct heddle_plan_solver_ops heddle_plan_solver_##name;)
#include "plan/solve/solver.def"
#undef HEDDLE_PLAN_SOLVER

const struct heddle_plan_solver_ops *const heddle_plan_solver_table[] = {
#define HEDDLE_PLAN_SOLVER(name, on) HEDDLE_IF(on, &heddle_plan_solver_##name, )
#include "plan/solve/solver.def"
#undef HEDDLE_PLAN_SOLVER
    NULL,
};

const struct heddle_plan_solver_ops *heddle_plan_find_solver(const char *name)
{
    for (size_t i = 0; heddle_plan_solver_table[i] != NULL; i++)
        if (strcmp(heddle_plan_solver_table[i]->face.name, name) == 0)
            return heddle_plan_solver_table[i];
    return NULL;
}

const struct heddle_plan_solver *heddle_plan_get_solver(size_t i)
{
    for (size_t k = 0; heddle_plan_solver_table[k] != NULL; k++)
        if (k == i)
            return &heddle_plan_solver_table[k]->face;
    return NULL;
}

bool heddle_plan_job_is_late(const struct heddle_plan_job *job)
{
    return heddle_clock_ns() >= job->deadline_ns;
}

double heddle_plan_job_seconds(const struct heddle_plan_job *job)
{
    return (double)(heddle_clock_ns() - job->start_ns) * 1e-9;
}

bool heddle_plan_job_report(const struct heddle_plan_job *job, const struct heddle_plan *best)
{
    return job->opts.progress == NULL ||
           job->opts.progress(job->opts.user, heddle_plan_job_seconds(job), best) != 0;
}

/* ---- choosing ------------------------------------------------------------ */

/* The solver with the highest rank. NULL: there is none. */
static const struct heddle_plan_solver_ops *find_best(const struct heddle_plan_job *job,
                                                      bool only_for_chains)
{
    const struct heddle_plan_solver_ops *best = NULL;
    int best_rank = 0;

    for (size_t i = 0; heddle_plan_solver_table[i] != NULL; i++) {
        const struct heddle_plan_solver_ops *s = heddle_plan_solver_table[i];
        int rank;

        if (s->face.is_for_chains ? job->g->chain == NULL : only_for_chains)
            continue;
        rank = s->rank(job);
        if (rank > best_rank) {
            best_rank = rank;
            best = s;
        }
    }
    return best;
}

static heddle_status choose(const struct heddle_plan_job *job,
                            const struct heddle_plan_solver_ops **out)
{
    const struct heddle_plan_opts *o = &job->opts.base;
    const char *name = job->opts.solver;

    if (name != NULL) {
        *out = heddle_plan_find_solver(name);
        if (*out == NULL)
            return HEDDLE_PLAN_FAIL(o, HEDDLE_EINVAL, "there is no solver '%.64s'", name);
        if ((*out)->face.is_for_chains && job->g->chain == NULL)
            return HEDDLE_PLAN_FAIL(o, HEDDLE_EINVAL,
                                    "solver %s is for chains; this graph was "
                                    "not given as one",
                                    name);
        return HEDDLE_OK;
    }
    *out = find_best(job, false);
    if (*out == NULL)
        return HEDDLE_PLAN_FAIL(o, HEDDLE_EINVAL, "there is no solver for this graph");
    return HEDDLE_OK;
}

static heddle_status check_floor(const struct heddle_plan_job *job)
{
    const struct heddle_plan_opts *o = &job->opts.base;
    const struct heddle_plan_label budget = heddle_plan_bytes_label(job->m->budget);
    const struct heddle_plan_label need = heddle_plan_bytes_label(job->floor);
    uint32_t op = HEDDLE_PLAN_NONE;

    if (heddle_plan_floor(job->g, &op) <= job->m->budget)
        return HEDDLE_OK;
    if (op == HEDDLE_PLAN_NONE)
        return HEDDLE_PLAN_FAIL(o, HEDDLE_ENOENT,
                                "no plan exists: what is there from the "
                                "beginning needs %s; the budget is %s",
                                need.text, budget.text);
    return HEDDLE_PLAN_FAIL(o, HEDDLE_ENOENT,
                            "no plan exists: operation %s alone needs %s; the "
                            "budget is %s",
                            heddle_plan_op_label(job->g, op).text, need.text, budget.text);
}

static heddle_status check_host(const struct heddle_plan_job *job)
{
    uint64_t sum = 0;

    for (uint32_t v = 0; v < job->g->nvalues; v++)
        if ((job->g->values[v].flags & HEDDLE_PLAN_AT_HOST) != 0) {
            sum += job->g->values[v].bytes;
            if (!(job->m->host.out_rate > 0))
                return HEDDLE_PLAN_FAIL(&job->opts.base, HEDDLE_EINVAL,
                                        "value %u begins on the host, and "
                                        "the machine has none",
                                        v);
        }
    if (job->m->host.bytes > 0 && sum > job->m->host.bytes)
        return HEDDLE_PLAN_FAIL(&job->opts.base, HEDDLE_ENOENT,
                                "no plan exists: what begins on the host "
                                "needs %s there",
                                heddle_plan_bytes_label(sum).text);
    return HEDDLE_OK;
}

static heddle_status job_init(struct heddle_plan_job *job,
                              const struct heddle_plan_solve_opts *opts)
{
    struct heddle_plan_solve_opts o;
    double limit;

    HEDDLE_TRY(HEDDLE_SIZED_GET_OPTS(struct heddle_plan_solve_opts, &o, opts));
    job->opts = (struct heddle_plan_wish){
        .solver = o.solver,
        .seed = o.seed,
        .slots = o.slots,
        .moves = o.moves,
        .progress = o.progress,
        .user = o.user,
        .base = {.size = sizeof(job->opts.base),
                 .alloc = o.alloc != NULL ? o.alloc : &heddle_allocator_default,
                 .why = o.why,
                 .why_bytes = o.why_bytes},
        .known = o.known};
    limit = o.time_limit_s;
    if (!isfinite(limit) || limit < 0)
        return HEDDLE_PLAN_FAIL(&job->opts.base, HEDDLE_EINVAL,
                                "the time limit is negative or not finite");
    if (limit == 0)
        limit = 2;
    job->opts.time_limit_s = limit = limit < 1e9 ? limit : 1e9;
    job->start_ns = heddle_clock_ns();
    job->deadline_ns = job->start_ns + (uint64_t)(limit * 1e9);
    return HEDDLE_OK;
}

/* ---- a plan that is known -------------------------------------------------- */

static heddle_status copy_known(const struct heddle_plan_job *job, double lower_bound,
                                const char *note, struct heddle_plan **out)
{
    const struct heddle_plan *k = job->opts.known;
    struct heddle_scratch *mem = NULL;
    struct heddle_plan *p = heddle_plan_alloc(job->opts.base.alloc, &mem);
    struct heddle_plan_step *step;
    struct heddle_plan_place *place;

    if (p == NULL)
        return HEDDLE_PLAN_FAIL(&job->opts.base, HEDDLE_ENOMEM, "no memory for the plan");
    *p = *k;
    p->size = sizeof(*p);
    p->budget = job->m->budget;
    p->lower_bound = lower_bound;
    p->seconds = heddle_plan_job_seconds(job);
    step = heddle_scratch_get(mem, k->nsteps, sizeof(*step));
    place = heddle_scratch_get(mem, k->nplaces, sizeof(*place));
    p->solver = heddle_plan_keep_text(mem, k->solver);
    p->bound_note = heddle_plan_keep_text(mem, note);
    if (step == NULL || place == NULL || p->solver == NULL || p->bound_note == NULL) {
        heddle_plan_destroy(p);
        return HEDDLE_PLAN_FAIL(&job->opts.base, HEDDLE_ENOMEM, "no memory for the plan");
    }
    if (k->nsteps > 0)
        memcpy(step, k->steps, k->nsteps * sizeof(*step));
    if (k->nplaces > 0)
        memcpy(place, k->places, k->nplaces * sizeof(*place));
    p->steps = step;
    p->places = place;
    *out = p;
    return HEDDLE_OK;
}

/* Whether the plan is one: it can be done, and is what it claims. */
static heddle_status check_known(const struct heddle_plan_job *job)
{
    const struct heddle_plan *k = job->opts.known;
    struct heddle_plan_cost cost;

    if (k == NULL)
        return HEDDLE_OK;
    HEDDLE_TRY(heddle_plan_eval(job->g, job->m, k->steps, k->nsteps, &job->opts.base, &cost));
    if (k->arena_bytes > job->m->budget || cost.peak_bytes > k->arena_bytes ||
        !(fabs(cost.makespan - k->makespan) <= 1e-9 * cost.makespan))
        return HEDDLE_PLAN_FAIL(&job->opts.base, HEDDLE_EINVAL,
                                "the known plan is not one for this graph and "
                                "this budget");
    return HEDDLE_OK;
}

/* The better of the answer and the plan that is known. */
static heddle_status take_known(const struct heddle_plan_job *job, heddle_status st,
                                struct heddle_plan **out)
{
    const struct heddle_plan *k = job->opts.known;
    struct heddle_plan *found = st == HEDDLE_OK ? *out : NULL;
    double bound;

    if (k == NULL || (st != HEDDLE_OK && st != HEDDLE_ENOENT) ||
        (found != NULL && found->makespan <= k->makespan))
        return st;
    /* A bound of the solver may assume what the known plan does not. */
    bound = found != NULL ? found->lower_bound : k->baseline;
    if (bound > k->makespan)
        bound = k->baseline;
    st = copy_known(job, bound, bound > k->baseline ? found->bound_note : "every operation once",
                    out);
    heddle_plan_destroy(found);
    if (st != HEDDLE_OK)
        *out = NULL;
    return st;
}

/* ---- running ----------------------------------------------------------------- */

/* Solves. A chain that the solvers of graphs cannot plan may be too tight for
 * them, and the solvers of chains do more with less. */
static heddle_status solve_with(const struct heddle_plan_job *job,
                                const struct heddle_plan_solver_ops *s, struct heddle_plan **out)
{
    const heddle_status st = s->solve(job, out);
    struct heddle_plan_job again = *job;

    if (st != HEDDLE_ENOENT || job->opts.solver != NULL || job->g->chain == NULL ||
        s->face.is_for_chains)
        return st;
    s = find_best(job, true);
    if (s == NULL)
        return st;
    again.start_ns = heddle_clock_ns();
    again.deadline_ns = again.start_ns + (uint64_t)(job->opts.time_limit_s * 1e9);
    return s->solve(&again, out);
}

static heddle_status run(struct heddle_plan_job *job, const struct heddle_plan_machine *m,
                         struct heddle_scratch *mem, struct heddle_plan **out)
{
    const struct heddle_plan_opts *o = &job->opts.base;
    const struct heddle_plan_solver_ops *s = NULL;
    struct heddle_plan_machine *copy = heddle_scratch_get(mem, 1, sizeof(*copy));

    if (job->g == NULL || out == NULL)
        return HEDDLE_PLAN_FAIL(o, HEDDLE_EINVAL, "there is no graph");
    if (copy == NULL || heddle_plan_users_make(job->g, mem, &job->users) != HEDDLE_OK)
        return HEDDLE_PLAN_FAIL(o, HEDDLE_ENOMEM, "no memory for the solver");
    HEDDLE_TRY(heddle_plan_machine_get(m, o, copy));
    job->m = copy;
    job->floor = heddle_plan_floor(job->g, NULL);
    HEDDLE_TRY(check_host(job));
    HEDDLE_TRY(check_floor(job));
    HEDDLE_TRY(check_known(job));
    HEDDLE_TRY(choose(job, &s));
    return take_known(job, solve_with(job, s, out), out);
}

heddle_status heddle_plan_solve(const struct heddle_plan_graph *g,
                                const struct heddle_plan_machine *m,
                                const struct heddle_plan_solve_opts *opts, struct heddle_plan **out)
{
    struct heddle_plan_job job = {.g = g};
    struct heddle_plan known;
    struct heddle_scratch mem;
    heddle_status st = job_init(&job, opts);

    if (st != HEDDLE_OK)
        return st;
    if (job.opts.known != NULL) {
        HEDDLE_TRY(HEDDLE_SIZED_GET(struct heddle_plan, &known, job.opts.known, job.opts.base.why,
                                    job.opts.base.why_bytes));
        job.opts.known = &known;
    }
    mem = heddle_scratch_make(job.opts.base.alloc);
    st = run(&job, m, &mem, out);
    heddle_scratch_drop(&mem);
    return st;
}
