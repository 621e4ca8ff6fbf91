/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fuzz/opencl: the arithmetic of fuzz/mix.c for OpenCL devices.
 *
 * Structure  one work item folds all that is read into a word in the scratch of
 *            the variant, then every written element has a work item.
 * Invariant  the same values as fuzz_mix(), bit by bit: elements in row-major
 *            order of the index space, whatever the strides
 * Threads    the device thread.
 */
#include "heddle/opencl.h"
#include "base/atomic.h"
#include "fuzz/fuzz.h"

/* Bytes, not words: a buffer may begin anywhere. */
static const char source[] =
    "ulong get(__global const uchar *p, uint n)\n"
    "{\n"
    "    ulong v = 0;\n"
    "    for (uint i = 0; i < n; i++)\n"
    "        v |= (ulong)p[i] << (8 * i);\n"
    "    return v;\n"
    "}\n"
    "void put(__global uchar *p, uint n, ulong v)\n"
    "{\n"
    "    for (uint i = 0; i < n; i++)\n"
    "        p[i] = (uchar)(v >> (8 * i));\n"
    "}\n"
    "__kernel void begin(__global ulong *h, ulong salt)\n"
    "{\n"
    "    *h = salt;\n"
    "}\n"
    "__kernel void fold(__global const uchar *p, __global ulong *h, ulong "
    "add,\n"
    "    ulong4 e, ulong4 s, uint elem)\n"
    "{\n"
    "    const uint word = elem > 8 ? 8 : elem;\n"
    "    ulong x = *h + add;\n"
    "    for (ulong i = 0; i < e.x; i++)\n"
    "        for (ulong j = 0; j < e.y; j++)\n"
    "            for (ulong k = 0; k < e.z; k++)\n"
    "                for (uint b = 0; b < elem; b += word) {\n"
    "                    const ulong at = i * s.x + j * s.y + k * s.z;\n"
    "                    x ^= get(p + at * elem + b, word);\n"
    "                    x *= 0x2545f4914f6cdd1dUL;\n"
    "                    x ^= x >> 31;\n"
    "                }\n"
    "    *h = x;\n"
    "}\n"
    "__kernel void write(__global uchar *p, __global const ulong *h, ulong "
    "op,\n"
    "    ulong4 e, ulong4 s, uint elem, uint adds)\n"
    "{\n"
    "    const uint word = elem > 8 ? 8 : elem;\n"
    "    const ulong n = get_global_id(0);\n"
    "    const ulong k = n % e.z, j = n / e.z % e.y, i = n / e.z / e.y;\n"
    "    p += (i * s.x + j * s.y + k * s.z) * elem;\n"
    "    for (uint b = 0; b < elem; b += word) {\n"
    "        const ulong at = n * (elem / word) + b / word;\n"
    "        ulong z = *h + (op + 1) * 0x9e3779b97f4a7c15UL +\n"
    "                  at * 0xd1342543de82ef95UL;\n"
    "        z = (z ^ (z >> 29)) * 0xbf58476d1ce4e5b9UL;\n"
    "        z ^= z >> 32;\n"
    "        if (adds != 0)\n"
    "            z += get(p + b, word);\n"
    "        put(p + b, word, z);\n"
    "    }\n"
    "}\n";

struct cl_long4 {
    uint64_t v[4];
};

/* Extents and strides of three dimensions, the last one varying fastest. */
static void shape_of(const struct heddle_layout *l, struct cl_long4 *extent,
                     struct cl_long4 *stride)
{
    *extent = (struct cl_long4){{1, 1, 1, 0}};
    *stride = (struct cl_long4){{0, 0, 0, 0}};
    for (unsigned d = 0; d < l->ndim; d++) {
        extent->v[FUZZ_DIMS - l->ndim + d] = l->extent[d];
        stride->v[FUZZ_DIMS - l->ndim + d] = l->stride[d];
    }
}

static heddle_status cl_begin(struct heddle_exec *x, void *word, uint64_t salt)
{
    const struct heddle_opencl_arg args[] = {{&word, sizeof(word), 0}, {&salt, sizeof(salt), 0}};
    const size_t one = 1;
    void *k = NULL;
    heddle_status st = heddle_opencl_kernel(x, source, "begin", NULL, &k);

    return st != HEDDLE_OK ? st : heddle_opencl_launch(x, k, 1, &one, NULL, args, 2);
}

static heddle_status cl_operand(struct heddle_exec *x, void *word, unsigned i, const char *entry,
                                bool adds)
{
    const struct heddle_layout *l = heddle_exec_layout(x, i);
    const uint32_t elem = (uint32_t)heddle_dtype_bytes(l->dtype);
    const uint32_t flag = adds ? 1 : 0;
    const uint64_t op = i;
    const bool folds = entry[0] == 'f';
    const size_t n = folds ? 1 : heddle_exec_count(x, i);
    struct cl_long4 extent, stride;
    const struct heddle_opencl_arg args[] = {
        {.operand = (int)i},          {&word, sizeof(word), 0},     {&op, sizeof(op), 0},
        {&extent, sizeof(extent), 0}, {&stride, sizeof(stride), 0}, {&elem, sizeof(elem), 0},
        {&flag, sizeof(flag), 0}};
    void *k = NULL;
    heddle_status st = heddle_opencl_kernel(x, source, entry, NULL, &k);

    shape_of(l, &extent, &stride);
    return st != HEDDLE_OK ? st : heddle_opencl_launch(x, k, 1, &n, NULL, args, folds ? 6 : 7);
}

heddle_status fuzz_opencl_run(struct heddle_exec *x)
{
    struct fuzz_task *t = fuzz_task_of(x);
    void *word = heddle_exec_scratch(x);
    heddle_status st;

    if (t->declines)
        return HEDDLE_EDECLINED;
    heddle_store_rlx(&t->on_device, 1u); /* read at the end */
    if (heddle_add_rlx(&t->runs, 1u) < t->fail_runs)
        return heddle_exec_fail(x, HEDDLE_ETASK, "meant to fail");
    st = cl_begin(x, word, fuzz_salt_of(x));
    for (unsigned i = 0; i < t->nops && st == HEDDLE_OK; i++)
        if (heddle_mode_is_scratch(t->mode[i]))
            st = cl_operand(x, word, i, "write", false);
        else if (fuzz_reads(t->mode[i]) && !fuzz_adds(t->mode[i]))
            st = cl_operand(x, word, i, "fold", false);
    for (unsigned i = 0; i < t->nops && st == HEDDLE_OK; i++)
        if (fuzz_writes(t->mode[i]))
            st = cl_operand(x, word, i, "write", fuzz_adds(t->mode[i]));
    return st;
}
