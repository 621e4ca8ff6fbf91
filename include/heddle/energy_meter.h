/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_ENERGY_METER_H
#define HEDDLE_ENERGY_METER_H

/*
 * heddle/energy_meter.h - the energy counters of the machine.
 *
 * A source is a way to read counters: "rapl" (files of the kernel's powercap),
 * "perf" (events of the kernel's power PMU), "nvml" (NVIDIA's library). A source
 * has domains: what one counter counts, such as a processor package. Where two sources
 * have the same domain, only the first source is read for it, so that energy is never
 * counted twice.
 *
 * A context that records a log of level 1 reads the counters by itself; this header is for
 * programs that measure something else, and for tools.
 *
 * Threads:  a meter is used by one thread at a time.
 * Errors:   functions return heddle_status. A machine without counters is no
 *           error: each source has a sentence that says why there are none.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "heddle/alloc.h"
#include "heddle/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The open counters of the machine. */
typedef struct heddle_meter heddle_meter;

/* Options; zero is a default everywhere. */
struct heddle_meter_opts {
    size_t size;                          /* sizeof(struct heddle_meter_opts) */
    const struct heddle_allocator *alloc; /* NULL: the C library's */
    const char *sysfs;                    /* where the kernel's files are; NULL: what HEDDLE_ENERGY
                          says, else /sys */
    char *why;                            /* gets a sentence on failure; may be NULL */
    size_t why_bytes;
};

/*
 * Looks for counters and opens them. `opts` may be NULL. The energy of each
 * domain is counted from now on.
 *
 * HEDDLE_OK      *out is yours, also when there is no domain at all
 * HEDDLE_EINVAL  out is NULL or opts->size is wrong, or HEDDLE_ENERGY makes no
 *                sense
 * HEDDLE_ENOMEM  no memory
 */
HEDDLE_API HEDDLE_MUST_USE heddle_status heddle_meter_open(const struct heddle_meter_opts *opts,
                                                           heddle_meter **out);

/* Closes the counters. NULL is fine. */
HEDDLE_API void heddle_meter_close(heddle_meter *m);

/* A source of counters. */
struct heddle_meter_source {
    size_t size;        /* sizeof(struct heddle_meter_source) */
    const char *name;   /* "rapl", "perf", "nvml" */
    const char *help;   /* a few words */
    uint64_t period_ns; /* the shortest time between two readings that is worth while */
    size_t ndomains;    /* domains that the source has on this machine */
    const char *why;    /* one sentence: why the source has no domain, or not all; or "" */
};

/* The i-th source, whether the machine has it or not. Set out->size before; strings live as
 * long as the meter. HEDDLE_ENOENT: there are no more, HEDDLE_EINVAL: NULL or a wrong
 * size. */
HEDDLE_API HEDDLE_MUST_USE heddle_status heddle_meter_get_source(const heddle_meter *m, size_t i,
                                                                 struct heddle_meter_source *out);

/* A domain: what one counter counts. */
struct heddle_meter_domain {
    size_t size;        /* sizeof(struct heddle_meter_domain) */
    const char *name;   /* "package-0", "dram-0", "gpu0"; no blanks */
    const char *device; /* whose tasks it counts: "cpu", "cuda0"; "cuda": a GPU whose
                           number in CUDA is not known */
    size_t source;      /* the index of its source */
    uint64_t read;      /* samples taken */
    uint64_t dropped;   /* readings that failed or made no sense */
    const char *why;    /* one sentence about the last reading that was dropped, or "" */
};

/* The i-th domain; statuses and strings as above, but `why` lives until the
 * domain is read again. */
HEDDLE_API HEDDLE_MUST_USE heddle_status heddle_meter_get_domain(const heddle_meter *m, size_t i,
                                                                 struct heddle_meter_domain *out);

/* One reading of a domain. */
struct heddle_meter_sample {
    size_t size;          /* sizeof(struct heddle_meter_sample) */
    uint64_t microjoules; /* since the meter was opened; never decreases */
    bool has_gap;         /* energy between the sample before and this one is
                             not known and not counted: the counter had jumped */
};

/*
 * Reads domain i. A counter may wrap. A reading that is below the one before although the
 * counter cannot have wrapped, or above it by more than any machine can draw, is dropped:
 * counting goes on from that reading, with has_gap set in the next sample.
 *
 * HEDDLE_OK      *out is set
 * HEDDLE_AGAIN   the reading was dropped; heddle_meter_get_domain() says why
 * HEDDLE_EIO     the counter cannot be read now; heddle_meter_get_domain() says why
 * HEDDLE_ENOENT  there is no such domain
 * HEDDLE_EINVAL  NULL or a wrong size
 */
HEDDLE_API HEDDLE_MUST_USE heddle_status heddle_meter_read(heddle_meter *m, size_t i,
                                                           struct heddle_meter_sample *out);

#ifdef __cplusplus
}
#endif

#endif /* HEDDLE_ENERGY_METER_H */
