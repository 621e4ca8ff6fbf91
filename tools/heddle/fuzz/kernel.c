/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fuzz/kernel: the random tasks as kernels.
 *
 * Purpose    one function for cores and simulated devices: it works with the
 *            strides of heddle_exec_layout(), so it runs on any memory.
 * Threads    workers.
 */
#include <string.h>

#include "base/atomic.h"
#include "fuzz/fuzz.h"

struct fuzz_task *fuzz_task_of(struct heddle_exec *x)
{
    struct fuzz_arg a;

    memcpy(&a, heddle_exec_arg(x), sizeof(a));
    return a.task;
}

/* A launch of a graph may have changed it. */
uint64_t fuzz_salt_of(struct heddle_exec *x)
{
    struct fuzz_arg a;

    memcpy(&a, heddle_exec_arg(x), sizeof(a));
    return a.salt;
}

static unsigned gather(struct heddle_exec *x, const struct fuzz_task *t, struct fuzz_mem *mem)
{
    for (unsigned i = 0; i < t->nops; i++)
        mem[i] = (struct fuzz_mem){
            .ptr = heddle_exec_ptr(x, i), .layout = heddle_exec_layout(x, i), .mode = t->mode[i]};
    return t->nops;
}

/* Scratch of the variant: a pattern that no other task may disturb. */
static void scratch_fill(unsigned char *p, uint64_t salt)
{
    for (size_t i = 0; i < FUZZ_SCRATCH; i++)
        p[i] = (unsigned char)(salt + 31 * i);
}

static bool scratch_is_filled(const unsigned char *p, uint64_t salt)
{
    for (size_t i = 0; i < FUZZ_SCRATCH; i++)
        if (p[i] != (unsigned char)(salt + 31 * i))
            return false;
    return true;
}

static heddle_status run_task(struct heddle_exec *x, bool on_device)
{
    struct fuzz_task *t = fuzz_task_of(x);
    struct fuzz_mem mem[FUZZ_OPERANDS];
    unsigned char *scratch = heddle_exec_scratch(x);
    const unsigned n = gather(x, t, mem);
    const uint64_t salt = fuzz_salt_of(x);
    bool ok;

    if (on_device && t->declines)
        return HEDDLE_EDECLINED;
    heddle_store_rlx(&t->on_device, on_device ? 1u : 0u); /* read at the end */
    if (heddle_add_rlx(&t->runs, 1u) < t->fail_runs) {
        fuzz_scribble(mem, n, salt);
        return heddle_exec_fail(x, HEDDLE_ETASK, "meant to fail");
    }
    if (t->sort == SORT_SCRATCH)
        scratch_fill(scratch, salt);
    ok = fuzz_mix(mem, n, salt);
    if (t->sort == SORT_SCRATCH)
        ok = scratch_is_filled(scratch, salt) && ok;
    if (!ok)
        heddle_add_rlx(&t->run->scratch_errors, 1u); /* read at the end */
    return HEDDLE_OK;
}

static heddle_status run_core(struct heddle_exec *x)
{
    return run_task(x, false);
}

static heddle_status run_device(struct heddle_exec *x)
{
    return run_task(x, true);
}

/* --- children ------------------------------------------------------------ */

static heddle_status child_submit(struct heddle_exec *x, struct fuzz_task *c)
{
    heddle_handle *op[FUZZ_OPERANDS] = {NULL};
    const struct fuzz_arg arg = {.task = c, .salt = c->salt};
    const struct heddle_call call = {.operands = op,
                                     .noperands = c->nops,
                                     .modes = c->mode,
                                     .priority = c->priority,
                                     .arg = &arg,
                                     .arg_bytes = sizeof(arg)};
    heddle_status st = HEDDLE_OK;

    for (unsigned i = 0; i < c->nops && st == HEDDLE_OK; i++) {
        heddle_handle *h = heddle_exec_operand(x, (unsigned)c->unit[i]);

        if (c->is_whole[i])
            op[i] = heddle_handle_ref(h);
        else
            st = heddle_view_box(h, c->part[i].first, c->part[i].extent, c->part[i].step, &op[i]);
    }
    if (st == HEDDLE_OK)
        st = heddle_exec_submit(x, fuzz_kernel(c, c->run->prog->config.device), &call);
    for (unsigned i = 0; i < c->nops; i++)
        heddle_handle_unref(op[i]);
    return st;
}

static heddle_status run_nest(struct heddle_exec *x)
{
    struct fuzz_task *t = fuzz_task_of(x);
    heddle_status st = run_task(x, false);

    for (unsigned i = 0; i < t->nchildren && st == HEDDLE_OK; i++)
        st = child_submit(x, t->child[i]);
    if (st == HEDDLE_OK && t->waits)
        st = heddle_exec_wait(x);
    return st;
}

/* --- the table ----------------------------------------------------------- */

#define CORE(fn, bytes)                                                                            \
    {                                                                                              \
        .device = HEDDLE_DEV_CPU, .run = fn, .scratch_bytes = bytes                                \
    }
#define SIM(bytes)                                                                                 \
    {                                                                                              \
        .device = HEDDLE_DEV_CUDA, .run = run_device, .scratch_bytes = bytes                       \
    }
#define OPENCL                                                                                     \
    {                                                                                              \
        .device = HEDDLE_DEV_OPENCL, .run = fuzz_opencl_run, .scratch_bytes = FUZZ_WORD            \
    }
#define CUDA(bytes)                                                                                \
    {                                                                                              \
        .device = HEDDLE_DEV_CUDA, .run = fuzz_cuda_run, .scratch_bytes = FUZZ_WORD + bytes        \
    }
#define PLAIN                                                                                      \
    {                                                                                              \
        .device = HEDDLE_DEV_CUDA, .run = fuzz_cuda_run                                            \
    }
#define KERNEL(title, ...)                                                                         \
    {                                                                                              \
        .size = sizeof(heddle_kernel), .name = title, .variants = { __VA_ARGS__ }                  \
    }

/* Two of each: schedulers tell kernels apart. */
static const heddle_kernel kernel_sim[SORT_N][2] = {
    [SORT_BOTH] = {KERNEL("both0", CORE(run_core, 0), SIM(0)),
                   KERNEL("both1", SIM(0), CORE(run_core, 0))},
    [SORT_SCRATCH] = {KERNEL("scratch0", CORE(run_core, FUZZ_SCRATCH), SIM(FUZZ_SCRATCH)),
                      KERNEL("scratch1", SIM(FUZZ_SCRATCH), CORE(run_core, FUZZ_SCRATCH))},
    [SORT_CORE] = {KERNEL("core0", CORE(run_core, 0)), KERNEL("core1", CORE(run_core, 0))},
    [SORT_DEVICE] = {KERNEL("device0", SIM(0)), KERNEL("device1", SIM(0))},
    [SORT_NEST] = {KERNEL("nest0", CORE(run_nest, 0)), KERNEL("nest1", CORE(run_nest, 0))},
    [SORT_PLAIN] = {KERNEL("plain0", CORE(run_core, 0), SIM(0)), KERNEL("plain1", SIM(0))},
};

static const heddle_kernel kernel_opencl[SORT_N][2] = {
    [SORT_BOTH] = {KERNEL("both0", CORE(run_core, 0), OPENCL),
                   KERNEL("both1", OPENCL, CORE(run_core, 0))},
    [SORT_SCRATCH] = {KERNEL("scratch0", CORE(run_core, FUZZ_SCRATCH), OPENCL),
                      KERNEL("scratch1", OPENCL, CORE(run_core, FUZZ_SCRATCH))},
    [SORT_CORE] = {KERNEL("core0", CORE(run_core, 0)), KERNEL("core1", CORE(run_core, 0))},
    [SORT_DEVICE] = {KERNEL("device0", OPENCL), KERNEL("device1", OPENCL)},
    [SORT_NEST] = {KERNEL("nest0", CORE(run_nest, 0)), KERNEL("nest1", CORE(run_nest, 0))},
    [SORT_PLAIN] = {KERNEL("plain0", CORE(run_core, 0), OPENCL), KERNEL("plain1", OPENCL)},
};

static const heddle_kernel kernel_cuda[SORT_N][2] = {
    [SORT_BOTH] = {KERNEL("both0", CORE(run_core, 0), CUDA(0)),
                   KERNEL("both1", CUDA(0), CORE(run_core, 0))},
    [SORT_SCRATCH] = {KERNEL("scratch0", CORE(run_core, FUZZ_SCRATCH), CUDA(FUZZ_SCRATCH)),
                      KERNEL("scratch1", CUDA(FUZZ_SCRATCH), CORE(run_core, FUZZ_SCRATCH))},
    [SORT_CORE] = {KERNEL("core0", CORE(run_core, 0)), KERNEL("core1", CORE(run_core, 0))},
    [SORT_DEVICE] = {KERNEL("device0", CUDA(0)), KERNEL("device1", CUDA(0))},
    [SORT_NEST] = {KERNEL("nest0", CORE(run_nest, 0)), KERNEL("nest1", CORE(run_nest, 0))},
    [SORT_PLAIN] = {KERNEL("plain0", CORE(run_core, 0), PLAIN), KERNEL("plain1", PLAIN)},
};

static const heddle_kernel kernel_core[SORT_N][2] = {
    [SORT_BOTH] = {KERNEL("both0", CORE(run_core, 0)),
                   KERNEL("both1", CORE(run_core, 0), CORE(run_core, 0))},
    [SORT_SCRATCH] = {KERNEL("scratch0", CORE(run_core, FUZZ_SCRATCH)),
                      KERNEL("scratch1", CORE(run_core, FUZZ_SCRATCH))},
    [SORT_CORE] = {KERNEL("core0", CORE(run_core, 0)), KERNEL("core1", CORE(run_core, 0))},
    [SORT_DEVICE] = {KERNEL("device0", CORE(run_core, 0)), KERNEL("device1", CORE(run_core, 0))},
    [SORT_NEST] = {KERNEL("nest0", CORE(run_nest, 0)), KERNEL("nest1", CORE(run_nest, 0))},
    [SORT_PLAIN] = {KERNEL("plain0", CORE(run_core, 0)), KERNEL("plain1", CORE(run_core, 0))},
};

const heddle_kernel *fuzz_kernel(const struct fuzz_task *t, enum fuzz_device device)
{
    switch (device) {
    case FUZZ_SIM: return &kernel_sim[t->sort][t->name];
    case FUZZ_OPENCL: return &kernel_opencl[t->sort][t->name];
    case FUZZ_CUDA: return &kernel_cuda[t->sort][t->name];
    default: return &kernel_core[t->sort][t->name];
    }
}

/* --- reductions ---------------------------------------------------------- */

static size_t layout_bytes(const struct heddle_layout *l)
{
    size_t n = heddle_dtype_bytes(l->dtype);

    for (unsigned d = 0; d < l->ndim; d++)
        n *= l->extent[d];
    return n;
}

static void sum_init(void *dst, const struct heddle_layout *layout, void *user)
{
    (void)user;
    memset(dst, 0, layout_bytes(layout));
}

static void sum_combine(void *dst, const void *src, const struct heddle_layout *layout, void *user)
{
    (void)user;
    fuzz_sum(dst, src, layout_bytes(layout), heddle_dtype_bytes(layout->dtype));
}

const struct heddle_reduction heddle_fuzz_reduction = {.init = sum_init, .combine = sum_combine};
