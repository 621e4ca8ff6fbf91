/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_MEM_CHECK_TEST_H
#define HEDDLE_MEM_CHECK_TEST_H

/*
 * For tests of this module: what README.md and memory.md say is always so. Every
 * number that the module counts is counted again here, from the requests that the
 * test has begun and not ended.
 */
#include "mem/fake_test.h"

static inline bool check_is_held(const struct fake_task *t)
{
    return t->req.state == REQ_ADMITTED || t->req.state == REQ_READY;
}

/* Pins of a copy: its transfers, and the operands of admitted requests. */
static inline unsigned check_pins(const struct mem_copy *c, struct fake_task *const *live,
                                  unsigned n)
{
    unsigned pins = c->arriving != NULL;

    for (const struct mem_xfer *x = c->leaving; x != NULL; x = x->next_out)
        pins++;
    for (unsigned k = 0; k < n; k++)
        for (unsigned i = 0; i < live[k]->req.nops && check_is_held(live[k]); i++)
            pins += live[k]->req.op[i].copy == c;
    return pins;
}

static inline void check_unit(const struct fake *f, const struct heddle_where *w,
                              struct fake_task *const *live, unsigned n)
{
    const uint64_t valid = where_valid(w);
    const heddle_handle *u = w->unit;
    unsigned nwriters = 0;

    CHECK_EQ(w->is_listed_away, (valid & 1) == 0 && !w->is_zero);
    CHECK(!w->is_zero || valid == 0);
    for (unsigned s = 0; s < f->mem->nnodes; s++) {
        const struct mem_copy *c = w->at[s];

        CHECK((valid >> s & 1) == 0 || (c != NULL && !f->mem->node[s].is_lost));
        if (c == NULL)
            continue;
        CHECK(c->where == w && c->node == s);
        CHECK(c->arriving == NULL || (valid >> s & 1) == 0 || c->arriving->version != w->version);
        CHECK_EQ(c->pins, check_pins(c, live, n));
    }
    for (unsigned k = 0; k < n; k++)
        for (unsigned i = 0; i < live[k]->req.nops && live[k]->req.is_writing; i++)
            nwriters += live[k]->req.op[i].unit == u && (live[k]->req.op[i].mode & HEDDLE_W) != 0;
    CHECK_EQ(w->nwriters, nwriters);
    /* A unit that is marked has lost its value: nobody will read it. */
    for (uint32_t i = 0; w->is_listed_away && u->mark == 0 && i < heddle_unit_noverlaps(u); i++) {
        const struct heddle_where *o = u->overlap[i]->where;

        CHECK(o == NULL || o->unit->mark != 0 || (!o->is_listed_away && where_valid(o) <= 1));
    }
}

static inline void check_queue(const struct mem_node *n)
{
    for (const struct heddle_mem_req *req = n->q_first; req != NULL; req = req->next) {
        CHECK_EQ(req->state, REQ_QUEUED);
        CHECK(!req->is_writing && req->nwaits == 0);
        for (unsigned i = 0; i < req->nops; i++)
            CHECK(req->op[i].copy == NULL); /* holds nothing */
    }
}

static inline void check_node(const struct fake *f, unsigned node, struct fake_task *const *live,
                              unsigned n)
{
    const struct mem_node *at = &f->mem->node[node];
    unsigned admitted = 0;
    uint64_t used = 0;

    for (const struct mem_copy *c = at->first; c != NULL; c = c->next) {
        CHECK(c->where->at[node] == c && !c->is_home);
        used += c->bytes;
    }
    for (const struct mem_copy *c = f->mem->garbage; c != NULL; c = c->next)
        used += c->node == node ? c->bytes : 0;
    for (unsigned k = 0; k < n; k++) {
        if (!check_is_held(live[k]) || live[k]->req.node != node)
            continue;
        admitted++;
        for (unsigned i = 0; i < live[k]->req.nprivate; i++)
            used += live[k]->req.private_bytes[i];
    }
    CHECK_EQ(at->used, used);
    CHECK_EQ(at->admitted, admitted);
    CHECK(at->peak >= used);
    CHECK(at->kind != HEDDLE_MEM_DEVICE || used <= at->promised);
    CHECK(node == 0 || used == f->dev[node - 1].used);
    check_queue(at);
}

/* `live`: the `n` requests that were begun and have not ended. */
static inline void check_all(const struct fake *f, struct fake_task *const *live, unsigned n)
{
    for (const struct heddle_where *w = f->mem->units; w != NULL; w = w->next)
        check_unit(f, w, live, n);
    for (unsigned i = 0; i < f->mem->nnodes; i++)
        check_node(f, i, live, n);
}

#endif /* HEDDLE_MEM_CHECK_TEST_H */
