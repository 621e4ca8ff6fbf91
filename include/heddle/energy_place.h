/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_ENERGY_PLACE_H
#define HEDDLE_ENERGY_PLACE_H

/*
 * heddle/energy_place.h - jobs between a few efficient machines and any number of
 * others that need more energy.
 *
 * "Here" are `machines` efficient machines, which run one job after another.
 * "There" is room for everything, at a price. Two problems:
 *
 *   no due dates  cost = time until the last machine here ends
 *                        + alpha x sum of the durations of jobs that go there.
 *                 With watts W of each machine here for as long as the last one
 *                 works, and W2 of a job there, alpha = W2 / (machines x W) makes
 *                 the cost energy / (machines x W).
 *                 The cost is at most 5/4 (1 + eps) times the least one.
 *   due dates     a job runs here only if it ends in time; as much work as
 *                 possible is to be done here. At least
 *                 1 - ((machines - 1) / machines)^machines of the most possible.
 *
 * docs/design/energy-place.md has the algorithms and the proofs.
 *
 * Times     are whole microseconds.
 * Threads:  pure functions; any thread.
 * Errors:   functions return heddle_status; on failure nothing has changed and
 *           a sentence is in opts->why.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "heddle/alloc.h"
#include "heddle/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The most microseconds of one job, of a due date, and of all jobs together. */
#define HEDDLE_ENERGY_JOB_MAX  UINT64_C(10000000000000000)
#define HEDDLE_ENERGY_JOBS_MAX (UINT64_C(1) << 62)
#define HEDDLE_ENERGY_NO_DUE   UINT64_MAX
#define HEDDLE_ENERGY_THERE    UINT32_MAX
#define HEDDLE_ENERGY_MACHINES 65536 /* the most */

/* A job. */
struct heddle_energy_job {
    const char *name; /* NULL: none */
    uint64_t us;      /* how long the job takes; > 0 */
    uint64_t due_us;  /* its end is due so long after all machines start; or
                         HEDDLE_ENERGY_NO_DUE */
};

/* The problem: machines, prices, due dates. */
struct heddle_energy_place_opts {
    size_t size; /* sizeof(struct heddle_energy_place_opts) */
    uint32_t machines;
    bool has_due;  /* the problem with due dates */
    double alpha;  /* >= 0; without due dates */
    double eps;    /* 0.0001 to 1; 0: 0.01; without due dates */
    uint64_t work; /* effort: about the most words of 64 bits that are looked at; 0: 2^29.
                         With due dates less effort means a coarser resolution */
    char *why;     /* a sentence about a failure; may be NULL */
    size_t why_bytes;
    const struct heddle_allocator *alloc; /* NULL: the default */
};

/* A placement of jobs. */
struct heddle_energy_place {
    size_t size; /* sizeof(struct heddle_energy_place) */
    void *own;   /* what fini frees */
    size_t njobs;
    const uint32_t *machine;  /* [njobs] or HEDDLE_ENERGY_THERE */
    const uint64_t *start_us; /* [njobs] 0 for jobs there */
    uint64_t span_us;         /* the last end here */
    uint64_t here_us;         /* durations of jobs here */
    uint64_t there_us;        /* durations of jobs there */
    double cost;              /* no due dates: in seconds */
    /* No due dates: no placement costs less than `bound`. Due dates: none does
     * more work here than `bound`, in seconds. */
    double bound;
    /* No due dates: cost <= proved x the least. Due dates: the work here is
     * >= proved x the most; less than the ratio above when the resolution was
     * coarser than exact. */
    double proved;
    uint64_t unit_us; /* due dates: the coarsest resolution that was used; 0: all
                         steps were exact */
    uint64_t time_ns; /* the call took */
};

/*
 * Places jobs. Set out->size before; end the result with
 * heddle_energy_place_fini().
 *
 * HEDDLE_EINVAL  an argument is missing or makes no sense, a job takes no time
 *                or too much
 * HEDDLE_ENOMEM  no memory
 */
HEDDLE_API HEDDLE_MUST_USE heddle_status heddle_energy_place_make(
    const struct heddle_energy_job *jobs, size_t njobs, const struct heddle_energy_place_opts *opts,
    struct heddle_energy_place *out);
/* Frees a placement, and zeroes it but for its size. NULL is fine. */
HEDDLE_API void heddle_energy_place_fini(struct heddle_energy_place *p);

/*
 * Checks a placement, without any code that makes placements: one job at a time on a
 * machine, no job late, sums and cost as claimed, the cost not below the bound.
 *
 * HEDDLE_OK      the placement is right
 * HEDDLE_EINVAL  the placement is wrong; the sentence says why
 * HEDDLE_ENOMEM  no memory
 */
HEDDLE_API HEDDLE_MUST_USE heddle_status heddle_energy_place_check(
    const struct heddle_energy_job *jobs, size_t njobs, const struct heddle_energy_place_opts *opts,
    const struct heddle_energy_place *p);

/* Jobs of a file: docs/formats/jobs.md. */
struct heddle_energy_jobs {
    size_t size; /* sizeof(struct heddle_energy_jobs) */
    void *own;   /* what fini frees */
    size_t njobs;
    size_t ndue; /* jobs with a due date */
    const struct heddle_energy_job *jobs;
};

/*
 * Reads a file of jobs. Set out->size before; end it with heddle_energy_jobs_fini(). On
 * failure `why` (why_bytes bytes; may be NULL) has one sentence with the line.
 *
 * HEDDLE_ENOENT   the file is not there
 * HEDDLE_EIO      the file cannot be read
 * HEDDLE_EFORMAT  the file is malformed, or a number in it makes no sense
 * HEDDLE_EINVAL   an argument is NULL
 * HEDDLE_ENOMEM   no memory
 */
HEDDLE_API HEDDLE_MUST_USE heddle_status
heddle_energy_jobs_read(const struct heddle_allocator *alloc, const char *path,
                        struct heddle_energy_jobs *out, char *why, size_t why_bytes);
/* Frees the jobs. NULL is fine. */
HEDDLE_API void heddle_energy_jobs_fini(struct heddle_energy_jobs *j);

#ifdef __cplusplus
}
#endif

#endif /* HEDDLE_ENERGY_PLACE_H */
