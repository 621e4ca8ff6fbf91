/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * panel: packing, and the loop over the tiles of a strip. Used by products, convolutions and
 * attention.
 *
 * Cache  STEP_FLOATS numbers of B per step: 128 KiB, which the second cache holds.
 */
#include "dnn/panel.h"

#include <string.h>

#include "base/compiler.h"

enum { STEP_FLOATS = 512 * 64, BLOCK_ROWS = 240, AHEAD_ROWS = 32 };

struct dnn_panels heddle_dnn_panels(const struct dnn_isa *isa, size_t k, size_t n)
{
    const size_t width = isa->nv * isa->lanes;
    const size_t count = (n + width - 1) / width;
    const size_t last = n - (count == 0 ? 0 : count - 1) * width;

    return (struct dnn_panels){k, n, width, count, (last + isa->lanes - 1) / isa->lanes};
}

void heddle_dnn_pack_panel(const struct dnn_isa *isa, const struct dnn_panels *p, size_t i,
                           const float *b, size_t row, size_t col, float alpha, float *out)
{
    const size_t nr = dnn_panel_nv(isa, p, i) * isa->lanes;
    const size_t here = dnn_min(p->n - i * p->width, nr);

    b += i * p->width * col;
    if (row == 1 && col != 1)
        isa->transpose(b, col, out, nr, here, p->k);
    for (size_t r = 0; r < p->k; r++) {
        float *o = out + r * nr;

        if (col == 1)
            memcpy(o, b + r * row, here * sizeof(float));
        for (size_t j = 0; col != 1 && row != 1 && j < here; j++)
            o[j] = b[r * row + j * col];
        memset(o + here, 0, (nr - here) * sizeof(float));
    }
    if (alpha != 1)
        isa->map1[DNN_LINEAR](alpha, 0, out, out, p->k * nr);
}

bool heddle_dnn_clamp(struct dnn_act act, float *lo, float *hi)
{
    *lo = act.fn == DNN_CLIP ? act.p : 0;
    *hi = act.fn == DNN_CLIP ? act.q : __builtin_inff();
    return act.fn == DNN_CLIP || act.fn == DNN_RELU;
}

static void activate(const struct dnn_strip *s, float *c, size_t ldc, size_t mr, size_t ncols)
{
    for (size_t i = 0; i < mr; i++)
        s->isa->map1[s->act.fn](s->act.p, s->act.q, c + i * ldc, c + i * ldc, ncols);
}

/* The parts of C and of the residual that a tile will need at its end. */
static void fetch(const struct dnn_strip *s, const struct dnn_tile *t, size_t mr)
{
    const size_t nr = s->nv * s->isa->lanes, line = DNN_ALIGN / sizeof(float);

    for (size_t i = 0; i < mr; i++)
        for (size_t j = 0; j < nr; j += line) {
            if (t->is_first)
                HEDDLE_PREFETCH_W(t->c + i * t->ldc + j);
            if (t->is_last && t->res != NULL)
                HEDDLE_PREFETCH(t->res + i * t->ldres + j);
        }
}

/* One pass over rows first .. last - 1: t->ntaps taps from `tap` on, t->k numbers of each. */
static void pass(const struct dnn_strip *s, struct dnn_tile *t, const size_t rows[2], size_t tap,
                 const float **a, bool is_act)
{
    const size_t most = s->isa->mr[s->nv];

    t->a = a;
    for (size_t row = rows[0]; row < rows[1];) {
        const size_t mr = dnn_min(most, rows[1] - row);

        s->rows(s->arg, row, mr, tap, t->ntaps, a);
        t->c = s->c + row * s->ldc;
        if (s->res != NULL)
            t->res = s->res + row * s->ldres;
        fetch(s, t, mr);
        if (s->is_dense && t->k == s->k && s->m > mr) {
            t->ahead[0] = a[0] + mr * s->k;
            t->ahead_step[0] = mr;
        }
        s->isa->tile[s->nv][mr](t);
        t->ahead[1] += t->ahead_step[1] * t->ntaps * t->k;
        if (is_act && t->is_last)
            activate(s, t->c, s->ldc, mr, s->ncols);
        row += mr;
    }
}

/* All rows of a block in steps through B: some taps at a time or, where a tap is longer than a
 * step, parts of one. Meanwhile the next step of B is fetched. */
static void passes(const struct dnn_strip *s, struct dnn_tile *t, const size_t rows[2],
                   const float **a, bool is_act)
{
    const size_t nr = s->nv * s->isa->lanes, step = STEP_FLOATS / nr;
    const size_t nk = s->k > step ? (s->k + step - 1) / step : 1;
    const size_t k = dnn_or_one((s->k + nk - 1) / nk);
    const size_t ntaps = nk > 1 ? 1 : dnn_or_one(step / dnn_or_one(s->k));
    const size_t ntiles = (rows[1] - rows[0] + s->isa->mr[s->nv] - 1) / s->isa->mr[s->nv];

    for (size_t tap = 0; tap < s->ntaps; tap += ntaps)
        for (size_t at = 0; at < s->k || at == 0; at += k) {
            t->ntaps = dnn_min(ntaps, s->ntaps - tap);
            t->k = dnn_min(k, s->k - at);
            t->a_at = at;
            t->b = s->b + (tap * s->k + at) * s->ldb;
            t->is_first = tap + at == 0;
            t->is_last = tap + t->ntaps == s->ntaps && at + t->k == s->k;
            t->ahead[0] = t->ahead[1] = t->b + t->ntaps * t->k * s->ldb;
            t->ahead_step[0] = 0;
            t->ahead_step[1] = nr / ntiles + 1;
            pass(s, t, rows, tap, a, is_act);
        }
}

/* A panel whose last vector is not full, or C that is transposed: tiles go through memory of their
 * own, where each vector is whole. */
static void by_copy(const struct dnn_strip *s, struct dnn_tile *t, const float **a, bool is_act)
{
    const size_t most = s->isa->mr[s->nv], nr = s->nv * s->isa->lanes;
    const size_t col = s->col != 0 ? s->col : 1;
    float own[DNN_MAX_MR * DNN_MAX_NV * 16] __attribute__((aligned(DNN_ALIGN)));
    float res[DNN_MAX_MR * DNN_MAX_NV * 16] __attribute__((aligned(DNN_ALIGN)));
    float bias[DNN_MAX_NV * 16] __attribute__((aligned(DNN_ALIGN)));

    if (s->bias != NULL) {
        memset(bias, 0, sizeof(bias));
        memcpy(bias, s->bias, s->ncols * sizeof(float));
        t->bias = bias;
    }
    t->a = a;
    t->c = own;
    t->ldc = t->ldres = nr;
    memset(res, 0, sizeof(res));
    for (size_t row = 0; row < s->m;) {
        const size_t mr = dnn_min(most, s->m - row);

        s->rows(s->arg, row, mr, 0, s->ntaps, a);
        t->res = s->res != NULL ? res : NULL;
        for (size_t i = 0; i < mr && s->res != NULL; i++)
            for (size_t j = 0; j < s->ncols; j++)
                res[i * nr + j] = s->res[(row + i) * s->ldres + j * col];
        s->isa->tile[s->nv][mr](t);
        if (is_act)
            activate(s, own, nr, mr, s->ncols);
        if (col == 1)
            for (size_t i = 0; i < mr; i++)
                memcpy(s->c + (row + i) * s->ldc, own + i * nr, s->ncols * sizeof(float));
        else
            for (size_t j = 0; j < s->ncols; j++)
                for (size_t i = 0; i < mr; i++)
                    s->c[(row + i) * s->ldc + j * col] = own[i * nr + j];
        row += mr;
    }
}

void heddle_dnn_strip(const struct dnn_strip *s, const float **a)
{
    const size_t nr = s->nv * s->isa->lanes;
    struct dnn_tile t = {.ntaps = s->ntaps,
                         .k = s->k,
                         .b = s->b,
                         .ldb = s->ldb,
                         .ldc = s->ldc,
                         .bias = s->bias,
                         .ldres = s->ldres,
                         .ahead = {s->b, s->b},
                         .is_first = true,
                         .is_last = true};
    bool is_act;

    t.is_clamped = heddle_dnn_clamp(s->act, &t.lo, &t.hi);
    is_act = !t.is_clamped && s->act.fn != DNN_COPY;
    if (s->ncols < nr || s->col != 0) {
        by_copy(s, &t, a, is_act);
    } else if (s->m <= s->isa->mr[s->nv] || s->res == s->c) {
        const size_t rows[2] = {0, s->m};

        for (unsigned i = 0; i < 2; i++) { /* B comes by once: fetch it far ahead */
            t.ahead[i] = s->b + AHEAD_ROWS * s->ldb + i * (nr / 2);
            t.ahead_step[i] = s->ldb;
        }
        pass(s, &t, rows, 0, a, is_act);
    } else {
        for (size_t row = 0; row < s->m; row += BLOCK_ROWS) {
            const size_t rows[2] = {row, dnn_min(s->m, row + BLOCK_ROWS)};

            passes(s, &t, rows, a, is_act);
        }
    }
}
