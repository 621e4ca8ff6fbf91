/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_TOOLS_TRACE_SCHEDULE_SCHEDULE_H
#define HEDDLE_TOOLS_TRACE_SCHEDULE_SCHEDULE_H

/*
 * What the parts of `heddle trace schedule` share: a log's graph on a machine
 * that may be another one, and a schedule of it.
 *
 * trace/schedule/what.c  the machine, changed: more workers, other speeds
 * trace/schedule/link.c  what tasks hand over to each other, and how long that takes
 * trace/schedule/sim.c   the runtime's own schedulers, in virtual time
 * trace/schedule/out.c   the schedule as a log and as a placement file
 *
 * Threads  the main thread.
 */
#include <stdbool.h>
#include <stdint.h>

#include "cmd/cmd.h"
#include "common/run_bound.h"
#include "heddle/offline.h"

/* The problem. Zero is empty. */
struct schedule {
    struct cli *c;
    const heddle_log *log;
    struct run_bound b;              /* log, machine, graph */
    struct heddle_bound_graph graph; /* changed by --what-if */
    uint32_t *nworkers;              /* [ntypes] of `graph` */
    double *time;                    /* [rows x ntypes] of `graph` */
    double *edge_bytes;              /* [nedges]; NULL: no transfers */
    double *latency, *byte_time;     /* [ntypes x ntypes] */
    double bound_ns;

    struct heddle_offline_result s; /* the schedule */
    void *own;                      /* memory of its arrays when no policy of the library made it */
    const char *policy;
    double seconds; /* it took */
};

/* enum heddle_device of a type; cores where it is not known. */
uint32_t schedule_device(const struct schedule *s, uint32_t type);

/* Rows of `time`. */
uint32_t schedule_rows(const struct schedule *s);

/* Copies the graph and applies "gpus=+1,workers.cpu=8,speed.gpu0=x2,
 * kernel.gemm=x1.5,links=x2"; `text` may be NULL. 0, or the exit status after a
 * sentence. */
int schedule_what_if(struct schedule *s, const char *text);

/* Fills edge_bytes, latency and byte_time from log and machine. 0, or the exit
 * status after a sentence. */
int schedule_links(struct schedule *s);

/* Runs the tasks in virtual time under a scheduler of the runtime; fills s->s.
 * 0, or the exit status after a sentence. */
int schedule_simulate(struct schedule *s, const char *policy);

/* Where the schedule goes. 0, or the exit status after a sentence. */
int schedule_write_log(const struct schedule *s, const char *path);
int schedule_write_placement(const struct schedule *s, const char *path);

/* --- trace/schedule/place.c: which worker of the runtime a lane of a log was ------- */

enum { SCHEDULE_PLACE = 64 };

/* "3" for a worker, "cuda0" for a device; "" for a lane that is neither. */
void schedule_lane_place(const struct heddle_log_view *v, uint32_t lane, char out[SCHEDULE_PLACE]);

#endif /* HEDDLE_TOOLS_TRACE_SCHEDULE_SCHEDULE_H */
