/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cache: keys and values of sequences, in slots of one batch.
 *
 * The memory is that of an instance whose plan keeps the past (run/keep.c), so a run writes the
 * rows of its new tokens and copies nothing else. Where a row is makes no difference to attention,
 * only that the mask says it is there: columns 0 .. n - 1 of a slot are its tokens, in their order.
 * Another size is another instance, into which rows are copied; since sizes grow by a half or more,
 * a row is copied a few times in all.
 */
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/why.h"
#include "nn/decode/decode.h"

size_t heddle_nn_cache_bucket(size_t n)
{
    size_t b = DECODE_BUCKET;

    while (b < n)
        b = (b & (b - 1)) == 0 ? b / 2 * 3 : b / 3 * 4;
    return b;
}

size_t heddle_nn_cache_slots(size_t n)
{
    size_t b = 1;

    while (b < n)
        b *= 2;
    return b;
}

/* Rows of all heads of a slot, from one tensor to another; `clear` rows behind them become 0. */
struct rows {
    char *to;
    const char *from;
    size_t to_slot, from_slot, to_tokens, from_tokens, n, clear;
};

static void copy_rows(const struct decode_pair *p, const struct rows *r)
{
    const size_t heads = (size_t)p->heads, row = (size_t)p->dim * heddle_nn_type_bytes(p->type);

    for (size_t h = 0; h < heads && r->n > 0; h++) {
        char *to = r->to + (r->to_slot * heads + h) * r->to_tokens * row;

        memcpy(to, r->from + (r->from_slot * heads + h) * r->from_tokens * row, r->n * row);
        memset(to + r->n * row, 0, r->clear * row);
    }
}

static void *present_of(const struct decode_ports *p, const struct decode_pass *x, uint32_t pair)
{
    return heddle_nn_instance_data(x->instance, x->plan->output[p->pair[pair].out]);
}

/* A plan that was used before, taken out of the list; NULL: there is none. */
static struct nn_plan *take_old(struct decode_cache *c, size_t batch, size_t tokens)
{
    for (size_t i = 0; i < DECODE_PLANS && c->old[i] != NULL; i++) {
        struct nn_plan *p = c->old[i];
        const struct nn_shape *s = &p->value[p->kept[0]].shape;

        if (s->dim[0] != (int64_t)batch || s->dim[2] != (int64_t)tokens)
            continue;
        memmove(&c->old[i], &c->old[i + 1], (DECODE_PLANS - i - 1) * sizeof(c->old[0]));
        c->old[DECODE_PLANS - 1] = NULL;
        return p;
    }
    return NULL;
}

static void put_old(struct decode_cache *c, struct nn_plan *p)
{
    heddle_nn_plan_destroy(c->old[DECODE_PLANS - 1]);
    memmove(&c->old[1], &c->old[0], (DECODE_PLANS - 1) * sizeof(c->old[0]));
    c->old[0] = p;
}

static heddle_status make_plan(struct decode_cache *c, struct decode_pass *x,
                               const struct nn_opts *o)
{
    const struct decode_ports *p = c->ports;
    struct heddle_scratch mem = heddle_scratch_make(c->net->alloc);
    struct nn_value *in = heddle_scratch_get(&mem, p->g->ninputs, sizeof(*in));
    heddle_status st;

    if (in == NULL)
        return heddle_why(o->why, o->why_bytes, HEDDLE_ENOMEM, "no memory for a plan");
    heddle_nn_decode_inputs(p, x, in);
    st = heddle_nn_plan_keeping(c->net, in, p->keep, p->npairs, o, &x->plan);
    heddle_scratch_drop(&mem);
    return st;
}

/* A run of the new size, its slots filled. */
static heddle_status open_pass(struct decode_cache *c, struct decode_pass *x, const size_t *from,
                               const size_t *rows, const struct nn_opts *o)
{
    const struct decode_ports *p = c->ports;
    const size_t tokens = x->past + 1;
    heddle_status st = HEDDLE_OK;

    x->plan = take_old(c, x->batch, tokens);
    if (x->plan == NULL)
        st = make_plan(c, x, o);
    if (st != HEDDLE_OK)
        return st;
    st = heddle_nn_instance_create(c->net, x->plan, o, &x->instance);
    if (st != HEDDLE_OK) {
        put_old(c, x->plan);
        return st;
    }
    for (uint32_t k = 0; k < p->npairs; k++) {
        char *to = present_of(p, x, k);

        /* Rows that the mask hides are multiplied by 0: they must be numbers. */
        memset(to, 0, heddle_nn_bytes(&x->plan->value[x->plan->kept[k]]));
        for (size_t s = 0; s < x->batch && c->pass.instance != NULL; s++)
            if (from[s] != SIZE_MAX)
                copy_rows(&p->pair[k], &(struct rows){.to = to,
                                                      .from = present_of(p, &c->pass, k),
                                                      .to_slot = s,
                                                      .from_slot = from[s],
                                                      .to_tokens = tokens,
                                                      .from_tokens = c->tokens,
                                                      .n = rows[s]});
    }
    return HEDDLE_OK;
}

heddle_status heddle_nn_cache_resize(struct decode_cache *c, size_t batch, size_t tokens,
                                     const size_t *from, const size_t *rows,
                                     const struct nn_opts *o)
{
    struct decode_pass x = {.batch = batch, .past = tokens - 1, .len = 1};

    HEDDLE_TRY(open_pass(c, &x, from, rows, o));
    heddle_nn_instance_destroy(c->pass.instance);
    if (c->pass.plan != NULL)
        put_old(c, c->pass.plan);
    c->pass = x;
    c->tokens = tokens;
    return HEDDLE_OK;
}

void heddle_nn_cache_drop(struct decode_cache *c)
{
    heddle_nn_instance_destroy(c->pass.instance);
    heddle_nn_plan_destroy(c->pass.plan);
    for (size_t i = 0; i < DECODE_PLANS; i++)
        heddle_nn_plan_destroy(c->old[i]);
    *c = (struct decode_cache){.net = c->net, .ports = c->ports};
}

void heddle_nn_cache_load(struct decode_cache *c, size_t slot, const struct decode_pass *from,
                          size_t n)
{
    /* The sequence before may have left there what is no number. */
    for (uint32_t k = 0; k < c->ports->npairs; k++)
        copy_rows(&c->ports->pair[k], &(struct rows){.to = present_of(c->ports, &c->pass, k),
                                                     .from = present_of(c->ports, from, k),
                                                     .to_slot = slot,
                                                     .to_tokens = c->tokens,
                                                     .from_tokens = from->len,
                                                     .n = n,
                                                     .clear = c->tokens - n});
}

void heddle_nn_cache_fill(struct decode_cache *c, size_t slot, const int64_t *token, size_t at)
{
    const struct decode_pass *x = &c->pass;
    int64_t *row = heddle_nn_instance_data(x->instance, x->plan->rows);
    const int64_t none = 0;

    /* A slot without a sequence sees one row, so that its sums are numbers, and writes none. */
    heddle_nn_decode_fill(c->ports, x, slot, token != NULL ? token : &none, 1, at);
    row[slot] = token != NULL ? (int64_t)at : -1;
}
