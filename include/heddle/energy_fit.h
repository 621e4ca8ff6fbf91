/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_ENERGY_FIT_H
#define HEDDLE_ENERGY_FIT_H

/*
 * heddle/energy_fit.h - what tasks cost in joules, from logs with samples of
 * energy counters.
 *
 * A log has samples as events of kind HEDDLE_LOG_POWER: event.b is the number of
 * the domain, event.x its microjoules so far. When event.c is not 0, the energy
 * between the sample before and this one is not known. The fact
 * "energy.domain.<number>" of the log says "NAME DEVICE [WRAP]": the domain, whose
 * tasks it counts, and the microjoules at which the counter wraps, if it does.
 *
 * heddle_energy_fit()          logs with samples -> a model and a report
 * heddle_energy_run_create()   a model and a log -> the energy of that run
 * heddle_energy_plant_write()  a model and a log -> the log with the samples that
 *                              such counters would have shown
 *
 * docs/design/energy-fit.md has the method.
 *
 * Threads:  pure functions of logs and models, which never change; any thread.
 * Errors:   functions return heddle_status; on failure nothing was created, and
 *           `why` of the options has a sentence.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "heddle/energy.h"
#include "heddle/trace.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- fit ------------------------------------------------------------------- */

/* Options of heddle_energy_fit(); zero is a default everywhere. */
struct heddle_energy_fit_opts {
    size_t size;                          /* sizeof(struct heddle_energy_fit_opts) */
    const struct heddle_allocator *alloc; /* NULL: the default */
    const heddle_energy *prior;           /* watts that a kernel with few data is drawn
                                   to; NULL: the mean of its device */
    bool has_lag;                         /* lag_ns and window_ns are known, and not estimated */
    int64_t lag_ns;                       /* how late counters are */
    int64_t window_ns;                    /* the time that a counter averages over; 0: all of an
                                   interval */
    bool by_size;                         /* tell tasks of different bytes apart */
    uint32_t nbootstrap;                  /* 0: 200 */
    bool no_bootstrap;                    /* no intervals of confidence */
    uint64_t seed;                        /* of the bootstrap */
    char *why;
    size_t why_bytes;
};

/* What the fit found for a domain. */
struct heddle_energy_fit_domain {
    const char *name, *device;
    double idle_watts, low, high; /* low and high 0: not known */
    double seconds;               /* the time that its samples cover */
    double measured_joules;
    double r2;           /* of the power of an interval */
    double condition;    /* of the matrix, columns of length 1 */
    double lambda;       /* how strongly watts are drawn to the prior */
    double held_out;     /* mean error when a run is predicted from the other runs; NAN:
                            there is one run */
    int64_t lag_ns;      /* mean over the logs */
    int64_t window_ns;   /* 0: all of an interval */
    int64_t interval_ns; /* median length of the intervals that were fitted */
    size_t nsamples, nintervals;
    size_t ndropped; /* samples that cannot be true, and were left out */
};

/* What the fit found for a kernel on a device. */
struct heddle_energy_fit_row {
    const char *kernel, *variant, *device;
    uint64_t bytes; /* 0: any */
    uint64_t ntasks;
    double seconds; /* of its tasks, all workers together */
    double watts, low, high;
    double joules;  /* watts x seconds */
    uint32_t group; /* > 0: rows that could not be told apart */
};

/* The result of a fit. */
struct heddle_energy_fit_report {
    size_t size; /* the size the library knows */
    const struct heddle_energy_fit_domain *domains;
    size_t ndomains;
    const struct heddle_energy_fit_row *rows; /* most joules first */
    size_t nrows;
    double idle_joules, active_joules, move_joules;
    double measured_joules;
    double joules_per_byte; /* moved */
    double held_out;        /* as in a domain, for all domains together */
    size_t nlogs;
    /* Sentences on what was assumed or left out. */
    const char *const *notes;
    size_t nnotes;
    void *own;
};

/*
 * Fits logs of one machine together. The model has each domain with samples, a row for
 * each kernel and device (for each variant, where several ran), and for each device a row
 * "*": the mean of its kernels.
 *
 * HEDDLE_EINVAL  an argument is NULL, n is 0, a size or an option is wrong
 * HEDDLE_ENOENT  no log has usable samples: `why` has the reason that the logs give
 * HEDDLE_ENOMEM  no memory
 */
HEDDLE_API HEDDLE_MUST_USE heddle_status heddle_energy_fit(
    const heddle_log *const *logs, size_t n, const struct heddle_energy_fit_opts *opts,
    heddle_energy **model_out, struct heddle_energy_fit_report **report_out);

/* Frees a report. NULL is fine. */
HEDDLE_API void heddle_energy_fit_report_destroy(struct heddle_energy_fit_report *r);

/* ---- the energy of a run --------------------------------------------------- */

/* The energy of a run in one domain. */
struct heddle_energy_run_domain {
    const char *name, *device;
    double idle_joules, active_joules, move_joules; /* of the run */
    double joules;                                  /* their sum */
    /* Of the time that samples cover; NAN: the log has none. */
    double measured_joules, predicted_joules, seconds;
};

/* The energy of one kernel on one device in a run. */
struct heddle_energy_run_row {
    const char *kernel, *variant, *device;
    uint64_t ntasks;
    double seconds, watts, joules; /* NAN: the model does not know it */
};

/* The energy of a run. */
struct heddle_energy_run {
    size_t size; /* the size the library knows */
    const struct heddle_energy_run_domain *domains;
    size_t ndomains;
    const struct heddle_energy_run_row *rows; /* most joules first */
    size_t nrows;
    double seconds; /* from the first start to the last end */
    double joules, idle_joules, active_joules, move_joules;
    double measured_joules, measured_predicted; /* domains with samples; NAN */
    uint64_t nunknown;                          /* tasks that the model does not know */
    void *own;
};

/*
 * Computes the energy of the run of a log, by a model. `alloc` may be NULL.
 *
 * HEDDLE_EINVAL  an argument is NULL
 * HEDDLE_ENOMEM  no memory
 */
HEDDLE_API HEDDLE_MUST_USE heddle_status
heddle_energy_run_create(const struct heddle_allocator *alloc, const heddle_energy *model,
                         const heddle_log *log, struct heddle_energy_run **out);

/* Frees the energy of a run. NULL is fine. */
HEDDLE_API void heddle_energy_run_destroy(struct heddle_energy_run *r);

/* ---- a power plant --------------------------------------------------------- */

/* How a counter counts, and how it is read. */
struct heddle_energy_counter {
    size_t size;       /* sizeof(struct heddle_energy_counter) */
    int64_t period_ns; /* from one update of the counter to the next; > 0 */
    int64_t lag_ns;    /* an update shows the energy up to this much before */
    int64_t window_ns; /* power is averaged over this much; 0: it is not */
    double sampled;    /* share of a period, at its end, in which power is measured; (0, 1] */
    double quantum_j;  /* joules of one count; >= 1e-6 */
    double noise;      /* standard deviation of an update, as a share of it */
    uint64_t wrap_uj;  /* microjoules at which the counter wraps; 0: never */
    int64_t sample_ns; /* from one reading to the next; > 0 */
    double late;       /* a reading is late by up to this share of sample_ns; [0, 1) */
    int64_t margin_ns; /* the counter is read so long before and after the run, too */
};

/* A counter by its name. "cpu" is updated each ms and counts in 61 uJ; "gpu" is updated each
 * 100 ms, measures a quarter of that time, and counts in 1 mJ. Set out->size before.
 * HEDDLE_ENOENT: there is no such counter. */
HEDDLE_API HEDDLE_MUST_USE heddle_status
heddle_energy_counter_find(const char *name, struct heddle_energy_counter *out);

/* Options of heddle_energy_plant_write(); zero is a default everywhere. */
struct heddle_energy_plant_opts {
    size_t size;                          /* sizeof(struct heddle_energy_plant_opts) */
    const struct heddle_allocator *alloc; /* NULL: the default */
    /* Of domains that count the tasks of the cores, and of the others; NULL:
     * "cpu" and "gpu". */
    const struct heddle_energy_counter *cpu, *gpu;
    uint64_t seed;
    char *why;
    size_t why_bytes;
};

/*
 * Writes a copy of the log with one series of samples per domain of the model; samples that
 * the log has are left out. Bytes that move cost half of their joules at each end.
 *
 * HEDDLE_EINVAL  an argument is NULL or makes no sense; the model has no domain;
 *                the log has no task
 * HEDDLE_EIO     the file cannot be written
 * HEDDLE_ENOMEM  no memory
 */
HEDDLE_API HEDDLE_MUST_USE heddle_status
heddle_energy_plant_write(const heddle_log *log, const heddle_energy *model,
                          const struct heddle_energy_plant_opts *opts, const char *path);

#ifdef __cplusplus
}
#endif

#endif /* HEDDLE_ENERGY_FIT_H */
