/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_ENERGY_LOAD_H
#define HEDDLE_ENERGY_LOAD_H

/*
 * Private: what a log kept busy, as functions of time.
 *
 * A key is what tasks are told apart by: kernel, variant, device, and the bytes
 * of their operands if asked for. A curve says how many seconds tasks of a key
 * had run up to a time, all workers together; between its points it is straight.
 * So the busy seconds within any interval are a difference of two values,
 * exactly. Bytes that moved have curves as well.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/scratch.h"
#include "heddle/energy.h"
#include "heddle/trace.h"

struct heddle_energy_key {
    const char *kernel, *variant, *device;
    uint64_t bytes;
    uint64_t ntasks; /* executions, all logs */
    double seconds;  /* all logs */
};

/* Grows with the logs that are read; strings are in `mem`. */
struct heddle_energy_keys {
    struct heddle_scratch mem;
    bool by_size; /* keep bytes apart */
    struct heddle_energy_key *key;
    size_t n, room;
};

struct heddle_energy_keys heddle_energy_keys_make(const struct heddle_allocator *a, bool by_size);
void heddle_energy_keys_drop(struct heddle_energy_keys *k);

struct heddle_energy_curve {
    size_t n;
    int64_t *t; /* ns, increasing */
    double *v;  /* not decreasing */
};

/* At any time; before its first point 0. */
double heddle_energy_curve_at(const struct heddle_energy_curve *c, double ns);
/* The same; *hint is where the last one was, 0 at first: quick for times that
 * grow. */
double heddle_energy_curve_from(const struct heddle_energy_curve *c, double ns, size_t *hint);

/* A device of the log. */
struct heddle_energy_place {
    const char *name;
    uint32_t node; /* the id of its memory */
    double moved;  /* bytes from or to its memory */
    struct heddle_energy_curve bytes;
};

struct heddle_energy_load {
    const heddle_log *log;
    struct heddle_scratch mem;
    size_t ncurves; /* keys that were known when it was made */
    struct heddle_energy_curve *curve;
    double *seconds;  /* [ncurves] */
    uint64_t *ntasks; /* [ncurves] */
    size_t nplaces;
    struct heddle_energy_place *place;
    double moved; /* bytes, all transfers */
    int64_t first_ns, last_ns;
};

/* HEDDLE_ENOMEM. Drop it in every case. */
HEDDLE_MUST_USE heddle_status heddle_energy_load_make(struct heddle_energy_load *l,
                                                      const heddle_log *log,
                                                      struct heddle_energy_keys *keys);
void heddle_energy_load_drop(struct heddle_energy_load *l);

/* Does a domain of `domain_device` count the tasks of `device`? "*" counts all,
 * "" none; "cuda" those of "cuda0" and "cuda small". */
bool heddle_energy_counts(const char *domain_device, const char *device);

#endif /* HEDDLE_ENERGY_LOAD_H */
