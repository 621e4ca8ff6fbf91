/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * import_lanes: workers and memory nodes of an imported trace.
 *
 * Structure  workers are collected in the order they are met, and sorted by
 *            process and number at the end; a lane for what is submitted comes
 *            last. A worker is a device's when its memory node is one: by the
 *            name in the platform file, or, when that does not tell, when it is
 *            not node 0.
 */
#include <strings.h>

#include "base/assert.h"
#include "base/device.h"
#include "base/text.h"
#include "trace/import.h"

#define WORKERS_MAX 8192 /* a lane takes memory while it is written */
#define RANK_SHIFT  32

static heddle_status find_node(struct heddle_import *m, uint32_t id,
                               struct heddle_import_node **node_out)
{
    uint64_t *place;

    HEDDLE_TRY(heddle_map_slot(&m->node_of, id, &place));
    if (*place == 0) {
        HEDDLE_TRY(heddle_log_grow(m->a, &m->nodes_found, &m->node_cap, m->nnodes + 1,
                                   sizeof *m->nodes_found));
        m->nodes_found[m->nnodes] = (struct heddle_import_node){.id = id};
        *place = ++m->nnodes;
    }
    *node_out = &m->nodes_found[*place - 1];
    return HEDDLE_OK;
}

heddle_status heddle_import_lane(struct heddle_import *m, uint64_t rank, uint64_t worker,
                                 uint64_t node, size_t line, uint32_t *index_out)
{
    const uint32_t id = (uint32_t)(rank * HEDDLE_IMPORT_NODES + node);
    const uint64_t key = rank << RANK_SHIFT | worker;
    struct heddle_import_node *unused;
    uint64_t *place;

    HEDDLE_TRY(heddle_map_slot(&m->lane_of, key, &place));
    if (*place == 0) {
        if (m->nfound == WORKERS_MAX)
            return heddle_import_refuse(m, line, "there are more than %d workers", WORKERS_MAX);
        HEDDLE_TRY(find_node(m, id, &unused));
        HEDDLE_TRY(
            heddle_log_grow(m->a, &m->found, &m->found_cap, m->nfound + 1, sizeof *m->found));
        m->found[m->nfound] = (struct heddle_import_lane){.key = key, .node = id};
        *place = ++m->nfound;
    }
    *index_out = (uint32_t)*place - 1;
    return HEDDLE_OK;
}

heddle_status heddle_import_platform(struct heddle_import *m, const struct heddle_import_rec *r)
{
    const char *list = r->value[F_WORKERS];
    char word[HEDDLE_RECUTILS_WORD];
    struct heddle_import_node *n;
    uint64_t node = 0, worker;
    struct heddle_text t;
    uint32_t unused;

    if (strcmp(r->section, "memory_workers") != 0)
        return HEDDLE_OK; /* times and bandwidths are not part of a log */
    if (r->value[F_NODE] == NULL)
        return heddle_import_refuse(m, r->first, "the record has no MemoryNode");
    HEDDLE_TRY(heddle_import_uint(m, r, F_NODE, HEDDLE_IMPORT_NODES - 1, &node));
    HEDDLE_TRY(find_node(m, (uint32_t)node, &n));
    heddle_text_init(&t, n->name, sizeof n->name);
    if (r->value[F_NAME] != NULL)
        heddle_text_str(&t, r->value[F_NAME]);
    HEDDLE_TRY(heddle_import_uint(m, r, F_SIZE, INT64_MAX, &n->bytes));
    while (list != NULL && heddle_recutils_word(&list, word)) {
        if (heddle_parse_u64(word, &worker) != HEDDLE_OK || worker > UINT32_MAX)
            return heddle_import_refuse(m, r->line[F_WORKERS], "'%s' is not the number of a worker",
                                        word);
        HEDDLE_TRY(heddle_import_lane(m, 0, worker, node, r->line[F_WORKERS], &unused));
    }
    return HEDDLE_OK;
}

/* ---- when all are known ---- */

static bool begins_with(const char *s, const char *word)
{
    return strncasecmp(s, word, strlen(word)) == 0;
}

static enum heddle_device node_device(const struct heddle_import_node *n)
{
    const enum heddle_device kind = heddle_device_at_start(n->name);

    if (kind != 0)
        return kind;
    if (begins_with(n->name, "numa") || begins_with(n->name, "ram") || begins_with(n->name, "disk"))
        return HEDDLE_DEV_CPU;
    /* An accelerator of a kind that Heddle has no driver for stands as the usual one. */
    return n->id % HEDDLE_IMPORT_NODES == 0 ? HEDDLE_DEV_CPU : HEDDLE_DEV_CUDA;
}

static enum heddle_device lane_device(const struct heddle_import *m, uint32_t node)
{
    uint64_t i = 0;

    (void)heddle_map_get(&m->node_of, node, &i);
    HEDDLE_ASSERT(i > 0);
    return node_device(&m->nodes_found[i - 1]);
}

static void make_nodes(struct heddle_import *m)
{
    for (size_t i = 0; i < m->nnodes; i++) {
        struct heddle_import_node *n = &m->nodes_found[i];
        const bool is_cpu = node_device(n) == HEDDLE_DEV_CPU;
        struct heddle_text t;

        m->nodes[i] =
            (struct heddle_log_node){.id = n->id, .kind = is_cpu ? 0 : 1, .bytes = n->bytes};
        if (n->name[0] == '\0') {
            heddle_text_init(&t, n->name, sizeof n->name);
            heddle_text_add(&t, "%s %u", is_cpu ? "host" : "device", (unsigned)n->id);
        }
        m->nodes[i].name = n->name;
    }
}

static void make_lane(struct heddle_import *m, size_t i, const struct heddle_import_lane *f)
{
    const uint64_t rank = f->key >> RANK_SHIFT;
    const enum heddle_device dev = lane_device(m, f->node);
    struct heddle_text t;

    heddle_text_init(&t, m->names[i], HEDDLE_IMPORT_NAME);
    if (rank != 0)
        heddle_text_add(&t, "process %u, ", (unsigned)rank);
    heddle_text_add(&t, dev == HEDDLE_DEV_CPU ? "worker %u" : "device worker %u", (unsigned)f->key);
    m->lanes[i] = (struct heddle_log_lane){
        .id = (uint32_t)i,
        .kind = dev == HEDDLE_DEV_CPU ? HEDDLE_LOG_WORKER : HEDDLE_LOG_DEVICE,
        .cpu = -1,
        .node = f->node,
        .name = m->names[i],
    };
}

/* Of each kernel, for the kinds of devices it ran on: the host's first. */
static void make_variants(struct heddle_import *m)
{
    for (size_t i = 0; i < m->ntasks; i++) {
        struct heddle_log_task *t = &m->tasks[i];
        struct heddle_log_variant *v = m->variants[t->kernel];
        enum heddle_device dev;

        if (t->lane == HEDDLE_LOG_NO_LANE)
            continue;
        dev = lane_device(m, m->lanes[t->lane].node);
        v[dev != HEDDLE_DEV_CPU] =
            (struct heddle_log_variant){.device = (uint32_t)dev, .name = heddle_device_name(dev)};
    }
    for (size_t i = 0; i < m->nkernels; i++) {
        const struct heddle_log_variant *v = m->variants[i];

        m->kernels[i].nvariants = (v[0].device != 0) + (v[1].device != 0);
        m->kernels[i].variants = v[0].device != 0 ? v : v + 1;
    }
    for (size_t i = 0; i < m->ntasks; i++) {
        struct heddle_log_task *t = &m->tasks[i];

        if (t->lane != HEDDLE_LOG_NO_LANE && m->kernels[t->kernel].nvariants == 2)
            t->variant = m->lanes[t->lane].kind == HEDDLE_LOG_DEVICE;
    }
}

/* Sorts workers, and turns lanes of tasks from places in found[] into places
 * in lanes[]. */
static heddle_status sort_lanes(struct heddle_import *m)
{
    const size_t n = m->nfound;
    struct heddle_pair *p;
    uint32_t *place_of;

    if (n == 0)
        return HEDDLE_OK;
    p = heddle_zalloc(m->a, 2 * n, sizeof *p);
    place_of = heddle_zalloc(m->a, n, sizeof *place_of);
    if (p != NULL && place_of != NULL) {
        for (size_t i = 0; i < n; i++)
            p[i] = (struct heddle_pair){m->found[i].key, i};
        heddle_sort_pairs(p, p + n, n);
        for (size_t i = 0; i < n; i++) {
            make_lane(m, i, &m->found[p[i].idx]);
            place_of[p[i].idx] = (uint32_t)i;
        }
        for (size_t i = 0; i < m->ntasks; i++)
            if (m->tasks[i].lane != HEDDLE_LOG_NO_LANE)
                m->tasks[i].lane = place_of[m->tasks[i].lane];
    }
    heddle_free(m->a, place_of, n * sizeof *place_of);
    heddle_free(m->a, p, 2 * n * sizeof *p);
    return p == NULL || place_of == NULL ? HEDDLE_ENOMEM : HEDDLE_OK;
}

heddle_status heddle_import_lanes_finish(struct heddle_import *m)
{
    m->nlanes = m->nfound + 1;
    m->lanes = heddle_zalloc(m->a, m->nlanes, sizeof *m->lanes);
    m->names = heddle_zalloc(m->a, m->nlanes, sizeof *m->names);
    if (m->lanes == NULL || m->names == NULL)
        return HEDDLE_ENOMEM;
    if (m->nnodes > 0) {
        m->nodes = heddle_zalloc(m->a, m->nnodes, sizeof *m->nodes);
        if (m->nodes == NULL)
            return HEDDLE_ENOMEM;
    }
    if (m->nkernels > 0) {
        m->variants = heddle_zalloc(m->a, m->nkernels, sizeof *m->variants);
        if (m->variants == NULL)
            return HEDDLE_ENOMEM;
    }
    HEDDLE_TRY(sort_lanes(m));
    m->lanes[m->nfound] = (struct heddle_log_lane){
        .id = (uint32_t)m->nfound,
        .kind = HEDDLE_LOG_SUBMITTER,
        .cpu = -1,
        .name = "submitter",
    };
    make_variants(m);
    make_nodes(m);
    return HEDDLE_OK;
}

void heddle_import_lanes_fini(struct heddle_import *m)
{
    heddle_free(m->a, m->found, m->found_cap * sizeof *m->found);
    heddle_free(m->a, m->nodes_found, m->node_cap * sizeof *m->nodes_found);
    heddle_free(m->a, m->lanes, m->nlanes * sizeof *m->lanes);
    heddle_free(m->a, m->names, m->nlanes * sizeof *m->names);
    heddle_free(m->a, m->nodes, m->nnodes * sizeof *m->nodes);
    heddle_free(m->a, m->variants, m->nkernels * sizeof *m->variants);
    heddle_map_fini(&m->lane_of);
    heddle_map_fini(&m->node_of);
}
