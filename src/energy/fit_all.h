/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_ENERGY_FIT_ALL_H
#define HEDDLE_ENERGY_FIT_ALL_H

/* Private to fit.c and fit_report.c: all domains of all logs. */
#include "base/compiler.h"
#include "base/notes.h"
#include "energy/fit.h"

enum { HEDDLE_ENERGY_COLUMNS_MAX = 400 };

struct heddle_energy_fitting {
    const heddle_log *const *logs;
    size_t nlogs;
    struct heddle_energy_fit_opts o;
    struct heddle_scratch tmp;  /* for the time of the call */
    struct heddle_scratch *own; /* of the report */
    struct heddle_energy_keys keys;
    struct heddle_energy_load *load;      /* [nlogs] */
    struct heddle_energy_series **series; /* [nlogs] */
    size_t *nseries;                      /* [nlogs] */
    struct heddle_energy_system *system;  /* [ndomains] */
    struct heddle_energy_solution *solution;
    struct heddle_energy_fit_domain *domain;
    size_t ndomains;
    double *watts, *low, *high; /* [keys] */
    uint32_t *group;            /* [keys] */
    double *sorted;             /* [boot] */
    struct heddle_energy_fit_report *r;
    struct heddle_notes notes; /* of the report */
};

/* fit_report.c. Domain d, once it is solved; then all that is left. HEDDLE_ENOMEM. */
HEDDLE_MUST_USE heddle_status heddle_energy_fit_domain(struct heddle_energy_fitting *f, size_t d);
HEDDLE_MUST_USE heddle_status heddle_energy_fit_results(struct heddle_energy_fitting *f);

#endif /* HEDDLE_ENERGY_FIT_ALL_H */
