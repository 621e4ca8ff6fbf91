/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tile/cholesky: the task graph of a tile Cholesky factorisation.
 *
 * Purpose    one loop for the demo and for the benchmark.
 * Formula    for each k: A_kk = L_kk L_kk^T; A_ik = A_ik L_kk^-T;
 *            A_ij -= A_ik A_jk^T for k < j <= i.
 */
#include "tile/cholesky.h"

static heddle_status step_updates(uint32_t k, uint32_t i, cholesky_fn fn, void *user)
{
    const size_t ik = cholesky_tile(i, k);
    struct cholesky_task t = {CHOLESKY_SYRK, 2, {ik, cholesky_tile(i, i)}, k};
    heddle_status st = fn(user, &t);

    for (uint32_t j = k + 1; j < i && st == HEDDLE_OK; j++) {
        t = (struct cholesky_task){
            CHOLESKY_GEMM, 3, {ik, cholesky_tile(j, k), cholesky_tile(i, j)}, k};
        st = fn(user, &t);
    }
    return st;
}

heddle_status cholesky_walk(uint32_t nt, cholesky_fn fn, void *user)
{
    heddle_status st = HEDDLE_OK;

    for (uint32_t k = 0; k < nt && st == HEDDLE_OK; k++) {
        const size_t kk = cholesky_tile(k, k);
        struct cholesky_task t = {CHOLESKY_POTRF, 1, {kk}, k};

        st = fn(user, &t);
        for (uint32_t i = k + 1; i < nt && st == HEDDLE_OK; i++) {
            t = (struct cholesky_task){CHOLESKY_TRSM, 2, {kk, cholesky_tile(i, k)}, k};
            st = fn(user, &t);
        }
        for (uint32_t i = k + 1; i < nt && st == HEDDLE_OK; i++)
            st = step_updates(k, i, fn, user);
    }
    return st;
}

size_t cholesky_count(uint32_t nt, enum cholesky_kind kind)
{
    const size_t n = nt;

    switch (kind) {
    case CHOLESKY_POTRF: return n;
    case CHOLESKY_TRSM:
    case CHOLESKY_SYRK: return n == 0 ? 0 : n * (n - 1) / 2;
    case CHOLESKY_GEMM: return n < 3 ? 0 : n * (n - 1) * (n - 2) / 6;
    case CHOLESKY_NKINDS: break;
    }
    return 0;
}

size_t cholesky_ntasks(uint32_t nt)
{
    size_t n = 0;

    for (enum cholesky_kind k = 0; k < CHOLESKY_NKINDS; k++)
        n += cholesky_count(nt, k);
    return n;
}

const char *cholesky_name(enum cholesky_kind kind)
{
    static const char *const names[CHOLESKY_NKINDS] = {"potrf", "trsm", "syrk", "gemm"};

    return kind < CHOLESKY_NKINDS ? names[kind] : "?";
}
