/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_PLAN_PLAN_TEST_H
#define HEDDLE_PLAN_PLAN_TEST_H

/*
 * What the tests of plan share: random graphs, random programs of steps that can
 * be done, and a file with a text in it.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/faulty_test.h"
#include "base/rng.h"
#include "plan/plan.h"

#define WHY_BYTES 400

struct why {
    char text[WHY_BYTES];
    struct heddle_plan_opts o;
};

static inline struct heddle_plan_opts *why_init(struct why *w, const struct heddle_allocator *a)
{
    memset(w, 0, sizeof(*w));
    w->o = (struct heddle_plan_opts){
        .size = sizeof(w->o), .alloc = a, .why = w->text, .why_bytes = sizeof(w->text)};
    return &w->o;
}

/* The same as fields of an initialiser, and into options that are there. */
#define WHY(w, a) .alloc = why_init(w, a)->alloc, .why = (w)->text, .why_bytes = sizeof((w)->text)
#define WHY_OF(w) .alloc = (w)->o.alloc, .why = (w)->text, .why_bytes = sizeof((w)->text)

static inline void why_into(struct heddle_plan_solve_opts *o, struct why *w,
                            const struct heddle_allocator *a)
{
    why_init(w, a);
    o->alloc = a;
    o->why = w->text;
    o->why_bytes = sizeof(w->text);
}

/* ---- graphs -------------------------------------------------------------- */

enum graph_style {
    PLAIN = 1 /* one output each, no workspace, no flags: a .dag file */
};

struct graph_parts {
    struct heddle_plan_op op[64];
    struct heddle_plan_value value[64 * 4];
    uint32_t input[64 * 8];
    struct heddle_plan_graph g;
};

/* Without operations yet. */
static inline void parts_begin(struct graph_parts *p, const char *name)
{
    memset(p, 0, sizeof(*p));
    p->g = (struct heddle_plan_graph){
        .size = sizeof(p->g), .name = name, .ops = p->op, .values = p->value, .inputs = p->input};
}

static inline void parts_value(struct graph_parts *p, uint32_t op, uint64_t bytes, uint32_t flags)
{
    p->value[p->g.nvalues++] = (struct heddle_plan_value){.bytes = bytes, .op = op, .flags = flags};
}

/* Some of the values so far, sorted, each once. */
static inline void parts_inputs(struct graph_parts *p, struct heddle_rng *r, uint32_t id,
                                unsigned most)
{
    struct heddle_plan_op *op = &p->op[id];
    const uint32_t n = p->g.nvalues;

    op->first_input = p->g.ninputs;
    for (uint32_t v = 0; v < n && op->ninputs < most; v++) {
        /* recent values are read more often */
        const unsigned odds = v + 6 >= n ? 3 : 12;

        if (heddle_rng_below32(r, odds) == 0) {
            p->input[p->g.ninputs++] = v;
            op->ninputs++;
        }
    }
}

/* n <= 64 operations. */
static inline struct heddle_plan_graph *
random_graph(struct heddle_rng *r, uint32_t n, unsigned style, const struct heddle_plan_opts *o)
{
    static struct graph_parts p;
    struct heddle_plan_graph *g = NULL;
    const bool is_plain = (style & PLAIN) != 0;

    memset(&p, 0, sizeof(p));
    p.g.size = sizeof(p.g);
    p.g.name = "random";
    p.g.nops = n;
    p.g.ops = p.op;
    p.g.values = p.value;
    p.g.inputs = p.input;
    for (unsigned i = 0; !is_plain && i < heddle_rng_below32(r, 3); i++)
        parts_value(&p, HEDDLE_PLAN_NONE, heddle_rng_below(r, 6),
                    heddle_rng_below32(r, 3) == 0 ? HEDDLE_PLAN_AT_HOST : 0);
    for (uint32_t i = 0; i < n; i++) {
        struct heddle_plan_op *op = &p.op[i];
        const uint32_t nout = is_plain                         ? 1
                              : heddle_rng_below32(r, 10) == 0 ? 0
                                                               : 1 + heddle_rng_below32(r, 3);

        parts_inputs(&p, r, i, 6);
        op->time = (double)heddle_rng_below(r, 8);
        op->inplace = HEDDLE_PLAN_NONE;
        op->first_value = p.g.nvalues;
        op->nvalues = nout;
        op->work_bytes = is_plain ? 0 : heddle_rng_below(r, 4);
        if (!is_plain && heddle_rng_below32(r, 12) == 0)
            op->flags = HEDDLE_PLAN_ONCE;
        for (uint32_t k = 0; k < nout; k++)
            parts_value(&p, i, heddle_rng_below(r, 9),
                        !is_plain && heddle_rng_below32(r, 12) == 0 ? HEDDLE_PLAN_RESULT : 0);
        for (uint32_t k = 0; !is_plain && nout > 0 && k < op->ninputs; k++) {
            const uint32_t v = p.input[op->first_input + k];

            if (p.value[v].bytes >= p.value[op->first_value].bytes && heddle_rng_below32(r, 2) == 0)
                op->inplace = v;
        }
    }
    CHECK_OK(heddle_plan_graph_create(&p.g, o, &g));
    return g;
}

/* ---- jobs ---------------------------------------------------------------- */

struct rig {
    struct heddle_plan_machine m;
    struct heddle_plan_job job;
};

static inline void rig_init(struct rig *r, const struct heddle_plan_graph *g,
                            const struct heddle_plan_opts *o)
{
    memset(r, 0, sizeof(*r));
    r->m = (struct heddle_plan_machine){.size = sizeof(r->m),
                                        .budget = (uint64_t)1 << 40,
                                        .align = 1,
                                        .host = {2, 3, 0},
                                        .disk = {0.5, 1, 0}};
    r->job.g = g;
    r->job.m = &r->m;
    r->job.opts.base = *o;
    r->job.start_ns = heddle_clock_ns();
    r->job.deadline_ns = r->job.start_ns + 1000000000u;
}

/* ---- random programs ------------------------------------------------------- */

struct program {
    const struct heddle_plan_graph *g;
    struct heddle_rng *r;
    struct heddle_plan_draft *d;
    bool is_in[256], is_locked[256], is_at[3][256], is_done[64];
    unsigned budget; /* of steps: recomputation can go deep */
};

static inline void program_need(struct program *p, uint32_t v);

/* Whether it can be had again when it is not in memory any more. */
static inline bool program_comes_back(const struct program *p, uint32_t v)
{
    const struct heddle_plan_value *x = &p->g->values[v];

    return p->is_at[1][v] || p->is_at[2][v] ||
           (x->op != HEDDLE_PLAN_NONE && (p->g->ops[x->op].flags & HEDDLE_PLAN_ONCE) == 0);
}

/* What may happen between computations. */
static inline void program_play(struct program *p)
{
    const uint32_t v = heddle_rng_below32(p->r, p->g->nvalues);
    const unsigned level = 1 + heddle_rng_below32(p->r, 2);

    if (p->g->nvalues == 0)
        return;
    switch (heddle_rng_below32(p->r, 5)) {
    case 0:
        if (p->is_in[v] && !p->is_at[level][v]) {
            heddle_plan_draft_offload(p->d, v, level);
            p->is_at[level][v] = true;
        }
        break;
    case 1:
        if (!p->is_in[v] && p->is_at[level][v]) {
            heddle_plan_draft_prefetch(p->d, v, level);
            p->is_in[v] = true;
        }
        break;
    case 2:
        if (p->is_in[v] && p->is_at[level][v]) {
            heddle_plan_draft_forget(p->d, v, level);
            p->is_at[level][v] = false;
        }
        break;
    default:
        if (p->budget > 0 && p->is_in[v] && !p->is_locked[v] && program_comes_back(p, v)) {
            heddle_plan_draft_discard(p->d, v);
            p->is_in[v] = false;
            p->budget--;
        }
        break;
    }
}

static inline void program_compute(struct program *p, uint32_t id, uint64_t wanted)
{
    const struct heddle_plan_op *op = &p->g->ops[id];
    const bool all = (op->flags & HEDDLE_PLAN_ONCE) != 0 || heddle_rng_below32(p->r, 2) == 0;
    uint64_t mask = heddle_plan_all(op);
    bool locked[64];
    bool takes;

    for (uint32_t i = 0; i < op->ninputs; i++) {
        const uint32_t v = p->g->inputs[op->first_input + i];

        program_need(p, v);
        locked[i] = p->is_locked[v];
        p->is_locked[v] = true;
    }
    if (!all)
        mask &= heddle_rng_next(p->r) | 1 | wanted;
    for (uint32_t i = 0; i < op->ninputs; i++)
        p->is_locked[p->g->inputs[op->first_input + i]] = locked[i];
    takes = op->inplace != HEDDLE_PLAN_NONE && !p->is_in[op->first_value] &&
            !p->is_locked[op->inplace] && program_comes_back(p, op->inplace);
    heddle_plan_draft_compute(p->d, id, mask, takes);
    p->is_done[id] = true;
    for (uint32_t i = 0; i < op->nvalues; i++)
        if (mask >> i & 1)
            p->is_in[op->first_value + i] = true;
    if (takes)
        p->is_in[op->inplace] = false;
}

static inline void program_need(struct program *p, uint32_t v)
{
    if (p->is_in[v])
        return;
    for (unsigned l = 1; l <= 2; l++)
        if (p->is_at[l][v]) {
            heddle_plan_draft_prefetch(p->d, v, l);
            p->is_in[v] = true;
            return;
        }
    program_compute(p, p->g->values[v].op,
                    (uint64_t)1 << (v - p->g->ops[p->g->values[v].op].first_value));
}

/* Fills d with steps that heddle_plan_eval() accepts. */
static inline void random_program(const struct heddle_plan_graph *g, struct heddle_rng *r,
                                  struct heddle_plan_draft *d)
{
    static struct program p;

    memset(&p, 0, sizeof(p));
    p.g = g;
    p.r = r;
    p.d = d;
    p.budget = 3 * g->nops;
    for (uint32_t v = 0; v < g->nvalues; v++) {
        p.is_in[v] = heddle_plan_is_initial(&g->values[v]);
        p.is_at[1][v] = g->values[v].op == HEDDLE_PLAN_NONE && !p.is_in[v];
    }
    for (uint32_t i = 0; i < g->nops; i++) {
        for (unsigned k = heddle_rng_below32(r, 16); k > 0; k--)
            program_play(&p);
        if (!p.is_done[i])
            program_compute(&p, i, 0);
    }
    for (uint32_t v = 0; v < g->nvalues; v++)
        if ((g->values[v].flags & HEDDLE_PLAN_RESULT) != 0 && !p.is_at[1][v] && !p.is_at[2][v]) {
            program_need(&p, v);
            p.is_locked[v] = true;
        }
}

/* ---- files --------------------------------------------------------------- */

/* One file for the whole program, gone with it. */
static char tmp_path[64];

static inline void tmp_remove(void)
{
    (void)remove(tmp_path);
}

static inline void tmp_write(const void *text, size_t n)
{
    FILE *f;
    int fd;

    if (tmp_path[0] == '\0') {
        snprintf(tmp_path, sizeof(tmp_path), "%s/heddle-plan-XXXXXX",
                 access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
        fd = mkstemp(tmp_path);
        CHECK(fd >= 0);
        close(fd);
        CHECK_EQ(atexit(tmp_remove), 0);
    }
    f = fopen(tmp_path, "wb");
    CHECK(f != NULL);
    CHECK_EQ(fwrite(text, 1, n, f), n);
    CHECK_EQ(fclose(f), 0);
}

#endif /* HEDDLE_PLAN_PLAN_TEST_H */
