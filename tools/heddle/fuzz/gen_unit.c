/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fuzz/gen_unit: random data: layouts, views into them, and which of them overlap.
 */
#include "fuzz/gen.h"

/* --- boxes --------------------------------------------------------------- */

/* Do two arithmetic progressions meet? Small numbers: by trying. */
static bool line_overlap(size_t af, size_t an, size_t as, size_t bf, size_t bn, size_t bs)
{
    for (size_t i = 0; i < an; i++) {
        const size_t v = af + i * as;

        if (v >= bf && (v - bf) % bs == 0 && (v - bf) / bs < bn)
            return true;
    }
    return false;
}

bool fuzz_overlap(const struct fuzz_box *a, const struct fuzz_box *b, unsigned ndim)
{
    for (unsigned d = 0; d < ndim; d++)
        if (!line_overlap(a->first[d], a->extent[d], a->step[d], b->first[d], b->extent[d],
                          b->step[d]))
            return false;
    return true;
}

struct fuzz_box fuzz_inside(const struct fuzz_box *abs, const struct fuzz_box *rel, unsigned ndim)
{
    struct fuzz_box b = {{0}, {0}, {0}};

    for (unsigned d = 0; d < ndim; d++) {
        b.first[d] = abs->first[d] + rel->first[d] * abs->step[d];
        b.step[d] = abs->step[d] * rel->step[d];
        b.extent[d] = rel->extent[d];
    }
    return b;
}

struct fuzz_box gen_box(struct gen *g, const struct heddle_layout *l)
{
    struct fuzz_box b = {{0}, {0}, {0}};

    for (unsigned d = 0; d < l->ndim; d++) {
        const size_t n = l->extent[d];
        size_t most;

        b.first[d] = chance(g, 40) ? 0 : below(g, n);
        b.step[d] = chance(g, 75) ? 1 : 1 + below(g, 3);
        most = (n - b.first[d] + b.step[d] - 1) / b.step[d];
        b.extent[d] = chance(g, 30) ? most : 1 + below(g, most);
    }
    return b;
}

/* --- units --------------------------------------------------------------- */

static void layout_strides(struct gen *g, struct fuzz_unit *u)
{
    unsigned order[FUZZ_DIMS] = {0, 1, 2};
    size_t at = chance(g, 15) ? 1 + below(g, 2) : 1;
    const unsigned n = u->layout.ndim;

    if (chance(g, 70)) { /* the last dimension varies fastest, or any */
        for (unsigned d = 0; d < n; d++)
            order[d] = n - 1 - d;
    } else {
        for (unsigned d = n; d-- > 1;) {
            const unsigned k = (unsigned)below(g, d + 1), was = order[d];

            order[d] = order[k];
            order[k] = was;
        }
    }
    for (unsigned i = 0; i < n; i++) {
        const unsigned d = order[i];

        u->layout.stride[d] = at;
        at *= u->layout.extent[d];
        if (chance(g, 25))
            at += below(g, 4);
    }
}

static void layout_small(struct gen *g, struct fuzz_unit *u)
{
    const size_t most = chance(g, 20) ? 600 : 120;

    u->count = 1;
    for (unsigned d = 0; d < u->layout.ndim; d++) {
        size_t room = most / u->count;

        if (u->layout.ndim > 1 && room > 24)
            room = 24;
        u->layout.extent[d] = 1 + below(g, room > 0 ? room : 1);
        u->count *= u->layout.extent[d];
    }
}

/* All of FUZZ_BIG, in few pieces or in many. */
static void layout_big(struct gen *g, struct fuzz_unit *u)
{
    u->count = 1;
    for (unsigned d = 0; d < u->layout.ndim; d++) {
        const size_t room = FUZZ_BIG / u->count;

        u->layout.extent[d] = d + 1 == u->layout.ndim ? room : 1 + below(g, room < 90 ? room : 90);
        u->count *= u->layout.extent[d];
    }
}

void gen_root(struct gen *g)
{
    static const enum heddle_dtype type[] = {HEDDLE_U8,  HEDDLE_I32,  HEDDLE_I64,
                                             HEDDLE_F16, HEDDLE_BF16, HEDDLE_F32,
                                             HEDDLE_F64, HEDDLE_C64,  HEDDLE_C128};
    struct fuzz_prog *p = g->p;
    struct fuzz_unit *u = &p->unit[p->nunits];

    *u = (struct fuzz_unit){.root = (int)p->nunits, .parent = -1};
    u->layout.dtype = type[below(g, sizeof(type) / sizeof(type[0]))];
    u->layout.ndim = 1 + (unsigned)below(g, FUZZ_DIMS);
    if (p->nunits == 0 && p->config.has_big)
        layout_big(g, u);
    else
        layout_small(g, u);
    if (p->nunits > 0 && chance(g, 30)) { /* one may stand for the other */
        const struct fuzz_unit *twin = &p->unit[below(g, p->nunits)];

        u->layout = twin->layout;
        u->count = twin->count;
    }
    for (unsigned d = 0; d < u->layout.ndim; d++) {
        u->abs.extent[d] = u->layout.extent[d];
        u->abs.step[d] = 1;
    }
    layout_strides(g, u);
    u->span = 1;
    for (unsigned d = 0; d < u->layout.ndim; d++)
        u->span += (u->layout.extent[d] - 1) * u->layout.stride[d];
    u->is_runtime = chance(g, p->config.device == FUZZ_DISK ? 85 : 35);
    u->has_sum = u->layout.dtype <= HEDDLE_I64;
    u->is_live = true;
    gen_emit(g, OP_ROOT, (int)p->nunits++);
}

void gen_slots(struct gen *g)
{
    struct fuzz_prog *p = g->p;
    const unsigned n = (unsigned)below(g, FUZZ_SLOTS + 1);

    for (unsigned i = 0; i < n; i++) {
        p->unit[p->nunits] =
            (struct fuzz_unit){.root = (int)p->nunits,
                               .parent = -1,
                               .layout = {.dtype = chance(g, 70) ? HEDDLE_I64 : HEDDLE_F64,
                                          .ndim = 1,
                                          .extent = {1},
                                          .stride = {1}},
                               .abs = {.extent = {1}, .step = {1}},
                               .count = 1,
                               .span = 1,
                               .is_runtime = chance(g, 35),
                               .is_live = true};
        p->unit[p->nunits].has_sum = p->unit[p->nunits].layout.dtype == HEDDLE_I64;
        p->slot[p->nslots++] = (int)p->nunits;
        gen_emit(g, OP_ROOT, (int)p->nunits++);
    }
}

void gen_view(struct gen *g)
{
    struct fuzz_prog *p = g->p;
    const int of = (int)below(g, p->nunits);
    struct fuzz_unit *parent = &p->unit[of], *u = &p->unit[p->nunits];

    if (!parent->is_live || p->nunits == FUZZ_UNITS || !has(g, PART_VIEWS))
        return;
    *u = (struct fuzz_unit){.root = parent->root, .parent = of};
    u->rel = gen_box(g, &parent->layout);
    u->abs = fuzz_inside(&parent->abs, &u->rel, parent->layout.ndim);
    u->layout = parent->layout;
    u->count = 1;
    for (unsigned d = 0; d < u->layout.ndim; d++) {
        u->layout.extent[d] = u->rel.extent[d];
        u->layout.stride[d] *= u->rel.step[d];
        u->count *= u->layout.extent[d];
        u->offset += u->abs.first[d] * p->unit[u->root].layout.stride[d];
    }
    u->has_sum = parent->has_sum;
    u->is_live = true;
    p->unit[u->root].has_views = true;
    gen_emit(g, OP_VIEW, (int)p->nunits++);
}

int gen_pick_unit(struct gen *g)
{
    struct fuzz_prog *p = g->p;

    for (unsigned i = 0; i < 20; i++) {
        const int u = (int)below(g, p->nunits);

        if (p->unit[u].is_live)
            return u;
    }
    return -1;
}
