/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_DNN_ISA_VEC_H
#define HEDDLE_DNN_ISA_VEC_H

/*
 * Vectors of DNN_LANES numbers, which the file that includes this one defines. The compiler's
 * vector types do: each operation below is one instruction where the processor has it.
 */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/compiler.h"

#ifndef DNN_LANES
#define DNN_LANES 4
#endif

typedef float vf __attribute__((vector_size(4 * DNN_LANES)));
typedef int32_t vi __attribute__((vector_size(4 * DNN_LANES)));
/* The same at any address of a float. */
typedef float vf_any __attribute__((vector_size(4 * DNN_LANES), aligned(4), may_alias));

static HEDDLE_INLINE vf load(const float *p)
{
    return *(const vf_any *)p;
}

static HEDDLE_INLINE void store(float *p, vf v)
{
    *(vf_any *)p = v;
}

static HEDDLE_INLINE vf splat(float x)
{
    return x - (vf){0};
}

/* n < DNN_LANES numbers, in runs of 8, 4, 2 and 1: copies of fixed sizes are single moves. */
static HEDDLE_INLINE void copy_some(float *to, const float *from, size_t n)
{
    if (DNN_LANES > 8 && (n & 8) != 0) {
        memcpy(to, from, 8 * sizeof(float));
        to += 8;
        from += 8;
    }
    if (DNN_LANES > 4 && (n & 4) != 0) {
        memcpy(to, from, 4 * sizeof(float));
        to += 4;
        from += 4;
    }
    if ((n & 2) != 0) {
        memcpy(to, from, 2 * sizeof(float));
        to += 2;
        from += 2;
    }
    if ((n & 1) != 0)
        *to = *from;
}

/* The first n < DNN_LANES numbers; the others are `fill`. */
static HEDDLE_INLINE vf load_tail(const float *p, size_t n, float fill)
{
    float f[DNN_LANES];

    store(f, splat(fill));
    copy_some(f, p, n);
    return load(f);
}

static HEDDLE_INLINE vf load_some(const float *p, size_t n)
{
    return load_tail(p, n, 0);
}

static HEDDLE_INLINE void store_some(float *p, vf v, size_t n)
{
    float f[DNN_LANES];

    store(f, v);
    copy_some(p, f, n);
}

static HEDDLE_INLINE vf choose(vi mask, vf yes, vf no)
{
    return (vf)((mask & (vi)yes) | (~mask & (vi)no));
}

/* x unless it is less (more) than the bound: NaN stays. */
static HEDDLE_INLINE vf at_least(vf x, vf lo)
{
    return choose(x < lo, lo, x);
}

static HEDDLE_INLINE vf at_most(vf x, vf hi)
{
    return choose(x > hi, hi, x);
}

#endif /* HEDDLE_DNN_ISA_VEC_H */
