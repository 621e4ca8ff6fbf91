/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * gen_graph: recorded regions and their launches.
 *
 * Invariants (1) what is bound in the place of a recorded unit has its shape and
 *                touches nothing else that the region uses
 */
#include <string.h>

#include "gen.h"

static bool gen_graph_uses(const struct prog_graph *g, int unit)
{
    for (unsigned i = 0; i < g->ntasks; i++)
        for (unsigned k = 0; k < g->task[i]->nops; k++)
            if (g->task[i]->op[k].unit == unit)
                return true;
    return false;
}

/* Does `unit` share an element with anything that the graph uses? */
static bool gen_graph_touches(const struct prog *p, const struct prog_graph *g, int unit)
{
    for (int i = 0; i < (int)p->nunits; i++)
        if (p->unit[i].root == p->unit[unit].root && gen_graph_uses(g, i) &&
            prog_box_overlap(&p->unit[i].abs, &p->unit[unit].abs, p->unit[i].layout.ndim))
            return true;
    return false;
}

static bool gen_same_shape(const struct prog_unit *a, const struct prog_unit *b)
{
    return a->layout.dtype == b->layout.dtype && a->layout.ndim == b->layout.ndim &&
           memcmp(a->layout.extent, b->layout.extent,
                  a->layout.ndim * sizeof(a->layout.extent[0])) == 0;
}

static void gen_bindings(struct gen *g, const struct prog_graph *graph, struct prog_launch *l)
{
    struct prog *p = g->p;

    for (unsigned try = 0; try < 60 && l->nbindings < PROG_AFTER; try++) {
        const int rec = (int)prog_below(p, p->nunits);
        const int act = (int)prog_below(p, p->nunits);
        bool is_ok = p->unit[act].is_live && gen_graph_uses(graph, rec) &&
                     gen_same_shape(&p->unit[rec], &p->unit[act]) &&
                     !gen_graph_touches(p, graph, act);

        for (unsigned i = 0; i < l->nbindings; i++)
            if (l->recorded[i] == rec || p->unit[l->actual[i]].root == p->unit[act].root)
                is_ok = false;
        for (unsigned i = 0; is_ok && i < graph->ntasks; i++)
            for (unsigned k = 0; k < graph->task[i]->nops; k++)
                if (graph->task[i]->op[k].unit == rec &&
                    graph->task[i]->op[k].mode == HEDDLE_SCRATCH)
                    is_ok = false; /* not a handle of the region, perhaps */
        if (!is_ok)
            continue;
        l->recorded[l->nbindings] = rec;
        l->actual[l->nbindings++] = act;
    }
}

static void gen_launch(struct gen *g)
{
    struct prog *p = g->p;
    const int n = p->ngraphs == 0 ? -1 : (int)prog_below(p, (size_t)p->ngraphs);
    struct prog_launch *l;

    if (n < 0 || p->graph[n].ntasks == 0)
        return;
    l = prog_alloc(p, 1, sizeof(*l));
    l->task = prog_add_task(p);
    l->task->priority = (int)prog_below(p, 5);
    l->passes = gen_chance(g, 75) ? 1 : 1 + (unsigned)prog_below(p, 4);
    if (gen_chance(g, 40))
        gen_options(g, l->task);
    if (gen_chance(g, 50))
        gen_bindings(g, &p->graph[n], l);
    while (l->nargs < PROG_AFTER && gen_chance(g, 50)) {
        struct prog_task copy = {.arg = NULL};
        const size_t i = prog_below(p, p->graph[n].ntasks);

        copy.arg_bytes = p->graph[n].task[i]->arg_bytes;
        copy.arg = prog_alloc(p, copy.arg_bytes, 1);
        gen_arg(p, &copy);
        for (unsigned k = 0; k < l->nargs; k++)
            if (l->index[k] == i)
                copy.arg = NULL; /* once is enough */
        if (copy.arg == NULL)
            break;
        l->index[l->nargs] = i;
        l->arg[l->nargs++] = copy.arg;
    }
    gen_emit(g, (struct prog_op){.kind = OP_LAUNCH, .a = n, .launch = l});
}

void gen_graph(struct gen *g)
{
    struct prog *p = g->p;
    struct prog_graph *graph = &p->graph[p->ngraphs];
    unsigned n;

    if (!gen_has(WITH_GRAPHS))
        return;
    if (p->ngraphs > 0 && (p->ngraphs == 8 || gen_chance(g, 70))) {
        gen_launch(g);
        return;
    }
    n = (unsigned)prog_below(p, 12);
    graph->task = prog_alloc(p, n, sizeof(struct prog_task *));
    for (unsigned i = 0; i < n; i++)
        graph->task[graph->ntasks++] = gen_graph_task(p);
    gen_emit(g, (struct prog_op){.kind = OP_RECORD, .a = p->ngraphs++});
}
