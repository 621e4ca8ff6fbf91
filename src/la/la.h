/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_LA_LA_H
#define HEDDLE_LA_LA_H

/*
 * Contract inside of the dense library: what a routine needs.
 *
 * A routine is one file: its kernels (functions of tasks), then the loop that
 * submits them, then its public function, which checks arguments as LAPACK does
 * (LA_CHECK), opens a call (heddle_la_begin) and runs the loop. A matrix is a list
 * of block columns: a task gets those it reads and the one it writes; rows are
 * numbers in its argument. On cores, block columns that lie beside each other are
 * one block again (la_merge), so that BLAS gets large operands.
 *
 * The library uses public headers, base, blas, split and launch.
 */
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "blas/blas.h"
#include "heddle/heddle.h"
#include "heddle/la.h"
#include "split/split.h"

/* Several calls that a task may call off, the solve behind a factorisation for
 * instance. Lives as long as the sequence's tasks. */
struct la_gate {
    struct la_gate *next;
    _Atomic bool is_shut;
};

/* How products of single precision are made on devices, by the calls that are being
 * submitted: AUTO is plain, as SINGLE. Left and right factors are scaled by so much,
 * powers of two, where they become halves. */
struct la_low {
    enum heddle_la_low kind;
    float left, right;
};

/* Pivots of the program, nb in each handle but the last one. */
struct la_pivots {
    struct la_pivots *next;
    int *ipiv;
    size_t n, nb, nt;
    size_t rows; /* of the matrix: no pivot will be larger */
    heddle_handle *part[];
};

struct la_scratch;

struct heddle_la {
    heddle_ctx *ctx;
    struct heddle_allocator alloc; /* the context's */
    heddle_group *group;
    struct heddle_la_opts opts;
    unsigned ncores;
    bool has_cuda;
    size_t device_wide;    /* as heddle_la_device_wide() says */
    uint64_t device_bytes; /* the least room on a device */
    heddle_event *looked;  /* a device may have broken the sequence: later tasks
                              wait until that is known. NULL: nothing to know */
    uint32_t ncalls;
    int refused; /* -argument of the first call that was refused; 0: none */
    /* Numbers of calls go up, so the smallest key is the first call's smallest
     * info. All with relaxed order: tasks are ordered by their data. */
    _Atomic uint64_t found;               /* call << 32 | info */
    _Atomic uint64_t broken;              /* calls from this one on do nothing */
    struct la_low low;                    /* of the calls that are being submitted */
    struct la_gate *gate;                 /* the same, or NULL */
    struct la_gate *gates;                /* all, until the next wait */
    struct la_pivots *pivots;             /* of the calls since the last wait */
    _Atomic(struct la_scratch *) scratch; /* of threads that run its tasks, see scratch.c */
};

struct heddle_matrix {
    heddle_ctx *ctx;
    struct heddle_allocator alloc; /* the context's, which may end before */
    enum heddle_dtype dtype;
    enum blas_type t;
    size_t m, n, nb, nt;  /* nt block columns of width nb, the last one less */
    size_t list;          /* block columns that a task of a product gets at once */
    heddle_handle *root;  /* NULL: block columns have memory of their own */
    heddle_handle *col[]; /* nt of them */
};

/* The first member of the argument of every kernel of the library. */
struct la_head {
    heddle_la *la;
    uint32_t call;
    enum blas_type t;
    struct la_low low;
    struct la_gate *gate; /* NULL: none */
};

static inline size_t la_min(size_t a, size_t b)
{
    return a < b ? a : b;
}

static inline size_t la_max(size_t a, size_t b)
{
    return a > b ? a : b;
}

/* First row (or column) of block column k, and its width. */
static inline size_t la_first(const heddle_matrix *a, size_t k)
{
    return k * a->nb;
}

static inline size_t la_width(const heddle_matrix *a, size_t k)
{
    return la_min(a->nb, a->n - k * a->nb);
}

/* --- la.c: calls ----------------------------------------------------------- */

/* Opens the next call: the head of its arguments. */
struct la_head heddle_la_begin(heddle_la *la, const heddle_matrix *a);

/* A task on n operands (n <= 255); modes NULL: the kernel's. */
heddle_status heddle_la_submit(heddle_la *la, const heddle_kernel *kernel,
                               heddle_handle *const *operands, const enum heddle_mode *modes,
                               unsigned n, const void *arg, size_t arg_bytes, int priority);

/* The same on a core, whatever devices the sequence is for: a result for the program. */
heddle_status heddle_la_submit_home(heddle_la *la, const heddle_kernel *kernel,
                                    heddle_handle *const *operands, const enum heddle_mode *modes,
                                    unsigned n, const void *arg, size_t arg_bytes);

/* A task on one operand, on a core, that tells what a device has found; all later tasks
 * of the sequence wait for it if is_awaited. */
heddle_status heddle_la_submit_look(heddle_la *la, const heddle_kernel *kernel,
                                    heddle_handle *operand, const void *arg, size_t arg_bytes,
                                    bool is_awaited);

/* How many block columns of a a routine should work on at once: all, or as many as
 * the smallest device has room for with as many passing by. */
size_t heddle_la_fits(const heddle_la *la, const heddle_matrix *a);

/* The call is refused: argument i (from 1, as in LAPACK) is illegal. */
heddle_status heddle_la_refuse(heddle_la *la, int i);

#define LA_CHECK(la, i, condition)                                                                 \
    do {                                                                                           \
        if (!(condition))                                                                          \
            return heddle_la_refuse((la), (i));                                                    \
    } while (0)

#define LA_TRY(expr)                                                                               \
    do {                                                                                           \
        const heddle_status la_st_ = (expr);                                                       \
                                                                                                   \
        if (la_st_ != HEDDLE_OK)                                                                   \
            return la_st_;                                                                         \
    } while (0)

/* From tasks: info > 0 was found; with `breaks` later tasks have nothing to do. */
void heddle_la_found(const struct la_head *h, int info, bool breaks);
bool heddle_la_is_broken(const struct la_head *h);

/* A record of n numbers of info on devices (NULL without any): the panels' operand;
 * heddle_la_collect() submits the task that looks at it: number i, if it is not 0,
 * means info = i * step + that. Gives the record back. */
heddle_status heddle_la_record(heddle_la *la, size_t n, heddle_handle **out);
heddle_status heddle_la_collect(const struct la_head *h, heddle_handle *record, size_t step,
                                bool breaks);

/* For routines that wait. open() waits for the earlier calls and keeps what they
 * have found for shut(); in between heddle_la_wait() tells the routine's own info.
 * *is_broken_out: the routine has nothing to do. */
struct la_kept {
    uint64_t found;
    int refused;
};
heddle_status heddle_la_kept_open(heddle_la *la, struct la_kept *kept, bool *is_broken_out);
void heddle_la_kept_shut(heddle_la *la, const struct la_kept *kept);

/* One of the letters, in upper case; 0: none of them. */
char heddle_la_letter(char c, const char *letters);

/* --- gate.c ------------------------------------------------------------------- */

/* Calls between open and close do nothing once a task has shut the gate; that task
 * comes before all of theirs, by its operands. A gate inside of another one is that
 * one: *outer_out is for close. */
heddle_status heddle_la_gate_open(heddle_la *la, struct la_gate **outer_out);
void heddle_la_gate_close(heddle_la *la, struct la_gate *outer);

/*
 * Behind an open gate: a task that shuts it when the diagonal of a has a zero. What
 * is submitted later on a and b (NULL: none) comes after it. With is_info that zero
 * is the call's info. a is square.
 */
heddle_status heddle_la_gate_diagonal(const struct la_head *h, heddle_matrix *a, heddle_matrix *b,
                                      bool is_info);

/* All of them; their tasks have ended. */
void heddle_la_gate_drop(heddle_la *la);

/* --- lu/pivots.c ----------------------------------------------------------------- */

/* The handles of n pivots of a matrix with so many rows, which tasks will write; they stay
 * the sequence's. */
heddle_status heddle_la_pivots(heddle_la *la, int *ipiv, size_t n, size_t nb, size_t rows,
                               struct la_pivots **out);

/* Are the n pivots at ipiv rows (from 1) of a matrix with so many? Of those that tasks will
 * write this is known, unless their matrix has more rows: then all tasks are waited for. */
heddle_status heddle_la_pivots_check(heddle_la *la, const int *ipiv, size_t n, size_t rows,
                                     bool *are_legal_out);

/* Those that tasks which read n pivots at ipiv should have as operands: `most` of
 * them at most. Where these are not enough, it waits for all tasks, and there are
 * none. */
heddle_status heddle_la_pivots_read(heddle_la *la, const int *ipiv, size_t n, size_t most,
                                    heddle_handle **out, size_t *count_out);

/* The n pivots at ipiv as one operand, a new reference: the handle of that part, where
 * tasks may still write it, or one for the program's memory. */
heddle_status heddle_la_pivots_part(heddle_la *la, const int *ipiv, size_t n, heddle_handle **out);

/* How many belong together in pivots that begin at ipiv; 0: not known. */
size_t heddle_la_pivots_width(const heddle_la *la, const int *ipiv);

/* All of them go home; their tasks have ended. */
void heddle_la_pivots_drop(heddle_la *la);

/* --- lu/laswp.c ------------------------------------------------------------------ */

/* heddle_la_laswp() with k pivots that getrf of `factor` finds, maybe later. */
heddle_status heddle_la_laswp_after(heddle_la *la, heddle_matrix *a, const int *ipiv, size_t k,
                                    bool is_backward, heddle_matrix *factor);

/* --- lu/back.c ------------------------------------------------------------- */

/* Are the rows of L brought to their places at the end of getrf? */
bool heddle_la_has_back(const heddle_la *la, const heddle_matrix *a);
heddle_status heddle_la_getrf_back(const struct la_head *h, heddle_matrix *a,
                                   const struct la_pivots *pivots);

/* --- matrix/matrix.c ---------------------------------------------------------------- */

/* The order from which on a GPU likes wide block columns for a routine (NULL: any). */
size_t heddle_la_device_wide(const char *routine);

/* m x n in memory of the runtime, with block columns of width nb. */
heddle_status heddle_la_temporary(heddle_la *la, enum heddle_dtype dtype, size_t m, size_t n,
                                  size_t nb, heddle_matrix **out);

/* The same for routines that wait: in one piece where cores work on it. Ends after
 * its tasks. */
struct la_owned {
    heddle_matrix *m;
    struct heddle_allocator alloc;
    void *p;
    size_t bytes;
};
heddle_status heddle_la_owned_make(heddle_la *la, enum heddle_dtype dtype, size_t m, size_t n,
                                   size_t nb, struct la_owned *out);
void heddle_la_owned_end(struct la_owned *o);

/* --- wide tasks on cores (split/split.h) ---------------------------------------- */

/* Columns (or rows) of a part of n of them; n: it stays whole. */
static inline size_t la_split(const struct la_head *h, size_t n)
{
    return heddle_split_width(h->la->ncores, n);
}

/* For want_expand(). */
static inline enum heddle_expand la_wants_split(const struct la_head *h, size_t n)
{
    return la_split(h, n) < n ? HEDDLE_EXPAND_KNOWN : HEDDLE_EXPAND_NO;
}

/* --- inside of tasks ----------------------------------------------------------- */

static inline struct blas_block la_operand(struct heddle_exec *x, unsigned i)
{
    const struct heddle_layout *l = heddle_exec_layout(x, i);

    return (struct blas_block){heddle_exec_ptr(x, i), l->extent[0], l->extent[1], l->stride[1]};
}

/* Operands first .. first + n - 1 as blocks: those that lie beside each other are
 * one. Returns their number (out has n). */
unsigned heddle_la_merge(struct heddle_exec *x, enum blas_type t, unsigned first, unsigned n,
                         struct blas_block *out);

/* Floating-point operations of a product m x n x k, in real ones. */
static inline double la_flops(enum blas_type t, size_t m, size_t n, size_t k)
{
    return (blas_is_complex(t) ? 8.0 : 2.0) * (double)m * (double)n * (double)k;
}

/* --- scratch.c ------------------------------------------------------------------ */

/* Scratch of a task of la (NULL: of none) on a core, kept for the thread's next task. NULL:
 * no memory. */
void *heddle_la_work(heddle_la *la, size_t bytes);
/* The same for packed.c alone, whose callers may use the one above. */
void *heddle_la_pack_work(heddle_la *la, size_t bytes);
/* All that belongs to the sequence; its tasks have ended. */
void heddle_la_scratch_drop(heddle_la *la);

#endif /* HEDDLE_LA_LA_H */
