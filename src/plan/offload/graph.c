/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * graph: a graph in which a copy on the host is a cheap computation.
 *
 * A value that may move is replaced: its operation makes a token of no bytes (and
 * has the value as workspace while it runs), and a new operation right behind it
 * makes the value out of the token, in the time that the link is worth. All
 * readers read that one. So a plan of the new graph that moves nothing says, for
 * each gap, whether the value is kept, computed again, or comes back over the
 * link; what solves graphs solves both questions at once. The link's own order
 * and waiting are not in it: move.c and the evaluator see to that.
 */
#include <math.h>
#include <string.h>

#include "base/assert.h"
#include "plan/offload/offload.h"

struct maker {
    const struct heddle_plan_graph *g;
    const uint8_t *is_moved;
    struct heddle_plan_graph d; /* the new one */
    struct heddle_plan_op *op;
    struct heddle_plan_value *value;
    uint32_t *input;
    uint32_t *now;   /* [nvalues] the new value for a value */
    uint32_t *token; /* [nvalues] for one that is moved */
    const struct heddle_plan_stay *stay;
    uint32_t nstay;
    uint32_t *room; /* [nstay] the value that takes it */
    struct heddle_plan_loads *out;
};

static uint32_t put_value(struct maker *k, uint64_t bytes, uint32_t op, uint32_t flags)
{
    k->value[k->d.nvalues] = (struct heddle_plan_value){.bytes = bytes, .op = op, .flags = flags};
    return k->d.nvalues++;
}

static struct heddle_plan_op *put_op(struct maker *k, uint32_t id)
{
    struct heddle_plan_op *op = &k->op[k->d.nops];

    *op = (struct heddle_plan_op){
        .first_value = k->d.nvalues, .first_input = k->d.ninputs, .inplace = HEDDLE_PLAN_NONE};
    k->out->value[k->d.nops] = HEDDLE_PLAN_NONE;
    k->out->op[k->d.nops++] = id;
    return op;
}

/* Room that copies under way take from operation i on, or no more. */
static void put_stays(struct maker *k, uint32_t i)
{
    for (uint32_t s = 0; s < k->nstay; s++) {
        struct heddle_plan_op *op;

        if (k->stay[s].to == i) {
            op = put_op(k, HEDDLE_PLAN_NONE);
            op->flags = HEDDLE_PLAN_ONCE;
            op->ninputs = 1;
            k->input[k->d.ninputs++] = k->room[s];
        }
        if (k->stay[s].from == i) {
            op = put_op(k, HEDDLE_PLAN_NONE);
            op->flags = HEDDLE_PLAN_ONCE;
            op->nvalues = 1;
            k->room[s] = put_value(k, k->g->values[k->stay[s].value].bytes, k->d.nops - 1, 0);
        }
    }
}

static void put_load(struct maker *k, uint32_t v, double price)
{
    const struct heddle_plan_value *x = &k->g->values[v];
    struct heddle_plan_op *op = put_op(k, HEDDLE_PLAN_NONE);

    op->time = price * (double)x->bytes;
    op->nvalues = 1;
    if (k->token[v] != HEDDLE_PLAN_NONE) {
        k->input[k->d.ninputs++] = k->token[v];
        op->ninputs = 1;
    }
    k->out->value[k->d.nops - 1] = v;
    k->now[v] = put_value(k, x->bytes, k->d.nops - 1, x->flags & HEDDLE_PLAN_RESULT);
}

static void put_inputs(struct maker *k, const struct heddle_plan_op *from,
                       struct heddle_plan_op *op)
{
    for (uint32_t i = 0; i < from->ninputs; i++) {
        const uint32_t v = k->now[k->g->inputs[from->first_input + i]];
        uint32_t at = k->d.ninputs++;

        for (; at > op->first_input && k->input[at - 1] > v; at--)
            k->input[at] = k->input[at - 1];
        k->input[at] = v;
    }
    op->ninputs = from->ninputs;
}

static void put_outputs(struct maker *k, uint32_t i, struct heddle_plan_op *op)
{
    const struct heddle_plan_op *from = &k->g->ops[i];
    uint32_t token = HEDDLE_PLAN_NONE;

    for (uint32_t j = 0; j < from->nvalues; j++) {
        const uint32_t v = from->first_value + j;
        const struct heddle_plan_value *x = &k->g->values[v];

        if (!k->is_moved[v]) {
            k->now[v] = put_value(k, x->bytes, k->d.nops - 1, x->flags);
            continue;
        }
        op->work_bytes += x->bytes;
        if (token == HEDDLE_PLAN_NONE)
            token = put_value(k, 0, k->d.nops - 1, 0);
        k->token[v] = token;
    }
    op->nvalues = k->d.nvalues - op->first_value;
    if (from->inplace != HEDDLE_PLAN_NONE && from->nvalues > 0 && !k->is_moved[from->first_value])
        op->inplace = k->now[from->inplace];
}

/* What is there from the beginning is loaded in front of its first reader. */
static void load_initial(struct maker *k, const struct heddle_plan_op *from, double price)
{
    for (uint32_t i = 0; i < from->ninputs; i++) {
        const uint32_t v = k->g->inputs[from->first_input + i];

        if (k->now[v] == HEDDLE_PLAN_NONE)
            put_load(k, v, price);
    }
}

static void make(struct maker *k, double price)
{
    for (uint32_t v = 0; v < k->g->nvalues; v++) {
        const struct heddle_plan_value *x = &k->g->values[v];

        k->token[v] = k->now[v] = HEDDLE_PLAN_NONE;
        if (x->op == HEDDLE_PLAN_NONE && !k->is_moved[v])
            k->now[v] = put_value(k, x->bytes, HEDDLE_PLAN_NONE, x->flags);
    }
    for (uint32_t i = 0; i < k->g->nops; i++) {
        const struct heddle_plan_op *from = &k->g->ops[i];
        struct heddle_plan_op *op;

        put_stays(k, i);
        load_initial(k, from, price);
        op = put_op(k, i);
        op->time = from->time;
        op->work_bytes = from->work_bytes;
        op->flags = from->flags;
        put_inputs(k, from, op);
        put_outputs(k, i, op);
        for (uint32_t j = 0; j < from->nvalues; j++)
            if (k->is_moved[from->first_value + j])
                put_load(k, from->first_value + j, price);
    }
}

heddle_status heddle_plan_loads_make(const struct heddle_plan_graph *g, const uint8_t *is_moved,
                                     double price, const struct heddle_plan_stay *stay,
                                     uint32_t nstay, const struct heddle_plan_opts *o,
                                     struct heddle_scratch *mem, struct heddle_plan_loads *out)
{
    const size_t nv = g->nvalues, nops = nv + g->nops + 2 * (size_t)nstay;
    struct maker k = {.g = g, .is_moved = is_moved, .stay = stay, .nstay = nstay, .out = out};

    k.op = heddle_scratch_get(mem, nops, sizeof(*k.op));
    k.value = heddle_scratch_get(mem, 2 * nv + nstay, sizeof(*k.value));
    k.input = heddle_scratch_get(mem, nv + g->ninputs + nstay, sizeof(*k.input));
    k.room = heddle_scratch_get(mem, nstay, sizeof(*k.room));
    k.now = heddle_scratch_get(mem, nv, sizeof(*k.now));
    k.token = heddle_scratch_get(mem, nv, sizeof(*k.token));
    out->op = heddle_scratch_get(mem, nops, sizeof(*out->op));
    out->value = heddle_scratch_get(mem, nops, sizeof(*out->value));
    if (k.op == NULL || k.value == NULL || k.input == NULL || k.now == NULL || k.token == NULL ||
        k.room == NULL || out->op == NULL || out->value == NULL)
        return HEDDLE_ENOMEM;
    make(&k, price);
    k.d.size = sizeof(k.d);
    k.d.name = g->name;
    k.d.ops = k.op;
    k.d.values = k.value;
    k.d.inputs = k.input;
    return heddle_plan_graph_create(&k.d, o, &out->g);
}

size_t heddle_plan_loads_read(const struct heddle_plan_loads *l, const uint32_t *op, size_t nops,
                              uint32_t nvalues, uint32_t *seq, uint8_t *is_moved)
{
    size_t n = 0;

    memset(is_moved, 0, nvalues);
    for (size_t i = 0; i < nops; i++) {
        if (l->op[op[i]] != HEDDLE_PLAN_NONE)
            seq[n++] = l->op[op[i]];
        else if (l->value[op[i]] != HEDDLE_PLAN_NONE && is_moved[l->value[op[i]]] < 2)
            is_moved[l->value[op[i]]]++;
    }
    for (uint32_t v = 0; v < nvalues; v++)
        is_moved[v] = is_moved[v] > 1;
    return n;
}

/* ---- which values ------------------------------------------------------------ */

struct candidate {
    double worth;     /* those first that have most */
    double made, out; /* when its copy may begin, time that it takes */
    double use, in;   /* when it must be back */
    uint32_t value;
};

static bool is_worth_more(const struct candidate *a, const struct candidate *b)
{
    return a->worth != b->worth ? a->worth > b->worth : a->value < b->value;
}

static void sort_candidates(struct candidate *v, uint32_t n)
{
    for (uint32_t h = n / 2; h > 0; h = h == 2 ? 1 : h * 5 / 11)
        for (uint32_t i = h; i < n; i++) {
            const struct candidate x = v[i];
            uint32_t k = i;

            for (; k >= h && is_worth_more(&x, &v[k - h]); k -= h)
                v[k] = v[k - h];
            v[k] = x;
        }
}

/* Whether the value is there at operation `at` and not read by it: the next reader,
 * or NONE. */
static uint32_t open_at(const struct heddle_plan_job *job, uint32_t v, uint32_t at)
{
    const struct heddle_plan_users *u = &job->users;
    const struct heddle_plan_value *x = &job->g->values[v];
    uint32_t k = u->first[v];

    if (x->op != HEDDLE_PLAN_NONE && x->op >= at)
        return HEDDLE_PLAN_NONE;
    while (k < u->first[v + 1] && u->user[k] < at)
        k++;
    return k < u->first[v + 1] && u->user[k] > at ? u->user[k] : HEDDLE_PLAN_NONE;
}

static double worth(enum heddle_plan_first rule, const struct heddle_plan_op *op,
                    const struct heddle_plan_value *x, double begin, uint8_t rank)
{
    switch (rule) {
    case HEDDLE_PLAN_FIRST_RANK: return rank;
    case HEDDLE_PLAN_FIRST_MADE: return -begin;
    case HEDDLE_PLAN_FIRST_LARGE: return (double)x->bytes;
    default: return op->time / (double)x->bytes;
    }
}

static uint32_t find_candidates(const struct heddle_plan_job *job, uint32_t at, const double *begin,
                                enum heddle_plan_first rule, const uint8_t *rank,
                                struct candidate *out)
{
    const struct heddle_plan_machine *m = job->m;
    const struct heddle_plan_graph *g = job->g;
    const double out_rate = m->host.out_rate + m->disk.out_rate;
    const double in_rate = m->host.in_rate + m->disk.in_rate;
    uint32_t n = 0;

    for (uint32_t v = 0; v < g->nvalues; v++) {
        const struct heddle_plan_value *x = &g->values[v];
        const bool is_made = x->op != HEDDLE_PLAN_NONE;
        const bool is_out = !is_made && !heddle_plan_is_initial(x);
        const uint32_t use = open_at(job, v, at);

        if (x->bytes == 0 || (x->flags & HEDDLE_PLAN_RESULT) != 0 ||
            (is_made && g->ops[x->op].nvalues >= 64) ||
            job->users.first[v] == job->users.first[v + 1] ||
            (use == HEDDLE_PLAN_NONE && !is_out) || (rank != NULL && rank[v] == 0 && !is_out))
            continue;
        out[n++] =
            (struct candidate){.worth = is_made ? worth(rule, &g->ops[x->op], x, begin[x->op],
                                                        rank != NULL ? rank[v] : 0)
                                                : INFINITY,
                               .made = is_made ? begin[x->op + 1] : 0,
                               .out = is_out ? 0 : (double)x->bytes / out_rate,
                               .use = is_out ? INFINITY : begin[use],
                               .in = is_out ? 0 : (double)x->bytes / in_rate,
                               .value = v};
    }
    sort_candidates(out, n);
    return n < HEDDLE_PLAN_LOADS ? n : HEDDLE_PLAN_LOADS;
}

/* The chosen, ordered by when they are made and by when they are used. */
struct choice {
    const struct candidate *v;
    uint32_t *made, *use;
    uint32_t n;
};

static void put(struct choice *c, uint32_t i)
{
    uint32_t at = c->n, to = c->n++;

    for (; at > 0 && c->v[c->made[at - 1]].made > c->v[i].made; at--)
        c->made[at] = c->made[at - 1];
    c->made[at] = i;
    for (; to > 0 && c->v[c->use[to - 1]].use > c->v[i].use; to--)
        c->use[to] = c->use[to - 1];
    c->use[to] = i;
}

static void take(uint32_t *list, uint32_t n, uint32_t i)
{
    uint32_t at = 0;

    while (list[at] != i)
        at++;
    memmove(&list[at], &list[at + 1], (n - 1 - at) * sizeof(*list));
}

/* Whether the link can copy all that are chosen out by `end`, and back from then
 * on: of those made from some time on, or used up to some time, the sum fits. */
static bool can_copy(const struct choice *c, double end)
{
    double out = 0, in = 0;

    for (uint32_t i = c->n; i-- > 0;) { /* the last made first */
        out += c->v[c->made[i]].out;
        if (c->v[c->made[i]].made + out > end)
            return false;
    }
    for (uint32_t i = 0; i < c->n; i++) {
        in += c->v[c->use[i]].in;
        if (end + in > c->v[c->use[i]].use)
            return false;
    }
    return true;
}

heddle_status heddle_plan_loads_choose(const struct heddle_plan_job *job, uint32_t at, double part,
                                       enum heddle_plan_first rule, const uint8_t *rank,
                                       struct heddle_scratch *mem, uint8_t *is_moved)
{
    const struct heddle_plan_graph *g = job->g;
    const uint32_t nv = g->nvalues;
    struct candidate *v = heddle_scratch_get(mem, nv, sizeof(*v));
    uint32_t *list = heddle_scratch_get(mem, 2 * (size_t)nv, sizeof(*list));
    double *begin = heddle_scratch_get(mem, (size_t)g->nops + 1, sizeof(*begin));
    struct choice c = {.v = v, .made = list};
    uint32_t n;

    if (v == NULL || list == NULL || begin == NULL)
        return HEDDLE_ENOMEM;
    c.use = list + nv;
    memset(is_moved, 0, nv);
    for (uint32_t i = 0; i < g->nops; i++)
        begin[i + 1] = begin[i] + g->ops[i].time;
    n = find_candidates(job, at, begin, rule, rank, v);
    for (uint32_t i = 0; i < n; i++) {
        put(&c, i);
        if (can_copy(&c, part * begin[at]))
            continue;
        take(c.made, c.n, i);
        take(c.use, c.n, i);
        c.n--;
    }
    for (uint32_t i = 0; i < c.n; i++)
        is_moved[v[c.made[i]].value] = 1;
    return HEDDLE_OK;
}

/* ---- room for copies under way --------------------------------------------------- */

/* The first operation that begins at `t` or later. */
static uint32_t op_at(const double *begin, uint32_t n, double t)
{
    uint32_t lo = 0, hi = n;

    while (lo < hi) {
        const uint32_t mid = (lo + hi) / 2;

        if (begin[mid] < t)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

static void sort_by_use(const struct candidate *v, uint32_t *list, uint32_t n)
{
    for (uint32_t i = 1; i < n; i++) {
        const uint32_t x = list[i];
        uint32_t k = i;

        for (; k > 0 && v[list[k - 1]].use < v[x].use; k--)
            list[k] = list[k - 1];
        list[k] = x;
    }
}

heddle_status heddle_plan_loads_stays(const struct heddle_plan_job *job, const uint8_t *is_moved,
                                      struct heddle_scratch *mem, struct heddle_plan_stay **out,
                                      uint32_t *n_out)
{
    const struct heddle_plan_machine *m = job->m;
    const struct heddle_plan_users *u = &job->users;
    const struct heddle_plan_graph *g = job->g;
    const double out_rate = m->host.out_rate + m->disk.out_rate;
    const double in_rate = m->host.in_rate + m->disk.in_rate;
    struct candidate *v = heddle_scratch_get(mem, g->nvalues, sizeof(*v));
    uint32_t *list = heddle_scratch_get(mem, g->nvalues, sizeof(*list));
    uint32_t *gone = heddle_scratch_get(mem, g->nvalues, sizeof(*gone));
    double *begin = heddle_scratch_get(mem, (size_t)g->nops + 1, sizeof(*begin));
    struct heddle_plan_stay *s = heddle_scratch_get(mem, 2 * (size_t)g->nvalues, sizeof(*s));
    double out_at = 0, in_at = INFINITY;
    uint32_t nv = 0, n = 0;

    if (v == NULL || list == NULL || gone == NULL || begin == NULL || s == NULL)
        return HEDDLE_ENOMEM;
    for (uint32_t i = 0; i < g->nops; i++)
        begin[i + 1] = begin[i] + g->ops[i].time;
    /* Out in the order in which they are made. */
    for (uint32_t x = 0; x < g->nvalues; x++) {
        const uint32_t op = g->values[x].op;
        uint32_t from, k = u->first[x];

        if (!is_moved[x] || op == HEDDLE_PLAN_NONE)
            continue;
        out_at = fmax(out_at, begin[op + 1]) + (double)g->values[x].bytes / out_rate;
        gone[x] = op_at(begin, g->nops, out_at);
        if (gone[x] <= op) /* operations of no time */
            gone[x] = op + 1;
        from = op + 1;
        for (; k < u->first[x + 1] && u->user[k] < gone[x]; k++)
            from = u->user[k] + 1;
        if (from < gone[x] && gone[x] < g->nops)
            s[n++] = (struct heddle_plan_stay){x, from, gone[x]};
        if (k == u->first[x + 1])
            continue;
        list[nv] = nv;
        v[nv++] = (struct candidate){.use = begin[u->user[k]],
                                     .in = (double)g->values[x].bytes / in_rate,
                                     .made = u->user[k],
                                     .value = x};
    }
    /* Back as late as possible, the last first. */
    sort_by_use(v, list, nv);
    for (uint32_t i = 0; i < nv; i++) {
        const struct candidate *c = &v[list[i]];
        const uint32_t use = (uint32_t)c->made;
        uint32_t from;

        in_at = fmin(in_at, c->use) - c->in;
        from = op_at(begin, g->nops, in_at);
        from = from > 0 && begin[from] > in_at ? from - 1 : from;
        from = from > gone[c->value] ? from : gone[c->value];
        if (from < use)
            s[n++] = (struct heddle_plan_stay){c->value, from, use};
    }
    *out = s;
    *n_out = n;
    return HEDDLE_OK;
}
