/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * machine: the public, read-only view of a description.
 *
 * The structs are copies that begin with their size: a program built against an
 * older header gets the members it knows, a newer one zeros for the rest.
 */
#include "heddle/machine.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/sized.h"
#include "plat/plat.h"
#include "plat/read.h"

struct heddle_machine {
    struct heddle_plat *p;
};

_Static_assert((int)HEDDLE_MEMORY_HOST == (int)HEDDLE_NODE_HOST &&
                   (int)HEDDLE_MEMORY_DEVICE == (int)HEDDLE_NODE_DEVICE &&
                   (int)HEDDLE_MEMORY_DISK == (int)HEDDLE_NODE_DISK,
               "one numbering of memories");

heddle_status heddle_machine_open(const char *source, heddle_machine **out, char *why,
                                  size_t why_bytes)
{
    struct heddle_machine *m;
    heddle_status st;

    if (source == NULL || out == NULL)
        return heddle_why(why, why_bytes, HEDDLE_EINVAL, "source or out is NULL");
    m = heddle_zalloc(NULL, 1, sizeof(*m));
    if (m == NULL)
        return heddle_why(why, why_bytes, HEDDLE_ENOMEM, "no memory");
    st = heddle_plat_open(NULL, source, &m->p, why, why_bytes);
    if (st != HEDDLE_OK) {
        heddle_free(NULL, m, sizeof(*m));
        return st;
    }
    *out = m;
    return HEDDLE_OK;
}

void heddle_machine_close(heddle_machine *m)
{
    if (m == NULL)
        return;
    heddle_plat_destroy(m->p);
    heddle_free(NULL, m, sizeof(*m));
}

heddle_status heddle_machine_describe(const heddle_machine *m, struct heddle_machine_counts *out)
{
    struct heddle_machine_counts c = {0};

    HEDDLE_CHECK(m != NULL);
    HEDDLE_TRY(HEDDLE_SIZED_ROOM(struct heddle_machine_counts, out, NULL, 0));
    c.classes = m->p->ncls;
    c.types = m->p->ntypes;
    for (unsigned i = 0; i < m->p->ncls; i++)
        c.workers += m->p->cls[i].nworkers;
    c.nodes = m->p->nnodes;
    c.links = m->p->nlinks;
    c.buses = m->p->nbuses;
    c.faults = m->p->nfaults;
    c.submit_ns = m->p->submit_ns;
    c.task_ns = m->p->task_ns;
    c.wake_ns = m->p->wake_ns;
    c.drive_ns = m->p->drive_ns;
    c.notice_ns = m->p->notice_ns;
    memcpy(c.name, m->p->name, sizeof(m->p->name));
    heddle_sized_put(out, &c, sizeof(c));
    return HEDDLE_OK;
}

heddle_status heddle_machine_get_class(const heddle_machine *m, uint32_t i,
                                       struct heddle_machine_class *out)
{
    struct heddle_machine_class c = {0};
    const struct heddle_plat_class *p;

    HEDDLE_CHECK(m != NULL);
    HEDDLE_TRY(HEDDLE_SIZED_ROOM(struct heddle_machine_class, out, NULL, 0));
    if (i >= m->p->ncls)
        return HEDDLE_ENOENT;
    p = &m->p->cls[i];
    memcpy(c.name, p->name, sizeof(p->name));
    memcpy(c.model, p->model, sizeof(p->model));
    c.kind = p->kind;
    c.type = p->type;
    c.node = p->node;
    c.nworkers = p->nworkers;
    c.launch_ns = p->launch_ns;
    c.gflops = p->gflops;
    c.gbytes = p->gbytes;
    heddle_sized_put(out, &c, sizeof(c));
    return HEDDLE_OK;
}

heddle_status heddle_machine_get_node(const heddle_machine *m, uint32_t i,
                                      struct heddle_machine_node *out)
{
    struct heddle_machine_node n = {0};

    HEDDLE_CHECK(m != NULL);
    HEDDLE_TRY(HEDDLE_SIZED_ROOM(struct heddle_machine_node, out, NULL, 0));
    if (i >= m->p->nnodes)
        return HEDDLE_ENOENT;
    memcpy(n.name, m->p->node[i].name, sizeof(m->p->node[i].name));
    n.kind = (uint32_t)m->p->node[i].kind;
    n.bytes = m->p->node[i].bytes;
    heddle_sized_put(out, &n, sizeof(n));
    return HEDDLE_OK;
}

heddle_status heddle_machine_get_link(const heddle_machine *m, uint32_t i,
                                      struct heddle_machine_link *out)
{
    struct heddle_machine_link l = {0};
    const struct heddle_plat_link *p;

    HEDDLE_CHECK(m != NULL);
    HEDDLE_TRY(HEDDLE_SIZED_ROOM(struct heddle_machine_link, out, NULL, 0));
    if (i >= m->p->nlinks)
        return HEDDLE_ENOENT;
    p = &m->p->link[i];
    memcpy(l.name, p->name, sizeof(p->name));
    l.from = p->from;
    l.to = p->to;
    l.bytes_per_ns = p->bytes_per_ns;
    l.latency_ns = p->latency_ns;
    l.bus = p->bus;
    if (p->bus >= 0)
        l.bus_bytes_per_ns = m->p->bus[p->bus].bytes_per_ns;
    heddle_sized_put(out, &l, sizeof(l));
    return HEDDLE_OK;
}

double heddle_machine_time(const heddle_machine *m, const char *kernel, uint32_t cls, double bytes,
                           double flops)
{
    if (m == NULL || kernel == NULL)
        return (double)NAN;
    return heddle_plat_time(m->p, kernel, cls, bytes, flops);
}
