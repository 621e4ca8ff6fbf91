/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_TESTS_FAULT_BAD_INPUT_H
#define HEDDLE_TESTS_FAULT_BAD_INPUT_H

/* What bad_input.c and bad_place.c share: a context with data, and kernels. */
#include "heddle/heddle.h"
#include "tests/test.h"

enum { HANG_S = 60, N = 8 };

/* A context with a vector and a matrix on memory of the test. */
struct world {
    heddle_ctx *ctx;
    heddle_handle *vec, *mat;
    double vec_mem[N], mat_mem[N * N];
};

static inline void world_open(struct world *w, unsigned nworkers)
{
    const struct heddle_ctx_opts opts = {
        .size = sizeof(opts), .nworkers = nworkers, .model_dir = "", .ignore_env = true};

    alarm(HANG_S);
    memset(w, 0, sizeof(*w));
    CHECK_OK(heddle_ctx_create(&opts, &w->ctx));
    CHECK_OK(heddle_handle_vector(w->ctx, w->vec_mem, N, HEDDLE_F64, &w->vec));
    CHECK_OK(heddle_handle_matrix(w->ctx, w->mat_mem, N, N, 0, HEDDLE_F64, &w->mat));
}

/* Refused calls have left nothing: the context is idle and ends well. */
static inline void world_close(struct world *w)
{
    CHECK_OK(heddle_wait(w->ctx));
    heddle_handle_unref(w->vec);
    heddle_handle_unref(w->mat);
    CHECK_OK(heddle_ctx_destroy(w->ctx));
}

static inline void check_said(heddle_ctx *ctx, heddle_status got, heddle_status want,
                              const char *word, const char *file, int line, const char *what)
{
    struct heddle_error e = {.size = sizeof(e)};

    test_check_status(got, want, file, line, what);
    CHECK_OK(heddle_ctx_error(ctx, &e));
    test_check_status(e.status, want, file, line, what);
    if (strstr(e.message, word) != NULL && e.message[0] != '\0')
        return;
    printf("%s:%d: no \"%s\" in: %s\n", file, line, word, e.message);
    test_die();
}

/* The call is refused, and the sentence has the word. */
#define CHECK_SAID(ctx, expr, want, word) check_said(ctx, expr, want, word, TEST_AT, #expr)
#define CHECK_EINVAL(expr)                CHECK_STATUS(expr, HEDDLE_EINVAL)

static inline heddle_status run_nothing(struct heddle_exec *x)
{
    (void)x;
    return HEDDLE_OK;
}

#define KERNEL(id, n, op_mode, fn, ngang)                                                          \
    static const heddle_kernel id = {                                                              \
        .size = sizeof(heddle_kernel),                                                             \
        .name = #id,                                                                               \
        .noperands = n,                                                                            \
        .mode = {op_mode},                                                                         \
        .variants = {{.device = HEDDLE_DEV_CPU, .run = fn, .gang = ngang}}}

KERNEL(k_none, 0, HEDDLE_R, run_nothing, 0);
KERNEL(k_rw, 1, HEDDLE_RW, run_nothing, 0);
KERNEL(k_r, 1, HEDDLE_R, run_nothing, 0);
KERNEL(k_reduce, 1, HEDDLE_REDUCE, run_nothing, 0);
KERNEL(k_gang, 0, HEDDLE_R, run_nothing, 2);

#endif /* HEDDLE_TESTS_FAULT_BAD_INPUT_H */
