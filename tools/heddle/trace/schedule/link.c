/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * trace/schedule/link: what tasks hand over to each other, and how long that takes.
 *
 * Bytes      of an edge: the handles that the one task writes and the other
 *            reads. First reads of the program's data are not counted.
 * Links      of the machine, between the memories of two types; where there is
 *            none, over the host. Two devices of one type have the link between
 *            their memories, workers of one memory have none.
 */
#include <math.h>
#include <stdlib.h>

#include "base/mode.h"
#include "trace/schedule/schedule.h"

static void fill_bytes(struct schedule *s)
{
    const struct heddle_log_view *v = heddle_log_get_view(s->log);
    const struct heddle_log_graph *g = s->b.g;

    for (uint32_t e = 0; e < s->graph.nedges; e++) {
        size_t a, a_end, b, b_first, b_end;

        heddle_log_find_accesses(s->log, g->id[s->graph.edge_from[e]], &a, &a_end);
        heddle_log_find_accesses(s->log, g->id[s->graph.edge_to[e]], &b_first, &b_end);
        for (; a < a_end; a++) {
            if (!heddle_mode_writes(heddle_mode_of(v->accesses[a].mode)))
                continue;
            for (b = b_first; b < b_end; b++)
                if (v->accesses[b].handle == v->accesses[a].handle &&
                    heddle_mode_reads(heddle_mode_of(v->accesses[b].mode)))
                    s->edge_bytes[e] += (double)v->handles[v->accesses[a].handle].bytes;
        }
    }
}

struct cost {
    double latency, byte; /* byte INFINITY: no way */
};

/* The fastest straight link. */
static struct cost straight(const heddle_machine *m, uint32_t from, uint32_t to)
{
    struct heddle_machine_link l = {.size = sizeof(l)};
    struct cost best = {0.0, INFINITY};

    for (uint32_t i = 0; heddle_machine_get_link(m, i, &l) == HEDDLE_OK; i++)
        if (l.from == from && l.to == to && l.bytes_per_ns > 0.0 &&
            1.0 / l.bytes_per_ns < best.byte)
            best = (struct cost){l.latency_ns, 1.0 / l.bytes_per_ns};
    return best;
}

static struct cost between(const heddle_machine *m, uint32_t from, uint32_t to)
{
    struct cost c = {0.0, 0.0}, up, down;

    if (from == to)
        return c;
    c = straight(m, from, to);
    if (c.byte < INFINITY || from == 0 || to == 0)
        return c;
    up = straight(m, from, 0);
    down = straight(m, 0, to);
    return (struct cost){up.latency + down.latency, up.byte + down.byte};
}

/* The memory of the k-th class of a type, or of its last one. */
static uint32_t node_of(const heddle_machine *m, uint32_t type, unsigned k)
{
    struct heddle_machine_class c = {.size = sizeof(c)};
    uint32_t node = 0;

    for (uint32_t i = 0; heddle_machine_get_class(m, i, &c) == HEDDLE_OK; i++) {
        if (c.type != type)
            continue;
        node = c.node;
        if (k-- == 0)
            break;
    }
    return node;
}

int schedule_links(struct schedule *s)
{
    const uint32_t n = s->graph.ntypes;
    const heddle_machine *m = s->b.machine;

    if (m == NULL)
        return cli_error(s->c, "--transfers needs a --machine with links");
    s->edge_bytes = calloc((size_t)s->graph.nedges + 1, sizeof(double));
    s->latency = calloc((size_t)n * n + 1, sizeof(double));
    s->byte_time = calloc((size_t)n * n + 1, sizeof(double));
    if (s->edge_bytes == NULL || s->latency == NULL || s->byte_time == NULL)
        return cli_fail(s->c, "%s", heddle_status_text(HEDDLE_ENOMEM));
    fill_bytes(s);
    for (uint32_t i = 0; i < n; i++) {
        for (uint32_t j = 0; j < n; j++) {
            const struct cost c = between(m, node_of(m, i, 0), node_of(m, j, i == j));

            s->latency[i * n + j] = c.latency;
            s->byte_time[i * n + j] = c.byte;
            if (c.byte == INFINITY)
                return cli_fail(s->c, "the machine has no way from %s to %s", s->b.g->types[i].name,
                                s->b.g->types[j].name);
        }
    }
    return 0;
}
