/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * gmres: refinement by GMRES with the low factors M as preconditioner.
 *
 * A cycle solves A d = r for every right-hand side: basis V of the residual under
 * A M^-1, W_k = M^-1 V_k is kept (so M need not be the same map each time), the
 * least squares problem is solved by rotations, and x = x + W y. All right-hand
 * sides take a step together: solves and products see all their columns, each has
 * a basis of its own. Vectors are made when they are needed. Tasks leave inner products
 * in a small vector; rotations and the small solve are the caller's.
 *
 * Orthogonal by two rounds of Gram-Schmidt, some vectors at once: what a task on a device
 * can see of its operands. A task does a block column.
 */
#include <float.h>
#include <math.h>

#include "base/alloc.h"
#include "base/complex.h"
#include "la/cuda/mixed.h"
#include "la/mixed/mixed.h"

enum {
    RESTART = 30, /* vectors of a cycle */
    CYCLES = 4,
    SOME = LA_GPU_VECTORS, /* vectors of a task */
    /* Numbers of a right-hand side: a square of a norm, then the inner products of
     * both rounds (twice the real numbers where they are complex), or y. */
    ROUND = 2 * (RESTART + 1),
    NUMBERS = 2 + 2 * ROUND
};

/* One right-hand side in a cycle. */
struct krylov {
    double tolerance; /* of the residual against the first one, 2-norms */
    unsigned k;       /* vectors that are used */
    bool has_failed;
    double cosine[RESTART];
    double complex sine[RESTART];
    double complex g[RESTART + 1];          /* rotated right-hand side */
    double complex h[RESTART][RESTART + 1]; /* columns of the rotated matrix */
};

/* Operands: the block column that is written, the numbers, then vectors of the basis. */
struct gmres_arg {
    struct la_head h;
    unsigned first, n; /* vectors */
    unsigned round;
    bool is_last; /* of the vectors, and rounds: the rest is made unit */
    size_t j0;
    const struct la_rhs *rhs;
};

static double *numbers_of(struct heddle_exec *x, const struct gmres_arg *g, size_t j)
{
    return (double *)heddle_exec_ptr(x, 1) + (g->j0 + j) * NUMBERS;
}

/* What belongs to the task's vectors. */
static double *products_of(struct heddle_exec *x, const struct gmres_arg *g, size_t j)
{
    return numbers_of(x, g, j) + 2 + g->round * ROUND +
           (blas_is_complex(g->h.t) ? 2 : 1) * g->first;
}

static double complex get(enum blas_type t, const double *c, unsigned i)
{
    return t == BLAS_D ? c[i] : heddle_complex(c[2 * i], c[2 * i + 1]);
}

static void set(enum blas_type t, double *c, unsigned i, double complex v)
{
    c[t == BLAS_D ? i : 2 * i] = creal(v);
    if (t != BLAS_D)
        c[2 * i + 1] = cimag(v);
}

/* --- vectors ------------------------------------------------------------------------ */

static double complex dot(enum blas_type t, const void *x, const void *y, size_t n)
{
    const double *a = x, *b = y;

    if (t == BLAS_D) {
        double s[4] = {0, 0, 0, 0};

        for (size_t i = 0; i < n; i++)
            s[i & 3] += a[i] * b[i];
        return (s[0] + s[1]) + (s[2] + s[3]);
    } else {
        double re[2] = {0, 0}, im[2] = {0, 0};

        for (size_t i = 0; i < n; i++) {
            re[i & 1] += a[2 * i] * b[2 * i] + a[2 * i + 1] * b[2 * i + 1];
            im[i & 1] += a[2 * i] * b[2 * i + 1] - a[2 * i + 1] * b[2 * i];
        }
        return heddle_complex(re[0] + re[1], im[0] + im[1]);
    }
}

/* y = y + f x. */
static void add(enum blas_type t, double complex f, const void *x, void *y, size_t n)
{
    const double *a = x, re = creal(f), im = cimag(f);
    double *b = y;

    if (t == BLAS_D)
        for (size_t i = 0; i < n; i++)
            b[i] += re * a[i];
    else
        for (size_t i = 0; i < n; i++) {
            b[2 * i] += re * a[2 * i] - im * a[2 * i + 1];
            b[2 * i + 1] += re * a[2 * i + 1] + im * a[2 * i];
        }
}

static void multiply(enum blas_type t, double f, void *y, size_t n)
{
    double *b = y;

    for (size_t i = 0; i < n * (blas_is_complex(t) ? 2 : 1); i++)
        b[i] *= f;
}

/* Of norm 1, unless it has none; the square of what it had. */
static double make_unit(enum blas_type t, void *x, size_t n)
{
    const double square = creal(dot(t, x, x, n));

    if (square > 0)
        multiply(t, 1 / sqrt(square), x, n);
    return square;
}

/* --- rotations ---------------------------------------------------------------------- */

/* Column k of the matrix, `below` under its diagonal, joins the others. */
static void rotate(struct krylov *s, unsigned k, double below)
{
    double complex *h = s->h[k];
    double size;

    for (unsigned i = 0; i < k; i++) {
        const double complex top = h[i];

        h[i] = s->cosine[i] * top + s->sine[i] * h[i + 1];
        h[i + 1] = -conj(s->sine[i]) * top + s->cosine[i] * h[i + 1];
    }
    size = hypot(cabs(h[k]), below);
    if (!(size > 0 && size <= DBL_MAX)) {
        s->has_failed = true;
        return;
    }
    if (h[k] == 0) {
        s->cosine[k] = 0;
        s->sine[k] = 1;
        h[k] = below;
    } else {
        const double complex phase = h[k] / cabs(h[k]);

        s->cosine[k] = cabs(h[k]) / size;
        s->sine[k] = phase * below / size;
        h[k] = phase * size;
    }
    s->g[k + 1] = -conj(s->sine[k]) * s->g[k];
    s->g[k] = s->cosine[k] * s->g[k];
    s->k = k + 1;
}

/* --- tasks --------------------------------------------------------------------------- */

/* The first vectors: residuals with norm 1. */
static heddle_status run_start(struct heddle_exec *x)
{
    const struct gmres_arg *g = heddle_exec_arg(x);
    const enum blas_type t = g->h.t;
    const struct blas_block v = la_operand(x, 0), r = la_operand(x, 2);

    if (heddle_la_is_broken(&g->h))
        return HEDDLE_OK;
    for (size_t j = 0; j < v.n; j++) {
        void *to = blas_at(t, v, 0, j);

        memcpy(to, blas_at(t, r, 0, j), v.m * blas_bytes(t));
        if (g->rhs[j].is_done)
            continue;
        multiply(t, g->rhs[j].down, to, v.m);
        *numbers_of(x, g, j) = make_unit(t, to, v.m);
    }
    return HEDDLE_OK;
}

static void orthogonalise(struct heddle_exec *x, const struct gmres_arg *g, size_t j)
{
    const enum blas_type t = g->h.t;
    const struct blas_block z = la_operand(x, 0);
    double *c = products_of(x, g, j);
    void *to = blas_at(t, z, 0, j);

    for (unsigned i = 0; i < g->n; i++)
        set(t, c, i, dot(t, blas_at(t, la_operand(x, 2 + i), 0, j), to, z.m));
    for (unsigned i = 0; i < g->n; i++)
        add(t, -get(t, c, i), blas_at(t, la_operand(x, 2 + i), 0, j), to, z.m);
    if (g->is_last)
        *numbers_of(x, g, j) = make_unit(t, to, z.m);
}

static heddle_status run_step(struct heddle_exec *x)
{
    const struct gmres_arg *g = heddle_exec_arg(x);
    const struct blas_block z = la_operand(x, 0);

    if (heddle_la_is_broken(&g->h))
        return HEDDLE_OK;
    for (size_t j = 0; j < z.n; j++)
        if (!g->rhs[j].is_done)
            orthogonalise(x, g, j);
    return HEDDLE_OK;
}

/* x = x + W y. */
static heddle_status run_end(struct heddle_exec *x)
{
    const struct gmres_arg *g = heddle_exec_arg(x);
    const enum blas_type t = g->h.t;
    const struct blas_block v = la_operand(x, 0);

    if (heddle_la_is_broken(&g->h))
        return HEDDLE_OK;
    for (size_t j = 0; j < v.n; j++) {
        const double *y = products_of(x, g, j);

        for (unsigned i = 0; i < g->n; i++)
            add(t, get(t, y, i), blas_at(t, la_operand(x, 2 + i), 0, j), blas_at(t, v, 0, j), v.m);
    }
    return HEDDLE_OK;
}

/* Solutions that are worse than none. */
static bool is_worse(const struct la_rhs *h)
{
    return !h->is_done && !(h->r < h->b);
}

static heddle_status run_clear(struct heddle_exec *x)
{
    const struct gmres_arg *g = heddle_exec_arg(x);
    const struct blas_block v = la_operand(x, 0);

    if (heddle_la_is_broken(&g->h))
        return HEDDLE_OK;
    for (size_t j = 0; j < v.n; j++)
        if (is_worse(&g->rhs[j]))
            memset(blas_at(g->h.t, v, 0, j), 0, v.m * blas_bytes(g->h.t));
    return HEDDLE_OK;
}

/* --- the same on a GPU, for double precision ------------------------------------------- */

static heddle_status cuda_start(struct heddle_exec *x)
{
    const struct gmres_arg *g = heddle_exec_arg(x);
    const struct blas_block v = la_operand(x, 0), r = la_operand(x, 2);

    if (g->h.t != BLAS_D)
        return HEDDLE_EDECLINED;
    if (heddle_la_is_broken(&g->h))
        return HEDDLE_OK;
    for (size_t j = 0; j < v.n; j++) {
        double *to = blas_at(BLAS_D, v, 0, j), *square = numbers_of(x, g, j);
        const double *const one[1] = {to};

        LA_TRY(heddle_gpu_scale_vector(x, to, blas_at(BLAS_D, r, 0, j), v.m,
                                       g->rhs[j].is_done ? 1 : g->rhs[j].down));
        if (g->rhs[j].is_done)
            continue;
        LA_TRY(heddle_gpu_dots(x, one, 1, to, v.m, square));
        LA_TRY(heddle_gpu_unit(x, to, square, v.m));
    }
    return HEDDLE_OK;
}

/* Column j of the task's vectors. */
static void columns_of(struct heddle_exec *x, const struct gmres_arg *g, size_t j,
                       const double *out[SOME])
{
    for (unsigned i = 0; i < g->n; i++)
        out[i] = blas_at(BLAS_D, la_operand(x, 2 + i), 0, j);
}

static heddle_status cuda_orthogonalise(struct heddle_exec *x, const struct gmres_arg *g, size_t j)
{
    const struct blas_block z = la_operand(x, 0);
    double *c = products_of(x, g, j), *square = numbers_of(x, g, j), *to = blas_at(BLAS_D, z, 0, j);
    const double *const own[1] = {to};
    const double *v[SOME];

    columns_of(x, g, j, v);
    LA_TRY(heddle_gpu_dots(x, v, g->n, to, z.m, c));
    LA_TRY(heddle_gpu_combine(x, v, g->n, c, -1, to, z.m));
    if (!g->is_last)
        return HEDDLE_OK;
    LA_TRY(heddle_gpu_dots(x, own, 1, to, z.m, square));
    return heddle_gpu_unit(x, to, square, z.m);
}

static heddle_status cuda_step(struct heddle_exec *x)
{
    const struct gmres_arg *g = heddle_exec_arg(x);
    const struct blas_block z = la_operand(x, 0);

    if (g->h.t != BLAS_D)
        return HEDDLE_EDECLINED;
    if (heddle_la_is_broken(&g->h))
        return HEDDLE_OK;
    for (size_t j = 0; j < z.n; j++)
        if (!g->rhs[j].is_done)
            LA_TRY(cuda_orthogonalise(x, g, j));
    return HEDDLE_OK;
}

static heddle_status cuda_end(struct heddle_exec *x)
{
    const struct gmres_arg *g = heddle_exec_arg(x);
    const struct blas_block v = la_operand(x, 0);

    if (g->h.t != BLAS_D)
        return HEDDLE_EDECLINED;
    if (heddle_la_is_broken(&g->h))
        return HEDDLE_OK;
    for (size_t j = 0; j < v.n; j++) {
        const double *w[SOME];

        columns_of(x, g, j, w);
        LA_TRY(
            heddle_gpu_combine(x, w, g->n, products_of(x, g, j), 1, blas_at(BLAS_D, v, 0, j), v.m));
    }
    return HEDDLE_OK;
}

static heddle_status cuda_clear(struct heddle_exec *x)
{
    const struct gmres_arg *g = heddle_exec_arg(x);
    const struct blas_block v = la_operand(x, 0);
    const void *zero = heddle_blas_zero(BLAS_D);

    if (g->h.t != BLAS_D)
        return HEDDLE_EDECLINED;
    if (heddle_la_is_broken(&g->h))
        return HEDDLE_OK;
    for (size_t j = 0; j < v.n; j++)
        if (is_worse(&g->rhs[j]))
            LA_TRY(
                heddle_gpu_set(x, 'A', 0, BLAS_D, zero, zero, blas_part(BLAS_D, v, 0, j, v.m, 1)));
    return HEDDLE_OK;
}

static struct heddle_cost cost_vectors(struct heddle_exec *x)
{
    const struct gmres_arg *g = heddle_exec_arg(x);
    const struct heddle_layout *l = heddle_exec_layout(x, 0);

    return (struct heddle_cost){
        .bytes = 2.0 * (double)(l->extent[0] * l->extent[1] * (2 + g->n) * blas_bytes(g->h.t))};
}

#define KERNEL(what)                                                                               \
    static const heddle_kernel kernel_##what = {                                                   \
        .size = sizeof(heddle_kernel),                                                             \
        .name = "gmres_" #what,                                                                    \
        .variants = {{.device = HEDDLE_DEV_CPU, .run = run_##what}, LA_GPU(cuda_##what)},          \
        .cost = cost_vectors}

KERNEL(start);
KERNEL(step);
KERNEL(end);
KERNEL(clear);

/* --- the loop --------------------------------------------------------------------------- */

struct gmres {
    struct la_mixed *s;
    struct krylov *krylov;
    heddle_handle *numbers; /* NUMBERS for each right-hand side */
    struct la_owned v[RESTART + 1], w[RESTART];
};

/* A task for each block column of `to`; g says which vectors of `from` it gets. */
static heddle_status submit_each(struct gmres *q, const heddle_kernel *kernel, heddle_matrix *to,
                                 enum heddle_mode how, const struct la_owned *from,
                                 struct gmres_arg g)
{
    struct la_mixed *s = q->s;

    g.h = heddle_la_begin(s->la, to);
    for (size_t j = 0; j < to->nt; j++) {
        heddle_handle *op[2 + SOME] = {to->col[j], q->numbers};
        enum heddle_mode mode[2 + SOME] = {how, HEDDLE_RW};

        for (unsigned i = 0; i < g.n; i++) {
            op[2 + i] = from[g.first + i].m->col[j];
            mode[2 + i] = HEDDLE_R;
        }
        g.j0 = la_first(to, j);
        g.rhs = s->rhs + g.j0;
        LA_TRY(heddle_la_submit(s->la, kernel, op, mode, 2 + g.n, &g, sizeof(g), 0));
    }
    return HEDDLE_OK;
}

/* n vectors, some at a time, in so many rounds. */
static heddle_status submit_rounds(struct gmres *q, const heddle_kernel *kernel, heddle_matrix *to,
                                   const struct la_owned *from, unsigned n, unsigned rounds)
{
    struct gmres_arg g = {.round = 0};

    for (; g.round < rounds; g.round++)
        for (g.first = 0; g.first < n; g.first += g.n) {
            g.n = (unsigned)la_min(SOME, n - g.first);
            g.is_last = g.round + 1 == rounds && g.first + g.n == n;
            LA_TRY(submit_each(q, kernel, to, HEDDLE_RW, from, g));
        }
    return HEDDLE_OK;
}

/* fn() for the numbers of each right-hand side, when tasks have ended. */
static heddle_status with_numbers(struct gmres *q, enum heddle_mode mode, unsigned k,
                                  void (*fn)(struct gmres *q, size_t j, unsigned k,
                                             double *numbers))
{
    void *p = NULL;

    LA_TRY(heddle_la_wait(q->s->la, NULL));
    LA_TRY(heddle_handle_acquire(q->numbers, mode, &p));
    for (size_t j = 0; j < q->s->nrhs; j++)
        fn(q, j, k, (double *)p + j * NUMBERS);
    return heddle_handle_release(q->numbers);
}

/* The basis is of norm 1 from here on. */
static void begin_one(struct gmres *q, size_t j, unsigned k, double *numbers)
{
    struct krylov *c = &q->krylov[j];
    struct la_rhs *h = &q->s->rhs[j];
    const double norm = sqrt(*numbers);

    (void)k;
    c->k = 0;
    c->has_failed = !h->is_done && !(norm > 0 && norm <= DBL_MAX);
    c->g[0] = h->is_done ? 0 : norm / h->down;
    c->tolerance = fmax(h->goal / h->r / 4, 1e-10);
    h->down = 1;
    h->up = q->s->scale;
    h->is_done = h->is_done || c->has_failed;
}

static void step_one(struct gmres *q, size_t j, unsigned k, double *numbers)
{
    struct krylov *c = &q->krylov[j];
    const double *a = numbers + 2, *b = a + ROUND, norm = sqrt(*numbers);

    if (q->s->rhs[j].is_done)
        return;
    for (unsigned i = 0; i <= k; i++)
        c->h[k][i] = get(q->s->t, a, i) + get(q->s->t, b, i);
    c->h[k][k + 1] = norm;
    rotate(c, k, norm);
}

/* y of all vectors: those that were not used count 0 times. */
static void end_one(struct gmres *q, size_t j, unsigned k, double *numbers)
{
    const struct krylov *c = &q->krylov[j];
    double complex y[RESTART] = {0};

    for (unsigned i = c->has_failed ? 0 : c->k; i-- > 0;) {
        double complex sum = c->g[i];

        for (unsigned l = i + 1; l < c->k; l++)
            sum -= c->h[l][i] * y[l];
        y[i] = sum / c->h[i][i];
    }
    for (unsigned i = 0; i < k; i++)
        set(q->s->t, numbers + 2, i, y[i]);
}

static heddle_status vector(struct gmres *q, struct la_owned *v)
{
    const heddle_matrix *x = q->s->x.m;

    return v->m != NULL ? HEDDLE_OK
                        : heddle_la_owned_make(q->s->la, x->dtype, x->m, x->n, x->nb, v);
}

/* Right-hand sides whose vectors are good enough wait for the others. False: all
 * of them. */
static bool is_going(struct gmres *q)
{
    bool is_going = false;

    for (size_t j = 0; j < q->s->nrhs; j++) {
        struct la_rhs *h = &q->s->rhs[j];
        const struct krylov *c = &q->krylov[j];

        if (h->is_done)
            continue;
        h->is_done = c->has_failed || cabs(c->g[c->k]) <= c->tolerance * h->r;
        is_going = is_going || !h->is_done;
    }
    return is_going;
}

static heddle_status cycle(struct gmres *q)
{
    struct la_mixed *s = q->s;
    const void *one = heddle_blas_one(s->t), *zero = heddle_blas_zero(s->t);
    bool goes_on = true;
    unsigned k = 0;

    LA_TRY(vector(q, &q->v[0]));
    LA_TRY(submit_each(q, &kernel_start, q->v[0].m, HEDDLE_W, &s->r, (struct gmres_arg){.n = 1}));
    LA_TRY(with_numbers(q, HEDDLE_R, 0, begin_one));
    for (; k < RESTART && goes_on; k++) {
        LA_TRY(vector(q, &q->v[k + 1]));
        LA_TRY(vector(q, &q->w[k]));
        LA_TRY(heddle_la_mixed_solve(s, q->v[k].m, q->w[k].m, false));
        LA_TRY(heddle_la_mixed_product(s, one, q->w[k].m, zero, q->v[k + 1].m));
        LA_TRY(submit_rounds(q, &kernel_step, q->v[k + 1].m, q->v, k + 1, 2));
        LA_TRY(with_numbers(q, HEDDLE_R, k, step_one));
        s->iterations++;
        goes_on = is_going(q);
    }
    LA_TRY(with_numbers(q, HEDDLE_RW, k, end_one));
    return submit_rounds(q, &kernel_end, s->x.m, q->w, k, 1);
}

static heddle_status look_again(struct la_mixed *s, double *worst_out)
{
    LA_TRY(heddle_la_mixed_residual(s));
    LA_TRY(heddle_la_mixed_measure(s));
    for (size_t j = 0; j < s->nrhs; j++)
        s->rhs[j].is_done = false;
    *worst_out = heddle_la_mixed_look(s);
    return HEDDLE_OK;
}

static heddle_status cycles(struct gmres *q, bool *is_good_out)
{
    struct la_mixed *s = q->s;
    double worst = 0;

    LA_TRY(submit_each(q, &kernel_clear, s->x.m, HEDDLE_RW, NULL, (struct gmres_arg){.n = 0}));
    LA_TRY(look_again(s, &worst));
    for (unsigned i = 0; i < CYCLES && worst != 0; i++) {
        LA_TRY(cycle(q));
        LA_TRY(look_again(s, &worst));
        if (!(worst <= 0.1))
            break;
    }
    *is_good_out = worst == 0;
    return HEDDLE_OK;
}

heddle_status heddle_la_mixed_gmres(struct la_mixed *s, bool *is_good_out)
{
    struct gmres *q = heddle_zalloc(&s->la->alloc, 1, sizeof(*q));
    heddle_status st = HEDDLE_ENOMEM;

    *is_good_out = false;
    if (q == NULL)
        return HEDDLE_ENOMEM;
    q->s = s;
    q->krylov = heddle_zalloc(&s->la->alloc, s->nrhs, sizeof(*q->krylov));
    if (q->krylov != NULL)
        st = heddle_handle_vector(s->la->ctx, NULL, s->nrhs * NUMBERS, HEDDLE_F64, &q->numbers);
    if (st == HEDDLE_OK)
        st = cycles(q, is_good_out);
    if (st != HEDDLE_OK && heddle_group_wait(s->la->group, 0) != HEDDLE_OK)
        (void)0; /* the first failure is known */
    heddle_handle_unref(q->numbers);
    for (unsigned i = 0; i <= RESTART; i++)
        heddle_la_owned_end(&q->v[i]);
    for (unsigned i = 0; i < RESTART; i++)
        heddle_la_owned_end(&q->w[i]);
    heddle_free(&s->la->alloc, q->krylov, s->nrhs * sizeof(*q->krylov));
    heddle_free(&s->la->alloc, q, sizeof(*q));
    return st;
}
