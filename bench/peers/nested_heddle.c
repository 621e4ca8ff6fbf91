/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * nested_heddle: the nested programs as children of Heddle's tasks.
 *
 * How        heddle_exec_submit() and heddle_exec_wait(); without waits the root task
 *            ends when all below it have ended. No operands: as in OpenMP's version
 *            the order comes from waits alone. Arguments of up to 16 bytes are copied;
 *            longer ones stay on the stack of the parent, which waits.
 * Threads    W workers, the main thread one of them.
 */
#include <heddle/heddle.h>
#include <stdio.h>
#include <stdlib.h>

#include "nested.h"

#define KERNEL(fn)                                                                                 \
    {                                                                                              \
        .size = sizeof(heddle_kernel), .name = #fn, .variants = {                                  \
            {.device = HEDDLE_DEV_CPU, .run = fn}                                                  \
        }                                                                                          \
    }

static heddle_status spawn(struct heddle_exec *x, const heddle_kernel *k, const void *arg,
                           size_t bytes)
{
    const struct heddle_call call = {.arg = arg, .arg_bytes = bytes};

    return heddle_exec_submit(x, k, &call);
}

/* Children may use the frame of the function that submits them: it waits in any case. */
static heddle_status wait_after(struct heddle_exec *x, heddle_status st)
{
    const heddle_status waited = heddle_exec_wait(x);

    return st != HEDDLE_OK ? st : waited;
}

static void count(struct nested *s, struct heddle_exec *x, uint64_t n)
{
    s->count[heddle_exec_worker(x)].n += n;
}

/* --- fib ----------------------------------------------------------------------------- */

struct fib {
    uint64_t *out;
    unsigned n;
};

static heddle_status run_fib(struct heddle_exec *x);
static const heddle_kernel fib = KERNEL(run_fib);

static heddle_status run_fib(struct heddle_exec *x)
{
    const struct fib *f = heddle_exec_arg(x);
    struct fib part;
    const struct heddle_call call = {.arg = &part, .arg_bytes = sizeof(part)};
    uint64_t a, b;
    heddle_status st;

    if (f->n < 2) {
        *f->out = f->n;
        return HEDDLE_OK;
    }
    part = (struct fib){&a, f->n - 1};
    st = heddle_exec_submit(x, &fib, &call);
    part = (struct fib){&b, f->n - 2}; /* the argument was copied */
    if (st == HEDDLE_OK)
        st = heddle_exec_submit(x, &fib, &call);
    st = wait_after(x, st);
    if (st == HEDDLE_OK)
        *f->out = a + b;
    return st;
}

struct fib_free {
    struct nested *s;
    unsigned n;
};

static heddle_status run_fib_free(struct heddle_exec *x);
static const heddle_kernel fib_free = KERNEL(run_fib_free);

static heddle_status run_fib_free(struct heddle_exec *x)
{
    const struct fib_free *f = heddle_exec_arg(x);
    struct fib_free part;
    const struct heddle_call call = {.arg = &part, .arg_bytes = sizeof(part)};
    heddle_status st;

    if (f->n < 2) {
        count(f->s, x, f->n);
        return HEDDLE_OK;
    }
    part = (struct fib_free){f->s, f->n - 1};
    st = heddle_exec_submit(x, &fib_free, &call);
    if (st != HEDDLE_OK)
        return st;
    part.n--; /* the argument was copied */
    return heddle_exec_submit(x, &fib_free, &call);
}

/* --- nqueens --------------------------------------------------------------------------- */

struct queens {
    uint64_t *out;
    struct nested_board b;
};

static heddle_status run_queens(struct heddle_exec *x);
static const heddle_kernel queens = KERNEL(run_queens);

static heddle_status run_queens(struct heddle_exec *x)
{
    const struct queens *q = heddle_exec_arg(x);
    uint64_t part[16], sum = 0;
    heddle_status st = HEDDLE_OK;
    unsigned n = 0;

    if (nested_is_full(q->b)) {
        *q->out = 1;
        return HEDDLE_OK;
    }
    for (unsigned f = nested_free(q->b); f != 0 && st == HEDDLE_OK; f &= f - 1, n++)
        st = spawn(x, &queens, &(struct queens){&part[n], nested_place(q->b, f & -f)}, sizeof(*q));
    st = wait_after(x, st);
    for (unsigned i = 0; i < n && st == HEDDLE_OK; i++)
        sum += part[i];
    *q->out = sum;
    return st;
}

struct queens_free {
    struct nested *s;
    struct nested_board b;
};

static heddle_status run_queens_free(struct heddle_exec *x);
static const heddle_kernel queens_free = KERNEL(run_queens_free);

static heddle_status run_queens_free(struct heddle_exec *x)
{
    const struct queens_free *q = heddle_exec_arg(x);
    heddle_status st = HEDDLE_OK;

    if (nested_is_full(q->b))
        count(q->s, x, 1);
    for (unsigned f = nested_free(q->b); f != 0 && st == HEDDLE_OK; f &= f - 1)
        st = spawn(x, &queens_free, &(struct queens_free){q->s, nested_place(q->b, f & -f)},
                   sizeof(*q));
    return st;
}

/* --- uts ------------------------------------------------------------------------------ */

/* All of the nodes' tasks of one run have one `self`; the child is made by its own task. */
struct uts {
    struct uts_frame *parent;
    unsigned i;
};

struct uts_frame {
    struct nested *s;
    uint64_t node;
    uint64_t *part;
};

static heddle_status run_uts(struct heddle_exec *x);
static const heddle_kernel uts = KERNEL(run_uts);

static heddle_status uts_node(struct heddle_exec *x, struct nested *s, uint64_t node, uint64_t *out)
{
    const unsigned n = nested_uts_children(s, node);
    uint64_t few[8], sum = 1;
    struct uts_frame frame = {s, node, n <= 8 ? few : nested_room(n * sizeof(uint64_t))};
    heddle_status st = HEDDLE_OK;

    for (unsigned i = 0; i < n && st == HEDDLE_OK; i++)
        st = spawn(x, &uts, &(struct uts){&frame, i}, sizeof(struct uts));
    st = wait_after(x, st);
    for (unsigned i = 0; i < n && st == HEDDLE_OK; i++)
        sum += frame.part[i];
    if (frame.part != few)
        free(frame.part);
    *out = sum;
    return st;
}

static heddle_status run_uts(struct heddle_exec *x)
{
    const struct uts *u = heddle_exec_arg(x);
    const struct uts_frame *p = u->parent;

    return uts_node(x, p->s, nested_uts_child(p->node, u->i), &p->part[u->i]);
}

struct uts_free {
    struct nested *s;
    uint64_t node;
};

static heddle_status run_uts_free(struct heddle_exec *x);
static const heddle_kernel uts_free = KERNEL(run_uts_free);

static heddle_status uts_free_node(struct heddle_exec *x, struct nested *s, uint64_t node)
{
    const unsigned n = nested_uts_children(s, node);
    heddle_status st = HEDDLE_OK;

    count(s, x, 1);
    for (unsigned i = 0; i < n && st == HEDDLE_OK; i++)
        st = spawn(x, &uts_free, &(struct uts_free){s, nested_uts_child(node, i)},
                   sizeof(struct uts_free));
    return st;
}

static heddle_status run_uts_free(struct heddle_exec *x)
{
    const struct uts_free *u = heddle_exec_arg(x);

    return uts_free_node(x, u->s, u->node);
}

/* --- sort ----------------------------------------------------------------------------- */

struct merge {
    const uint32_t *a, *b;
    size_t na, nb;
    uint32_t *out;
};

static heddle_status run_merge(struct heddle_exec *x);
static const heddle_kernel merge_kernel = KERNEL(run_merge);

static heddle_status merge(struct heddle_exec *x, const struct merge *m)
{
    struct merge part[2];
    heddle_status st = HEDDLE_OK;
    size_t ha, hb;

    if (m->na < m->nb)
        return merge(x, &(struct merge){m->b, m->a, m->nb, m->na, m->out});
    if (m->na + m->nb <= NESTED_SORT_LEAF) {
        nested_merge_leaf(m->a, m->na, m->b, m->nb, m->out);
        return HEDDLE_OK;
    }
    ha = m->na / 2;
    hb = nested_rank(m->b, m->nb, m->a[ha]);
    part[0] = (struct merge){m->a, m->b, ha, hb, m->out};
    part[1] = (struct merge){m->a + ha, m->b + hb, m->na - ha, m->nb - hb, m->out + ha + hb};
    for (unsigned i = 0; i < 2 && st == HEDDLE_OK; i++)
        st = spawn(x, &merge_kernel, &(const struct merge *){&part[i]}, sizeof(void *));
    return wait_after(x, st);
}

static heddle_status run_merge(struct heddle_exec *x)
{
    return merge(x, *(const struct merge *const *)heddle_exec_arg(x));
}

struct sort {
    uint32_t *key, *tmp;
    size_t n;
};

static heddle_status run_sort(struct heddle_exec *x);
static const heddle_kernel sort_kernel = KERNEL(run_sort);

static heddle_status sort(struct heddle_exec *x, const struct sort *s)
{
    const size_t q = s->n / 4;
    uint32_t *k = s->key, *t = s->tmp;
    struct sort part[4];
    struct merge half[2];
    heddle_status st = HEDDLE_OK;

    if (s->n <= NESTED_SORT_LEAF) {
        nested_sort_leaf(k, s->n);
        return HEDDLE_OK;
    }
    for (size_t i = 0; i < 4 && st == HEDDLE_OK; i++) {
        part[i] = (struct sort){k + i * q, t + i * q, i < 3 ? q : s->n - 3 * q};
        st = spawn(x, &sort_kernel, &(const struct sort *){&part[i]}, sizeof(void *));
    }
    st = wait_after(x, st);
    half[0] = (struct merge){k, k + q, q, q, t};
    half[1] = (struct merge){k + 2 * q, k + 3 * q, q, s->n - 3 * q, t + 2 * q};
    for (size_t i = 0; i < 2 && st == HEDDLE_OK; i++)
        st = spawn(x, &merge_kernel, &(const struct merge *){&half[i]}, sizeof(void *));
    st = wait_after(x, st);
    if (st != HEDDLE_OK)
        return st;
    return merge(x, &(struct merge){t, t + 2 * q, 2 * q, s->n - 2 * q, k});
}

static heddle_status run_sort(struct heddle_exec *x)
{
    return sort(x, *(const struct sort *const *)heddle_exec_arg(x));
}

/* --- strassen ------------------------------------------------------------------------- */

struct multiply {
    size_t n; /* of a quarter */
    const double *a, *b;
    size_t lda, ldb;
    double *room;
};

struct product {
    const struct multiply *of;
    unsigned i;
};

static heddle_status run_product(struct heddle_exec *x);
static const heddle_kernel product_kernel = KERNEL(run_product);

static heddle_status multiply(struct heddle_exec *x, size_t n, const double *a, size_t lda,
                              const double *b, size_t ldb, double *c, size_t ldc)
{
    const size_t h = n / 2;
    struct multiply m = {h, a, b, lda, ldb, NULL};
    heddle_status st = HEDDLE_OK;

    if (n <= NESTED_STRASSEN_LEAF) {
        nested_multiply_leaf(a, lda, b, ldb, c, ldc);
        return HEDDLE_OK;
    }
    m.room = nested_room(21 * h * h * sizeof(double));
    for (unsigned i = 0; i < 7 && st == HEDDLE_OK; i++)
        st = spawn(x, &product_kernel, &(struct product){&m, i}, sizeof(struct product));
    st = wait_after(x, st);
    if (st == HEDDLE_OK)
        nested_combine(h, m.room, c, ldc);
    free(m.room);
    return st;
}

static heddle_status run_product(struct heddle_exec *x)
{
    const struct product *p = heddle_exec_arg(x);
    const struct multiply *m = p->of;
    const size_t area = m->n * m->n;
    const struct nested_factors f =
        nested_factors_of(p->i, m->n, m->a, m->lda, m->b, m->ldb, m->room + (7 + 2 * p->i) * area);

    return multiply(x, m->n, f.a, f.lda, f.b, f.ldb, m->room + p->i * area, m->n);
}

/* --- sparselu ------------------------------------------------------------------------- */

struct block {
    const struct nested *s;
    uint16_t k, i, j;
};

static heddle_status run_fwd(struct heddle_exec *x)
{
    const struct block *t = heddle_exec_arg(x);
    const size_t n = t->s->n;

    nested_fwd(t->s->block[t->k * n + t->k], t->s->block[t->k * n + t->j]);
    return HEDDLE_OK;
}

static heddle_status run_bdiv(struct heddle_exec *x)
{
    const struct block *t = heddle_exec_arg(x);
    const size_t n = t->s->n;

    nested_bdiv(t->s->block[t->k * n + t->k], t->s->block[t->i * n + t->k]);
    return HEDDLE_OK;
}

static heddle_status run_bmod(struct heddle_exec *x)
{
    const struct block *t = heddle_exec_arg(x);
    const size_t n = t->s->n;

    nested_bmod(t->s->block[t->k * n + t->j], t->s->block[t->i * n + t->k],
                t->s->block[t->i * n + t->j]);
    return HEDDLE_OK;
}

static const heddle_kernel fwd = KERNEL(run_fwd), bdiv = KERNEL(run_bdiv), bmod = KERNEL(run_bmod);

static heddle_status sparselu_step(struct heddle_exec *x, const struct nested *s, unsigned k)
{
    const unsigned n = s->n;
    double **b = s->block;
    heddle_status st = HEDDLE_OK;

    nested_lu0(b[k * n + k]);
    for (unsigned j = k + 1; j < n && st == HEDDLE_OK; j++) {
        const struct block t = {s, (uint16_t)k, (uint16_t)j, (uint16_t)j};

        if (b[k * n + j] != NULL)
            st = spawn(x, &fwd, &t, sizeof(t));
        if (b[j * n + k] != NULL && st == HEDDLE_OK)
            st = spawn(x, &bdiv, &t, sizeof(t));
    }
    st = wait_after(x, st);
    for (unsigned i = k + 1; i < n; i++)
        for (unsigned j = k + 1; j < n && st == HEDDLE_OK; j++)
            if (b[i * n + k] != NULL && b[k * n + j] != NULL)
                st = spawn(x, &bmod, &(struct block){s, (uint16_t)k, (uint16_t)i, (uint16_t)j},
                           sizeof(struct block));
    return wait_after(x, st);
}

static heddle_status sparselu(struct heddle_exec *x, const struct nested *s)
{
    heddle_status st = HEDDLE_OK;

    for (unsigned k = 0; k < s->n && st == HEDDLE_OK; k++)
        st = sparselu_step(x, s, k);
    return st;
}

/* --- the side ------------------------------------------------------------------------- */

static heddle_status run_root(struct heddle_exec *x)
{
    struct nested *s = *(struct nested *const *)heddle_exec_arg(x);
    const struct nested_board empty = {.n = (uint16_t)s->n};

    switch (s->program) {
    case NESTED_FIB:
        if (!s->waits)
            return spawn(x, &fib_free, &(struct fib_free){s, s->n}, sizeof(struct fib_free));
        return spawn(x, &fib, &(struct fib){&s->sum, s->n}, sizeof(struct fib));
    case NESTED_QUEENS:
        if (!s->waits)
            return spawn(x, &queens_free, &(struct queens_free){s, empty},
                         sizeof(struct queens_free));
        return spawn(x, &queens, &(struct queens){&s->sum, empty}, sizeof(struct queens));
    case NESTED_UTS:
        if (!s->waits)
            return uts_free_node(x, s, NESTED_UTS_ROOT);
        return uts_node(x, s, NESTED_UTS_ROOT, &s->sum);
    case NESTED_SORT: return sort(x, &(struct sort){s->key, s->tmp, s->n});
    case NESTED_STRASSEN: return multiply(x, s->n, s->a, s->n, s->b, s->n, s->c, s->n);
    default: return sparselu(x, s);
    }
}

static int complain(heddle_ctx *ctx, heddle_status st)
{
    struct heddle_error e = {.size = sizeof(e)};

    if (ctx != NULL)
        (void)heddle_ctx_error(ctx, &e);
    fprintf(stderr, "heddle: %s. %s\n", heddle_status_text(st), e.message);
    return 1;
}

static int heddle_run(struct nested *s)
{
    static const heddle_kernel root = KERNEL(run_root);
    heddle_ctx *ctx = s->self;
    heddle_status st = heddle_go(ctx, &root, HEDDLE_ARG(&s));

    if (st == HEDDLE_OK)
        st = heddle_wait(ctx);
    return st == HEDDLE_OK ? 0 : complain(ctx, st);
}

static int heddle_open(struct nested *s)
{
    struct heddle_ctx_opts o = {.size = sizeof(o), .nworkers = s->workers, .log = HEDDLE_OFF};
    heddle_ctx *ctx = NULL;
    const heddle_status st = heddle_ctx_create(&o, &ctx);

    s->self = ctx;
    return st == HEDDLE_OK ? 0 : complain(NULL, st);
}

static void heddle_close(struct nested *s)
{
    (void)heddle_ctx_destroy(s->self);
}

int main(int argc, char **argv)
{
    static const struct nested_ops ops = {"heddle", heddle_open, heddle_run, heddle_close};

    return nested_main(argc, argv, &ops);
}
