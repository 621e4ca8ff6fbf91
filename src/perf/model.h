/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_PERF_MODEL_H
#define HEDDLE_PERF_MODEL_H

/*
 * The tree perf -> kernel -> series -> entry, private to perf.
 *
 * All of it only grows until it is destroyed: nodes are linked in under the
 * perf's lock and published by a release store, so a reader walks without one.
 * The same kernel tree, without a perf, is what a file is read into when a save
 * merges with it.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/alloc.h"
#include "base/atomic.h"
#include "base/lock.h"
#include "base/spin.h"
#include "perf/fit.h"
#include "perf/history.h"
#include "perf/perf.h"

#define HEDDLE_MODEL_SHAPES   1024 /* of a series; then they share buckets */
#define HEDDLE_MODEL_BUCKETS  256  /* of a series: quarter octaves of work */
#define HEDDLE_MODEL_ENTRIES  (HEDDLE_MODEL_SHAPES + HEDDLE_MODEL_BUCKETS)
#define HEDDLE_MODEL_SERIES   256  /* of a kernel */
#define HEDDLE_MODEL_MAX_COST 1e18 /* flops and bytes are cut to this */

struct heddle_perf_entry {
    /* read-only once published */
    struct heddle_perf_series *series;
    _Atomic(struct heddle_perf_entry *) next; /* in the series, oldest first */
    uint64_t shape;

    /* any thread; relaxed: each is one number */
    _Atomic double flops;
    _Atomic double bytes;
    _Atomic uint32_t guess_gen; /* series->gen of a guess in history.est */

    _Atomic uint64_t before; /* samples in the files, not in `history` */

    /* under the lock */
    uint64_t saved;   /* history.head at the last load or save */
    uint64_t merging; /* history.head that the save under way covers */
    bool is_touched;  /* while merging: has samples the file has not */

    struct heddle_history history;
};

/* Open addressing, at most half full. A full one is replaced by a larger one
 * and kept until the end, for readers that still look at it. */
struct heddle_model_table {
    struct heddle_model_table *older;
    size_t nslots; /* a power of two */
    _Atomic(struct heddle_perf_entry *) slot[];
};

/* A device by its key; the peaks are relaxed atomics, each one number. */
struct heddle_model_device {
    struct heddle_model_device *next; /* under the lock */
    char *name;
    _Atomic double peak_flops;
    _Atomic double peak_bytes_per_s;
    _Atomic double overhead_ns;
};

struct heddle_perf_series {
    /* read-only once published */
    struct heddle_model_kernel *kernel;
    _Atomic(struct heddle_perf_series *) next; /* by variant, device, version */
    char *variant;
    char *device;
    uint64_t version;
    struct heddle_model_device *peaks; /* NULL: the default */

    /* under the lock */
    bool is_live; /* asked for by this process, not only read from a file */
    struct heddle_perf_entry *last;

    /* any thread */
    _Atomic size_t nentries; /* grows under the lock */
    _Atomic(struct heddle_model_table *) table;
    _Atomic(struct heddle_perf_entry *) first;
    _Atomic uint32_t gen; /* grows when the measurements said something new */

    struct heddle_spin fit_lock; /* guards what follows; only ever tried */
    uint32_t fit_gen;            /* gen at the last fit; 0: never */
    struct heddle_fit fit;
    double scale; /* median of measured / roofline; 0: unknown */
};

struct heddle_model_kernel {
    const struct heddle_allocator *alloc;
    struct heddle_perf *perf;                   /* NULL: a tree used for merging */
    _Atomic(struct heddle_model_kernel *) next; /* by name */
    char *name;
    _Atomic(struct heddle_perf_series *) series;
    size_t nseries;
};

struct heddle_perf {
    struct heddle_allocator alloc;
    char *dir; /* of the files, or NULL */
    struct heddle_mutex lock;
    _Atomic(struct heddle_model_kernel *) kernels;
    struct heddle_model_device *devices; /* under the lock */
    struct heddle_perf_link *links;      /* under the lock */
    uint64_t nignored;                   /* under the lock */
    size_t ndeleted;                     /* under the lock: by one forget */
    char message[320];                   /* under the lock */
};

/* --- model.c: every function that creates needs the perf's lock ----------- */

bool heddle_model_name_ok(const char *name);

struct heddle_model_kernel *heddle_model_kernel_create(const struct heddle_allocator *alloc,
                                                       struct heddle_perf *perf, const char *name);
void heddle_model_kernel_destroy(struct heddle_model_kernel *k);

/* No lock: NULL when there is none. */
struct heddle_model_kernel *heddle_model_kernel_find(struct heddle_perf *perf, const char *name);
struct heddle_perf_series *heddle_model_series_find(struct heddle_model_kernel *k,
                                                    const struct heddle_perf_key *key);
struct heddle_perf_entry *heddle_model_entry_find(struct heddle_perf_series *s, uint64_t shape);

/* Links a kernel into the perf. */
void heddle_model_kernel_link(struct heddle_perf *perf, struct heddle_model_kernel *k);
/* Finds or creates; key->kernel is not looked at. */
heddle_status heddle_model_series_add(struct heddle_model_kernel *k,
                                      const struct heddle_perf_key *key,
                                      struct heddle_perf_series **out);
/* Finds or creates, whatever the number of entries. */
heddle_status heddle_model_entry_add(struct heddle_perf_series *s, uint64_t shape,
                                     struct heddle_perf_entry **out);
void heddle_model_entry_cost(struct heddle_perf_entry *e, double flops, double bytes);
void heddle_model_kernel_clear(struct heddle_model_kernel *k);

/* --- predict.c ------------------------------------------------------------ */

/* The estimate for a shape that was not measured. Any thread, no lock. False:
 * another thread is fitting, this is only the prior. */
bool heddle_model_guess(struct heddle_perf_series *s, double flops, double bytes,
                        struct heddle_estimate *est_out);

/* --- link.c --------------------------------------------------------------- */

/* Before the kernels go: links point into them. */
void heddle_model_links_free(struct heddle_perf *perf);
/* The measurements are gone: so is what was made of them. Needs the lock. */
void heddle_model_links_reset(struct heddle_perf *perf);

/* --- codec.c: files as text ----------------------------------------------- */

#define HEDDLE_MODEL_FILE_MAX 256 /* bytes of a file name, with its end */

/* The file of a kernel, "name.model", safe for any name. */
void heddle_model_file_name(const char *kernel, char out[HEDDLE_MODEL_FILE_MAX]);

/* What a text says about itself. */
struct heddle_model_header {
    char kernel[HEDDLE_PERF_NAME_MAX + 1];
    size_t length; /* of the line, newline included */
};

/* HEDDLE_EFORMAT: not a model file. HEDDLE_EVERSION: of a newer format. */
heddle_status heddle_model_read_header(const char *text, size_t bytes,
                                       struct heddle_model_header *out);

/* Adds the entries of a text to a kernel; *nignored_out lines were no good.
 * The text is written on. HEDDLE_ENOMEM: some entries are missing. */
heddle_status heddle_model_read(struct heddle_model_kernel *k, char *text, size_t bytes,
                                uint64_t *nignored_out);

/* Writes a kernel to a file descriptor: touched entries first, at most
 * HEDDLE_MODEL_ENTRIES of a series, no series for which `skip` says true.
 * HEDDLE_EIO: errno says why. */
heddle_status heddle_model_write(const struct heddle_model_kernel *k, int fd,
                                 bool (*skip)(void *user, const struct heddle_perf_series *s),
                                 void *user);

/* --- store.c: the directory ----------------------------------------------- */

/* Finds a kernel; the first time, creates it and reads its file. Needs the
 * lock. HEDDLE_ENOMEM. */
heddle_status heddle_store_kernel(struct heddle_perf *perf, const char *name,
                                  struct heddle_model_kernel **out);

/* Reads every file of the directory. Needs the lock. HEDDLE_EIO, HEDDLE_ENOMEM.
 */
heddle_status heddle_store_load_all(struct heddle_perf *perf);

/* The public calls of the same name; they need the lock. */
heddle_status heddle_store_save(struct heddle_perf *perf);
heddle_status heddle_store_forget(struct heddle_perf *perf, const char *kernel, size_t *nfiles_out);

#endif /* HEDDLE_PERF_MODEL_H */
