/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * forecast_run: one trial of a forecast, the schedule on paper.
 *
 * Rule      what place.c does: a task that becomes ready goes to the class of its type
 *           where it ends first, transfers counted twice; a worker takes the task of its
 *           class with the greatest rank, or one of another class that would end earlier
 *           here. FORECAST_FREE as the type of a task: any class.
 * Transfers what a predecessor wrote is in the memories where it was written or fetched.
 *           What is missing is fetched when the task gets its class. A link carries
 *           one copy at a time.
 * Cost      per task: its edges times the classes, and two heaps.
 */
#include "sched/forecast_run.h"

#include <math.h>
#include <string.h>

/* A heap of tasks: the greatest key first, then the earlier task. */
static inline bool run_above(const double *key, uint32_t a, uint32_t b)
{
    return key[a] != key[b] ? key[a] > key[b] : a < b;
}

static inline void run_push(uint32_t *h, uint32_t *n, const double *key, uint32_t x)
{
    uint32_t i = (*n)++;

    while (i > 0 && run_above(key, x, h[(i - 1) / 2])) {
        h[i] = h[(i - 1) / 2];
        i = (i - 1) / 2;
    }
    h[i] = x;
}

static inline uint32_t run_pop(uint32_t *h, uint32_t *n, const double *key)
{
    const uint32_t top = h[0], last = --*n, x = h[last];
    uint32_t i = 0;

    for (uint32_t k; (k = 2 * i + 1) < last; i = k) {
        if (k + 1 < last && run_above(key, h[k + 1], h[k]))
            k++;
        if (!run_above(key, h[k], x))
            break;
        h[i] = h[k];
    }
    h[i] = x;
    return top;
}

enum { BINS = 32 };

struct run_class {
    uint32_t first; /* ready task with the greatest rank, + 1; a pairing heap */
    uint32_t nready, nidle;
    double queued;    /* ns of what is ready */
    double busy;      /* sum of the ends of what runs */
    double bin[BINS]; /* `queued` by rank */
};

struct run {
    struct heddle_forecast *p;
    struct run_class cls[HEDDLE_FORECAST_CLASSES];
    double free[HEDDLE_FORECAST_CLASSES][HEDDLE_FORECAST_CLASSES]; /* when a link is */
    uint32_t nrun;                                                 /* in p->run, by -until */
    double now, top;
};

/* --- transfers -------------------------------------------------------------*/

/* Bytes that the predecessors of t wrote and t reads, as a part of what they wrote. */
static double run_part(const struct heddle_forecast *p, uint32_t t)
{
    double sum = 0;

    for (uint32_t i = p->pred_end[t]; i < p->pred_end[t + 1]; i++)
        sum += p->bytes_written[p->sort[p->pred[i]]];
    return sum > p->bytes_read[p->sort[t]] ? p->bytes_read[p->sort[t]] / sum : 1;
}

/* The memory from which it comes soonest. */
static unsigned run_source(const struct run *x, uint64_t has, unsigned to, double bytes)
{
    double least = INFINITY;
    unsigned best = 0;

    for (; has != 0; has &= has - 1) {
        const unsigned from = (unsigned)__builtin_ctzll(has);
        const double at = fmax(x->now, x->free[from][to]) + bytes * x->p->move[from][to];

        if (at < least) {
            least = at;
            best = from;
        }
    }
    return best;
}

/* ns until the data of t would be in the memory. */
static double run_missing(const struct run *x, uint32_t t, unsigned node, double part)
{
    const struct heddle_forecast *p = x->p;
    double ns = node != 0 ? p->cold[t] * p->move[0][node] : 0;

    for (uint32_t i = p->pred_end[t]; i < p->pred_end[t + 1]; i++) {
        const uint32_t q = p->pred[i];

        const double bytes = part * p->bytes_written[p->sort[q]];

        if ((p->has[q] >> node & 1) == 0 && p->has[q] != 0)
            ns += bytes * p->move[run_source(x, p->has[q], node, bytes)][node];
    }
    return ns;
}

/* From a memory to another; over the host when that takes no longer than directly. */
static double run_copy(struct run *x, unsigned from, unsigned to, double bytes)
{
    const struct heddle_forecast *p = x->p;
    const double ns = bytes * p->move[from][to], half = bytes * p->move[from][0];
    double begin = x->now, end;

    if (from == 0 || to == 0 || p->move[from][to] < 0.99F * (p->move[from][0] + p->move[0][to])) {
        begin = fmax(begin, x->free[from][to]);
        x->free[from][to] = begin + ns;
        return begin + ns;
    }
    begin = fmax(begin, x->free[from][0]);
    x->free[from][0] = begin + half;
    end = fmax(begin + half, x->free[0][to]) + ns - half;
    x->free[0][to] = end;
    return end;
}

/* Fetches them: when all are there. */
static double run_fetch(struct run *x, uint32_t t, unsigned node)
{
    struct heddle_forecast *p = x->p;
    const double part = run_part(p, t);
    double at = x->now;

    if (node != 0 && p->cold[t] * p->move[0][node] > 0)
        at = fmax(at, run_copy(x, 0, node, p->cold[t]));
    for (uint32_t i = p->pred_end[t]; i < p->pred_end[t + 1]; i++) {
        const uint32_t q = p->pred[i];
        const double bytes = part * p->bytes_written[p->sort[q]];

        if ((p->has[q] >> node & 1) != 0 || p->has[q] == 0 || !(bytes > 0))
            continue;
        at = fmax(at, run_copy(x, run_source(x, p->has[q], node, bytes), node, bytes));
        p->has[q] |= UINT64_C(1) << node;
    }
    return at;
}

/* --- queues ----------------------------------------------------------------*/

static inline double run_ns(const struct heddle_forecast *p, uint32_t t, unsigned c)
{
    return p->ns[p->sort[t]][p->cls_type[c]];
}

static inline unsigned run_bin(const struct run *x, uint32_t t)
{
    const double level = x->top > 0 ? x->p->key[t] / x->top : 0;

    return level >= 1 ? BINS - 1 : (unsigned)(level * (BINS - 1));
}

/* Two pairing heaps become one; links are 1 + task. */
static uint32_t run_meld(struct heddle_forecast *p, uint32_t a, uint32_t b)
{
    if (a == 0 || b == 0)
        return a + b;
    if (run_above(p->key, b - 1, a - 1)) {
        const uint32_t c = a;

        a = b;
        b = c;
    }
    p->next[b - 1] = p->child[a - 1];
    p->child[a - 1] = b;
    return a;
}

static void run_queue(struct run *x, unsigned c, uint32_t t)
{
    struct run_class *k = &x->cls[c];
    const double ns = run_ns(x->p, t, c);

    x->p->next[t] = x->p->child[t] = 0;
    x->p->cls[t] = (uint8_t)c;
    k->first = run_meld(x->p, k->first, t + 1);
    k->nready++;
    k->queued += ns;
    k->bin[run_bin(x, t)] += ns;
}

static uint32_t run_take(struct run *x, unsigned c)
{
    struct heddle_forecast *p = x->p;
    struct run_class *k = &x->cls[c];
    const uint32_t t = k->first - 1;
    const double ns = run_ns(p, t, c);
    uint32_t pairs = 0, rest = p->child[t];

    while (rest != 0) { /* in pairs, then all pairs from the last to the first */
        const uint32_t a = rest, b = p->next[a - 1];
        uint32_t ab;

        rest = b == 0 ? 0 : p->next[b - 1];
        p->next[a - 1] = 0;
        if (b != 0)
            p->next[b - 1] = 0;
        ab = run_meld(p, a, b);
        p->next[ab - 1] = pairs;
        pairs = ab;
    }
    k->first = 0;
    while (pairs != 0) {
        const uint32_t a = pairs;

        pairs = p->next[a - 1];
        p->next[a - 1] = 0;
        k->first = run_meld(p, k->first, a);
    }
    k->nready--;
    k->queued -= ns;
    k->bin[run_bin(x, t)] -= ns;
    return t;
}

/* When a worker of the class would begin something with `before` ns in front of it. */
static double run_begin(const struct run *x, unsigned c, double before)
{
    const struct run_class *k = &x->cls[c];
    const double n = x->p->cls_workers[c];
    const double left = k->busy - (n - k->nidle) * x->now; /* of what runs */

    if (k->nidle > 0 && before <= 0)
        return x->now;
    if (before <= 0)
        return x->now + (n > 1 ? 2 * left / (n * (n + 1)) : left);
    return x->now + (left + before) / n;
}

static double run_before(const struct run *x, unsigned c, uint32_t t)
{
    double sum = 0;

    if (x->cls[c].nready == 0)
        return 0;
    for (unsigned i = run_bin(x, t); i < BINS; i++)
        sum += x->cls[c].bin[i];
    return sum;
}

static void run_ready(struct run *x, uint32_t t)
{
    struct heddle_forecast *p = x->p;
    const double part = run_part(p, t);
    const unsigned type = p->trial[t];
    double least = INFINITY;
    unsigned best = 0;

    for (unsigned c = 0; c < p->ncls; c++) {
        double fetch, end;

        if ((type != HEDDLE_FORECAST_FREE && p->cls_type[c] != type) || p->cls_workers[c] == 0 ||
            !(run_ns(p, t, c) < INFINITY))
            continue;
        fetch = run_missing(x, t, p->cls_node[c], part);
        end = run_begin(x, c, run_before(x, c, t));
        end = fmax(end, x->now + fetch) + run_ns(p, t, c) + fetch;
        if (end < least) {
            least = end;
            best = c;
        }
    }
    run_queue(x, best, t);
    p->there[t] = run_fetch(x, t, p->cls_node[best]);
}

/* The task at the head of another class that would gain most here; UINT32_MAX: none. */
static uint32_t run_steal(struct run *x, unsigned to)
{
    const struct heddle_forecast *p = x->p;
    double most = 0;
    unsigned from = 0;
    uint32_t t;

    for (unsigned c = 0; c < p->ncls; c++) {
        double gain;

        if (c == to || x->cls[c].first == 0)
            continue;
        t = x->cls[c].first - 1;
        if (!(run_ns(p, t, to) < INFINITY))
            continue;
        gain = run_begin(x, c, 0) + run_ns(p, t, c) - x->now - run_ns(p, t, to);
        if (gain > most) {
            most = gain;
            from = c;
        }
    }
    if (!(most > 0))
        return UINT32_MAX;
    t = run_take(x, from);
    x->p->there[t] = run_fetch(x, t, p->cls_node[to]);
    return t;
}

/* --- the schedule ----------------------------------------------------------*/

static void run_start(struct run *x, unsigned c, uint32_t t, double ns)
{
    struct heddle_forecast *p = x->p;
    const double begin = fmax(x->now, p->there[t]);

    p->cls[t] = (uint8_t)c;
    p->until[t] = -(begin + ns);
    x->cls[c].busy += begin + ns;
    x->cls[c].nidle--;
    run_push(p->run, &x->nrun, p->until, t);
}

/* What runs and what is ready at the beginning. */
static void run_init(struct run *x)
{
    struct heddle_forecast *p = x->p;

    for (unsigned c = 0; c < p->ncls; c++)
        x->cls[c].nidle = p->cls_workers[c];
    for (uint32_t t = 0; t < p->ntasks; t++) {
        p->wait[t] = p->pred_end[t + 1] - p->pred_end[t];
        p->has[t] = 0;
        p->there[t] = 0;
        x->top = fmax(x->top, p->key[t]);
        if (p->left[t] >= 0)
            run_start(x, p->cls[t], t, p->left[t]);
    }
    for (uint32_t t = 0; t < p->ntasks; t++)
        if (p->left[t] < 0 && p->wait[t] == 0)
            run_ready(x, t);
}

static bool run_fill(struct run *x, double limit)
{
    struct heddle_forecast *p = x->p;

    for (unsigned c = 0; c < p->ncls; c++)
        while ((int32_t)x->cls[c].nidle > 0) {
            const uint32_t t = x->cls[c].first != 0 ? run_take(x, c) : run_steal(x, c);

            if (t == UINT32_MAX)
                break;
            if (x->now + p->least[t] >= limit)
                return false; /* the way behind it is too long */
            run_start(x, c, t, run_ns(p, t, c));
        }
    return true;
}

double heddle_forecast_run(struct heddle_forecast *p, double limit)
{
    struct run x;

    memset(&x, 0, sizeof(x));
    x.p = p;
    run_init(&x);
    for (;;) {
        uint32_t t;

        if (!run_fill(&x, limit))
            return INFINITY;
        if (x.nrun == 0)
            return x.now;
        t = run_pop(p->run, &x.nrun, p->until);
        x.now = -p->until[t];
        x.cls[p->cls[t]].busy -= x.now;
        x.cls[p->cls[t]].nidle++;
        p->has[t] = UINT64_C(1) << p->cls_node[p->cls[t]];
        for (uint32_t i = p->succ_end[t]; i < p->succ_end[t + 1]; i++) {
            const uint32_t q = p->succ[i];

            if (--p->wait[q] == 0 && p->left[q] < 0)
                run_ready(&x, q);
        }
    }
}
