/* SPDX-License-Identifier: BSD-3-Clause */
/* nn/problem: a network and a machine file, as module spread wants them. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "heddle/device.h"
#include "nn/place.h"

#define PROBLEM_FAIL(p, ...) (snprintf((p)->why, sizeof((p)->why), __VA_ARGS__), false)

static bool problem_links(struct problem *p, const heddle_machine *m, uint32_t nlinks)
{
    for (uint32_t i = 0; i < nlinks; i++) {
        struct heddle_machine_link l = {.size = sizeof(l)};

        if (heddle_machine_get_link(m, i, &l) != HEDDLE_OK)
            return PROBLEM_FAIL(p, "the machine file has no link %" PRIu32, i);
        if (l.from == 0 && l.to < HEDDLE_SPREAD_NODES) {
            p->memory[l.to].in_latency = l.latency_ns;
            p->memory[l.to].in_rate = l.bytes_per_ns;
        }
        if (l.to == 0 && l.from < HEDDLE_SPREAD_NODES) {
            p->memory[l.from].out_latency = l.latency_ns;
            p->memory[l.from].out_rate = l.bytes_per_ns;
        }
    }
    return true;
}

bool problem_machine(struct problem *p, const heddle_machine *m)
{
    struct heddle_machine_counts n = {.size = sizeof(n)};

    memset(p, 0, sizeof(*p));
    if (heddle_machine_describe(m, &n) != HEDDLE_OK || n.classes > HEDDLE_SPREAD_CLASSES ||
        n.nodes > HEDDLE_SPREAD_NODES)
        return PROBLEM_FAIL(p, "%" PRIu32 " classes and %" PRIu32 " memories are too many: %d each",
                            n.classes, n.nodes, HEDDLE_SPREAD_CLASSES);
    for (uint32_t r = 0; r < n.classes; r++) {
        struct heddle_machine_class c = {.size = sizeof(c)};

        if (heddle_machine_get_class(m, r, &c) != HEDDLE_OK)
            return PROBLEM_FAIL(p, "the machine file has no class %" PRIu32, r);
        p->nworkers[r] = c.nworkers;
        p->node[r] = c.node;
        p->kind[r] = c.kind;
        p->launch_ns[r] = c.launch_ns;
        memcpy(p->cls_name[r], c.name, sizeof(c.name));
    }
    for (uint32_t k = 0; k < n.nodes; k++) {
        struct heddle_machine_node node = {.size = sizeof(node)};

        if (heddle_machine_get_node(m, k, &node) != HEDDLE_OK)
            return PROBLEM_FAIL(p, "the machine file has no memory %" PRIu32, k);
        p->memory[k].bytes = node.bytes;
        memcpy(p->node_name[k], node.name, sizeof(node.name));
        /* A memory without a link of its own is reached over others: rates of no use here. */
        p->memory[k].in_rate = p->memory[k].out_rate = 1e-9;
    }
    p->m = (struct heddle_spread_machine){.size = sizeof(p->m),
                                          .nclasses = n.classes,
                                          .nnodes = n.nodes,
                                          .nworkers = p->nworkers,
                                          .node = p->node,
                                          .memory = p->memory};
    return problem_links(p, m, n.links);
}

/* The ns of a task on one core: as measured, else by the machine file. */
static double problem_core(const struct problem *p, const heddle_machine *m, uint32_t cls,
                           const struct heddle_nn_task *t)
{
    return t->ns > 0 ? t->ns + p->launch_ns[cls]
                     : heddle_machine_time(m, t->op, cls, t->bytes, t->flops);
}

bool problem_network(struct problem *p, const heddle_machine *m, struct heddle_nn_tasks *tasks,
                     double ratio)
{
    const uint32_t n = tasks->ntasks, c = p->m.nclasses;
    uint32_t core = c;

    p->tasks = *tasks;
    *tasks = (struct heddle_nn_tasks){.size = sizeof(*tasks)};
    p->time = calloc((size_t)n * c + 1, sizeof(*p->time));
    p->weights = calloc((size_t)n + 1, sizeof(*p->weights));
    if (p->time == NULL || p->weights == NULL)
        return PROBLEM_FAIL(p, "no memory for %" PRIu32 " operators", n);
    for (uint32_t r = c; r-- > 0;)
        core = p->kind[r] == HEDDLE_DEV_CPU ? r : core;
    if (ratio > 0 && core == c)
        return PROBLEM_FAIL(p, "--ratio compares with cores, and the machine has none");
    for (uint32_t i = 0; i < n; i++) {
        const struct heddle_nn_task *t = &p->tasks.task[i];

        p->weights[i] = t->weight_bytes;
        for (uint32_t r = 0; r < c; r++) {
            double ns = p->kind[r] == HEDDLE_DEV_CPU
                            ? problem_core(p, m, r, t)
                            : heddle_machine_time(m, t->op, r, t->bytes, t->flops);

            if (ratio > 0 && p->kind[r] != HEDDLE_DEV_CPU)
                ns = problem_core(p, m, core, t) / (ratio * p->nworkers[core]) + p->launch_ns[r];
            if (isnan(ns))
                return PROBLEM_FAIL(p,
                                    "operator %s has no time on class %s: the machine file needs "
                                    "rates or timings for it%s",
                                    t->op, p->cls_name[r],
                                    p->kind[r] == HEDDLE_DEV_CPU ? "" : ", or give --ratio");
            p->time[(size_t)i * c + r] = ns;
        }
    }
    p->g = (struct heddle_spread_graph){.size = sizeof(p->g),
                                        .nops = n,
                                        .nvalues = p->tasks.nvalues,
                                        .nreads = p->tasks.nreads,
                                        .time = p->time,
                                        .weights = p->weights,
                                        .bytes = p->tasks.bytes,
                                        .maker = p->tasks.maker,
                                        .value = p->tasks.value,
                                        .reader = p->tasks.reader};
    return true;
}

heddle_status problem_spread(const struct problem *p, const char *method, double slack,
                             struct heddle_spread_result *out, char *why)
{
    /* How much of a link, and how much longer a period that is worth. */
    const struct {
        double link, longer;
    } tries[] = {{1.0, 0.0}, {0.6, slack}, {0.8, slack}, {0.8, 0.1}, {0.6, 0.1}};
    struct heddle_spread_result all = {.size = sizeof(all)};
    heddle_status st = HEDDLE_OK;
    bool is_found = false;

    *out = (struct heddle_spread_result){.size = sizeof(*out)};
    for (unsigned i = 0; i < sizeof(tries) / sizeof(tries[0]) && st == HEDDLE_OK && !is_found;
         i++) {
        const struct heddle_spread_opts o = {.size = sizeof(o),
                                             .method = method,
                                             .slack = slack,
                                             .link = tries[i].link,
                                             .why = why,
                                             .why_bytes = PLACE_WHY};

        st = heddle_spread_make(&p->g, &p->m, &o, i == 0 ? &all : out);
        is_found = i > 0 && st == HEDDLE_OK && out->period <= all.period * (1.0 + tries[i].longer);
        if (i > 0 && st == HEDDLE_OK && !is_found)
            heddle_spread_fini(out);
        if (i > 0 && st == HEDDLE_ENOENT) /* a rule that fits with the whole link alone */
            st = HEDDLE_OK;
    }
    if (st == HEDDLE_OK && !is_found) {
        *out = all;
        all = (struct heddle_spread_result){.size = sizeof(all)};
    }
    heddle_spread_fini(&all);
    if (st == HEDDLE_OK) {
        const struct heddle_spread_opts o = {.size = sizeof(o), .why = why, .why_bytes = PLACE_WHY};

        st = heddle_spread_check(&p->g, &p->m, &o, out);
    }
    return st;
}

double problem_alone(const struct problem *p, uint32_t cls)
{
    const uint64_t limit = p->memory[p->node[cls]].bytes;
    uint64_t weights = 0;
    double sum = 0.0;

    for (uint32_t i = 0; i < p->g.nops; i++) {
        sum += p->g.time[(size_t)i * p->m.nclasses + cls];
        weights += p->weights[i];
    }
    return limit != 0 && weights > limit ? INFINITY : sum;
}

void problem_fini(struct problem *p)
{
    heddle_nn_tasks_fini(&p->tasks);
    free(p->time);
    free(p->weights);
    p->time = NULL;
    p->weights = NULL;
}
