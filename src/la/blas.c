/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * blas: finds BLAS and LAPACK at run time and calls them.
 *
 * Structure  one table for the process, counted by its users. How a BLAS is told
 *            to use one thread differs from one to the other, so these functions
 *            are looked up by name; a BLAS that has none of them has no threads,
 *            or reads OMP_NUM_THREADS.
 * Invariant  the table does not change while anybody uses it.
 * Threads    `lock` guards opening and closing; calls need no lock.
 */
#include "la/blas.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum {
    TRSM_LEAF = 64, /* order of triangles that the library solves with */
    TRSM_MANY = 64  /* right-hand sides from which on halves pay */
};

static struct {
    pthread_mutex_t lock;
    unsigned nusers;
    bool is_loaded;
    int threads; /* before we asked for one */
    struct heddle_blas blas;
} state = {.lock = PTHREAD_MUTEX_INITIALIZER};

static _Thread_local unsigned inside;

bool heddle_blas_is_inside(void)
{
    return inside != 0;
}

void heddle_blas_enter(void)
{
    inside++;
}

void heddle_blas_leave(void)
{
    inside--;
}

/* --- finding it ------------------------------------------------------------ */

/* Each entry: BLAS, and LAPACK if that is another library. */
static const char *const names[][2] = {
    {"libopenblas.so.0", NULL},         {"libopenblas.so", NULL},
    {"libmkl_rt.so.2", NULL},           {"libflexiblas.so.3", NULL},
    {"libblas.so.3", "liblapack.so.3"}, {"libblas.so", "liblapack.so"}};

static void *find(const struct heddle_blas *b, const char *name)
{
    void *p = dlsym(b->library[0], name);

    return p == NULL && b->library[1] != NULL ? dlsym(b->library[1], name) : p;
}

/* C has no cast from an object's address to a function's. */
static void find_any(const struct heddle_blas *b, const char *const *name, void *fn_out)
{
    void *p = NULL;

    for (; *name != NULL && p == NULL; name++)
        p = find(b, *name);
    memcpy(fn_out, &p, sizeof(p));
}

/* The first routine that is missing, or NULL. */
static const char *fill(struct heddle_blas *b)
{
    static const char *const set[] = {"openblas_set_num_threads", "MKL_Set_Num_Threads",
                                      "flexiblas_set_num_threads", "bli_thread_set_num_threads",
                                      NULL};
    static const char *const get[] = {"openblas_get_num_threads", "MKL_Get_Max_Threads",
                                      "flexiblas_get_num_threads", "bli_thread_get_num_threads",
                                      NULL};
    const char *missing = NULL;

#define LA_BLAS(name, s, d, c, z)                                                                  \
    do {                                                                                           \
        const char *const row[4] = {s, d, c, z};                                                   \
                                                                                                   \
        for (unsigned i = 0; i < 4; i++) {                                                         \
            const char *const one[2] = {row[i], NULL};                                             \
                                                                                                   \
            find_any(b, one, &b->name[i]);                                                         \
            if (b->name[i] == NULL && missing == NULL)                                             \
                missing = row[i];                                                                  \
        }                                                                                          \
    } while (0);
#include "la/blas.def"
#undef LA_BLAS
    find_any(b, set, &b->set_threads);
    find_any(b, get, &b->get_threads);
    return missing;
}

static void unload(struct heddle_blas *b)
{
    for (unsigned i = 0; i < 2; i++)
        if (b->library[i] != NULL)
            (void)dlclose(b->library[i]);
    memset(b, 0, sizeof(*b));
}

static bool load(struct heddle_blas *b, const char *blas, const char *lapack, char *why,
                 size_t why_bytes)
{
    const char *missing = NULL;

    memset(b, 0, sizeof(*b));
    b->library[0] = dlopen(blas, RTLD_NOW | RTLD_LOCAL);
    if (b->library[0] != NULL && lapack != NULL)
        b->library[1] = dlopen(lapack, RTLD_NOW | RTLD_LOCAL);
    if (b->library[0] == NULL || (lapack != NULL && b->library[1] == NULL)) {
        snprintf(why, why_bytes, "%s", dlerror());
        unload(b);
        return false;
    }
    missing = fill(b);
    if (missing != NULL) {
        snprintf(why, why_bytes, "%s has no %s", blas, missing);
        unload(b);
        return false;
    }
    return true;
}

static bool load_any(struct heddle_blas *b, const char *library, char *why, size_t why_bytes)
{
    if (library != NULL && library[0] != '\0')
        return load(b, library, NULL, why, why_bytes);
    for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (load(b, names[i][0], names[i][1], why, why_bytes))
            return true;
    snprintf(why, why_bytes,
             "no BLAS with LAPACK on this machine (libopenblas.so.0, "
             "libmkl_rt.so.2, libflexiblas.so.3, libblas.so.3 and "
             "liblapack.so.3 were looked for); on Debian: libopenblas0");
    return false;
}

/* Once loaded it stays: a BLAS with threads does not like to go. */
const struct heddle_blas *heddle_blas_open(const char *library, char *why, size_t why_bytes)
{
    const struct heddle_blas *b = NULL;
    char own[1];

    if (why == NULL) {
        why = own;
        why_bytes = sizeof(own);
    }
    pthread_mutex_lock(&state.lock);
    if (!state.is_loaded)
        state.is_loaded = load_any(&state.blas, library, why, why_bytes);
    if (state.is_loaded) {
        b = &state.blas;
        if (state.nusers++ == 0 && b->set_threads != NULL) {
            state.threads = b->get_threads != NULL ? b->get_threads() : 1;
            b->set_threads(1);
        }
    }
    pthread_mutex_unlock(&state.lock);
    return b;
}

void heddle_blas_close(void)
{
    pthread_mutex_lock(&state.lock);
    if (--state.nusers == 0 && state.blas.set_threads != NULL)
        state.blas.set_threads(state.threads);
    pthread_mutex_unlock(&state.lock);
}

const struct heddle_blas *heddle_blas_get(void)
{
    return state.is_loaded ? &state.blas : NULL;
}

/* --- constants -------------------------------------------------------------- */

static const float ones[2] = {1, 0}, zeros[2], minus_ones[2] = {-1, 0};
static const double ones_d[2] = {1, 0}, zeros_d[2], minus_ones_d[2] = {-1, 0};

const void *heddle_la_one(enum heddle_la_type t)
{
    return la_real_bytes(t) == 4 ? (const void *)ones : (const void *)ones_d;
}

const void *heddle_la_zero(enum heddle_la_type t)
{
    return la_real_bytes(t) == 4 ? (const void *)zeros : (const void *)zeros_d;
}

const void *heddle_la_minus_one(enum heddle_la_type t)
{
    return la_real_bytes(t) == 4 ? (const void *)minus_ones : (const void *)minus_ones_d;
}

bool heddle_la_is_zero(enum heddle_la_type t, const void *p)
{
    const unsigned n = la_is_complex(t) ? 2 : 1;
    const float *f = p;
    const double *d = p;
    bool is_zero = true;

    for (unsigned i = 0; i < n; i++)
        is_zero = is_zero && (la_real_bytes(t) == 4 ? f[i] == 0 : d[i] == 0);
    return is_zero;
}

static bool is_one(enum heddle_la_type t, const void *p)
{
    return memcmp(p, heddle_la_one(t), la_bytes(t)) == 0;
}

/* --- calls ------------------------------------------------------------------- */

/* Fortran gets addresses, and the lengths of strings behind them. An empty part
 * may have any leading dimension but none below 1. */
#define INT(name, value)    const int name = (int)(value)
#define LD(name, b)         const int name = (int)((b).ld > 0 ? (b).ld : 1)
#define CALL(name, type, t) ((type)state.blas.name[t])

typedef void (*gemm_fn)(const char *, const char *, const int *, const int *, const int *,
                        const void *, const void *, const int *, const void *, const int *,
                        const void *, void *, const int *, size_t, size_t);
typedef void (*gemv_fn)(const char *, const int *, const int *, const void *, const void *,
                        const int *, const void *, const int *, const void *, void *, const int *,
                        size_t);
typedef void (*trxv_fn)(const char *, const char *, const char *, const int *, const void *,
                        const int *, void *, const int *, size_t, size_t, size_t);
typedef void (*symm_fn)(const char *, const char *, const int *, const int *, const void *,
                        const void *, const int *, const void *, const int *, const void *, void *,
                        const int *, size_t, size_t);
typedef void (*syrk_fn)(const char *, const char *, const int *, const int *, const void *,
                        const void *, const int *, const void *, void *, const int *, size_t,
                        size_t);
typedef void (*syr2k_fn)(const char *, const char *, const int *, const int *, const void *,
                         const void *, const int *, const void *, const int *, const void *, void *,
                         const int *, size_t, size_t);
typedef void (*trxm_fn)(const char *, const char *, const char *, const char *, const int *,
                        const int *, const void *, const void *, const int *, void *, const int *,
                        size_t, size_t, size_t, size_t);
typedef void (*uplo_fn)(const char *, const int *, void *, const int *, int *, size_t);
typedef void (*trtri_fn)(const char *, const char *, const int *, void *, const int *, int *,
                         size_t, size_t);
typedef void (*getrf_fn)(const int *, const int *, void *, const int *, int *, int *);
typedef void (*geqrt3_fn)(const int *, const int *, void *, const int *, void *, const int *,
                          int *);
typedef void (*larft_fn)(const char *, const char *, const int *, const int *, const void *,
                         const int *, const void *, void *, const int *, size_t, size_t);
typedef void (*syevd_fn)(const char *, const char *, const int *, void *, const int *, void *,
                         void *, const int *, int *, const int *, int *, size_t, size_t);
typedef void (*heevd_fn)(const char *, const char *, const int *, void *, const int *, void *,
                         void *, const int *, void *, const int *, int *, const int *, int *,
                         size_t, size_t);

/* One column: gemm would first copy all of A. Some libraries multiply y by beta
 * even when that is 0. */
static void one_column(enum heddle_la_type t, char ta, const void *alpha, struct la_block a,
                       struct la_block b, const void *beta, struct la_block c)
{
    INT(m, ta == 'N' ? c.m : a.m);
    INT(n, ta == 'N' ? a.n : c.m);
    LD(lda, a);
    const int step = 1;

    if (memcmp(beta, heddle_la_zero(t), la_bytes(t)) == 0)
        memset(c.a, 0, c.m * la_bytes(t));
    heddle_blas_enter();
    CALL(gemv, gemv_fn, t)
    (&ta, &m, &n, alpha, a.a, &lda, b.a, &step, beta, c.a, &step, 1);
    heddle_blas_leave();
}

void heddle_blas_gemm(enum heddle_la_type t, char ta, char tb, const void *alpha, struct la_block a,
                      struct la_block b, const void *beta, struct la_block c)
{
    INT(m, c.m);
    INT(n, c.n);
    INT(k, ta == 'N' ? a.n : a.m);
    LD(lda, a);
    LD(ldb, b);
    LD(ldc, c);

    if (m == 0 || n == 0)
        return;
    if (n == 1 && tb == 'N' && k > 0) {
        one_column(t, ta, alpha, a, b, beta, c);
        return;
    }
    heddle_blas_enter();
    CALL(gemm, gemm_fn, t)
    (&ta, &tb, &m, &n, &k, alpha, a.a, &lda, b.a, &ldb, beta, c.a, &ldc, 1, 1);
    heddle_blas_leave();
}

void heddle_blas_symm(enum heddle_la_type t, bool is_hermitian, char side, char uplo,
                      const void *alpha, struct la_block a, struct la_block b, const void *beta,
                      struct la_block c)
{
    const symm_fn fn = is_hermitian ? CALL(hemm, symm_fn, t) : CALL(symm, symm_fn, t);
    INT(m, c.m);
    INT(n, c.n);
    LD(lda, a);
    LD(ldb, b);
    LD(ldc, c);

    if (m == 0 || n == 0)
        return;
    heddle_blas_enter();
    fn(&side, &uplo, &m, &n, alpha, a.a, &lda, b.a, &ldb, beta, c.a, &ldc, 1, 1);
    heddle_blas_leave();
}

/* Real types know no 'C' here in some versions. */
static char real_trans(enum heddle_la_type t, char trans)
{
    return !la_is_complex(t) && trans == 'C' ? 'T' : trans;
}

void heddle_blas_syrk(enum heddle_la_type t, bool is_hermitian, char uplo, char trans,
                      const void *alpha, struct la_block a, const void *beta, struct la_block c)
{
    const syrk_fn fn = is_hermitian ? CALL(herk, syrk_fn, t) : CALL(syrk, syrk_fn, t);
    INT(n, c.n);
    INT(k, trans == 'N' ? a.n : a.m);
    LD(lda, a);
    LD(ldc, c);

    if (n == 0)
        return;
    trans = real_trans(t, trans);
    heddle_blas_enter();
    fn(&uplo, &trans, &n, &k, alpha, a.a, &lda, beta, c.a, &ldc, 1, 1);
    heddle_blas_leave();
}

void heddle_blas_syr2k(enum heddle_la_type t, bool is_hermitian, char uplo, char trans,
                       const void *alpha, struct la_block a, struct la_block b, const void *beta,
                       struct la_block c)
{
    const syr2k_fn fn = is_hermitian ? CALL(her2k, syr2k_fn, t) : CALL(syr2k, syr2k_fn, t);
    INT(n, c.n);
    INT(k, trans == 'N' ? a.n : a.m);
    LD(lda, a);
    LD(ldb, b);
    LD(ldc, c);

    if (n == 0)
        return;
    trans = real_trans(t, trans);
    heddle_blas_enter();
    fn(&uplo, &trans, &n, &k, alpha, a.a, &lda, b.a, &ldb, beta, c.a, &ldc, 1, 1);
    heddle_blas_leave();
}

static void trxm(trxm_fn fn, const char *how, const void *alpha, struct la_block a,
                 struct la_block b)
{
    INT(m, b.m);
    INT(n, b.n);
    LD(lda, a);
    LD(ldb, b);

    if (m == 0 || n == 0)
        return;
    heddle_blas_enter();
    fn(&how[0], &how[1], &how[2], &how[3], &m, &n, alpha, a.a, &lda, b.a, &ldb, 1, 1, 1, 1);
    heddle_blas_leave();
}

/* One column on the right. */
static bool is_vector(enum heddle_la_type t, char side, const void *alpha, struct la_block b)
{
    return side == 'L' && b.n == 1 && b.m > 0 && is_one(t, alpha);
}

static void trxv(trxv_fn fn, const char *how, struct la_block a, void *x)
{
    INT(n, a.n);
    LD(lda, a);
    const int step = 1;

    heddle_blas_enter();
    fn(&how[1], &how[2], &how[3], &n, a.a, &lda, x, &step, 1, 1, 1);
    heddle_blas_leave();
}

void heddle_blas_trmm(enum heddle_la_type t, char side, char uplo, char trans, char diag,
                      const void *alpha, struct la_block a, struct la_block b)
{
    const char how[4] = {side, uplo, trans, diag};

    if (is_vector(t, side, alpha, b))
        trxv(CALL(trmv, trxv_fn, t), how, la_part(t, a, 0, 0, b.m, b.m), b.a);
    else
        trxm(CALL(trmm, trxm_fn, t), how, alpha, a, b);
}

static void trsm_leaf(enum heddle_la_type t, char side, char uplo, char trans, char diag,
                      const void *alpha, struct la_block a, struct la_block b)
{
    const char how[4] = {side, uplo, trans, diag};

    if (is_vector(t, side, alpha, b))
        trxv(CALL(trsv, trxv_fn, t), how, la_part(t, a, 0, 0, b.m, b.m), b.a);
    else
        trxm(CALL(trsm, trxm_fn, t), how, alpha, a, b);
}

/*
 * Triangular solves of libraries are slow beside their products. So a solve with
 * many right-hand sides is cut in halves: one of them, a product, the other one.
 * op(A) is lower triangular when A is and is not transposed, or neither.
 */
static void trsm_halves(enum heddle_la_type t, const char *how, const void *alpha,
                        struct la_block a, struct la_block b)
{
    const char side = how[0], uplo = how[1], trans = how[2], diag = how[3];
    const bool is_left = side == 'L', is_lower = (uplo == 'L') == (trans == 'N');
    const size_t n = is_left ? b.m : b.n, n1 = (n / 2 + 31) / 32 * 32, n2 = n - n1;
    const struct la_block a11 = la_part(t, a, 0, 0, n1, n1), a22 = la_part(t, a, n1, n1, n2, n2);
    /* The stored block beside the diagonal. */
    const struct la_block off =
        uplo == 'L' ? la_part(t, a, n1, 0, n2, n1) : la_part(t, a, 0, n1, n1, n2);
    const struct la_block b1 =
                              is_left ? la_part(t, b, 0, 0, n1, b.n) : la_part(t, b, 0, 0, b.m, n1),
                          b2 = is_left ? la_part(t, b, n1, 0, n2, b.n)
                                       : la_part(t, b, 0, n1, b.m, n2);
    const bool is_1_first = is_left == is_lower;
    const struct la_block first = is_1_first ? b1 : b2, second = is_1_first ? b2 : b1;
    const void *minus = heddle_la_minus_one(t);

    heddle_blas_trsm(t, side, uplo, trans, diag, alpha, is_1_first ? a11 : a22, first);
    if (is_left)
        heddle_blas_gemm(t, trans, 'N', minus, off, first, alpha, second);
    else
        heddle_blas_gemm(t, 'N', trans, minus, first, off, alpha, second);
    heddle_blas_trsm(t, side, uplo, trans, diag, heddle_la_one(t), is_1_first ? a22 : a11, second);
}

void heddle_blas_trsm(enum heddle_la_type t, char side, char uplo, char trans, char diag,
                      const void *alpha, struct la_block a, struct la_block b)
{
    const char how[4] = {side, uplo, trans, diag};
    const size_t n = side == 'L' ? b.m : b.n, many = side == 'L' ? b.n : b.m;

    if (n > TRSM_LEAF && many >= TRSM_MANY)
        trsm_halves(t, how, alpha, a, b);
    else
        trsm_leaf(t, side, uplo, trans, diag, alpha, a, b);
}

static int call_uplo(uplo_fn fn, char uplo, struct la_block a)
{
    INT(n, a.n);
    LD(lda, a);
    int info = 0;

    heddle_blas_enter();
    fn(&uplo, &n, a.a, &lda, &info, 1);
    heddle_blas_leave();
    return info;
}

/* The first element of the diagonal that is no number, from 1; 0: none. Some
 * libraries do not look. */
static int first_nan(enum heddle_la_type t, struct la_block a)
{
    for (size_t i = 0; i < a.n; i++) {
        const void *d = la_at(t, a, i, i);
        const double v = la_real_bytes(t) == 4 ? *(const float *)d : *(const double *)d;

        if (v != v)
            return (int)i + 1;
    }
    return 0;
}

int heddle_blas_potrf(enum heddle_la_type t, char uplo, struct la_block a)
{
    const int info = call_uplo(CALL(potrf, uplo_fn, t), uplo, a);

    return info == 0 ? first_nan(t, a) : info;
}

int heddle_blas_lauum(enum heddle_la_type t, char uplo, struct la_block a)
{
    return call_uplo(CALL(lauum, uplo_fn, t), uplo, a);
}

int heddle_blas_trtri(enum heddle_la_type t, char uplo, char diag, struct la_block a)
{
    INT(n, a.n);
    LD(lda, a);
    int info = 0;

    heddle_blas_enter();
    CALL(trtri, trtri_fn, t)(&uplo, &diag, &n, a.a, &lda, &info, 1, 1);
    heddle_blas_leave();
    return info;
}

int heddle_blas_getrf(enum heddle_la_type t, struct la_block a, int *ipiv)
{
    INT(m, a.m);
    INT(n, a.n);
    LD(lda, a);
    int info = 0;

    heddle_blas_enter();
    CALL(getrf, getrf_fn, t)(&m, &n, a.a, &lda, ipiv, &info);
    heddle_blas_leave();
    return info;
}

/* One column after the other: a column stays in a cache, and of the next one the
 * rows that will be wanted are on their way. */
#define SWAP(name, type)                                                                           \
    static void name(type *a, size_t ld, size_t cols, const int *ipiv, size_t n, bool is_backward) \
    {                                                                                              \
        for (size_t j = 0; j < cols; j++, a += ld) {                                               \
            const type *next = j + 1 < cols ? a + ld : a;                                          \
                                                                                                   \
            for (size_t i = 0; i < n; i++) {                                                       \
                const size_t k = is_backward ? n - 1 - i : i, p = (size_t)ipiv[k] - 1;             \
                const type x = a[k];                                                               \
                                                                                                   \
                __builtin_prefetch(next + p, 1);                                                   \
                a[k] = a[p];                                                                       \
                a[p] = x;                                                                          \
            }                                                                                      \
        }                                                                                          \
    }
struct pair_s {
    float re, im;
};
struct pair_d {
    double re, im;
};
SWAP(swap_s, float)
SWAP(swap_d, double)
SWAP(swap_c, struct pair_s)
SWAP(swap_z, struct pair_d)

void heddle_blas_laswp(enum heddle_la_type t, struct la_block a, const int *ipiv, size_t n,
                       bool is_backward)
{
    switch (t) {
    case LA_S: swap_s(a.a, a.ld, a.n, ipiv, n, is_backward); break;
    case LA_D: swap_d(a.a, a.ld, a.n, ipiv, n, is_backward); break;
    case LA_C: swap_c(a.a, a.ld, a.n, ipiv, n, is_backward); break;
    case LA_Z: swap_z(a.a, a.ld, a.n, ipiv, n, is_backward); break;
    }
}

int heddle_blas_geqrt3(enum heddle_la_type t, struct la_block a, struct la_block tri)
{
    INT(m, a.m);
    INT(n, a.n);
    LD(lda, a);
    LD(ldt, tri);
    int info = 0;

    heddle_blas_enter();
    CALL(geqrt3, geqrt3_fn, t)(&m, &n, a.a, &lda, tri.a, &ldt, &info);
    heddle_blas_leave();
    return info;
}

void heddle_blas_larft(enum heddle_la_type t, struct la_block v, const void *tau,
                       struct la_block tri)
{
    INT(m, v.m);
    INT(k, v.n);
    LD(ldv, v);
    LD(ldt, tri);

    heddle_blas_enter();
    CALL(larft, larft_fn, t)
    ("F", "C", &m, &k, v.a, &ldv, tau, tri.a, &ldt, 1, 1);
    heddle_blas_leave();
}

/* Elements, real numbers (complex types only) and integers that LAPACK wants. */
static void heevd_sizes(enum heddle_la_type t, size_t n, size_t size[3])
{
    size[0] = la_is_complex(t) ? 2 * n + n * n + 1 : 1 + 6 * n + 2 * n * n;
    size[1] = la_is_complex(t) ? 1 + 5 * n + 2 * n * n : 0;
    size[2] = 3 + 5 * n;
}

size_t heddle_blas_heevd_bytes(enum heddle_la_type t, size_t n)
{
    size_t size[3];

    heevd_sizes(t, n, size);
    return size[0] * la_bytes(t) + size[1] * la_real_bytes(t) + size[2] * sizeof(int);
}

int heddle_blas_heevd(enum heddle_la_type t, char vectors, char uplo, struct la_block a, void *w,
                      void *work)
{
    const heevd_fn complex_fn = CALL(heevd, heevd_fn, t);
    const syevd_fn real_fn = CALL(heevd, syevd_fn, t);
    size_t size[3];
    char *real;
    int *whole, nwork, nreal, nwhole, info = 0;
    INT(n, a.n);
    LD(lda, a);

    heevd_sizes(t, a.n, size);
    nwork = (int)size[0];
    nreal = (int)size[1];
    nwhole = (int)size[2];
    real = (char *)work + size[0] * la_bytes(t);
    whole = (int *)(void *)(real + size[1] * la_real_bytes(t));
    heddle_blas_enter();
    if (la_is_complex(t))
        complex_fn(&vectors, &uplo, &n, a.a, &lda, w, work, &nwork, real, &nreal, whole, &nwhole,
                   &info, 1, 1);
    else
        real_fn(&vectors, &uplo, &n, a.a, &lda, w, work, &nwork, whole, &nwhole, &info, 1, 1);
    heddle_blas_leave();
    return info;
}
