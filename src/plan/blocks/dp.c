/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * dp: the chain of blocks.
 *
 * C(i,l,m): least time from "X[i] and Y[l + 1] are there" to "Y[i] is there" within
 * m units, X[i] not counted, Y[l + 1] counted: the persistent table of chains
 * (dp_persistent.c), with a choice for each block, and inputs that may have values
 * in common.
 *
 *   option  min over o of time[i][o] + C(i+1, l, m - saved[o]),
 *           if m >= Y[l+1] + peak_f[o] and m >= peak_b[o]
 *   split   min over i < j <= l of pass[i .. j-1] + C(j, l, m - apart(i,j)) + C(i, j-1, m),
 *           if m >= none(i,l) = Y[l+1] + max over i <= k < l of apart(i,k) + peak_x[k]
 *
 * Sizes are rounded to the nearest unit: what comes out is evaluated in bytes
 * afterwards, and the caller asks for another m when it is over.
 *
 * Structure  rows (i,l) of C + pass[i .. l]; columns of four l at a time, with
 *            infinities in front. Cost: slots * n^3 / 6 sums.
 */
#include "plan/blocks/blocks.h"

#include <math.h>
#include <string.h>

#include "plan/chain/minplus.h"

enum { COLS = HEDDLE_MINPLUS_TILE, ALIGN = HEDDLE_MINPLUS_WIDTH };

struct heddle_plan_cut_table {
    const struct heddle_plan_cuts *cuts;
    const struct heddle_plan_stage *stage;
    heddle_minplus_fn *minplus;
    uint32_t n, slots;
    double unit, scale; /* bytes of a slot; 1 / sum of times */
    size_t width, pad;
    float *row, *col;
    uint32_t *shift; /* [n * (n + 1)] apart, in units */
    uint32_t *y;     /* [n + 1] in units */
    float *pass;     /* [n + 1] sums of stages before it */
    struct frame *stack;
    bool *is_done; /* [n] its forward part has run */
};

/* A part of the chain to be solved; option != NONE: a backward part. */
struct frame {
    uint32_t i, l, m, option;
};

static float *row_at(const struct heddle_plan_cut_table *t, size_t i, size_t l)
{
    return t->row + (i * t->n - i * (i + 1) / 2 + l) * t->width;
}

static float *col_at(const struct heddle_plan_cut_table *t, size_t i, size_t k)
{
    return t->col + (i * COLS + k) * (t->pad + t->width) + t->pad;
}

/* At most slots + 1, which is too much for any plan. */
static uint32_t units(const struct heddle_plan_cut_table *t, uint64_t bytes)
{
    const double u = floor((double)bytes / t->unit + 0.5);

    return u < t->slots + 1.0 ? (uint32_t)u : t->slots + 1;
}

static uint32_t shift_at(const struct heddle_plan_cut_table *t, size_t i, size_t j)
{
    return t->shift[i * (t->n + (size_t)1) + j];
}

static uint32_t need_option(const struct heddle_plan_cut_table *t, uint32_t i, uint32_t l,
                            const struct heddle_plan_option *o)
{
    const uint32_t f = units(t, t->cuts->y[l + 1] + o->peak_f);
    const uint32_t b = units(t, o->peak_b);

    (void)i;
    return f > b ? f : b;
}

/* none(i,l), l > i */
static uint32_t need_split(const struct heddle_plan_cut_table *t, uint32_t i, uint32_t l)
{
    const size_t row = (size_t)t->n + 1;
    uint64_t most = 0;

    for (uint32_t k = i; k < l; k++) {
        const uint64_t b = (k > i ? t->cuts->apart[i * row + k] : 0) + t->stage[k].shape->peak_x;

        most = b > most ? b : most;
    }
    return units(t, most + t->cuts->y[l + 1]);
}

/* ---- making ---------------------------------------------------------------------- */

static void add_split(const struct heddle_plan_cut_table *t, float *out, const float *row,
                      const float *col, uint32_t shift)
{
    for (size_t m = 0; m < t->width; m++) {
        const float s = row[m] + col[(ptrdiff_t)m - (ptrdiff_t)shift];

        out[m] = s < out[m] ? s : out[m];
    }
}

static void add_options(const struct heddle_plan_cut_table *t, uint32_t i, uint32_t l, size_t k,
                        float *out)
{
    const struct heddle_plan_stage *g = &t->stage[i];

    for (uint32_t o = 0; o < g->shape->noptions; o++) {
        const struct heddle_plan_option *q = &g->shape->option[o];
        const uint32_t saved = units(t, q->saved);
        const float time = (float)(g->time[o] * t->scale);
        const float *col = i < l ? col_at(t, i + 1, k) : NULL;

        for (size_t m = need_option(t, i, l, q); m <= t->slots; m++) {
            const float s = time + (i < l ? col[(ptrdiff_t)m - (ptrdiff_t)saved] : 0.0f);

            out[m] = s < out[m] ? s : out[m];
        }
    }
}

static void finish_one(struct heddle_plan_cut_table *t, uint32_t i, uint32_t l0, uint32_t l)
{
    const size_t k = l - l0;
    float *out = col_at(t, i, k), *row = row_at(t, i, l);
    const float pass = t->pass[l + 1] - t->pass[i];

    for (uint32_t j = (i > l0 ? i : l0) + 1; j <= l; j++)
        add_split(t, out, row_at(t, i, j - 1), col_at(t, j, k), shift_at(t, i, j));
    if (i < l) {
        const uint32_t none = need_split(t, i, l);

        for (size_t m = 0; m < none && m < t->width; m++)
            out[m] = INFINITY;
    }
    add_options(t, i, l, k, out);
    for (size_t m = 0; m < t->width; m++)
        row[m] = out[m] + pass;
}

static void make_columns(struct heddle_plan_cut_table *t, uint32_t l0, uint32_t nb)
{
    for (uint32_t i = l0 + nb; i-- > 0;) {
        for (uint32_t k = 0; k < nb; k++)
            for (size_t m = 0; m < t->width; m++)
                col_at(t, i, k)[m] = INFINITY;
        if (i < l0) {
            struct heddle_minplus p = {.row = {row_at(t, i, i)},
                                       .row_step = t->width,
                                       .col_step = COLS * (t->pad + t->width),
                                       .shift = &t->shift[i * (t->n + (size_t)1) + i + 1],
                                       .n = l0 - i,
                                       .nrows = 1,
                                       .ncols = nb,
                                       .to = t->width};

            for (uint32_t k = 0; k < nb; k++) {
                p.col[k] = col_at(t, i + 1, k);
                p.out[0][k] = col_at(t, i, k);
            }
            t->minplus(&p);
        }
        for (uint32_t l = i > l0 ? i : l0; l < l0 + nb; l++)
            finish_one(t, i, l0, l);
    }
}

static bool table_init(struct heddle_plan_cut_table *t, struct heddle_scratch *mem)
{
    const size_t n = t->n, rows = n * (n + 1) / 2;

    t->width = ((size_t)t->slots + ALIGN) / ALIGN * ALIGN;
    t->pad = t->width + ALIGN;
    t->row = heddle_scratch_get(mem, rows * t->width, sizeof(*t->row));
    t->col = heddle_scratch_get(mem, n * COLS * (t->pad + t->width), sizeof(*t->col));
    t->shift = heddle_scratch_get(mem, n * (n + 1), sizeof(*t->shift));
    t->y = heddle_scratch_get(mem, n + 1, sizeof(*t->y));
    t->pass = heddle_scratch_get(mem, n + 1, sizeof(*t->pass));
    t->stack = heddle_scratch_get(mem, 3 * n + 8, sizeof(*t->stack));
    t->is_done = heddle_scratch_get(mem, n, sizeof(*t->is_done));
    return t->row != NULL && t->col != NULL && t->shift != NULL && t->y != NULL &&
           t->pass != NULL && t->stack != NULL && t->is_done != NULL;
}

static void table_start(struct heddle_plan_cut_table *t)
{
    double sum = 0, pass = 0;

    for (uint32_t i = 0; i < t->n; i++)
        sum += t->stage[i].pass + t->stage[i].time[0];
    t->scale = sum > 0 ? 1 / sum : 1;
    for (uint32_t i = 0; i < t->n; i++) {
        pass += t->stage[i].pass * t->scale;
        t->pass[i + 1] = (float)pass;
        for (uint32_t j = 0; j <= t->n; j++)
            t->shift[i * (t->n + (size_t)1) + j] =
                units(t, t->cuts->apart[i * (t->n + (size_t)1) + j]);
    }
    for (size_t i = 0; i < t->n * (size_t)COLS; i++)
        for (size_t m = 0; m < t->pad; m++)
            t->col[i * (t->pad + t->width) + m] = INFINITY;
}

heddle_status heddle_plan_cut_solve(const struct heddle_plan_cuts *cuts,
                                    const struct heddle_plan_stage *stage, uint64_t bytes,
                                    uint32_t slots, struct heddle_scratch *mem,
                                    struct heddle_plan_cut_table **out)
{
    struct heddle_plan_cut_table *t = heddle_scratch_get(mem, 1, sizeof(*t));

    if (t == NULL)
        return HEDDLE_ENOMEM;
    t->cuts = cuts;
    t->stage = stage;
    t->n = cuts->n;
    t->slots = slots;
    t->unit = bytes > 0 ? (double)bytes / slots : 1;
    t->minplus = heddle_minplus_choose();
    if (!table_init(t, mem))
        return HEDDLE_ENOMEM;
    table_start(t);
    for (uint32_t l0 = 0; l0 < t->n; l0 += COLS)
        make_columns(t, l0, t->n - l0 < COLS ? t->n - l0 : COLS);
    *out = t;
    return HEDDLE_OK;
}

/* ---- a plan out of it --------------------------------------------------------------- */

struct writer {
    struct heddle_plan_cut_table *t;
    uint32_t *op;
    uint32_t n, cap, nstack;
};

static void put(struct writer *w, uint32_t op)
{
    if (w->n < w->cap)
        w->op[w->n] = op;
    w->n += w->n <= w->cap;
}

static void push(struct writer *w, uint32_t i, uint32_t l, uint32_t m, uint32_t option)
{
    w->t->stack[w->nstack++] = (struct frame){i, l, m, option};
}

/* A forward part. On the first visit all of it; operations that run once take the
 * places that the order gives them. Later what is `needed`, or all (NULL). */
static void put_forward(struct writer *w, uint32_t i, const uint32_t *seq, uint32_t n,
                        const bool *needed)
{
    const struct heddle_plan_cuts *c = w->t->cuts;
    const struct heddle_plan_stage *g = &w->t->stage[i];
    const bool is_first = !w->t->is_done[i];
    uint32_t next = c->first[i];

    for (uint32_t q = 0; q < n; q++) {
        const uint32_t op = g->op[seq[q]];

        for (; is_first && next <= op; next++)
            if (c->is_kept[next])
                put(w, next);
        if (is_first || needed == NULL || needed[seq[q]])
            put(w, op);
    }
    for (; is_first && next < c->first[i + 1]; next++)
        if (c->is_kept[next])
            put(w, next);
    w->t->is_done[i] = true;
}

static void put_backward(struct writer *w, uint32_t i, const struct heddle_plan_option *o)
{
    const struct heddle_plan_stage *g = &w->t->stage[i];

    for (uint32_t q = 0; q < o->nb; q++)
        put(w, g->op[g->shape->seq[o->seq + o->nf + q]]);
}

/* C(i,l,m) without the sums of passes. */
static float value(const struct heddle_plan_cut_table *t, uint32_t i, uint32_t l, uint32_t m)
{
    return row_at(t, i, l)[m] - (t->pass[l + 1] - t->pass[i]);
}

static void solve_frame(struct writer *w, struct frame f)
{
    const struct heddle_plan_cut_table *t = w->t;
    const struct heddle_plan_stage *g = &t->stage[f.i];
    float best = INFINITY;
    uint32_t option = HEDDLE_PLAN_NONE, split = f.l;

    for (uint32_t o = 0; o < g->shape->noptions; o++) {
        const struct heddle_plan_option *q = &g->shape->option[o];
        const uint32_t saved = units(t, q->saved);
        float s = (float)(g->time[o] * t->scale);

        if (f.m < need_option(t, f.i, f.l, q) || (f.i < f.l && f.m < saved))
            continue;
        if (f.i < f.l)
            s += value(t, f.i + 1, f.l, f.m - saved);
        if (s < best) {
            best = s;
            option = o;
        }
    }
    if (f.i < f.l && f.m >= need_split(t, f.i, f.l))
        for (uint32_t j = f.i + 1; j <= f.l; j++) {
            const uint32_t shift = shift_at(t, f.i, j);
            const float s =
                f.m < shift ? INFINITY : row_at(t, f.i, j - 1)[f.m] + value(t, j, f.l, f.m - shift);

            if (s < best) {
                best = s;
                option = HEDDLE_PLAN_NONE;
                split = j;
            }
        }
    if (isinf(best)) { /* what the table says is lost in rounding */
        w->n = w->cap + 1;
        return;
    }
    if (option != HEDDLE_PLAN_NONE) {
        const struct heddle_plan_option *q = &g->shape->option[option];

        put_forward(w, f.i, &g->shape->seq[q->seq], q->nf, NULL);
        push(w, f.i, f.l, f.m, option);
        if (f.i < f.l)
            push(w, f.i + 1, f.l, f.m - units(t, q->saved), HEDDLE_PLAN_NONE);
        return;
    }
    for (uint32_t k = f.i; k < split; k++) {
        const struct heddle_plan_shape *h = t->stage[k].shape;

        put_forward(w, k, h->pass, h->npass, h->is_needed);
    }
    push(w, f.i, split - 1, f.m, HEDDLE_PLAN_NONE);
    push(w, split, f.l, f.m - shift_at(t, f.i, split), HEDDLE_PLAN_NONE);
}

bool heddle_plan_cut_trace(struct heddle_plan_cut_table *t, uint32_t slots, uint32_t *op,
                           uint32_t cap, uint32_t *n_out)
{
    struct writer w = {.t = t, .op = op, .cap = cap};

    if (slots > t->slots || isinf(row_at(t, 0, t->n - 1)[slots]))
        return false;
    memset(t->is_done, 0, t->n * sizeof(*t->is_done));
    push(&w, 0, t->n - 1, slots, HEDDLE_PLAN_NONE);
    while (w.nstack > 0 && w.n <= cap) {
        const struct frame f = t->stack[--w.nstack];

        if (f.option == HEDDLE_PLAN_NONE)
            solve_frame(&w, f);
        else
            put_backward(&w, f.i, &t->stage[f.i].shape->option[f.option]);
    }
    *n_out = w.n;
    return true;
}
