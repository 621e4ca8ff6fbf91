/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_PERF_H
#define HEDDLE_PERF_H

/*
 * heddle/perf.h - performance models: what kernels cost, as measured.
 *
 * A heddle_perf is a set of models. A context has one of its own; a tool opens another on
 * the same directory to look at the models. A wrong model costs time, never correctness,
 * so no function fails because of the contents of a file: a line that cannot be read is
 * ignored, and heddle_perf_error() says which one and why.
 *
 * Threads:  any function may be called from any thread, except destroy.
 * Errors:   functions return heddle_status; on failure nothing has changed.
 * Files:    docs/formats/model.md. Several processes may use one directory.
 */
#include <stddef.h>
#include <stdint.h>

#include "heddle/alloc.h"
#include "heddle/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A set of models. */
typedef struct heddle_perf heddle_perf;

/* The longest name of a kernel, a variant or a device, in bytes. */
#define HEDDLE_PERF_NAME_MAX 255

/* Where an estimate comes from, worst first. */
enum heddle_estimate_source {
    HEDDLE_EST_NONE = 0, /* nothing is known; ns and confidence are 0 */
    HEDDLE_EST_PRIOR,    /* roofline of the declared cost */
    HEDDLE_EST_SCALED,   /* roofline times a factor measured on other shapes */
    HEDDLE_EST_FIT,      /* curve through the measurements of other shapes */
    HEDDLE_EST_MEASURED  /* median of measurements of this very shape */
};

/* A prediction. */
struct heddle_estimate {
    double ns;         /* predicted time of one run */
    double confidence; /* 0: unknown, 1: certain */
    enum heddle_estimate_source source;
};

/* "none", "prior", "scaled", "fit" or "measured". Never NULL. */
HEDDLE_API const char *heddle_estimate_source_name(enum heddle_estimate_source source);

/* What is timed. Timings of one version of the code say nothing about another:
 * they are dropped when the version changes. */
struct heddle_perf_key {
    const char *kernel; /* each of the three: 1 to HEDDLE_PERF_NAME_MAX bytes */
    const char *variant;
    const char *device; /* a model, not an instance: equal devices share it */
    uint64_t version;
};

/* One measured shape. Strings are borrowed for the time of the call. */
struct heddle_perf_info {
    const char *kernel;
    const char *variant;
    const char *device;
    uint64_t version;
    uint64_t shape; /* hash of the operand shapes */
    double flops;   /* declared cost of one run; 0: not declared */
    double bytes;
    double ns;         /* weighted median of the latest samples */
    double mad_ns;     /* their median absolute deviation from it */
    double confidence; /* 0..1 */
    uint64_t count;    /* samples ever recorded */
    uint64_t ignored;  /* refused by this process: zero, negative, not finite */
};

/* A kernel that has measurements. */
struct heddle_perf_kernel_info {
    const char *name;
    size_t nseries;   /* variant, device and version combinations */
    size_t nshapes;   /* measured shapes over all of them */
    uint64_t samples; /* ever recorded */
};

/* Called for each kernel, or each shape. A status other than HEDDLE_OK ends the walk, which
 * returns it. */
typedef heddle_status (*heddle_perf_kernel_fn)(void *user,
                                               const struct heddle_perf_kernel_info *info);
typedef heddle_status (*heddle_perf_info_fn)(void *user, const struct heddle_perf_info *info);

/*
 * Opens the models in `dir`/models. NULL or "": in memory only. The directory
 * is made when there is something to write, not before. `alloc` may be NULL. It
 * is called with an internal lock held, so it must not call back.
 *
 * HEDDLE_OK      *perf_out is yours; end it with heddle_perf_destroy()
 * HEDDLE_EINVAL  perf_out is NULL
 * HEDDLE_ENOMEM  no memory
 */
HEDDLE_API HEDDLE_MUST_USE heddle_status heddle_perf_create(const struct heddle_allocator *alloc,
                                                            const char *dir,
                                                            heddle_perf **perf_out);

/* Saves the models and frees the set. NULL is fine. Returns what heddle_perf_save() returned;
 * the set is gone in every case. No other call may use the set at the same time. */
HEDDLE_API heddle_status heddle_perf_destroy(heddle_perf *perf);

/*
 * Adds the samples recorded since the last save to the files, next to what
 * other processes wrote meanwhile. Does nothing when there are none.
 *
 * HEDDLE_EIO       a directory or file cannot be written or locked; see the
 *                  sentence. Models go on in memory, the samples stay unsaved.
 * HEDDLE_EVERSION  a file is of a newer format; it was left alone
 * HEDDLE_EFORMAT   a file belongs to another kernel; it was left alone
 * HEDDLE_ENOMEM    no memory; the file in question is unchanged
 */
HEDDLE_API HEDDLE_MUST_USE heddle_status heddle_perf_save(heddle_perf *perf);

/* The directory of the files, or NULL. Borrowed. */
HEDDLE_API const char *heddle_perf_get_dir(const heddle_perf *perf);

/* Copies the latest sentence about a file (cut to fit); "" when there is none.
 * Returns the number of lines and files ignored so far. */
HEDDLE_API uint64_t heddle_perf_error(heddle_perf *perf, char *why, size_t why_bytes);

/* Calls fn for each kernel that has measurements, by name.
 * HEDDLE_EIO: the directory exists and cannot be read. */
HEDDLE_API HEDDLE_MUST_USE heddle_status heddle_perf_list(heddle_perf *perf,
                                                          heddle_perf_kernel_fn fn, void *user);

/* Calls fn for each measured shape of a kernel.
 * HEDDLE_ENOENT: the kernel has no measurements. */
HEDDLE_API HEDDLE_MUST_USE heddle_status heddle_perf_show(heddle_perf *perf, const char *kernel,
                                                          heddle_perf_info_fn fn, void *user);

/*
 * Deletes what is known about a kernel (NULL: about all), in memory and in
 * files, whatever the files hold. *nfiles_out (may be NULL): files deleted.
 *
 * HEDDLE_ENOENT  nothing is known about this kernel
 * HEDDLE_EIO     a file could not be deleted, or the lock could not be taken
 */
HEDDLE_API HEDDLE_MUST_USE heddle_status heddle_perf_forget(heddle_perf *perf, const char *kernel,
                                                            size_t *nfiles_out);

/*
 * The predicted time of one run. `shape` is the hash the samples were recorded
 * under; a shape without samples is predicted from its declared cost, flops and
 * bytes, 0 where unknown. An answer of HEDDLE_EST_NONE is HEDDLE_OK.
 *
 * HEDDLE_EINVAL     a name is missing, empty or too long
 * HEDDLE_ENOMEM     no memory
 * HEDDLE_EOVERFLOW  the kernel has too many variants, devices and versions
 */
HEDDLE_API HEDDLE_MUST_USE heddle_status heddle_perf_query(heddle_perf *perf,
                                                           const struct heddle_perf_key *key,
                                                           uint64_t shape, double flops,
                                                           double bytes,
                                                           struct heddle_estimate *est_out);

/*
 * Links: what it costs to copy bytes from one memory to another, as
 * latency_ns + bytes / bytes_per_s. Their measurements are kept under the
 * reserved name HEDDLE_PERF_LINKS, which heddle_perf_show() (one info per link
 * and size; variant: from, device: to) and heddle_perf_forget() take like the
 * name of a kernel. heddle_perf_list() leaves it out.
 */
#define HEDDLE_PERF_LINKS "@links"

/* One measured link. Strings are borrowed for the time of the call. */
struct heddle_perf_link_info {
    const char *from; /* models of memories: "host", "opencl:NAME" */
    const char *to;
    double latency_ns;
    double bytes_per_s;
    double confidence; /* 0..1 */
    uint64_t count;    /* copies ever recorded */
    uint64_t ignored;  /* refused by this process */
};

/* Called for each link. A status other than HEDDLE_OK ends the walk, which returns it. */
typedef heddle_status (*heddle_perf_link_fn)(void *user, const struct heddle_perf_link_info *info);

/* Calls fn for each link that has measurements, sorted by `from` and `to`. HEDDLE_OK also when
 * there is no such link. HEDDLE_ENOMEM. */
HEDDLE_API HEDDLE_MUST_USE heddle_status heddle_perf_each_link(heddle_perf *perf,
                                                               heddle_perf_link_fn fn, void *user);

/* Copies the directory that a context uses when its options name none (heddle(7) says which);
 * "" when there is none, or when its name does not fit into `bytes`. */
HEDDLE_API void heddle_env_cache_dir(char *buf, size_t bytes);

#ifdef __cplusplus
}
#endif

#endif /* HEDDLE_PERF_H */
