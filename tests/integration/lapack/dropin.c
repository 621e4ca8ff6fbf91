/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * dropin: a program that calls BLAS and LAPACK and knows nothing of Heddle.
 *
 *   dropin write FILE           results of every routine to a file
 *   dropin compare FILE HOW     the same results again, equal to rounding
 *   dropin threads | fork       several threads at once; children
 *
 * HOW is what shall have happened: `taken`, every routine became tasks, or
 * `direct`, none did. Routines are found by name at run time, as the loader would,
 * so a library that was preloaded comes first.
 */
#include <complex.h>
#include <dlfcn.h>
#include <float.h>
#include <pthread.h>
#include <stdbool.h>
#include <sys/wait.h>

#include "base/rng.h"
#include "tests/test.h"

enum { N = 150, M = 200, K = 130, LD = 210, NRHS = 140, ELEMENTS = LD * LD };

static struct {
    FILE *file;
    bool is_write, is_taken;
    const char *now; /* symbol of the routine that runs */
    int nxerbla;
    int compared;
} run;

static unsigned long (*calls)(void);

/* --- the four types --------------------------------------------------------- */

static const char letters[] = "sdcz";

static size_t bytes_of(int t)
{
    return t == 0 ? 4 : t == 3 ? 16 : 8;
}

static bool is_complex(int t)
{
    return t >= 2;
}

static double complex get(int t, const void *a, size_t i)
{
    switch (t) {
    case 0: return ((const float *)a)[i];
    case 1: return ((const double *)a)[i];
    case 2: return ((const float *)a)[2 * i] + I * ((const float *)a)[2 * i + 1];
    default: return ((const double *)a)[2 * i] + I * ((const double *)a)[2 * i + 1];
    }
}

static void set(int t, void *a, size_t i, double complex v)
{
    switch (t) {
    case 0: ((float *)a)[i] = (float)creal(v); break;
    case 1: ((double *)a)[i] = creal(v); break;
    case 2:
        ((float *)a)[2 * i] = (float)creal(v);
        ((float *)a)[2 * i + 1] = (float)cimag(v);
        break;
    default: ((double *)a)[2 * i] = creal(v); ((double *)a)[2 * i + 1] = cimag(v);
    }
}

static double part(struct heddle_rng *rng)
{
    return (double)(heddle_rng_next(rng) >> 40) / 16777216 - 0.5;
}

/* LD x LD random elements, the same for every run; `bump` on the diagonal. */
static void *random_matrix(int t, uint64_t seed, double bump)
{
    struct heddle_rng rng;
    void *a = calloc(ELEMENTS, bytes_of(t));

    CHECK(a != NULL);
    heddle_rng_seed(&rng, seed);
    for (size_t i = 0; i < ELEMENTS; i++) {
        const double re = part(&rng), im = part(&rng);

        set(t, a, i, re + (is_complex(t) ? im * I : 0) + (i % (LD + 1) == 0 ? bump : 0));
    }
    return a;
}

/* Positive definite, hermitian. */
static void *positive_matrix(int t, uint64_t seed)
{
    void *a = random_matrix(t, seed, 0);

    for (size_t j = 0; j < LD; j++) {
        set(t, a, j + j * LD, N);
        for (size_t i = j + 1; i < LD; i++)
            set(t, a, j + i * LD, conj(get(t, a, i + j * LD)));
    }
    return a;
}

static const void *scalar(int t, double re, double im)
{
    static double pool[8][2];
    static unsigned next;
    void *p = pool[next++ % 8];

    set(t, p, 0, re + (is_complex(t) ? im * I : 0));
    return p;
}

/* --- calling and comparing ----------------------------------------------------- */

typedef void (*any_fn)(void);

static any_fn find(int t, const char *real, const char *complex_name)
{
    static char name[32];
    void *p;
    any_fn fn;

    snprintf(name, sizeof(name), "%c%s_", letters[t], is_complex(t) ? complex_name : real);
    p = dlsym(RTLD_DEFAULT, name);
    if (p == NULL)
        printf("no %s\n", name);
    CHECK(p != NULL);
    run.now = name;
    memcpy(&fn, &p, sizeof(fn));
    return fn;
}

static any_fn find_cblas(int t, const char *routine)
{
    static char name[32];
    void *p;
    any_fn fn;

    snprintf(name, sizeof(name), "cblas_%c%s", letters[t], routine);
    p = dlsym(RTLD_DEFAULT, name);
    CHECK(p != NULL);
    run.now = name;
    memcpy(&fn, &p, sizeof(fn));
    return fn;
}

static unsigned long count(void)
{
    return calls != NULL ? calls() : 0;
}

/* Was the call since `before` handled as it should be? */
static void handled(unsigned long before)
{
    const bool is_taken = count() != before;

    if (is_taken != run.is_taken)
        printf("%s: %s\n", run.now, is_taken ? "taken over" : "went direct");
    CHECK_EQ(is_taken, run.is_taken);
}

static void same_int(int value)
{
    int other = 0;

    if (run.is_write) {
        CHECK_EQ(fwrite(&value, sizeof(value), 1, run.file), 1);
        return;
    }
    CHECK_EQ(fread(&other, sizeof(other), 1, run.file), 1);
    if (value != other)
        printf("%s\n", run.now);
    CHECK_EQ(value, other);
}

/* n elements as they were in the other run, to rounding. */
static void same(int t, const void *a, size_t n)
{
    const double eps = t % 2 == 0 ? (double)FLT_EPSILON : DBL_EPSILON;
    const size_t size = bytes_of(t);
    double largest = 0, worst = 0;
    void *other;

    if (run.is_write) {
        CHECK_EQ(fwrite(a, size, n, run.file), n);
        return;
    }
    other = malloc(n * size);
    CHECK(other != NULL);
    CHECK_EQ(fread(other, size, n, run.file), n);
    for (size_t i = 0; i < n; i++) {
        const double d = cabs(get(t, a, i) - get(t, other, i));

        largest = fmax(largest, cabs(get(t, other, i)));
        worst = d > worst || isnan(d) ? d : worst;
    }
    free(other);
    run.compared++;
    if (!(worst <= 200 * N * eps * largest))
        printf("%s: differs by %g of %g\n", run.now, worst, largest);
    CHECK(worst <= 200 * N * eps * largest);
}

/* --- products ------------------------------------------------------------------- */

typedef void (*gemm_fn)(const char *, const char *, const int *, const int *, const int *,
                        const void *, const void *, const int *, const void *, const int *,
                        const void *, void *, const int *, size_t, size_t);
typedef void (*symm_fn)(const char *, const char *, const int *, const int *, const void *,
                        const void *, const int *, const void *, const int *, const void *, void *,
                        const int *, size_t, size_t);
typedef void (*syrk_fn)(const char *, const char *, const int *, const int *, const void *,
                        const void *, const int *, const void *, void *, const int *, size_t,
                        size_t);
typedef void (*trxm_fn)(const char *, const char *, const char *, const char *, const int *,
                        const int *, const void *, const void *, const int *, void *, const int *,
                        size_t, size_t, size_t, size_t);

static const int m = M, n = N, k = K, ld = LD, nrhs = NRHS;

static void test_gemm(int t)
{
    const char *const ops[] = {"NN", "TN", "NC", "TT"};

    for (unsigned i = 0; i < 4; i++) {
        void *a = random_matrix(t, 1, 0), *b = random_matrix(t, 2, 0);
        void *c = random_matrix(t, 3, 0);
        const unsigned long before = count();

        ((gemm_fn)find(t, "gemm", "gemm"))(&ops[i][0], &ops[i][1], &m, &n, &k, scalar(t, 1.5, 0.5),
                                           a, &ld, b, &ld, scalar(t, -0.5, 1), c, &ld, 1, 1);
        handled(before);
        same(t, c, ELEMENTS);
        free(a);
        free(b);
        free(c);
    }
}

static void test_symm(int t, const char *real, const char *complex_name)
{
    for (unsigned i = 0; i < 4; i++) {
        void *a = positive_matrix(t, 1), *b = random_matrix(t, 2, 0);
        void *c = random_matrix(t, 3, 0);
        const unsigned long before = count();

        ((symm_fn)find(t, real, complex_name))(i % 2 == 0 ? "L" : "r", i / 2 == 0 ? "U" : "l", &m,
                                               &n, scalar(t, 1.5, 0.5), a, &ld, b, &ld,
                                               scalar(t, 0.5, 1), c, &ld, 1, 1);
        handled(before);
        same(t, c, ELEMENTS);
        free(a);
        free(b);
        free(c);
    }
}

/* syrk and herk; with `two` syr2k and her2k, which have a symm's parameters. */
static void test_rank(int t, const char *real, const char *complex_name, bool two)
{
    const bool is_hermitian = is_complex(t) && complex_name[0] == 'h';

    for (unsigned i = 0; i < 4; i++) {
        void *a = random_matrix(t, 1, 0), *b = random_matrix(t, 2, 0);
        void *c = positive_matrix(t, 3);
        const char *uplo = i / 2 == 0 ? "U" : "L";
        const char *trans = i % 2 == 0 ? "N" : is_hermitian ? "C" : "T";
        const void *alpha = scalar(t, 1.5, is_hermitian ? 0 : 0.5);
        const void *beta = scalar(t, 0.5, is_hermitian ? 0 : 1);
        const unsigned long before = count();

        if (two)
            ((symm_fn)find(t, real, complex_name))(uplo, trans, &n, &k, alpha, a, &ld, b, &ld, beta,
                                                   c, &ld, 1, 1);
        else
            ((syrk_fn)find(t, real, complex_name))(uplo, trans, &n, &k, alpha, a, &ld, beta, c, &ld,
                                                   1, 1);
        handled(before);
        same(t, c, ELEMENTS);
        free(a);
        free(b);
        free(c);
    }
}

static void test_triangular(int t, const char *name)
{
    for (unsigned i = 0; i < 16; i++) {
        void *a = random_matrix(t, 1, N), *b = random_matrix(t, 2, 0);
        const unsigned long before = count();

        for (size_t j = 0; j < ELEMENTS; j++) /* tame with a unit diagonal */
            set(t, a, j, get(t, a, j) / N);
        ((trxm_fn)find(t, name, name))(i & 1 ? "R" : "L", i & 2 ? "U" : "L", i & 4 ? "C" : "N",
                                       i & 8 ? "U" : "N", &m, &n, scalar(t, 1.5, 0.5), a, &ld, b,
                                       &ld, 1, 1, 1, 1);
        handled(before);
        same(t, b, ELEMENTS);
        free(a);
        free(b);
    }
}

typedef void (*cblas_zgemm_fn)(int, int, int, int, int, int, const void *, const void *, int,
                               const void *, int, const void *, void *, int);
typedef void (*cblas_dgemm_fn)(int, int, int, int, int, int, double, const void *, int,
                               const void *, int, double, void *, int);
typedef void (*cblas_sgemm_fn)(int, int, int, int, int, int, float, const void *, int, const void *,
                               int, float, void *, int);
typedef void (*cblas_zsyrk_fn)(int, int, int, int, int, const void *, const void *, int,
                               const void *, void *, int);
typedef void (*cblas_dsyrk_fn)(int, int, int, int, int, double, const void *, int, double, void *,
                               int);
typedef void (*cblas_ssyrk_fn)(int, int, int, int, int, float, const void *, int, float, void *,
                               int);

static void test_cblas_gemm(int t)
{
    for (int i = 0; i < 8; i++) {
        void *a = random_matrix(t, 1, 0), *b = random_matrix(t, 2, 0);
        void *c = random_matrix(t, 3, 0);
        const int order = 101 + (i & 1), ta = 111 + (i >> 1 & 1), tb = 111 + (i >> 2 & 1);
        const unsigned long before = count();
        const any_fn fn = find_cblas(t, "gemm");

        if (t == 0)
            ((cblas_sgemm_fn)fn)(order, ta, tb, M, N, K, 1.5F, a, LD, b, LD, 0.5F, c, LD);
        else if (t == 1)
            ((cblas_dgemm_fn)fn)(order, ta, tb, M, N, K, 1.5, a, LD, b, LD, 0.5, c, LD);
        else
            ((cblas_zgemm_fn)fn)(order, ta, tb, M, N, K, scalar(t, 1.5, 0.5), a, LD, b, LD,
                                 scalar(t, 0.5, 1), c, LD);
        handled(before);
        same(t, c, ELEMENTS);
        free(a);
        free(b);
        free(c);
    }
}

static void test_cblas_syrk(int t)
{
    for (int i = 0; i < 8; i++) {
        void *a = random_matrix(t, 1, 0), *c = random_matrix(t, 3, 0);
        const int order = 101 + (i & 1), uplo = 121 + (i >> 1 & 1), trans = 111 + (i >> 2 & 1);
        const unsigned long before = count();
        const any_fn fn = find_cblas(t, "syrk");

        if (t == 0)
            ((cblas_ssyrk_fn)fn)(order, uplo, trans, N, K, 1.5F, a, LD, 0.5F, c, LD);
        else if (t == 1)
            ((cblas_dsyrk_fn)fn)(order, uplo, trans, N, K, 1.5, a, LD, 0.5, c, LD);
        else
            ((cblas_zsyrk_fn)fn)(order, uplo, trans, N, K, scalar(t, 1.5, 0.5), a, LD,
                                 scalar(t, 0.5, 1), c, LD);
        handled(before);
        same(t, c, ELEMENTS);
        free(a);
        free(c);
    }
}

/* --- Cholesky and LU ---------------------------------------------------------------- */

typedef void (*uplo_fn)(const char *, const int *, void *, const int *, int *, size_t);
typedef void (*posv_fn)(const char *, const int *, const int *, void *, const int *, void *,
                        const int *, int *, size_t);
typedef void (*trtri_fn)(const char *, const char *, const int *, void *, const int *, int *,
                         size_t, size_t);
typedef void (*getrf_fn)(const int *, const int *, void *, const int *, int *, int *);
typedef void (*getrs_fn)(const char *, const int *, const int *, const void *, const int *,
                         const int *, void *, const int *, int *, size_t);
typedef void (*gesv_fn)(const int *, const int *, void *, const int *, int *, void *, const int *,
                        int *);

static void call_uplo(int t, const char *name, const char *uplo, void *a)
{
    const unsigned long before = count();
    int info = -99;

    ((uplo_fn)find(t, name, name))(uplo, &n, a, &ld, &info, 1);
    handled(before);
    same_int(info);
    same(t, a, ELEMENTS);
}

static void test_cholesky(int t)
{
    for (unsigned i = 0; i < 2; i++) {
        const char *uplo = i == 0 ? "L" : "u";
        void *a = positive_matrix(t, 1), *b = random_matrix(t, 2, 0);
        unsigned long before;
        int info = -99;

        call_uplo(t, "potrf", uplo, a);
        before = count();
        ((posv_fn)find(t, "potrs", "potrs"))(uplo, &n, &nrhs, a, &ld, b, &ld, &info, 1);
        handled(before);
        same_int(info);
        same(t, b, ELEMENTS);
        call_uplo(t, "potri", uplo, a);
        free(a);
        a = positive_matrix(t, 3);
        before = count();
        ((posv_fn)find(t, "posv", "posv"))(uplo, &n, &nrhs, a, &ld, b, &ld, &info, 1);
        handled(before);
        same_int(info);
        same(t, b, ELEMENTS);
        free(a);
        /* One right-hand side: the factorisation alone is large. */
        a = positive_matrix(t, 4);
        before = count();
        ((posv_fn)find(t, "posv", "posv"))(uplo, &n, &(int){1}, a, &ld, b, &ld, &info, 1);
        handled(before);
        same(t, b, LD);
        free(a);
        free(b);
    }
}

static void test_inverse(int t)
{
    for (unsigned i = 0; i < 2; i++) {
        void *a = random_matrix(t, 1, N);
        const unsigned long before = count();
        int info = -99;

        ((trtri_fn)find(t, "trtri", "trtri"))(i & 1 ? "U" : "L", "N", &n, a, &ld, &info, 1, 1);
        handled(before);
        same_int(info);
        same(t, a, ELEMENTS);
        call_uplo(t, "lauum", i & 1 ? "U" : "L", a);
        free(a);
    }
}

static void test_lu(int t)
{
    const int shape[3][2] = {{N, N}, {M, N}, {N, M}};
    int ipiv[M], info = -99;
    unsigned long before;

    for (unsigned i = 0; i < 3; i++) {
        void *a = random_matrix(t, 1, 1), *b = random_matrix(t, 2, 0);

        before = count();
        ((getrf_fn)find(t, "getrf", "getrf"))(&shape[i][0], &shape[i][1], a, &ld, ipiv, &info);
        handled(before);
        same_int(info);
        for (unsigned j = 0; j < N; j++)
            same_int(ipiv[j]);
        same(t, a, ELEMENTS);
        for (unsigned j = 0; j < 3 && i == 0; j++) {
            before = count();
            ((getrs_fn)find(t, "getrs", "getrs"))(&"NTC"[j], &n, &nrhs, a, &ld, ipiv, b, &ld, &info,
                                                  1);
            handled(before);
            same(t, b, ELEMENTS);
        }
        free(a);
        free(b);
    }
    for (unsigned i = 0; i < 2; i++) {
        void *a = random_matrix(t, 5, 2), *b = random_matrix(t, 6, 0);

        before = count();
        ((gesv_fn)find(t, "gesv", "gesv"))(&n, i == 0 ? &nrhs : &(int){1}, a, &ld, ipiv, b, &ld,
                                           &info);
        handled(before);
        same_int(info);
        same(t, b, i == 0 ? ELEMENTS : LD);
        free(a);
        free(b);
    }
}

/* --- QR, LQ, least squares -------------------------------------------------------- */

typedef void (*geqrf_fn)(const int *, const int *, void *, const int *, void *, void *, const int *,
                         int *);
typedef void (*ormqr_fn)(const char *, const char *, const int *, const int *, const int *,
                         const void *, const int *, const void *, void *, const int *, void *,
                         const int *, int *, size_t, size_t);
typedef void (*orgqr_fn)(const int *, const int *, const int *, void *, const int *, const void *,
                         void *, const int *, int *);
typedef void (*gels_fn)(const char *, const int *, const int *, const int *, void *, const int *,
                        void *, const int *, void *, const int *, int *, size_t);

static void test_reflectors(int t, bool is_row)
{
    const char *gen[2] = {is_row ? "orglq" : "orgqr", is_row ? "unglq" : "ungqr"};
    const char *mul[2] = {is_row ? "ormlq" : "ormqr", is_row ? "unmlq" : "unmqr"};
    const int rows = is_row ? N : M, cols = is_row ? M : N, none = -1, lwork = 64 * LD;
    void *a = random_matrix(t, 1, 1), *tau = calloc(LD, 16);
    void *work = calloc((size_t)lwork, 16);
    const char *name = is_row ? "gelqf" : "geqrf";
    unsigned long before = count();
    int info = -99;

    /* What it wants is asked for, then given. */
    ((geqrf_fn)find(t, name, name))(&rows, &cols, a, &ld, tau, work, &none, &info);
    CHECK_EQ(info, 0);
    CHECK(creal(get(t, work, 0)) >= N && count() == before);
    ((geqrf_fn)find(t, name, name))(&rows, &cols, a, &ld, tau, work, &lwork, &info);
    handled(before);
    same_int(info);
    CHECK(creal(get(t, work, 0)) >= N);
    same(t, a, ELEMENTS);
    same(t, tau, N);
    for (unsigned i = 0; i < 4; i++) {
        const char *trans = i & 1 ? (is_complex(t) ? "C" : "T") : "N";
        void *c = random_matrix(t, 2, 0);
        const int cm = i & 2 ? K : M, cn = i & 2 ? M : K;

        before = count();
        ((ormqr_fn)find(t, mul[0], mul[1]))(i & 2 ? "R" : "L", trans, &cm, &cn, &n, a, &ld, tau, c,
                                            &ld, work, &lwork, &info, 1, 1);
        handled(before);
        same_int(info);
        same(t, c, ELEMENTS);
        free(c);
    }
    before = count();
    ((orgqr_fn)find(t, gen[0], gen[1]))(&rows, &cols, &n, a, &ld, tau, work, &lwork, &info);
    handled(before);
    same_int(info);
    same(t, a, ELEMENTS);
    free(a);
    free(tau);
    free(work);
}

static void test_gels(int t)
{
    const int lwork = 64 * LD;
    void *work = calloc((size_t)lwork, 16);

    for (unsigned i = 0; i < 4; i++) {
        const int rows = i & 1 ? N : M, cols = i & 1 ? M : N;
        const bool is_plain = (i & 2) == 0;
        void *a = random_matrix(t, 1, 2), *b = random_matrix(t, 2, 0);
        const size_t nx = (size_t)(is_plain ? cols : rows);
        const unsigned long before = count();
        int info = -99;

        ((gels_fn)find(t, "gels", "gels"))(is_plain ? "N" : (is_complex(t) ? "C" : "T"), &rows,
                                           &cols, &nrhs, a, &ld, b, &ld, work, &lwork, &info, 1);
        handled(before);
        same_int(info);
        for (size_t j = 0; j < NRHS; j++)
            same(t, (char *)b + j * LD * bytes_of(t), nx);
        free(a);
        free(b);
    }
    free(work);
}

/* --- what goes wrong ------------------------------------------------------------------ */

/* The program's own, as LAPACK allows. */
__attribute__((visibility("default"))) void xerbla_(const char *name, const int *info,
                                                    size_t length);
void xerbla_(const char *name, const int *info, size_t length)
{
    (void)name;
    (void)info;
    (void)length;
    run.nxerbla++;
}

static void test_wrong(int t)
{
    const bool is_taken = run.is_taken;
    void *a = positive_matrix(t, 1), *b = random_matrix(t, 2, 0);
    int ipiv[M], info = 0;

    run.nxerbla = 0;
    ((uplo_fn)find(t, "potrf", "potrf"))("X", &n, a, &ld, &info, 1);
    same_int(info);
    ((uplo_fn)find(t, "potrf", "potrf"))("L", &n, a, &(int){N - 1}, &info, 1);
    same_int(info);
    ((getrf_fn)find(t, "getrf", "getrf"))(&(int){-1}, &n, a, &ld, ipiv, &info);
    same_int(info);
    ((gesv_fn)find(t, "gesv", "gesv"))(&n, &(int){-1}, a, &ld, ipiv, b, &ld, &info);
    same_int(info);
    ((gemm_fn)find(t, "gemm", "gemm"))("N", "N", &m, &n, &k, scalar(t, 1, 0), a, &ld, b, &ld,
                                       scalar(t, 0, 0), b, &k, 1, 1);
    same_int(run.nxerbla);
    CHECK_EQ(run.nxerbla, 5);
    /* Not positive definite; singular. */
    set(t, a, 99 * (LD + 1), -1);
    ((uplo_fn)find(t, "potrf", "potrf"))("L", &n, a, &ld, &info, 1);
    same_int(info);
    CHECK_EQ(info, 100);
    for (size_t i = 0; i < LD; i++)
        set(t, b, i + 70 * LD, 0);
    ((getrf_fn)find(t, "getrf", "getrf"))(&n, &n, b, &ld, ipiv, &info);
    same_int(info);
    CHECK_EQ(info, 71);
    for (size_t i = 0; i < LD; i++)
        set(t, b, i * (LD + 1), i == 50 ? 0 : 1);
    run.is_taken = false; /* a singular triangle is left to LAPACK */
    {
        const unsigned long before = count();

        ((trtri_fn)find(t, "trtri", "trtri"))("L", "N", &n, b, &ld, &info, 1, 1);
        handled(before);
        same_int(info);
        CHECK_EQ(info, 51);
    }
    run.is_taken = is_taken;
    free(a);
    free(b);
}

static void test_all(void)
{
    for (int t = 0; t < 4; t++) {
        test_gemm(t);
        test_symm(t, "symm", "symm");
        test_rank(t, "syrk", "syrk", false);
        test_rank(t, "syr2k", "syr2k", true);
        if (is_complex(t)) {
            test_symm(t, "", "hemm");
            test_rank(t, "", "herk", false);
            test_rank(t, "", "her2k", true);
        }
        test_triangular(t, "trmm");
        test_triangular(t, "trsm");
        test_cblas_gemm(t);
        test_cblas_syrk(t);
        test_cholesky(t);
        test_inverse(t);
        test_lu(t);
        test_reflectors(t, false);
        test_reflectors(t, true);
        test_gels(t);
        test_wrong(t);
    }
}

/* --- threads and children ----------------------------------------------------------- */

/* Cholesky and LU of matrices of its own, again and again. */
static void *worker(void *arg)
{
    const int rounds = *(const int *)arg;
    void *wanted = positive_matrix(1, 7);
    getrf_fn getrf;
    uplo_fn potrf;
    void *p = dlsym(RTLD_DEFAULT, "dpotrf_"), *q = dlsym(RTLD_DEFAULT, "dgetrf_");
    int info = -1, ipiv[N];

    CHECK(p != NULL && q != NULL);
    memcpy(&potrf, &p, sizeof(p));
    memcpy(&getrf, &q, sizeof(q));
    potrf("L", &n, wanted, &ld, &info, 1);
    CHECK_EQ(info, 0);
    for (int i = 0; i < rounds; i++) {
        void *a = positive_matrix(1, 7), *b = random_matrix(1, 8, 1);

        potrf("L", &n, a, &ld, &info, 1);
        CHECK_EQ(info, 0);
        for (size_t j = 0; j < ELEMENTS; j++)
            CHECK_NEAR(creal(get(1, a, j)), creal(get(1, wanted, j)), 1e-10);
        getrf(&n, &n, b, &ld, ipiv, &info);
        CHECK_EQ(info, 0);
        free(a);
        free(b);
    }
    free(wanted);
    return NULL;
}

static void test_threads(void)
{
    int rounds = (int)test_scale(50);
    pthread_t other[2];
    const unsigned long before = count();

    for (unsigned i = 0; i < 2; i++)
        CHECK_EQ(pthread_create(&other[i], NULL, worker, &rounds), 0);
    worker(&rounds);
    for (unsigned i = 0; i < 2; i++)
        CHECK_EQ(pthread_join(other[i], NULL), 0);
    CHECK_EQ(count() - before, (unsigned long)(3 * (2 * rounds + 1)));
}

/* Threads that the BLAS would use; 0: it does not tell. */
static int blas_threads(void)
{
    void *p = dlsym(RTLD_DEFAULT, "openblas_get_num_threads");
    int (*ask)(void);

    if (p == NULL)
        return 0;
    memcpy(&ask, &p, sizeof(ask));
    return ask();
}

/* A child that calls LAPACK, and whose BLAS has as many threads as at the beginning. How it
 * ended: 0, or a signal. */
static int one_child(bool is_busy, int threads)
{
    const pid_t child = fork();
    int status = 0, rounds = 2;

    CHECK(child >= 0);
    if (child == 0) {
        const unsigned long before = count();

        if (blas_threads() != threads)
            _exit(3);
        alarm(is_busy ? 10 : 60);
        worker(&rounds);
        /* With a context of its own, unless a call was under way. */
        _exit(is_busy || count() == before + 5 ? 0 : 2);
    }
    CHECK_EQ(waitpid(child, &status, 0), child);
    if (WIFSIGNALED(status))
        return WTERMSIG(status);
    CHECK_EQ(WEXITSTATUS(status), 0);
    return 0;
}

static void test_fork(void)
{
    const int threads = blas_threads();
    int rounds = 1, many = 100, nlost = 0;
    pthread_t other;

    CHECK_EQ(one_child(false, threads), 0); /* before there is a context */
    worker(&rounds);
    CHECK_EQ(one_child(false, threads), 0);
    worker(&rounds);
    CHECK_EQ(pthread_create(&other, NULL, worker, &many), 0);
    for (unsigned i = 0; i < 5; i++)
        nlost += one_child(true, threads) != 0;
    CHECK_EQ(pthread_join(other, NULL), 0);
    /* OpenBLAS has a lock of its own that a child may inherit. */
    CHECK(nlost <= 1);
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";
    void *p = dlsym(RTLD_DEFAULT, "heddle_lapack_calls");

    setvbuf(stdout, NULL, _IONBF, 0);
    test_now.name = what;
    memcpy(&calls, &p, sizeof(p));
    if (dlopen("libopenblas.so.0", RTLD_NOW | RTLD_GLOBAL) == NULL) {
        printf("skipped: no libopenblas.so.0\n");
        return 77;
    }
    if (strcmp(what, "threads") == 0) {
        test_threads();
    } else if (strcmp(what, "fork") == 0) {
        test_fork();
    } else if (argc > 2) {
        run.is_write = strcmp(what, "write") == 0;
        run.is_taken = argc > 3 && strcmp(argv[3], "taken") == 0;
        run.file = fopen(argv[2], run.is_write ? "wb" : "rb");
        CHECK(run.file != NULL);
        test_all();
        CHECK_EQ(fclose(run.file), 0);
        printf("%d results, %lu calls taken over\n", run.compared, count());
    } else {
        return 2;
    }
    return 0;
}
