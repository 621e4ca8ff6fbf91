/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fuzz/cuda: the arithmetic of fuzz/mix.c for CUDA devices.
 *
 * Structure  one thread folds all that is read into a word in the scratch of the
 *            variant (SORT_PLAIN: in the last operand, which is written last), then
 *            every written element has a thread. The kernels are those of
 *            fuzz/cuda.cu.
 * Invariants (1) the same values as fuzz_mix(), bit by bit: elements in row-major
 *                order of the index space, whatever the strides
 *            (2) a write of another task into the scratch memory spoils the word, and
 *                so all that this task writes
 *            (3) nothing here waits for the device: the function may be called
 *                while the stream is captured
 * Threads    the device thread.
 */
#include <string.h>

#include "base/atomic.h"
#include "fuzz/fuzz.h"
#include "fuzz/ptx/cuda.h"
#include "heddle/cuda.h"

enum { CU_BLOCK = 64, CU_DIMS = FUZZ_DIMS };

struct cu {
    struct heddle_exec *x;
    const struct fuzz_task *t;
    void *word;  /* the hash, on the device */
    void *bytes; /* SORT_SCRATCH: FUZZ_SCRATCH bytes behind it */
    uint64_t salt;
};

static heddle_status cu_launch(const struct cu *c, const char *image, const char *entry,
                               size_t nthreads, const struct heddle_cuda_arg *args, unsigned nargs)
{
    const struct heddle_cuda_shape shape = {
        .grid = {(unsigned)((nthreads + CU_BLOCK - 1) / CU_BLOCK)},
        .block = {nthreads == 1 ? 1 : CU_BLOCK}};
    void *f = NULL;
    heddle_status st = heddle_cuda_kernel(c->x, image, 0, entry, &f);

    return st != HEDDLE_OK ? st : heddle_cuda_launch(c->x, f, &shape, args, nargs);
}

static heddle_status cu_begin(const struct cu *c, uint64_t h, uint64_t spin_ns)
{
    const struct heddle_cuda_arg args[] = {{.value = &c->word}, {.value = &h}, {.value = &spin_ns}};

    return cu_launch(c, fuzz_begin_ptx, "fuzz_begin", 1, args, 3);
}

/* --- operands ------------------------------------------------------------ */

/* Three dimensions, the last one varying fastest. */
struct cu_shape {
    uint64_t extent[CU_DIMS], stride[CU_DIMS];
    uint32_t elem;
    size_t count;
};

static struct cu_shape cu_shape(const struct cu *c, unsigned i)
{
    const struct heddle_layout *l = heddle_exec_layout(c->x, i);
    struct cu_shape s = {.extent = {1, 1, 1},
                         .elem = (uint32_t)heddle_dtype_bytes(l->dtype),
                         .count = heddle_exec_count(c->x, i)};

    for (unsigned d = 0; d < l->ndim; d++) {
        s.extent[CU_DIMS - l->ndim + d] = l->extent[d];
        s.stride[CU_DIMS - l->ndim + d] = l->stride[d];
    }
    return s;
}

static unsigned cu_shape_args(const struct cu_shape *s, struct heddle_cuda_arg *args, unsigned n)
{
    for (unsigned d = 0; d < CU_DIMS; d++)
        args[n++] = (struct heddle_cuda_arg){.value = &s->extent[d]};
    for (unsigned d = 0; d < CU_DIMS; d++)
        args[n++] = (struct heddle_cuda_arg){.value = &s->stride[d]};
    args[n++] = (struct heddle_cuda_arg){.value = &s->elem};
    return n;
}

static heddle_status cu_fold(const struct cu *c, unsigned i)
{
    const struct cu_shape s = cu_shape(c, i);
    const uint64_t add = i;
    struct heddle_cuda_arg args[12] = {{.operand = (int)i}, {.value = &c->word}, {.value = &add}};
    const unsigned n = cu_shape_args(&s, args, 3);

    return cu_launch(c, fuzz_fold_ptx, "fuzz_fold", 1, args, n);
}

static heddle_status cu_write(const struct cu *c, unsigned i, uint64_t op, bool adds)
{
    const struct cu_shape s = cu_shape(c, i);
    const uint32_t flag = adds ? 1 : 0;
    struct heddle_cuda_arg args[12] = {{.operand = (int)i}, {.value = &c->word}, {.value = &op}};
    unsigned n = cu_shape_args(&s, args, 3);

    args[n++] = (struct heddle_cuda_arg){.value = &flag};
    return cu_launch(c, fuzz_write_ptx, "fuzz_write", s.count, args, n);
}

static heddle_status cu_check(const struct cu *c, unsigned i)
{
    const struct cu_shape s = cu_shape(c, i);
    const uint64_t op = i;
    struct heddle_cuda_arg args[12] = {
        {.operand = (int)i}, {.value = &c->word}, {.value = &c->salt}, {.value = &op}};
    const unsigned n = cu_shape_args(&s, args, 4);

    return cu_launch(c, fuzz_check_ptx, "fuzz_check", 1, args, n);
}

/* --- scratch of the variant ---------------------------------------------- */

static heddle_status cu_pattern(const struct cu *c, bool checks)
{
    const uint32_t bytes = FUZZ_SCRATCH;
    const struct heddle_cuda_arg args[] = {
        {.value = &c->bytes}, {.value = &bytes}, {.value = &c->salt}, {.value = &c->word}};

    if (c->t->sort != SORT_SCRATCH)
        return HEDDLE_OK;
    return checks ? cu_launch(c, fuzz_pattern_check_ptx, "fuzz_pattern_check", 1, args, 4)
                  : cu_launch(c, fuzz_pattern_ptx, "fuzz_pattern", 1, args, 3);
}

/* --- tasks --------------------------------------------------------------- */

/* As fuzz_scribble(); then the task fails, with this work on its stream. */
static heddle_status cu_scribble(const struct cu *c)
{
    heddle_status st = cu_begin(c, ~c->salt, c->t->spin_ns);

    for (unsigned i = 0; i < c->t->nops && st == HEDDLE_OK; i++)
        if (fuzz_writes(c->t->mode[i]))
            st = cu_write(c, i, i + 100, false);
    return st != HEDDLE_OK ? st : heddle_exec_fail(c->x, HEDDLE_ETASK, "meant to fail");
}

static heddle_status cu_reads(const struct cu *c)
{
    heddle_status st = cu_pattern(c, false);

    if (st == HEDDLE_OK) /* scratch is filled with values of the salt */
        st = cu_begin(c, c->salt, 0);
    for (unsigned i = 0; i < c->t->nops && st == HEDDLE_OK; i++)
        if (heddle_mode_is_scratch(c->t->mode[i]))
            st = cu_write(c, i, i, false);
    if (st == HEDDLE_OK && c->t->spin_ns != 0)
        st = cu_begin(c, c->salt, c->t->spin_ns);
    for (unsigned i = 0; i < c->t->nops && st == HEDDLE_OK; i++)
        if (fuzz_reads(c->t->mode[i]) && !fuzz_adds(c->t->mode[i]))
            st = cu_fold(c, i);
    return st;
}

static heddle_status cu_writes(const struct cu *c)
{
    heddle_status st = cu_pattern(c, true);

    for (unsigned i = 0; i < c->t->nops && st == HEDDLE_OK; i++)
        if (heddle_mode_is_scratch(c->t->mode[i]))
            st = cu_check(c, i);
    for (unsigned i = 0; i < c->t->nops && st == HEDDLE_OK; i++)
        if (fuzz_writes(c->t->mode[i]))
            st = cu_write(c, i, i, fuzz_adds(c->t->mode[i]));
    return st;
}

heddle_status fuzz_cuda_run(struct heddle_exec *x)
{
    struct fuzz_task *t = fuzz_task_of(x);
    unsigned char *scratch =
        t->sort == SORT_PLAIN ? heddle_exec_ptr(x, t->nops - 1) : heddle_exec_scratch(x);
    const struct cu c = {
        .x = x, .t = t, .word = scratch, .bytes = scratch + FUZZ_WORD, .salt = fuzz_salt_of(x)};
    heddle_status st;

    if (t->declines)
        return HEDDLE_EDECLINED;
    heddle_store_rlx(&t->on_device, 1u); /* read at the end */
    if (heddle_add_rlx(&t->runs, 1u) < t->fail_runs)
        return cu_scribble(&c);
    st = cu_reads(&c);
    return st == HEDDLE_OK ? cu_writes(&c) : st;
}
