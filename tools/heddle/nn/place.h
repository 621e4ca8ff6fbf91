/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_TOOLS_NN_PLACE_H
#define HEDDLE_TOOLS_NN_PLACE_H

/*
 * What `heddle nn place` and `heddle bench place_nn` share: a network and a machine as module
 * spread wants them, and streams of requests through it in virtual time. Times are ns.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cmd/cmd.h"
#include "heddle/machine.h"
#include "heddle/nn.h"
#include "heddle/spread.h"

enum { PLACE_WHY = 400 };

/* --- a problem (problem.c) ------------------------------------------------------------------- */

/* Classes and memories have the numbers of the machine file. */
struct problem {
    struct heddle_spread_graph g;
    struct heddle_spread_machine m;
    uint32_t nworkers[HEDDLE_SPREAD_CLASSES], node[HEDDLE_SPREAD_CLASSES];
    uint32_t kind[HEDDLE_SPREAD_CLASSES]; /* enum heddle_device */
    double launch_ns[HEDDLE_SPREAD_CLASSES];
    struct heddle_spread_node memory[HEDDLE_SPREAD_NODES];
    char cls_name[HEDDLE_SPREAD_CLASSES][HEDDLE_MACHINE_NAME_MAX];
    char node_name[HEDDLE_SPREAD_NODES][HEDDLE_MACHINE_NAME_MAX];
    double *time;
    uint64_t *weights;
    struct heddle_nn_tasks tasks; /* borrowed arrays of g are its */
    char why[PLACE_WHY];
};

/* The classes, memories and links of a machine file. False: p->why. */
bool problem_machine(struct problem *p, const heddle_machine *m);
/* The tasks of a network, which p ends. Times: of cores as measured (tasks have ns), of other
 * classes 1 / ratio of that on all cores together; with ratio 0 by the machine file. */
bool problem_network(struct problem *p, const heddle_machine *m, struct heddle_nn_tasks *tasks,
                     double ratio);
/* A spread by a method, checked. A stage waits for its copies where a link is never idle: so routes
 * take no more than 0.6, else 0.8, of a link's time where the period is longer by `slack` at most
 * than with all of it, else by a tenth. *out is to be ended in every case; why has PLACE_WHY
 * bytes. */
heddle_status problem_spread(const struct problem *p, const char *method, double slack,
                             struct heddle_spread_result *out, char *why);
/* The ns of all operators on one worker of a class; INFINITY: an operator cannot run there, or the
 * weights do not fit. */
double problem_alone(const struct problem *p, uint32_t cls);
void problem_fini(struct problem *p);

/* --- streams (stream.c) ----------------------------------------------------------------------- */

/* Who decides where a request runs. */
enum stream_policy {
    STREAM_RATES,    /* routes in turn, in proportion to their rates */
    STREAM_INSTANCES /* whole requests: the fastest of the instances that are idle, one for each
                        worker, each request alone; else the queue */
};

struct stream_opts {
    enum stream_policy policy;
    uint64_t requests;
    double gap_ns;      /* mean time between requests (Poisson); 0: they never end */
    uint64_t in_flight; /* without a gap */
    uint64_t seed;
};

struct stream_result {
    double period_ns;               /* of the middle part of the requests */
    double p50_ns, p99_ns, mean_ns; /* from the arrival to the results in the host's memory */
    uint64_t copied_bytes;
};

/* Runs requests through the routes of a spread, as tasks of a context in virtual time. False:
 * p->why. */
bool stream_requests(struct problem *p, const struct heddle_spread_result *s,
                     const struct stream_opts *o, struct stream_result *out);
/* Can it? Tasks are sent to kinds of devices, so two classes must not be of one kind. */
bool stream_can(const struct problem *p);

/* What a spread reaches, and what the instances do, each at 80 % of the lesser capacity. */
struct stream_trial {
    double period_ns;           /* requests that never end */
    double instances_period_ns; /* the same, by instances */
    double load_ns;             /* mean time between requests at 80 % load of the slower one */
    struct stream_result ours, instances;
};
bool stream_try(struct problem *p, const struct heddle_spread_result *s, uint64_t requests,
                uint64_t seed, struct stream_trial *out);

#endif /* HEDDLE_TOOLS_NN_PLACE_H */
