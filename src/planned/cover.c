/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cover: has a part of a temporary been written before it is read?
 *
 * The answer "no" may be wrong where writes overlap without one containing the other: such
 * a graph is refused, and never read wrongly.
 */
#include "planned/planned.h"

struct planned_box {
    struct heddle_box box;
    size_t count;
    struct planned_box *next;
};

void heddle_planned_cover_clear(struct planned_cover *c)
{
    *c = (struct planned_cover){.box = NULL};
}

bool heddle_planned_cover_has(const struct planned_cover *c, const heddle_handle *h)
{
    const unsigned ndim = h->root->layout.ndim;
    size_t sum = 0;

    if (c->is_full)
        return true;
    for (const struct planned_box *b = c->box; b != NULL; b = b->next) {
        if (heddle_box_contains(&b->box, &h->box, ndim))
            return true;
        if (heddle_box_contains(&h->box, &b->box, ndim))
            sum += b->count;
    }
    return !c->is_tangled && sum == h->count;
}

heddle_status heddle_planned_cover_add(struct planned_cover *c, const heddle_handle *h,
                                       struct heddle_scratch *mem)
{
    const unsigned ndim = h->root->layout.ndim;
    struct planned_box *b;

    if (c->is_full)
        return HEDDLE_OK;
    if (h->root == h) {
        c->is_full = true;
        return HEDDLE_OK;
    }
    for (b = c->box; b != NULL; b = b->next) {
        if (heddle_box_contains(&b->box, &h->box, ndim))
            return HEDDLE_OK;
        c->is_tangled = c->is_tangled || heddle_box_overlap(&b->box, &h->box, ndim);
    }
    b = heddle_scratch_get(mem, 1, sizeof(*b));
    if (b == NULL)
        return HEDDLE_ENOMEM;
    *b = (struct planned_box){h->box, h->count, c->box};
    c->box = b;
    c->is_full = heddle_planned_cover_has(c, h->root);
    return HEDDLE_OK;
}
