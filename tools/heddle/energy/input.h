/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_TOOLS_ENERGY_INPUT_H
#define HEDDLE_TOOLS_ENERGY_INPUT_H

/*
 * What the verbs bound, frontier and predict of `heddle energy` share: a log, the
 * machine, the model, and the graph with joules that they make.
 *
 * Threads  the main thread.
 */
#include <stdbool.h>
#include <stdint.h>

#include "base/json.h"
#include "cmd/cmd.h"
#include "common/run_bound.h"
#include "energy/cmd.h"
#include "heddle/energy_bound.h"

enum { ENERGY_WHY = 320, ENERGY_CAPS = 64 };

/* What the command line says. */
struct energy_args {
    const char *model, *machine, *durations, *caps, *time;
    uint64_t seed, iterations;
    uint64_t time_ns; /* of `time` */
};

/* The options above, for the table of a verb; the verb's own come behind. */
enum { ENERGY_NOPTS = 8 };
void energy_args_opts(struct energy_args *a, struct cli_opt *opts);

/* Zero is empty. */
struct energy_input {
    struct cli *c;
    const char *path; /* of the log */
    heddle_log *log;
    struct run_bound b;
    heddle_energy *model;
    char model_path[ENERGY_PATH];
    struct heddle_energy_instance *g;
    double run_active, run_total; /* joules of the run; NAN: not known */
    char why[ENERGY_WHY];
};

/* Reads everything. 0, or the exit status after a sentence; close it in every
 * case. */
int energy_input_open(struct energy_input *in, struct cli *c, const char *verb,
                      const struct cli_args *args, struct energy_args *a);
void energy_input_close(struct energy_input *in);

/* The exit status of a failure of the library, after its sentence. */
int energy_input_fail(struct energy_input *in, heddle_status st);

/* "graph   ..." and "model   ...", and what was assumed. */
void energy_input_print(const struct energy_input *in);
/* Members "model", "tasks", "idle_watts", "types", "run". */
void energy_input_json(const struct energy_input *in, struct heddle_json *j);

/* A schedule as members of the object that is open: makespan in seconds,
 * joules. */
void energy_cost_json(struct heddle_json *j, double makespan_ns,
                      const struct heddle_energy_cost *c);

/* "5%" or "0.05" as a part, >= 0. False: it is neither. */
bool energy_parse_part(const char *s, double *out);

#endif /* HEDDLE_TOOLS_ENERGY_INPUT_H */
