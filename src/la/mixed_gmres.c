/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mixed_gmres: refinement by GMRES with the low factors M as preconditioner.
 *
 * A cycle solves A d = r for every right-hand side: basis V of the residual under
 * A M^-1, W_k = M^-1 V_k is kept (so M need not be the same map each time), the
 * least squares problem is solved by rotations, and x = x + W y. All right-hand
 * sides take a step together: solves and products see all their columns, each has
 * a basis of its own. Vectors are made when they are needed.
 *
 * Orthogonal by two rounds of classical Gram-Schmidt: one task does a block column.
 */
#include <complex.h>
#include <float.h>
#include <math.h>

#include "base/alloc.h"
#include "la/mixed.h"

enum {
    RESTART = 30, /* vectors of a cycle */
    CYCLES = 4
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

/* Operands: the block column that is written, then those of the basis. */
struct gmres_arg {
    struct la_head h;
    unsigned k; /* the step */
    const struct la_rhs *rhs;
    struct krylov *krylov;
};

/* --- vectors ------------------------------------------------------------------------ */

static double complex dot(enum heddle_la_type t, const void *x, const void *y,
                          size_t n)
{
    const double *a = x, *b = y;

    if (t == LA_D) {
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
        return CMPLX(re[0] + re[1], im[0] + im[1]);
    }
}

/* y = y + f x. */
static void add(enum heddle_la_type t, double complex f, const void *x, void *y,
                size_t n)
{
    const double *a = x, re = creal(f), im = cimag(f);
    double *b = y;

    if (t == LA_D)
        for (size_t i = 0; i < n; i++)
            b[i] += re * a[i];
    else
        for (size_t i = 0; i < n; i++) {
            b[2 * i] += re * a[2 * i] - im * a[2 * i + 1];
            b[2 * i + 1] += re * a[2 * i + 1] + im * a[2 * i];
        }
}

static void multiply(enum heddle_la_type t, double f, void *y, size_t n)
{
    double *b = y;

    for (size_t i = 0; i < n * (la_is_complex(t) ? 2 : 1); i++)
        b[i] *= f;
}

static double norm2(enum heddle_la_type t, const void *x, size_t n)
{
    return sqrt(creal(dot(t, x, x, n)));
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
    const enum heddle_la_type t = g->h.t;
    const struct la_block v = la_operand(x, 0), r = la_operand(x, 1);

    if (heddle_la_is_broken(&g->h))
        return HEDDLE_OK;
    for (size_t j = 0; j < v.n; j++) {
        struct krylov *s = &g->krylov[j];
        const struct la_rhs *h = &g->rhs[j];
        void *to = la_at(t, v, 0, j);
        double norm;

        memcpy(to, la_at(t, r, 0, j), v.m * la_bytes(t));
        s->k = 0;
        s->has_failed = false;
        if (h->is_done)
            continue;
        multiply(t, h->down, to, v.m);
        norm = norm2(t, to, v.m);
        if (!(norm > 0 && norm <= DBL_MAX)) {
            s->has_failed = true;
            continue;
        }
        multiply(t, 1 / norm, to, v.m);
        s->g[0] = norm / h->down;
        s->tolerance = fmax(h->goal / h->r / 4, 1e-10);
    }
    return HEDDLE_OK;
}

static void orthogonalise(struct heddle_exec *x, const struct gmres_arg *g,
                          size_t j)
{
    const enum heddle_la_type t = g->h.t;
    const struct la_block z = la_operand(x, 0);
    struct krylov *s = &g->krylov[j];
    double complex c[RESTART + 1];
    void *to = la_at(t, z, 0, j);
    double norm;

    for (unsigned i = 0; i <= g->k; i++)
        s->h[g->k][i] = 0;
    for (unsigned round = 0; round < 2; round++) {
        for (unsigned i = 0; i <= g->k; i++)
            c[i] = dot(t, la_at(t, la_operand(x, 1 + i), 0, j), to, z.m);
        for (unsigned i = 0; i <= g->k; i++) {
            add(t, -c[i], la_at(t, la_operand(x, 1 + i), 0, j), to, z.m);
            s->h[g->k][i] += c[i];
        }
    }
    norm = norm2(t, to, z.m);
    s->h[g->k][g->k + 1] = norm;
    rotate(s, g->k, norm);
    if (norm > 0)
        multiply(t, 1 / norm, to, z.m);
}

static heddle_status run_step(struct heddle_exec *x)
{
    const struct gmres_arg *g = heddle_exec_arg(x);
    const struct la_block z = la_operand(x, 0);

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
    const enum heddle_la_type t = g->h.t;
    const struct la_block v = la_operand(x, 0);

    if (heddle_la_is_broken(&g->h))
        return HEDDLE_OK;
    for (size_t j = 0; j < v.n; j++) {
        const struct krylov *s = &g->krylov[j];
        double complex y[RESTART];

        for (unsigned i = s->k; i-- > 0;) {
            double complex sum = s->g[i];

            for (unsigned l = i + 1; l < s->k; l++)
                sum -= s->h[l][i] * y[l];
            y[i] = sum / s->h[i][i];
        }
        for (unsigned i = 0; i < s->k && !s->has_failed; i++)
            add(t, y[i], la_at(t, la_operand(x, 1 + i), 0, j),
                la_at(t, v, 0, j), v.m);
    }
    return HEDDLE_OK;
}

/* Solutions that are worse than none. */
static heddle_status run_clear(struct heddle_exec *x)
{
    const struct gmres_arg *g = heddle_exec_arg(x);
    const struct la_block v = la_operand(x, 0);

    if (heddle_la_is_broken(&g->h))
        return HEDDLE_OK;
    for (size_t j = 0; j < v.n; j++)
        if (!g->rhs[j].is_done && !(g->rhs[j].r < g->rhs[j].b))
            memset(la_at(g->h.t, v, 0, j), 0, v.m * la_bytes(g->h.t));
    return HEDDLE_OK;
}

static struct heddle_cost cost_vectors(struct heddle_exec *x)
{
    const struct gmres_arg *g = heddle_exec_arg(x);
    const struct heddle_layout *l = heddle_exec_layout(x, 0);

    return (struct heddle_cost){
        .bytes = 2.0 * (double)(l->extent[0] * l->extent[1] * (2 + g->k) *
                                la_bytes(g->h.t))};
}

#define KERNEL(name_, run_)                                                    \
    {                                                                          \
        .size = sizeof(heddle_kernel), .name = (name_),                        \
        .variants = {{.device = HEDDLE_DEV_CPU, .run = (run_)}},               \
        .cost = cost_vectors                                                   \
    }

static const heddle_kernel kernel_start = KERNEL("gmres_start", run_start);
static const heddle_kernel kernel_step = KERNEL("gmres_step", run_step);
static const heddle_kernel kernel_end = KERNEL("gmres_end", run_end);
static const heddle_kernel kernel_clear = KERNEL("gmres_clear", run_clear);

/* --- the loop --------------------------------------------------------------------------- */

struct gmres {
    struct la_mixed *s;
    struct krylov *krylov;
    struct la_owned v[RESTART + 1], w[RESTART];
};

static heddle_status submit_each(struct gmres *q, const heddle_kernel *kernel,
                                 heddle_matrix *to, const struct la_owned *from,
                                 unsigned n)
{
    struct la_mixed *s = q->s;
    struct gmres_arg g = {.h = heddle_la_begin(s->la, to),
                          .k = n > 0 ? n - 1 : 0};

    for (size_t j = 0; j < to->nt; j++) {
        heddle_handle *op[RESTART + 2] = {to->col[j]};
        enum heddle_mode mode[RESTART + 2] = {HEDDLE_RW};

        for (unsigned i = 0; i < n; i++) {
            op[1 + i] = from[i].m->col[j];
            mode[1 + i] = HEDDLE_R;
        }
        g.rhs = s->rhs + la_first(to, j);
        g.krylov = q->krylov + la_first(to, j);
        LA_TRY(
            heddle_la_submit(s->la, kernel, op, mode, 1 + n, &g, sizeof(g), 0));
    }
    return HEDDLE_OK;
}

static heddle_status vector(struct gmres *q, struct la_owned *v)
{
    const heddle_matrix *x = q->s->x.m;

    return v->m != NULL
               ? HEDDLE_OK
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
    const void *one = heddle_la_one(s->t), *zero = heddle_la_zero(s->t);
    bool goes_on = true;
    unsigned k = 0;

    LA_TRY(vector(q, &q->v[0]));
    LA_TRY(submit_each(q, &kernel_start, q->v[0].m, &s->r, 1));
    LA_TRY(heddle_la_wait(s->la, NULL));
    for (size_t j = 0; j < s->nrhs; j++) { /* the basis is of norm 1 */
        s->rhs[j].down = 1;
        s->rhs[j].up = s->scale;
        s->rhs[j].is_done = s->rhs[j].is_done || q->krylov[j].has_failed;
    }
    for (; k < RESTART && goes_on; k++) {
        LA_TRY(vector(q, &q->v[k + 1]));
        LA_TRY(vector(q, &q->w[k]));
        LA_TRY(heddle_la_mixed_solve(s, q->v[k].m, q->w[k].m, false));
        LA_TRY(heddle_la_mixed_product(s, one, q->w[k].m, zero, q->v[k + 1].m));
        LA_TRY(submit_each(q, &kernel_step, q->v[k + 1].m, q->v, k + 1));
        LA_TRY(heddle_la_wait(s->la, NULL));
        s->iterations++;
        goes_on = is_going(q);
    }
    return submit_each(q, &kernel_end, s->x.m, q->w, k);
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

    LA_TRY(submit_each(q, &kernel_clear, s->x.m, NULL, 0));
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
    struct gmres *q = heddle_zalloc(&heddle_allocator_default, 1, sizeof(*q));
    heddle_status st = HEDDLE_ENOMEM;

    *is_good_out = false;
    if (q == NULL)
        return HEDDLE_ENOMEM;
    q->s = s;
    q->krylov =
        heddle_zalloc(&heddle_allocator_default, s->nrhs, sizeof(*q->krylov));
    if (q->krylov != NULL)
        st = cycles(q, is_good_out);
    if (st != HEDDLE_OK && heddle_group_wait(s->la->group, 0) != HEDDLE_OK)
        (void)0; /* the first failure is known */
    for (unsigned i = 0; i <= RESTART; i++)
        heddle_la_owned_end(&q->v[i]);
    for (unsigned i = 0; i < RESTART; i++)
        heddle_la_owned_end(&q->w[i]);
    heddle_free(&heddle_allocator_default, q->krylov,
                s->nrhs * sizeof(*q->krylov));
    heddle_free(&heddle_allocator_default, q, sizeof(*q));
    return st;
}
