/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_DRIVE_DRIVE_H
#define HEDDLE_DRIVE_DRIVE_H

/*
 * Driver contract: what the engine asks of a device.
 *
 * A driver is a kind of device (opencl, sim, disk, ...); a heddle_dev is one open
 * device: a memory and, unless it is a disk, a processor with a few streams. The
 * engine decides everything (what runs, what is copied, what is evicted); a
 * driver does what it is told and says when it is done.
 *
 * Streams   A device has info.nstreams streams for kernels, numbered from 0, and
 *           one more, number nstreams, that the engine gives its transfers to.
 *           There the engine relies on no order: it never has two transfers in
 *           flight that touch the same bytes, unless nobody will use what one of
 *           them brings (the data were written elsewhere since).
 * Memory    A pointer may be anything but NULL: nobody adds to it.
 * Order     Work on one stream of a device runs in the order in which it was
 *           given; work on different streams does not wait for each other unless
 *           order() says so. alloc() and free() are ordered with their stream:
 *           memory may be freed after the last use was *enqueued*.
 * Ends      copy() and launch() return at once. When HEDDLE_OK was returned,
 *           op->done(op, st) is called exactly once, later, from progress() and
 *           from nowhere else. When they return anything else, done() is not
 *           called. done() may call alloc, free, copy, launch, order of any
 *           device, but not progress().
 * Failure   every failure is a value. HEDDLE_EDEV: the device is lost; from then
 *           on every call on it returns HEDDLE_EDEV, and whatever is in flight
 *           ends with HEDDLE_EDEV. HEDDLE_ENOMEM from alloc(): not now; the
 *           engine evicts and asks again. Other statuses are the operation's.
 *           `why`, where the last failure left a sentence, is read with error().
 * Threads   one thread at a time calls into all devices of a context: no driver
 *           needs a lock against the engine. A driver may have threads of its
 *           own (disk); they never call done().
 * Loading   probe() must work on a machine that has no such device and no such
 *           library: then it finds none. Vendor libraries are loaded by probe(),
 *           with dlopen, when they are not certain to be there.
 *
 * One folder and one line of drive.def add a driver; tests/conformance/drive_conformance.c
 * runs each through the same script.
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
    /* Set by the driver before done(), in ns of the driver env's clock; 0 and 0
     * when it cannot tell. */
    uint64_t begin_ns, end_ns;
    bool is_rough;          /* they are a share of a group's, good for pictures */
    bool is_loading;        /* most of it is what happens once: libraries, code */
    struct heddle_op *next; /* the driver's while in flight, as is priv */
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
    /* Its end and its times matter; else it may end with others behind it, and
     * the times may be rough. */
    bool wants_time;
    /* Called by the driver, on the thread that called launch() or progress(),
     * with `x`: puts the kernel on the stream (cpu, sim: does the work). Its
     * status, when not OK, is the operation's. NULL: nothing to run (sim). */
    heddle_run_fn run;
    struct heddle_exec *x;
    double model_ns; /* sim: how long it takes, alone */
    double share_ns; /* sim: how long with the whole device, had others the rest;
                        0: it shares nothing */
};

/* What a driver may need to know; lives as long as the devices. */
struct heddle_drive_env {
    const struct heddle_allocator *alloc;
    uint64_t (*now_ns)(void *user); /* the context's clock */
    void *user;
    const char *path;         /* disk: a folder; NULL: the system's */
    uint64_t bytes;           /* disk: the most to use; 0: what is free */
    void *world;              /* sim: struct heddle_sim */
    const char *cache_dir;    /* for compiled programs; NULL: no cache */
    const char *cuda_library; /* cuda: load this; NULL: the system's driver */
};

/*
 * A recorded region as one operation: `n` launches, put on the stream by put(), in
 * this order; i may run as soon as pred[first[i]] .. pred[first[i + 1] - 1], all of
 * them before i, have run.
 */
struct heddle_region {
    unsigned n;
    heddle_status (*put)(void *user, unsigned i);
    void *user;
    const uint32_t *first; /* n + 1 */
    const uint32_t *pred;
    /* For a graph that is there already: a bit for each launch that is not what it
     * was; NULL: any may have changed. n, first and pred are what they were. */
    const uint64_t *changed;
};

struct heddle_dev_info {
    char name[32];                       /* "opencl0": unique in a context */
    char model[64];                      /* equal devices have equal ones: key of the models */
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
    bool is_slow;            /* to load: looked for only when the user asks for it */
    bool has_urgent;         /* kernels on the last stream go before those of others */
    /* Launches queue on its streams, order() is there, and a launch whose function
     * returned HEDDLE_OK need not be done again unless the device is lost. So tasks
     * are put behind it before it has ended, and streams have more of them. */
    bool is_sure;

    /* Required. Up to `cap` devices into info; *n_out: how many there are. None is
     * no failure. `env` may hold nothing but alloc. */
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

    /* Required. The copy record may go when this returns. */
    heddle_status (*copy)(struct heddle_dev *dev, const struct heddle_copy *c, unsigned stream,
                          struct heddle_op *op);
    /* May this device copy straight to `to`? NULL: never. */
    bool (*can_peer)(struct heddle_dev *dev, struct heddle_dev *to);

    /* Required when kind is not 0. */
    heddle_status (*launch)(struct heddle_dev *dev, const struct heddle_dev_launch *l,
                            unsigned stream, struct heddle_op *op);

    /* Optional. What is given to `stream` from now on starts after `op`, an
     * operation in flight on any stream of a device of this driver. NULL: the
     * engine waits on the host instead. */
    heddle_status (*order)(struct heddle_dev *dev, unsigned stream, struct heddle_op *op);

    /*
     * Optional, all three or none. region() makes a graph of the launches, or, when
     * *graph_inout is not NULL, brings that one up to date: put() is called for
     * each, or for those alone that `changed` says. When it fails the graph is what
     * it was, or replay() answers HEDDLE_EDECLINED until region() succeeds.
     * replay() runs it, like a launch; once accepted it ends well, or the device is
     * lost. A graph in flight is neither brought up to date nor freed.
     */
    heddle_status (*region)(struct heddle_dev *dev, const struct heddle_region *r, unsigned stream,
                            void **graph_inout);
    heddle_status (*replay)(struct heddle_dev *dev, void *graph, unsigned stream,
                            struct heddle_op *op);
    void (*region_free)(struct heddle_dev *dev, void *graph);

    /*
     * Optional, both or none; any thread. pin(): these bytes of the host will be
     * copied often; the driver may make that fast, now or later, or not. unpin():
     * the same range; nothing uses it, and it may go when this returns.
     */
    void (*pin)(struct heddle_dev *dev, void *host, size_t bytes);
    void (*unpin)(struct heddle_dev *dev, void *host, size_t bytes);

    /* Required. Calls done() for what has ended; returns how many. */
    unsigned (*progress)(struct heddle_dev *dev);

    /* Optional. Free bytes now, counting what others use; 0: unknown. */
    uint64_t (*memory_free)(struct heddle_dev *dev);

    /* Optional. What a variant may ask for: "queue", "context", "stream", ... as
     * the driver's public header documents. NULL: no such thing. */
    void *(*native)(struct heddle_dev *dev, unsigned stream, const char *what);

    /* Optional. The sentence behind the last failure; "" when there is none. */
    const char *(*error)(struct heddle_dev *dev);
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

/* NULL-terminated; built from drive.def. */
extern const struct heddle_driver *const heddle_driver_table[];

/* NULL when there is none of that name. */
const struct heddle_driver *heddle_driver_find(const char *name);

#endif /* HEDDLE_DRIVE_DRIVE_H */
