/* SPDX-License-Identifier: BSD-3-Clause */
/* nn/stages: a route as tasks. */
#include "nn/stages.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

/* level[op]: how often the class changes on the way to it, at most. */
static uint32_t stages_levels(const struct problem *p, const uint32_t *cls, uint32_t *level)
{
    uint32_t most = 0;

    for (uint32_t k = 0; k < p->g.nops; k++)
        level[k] = 0;
    for (bool again = true; again;) { /* reads are in any order */
        again = false;
        for (uint32_t i = 0; i < p->g.nreads; i++) {
            const uint32_t from = p->g.maker[p->g.value[i]], to = p->g.reader[i];

            if (from == UINT32_MAX || to == UINT32_MAX)
                continue;
            if (level[to] < level[from] + (cls[from] != cls[to])) {
                level[to] = level[from] + (cls[from] != cls[to]);
                again = true;
            }
        }
    }
    for (uint32_t k = 0; k < p->g.nops; k++)
        most = level[k] > most ? level[k] : most;
    return most + 1;
}

static bool stages_has(const uint32_t *v, uint32_t n, uint32_t x)
{
    for (uint32_t i = 0; i < n; i++)
        if (v[i] == x)
            return true;
    return false;
}

/* The values that cross the border of a stage; of[op]: its stage. */
static bool stages_operands(const struct problem *p, const uint32_t *of, uint32_t me,
                            struct stage *g)
{
    g->operand = calloc(2 * (size_t)p->g.nvalues + 1, sizeof(*g->operand));
    if (g->operand == NULL)
        return false;
    for (uint32_t i = 0; i < p->g.nreads; i++) {
        const uint32_t v = p->g.value[i], maker = p->g.maker[v];

        if (p->g.reader[i] != UINT32_MAX && of[p->g.reader[i]] == me &&
            (maker == UINT32_MAX || of[maker] != me) && !stages_has(g->operand, g->nin, v))
            g->operand[g->nin++] = v;
    }
    g->noperands = g->nin;
    for (uint32_t i = 0; i < p->g.nreads; i++) {
        const uint32_t v = p->g.value[i], maker = p->g.maker[v];

        if (maker != UINT32_MAX && of[maker] == me &&
            (p->g.reader[i] == UINT32_MAX || of[p->g.reader[i]] != me) &&
            !stages_has(g->operand + g->nin, g->noperands - g->nin, v))
            g->operand[g->noperands++] = v;
    }
    for (uint32_t i = 0; i < g->noperands; i++)
        g->bytes += p->g.bytes[g->operand[i]] > 0 ? p->g.bytes[g->operand[i]] : 1;
    g->bytes += g->streamed;
    return true;
}

static bool stages_results(const struct problem *p, struct route *r)
{
    r->result = calloc((size_t)p->g.nreads + 1, sizeof(*r->result));
    for (uint32_t i = 0; i < p->g.nreads && r->result != NULL; i++)
        if (p->g.reader[i] == UINT32_MAX && !stages_has(r->result, r->nresults, p->g.value[i])) {
            r->result[r->nresults++] = p->g.value[i];
            r->result_bytes += p->g.bytes[p->g.value[i]] > 0 ? p->g.bytes[p->g.value[i]] : 1;
        }
    return r->result != NULL;
}

void stages_kernel(heddle_kernel *k, const char *name, uint32_t kind)
{
    *k = (heddle_kernel){.size = sizeof(*k), .name = name};
    k->variants[0] = (struct heddle_variant){.device = (enum heddle_device)kind};
}

/* The operators of class k at level l, if there are any, become the next stage of r. */
static void stages_next(const struct problem *p, const uint32_t *cls, const uint8_t *is_streamed,
                        const uint32_t *level, uint32_t *of, struct route *r)
{
    struct stage *g = &r->stage[r->nstages];
    bool any = false;

    for (uint32_t i = 0; i < p->g.nops; i++) {
        if (level[i] != g->level || cls[i] != g->cls)
            continue;
        any = true;
        of[i] = r->nstages;
        g->ns += p->g.time[(size_t)i * p->m.nclasses + g->cls];
        if (is_streamed != NULL && is_streamed[(size_t)i * p->m.nnodes + p->node[g->cls]])
            g->streamed += p->g.weights[i];
    }
    r->nstages += any;
}

static bool stages_fill(const struct problem *p, uint32_t number, const uint32_t *cls,
                        const uint8_t *is_streamed, uint32_t *level, uint32_t *of, struct route *r)
{
    const uint32_t nlevels = stages_levels(p, cls, level), c = p->m.nclasses;

    r->stage = calloc((size_t)nlevels * c, sizeof(*r->stage));
    if (r->stage == NULL || !stages_results(p, r))
        return false;
    for (uint32_t l = 0; l < nlevels; l++)
        for (uint32_t k = 0; k < c && r->nstages < nlevels * c; k++) {
            r->stage[r->nstages].level = l;
            r->stage[r->nstages].cls = k;
            stages_next(p, cls, is_streamed, level, of, r);
        }
    for (uint32_t k = 0; k < r->nstages; k++) {
        struct stage *g = &r->stage[k];

        if (!stages_operands(p, of, k, g) || g->noperands > STAGES_OPERANDS - 1)
            return false;
        snprintf(g->name, sizeof(g->name), "r%" PRIu32 "s%" PRIu32, number, k);
        stages_kernel(&g->kernel, g->name, p->kind[g->cls]);
    }
    snprintf(r->name, sizeof(r->name), "take%" PRIu32, number);
    stages_kernel(&r->take, r->name, HEDDLE_DEV_OPENCL);
    return r->nresults < STAGES_OPERANDS;
}

bool stages_make(const struct problem *p, uint32_t number, const uint32_t *cls,
                 const uint8_t *is_streamed, struct route *r)
{
    uint32_t *level = calloc(p->g.nops, sizeof(*level)), *of = calloc(p->g.nops, sizeof(*of));
    const bool ok =
        level != NULL && of != NULL && stages_fill(p, number, cls, is_streamed, level, of, r);

    free(level);
    free(of);
    return ok;
}

void stages_free(struct route *r)
{
    for (uint32_t k = 0; k < r->nstages; k++)
        free(r->stage[k].operand);
    free(r->stage);
    free(r->result);
}
