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
 * The memory tests are in dp_general.h. Layers s downwards, columns l by blocks of 4,
 * t by blocks of 4; a split and a hole are sums of a row W(s,t,.,m) and a prepared
 * column (minplus.h). Cost slots * n^4 / 24 sums and slots * n^3 / 6 floats for the
 * general model; four and two times that for the unpinned one, twelve and four times
 * for the free one.
 */
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "plan/chain/dp_general.h"

static float *col_at(const struct heddle_plan_general *x, float *from, size_t f, size_t i, size_t c)
{
    return from +
           ((f * (x->nstages + 1) + i) * HEDDLE_PLAN_GENERAL_TILE + c) * (x->pad + x->width) +
           x->pad;
}

static uint32_t *sat_at(const struct heddle_plan_general *x, size_t s, size_t t, size_t l, size_t f)
{
    return x->sat + (((s & 1) * x->nf + f) * x->nstages + t) * x->nstages + l;
}

/* Least time of (s,t,l,h) with all memory. */
static double least(const struct heddle_plan_units *u, size_t s, size_t t, size_t l, size_t h)
{
    return u->before[t] - u->before[s] + u->both[l + 1] - u->both[t] - (h != 0 ? u->forward[l] : 0);
}

/* ---- columns ------------------------------------------------------------------- */

/* to[m - shift] = from[m - shift] + time, from `need` units m on. */
static void copy_shifted(const struct heddle_plan_general *x, float *to, const float *from,
                         uint32_t shift, uint32_t need, float time)
{
    const size_t first = need > shift ? need - shift : 0;
    const size_t end = first < x->width ? first : x->width;

    for (size_t i = 0; i < end; i++)
        to[i] = INFINITY;
    for (size_t i = end; i < x->width; i++)
        to[i] = from[i] + time;
}

/* Prepares splits and holes of layer s for the columns from l0 on. */
static void make_columns(const struct heddle_plan_general *x, size_t s, size_t l0, size_t nl)
{
    const struct heddle_plan_units *u = x->u;

    for (size_t c = 0; c < nl; c++)
        for (size_t f = 0; f < x->nf; f++) {
            const size_t l = l0 + c, h = heddle_plan_general_in_hand(f);

            for (size_t tp = s + 1; tp <= l; tp++)
                copy_shifted(x, col_at(x, x->split, f, tp, c),
                             heddle_plan_general_row_at(x, s + 1, tp, l, f), u->x[s],
                             heddle_plan_general_need_step(u, s, l, h), (float)u->forward[s]);
            for (size_t k = s + 1; k < l && x->nf > 1 && f < 2; k++)
                copy_shifted(x, col_at(x, x->hole, f, k, c),
                             heddle_plan_general_row_at(x, k + 1, k + 1, l, f), x->slide[k],
                             x->reach[k] + heddle_plan_general_held(u, l, h),
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
static void add_product(const struct heddle_plan_general *x, const struct terms *q, size_t f,
                        size_t rows, size_t cols)
{
    struct heddle_minplus p = {.row_step = x->width,
                               .col_step = HEDDLE_PLAN_GENERAL_TILE * (x->pad + x->width),
                               .shift = (q->is_hole ? x->slide : x->same) + q->i0,
                               .n = q->i1 - q->i0,
                               .nrows = q->nt,
                               .ncols = q->nc,
                               .from = x->width,
                               .to = 0};

    for (unsigned c = 0; c < q->nc; c++) {
        const uint32_t need =
            heddle_plan_general_need_step(x->u, q->s, q->l + c, heddle_plan_general_in_hand(f));

        p.col[c] = col_at(x, q->is_hole ? x->hole : x->split, cols, q->i0, q->c + c);
        p.from = need < p.from ? need : p.from;
    }
    for (unsigned r = 0; r < q->nt; r++) {
        p.row[r] =
            heddle_plan_general_row_at(x, q->s, q->t + r, q->is_hole ? q->i0 : q->i0 - 1, rows);
        for (unsigned c = 0; c < q->nc; c++) {
            const uint32_t sat = *sat_at(x, q->s, q->t + r, q->l + c, f);

            p.out[r][c] = heddle_plan_general_row_at(x, q->s, q->t + r, q->l + c, f);
            p.to = sat > p.to ? sat : p.to;
        }
    }
    if (p.from < p.to)
        x->minplus(&p);
}

/* A hole is filled with its tape in hand; a split with the tape that its right
 * part left behind, or with none. */
static void add_terms(const struct heddle_plan_general *x, const struct terms *q)
{
    if (q->i0 >= q->i1)
        return;
    for (size_t f = 0; f < x->nf; f++) {
        const size_t g = 2 * heddle_plan_general_left_behind(f);

        if (q->is_hole) {
            add_product(x, q, f, 1 + g, heddle_plan_general_in_hand(f));
            continue;
        }
        add_product(x, q, f, g, heddle_plan_general_in_hand(f));
        if (x->nf > 2)
            add_product(x, q, f, 1 + g, heddle_plan_general_in_hand(f) + 2);
    }
}

static void set_sat(const struct heddle_plan_general *x, size_t s, size_t t, size_t l, size_t f)
{
    const struct heddle_plan_units *u = x->u;
    uint32_t need;

    if (l == s)
        need = heddle_plan_general_need_tape(u, s, l, heddle_plan_general_in_hand(f));
    else {
        const struct heddle_plan_general_next n = heddle_plan_general_next_of(u, s, t, l, f);

        need = heddle_plan_general_max(n.need, *sat_at(x, s + 1, n.t, l, n.f) + n.less);
    }
    if (t == s && heddle_plan_general_left_behind(f) != 0)
        need = u->slots + 1; /* there is no such cell */
    *sat_at(x, s, t, l, f) = need <= u->slots ? need : u->slots + 1;
}

/* All splits and holes are in. */
static void finish(const struct heddle_plan_general *x, size_t s, size_t t, size_t l, size_t f)
{
    const struct heddle_plan_units *u = x->u;
    const size_t sat = *sat_at(x, s, t, l, f);
    float *w = heddle_plan_general_row_at(x, s, t, l, f);

    if (t == s && heddle_plan_general_left_behind(f) != 0)
        return;
    if (l > s) {
        const struct heddle_plan_general_next n = heddle_plan_general_next_of(u, s, t, l, f);
        const float *next = heddle_plan_general_row_at(x, s + 1, n.t, l, n.f) - n.less;
        const float time = (float)n.time;

        for (size_t m = n.need; m < sat; m++) {
            const float v = time + next[m];

            w[m] = v < w[m] ? v : w[m];
        }
    }
    for (size_t m = sat; m < x->width; m++)
        w[m] = (float)least(u, s, t, l, heddle_plan_general_in_hand(f));
}

static void make_rows(const struct heddle_plan_general *x, size_t s, size_t t0, unsigned nt,
                      size_t l0, size_t nl)
{
    const size_t past = t0 + HEDDLE_PLAN_GENERAL_TILE; /* splits of all rows begin here */
    const size_t k0 = past - 1 > s + 1 ? past - 1 : s + 1;
    const bool has_bulk = nt == HEDDLE_PLAN_GENERAL_TILE && past <= l0, has_holes = x->nf > 1;
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

static void make_layer(const struct heddle_plan_general *x, size_t s)
{
    const struct heddle_plan_units *u = x->u;

    if (x->nf > 1)
        heddle_plan_general_set_reach(u, s, x->reach);
    for (size_t k = s + 1; k < x->nstages; k++) {
        x->same[k] = u->x[s];
        x->slide[k] = u->x[s] + u->t[k + 1] - u->x[k + 1];
        if (x->slide[k] > u->slots)
            x->slide[k] = u->slots + 1;
    }
    for (size_t t = s; t < x->nstages; t++)
        for (size_t l = t; l < x->nstages; l++)
            for (size_t f = 0; f < x->nf; f++) {
                float *w = heddle_plan_general_row_at(x, s, t, l, f);

                set_sat(x, s, t, l, f);
                for (size_t m = 0; m < x->width; m++)
                    w[m] = INFINITY;
            }
    for (size_t l0 = s; l0 < x->nstages; l0 += HEDDLE_PLAN_GENERAL_TILE) {
        const size_t nl =
            x->nstages - l0 < HEDDLE_PLAN_GENERAL_TILE ? x->nstages - l0 : HEDDLE_PLAN_GENERAL_TILE;

        make_columns(x, s, l0, nl);
        for (size_t t0 = s; t0 < l0 + nl; t0 += HEDDLE_PLAN_GENERAL_TILE)
            make_rows(x, s, t0,
                      (unsigned)(l0 + nl - t0 < HEDDLE_PLAN_GENERAL_TILE
                                     ? l0 + nl - t0
                                     : HEDDLE_PLAN_GENERAL_TILE),
                      l0, nl);
    }
}

/* ---- the table ------------------------------------------------------------------- */

static void drop(void *ptr)
{
    struct heddle_plan_general *x = ptr;
    struct heddle_scratch mem;

    if (x == NULL)
        return;
    heddle_free(x->a, x->row, x->row_bytes);
    mem = x->mem;
    heddle_scratch_drop(&mem);
}

static heddle_status get_memory(struct heddle_plan_general *x)
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
        !heddle_mul(&ncol, x->nf * (n + 1) * HEDDLE_PLAN_GENERAL_TILE, x->pad + x->width))
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
    struct heddle_plan_general *x = heddle_scratch_get(&mem, 1, sizeof(*x));

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
    .value = heddle_plan_general_value,
    .trace = heddle_plan_general_trace,
    .work = work,
    .bytes = bytes,
    .roundings = roundings,
};

const struct heddle_plan_model heddle_plan_model_unpinned = {
    .name = "chain_unpinned",
    .note = "plans of parts that leave no tape behind",
    .make = make_unpinned,
    .drop = drop,
    .value = heddle_plan_general_value,
    .trace = heddle_plan_general_trace,
    .work = work_unpinned,
    .bytes = bytes_unpinned,
    .roundings = roundings,
};

const struct heddle_plan_model heddle_plan_model_free = {
    .name = "chain_free",
    .note = "plans of parts that leave at most one tape behind",
    .make = make_free,
    .drop = drop,
    .value = heddle_plan_general_value,
    .trace = heddle_plan_general_trace,
    .work = work_free,
    .bytes = bytes_free,
    .roundings = roundings,
};
