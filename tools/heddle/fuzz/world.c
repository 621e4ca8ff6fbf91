/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fuzz/world: the machine a random program runs on, and what goes wrong there.
 *
 * Structure  before the program is drawn: devices, links, scheduler.
 *            Afterwards, when its largest task is known: sizes of memories,
 *            and faults.
 */
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/atomic.h"
#include "base/rng.h"
#include "fuzz/fuzz.h"

enum { PLACED_TASKS = 2000, PLACED_WORKERS = 6 };

const char *const heddle_fuzz_devices[FUZZ_NDEVICES + 1] = {"cpu",  "sim",  "opencl",
                                                            "disk", "cuda", NULL};

/* --- text ---------------------------------------------------------------- */

struct text {
    char *at;
    size_t left;
};

__attribute__((format(printf, 2, 3))) static void say(struct text *t, const char *fmt, ...)
{
    va_list ap;
    int n;

    va_start(ap, fmt);
    n = vsnprintf(t->at, t->left, fmt, ap);
    va_end(ap);
    if (n > 0 && (size_t)n < t->left) {
        t->at += n;
        t->left -= (size_t)n;
    }
}

/* --- a machine ----------------------------------------------------------- */

static double rate(struct fuzz_prog *p)
{
    static const double table[] = {0.01, 0.1, 0.5, 1, 3, 12, 50};

    return table[fuzz_below(p, sizeof(table) / sizeof(table[0]))];
}

static double latency(struct fuzz_prog *p)
{
    return (double)fuzz_below(p, 40) / 2;
}

static void world_link(struct fuzz_prog *p, struct text *t, const char *a, const char *b,
                       bool has_bus)
{
    const char *bus = has_bus && fuzz_chance(p, 60) ? " bus bus0" : "";

    if (fuzz_chance(p, 60)) {
        say(t, "duplex %s %s gbytes %g latency_us %g%s\n", a, b, rate(p), latency(p), bus);
    } else {
        say(t, "link %s %s gbytes %g latency_us %g%s\n", a, b, rate(p), latency(p), bus);
        say(t, "link %s %s gbytes %g latency_us %g%s\n", b, a, rate(p), latency(p), bus);
    }
}

static void world_links(struct fuzz_prog *p, struct text *t, unsigned n)
{
    const bool has_bus = fuzz_chance(p, 40);
    char a[16], b[16];

    if (has_bus)
        say(t, "bus bus0 gbytes %g\n", rate(p));
    for (unsigned i = 0; i < n; i++) {
        snprintf(a, sizeof(a), "gpu%u", i);
        world_link(p, t, "host", a, has_bus);
        for (unsigned k = 0; k < i; k++) {
            snprintf(b, sizeof(b), "gpu%u", k);
            if (fuzz_chance(p, 40))
                world_link(p, t, a, b, has_bus);
            else if (fuzz_chance(p, 20))
                say(t, "link %s %s gbytes %g\n", a, b, rate(p));
        }
    }
}

static void world_sim(struct fuzz_prog *p)
{
    struct fuzz_config *c = &p->config;
    struct text t = {c->machine, sizeof(c->machine)};
    const bool is_alike = fuzz_chance(p, 50);
    const double gpu_rate = rate(p);

    c->ngpus = fuzz_chance(p, 8) ? 0 : 1 + (unsigned)fuzz_below(p, FUZZ_GPUS);
    c->nnodes = 1 + c->ngpus;
    c->nworkers = 1 + (unsigned)fuzz_below(p, 8);
    say(&t, "heddle-machine 2\nclass cpu kind cpu workers %u gbytes %g\n", c->nworkers, rate(p));
    for (unsigned i = 0; i < c->ngpus; i++) {
        say(&t, "node gpu%u\n", i);
        say(&t, "class gpu%u kind cuda workers %u node gpu%u gbytes %g", i,
            fuzz_chance(p, 70) ? 1 : 2, i, is_alike ? gpu_rate : rate(p));
        if (is_alike)
            say(&t, " model one launch_us 1\n");
        else
            say(&t, " launch_us %g\n", latency(p));
    }
    world_links(p, &t, c->ngpus);
    if (fuzz_chance(p, 50)) {
        const double submit = latency(p) / 10, task = latency(p) / 10;

        /* No more draws: what a seed stands for stays the same. */
        say(&t,
            "overhead submit_us %g task_us %g wake_us %g drive_us %g "
            "notice_us %g\n",
            submit, task, 3 * submit, c->ngpus > 1 ? task : 0, 2 * task);
    }
}

/* --- before the program -------------------------------------------------- */

static const char *any_sched(struct fuzz_prog *p)
{
    struct heddle_sched_info info;
    unsigned n = 0;

    while (heddle_sched_get_info(n, &info) == HEDDLE_OK)
        n++;
    if (n == 0 || heddle_sched_get_info((unsigned)fuzz_below(p, n), &info) != HEDDLE_OK)
        return NULL;
    return info.name;
}

void fuzz_world(struct fuzz_prog *p, const struct fuzz_setup *s, enum fuzz_device device)
{
    struct fuzz_config *c = &p->config;

    memset(c, 0, sizeof(*c));
    c->device = device;
    c->has_faults = s->has_faults && fuzz_chance(p, 75);
    c->has_loss = s->may_lose;
    c->has_faults = c->has_faults || s->may_lose;
    c->helps = fuzz_chance(p, 70);
    c->nworkers = 1 + (unsigned)fuzz_below(p, 4);
    c->nnodes = 1;
    c->has_pins = fuzz_chance(p, 60);
    c->has_nesting = fuzz_chance(p, 50);
    c->ends_with_wait = fuzz_chance(p, 75);
    c->unrefs_late = fuzz_chance(p, 20);
    if (device == FUZZ_SIM) {
        world_sim(p);
        c->sched = s->nscheds > 0 ? s->sched[fuzz_below(p, s->nscheds)] : NULL;
    } else if (device == FUZZ_CPU) {
        c->sched = any_sched(p);
    } else {
        c->ngpus = device == FUZZ_OPENCL ? 1 : device == FUZZ_CUDA;
        if (device == FUZZ_CUDA && s->ncuda > 1)
            c->ngpus = s->ncuda;
        c->nnodes = device == FUZZ_DISK ? 2 : 1 + c->ngpus;
        c->has_big = device == FUZZ_CUDA && fuzz_chance(p, 15);
        c->sched = s->nscheds > 0 ? s->sched[fuzz_below(p, s->nscheds)] : NULL;
    }
}

/* --- afterwards ---------------------------------------------------------- */

static void sizes_device(struct fuzz_prog *p)
{
    struct fuzz_config *c = &p->config;
    const size_t most = p->need_most, least = p->need_device;

    switch (fuzz_below(p, 6)) {
    case 0: break; /* no limit */
    case 1: c->device_memory = least; break;
    case 2: c->device_memory = most; break;
    case 3: c->device_memory = most + FUZZ_ALIGN * fuzz_below(p, 4); break;
    case 4: c->device_memory = least + fuzz_below(p, most + 1); break;
    default: c->device_memory = most * (1 + fuzz_below(p, 3)); break;
    }
    if (c->device_memory < least)
        c->device_memory = least;
    if (c->device_memory != 0 && c->device_memory < p->need_region && fuzz_chance(p, 60))
        c->device_memory = p->need_region;
}

/* What has views stays on the host. */
static void sizes_host(struct fuzz_prog *p)
{
    size_t fixed = 0;

    for (unsigned i = 0; i < p->nunits; i++) {
        const struct fuzz_unit *u = &p->unit[i];

        if (u->root == (int)i && u->has_views)
            fixed += u->span * heddle_dtype_bytes(u->layout.dtype) + FUZZ_ALIGN;
    }
    p->config.memory_budget = fixed + p->need_host + fuzz_below(p, p->need_host + 1);
    if (p->config.memory_budget == 0)
        p->config.memory_budget = FUZZ_ALIGN;
}

/* On real devices: only what a driver has to do with, counted by the engine. */
static void real_faults(struct fuzz_prog *p)
{
    struct fuzz_config *c = &p->config;
    struct text t = {c->faults, sizeof(c->faults)};
    const unsigned n = 1 + (unsigned)fuzz_below(p, 4);

    for (unsigned i = 0; i < n; i++) {
        static const char *const kind[] = {"kernel", "copy", "alloc", "lose"};
        const unsigned k = (unsigned)fuzz_below(p, 4);

        c->nkernel_faults += k == 0;
        c->has_loss = c->has_loss || k == 3;
        say(&t, "%s %s%u nth %u;", kind[k], heddle_fuzz_devices[c->device],
            (unsigned)fuzz_below(p, c->ngpus),
            1 + (unsigned)fuzz_below(p, fuzz_chance(p, 50) ? 10 : 60));
    }
    c->has_kernel_faults = c->nkernel_faults > 0;
}

static void world_faults(struct fuzz_prog *p)
{
    struct fuzz_config *c = &p->config;
    struct text t = {c->faults, sizeof(c->faults)};
    const unsigned n = 1 + (unsigned)fuzz_below(p, 4);

    for (unsigned i = 0; i < n && c->ngpus > 0; i++) {
        const unsigned gpu = (unsigned)fuzz_below(p, c->ngpus);
        const unsigned nth = 1 + (unsigned)fuzz_below(p, 40);
        const double ms = (double)fuzz_below(p, 2000) / 1000;

        switch (fuzz_below(p, 6)) {
        case 0:
            say(&t, "fault kernel gpu%u nth %u;", gpu, nth);
            c->nkernel_faults++;
            break;
        case 1:
            say(&t, "fault kernel cpu nth %u;", nth);
            c->nkernel_faults++;
            break;
        case 2: say(&t, "fault copy gpu%u nth %u;", gpu, nth); break;
        case 3: say(&t, "fault alloc gpu%u nth %u;", gpu, nth); break;
        case 4:
            say(&t, "fault slow gpu%u at_ms %g factor %u;", gpu, ms,
                2 + (unsigned)fuzz_below(p, 9));
            break;
        default:
            say(&t, "fault lose gpu%u at_ms %g;", gpu, ms);
            c->has_loss = true;
            break;
        }
    }
    c->has_kernel_faults = c->nkernel_faults > 0;
}

void fuzz_world_sizes(struct fuzz_prog *p, const struct fuzz_setup *s)
{
    if (p->config.device == FUZZ_DISK)
        sizes_host(p);
    else if (p->config.ngpus > 0)
        sizes_device(p);
    if (!p->config.has_faults || !s->has_faults)
        return;
    if (p->config.device == FUZZ_SIM)
        world_faults(p);
    else if (p->config.device == FUZZ_CUDA || p->config.device == FUZZ_OPENCL)
        real_faults(p);
}

/* --- contexts ------------------------------------------------------------ */

static void *counted_alloc(void *user, size_t bytes, size_t align)
{
    struct fuzz_memory *m = user;
    void *p = heddle_alloc_aligned(NULL, bytes, align);

    if (p != NULL)
        heddle_add_rlx(&m->live, (int64_t)bytes); /* relaxed: a counter */
    return p;
}

static void counted_free(void *user, void *ptr, size_t bytes)
{
    struct fuzz_memory *m = user;

    heddle_add_rlx(&m->live, -(int64_t)bytes); /* relaxed: a counter */
    heddle_free(NULL, ptr, bytes);
}

static bool write_machine(const char *path, const char *text)
{
    FILE *f = fopen(path, "w");
    bool ok = f != NULL && fputs(text, f) >= 0;

    if (f != NULL)
        ok = fclose(f) == 0 && ok;
    return ok;
}

/* For replay: half of the tasks, anywhere, in any order, which mostly is against
 * their dependencies. It must not wait for good. */
static bool write_placement(const char *path, uint64_t seed)
{
    FILE *f = fopen(path, "w");
    struct heddle_rng rng;
    bool ok = f != NULL;

    heddle_rng_seed(&rng, seed);
    for (unsigned i = 1; i <= PLACED_TASKS && ok; i++)
        if (heddle_rng_below32(&rng, 2) == 0)
            ok = fprintf(f, "%u %u %u\n", i, heddle_rng_below32(&rng, PLACED_WORKERS),
                         heddle_rng_below32(&rng, PLACED_TASKS)) > 0;
    if (f != NULL)
        ok = fclose(f) == 0 && ok;
    return ok;
}

heddle_status fuzz_open(struct fuzz_run *r)
{
    const struct fuzz_config *c = &r->prog->config;
    struct heddle_ctx_opts o = {
        .size = sizeof(o),
        .ignore_env = true,
        .bind = HEDDLE_OFF,
        .nworkers = c->nworkers,
        .helps = c->helps ? HEDDLE_ON : HEDDLE_OFF,
        .sched = c->sched,
        .model_dir = "",
        .devices = c->device == FUZZ_SIM ? NULL : "none",
        .device_memory = c->device_memory,
        .memory_budget = c->memory_budget,
        .faults = c->faults[0] != '\0' ? c->faults : NULL,
        .allocator = {counted_alloc, counted_free, &r->memory},
    };
    char path[512], log[512], place[512];
    heddle_status st;

    if (fuzz_log_path(r, log, sizeof(log))) {
        o.log_path = log;
        o.log_level = 1;
    }
    snprintf(place, sizeof(place), "%s/fuzz.place", r->setup->folder);
    if (c->sched != NULL && strcmp(c->sched, "replay") == 0) {
        if (!write_placement(place, r->prog->seed))
            return HEDDLE_EIO;
        o.placement = place;
    }
    snprintf(path, sizeof(path), "%s/fuzz.machine", r->setup->folder);
    if (c->device == FUZZ_SIM) {
        if (!write_machine(path, c->machine))
            return HEDDLE_EIO;
        o.machine = path;
        o.execute = HEDDLE_ON;
    } else if (c->device == FUZZ_OPENCL || c->device == FUZZ_CUDA) {
        o.devices = heddle_fuzz_devices[c->device];
    } else if (c->device == FUZZ_DISK) {
        o.disk_path = r->setup->folder;
    }
    st = heddle_ctx_create(&o, &r->ctx);
    if (o.plan != NULL)
        unlink(place);
    return st;
}

bool fuzz_find_scheds(struct fuzz_setup *s)
{
    static const char text[] =
        "heddle-machine 1\nclass cpu kind cpu workers 1 gbytes 1\nnode gpu0\n"
        "class gpu0 kind cuda workers 1 node gpu0 gbytes 1\n"
        "duplex host gpu0 gbytes 1\n";
    struct heddle_sched_info info;
    char path[512];

    snprintf(path, sizeof(path), "%s/fuzz.machine", s->folder);
    if (!write_machine(path, text))
        return false;
    for (unsigned i = 0; heddle_sched_get_info(i, &info) == HEDDLE_OK; i++) {
        const struct heddle_ctx_opts o = {.size = sizeof(o),
                                          .ignore_env = true,
                                          .machine = path,
                                          .model_dir = "",
                                          .execute = HEDDLE_ON,
                                          .sched = info.name};
        heddle_ctx *ctx;

        if (s->nscheds == FUZZ_SCHEDS || heddle_ctx_create(&o, &ctx) != HEDDLE_OK)
            continue;
        s->sched[s->nscheds++] = info.name;
        heddle_ctx_destroy(ctx);
    }
    return s->nscheds > 0;
}

void fuzz_find_cuda(struct fuzz_setup *s)
{
    const struct heddle_ctx_opts o = {.size = sizeof(o),
                                      .ignore_env = true,
                                      .bind = HEDDLE_OFF,
                                      .nworkers = 1,
                                      .model_dir = "",
                                      .devices = "cuda"};
    struct heddle_class_info c = {.size = sizeof(c)};

    if (heddle_ctx_create(&o, &s->cuda) != HEDDLE_OK)
        return;
    for (unsigned i = 0; heddle_ctx_get_class(s->cuda, i, &c) == HEDDLE_OK; i++)
        s->ncuda += strcmp(c.kind, "cuda") == 0;
}

void fuzz_drop_cuda(struct fuzz_setup *s)
{
    if (s->cuda != NULL)
        heddle_ctx_destroy(s->cuda);
    s->cuda = NULL;
}
