/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * plan/milp: recomputation as a mixed-integer program, and its answer.
 *
 * Stage t ends when operation t is computed for the first time; in it operations
 * 0 .. t may run, in their order.
 *
 *   R[t,u]    operation u runs in stage t
 *   M[t,v]    value v is made in it; the first output whenever its operation runs
 *   A[t,k,v]  v is in memory while it is the turn of operation k in stage t
 *   S[t,v]    v is in memory at the beginning of stage t
 *
 *   R[t,t] = 1;  M[t,v] <= R[t,u];  R[t,k] <= A[t,k,v] for the inputs v of k
 *   A[t,k,v] <= what v was before: A[t,k-1,v], S[t,v] in front of operation 0,
 *              M[t,v] at its own operation, with what was there
 *   S[t+1,v] <= A[t,t,v]
 *   sum over v of bytes * A[t,k,v] + workspace * R[t,k] <= budget
 *   least sum of time * R
 *
 * R and S are 0 or 1. A need not be: it is only asked to be large by R and S. That
 * spares the products by which others say when a value may go.
 */
#include "plan/milp.h"

#include <inttypes.h>
#include <string.h>

#define NONE HEDDLE_PLAN_NONE

struct milp {
    FILE *f;
    const struct heddle_plan_graph *g;
    uint64_t unit, budget; /* sizes are divided by it; after what is always there */
    double time;           /* the largest */
};

static uint64_t gcd(uint64_t a, uint64_t b)
{
    while (b != 0) {
        const uint64_t r = a % b;

        a = b;
        b = r;
    }
    return a;
}

static void find_units(struct milp *m)
{
    const struct heddle_plan_graph *g = m->g;

    for (uint32_t v = 0; v < g->nvalues; v++)
        m->unit = gcd(m->unit, g->values[v].bytes);
    for (uint32_t u = 0; u < g->nops; u++) {
        m->unit = gcd(m->unit, g->ops[u].work_bytes);
        m->time = g->ops[u].time > m->time ? g->ops[u].time : m->time;
    }
    if (m->unit == 0)
        m->unit = 1;
}

static bool is_input(const struct heddle_plan_graph *g, const struct heddle_plan_op *op, uint32_t v)
{
    for (uint32_t i = 0; i < op->ninputs; i++)
        if (g->inputs[op->first_input + i] == v)
            return true;
    return false;
}

/* The first turn of stage t at which v can be in memory: 0 when it was made in a
 * stage before, its own operation otherwise. */
static uint32_t first_turn(const struct heddle_plan_graph *g, uint32_t t, uint32_t v)
{
    return g->values[v].op < t ? 0 : g->values[v].op;
}

static void write_objective(struct milp *m)
{
    fputs("Minimize\n obj:", m->f);
    for (uint32_t t = 0; t < m->g->nops; t++)
        for (uint32_t u = 0; u <= t; u++)
            fprintf(m->f, "\n + %.17g R_%" PRIu32 "_%" PRIu32, 1000 * m->g->ops[u].time / m->time,
                    t, u);
    fputs("\nSubject To\n", m->f);
}

/* Where A[t,k,v] may come from. */
static void write_origin(struct milp *m, uint32_t t, uint32_t k, uint32_t v)
{
    const uint32_t by = m->g->values[v].op;

    fprintf(m->f, " A_%" PRIu32 "_%" PRIu32 "_%" PRIu32, t, k, v);
    if (k > first_turn(m->g, t, v))
        fprintf(m->f, " - A_%" PRIu32 "_%" PRIu32 "_%" PRIu32, t, k - 1, v);
    else if (by < t)
        fprintf(m->f, " - S_%" PRIu32 "_%" PRIu32, t, v);
    if (k == by)
        fprintf(m->f, " - M_%" PRIu32 "_%" PRIu32, t, v);
    fputs(" <= 0\n", m->f);
}

static void write_values(struct milp *m, uint32_t t)
{
    const struct heddle_plan_graph *g = m->g;

    for (uint32_t v = 0; v < g->nvalues; v++) {
        const uint32_t by = g->values[v].op;

        if (by == NONE || by > t)
            continue;
        fprintf(m->f, " M_%" PRIu32 "_%" PRIu32 " - R_%" PRIu32 "_%" PRIu32 " %s 0\n", t, v, t, by,
                v == g->ops[by].first_value ? "=" : "<=");
        fprintf(m->f, " M_%" PRIu32 "_%" PRIu32 " - A_%" PRIu32 "_%" PRIu32 "_%" PRIu32 " <= 0\n",
                t, v, t, by, v);
        for (uint32_t k = first_turn(g, t, v); k <= t; k++) {
            write_origin(m, t, k, v);
            if (is_input(g, &g->ops[k], v))
                fprintf(m->f,
                        " R_%" PRIu32 "_%" PRIu32 " - A_%" PRIu32 "_%" PRIu32 "_%" PRIu32 " <= 0\n",
                        t, k, t, k, v);
        }
        if (t + 1 < g->nops)
            fprintf(m->f,
                    " S_%" PRIu32 "_%" PRIu32 " - A_%" PRIu32 "_%" PRIu32 "_%" PRIu32 " <= 0\n",
                    t + 1, v, t, t, v);
        else if ((g->values[v].flags & HEDDLE_PLAN_RESULT) != 0)
            fprintf(m->f, " A_%" PRIu32 "_%" PRIu32 "_%" PRIu32 " = 1\n", t, t, v);
    }
}

static void write_memory(struct milp *m, uint32_t t, uint32_t k)
{
    const struct heddle_plan_graph *g = m->g;

    fprintf(m->f, " %" PRIu64 " R_%" PRIu32 "_%" PRIu32, g->ops[k].work_bytes / m->unit, t, k);
    for (uint32_t v = 0; v < g->nvalues; v++)
        if (g->values[v].op != NONE && g->values[v].op <= t && k >= first_turn(g, t, v) &&
            g->values[v].bytes > 0)
            fprintf(m->f, "\n + %" PRIu64 " A_%" PRIu32 "_%" PRIu32 "_%" PRIu32,
                    g->values[v].bytes / m->unit, t, k, v);
    fprintf(m->f, " <= %" PRIu64 "\n", m->budget / m->unit);
}

static void write_bounds(struct milp *m)
{
    const struct heddle_plan_graph *g = m->g;

    fputs("Bounds\n", m->f);
    for (uint32_t t = 0; t < g->nops; t++)
        for (uint32_t v = 0; v < g->nvalues; v++) {
            if (g->values[v].op == NONE || g->values[v].op > t)
                continue;
            fprintf(m->f, " 0 <= M_%" PRIu32 "_%" PRIu32 " <= 1\n", t, v);
            for (uint32_t k = first_turn(g, t, v); k <= t; k++)
                fprintf(m->f, " 0 <= A_%" PRIu32 "_%" PRIu32 "_%" PRIu32 " <= 1\n", t, k, v);
        }
    fputs("Binaries\n", m->f);
    for (uint32_t t = 0; t < g->nops; t++) {
        for (uint32_t u = 0; u <= t; u++)
            fprintf(m->f, " R_%" PRIu32 "_%" PRIu32 "\n", t, u);
        for (uint32_t v = 0; v < g->nvalues; v++)
            if (g->values[v].op != NONE && g->values[v].op < t)
                fprintf(m->f, " S_%" PRIu32 "_%" PRIu32 "\n", t, v);
    }
    fputs("End\n", m->f);
}

bool plan_milp_write(FILE *f, const struct heddle_plan_graph *g, uint64_t budget)
{
    struct milp m = {.f = f, .g = g, .budget = budget, .time = 1e-300};

    find_units(&m);
    for (uint32_t v = 0; v < g->nvalues; v++)
        if (g->values[v].op == NONE)
            m.budget -= m.budget < g->values[v].bytes ? m.budget : g->values[v].bytes;
    write_objective(&m);
    for (uint32_t t = 0; t < g->nops; t++) {
        fprintf(f, " R_%" PRIu32 "_%" PRIu32 " = 1\n", t, t);
        for (uint32_t u = 0; u < t; u++)
            if ((g->ops[u].flags & HEDDLE_PLAN_ONCE) != 0)
                fprintf(f, " R_%" PRIu32 "_%" PRIu32 " = 0\n", t, u);
        write_values(&m, t);
        for (uint32_t k = 0; k <= t; k++)
            write_memory(&m, t, k);
    }
    write_bounds(&m);
    return fflush(f) == 0 && !ferror(f);
}

/* --- the answer ------------------------------------------------------------- */

static enum plan_milp_answer read_status(const char *line)
{
    if (strncmp(line, "Optimal", 7) == 0)
        return PLAN_MILP_OPTIMAL;
    if (strstr(line, "nfeasible") != NULL)
        return PLAN_MILP_INFEASIBLE;
    if (strncmp(line, "Stopped", 7) == 0)
        return strstr(line, "no integer solution") != NULL ? PLAN_MILP_NOTHING : PLAN_MILP_STOPPED;
    return PLAN_MILP_BROKEN;
}

enum plan_milp_answer plan_milp_read(FILE *f, const struct heddle_plan_graph *g, uint32_t *seq,
                                     size_t *n_out)
{
    static bool runs[PLAN_MILP_OPS][PLAN_MILP_OPS];
    enum plan_milp_answer answer;
    char line[256];

    memset(runs, 0, sizeof(runs));
    *n_out = 0;
    if (fgets(line, sizeof(line), f) == NULL)
        return PLAN_MILP_BROKEN;
    answer = read_status(line);
    while (fgets(line, sizeof(line), f) != NULL) {
        uint32_t t, u;
        double x;

        if (sscanf(line, " **%*[ ]%*u R_%" SCNu32 "_%" SCNu32 " %lf", &t, &u, &x) != 3 &&
            sscanf(line, " %*u R_%" SCNu32 "_%" SCNu32 " %lf", &t, &u, &x) != 3)
            continue;
        if (t >= g->nops || u > t)
            return PLAN_MILP_BROKEN;
        runs[t][u] = x > 0.5;
    }
    for (uint32_t t = 0; t < g->nops; t++)
        for (uint32_t u = 0; u <= t; u++)
            if (runs[t][u])
                seq[(*n_out)++] = u;
    if (answer == PLAN_MILP_OPTIMAL && *n_out < g->nops)
        return PLAN_MILP_BROKEN;
    return answer;
}
