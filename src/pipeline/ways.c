/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ways: how a stage can be run.
 *
 * Between its forward and its backward a stage saves, of each layer, its tape, or
 * the input of a segment of layers that come again in the backward, or nothing:
 * the layer is inside such a segment. With a limit O on what a backward needs on
 * top, each segment takes the least time that the table of chains has for O, and
 * labels (bytes saved, time) over the layers give the best ways from the first
 * layer of the stage to any last one. For each of some numbers g of micro-batches
 * the quickest way stays with g * saved + once within the budget.
 */
#include <math.h>
#include <string.h>

#include "base/assert.h"
#include "pipeline/pipeline.h"

enum { LABELS = 24, COUNTS = HEDDLE_PIPELINE_WAYS - 1 };
#define MOST_SUMS   2e7  /* of pieces of stages */
#define LEAST_LIMIT 0.03 /* of all memory, where not all limits are tried */

/* What runs up to a layer. */
struct label {
    uint64_t saved, once;
    double extra;
    uint32_t from;    /* layer at which its last piece begins */
    uint32_t before;  /* label there */
    uint8_t was_kept; /* the kind of that label */
    uint8_t is_plain; /* the segment keeps all tapes when it comes again */
};

struct cell {
    uint32_t n;
    struct label label[LABELS + 1];
};

struct walker {
    const struct heddle_pl *p;
    uint32_t labels;         /* of a cell */
    uint32_t limits;         /* how many are tried */
    uint32_t limit, longest; /* units; layers of a segment */
    struct cell *cell[2];    /* [layer]: before it; behind a tape: [1] */
};

/* ---- labels ------------------------------------------------------------------ */

/* Which one of a full cell its neighbours replace best. */
static uint32_t least_missed(const struct cell *c)
{
    uint32_t worst = 1;
    double least = INFINITY;

    for (uint32_t i = 1; i + 1 < c->n; i++) {
        const struct label *v = &c->label[i];
        const double area = (double)(v[1].saved - v[-1].saved) * (v[-1].extra - v[1].extra);

        if (area < least) {
            least = area;
            worst = i;
        }
    }
    return worst;
}

/* More bytes saved and less time from one to the next. */
static void add_label(const struct walker *w, struct cell *c, const struct label *l)
{
    uint32_t at = c->n, end;

    while (at > 0 && c->label[at - 1].saved > l->saved)
        at--;
    if (at > 0 && c->label[at - 1].extra <= l->extra) {
        struct label *same = &c->label[at - 1];

        if (same->extra == l->extra && same->saved == l->saved && l->once < same->once)
            *same = *l;
        return;
    }
    if (at > 0 && c->label[at - 1].saved == l->saved)
        at--;
    for (end = at; end < c->n && c->label[end].extra >= l->extra; end++)
        ;
    memmove(&c->label[at + 1], &c->label[end], (c->n - end) * sizeof(*c->label));
    c->label[at] = *l;
    c->n = at + 1 + (c->n - end);
    if (c->n <= w->labels)
        return;
    at = least_missed(c);
    c->n--;
    memmove(&c->label[at], &c->label[at + 1], (c->n - at) * sizeof(*c->label));
}

static uint64_t max2(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* The layer keeps its tape. */
static void keep_layer(struct walker *w, uint32_t at, const struct label *l, uint32_t kind,
                       uint32_t index, uint64_t input)
{
    const struct heddle_plan_chain *c = w->p->c;
    const uint64_t grads = heddle_pl_add(c->x[at], c->x[at + 1]);
    struct label next = {.extra = l->extra, .from = at, .before = index, .was_kept = (uint8_t)kind};

    next.saved = heddle_pl_add(heddle_pl_add(l->saved, input), c->t[at + 1]);
    next.once = max2(l->once, max2(c->work_f[at], heddle_pl_add(grads, c->work_b[at])));
    if (next.once <= w->p->budget && next.saved <= w->p->budget)
        add_label(w, &w->cell[1][at + 1], &next);
}

/* Layers at..j come again, for each j. With all their tapes: exact bytes; else
 * by the table. */
static void add_segments(struct walker *w, uint32_t at, const struct label *l, uint32_t kind,
                         uint32_t index, uint64_t input)
{
    const struct heddle_pl *p = w->p;
    const struct heddle_plan_chain *c = p->c;
    const uint64_t room = w->limit * p->table.unit;
    const struct label base = {.saved = heddle_pl_add(l->saved, input),
                               .from = at,
                               .before = index,
                               .was_kept = (uint8_t)kind};
    uint64_t tapes = 0, forth = 0, back = 0;

    if (base.saved > p->budget)
        return;
    for (uint32_t j = at; j < p->n && j - at < w->longest; j++) {
        const double f = p->f[j + 1] - p->f[at];
        const double t = heddle_pl_chain_time(&p->table, at, j, w->limit);
        struct label next = base;
        uint64_t need;

        tapes = heddle_pl_add(tapes, c->t[j + 1]);
        forth = max2(forth, heddle_pl_add(tapes, c->work_f[j]));
        back = max2(back, heddle_pl_add(heddle_pl_add(tapes, c->work_b[j]),
                                        heddle_pl_add(c->x[j], c->x[j + 1])));
        need = max2(back, heddle_pl_add(forth, c->x[j + 1]));
        if (need <= room) {
            next.is_plain = 1;
            next.extra = l->extra + f;
            next.once = max2(l->once, need);
            add_label(w, &w->cell[0][j + 1], &next);
        } else if (isfinite(t)) {
            next.extra = l->extra + fmax(f, t - (p->b[j + 1] - p->b[at]));
            next.once =
                max2(l->once, heddle_pl_chain_need(&p->table, at, j, w->limit) * p->table.unit);
            add_label(w, &w->cell[0][j + 1], &next);
        } else {
            break;
        }
    }
}

/* All ways of stages that begin with layer `first`, up to layer `last`. */
static void walk(struct walker *w, uint32_t first, uint32_t last)
{
    const struct heddle_plan_chain *c = w->p->c;

    for (uint32_t i = first; i <= w->p->n; i++)
        w->cell[0][i].n = w->cell[1][i].n = 0;
    /* The input of a stage is saved: as behind a tape, nothing is added. */
    w->cell[1][first].n = 1;
    w->cell[1][first].label[0] = (struct label){.saved = c->x[first]};
    for (uint32_t i = first; i <= last; i++)
        for (uint32_t kind = 0; kind < 2; kind++)
            for (uint32_t k = 0; k < w->cell[kind][i].n; k++) {
                const struct label l = w->cell[kind][i].label[k];
                const uint64_t input = kind == 1 ? 0 : c->x[i];

                keep_layer(w, i, &l, kind, k, input);
                add_segments(w, i, &l, kind, k, input);
            }
}

/* ---- the best of them ---------------------------------------------------------- */

/* Numbers of micro-batches for which the best way is kept. */
static uint32_t count_of(const struct heddle_pl *p, uint32_t i)
{
    static const uint32_t few[COUNTS] = {1, 2, 3, 4, 5, 6, 7, 8, 12, 16};

    if (i + 1 == COUNTS)
        return p->nmicro;
    return few[i] < p->nmicro ? few[i] : p->nmicro;
}

static void offer(const struct heddle_pl *p, uint32_t first, uint32_t last, const struct label *l,
                  uint32_t id)
{
    struct heddle_pl_ways *ways = &p->ways[(size_t)first * p->n + last];

    for (uint32_t i = 0; i < COUNTS; i++) {
        struct heddle_pipeline_way *best = &ways->way[i];
        const struct heddle_pipeline_way w = {l->extra, l->saved, l->once};

        if ((w.extra < best->extra ||
             (w.extra == best->extra &&
              (w.saved < best->saved || (w.saved == best->saved && w.once < best->once)))) &&
            heddle_pl_memory(p, first, last, &w, count_of(p, i)) <= p->budget) {
            *best = w;
            ways->id[i] = id;
        }
    }
}

/* All there are, or some, each by the same part smaller than the one before. */
static uint32_t limit_of(const struct walker *w, uint32_t k)
{
    const uint32_t slots = w->p->table.slots;

    return w->limits == slots ? slots - k
                              : (uint32_t)(slots * pow(LEAST_LIMIT, (double)k / w->limits));
}

/* As much of everything as there is time for. */
static void walker_size(struct walker *w)
{
    const double n = w->p->n, slots = w->p->table.slots;
    double each = 2 * LABELS * n * n * n / 6;

    w->labels = each * 24 < MOST_SUMS ? LABELS : each * 6 < MOST_SUMS ? 12 : 6;
    each = each * w->labels / LABELS;
    w->limits = (uint32_t)fmin(slots, fmax(8, MOST_SUMS / each));
    w->longest = (uint32_t)fmax(8, fmin(n, MOST_SUMS / (w->limits * n * n * w->labels)));
}

static heddle_status walker_init(const struct heddle_pl *p, struct walker *w)
{
    w->p = p;
    for (int k = 0; k < 2; k++) {
        w->cell[k] = heddle_scratch_get(p->mem, (size_t)p->n + 1, sizeof(*w->cell[k]));
        if (w->cell[k] == NULL)
            return HEDDLE_PLAN_FAIL(&p->o.base, HEDDLE_ENOMEM, "no memory for the stages");
    }
    return HEDDLE_OK;
}

/* Nothing is recomputed. */
static struct heddle_pipeline_way keep_all(const struct heddle_pl *p, uint32_t first, uint32_t last)
{
    const struct heddle_plan_chain *c = p->c;
    struct heddle_pipeline_way w = {
        .saved = heddle_pl_add(c->x[first], p->tapes[last + 1] - p->tapes[first])};

    for (uint32_t i = first; i <= last; i++) {
        const uint64_t grads = heddle_pl_add(c->x[i], c->x[i + 1]);

        w.once = max2(w.once, max2(c->work_f[i], heddle_pl_add(grads, c->work_b[i])));
    }
    return w;
}

/* Drops what is missing, and what another beats. */
static void tidy(struct heddle_pl_ways *ways)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < ways->n; i++) {
        const struct heddle_pipeline_way *w = &ways->way[i];
        bool is_beaten = !isfinite(w->extra);

        for (uint32_t k = 0; k < n && !is_beaten; k++)
            is_beaten = ways->way[k].extra <= w->extra && ways->way[k].saved <= w->saved &&
                        ways->way[k].once <= w->once;
        if (is_beaten)
            continue;
        ways->way[n] = *w;
        ways->id[n++] = ways->id[i];
    }
    ways->n = n;
}

static heddle_status make_own(struct heddle_pl *p)
{
    struct walker w = {.limits = 0};

    HEDDLE_TRY(walker_init(p, &w));
    for (uint32_t i = 0; i < p->n; i++)
        for (uint32_t j = i; j < p->n; j++) {
            struct heddle_pl_ways *ways = &p->ways[(size_t)i * p->n + j];

            ways->n = HEDDLE_PIPELINE_WAYS;
            ways->way[COUNTS] = keep_all(p, i, j);
            ways->id[COUNTS] = 0;
            for (uint32_t k = 0; k < COUNTS; k++)
                ways->way[k].extra = INFINITY;
        }
    if (!p->o.keeps) {
        HEDDLE_TRY(heddle_pl_chain_make(p, &p->table));
        walker_size(&w);
    }
    for (uint32_t i = 0; i < p->n; i++)
        for (uint32_t k = 0; k < w.limits; k++) {
            w.limit = limit_of(&w, k);
            if (w.limit == 0 || (k > 0 && w.limit == limit_of(&w, k - 1)))
                continue;
            walk(&w, i, p->n - 1);
            for (uint32_t j = i; j < p->n; j++)
                for (uint32_t kind = 0; kind < 2; kind++)
                    for (uint32_t x = 0; x < w.cell[kind][j + 1].n; x++)
                        offer(p, i, j, &w.cell[kind][j + 1].label[x], k + 1);
        }
    for (uint32_t i = 0; i < p->n; i++)
        for (uint32_t j = i; j < p->n; j++)
            tidy(&p->ways[(size_t)i * p->n + j]);
    return HEDDLE_OK;
}

/* ---- what a way does ----------------------------------------------------------- */

static void put(struct heddle_pl_steps *out, uint32_t layer, uint32_t kind)
{
    if (out->step != NULL)
        out->step[out->n] = (struct heddle_pipeline_step){layer, kind};
    out->n++;
}

static void put_segment(const struct walker *w, const struct label *l, uint32_t end,
                        uint8_t *layers, struct heddle_pl_steps *out)
{
    for (uint32_t i = l->from; i < end; i++) {
        layers[i] = i == l->from ? HEDDLE_PIPELINE_FIRST : HEDDLE_PIPELINE_AGAIN;
        if (l->is_plain)
            put(out, i, HEDDLE_PIPELINE_KEEP);
    }
    for (uint32_t i = end; i > l->from && l->is_plain; i--)
        put(out, i - 1, HEDDLE_PIPELINE_UNDO);
    if (!l->is_plain)
        heddle_pl_chain_trace(&w->p->table, l->from, end - 1,
                              heddle_pl_chain_need(&w->p->table, l->from, end - 1, w->limit), out);
}

heddle_status heddle_pl_way_steps(const struct heddle_pl *p, uint32_t first, uint32_t last,
                                  uint32_t way, uint8_t *layers, struct heddle_pl_steps *out)
{
    const struct heddle_pl_ways *ways = heddle_pl_ways_of(p, first, last);
    const struct heddle_pipeline_way *want = &ways->way[way];
    struct walker w = {.limits = 0};
    uint32_t kind = 0, k = 0;

    if (ways->id[way] == 0) {
        for (uint32_t i = last + 1; i > first; i--) {
            layers[i - 1] = HEDDLE_PIPELINE_KEPT;
            put(out, i - 1, HEDDLE_PIPELINE_UNDO);
        }
        return HEDDLE_OK;
    }
    HEDDLE_TRY(walker_init(p, &w));
    walker_size(&w);
    w.limit = limit_of(&w, ways->id[way] - 1);
    walk(&w, first, last);
    for (kind = 0; kind < 2; kind++) {
        const struct cell *c = &w.cell[kind][last + 1];

        for (k = 0; k < c->n; k++)
            if (c->label[k].saved == want->saved && c->label[k].once == want->once &&
                c->label[k].extra == want->extra)
                break;
        if (k < c->n)
            break;
    }
    HEDDLE_ASSERT(kind < 2);
    for (uint32_t end = last + 1; end > first;) {
        const struct label *l = &w.cell[kind][end].label[k];

        if (kind == 1) {
            layers[l->from] = HEDDLE_PIPELINE_KEPT;
            put(out, l->from, HEDDLE_PIPELINE_UNDO);
        } else {
            put_segment(&w, l, end, layers, out);
        }
        end = l->from;
        k = l->before;
        kind = l->was_kept;
    }
    return HEDDLE_OK;
}

/* ---- given ones ---------------------------------------------------------------- */

static heddle_status make_given(const struct heddle_pl *p, uint32_t first, uint32_t last,
                                struct heddle_pl_ways *ways)
{
    ways->n = p->o.ways(p->o.user, first, last, ways->way);
    if (ways->n > HEDDLE_PIPELINE_WAYS)
        return HEDDLE_PLAN_FAIL(&p->o.base, HEDDLE_EINVAL, "layers %u to %u have more than %d ways",
                                first, last, HEDDLE_PIPELINE_WAYS);
    for (uint32_t i = 0; i < ways->n; i++)
        if (!(ways->way[i].extra >= 0 && ways->way[i].extra <= 1e300))
            return HEDDLE_PLAN_FAIL(&p->o.base, HEDDLE_EINVAL,
                                    "a way of layers %u to %u has a time that "
                                    "is negative or not finite",
                                    first, last);
    return HEDDLE_OK;
}

heddle_status heddle_pl_ways_make(struct heddle_pl *p)
{
    p->ways = heddle_scratch_get(p->mem, (size_t)p->n * p->n, sizeof(*p->ways));
    if (p->ways == NULL)
        return HEDDLE_PLAN_FAIL(&p->o.base, HEDDLE_ENOMEM, "no memory for the stages");
    if (p->o.ways == NULL)
        return make_own(p);
    for (uint32_t i = 0; i < p->n; i++)
        for (uint32_t j = i; j < p->n; j++)
            HEDDLE_TRY(make_given(p, i, j, &p->ways[(size_t)i * p->n + j]));
    return HEDDLE_OK;
}
