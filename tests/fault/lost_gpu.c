/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Purpose: a GPU that goes away in the middle, wherever that is: while tasks were
 * put behind others that have not ended, while some wait for room behind them,
 * before and during a recorded region. Every run ends, with the right numbers or
 * with a failure that says so; and what was launched ahead runs in order when
 * nothing goes wrong.
 */
#include <unistd.h>

#include "drive/cuda/kernels_test.h"
#include "heddle/cuda.h"
#include "heddle/graph.h"
#include "heddle/heddle.h"
#include "tests/test.h"

enum { HANG_S = 100, N = 64, HANDLES = 12, LENGTH = 20, LOSSES = 24 };

struct world {
    heddle_ctx *ctx;
    heddle_handle *h[HANDLES];
    uint32_t mem[HANDLES][N];
    bool is_refused; /* a task that nobody can run any more */
};

static heddle_status twice_core(struct heddle_exec *x)
{
    uint32_t *p = heddle_exec_ptr(x, 0);

    for (size_t i = 0; i < heddle_exec_count(x, 0); i++)
        p[i] *= 2;
    return HEDDLE_OK;
}

static heddle_status put(struct heddle_exec *x, const char *entry,
                         const struct heddle_cuda_arg *args, unsigned nargs)
{
    const struct heddle_cuda_shape shape = {.grid = {1}, .block = {N}};
    void *kernel = NULL;
    heddle_status st = heddle_cuda_kernel(x, cuda_test_ptx, 0, entry, &kernel);

    return st != HEDDLE_OK ? st : heddle_cuda_launch(x, kernel, &shape, args, nargs);
}

static heddle_status twice_cuda(struct heddle_exec *x)
{
    const uint32_t n = (uint32_t)heddle_exec_count(x, 0);
    const struct heddle_cuda_arg args[] = {{NULL, 0}, {&n, 0}};

    return put(x, "twice", args, 2);
}

static heddle_status spin_cuda(struct heddle_exec *x)
{
    static const uint64_t ns = 200000;
    const struct heddle_cuda_arg args[] = {{&ns, 0}};

    return put(x, "spin", args, 1);
}

static const heddle_kernel twice = {
    .size = sizeof(heddle_kernel),
    .name = "twice",
    .noperands = 1,
    .mode = {HEDDLE_RW},
    .variants = {{.device = HEDDLE_DEV_CPU, .run = twice_core},
                 {.device = HEDDLE_DEV_CUDA, .run = twice_cuda}},
};
static const heddle_kernel twice_gpu = {
    .size = sizeof(heddle_kernel),
    .name = "twice_gpu",
    .noperands = 1,
    .mode = {HEDDLE_RW},
    .variants = {{.device = HEDDLE_DEV_CUDA, .run = twice_cuda}},
};
static const heddle_kernel spin_gpu = {
    .size = sizeof(heddle_kernel),
    .name = "spin_gpu",
    .noperands = 1,
    .mode = {HEDDLE_RW},
    .variants = {{.device = HEDDLE_DEV_CUDA, .run = spin_cuda}},
};

/* False: there is no GPU here. */
static bool world_open(struct world *w, const char *faults)
{
    const struct heddle_ctx_opts o = {.size = sizeof(o),
                                      .nworkers = 2,
                                      .model_dir = "",
                                      .devices = "cuda",
                                      .faults = faults,
                                      .ignore_env = true};

    alarm(HANG_S);
    memset(w, 0, sizeof(*w));
    if (heddle_ctx_create(&o, &w->ctx) != HEDDLE_OK)
        return false;
    for (int i = 0; i < HANDLES; i++) {
        for (int k = 0; k < N; k++)
            w->mem[i][k] = 1;
        CHECK_OK(heddle_handle_vector(w->ctx, w->mem[i], N, HEDDLE_I32, &w->h[i]));
    }
    return true;
}

static void world_close(struct world *w)
{
    for (int i = 0; i < HANDLES; i++)
        heddle_handle_unref(w->h[i]);
    (void)heddle_ctx_destroy(w->ctx);
}

static void submit(struct world *w, const heddle_kernel *k, int i)
{
    const struct heddle_call call = {.operand = {w->h[i]}};
    const heddle_status st = heddle_submit(w->ctx, k, &call);

    CHECK(st == HEDDLE_OK || st == HEDDLE_EDEV || st == HEDDLE_ENOVARIANT);
    w->is_refused = w->is_refused || st != HEDDLE_OK;
}

/* All of them doubled so often; or somebody has said that it failed. */
static void check_all(struct world *w, heddle_status st, unsigned doublings)
{
    if (st != HEDDLE_OK) {
        CHECK(st == HEDDLE_EDEV || st == HEDDLE_ECANCELED || st == HEDDLE_ENOVARIANT);
        return;
    }
    for (int i = 0; i < HANDLES && !w->is_refused; i++)
        for (int k = 0; k < N; k++)
            CHECK_EQ(w->mem[i][k], UINT32_C(1) << doublings);
}

/* Chains of tasks that only the GPU can run, and chains that go on elsewhere. */
static void chains(struct world *w, const heddle_kernel *k)
{
    heddle_status st;

    for (int i = 0; i < HANDLES; i++)
        submit(w, &spin_gpu, i);
    for (int n = 0; n < LENGTH; n++)
        for (int i = 0; i < HANDLES; i++)
            submit(w, k, i);
    st = heddle_wait(w->ctx);
    check_all(w, st, LENGTH);
}

TEST(chains_in_order)
{
    struct world w;

    if (!world_open(&w, NULL))
        SKIP("no GPU here");
    for (int round = 0; round < 2; round++) {
        chains(&w, round == 0 ? &twice_gpu : &twice);
        for (int i = 0; i < HANDLES; i++)
            for (int k = 0; k < N; k++)
                w.mem[i][k] = 1;
    }
    CHECK(heddle_wait(w.ctx) == HEDDLE_OK);
    world_close(&w);
}

TEST(lost_among_chains)
{
    struct world w;
    char faults[64];

    for (int n = 1; n <= LOSSES; n++)
        for (int both = 0; both < 2; both++) {
            snprintf(faults, sizeof(faults), "lose cuda0 nth %d", n * 3);
            if (!world_open(&w, faults))
                SKIP("no GPU here");
            chains(&w, both != 0 ? &twice : &twice_gpu);
            world_close(&w);
        }
}

/* The launches: one task, the region as a whole, or its nodes. */
TEST(lost_around_a_region)
{
    struct world w;
    char faults[64];

    for (int n = 1; n <= 4; n++) {
        heddle_graph *g;
        heddle_status st;

        snprintf(faults, sizeof(faults), "lose cuda0 nth %d", n);
        if (!world_open(&w, faults))
            SKIP("no GPU here");
        CHECK_OK(heddle_graph_begin(w.ctx, &g));
        for (int i = 0; i < 2 * HANDLES; i++)
            CHECK_OK(heddle_graph_submit(g, &twice,
                                         &(struct heddle_call){.operand = {w.h[i % HANDLES]}}));
        CHECK_OK(heddle_graph_end(g));
        submit(&w, &twice_gpu, 0);
        for (int i = 1; i < HANDLES; i++)
            submit(&w, &twice, i);
        CHECK_OK(heddle_graph_launch(g, NULL));
        st = heddle_wait(w.ctx);
        check_all(&w, st, 3);
        heddle_graph_unref(g);
        world_close(&w);
    }
}

TEST_MAIN(chains_in_order, lost_among_chains, lost_around_a_region)
