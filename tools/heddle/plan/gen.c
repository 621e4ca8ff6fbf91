/* SPDX-License-Identifier: BSD-3-Clause */
/* plan/gen: generated graphs, forward nodes first, then what training adds. */
#include "plan/gen.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"

enum { NODE_INPUTS = 8, NODE_MAX = 1 << 20 };

/* A forward operation with one output. */
struct node {
    double time;
    uint64_t bytes, work;
    uint32_t in[NODE_INPUTS];
    uint32_t nin;
};

struct gen {
    struct heddle_rng r;
    struct node *node;
    uint32_t n, cap;
    bool has_failed;
};

static uint32_t add(struct gen *g, double time, uint64_t bytes, uint64_t work, const uint32_t *in,
                    uint32_t nin)
{
    struct node *p = g->node;

    if (g->n == g->cap) {
        const uint32_t cap = g->cap == 0 ? 256 : 2 * g->cap;

        p = cap <= NODE_MAX ? realloc(p, cap * sizeof(*p)) : NULL;
        if (p == NULL) {
            g->has_failed = true;
            return 0;
        }
        g->node = p;
        g->cap = cap;
    }
    p[g->n] = (struct node){.time = time, .bytes = bytes, .work = work, .nin = nin};
    if (nin > 0)
        memcpy(p[g->n].in, in, nin * sizeof(*in));
    return g->n++;
}

static uint32_t add1(struct gen *g, double time, uint64_t bytes, uint32_t a)
{
    return add(g, time, bytes, 0, &a, 1);
}

static uint32_t add2(struct gen *g, double time, uint64_t bytes, uint32_t a, uint32_t b)
{
    const uint32_t in[2] = {a < b ? a : b, a < b ? b : a};

    return add(g, time, bytes, 0, in, a == b ? 1 : 2);
}

/* Within 20 % of v. */
static double near(struct gen *g, double v)
{
    return v * (0.8 + 0.4 * heddle_rng_double(&g->r));
}

/* --- families ------------------------------------------------------------- */

static void layered(struct gen *g, uint32_t n)
{
    const uint32_t width = 2 + n / 24;

    for (uint32_t i = 0; i < n; i++) {
        const uint32_t reach = i < 3 * width ? i : 3 * width;
        uint32_t in[NODE_INPUTS], k = 0;

        for (uint32_t back = reach; back > 0 && k < NODE_INPUTS; back--) {
            /* the layer before often, those before it seldom */
            const uint32_t odds = back <= width ? width / 2 + 1 : 4 * width;

            if (heddle_rng_below32(&g->r, odds) == 0)
                in[k++] = i - back;
        }
        if (k == 0 && i > 0)
            in[k++] = i - 1;
        (void)add(g, 1 + (double)heddle_rng_below(&g->r, 999), 1 + heddle_rng_below(&g->r, 999), 0,
                  in, k);
    }
}

static void cnn(struct gen *g, uint32_t blocks)
{
    const uint32_t period = blocks > 16 ? (blocks + 3) / 4 : 4;
    uint64_t bytes = (uint64_t)200 << 20;
    double time = 1000;
    uint32_t x = add(g, near(g, time), bytes, 0, NULL, 0);

    for (uint32_t b = 0; b < blocks; b++) {
        const uint32_t skip = x;

        if (b > 0 && b % period == 0 && bytes > 1 << 20)
            bytes /= 2;
        for (unsigned k = 0; k < 2; k++) {
            const uint32_t in = x;

            x = add(g, near(g, time), bytes, bytes / 4, &in, 1); /* conv */
            x = add1(g, near(g, time / 12), bytes, x);           /* norm */
            x = add1(g, near(g, time / 20), bytes, x);           /* relu */
        }
        x = add2(g, near(g, time / 20), bytes, x, skip);
    }
    (void)add1(g, near(g, time / 50), 4 << 20, x);
}

static void transformer(struct gen *g, uint32_t layers)
{
    const uint64_t s = 1024, b = 4, h = 1024, a = 16;
    const uint64_t act = 2 * s * b * h, att = 2 * b * a * s * s;
    const double unit = (double)(s * b * h * h) * 1e-9;
    uint32_t x = add(g, unit / 100, act, 0, NULL, 0);

    for (uint32_t l = 0; l < layers; l++) {
        uint32_t y = add1(g, near(g, unit / 50), act, x); /* norm */
        uint32_t z;

        y = add1(g, near(g, 6 * unit), 3 * act, y); /* query, key, value */
        z = add1(g, near(g, 2 * unit), att, y);     /* scores */
        z = add1(g, near(g, unit / 10), att, z);    /* softmax */
        z = add2(g, near(g, 2 * unit), act, y, z);  /* context */
        z = add1(g, near(g, 2 * unit), act, z);     /* projection */
        x = add2(g, near(g, unit / 50), act, x, z);
        y = add1(g, near(g, unit / 50), act, x);     /* norm */
        y = add1(g, near(g, 8 * unit), 4 * act, y);  /* wide */
        y = add1(g, near(g, unit / 10), 4 * act, y); /* gelu */
        y = add1(g, near(g, 8 * unit), act, y);      /* narrow */
        x = add2(g, near(g, unit / 50), act, x, y);
    }
    (void)add1(g, near(g, unit), act, x);
}

static void unet(struct gen *g, uint32_t levels)
{
    uint32_t skip[16];
    uint64_t bytes = (uint64_t)256 << 20;
    double time = 1000;
    uint32_t x = add(g, near(g, time), bytes, 0, NULL, 0);

    for (uint32_t l = 0; l < levels; l++) {
        for (unsigned k = 0; k < 2; k++) {
            x = add1(g, near(g, time), bytes, x);
            x = add1(g, near(g, time / 20), bytes, x);
        }
        skip[l] = x;
        bytes /= 2;
        x = add1(g, near(g, time / 20), bytes / 2, x);
    }
    for (uint32_t l = levels; l-- > 0;) {
        bytes *= 2;
        x = add1(g, near(g, time / 2), bytes, x);               /* up */
        x = add2(g, near(g, time / 20), 2 * bytes, x, skip[l]); /* join */
        for (unsigned k = 0; k < 2; k++) {
            x = add1(g, near(g, time), bytes, x);
            x = add1(g, near(g, time / 20), bytes, x);
        }
    }
}

/* Children before parents: the left half, the right half, the root. */
static uint32_t tree(struct gen *g, uint32_t levels)
{
    uint32_t a, b;

    if (levels == 0)
        return add(g, near(g, 10), (uint64_t)(near(g, 1 << 20)), 0, NULL, 0);
    a = tree(g, levels - 1);
    b = tree(g, levels - 1);
    a = add2(g, near(g, 30), (uint64_t)near(g, 4 << 20), a, b); /* gates */
    return add1(g, near(g, 5), (uint64_t)near(g, 1 << 20), a);  /* state */
}

/* --- from nodes to a graph ------------------------------------------------- */

struct build {
    const struct gen *g;
    struct heddle_plan_op *op;
    struct heddle_plan_value *value;
    uint32_t *input;
    uint32_t nops, nvalues, ninputs;
    uint32_t *grads;  /* gradients that reach a node: a list */
    uint32_t *next;   /* [nvalues] the next of the list */
    uint32_t *nusers; /* [n] */
};

static int by_number(const void *a, const void *b)
{
    const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

    return (x > y) - (x < y);
}

static struct heddle_plan_op *begin_op(struct build *b, double time, uint64_t work)
{
    struct heddle_plan_op *op = &b->op[b->nops++];

    *op = (struct heddle_plan_op){.time = time,
                                  .work_bytes = work,
                                  .first_value = b->nvalues,
                                  .first_input = b->ninputs,
                                  .inplace = HEDDLE_PLAN_NONE};
    return op;
}

static void put_input(struct build *b, struct heddle_plan_op *op, uint32_t v)
{
    b->input[b->ninputs++] = v;
    op->ninputs++;
}

static uint32_t put_value(struct build *b, struct heddle_plan_op *op, uint64_t bytes)
{
    b->value[b->nvalues] = (struct heddle_plan_value){.bytes = bytes, .op = b->nops - 1};
    op->nvalues++;
    return b->nvalues++;
}

/* A gradient of node i: its backward operation will read it. */
static void put_grad(struct build *b, struct heddle_plan_op *op, uint32_t i)
{
    const uint32_t v = put_value(b, op, b->g->node[i].bytes);

    b->next[v] = b->grads[i];
    b->grads[i] = v;
}

static void end_op(struct build *b, const struct heddle_plan_op *op)
{
    qsort(&b->input[op->first_input], op->ninputs, sizeof(*b->input), by_number);
}

static void forward(struct build *b)
{
    for (uint32_t i = 0; i < b->g->n; i++) {
        const struct node *x = &b->g->node[i];
        struct heddle_plan_op *op = begin_op(b, x->time, x->work);

        for (uint32_t k = 0; k < x->nin; k++) {
            put_input(b, op, x->in[k]);
            b->nusers[x->in[k]]++;
        }
        (void)put_value(b, op, x->bytes);
        end_op(b, op);
    }
}

static void backward(struct build *b)
{
    struct heddle_plan_op *op = begin_op(b, 0, 0); /* the loss */

    for (uint32_t i = 0; i < b->g->n; i++)
        if (b->nusers[i] == 0 && op->nvalues < 64) {
            put_input(b, op, i);
            put_grad(b, op, i);
        }
    end_op(b, op);
    for (uint32_t i = b->g->n; i-- > 0;) {
        const struct node *x = &b->g->node[i];

        op = begin_op(b, 2 * x->time, x->work);
        op->flags = HEDDLE_PLAN_BACKWARD;
        put_input(b, op, i);
        for (uint32_t k = 0; k < x->nin; k++)
            put_input(b, op, x->in[k]);
        for (uint32_t v = b->grads[i]; v != HEDDLE_PLAN_NONE; v = b->next[v])
            put_input(b, op, v);
        for (uint32_t k = 0; k < x->nin; k++)
            put_grad(b, op, x->in[k]);
        end_op(b, op);
    }
}

static heddle_status build_graph(const struct gen *g, bool is_training, const char *name,
                                 struct heddle_plan_graph **out)
{
    const size_t n = g->n, most = (2 * NODE_INPUTS + 4) * n + 64;
    struct build b = {.g = g};
    heddle_status st = HEDDLE_ENOMEM;

    b.op = calloc(2 * n + 1, sizeof(*b.op));
    b.value = calloc(most, sizeof(*b.value));
    b.input = calloc(2 * most, sizeof(*b.input));
    b.grads = malloc(n * sizeof(*b.grads));
    b.next = malloc(most * sizeof(*b.next));
    b.nusers = calloc(n, sizeof(*b.nusers));
    if (b.op != NULL && b.value != NULL && b.input != NULL && b.grads != NULL && b.next != NULL &&
        b.nusers != NULL) {
        struct heddle_plan_graph d;

        memset(b.grads, 0xff, n * sizeof(*b.grads));
        forward(&b);
        if (is_training)
            backward(&b);
        d = (struct heddle_plan_graph){.size = sizeof(d),
                                       .name = name,
                                       .nops = b.nops,
                                       .nvalues = b.nvalues,
                                       .ninputs = b.ninputs,
                                       .ops = b.op,
                                       .values = b.value,
                                       .inputs = b.input,
                                       .unit_s = 1e-6};
        st = heddle_plan_graph_create(&d, NULL, out);
    }
    free(b.op);
    free(b.value);
    free(b.input);
    free(b.grads);
    free(b.next);
    free(b.nusers);
    return st;
}

/* --- chains --------------------------------------------------------------- */

static heddle_status cnn_chain(struct gen *g, uint32_t n, const char *name,
                               struct heddle_plan_graph **out)
{
    uint64_t *x = calloc(2 * ((size_t)n + 1), sizeof(*x));
    double *f = calloc(2 * (size_t)n, sizeof(*f));
    uint64_t bytes = (uint64_t)200 << 20;
    heddle_status st = HEDDLE_ENOMEM;

    if (x != NULL && f != NULL) {
        const struct heddle_plan_chain c = {
            .n = n, .x = x, .t = x + n + 1, .forward = f, .backward = f + n};

        for (uint32_t i = 1; i <= n; i++) {
            if (i % (n / 5 + 2) == 0)
                bytes /= 2;
            x[i] = (uint64_t)near(g, (double)bytes);
            x[n + 1 + i] = x[i] + x[i] / 2 * heddle_rng_below(&g->r, 3);
            f[i - 1] = near(g, i % 3 == 0 ? 50 : 1000);
            f[n + i - 1] = 2 * f[i - 1];
        }
        st = heddle_plan_graph_from_chain(&c, name, NULL, out);
        if (st == HEDDLE_OK)
            (*out)->unit_s = 1e-6;
    }
    free(x);
    free(f);
    return st;
}

const char *plan_family_name(enum plan_family f)
{
    static const char *const name[PLAN_FAMILIES] = {"layered", "cnn",  "transformer",
                                                    "unet",    "tree", "cnn_chain"};

    return f < PLAN_FAMILIES ? name[f] : "?";
}

heddle_status plan_gen(enum plan_family f, uint32_t size, uint64_t seed,
                       struct heddle_plan_graph **out)
{
    struct gen g = {.n = 0};
    char name[64];
    heddle_status st;

    if (size == 0 || size > NODE_MAX || (f == PLAN_UNET && size > 16) ||
        (f == PLAN_TREE && size > 16))
        return HEDDLE_EINVAL;
    snprintf(name, sizeof(name), "%s_%u_%llu", plan_family_name(f), size, (unsigned long long)seed);
    heddle_rng_seed(&g.r, seed);
    switch (f) {
    case PLAN_LAYERED: layered(&g, size); break;
    case PLAN_CNN: cnn(&g, size); break;
    case PLAN_TRANSFORMER: transformer(&g, size); break;
    case PLAN_UNET: unet(&g, size); break;
    case PLAN_TREE: (void)tree(&g, size); break;
    case PLAN_CNN_CHAIN: return cnn_chain(&g, size, name, out);
    case PLAN_FAMILIES: return HEDDLE_EINVAL;
    }
    st = g.has_failed ? HEDDLE_ENOMEM : build_graph(&g, f != PLAN_LAYERED, name, out);
    free(g.node);
    return st;
}
