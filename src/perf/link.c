/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * link: what it costs to copy bytes from one memory to another.
 *
 * Structure  a link is a series of the reserved kernel HEDDLE_PERF_LINKS: its
 *            variant is the source memory, its device the destination. So a link is
 *            saved, merged, shown and forgotten like any other series. Its
 *            shapes are half octaves of the size, all made when the link is, so
 *            that record() finds its own without a lock.
 * Samples    are kept as if they had had the size of the first one of their bin
 *            (the entry's `bytes`): what exceeds the latency is scaled by the
 *            ratio of the sizes. Most programs copy one size per bin.
 * Fit        ns = latency + bytes / bandwidth through the medians of the bins:
 *            of all lines through two of them, and some more, the one with the
 *            least sum of ratios, each cut at 2, so that almost half of the
 *            bins may be anything; then least squares through what is near it.
 *            Bins of less than 3 samples count only when there are no others.
 *            One bin alone: a latency of at most the prior's, and of half its
 *            time.
 * Estimate   the bin's own median when it has 3 samples, unless the fit says
 *            otherwise and is trusted more; else the fit; else the prior, 10 us
 *            and 5 GB/s, with confidence 0.
 * Invariant  latency >= 0 and 0 < ns per byte, both finite.
 * Cost       a fit takes up to 70 us with 46 bins. It is made when the series'
 *            `gen` grew by an eighth, as for kernels, so seldom. Else 38 ns for
 *            a predict and 53 ns for a record (AMD EPYC, 2.6 GHz).
 * Threads    like entries: record() and predict() take no lock. The two words
 *            of a fit are relaxed: each is whole, and the second, how far to
 *            trust it, is right for either of two fits that follow each other.
 */
#include <math.h>
#include <string.h>

#include "base/assert.h"
#include "perf/model.h"

#define LINK_VERSION     1
#define BINS             96 /* up to 2^47.5 bytes */
#define PRIOR_LATENCY    1e4
#define PRIOR_NS_BYTE    0.2
#define MAX_BYTES_PER_NS 1e5 /* faster than that, no byte was copied */
#define FEW              3   /* samples of a bin that count for little */
#define NEAR             0.5 /* points within that of a line are on it */
#define AGREE            0.2 /* log 1.22: this close, a bin and the line agree */

struct heddle_perf_link {
    /* read-only once published */
    struct heddle_perf_link *next; /* under the lock */
    struct heddle_perf_series *series;
    struct heddle_perf_entry *bin[BINS];

    /* any thread */
    _Atomic uint64_t line;       /* two floats: latency, ns per byte; 0: none */
    _Atomic uint64_t trust;      /* of the line: float confidence, two bins */
    _Atomic uint64_t ignored;    /* samples refused */
    _Atomic uint32_t fit_gen;    /* series->gen at the last fit; 0: never */
    struct heddle_spin fit_lock; /* of who fits; only ever tried */
};

/* --- sizes --------------------------------------------------------------- */

static unsigned bin_of(uint64_t bytes)
{
    const double half = floor(2.0 * log2((double)bytes) + 0.5);

    return (unsigned)fmin(half, BINS - 1);
}

/* The size that the samples of a bin are about; 0: it has none yet. */
static double bin_bytes(const struct heddle_perf_link *l, unsigned bin)
{
    return heddle_load_rlx(&l->bin[bin]->bytes);
}

/* The same; the first one to ask decides. */
static double bin_claim(struct heddle_perf_link *l, unsigned bin, double bytes)
{
    double seen = bin_bytes(l, bin);

    if (seen > 0.0 || heddle_cas_acqrel(&l->bin[bin]->bytes, &seen, bytes))
        return seen > 0.0 ? seen : bytes;
    return seen;
}

/* --- the line ------------------------------------------------------------ */

static uint64_t two_floats(float a, float b)
{
    uint32_t x, y;

    memcpy(&x, &a, sizeof(x));
    memcpy(&y, &b, sizeof(y));
    return (uint64_t)x << 32 | y;
}

static float high_float(uint64_t word)
{
    const uint32_t x = (uint32_t)(word >> 32);
    float f;

    memcpy(&f, &x, sizeof(f));
    return f;
}

struct line {
    double latency, ns_per_byte;
    double confidence; /* within what was measured */
    unsigned lo, hi;   /* bins that were */
};

static void line_store(struct heddle_perf_link *l, const struct line *line)
{
    heddle_store_rlx(&l->trust,
                     two_floats((float)line->confidence, 0.0f) | line->lo << 8 | line->hi);
    heddle_store_rlx(&l->line, two_floats((float)line->latency, (float)line->ns_per_byte));
}

/* False: there is none yet, and this is the prior. */
static bool line_load(const struct heddle_perf_link *l, struct line *line)
{
    const uint64_t word = heddle_load_rlx(&l->line);
    const uint64_t trust = heddle_load_rlx(&l->trust);

    *line = (struct line){PRIOR_LATENCY, PRIOR_NS_BYTE, 0.0, 0, 0};
    if (word == 0)
        return false;
    line->latency = (double)high_float(word);
    line->ns_per_byte = (double)high_float(word << 32);
    line->confidence = (double)high_float(trust);
    line->lo = (unsigned)(trust >> 8 & 0xff);
    line->hi = (unsigned)(trust & 0xff);
    return true;
}

/* --- fitting ------------------------------------------------------------- */

struct bin_set {
    struct heddle_fit_point point[BINS];
    size_t n;
};

/* Bins with at least `few` samples, by size. */
static void collect(const struct heddle_perf_link *l, uint64_t few, struct bin_set *set,
                    struct line *line)
{
    set->n = 0;
    for (unsigned i = 0; i < BINS; i++) {
        const struct heddle_history *h = &l->bin[i]->history;
        struct heddle_estimate est;

        heddle_history_unpack(heddle_load_rlx(&h->est), &est);
        if (est.source != HEDDLE_EST_MEASURED || bin_bytes(l, i) <= 0.0 ||
            heddle_load_rlx(&h->head) < few)
            continue;
        line->lo = set->n == 0 ? i : line->lo;
        line->hi = i;
        set->point[set->n++] = (struct heddle_fit_point){bin_bytes(l, i), est.ns};
    }
}

/* How far the points are from a line, as ratios: a point off by more than a
 * factor of 2 counts no more than that, whichever side it is on. */
static double misfit(const struct heddle_fit_point *p, size_t n, double a, double b)
{
    double sum = 0.0;

    for (size_t i = 0; i < n; i++) {
        const double y = a + b * p[i].x;

        sum += fmin(fmax(y / p[i].y, p[i].y / y) - 1.0, 1.0);
    }
    return sum;
}

struct best {
    double a, b, misfit;
};

static void consider(const struct bin_set *s, double a, double b, struct best *best)
{
    double m;

    if (!(a >= 0.0 && b > 0.0))
        return;
    m = misfit(s->point, s->n, a, b);
    if (m < best->misfit)
        *best = (struct best){a, b, m};
}

/* Lines through two points each, as many as tell something. */
static void consider_pairs(const struct bin_set *s, struct best *best)
{
    const struct heddle_fit_point *p = s->point;
    const size_t step = s->n / HEDDLE_FIT_POINTS + 1;

    for (size_t i = 0; i < s->n; i += step)
        for (size_t j = i + step; j < s->n; j += step) {
            const double b = (p[j].y - p[i].y) / (p[j].x - p[i].x);

            consider(s, p[i].y - b * p[i].x, b, best);
        }
}

/* All in proportion to the size, or hardly growing with it. Noise can leave
 * nothing else: the best line has a negative latency or bandwidth then. */
static void consider_simple(const struct bin_set *s, struct best *best)
{
    double rate[BINS], ns[BINS], flat;

    for (size_t i = 0; i < s->n; i++) {
        rate[i] = s->point[i].y / s->point[i].x;
        ns[i] = s->point[i].y;
    }
    flat = heddle_fit_median(ns, s->n);
    consider(s, 0.0, heddle_fit_median(rate, s->n), best);
    /* It has to grow: by as much as the noise can hide. */
    consider(s, flat, 0.1 * flat / s->point[s->n - 1].x, best);
}

/* The least squares line through the points near the best one so far. */
static void consider_near(const struct bin_set *s, struct best *best)
{
    struct heddle_fit_point p[BINS];
    struct heddle_fit f;
    size_t n = 0;

    for (size_t i = 0; i < s->n; i++)
        if (misfit(&s->point[i], 1, best->a, best->b) < NEAR)
            p[n++] = s->point[i];
    if (heddle_fit_affine(p, n, &f))
        consider(s, f.a, f.b, best);
}

/* `s` is not empty. */
static void fit_line(const struct bin_set *s, struct line *line)
{
    struct best best = {.misfit = INFINITY};
    const double n = (double)s->n;

    if (s->n == 1) {
        best.a = fmin(PRIOR_LATENCY, 0.5 * s->point[0].y);
        best.b = (s->point[0].y - best.a) / s->point[0].x;
        best.misfit = 0.5; /* one size is little to go by */
    } else {
        consider_pairs(s, &best);
        consider_simple(s, &best);
        consider_near(s, &best);
    }
    line->latency = best.a;
    line->ns_per_byte = fmax(best.b, 1.0 / MAX_BYTES_PER_NS);
    line->confidence = 0.6 * n / (n + 2.0) / (1.0 + 4.0 * best.misfit / n);
}

/* Fits again when there is enough that is new, unless another thread is at it. */
static void refit(struct heddle_perf_link *l)
{
    const uint32_t gen = heddle_load_rlx(&l->series->gen);
    const uint32_t last = heddle_load_rlx(&l->fit_gen);
    struct bin_set set;
    struct line line = {0};

    if (last != 0 && gen - last <= last / 8)
        return;
    if (!heddle_spin_trylock(&l->fit_lock))
        return;
    collect(l, FEW, &set, &line);
    if (set.n < 2)
        collect(l, 1, &set, &line);
    if (set.n > 0) {
        fit_line(&set, &line);
        line_store(l, &line);
    } else {
        heddle_store_rlx(&l->line, 0); /* forgotten */
    }
    heddle_store_rlx(&l->fit_gen, gen);
    heddle_spin_unlock(&l->fit_lock);
}

/* --- record and predict -------------------------------------------------- */

static double line_ns(const struct line *line, uint64_t bytes)
{
    return line->latency + line->ns_per_byte * (double)bytes;
}

/* The time of `to` bytes when `from` bytes took ns. */
static double rescale(const struct line *line, double ns, double from, double to)
{
    const double latency = fmin(line->latency, ns);

    return latency + (ns - latency) * (to / from);
}

void heddle_perf_link_record(struct heddle_perf_link *link, uint64_t bytes, double ns)
{
    const unsigned bin = bytes > 0 ? bin_of(bytes) : 0;
    struct line line;
    double at;

    if (bytes == 0 || !heddle_history_accepts(ns) || (double)bytes > MAX_BYTES_PER_NS * ns) {
        heddle_add_rlx(&link->ignored, 1);
        return;
    }
    refit(link); /* scaling needs to know the latency */
    if (!line_load(link, &line))
        line.latency = fmin(line.latency, 0.5 * ns);
    at = bin_claim(link, bin, fmin((double)bytes, HEDDLE_MODEL_MAX_COST));
    heddle_perf_record(link->bin[bin], rescale(&line, ns, (double)bytes, at));
}

struct heddle_estimate heddle_perf_link_predict(struct heddle_perf_link *link, uint64_t bytes)
{
    struct heddle_estimate est = {.source = HEDDLE_EST_PRIOR};
    const unsigned bin = bytes > 0 ? bin_of(bytes) : 0;
    const struct heddle_history *h = &link->bin[bin]->history;
    struct line line;
    bool is_fit, agrees;

    refit(link);
    is_fit = line_load(link, &line);
    heddle_history_unpack(heddle_load_rlx(&h->est), &est);
    if (bytes > 0 && est.source == HEDDLE_EST_MEASURED && heddle_load_rlx(&h->head) >= FEW &&
        bin_bytes(link, bin) > 0.0) {
        est.ns = rescale(&line, est.ns, bin_bytes(link, bin), (double)bytes);
        agrees = fabs(log(est.ns / line_ns(&line, bytes))) < AGREE;
        /* Outliers widen the spread of a bin; the others speak for it, or
         * against it. */
        if (agrees)
            est.confidence = fmax(est.confidence, line.confidence);
        if (!is_fit || agrees || est.confidence >= line.confidence)
            return est;
    }
    est.ns = line_ns(&line, bytes);
    est.source = is_fit ? HEDDLE_EST_FIT : HEDDLE_EST_PRIOR;
    est.confidence = 0.0;
    if (is_fit) {
        const unsigned outside = bin < line.lo ? line.lo - bin : bin > line.hi ? bin - line.hi : 0;

        /* Half octaves: as far as a curve of a kernel is trusted. */
        est.confidence = line.confidence / (1.0 + outside / 4.0);
    }
    return est;
}

/* --- finding ------------------------------------------------------------- */

/* Needs the lock. */
static struct heddle_perf_link *link_find(struct heddle_perf *perf, const char *from,
                                          const char *to)
{
    struct heddle_perf_link *l = perf->links;

    while (l != NULL &&
           (strcmp(l->series->variant, from) != 0 || strcmp(l->series->device, to) != 0))
        l = l->next;
    return l;
}

/* Needs the lock. */
static heddle_status link_add(struct heddle_perf *perf, const char *from, const char *to,
                              struct heddle_perf_link **out)
{
    const struct heddle_perf_key key = {HEDDLE_PERF_LINKS, from, to, LINK_VERSION};
    struct heddle_model_kernel *k = NULL;
    struct heddle_perf_series *s = NULL;
    struct heddle_perf_link *l;
    heddle_status st = HEDDLE_OK;

    HEDDLE_TRY(heddle_store_kernel(perf, HEDDLE_PERF_LINKS, &k));
    HEDDLE_TRY(heddle_model_series_add(k, &key, &s));
    s->is_live = true;
    l = heddle_zalloc(&perf->alloc, 1, sizeof(*l));
    if (l == NULL)
        return HEDDLE_ENOMEM;
    l->series = s;
    for (unsigned i = 0; i < BINS && st == HEDDLE_OK; i++) {
        st = heddle_model_entry_add(s, i, &l->bin[i]);
        /* What a file says is only as good as who wrote it. */
        if (st == HEDDLE_OK && bin_bytes(l, i) > 0.0 && bin_of((uint64_t)bin_bytes(l, i)) != i)
            heddle_model_entry_cost(l->bin[i], 0.0, exp2(0.5 * i));
    }
    if (st != HEDDLE_OK) {
        heddle_free(&perf->alloc, l, sizeof(*l));
        return st;
    }
    l->next = perf->links;
    perf->links = l;
    *out = l;
    return HEDDLE_OK;
}

heddle_status heddle_perf_link_get(heddle_perf *perf, const char *from, const char *to,
                                   struct heddle_perf_link **link_out)
{
    heddle_status st = HEDDLE_OK;
    struct heddle_perf_link *l;

    HEDDLE_CHECK(perf != NULL && link_out != NULL);
    HEDDLE_CHECK(heddle_model_name_ok(from) && heddle_model_name_ok(to));
    heddle_mutex_lock(&perf->lock);
    l = link_find(perf, from, to);
    if (l == NULL)
        st = link_add(perf, from, to, &l);
    heddle_mutex_unlock(&perf->lock);
    if (st == HEDDLE_OK)
        *link_out = l;
    return st;
}

void heddle_model_links_free(struct heddle_perf *perf)
{
    while (perf->links != NULL) {
        struct heddle_perf_link *l = perf->links;

        perf->links = l->next;
        heddle_free(&perf->alloc, l, sizeof(*l));
    }
}

void heddle_model_links_reset(struct heddle_perf *perf)
{
    for (struct heddle_perf_link *l = perf->links; l != NULL; l = l->next)
        heddle_store_rlx(&l->fit_gen, 0); /* a hint: fit again */
}

void heddle_perf_link_info(struct heddle_perf_link *link, struct heddle_perf_link_info *info_out)
{
    struct line line;

    refit(link);
    (void)line_load(link, &line);
    *info_out = (struct heddle_perf_link_info){
        .from = link->series->variant,
        .to = link->series->device,
        .latency_ns = line.latency,
        .bytes_per_s = 1e9 / line.ns_per_byte,
        .confidence = line.confidence,
        .ignored = heddle_load_rlx(&link->ignored),
    };
    for (unsigned i = 0; i < BINS; i++) {
        const struct heddle_perf_entry *e = link->bin[i];

        info_out->count += heddle_load_rlx(&e->before) + heddle_load_rlx(&e->history.head);
        info_out->ignored += heddle_load_rlx(&e->history.ignored);
    }
}

heddle_status heddle_perf_each_link(heddle_perf *perf, heddle_perf_link_fn fn, void *user)
{
    struct heddle_model_kernel *k = NULL;
    struct heddle_perf_series *s;
    heddle_status st;

    HEDDLE_CHECK(perf != NULL && fn != NULL);
    heddle_mutex_lock(&perf->lock);
    st = heddle_store_kernel(perf, HEDDLE_PERF_LINKS, &k);
    heddle_mutex_unlock(&perf->lock);
    HEDDLE_TRY(st);
    for (s = heddle_load_acq(&k->series); s != NULL; s = heddle_load_acq(&s->next)) {
        struct heddle_perf_link *l = NULL;
        struct heddle_perf_link_info info;

        if (s->version != LINK_VERSION)
            continue; /* of a Heddle that counts otherwise */
        HEDDLE_TRY(heddle_perf_link_get(perf, s->variant, s->device, &l));
        heddle_perf_link_info(l, &info);
        if (info.count > 0)
            HEDDLE_TRY(fn(user, &info));
    }
    return HEDDLE_OK;
}
