/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pipeline_ways: how a stage can be run.
 *
 * A way says for each layer whether its tape is kept. Layers that are not kept
 * form segments: the input of a segment is saved, its forward runs again before
 * its backward, and its tapes are there meanwhile. Way id 0 keeps everything; id
 * q * MAX_SEGMENTS + k cuts the stage into q segments of about equal tapes and
 * recomputes the k + 1 that are cheapest per byte. Of all these the ones stay that
 * no other beats in time, saved bytes and bytes while it runs.
 */
#include "base/assert.h"
#include "plan/pipeline.h"

enum { MAX_SEGMENTS = 16 };

static const uint8_t counts[] = {1, 2, 3, 4, 6, 8, 12, 16};

struct segments {
    uint32_t n;
    uint32_t first[MAX_SEGMENTS + 1];
    double time[MAX_SEGMENTS]; /* forward */
    uint64_t tape[MAX_SEGMENTS];
    uint32_t order[MAX_SEGMENTS]; /* cheapest first */
};

static uint64_t tapes(const struct heddle_pl *p, uint32_t first, uint32_t last)
{
    return p->tapes[last + 1] - p->tapes[first];
}

/* Cuts behind layers at which the tapes so far reach k / q of all. */
static void cut(const struct heddle_pl *p, uint32_t first, uint32_t last,
                uint32_t q, struct segments *s)
{
    const double all = (double)tapes(p, first, last);
    double sum = 0;

    s->n = 1;
    s->first[0] = first;
    for (uint32_t i = first; i < last && s->n < q; i++) {
        sum += (double)p->c->t[i + 1];
        if (sum * q >= all * s->n)
            s->first[s->n++] = i + 1;
    }
    s->first[s->n] = last + 1;
    for (uint32_t k = 0; k < s->n; k++) {
        uint32_t at = k;

        s->time[k] = p->f[s->first[k + 1]] - p->f[s->first[k]];
        s->tape[k] = tapes(p, s->first[k], s->first[k + 1] - 1);
        for (; at > 0; at--) {
            const uint32_t o = s->order[at - 1];

            if (s->time[o] * (double)s->tape[k] <=
                s->time[k] * (double)s->tape[o])
                break;
            s->order[at] = o;
        }
        s->order[at] = k;
    }
}

void heddle_pl_way_layers(const struct heddle_pl *p, uint32_t first,
                          uint32_t last, uint32_t id, uint8_t *layers)
{
    struct segments s;

    for (uint32_t i = first; i <= last; i++)
        layers[i] = HEDDLE_PIPELINE_KEPT;
    if (id == 0)
        return;
    cut(p, first, last, id / MAX_SEGMENTS, &s);
    for (uint32_t k = 0; k <= id % MAX_SEGMENTS && k < s.n; k++)
        for (uint32_t i = s.first[s.order[k]]; i < s.first[s.order[k] + 1]; i++)
            layers[i] = i == s.first[s.order[k]] ? HEDDLE_PIPELINE_FIRST
                                                 : HEDDLE_PIPELINE_AGAIN;
}

/* The cost of recomputing the k + 1 cheapest segments. */
static struct heddle_pipeline_way cost(const struct heddle_pl *p,
                                       const struct segments *s, uint32_t k,
                                       uint64_t work)
{
    struct heddle_pipeline_way w = {.saved = p->c->x[s->first[0]],
                                    .once = work};
    bool again[MAX_SEGMENTS] = {false};

    for (uint32_t i = 0; i <= k; i++)
        again[s->order[i]] = true;
    for (uint32_t i = 0; i < s->n; i++) {
        if (!again[i]) {
            w.saved = heddle_pl_add(w.saved, s->tape[i]);
            continue;
        }
        w.extra += s->time[i];
        if (heddle_pl_add(s->tape[i], work) > w.once)
            w.once = heddle_pl_add(s->tape[i], work);
        /* Its input: the stage's, or in a tape before it, or saved. */
        if (i > 0 && again[i - 1])
            w.saved = heddle_pl_add(w.saved, p->c->x[s->first[i]]);
    }
    return w;
}

static bool beats(const struct heddle_pipeline_way *a,
                  const struct heddle_pipeline_way *b)
{
    return a->extra <= b->extra && a->saved <= b->saved && a->once <= b->once;
}

static void add(struct heddle_pl_ways *ways, struct heddle_pipeline_way w,
                uint32_t id)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < ways->n; i++)
        if (beats(&ways->way[i], &w))
            return;
    for (uint32_t i = 0; i < ways->n; i++)
        if (!beats(&w, &ways->way[i])) {
            ways->way[n] = ways->way[i];
            ways->id[n++] = ways->id[i];
        }
    ways->n = n;
    if (n == HEDDLE_PIPELINE_WAYS)
        return;
    ways->way[n] = w;
    ways->id[n] = id;
    ways->n = n + 1;
}

static uint64_t largest_work(const struct heddle_pl *p, uint32_t first,
                             uint32_t last)
{
    uint64_t work = 0;

    for (uint32_t i = first; i <= last; i++) {
        work = p->c->work_f[i] > work ? p->c->work_f[i] : work;
        work = p->c->work_b[i] > work ? p->c->work_b[i] : work;
    }
    return work;
}

static void make_own(const struct heddle_pl *p, uint32_t first, uint32_t last,
                     struct heddle_pl_ways *ways)
{
    const uint64_t work = largest_work(p, first, last);
    struct segments s;

    add(ways,
        (struct heddle_pipeline_way){
            .saved = heddle_pl_add(p->c->x[first], tapes(p, first, last)),
            .once = work},
        0);
    for (size_t i = 0; i < sizeof(counts) && !p->o.keeps; i++) {
        if (counts[i] > last - first + 1)
            break;
        cut(p, first, last, counts[i], &s);
        /* From all of them down: the far ends are what must not be missed. */
        for (uint32_t k = s.n; k-- > 0;)
            add(ways, cost(p, &s, k, work), counts[i] * MAX_SEGMENTS + k);
    }
}

static heddle_status make_given(const struct heddle_pl *p, uint32_t first,
                                uint32_t last, struct heddle_pl_ways *ways)
{
    ways->n = p->o.ways(p->o.user, first, last, ways->way);
    if (ways->n > HEDDLE_PIPELINE_WAYS)
        return heddle_plan_fail(&p->o.base, HEDDLE_EINVAL,
                                "layers %u to %u have more than %d ways", first,
                                last, HEDDLE_PIPELINE_WAYS);
    for (uint32_t i = 0; i < ways->n; i++)
        if (!(ways->way[i].extra >= 0 && ways->way[i].extra <= 1e300))
            return heddle_plan_fail(&p->o.base, HEDDLE_EINVAL,
                                    "a way of layers %u to %u has a time that "
                                    "is negative or not finite",
                                    first, last);
    return HEDDLE_OK;
}

heddle_status heddle_pl_ways_make(struct heddle_pl *p)
{
    p->ways = heddle_scratch_get(p->mem, (size_t)p->n * p->n, sizeof(*p->ways));
    if (p->ways == NULL)
        return heddle_plan_fail(&p->o.base, HEDDLE_ENOMEM,
                                "no memory for the stages");
    for (uint32_t i = 0; i < p->n; i++)
        for (uint32_t j = i; j < p->n; j++) {
            struct heddle_pl_ways *w = &p->ways[(size_t)i * p->n + j];

            if (p->o.ways == NULL)
                make_own(p, i, j, w);
            else
                HEDDLE_TRY(make_given(p, i, j, w));
        }
    return HEDDLE_OK;
}
