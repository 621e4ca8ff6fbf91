/* SPDX-License-Identifier: BSD-3-Clause */
/* 12_dense: A x = b by LU; the solve is submitted before the factorisation ends. */
#include <float.h>
#include <heddle/heddle.h>
#include <stdio.h>
#include <time.h>

enum { N = 1000 };

static double now(void)
{
    struct timespec t;

    (void)timespec_get(&t, TIME_UTC);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* F and x are memory of the program, used in place; A keeps the matrix. */
static heddle_status solve(heddle_ctx *ctx, heddle_la *la, heddle_matrix *a, heddle_matrix *f,
                           heddle_matrix *x, int *ipiv)
{
    const double one = 1.0, minus = -1.0;
    double norm_a = 0, norm_x = 0, norm_r = 0, seconds, scaled;
    int info = 0;
    heddle_matrix *r = NULL;
    heddle_status st = heddle_matrix_create(la, HEDDLE_F64, N, 1, NULL, 0, &r);

    st = st ? st : heddle_la_random(la, HEDDLE_LA_GENERAL, 0.0, 1, a);
    st = st ? st : heddle_la_random(la, HEDDLE_LA_GENERAL, 0.0, 2, r);
    st = st ? st : heddle_la_lacpy(la, 'A', a, f);
    st = st ? st : heddle_la_lacpy(la, 'A', r, x);
    st = st ? st : heddle_la_wait(la, NULL);
    seconds = -now();
    st = st ? st : heddle_la_getrf(la, f, ipiv); /* returns at once */
    st = st ? st : heddle_la_getrs(la, 'N', f, ipiv, x);
    st = st ? st : heddle_la_wait(la, &info);
    seconds += now();
    st = st ? st : heddle_la_gemm(la, 'N', 'N', &minus, a, x, &one, r);
    st = st ? st : heddle_la_norm(la, 'I', HEDDLE_LA_GENERAL, 0, a, &norm_a);
    st = st ? st : heddle_la_norm(la, 'I', HEDDLE_LA_GENERAL, 0, x, &norm_x);
    st = st ? st : heddle_la_norm(la, 'I', HEDDLE_LA_GENERAL, 0, r, &norm_r);
    st = st ? st : heddle_la_wait(la, NULL);
    st = st ? st : heddle_wait(ctx); /* from GPUs back into F, x and ipiv */
    heddle_matrix_destroy(r);

    scaled = norm_r / (norm_a * norm_x * N * DBL_EPSILON);
    printf("dense: %s, info %d, residual %.2g (below 16), %.1f GFLOP/s\n", heddle_status_text(st),
           info, scaled, 2e-9 / 3.0 * N * N * N / seconds);
    return st != HEDDLE_OK ? st : scaled < 16.0 ? HEDDLE_OK : HEDDLE_ETASK;
}

int main(void)
{
    static double factors[N * N], solution[N];
    static int ipiv[N];
    const char *missing = heddle_la_missing();
    heddle_ctx *ctx = NULL;
    heddle_la *la = NULL;
    heddle_matrix *a = NULL, *f = NULL, *x = NULL;
    heddle_status st;

    if (missing[0] != '\0') {
        printf("dense: skipped, %s\n", missing);
        return 0;
    }
    st = heddle_ctx_create(NULL, &ctx);
    st = st ? st : heddle_la_create(ctx, NULL, &la);
    st = st ? st : heddle_matrix_create(la, HEDDLE_F64, N, N, NULL, 0, &a);
    st = st ? st : heddle_matrix_create(la, HEDDLE_F64, N, N, factors, N, &f);
    st = st ? st : heddle_matrix_create(la, HEDDLE_F64, N, 1, solution, N, &x);
    st = st ? st : solve(ctx, la, a, f, x, ipiv);
    heddle_matrix_destroy(a);
    heddle_matrix_destroy(f);
    heddle_matrix_destroy(x);
    heddle_la_destroy(la);
    heddle_ctx_destroy(ctx);
    return st == HEDDLE_OK ? 0 : 1;
}
