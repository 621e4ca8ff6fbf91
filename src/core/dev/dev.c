/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * dev: which devices and memories a context has; their beginning and end.
 *
 * Structure  open: devices of the drivers, or the classes of a machine file.
 *            start: workers, lanes, memories, when the models are there.
 * Invariants (1) class 0 is the cores; node 0 is the host's memory
 *            (2) workers of the scheduler are numbered class by class
 * Threads    creation and end of the context.
 */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "core/dev/dev.h"

heddle_status heddle_dev_refuse(heddle_status st, char *why, size_t cap, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(why, cap, fmt, ap);
    va_end(ap);
    return st;
}

/* --- classes and nodes ------------------------------------------------------- */

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

/* --- real devices -------------------------------------------------------------- */

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
        return heddle_dev_refuse(HEDDLE_EINVAL, why, cap, "too many devices");
    st = drv->open(&d->env, index, &dev);
    if (st != HEDDLE_OK && st != HEDDLE_ENOMEM && o->devices == NULL) {
        heddle_report(d->ctx, HEDDLE_WARNING, "device %s cannot be used and is left out: %s",
                      info->name, heddle_status_text(st));
        return HEDDLE_OK; /* nobody asked for it */
    }
    if (st != HEDDLE_OK)
        return heddle_dev_refuse(st, why, cap, "device %s cannot be used: %s", info->name,
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

/* Nobody asked for devices, but for a scheduler that knows cores only. */
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
            return heddle_dev_refuse(HEDDLE_EDEV, why, cap,
                                     "there is no device '%s' on this machine", word);
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
        return heddle_dev_refuse(HEDDLE_ENOSYS, why, cap, "no disk in this build");
    snprintf(d->disk_path, sizeof(d->disk_path), "%s", o->disk_path);
    d->env.path = d->disk_path;
    d->env.bytes = o->disk_bytes;
    st = drv->open(&d->env, 0, &d->disk);
    if (st != HEDDLE_OK)
        return heddle_dev_refuse(st, why, cap, "the folder '%s' cannot be used: %s", o->disk_path,
                                 heddle_status_text(st));
    /* Data may leave the host now: its budget is the memory module's. */
    d->node[0].budget = d->ctx->reg.budget != 0 ? d->ctx->reg.budget : HEDDLE_MEM_NO_LIMIT;
    d->has_budget = true;
    d->ctx->reg.budget = 0;
    d->disk_node = (int)dev_add_node(d, "disk", HEDDLE_MEM_DISK, d->disk, HEDDLE_MEM_NO_LIMIT);
    return HEDDLE_OK;
}

/* --- injected failures ---------------------------------------------------------- */

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

static heddle_status dev_open_faults(struct heddle_devs *d, const struct heddle_ctx_opts *o,
                                     char *why, size_t cap)
{
    char text[1024];
    char *rest = NULL;
    unsigned n = 1;

    if (o->faults == NULL || o->faults[0] == '\0')
        return HEDDLE_OK;
    if (strlen(o->faults) >= sizeof(text))
        return heddle_dev_refuse(HEDDLE_EINVAL, why, cap, "the list of faults is too long");
    snprintf(text, sizeof(text), "%s", o->faults);
    for (const char *p = text; *p != '\0'; p++)
        n += *p == ';';
    if (!d->is_virtual) {
        d->fault = heddle_zalloc(&d->ctx->alloc, n, sizeof(*d->fault));
        if (d->fault == NULL)
            return HEDDLE_ENOMEM;
        d->nfaults = n;
    }
    n = 0;
    for (char *p = strtok_r(text, ";", &rest); p != NULL; p = strtok_r(NULL, ";", &rest)) {
        if (d->is_virtual)
            HEDDLE_TRY(heddle_plat_add_fault(d->plat, p, why, cap));
        else if (!fault_parse(d, p, &d->fault[n++]))
            return heddle_dev_refuse(HEDDLE_EINVAL, why, cap, "'%.60s' is no fault of this context",
                                     p);
    }
    return HEDDLE_OK;
}

/* --- virtual time ---------------------------------------------------------------- */

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
            return heddle_dev_refuse(st, why, cap, "class %s cannot be simulated: %s", p->name,
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
    d->is_virtual = true;
    d->executes = o->execute == HEDDLE_ON;
    d->cost.has_own_core = o->helps == HEDDLE_OFF;
    if (d->plat->ncls > DEV_CLASSES || d->plat->nnodes > HEDDLE_MEM_NODES)
        return heddle_dev_refuse(HEDDLE_EFORMAT, why, cap,
                                 "%s: more than %d classes or %d memories", o->machine, DEV_CLASSES,
                                 HEDDLE_MEM_NODES);
    HEDDLE_TRY(dev_open_faults(d, o, why, cap));
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
            return heddle_dev_refuse(HEDDLE_EFORMAT, why, cap,
                                     "%.100s: memory %s needs links from and to the "
                                     "host",
                                     o->machine, d->node_name[node]);
    }
    if (d->ncls == 0)
        return heddle_dev_refuse(HEDDLE_EDEV, why, cap, "none of the classes of %s is wanted",
                                 o->machine);
    return dev_check_list(d, o->devices, why, cap);
}

/* Memories that no class has are of no use to anybody: a virtual disk, say. */
static void dev_drop_nodes(struct heddle_devs *d)
{
    while (d->nnodes > 1 && d->node[d->nnodes - 1].dev == NULL && d->is_virtual)
        d->nnodes--;
}

/* --- the whole -------------------------------------------------------------------- */

static void dev_init(struct heddle_devs *d, heddle_ctx *ctx)
{
    d->ctx = ctx;
    d->disk_node = -1;
    d->clock = ctx->clock;
    d->depth = DEV_DEPTH;
    d->env =
        (struct heddle_drive_env){.alloc = &ctx->alloc, .now_ns = heddle_dev_now_ns, .user = d};
    heddle_env_cache_dir(d->cache_dir, sizeof(d->cache_dir));
    if (d->cache_dir[0] != '\0')
        d->env.cache_dir = d->cache_dir;
    d->env.cuda_library = heddle_env_cuda_library();
    heddle_map_init(&d->notes, &ctx->alloc);
    heddle_map_init(&d->cost.since, &ctx->alloc);
    heddle_ahead_init(&d->ahead, ctx);
    dev_add_node(d, "host", HEDDLE_MEM_HOST, NULL, HEDDLE_MEM_NO_LIMIT);
}

/* The driver thread feeds fast devices: it has a core of its own, unless somebody
 * said how many workers he wants. */
static void dev_spare_core(struct heddle_devs *d, const struct heddle_ctx_opts *o)
{
    bool has_gpu = false;

    for (unsigned c = 1; c < d->ncls; c++)
        has_gpu = has_gpu || d->cls[c].kind == HEDDLE_DEV_CUDA;
    if (!has_gpu || o->nworkers != 0 || d->ctx->nworkers < DEV_SPARE_FROM)
        return;
    d->ctx->nworkers--;
    d->cls[0].nworkers--;
    d->nsched--;
    for (unsigned c = 1; c < d->ncls; c++)
        d->cls[c].first--;
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
    if (o->machine != NULL && o->machine[0] != '\0') {
        st = dev_open_virtual(d, o, why, cap);
    } else {
        dev_add_class(d, "cpu", ctx->device, HEDDLE_DEV_CPU, 0, ctx->nworkers);
        st = dev_open_real(d, o, why, cap);
        dev_spare_core(d, o);
        if (st == HEDDLE_OK)
            st = dev_check_list(d, o->devices, why, cap);
        if (st == HEDDLE_OK)
            st = dev_open_disk(d, o, why, cap);
        if (st == HEDDLE_OK)
            st = dev_open_faults(d, o, why, cap);
    }
    dev_drop_nodes(d);
    if (st == HEDDLE_OK)
        st = heddle_dev_energy_start(d, o, why, cap);
    /* With a plan the scheduler has to hear of every submission, as it does
     * when there is a choice. */
    if (st == HEDDLE_OK && d->ncls == 1 && d->nnodes == 1 && !d->is_virtual &&
        (o->plan == NULL || o->plan[0] == '\0'))
        heddle_dev_close(ctx); /* nothing but cores */
    return st;
}

static heddle_status dev_start_workers(struct heddle_devs *d)
{
    heddle_ctx *ctx = d->ctx;
    unsigned n = 0;

    d->class_of = heddle_zalloc(&ctx->alloc, d->nsched, sizeof(*d->class_of));
    d->worker = heddle_zalloc(&ctx->alloc, d->nsched, sizeof(*d->worker));
    if (d->class_of == NULL || d->worker == NULL)
        return HEDDLE_ENOMEM;
    for (unsigned c = 0; c < d->ncls; c++) {
        struct dev_class *cls = &d->cls[c];

        d->sched_cls[c] = (struct heddle_sched_class){.name = cls->name,
                                                      .kind = (unsigned)cls->kind,
                                                      .type = cls->type,
                                                      .node = cls->node,
                                                      .first = cls->first,
                                                      .nworkers = cls->nworkers};
        for (unsigned i = 0; i < cls->nworkers; i++) {
            d->class_of[cls->first + i] = c;
            if (cls->dev == NULL)
                continue;
            d->worker[n] = (struct dev_worker){
                .id = cls->first + i,
                .cls = c,
                .stream = i,
                .shown = UINT8_MAX, /* nothing yet */
                .lane = heddle_trace_get_lane(ctx->trace, heddle_dev_lane(ctx, n))};
            n++;
        }
    }
    d->nworkers = n;
    return HEDDLE_OK;
}

static double dev_link_ns(void *user, unsigned from, unsigned to, uint64_t bytes)
{
    struct heddle_devs *d = user;

    if (d->is_virtual)
        return heddle_sim_copy_ns(d->sim, from, to, bytes);
    if (d->link[from][to] == NULL)
        return 1e4 + (double)bytes / 5;
    return heddle_perf_link_predict(d->link[from][to], bytes).ns;
}

static void dev_lose_node(struct heddle_devs *d, unsigned node)
{
    for (unsigned c = 0; c < d->ncls; c++)
        if (d->cls[c].node == node && d->cls[c].dev != NULL)
            heddle_dev_lose(d, c);
}

/* A transfer ended: the log, and the model of the link. */
static void dev_moved(void *user, const struct heddle_mem_move *m, heddle_status st)
{
    struct heddle_devs *d = user;
    struct heddle_perf_link *link = d->link[m->from][m->to];
    const uint64_t ns = m->op->end_ns - m->op->begin_ns;

    if (heddle_load_acq(&d->is_stopped) != 0)
        return;
    if (st == HEDDLE_EDEV)
        dev_lose_node(d, m->from != 0 ? m->from : m->to);
    if (st != HEDDLE_OK)
        return;
    if (!d->is_virtual && link != NULL && m->op->end_ns != 0 && ns > 0 && !m->op->is_rough)
        heddle_perf_link_record(link, m->bytes, (double)ns);
    if (d->is_virtual && d->energy != NULL)
        heddle_dev_energy_moved(d, m->from, m->to, m->bytes);
    heddle_dev_log_moved(d, m);
}

static void dev_used(void *user, unsigned node, int64_t delta, uint64_t used, uint32_t unit,
                     uint64_t task)
{
    heddle_dev_log_used(user, node, delta < 0, used, unit, task);
}

static void dev_admitted(void *user, struct heddle_mem_req *req)
{
    (void)user;
    heddle_dev_log_wait(dev_task_of(req), DEV_WAIT_DATA);
}

static void dev_lost_unit(void *user, heddle_handle *unit, unsigned node)
{
    struct heddle_devs *d = user;
    char buf[64];

    (void)node;
    if (heddle_add_acqrel(&d->lost_units, 1u) == 0)
        snprintf(d->lost_name, sizeof(d->lost_name), "%s",
                 heddle_unit_name(unit, buf, sizeof(buf)));
}

static double dev_order(void *user, const void *tag, uint64_t *nodes_out)
{
    const struct heddle_devs *d = user;
    const heddle_ctx *ctx = d->ctx;
    uint64_t nodes = 0;
    double order;
    int type = -1;

    if (ctx->sched->order == NULL)
        return (double)NAN;
    order = ctx->sched->order(ctx->sched_self, tag, &type);
    for (unsigned c = 0; c < d->ncls && type >= 0; c++)
        if (d->cls[c].type == (unsigned)type)
            nodes |= UINT64_C(1) << d->cls[c].node;
    if (type >= 0)
        *nodes_out = nodes;
    return order;
}

static void dev_forget(void *owner, heddle_handle *h)
{
    heddle_ctx *ctx = owner;

    if (ctx->dev != NULL && ctx->dev->mem != NULL)
        heddle_mem_forget(ctx->dev->mem, h);
}

static const char *dev_node_model(struct heddle_devs *d, unsigned node)
{
    for (unsigned c = 0; c < d->ncls; c++)
        if (d->cls[c].node == node && d->cls[c].dev != NULL)
            return d->cls[c].model;
    return d->node_name[node];
}

static void dev_start_links(struct heddle_devs *d)
{
    for (unsigned a = 0; a < d->nnodes && d->ctx->perf != NULL; a++)
        for (unsigned b = 0; b < d->nnodes; b++)
            if (a != b && (a == 0 || b == 0) &&
                heddle_perf_link_get(d->ctx->perf, dev_node_model(d, a), dev_node_model(d, b),
                                     &d->link[a][b]) != HEDDLE_OK)
                d->link[a][b] = NULL; /* costs time only */
}

heddle_status heddle_dev_start(heddle_ctx *ctx)
{
    struct heddle_devs *d = ctx->dev;
    struct heddle_mem_opts o = {
        .alloc = &ctx->alloc,
        .reg = &ctx->reg,
        .node = d->node,
        .nnodes = d->nnodes,
        .is_fake = d->is_virtual && !d->executes,
        .host = {.user = d,
                 .link_ns = dev_link_ns,
                 .moved = dev_moved,
                 .now_ns = heddle_dev_now_ns,
                 .used = dev_used,
                 .admitted = dev_admitted,
                 .lost = dev_lost_unit,
                 .order = dev_order,
                 .kick = heddle_dev_kick,
                 .fault_copy = d->nfaults != 0 ? heddle_dev_fault_copy : NULL,
                 .fault_alloc = d->nfaults != 0 ? heddle_dev_fault_alloc : NULL},
    };

    if (d->is_virtual)
        d->clock = ctx->clock;
    HEDDLE_TRY(dev_start_workers(d));
    heddle_cost_init(d);
    heddle_region_init(d);
    dev_start_links(d);
    heddle_dev_log_define(d);
    heddle_dev_log_links(d);
    if (d->energy != NULL && d->is_virtual)
        heddle_dev_energy_define(d);
    HEDDLE_TRY(heddle_mem_create(&o, &d->mem));
    ctx->reg.forget = dev_forget;
    return HEDDLE_OK;
}

static void tasks_free(const struct heddle_allocator *a, struct dev_task *dt)
{
    for (struct dev_task *next; dt != NULL; dt = next) {
        next = dt->next;
        heddle_free(a, dt, sizeof(*dt));
    }
}

void heddle_dev_close(heddle_ctx *ctx)
{
    struct heddle_devs *d = ctx->dev;
    const struct heddle_allocator *a = &ctx->alloc;

    if (d == NULL)
        return;
    heddle_mem_destroy(d->mem);
    ctx->reg.forget = NULL;
    tasks_free(a, d->free);
    tasks_free(a, d->spare);
    heddle_region_fini(d);
    for (unsigned i = 0; i < d->ncls; i++)
        if (d->cls[i].dev != NULL)
            d->cls[i].drv->close(d->cls[i].dev);
    if (d->disk != NULL)
        heddle_dev_base(d->disk)->driver->close(d->disk);
    heddle_dev_energy_close(d);
    heddle_sim_destroy(d->sim);
    heddle_plat_destroy(d->plat);
    heddle_map_fini(&d->notes);
    heddle_map_fini(&d->cost.since);
    heddle_ahead_fini(&d->ahead);
    heddle_free(a, d->fault, d->nfaults * sizeof(*d->fault));
    heddle_free(a, d->class_of, d->nsched * sizeof(*d->class_of));
    heddle_free(a, d->worker, d->nsched * sizeof(*d->worker));
    heddle_free(a, d, sizeof(*d));
    ctx->dev = NULL;
}

/* --- facts --------------------------------------------------------------------- */

heddle_status heddle_ctx_get_memory(heddle_ctx *ctx, unsigned i, struct heddle_memory_info *out)
{
    struct heddle_memory_info m = {.size = sizeof(m), .budget = UINT64_MAX};
    struct heddle_mem_stats s = {0};

    HEDDLE_CHECK(ctx != NULL && out != NULL && out->size >= sizeof(*out));
    if (i >= (ctx->dev != NULL ? ctx->dev->nnodes : 1))
        return HEDDLE_ENOENT;
    if (ctx->dev == NULL) {
        snprintf(m.name, sizeof(m.name), "host");
        m.used = heddle_load_rlx(&ctx->reg.used); /* a counter */
        if (ctx->reg.budget != 0)
            m.budget = ctx->reg.budget;
        *out = m;
        return HEDDLE_OK;
    }
    heddle_mem_get_stats(ctx->dev->mem, i, &s);
    snprintf(m.name, sizeof(m.name), "%s", ctx->dev->node_name[i]);
    m.budget = s.budget;
    m.used = s.used;
    m.peak = s.peak;
    for (unsigned r = 0; r < HEDDLE_MEM_NREASONS; r++)
        m.bytes_in += s.bytes_in[r];
    m.bytes_out = s.bytes_out;
    m.bytes_written_back = s.bytes_in[HEDDLE_MEM_WRITEBACK] + s.bytes_in[HEDDLE_MEM_EVICT];
    m.evictions = s.evictions;
    *out = m;
    return HEDDLE_OK;
}

heddle_status heddle_ctx_get_class(heddle_ctx *ctx, unsigned i, struct heddle_class_info *out)
{
    struct heddle_class_info c = {.size = sizeof(c)};
    const struct dev_class *cls;

    HEDDLE_CHECK(ctx != NULL && out != NULL && out->size >= sizeof(*out));
    if (i >= (ctx->dev != NULL ? ctx->dev->ncls : 1))
        return HEDDLE_ENOENT;
    snprintf(c.name, sizeof(c.name), "cpu");
    snprintf(c.kind, sizeof(c.kind), "cpu");
    snprintf(c.model, sizeof(c.model), "%s", ctx->device);
    c.nworkers = ctx->nworkers;
    if (ctx->dev != NULL) {
        cls = &ctx->dev->cls[i];
        snprintf(c.name, sizeof(c.name), "%s", cls->name);
        snprintf(c.model, sizeof(c.model), "%s", cls->model);
        snprintf(c.kind, sizeof(c.kind), "%s", heddle_device_name(cls->kind));
        c.memory = cls->node;
        c.nworkers = cls->nworkers;
        c.is_lost = heddle_load_acq(&cls->is_lost) != 0;
    }
    *out = c;
    return HEDDLE_OK;
}
