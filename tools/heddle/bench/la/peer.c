/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bench/la/peer: the routines of the machine's BLAS and LAPACK.
 *
 * Purpose    what the benchmarks compare with: the same library whose kernels the
 *            tasks call, with threads of its own.
 * Look-up    as the runtime's: HEDDLE_BLAS_LIBRARY, or the usual names; Fortran's
 *            names of the routines, by type.
 */
#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/thread.h"
#include "bench/la/la.h"

/* --- loading ------------------------------------------------------------------ */

static const char *const names[][2] = {
    {"libopenblas.so.0", NULL},         {"libopenblas.so", NULL},
    {"libmkl_rt.so.2", NULL},           {"libflexiblas.so.3", NULL},
    {"libblas.so.3", "liblapack.so.3"}, {"libblas.so", "liblapack.so"}};

/* dlsym() into a function pointer; C has no cast for this. */
static bool find(const struct la_peer *peer, const char *name, void *fn_out)
{
    void *p = dlsym(peer->library[0], name);

    if (p == NULL && peer->library[1] != NULL)
        p = dlsym(peer->library[1], name);
    if (p != NULL)
        memcpy(fn_out, &p, sizeof(p));
    return p != NULL;
}

/* The routine for a type, "potrf" for dpotrf_. */
static bool routine(const struct la_peer *peer, enum la_type t, const char *name, void *fn_out)
{
    char full[24];

    snprintf(full, sizeof(full), "%c%s_", "sdcz"[t], name);
    return find(peer, full, fn_out);
}

static bool load(struct la_peer *peer, const char *blas, const char *lapack)
{
    void *p;

    *peer = (struct la_peer){0};
    peer->library[0] = dlopen(blas, RTLD_NOW | RTLD_LOCAL);
    if (peer->library[0] == NULL)
        return false;
    if (lapack != NULL)
        peer->library[1] = dlopen(lapack, RTLD_NOW | RTLD_LOCAL);
    return routine(peer, LA_D, "gemm", &p) && routine(peer, LA_D, "potrf", &p);
}

static void describe(struct la_peer *peer, const char *file)
{
    static const char *const set[] = {"openblas_set_num_threads", "MKL_Set_Num_Threads",
                                      "flexiblas_set_num_threads", "bli_thread_set_num_threads"};
    char *(*config)(void) = NULL;

    snprintf(peer->name, sizeof(peer->name), "%s", file);
    if (find(peer, "openblas_get_config", (void *)&config)) {
        snprintf(peer->name, sizeof(peer->name), "%s", config());
        peer->is_openblas = true;
    }
    for (unsigned i = 0; i < 4 && peer->set_threads == NULL; i++)
        (void)find(peer, set[i], (void *)&peer->set_threads);
}

bool la_peer_open(struct la_peer *peer, char *why, size_t why_bytes)
{
    const char *own = getenv("HEDDLE_BLAS_LIBRARY");
    const char *file = own;
    bool is_there = false;

    if (own != NULL && own[0] != '\0') {
        is_there = load(peer, own, NULL);
    } else {
        for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]) && !is_there; i++) {
            file = names[i][0];
            is_there = load(peer, names[i][0], names[i][1]);
        }
        own = "the system";
    }
    if (is_there)
        describe(peer, file);
    else
        snprintf(why, why_bytes, "there is no BLAS with LAPACK in %s", own);
    return is_there;
}

void la_peer_threads(const struct la_peer *peer, unsigned n)
{
    if (peer->set_threads != NULL)
        peer->set_threads((int)n);
}

/* --- one and zero ---------------------------------------------------------------- */

static const float ones_s[2] = {1, 0};
static const double ones_d[2] = {1, 0};

static const void *one(enum la_type t)
{
    return t == LA_S || t == LA_C ? (const void *)ones_s : (const void *)ones_d;
}

/* --- the calls --------------------------------------------------------------------- */

/* Fortran gets addresses, and the lengths of strings behind them. */
typedef void (*gemm_fn)(const char *, const char *, const int *, const int *, const int *,
                        const void *, const void *, const int *, const void *, const int *,
                        const void *, void *, const int *, size_t, size_t);
typedef void (*trsm_fn)(const char *, const char *, const char *, const char *, const int *,
                        const int *, const void *, const void *, const int *, void *, const int *,
                        size_t, size_t, size_t, size_t);
typedef void (*syrk_fn)(const char *, const char *, const int *, const int *, const void *,
                        const void *, const int *, const void *, void *, const int *, size_t,
                        size_t);
typedef void (*trtri_fn)(const char *, const char *, const int *, void *, const int *, int *,
                         size_t, size_t);
typedef void (*potrf_fn)(const char *, const int *, void *, const int *, int *, size_t);
typedef void (*posv_fn)(const char *, const int *, const int *, void *, const int *, void *,
                        const int *, int *, size_t);
typedef void (*getrf_fn)(const int *, const int *, void *, const int *, int *, int *);
typedef void (*gesv_fn)(const int *, const int *, void *, const int *, int *, void *, const int *,
                        int *);
typedef void (*geqrf_fn)(const int *, const int *, void *, const int *, void *, void *, const int *,
                         int *);
typedef void (*orgqr_fn)(const int *, const int *, const int *, void *, const int *, const void *,
                         void *, const int *, int *);
typedef void (*gels_fn)(const char *, const int *, const int *, const int *, void *, const int *,
                        void *, const int *, void *, const int *, int *, size_t);
typedef void (*dsgesv_fn)(const int *, const int *, void *, const int *, int *, void *, const int *,
                          void *, const int *, void *, void *, int *, int *);
typedef void (*zcgesv_fn)(const int *, const int *, void *, const int *, int *, void *, const int *,
                          void *, const int *, void *, void *, void *, int *, int *);
typedef void (*dsposv_fn)(const char *, const int *, const int *, void *, const int *, void *,
                          const int *, void *, const int *, void *, void *, int *, int *, size_t);
typedef void (*zcposv_fn)(const char *, const int *, const int *, void *, const int *, void *,
                          const int *, void *, const int *, void *, void *, void *, int *, int *,
                          size_t);

static int ld_of(const struct la_array *a)
{
    return a->m > 0 ? (int)a->m : 1;
}

/* Room for the routine, kept for the next run; NULL: no memory. */
static void *work_of(struct la_problem *p, size_t bytes)
{
    if (p->work_bytes < bytes) {
        free(p->work);
        p->work = calloc(1, bytes);
        p->work_bytes = p->work != NULL ? bytes : 0;
    }
    return p->work;
}

int la_peer_gemm(const struct la_peer *peer, struct la_problem *p)
{
    const int m = (int)p->out[2].m, n = (int)p->out[2].n, k = (int)p->in[0].n;
    const int lda = ld_of(&p->in[0]), ldb = ld_of(&p->in[1]);
    const int ldc = ld_of(&p->out[2]);
    gemm_fn fn;

    if (!routine(peer, p->t, "gemm", &fn))
        return INT_MIN;
    fn("N", "N", &m, &n, &k, one(p->t), p->in[0].p, &lda, p->in[1].p, &ldb, one(p->t), p->out[2].p,
       &ldc, 1, 1);
    return 0;
}

int la_peer_syrk(const struct la_peer *peer, struct la_problem *p)
{
    const int n = (int)p->n, lda = ld_of(&p->in[0]), ldc = ld_of(&p->out[1]);
    syrk_fn fn;

    if (!routine(peer, p->t, "syrk", &fn))
        return INT_MIN;
    fn("L", "N", &n, &n, one(p->t), p->in[0].p, &lda, one(p->t), p->out[1].p, &ldc, 1, 1);
    return 0;
}

int la_peer_trsm(const struct la_peer *peer, struct la_problem *p)
{
    const int n = (int)p->n, r = (int)p->nrhs;
    const int lda = ld_of(&p->in[0]), ldb = ld_of(&p->out[1]);
    trsm_fn fn;

    if (!routine(peer, p->t, "trsm", &fn))
        return INT_MIN;
    fn("L", "L", "N", "N", &n, &r, one(p->t), p->in[0].p, &lda, p->out[1].p, &ldb, 1, 1, 1, 1);
    return 0;
}

/* potrf or potri: both work in the lower triangle of one matrix. */
static int in_triangle(const struct la_peer *peer, struct la_problem *p, const char *name)
{
    const int n = (int)p->n, lda = ld_of(&p->out[0]);
    potrf_fn fn;
    int info = 0;

    if (!routine(peer, p->t, name, &fn))
        return INT_MIN;
    fn("L", &n, p->out[0].p, &lda, &info, 1);
    return info;
}

int la_peer_potrf(const struct la_peer *peer, struct la_problem *p)
{
    return in_triangle(peer, p, "potrf");
}

int la_peer_potri(const struct la_peer *peer, struct la_problem *p)
{
    return in_triangle(peer, p, "potri");
}

int la_peer_trtri(const struct la_peer *peer, struct la_problem *p)
{
    const int n = (int)p->n, lda = ld_of(&p->out[0]);
    trtri_fn fn;
    int info = 0;

    if (!routine(peer, p->t, "trtri", &fn))
        return INT_MIN;
    fn("L", "N", &n, p->out[0].p, &lda, &info, 1, 1);
    return info;
}

int la_peer_getrf(const struct la_peer *peer, struct la_problem *p)
{
    const int m = (int)p->m, n = (int)p->n, lda = ld_of(&p->out[0]);
    getrf_fn fn;
    int info = 0;

    if (!routine(peer, p->t, "getrf", &fn))
        return INT_MIN;
    fn(&m, &n, p->out[0].p, &lda, p->ipiv, &info);
    return info;
}

int la_peer_geqrf(const struct la_peer *peer, struct la_problem *p)
{
    const int m = (int)p->m, n = (int)p->n, lda = ld_of(&p->out[0]);
    /* As much as the largest block of any LAPACK takes. */
    const int lwork = 256 * (n > 0 ? n : 1);
    void *work = work_of(p, (size_t)lwork * la_elem_bytes(p->t));
    geqrf_fn fn;
    int info = 0;

    if (work == NULL || !routine(peer, p->t, "geqrf", &fn))
        return INT_MIN;
    fn(&m, &n, p->out[0].p, &lda, p->tau.p, work, &lwork, &info);
    return info;
}

/* R is what is left in the upper triangle, but Q is written over it: LAPACK's user
 * copies it in between. */
int la_peer_tsqr(const struct la_peer *peer, struct la_problem *p)
{
    const int m = (int)p->m, n = (int)p->n, lda = ld_of(&p->out[0]);
    const int lwork = 256 * (n > 0 ? n : 1);
    const size_t bytes = la_elem_bytes(p->t);
    int info = la_peer_geqrf(peer, p);
    orgqr_fn fn;

    if (info != 0 || !routine(peer, p->t, la_is_complex(p->t) ? "ungqr" : "orgqr", &fn))
        return info != 0 ? info : INT_MIN;
    for (size_t j = 0; j < p->n; j++)
        memcpy((char *)p->out[1].p + j * p->n * bytes, (const char *)p->out[0].p + j * p->m * bytes,
               (j + 1) * bytes);
    fn(&m, &n, &n, p->out[0].p, &lda, p->tau.p, p->work, &lwork, &info);
    return info;
}

int la_peer_gels(const struct la_peer *peer, struct la_problem *p)
{
    const int m = (int)p->m, n = (int)p->n, r = (int)p->nrhs;
    const int lda = ld_of(&p->out[0]), ldb = ld_of(&p->out[1]);
    const int lwork = n + 256 * (n > r ? n : r);
    void *work = work_of(p, (size_t)lwork * la_elem_bytes(p->t));
    gels_fn fn;
    int info = 0;

    if (work == NULL || !routine(peer, p->t, "gels", &fn))
        return INT_MIN;
    fn("N", &m, &n, &r, p->out[0].p, &lda, p->out[1].p, &ldb, work, &lwork, &info, 1);
    return info;
}

int la_peer_posv(const struct la_peer *peer, struct la_problem *p)
{
    const int n = (int)p->n, r = (int)p->nrhs;
    const int lda = ld_of(&p->out[0]), ldb = ld_of(&p->out[1]);
    posv_fn fn;
    int info = 0;

    if (!routine(peer, p->t, "posv", &fn))
        return INT_MIN;
    fn("L", &n, &r, p->out[0].p, &lda, p->out[1].p, &ldb, &info, 1);
    return info;
}

int la_peer_gesv(const struct la_peer *peer, struct la_problem *p)
{
    const int n = (int)p->n, r = (int)p->nrhs;
    const int lda = ld_of(&p->out[0]), ldb = ld_of(&p->out[1]);
    gesv_fn fn;
    int info = 0;

    if (!routine(peer, p->t, "gesv", &fn))
        return INT_MIN;
    fn(&n, &r, p->out[0].p, &lda, p->ipiv, p->out[1].p, &ldb, &info);
    return info;
}

/* Room for both precisions, and for row sums of complex matrices. */
struct mixed_work {
    void *full, *half, *sums;
};

static bool mixed_work(struct la_problem *p, struct mixed_work *w)
{
    const size_t bytes = la_elem_bytes(p->t);
    const size_t full = p->n * (p->nrhs + 1) * bytes;
    const size_t half = p->n * (p->n + p->nrhs + 1) * bytes / 2;
    char *all = work_of(p, full + half + p->n * sizeof(double) + 64);

    if (all == NULL)
        return false;
    *w = (struct mixed_work){all, all + full, all + full + half};
    return true;
}

int la_peer_gesv_mixed(const struct la_peer *peer, struct la_problem *p)
{
    const int n = (int)p->n, r = (int)p->nrhs;
    const int lda = ld_of(&p->out[0]), ldb = ld_of(&p->out[1]);
    struct mixed_work w;
    int info = 0;

    if (!mixed_work(p, &w))
        return INT_MIN;
    if (p->t == LA_D) {
        dsgesv_fn fn;

        if (!find(peer, "dsgesv_", &fn))
            return INT_MIN;
        fn(&n, &r, p->out[0].p, &lda, p->ipiv, p->out[1].p, &ldb, p->out[2].p, &ldb, w.full, w.half,
           &p->iterations, &info);
    } else {
        zcgesv_fn fn;

        if (!find(peer, "zcgesv_", &fn))
            return INT_MIN;
        fn(&n, &r, p->out[0].p, &lda, p->ipiv, p->out[1].p, &ldb, p->out[2].p, &ldb, w.full, w.half,
           w.sums, &p->iterations, &info);
    }
    return info;
}

int la_peer_posv_mixed(const struct la_peer *peer, struct la_problem *p)
{
    const int n = (int)p->n, r = (int)p->nrhs;
    const int lda = ld_of(&p->out[0]), ldb = ld_of(&p->out[1]);
    struct mixed_work w;
    int info = 0;

    if (!mixed_work(p, &w))
        return INT_MIN;
    if (p->t == LA_D) {
        dsposv_fn fn;

        if (!find(peer, "dsposv_", &fn))
            return INT_MIN;
        fn("L", &n, &r, p->out[0].p, &lda, p->out[1].p, &ldb, p->out[2].p, &ldb, w.full, w.half,
           &p->iterations, &info, 1);
    } else {
        zcposv_fn fn;

        if (!find(peer, "zcposv_", &fn))
            return INT_MIN;
        fn("L", &n, &r, p->out[0].p, &lda, p->out[1].p, &ldb, p->out[2].p, &ldb, w.full, w.half,
           w.sums, &p->iterations, &info, 1);
    }
    return info;
}

/* --- the speed of the machine ---------------------------------------------------- */

enum { PEAK_REPS = 4 };

struct peak {
    gemm_fn gemm;
    enum la_type t;
    int n;
    unsigned ncores;
    double rate[4096]; /* operations per ns */
};

static void peak_one(void *arg, unsigned index)
{
    struct peak *k = arg;
    const size_t n = (size_t)k->n;
    struct la_array a = la_array_make(k->t, n, n);
    struct la_array c = la_array_make(k->t, n, n);
    const double flops = 2.0 * (double)n * (double)n * (double)n * (la_is_complex(k->t) ? 4 : 1);

    k->rate[index] = 0;
    if (a.p != NULL && c.p != NULL) {
        la_array_fill(&a, LA_RANDOM, 3, 1);
        la_array_fill(&c, LA_ZERO, 0, 1);
        for (unsigned r = 0; r <= PEAK_REPS; r++) {
            const uint64_t start = heddle_clock_ns();
            double rate;

            k->gemm("N", "N", &k->n, &k->n, &k->n, one(k->t), a.p, &k->n, a.p, &k->n, one(k->t),
                    c.p, &k->n, 1, 1);
            rate = flops / (double)(heddle_clock_ns() - start);
            if (r > 0) /* the first one warms up, and others start meanwhile */
                k->rate[index] += rate / PEAK_REPS;
        }
    }
    la_array_free(&a);
    la_array_free(&c);
}

/* Orders at which gemm is about as fast as it gets; small problems get less, and
 * do not wait for it. */
static int peak_order(enum la_type t, size_t n)
{
    const size_t most = la_is_complex(t) ? 512 : 1024;

    return (int)(n < 256 ? 256 : n > most ? most : n);
}

double la_peer_peak(const struct la_peer *peer, enum la_type t, size_t n, unsigned ncores)
{
    struct peak *k = calloc(1, sizeof(*k));
    double sum = 0;

    if (k == NULL || !routine(peer, t, "gemm", &k->gemm)) {
        free(k);
        return 0;
    }
    k->t = t;
    k->n = peak_order(t, n);
    k->ncores = ncores < 4096 ? ncores : 4096;
    la_peer_threads(peer, 1);
    la_parallel(k->ncores, peak_one, k);
    for (unsigned i = 0; i < k->ncores; i++)
        sum += k->rate[i];
    free(k);
    return sum;
}
