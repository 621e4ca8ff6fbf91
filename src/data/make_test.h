/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_DATA_MAKE_TEST_H
#define HEDDLE_DATA_MAKE_TEST_H

/* For tests of this module: units in one line. */
#include "data/data.h"
#include "tests/test.h"

static inline heddle_handle *make(struct heddle_registry *reg, const struct heddle_layout *l,
                                  void *ptr)
{
    heddle_handle *h = NULL;

    CHECK_OK(heddle_unit_create(reg, l, ptr, &h));
    return h;
}

static inline heddle_handle *make_view(heddle_handle *h, const size_t *offset, const size_t *extent,
                                       const size_t *step)
{
    heddle_handle *v = NULL;

    CHECK_OK(heddle_unit_view(h, offset, extent, step, &v));
    return v;
}

/* Of a vector. */
static inline heddle_handle *make_part(heddle_handle *h, size_t first, size_t n, size_t step)
{
    return make_view(h, &first, &n, &step);
}

static inline void drop(heddle_handle *h)
{
    heddle_handle *root = heddle_unit_destroy(h);

    if (root != NULL)
        CHECK(heddle_sub_acqrel(&root->refs, 1u) > 1); /* what core does */
}

static inline struct heddle_layout vector(size_t n, enum heddle_dtype t)
{
    return (struct heddle_layout){.dtype = t, .ndim = 1, .extent = {n}};
}

#endif /* HEDDLE_DATA_MAKE_TEST_H */
