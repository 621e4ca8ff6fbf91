/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_DRIVE_DRIVE_H
#define HEDDLE_DRIVE_DRIVE_H

/*
 * Driver contract: what the engine asks of a device.
 *
 * A driver is the table of functions for one kind of device (opencl, sim, disk,
 * ...); a heddle_dev is one open device: a memory and, unless it is a disk, a
 * processor with a few streams. The engine decides which tasks run, which data are
 * copied and which copies are evicted; the driver carries out these operations and
 * reports the end of each.
 *
 * Streams   A device has info.nstreams streams for kernels, numbered from 0, and
 *           one more, number nstreams, for the engine's transfers. The engine relies
 *           on no order on that stream: two transfers in flight never touch the same
 *           bytes, unless no task will use what one of them brings (the data were
 *           written elsewhere since).
 * Memory    A device pointer may be any value but NULL: the engine does no arithmetic
 *           on it.
 * Order     Operations on one stream of a device run in the order in which they were
 *           submitted; operations on different streams do not wait for each other
 *           unless order() says so. alloc() and free() are ordered with their stream:
 *           memory may be freed after the last operation that uses it was *enqueued*.
 * Ends      copy() and launch() return at once. After HEDDLE_OK, op->done(op, st) is
 *           called exactly once, later, from progress() and from nowhere else. After
 *           any other status done() is not called. done() may call alloc, free, copy,
 *           launch and order of any device, but not progress().
 * Failure   every failure is a value. HEDDLE_EDEV: the device is lost; from then
 *           on every call on it returns HEDDLE_EDEV, and every operation in flight
 *           ends with HEDDLE_EDEV. HEDDLE_ENOMEM from alloc(): there is no memory now;
 *           the engine evicts copies and calls again. Any other status is a failure of
 *           that operation alone. error() returns the sentence of the last failure.
 * Threads   one thread at a time calls into all devices of a context: no driver
 *           needs a lock against the engine. A driver may have threads of its
 *           own (disk, cuda); these never call done().
 * Loading   probe() must work on a machine that has no such device and no such
 *           library, and then finds no device. probe() loads vendor libraries with
 *           dlopen when they are not certain to be there.
 *
 * A folder and one row of HEDDLE_DEVICE_LIST (heddle/device.h) add a kind of device and its driver;
 * tests/conformance/drive_conformance.c runs each through the same script.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "heddle/alloc.h"
#include "heddle/data.h"
#include "heddle/status.h"
#include "heddle/task.h"

struct heddle_dev; /* the driver's own; begins with struct heddle_dev_base */
struct heddle_op;

/* One asynchronous operation. The engine embeds it in its own records. */
struct heddle_op {
    void (*done)(struct heddle_op *op, heddle_status st);
    /* The driver sets these times before done(), in ns of the environment's clock; 0
     * and 0 when it cannot tell. */
    uint64_t begin_ns, end_ns;
    bool is_rough;          /* the times are a share of a batch's: for pictures only */
    bool is_loading;        /* most of the time was spent loading libraries or code, once */
    struct heddle_op *next; /* next and priv belong to the driver while in flight */
    void *priv[2];
};

/*
 * The host side of a copy: `nruns` pieces of run_bytes each, found by walking
 * count[0] x count[1] x ... (the last one varies fastest), step[d] bytes apart.
 * The device side holds the same bytes without gaps, in that order. ndim 0: one
 * piece.
 */
struct heddle_runs {
    size_t run_bytes;
    size_t nruns;
    unsigned ndim;
    size_t count[HEDDLE_MAX_DIMS];
    size_t step[HEDDLE_MAX_DIMS];
};

/* Copies between a host array with gaps and dense memory (runs.c). */
void heddle_runs_gather(const struct heddle_runs *r, const void *host, void *dense);
void heddle_runs_scatter(const struct heddle_runs *r, const void *dense, void *host);
static inline size_t heddle_runs_bytes(const struct heddle_runs *r)
{
    return r->run_bytes * r->nruns;
}

enum heddle_copy_kind {
    HEDDLE_COPY_IN,  /* host -> device */
    HEDDLE_COPY_OUT, /* device -> host */
    HEDDLE_COPY_PEER /* this device -> peer, when can_peer() */
};

struct heddle_copy {
    enum heddle_copy_kind kind;
    void *ptr;               /* on the device */
    void *host;              /* IN, OUT: the first run; NULL when simulated */
    struct heddle_dev *peer; /* PEER: the destination, and where on it */
    void *peer_ptr;
    struct heddle_runs runs; /* PEER: one run */
};

struct heddle_dev_launch {
    /* The end and the times of this launch matter. False: the driver may report its end
     * together with that of launches behind it, and the times may be rough. */
    bool wants_time;
    /* The driver calls run(x) on the thread that called launch() or progress(): the
     * function puts the kernel on the stream (cpu, sim: does the work). A status other
     * than HEDDLE_OK becomes that of the operation. NULL: nothing to run (sim). */
    heddle_run_fn run;
    struct heddle_exec *x;
    double model_ns; /* sim: how long the kernel takes when it runs alone */
    double share_ns; /* sim: share_ns / model_ns is the share of the device that the
                        kernel takes while it runs; 0: the kernel shares nothing */
};

/* What a driver may need to know; lives as long as the devices. */
struct heddle_drive_env {
    const struct heddle_allocator *alloc;
    uint64_t (*now_ns)(void *user); /* the context's clock */
    void *user;
    const char *path;      /* disk: a folder; NULL: the system's */
    uint64_t bytes;        /* disk: the most to use; 0: what is free */
    void *world;           /* sim: struct heddle_sim */
    const char *cache_dir; /* for compiled programs; NULL: no cache */
    /* During probe(), open() and explain(): the library to load; NULL: the system's. */
    const char *library;
};

/*
 * A recorded region as one operation: `n` launches, which put() puts on the stream in
 * this order. Launch i may run as soon as its predecessors pred[first[i]] ..
 * pred[first[i + 1] - 1], all of them less than i, have run.
 */
struct heddle_region {
    unsigned n;
    heddle_status (*put)(void *user, unsigned i);
    void *user;
    const uint32_t *first; /* n + 1 */
    const uint32_t *pred;
    /* When an existing graph is brought up to date: a bit for each launch that has
     * changed; NULL: any may have changed. n, first and pred have not. */
    const uint64_t *changed;
};

struct heddle_dev_info {
    char name[32];                       /* "opencl0": unique in a context */
    char model[64];                      /* equal for equal devices: key of the models */
    enum heddle_device kind;             /* 0: runs no kernels (disk) */
    unsigned nstreams;                   /* kernels that make sense at once */
    uint64_t memory_total, memory_free;  /* bytes; free: now */
    double peak_flops, peak_bytes_per_s; /* 0: unknown */
    bool is_cpu; /* the host's cores under another name: not taken unless asked */
};

struct heddle_driver {
    const char *name;        /* unique */
    const char *help;        /* one line for `heddle info` */
    enum heddle_device kind; /* 0: memory only */
    const char *library_env; /* the variable behind env.library; NULL: none */
    bool wants_core;         /* fast: the thread that feeds it shares no core with a worker */
    bool is_slow;            /* slow to load: used only when the user asks for it */
    bool has_urgent;         /* kernels on the last stream run before those of others */
    /* Launches queue on the streams, order() exists, and a launch whose function
     * returned HEDDLE_OK need not be repeated unless the device is lost. So the engine
     * launches tasks behind one that has not ended, and more of them per stream. */
    bool is_sure;

    /* Required. Describes up to `cap` devices in info; *n_out: how many there are. No
     * device is no failure. `env` may hold nothing but alloc. */
    heddle_status (*probe)(const struct heddle_drive_env *env, struct heddle_dev_info *info,
                           unsigned cap, unsigned *n_out);

    /* Required. The index-th device of probe(). */
    heddle_status (*open)(const struct heddle_drive_env *env, unsigned index,
                          struct heddle_dev **dev_out);
    /* Required. Nothing is in flight. */
    void (*close)(struct heddle_dev *dev);

    /* Required. Never NULL for HEDDLE_OK. bytes > 0. */
    heddle_status (*alloc)(struct heddle_dev *dev, size_t bytes, unsigned stream, void **ptr_out);
    void (*free)(struct heddle_dev *dev, void *ptr, size_t bytes, unsigned stream);

    /* Required. The caller may reuse *c when this returns. */
    heddle_status (*copy)(struct heddle_dev *dev, const struct heddle_copy *c, unsigned stream,
                          struct heddle_op *op);
    /* May this device copy to `to` without the host? NULL: never. */
    bool (*can_peer)(struct heddle_dev *dev, struct heddle_dev *to);

    /* Required when kind is not 0. */
    heddle_status (*launch)(struct heddle_dev *dev, const struct heddle_dev_launch *l,
                            unsigned stream, struct heddle_op *op);

    /* Optional. Operations submitted to `stream` from now on start after `op` has ended,
     * an operation in flight on any stream of a device of this driver. NULL: the engine
     * waits on the host instead. */
    heddle_status (*order)(struct heddle_dev *dev, unsigned stream, struct heddle_op *op);

    /*
     * Optional, all three or none. region() makes a graph of the launches, or, when
     * *graph_inout is not NULL, brings that graph up to date: it calls put() for every
     * launch, or only for those that `changed` names. When region() fails, the graph is
     * unchanged, or replay() returns HEDDLE_EDECLINED until region() succeeds. replay()
     * runs the graph, like a launch; once accepted it ends well, or the device is lost.
     * A graph in flight is neither brought up to date nor freed.
     */
    heddle_status (*region)(struct heddle_dev *dev, const struct heddle_region *r, unsigned stream,
                            void **graph_inout);
    heddle_status (*replay)(struct heddle_dev *dev, void *graph, unsigned stream,
                            struct heddle_op *op);
    void (*region_free)(struct heddle_dev *dev, void *graph);

    /*
     * Optional, both or none; any thread. pin(): these bytes of the host will be
     * copied often; the driver may page-lock them, now or later, or not. unpin(): the
     * same range; no operation uses it, and the memory may be freed when this returns.
     */
    void (*pin)(struct heddle_dev *dev, void *host, size_t bytes);
    void (*unpin)(struct heddle_dev *dev, void *host, size_t bytes);

    /*
     * Optional; any thread. Launches will soon need this image (PTX or a binary, see
     * heddle/cuda.h), or, when it is NULL, the libraries that most programs use: the driver
     * loads them in the background. A task that asks before the end waits for what is
     * under way. close() waits for one step at most.
     */
    void (*prepare)(struct heddle_dev *dev, const void *image);

    /* Required. Calls done() for operations that have ended; returns how many. */
    unsigned (*progress)(struct heddle_dev *dev);

    /* Optional. Bytes that are free now, with other processes counted; 0: unknown. */
    uint64_t (*memory_free)(struct heddle_dev *dev);

    /* Optional. A native object for a variant: "queue", "context", "stream", ... as the
     * driver's public header documents. NULL: there is none of that name. */
    void *(*native)(struct heddle_dev *dev, unsigned stream, const char *what);

    /* Optional. The sentence behind the last failure; "" when there is none. */
    const char *(*error)(struct heddle_dev *dev);

    /* Drivers of GPUs: heddle_gpu_query() shows their devices. Why probe() finds none, in one
     * sentence; "" when there is one. Looks again and costs what probe() costs. Returns `out`. */
    const char *(*explain)(const struct heddle_drive_env *env, char *out, size_t cap);

    /* Optional, for energy. The place on the bus, "0000:3b:00.0", under which counters know the
     * device; the watts that it draws now, < 0: it does not tell. */
    heddle_status (*pci)(struct heddle_dev *dev, char *out, size_t cap);
    double (*watts)(struct heddle_dev *dev);
};

/* First member of every driver's struct heddle_dev. */
struct heddle_dev_base {
    const struct heddle_driver *driver;
    struct heddle_dev_info info;
};

static inline struct heddle_dev_base *heddle_dev_base(struct heddle_dev *dev)
{
    return (struct heddle_dev_base *)(void *)dev;
}

/* NULL-terminated; one per kind of device that the build has, and those of drive.def. */
extern const struct heddle_driver *const heddle_driver_table[];

/* NULL when there is none of that name. */
const struct heddle_driver *heddle_driver_find(const char *name);

#endif /* HEDDLE_DRIVE_DRIVE_H */
