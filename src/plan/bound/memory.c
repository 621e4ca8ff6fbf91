/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * memory: the memory that every plan without moves needs, beyond the needs of one
 * operation.
 *
 * When an operation runs, the set S of its inputs is in memory. The input that was
 * computed last, by operation a, was computed while the rest of S and the inputs of a
 * were in memory: that moment needs S and the inputs of a. Before it, the set
 * S - outputs of a + inputs of a was in memory, and so on back to the empty set. The
 * least peak over all such ways back is what the operation needs. A search that always
 * takes the set with the lowest peak so far finds that peak; when the search is stopped
 * early, the peak of the set at hand is still a bound, since all other sets have a peak
 * at least as high.
 */
#include "plan/bound/bound.h"

#include <string.h>

#include "base/assert.h"
#include "base/clock.h"
#include "plan/seq/heap.h"

#define NONE    HEDDLE_PLAN_NONE
#define NSTATE  16384 /* sets of one search, at most */
#define NVALUES 96    /* values of one set; the search ends at a larger one */
#define STEPS   2000  /* of one search */
#define TRIES   3000  /* the same, for a plan */

struct state {
    uint64_t peak, bytes;
    uint64_t far;      /* how far from the end: sum of the numbers of operations */
    uint32_t first, n; /* in pool */
    uint32_t then, op; /* running op from here leads there; NONE: the end */
    uint32_t slot;     /* in table */
};

struct memory {
    const struct heddle_plan_job *job;
    const struct heddle_plan_graph *g;
    uint64_t base; /* what stays from the beginning to the end */
    struct state *state;
    uint32_t nstate, cap;
    uint32_t *pool, npool, pool_cap;
    uint32_t *heap, nheap;
    uint32_t *table, table_mask; /* of states; NONE: free */
    uint32_t set[2 * NVALUES + 64];
    uint32_t nset;
    uint32_t then, op;   /* of the set at hand */
    const uint8_t *here; /* [nvalues] a set of such is where it ends; NULL */
};

static bool memory_init(struct memory *m, struct heddle_scratch *mem)
{
    m->cap = m->g->nops < NSTATE / 256 ? 256 * m->g->nops : NSTATE;
    m->pool_cap = 16 * m->cap;
    m->table_mask = 4;
    while (m->table_mask < 4 * m->cap)
        m->table_mask *= 2;
    m->state = heddle_scratch_get(mem, m->cap, sizeof(*m->state));
    m->pool = heddle_scratch_get(mem, m->pool_cap, sizeof(*m->pool));
    m->heap = heddle_scratch_get(mem, m->cap, sizeof(*m->heap));
    m->table = heddle_scratch_get(mem, m->table_mask, sizeof(*m->table));
    if (m->table != NULL)
        memset(m->table, 0xff, m->table_mask * sizeof(*m->table));
    m->table_mask--;
    return m->state != NULL && m->pool != NULL && m->heap != NULL && m->table != NULL;
}

/* ---- a queue, the lowest peak first; then the nearest to the end ------------ */

static bool is_lower(const void *of, uint32_t a, uint32_t b)
{
    const struct memory *m = of;
    const struct state *x = &m->state[a], *y = &m->state[b];

    if (x->peak != y->peak)
        return x->peak < y->peak;
    if (x->far != y->far)
        return x->far < y->far;
    return a < b;
}

/* ---- sets ------------------------------------------------------------------- */

/* Puts a value into m->set, which stays sorted. */
static void put(struct memory *m, uint32_t v)
{
    uint32_t k = m->nset;

    for (uint32_t i = 0; i < m->nset; i++)
        if (m->set[i] == v)
            return;
    for (; k > 0 && m->set[k - 1] > v; k--)
        m->set[k] = m->set[k - 1];
    m->set[k] = v;
    m->nset++;
}

/* The inputs of op that are not there from the beginning; false: too many. */
static bool put_inputs(struct memory *m, const struct heddle_plan_op *op)
{
    for (uint32_t i = 0; i < op->ninputs; i++) {
        const uint32_t v = m->g->inputs[op->first_input + i];

        if (m->nset > 2 * NVALUES)
            return false;
        if (m->g->values[v].op != NONE)
            put(m, v);
    }
    return m->nset <= NVALUES;
}

static uint64_t bytes_of_set(const struct memory *m)
{
    uint64_t sum = 0;

    for (uint32_t i = 0; i < m->nset; i++)
        sum += m->g->values[m->set[i]].bytes;
    return sum;
}

static uint64_t far_of_set(const struct memory *m)
{
    uint64_t sum = 0;

    for (uint32_t i = 0; i < m->nset; i++)
        if (m->here == NULL || !m->here[m->set[i]])
            sum += (uint64_t)m->g->values[m->set[i]].op + 1;
    return sum;
}

/* Adds m->set, unless it is known. False: no room. */
static bool add(struct memory *m, uint64_t peak)
{
    uint64_t hash = m->nset;
    uint32_t slot;
    struct state *s;

    for (uint32_t i = 0; i < m->nset; i++)
        hash = heddle_mix64(hash ^ ((uint64_t)m->set[i] + 1));
    for (slot = (uint32_t)hash & m->table_mask; m->table[slot] != NONE;
         slot = (slot + 1) & m->table_mask) {
        s = &m->state[m->table[slot]];
        /* an equal set that was found with a lower or equal peak; one with a
         * higher peak is only a longer search */
        if (s->n == m->nset && s->peak <= peak &&
            memcmp(&m->pool[s->first], m->set, m->nset * sizeof(*m->set)) == 0)
            return true;
    }
    if (m->nstate == m->cap || m->npool + m->nset > m->pool_cap)
        return false;
    m->table[slot] = m->nstate;
    m->state[m->nstate] = (struct state){.peak = peak,
                                         .bytes = bytes_of_set(m),
                                         .far = far_of_set(m),
                                         .first = m->npool,
                                         .n = m->nset,
                                         .then = m->then,
                                         .op = m->op,
                                         .slot = slot};
    memcpy(&m->pool[m->npool], m->set, m->nset * sizeof(*m->set));
    m->npool += m->nset;
    heddle_plan_heap_push(m->heap, &m->nheap, m->nstate++, is_lower, m);
    return true;
}

/* ---- the search ------------------------------------------------------------- */

/* Goes back over operation a from state s. False: no room. */
static bool go_back(struct memory *m, uint32_t from, uint32_t a)
{
    const struct state *s = &m->state[from];
    const struct heddle_plan_op *op = &m->g->ops[a];
    const uint32_t first = op->first_value;
    uint64_t need = m->base + s->bytes + op->work_bytes;
    bool has_first = false;

    m->nset = 0;
    for (uint32_t i = 0; i < s->n; i++) {
        const uint32_t v = m->pool[s->first + i];

        has_first |= v == first;
        if (m->g->values[v].op != a)
            m->set[m->nset++] = v;
    }
    if (!has_first)
        need += m->g->values[first].bytes;
    for (uint32_t i = 0; i < op->ninputs; i++) {
        const uint32_t v = m->g->inputs[op->first_input + i];
        bool is_in = m->g->values[v].op == NONE;

        for (uint32_t k = 0; k < m->nset && !is_in; k++)
            is_in = m->set[k] == v;
        if (!is_in)
            need += m->g->values[v].bytes;
    }
    if (op->inplace != NONE)
        need -= m->g->values[first].bytes; /* it may share its input's place */
    if (!put_inputs(m, op))
        return false;
    m->then = from;
    m->op = a;
    return add(m, need > s->peak ? need : s->peak);
}

/* Whether a set needs nothing computed. */
static bool is_end(const struct memory *m, const struct state *s)
{
    for (uint32_t i = 0; i < s->n; i++)
        if (m->here == NULL || !m->here[m->pool[s->first + i]])
            return false;
    return true;
}

/*
 * The least peak of a way back from the set at hand, at least `known`; the way is
 * at *end_out, NONE when the search was stopped: at a peak above `enough`, or
 * after so many steps.
 */
static uint64_t search(struct memory *m, uint64_t known, uint64_t enough, uint32_t steps,
                       uint32_t *end_out)
{
    uint64_t peak = known;

    *end_out = NONE;
    for (uint32_t i = 0; i < m->nstate; i++)
        m->table[m->state[i].slot] = NONE;
    m->nstate = m->npool = m->nheap = 0;
    m->then = m->op = NONE;
    if (!add(m, known))
        return known;
    while (m->nheap > 0) {
        const uint32_t id = heddle_plan_heap_pop(m->heap, &m->nheap, is_lower, m);
        const struct state s = m->state[id];
        uint32_t last = NONE;

        peak = s.peak;
        if (is_end(m, &s)) {
            *end_out = id;
            return peak;
        }
        if (peak > enough || steps-- == 0)
            return peak;
        for (uint32_t i = 0; i < s.n; i++) {
            const uint32_t by = m->g->values[m->pool[s.first + i]].op;

            if (by != last && !go_back(m, id, by))
                return peak;
            last = by; /* outputs of an operation follow each other */
        }
    }
    return peak;
}

heddle_status heddle_plan_base_bytes(const struct heddle_plan_graph *g, struct heddle_scratch *mem,
                                     uint64_t *out)
{
    uint8_t *may_go = heddle_scratch_get(mem, g->nvalues, 1);

    if (may_go == NULL)
        return HEDDLE_ENOMEM;
    for (uint32_t i = 0; i < g->nops; i++)
        if (g->ops[i].inplace != NONE)
            may_go[g->ops[i].inplace] = 1;
    *out = 0;
    for (uint32_t v = 0; v < g->nvalues; v++)
        if (heddle_plan_is_initial(&g->values[v]) && !may_go[v])
            *out += g->values[v].bytes;
    return HEDDLE_OK;
}

heddle_status heddle_plan_bound_memory(const struct heddle_plan_job *job, uint64_t enough,
                                       uint32_t work, uint64_t *out, uint32_t *op_out)
{
    struct heddle_scratch mem = heddle_scratch_make(job->opts.base.alloc);
    struct memory m = {.job = job, .g = job->g};
    heddle_status st = heddle_plan_base_bytes(m.g, &mem, &m.base);

    *out = heddle_plan_floor(job->g, op_out);
    if (st == HEDDLE_OK && !memory_init(&m, &mem))
        st = HEDDLE_ENOMEM;
    for (uint32_t i = 0; i < job->g->nops && st == HEDDLE_OK && work > 0; i++) {
        /* a guess: those far below are not worth the search */
        uint64_t need;
        uint32_t end;

        if (2 * (m.base + heddle_plan_op_bytes(job->g, i, 1)) < *out)
            continue;
        m.nset = 0;
        if (!put_inputs(&m, &job->g->ops[i]))
            continue;
        need = search(&m, *out, enough, STEPS, &end);
        if (need > *out) {
            *out = need;
            *op_out = i;
        }
        if (*out > enough || heddle_plan_job_is_late(job))
            break;
        work--;
    }
    heddle_scratch_drop(&mem);
    return st;
}

heddle_status heddle_plan_least(const struct heddle_plan_graph *g, double seconds,
                                const struct heddle_plan_opts *o, uint64_t *out)
{
    struct heddle_plan_job job = {.g = g, .start_ns = heddle_clock_ns()};
    uint32_t op = NONE;
    heddle_status st;

    HEDDLE_TRY(heddle_plan_opts_get(o, &job.opts.base));
    if (g == NULL || out == NULL || !(seconds >= 0))
        return HEDDLE_PLAN_FAIL(&job.opts.base, HEDDLE_EINVAL, "there is no graph, or no time");
    job.deadline_ns = job.start_ns + (uint64_t)((seconds < 1e9 ? seconds : 1e9) * 1e9);
    st = heddle_plan_bound_memory(&job, UINT64_MAX, g->nops, out, &op);
    if (st == HEDDLE_OK)
        st = heddle_plan_bound_sets(&job, UINT64_MAX, UINT32_MAX, out, &op);
    if (st == HEDDLE_ENOMEM)
        return HEDDLE_PLAN_FAIL(&job.opts.base, st, "no memory for the bound");
    return st;
}

/* ---- plans ------------------------------------------------------------------ */

/* What is carried from one operation to the next. */
struct carried {
    uint32_t v[NVALUES];
    uint32_t n;
    uint8_t *here; /* [nvalues] */
};

static bool is_needed(const struct memory *m, uint32_t v, uint32_t after)
{
    const struct heddle_plan_users *u = &m->job->users;
    const uint32_t end = u->first[v + 1];

    return (m->g->values[v].flags & HEDDLE_PLAN_RESULT) != 0 ||
           (end > u->first[v] && u->user[end - 1] > after);
}

/* Looks for a way to operation v that keeps what is carried. */
static uint32_t find_way(struct memory *m, const struct carried *c, uint32_t v, uint64_t budget)
{
    const struct heddle_plan_op *op = &m->g->ops[v];
    uint64_t need = m->base + op->work_bytes;
    uint32_t end = NONE;

    m->nset = 0;
    for (uint32_t i = 0; i < c->n; i++)
        put(m, c->v[i]);
    if (!put_inputs(m, op))
        return NONE;
    for (uint32_t i = 0; i < op->nvalues; i++)
        if (i == 0 || is_needed(m, op->first_value + i, v))
            need += m->g->values[op->first_value + i].bytes;
    if (op->inplace != NONE)
        need -= m->g->values[op->first_value].bytes;
    if (need + bytes_of_set(m) > budget)
        return NONE;
    (void)search(m, budget, budget, TRIES, &end);
    return end != NONE && m->state[end].peak <= budget ? end : NONE;
}

/* What goes first when not all can be carried: the earliest. */
static void drop_one(struct carried *c)
{
    c->n--;
    memmove(&c->v[0], &c->v[1], c->n * sizeof(c->v[0]));
}

/* The set in front of v, and its outputs, as far as they are needed. */
static void carry_on(struct memory *m, struct carried *c, uint32_t v)
{
    const struct heddle_plan_op *op = &m->g->ops[v];
    const struct state *root = &m->state[0];

    for (uint32_t i = 0; i < c->n; i++)
        c->here[c->v[i]] = 0;
    c->n = 0;
    for (uint32_t i = 0; i < root->n + op->nvalues; i++) {
        const uint32_t k = i < root->n ? m->pool[root->first + i] : op->first_value + i - root->n;

        if (!is_needed(m, k, v) || k == op->inplace)
            continue;
        if (c->n == NVALUES / 3)
            drop_one(c);
        c->v[c->n++] = k;
    }
}

static bool one_stage(const struct heddle_plan_search *x, struct memory *m, struct carried *c,
                      uint32_t v, struct heddle_plan_seq *s)
{
    uint32_t end;

    if (heddle_plan_search_is_late(x))
        return false;
    for (uint32_t i = 0; i < c->n; i++)
        c->here[c->v[i]] = 1;
    while ((end = find_way(m, c, v, (uint64_t)x->budget)) == NONE) {
        if (c->n == 0 || heddle_plan_search_is_late(x))
            return false;
        c->here[c->v[0]] = 0;
        drop_one(c);
    }
    for (; m->state[end].then != NONE; end = m->state[end].then) {
        if (s->n == s->cap)
            return false;
        s->op[s->n++] = m->state[end].op;
    }
    if (s->n == s->cap)
        return false;
    s->op[s->n++] = v;
    carry_on(m, c, v);
    return true;
}

heddle_status heddle_plan_from_little(struct heddle_plan_search *x, struct heddle_plan_seq *s)
{
    struct heddle_scratch mem = heddle_scratch_make(x->mem.a);
    struct memory m = {.job = x->job, .g = x->g};
    struct carried c = {.here = heddle_scratch_get(&mem, x->g->nvalues, 1)};
    heddle_status st = heddle_plan_base_bytes(m.g, &mem, &m.base);

    if (c.here == NULL || !memory_init(&m, &mem))
        st = HEDDLE_ENOMEM;
    m.here = c.here;
    s->n = 0;
    /* it computes everything again */
    for (uint32_t v = 0; v < x->g->nops && st == HEDDLE_OK; v++)
        if ((x->g->ops[v].flags & HEDDLE_PLAN_ONCE) != 0)
            st = HEDDLE_ENOENT;
    for (uint32_t v = 0; v < x->g->nops && st == HEDDLE_OK; v++)
        if (!one_stage(x, &m, &c, v, s))
            st = HEDDLE_ENOENT;
    heddle_scratch_drop(&mem);
    if (st == HEDDLE_OK && (!heddle_plan_seq_eval(s) || s->peak > x->budget))
        st = HEDDLE_ENOENT;
    return st;
}
