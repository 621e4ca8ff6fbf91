/* SPDX-License-Identifier: BSD-3-Clause */
/* 10_virtual: one program on this machine and, in virtual time, on another. */
#include <heddle/heddle.h>
#include <stdio.h>
#include <string.h>

enum { N = 384, NB = 96, NT = N / NB };
static float m[3][N * N]; /* A, B, C */

/* Strides are asked for: a tile of the caller's has gaps, a copy has none. */
static heddle_status gemm_run(struct heddle_exec *x)
{
    const float *a = heddle_exec_ptr(x, 0), *b = heddle_exec_ptr(x, 1);
    float *c = heddle_exec_ptr(x, 2);
    size_t ld = heddle_exec_layout(x, 2)->stride[1]; /* of all three */

    for (size_t j = 0; j < NB; j++)
        for (size_t k = 0; k < NB; k++)
            for (size_t i = 0; i < NB; i++)
                c[i + j * ld] += a[i + k * ld] * b[k + j * ld];
    return HEDDLE_OK;
}

/* A simulated accelerator may be given a C function, or none. */
static const heddle_kernel gemm = {
    .size = sizeof(heddle_kernel),
    .name = "gemm",
    .noperands = 3,
    .mode = {HEDDLE_R, HEDDLE_R, HEDDLE_RW},
    .variants = {{.device = HEDDLE_DEV_CPU, .run = gemm_run},
                 {.device = HEDDLE_DEV_CUDA, .run = gemm_run}},
};

/* C = A B by tiles, in a context with these options. */
static heddle_status multiply(const struct heddle_ctx_opts *o, struct heddle_ctx_stats *s)
{
    heddle_handle *t[3][NT][NT] = {{{NULL}}};
    heddle_ctx *ctx = NULL;
    heddle_status st = heddle_ctx_create(o, &ctx);

    for (size_t i = 0; i < 3 * NT * NT && st == HEDDLE_OK; i++) {
        size_t k = i / (NT * NT), p = i / NT % NT, q = i % NT;
        st = heddle_handle_matrix(ctx, &m[k][p * NB + q * NB * N], NB, NB, N, HEDDLE_F32,
                                  &t[k][p][q]);
    }
    for (size_t i = 0; i < NT * NT * NT && st == HEDDLE_OK; i++) {
        size_t k = i / (NT * NT), p = i / NT % NT, q = i % NT;
        st = heddle_submit(ctx, &gemm,
                           &(struct heddle_call){.operand = {t[0][p][k], t[1][k][q], t[2][p][q]}});
    }
    st = st ? st : heddle_wait(ctx);
    (void)heddle_ctx_get_stats(ctx, s);
    for (size_t i = 0; i < 3 * NT * NT; i++)
        heddle_handle_unref(t[i / (NT * NT)][i / NT % NT][i % NT]);
    heddle_ctx_destroy(ctx);
    return st;
}

int main(int argc, char **argv)
{
    const char *file = argc > 1 ? argv[1] : "examples/machines/laptop.machine";
    const char *slow = "slow gpu0 at_ms 0.5 factor 10";
    struct heddle_ctx_opts run[] = {
        {.devices = "none"},                     /* here, cores only */
        {.machine = file},                       /* there */
        {.machine = file, .devices = "none"},    /* its cores alone */
        {.machine = file, .execute = HEDDLE_ON}, /* with results */
        {.machine = file, .execute = HEDDLE_ON, .faults = slow},
    };
    int bad = 0;

    for (size_t i = 0; i < N; i++)
        m[0][i * (N + 1)] = m[1][i * (N + 1)] = 2; /* both are 2 I */
    for (size_t r = 0; r < sizeof(run) / sizeof(run[0]); r++) {
        struct heddle_ctx_stats s = {.size = sizeof(s)};
        heddle_status st;
        size_t wrong = 0;

        run[r].size = sizeof(run[r]);
        run[r].ignore_env = true;
        memset(m[2], 0, sizeof(m[2]));
        st = multiply(&run[r], &s);
        for (size_t i = 0; i < N * N; i++)
            wrong += m[2][i] != (float)(i % N == i / N ? 4 : 0);
        printf("run %zu: %s, %.3f virtual ms, %.2f MB copied, C is %s\n", r, heddle_status_text(st),
               (double)s.virtual_ns / 1e6, (double)s.copied_bytes / 1e6,
               wrong == 0 ? "right" : "not computed");
        bad += st != HEDDLE_OK || (wrong == 0) != (r != 1 && r != 2);
    }
    return bad != 0;
}
