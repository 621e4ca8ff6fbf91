/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_CORE_DEV_DEVS_H
#define HEDDLE_CORE_DEV_DEVS_H

/*
 * The devices and the other memories of a context, inside of core/dev. The face is
 * core/dev/dev.h.
 *
 *   open.c, dev.c   finding devices, classes; their beginning and end
 *   submit.c        a submission: can any class run it
 *   queue.c         ready tasks, to the scheduler and from it
 *   begin.c         a task on a device: variant, stream, room, data
 *   launch.c        then: launch; partial.c: partial results, there and back
 *   end.c           its end, or another try
 *   ahead*.c        tasks on a device before their predecessors have ended
 *   region*.c       recorded regions as one operation
 *   lose.c          injected failures; a device is gone
 *   host.c          tasks on cores and hidden tasks: their data come home first
 *   loop.c          what the device thread does, and the thread itself
 *   real.c, virtual*.c   the two kinds of time (time.h)
 *   view.c, estimate.c, shape.c   what schedulers may ask, and what it rests on
 *   cost.c          what the runtime itself costs, in virtual time
 *   energy.c        what tasks draw, what a joule is worth, virtual joules
 *   log.c           what the log has about devices and memories
 *
 * Threads. One thread at a time is the *device thread* (`driver` in names): it alone
 * calls drivers and the mover's half of mem, and owns ctx->driver, the pipelines and
 * `running`. The device thread is a thread of its own, or, in virtual time, the holder
 * of slot 0. A worker on a core that lacks data asks for them and goes on with other
 * tasks; the device thread puts the task on the `supplied` list when its data are there.
 */
#include <stdbool.h>
#include <stdint.h>

#include "base/atomic.h"
#include "base/clock.h"
#include "base/compiler.h"
#include "base/map.h"
#include "base/spin.h"
#include "base/thread.h"
#include "core/ctx.h"
#include "core/dev/ahead.h"
#include "core/dev/cost.h"
#include "core/dev/region.h"
#include "core/dev/worker.h"
#include "drive/drive.h"
#include "drive/sim/sim.h"
#include "mem/mem.h"
#include "meter/meter.h"
#include "perf/perf.h"
#include "plat/plat.h"
#include "sched/sched.h"

struct dev_energy;
struct dev_task;
struct dev_time_ops;

struct heddle_devs {
    heddle_ctx *ctx;
    struct heddle_plat *plat; /* virtual time */
    struct heddle_sim *sim;
    const struct dev_time_ops *time;
    bool executes;      /* functions are really called */
    bool has_urgent;    /* the mover's: an urgent variant was seen */
    bool counts_joules; /* virtual time with an energy model */
    struct heddle_drive_env env;
    struct heddle_clock clock; /* as it was: does not jump when refined */
    char disk_path[512], cache_dir[1024];

    struct dev_class cls[DEV_CLASSES];
    struct heddle_sched_class sched_cls[DEV_CLASSES];
    struct heddle_meter_gpu gpu[DEV_CLASSES]; /* see struct heddle_dev_facts */
    unsigned ncls, ntypes;
    unsigned *class_of;
    unsigned nsched; /* workers, as the scheduler counts */
    struct dev_worker *worker;
    unsigned nworkers; /* of devices */
    unsigned depth;

    struct heddle_mem_node_opts node[HEDDLE_MEM_NODES];
    char node_name[HEDDLE_MEM_NODES][32];
    unsigned nnodes;
    int disk_node;
    struct heddle_dev *disk;
    struct heddle_perf_link *link[HEDDLE_MEM_NODES][HEDDLE_MEM_NODES];
    bool has_budget; /* some node is limited: next uses matter */

    struct heddle_fault *fault; /* real time: injected by hand */
    unsigned nfaults, fault_cap;
    uint64_t node_copies[HEDDLE_MEM_NODES], node_allocs[HEDDLE_MEM_NODES];
    _Atomic uint32_t nlost;      /* classes */
    _Atomic uint32_t has_strays; /* pushed while a class was lost */
    _Atomic uint32_t lost_units;
    char lost_name[64]; /* of the first */

    /* shapes of kernels */
    struct heddle_spin shape_lock;
    unsigned nsorts;

    bool has_regions; /* some driver replays them */
    struct dev_overhead cost;
    struct dev_energy *energy; /* NULL: no model */
    bool weighs_energy;        /* it counts when something is chosen */
    unsigned nplat;            /* creation: the class of plat at hand */
    bool is_plain;             /* creation: nothing but cores */
    struct heddle_spin note_lock;
    struct heddle_map notes; /* task -> a bit for each class it is barred from */
    _Atomic uint32_t nnotes;

    _Atomic uint32_t is_stopped; /* the log is closed */
    struct heddle_thread thread;
    bool has_thread;

    /* Workers that look for work read the next line all the time, submitters write the
     * one after it, and the last ones are the device thread's. */

    /* tasks whose data are there, and hidden ones */
    _Alignas(HEDDLE_CACHE_LINE) struct heddle_spin supplied_lock;
    struct heddle_sched_task *supplied, *supplied_last;
    _Atomic uint32_t nsupplied;
    _Atomic uint32_t ncore; /* tasks in the scheduler that a core could run */

    _Alignas(HEDDLE_CACHE_LINE) _Atomic uint32_t bell; /* futex: counts calls */
    _Atomic uint32_t sleeps;
    _Atomic uint32_t stops;

    _Alignas(HEDDLE_CACHE_LINE) struct heddle_spin pool_lock;
    struct dev_task *free; /* of threads other than the device thread */
    struct region region;
    _Atomic uint32_t nregions; /* runs of regions on devices, or on their way */

    _Alignas(HEDDLE_CACHE_LINE) struct dev_task *spare; /* the device thread's own */
    _Atomic uint32_t ntasks; /* on devices, or on their way; the device thread's */
    uint32_t nsteps;
    struct heddle_sched_note told[DEV_NOTES]; /* for the scheduler, not yet */
    unsigned ntold;
    struct ahead ahead;
};

/* Is something on a device, or on its way? */
static inline bool heddle_dev_is_running(const struct heddle_devs *d)
{
    return heddle_load_acq(&d->ntasks) != 0 || heddle_load_acq(&d->nregions) != 0;
}

/* The clock of the context's devices. Any thread; user: struct heddle_devs, as in callbacks. */
uint64_t heddle_dev_now_ns(void *user);
/* There is something to do for the device thread. Any thread. */
void heddle_dev_kick(void *user);

#endif /* HEDDLE_CORE_DEV_DEVS_H */
