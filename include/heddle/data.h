/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_DATA_H
#define HEDDLE_DATA_H

/*
 * heddle/data.h - data that tasks read and write.
 *
 * A handle (heddle_handle) stands for one typed n-dimensional array. A view is a
 * handle too: it stands for a box of another handle (a tile, a row, every second
 * column). Tasks on a handle, on its views and on overlapping views are ordered
 * as if all tasks ran one after another in the order of submission.
 *
 * Threads:  any function may be called from any thread unless it says otherwise.
 * Errors:   functions return heddle_status; on failure nothing has changed. A
 *           NULL where it is not allowed is HEDDLE_EINVAL; a handle whose
 *           context is gone is HEDDLE_ESTATE: it can only be unreffed.
 * Lifetime: memory given by the program stays the program's. From the creation of the
 *           handle to its last unref the program must not touch that memory, except
 *           between acquire and release, and after a heddle_wait(), which brings such
 *           data home, until the next task on them is submitted. Since the program may
 *           have written the memory after a heddle_wait(), devices fetch such data
 *           again. Data that are pinned on a device (HEDDLE_PIN) are not fetched again:
 *           the program writes these between acquire and release only.
 *           unref returns at once: the handle is freed when the tasks that use it have
 *           ended. The last unref also ends an acquire by heddle_handle_acquire() (not
 *           one that a callback was given).
 * Failure:  data whose writer failed are poisoned: a task that would read any part of
 *           them is cancelled instead. A write of the whole handle or view (HEDDLE_W),
 *           or of one that contains it, ends this, and so does heddle_handle_restore().
 */
#include <stddef.h>
#include <stdint.h>

#include "heddle/ctx.h"
#include "heddle/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A handle, counted by references. */
typedef struct heddle_handle heddle_handle;

/* The type of an element. */
enum heddle_dtype {
    HEDDLE_U8 = 1,
    HEDDLE_I32,
    HEDDLE_I64,
    HEDDLE_F16,
    HEDDLE_BF16,
    HEDDLE_F32,
    HEDDLE_F64,
    HEDDLE_C64,  /* two F32 */
    HEDDLE_C128, /* two F64 */
};

/* Bytes of one element; 0 for a value that is no type. */
HEDDLE_API size_t heddle_dtype_bytes(enum heddle_dtype t);
/* "f64"; "unknown" for a value that is no type. Never NULL. */
HEDDLE_API const char *heddle_dtype_name(enum heddle_dtype t);

/* How a task touches an operand. */
enum heddle_mode {
    HEDDLE_R = 1,
    HEDDLE_W = 2, /* overwrites the whole operand without reading it */
    HEDDLE_RW = 3,
    HEDDLE_COMMUTE = 7, /* read-write; commutative tasks run one by one, in any order */
    HEDDLE_REDUCE = 8,  /* adds into a private copy; copies are combined before the next use */
    HEDDLE_SCRATCH = 16 /* private memory of this shape for this task alone */
};

/* The most dimensions of an array. */
#define HEDDLE_MAX_DIMS 8

/* Type, extents and strides of an array. */
struct heddle_layout {
    enum heddle_dtype dtype;
    unsigned ndim;                  /* 1 .. HEDDLE_MAX_DIMS */
    size_t extent[HEDDLE_MAX_DIMS]; /* elements along each dimension */
    size_t stride[HEDDLE_MAX_DIMS]; /* in elements; all 0: dense, the last
                                        dimension varies fastest */
};

/*
 * Makes a handle for the memory at `ptr`; with ptr NULL, for memory that the runtime
 * allocates (zeroed) when the first task needs it and frees with the handle.
 *
 * HEDDLE_OK      *h_out is a new reference
 * HEDDLE_EINVAL  no dimension, a zero extent, an unknown type, or strides with which
 *                elements may overlap: with dimensions sorted by stride, each stride
 *                must step over all elements that the smaller strides reach
 * HEDDLE_EOVERFLOW  the size does not fit
 * HEDDLE_ENOMEM  no memory for the handle; with the option memory_waits also: the data do not
 *                fit into memory_budget, and no task is left that could give memory back
 */
HEDDLE_API HEDDLE_MUST_USE heddle_status heddle_handle_create(heddle_ctx *ctx,
                                                              const struct heddle_layout *layout,
                                                              void *ptr, heddle_handle **h_out);

/* A handle for n elements in a row. Statuses as heddle_handle_create(). */
HEDDLE_API HEDDLE_MUST_USE heddle_status heddle_handle_vector(heddle_ctx *ctx, void *ptr, size_t n,
                                                              enum heddle_dtype dtype,
                                                              heddle_handle **h_out);

/* A handle for an m x n matrix, column-major, columns `ld` elements apart (ld >= m; 0: m).
 * Statuses as heddle_handle_create(); HEDDLE_EINVAL also when ld < m. */
HEDDLE_API HEDDLE_MUST_USE heddle_status heddle_handle_matrix(heddle_ctx *ctx, void *ptr, size_t m,
                                                              size_t n, size_t ld,
                                                              enum heddle_dtype dtype,
                                                              heddle_handle **h_out);

/*
 * Makes a view of h: in each dimension d the extent[d] elements offset[d],
 * offset[d] + step[d], ... step NULL: all 1. A view of a view is allowed. The view keeps
 * `h` alive.
 *
 * HEDDLE_OK      *view_out is a new reference
 * HEDDLE_EINVAL  the box reaches outside of h, or an extent or step is 0
 * HEDDLE_ENOMEM  no memory for the view
 */
HEDDLE_API HEDDLE_MUST_USE heddle_status heddle_view_box(heddle_handle *h, const size_t *offset,
                                                         const size_t *extent, const size_t *step,
                                                         heddle_handle **view_out);

/* Makes a view of tile (i, j) of a matrix cut into mb x nb tiles; border tiles are smaller.
 * HEDDLE_EINVAL: not a matrix, mb or nb is 0, no such tile; others as
 * heddle_view_box(). */
HEDDLE_API HEDDLE_MUST_USE heddle_status heddle_view_tile(heddle_handle *h, size_t i, size_t j,
                                                          size_t mb, size_t nb,
                                                          heddle_handle **view_out);

/* --- a matrix as a grid of tiles ------------------------------------------ */

/* All tiles of a matrix: views that are made in one call and dropped in one call. */
typedef struct heddle_tiles heddle_tiles;

/*
 * Cuts a matrix into mb x nb tiles; border tiles are smaller, as heddle_view_tile()
 * has them.
 *
 * HEDDLE_OK      *tiles_out is yours; end it with heddle_tiles_destroy()
 * HEDDLE_EINVAL  not a matrix, or mb or nb is 0
 * HEDDLE_EOVERFLOW  too many tiles
 * HEDDLE_ENOMEM  no memory for them; nothing was made
 */
HEDDLE_API HEDDLE_MUST_USE heddle_status heddle_tiles_create(heddle_handle *h, size_t mb, size_t nb,
                                                             heddle_tiles **tiles_out);

/* Drops all tiles; tasks that use them go on. Returns at once. NULL is fine. */
HEDDLE_API void heddle_tiles_destroy(heddle_tiles *t);

/* Tile (i, j), borrowed until heddle_tiles_destroy(); NULL: there is none. */
HEDDLE_API heddle_handle *heddle_tiles_get(const heddle_tiles *t, size_t i, size_t j);

/* Tiles in a column and in a row of the grid; 0 for NULL. */
HEDDLE_API size_t heddle_tiles_rows(const heddle_tiles *t);
HEDDLE_API size_t heddle_tiles_cols(const heddle_tiles *t);

/* --- handles --------------------------------------------------------------- */

/* One more reference; returns h. */
HEDDLE_API heddle_handle *heddle_handle_ref(heddle_handle *h);

/* Drops a reference; returns at once. NULL is fine. */
HEDDLE_API void heddle_handle_unref(heddle_handle *h);

/* Sets a name for messages and the log; copied. Call it before the first task uses the
 * handle. HEDDLE_ENOMEM: no memory for the copy. */
HEDDLE_API heddle_status heddle_handle_set_name(heddle_handle *h, const char *name);

/*
 * What HEDDLE_REDUCE means for a handle. init() sets a private copy to the neutral
 * element, combine() adds `src` into `dst`. Both get the dense layout of the handle.
 */
struct heddle_reduction {
    void (*init)(void *dst, const struct heddle_layout *layout, void *user);
    void (*combine)(void *dst, const void *src, const struct heddle_layout *layout, void *user);
    void *user;
};

/* Sets the reduction of a handle, before the first task that reduces into it; *reduction
 * is copied. HEDDLE_EINVAL: NULL, or a function is missing. */
HEDDLE_API HEDDLE_MUST_USE heddle_status
heddle_handle_set_reduction(heddle_handle *h, const struct heddle_reduction *reduction);

/* Sets the reduction to a sum, for all types but F16 and BF16 (then HEDDLE_ENOSYS). */
HEDDLE_API HEDDLE_MUST_USE heddle_status heddle_handle_set_sum(heddle_handle *h);

/*
 * Access from outside of tasks. Runs tasks until every earlier task that conflicts has
 * ended; later tasks that conflict wait for heddle_handle_release(). Modes R, W, RW.
 * *ptr_out is the address of the first element; ptr_out may be NULL.
 *
 * HEDDLE_OK       the data are acquired until heddle_handle_release()
 * HEDDLE_EINVAL   another mode
 * HEDDLE_ENOMEM   no memory
 * HEDDLE_EDEADLK  called by a task
 * other           the data are poisoned (R, RW): the status of the failure; nothing is
 *                 acquired then
 */
HEDDLE_API HEDDLE_MUST_USE heddle_status heddle_handle_acquire(heddle_handle *h,
                                                               enum heddle_mode mode,
                                                               void **ptr_out);

/* Receives the result of heddle_handle_acquire_async(): HEDDLE_OK and the address of the
 * first element, or why access was refused. */
typedef void (*heddle_acquired_fn)(void *user, heddle_status st, void *ptr);

/* heddle_handle_acquire() without waiting: fn is called once, from any thread, when access
 * is granted (any thread releases it later) or refused (then nothing is to be released).
 * When this call itself fails (HEDDLE_EINVAL, HEDDLE_ENOMEM), fn is not called. */
HEDDLE_API HEDDLE_MUST_USE heddle_status heddle_handle_acquire_async(heddle_handle *h,
                                                                     enum heddle_mode mode,
                                                                     heddle_acquired_fn fn,
                                                                     void *user);

/* Ends an acquire; tasks that wait for it may run. HEDDLE_ESTATE: the handle is not
 * acquired. */
HEDDLE_API heddle_status heddle_handle_release(heddle_handle *h);

/* The data of a poisoned handle count as good again. */
HEDDLE_API heddle_status heddle_handle_restore(heddle_handle *h);

/* Hints about where data should be. No hint is needed for a right result; a wrong hint
 * costs time. */
enum heddle_advice {
    HEDDLE_PREFETCH = 1, /* the data will be needed in that memory */
    HEDDLE_WONT_USE,     /* not needed for long: the data are the first to be evicted */
    HEDDLE_EVICT,        /* bring the data home; copies on devices are evicted first */
    HEDDLE_PIN,          /* do not evict the data from that memory */
    HEDDLE_UNPIN
};

/* Gives a hint, which takes effect in order with the tasks on the handle. `memory` as in
 * heddle_ctx_get_memory(); WONT_USE and EVICT take none.
 * HEDDLE_EINVAL: no such advice or memory; HEDDLE_ENOMEM. */
HEDDLE_API heddle_status heddle_handle_advise(heddle_handle *h, enum heddle_advice advice,
                                              unsigned memory);

/* Layout, name and size of a handle, borrowed from it; for NULL: NULL, "" and 0. */
HEDDLE_API const struct heddle_layout *heddle_handle_get_layout(const heddle_handle *h);
HEDDLE_API const char *heddle_handle_get_name(const heddle_handle *h);
HEDDLE_API size_t heddle_handle_get_bytes(const heddle_handle *h);

#ifdef __cplusplus
}
#endif

#endif /* HEDDLE_DATA_H */
