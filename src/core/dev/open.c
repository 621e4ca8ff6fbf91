/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * dev/open: which devices and memories a context has.
 *
 * Structure  devices of the drivers, or the classes of a machine file; the disk;
 *            failures that the options inject.
 * Invariants (1) class 0 is the cores; node 0 is the host's memory
 *            (2) workers of the scheduler are numbered class by class
 * Threads    creation of the context.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/atomic.h"
#include "base/compiler.h"
#include "base/map.h"
#include "base/text.h"
#include "base/why.h"
#include "core/ctx.h"
#include "core/dev/ahead.h"
#include "core/dev/dev.h"
#include "core/dev/devs.h"
#include "core/dev/energy.h"
#include "core/dev/time.h"
#include "core/dev/view.h"
#include "core/dev/virtual.h"
#include "core/dev/worker.h"
#include "core/env.h"
#include "core/error.h"
#include "drive/drive.h"
#include "drive/sim/sim.h"
#include "mem/mem.h"
#include "plat/plat.h"
#include "sched/sched.h"

/* --- classes and nodes -------------------------------------------------------- */

static unsigned dev_add_node(struct heddle_devs *d, const char *name, enum heddle_mem_kind kind,
                             struct heddle_dev *dev, uint64_t budget)
{
    const unsigned n = d->nnodes++;

    snprintf(d->node_name[n], sizeof(d->node_name[n]), "%.31s", name);
    d->node[n] = (struct heddle_mem_node_opts){.kind = kind, .dev = dev, .budget = budget};
    if (budget != HEDDLE_MEM_NO_LIMIT)
        d->has_budget = true;
    return n;
}

/* Classes of one kind and model are one type. */
static unsigned dev_type(struct heddle_devs *d, enum heddle_device kind, const char *model)
{
    for (unsigned i = 0; i < d->ncls; i++)
        if (d->cls[i].kind == kind && strcmp(d->cls[i].model, model) == 0)
            return d->cls[i].type;
    return d->ntypes++;
}

static struct dev_class *dev_add_class(struct heddle_devs *d, const char *name, const char *model,
                                       enum heddle_device kind, unsigned node, unsigned nworkers)
{
    struct dev_class *c = &d->cls[d->ncls];

    c->type = dev_type(d, kind, model);
    snprintf(c->name, sizeof(c->name), "%s", name);
    snprintf(c->model, sizeof(c->model), "%s", model);
    c->kind = kind;
    c->node = node;
    c->first = d->nsched;
    c->nworkers = nworkers;
    d->nsched += nworkers;
    d->ncls++;
    return c;
}

/* --- real devices ------------------------------------------------------------- */

/* Does a list like "cpu,opencl,cuda1" have this name or kind? */
static bool list_has(const char *list, const char *word)
{
    const size_t n = strlen(word);

    for (const char *p = list; p != NULL; p = strchr(p, ',')) {
        p += *p == ',';
        if (strncmp(p, word, n) == 0 && (p[n] == ',' || p[n] == '\0'))
            return true;
    }
    return false;
}

static bool dev_is_wanted(const char *list, const struct heddle_dev_info *info, const char *driver)
{
    if (list == NULL)
        return !info->is_cpu;
    return list_has(list, driver) || list_has(list, info->name);
}

static heddle_status dev_open_one(struct heddle_devs *d, const struct heddle_driver *drv,
                                  unsigned index, const struct heddle_dev_info *info,
                                  const struct heddle_ctx_opts *o, char *why, size_t cap)
{
    struct heddle_dev *dev = NULL;
    struct dev_class *c;
    uint64_t budget = o->device_memory;
    heddle_status st;
    unsigned node;

    if (d->nnodes >= HEDDLE_MEM_NODES - 1 || d->ncls >= DEV_CLASSES)
        return heddle_why(why, cap, HEDDLE_EINVAL, "too many devices");
    st = drv->open(&d->env, index, &dev);
    if (st != HEDDLE_OK && st != HEDDLE_ENOMEM && o->devices == NULL) {
        heddle_report(d->ctx, HEDDLE_WARNING, "device %s cannot be used and is left out: %s",
                      info->name, heddle_status_text(st));
        return HEDDLE_OK; /* no option asked for the device */
    }
    if (st != HEDDLE_OK)
        return heddle_why(why, cap, st, "device %s cannot be used: %s", info->name,
                          heddle_status_text(st));
    if (budget == 0) /* some is left for the driver and for others */
        budget = heddle_dev_base(dev)->info.memory_free / 10 * 9;
    if (budget == 0)
        budget = HEDDLE_MEM_NO_LIMIT;
    node = dev_add_node(d, info->name, HEDDLE_MEM_DEVICE, dev, budget);
    c = dev_add_class(d, info->name, info->model, info->kind, node,
                      info->nstreams != 0 ? info->nstreams : 1);
    c->dev = dev;
    c->drv = drv;
    return HEDDLE_OK;
}

/* No option asks for devices, and one asks for a scheduler that knows cores only. */
static bool dev_is_for_cores(const struct heddle_ctx_opts *o)
{
    const struct heddle_sched_ops *s = o->sched != NULL ? heddle_sched_find(o->sched) : NULL;

    return o->devices == NULL && s != NULL && !s->knows_classes;
}

static heddle_status dev_open_real(struct heddle_devs *d, const struct heddle_ctx_opts *o,
                                   char *why, size_t cap)
{
    const bool is_off =
        dev_is_for_cores(o) || (o->devices != NULL && strcmp(o->devices, "none") == 0);

    for (unsigned k = 0; heddle_driver_table[k] != NULL && !is_off; k++) {
        const struct heddle_driver *drv = heddle_driver_table[k];
        struct heddle_dev_info info[16];
        unsigned n = 0;

        if (drv->kind <= HEDDLE_DEV_CPU || (o->devices == NULL && drv->is_slow))
            continue;
        d->env.library = heddle_env_library(drv->library_env);
        if (drv->probe(&d->env, info, 16, &n) != HEDDLE_OK)
            continue;
        for (unsigned i = 0; i < n && i < 16; i++)
            if (dev_is_wanted(o->devices, &info[i], drv->name))
                HEDDLE_TRY(dev_open_one(d, drv, i, &info[i], o, why, cap));
    }
    return HEDDLE_OK;
}

/* Every word of the list must have found something. */
static heddle_status dev_check_list(struct heddle_devs *d, const char *list, char *why, size_t cap)
{
    char word[64];

    for (const char *p = list; p != NULL && *p != '\0';) {
        const char *end = strchr(p, ',');
        const size_t n = end != NULL ? (size_t)(end - p) : strlen(p);
        bool is_there = false;

        snprintf(word, sizeof(word), "%.*s", (int)(n < 63 ? n : 63), p);
        is_there = strcmp(word, "cpu") == 0 || strcmp(word, "none") == 0;
        for (unsigned i = 0; i < d->ncls; i++)
            is_there = is_there || strcmp(word, d->cls[i].name) == 0 ||
                       strcmp(word, heddle_device_name(d->cls[i].kind)) == 0;
        if (!is_there)
            return heddle_why(why, cap, HEDDLE_EDEV,
                              "there is no device '%s' on this machine: heddle info lists its "
                              "devices",
                              word);
        p = end != NULL ? end + 1 : NULL;
    }
    return HEDDLE_OK;
}

static heddle_status dev_open_disk(struct heddle_devs *d, const struct heddle_ctx_opts *o,
                                   char *why, size_t cap)
{
    const struct heddle_driver *drv = heddle_driver_find("disk");
    heddle_status st;

    if (o->disk_path == NULL || o->disk_path[0] == '\0')
        return HEDDLE_OK;
    if (drv == NULL)
        return heddle_why(why, cap, HEDDLE_ENOSYS, "no disk in this build");
    snprintf(d->disk_path, sizeof(d->disk_path), "%s", o->disk_path);
    d->env.path = d->disk_path;
    d->env.bytes = o->disk_bytes;
    st = drv->open(&d->env, 0, &d->disk);
    if (st != HEDDLE_OK)
        return heddle_why(why, cap, st, "the folder '%s' cannot be used: %s", o->disk_path,
                          heddle_status_text(st));
    /* Data may leave the host now: its budget is the memory module's. */
    d->node[0].budget = d->ctx->reg.budget != 0 ? d->ctx->reg.budget : HEDDLE_MEM_NO_LIMIT;
    d->has_budget = true;
    d->ctx->reg.budget = 0;
    d->disk_node = (int)dev_add_node(d, "disk", HEDDLE_MEM_DISK, d->disk, HEDDLE_MEM_NO_LIMIT);
    return HEDDLE_OK;
}

/* --- injected failures -------------------------------------------------------- */

/* In virtual time they are the simulator's business. Real devices fail by our own
 * hand: "kernel CLASS nth N", "copy|alloc MEMORY nth N", "lose CLASS nth N" (at its
 * Nth launch). */
static bool fault_parse(struct heddle_devs *d, const char *words, struct heddle_fault *f)
{
    static const char *const kinds[] = {"kernel", "copy", "alloc", "lose"};
    char kind[16], where[32];
    unsigned long long nth;
    bool is_node;

    if (sscanf(words, " %15s %31s nth %llu", kind, where, &nth) != 3 || nth == 0)
        return false;
    for (unsigned k = 0; k < 4; k++) {
        if (strcmp(kind, kinds[k]) != 0)
            continue;
        f->kind = (enum heddle_fault_kind)k;
        f->nth = nth;
        is_node = f->kind == HEDDLE_FAULT_COPY || f->kind == HEDDLE_FAULT_ALLOC;
        for (unsigned i = 0; i < (is_node ? d->nnodes : d->ncls); i++)
            if (strcmp(where, is_node ? d->node_name[i] : d->cls[i].name) == 0) {
                f->where = i;
                return true;
            }
    }
    return false;
}

/* One failure of the list. */
typedef heddle_status (*fault_fn)(struct heddle_devs *d, const char *words, char *why, size_t cap);

static heddle_status fault_add_real(struct heddle_devs *d, const char *words, char *why, size_t cap)
{
    if (!fault_parse(d, words, &d->fault[d->nfaults]))
        return heddle_why(why, cap, HEDDLE_EINVAL,
                          "'%.60s' is no fault of this context: it has \"kernel CLASS nth N\", "
                          "\"copy MEMORY nth N\", \"alloc MEMORY nth N\" and \"lose CLASS nth N\"",
                          words);
    d->nfaults++;
    return HEDDLE_OK;
}

static heddle_status fault_add_virtual(struct heddle_devs *d, const char *words, char *why,
                                       size_t cap)
{
    return heddle_plat_add_fault(d->plat, words, why, cap);
}

static heddle_status dev_open_faults(struct heddle_devs *d, const struct heddle_ctx_opts *o,
                                     fault_fn add, char *why, size_t cap)
{
    char text[1024];
    char *rest = NULL;

    if (o->faults == NULL || o->faults[0] == '\0')
        return HEDDLE_OK;
    if (strlen(o->faults) >= sizeof(text))
        return heddle_why(why, cap, HEDDLE_EINVAL, "the list of faults is too long");
    snprintf(text, sizeof(text), "%s", o->faults);
    d->fault_cap = 1;
    for (const char *p = text; *p != '\0'; p++)
        d->fault_cap += *p == ';';
    d->fault = heddle_zalloc(&d->ctx->alloc, d->fault_cap, sizeof(*d->fault));
    if (d->fault == NULL)
        return HEDDLE_ENOMEM;
    for (char *p = strtok_r(text, ";", &rest); p != NULL; p = strtok_r(NULL, ";", &rest))
        HEDDLE_TRY(add(d, p, why, cap));
    return HEDDLE_OK;
}

/* --- virtual time ------------------------------------------------------------- */

static heddle_status dev_open_classes(struct heddle_devs *d, const struct heddle_ctx_opts *o,
                                      char *why, size_t cap)
{
    const struct heddle_driver *drv = heddle_driver_find("sim");

    d->env.world = d->sim;
    for (unsigned i = 0; i < d->plat->ncls; i++) {
        const struct heddle_plat_class *p = &d->plat->cls[i];
        struct dev_class *c;
        heddle_status st;
        char model[sizeof(c->model)];

        if (p->kind != HEDDLE_DEV_CPU && o->devices != NULL && !list_has(o->devices, p->name) &&
            !list_has(o->devices, heddle_device_name(p->kind)))
            continue;
        snprintf(model, sizeof(model), "%s", p->model);
        d->nplat = i;
        HEDDLE_TRY(heddle_dev_energy_cap(d, o->power_cap, p->name, p->kind, model, sizeof(model),
                                         why, cap));
        c = dev_add_class(d, p->name, model, p->kind, p->node, p->nworkers);
        c->plat = i;
        st = drv->open(&d->env, i, &c->dev);
        if (st != HEDDLE_OK)
            return heddle_why(why, cap, st, "class %s cannot be simulated: %s", p->name,
                              heddle_status_text(st));
        c->drv = drv;
        if (d->node[c->node].dev == NULL && c->node != 0)
            d->node[c->node].dev = c->dev;
    }
    return HEDDLE_OK;
}

static heddle_status dev_open_virtual(struct heddle_devs *d, const struct heddle_ctx_opts *o,
                                      char *why, size_t cap)
{
    HEDDLE_TRY(heddle_plat_open(&d->ctx->alloc, o->machine, &d->plat, why, cap));
    heddle_virtual_set(d);
    d->executes = o->execute == HEDDLE_ON;
    d->cost.has_own_core = o->helps == HEDDLE_OFF;
    if (d->plat->ncls > DEV_CLASSES || d->plat->nnodes > HEDDLE_MEM_NODES)
        return heddle_why(why, cap, HEDDLE_EFORMAT, "%s: more than %d classes or %d memories",
                          o->machine, DEV_CLASSES, HEDDLE_MEM_NODES);
    HEDDLE_TRY(dev_open_faults(d, o, fault_add_virtual, why, cap));
    HEDDLE_TRY(heddle_sim_create(&d->ctx->alloc, d->plat, d->executes, &d->sim));
    d->nnodes = 0;
    for (unsigned i = 0; i < d->plat->nnodes; i++) {
        const struct heddle_plat_node *n = &d->plat->node[i];
        uint64_t budget = n->bytes != 0 ? n->bytes : HEDDLE_MEM_NO_LIMIT;

        if (i > 0 && o->device_memory != 0)
            budget = o->device_memory;
        dev_add_node(d, n->name, i == 0 ? HEDDLE_MEM_HOST : HEDDLE_MEM_DEVICE, NULL,
                     i == 0 ? HEDDLE_MEM_NO_LIMIT : budget);
    }
    HEDDLE_TRY(dev_open_classes(d, o, why, cap));
    for (unsigned i = 0; i < d->ncls; i++) {
        const unsigned node = d->cls[i].node;

        if (node != 0 && (heddle_plat_find_link(d->plat, 0, node) < 0 ||
                          heddle_plat_find_link(d->plat, node, 0) < 0))
            return heddle_why(why, cap, HEDDLE_EFORMAT,
                              "%.100s: memory %s needs links from and to the "
                              "host",
                              o->machine, d->node_name[node]);
    }
    if (d->ncls == 0)
        return heddle_why(why, cap, HEDDLE_EDEV, "none of the classes of %s is wanted", o->machine);
    /* Memories that no class has are of no use: a virtual disk, say. */
    while (d->nnodes > 1 && d->node[d->nnodes - 1].dev == NULL)
        d->nnodes--;
    return dev_check_list(d, o->devices, why, cap);
}

/* --- the whole ---------------------------------------------------------------- */

static void dev_init(struct heddle_devs *d, heddle_ctx *ctx)
{
    d->ctx = ctx;
    d->disk_node = -1;
    d->clock = ctx->clock;
    d->time = &heddle_dev_time_real;
    d->executes = true;
    d->cost.master = UINT32_MAX; /* none */
    d->depth = DEV_DEPTH;
    d->env =
        (struct heddle_drive_env){.alloc = &ctx->alloc, .now_ns = heddle_dev_now_ns, .user = d};
    heddle_env_cache_dir(d->cache_dir, sizeof(d->cache_dir));
    if (d->cache_dir[0] != '\0')
        d->env.cache_dir = d->cache_dir;
    heddle_map_init(&d->notes, &ctx->alloc);
    heddle_map_init(&d->cost.since, &ctx->alloc);
    heddle_ahead_init(&d->ahead, ctx);
    dev_add_node(d, "host", HEDDLE_MEM_HOST, NULL, HEDDLE_MEM_NO_LIMIT);
}

/* The device thread feeds fast devices: it has a core of its own, unless an option gives
 * the number of workers. */
static void dev_spare_core(struct heddle_devs *d, const struct heddle_ctx_opts *o)
{
    bool is_wanted = false;

    for (unsigned c = 1; c < d->ncls; c++)
        is_wanted = is_wanted || d->cls[c].drv->wants_core;
    if (!is_wanted || o->nworkers != 0 || d->ctx->nworkers < DEV_SPARE_FROM)
        return;
    d->ctx->nworkers--;
    d->cls[0].nworkers--;
    d->nsched--;
    for (unsigned c = 1; c < d->ncls; c++)
        d->cls[c].first--;
}

/* The cores of this machine, and what its drivers find. */
static heddle_status dev_open_machine(struct heddle_devs *d, const struct heddle_ctx_opts *o,
                                      char *why, size_t cap)
{
    heddle_status st;

    dev_add_class(d, "cpu", d->ctx->device, HEDDLE_DEV_CPU, 0, d->ctx->nworkers);
    st = dev_open_real(d, o, why, cap);
    dev_spare_core(d, o);
    if (st == HEDDLE_OK)
        st = dev_check_list(d, o->devices, why, cap);
    if (st == HEDDLE_OK)
        st = dev_open_disk(d, o, why, cap);
    if (st == HEDDLE_OK)
        st = dev_open_faults(d, o, fault_add_real, why, cap);
    /* With a placement file the scheduler has to hear of every submission, as it does
     * when there is a choice. */
    d->is_plain =
        d->ncls == 1 && d->nnodes == 1 && (o->placement == NULL || o->placement[0] == '\0');
    return st;
}

/* Libraries that the first tasks would wait for. */
static void dev_prepare(const struct heddle_devs *d)
{
    for (unsigned i = 0; i < d->ncls; i++)
        if (d->cls[i].dev != NULL && d->cls[i].drv->prepare != NULL)
            d->cls[i].drv->prepare(d->cls[i].dev, NULL);
}

/* The devices whose place on the bus is known: energy counters know them by that. */
static void dev_list_gpus(struct heddle_devs *d)
{
    struct heddle_dev_facts *f = &d->ctx->has_devs;

    f->gpu = d->gpu;
    for (unsigned i = 0; i < d->ncls; i++) {
        const struct dev_class *c = &d->cls[i];
        struct heddle_meter_gpu *gpu = &d->gpu[f->ngpus];
        struct heddle_text t;

        if (c->dev == NULL || c->drv->pci == NULL ||
            c->drv->pci(c->dev, gpu->pci, sizeof(gpu->pci)) != HEDDLE_OK)
            continue;
        heddle_text_init(&t, gpu->device, sizeof(gpu->device));
        heddle_text_str(&t, c->name);
        f->ngpus++;
    }
}

/* For schedulers that know classes. */
static heddle_status dev_describe(struct heddle_devs *d)
{
    d->class_of = heddle_zalloc(&d->ctx->alloc, d->nsched, sizeof(*d->class_of));
    if (d->class_of == NULL)
        return HEDDLE_ENOMEM;
    for (unsigned c = 0; c < d->ncls; c++) {
        const struct dev_class *cls = &d->cls[c];

        d->sched_cls[c] = (struct heddle_sched_class){.name = cls->name,
                                                      .kind = (unsigned)cls->kind,
                                                      .type = cls->type,
                                                      .node = cls->node,
                                                      .first = cls->first,
                                                      .nworkers = cls->nworkers};
        for (unsigned i = 0; i < cls->nworkers; i++)
            d->class_of[cls->first + i] = c;
    }
    d->ctx->has_devs.sched = (struct heddle_sched_env){.nworkers = d->nsched,
                                                       .cls = d->sched_cls,
                                                       .ncls = d->ncls,
                                                       .ntypes = d->ntypes,
                                                       .class_of = d->class_of,
                                                       .view = &heddle_dev_view,
                                                       .view_self = d,
                                                       .energy = heddle_dev_objective(d)};
    return HEDDLE_OK;
}

static heddle_status dev_tell_facts(struct heddle_devs *d)
{
    struct heddle_dev_facts *f = &d->ctx->has_devs;

    f->has_budget = d->has_budget;
    f->watches_host = d->disk_node >= 0; /* mem says so */
    for (unsigned i = 0; i < d->ncls; i++)
        if (d->cls[i].dev != NULL)
            f->nlanes += d->cls[i].nworkers;
    dev_list_gpus(d);
    return dev_describe(d);
}

heddle_status heddle_dev_open(heddle_ctx *ctx, const struct heddle_ctx_opts *o, char *why,
                              size_t cap)
{
    struct heddle_devs *d;
    heddle_status st;

    if (ctx->checks)
        return HEDDLE_OK; /* the checker knows the host's memory only */
    d = heddle_zalloc_aligned(&ctx->alloc, 1, sizeof(*d), HEDDLE_CACHE_LINE);
    if (d == NULL)
        return HEDDLE_ENOMEM;
    ctx->dev = d;
    dev_init(d, ctx);
    st = heddle_dev_energy_open(d, o, why, cap);
    if (st != HEDDLE_OK)
        return st;
    if (o->machine != NULL && o->machine[0] != '\0')
        st = dev_open_virtual(d, o, why, cap);
    else
        st = dev_open_machine(d, o, why, cap);
    if (st == HEDDLE_OK)
        st = heddle_dev_energy_start(d, o, why, cap);
    if (st == HEDDLE_OK && d->is_plain)
        heddle_dev_close(ctx);
    if (st != HEDDLE_OK || ctx->dev == NULL)
        return st;
    HEDDLE_TRY(dev_tell_facts(d));
    dev_prepare(d);
    return HEDDLE_OK;
}
