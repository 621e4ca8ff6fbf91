/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * order: to which CPU each worker is bound, and in which order workers steal.
 *
 * Purpose    pure functions of a struct heddle_topo, so that tests can use machines
 *            that are not there.
 * Cost       bind O(n^2) in the CPUs, once per context; steal O(n) per worker.
 */
#include <stdbool.h>

#include "base/alloc.h"
#include "topo/topo.h"

int heddle_topo_find(const struct heddle_topo *t, int os)
{
    unsigned lo = 0, hi = t->ncpus;

    while (lo < hi) {
        const unsigned mid = lo + (hi - lo) / 2;

        if (t->cpu[mid].os < os)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo < t->ncpus && t->cpu[lo].os == os ? (int)lo : -1;
}

enum heddle_topo_distance heddle_topo_distance(const struct heddle_topo *t, int a, int b)
{
    const int ia = heddle_topo_find(t, a), ib = heddle_topo_find(t, b);
    const struct heddle_topo_cpu *x, *y;

    if (ia < 0 || ib < 0)
        return HEDDLE_TOPO_MACHINE;
    if (ia == ib)
        return HEDDLE_TOPO_SAME;
    x = &t->cpu[ia];
    y = &t->cpu[ib];
    if (x->core == y->core)
        return HEDDLE_TOPO_CORE;
    if (x->l2 >= 0 && x->l2 == y->l2)
        return HEDDLE_TOPO_L2;
    if (x->l3 >= 0 && x->l3 == y->l3)
        return HEDDLE_TOPO_L3;
    if (x->package != y->package)
        return HEDDLE_TOPO_MACHINE;
    return x->node == y->node ? HEDDLE_TOPO_NODE : HEDDLE_TOPO_PACKAGE;
}

heddle_status heddle_topo_steal_order(const struct heddle_topo *t, const int *cpu, unsigned n,
                                      unsigned self, unsigned *order_out)
{
    unsigned len = 0;

    if (self >= n)
        return HEDDLE_EINVAL;
    for (int d = HEDDLE_TOPO_SAME; d <= HEDDLE_TOPO_MACHINE; d++) {
        for (unsigned k = 1; k < n; k++) {
            const unsigned w = (self + k) % n;

            if ((int)heddle_topo_distance(t, cpu[self], cpu[w]) == d)
                order_out[len++] = w;
        }
    }
    return HEDDLE_OK;
}

/* Work area of heddle_topo_bind_order(). */
struct plan {
    const struct heddle_topo *t;
    unsigned *sorted;      /* [ncpus] indices of cpu[], near ones adjacent */
    unsigned *core_on;     /* [ncores] gets a worker */
    unsigned *package_on;  /* [npackages] may get workers */
    unsigned *domain_used; /* [nl3 + npackages] last round that took a core */
};

/* Comes x before y when near CPUs shall be adjacent? */
static bool is_before(const struct heddle_topo_cpu *x, const struct heddle_topo_cpu *y)
{
    if (x->package != y->package)
        return x->package < y->package;
    if (x->node != y->node)
        return x->node < y->node;
    if (x->l3 != y->l3)
        return x->l3 < y->l3;
    if (x->l2 != y->l2)
        return x->l2 < y->l2;
    if (x->core != y->core)
        return x->core < y->core;
    return x->os < y->os;
}

static void sort_cpus(struct plan *p)
{
    for (unsigned i = 0; i < p->t->ncpus; i++) {
        unsigned k = i;

        for (; k > 0; k--) {
            const unsigned prev = p->sorted[k - 1];

            if (is_before(&p->t->cpu[prev], &p->t->cpu[i]))
                break;
            p->sorted[k] = prev;
        }
        p->sorted[k] = i;
    }
}

static unsigned package_cores(const struct heddle_topo *t, unsigned package)
{
    unsigned n = 0;

    for (unsigned i = 0; i < t->ncpus; i++)
        n += t->cpu[i].package == (int)package && t->cpu[i].smt == 0;
    return n;
}

/* The largest packages first, until they hold ncores cores. */
static void choose_packages(struct plan *p, unsigned ncores)
{
    for (unsigned sum = 0; sum < ncores;) {
        unsigned best = 0, most = 0;

        for (unsigned k = 0; k < p->t->npackages; k++) {
            const unsigned n = p->package_on[k] ? 0 : package_cores(p->t, k);

            if (n > most) {
                best = k;
                most = n;
            }
        }
        p->package_on[best] = 1;
        sum += most;
    }
}

/* CPUs that compete for one last-level cache; the package when none is
 * known. */
static unsigned domain_of(const struct heddle_topo *t, const struct heddle_topo_cpu *c)
{
    return c->l3 >= 0 ? (unsigned)c->l3 : t->nl3 + (unsigned)c->package;
}

/* Each round takes one more core from every domain of the chosen packages. */
static void choose_cores(struct plan *p, unsigned ncores)
{
    const struct heddle_topo *t = p->t;

    for (unsigned round = 1, n = 0; n < ncores; round++) {
        for (unsigned i = 0; i < t->ncpus && n < ncores; i++) {
            const struct heddle_topo_cpu *c = &t->cpu[p->sorted[i]];
            unsigned *used = &p->domain_used[domain_of(t, c)];

            if (c->smt != 0 || !p->package_on[c->package] || p->core_on[c->core] || *used == round)
                continue;
            *used = round;
            p->core_on[c->core] = 1;
            n++;
        }
    }
}

/* First CPUs of the chosen cores, then second ones, ...; then again. */
static void emit(const struct plan *p, unsigned nworkers, int *cpu_out)
{
    const struct heddle_topo *t = p->t;
    unsigned len = 0;

    for (unsigned smt = 0; len < nworkers && len < t->ncpus; smt++) {
        for (unsigned i = 0; i < t->ncpus && len < nworkers; i++) {
            const struct heddle_topo_cpu *c = &t->cpu[p->sorted[i]];

            if (c->smt == smt && p->core_on[c->core])
                cpu_out[len++] = c->os;
        }
    }
    for (; len < nworkers; len++)
        cpu_out[len] = cpu_out[len - t->ncpus];
}

heddle_status heddle_topo_bind_order(const struct heddle_topo *t, unsigned nworkers, int *cpu_out)
{
    const unsigned ncores = nworkers < t->ncores ? nworkers : t->ncores;
    const size_t n = (size_t)t->ncpus + t->ncores + 2 * (size_t)t->npackages + t->nl3;
    unsigned *area = heddle_zalloc(&t->a, n, sizeof(*area));
    struct plan p = {.t = t, .sorted = area};

    if (area == NULL)
        return HEDDLE_ENOMEM;
    p.core_on = p.sorted + t->ncpus;
    p.package_on = p.core_on + t->ncores;
    p.domain_used = p.package_on + t->npackages;
    sort_cpus(&p);
    choose_packages(&p, ncores);
    choose_cores(&p, ncores);
    emit(&p, nworkers, cpu_out);
    heddle_free(&t->a, area, n * sizeof(*area));
    return HEDDLE_OK;
}
