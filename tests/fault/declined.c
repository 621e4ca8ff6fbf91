/* SPDX-License-Identifier: BSD-3-Clause */
/* Variants that decline, beside gangs for which there are too few threads. */
#include <stdatomic.h>
#include <time.h>

#include "heddle/heddle.h"
#include "tests/test.h"

static heddle_status run_decline(struct heddle_exec *x)
{
    (void)x;
    return HEDDLE_EDECLINED;
}

static heddle_status run_gang(struct heddle_exec *x)
{
    _Atomic unsigned *n = *(_Atomic unsigned *const *)heddle_exec_arg(x);

    (*n)++;
    return HEDDLE_OK;
}

/* All others decline, wherever the gang stands among them: it waits for its members,
 * nobody is asked for ever, and it is not forgotten. */
TEST(gangs_among_others)
{
    static heddle_kernel k[3]; /* kernels outlive the contexts */
    /* One of the two is the program, once it waits. */
    const struct heddle_ctx_opts o = {.size = sizeof(o), .nworkers = 2};
    _Atomic unsigned n = 0;
    _Atomic unsigned *const at = &n;
    heddle_ctx *ctx = NULL;

    CHECK_OK(heddle_ctx_create(&o, &ctx));
    for (unsigned i = 0; i < 3; i++) {
        const struct heddle_call call = {.arg = &at, .arg_bytes = sizeof(at)};

        k[i] = (heddle_kernel){.size = sizeof(heddle_kernel), .name = "some"};
        for (unsigned v = 0; v < 3; v++)
            k[i].variants[v] = (struct heddle_variant){.device = HEDDLE_DEV_CPU,
                                                       .run = v == i ? run_gang : run_decline,
                                                       .gang = v == i ? 2 : 0};
        CHECK_OK(heddle_submit(ctx, &k[i], &call));
    }
    nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
    CHECK_EQ(n, 0);
    CHECK_OK(heddle_wait(ctx));
    CHECK_EQ(n, 6);
    CHECK_OK(heddle_ctx_destroy(ctx));
}

TEST_MAIN(gangs_among_others)
