/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * common/overhead: what the runtime itself costs on this machine.
 *
 * Submission  some tasks for cores that are long enough to keep the workers busy:
 *             the time until all are submitted, by their number. They have three
 *             operands and wait for each other in chains, as those of programs do.
 * Waking      all workers sleep; the program submits one task and looks at the clock
 *             that the task reads first. It does not wait in the runtime: there it
 *             would run the task itself.
 * Driving     empty tasks of a device, as many as the device thread can launch: the
 *             time of all, by their number.
 * Noticing    the same one by one. What one takes longer than it costs to submit
 *             and to launch it, and to wake the driver, is until its end is seen.
 *             The launch counts twice: once more as the time of the empty kernel.
 * Noise       medians over repetitions.
 */
#include "common/overhead.h"

#include <stdatomic.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "bench/bench.h"

enum {
    REPS = 15,
    TASKS = 96,
    HANDLES = 48,
    TASK_NS = 20000,
    DRIVE_HANDLES = 64,
    DRIVE_TASKS = 512,
    DRIVE_REPS = 5,
    SINGLES = 31,
    ASLEEP_NS = 3000000,   /* longer than workers look for work */
    PATIENCE_NS = 50000000 /* for a worker that does not come */
};

static heddle_status busy(struct heddle_exec *x)
{
    const uint64_t until = heddle_clock_ns() + TASK_NS;

    (void)x;
    while (heddle_clock_ns() < until)
        ;
    return HEDDLE_OK;
}

static heddle_status say_when(struct heddle_exec *x)
{
    _Atomic uint64_t *at;

    memcpy(&at, heddle_exec_arg(x), sizeof(at));
    atomic_store_explicit(at, heddle_clock_ns(), memory_order_release);
    return HEDDLE_OK;
}

static const heddle_kernel kernel_busy = {.size = sizeof(heddle_kernel),
                                          .name = "overhead_busy",
                                          .noperands = 3,
                                          .mode = {HEDDLE_R, HEDDLE_R, HEDDLE_RW},
                                          .variants = {{.device = HEDDLE_DEV_CPU, .run = busy}}};

static const heddle_kernel kernel_when = {
    .size = sizeof(heddle_kernel),
    .name = "overhead_when",
    .variants = {{.device = HEDDLE_DEV_CPU, .run = say_when}}};

static double ns_since(uint64_t start)
{
    return (double)(heddle_clock_ns() - start);
}

static heddle_status submit_once(heddle_ctx *ctx, heddle_handle **h, bool is_alone, double *ns_out)
{
    const uint64_t start = heddle_clock_ns();
    heddle_status st = HEDDLE_OK, waited;

    for (unsigned i = 0; i < TASKS && st == HEDDLE_OK; i++)
        st = heddle_submit(
            ctx, &kernel_busy,
            &(struct heddle_call){.operand = {h[i % 7], h[7 + i % 5], h[12 + i % (HANDLES - 12)]}});
    *ns_out = ns_since(start) / TASKS;
    waited = heddle_wait(ctx);
    /* A worker that is alone has run each task when it was submitted. */
    if (is_alone && *ns_out >= TASK_NS)
        *ns_out -= TASK_NS;
    return st != HEDDLE_OK ? st : waited;
}

static heddle_status measure_submit(heddle_ctx *ctx, bool is_alone, double *ns_out)
{
    heddle_handle *h[HANDLES] = {NULL};
    double v[REPS] = {0}, ignored;
    heddle_status st = HEDDLE_OK;

    for (unsigned i = 0; i < HANDLES && st == HEDDLE_OK; i++)
        st = heddle_handle_vector(ctx, NULL, 1, HEDDLE_F64, &h[i]);
    if (st == HEDDLE_OK)
        st = submit_once(ctx, h, is_alone, &ignored); /* touches memory */
    for (unsigned i = 0; i < REPS && st == HEDDLE_OK; i++)
        st = submit_once(ctx, h, is_alone, &v[i]);
    for (unsigned i = 0; i < HANDLES; i++)
        heddle_handle_unref(h[i]);
    *ns_out = bench_stat(v, REPS).median;
    return st;
}

/* HEDDLE_ETIMEDOUT: no worker came. */
static heddle_status wake_once(heddle_ctx *ctx, double *ns_out)
{
    const struct timespec nap = {.tv_nsec = ASLEEP_NS};
    _Atomic uint64_t at = 0, *place = &at;
    heddle_status st, waited;
    uint64_t start;

    nanosleep(&nap, NULL);
    start = heddle_clock_ns();
    st = heddle_submit(ctx, &kernel_when,
                       &(struct heddle_call){.arg = &place, .arg_bytes = sizeof(place)});
    while (st == HEDDLE_OK && atomic_load_explicit(&at, memory_order_acquire) == 0 &&
           ns_since(start) < PATIENCE_NS)
        ;
    *ns_out = ns_since(start);
    waited = heddle_wait(ctx);
    if (st != HEDDLE_OK || waited != HEDDLE_OK)
        return st != HEDDLE_OK ? st : waited;
    if (*ns_out >= PATIENCE_NS)
        return HEDDLE_ETIMEDOUT;
    *ns_out = (double)(atomic_load_explicit(&at, memory_order_acquire) - start);
    return HEDDLE_OK;
}

static heddle_status measure_wake(heddle_ctx *ctx, struct overhead *o)
{
    double v[REPS] = {0};
    heddle_status st = HEDDLE_OK;
    unsigned n = 0;

    for (unsigned i = 0; i < REPS && st == HEDDLE_OK; i++) {
        st = wake_once(ctx, &v[n]);
        n += st == HEDDLE_OK;
    }
    if (st != HEDDLE_OK && st != HEDDLE_ETIMEDOUT)
        return st;
    if (n > 0)
        o->wake_ns = bench_stat(v, n).median - o->submit_ns;
    if (o->wake_ns < 0)
        o->wake_ns = 0;
    return HEDDLE_OK;
}

heddle_status overhead_measure(heddle_ctx *ctx, struct overhead *out)
{
    struct heddle_class_info cores = {.size = sizeof(cores)};
    heddle_status st = heddle_ctx_get_class(ctx, 0, &cores);

    if (st == HEDDLE_OK)
        st = measure_submit(ctx, cores.nworkers == 1, &out->submit_ns);
    if (st == HEDDLE_OK && cores.nworkers > 1)
        st = measure_wake(ctx, out);
    return st;
}

static heddle_status drive_once(heddle_ctx *ctx, const heddle_kernel *empty, heddle_handle **h,
                                unsigned n, double *ns_out)
{
    const uint64_t start = heddle_clock_ns();
    heddle_status st = HEDDLE_OK, waited;

    for (unsigned i = 0; i < n && st == HEDDLE_OK; i++)
        st = heddle_submit(ctx, empty, &(struct heddle_call){.operand = {h[i % DRIVE_HANDLES]}});
    waited = heddle_wait(ctx);
    *ns_out = ns_since(start) / n;
    return st != HEDDLE_OK ? st : waited;
}

heddle_status overhead_drive(heddle_ctx *ctx, const heddle_kernel *empty, struct overhead *out)
{
    heddle_handle *h[DRIVE_HANDLES] = {NULL};
    double all[DRIVE_REPS + 1] = {0}, one[SINGLES] = {0};
    heddle_status st = HEDDLE_OK;

    for (unsigned i = 0; i < DRIVE_HANDLES && st == HEDDLE_OK; i++)
        st = heddle_handle_vector(ctx, NULL, 16, HEDDLE_I32, &h[i]);
    for (unsigned i = 0; i < DRIVE_REPS + 1 && st == HEDDLE_OK; i++)
        st = drive_once(ctx, empty, h, DRIVE_TASKS, &all[i]);
    for (unsigned i = 0; i < SINGLES && st == HEDDLE_OK; i++)
        st = drive_once(ctx, empty, h, 1, &one[i]);
    for (unsigned i = 0; i < DRIVE_HANDLES; i++)
        heddle_handle_unref(h[i]);
    if (st != HEDDLE_OK)
        return st;
    /* The first one brings the data. */
    out->drive_ns = bench_stat(all + 1, DRIVE_REPS).median;
    out->single_ns = bench_stat(one, SINGLES).median;
    out->notice_ns = out->single_ns - out->submit_ns - out->wake_ns - 2 * out->drive_ns;
    if (out->notice_ns < 0)
        out->notice_ns = 0;
    return HEDDLE_OK;
}

void overhead_write(FILE *f, const struct overhead *o)
{
    fprintf(f,
            "overhead submit_us %.4f wake_us %.4f drive_us %.4f notice_us "
            "%.4f\n",
            o->submit_ns / 1e3, o->wake_ns / 1e3, o->drive_ns / 1e3, o->notice_ns / 1e3);
}
