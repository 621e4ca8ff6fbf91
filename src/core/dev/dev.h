/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_CORE_DEV_H
#define HEDDLE_CORE_DEV_H

/*
 * Devices and other memories of a context. A context that has none has
 * ctx->dev == NULL, and nothing of this is ever called.
 *
 *   dev.c        finding devices, classes, creation and end
 *   dev/view.c   what schedulers may ask: costs, transfers, places
 *   dev/begin.c  a task on a device: variant, stream, room, data
 *   dev/run.c    then: launch, end, another try
 *   dev/ahead.c  tasks on a device before their predecessors have ended
 *   dev/region.c recorded regions as one operation
 *   dev/lose.c   injected failures; a device is gone
 *   dev/host.c   tasks on cores and hidden tasks: their data come home first
 *   dev/loop.c   the driver thread; virtual time
 *   dev/cost.c   what the runtime itself costs, in virtual time
 *   dev/energy.c what tasks draw, what a joule is worth, virtual joules
 *   dev/log.c    what the log has about them
 *
 * Threads. One thread at a time is the *driver*: it alone calls drivers and the
 * mover's half of mem, and owns ctx->driver, the pipelines and `running`. It is a
 * thread of its own, or, in virtual time, whoever holds slot 0.
 * Everything a worker of the cores needs (data that are away) it asks for and goes
 * on with other tasks; the driver puts the task on the `supplied` list when all is
 * there.
 */
#include "core/core.h"
#include "drive/drive.h"
#include "drive/sim/sim.h"
#include "mem/mem.h"
#include "plat/plat.h"

enum {
    DEV_CLASSES = 48,
    DEV_DEPTH = 2,           /* tasks a worker of a device has at once: one runs, the data
                         of the other come */
    DEV_DEPTH_QUEUE = 4,     /* the same where launches queue: data come early */
    DEV_DEPTH_MOST = 64,     /* of short ones there */
    DEV_AHEAD_NS = 250000,   /* of work that a worker has at most, then */
    DEV_UNKNOWN_NS = 100000, /* what a task of unknown length counts there */
    DEV_LOOKS = 4,           /* steps that launch, between looks at the devices */
    AHEAD_LOOKS = 16,        /* launched tasks that one of these looks at */
    DEV_SPARE_FROM = 4,      /* cores from which on the driver thread has its own */
    AHEAD_PREDS = 8,
    DEV_NOTES = 16, /* for the scheduler, at most, before it gets them */
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

/* What a task waits for before its launch, for the log. */
enum dev_wait { DEV_WAIT_NONE, DEV_WAIT_ROOM, DEV_WAIT_DATA, DEV_WAIT_LATE };

/* A task somewhere else than on a core, or one whose data were away. */
struct dev_task {
    struct heddle_op op; /* first: of the launch */
    /* What every task needs lies together. */
    struct dev_task *next;
    heddle_ctx *ctx;
    struct heddle_sched_task *t;
    struct dev_worker *worker; /* NULL: on the host */
    struct dev_worker *on;     /* whose stream it is on */
    const struct task_ext *ext;
    struct heddle_exec x;
    struct dev_ahead *ahead; /* NULL: nobody waits for it, nor it for others */
    struct dev_task *fly_prev, *fly_next;
    double model_ns; /* expected; < 0: unknown */
    double watts;    /* virtual time with an energy model: while it runs */
    struct heddle_perf_entry *model;
    uint64_t due_ns;            /* when it will have ended, about */
    double work_ns;             /* what it counts in its worker's */
    struct heddle_mem_op *more; /* more operands than fit */
    unsigned variant;
    unsigned popper;     /* on the host: the worker that got it */
    unsigned time_every; /* such task is timed */
    unsigned nraw;       /* copies of partial results under way */
    heddle_status raw_status;
    heddle_status called; /* what its function said */
    heddle_status held;
    _Atomic int status;                 /* on the host: why the data are not there */
    bool is_out;                        /* partial results are on their way back */
    bool has_run;                       /* its function was called */
    bool has_scratch;                   /* the last private buffer */
    bool is_settled;                    /* the request holds nothing */
    bool is_lent;                       /* children had its operands: see dev/host.c */
    bool is_flying;                     /* launched, and listed as such */
    bool has_heir;                      /* a successor is on its stream */
    bool is_held;                       /* its end waits for its predecessors' */
    bool was_ahead;                     /* when it began */
    enum dev_wait wait;                 /* of those who have it: see dev/log.c */
    int16_t at[HEDDLE_KERNEL_OPERANDS]; /* operand -> req.op, or -1 - private */
    struct heddle_mem_req req;
    struct exec_slow s;
    struct task_ext own_ext; /* of a node */
    struct dev_raw {
        struct heddle_op op; /* first */
        struct dev_task *owner;
        unsigned tries;
        void *back; /* where it comes back to, until the task is sure to end */
    } raw[HEDDLE_KERNEL_OPERANDS];
};

/* The task whose request it is. */
static inline struct dev_task *dev_task_of(struct heddle_mem_req *req)
{
    return (struct dev_task *)(void *)((char *)req - offsetof(struct dev_task, req));
}

/* A task and its neighbours on a device: see dev/ahead.c. */
struct dev_ahead {
    struct dev_ahead *next, **prev; /* of those that wait, or free */
    struct heddle_cell *cell;
    struct dev_task *dt; /* while it is on a device */
    unsigned state;
    unsigned cls;   /* where its predecessors are */
    unsigned npred; /* launched and not ended */
    struct dev_ahead *pred[AHEAD_PREDS];
    struct ahead_succ *succ;
    uint32_t shared;   /* operands that its predecessors have, a bit each */
    uint32_t written;  /* those that they write */
    uint64_t ready_ns; /* when they will have ended, about */
    uint64_t begun_ns; /* when its task began to run, about; 0: it waits */
    uint64_t later_ns; /* not ahead before; 0: see ahead_later() */
    bool is_listed;
    bool is_mixed;   /* waits for their ends */
    bool is_void;    /* one of them goes again: so must this */
    bool has_failed; /* one of them */
};

struct ahead {
    struct heddle_spin lock;
    struct heddle_pool *pool; /* its `side` has the record of a cell */
    const struct heddle_allocator *alloc;
    struct dev_ahead *free, *waiting;
    struct ahead_succ *spare;
    unsigned nspare;
    /* the driver's */
    struct dev_task *flying, *flying_last;          /* launched, oldest first */
    struct dev_task *look;                          /* of these, at next */
    struct dev_task *freed;                         /* held no more */
    struct heddle_sched_task *direct, *direct_last; /* to begin at once */
};

/* Recorded regions on devices: see dev/region.c. */
struct region {
    struct heddle_spin lock;
    struct region_run *first, *last; /* for the driver */
    struct dev_graph *made;          /* changed by the driver */
    _Atomic uint32_t has_dead;       /* set under the lock */
    unsigned turn;                   /* the driver's */
};

/* The task of a device that made another one ready. */
struct dev_from {
    uint64_t begin_ns, end_ns;
    unsigned cls;
    bool is_set;
};

/* What the runtime costs, in virtual time: see dev/cost.c. Else all is 0. */
struct dev_overhead {
    double submit_ns;
    uint64_t wake_ns, drive_ns, notice_ns;
    uint64_t spin_ns;        /* that a core looks for work before it sleeps */
    bool is_on;              /* wake, drive or notice */
    bool has_own_core;       /* the program's thread: it runs no tasks */
    bool is_submitting;      /* the program's thread is busy */
    unsigned master;         /* the core that is the program's thread, if any */
    uint64_t driver_ns;      /* until when the driver thread is busy */
    uint64_t told_ns;        /* when all ends so far are known to everybody */
    struct dev_from from;    /* whose end makes tasks ready now */
    struct heddle_map since; /* the same of tasks that wait to be launched */
};

/* What a task takes on a class, with its best variant. */
struct dev_cost {
    double ns; /* INFINITY: it cannot run there; NAN: unknown */
    double sure;
    struct heddle_perf_entry *model; /* of that variant; or NULL */
    unsigned variant;
};

/* The same, kept by the driver for tasks without restrictions. */
struct dev_quick {
    struct dev_cost cost;
    uint64_t need; /* bytes on the class, at most */
    unsigned left; /* questions before the models are asked again */
};

/* Tasks of one shape that may run on these classes only. */
struct dev_sort {
    struct dev_sort *next;
    uint64_t classes;
    unsigned sort;
};

/* A kernel on operands of one shape. Constant but for the entries and sorts. */
struct dev_shape {
    struct dev_shape *next;
    uint64_t hash;
    unsigned sort;
    struct dev_sort *sorts; /* guarded by shape_lock */
    double bytes;
    struct heddle_cost cost;
    double *ns; /* virtual: per class; INFINITY: no variant, NAN: unknown */
    /* virtual, after ns: per class, alone on the device, and with the whole of it
     * while others use the rest; 0: it shares nothing */
    double *alone, *share;
    /* virtual: per variant and class, of variants that the machine has times of;
     * NULL: it has none. NAN: as ns */
    double *own;
    double *watts;           /* per variant and class; NULL: no energy model */
    unsigned nvariants;      /* of these two */
    struct dev_quick *quick; /* per class; the driver's */
    /* real: per type and variant */
    _Atomic(struct heddle_perf_entry *) *entry;
};

struct heddle_devs {
    heddle_ctx *ctx;
    struct heddle_plat *plat; /* virtual time */
    struct heddle_sim *sim;
    bool is_virtual;
    bool executes;   /* functions are really called */
    bool has_urgent; /* the mover's: an urgent variant was seen */
    struct heddle_drive_env env;
    struct heddle_clock clock; /* as it was: does not jump when refined */
    char disk_path[512], cache_dir[1024];
    struct heddle_mem *mem;

    struct dev_class cls[DEV_CLASSES];
    struct heddle_sched_class sched_cls[DEV_CLASSES];
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
    unsigned nfaults;
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
    struct heddle_spin note_lock;
    struct heddle_map notes; /* task -> classes it is barred from << 8 | tries */
    _Atomic uint32_t nnotes;

    _Atomic uint32_t is_stopped;           /* the log is closed */
    _Atomic uint32_t core_room, core_data; /* tasks of cores that wait for such */
    struct heddle_thread thread;
    bool has_thread;

    /* Who looks for work reads the next line all the time, who submits writes the
     * one after it, and the last ones are the driver's. */

    /* tasks whose data are there, and hidden ones */
    _Alignas(HEDDLE_CACHE_LINE) struct heddle_spin supplied_lock;
    struct heddle_sched_task *supplied, *supplied_last;
    _Atomic uint32_t nsupplied;
    _Atomic uint32_t ncore; /* tasks in the scheduler that a core could run */

    _Alignas(HEDDLE_CACHE_LINE) _Atomic uint32_t bell; /* futex: counts calls */
    _Atomic uint32_t sleeps;
    _Atomic uint32_t stops;

    _Alignas(HEDDLE_CACHE_LINE) struct heddle_spin pool_lock;
    struct dev_task *free; /* of those who are not the driver */
    struct region region;
    _Atomic uint32_t nregions; /* runs of regions on devices, or on their way */

    _Alignas(HEDDLE_CACHE_LINE) struct dev_task *spare; /* the driver's own */
    _Atomic uint32_t ntasks; /* on devices, or on their way; the driver's */
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

/* --- dev.c ---------------------------------------------------------------- */

/* A sentence into why; returns st. */
HEDDLE_PRINTF(4, 5)
heddle_status heddle_dev_refuse(heddle_status st, char *why, size_t cap, const char *fmt, ...);
/* Finds and opens what the options ask for; ctx->dev stays NULL when there is
 * nothing but the cores. */
heddle_status heddle_dev_open(heddle_ctx *ctx, const struct heddle_ctx_opts *o, char *why,
                              size_t cap);
/* When lanes and models are there: workers, memories. */
heddle_status heddle_dev_start(heddle_ctx *ctx);
heddle_status heddle_dev_start_thread(heddle_ctx *ctx);
void heddle_dev_stop(heddle_ctx *ctx);
void heddle_dev_close(heddle_ctx *ctx);
/* Transfers that nobody waits for have ended. */
void heddle_dev_drain(heddle_ctx *ctx);
void heddle_kinfo_free_shapes(heddle_ctx *ctx, struct heddle_kinfo *k);

/* --- dev/view.c ------------------------------------------------------------ */

extern const struct heddle_sched_view heddle_dev_view;
/* Is there a class that can run it, with room for it? Lock held. */
heddle_status heddle_dev_check(heddle_ctx *ctx, const struct submission *s,
                               const struct heddle_access *acc, unsigned nops);
struct dev_shape *heddle_dev_shape(struct heddle_devs *d, struct heddle_exec *x);
/* The model of one variant on one class. */
struct heddle_perf_entry *heddle_dev_model(struct heddle_devs *d, struct heddle_exec *x,
                                           struct dev_shape *shape, unsigned cls, unsigned v);
/* ns on the class with the best variant, or INFINITY or NAN. */
double heddle_dev_cost(struct heddle_devs *d, struct heddle_exec *x, const struct task_ext *ext,
                       unsigned cls, unsigned *variant_out, double *confidence_out);
/* The same and its model, for the driver, which asks for every task: known costs
 * are kept for a while. */
void heddle_dev_cost_now(struct heddle_devs *d, struct heddle_exec *x, const struct task_ext *ext,
                         unsigned cls, struct dev_cost *out);
/* The exec of any task, and its extension (NULL: none); `own` for nodes. */
const struct task_ext *heddle_task_exec(struct worker *w, struct heddle_sched_task *t,
                                        struct heddle_exec *x, struct task_ext *own);
/* The bytes it needs on a class at once. */
uint64_t heddle_dev_need(const struct heddle_devs *d, const struct heddle_exec *x, unsigned cls);
void heddle_dev_submitted(heddle_ctx *ctx, struct submission *s, struct heddle_cell *c,
                          const struct heddle_access *acc, unsigned nops, uint32_t m);

/* --- dev/begin.c ------------------------------------------------------------- */

/* A task that the scheduler gave to a worker of a device. Driver. */
void heddle_dev_begin(struct heddle_devs *d, struct dev_worker *dw, struct heddle_sched_task *t);
/* Fills the operands of a request. False: no memory. */
bool heddle_dev_fill(struct dev_task *dt, unsigned node);

/* --- dev/run.c --------------------------------------------------------------- */

/* All that it needs is there. Driver, as the next three. */
void heddle_dev_go(struct dev_task *dt, bool has_partials);
/* It is over. */
void heddle_dev_finish(struct dev_task *dt, heddle_status st);
/* Another try, elsewhere if its class is barred; has_failed: it counts as one of its
 * retries. In vain: its end. */
void heddle_dev_again(struct dev_task *dt, heddle_status st, bool is_barred, bool has_failed);
/* How often it may be tried again after a failure. */
unsigned heddle_dev_retries(const struct dev_task *dt);

/* The records of tasks; the driver has its own. */
struct dev_task *heddle_dev_task_new(struct worker *w);
void heddle_dev_task_free(struct worker *w, struct dev_task *dt);
/* Virtual time: a task waits for its children (or: goes on). Its worker may run
 * others meanwhile. */
void heddle_dev_block(struct heddle_devs *d, bool is_blocked);
/* Takes the tasks of lost classes out of the scheduler. Driver. */
void heddle_dev_find_strays(struct heddle_devs *d);
/* The device of a class is gone. Driver. */
void heddle_dev_lose(struct heddle_devs *d, unsigned cls);
bool heddle_dev_is_barred(struct heddle_devs *d, const struct heddle_sched_task *t, unsigned cls);
/* The task is over: whatever it tried in vain is forgotten. */
void heddle_dev_drop_note(struct heddle_devs *d, const struct heddle_sched_task *t);
heddle_status heddle_dev_fault_copy(void *user, unsigned from, unsigned to);
heddle_status heddle_dev_fault_alloc(void *user, unsigned node);

/* Calls the variant of a task on a device. */
heddle_status heddle_dev_call(struct heddle_exec *x);
/* One more launch on the class: HEDDLE_OK, or what was injected. */
heddle_status heddle_dev_fault_launch(struct heddle_devs *d, unsigned cls);
/* The scheduler learns that a worker of a device has got a task without a pop
 * (took), or that one has ended after ns, or goes back (ns < 0 or NAN): that at
 * once, else a little late. The flush: now. Driver. */
void heddle_dev_tell_took(struct heddle_devs *d, struct heddle_sched_task *t, unsigned worker);
void heddle_dev_tell_ended(struct heddle_devs *d, struct heddle_sched_task *t, unsigned worker,
                           double ns);
void heddle_dev_tell_flush(struct heddle_devs *d);
/* What was held for its predecessors goes on. Driver. */
void heddle_dev_unhold(struct dev_task *dt);

/* --- dev/ahead.c ------------------------------------------------------------- */

void heddle_ahead_init(struct ahead *a, heddle_ctx *ctx);
void heddle_ahead_fini(struct ahead *a);
/* A worker got it from the scheduler: may it go on there? False: it was put
 * aside, and the scheduler was told. */
bool heddle_ahead_pop(struct heddle_devs *d, struct heddle_sched_task *t, unsigned cls,
                      unsigned worker);
/* The scheduler does not have it any more: true: it was ahead, and is pushed when
 * it is ready. */
bool heddle_ahead_aside(struct heddle_devs *d, struct heddle_sched_task *t);
/* Driver. Finds what may go ahead; a busy one not all at once. */
bool heddle_ahead_step(struct heddle_devs *d, bool is_busy);
/* Driver. Begins what needs no scheduler. */
bool heddle_ahead_begin_direct(struct heddle_devs *d);
/* The task begins on a device; do its predecessors still run; the worker whose stream it shall
 * use; makes that wait for its predecessors. */
void heddle_ahead_begin(struct dev_task *dt);
bool heddle_ahead_is_ahead(struct dev_task *dt);
struct dev_worker *heddle_ahead_stream(struct dev_task *dt);
heddle_status heddle_ahead_order(struct dev_task *dt);
/* It was launched; the launch has ended. */
void heddle_ahead_launched(struct dev_task *dt);
void heddle_ahead_landed(struct dev_task *dt);
/* Must its end wait? Then heddle_dev_unhold() will be called. */
bool heddle_ahead_hold(struct dev_task *dt, heddle_status st);
bool heddle_ahead_is_void(const struct dev_task *dt);
bool heddle_ahead_has_failed(const struct dev_task *dt);
/* It leaves the device and will run again. True: it is not to be pushed now. */
bool heddle_ahead_again(struct dev_task *dt);
/* For schedulers, what a task finds that may go ahead of its predecessors. */
struct dev_ahead_view {
    uint32_t here;  /* operands that count as being on the class, a bit each */
    uint32_t there; /* those that will be on this node alone */
    unsigned node;
    double wait_ns; /* until its predecessors, elsewhere, have ended */
};
struct dev_ahead_view heddle_ahead_view(struct heddle_devs *d, const struct heddle_sched_task *t,
                                        unsigned cls);

/* --- dev/region.c ------------------------------------------------------------ */

void heddle_region_init(struct heddle_devs *d);
void heddle_region_fini(struct heddle_devs *d);
bool heddle_region_step(struct heddle_devs *d);

/* --- dev/cost.c ---------------------------------------------------------------- */

void heddle_cost_init(struct heddle_devs *d);
/* Cores of a virtual machine where a submission takes time; else 0. */
unsigned heddle_cost_cores(const heddle_ctx *ctx);
/* What becomes ready from now on does so by the end of dt. Returns what d->cost.from
 * was, to be set again. */
struct dev_from heddle_cost_release(struct heddle_devs *d, const struct dev_task *dt);
/* It is ready. */
void heddle_cost_pushed(struct heddle_devs *d, const struct heddle_sched_task *t);
/* ns until a task that could begin now really does. Once per launch. */
uint64_t heddle_cost_delay(struct dev_task *dt);
/* A core has nothing to do from now on. */
void heddle_cost_idle(struct heddle_devs *d, struct dev_worker *dw);
/* The program's thread learns what has ended. */
void heddle_cost_catch_up(struct worker *w);

/* --- dev/energy.c -------------------------------------------------------------- */

/* Before classes are made; after. */
heddle_status heddle_dev_energy_open(struct heddle_devs *d, const struct heddle_ctx_opts *o,
                                     char *why, size_t cap);
heddle_status heddle_dev_energy_start(struct heddle_devs *d, const struct heddle_ctx_opts *o,
                                      char *why, size_t cap);
void heddle_dev_energy_close(struct heddle_devs *d);
/* The class that will be d->ncls: is it capped by the list? Then `model` changes. */
heddle_status heddle_dev_energy_cap(struct heddle_devs *d, const char *list, const char *cls,
                                    enum heddle_device kind, char *model, size_t bytes, char *why,
                                    size_t cap);
/* Times on the class are multiplied by this. */
double heddle_dev_energy_time(const struct heddle_devs *d, unsigned cls);
/* For the scheduler: how energy counts when something is chosen; NULL: not. */
struct heddle_sched_energy *heddle_dev_objective(struct heddle_devs *d);
/* Fills watts of a new shape. */
void heddle_dev_energy_shape(struct heddle_devs *d, const struct heddle_exec *x,
                             const struct dev_shape *s, double *watts);
/* A time of the variant counts so many times, for the energy it takes. */
double heddle_dev_energy_worth(const struct heddle_devs *d, const struct dev_shape *s, unsigned cls,
                               unsigned v);
/* Virtual time, with a model. Driver. A kernel begins, and ends; a copy; names of the
 * domains for the log; the last sample. */
void heddle_dev_energy_begin(struct dev_task *dt);
void heddle_dev_energy_end(struct dev_task *dt);
void heddle_dev_energy_moved(struct heddle_devs *d, unsigned from, unsigned to, uint64_t bytes);
void heddle_dev_energy_define(struct heddle_devs *d);
void heddle_dev_energy_last(struct heddle_devs *d);

/* --- dev/log.c ----------------------------------------------------------------- */

/* The lane of a worker of a device. */
static inline uint32_t heddle_dev_lane(const heddle_ctx *ctx, unsigned worker)
{
    return ctx->nworkers + 4 + worker; /* after those of ctx.c */
}
/* How many lanes it needs: nworkers, which is not known at first. */
uint32_t heddle_dev_log_lanes(const struct heddle_devs *d);
void heddle_dev_log_define(struct heddle_devs *d);
/* What is known about links now. */
void heddle_dev_log_links(struct heddle_devs *d);
/* A transfer went well. */
void heddle_dev_log_moved(struct heddle_devs *d, const struct heddle_mem_move *move);
/* Bytes in use of a node afterwards. Any thread, the lock of mem is held. */
void heddle_dev_log_used(struct heddle_devs *d, unsigned node, bool is_less, uint64_t used,
                         uint32_t unit, uint64_t task);
/* What the task waits for from now on. */
void heddle_dev_log_wait(struct dev_task *dt, enum dev_wait wait);
/* No task runs on its stream: what it waits for, if that has changed. */
void heddle_dev_log_free(struct heddle_devs *d, struct dev_worker *dw, bool is_submitting);
/* The state of a lane, after everything that can be done now. */
static inline void heddle_dev_log_show(struct heddle_devs *d, struct dev_worker *dw,
                                       bool is_submitting)
{
    if (dw->nlaunched != 0)
        dw->shown = UINT8_MAX; /* its tasks say so */
    else
        heddle_dev_log_free(d, dw, is_submitting);
}
void heddle_dev_log_task(struct dev_task *dt, heddle_status st);

/* --- dev/loop.c ---------------------------------------------------------------- */

void heddle_dev_kick(void *user);
uint64_t heddle_dev_now_ns(void *user);
/* Have enough tasks been launched on its stream, whoever got them? */
static inline bool heddle_dev_is_full(const struct dev_worker *on)
{
    return on->nqueued >= DEV_DEPTH_QUEUE &&
           (on->nqueued >= DEV_DEPTH_MOST || on->queued_ns > DEV_AHEAD_NS);
}
/* May the worker begin another task? */
bool heddle_dev_has_room(const struct heddle_devs *d, const struct dev_worker *dw);
/* Does what can be done now. Driver. */
bool heddle_dev_step(struct heddle_devs *d);
struct heddle_sched_task *heddle_dev_take_supplied(struct heddle_devs *d);
bool heddle_dev_is_own(struct heddle_sched_task *t);
/* A task goes to the scheduler (or: comes from it). */
void heddle_dev_count_core(struct heddle_devs *d, struct heddle_sched_task *t, bool goes);
/* Can any class run it? */
bool heddle_dev_has_home(struct heddle_devs *d, struct heddle_sched_task *t);
/* Ends a task that nobody can run. */
void heddle_dev_give_up(struct worker *w, struct heddle_sched_task *t);
void heddle_dev_supply(struct heddle_devs *d, struct heddle_sched_task *t);

#endif /* HEDDLE_CORE_DEV_H */
