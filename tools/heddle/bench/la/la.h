/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_TOOLS_BENCH_LA_LA_H
#define HEDDLE_TOOLS_BENCH_LA_LA_H

/*
 * Benchmarks of dense linear algebra, `heddle bench potrf` and so on.
 *
 *   bench/la/la.c     options, rounds
 *   bench/la/la.def   one line per routine: its name and its help
 *   bench/la/report.c what is printed
 *   bench/la/rows.c   one row per routine: operands, operations, the call
 *   bench/la/data.c   operands: memory, values, copies
 *   bench/la/ours.c   runs of ours
 *   bench/la/check.c  residuals, by plain loops
 *   bench/la/vecs.c   vectors, and products with them
 *   bench/la/vec.h    these loops, for each of the four types
 *   bench/la/peer.c   the same routine of the machine's BLAS and LAPACK
 *   bench/la/cuda.c   the same by cuSOLVER and cuBLAS
 *   bench/la/warm.c   what is slow the first time; a size for a time
 *
 * A round is one run of the peer and one of ours, on the same memory. Ratios are of
 * two numbers of one round.
 *
 * Threads  the main thread, unless a function says otherwise.
 */
#include "bench/bench.h"
#include "common/cuda_raw.h"
#include "heddle/la.h"

enum la_type { LA_S, LA_D, LA_C, LA_Z };
enum { LA_OPERANDS = 3, LA_MAX_ROUNDS = 101, LA_CHECK_WHOLE = 512 };

static inline bool la_is_complex(enum la_type t)
{
    return t == LA_C || t == LA_Z;
}

static inline size_t la_elem_bytes(enum la_type t)
{
    static const size_t bytes[] = {4, 8, 8, 16};

    return bytes[t];
}

/* The unit roundoff, LAPACK's eps. */
static inline double la_eps(enum la_type t)
{
    return t == LA_S || t == LA_C ? 0x1p-24 : 0x1p-53;
}

enum heddle_dtype la_dtype(enum la_type t);

/* --- operands (bench/la/data.c) ------------------------------------------ */

enum la_fill {
    LA_ZERO,
    LA_RANDOM,   /* uniform in (-0.5, 0.5), both parts */
    LA_POSITIVE, /* hermitian, with n added to the diagonal */
    LA_DOMINANT, /* random, with n added to the diagonal */
    LA_FACTOR    /* the lower triangle, with sqrt(n) added to its diagonal */
};

/* Column-major, columns one after the other. */
struct la_array {
    void *p;
    size_t m, n;
    enum la_type t;
};

/* With any values; p is NULL when there is no memory. */
struct la_array la_array_make(enum la_type t, size_t m, size_t n);
void la_array_free(struct la_array *a);
size_t la_array_bytes(const struct la_array *a);
/* Element (i, j) depends on i, j and the seed alone. These two share the work
 * among `nthreads` threads. `is_lower`: what is above the diagonal stays. */
void la_array_fill(const struct la_array *a, enum la_fill fill, uint64_t seed, unsigned nthreads);
void la_array_copy(const struct la_array *to, const struct la_array *from, bool is_lower,
                   unsigned nthreads);

/* fn(arg, i) for i = 0 .. n - 1, each on a thread of its own. Where the system has
 * no thread to give, the caller does it. */
void la_parallel(unsigned n, void (*fn)(void *arg, unsigned i), void *arg);

/* --- a routine (bench/la/rows.c) ------------------------------------------- */

struct la_problem {
    const struct la_row *row;
    enum la_type t;
    size_t m, n, nrhs;
    struct la_array in[LA_OPERANDS];  /* as generated */
    struct la_array out[LA_OPERANDS]; /* what the routine works on: the same
                                         array where it only reads */
    struct la_array tau;              /* of QR */
    int *ipiv;
    void *work; /* of the peer */
    size_t work_bytes;
    int iterations;                   /* of the latest run that refined; -1: it did not */
    enum heddle_la_low low;           /* what such a run tries first */
    enum heddle_la_panel panel;       /* of LU */
    struct heddle_la_refined refined; /* what it says, if it is ours */
    bool is_restored;                 /* once: then what no task writes is there */
    unsigned nthreads;
};

/* One run of ours. */
struct la_call {
    struct la_problem *p;
    heddle_la *la;
    heddle_matrix *x[LA_OPERANDS];
    heddle_matrix *t; /* of QR */
    int info;         /* of routines that wait */
};

struct la_operand {
    char rows, cols; /* 'm', 'n' or 'r' (nrhs); 0: there is none */
    enum la_fill fill;
    bool is_out; /* it is written */
};

enum la_gpu_kind { LA_GPU_NONE, LA_GPU_POTRF, LA_GPU_GETRF, LA_GPU_GEQRF, LA_GPU_GEMM };

struct la_peer;

struct la_row {
    const char *name;
    const char *types;
    struct la_operand x[LA_OPERANDS];
    bool is_square; /* m is n */
    size_t tall;    /* m >= n, and this many times n without an option */
    char nrhs;      /* 0: none; '1': one without an option; 'n': n of them */
    bool has_pivots, has_tau;
    enum la_gpu_kind gpu;
    double limit; /* of the residual */
    heddle_status (*ours)(struct la_call *k);
    /* What the peer `self` runs when there is no limit of memory: the same job by
     * another routine of ours, of this name. NULL: there is none. */
    heddle_status (*self)(struct la_call *k);
    const char *self_name;
    /* LAPACK's info; INT_MIN: the library has it not. */
    int (*peer)(const struct la_peer *peer, struct la_problem *p);
    double (*residual)(const struct la_problem *p);
};

/* Of each line in bench/la/la.def, in its order; a name of NULL ends it. */
extern const struct la_row la_rows[];

/* Real operations, the usual counts, which are also those of methods that do more or less;
 * complex types do four times as many. A product's factors are square, or as wide as C. */
double la_row_flops(const struct la_row *row, size_t m, size_t n, size_t nrhs);

/* What is written gets its values again. */
void la_problem_restore(struct la_problem *p);

/* --- our side (bench/la/ours.c) ---------------------------------------------- */

/* A context with its matrices, which stay from run to run. */
struct la_side {
    struct cli *c;
    struct la_problem *p;
    heddle_ctx *ctx; /* NULL: closed */
    struct bench_memory memory;
    heddle_matrix *x[LA_OPERANDS];
    size_t nb;     /* 0: auto */
    bool is_other; /* it runs row->self */
    bool is_resident, has_run;
    unsigned nworkers;
    unsigned gpu_memory; /* index of the first GPU's; 0: there is none */
    char sched[32];
    /* Of the latest run: */
    size_t nb_used;
    int info;
};

/* These return 0, or the exit status after a sentence. */
int la_side_open(struct la_side *s, struct cli *c, const struct bench_opts *o, struct la_problem *p,
                 size_t nb, bool is_resident);
/* From p->in. `wants_results`: p->out, p->tau get them, where the run is not in
 * place. */
int la_side_run(struct la_side *s, bool wants_results, double *ns_out);
/* In every case: this, or the second, which says nothing. */
int la_side_close(struct la_side *s);
void la_side_drop(struct la_side *s);

/* Bytes that were copied to a memory of the context so far. */
uint64_t la_bytes_in(heddle_ctx *ctx, unsigned memory);
/* Hints are not waited for: the bytes are there when that counter says so, or when it has
 * stood still for a second. */
void la_await_bytes(heddle_ctx *ctx, unsigned memory, uint64_t goal);

/* --- before a run that is measured once (bench/la/warm.c) -------------------- */

struct la_warm {
    heddle_ctx *ctx;
    const char *routine; /* "potrf" or "getrf" */
    enum la_type t;
    size_t nb; /* 0: auto */
    bool has_gpu;
    uint64_t memory; /* available on the host; 0: unknown */
    double rate;     /* result: operations per ns of a small matrix */
};

/* Loads everything; `most`: the largest order to use, 0: any. */
heddle_status la_warm_up(struct la_warm *w, uint64_t most);
/* The order that takes so long at w->rate. Large matrices are faster than that. */
double la_warm_order(const struct la_warm *w, double seconds);
/* Then: the width of block columns that an n x n matrix will have, and what that loads. */
heddle_status la_warm_width(struct la_warm *w, size_t n, size_t *nb_out);
/* How many GPUs the context has, and the memory of the first one. */
unsigned la_warm_gpus(heddle_ctx *ctx, unsigned *memory_out);

/* --- residuals (bench/la/check.c) -------------------------------------------- */

/*
 * LAPACK's criteria in the 1 norm. Up to order LA_CHECK_WHOLE the whole matrix is
 * multiplied out; above, its product with a few vectors is, random ones among them:
 * O(n^2) operations, and this cannot be larger. p->nthreads threads.
 */
/* Is it the whole matrix that is multiplied out? */
bool la_check_is_whole(const struct la_problem *p);
double la_check_potrf(const struct la_problem *p);
double la_check_getrf(const struct la_problem *p);
double la_check_geqrf(const struct la_problem *p);
double la_check_tsqr(const struct la_problem *p);
double la_check_gels(const struct la_problem *p);
double la_check_gemm(const struct la_problem *p);
double la_check_syrk(const struct la_problem *p);
double la_check_trsm(const struct la_problem *p);
double la_check_trtri(const struct la_problem *p);
double la_check_potri(const struct la_problem *p);
/* The solution is in operand 1; operand 2: la_check_solve_x. */
double la_check_solve(const struct la_problem *p);
double la_check_solve_x(const struct la_problem *p);

/* Solves U x = b, U the upper triangle of the first columns of `a`, b its last
 * column; x gets n doubles, or twice as many. */
void la_back_solve(const struct la_array *a, double *x);
/* HPL's |A x - b| / (eps (|A| |x| + |b|) n), infinity norms, A | b in `a`. */
double la_check_hpl(const struct la_array *a, const double *x, unsigned nthreads);

/* --- the machine's library (bench/la/peer.c) --------------------------------- */

struct la_peer {
    void *library[2];
    char name[96]; /* for people */
    void (*set_threads)(int n);
    bool is_openblas;
};

/* False: `why` says it. It stays loaded. Before the first context, whose
 * bindings its threads would inherit. */
bool la_peer_open(struct la_peer *peer, char *why, size_t why_bytes);
void la_peer_threads(const struct la_peer *peer, unsigned n);
/* Operations per ns of gemm, one on each of `ncores` cores at once, of order n if
 * that is not too large; 0: unknown. */
double la_peer_peak(const struct la_peer *peer, enum la_type t, size_t n, unsigned ncores);

int la_peer_potrf(const struct la_peer *peer, struct la_problem *p);
int la_peer_getrf(const struct la_peer *peer, struct la_problem *p);
int la_peer_geqrf(const struct la_peer *peer, struct la_problem *p);
int la_peer_tsqr(const struct la_peer *peer, struct la_problem *p);
int la_peer_gels(const struct la_peer *peer, struct la_problem *p);
int la_peer_gemm(const struct la_peer *peer, struct la_problem *p);
int la_peer_syrk(const struct la_peer *peer, struct la_problem *p);
int la_peer_trsm(const struct la_peer *peer, struct la_problem *p);
int la_peer_trtri(const struct la_peer *peer, struct la_problem *p);
int la_peer_potri(const struct la_peer *peer, struct la_problem *p);
int la_peer_posv(const struct la_peer *peer, struct la_problem *p);
int la_peer_gesv(const struct la_peer *peer, struct la_problem *p);
int la_peer_posv_mixed(const struct la_peer *peer, struct la_problem *p);
int la_peer_gesv_mixed(const struct la_peer *peer, struct la_problem *p);

/* --- cuSOLVER (bench/la/cuda.c) ------------------------------------------------ */

struct la_gpu {
    struct cuda_raw raw;
    void *library, *handle;
    cuda_raw_ptr x[LA_OPERANDS], work, tau, ipiv, info;
    int lwork;
    bool is_open, has_run;
    char why[320];
};

/* Takes all the device memory it needs: before the context. False: g->why. */
bool la_gpu_open(struct la_gpu *g, const struct la_problem *p);
/* One run, with the values of p->in; the clock is on for the copies from and to
 * p->out when the data are not resident. False: g->why. */
bool la_gpu_run(struct la_gpu *g, struct la_problem *p, bool is_resident, double *ns_out,
                int *info_out);
/* Operations per ns of cuBLAS's dgemm, up to order 8192; 0: unknown. */
double la_gpu_peak(struct la_gpu *g, const struct la_problem *p);
void la_gpu_close(struct la_gpu *g);

#endif /* HEDDLE_TOOLS_BENCH_LA_LA_H */
