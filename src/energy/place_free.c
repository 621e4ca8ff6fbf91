/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * place_free: jobs without due dates; cost at most 5/4 (1 + eps) times the least.
 *
 * Idea       guess the time T when the last machine ends, on a grid of factor
 *            1 + eps. For each T accept at least as much work as the best placement
 *            that ends by T, and end by 5/4 T:
 *
 *            long    3T/4 < p <=  T     alone on a machine
 *            half     T/2 < p <= 3T/4   with one third at most
 *            third    T/4 < p <=  T/2   two or three to a machine
 *            small          p <=  T/4   last, while a machine has load <= T
 *
 *            How many of each (`pick`) is a maximum of a concave function, found
 *            by a search per number of machines with three thirds. The proof is in
 *            docs/design/energy-place.md.
 * Pruning    each T has a lower bound on every placement that ends in its interval;
 *            T are tried in the order of that bound, until it reaches the best cost.
 * Also       the same jobs by longest processing time first, and a greedy choice that
 *            ends by T: they change nothing in the proof, the cheapest is kept.
 * Cost       O(n log n + tries x (m log m + n log m)).
 */
#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "base/assert.h"
#include "base/sort.h"
#include "energy/place.h"

enum { ENOUGH = 64 }; /* tries; then the proved ratio ends the search */

/* Jobs longest first; those of index < cut[i] are longer than T, 3T/4, T/2, T/4. */
struct cuts {
    double t;
    size_t above, longs, halves, thirds;
};

/* How many jobs of each kind are taken, and how many machines have three thirds. */
struct pick {
    size_t longs, halves, triples;
    size_t slots; /* for thirds elsewhere */
    double work;  /* no placement that ends by T takes more of them */
};

struct solver {
    struct heddle_energy_draft *d;
    size_t n, m;
    double alpha, total;
    const uint32_t *order;    /* longest first */
    uint64_t *p;              /* [n] in that order */
    uint64_t *sum;            /* [n + 1] of the first ones */
    uint32_t *at;             /* [n] the attempt at hand */
    uint32_t *best;           /* [n] */
    bool *is_in;              /* [n] the chosen jobs of an attempt */
    uint64_t *load;           /* [m] */
    uint32_t *heap;           /* [m] machines, the least loaded first */
    struct heddle_pair *pair; /* [2 m] */
    double best_cost;
};

/* --- machines by load ------------------------------------------------------ */

static void sift(struct solver *s, size_t i)
{
    const uint32_t x = s->heap[i];

    for (;;) {
        size_t c = 2 * i + 1;

        if (c >= s->m)
            break;
        if (c + 1 < s->m && s->load[s->heap[c + 1]] < s->load[s->heap[c]])
            c++;
        if (s->load[s->heap[c]] >= s->load[x])
            break;
        s->heap[i] = s->heap[c];
        i = c;
    }
    s->heap[i] = x;
}

static void heap_make(struct solver *s)
{
    for (size_t i = 0; i < s->m; i++)
        s->heap[i] = (uint32_t)i;
    for (size_t i = s->m / 2; i-- > 0;)
        sift(s, i);
}

static void clear(struct solver *s)
{
    memset(s->load, 0, s->m * sizeof(*s->load));
    for (size_t i = 0; i < s->n; i++)
        s->at[i] = HEDDLE_ENERGY_THERE;
}

static void put(struct solver *s, size_t job, size_t machine)
{
    s->at[job] = (uint32_t)machine;
    s->load[machine] += s->p[job];
}

static void put_least(struct solver *s, size_t job)
{
    put(s, job, s->heap[0]);
    sift(s, 0);
}

/* Keeps the attempt when it is the cheapest so far. */
static void keep(struct solver *s)
{
    uint64_t span = 0, here = 0;
    double cost;

    for (size_t i = 0; i < s->m; i++) {
        here += s->load[i];
        span = s->load[i] > span ? s->load[i] : span;
    }
    cost = (double)span + s->alpha * (s->total - (double)here);
    if (cost >= s->best_cost)
        return;
    s->best_cost = cost;
    memcpy(s->best, s->at, s->n * sizeof(*s->at));
}

/* --- what fits by T -------------------------------------------------------- */

/* How many jobs are longer than x. */
static size_t longer(const struct solver *s, double x)
{
    size_t lo = 0, hi = s->n;

    while (lo < hi) {
        const size_t mid = lo + (hi - lo) / 2;

        if ((double)s->p[mid] > x)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

static struct cuts cut(const struct solver *s, double t)
{
    return (struct cuts){.t = t,
                         .above = longer(s, t),
                         .longs = longer(s, 0.75 * t),
                         .halves = longer(s, 0.5 * t),
                         .thirds = longer(s, 0.25 * t)};
}

static double between(const struct solver *s, size_t from, size_t to)
{
    return (double)(s->sum[to] - s->sum[from]);
}

/* The most work in thirds: `slots` of any length, and three on each of g machines,
 * which together have at most g T. */
static double thirds_work(const struct solver *s, const struct cuts *c, size_t slots, size_t g)
{
    const size_t n = c->thirds - c->halves;
    const size_t free = slots < n ? slots : n;
    const size_t all = slots + 3 * g < n ? slots + 3 * g : n;

    return fmin(between(s, c->halves, c->halves + free) + (double)g * c->t,
                between(s, c->halves, c->halves + all));
}

static struct pick pick_with(const struct solver *s, const struct cuts *c, size_t longs, size_t g)
{
    const size_t left = s->m - g - longs, nhalves = c->halves - c->longs;
    struct pick k = {.longs = longs, .triples = g};

    k.halves = nhalves < left ? nhalves : left;
    k.slots = 2 * left - k.halves;
    k.work = between(s, c->above, c->above + longs) + between(s, c->longs, c->longs + k.halves) +
             thirds_work(s, c, k.slots, g);
    return k;
}

/* The best number of long jobs next to g machines with three thirds: the work is
 * concave in it. */
static struct pick pick_longs(const struct solver *s, const struct cuts *c, size_t g)
{
    const size_t n = c->longs - c->above;
    size_t lo = 0, hi = n < s->m - g ? n : s->m - g;

    while (lo < hi) {
        const size_t mid = lo + (hi - lo) / 2;

        if (pick_with(s, c, mid + 1, g).work > pick_with(s, c, mid, g).work)
            lo = mid + 1;
        else
            hi = mid;
    }
    return pick_with(s, c, lo, g);
}

static struct pick pick(const struct solver *s, const struct cuts *c)
{
    const size_t n = c->thirds - c->halves;
    struct pick best = pick_longs(s, c, 0);

    /* The shortest 3g thirds have to fit on g machines. */
    for (size_t g = 1;
         g <= s->m && 3 * g <= n && between(s, c->thirds - 3 * g, c->thirds) <= (double)g * c->t;
         g++) {
        const struct pick k = pick_longs(s, c, g);

        if (k.work > best.work)
            best = k;
    }
    return best;
}

/* --- placing what was picked ----------------------------------------------- */

/* Thirds [from, from + 3g) on g machines from `first` on: one round after the
 * other, the longest job to the machine with the least. */
static void place_triples(struct solver *s, size_t from, size_t first, size_t g)
{
    for (size_t round = 0; round < 3; round++) {
        for (size_t i = 0; i < g; i++)
            s->pair[i] = (struct heddle_pair){s->load[first + i], first + i};
        heddle_sort_pairs(s->pair, s->pair + g, g);
        for (size_t i = 0; i < g; i++)
            put(s, from + round * g + i, s->pair[i].idx);
    }
}

static void place_picked(struct solver *s, const struct cuts *c, const struct pick *k)
{
    const size_t n = c->thirds - c->halves, g = k->triples;
    const size_t nfree = k->slots < n - 3 * g ? k->slots : n - 3 * g;
    const size_t pairs = k->longs + k->halves, triples = s->m - g;
    size_t from = c->thirds - 3 * g, machine = pairs, next = 0;
    double work = between(s, from, c->thirds);

    for (size_t i = 0; i < k->longs; i++)
        put(s, c->above + i, i);
    for (size_t i = 0; i < k->halves; i++)
        put(s, c->longs + i, k->longs + i);
    /* The longest thirds: one to each machine for two, then one more to each of
     * these, from the last back, then to those with a half, from the last too. */
    for (; machine < triples && next < nfree; machine++)
        put(s, c->halves + next++, machine);
    while (machine > k->longs && next < nfree)
        put(s, c->halves + next++, --machine);
    /* The first window of thirds, from the shortest on, with more than g T. */
    while (g > 0 && from > c->halves + nfree && work <= (double)g * c->t) {
        from--;
        work = between(s, from, from + 3 * g);
    }
    place_triples(s, from, triples, g);
}

/* The rest of an attempt: small jobs while a machine has at most T. */
static void place_small(struct solver *s, const struct cuts *c)
{
    heap_make(s);
    for (size_t i = c->thirds; i < s->n && (double)s->load[s->heap[0]] <= c->t; i++)
        put_least(s, i);
}

/* The jobs of the attempt at hand, longest first to the least loaded. */
static void place_again(struct solver *s)
{
    for (size_t i = 0; i < s->n; i++)
        s->is_in[i] = s->at[i] != HEDDLE_ENERGY_THERE;
    clear(s);
    heap_make(s);
    for (size_t i = 0; i < s->n; i++)
        if (s->is_in[i])
            put_least(s, i);
}

/* Longest first, whatever still ends by T. */
static void place_greedy(struct solver *s, const struct cuts *c)
{
    clear(s);
    heap_make(s);
    for (size_t i = c->above; i < s->n; i++)
        if ((double)(s->load[s->heap[0]] + s->p[i]) <= c->t)
            put_least(s, i);
}

/* What the proof rests on: at least the work of `pick`, and an end by 5/4 T. */
static bool is_proved(const struct solver *s, const struct cuts *c, double work)
{
    uint64_t here = 0, span = 0;

    for (size_t i = 0; i < s->m; i++) {
        here += s->load[i];
        span = s->load[i] > span ? s->load[i] : span;
    }
    return (double)here >= work * (1 - 1e-12) && (double)span <= 1.25 * c->t * (1 + 1e-12);
}

static void try_at(struct solver *s, const struct cuts *c, const struct pick *k)
{
    clear(s);
    place_picked(s, c, k);
    HEDDLE_ASSERT(is_proved(s, c, k->work));
    place_small(s, c);
    HEDDLE_ASSERT(is_proved(s, c, k->work));
    keep(s);
    place_again(s);
    keep(s);
    place_greedy(s, c);
    keep(s);
}

/* --- bounds ---------------------------------------------------------------- */

/* Work that every placement that ends by T leaves out. */
static double left_out(const struct solver *s, double t)
{
    const size_t above = longer(s, t), halves = longer(s, 0.5 * t);
    const double rest = s->total - between(s, 0, above);
    double most = fmax(0, rest - (double)s->m * t);

    if (halves - above > s->m) /* two of them do not fit on one machine */
        most = fmax(most, between(s, above + s->m, halves));
    return between(s, 0, above) + most;
}

/* No placement costs less: over all T, the cost at the least of each piece between
 * two durations. */
static double simple_bound(const struct solver *s)
{
    double least = s->alpha * s->total; /* all there */

    for (size_t i = 0; i < s->n; i++) {
        const double out = between(s, 0, i), in = s->total - out;
        const double shortest = (double)s->p[i];
        const double next = i == 0 ? HUGE_VAL : (double)s->p[i - 1];
        const double even = in / (double)s->m;
        const double t = fmin(fmax(shortest, even), next);

        least = fmin(least, t + s->alpha * (out + fmax(0, in - (double)s->m * t)));
    }
    return least;
}

/* --- the search ------------------------------------------------------------ */

static double as_double(uint64_t bits)
{
    double x;

    memcpy(&x, &bits, sizeof(x));
    return x;
}

static uint64_t as_bits(double x) /* ascending for x >= 0 */
{
    uint64_t bits;

    memcpy(&bits, &x, sizeof(bits));
    return bits;
}

/* Tries the grid; returns a lower bound. NAN: no memory. */
static double search(struct solver *s, double eps)
{
    const double top = s->best_cost, step = 1 + eps;
    const double gain = s->alpha * (double)s->m - 1;
    /* Shorter placements cost more than the best so far, or hold nothing. */
    const double floor =
        fmax((double)s->p[s->n - 1], gain > 0 ? (s->alpha * s->total - top) / gain : 0);
    const double span = log(top / floor) / log(step);
    const size_t n = span > 0 ? (size_t)span + 2 : 2;
    struct heddle_pair *grid = heddle_scratch_get(&s->d->tmp, 2 * n, sizeof(*grid));
    double least = s->alpha * s->total;
    size_t tries = 0;

    if (grid == NULL)
        return NAN;
    for (size_t i = 0; i < n; i++) {
        const double t = top * pow(step, -(double)i);

        grid[i] = (struct heddle_pair){as_bits(t / step + s->alpha * left_out(s, t)), as_bits(t)};
    }
    heddle_sort_pairs(grid, grid + n, n);
    for (size_t i = 0; i < n; i++) {
        const double simple = as_double(grid[i].key);
        const struct cuts c = cut(s, as_double(grid[i].idx));
        struct pick k;
        double here;

        if (simple >= s->best_cost || (tries >= ENOUGH && simple * 1.25 * step >= s->best_cost)) {
            least = fmin(least, simple);
            break;
        }
        k = pick(s, &c);
        here = k.work + between(s, c.thirds, s->n);
        here = c.t / step + s->alpha * fmax(0, s->total - fmin(here, (double)s->m * c.t));
        here = fmax(here, simple);
        least = fmin(least, here);
        if (here >= s->best_cost)
            continue;
        try_at(s, &c, &k);
        tries++;
    }
    return least;
}

/* Jobs that are left out join where they cost nothing: below the last end or, when
 * alpha >= 1, anywhere. */
static void fill(struct solver *s)
{
    uint64_t span = 0;

    memcpy(s->at, s->best, s->n * sizeof(*s->at));
    memset(s->load, 0, s->m * sizeof(*s->load));
    for (size_t i = 0; i < s->n; i++)
        if (s->at[i] != HEDDLE_ENERGY_THERE)
            s->load[s->at[i]] += s->p[i];
    for (size_t i = 0; i < s->m; i++)
        span = s->load[i] > span ? s->load[i] : span;
    heap_make(s);
    for (size_t i = 0; i < s->n; i++)
        if (s->at[i] == HEDDLE_ENERGY_THERE &&
            (s->alpha >= 1 || s->load[s->heap[0]] + s->p[i] <= span))
            put_least(s, i);
    memcpy(s->best, s->at, s->n * sizeof(*s->at));
}

static heddle_status prepare(struct solver *s, struct heddle_energy_draft *d)
{
    uint64_t *key = heddle_scratch_get(&d->tmp, s->n, sizeof(*key));

    s->p = heddle_scratch_get(&d->tmp, s->n, sizeof(*s->p));
    s->sum = heddle_scratch_get(&d->tmp, s->n + 1, sizeof(*s->sum));
    s->at = heddle_scratch_get(&d->tmp, s->n, sizeof(*s->at));
    s->best = heddle_scratch_get(&d->tmp, s->n, sizeof(*s->best));
    s->is_in = heddle_scratch_get(&d->tmp, s->n, sizeof(*s->is_in));
    s->load = heddle_scratch_get(&d->tmp, s->m, sizeof(*s->load));
    s->heap = heddle_scratch_get(&d->tmp, s->m, sizeof(*s->heap));
    s->pair = heddle_scratch_get(&d->tmp, 2 * s->m, sizeof(*s->pair));
    if (key == NULL || s->p == NULL || s->sum == NULL || s->at == NULL || s->best == NULL ||
        s->is_in == NULL || s->load == NULL || s->heap == NULL || s->pair == NULL)
        return HEDDLE_ENOMEM;
    for (size_t i = 0; i < s->n; i++)
        key[i] = UINT64_MAX - d->jobs[i].us;
    s->order = heddle_energy_place_order(&d->tmp, key, s->n);
    if (s->order == NULL)
        return HEDDLE_ENOMEM;
    for (size_t i = 0; i < s->n; i++) {
        s->p[i] = d->jobs[s->order[i]].us;
        s->sum[i + 1] = s->sum[i] + s->p[i];
    }
    return HEDDLE_OK;
}

heddle_status heddle_energy_place_free(struct heddle_energy_draft *d)
{
    struct solver s = {.d = d,
                       .n = d->n,
                       .m = d->o.machines,
                       .alpha = d->o.alpha,
                       .total = (double)d->total,
                       .best_cost = HUGE_VAL};
    double bound;

    if (d->o.alpha * (double)d->o.machines <= 1) {
        /* A machine's second costs as much as its m do there: nothing here. */
        d->bound = d->o.alpha * (double)d->total / 1e6;
        return HEDDLE_OK;
    }
    HEDDLE_TRY(prepare(&s, d));
    clear(&s);
    keep(&s); /* all there */
    heap_make(&s);
    for (size_t i = 0; i < s.n; i++)
        put_least(&s, i);
    keep(&s); /* all here */
    bound = search(&s, d->o.eps);
    if (isnan(bound))
        return HEDDLE_ENOMEM;
    fill(&s);
    for (size_t i = 0; i < s.n; i++)
        d->machine[s.order[i]] = s.best[i];
    d->bound = fmax(bound, simple_bound(&s)) / 1e6;
    d->proved = 1.25 * (1 + d->o.eps);
    return HEDDLE_OK;
}
