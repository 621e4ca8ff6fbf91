/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * dp_persistent: what is kept for later stays until its own backward.
 *
 * C(i,l,m): least time from "x[i] and the gradient of x[l + 1] are there" to "the
 * gradient of x[i] is there" within m units, x[i] not counted, the gradient
 * counted.
 *
 *   i = l   forward and backward, if m >= all(i,i)
 *   split   min over i < j <= l of forward[i .. j-1] + C(j,l,m - x[j]) + C(i,j-1,m),
 *           if m >= none(i,l)
 *   tape    forward[i] + C(i+1,l,m - t[i+1]) + backward[i], if m >= all(i,l)
 *
 *   none(i,l) = x[l+1] + max(x[i+1] + work_f[i],
 *                            max over i < k < l of x[k] + x[k+1] + work_f[k])
 *   all(i,l)  = max(x[l+1] + t[i+1] + work_f[i], x[i] + x[i+1] + t[i+1] + work_b[i])
 *
 * Structure  rows (i,l) of R = C + forward[i .. l], so that a split is the sum of a
 *            row and a column; columns hold C of 16 values of l at a time, with
 *            infinities in front, so that a shift needs no test.
 * Order      columns by blocks of 16; rows downwards by blocks of 32; a finished
 *            block is added to all rows above it (right-looking): it stays in the
 *            cache meanwhile.
 * Window     below none() a split is impossible; from keep() on, where all tapes
 *            fit, the answer is known.
 * Cost       slots * n^3 / 6 sums; 4 * slots * n^2 / 2 bytes. No decisions are
 *            kept: trace() finds them again.
 */
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "plan/chain/chain.h"
#include "plan/chain/minplus.h"

enum { BLOCK_COLS = 16, BLOCK_ROWS = 32, TILE = HEDDLE_MINPLUS_TILE };

struct table {
    const struct heddle_plan_units *u;
    const struct heddle_allocator *a;
    struct heddle_scratch mem;
    heddle_minplus_fn *minplus;
    size_t nstages; /* n + 1 */
    size_t width;   /* floats of a row: slots + 1, rounded up */
    size_t pad;     /* infinities in front of a column */
    float *row;
    size_t row_bytes;
    float *col; /* [nstages][BLOCK_COLS][pad + width] */
    uint32_t (*none)[BLOCK_COLS], (*all)[BLOCK_COLS], (*keep)[BLOCK_COLS];
};

static float *row_at(const struct table *t, size_t i, size_t l)
{
    return t->row + (i * t->nstages - i * (i + 1) / 2 + l) * t->width;
}

static float *col_at(const struct table *t, size_t i, size_t k)
{
    return t->col + (i * BLOCK_COLS + k) * (t->pad + t->width) + t->pad;
}

static uint32_t max32(uint32_t a, uint32_t b)
{
    return a > b ? a : b;
}

static uint32_t need_all(const struct heddle_plan_units *u, size_t i, size_t l)
{
    return max32(u->x[l + 1] + u->t[i + 1] + u->work_f[i],
                 u->x[i] + u->x[i + 1] + u->t[i + 1] + u->work_b[i]);
}

/* ---- making ---------------------------------------------------------------- */

/* The windows of the columns from b0 on. */
static void set_windows(struct table *t, size_t b0, size_t nb)
{
    const struct heddle_plan_units *u = t->u;

    for (size_t k = 0; k < nb; k++) {
        const size_t l = b0 + k;
        uint32_t inner = 0; /* of stages between i and l */

        for (size_t i = l + 1; i-- > 0;) {
            t->all[i][k] = need_all(u, i, l);
            t->none[i][k] = u->x[l + 1] + max32(u->x[i + 1] + u->work_f[i], inner);
            t->keep[i][k] = t->all[i][k];
            if (i < l) {
                const uint32_t above = u->t[i + 1] + t->keep[i + 1][k];

                t->keep[i][k] = max32(t->all[i][k], above);
                inner = max32(inner, u->x[i] + u->x[i + 1] + u->work_f[i]);
            }
            if (t->keep[i][k] > u->slots)
                t->keep[i][k] = u->slots + 1;
        }
    }
}

/* Adds the splits j0 .. j1-1 to nrows rows from i on, of columns k .. k + nk-1. */
static void add_splits(const struct table *t, size_t i, unsigned nrows, size_t k, unsigned nk,
                       size_t j0, size_t j1)
{
    struct heddle_minplus p = {.row_step = t->width,
                               .col_step = BLOCK_COLS * (t->pad + t->width),
                               .shift = t->u->x + j0,
                               .n = j1 - j0,
                               .nrows = nrows,
                               .ncols = nk,
                               .from = t->width,
                               .to = 0};

    for (unsigned r = 0; r < nrows; r++) {
        p.row[r] = row_at(t, i + r, j0 - 1);
        for (unsigned c = 0; c < nk; c++) {
            p.out[r][c] = col_at(t, i + r, k + c);
            if (t->none[i + r][k + c] < p.from)
                p.from = t->none[i + r][k + c];
            if (t->keep[i + r][k + c] > p.to)
                p.to = t->keep[i + r][k + c];
        }
    }
    for (unsigned c = 0; c < nk; c++)
        p.col[c] = col_at(t, j0, k + c);
    if (p.from < p.to && j0 < j1)
        t->minplus(&p);
}

static void fill(float *p, size_t from, size_t to, float with)
{
    for (size_t m = from; m < to; m++)
        p[m] = with;
}

/* All splits are in: what remains of (i, b0 + k). */
static void finish(const struct table *t, size_t i, size_t b0, size_t k)
{
    const struct heddle_plan_units *u = t->u;
    const size_t l = b0 + k;
    const size_t keep = t->keep[i][k], all = t->all[i][k];
    const size_t none = t->none[i][k];
    float *c = col_at(t, i, k), *r = row_at(t, i, l);
    const float seg = (float)(u->before[l + 1] - u->before[i]);

    fill(c, 0, none < t->width ? none : t->width, INFINITY);
    if (i < l) {
        const float *next = col_at(t, i + 1, k) - u->t[i + 1];
        const float both = (float)(u->forward[i] + u->backward[i]);

        for (size_t m = all; m < keep; m++) {
            const float v = both + next[m];

            c[m] = v < c[m] ? v : c[m];
        }
    }
    fill(c, keep, t->width, (float)(u->both[l + 1] - u->both[i]));
    for (size_t m = 0; m < t->width; m++)
        r[m] = c[m] + seg;
}

/* Row i of the columns, when all rows below it are done; j < j1 in its block are
 * not yet added. */
static void finish_row(const struct table *t, size_t i, size_t b0, size_t nb, size_t j1)
{
    for (size_t k = 0; k < nb; k += TILE)
        add_splits(t, i, 1, k, (unsigned)(nb - k < TILE ? nb - k : TILE), i + 1, j1);
    for (size_t k = 0; k < nb; k++) {
        if (b0 + k < i)
            continue;
        add_splits(t, i, 1, k, 1, i < b0 ? b0 : i + 1, b0 + k + 1);
        finish(t, i, b0, k);
    }
}

static void add_block(const struct table *t, size_t p, size_t q, size_t nb)
{
    for (size_t i = 0; i < p; i += TILE)
        for (size_t k = 0; k < nb; k += TILE)
            add_splits(t, i, (unsigned)(p - i < TILE ? p - i : TILE), k,
                       (unsigned)(nb - k < TILE ? nb - k : TILE), p, q);
}

static void make_columns(struct table *t, size_t b0, size_t nb)
{
    set_windows(t, b0, nb);
    for (size_t i = 0; i < b0 + nb; i++)
        for (size_t k = i > b0 ? i - b0 : 0; k < nb; k++)
            fill(col_at(t, i, k), 0, t->keep[i][k], INFINITY);
    for (size_t i = b0 + nb; i-- > b0;)
        finish_row(t, i, b0, nb, i + 1);
    for (size_t q = b0; q > 0;) {
        const size_t p = q > BLOCK_ROWS ? q - BLOCK_ROWS : 0;

        for (size_t i = q; i-- > p;)
            finish_row(t, i, b0, nb, q);
        add_block(t, p, q, nb);
        q = p;
    }
}

static void drop(void *ptr)
{
    struct table *t = ptr;
    struct heddle_scratch mem;

    if (t == NULL)
        return;
    heddle_free(t->a, t->row, t->row_bytes);
    mem = t->mem;
    heddle_scratch_drop(&mem);
}

static heddle_status get_memory(struct table *t)
{
    const size_t n = t->nstages;
    size_t ncol, bytes;

    if (!heddle_mul(&bytes, n * (n + 1) / 2, t->width * sizeof(float)) ||
        !heddle_mul(&ncol, n * BLOCK_COLS, t->pad + t->width))
        return HEDDLE_ENOMEM;
    t->row = heddle_alloc_aligned(t->a, bytes, 64);
    t->row_bytes = t->row != NULL ? bytes : 0;
    t->col = heddle_scratch_get(&t->mem, ncol, sizeof(float));
    t->none = heddle_scratch_get(&t->mem, n, sizeof(*t->none));
    t->all = heddle_scratch_get(&t->mem, n, sizeof(*t->all));
    t->keep = heddle_scratch_get(&t->mem, n, sizeof(*t->keep));
    if (t->row == NULL || t->col == NULL || t->none == NULL || t->all == NULL || t->keep == NULL)
        return HEDDLE_ENOMEM;
    fill(t->col, 0, ncol, INFINITY);
    return HEDDLE_OK;
}

static heddle_status make(const struct heddle_plan_units *u, const struct heddle_allocator *a,
                          void **out)
{
    struct heddle_scratch mem = heddle_scratch_make(a);
    struct table *t = heddle_scratch_get(&mem, 1, sizeof(*t));

    if (t == NULL)
        return HEDDLE_ENOMEM;
    t->mem = mem;
    t->u = u;
    t->a = a;
    t->minplus = heddle_minplus_choose();
    t->nstages = (size_t)u->n + 1;
    t->width =
        ((size_t)u->slots + HEDDLE_MINPLUS_WIDTH) / HEDDLE_MINPLUS_WIDTH * HEDDLE_MINPLUS_WIDTH;
    t->pad = t->width + HEDDLE_MINPLUS_WIDTH;
    if (get_memory(t) != HEDDLE_OK) {
        drop(t);
        return HEDDLE_ENOMEM;
    }
    for (size_t b0 = 0; b0 < t->nstages; b0 += BLOCK_COLS)
        make_columns(t, b0, t->nstages - b0 < BLOCK_COLS ? t->nstages - b0 : BLOCK_COLS);
    *out = t;
    return HEDDLE_OK;
}

/* ---- reading ---------------------------------------------------------------- */

static double time_of(const struct table *t, size_t i, size_t l, uint32_t m)
{
    const struct heddle_plan_units *u = t->u;

    return (double)row_at(t, i, l)[m] - (u->before[l + 1] - u->before[i]);
}

/* x[0] is there all the time. */
static double value(const void *ptr, uint32_t m)
{
    const struct table *t = ptr;

    return m >= t->u->x[0] ? time_of(t, 0, t->u->n, m - t->u->x[0]) : (double)INFINITY;
}

struct todo {
    uint32_t i, l, m; /* m == BACKWARD: the backward of layer i */
};
#define BACKWARD UINT32_MAX

static uint32_t need_none(const struct heddle_plan_units *u, size_t i, size_t l)
{
    uint32_t need = u->x[i + 1] + u->work_f[i];

    for (size_t k = i + 1; k < l; k++)
        need = max32(need, u->x[k] + u->x[k + 1] + u->work_f[k]);
    return need + u->x[l + 1];
}

/* The first stage of the right part; i: the tape of layer i is kept. */
static uint32_t choose(const struct table *t, const struct todo *s)
{
    const struct heddle_plan_units *u = t->u;
    double best = INFINITY;
    uint32_t at = s->i;

    if (s->m >= need_all(u, s->i, s->l))
        best = time_of(t, s->i + 1, s->l, s->m - u->t[s->i + 1]) + u->forward[s->i] +
               u->backward[s->i];
    if (s->m < need_none(u, s->i, s->l))
        return at;
    for (uint32_t j = s->i + 1; j <= s->l && s->m >= u->x[j]; j++) {
        double v;

        v = (double)row_at(t, s->i, j - 1)[s->m] + time_of(t, j, s->l, s->m - u->x[j]);
        if (v < best) {
            best = v;
            at = j;
        }
    }
    return at;
}

static size_t expand(const struct table *t, struct todo s, struct todo *stack, size_t depth,
                     struct heddle_plan_seq *q)
{
    const uint32_t n = t->u->n;
    uint32_t j;

    if (s.m == BACKWARD || s.i == s.l) {
        if (s.m != BACKWARD)
            heddle_plan_seq_add(q, s.i);
        if (s.i < n)
            heddle_plan_seq_add(q, 2 * n - s.i);
        return depth;
    }
    j = choose(t, &s);
    if (j == s.i) {
        heddle_plan_seq_add(q, s.i);
        stack[depth++] = (struct todo){.i = s.i, .m = BACKWARD};
        stack[depth++] = (struct todo){s.i + 1, s.l, s.m - t->u->t[s.i + 1]};
        return depth;
    }
    for (uint32_t k = s.i; k < j; k++)
        heddle_plan_seq_add(q, k);
    stack[depth++] = (struct todo){s.i, j - 1, s.m};
    stack[depth++] = (struct todo){j, s.l, s.m - t->u->x[j]};
    return depth;
}

static void trace(const void *ptr, uint32_t m, struct heddle_plan_seq *q)
{
    const struct table *t = ptr;
    struct heddle_scratch mem = heddle_scratch_make(t->a);
    struct todo *stack = heddle_scratch_get(&mem, 2 * t->nstages + 2, sizeof(*stack));
    size_t depth = 0;

    if (stack == NULL) {
        q->st = HEDDLE_ENOMEM;
        return;
    }
    stack[depth++] = (struct todo){0, t->u->n, m - t->u->x[0]};
    while (depth > 0 && q->st == HEDDLE_OK) {
        const struct todo s = stack[--depth];

        depth = expand(t, s, stack, depth, q);
    }
    heddle_scratch_drop(&mem);
}

static double work(uint32_t n)
{
    return ((double)n + 1) * ((double)n + 2) * ((double)n + 3) / 6;
}

static double bytes(uint32_t n)
{
    return 2 * ((double)n + 1) * ((double)n + 2) + 64 * ((double)n + 1);
}

static double roundings(uint32_t n)
{
    return 2 * (double)n + 4;
}

const struct heddle_plan_model heddle_plan_model_persistent = {
    .name = "chain",
    .note = "plans that keep what they keep until its backward, and a tape "
            "only with its input",
    .make = make,
    .drop = drop,
    .value = value,
    .trace = trace,
    .work = work,
    .bytes = bytes,
    .roundings = roundings,
};
