/* SPDX-License-Identifier: BSD-3-Clause */
/* 16_faults: things that go wrong on purpose, on a machine that is described in a file. */
#include <heddle/heddle.h>
#include <stdio.h>

enum { N = 65536, BLOCK = 4096, STEPS = 8 };
static double v[N];

/* Adds 1 to a block; also what a simulated GPU runs, on memory of its own. */
static heddle_status step_run(struct heddle_exec *x)
{
    double *b = heddle_exec_ptr(x, 0);

    for (size_t i = 0, n = heddle_exec_count(x, 0); i < n; i++)
        b[i] += 1;
    return HEDDLE_OK;
}

static const heddle_kernel step = {
    .size = sizeof(heddle_kernel),
    .name = "step",
    .noperands = 1,
    .mode = {HEDDLE_RW},
    .variants = {{.device = HEDDLE_DEV_CPU, .run = step_run},
                 {.device = HEDDLE_DEV_CUDA, .run = step_run}},
};

/* Sentences of the runtime, as they happen. */
static void say(void *user, enum heddle_severity severity, const char *text)
{
    (void)user;
    printf("    %s: %s\n", severity == HEDDLE_ERROR ? "error" : "warning", text);
}

/* STEPS steps on each block; with retries, a task that fails is repeated. */
static heddle_status work(heddle_ctx *ctx, unsigned retries)
{
    const struct heddle_task_opts opts = {.size = sizeof(opts), .retries = retries};
    heddle_status st = HEDDLE_OK;

    for (size_t b = 0; b < N / BLOCK && st == HEDDLE_OK; b++) {
        heddle_handle *h = NULL;

        st = heddle_handle_vector(ctx, &v[b * BLOCK], BLOCK, HEDDLE_F64, &h);
        for (int s = 0; s < STEPS && st == HEDDLE_OK; s++)
            st = heddle_submit(ctx, &step, &(struct heddle_call){.operand = {h}, .opts = &opts});
        heddle_handle_unref(h);
    }
    return st ? st : heddle_wait(ctx);
}

int main(int argc, char **argv)
{
    const char *machine = argc > 1 ? argv[1] : "examples/machines/laptop.machine";
    const struct {
        const char *faults;
        unsigned retries;
        heddle_status wanted;
    } run[] = {
        {NULL, 0, HEDDLE_OK},
        {"kernel gpu0 nth 3", 0, HEDDLE_ETASK},
        {"kernel gpu0 nth 3", 1, HEDDLE_OK},
        {"copy gpu0 nth 3", 0, HEDDLE_OK},
        {"alloc gpu0 nth 1", 0, HEDDLE_OK},
        {"slow gpu0 at_ms 0.1 factor 50", 0, HEDDLE_OK},
        {"lose gpu0 at_ms 0.02", 0, HEDDLE_OK},
        {"lose gpu0 at_ms 0.1", 0, HEDDLE_EDEV},
    };
    int bad = 0;

    for (size_t r = 0; r < sizeof(run) / sizeof(run[0]); r++) {
        struct heddle_ctx_opts o = {.size = sizeof(o),
                                    .ignore_env = true,
                                    .machine = machine,
                                    .execute = HEDDLE_ON,
                                    .faults = run[r].faults,
                                    .message = say};
        struct heddle_ctx_stats s = {.size = sizeof(s)};
        heddle_ctx *ctx = NULL;
        heddle_status st = heddle_ctx_create(&o, &ctx);
        size_t wrong = 0;

        printf("%s, retries %u\n", run[r].faults ? run[r].faults : "no fault", run[r].retries);
        for (size_t i = 0; i < N; i++)
            v[i] = 0;
        st = st ? st : work(ctx, run[r].retries);
        (void)heddle_ctx_get_stats(ctx, &s);
        heddle_ctx_destroy(ctx);
        for (size_t i = 0; i < N; i++)
            wrong += v[i] != STEPS;
        printf("  %s, %.2f virtual ms, %zu of %d blocks wrong\n", heddle_status_text(st),
               (double)s.virtual_ns / 1e6, wrong / BLOCK, N / BLOCK);
        bad += st != run[r].wanted || (st == HEDDLE_OK && wrong != 0);
    }
    return bad != 0;
}
