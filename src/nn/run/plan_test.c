/* SPDX-License-Identifier: BSD-3-Clause */
/* Into how many pieces a plan cuts its tasks. */
#include "nn/model_test.h"

enum { SIDE = 48 };

/* Pieces of a product of `rows` rows. */
static size_t pieces(unsigned rows, unsigned nworkers)
{
    static const char *const path = "plan.onnx";
    static struct wire_out g;
    const struct nn_opts o = {0};
    struct nn_model *m = NULL;
    struct nn_plan *p = NULL;
    struct nn_value in;
    size_t n;

    g.len = 0;
    put_port(&g, 11, "x", 2, DIM(rows, SIDE));
    put_weights(&g, "w", 2, DIM(SIDE, SIDE));
    put_node(&g, "MatMul", "x w", "y", "");
    put_port(&g, 12, "y", 0, NULL);
    end_model(path, &g, 17);
    CHECK_OK(heddle_nn_load(path, &o, &m));
    CHECK(remove(path) == 0);
    in = m->graph->value[m->graph->input[0]].declared;
    CHECK_OK(heddle_nn_plan(m->graph, &in, NULL, nworkers, &o, &p));
    CHECK_EQ(p->ntasks, 1);
    n = p->task[0].pieces;
    heddle_nn_plan_destroy(p);
    heddle_nn_unload(m);
    return n;
}

TEST(small_tasks_stay_whole)
{
    size_t last = 1;

    CHECK_EQ(pieces(8, 8), 1);
    CHECK_EQ(pieces(64, 8), 1);
    CHECK_EQ(pieces(1 << 13, 1), 1);
    CHECK_EQ(pieces(1 << 13, 2), 4);
    CHECK_EQ(pieces(1 << 13, 8), 16);
    for (unsigned rows = 8; rows <= 1 << 13; rows *= 2) {
        const size_t n = pieces(rows, 8);

        CHECK(n >= last && n <= 2 * last + 1); /* as the work grows */
        last = n;
    }
}

TEST_MAIN(small_tasks_stay_whole)
