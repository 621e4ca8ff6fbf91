/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Purpose: a kernel that was never measured, quick on a GPU, long on a core as its
 * declared cost tells: no core tries it while everybody waits. The same where the
 * first launches load code for longer than a core would take, and where nothing is
 * declared but the GPU has the data.
 */
#include <stdatomic.h>
#include <time.h>

#include "drive/cuda/kernels_test.h"
#include "heddle/cuda.h"
#include "heddle/heddle.h"
#include "tests/test.h"

enum { N = 64, HANDLES = 16, LENGTH = 3, CORE_MS = 400, LOAD_MS = 500 };

static _Atomic unsigned ncores, nloads;

static void sleep_ms(unsigned ms)
{
    struct timespec t = {.tv_sec = ms / 1000, .tv_nsec = (long)(ms % 1000) * 1000000};

    nanosleep(&t, NULL);
}

static heddle_status twice_core(struct heddle_exec *x)
{
    uint32_t *p = heddle_exec_ptr(x, 0);

    atomic_fetch_add(&ncores, 1);
    CHECK(heddle_exec_native(x, "stream") == NULL);
    sleep_ms(CORE_MS);
    for (size_t i = 0; i < heddle_exec_count(x, 0); i++)
        p[i] *= 2;
    return HEDDLE_OK;
}

static heddle_status twice_cuda(struct heddle_exec *x)
{
    const struct heddle_cuda_shape shape = {.grid = {1}, .block = {N}};
    const uint32_t n = (uint32_t)heddle_exec_count(x, 0);
    const struct heddle_cuda_arg args[] = {{NULL, 0}, {&n, 0}};
    void *kernel = NULL;
    heddle_status st = heddle_cuda_kernel(x, cuda_test_ptx, 0, "twice", &kernel);

    CHECK(heddle_exec_native(x, "stream") == heddle_cuda_stream(x));
    CHECK(heddle_exec_native(x, "no such thing") == NULL && heddle_exec_native(x, NULL) == NULL);
    if (atomic_load(&nloads) > 0) {
        atomic_fetch_sub(&nloads, 1);
        sleep_ms(LOAD_MS);
    }
    return st != HEDDLE_OK ? st : heddle_cuda_launch(x, kernel, &shape, args, 2);
}

static struct heddle_cost twice_cost(struct heddle_exec *x)
{
    (void)x;
    return (struct heddle_cost){.flops = 2e10, .bytes = 1e6};
}

static const heddle_kernel twice = {.size = sizeof(heddle_kernel),
                                    .name = "twice",
                                    .noperands = 1,
                                    .mode = {HEDDLE_RW},
                                    .variants = {{.device = HEDDLE_DEV_CPU, .run = twice_core},
                                                 {.device = HEDDLE_DEV_CUDA, .run = twice_cuda}},
                                    .cost = twice_cost};

/* Nothing is known of it. */
static const heddle_kernel stay = {.size = sizeof(heddle_kernel),
                                   .name = "stay",
                                   .noperands = 1,
                                   .mode = {HEDDLE_RW},
                                   .variants = {{.device = HEDDLE_DEV_CPU, .run = twice_core},
                                                {.device = HEDDLE_DEV_CUDA, .run = twice_cuda}}};

static const heddle_kernel go = {.size = sizeof(heddle_kernel),
                                 .name = "go",
                                 .noperands = 1,
                                 .mode = {HEDDLE_RW},
                                 .variants = {{.device = HEDDLE_DEV_CUDA, .run = twice_cuda}}};

static void run(unsigned loads, const char *sched)
{
    const struct heddle_ctx_opts o = {.size = sizeof(o),
                                      .nworkers = 4,
                                      .devices = "cuda0",
                                      .sched = sched,
                                      .model_dir = "",
                                      .ignore_env = true};
    static uint32_t mem[HANDLES][N];
    heddle_handle *h[HANDLES];
    heddle_ctx *ctx = NULL;

    if (heddle_ctx_create(&o, &ctx) != HEDDLE_OK)
        SKIP("there is no CUDA device here");
    atomic_store(&ncores, 0);
    atomic_store(&nloads, loads);
    for (unsigned i = 0; i < HANDLES; i++) {
        for (unsigned k = 0; k < N; k++)
            mem[i][k] = 1;
        CHECK_OK(heddle_handle_vector(ctx, mem[i], N, HEDDLE_I32, &h[i]));
    }
    for (unsigned round = 0; round < 2; round++) {
        for (unsigned k = 0; k < LENGTH; k++)
            for (unsigned i = 0; i < HANDLES; i++) {
                const struct heddle_call call = {.operand = {h[i]}};

                CHECK_OK(heddle_submit(ctx, &twice, &call));
            }
        CHECK_OK(heddle_wait(ctx));
    }
    for (unsigned i = 0; i < HANDLES; i++) {
        for (unsigned k = 0; k < N; k++)
            CHECK_EQ(mem[i][k], 1u << 2 * LENGTH);
        heddle_handle_unref(h[i]);
    }
    printf("     %s: %u on cores\n", sched, atomic_load(&ncores));
    CHECK_OK(heddle_ctx_destroy(ctx));
    CHECK_EQ(atomic_load(&ncores), 0);
}

TEST(no_core_tries)
{
    run(0, "lookahead");
    run(0, "heft");
}

TEST(loading_is_no_measurement)
{
    run(3, "lookahead");
}

/* Large handles of the runtime, which a kernel for GPUs alone has filled there. */
static void run_where(const char *sched)
{
    enum { LARGE = 8 << 20, FEW = 6 };
    const struct heddle_ctx_opts o = {.size = sizeof(o),
                                      .nworkers = 4,
                                      .devices = "cuda0",
                                      .sched = sched,
                                      .model_dir = "",
                                      .ignore_env = true};
    heddle_handle *h[FEW];
    heddle_ctx *ctx = NULL;

    if (heddle_ctx_create(&o, &ctx) != HEDDLE_OK)
        SKIP("there is no CUDA device here");
    atomic_store(&ncores, 0);
    for (unsigned i = 0; i < FEW; i++) {
        CHECK_OK(heddle_handle_vector(ctx, NULL, LARGE, HEDDLE_I32, &h[i]));
        CHECK_OK(heddle_submit(ctx, &go, &(struct heddle_call){.operand = {h[i]}}));
    }
    for (unsigned k = 0; k < LENGTH * FEW; k++)
        CHECK_OK(heddle_submit(ctx, &stay, &(struct heddle_call){.operand = {h[k % FEW]}}));
    CHECK_OK(heddle_wait(ctx));
    for (unsigned i = 0; i < FEW; i++)
        heddle_handle_unref(h[i]);
    printf("     %s: %u on cores\n", sched, atomic_load(&ncores));
    CHECK_OK(heddle_ctx_destroy(ctx));
    /* The first launches may take longer than to bring the data. */
    CHECK(atomic_load(&ncores) <= 3);
}

TEST(unknown_ones_stay_where_their_data_are)
{
    run_where("lookahead");
    run_where("heft");
}

TEST_MAIN(no_core_tries, loading_is_no_measurement, unknown_ones_stay_where_their_data_are)
