/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_PERF_PERF_H
#define HEDDLE_PERF_PERF_H

/*
 * Performance models, as the runtime uses them.
 *
 *   perf    all models of a context           heddle_perf_create()
 *   series  one kernel, variant, device and   heddle_perf_series_get: strings,
 *           version                           slow; keep the pointer
 *   entry   one shape of a series             heddle_perf_entry_get: a few ns
 *                                             when the shape is known; no lock
 *   link    from one memory to another        heddle_perf_link_get: strings, slow;
 *                                             keep the pointer
 *
 * Lifetime  a series, an entry or a link lives as long as its perf. The pointers are
 *           stable: a caller may keep them wherever it likes.
 * Threads   everything may be called by any thread at any time, except
 *           heddle_perf_destroy(). record() and predict() take no lock and
 *           allocate nothing. series_get() and the first entry_get() of a shape
 *           take the perf's lock (rank PERF) and call the allocator under it;
 *           the first series_get() of a kernel reads its file.
 */
#include <stdint.h>

#include "base/rng.h"
#include "heddle/perf.h"

struct heddle_perf_series;
struct heddle_perf_entry;
struct heddle_perf_link;

/* What a device can do at best. A zero field means the default, which is slow
 * on purpose: a prior that promises too much draws work to a device that
 * was never measured. */
struct heddle_perf_device {
    double peak_flops;       /* per second */
    double peak_bytes_per_s; /* to its memory */
    double overhead_ns;      /* of starting one kernel */
};

extern const struct heddle_perf_device heddle_perf_device_default;

/* max(flops / peak, bytes / bandwidth) + overhead, in ns; 0 when neither flops
 * nor bytes is positive and finite. */
double heddle_perf_roofline(const struct heddle_perf_device *dev, double flops, double bytes);

/* heddle_perf_destroy() that leaves the last sentence in `why`. */
heddle_status heddle_perf_end(heddle_perf *perf, char *why, size_t why_bytes);

/* Gives the peaks of all devices that go by this key, now and later.
 * HEDDLE_EINVAL: a bad name, or a field is negative or not finite. */
HEDDLE_MUST_USE heddle_status heddle_perf_device_set(heddle_perf *perf, const char *device,
                                                     const struct heddle_perf_device *dev);

/* HEDDLE_EINVAL: a bad name. HEDDLE_ENOMEM. HEDDLE_EOVERFLOW: the kernel has
 * too many series already. */
HEDDLE_MUST_USE heddle_status heddle_perf_series_get(heddle_perf *perf,
                                                     const struct heddle_perf_key *key,
                                                     struct heddle_perf_series **series_out);

/*
 * The entry of a shape. `shape` is a hash of everything that makes two calls
 * cost the same (heddle_perf_hash()). flops and bytes are the declared cost, 0
 * where unknown; the latest ones given are kept. When a series has seen very
 * many shapes, new ones of similar cost share an entry. HEDDLE_ENOMEM.
 */
HEDDLE_MUST_USE heddle_status heddle_perf_entry_get(struct heddle_perf_series *series,
                                                    uint64_t shape, double flops, double bytes,
                                                    struct heddle_perf_entry **entry_out);

/* Adds a measured time. What is not a positive, finite and sane number of ns is
 * counted and dropped. */
void heddle_perf_record(struct heddle_perf_entry *entry, double ns);

/* The present estimate; may lag behind record() by 7 samples. */
void heddle_perf_predict(struct heddle_perf_entry *entry, struct heddle_estimate *est_out);

/* Everything about an entry, computed afresh. */
void heddle_perf_entry_info(const struct heddle_perf_entry *entry,
                            struct heddle_perf_info *info_out);

/*
 * The link between two memories: what it takes to copy bytes from one to the
 * other. `from` and `to` are models, like those of devices: "host",
 * "opencl:NAME". Slow, under the perf's lock; the pointer is stable and lives as
 * long as the perf. HEDDLE_EINVAL: a bad name. HEDDLE_ENOMEM. HEDDLE_EOVERFLOW:
 * there are too many links already.
 */
HEDDLE_MUST_USE heddle_status heddle_perf_link_get(heddle_perf *perf, const char *from,
                                                   const char *to,
                                                   struct heddle_perf_link **link_out);

/* Adds a measured copy. No lock, no allocation. No bytes, no time, a time that
 * is no sane number, or more than 100 TB/s: counted and dropped. */
void heddle_perf_link_record(struct heddle_perf_link *link, uint64_t bytes, double ns);

/* The present estimate; never HEDDLE_EST_NONE. 10 us + 5 GB/s of confidence 0
 * while nothing is known. No lock. 0 bytes: the latency. */
struct heddle_estimate heddle_perf_link_predict(struct heddle_perf_link *link, uint64_t bytes);

void heddle_perf_link_info(struct heddle_perf_link *link, struct heddle_perf_link_info *info_out);

/* Mixes v into h; start with 0. For shape hashes. Part of the file format:
 * another function makes every stored measurement unknown. */
static inline uint64_t heddle_perf_hash(uint64_t h, uint64_t v)
{
    return heddle_mix64((h ^ v) + UINT64_C(0x9e3779b97f4a7c15));
}

#endif /* HEDDLE_PERF_PERF_H */
