/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_NN_PREPARE_GRAPH_TEST_H
#define HEDDLE_NN_PREPARE_GRAPH_TEST_H

/* For tests of the passes: one graph after another, and the operators that its plan has. Tests
 * that run at the same time define GRAPH_FILE, the name of their file. */
#include "nn/model_test.h"
#include "nn/prepare/prepare.h"

#ifndef GRAPH_FILE
#define GRAPH_FILE "prepare.onnx"
#endif

/* How often operators are in a plan. */
struct census {
    const char *op[8];
    unsigned n[8], ntasks;
};

static inline void count_ops(const struct nn_graph *graph, const struct nn_value *in, void *to)
{
    struct census *c = to;
    const struct nn_opts o = {0};
    struct nn_plan *p = NULL;

    CHECK_OK(heddle_nn_plan(graph, in, NULL, 2, &o, &p));
    c->ntasks = p->ntasks;
    for (uint32_t i = 0; i < p->ntasks; i++)
        for (unsigned k = 0; c->op[k] != NULL; k++)
            c->n[k] += strcmp(p->task[i].node->op->name, c->op[k]) == 0;
    heddle_nn_plan_destroy(p);
}

static struct wire_out g;
static const char *const path = GRAPH_FILE;

static inline void begin(unsigned rank, const unsigned *dim)
{
    g.len = 0;
    put_port(&g, 11, "x", rank, dim);
}

static inline void node(const char *op, const char *in, const char *out, const char *attrs)
{
    put_node(&g, op, in, out, attrs);
}

/* The graph as it is now, with these outputs: as many tasks in all, and as many of `op`. */
static inline void expect(const char *outputs, unsigned ntasks, const char *op, unsigned n)
{
    struct census c = {.op = {op}};

    while (*outputs != '\0') {
        const size_t len = strcspn(outputs, " ");
        char name[40];

        (void)snprintf(name, sizeof(name), "%.*s", (int)len, outputs);
        put_port(&g, 12, name, 0, NULL);
        outputs += len + (outputs[len] == ' ');
    }
    end_model(path, &g, 17);
    compare_model(path, count_ops, &c);
    if (c.ntasks != ntasks || c.n[0] != n)
        printf("%u tasks, %u of %s\n", c.ntasks, c.n[0], op);
    CHECK_EQ(c.ntasks, ntasks);
    CHECK_EQ(c.n[0], n);
}

#endif /* HEDDLE_NN_PREPARE_GRAPH_TEST_H */
