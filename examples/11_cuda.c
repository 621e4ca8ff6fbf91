/* SPDX-License-Identifier: BSD-3-Clause */
/* 11_cuda: y = a x + y by blocks, on cores and GPUs; builds without CUDA. */
#include <heddle/cuda.h>
#include <heddle/heddle.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

enum { N = 1 << 16, BLOCKS = 32, STEPS = 4 };
static atomic_int ran[4]; /* tasks by kind of device */

static heddle_status axpy_cpu(struct heddle_exec *x)
{
    const float a = *(const float *)heddle_exec_arg(x);
    const float *v = heddle_exec_ptr(x, 0);
    float *y = heddle_exec_ptr(x, 1);

    for (size_t i = 0; i < heddle_exec_count(x, 1); i++)
        y[i] += a * v[i];
    ran[heddle_exec_device(x)]++;
    return HEDDLE_OK;
}

/* The kernel as PTX: the driver compiles it for the GPU that is there. */
static const char ptx[] = ".version 7.0\n.target sm_52\n.address_size 64\n"
                          ".visible .entry axpy(.param .f32 a, .param .u64 x, .param .u64 y,\n"
                          "                     .param .u32 n)\n"
                          "{ .reg .pred %p; .reg .f32 %f<3>; .reg .u32 %r<5>; .reg .u64 %d<2>;\n"
                          "  mov.u32 %r0, %ctaid.x; mov.u32 %r1, %ntid.x; mov.u32 %r2, %tid.x;\n"
                          "  mad.lo.u32 %r3, %r0, %r1, %r2;\n"
                          "  ld.param.u32 %r4, [n]; setp.ge.u32 %p, %r3, %r4; @%p ret;\n"
                          "  ld.param.u64 %d0, [x]; mad.wide.u32 %d0, %r3, 4, %d0;\n"
                          "  ld.param.u64 %d1, [y]; mad.wide.u32 %d1, %r3, 4, %d1;\n"
                          "  ld.global.f32 %f0, [%d0]; ld.global.f32 %f1, [%d1];\n"
                          "  ld.param.f32 %f2, [a]; fma.rn.f32 %f1, %f2, %f0, %f1;\n"
                          "  st.global.f32 [%d1], %f1; ret; }\n";

/* Puts the kernel on the stream of the task and does not wait for it. */
static heddle_status axpy_cuda(struct heddle_exec *x)
{
    const unsigned n = (unsigned)heddle_exec_count(x, 1);
    const struct heddle_cuda_shape shape = {.grid = {(n + 255) / 256}, .block = {256}};
    const struct heddle_cuda_arg args[] = {{heddle_exec_arg(x), 0}, {NULL, 0}, {NULL, 1}, {&n, 0}};
    void *kernel = NULL;
    heddle_status st = heddle_cuda_kernel(x, ptx, 0, "axpy", &kernel);

    if (st == HEDDLE_OK)
        st = heddle_cuda_launch(x, kernel, &shape, args, 4);
    ran[heddle_exec_device(x)]++;
    return st;
}

static const heddle_kernel axpy = {
    .size = sizeof(heddle_kernel),
    .name = "axpy",
    .noperands = 2,
    .mode = {HEDDLE_R, HEDDLE_RW},
    .variants = {{.device = HEDDLE_DEV_CPU, .run = axpy_cpu},
                 {.device = HEDDLE_DEV_CUDA, .run = axpy_cuda}},
};

int main(void)
{
    static float v[2][BLOCKS * N]; /* x, y */
    struct heddle_class_info c = {.size = sizeof(c)};
    heddle_handle *h[2][BLOCKS] = {{NULL}};
    heddle_ctx *ctx = NULL;
    heddle_status st = heddle_ctx_create(NULL, &ctx); /* GPUs, if there are */
    const float a = 2;
    int gpus = 0, wrong = 0;

    for (unsigned i = 0; heddle_ctx_get_class(ctx, i, &c) == HEDDLE_OK; i++)
        gpus += strcmp(c.kind, "cuda") == 0;
    if (gpus == 0)
        puts("no GPU: all on the cores; 'heddle info' says why");
    for (size_t i = 0; i < BLOCKS * N; i++)
        v[0][i] = (float)(i % 100);
    for (size_t i = 0; i < 2 * BLOCKS && st == HEDDLE_OK; i++)
        st = heddle_handle_vector(ctx, &v[i % 2][i / 2 * N], N, HEDDLE_F32, &h[i % 2][i / 2]);
    for (size_t i = 0; i < STEPS * BLOCKS && st == HEDDLE_OK; i++)
        st = heddle_submit(ctx, &axpy,
                           &(struct heddle_call){.operand = {h[0][i % BLOCKS], h[1][i % BLOCKS]},
                                                 .arg = &a,
                                                 .arg_bytes = sizeof(a)});
    st = st ? st : heddle_wait(ctx); /* brings y back to the caller's memory */
    for (size_t i = 0; i < 2 * BLOCKS; i++)
        heddle_handle_unref(h[i % 2][i / 2]);
    heddle_ctx_destroy(ctx);
    for (size_t i = 0; i < BLOCKS * N; i++)
        wrong += v[1][i] != STEPS * a * v[0][i];
    printf("%s: %d GPUs, %d tasks on cores, %d on GPUs, %d wrong\n", heddle_status_text(st), gpus,
           ran[HEDDLE_DEV_CPU], ran[HEDDLE_DEV_CUDA], wrong);
    return st == HEDDLE_OK && wrong == 0 ? 0 : 1;
}
