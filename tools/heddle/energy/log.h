/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_TOOLS_ENERGY_LOG_H
#define HEDDLE_TOOLS_ENERGY_LOG_H

/*
 * What the energy counters of a log say by themselves, without a model.
 *
 * Threads  pure functions.
 */
#include <stddef.h>
#include <stdint.h>

#include "heddle/trace.h"

enum { ENERGY_METERS = 64, ENERGY_METER_NAME = 64 };

/* One domain. Energy that is not known, where a counter went back or began anew, is
 * in none of the sums. */
struct energy_meter {
    uint32_t id;
    char name[ENERGY_METER_NAME];   /* "package-0"; "domain-3": it has none */
    char device[ENERGY_METER_NAME]; /* whose tasks it counts; "": not known */
    size_t nsamples;
    double joules;  /* between `from` and `to` */
    double seconds; /* of that time, covered by samples */
    /* The most watts between two samples that differ: a counter that is updated more
     * seldom than it is read has no peak where it jumps. */
    double peak;
};

/* Domains by id, at most ENERGY_METERS, from a moment to another, as those of the
 * log's first start and last end: what is between two samples is spread evenly.
 * Returns how many. */
size_t energy_meters(const struct heddle_log_view *v, int64_t from, int64_t to,
                     struct energy_meter out[ENERGY_METERS]);

/* Why a log has no samples, as it says itself; NULL: it says nothing. */
const char *energy_log_why(const struct heddle_log_view *v);

#endif /* HEDDLE_TOOLS_ENERGY_LOG_H */
