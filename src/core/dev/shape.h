/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_CORE_DEV_SHAPE_H
#define HEDDLE_CORE_DEV_SHAPE_H

/* What is known about a kernel on operands of one size. */
#include <stdint.h>

#include "base/atomic.h"
#include "core/exec.h"
#include "heddle/task.h"
#include "perf/perf.h"

struct heddle_devs;

/* What a task takes on a class, with its best variant. */
struct dev_cost {
    double ns; /* INFINITY: it cannot run there; NAN: unknown */
    double sure;
    struct heddle_perf_entry *model; /* of that variant; or NULL */
    unsigned variant;
};

/* The same, kept by the device thread for tasks without restrictions. */
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
    struct dev_quick *quick; /* per class; the device thread's */
    /* real: per type and variant */
    _Atomic(struct heddle_perf_entry *) *entry;
};

/* The shape of a task, made on first sight; NULL: no memory. */
struct dev_shape *heddle_dev_shape(struct heddle_devs *d, struct heddle_exec *x);
/* The model of one variant on one class. */
struct heddle_perf_entry *heddle_dev_model(struct heddle_devs *d, struct heddle_exec *x,
                                           struct dev_shape *shape, unsigned cls, unsigned v);
/* The sort of tasks of a shape that may run on these classes; all bits: wherever the kernel
 * can. */
unsigned heddle_dev_shape_sort(struct heddle_devs *d, struct dev_shape *s, uint64_t classes);
/* Frees the shapes of a kernel. End of the context. */
void heddle_dev_free_shapes(struct heddle_devs *d, struct heddle_kinfo *k);

#endif /* HEDDLE_CORE_DEV_SHAPE_H */
