/* SPDX-License-Identifier: BSD-3-Clause */
/* Kernels from PTX on a device, or on the stand-in; and what is declined. */
#include "launch/launch.h"

#include <string.h>

#include "tests/test.h"

/* p[0] = v; the stand-in knows it by its name. */
static const char store_ptx[] = ".version 6.4\n"
                                ".target sm_75\n"
                                ".address_size 64\n"
                                ".visible .entry store(.param .u64 p, .param .u32 v)\n"
                                "{\n"
                                "  .reg .b32 %r<2>; .reg .b64 %rd<3>;\n"
                                "  ld.param.u64 %rd1, [p];\n"
                                "  ld.param.u32 %r1, [v];\n"
                                "  cvta.to.global.u64 %rd2, %rd1;\n"
                                "  st.global.u32 [%rd2], %r1;\n"
                                "  ret;\n"
                                "}\n";

static heddle_status found;

static heddle_status cuda_store(struct heddle_exec *x)
{
    void *p = heddle_exec_ptr(x, 0), *function = NULL;
    const uint32_t v = 42;
    const struct heddle_cuda_shape one = launch_shape(1, 1);
    const void *const many[LAUNCH_ARGS + 1] = {&p, &v};

    CHECK_STATUS(heddle_launch_find(x, store_ptx, "no_such_kernel", &function), HEDDLE_EDECLINED);
    CHECK_OK(heddle_launch_find(x, store_ptx, "store", &function));
    CHECK_STATUS(heddle_launch_put(x, function, &one, many, LAUNCH_ARGS + 1), HEDDLE_EINVAL);
    return heddle_launch(x, store_ptx, "store", &one, LAUNCH_VALUES(&p, &v));
}

static heddle_status run_declined(struct heddle_exec *x)
{
    void *function = NULL;

    found = heddle_launch_find(x, store_ptx, "store", &function);
    return HEDDLE_OK;
}

static const heddle_kernel kernel_store = {
    .size = sizeof(heddle_kernel),
    .name = "store",
    .noperands = 1,
    .mode = {HEDDLE_W},
    .variants = {{.device = HEDDLE_DEV_CUDA, .run = cuda_store}}};

static const heddle_kernel kernel_core = {
    .size = sizeof(heddle_kernel),
    .name = "core",
    .noperands = 1,
    .mode = {HEDDLE_RW},
    .variants = {{.device = HEDDLE_DEV_CPU, .run = run_declined}}};

static heddle_status run_on(const char *devices, const heddle_kernel *kernel, uint32_t *p)
{
    heddle_status st;
    const struct heddle_ctx_opts o = {
        .size = sizeof(o), .nworkers = 1, .devices = devices, .model_dir = ""};
    heddle_handle *h;
    heddle_ctx *ctx;

    CHECK_OK(heddle_ctx_create(&o, &ctx));
    CHECK_OK(heddle_handle_vector(ctx, p, 1, HEDDLE_I32, &h));
    CHECK_OK(heddle_submit(ctx, kernel, &(struct heddle_call){.operand = {h}}));
    st = heddle_wait(ctx);
    heddle_handle_unref(h);
    (void)heddle_ctx_destroy(ctx);
    return st;
}

TEST(on_a_device)
{
    uint32_t v = 7;

    CHECK_OK(run_on("cuda", &kernel_store, &v));
    CHECK_EQ(v, 42);
}

TEST(on_a_core)
{
    uint32_t v = 7;

    found = HEDDLE_OK;
    (void)run_on("none", &kernel_core, &v); /* the sentence on it is the context's */
    CHECK_STATUS(found, HEDDLE_EDECLINED);
    CHECK_EQ(v, 7);
}

TEST_MAIN(on_a_device, on_a_core)
