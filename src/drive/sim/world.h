/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_DRIVE_SIM_WORLD_H
#define HEDDLE_DRIVE_SIM_WORLD_H

/*
 * The inside of a simulated world, shared by the files of the driver.
 *
 *   sim.c       the world's parts, and the driver's face
 *   run.c   streams, ends, the step, what goes wrong
 *   link.c  links and buses
 *   heap.h  jobs and events
 */
#include "drive/sim/heap.h"
#include "drive/sim/sim.h"

#define SIM_NS_MAX 4e18

extern const struct heddle_driver heddle_driver_sim;

struct sim_stream {
    struct sim_job *head, *tail;
    struct sim_job *cur; /* holds the stream; always NULL for copies */
};

struct sim_link {
    struct sim_job *head, *tail;
    struct sim_job *cur;
    uint64_t queued_ns; /* estimates of those behind cur */
    uint64_t busy_ns, bytes;
};

/* The links whose copy flows, ascending: sums come in one order. */
struct sim_bus {
    unsigned *link;
    unsigned nflows, nlinks;
};

struct sim_buffer;

/* Oldest first. */
struct sim_pins {
    struct sim_pin *head, *tail;
};

struct sim_class {
    struct sim_stream *stream; /* nworkers + 1 */
    struct sim_pins own;       /* jobs given to the device */
    struct sim_pins incoming;  /* copies that other devices send to it */
    struct sim_buffer *free_head, *free_tail;
    uint64_t next_number;
    uint64_t nlaunches;
    double factor;
    bool is_lost;
};

struct sim_node {
    uint64_t ncopies, nallocs, used;
};

struct heddle_sim {
    struct heddle_allocator alloc;
    const struct heddle_plat *plat;
    bool executes;
    _Atomic uint64_t now; /* written by the thread that steps, read by any thread */
    uint64_t nflying;
    uint64_t fake;
    struct sim_heap heap;
    struct sim_class *cls;
    struct sim_node *node;
    struct sim_link *link;
    struct sim_bus *bus;
    int *link_of;            /* [from * nnodes + to] */
    struct heddle_op *spare; /* after() without memory, by time */
};

/* In front of a buffer that executes. */
struct sim_buffer {
    struct sim_buffer *next; /* among those to free */
    size_t bytes;
    uint64_t number; /* goes when the jobs before it have ended */
};
#define SIM_BUFFER_HEAD 64u
_Static_assert(sizeof(struct sim_buffer) <= SIM_BUFFER_HEAD, "header too large");

static inline uint64_t sim_ns(double ns)
{
    return ns >= SIM_NS_MAX ? (uint64_t)SIM_NS_MAX : ns > 0 ? (uint64_t)(ns + 0.5) : 0;
}

static inline uint64_t sim_plus(uint64_t t, uint64_t ns)
{
    return t > UINT64_MAX - ns ? UINT64_MAX : t + ns;
}

/* How many times longer than described a job's device takes now. */
static inline double sim_slowness(const struct heddle_sim *s, const struct sim_job *j)
{
    return s->cls[j->cls].factor;
}

/* The number of the link, or -1. */
static inline int sim_link_between(const struct heddle_sim *s, unsigned from, unsigned to)
{
    return s->link_of[(size_t)from * s->plat->nnodes + to];
}

static inline bool sim_is_copy_stream(const struct heddle_sim *s, unsigned cls, unsigned stream)
{
    return stream == s->plat->cls[cls].nworkers;
}

/* link.c */
HEDDLE_MUST_USE heddle_status heddle_sim_links_create(struct heddle_sim *s);
void heddle_sim_links_destroy(struct heddle_sim *s);
/* A copy lines up; its bytes begin to flow; it has ended or is given up; it goes
 * away before it began. */
void heddle_sim_link_enter(struct heddle_sim *s, struct sim_job *j);
void heddle_sim_link_flow(struct heddle_sim *s, struct sim_job *j);
void heddle_sim_link_leave(struct heddle_sim *s, struct sim_job *j);
void heddle_sim_link_drop(struct heddle_sim *s, struct sim_job *j);

/* run.c */
/* Gives a job with its op, class and stream to its device. */
void heddle_sim_give(struct heddle_sim *s, struct sim_job *j);
/* What follows in `stream` waits for `first`; b is a new barrier. */
void heddle_sim_hold(struct heddle_sim *s, struct sim_job *b, struct sim_job *first);
/* Frees the buffers of a class that nothing in flight can use. */
void heddle_sim_flush(struct heddle_sim *s, struct sim_class *c);
HEDDLE_MUST_USE heddle_status heddle_sim_faults_create(struct heddle_sim *s);

#endif /* HEDDLE_DRIVE_SIM_WORLD_H */
