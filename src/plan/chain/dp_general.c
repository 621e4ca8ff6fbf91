/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * dp_general: any plan of a chain, also one that drops what it kept; and the same
 * where a tape may stay although its input went (unpinned), also beyond the part
 * that made it (free).
 *
 * W(s,t,l,m,f): least time from "x[s], which may be dropped, and the gradient of
 * x[l + 1] are there" through the backwards l .. t, within m units that count
 * both. f = h + 2 g. h = 1: t[l + 1] is there too and counts (unpinned and free).
 * g = 1: t[t] is there at the end (free); only for t > s.
 *
 *   tape   s = t: forward[s] + backward[s] + W(s+1,s+1,l,m - x[s] - t[s+1] + x[s+1],h);
 *          for l = s only the two times, for h = 1 only the backward
 *   split  forward[s] + min over tp, g' of W(s+1,tp,l,m - x[s],h + 2 g') +
 *          W(s,t,tp-1,m,g' + 2 g)
 *   go on  t > s: forward[s] + W(s+1,t,l,m,f); the last step before t makes the tape
 *          that is to stay, if g = 1
 *   hole   forward[s .. k] + W(k+1,k+1,l,m - x[s] - t[k+1] + x[k+1],h) +
 *          W(s,t,k,m,1 + 2 g): the tape of layer k is made, its input dropped and
 *          computed again when the tape's turn comes
 *
 * The memory tests are in need_*(). Layers s downwards, columns l by blocks of 4,
 * t by blocks of 4; a split and a hole are sums of a row W(s,t,.,m) and a prepared
 * column (minplus.h). Cost slots * n^4 / 24 sums and slots * n^3 / 6 floats for the
 * general model; four and two times that for the unpinned one, twelve and four times
 * for the free one.
 */
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "plan/chain/chain.h"
#include "plan/chain/minplus.h"

enum { TILE = HEDDLE_MINPLUS_TILE };

struct table {
    const struct heddle_plan_units *u;
    const struct heddle_allocator *a;
    struct heddle_scratch mem;
    heddle_minplus_fn *minplus;
    size_t nf;      /* values of f: 1 general, 2 unpinned, 4 free */
    size_t nstages; /* n + 1 */
    size_t width, pad;
    float *row;
    size_t row_bytes;
    size_t *layer;   /* [nstages + 1] first row of a layer, of one h */
    float *split;    /* [nh][nstages + 1][TILE][pad + width] */
    float *hole;     /* the same */
    uint32_t *same;  /* [nstages + 1] x[s]: the shift of splits */
    uint32_t *slide; /* [nstages + 1] the shift of holes */
    uint32_t *reach; /* [nstages + 1] memory of a hole, without the gradient */
    uint32_t *sat;   /* [2][nh][nstages][nstages] */
};

struct cell {
    uint32_t s, t, l, m, f;
};

/* f = h + 2 g. */
static size_t in_hand(size_t f)
{
    return f & 1;
}

static size_t left_behind(size_t f)
{
    return f >> 1;
}

static uint32_t max32(uint32_t a, uint32_t b)
{
    return a > b ? a : b;
}

static float *row_at(const struct table *x, size_t s, size_t t, size_t l, size_t f)
{
    const size_t d = t - s, n = x->nstages - s;
    const size_t i = x->layer[s] + d * n - d * (d + 1) / 2 + (l - s);

    return x->row + (f * x->layer[x->nstages] + i) * x->width;
}

static float *col_at(const struct table *x, float *from, size_t f, size_t i, size_t c)
{
    return from + ((f * (x->nstages + 1) + i) * TILE + c) * (x->pad + x->width) + x->pad;
}

static uint32_t *sat_at(const struct table *x, size_t s, size_t t, size_t l, size_t f)
{
    return x->sat + (((s & 1) * x->nf + f) * x->nstages + t) * x->nstages + l;
}

/* ---- memory tests -------------------------------------------------------------- */

static uint32_t held(const struct heddle_plan_units *u, size_t l, size_t h)
{
    return u->x[l + 1] + (h != 0 ? u->t[l + 1] : 0);
}

static uint32_t need_backward(const struct heddle_plan_units *u, size_t s)
{
    return 2 * u->x[s] + u->x[s + 1] + u->t[s + 1] + u->work_b[s];
}

/* Of the tape of s, made while what l and h say is held. */
static uint32_t need_tape(const struct heddle_plan_units *u, size_t s, size_t l, size_t h)
{
    const uint32_t back = need_backward(u, s);

    if (s == l && h != 0)
        return back;
    return max32(back, u->x[s] + u->t[s + 1] + held(u, l, h) + u->work_f[s]);
}

static uint32_t need_step(const struct heddle_plan_units *u, size_t s, size_t l, size_t h)
{
    return u->x[s] + u->x[s + 1] + held(u, l, h) + u->work_f[s];
}

/* Of the way from s to the tape of each k > s, without what is held. */
static void set_reach(const struct heddle_plan_units *u, size_t s, uint32_t *reach)
{
    uint32_t way = u->x[s] + u->x[s + 1] + u->work_f[s];

    for (size_t k = s + 1; k < u->n; k++) {
        reach[k] = max32(way, u->x[s] + u->x[k] + u->t[k + 1] + u->work_f[k]);
        way = max32(way, u->x[s] + u->x[k] + u->x[k + 1] + u->work_f[k]);
    }
}

/* Least time of (s,t,l,h) with all memory. */
static double least(const struct heddle_plan_units *u, size_t s, size_t t, size_t l, size_t h)
{
    return u->before[t] - u->before[s] + u->both[l + 1] - u->both[t] - (h != 0 ? u->forward[l] : 0);
}

/* ---- columns ------------------------------------------------------------------- */

/* to[m - shift] = from[m - shift] + time, from `need` units m on. */
static void copy_shifted(const struct table *x, float *to, const float *from, uint32_t shift,
                         uint32_t need, float time)
{
    const size_t first = need > shift ? need - shift : 0;
    const size_t end = first < x->width ? first : x->width;

    for (size_t i = 0; i < end; i++)
        to[i] = INFINITY;
    for (size_t i = end; i < x->width; i++)
        to[i] = from[i] + time;
}

/* Prepares splits and holes of layer s for the columns from l0 on. */
static void make_columns(const struct table *x, size_t s, size_t l0, size_t nl)
{
    const struct heddle_plan_units *u = x->u;

    for (size_t c = 0; c < nl; c++)
        for (size_t f = 0; f < x->nf; f++) {
            const size_t l = l0 + c, h = in_hand(f);

            for (size_t tp = s + 1; tp <= l; tp++)
                copy_shifted(x, col_at(x, x->split, f, tp, c), row_at(x, s + 1, tp, l, f), u->x[s],
                             need_step(u, s, l, h), (float)u->forward[s]);
            for (size_t k = s + 1; k < l && x->nf > 1 && f < 2; k++)
                copy_shifted(x, col_at(x, x->hole, f, k, c), row_at(x, k + 1, k + 1, l, f),
                             x->slide[k], x->reach[k] + held(u, l, h),
                             (float)(u->before[k + 1] - u->before[s]));
        }
}

/* Terms i0 .. i1-1 of splits or holes for rows t .. t + nt-1 of layer s and the
 * columns c .. c + nc-1 of the block, which are l .. in the table. Rows of splits
 * begin one column earlier. */
struct terms {
    bool is_hole;
    size_t s, t, l, c, i0, i1;
    unsigned nt, nc;
};

/* ---- rows ------------------------------------------------------------------------ */

/* A product: rows t .. t + nt-1 of kind `rows`, prepared columns of kind `cols`. */
static void add_product(const struct table *x, const struct terms *q, size_t f, size_t rows,
                        size_t cols)
{
    struct heddle_minplus p = {.row_step = x->width,
                               .col_step = TILE * (x->pad + x->width),
                               .shift = (q->is_hole ? x->slide : x->same) + q->i0,
                               .n = q->i1 - q->i0,
                               .nrows = q->nt,
                               .ncols = q->nc,
                               .from = x->width,
                               .to = 0};

    for (unsigned c = 0; c < q->nc; c++) {
        const uint32_t need = need_step(x->u, q->s, q->l + c, in_hand(f));

        p.col[c] = col_at(x, q->is_hole ? x->hole : x->split, cols, q->i0, q->c + c);
        p.from = need < p.from ? need : p.from;
    }
    for (unsigned r = 0; r < q->nt; r++) {
        p.row[r] = row_at(x, q->s, q->t + r, q->is_hole ? q->i0 : q->i0 - 1, rows);
        for (unsigned c = 0; c < q->nc; c++) {
            const uint32_t sat = *sat_at(x, q->s, q->t + r, q->l + c, f);

            p.out[r][c] = row_at(x, q->s, q->t + r, q->l + c, f);
            p.to = sat > p.to ? sat : p.to;
        }
    }
    if (p.from < p.to)
        x->minplus(&p);
}

/* A hole is filled with its tape in hand; a split with the tape that its right
 * part left behind, or with none. */
static void add_terms(const struct table *x, const struct terms *q)
{
    if (q->i0 >= q->i1)
        return;
    for (size_t f = 0; f < x->nf; f++) {
        const size_t g = 2 * left_behind(f);

        if (q->is_hole) {
            add_product(x, q, f, 1 + g, in_hand(f));
            continue;
        }
        add_product(x, q, f, g, in_hand(f));
        if (x->nf > 2)
            add_product(x, q, f, 1 + g, in_hand(f) + 2);
    }
}

/* The forward of s, and what comes next; `need` is its memory. */
struct next {
    uint32_t t, f, less, need;
    double time;
};

/* What a cell does when nothing of it is kept for a second pass: the tape of s,
 * or one step on. In the last step before t a tape may have to stay behind. */
static struct next next_of(const struct heddle_plan_units *u, size_t s, size_t t, size_t l,
                           size_t f)
{
    const size_t h = in_hand(f);
    struct next n = {
        .t = (uint32_t)t, .f = (uint32_t)f, .need = need_step(u, s, l, h), .time = u->forward[s]};

    if (t == s) {
        n.t = (uint32_t)s + 1;
        n.less = u->x[s] + u->t[s + 1] - u->x[s + 1];
        n.need = need_tape(u, s, l, h);
        n.time += u->backward[s];
    } else if (t == s + 1 && left_behind(f) != 0) {
        n.f = (uint32_t)h;
        n.less = u->t[s + 1] - u->x[s + 1];
        n.need += n.less;
    }
    n.need = max32(n.need, n.less);
    return n;
}

static void set_sat(const struct table *x, size_t s, size_t t, size_t l, size_t f)
{
    const struct heddle_plan_units *u = x->u;
    uint32_t need;

    if (l == s)
        need = need_tape(u, s, l, in_hand(f));
    else {
        const struct next n = next_of(u, s, t, l, f);

        need = max32(n.need, *sat_at(x, s + 1, n.t, l, n.f) + n.less);
    }
    if (t == s && left_behind(f) != 0)
        need = u->slots + 1; /* there is no such cell */
    *sat_at(x, s, t, l, f) = need <= u->slots ? need : u->slots + 1;
}

/* All splits and holes are in. */
static void finish(const struct table *x, size_t s, size_t t, size_t l, size_t f)
{
    const struct heddle_plan_units *u = x->u;
    const size_t sat = *sat_at(x, s, t, l, f);
    float *w = row_at(x, s, t, l, f);

    if (t == s && left_behind(f) != 0)
        return;
    if (l > s) {
        const struct next n = next_of(u, s, t, l, f);
        const float *next = row_at(x, s + 1, n.t, l, n.f) - n.less;
        const float time = (float)n.time;

        for (size_t m = n.need; m < sat; m++) {
            const float v = time + next[m];

            w[m] = v < w[m] ? v : w[m];
        }
    }
    for (size_t m = sat; m < x->width; m++)
        w[m] = (float)least(u, s, t, l, in_hand(f));
}

static void make_rows(const struct table *x, size_t s, size_t t0, unsigned nt, size_t l0, size_t nl)
{
    const size_t past = t0 + TILE; /* splits of all rows begin here */
    const size_t k0 = past - 1 > s + 1 ? past - 1 : s + 1;
    const bool has_bulk = nt == TILE && past <= l0, has_holes = x->nf > 1;
    struct terms q = {.s = s, .t = t0, .l = l0, .nt = nt, .nc = (unsigned)nl};

    if (has_bulk) {
        q.i0 = past;
        q.i1 = l0 + 1;
        add_terms(x, &q);
        q.i0 = k0;
        q.i1 = has_holes ? l0 : k0;
        q.is_hole = true;
        add_terms(x, &q);
    }
    for (size_t t = t0; t < t0 + nt; t++)
        for (size_t c = 0; c < nl; c++) {
            const size_t l = l0 + c, k = t > s ? t : s + 1;

            if (l < t)
                continue;
            q = (struct terms){.s = s, .t = t, .l = l, .c = c, .nt = 1, .nc = 1};
            q.i0 = t + 1;
            q.i1 = has_bulk ? past : l + 1;
            add_terms(x, &q);
            q.i0 = l0 + 1;
            q.i1 = has_bulk ? l + 1 : 0;
            add_terms(x, &q);
            q.is_hole = true;
            q.i0 = k;
            q.i1 = !has_holes ? 0 : has_bulk ? k0 : l;
            add_terms(x, &q);
            q.i0 = l0 > k0 ? l0 : k0;
            q.i1 = has_holes && has_bulk ? l : 0;
            add_terms(x, &q);
            for (size_t f = 0; f < x->nf; f++)
                finish(x, s, t, l, f);
        }
}

static void make_layer(const struct table *x, size_t s)
{
    const struct heddle_plan_units *u = x->u;

    if (x->nf > 1)
        set_reach(u, s, x->reach);
    for (size_t k = s + 1; k < x->nstages; k++) {
        x->same[k] = u->x[s];
        x->slide[k] = u->x[s] + u->t[k + 1] - u->x[k + 1];
        if (x->slide[k] > u->slots)
            x->slide[k] = u->slots + 1;
    }
    for (size_t t = s; t < x->nstages; t++)
        for (size_t l = t; l < x->nstages; l++)
            for (size_t f = 0; f < x->nf; f++) {
                float *w = row_at(x, s, t, l, f);

                set_sat(x, s, t, l, f);
                for (size_t m = 0; m < x->width; m++)
                    w[m] = INFINITY;
            }
    for (size_t l0 = s; l0 < x->nstages; l0 += TILE) {
        const size_t nl = x->nstages - l0 < TILE ? x->nstages - l0 : TILE;

        make_columns(x, s, l0, nl);
        for (size_t t0 = s; t0 < l0 + nl; t0 += TILE)
            make_rows(x, s, t0, (unsigned)(l0 + nl - t0 < TILE ? l0 + nl - t0 : TILE), l0, nl);
    }
}

/* ---- the table ------------------------------------------------------------------- */

static void drop(void *ptr)
{
    struct table *x = ptr;
    struct heddle_scratch mem;

    if (x == NULL)
        return;
    heddle_free(x->a, x->row, x->row_bytes);
    mem = x->mem;
    heddle_scratch_drop(&mem);
}

static heddle_status get_memory(struct table *x)
{
    const size_t n = x->nstages;
    size_t bytes = 0, ncol = 0;

    x->layer = heddle_scratch_get(&x->mem, n + 1, sizeof(*x->layer));
    x->same = heddle_scratch_get(&x->mem, 3 * (n + 1), sizeof(*x->same));
    x->sat = heddle_scratch_get(&x->mem, 2 * x->nf * n * n, sizeof(*x->sat));
    if (x->layer == NULL || x->same == NULL || x->sat == NULL)
        return HEDDLE_ENOMEM;
    x->slide = x->same + n + 1;
    x->reach = x->slide + n + 1;
    for (size_t s = 0; s < n; s++)
        x->layer[s + 1] = x->layer[s] + (n - s) * (n - s + 1) / 2;
    if (!heddle_mul(&bytes, x->nf * x->layer[n], x->width * sizeof(float)) ||
        !heddle_mul(&ncol, x->nf * (n + 1) * TILE, x->pad + x->width))
        return HEDDLE_ENOMEM;
    x->row = heddle_alloc_aligned(x->a, bytes, 64);
    x->row_bytes = x->row != NULL ? bytes : 0;
    x->split = heddle_scratch_get(&x->mem, ncol, sizeof(float));
    x->hole = heddle_scratch_get(&x->mem, x->nf > 1 ? ncol : 1, sizeof(float));
    if (x->row == NULL || x->split == NULL || x->hole == NULL)
        return HEDDLE_ENOMEM;
    for (size_t i = 0; i < ncol; i++)
        x->split[i] = INFINITY;
    for (size_t i = 0; i < ncol && x->nf > 1; i++)
        x->hole[i] = INFINITY;
    return HEDDLE_OK;
}

static heddle_status make(const struct heddle_plan_units *u, size_t nf,
                          const struct heddle_allocator *a, void **out)
{
    struct heddle_scratch mem = heddle_scratch_make(a);
    struct table *x = heddle_scratch_get(&mem, 1, sizeof(*x));

    if (x == NULL)
        return HEDDLE_ENOMEM;
    x->mem = mem;
    x->u = u;
    x->a = a;
    x->nf = nf;
    x->minplus = heddle_minplus_choose();
    x->nstages = (size_t)u->n + 1;
    x->width =
        ((size_t)u->slots + HEDDLE_MINPLUS_WIDTH) / HEDDLE_MINPLUS_WIDTH * HEDDLE_MINPLUS_WIDTH;
    x->pad = x->width + HEDDLE_MINPLUS_WIDTH;
    if (get_memory(x) != HEDDLE_OK) {
        drop(x);
        return HEDDLE_ENOMEM;
    }
    for (size_t s = x->nstages; s-- > 0;)
        make_layer(x, s);
    *out = x;
    return HEDDLE_OK;
}

static heddle_status make_general(const struct heddle_plan_units *u,
                                  const struct heddle_allocator *a, void **out)
{
    return make(u, 1, a, out);
}

static heddle_status make_unpinned(const struct heddle_plan_units *u,
                                   const struct heddle_allocator *a, void **out)
{
    return make(u, 2, a, out);
}

static heddle_status make_free(const struct heddle_plan_units *u, const struct heddle_allocator *a,
                               void **out)
{
    return make(u, 4, a, out);
}

/* ---- reading --------------------------------------------------------------------- */

static double value(const void *ptr, uint32_t m)
{
    const struct table *x = ptr;

    return (double)row_at(x, 0, 0, x->u->n, 0)[m];
}

static double time_of(const struct table *x, struct cell c)
{
    return (double)row_at(x, c.s, c.t, c.l, c.f)[c.m];
}

/* What a cell does: the forwards s .. to-1, the part `a`, the part `b` or the
 * backward of s. */
struct move {
    double time;
    uint32_t to;
    struct cell a, b;
    bool has_a, has_b, has_backward;
};

static void take_better(struct move *best, const struct move *v)
{
    if (v->time < best->time)
        *best = *v;
}

/* The tape of s, or one step on. */
static void try_next(const struct table *x, struct cell c, struct move *best)
{
    const struct heddle_plan_units *u = x->u;
    struct move v = {.time = 0, .to = c.s + 1, .has_backward = c.s == c.t};

    if (c.s == c.l) {
        if (c.m < need_tape(u, c.s, c.l, in_hand(c.f)))
            return;
        v.to = c.s + (in_hand(c.f) == 0);
        take_better(best, &v);
    } else {
        const struct next n = next_of(u, c.s, c.t, c.l, c.f);

        if (c.m < n.need)
            return;
        v.a = (struct cell){c.s + 1, n.t, c.l, c.m - n.less, n.f};
        v.has_a = true;
        v.time = n.time + time_of(x, v.a);
        take_better(best, &v);
    }
}

static void try_splits(const struct table *x, struct cell c, struct move *best)
{
    const struct heddle_plan_units *u = x->u;
    const uint32_t h = (uint32_t)in_hand(c.f), g = c.f - h;
    struct move v = {.to = c.s + 1, .has_a = true, .has_b = true};

    if (c.l == c.s || c.m < need_step(u, c.s, c.l, h))
        return;
    for (uint32_t tp = c.t + 1; tp <= c.l; tp++)
        for (uint32_t left = 0; left < (x->nf > 2 ? 2 : 1); left++) {
            v.a = (struct cell){c.s + 1, tp, c.l, c.m - u->x[c.s], h + 2 * left};
            v.b = (struct cell){c.s, c.t, tp - 1, c.m, left + g};
            v.time = u->forward[c.s] + time_of(x, v.a) + time_of(x, v.b);
            take_better(best, &v);
        }
}

static void try_holes(const struct table *x, struct cell c, const uint32_t *reach,
                      struct move *best)
{
    const struct heddle_plan_units *u = x->u;
    const uint32_t h = (uint32_t)in_hand(c.f), g = c.f - h;
    struct move v = {.has_a = true, .has_b = true};

    for (uint32_t k = c.t > c.s ? c.t : c.s + 1; k < c.l; k++) {
        const uint32_t less = u->x[c.s] + u->t[k + 1] - u->x[k + 1];

        if (c.m < reach[k] + held(u, c.l, h) || c.m < less)
            continue;
        v.to = k + 1;
        v.a = (struct cell){k + 1, k + 1, c.l, c.m - less, h};
        v.b = (struct cell){c.s, c.t, k, c.m, 1 + g};
        v.time = u->before[k + 1] - u->before[c.s] + time_of(x, v.a) + time_of(x, v.b);
        take_better(best, &v);
    }
}

#define BACKWARD UINT32_MAX /* as m: only the backward of s */

static size_t expand(const struct table *x, struct cell c, uint32_t *reach, struct cell *stack,
                     size_t depth, struct heddle_plan_seq *q)
{
    const uint32_t n = x->u->n;
    struct move best = {.time = INFINITY};

    if (c.m == BACKWARD) {
        heddle_plan_seq_add(q, 2 * n - c.s);
        return depth;
    }
    try_next(x, c, &best);
    try_splits(x, c, &best);
    if (x->nf > 1) {
        set_reach(x->u, c.s, reach);
        try_holes(x, c, reach, &best);
    }
    for (uint32_t i = c.s; i < best.to; i++)
        heddle_plan_seq_add(q, i);
    if (best.has_backward && c.s < n)
        stack[depth++] = (struct cell){.s = c.s, .m = BACKWARD};
    if (best.has_b)
        stack[depth++] = best.b;
    if (best.has_a)
        stack[depth++] = best.a;
    return depth;
}

static void trace(const void *ptr, uint32_t m, struct heddle_plan_seq *q)
{
    const struct table *x = ptr;
    struct heddle_scratch mem = heddle_scratch_make(x->a);
    struct cell *stack = heddle_scratch_get(&mem, 2 * x->nstages + 4, sizeof(*stack));
    uint32_t *reach = heddle_scratch_get(&mem, x->nstages, sizeof(*reach));
    size_t depth = 0;

    if (stack == NULL || reach == NULL) {
        heddle_scratch_drop(&mem);
        q->st = HEDDLE_ENOMEM;
        return;
    }
    stack[depth++] = (struct cell){0, 0, x->u->n, m, 0};
    while (depth > 0 && q->st == HEDDLE_OK) {
        const struct cell c = stack[--depth];

        depth = expand(x, c, reach, stack, depth, q);
    }
    heddle_scratch_drop(&mem);
}

static double rows(uint32_t n)
{
    return ((double)n + 1) * ((double)n + 2) * ((double)n + 3) / 6;
}

static double work(uint32_t n)
{
    return rows(n) * ((double)n + 4) / 4;
}

static double work_unpinned(uint32_t n)
{
    return 4 * work(n);
}

static double bytes(uint32_t n)
{
    return 4 * rows(n) + 32 * ((double)n + 2);
}

static double bytes_unpinned(uint32_t n)
{
    return 2 * bytes(n) + 64 * ((double)n + 2);
}

static double roundings(uint32_t n)
{
    return 3 * (double)n + 6;
}

static double work_free(uint32_t n)
{
    return 12 * work(n);
}

static double bytes_free(uint32_t n)
{
    return 2 * bytes_unpinned(n);
}

const struct heddle_plan_model heddle_plan_model_general = {
    .name = "chain_general",
    .note = "plans that keep a tape only with its input",
    .make = make_general,
    .drop = drop,
    .value = value,
    .trace = trace,
    .work = work,
    .bytes = bytes,
    .roundings = roundings,
};

const struct heddle_plan_model heddle_plan_model_unpinned = {
    .name = "chain_unpinned",
    .note = "plans of parts that leave no tape behind",
    .make = make_unpinned,
    .drop = drop,
    .value = value,
    .trace = trace,
    .work = work_unpinned,
    .bytes = bytes_unpinned,
    .roundings = roundings,
};

const struct heddle_plan_model heddle_plan_model_free = {
    .name = "chain_free",
    .note = "plans of parts that leave at most one tape behind",
    .make = make_free,
    .drop = drop,
    .value = value,
    .trace = trace,
    .work = work_free,
    .bytes = bytes_free,
    .roundings = roundings,
};
