/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_CORE_DEV_WORKER_H
#define HEDDLE_CORE_DEV_WORKER_H

/* Classes of workers, and the workers of devices. */
#include <stdbool.h>
#include <stdint.h>

#include "base/atomic.h"
#include "drive/drive.h"
#include "heddle/task.h"
#include "trace/trace.h"

struct dev_task;

enum {
    DEV_CLASSES = 48,
    DEV_DEPTH = 2,           /* tasks a worker of a device has at once: one runs, the data
                         of the other come */
    DEV_DEPTH_QUEUE = 4,     /* the same where launches queue: data come early */
    DEV_DEPTH_MOST = 64,     /* of short ones there */
    DEV_AHEAD_NS = 250000,   /* of work that a worker has at most, then */
    DEV_UNKNOWN_NS = 100000, /* what a task of unknown length counts there */
    DEV_LOOKS = 4,           /* steps that launch, between looks at the devices */
    DEV_SPARE_FROM = 4,      /* cores from which on the device thread has its own */
    DEV_NOTES = 16,          /* for the scheduler, at most, before it gets them */
};

struct dev_class {
    char name[32];
    char model[64]; /* key of the performance models */
    enum heddle_device kind;
    unsigned type;
    unsigned node;
    unsigned first, nworkers;
    struct heddle_dev *dev; /* NULL: the cores, which are threads */
    const struct heddle_driver *drv;
    _Atomic uint32_t is_lost;
    uint64_t launches; /* for injected failures */
    unsigned plat;     /* virtual: its number in the description */
};

/* A worker of a device: one stream. */
struct dev_worker {
    unsigned id; /* the scheduler's number */
    unsigned cls;
    unsigned stream;
    unsigned ntasks; /* in its pipeline */
    double work_ns;  /* expected of these */
    uint64_t due_ns; /* when what was launched on its stream will have ended */
    /* Virtual time only: real streams queue by themselves. */
    unsigned nrunning;                   /* launched */
    unsigned nblocked;                   /* of these, waiting for their children */
    struct dev_task *queue, *queue_last; /* ready to be launched */
    uint64_t awake_ns;                   /* a core: until when it looks for work; 0: it sleeps */
    struct heddle_trace_lane *lane;
    /* Of the tasks that will use its stream: those that wait for room, for data,
     * for the runtime (virtual time), and those that were launched. */
    uint32_t nroom, ndata, nlate, nlaunched;
    unsigned nqueued; /* of the launched ones, tasks by themselves: no regions */
    double queued_ns; /* expected of these */
    uint8_t shown;    /* the state in its lane; UINT8_MAX: none, it runs a task */
};

/* Where launches queue on a device: may a worker that has n tasks get another? Short ones are
 * given in time. */
static inline bool heddle_dev_wants_more(const struct dev_worker *dw, unsigned n)
{
    return n < DEV_DEPTH_QUEUE || (n < DEV_DEPTH_MOST && dw->work_ns < DEV_AHEAD_NS);
}

/* Have enough tasks been launched on its stream, by any worker? */
static inline bool heddle_dev_is_full(const struct dev_worker *on)
{
    return on->nqueued >= DEV_DEPTH_QUEUE &&
           (on->nqueued >= DEV_DEPTH_MOST || on->queued_ns > DEV_AHEAD_NS);
}

#endif /* HEDDLE_CORE_DEV_WORKER_H */
