/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_CORE_CHECK_RIG_TEST_H
#define HEDDLE_CORE_CHECK_RIG_TEST_H

/* A context with the access checker, and what it said last; for the tests of the checker. */
#include "heddle/heddle.h"
#include "tests/test.h"

static struct {
    heddle_ctx *ctx;
    char error[400]; /* the first one since start() */
} env;

static inline void on_message(void *user, enum heddle_severity severity, const char *text)
{
    (void)user;
    if (severity == HEDDLE_ERROR && env.error[0] == '\0')
        snprintf(env.error, sizeof(env.error), "%s", text);
}

static inline struct heddle_ctx_opts options(void)
{
    return (struct heddle_ctx_opts){.size = sizeof(struct heddle_ctx_opts),
                                    .check = HEDDLE_ON,
                                    .bind = HEDDLE_OFF,
                                    .model_dir = "",
                                    .message = on_message,
                                    .ignore_env = true};
}

static inline void start(void)
{
    const struct heddle_ctx_opts o = options();

    env.error[0] = '\0';
    CHECK_OK(heddle_ctx_create(&o, &env.ctx));
}

static inline void stop(void)
{
    CHECK_OK(heddle_ctx_destroy(env.ctx));
}

static inline heddle_handle *vector(void *ptr, size_t n, enum heddle_dtype t, const char *name)
{
    heddle_handle *h = NULL;

    CHECK_OK(heddle_handle_vector(env.ctx, ptr, n, t, &h));
    if (name != NULL)
        CHECK_OK(heddle_handle_set_name(h, name));
    return h;
}

#define KERNEL(fn, ...)                                                                            \
    {                                                                                              \
        .size = sizeof(heddle_kernel), .name = #fn,                                                \
        .noperands = sizeof((enum heddle_mode[]){__VA_ARGS__}) / sizeof(enum heddle_mode),         \
        .mode = {__VA_ARGS__}, .variants = {{.device = HEDDLE_DEV_CPU, .run = fn}},                \
    }

/* Runs one task and says how it ended. */
static inline heddle_status run(const heddle_kernel *k, heddle_handle *a, heddle_handle *b,
                                const void *arg, size_t bytes)
{
    const struct heddle_call call = {.operand = {a, b}, .arg = arg, .arg_bytes = bytes};

    CHECK_OK(heddle_submit(env.ctx, k, &call));
    return heddle_wait(env.ctx);
}

#define BLAMED(words) test_check(strstr(env.error, words) != NULL, TEST_AT, env.error)

/* Writes where the argument points. */
static inline heddle_status stray(struct heddle_exec *x)
{
    double *p;

    memcpy(&p, heddle_exec_arg(x), sizeof(p));
    *p += 1.0;
    return HEDDLE_OK;
}

static const heddle_kernel stray_rw = KERNEL(stray, HEDDLE_RW);

static inline heddle_status add_run(struct heddle_exec *x)
{
    const double *a = heddle_exec_ptr(x, 0);
    double *b = heddle_exec_ptr(x, 1);

    for (size_t i = 0; i < heddle_exec_count(x, 0); i++)
        b[i] += a[i];
    return HEDDLE_OK;
}

static const heddle_kernel add_r_rw = KERNEL(add_run, HEDDLE_R, HEDDLE_RW);

#endif /* HEDDLE_CORE_CHECK_RIG_TEST_H */
