/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * reduction: what REDUCE means for a handle, and the ready-made sum: one pair of
 * functions for all types.
 */
#include <string.h>

#include "base/assert.h"
#include "data/data.h"

static size_t sum_count(const struct heddle_layout *l)
{
    size_t n = 1;

    for (unsigned d = 0; d < l->ndim; d++)
        n *= l->extent[d];
    return n;
}

static void sum_init(void *dst, const struct heddle_layout *l, void *user)
{
    (void)user;
    memset(dst, 0, sum_count(l) * heddle_dtype_bytes(l->dtype));
}

#define SUM_LOOP(type)                                                                             \
    do {                                                                                           \
        type *d = dst;                                                                             \
        const type *s = src;                                                                       \
        for (size_t i = 0; i < n; i++)                                                             \
            d[i] = (type)(d[i] + s[i]);                                                            \
    } while (0)

static void sum_combine(void *dst, const void *src, const struct heddle_layout *l, void *user)
{
    size_t n = sum_count(l);

    (void)user;
    switch (l->dtype) {
    case HEDDLE_U8: SUM_LOOP(uint8_t); break;
    /* Unsigned: the same bits, and overflow is defined. */
    case HEDDLE_I32: SUM_LOOP(uint32_t); break;
    case HEDDLE_I64: SUM_LOOP(uint64_t); break;
    case HEDDLE_F32: SUM_LOOP(float); break;
    case HEDDLE_F64: SUM_LOOP(double); break;
    case HEDDLE_C64:
        n *= 2;
        SUM_LOOP(float);
        break;
    case HEDDLE_C128:
        n *= 2;
        SUM_LOOP(double);
        break;
    default: break;
    }
}

heddle_status heddle_handle_set_reduction(heddle_handle *h, const struct heddle_reduction *r)
{
    HEDDLE_CHECK(h != NULL && r != NULL && r->init != NULL && r->combine != NULL);
    h->extra.reduction = *r;
    return HEDDLE_OK;
}

heddle_status heddle_handle_set_sum(heddle_handle *h)
{
    static const struct heddle_reduction sum = {.init = sum_init, .combine = sum_combine};

    HEDDLE_CHECK(h != NULL);
    if (h->layout.dtype == HEDDLE_F16 || h->layout.dtype == HEDDLE_BF16)
        return HEDDLE_ENOSYS;
    return heddle_handle_set_reduction(h, &sum);
}
