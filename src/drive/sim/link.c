/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * link: links and buses of the simulated world.
 *
 * Links       one copy at a time, in the order in which copies line up: latency,
 *             then bytes over bandwidth.
 * Buses       links of a bus share its bandwidth max-min fairly: flows that want
 *             no more than an equal share get what they want, the others share
 *             the rest. Whenever a flow begins or ends, the flows of that bus
 *             get new rates and their events move. A link without bus has one
 *             event for latency and bytes together.
 * Cost        a change costs O(flows of the bus squared) at worst.
 */
#include <math.h>
#include <string.h>

#include "base/assert.h"
#include "base/atomic.h"
#include "drive/sim/world.h"

/* Rates of all flows of a bus by progressive filling: as long as some flow wants
 * no more than an equal share of what is left, it gets what it wants. */
static void bus_fill(struct heddle_sim *s, unsigned bus, double *rate)
{
    const struct sim_bus *b = &s->bus[bus];
    double left = s->plat->bus[bus].bytes_per_ns;
    unsigned open = b->nflows;
    bool is_new = true;

    for (unsigned i = 0; i < b->nflows; i++)
        rate[i] = 0;
    while (open > 0 && is_new) {
        const double share = left / open;

        is_new = false;
        for (unsigned i = 0; i < b->nflows; i++) {
            const double cap = s->plat->link[b->link[i]].bytes_per_ns;

            if (rate[i] > 0 || cap > share)
                continue;
            rate[i] = cap;
            left -= cap;
            open--;
            is_new = true;
        }
    }
    for (unsigned i = 0; i < b->nflows && open > 0; i++)
        if (!(rate[i] > 0))
            rate[i] = left / open;
}

static void flow_set_rate(struct heddle_sim *s, struct sim_job *j, double rate)
{
    if (j->pos != SIM_NO_EVENT && j->rate == rate)
        return;
    j->left -= j->rate * (double)(heddle_load_rlx(&s->now) - j->since);
    if (j->left < 0)
        j->left = 0;
    j->since = heddle_load_rlx(&s->now);
    j->rate = rate;
    sim_heap_put(&s->heap, j, sim_plus(heddle_load_rlx(&s->now), sim_ns(j->left / rate)));
}

/* b->link has room for the flows and, behind them, for their rates. */
static void bus_update(struct heddle_sim *s, unsigned bus)
{
    struct sim_bus *b = &s->bus[bus];
    double *rate = (double *)(void *)(b->link + b->nlinks + b->nlinks % 2);

    bus_fill(s, bus, rate);
    for (unsigned i = 0; i < b->nflows; i++)
        flow_set_rate(s, s->link[b->link[i]].cur, rate[i]);
}

static void bus_add(struct heddle_sim *s, unsigned bus, unsigned link)
{
    struct sim_bus *b = &s->bus[bus];
    unsigned i = b->nflows++;

    for (; i > 0 && b->link[i - 1] > link; i--)
        b->link[i] = b->link[i - 1];
    b->link[i] = link;
    bus_update(s, bus);
}

static void bus_remove(struct heddle_sim *s, unsigned bus, unsigned link)
{
    struct sim_bus *b = &s->bus[bus];
    unsigned i = 0;

    while (b->link[i] != link)
        i++;
    b->nflows--;
    for (; i < b->nflows; i++)
        b->link[i] = b->link[i + 1];
    bus_update(s, bus);
}

void heddle_sim_link_flow(struct heddle_sim *s, struct sim_job *j)
{
    j->state = SIM_FLOWING;
    j->left = (double)j->bytes * sim_slowness(s, j);
    j->rate = 0;
    j->since = heddle_load_rlx(&s->now);
    bus_add(s, (unsigned)s->plat->link[j->link].bus, (unsigned)j->link);
}

static void link_next(struct heddle_sim *s, unsigned link)
{
    const struct heddle_plat_link *p = &s->plat->link[link];
    struct sim_link *l = &s->link[link];
    struct sim_job *j = l->head;
    uint64_t latency;

    if (l->cur != NULL || j == NULL)
        return;
    l->head = j->next;
    if (l->head == NULL)
        l->tail = NULL;
    l->queued_ns -= j->estimate;
    l->cur = j;
    j->begin = heddle_load_rlx(&s->now);
    if (p->bus < 0) {
        const double ns = p->latency_ns + (double)j->bytes / p->bytes_per_ns;

        j->state = SIM_FLOWING;
        sim_heap_put(&s->heap, j,
                     sim_plus(heddle_load_rlx(&s->now), sim_ns(ns * sim_slowness(s, j))));
        return;
    }
    latency = sim_ns(p->latency_ns * sim_slowness(s, j));
    if (latency == 0) {
        heddle_sim_link_flow(s, j);
        return;
    }
    j->state = SIM_LATENT;
    sim_heap_put(&s->heap, j, sim_plus(heddle_load_rlx(&s->now), latency));
}

/* The link's copy has ended or is given up. */
void heddle_sim_link_leave(struct heddle_sim *s, struct sim_job *j)
{
    const int bus = s->plat->link[j->link].bus;
    struct sim_link *l = &s->link[j->link];

    l->busy_ns += heddle_load_rlx(&s->now) - j->begin;
    l->cur = NULL;
    if (bus >= 0 && j->state == SIM_FLOWING)
        bus_remove(s, (unsigned)bus, (unsigned)j->link);
    link_next(s, (unsigned)j->link);
}

void heddle_sim_link_enter(struct heddle_sim *s, struct sim_job *j)
{
    const struct heddle_plat_link *p = &s->plat->link[j->link];
    struct sim_link *l = &s->link[j->link];

    j->state = SIM_LINED;
    j->estimate = sim_ns((p->latency_ns + (double)j->bytes / p->bytes_per_ns) * sim_slowness(s, j));
    j->next = NULL;
    if (l->tail != NULL)
        l->tail->next = j;
    else
        l->head = j;
    l->tail = j;
    l->queued_ns += j->estimate;
    link_next(s, (unsigned)j->link);
}

void heddle_sim_link_drop(struct heddle_sim *s, struct sim_job *j)
{
    struct sim_link *l = &s->link[j->link];
    struct sim_job *prev = NULL;

    for (struct sim_job *k = l->head; k != j; k = k->next)
        prev = k;
    if (prev != NULL)
        prev->next = j->next;
    else
        l->head = j->next;
    if (l->tail == j)
        l->tail = prev;
    l->queued_ns -= j->estimate;
}

/* What a new flow would get of its bus now. */
static double link_rate(const struct heddle_sim *s, unsigned link)
{
    const struct heddle_plat_link *p = &s->plat->link[link];
    const struct sim_bus *b;
    double others = 0, total, rate;
    unsigned n = 1;

    if (p->bus < 0)
        return p->bytes_per_ns;
    b = &s->bus[p->bus];
    total = s->plat->bus[p->bus].bytes_per_ns;
    for (unsigned i = 0; i < b->nflows; i++) {
        if (b->link[i] == link)
            continue;
        others += s->link[b->link[i]].cur->rate;
        n++;
    }
    rate = total - others > total / n ? total - others : total / n;
    return rate < p->bytes_per_ns ? rate : p->bytes_per_ns;
}

static double link_wait_ns(const struct heddle_sim *s, unsigned link)
{
    const struct sim_link *l = &s->link[link];
    double ns = (double)l->queued_ns;

    if (l->cur != NULL && l->cur->pos != SIM_NO_EVENT)
        ns += (double)(s->heap.event[l->cur->pos].time - heddle_load_rlx(&s->now));
    if (l->cur != NULL && l->cur->state == SIM_LATENT)
        ns += (double)l->cur->bytes / link_rate(s, link);
    return ns;
}

double heddle_sim_copy_ns(const struct heddle_sim *s, unsigned from, unsigned to, uint64_t bytes)
{
    int link;

    if (from >= s->plat->nnodes || to >= s->plat->nnodes)
        return (double)INFINITY;
    if (from == to)
        return 0;
    link = sim_link_between(s, from, to);
    if (link >= 0)
        return link_wait_ns(s, (unsigned)link) + s->plat->link[link].latency_ns +
               (double)bytes / link_rate(s, (unsigned)link);
    if (from == 0 || to == 0)
        return (double)INFINITY;
    return heddle_sim_copy_ns(s, from, 0, bytes) + heddle_sim_copy_ns(s, 0, to, bytes);
}

void heddle_sim_link_use(const struct heddle_sim *s, unsigned link, uint64_t *busy_ns_out,
                         uint64_t *bytes_out)
{
    const struct sim_link *l = &s->link[link];

    *busy_ns_out = l->busy_ns;
    if (l->cur != NULL)
        *busy_ns_out += heddle_load_rlx(&s->now) - l->cur->begin;
    *bytes_out = l->bytes;
}

static size_t bus_bytes(unsigned nlinks)
{
    return (size_t)(nlinks + nlinks % 2) * sizeof(unsigned) + nlinks * sizeof(double);
}

heddle_status heddle_sim_links_create(struct heddle_sim *s)
{
    const struct heddle_plat *p = s->plat;
    const size_t n = p->nnodes;

    /* One more than needed: no links is not the same as no memory. */
    s->link = heddle_zalloc(&s->alloc, p->nlinks + 1u, sizeof(*s->link));
    s->bus = heddle_zalloc(&s->alloc, p->nbuses + 1u, sizeof(*s->bus));
    s->link_of = heddle_zalloc(&s->alloc, n * n, sizeof(int));
    if (s->link == NULL || s->bus == NULL || s->link_of == NULL)
        return HEDDLE_ENOMEM;
    for (size_t i = 0; i < n * n; i++)
        s->link_of[i] = -1;
    for (unsigned i = p->nlinks; i-- > 0;) {
        s->link_of[p->link[i].from * n + p->link[i].to] = (int)i;
        if (p->link[i].bus >= 0)
            s->bus[p->link[i].bus].nlinks++;
    }
    for (unsigned i = 0; i < p->nbuses; i++) {
        struct sim_bus *b = &s->bus[i];

        if (b->nlinks == 0)
            continue;
        b->link = heddle_zalloc(&s->alloc, 1, bus_bytes(b->nlinks));
        if (b->link == NULL)
            return HEDDLE_ENOMEM;
    }
    return HEDDLE_OK;
}

void heddle_sim_links_destroy(struct heddle_sim *s)
{
    const struct heddle_plat *p = s->plat;

    for (unsigned i = 0; s->bus != NULL && i < p->nbuses; i++)
        heddle_free(&s->alloc, s->bus[i].link, bus_bytes(s->bus[i].nlinks));
    heddle_free(&s->alloc, s->bus, (p->nbuses + 1u) * sizeof(*s->bus));
    heddle_free(&s->alloc, s->link, (p->nlinks + 1u) * sizeof(*s->link));
    heddle_free(&s->alloc, s->link_of, (size_t)p->nnodes * p->nnodes * sizeof(int));
}
