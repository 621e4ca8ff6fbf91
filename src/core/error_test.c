/* SPDX-License-Identifier: BSD-3-Clause */
/* error: what waits return after failures, and which sentence goes with it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "heddle/heddle.h"
#include "tests/test.h"

static heddle_status fails_run(struct heddle_exec *x)
{
    return heddle_exec_fail(x, HEDDLE_EIO, "the file is gone");
}

static heddle_status fine_run(struct heddle_exec *x)
{
    if (heddle_exec_noperands(x) > 0)
        *(double *)heddle_exec_ptr(x, 0) += 1;
    return HEDDLE_OK;
}

#define KERNEL(id, fn, n, ...)                                                                     \
    static const heddle_kernel id = {                                                              \
        .size = sizeof(heddle_kernel),                                                             \
        .name = #id,                                                                               \
        .noperands = n,                                                                            \
        .mode = {__VA_ARGS__},                                                                     \
        .variants = {{.device = HEDDLE_DEV_CPU, .run = fn}},                                       \
    }

KERNEL(breaks, fails_run, 1, HEDDLE_RW);
KERNEL(updates, fine_run, 1, HEDDLE_RW);
KERNEL(overwrites, fine_run, 1, HEDDLE_W);
KERNEL(empty, fine_run, 0, 0);

struct rig {
    heddle_ctx *ctx;
    heddle_handle *h;
    double v;
};

static void rig_init(struct rig *r)
{
    const struct heddle_ctx_opts o = {.size = sizeof(o), .nworkers = 2, .devices = "none"};

    *r = (struct rig){0};
    CHECK_OK(heddle_ctx_create(&o, &r->ctx));
    CHECK_OK(heddle_handle_vector(r->ctx, &r->v, 1, HEDDLE_F64, &r->h));
}

static void rig_fini(struct rig *r)
{
    heddle_handle_unref(r->h);
    (void)heddle_ctx_destroy(r->ctx);
}

static void submit(struct rig *r, const heddle_kernel *k)
{
    CHECK_OK(heddle_submit(r->ctx, k, &(struct heddle_call){.operand = {r->h}}));
}

static void says(struct rig *r, heddle_status st, const char *text)
{
    struct heddle_error e = {.size = sizeof(e)};

    CHECK_OK(heddle_ctx_error(r->ctx, &e));
    CHECK_STATUS(e.status, st);
    if (strstr(e.message, text) == NULL)
        printf("'%s' has no '%s'\n", e.message, text);
    CHECK(strstr(e.message, text) != NULL);
}

/* Tasks on data that failed before the last wait do not run, and every wait says so
 * until the data are written whole. */
TEST(missing)
{
    struct rig r;

    rig_init(&r);
    submit(&r, &breaks);
    submit(&r, &updates);
    CHECK_STATUS(heddle_wait(r.ctx), HEDDLE_EIO);
    says(&r, HEDDLE_EIO, "the file is gone");
    for (int i = 0; i < 3; i++) {
        submit(&r, &updates);
        submit(&r, &updates);
        CHECK_STATUS(heddle_wait(r.ctx), HEDDLE_ECANCELED);
        says(&r, HEDDLE_ECANCELED, "(kernel updates) did not run: ");
        says(&r, HEDDLE_ECANCELED, "the file is gone"); /* the first cause */
    }
    CHECK_OK(heddle_wait(r.ctx)); /* nothing was submitted */
    submit(&r, &overwrites);
    submit(&r, &updates);
    CHECK_OK(heddle_wait(r.ctx));
    CHECK_EQ(r.v, 2);
    rig_fini(&r);
}

TEST(restored)
{
    struct rig r;

    rig_init(&r);
    submit(&r, &breaks);
    CHECK_STATUS(heddle_wait(r.ctx), HEDDLE_EIO);
    CHECK_OK(heddle_handle_restore(r.h));
    submit(&r, &updates);
    CHECK_OK(heddle_wait(r.ctx));
    rig_fini(&r);
}

/* A failure of its own goes before a task that did not run. */
TEST(failure_first)
{
    struct rig r;
    double other = 0;
    heddle_handle *h = NULL;

    rig_init(&r);
    CHECK_OK(heddle_handle_vector(r.ctx, &other, 1, HEDDLE_F64, &h));
    submit(&r, &breaks);
    CHECK_STATUS(heddle_wait(r.ctx), HEDDLE_EIO);
    submit(&r, &updates);
    CHECK_OK(heddle_submit(r.ctx, &breaks, &(struct heddle_call){.operand = {h}}));
    CHECK_STATUS(heddle_wait(r.ctx), HEDDLE_EIO);
    says(&r, HEDDLE_EIO, "(kernel breaks) failed");
    heddle_handle_unref(h);
    rig_fini(&r);
}

/* A task that comes after an event that failed before the last wait. */
TEST(failed_event)
{
    struct rig r;
    heddle_event *e = NULL;
    const struct heddle_task_opts first = {.size = sizeof(first), .event_out = &e};

    rig_init(&r);
    CHECK_OK(
        heddle_submit(r.ctx, &breaks, &(struct heddle_call){.operand = {r.h}, .opts = &first}));
    CHECK_STATUS(heddle_wait(r.ctx), HEDDLE_EIO);
    CHECK_OK(
        heddle_submit(r.ctx, &empty,
                      &(struct heddle_call){.opts = &(struct heddle_task_opts){
                                                .size = sizeof(first), .after = &e, .nafter = 1}}));
    CHECK_STATUS(heddle_wait(r.ctx), HEDDLE_ECANCELED);
    says(&r, HEDDLE_ECANCELED, "the file is gone");
    heddle_event_unref(e);
    rig_fini(&r);
}

/* What the program cancelled itself is no news. */
TEST(cancelled_group)
{
    struct rig r;
    heddle_group *g = NULL;

    rig_init(&r);
    CHECK_OK(heddle_group_create(r.ctx, &g));
    CHECK_OK(heddle_group_cancel(g));
    CHECK_OK(heddle_submit(
        r.ctx, &empty,
        &(struct heddle_call){.opts = &(struct heddle_task_opts){
                                  .size = sizeof(struct heddle_task_opts), .group = g}}));
    CHECK_OK(heddle_wait(r.ctx));
    heddle_group_unref(g);
    rig_fini(&r);
}

/* A wait that ends well leaves no sentence of an earlier one; a refusal stays. */
TEST(stale)
{
    struct rig r;

    rig_init(&r);
    submit(&r, &breaks);
    CHECK_STATUS(heddle_wait(r.ctx), HEDDLE_EIO);
    submit(&r, &overwrites);
    CHECK_OK(heddle_wait(r.ctx));
    says(&r, HEDDLE_OK, "");
    CHECK_STATUS(heddle_submit(r.ctx, &updates, NULL), HEDDLE_EINVAL);
    CHECK_OK(heddle_wait(r.ctx));
    says(&r, HEDDLE_EINVAL, "operand 0");
    rig_fini(&r);
}

/* An acquire of data that failed says which data, and why. */
TEST(acquire)
{
    struct rig r;

    rig_init(&r);
    CHECK_OK(heddle_handle_set_name(r.h, "pressure"));
    submit(&r, &breaks);
    CHECK_STATUS(heddle_wait(r.ctx), HEDDLE_EIO);
    CHECK_OK(heddle_wait(r.ctx));
    CHECK_STATUS(heddle_handle_acquire(r.h, HEDDLE_R, NULL), HEDDLE_EIO);
    says(&r, HEDDLE_EIO, "pressure was not computed: ");
    says(&r, HEDDLE_EIO, "the file is gone");
    rig_fini(&r);
}

/* Operands that the kernel does not declare would be dependencies that nobody keeps. */
TEST(too_many_operands)
{
    struct rig r;
    struct heddle_call call = {0};

    rig_init(&r);
    call.operand[0] = call.operand[1] = r.h;
    for (int i = 0; i < 2; i++) {
        CHECK_STATUS(heddle_submit(r.ctx, &updates, &call), HEDDLE_EINVAL);
        says(&r, HEDDLE_EINVAL, "declares 1 operands, the call has more");
        if (i == 0)
            submit(&r, &updates); /* the kernel is known: the fast path comes */
    }
    CHECK_OK(heddle_wait(r.ctx));
    CHECK_EQ(r.v, 1);
    rig_fini(&r);
}

/* --- where sentences go ------------------------------------------------------------ */

/* Creates a context with stderr in a file, and reads the file. */
static heddle_status create_and_read(struct heddle_ctx_opts o, char *text, size_t bytes)
{
    FILE *f = tmpfile();
    const int saved = dup(2);
    heddle_ctx *ctx = NULL;
    heddle_status st;
    size_t n;

    CHECK(f != NULL && saved >= 0);
    CHECK(dup2(fileno(f), 2) == 2);
    o.size = sizeof(o);
    o.devices = "none";
    st = heddle_ctx_create(&o, &ctx);
    (void)heddle_ctx_destroy(ctx);
    CHECK(dup2(saved, 2) == 2);
    CHECK_EQ(close(saved), 0);
    rewind(f);
    n = fread(text, 1, bytes - 1, f);
    text[n] = '\0';
    CHECK_EQ(fclose(f), 0);
    return st;
}

TEST(messages_on_stderr)
{
    char text[1000];

    CHECK_EQ(setenv("HEDDLE_WORKRES", "3", 1), 0);
    CHECK_STATUS(create_and_read((struct heddle_ctx_opts){.sched = "lws"}, text, sizeof(text)),
                 HEDDLE_EINVAL);
    CHECK_STR(text, ""); /* silent by default */
    CHECK_EQ(setenv("HEDDLE_MESSAGES", "stderr", 1), 0);
    CHECK_STATUS(create_and_read((struct heddle_ctx_opts){.sched = "lws"}, text, sizeof(text)),
                 HEDDLE_EINVAL);
    CHECK(strstr(text, "heddle: warning: the environment variable HEDDLE_WORKRES is not known, "
                       "did you mean HEDDLE_WORKERS?\n") != NULL);
    CHECK(strstr(text, "heddle: error: there is no scheduler 'lws', there are ws, ") != NULL);
    CHECK_STATUS(create_and_read((struct heddle_ctx_opts){.ignore_env = true, .sched = "lws"}, text,
                                 sizeof(text)),
                 HEDDLE_EINVAL);
    CHECK_STR(text, "");
    CHECK_OK(create_and_read((struct heddle_ctx_opts){.messages = "off"}, text, sizeof(text)));
    CHECK_STR(text, ""); /* the program goes before the environment */
    /* A variable that is malformed is told as well. */
    CHECK_EQ(setenv("HEDDLE_WORKERS", "many", 1), 0);
    CHECK_STATUS(create_and_read((struct heddle_ctx_opts){0}, text, sizeof(text)), HEDDLE_EINVAL);
    CHECK(strstr(text, "HEDDLE_WORKERS is \"many\"") != NULL);
    CHECK_EQ(unsetenv("HEDDLE_WORKERS"), 0);
    CHECK_EQ(setenv("HEDDLE_MESSAGES", "syslog", 1), 0);
    CHECK_STATUS(create_and_read((struct heddle_ctx_opts){0}, text, sizeof(text)), HEDDLE_EINVAL);
    CHECK_EQ(unsetenv("HEDDLE_MESSAGES"), 0);
    CHECK_EQ(unsetenv("HEDDLE_WORKRES"), 0);
}

/* --- a task that passes a refusal on ------------------------------------------------ */

static heddle_status parent_run(struct heddle_exec *x)
{
    return heddle_exec_go(x, &updates, HEDDLE_NO_ARG, heddle_exec_operand(x, 0));
}

KERNEL(reads, parent_run, 1, HEDDLE_R);
KERNEL(reduces, parent_run, 1, HEDDLE_REDUCE);

static heddle_status other_run(struct heddle_exec *x)
{
    (void)!heddle_exec_go(x, &updates, HEDDLE_NO_ARG, heddle_exec_operand(x, 0));
    return HEDDLE_EIO; /* for a reason of its own */
}

KERNEL(other, other_run, 1, HEDDLE_R);

/* The sentence says which operand of which child it was. */
TEST(refused_in_a_task)
{
    const heddle_kernel *const k[] = {&reads, &reduces};
    struct rig r;

    rig_init(&r);
    CHECK_OK(heddle_handle_set_sum(r.h));
    for (size_t i = 0; i < 2; i++) {
        submit(&r, k[i]);
        CHECK_STATUS(heddle_wait(r.ctx), HEDDLE_EACCESS);
        says(&r, HEDDLE_EACCESS, k[i]->name);
        says(&r, HEDDLE_EACCESS, "failed: kernel updates: operand 0 (");
        says(&r, HEDDLE_EACCESS, ") is not held by the parent task in such a mode");
        CHECK_OK(heddle_handle_restore(r.h));
    }
    submit(&r, &other);
    CHECK_STATUS(heddle_wait(r.ctx), HEDDLE_EIO);
    says(&r, HEDDLE_EIO, "failed: input or output failed");
    rig_fini(&r);
}

TEST_MAIN(refused_in_a_task, messages_on_stderr, missing, restored, failure_first, failed_event,
          cancelled_group, stale, acquire, too_many_operands)
