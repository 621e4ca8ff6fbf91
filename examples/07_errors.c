/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * 07_errors: failures are values. A task that fails cancels what depends on
 * it and nothing else; heddle_wait() returns the first failure and the context
 * has its sentence. A task may also be tried again by another variant.
 */
#include <heddle/heddle.h>
#include <stdio.h>
#include <string.h>

static heddle_status root_cpu(struct heddle_exec *x)
{
    int *v = heddle_exec_ptr(x, 0);

    if (*v < 0)
        return heddle_exec_fail(x, HEDDLE_ETASK, "the number is negative");
    *v += 1;
    return HEDDLE_OK;
}

static const heddle_kernel root = {
    .size = sizeof(heddle_kernel),
    .name = "root",
    .noperands = 1,
    .mode = {HEDDLE_RW},
    .variants = {{.device = HEDDLE_DEV_CPU, .run = root_cpu}},
};

static heddle_status hasty_cpu(struct heddle_exec *x)
{
    (void)x;
    return HEDDLE_EDECLINED; /* nothing was written: try another variant */
}

static const heddle_kernel careful = {
    .size = sizeof(heddle_kernel),
    .name = "careful",
    .noperands = 1,
    .mode = {HEDDLE_RW},
    .variants = {{.name = "hasty", .device = HEDDLE_DEV_CPU, .run = hasty_cpu},
                 {.name = "slow", .device = HEDDLE_DEV_CPU, .run = root_cpu}},
};

static heddle_status submit(heddle_ctx *ctx, const heddle_kernel *k, heddle_handle *h,
                            const char *name)
{
    struct heddle_task_opts opts = {.size = sizeof(opts), .name = name, .retries = 1};

    return heddle_submit(ctx, k, &(struct heddle_call){.operand = {h}, .opts = &opts});
}

static int check(const char *what, int is_right)
{
    printf("%s: %s\n", what, is_right ? "as expected" : "WRONG");
    return is_right;
}

int main(void)
{
    int v[3] = {-1, 10, 20}, ok;
    heddle_handle *h[3] = {NULL};
    heddle_ctx *ctx = NULL;
    struct heddle_error e = {.size = sizeof(e)};
    heddle_status st = heddle_ctx_create(NULL, &ctx);

    for (int i = 0; i < 3 && st == HEDDLE_OK; i++)
        st = heddle_handle_vector(ctx, &v[i], 1, HEDDLE_I32, &h[i]);
    if (st == HEDDLE_OK)
        st = submit(ctx, &root, h[0], "bad"); /* fails when it runs */
    if (st == HEDDLE_OK)
        st = submit(ctx, &root, h[0], "dependent"); /* cancelled */
    if (st == HEDDLE_OK)
        st = submit(ctx, &root, h[1], "bystander"); /* runs */
    if (st == HEDDLE_OK)
        st = submit(ctx, &careful, h[2], "second try"); /* runs */
    ok = check("submission", st == HEDDLE_OK);
    ok &= check("a NULL kernel", heddle_submit(ctx, NULL, NULL) < 0);
    st = heddle_wait(ctx);
    ok &= check("wait", st == HEDDLE_ETASK);
    st = heddle_ctx_error(ctx, &e);
    printf("  task '%s', kernel '%s': %s\n", e.task_name, e.kernel, e.message);
    ok &= check("sentence", st == HEDDLE_OK && e.status == HEDDLE_ETASK &&
                                strcmp(e.task_name, "bad") == 0 &&
                                strstr(e.message, "negative") != NULL);
    ok &= check("data", v[0] == -1 && v[1] == 11 && v[2] == 21);
    ok &= check("acquire", heddle_handle_acquire(h[0], HEDDLE_R, NULL) < 0);
    ok &= check("restore", heddle_handle_restore(h[0]) == HEDDLE_OK);
    ok &= check("wait again", heddle_wait(ctx) == HEDDLE_OK);
    for (int i = 0; i < 3; i++)
        heddle_handle_unref(h[i]);
    heddle_ctx_destroy(ctx);
    return ok ? 0 : 1;
}
