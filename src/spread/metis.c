/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * metis: a partition of the graph by METIS, made a spread.
 *
 * METIS    is found at run time. Operators are vertices, weighted with the time on the fastest
 *          class; values are edges, weighted with their bytes. METIS knows neither directions nor
 *          what the other classes take, so the share of each class is tried at several sizes.
 * Repair   the parts in the order of their mean position; an operator goes to the part of the last
 *          maker of what it reads, or to that of its first reader: no part is entered twice.
 * Then     operators at a boundary move to the class of a neighbour as long as the period becomes
 *          shorter and every class stays one segment.
 */
#include <dlfcn.h>
#include <string.h>

#include "base/assert.h"
#include "spread/spread.h"

enum {
    METIS_OPTIONS = 40,
    METIS_WORK = 1000000,
    METIS_BYTES = 100000,
    METIS_PASSES = 8,
    METIS_LEAST = 8 /* operators for each part */
};

static const double shares[] = {0.25, 0.5, 0.75, 1.0, 1.25, 1.5, 2.0, 3.0};

typedef int (*partition_fn)(int32_t *nvtxs, int32_t *ncon, int32_t *xadj, int32_t *adjncy,
                            int32_t *vwgt, int32_t *vsize, int32_t *adjwgt, int32_t *nparts,
                            float *tpwgts, float *ubvec, int32_t *options, int32_t *objval,
                            int32_t *part);
typedef int (*options_fn)(int32_t *options);

struct metis {
    const struct spread_problem *p;
    void *library;
    partition_fn partition;
    int32_t *xadj, *adjncy, *adjwgt, *vwgt, *part;
    float share[HEDDLE_SPREAD_CLASSES];
    struct spread_route trial, best;
};

/* --- the library ------------------------------------------------------------------------------ */

/* Options are filled with -1: the bytes that were written tell the width of an index. */
static bool metis_is_32(options_fn set)
{
    int32_t options[2 * METIS_OPTIONS];

    memset(options, 0, sizeof(options));
    (void)set(options);
    return options[METIS_OPTIONS - 1] == -1 && options[METIS_OPTIONS] == 0;
}

static heddle_status metis_load(struct metis *x)
{
    static const char *const names[] = {"libmetis.so.5", "libmetis.so"};
    void *set = NULL, *partition = NULL;
    options_fn set_fn;

    for (unsigned i = 0; i < 2 && x->library == NULL; i++)
        x->library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
    if (x->library == NULL)
        return SPREAD_FAIL(x->p, HEDDLE_ENOSYS,
                           "the method 'metis' needs METIS 5 (libmetis.so.5), which is not here");
    set = dlsym(x->library, "METIS_SetDefaultOptions");
    partition = dlsym(x->library, "METIS_PartGraphRecursive");
    if (set == NULL || partition == NULL)
        return SPREAD_FAIL(x->p, HEDDLE_ENOSYS, "libmetis.so lacks METIS_PartGraphRecursive");
    memcpy(&set_fn, &set, sizeof(set_fn)); /* C has no cast from an object to a function */
    memcpy(&x->partition, &partition, sizeof(partition));
    if (!metis_is_32(set_fn))
        return SPREAD_FAIL(x->p, HEDDLE_ENOSYS, "this METIS has indices of 64 bits");
    return HEDDLE_OK;
}

/* --- the graph -------------------------------------------------------------------------------- */

/* Calls with each pair of a maker and a reader: into lists by the first of them. */
static void metis_edge(struct metis *x, int32_t *fill, uint32_t a, uint32_t b, double weight)
{
    if (x->adjncy != NULL) {
        x->adjncy[fill[a]] = (int32_t)b;
        x->adjwgt[fill[a]] = 1 + (int32_t)(METIS_BYTES * weight);
    }
    fill[a]++;
}

static void metis_edges(struct metis *x, int32_t *fill)
{
    const struct spread_problem *p = x->p;
    uint64_t most = 1;

    for (uint32_t v = 0; v < p->g.nvalues; v++)
        most = p->g.bytes[v] > most ? p->g.bytes[v] : most;
    for (uint32_t v = 0; v < p->g.nvalues; v++)
        for (uint32_t k = p->used.end[v]; k < p->used.end[v + 1]; k++) {
            const uint32_t a = p->g.maker[v], b = p->used.list[k];
            const double weight = (double)p->g.bytes[v] / (double)most;

            if (a == UINT32_MAX || b == UINT32_MAX)
                continue;
            metis_edge(x, fill, a, b, weight);
            metis_edge(x, fill, b, a, weight);
        }
}

static heddle_status metis_graph(struct metis *x, struct heddle_scratch *mem)
{
    const struct spread_problem *p = x->p;
    const uint32_t n = p->g.nops, fast = p->fastest != SPREAD_NONE ? p->fastest : 0;
    int32_t *fill = heddle_scratch_get(mem, n, sizeof(*fill));
    double most = 0.0;
    size_t nedges = 1;

    x->xadj = heddle_scratch_get(mem, (size_t)n + 1, sizeof(*x->xadj));
    x->vwgt = heddle_scratch_get(mem, n, sizeof(*x->vwgt));
    x->part = heddle_scratch_get(mem, n, sizeof(*x->part));
    if (fill == NULL || x->xadj == NULL || x->vwgt == NULL || x->part == NULL)
        return HEDDLE_ENOMEM;
    metis_edges(x, fill);
    for (uint32_t i = 0; i < n; i++) {
        x->xadj[i + 1] = x->xadj[i] + fill[i];
        nedges += (size_t)fill[i];
        fill[i] = x->xadj[i];
        if (spread_time(p, i, fast) < INFINITY)
            most += spread_time(p, i, fast);
    }
    x->adjncy = heddle_scratch_get(mem, nedges, sizeof(*x->adjncy));
    x->adjwgt = heddle_scratch_get(mem, nedges, sizeof(*x->adjwgt));
    if (x->adjncy == NULL || x->adjwgt == NULL)
        return HEDDLE_ENOMEM;
    metis_edges(x, fill);
    for (uint32_t i = 0; i < n; i++) {
        const double t = spread_time(p, i, fast);

        x->vwgt[i] = t < INFINITY && most > 0.0 ? (int32_t)(METIS_WORK * (t / most)) : 0;
    }
    return HEDDLE_OK;
}

/* Shares in proportion to speed, all but the fastest class's times a factor. */
static void metis_shares(struct metis *x, double factor)
{
    const struct spread_problem *p = x->p;
    const uint32_t n = p->m.nclasses, fast = p->fastest != SPREAD_NONE ? p->fastest : 0;
    double speed[HEDDLE_SPREAD_CLASSES], all = 0.0, others = 0.0;

    for (uint32_t r = 0; r < n; r++) {
        double sum = 0.0;

        for (uint32_t i = 0; i < p->g.nops; i++)
            if (spread_time(p, i, r) < INFINITY)
                sum += p->load[(size_t)i * n + r];
        speed[r] = sum > 0.0 ? 1.0 / sum : 1.0;
        all += speed[r];
    }
    for (uint32_t r = 0; r < n; r++)
        if (r != fast)
            others += speed[r] / all;
    factor = others > 0.0 ? fmin(factor, 0.95 / others) : factor;
    for (uint32_t r = 0; r < n; r++)
        x->share[r] = (float)(r == fast ? 1.0 - factor * others : factor * speed[r] / all);
}

/* --- repair ----------------------------------------------------------------------------------- */

/* place[part]: its number in the order of mean positions. */
static void metis_order(const struct metis *x, uint32_t *place)
{
    const uint32_t n = x->p->m.nclasses;
    double mean[HEDDLE_SPREAD_CLASSES] = {0.0}, count[HEDDLE_SPREAD_CLASSES] = {0.0};

    for (uint32_t i = 0; i < x->p->g.nops; i++) {
        mean[x->part[i]] += i;
        count[x->part[i]] += 1.0;
    }
    for (uint32_t a = 0; a < n; a++) {
        place[a] = 0;
        for (uint32_t b = 0; b < n; b++) {
            const double ma = mean[a] / fmax(count[a], 1.0), mb = mean[b] / fmax(count[b], 1.0);

            place[a] += mb < ma || (mb == ma && b < a);
        }
    }
}

/* Forwards: no operator before a maker of what it reads. Backwards: none behind a reader. */
static void metis_close(const struct metis *x, bool is_forward, uint32_t *place)
{
    const struct spread_problem *p = x->p;

    for (uint32_t k = 0; k < p->g.nops; k++) {
        const uint32_t i = is_forward ? k : p->g.nops - 1 - k;

        for (uint32_t j = p->in.end[i]; j < p->in.end[i + 1]; j++) {
            const uint32_t maker = p->g.maker[p->in.list[j]];

            if (maker == UINT32_MAX)
                continue;
            if (is_forward && place[i] < place[maker])
                place[i] = place[maker];
            if (!is_forward && place[maker] > place[i])
                place[maker] = place[i];
        }
    }
}

/* --- moves ------------------------------------------------------------------------------------ */

/* Moves an operator if that makes the period shorter. */
static bool metis_move(struct metis *x, uint32_t op, uint32_t cls)
{
    const uint32_t was = x->trial.cls[op];
    const double period = x->trial.period;

    if (cls == was || !(spread_time(x->p, op, cls) < INFINITY))
        return false;
    x->trial.cls[op] = cls;
    if (heddle_spread_is_convex(x->p, x->trial.cls) && heddle_spread_fit(x->p, &x->trial) &&
        x->trial.period < period)
        return true;
    x->trial.cls[op] = was;
    (void)heddle_spread_fit(x->p, &x->trial);
    return false;
}

static bool metis_pass(struct metis *x)
{
    const struct spread_problem *p = x->p;
    bool any = false;

    for (uint32_t v = 0; v < p->g.nvalues; v++)
        for (uint32_t k = p->used.end[v]; k < p->used.end[v + 1]; k++) {
            const uint32_t a = p->g.maker[v], b = p->used.list[k];

            if (a == UINT32_MAX || b == UINT32_MAX || x->trial.cls[a] == x->trial.cls[b])
                continue;
            any |= metis_move(x, a, x->trial.cls[b]) || metis_move(x, b, x->trial.cls[a]);
        }
    return any;
}

static void metis_try(struct metis *x, bool is_forward, uint32_t *place)
{
    const struct spread_problem *p = x->p;
    uint32_t order[HEDDLE_SPREAD_CLASSES], cls[HEDDLE_SPREAD_CLASSES];

    metis_order(x, order);
    for (uint32_t r = 0; r < p->m.nclasses; r++)
        cls[order[r]] = r;
    for (uint32_t i = 0; i < p->g.nops; i++)
        place[i] = order[x->part[i]];
    metis_close(x, is_forward, place);
    for (uint32_t i = 0; i < p->g.nops; i++) {
        uint32_t r = cls[place[i]];

        for (uint32_t s = 0; !(spread_time(p, i, r) < INFINITY); s++)
            r = s;
        x->trial.cls[i] = r;
    }
    if (!heddle_spread_fit(p, &x->trial))
        return;
    for (unsigned i = 0; i < METIS_PASSES && metis_pass(x); i++)
        ;
    if (x->trial.period < x->best.period)
        heddle_spread_copy(p, &x->best, &x->trial);
}

/* Of a graph that is too small for METIS: cut in its order. */
static void metis_in_order(struct metis *x)
{
    double work = 0.0, upto = x->share[0];
    int32_t part = 0;

    for (uint32_t i = 0; i < x->p->g.nops; i++) {
        while (work / METIS_WORK >= upto && part + 1 < (int32_t)x->p->m.nclasses)
            upto += x->share[++part];
        x->part[i] = part;
        work += x->vwgt[i];
    }
}

static heddle_status metis_search(struct metis *x, struct heddle_scratch *mem)
{
    int32_t n = (int32_t)x->p->g.nops, one = 1, nparts = (int32_t)x->p->m.nclasses, cut = 0;
    uint32_t *place = heddle_scratch_get(mem, x->p->g.nops, sizeof(*place));

    HEDDLE_TRY(heddle_spread_route(x->p, mem, &x->trial));
    HEDDLE_TRY(heddle_spread_route(x->p, mem, &x->best));
    if (place == NULL)
        return HEDDLE_ENOMEM;
    HEDDLE_TRY(metis_graph(x, mem));
    for (unsigned i = 0; i < sizeof(shares) / sizeof(shares[0]); i++) {
        metis_shares(x, shares[i]);
        metis_in_order(x);
        if (nparts > 1 && n >= METIS_LEAST * nparts &&
            x->partition(&n, &one, x->xadj, x->adjncy, x->vwgt, NULL, x->adjwgt, &nparts, x->share,
                         NULL, NULL, &cut, x->part) != 1)
            return SPREAD_FAIL(x->p, HEDDLE_ENOSYS, "METIS refused the graph");
        for (uint32_t k = 0; k < x->p->g.nops; k++) /* what a library says is not trusted */
            if (x->part[k] < 0 || x->part[k] >= nparts)
                x->part[k] = 0;
        metis_try(x, true, place);
        metis_try(x, false, place);
    }
    return HEDDLE_OK;
}

static heddle_status metis_run(const struct spread_problem *p, struct heddle_scratch *mem,
                               struct spread_set *out)
{
    struct metis x = {.p = p};
    heddle_status st = metis_load(&x);

    if (st == HEDDLE_OK)
        st = metis_search(&x, mem);
    if (x.library != NULL)
        (void)dlclose(x.library);
    HEDDLE_TRY(st);
    return heddle_spread_alone(p, mem, &x.best, out);
}

const struct heddle_spread_ops heddle_spread_metis = {
    .name = "metis",
    .help = "a partition by METIS, if that is installed, repaired and improved",
    .run = metis_run,
};
