/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_DRIVE_OPENCL_DEV_H
#define HEDDLE_DRIVE_OPENCL_DEV_H

/*
 * Private to the files of the driver `opencl`.
 *
 * opencl.c    the driver: probe, open, memory, launches, ends
 * copy.c     copies
 * order.c    order between streams and devices
 * program.c  programs and kernels (drive/opencl/opencl.h)
 * cache.c    compiled programs on disk
 * api.c      the library, its errors
 */
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>
#include <stdbool.h>
#include <stdint.h>

#include "drive/drive.h"

#define HEDDLE_OPENCL_STREAMS 2                           /* for kernels */
#define HEDDLE_OPENCL_QUEUES  (HEDDLE_OPENCL_STREAMS + 1) /* and for copies */

/* The library's functions. Each device has its own table, so that a test can put
 * a failing function into it. */
struct heddle_opencl_api {
    void *lib;
#define HEDDLE_OPENCL_FN(name) __typeof__(name) *name;
#include "drive/opencl/api.def"
#undef HEDDLE_OPENCL_FN
};

/* A queue of another context that waits for an operation (order.c). */
struct heddle_opencl_waiter {
    struct heddle_opencl_waiter *next;        /* of the same operation */
    struct heddle_opencl_waiter *next_barred; /* of the same device */
    struct heddle_opencl_flight *flight;      /* the operation */
    struct heddle_dev *barred;                /* the device that waits; NULL: no longer */
    cl_event event;                           /* a user event of that device's context */
};

/* What is known about an operation in flight; op->priv[0]. */
struct heddle_opencl_flight {
    struct heddle_opencl_flight *next; /* in its stream, or in the free list */
    struct heddle_dev *dev;
    unsigned stream;
    struct heddle_op *op;
    cl_event end;         /* the last command of the operation */
    cl_event first, last; /* launches: kernels put there by us; may be NULL */
    heddle_status st;     /* known before the end: the launch's own */
    bool is_launch;
    uint64_t given_ns; /* when `end` (or `first`) was put on the queue */
    uint64_t begun_ns; /* when launch() was called */
    struct heddle_opencl_waiter *waiters;
    /* Copies to the host. Through `staging` if that is not NULL. */
    char *host;
    size_t host_span;
    void *staging;
    size_t staging_bytes;
    bool is_out;
    struct heddle_runs runs;
};

struct heddle_opencl_stream {
    cl_command_queue queue;
    struct heddle_opencl_flight *first, *last;
    size_t nflights;
    struct heddle_opencl_flight *launching; /* during launch() */
    uint64_t last_end_ns;
};

struct heddle_opencl_program; /* program.c */

struct heddle_dev {
    struct heddle_dev_base base;
    struct heddle_drive_env env;
    struct heddle_opencl_api api;
    cl_device_id id;
    cl_context context;
    bool is_lost;
    uint64_t used;
    struct heddle_opencl_waiter *barred; /* what its queues wait for elsewhere */
    bool is_swept;                       /* breaks cycles of a sweep */
    size_t nstaged;                      /* copies in flight that have staging to be scattered */
    struct heddle_opencl_stream stream[HEDDLE_OPENCL_QUEUES];
    struct heddle_opencl_flight *spare;
    void *spare_staging; /* the last one, when it is not too large */
    size_t spare_staging_bytes;
    struct heddle_opencl_program *programs;
    char why[768];
};

extern const struct heddle_driver heddle_driver_opencl;

/* HEDDLE_ENOSYS: the machine has no OpenCL. */
HEDDLE_MUST_USE heddle_status heddle_opencl_load(struct heddle_opencl_api *api);
void heddle_opencl_unload(struct heddle_opencl_api *api);

/* "CL_OUT_OF_RESOURCES"; never NULL. */
const char *heddle_opencl_error_name(cl_int err);

/* Leaves the sentence "opencl0: cannot <verb>: CL_..." and returns the status
 * that goes with it; after HEDDLE_EDEV the device is lost. */
heddle_status heddle_opencl_fail(struct heddle_dev *dev, cl_int err, const char *verb);

uint64_t heddle_opencl_now(const struct heddle_dev *dev);

/* A record that is in no list, and back. NULL: no memory. */
struct heddle_opencl_flight *heddle_opencl_flight_get(struct heddle_dev *dev, unsigned stream,
                                                      struct heddle_op *op);
void heddle_opencl_flight_put(struct heddle_opencl_flight *f);
/* Appends it to its stream; f->end is set. */
void heddle_opencl_flight_start(struct heddle_opencl_flight *f);

heddle_status heddle_opencl_copy(struct heddle_dev *dev, const struct heddle_copy *c,
                                 unsigned stream, struct heddle_op *op);
/* Takes the staging memory, if any, from an operation. */
void heddle_opencl_copy_unstage(struct heddle_opencl_flight *f);
/* Moves what was read into the staging memory to where it belongs. */
void heddle_opencl_copy_scatter(struct heddle_opencl_flight *f);

heddle_status heddle_opencl_order(struct heddle_dev *dev, unsigned stream, struct heddle_op *op);
/* The operation has ended: operations that wait for it go on. */
void heddle_opencl_order_ended(struct heddle_opencl_flight *f);
/* Lets everything on the device go on that waits for others. */
void heddle_opencl_order_fini(struct heddle_dev *dev);
/* Waits for an event of the device. False: it failed. */
bool heddle_opencl_wait(struct heddle_dev *dev, cl_event e);

void heddle_opencl_programs_fini(struct heddle_dev *dev);

/* What identifies a compiled program. */
struct heddle_opencl_key {
    const char *source, *options;
    char device[256]; /* names and versions of device, driver and platform */
};

/* The bytes of a compiled program, to be freed with *bytes_out. HEDDLE_ENOENT:
 * there is none, or none that can be trusted. HEDDLE_ENOMEM. */
HEDDLE_MUST_USE heddle_status heddle_opencl_cache_read(const struct heddle_allocator *a,
                                                       const char *dir,
                                                       const struct heddle_opencl_key *key,
                                                       unsigned char **data_out, size_t *bytes_out);
/* Keeps them; a failure costs time the next time, and nothing else. */
void heddle_opencl_cache_write(const char *dir, const struct heddle_opencl_key *key,
                               const unsigned char *data, size_t bytes);
/* The file's name, cap bytes. False: it does not fit. */
bool heddle_opencl_cache_path(const char *dir, const struct heddle_opencl_key *key, char *path,
                              size_t cap);

#endif /* HEDDLE_DRIVE_OPENCL_DEV_H */
