/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * dev/view: what a scheduler may ask about a task: costs, transfers, bytes.
 *
 * Structure  a kernel keeps a list of the shapes it was called with; a shape knows
 *            its cost per class (virtual time) or its models (real time).
 * Threads    any, at any time. A shape is constant once it is in the list.
 */
#include <math.h>
#include <string.h>

#include "core/dev/dev.h"

enum {
    UNKNOWN_NS = 10000, /* virtual time with real functions: no timing */
    QUICK_ASKS = 16,    /* tasks with the cost that was found for one */
};

#define QUICK_SURE 0.5 /* confidence from which on that is good enough */

const struct task_ext *heddle_task_exec(struct worker *w, struct heddle_sched_task *t,
                                        struct heddle_exec *x, struct task_ext *own)
{
    const struct task_ext *ext;

    if (heddle_is_node(t)) {
        heddle_node_exec(w, t, x, own);
        return own;
    }
    ext = heddle_cell_ext(w->ctx, heddle_task_cell(t));
    heddle_slow_exec(w, heddle_task_cell(t), ext, x);
    return ext;
}

/* --- shapes ------------------------------------------------------------------ */

static uint64_t shape_key(const struct heddle_exec *x)
{
    uint64_t h = x->nops;

    for (unsigned i = 0; i < x->nops; i++)
        h = (h ^ x->op[i]->shape) * UINT64_C(0x9e3779b97f4a7c15) + i;
    return h;
}

/* Schedulers see what it takes when all workers of the device are busy. */
static void shape_share(const struct heddle_devs *d, const heddle_kernel *k, struct dev_shape *s,
                        unsigned c)
{
    const double share = heddle_plat_share(d->plat, k->name, d->cls[c].plat, s->bytes) *
                         heddle_dev_energy_time(d, c);
    const double all = share * d->cls[c].nworkers;

    s->alone[c] = s->ns[c];
    if (!(share > 0))
        return;
    s->share[c] = share;
    if (isfinite(s->ns[c]) && all > s->ns[c])
        s->ns[c] = all;
}

static void shape_costs(struct heddle_devs *d, const struct heddle_exec *x, struct dev_shape *s)
{
    const heddle_kernel *k = x->kinfo->kernel;

    for (unsigned c = 0; c < d->ncls && d->is_virtual; c++) {
        s->ns[c] = heddle_plat_time(d->plat, k->name, d->cls[c].plat, s->bytes, s->cost.flops);
        if (!isfinite(s->ns[c]) && d->executes)
            s->ns[c] = UNKNOWN_NS;
        s->ns[c] *= heddle_dev_energy_time(d, c);
        s->ns[c] += d->plat->task_ns;
        shape_share(d, k, s, c);
    }
}

static double shape_variant_ns(const struct heddle_devs *d, const heddle_kernel *k,
                               const struct dev_shape *s, unsigned v, unsigned c)
{
    return heddle_plat_variant_time(d->plat, k->name, k->variants[v].name, d->cls[c].plat, s->bytes,
                                    s->cost.flops) *
               heddle_dev_energy_time(d, c) +
           d->plat->task_ns;
}

/* Virtual time: does the machine tell variants of the kernel apart? */
static bool shape_has_own(const struct heddle_devs *d, const heddle_kernel *k,
                          const struct dev_shape *s)
{
    for (unsigned v = 0; v < s->nvariants && d->is_virtual; v++)
        for (unsigned c = 0; c < d->ncls; c++)
            if (!isnan(shape_variant_ns(d, k, s, v, c)))
                return true;
    return false;
}

/* What few shapes have: times of variants, and watts. False: no memory. */
static bool shape_more(struct heddle_devs *d, const struct heddle_exec *x, struct dev_shape *s)
{
    const heddle_kernel *k = x->kinfo->kernel;
    const size_t n = (size_t)x->kinfo->nvariants * d->ncls;

    s->nvariants = x->kinfo->nvariants;
    if (shape_has_own(d, k, s)) {
        s->own = heddle_zalloc(&d->ctx->alloc, n, sizeof(*s->own));
        if (s->own == NULL)
            return false;
        for (unsigned v = 0; v < s->nvariants; v++)
            for (unsigned c = 0; c < d->ncls; c++)
                s->own[v * d->ncls + c] = shape_variant_ns(d, k, s, v, c);
    }
    if (d->energy != NULL) {
        s->watts = heddle_zalloc(&d->ctx->alloc, n + 1, sizeof(*s->watts));
        if (s->watts == NULL)
            return false;
        heddle_dev_energy_shape(d, x, s, s->watts);
    }
    return true;
}

static void shape_free(struct heddle_devs *d, struct dev_shape *s)
{
    const struct heddle_allocator *a = &d->ctx->alloc;
    const size_t nentries = (size_t)d->ntypes * HEDDLE_KERNEL_VARIANTS;

    heddle_free(a, s->ns, 3 * d->ncls * sizeof(*s->ns));
    heddle_free(a, s->entry, nentries * sizeof(*s->entry));
    heddle_free(a, s->quick, d->ncls * sizeof(*s->quick));
    heddle_free(a, s->own, (size_t)s->nvariants * d->ncls * sizeof(*s->own));
    heddle_free(a, s->watts, ((size_t)s->nvariants * d->ncls + 1) * sizeof(*s->watts));
    heddle_free(a, s, sizeof(*s));
}

static struct dev_shape *shape_new(struct heddle_devs *d, struct heddle_exec *x, uint64_t key)
{
    const heddle_kernel *k = x->kinfo->kernel;
    const size_t nentries = (size_t)d->ntypes * HEDDLE_KERNEL_VARIANTS;
    struct dev_shape *s = heddle_zalloc(&d->ctx->alloc, 1, sizeof(*s));

    if (s == NULL)
        return NULL;
    s->ns = heddle_zalloc(&d->ctx->alloc, 3 * (size_t)d->ncls, sizeof(*s->ns));
    s->entry = heddle_zalloc(&d->ctx->alloc, nentries, sizeof(*s->entry));
    s->quick = heddle_zalloc(&d->ctx->alloc, d->ncls, sizeof(*s->quick));
    if (s->ns == NULL || s->entry == NULL || s->quick == NULL) {
        shape_free(d, s);
        return NULL;
    }
    s->alone = s->ns + d->ncls;
    s->share = s->alone + d->ncls;
    s->hash = key;
    for (unsigned i = 0; i < x->nops; i++)
        s->bytes += (double)x->op[i]->bytes;
    if (k->cost != NULL)
        s->cost = k->cost(x);
    shape_costs(d, x, s);
    if (!shape_more(d, x, s)) {
        shape_free(d, s);
        return NULL;
    }
    return s;
}

/* Last ones first: a kernel has few shapes. NULL: no memory. */
struct dev_shape *heddle_dev_shape(struct heddle_devs *d, struct heddle_exec *x)
{
    const uint64_t key = shape_key(x);
    struct heddle_kinfo *k = x->kinfo;
    struct dev_shape *s, *made;

    /* Acquire: pairs with the release below. */
    for (s = heddle_load_acq(&k->shapes); s != NULL; s = s->next)
        if (s->hash == key)
            return s;
    made = shape_new(d, x, key);
    if (made == NULL)
        return NULL;
    heddle_spin_lock(&d->shape_lock);
    for (s = heddle_load_acq(&k->shapes); s != NULL && s->hash != key;)
        s = s->next;
    if (s == NULL) {
        made->sort = d->nsorts++;
        made->next = heddle_load_rlx(&k->shapes);
        heddle_store_rel(&k->shapes, made);
        s = made;
        made = NULL;
    }
    heddle_spin_unlock(&d->shape_lock);
    if (made != NULL) /* another thread was faster */
        shape_free(d, made);
    return s;
}

void heddle_kinfo_free_shapes(heddle_ctx *ctx, struct heddle_kinfo *k)
{
    struct heddle_devs *d = ctx->dev;
    struct dev_shape *s = heddle_load_acq(&k->shapes);

    while (s != NULL) {
        struct dev_shape *next = s->next;

        while (s->sorts != NULL) {
            struct dev_sort *q = s->sorts;

            s->sorts = q->next;
            heddle_free(&ctx->alloc, q, sizeof(*q));
        }
        shape_free(d, s);
        s = next;
    }
}

struct heddle_perf_entry *heddle_dev_model(struct heddle_devs *d, struct heddle_exec *x,
                                           struct dev_shape *shape, unsigned cls, unsigned v)
{
    const heddle_kernel *k = x->kinfo->kernel;
    const struct dev_class *c = &d->cls[cls];
    _Atomic(struct heddle_perf_entry *) *slot = &shape->entry[c->type * HEDDLE_KERNEL_VARIANTS + v];
    struct heddle_perf_entry *e = heddle_load_acq(slot);
    const char *name = k->variants[v].name;
    const struct heddle_perf_key key = {
        .kernel = k->name,
        .variant = name != NULL ? name : heddle_device_name(c->kind),
        .device = c->model,
        .version = k->version,
    };
    struct heddle_perf_series *series;
    uint64_t hash = 0;

    if (e != NULL || d->ctx->perf == NULL)
        return e;
    if (heddle_perf_series_get(d->ctx->perf, &key, &series) != HEDDLE_OK)
        return NULL;
    for (unsigned i = 0; i < x->nops; i++) {
        const struct heddle_layout *l = &x->op[i]->layout;

        hash = heddle_perf_hash(hash, (uint64_t)l->dtype << 8 | l->ndim);
        for (unsigned n = 0; n < l->ndim; n++)
            hash = heddle_perf_hash(hash, l->extent[n]);
    }
    if (heddle_perf_entry_get(series, hash, shape->cost.flops, shape->cost.bytes, &e) != HEDDLE_OK)
        return NULL;
    heddle_store_rel(slot, e); /* two threads find the same one */
    return e;
}

/* --- costs --------------------------------------------------------------------- */

static bool variant_serves(const struct heddle_devs *d, const struct heddle_variant *v,
                           const struct dev_class *c, const struct task_ext *ext)
{
    if (v->device != c->kind || (v->run == NULL && (!d->is_virtual || d->executes)))
        return false;
    return ext == NULL || ext->digits == 0 || v->digits == 0 || v->digits >= ext->digits;
}

/* Two operands that share elements, one of them written: one memory only. */
static bool exec_has_alias(const struct heddle_exec *x)
{
    for (unsigned i = 1; i < x->nops; i++)
        for (unsigned k = 0; k < i; k++)
            if (x->op[i] != x->op[k] && x->op[i]->root == x->op[k]->root &&
                x->mode[i] <= HEDDLE_COMMUTE && x->mode[k] <= HEDDLE_COMMUTE &&
                ((x->mode[i] | x->mode[k]) & HEDDLE_W) != 0 &&
                heddle_box_overlap(&x->op[i]->box, &x->op[k]->box, x->op[i]->root->layout.ndim))
                return true;
    return false;
}

static uint64_t round_up(uint64_t bytes)
{
    return (bytes + 255) & ~UINT64_C(255);
}

uint64_t heddle_dev_need(const struct heddle_devs *d, const struct heddle_exec *x, unsigned cls)
{
    const heddle_kernel *k = x->kinfo->kernel;
    uint64_t need = 0, scratch = 0;

    for (unsigned v = 0; v < x->kinfo->nvariants; v++)
        if (k->variants[v].device == d->cls[cls].kind && k->variants[v].scratch_bytes > scratch)
            scratch = k->variants[v].scratch_bytes;
    for (unsigned i = 0; i < x->nops; i++) {
        bool is_new = true;

        for (unsigned n = 0; n < i && x->mode[i] <= HEDDLE_COMMUTE; n++)
            is_new = is_new && x->op[n] != x->op[i];
        if (is_new)
            need += round_up(x->op[i]->bytes);
    }
    return need + round_up(scratch);
}

static bool class_can(struct heddle_devs *d, const struct heddle_exec *x,
                      const struct task_ext *ext, unsigned cls)
{
    const struct dev_class *c = &d->cls[cls];
    const uint64_t budget = d->node[c->node].budget;

    if (heddle_load_acq(&c->is_lost) != 0)
        return false;
    if (ext != NULL && ext->devices != 0 && (ext->devices >> (unsigned)c->kind & 1) == 0)
        return false;
    if (c->node == 0 && budget == HEDDLE_MEM_NO_LIMIT)
        return true;
    if (c->node != 0 && (x->nops > HEDDLE_KERNEL_OPERANDS || exec_has_alias(x)))
        return false;
    return budget == HEDDLE_MEM_NO_LIMIT || heddle_dev_need(d, x, cls) <= budget;
}

/* Virtual time: times are described. The first variant that may run, but where the
 * machine has times of variants, or energy counts, the best one. */
static double cost_virtual(const struct heddle_devs *d, const struct heddle_exec *x,
                           const struct task_ext *ext, const struct dev_shape *shape, unsigned cls,
                           unsigned *variant_out)
{
    const unsigned only = ext == NULL ? 0 : ext->variant;
    const bool weighs = d->weighs_energy;
    double best = INFINITY, least = INFINITY;

    for (unsigned v = 0; v < x->kinfo->nvariants; v++) {
        double ns = shape->own == NULL ? NAN : shape->own[v * d->ncls + cls];
        double worth;

        if ((only != 0 && v != only - 1) ||
            !variant_serves(d, &x->kinfo->kernel->variants[v], &d->cls[cls], ext))
            continue;
        if (isnan(ns))
            ns = shape->ns[cls];
        worth = weighs ? ns * heddle_dev_energy_worth(d, shape, cls, v) : ns;
        if (worth < best) {
            best = worth;
            least = ns;
            *variant_out = v;
        }
    }
    return least;
}

/* Among the variants of a class the best known one: the fastest, or the one whose
 * time and energy together are the least; one that was never timed is tried. */
double heddle_dev_cost(struct heddle_devs *d, struct heddle_exec *x, const struct task_ext *ext,
                       unsigned cls, unsigned *variant_out, double *confidence_out)
{
    const heddle_kernel *k = x->kinfo->kernel;
    const unsigned only = ext == NULL ? 0 : ext->variant;
    struct dev_shape *shape = NULL;
    double best = INFINITY, least = INFINITY, sure = 0;
    bool is_found = false, is_unknown = false;

    if (!class_can(d, x, ext, cls))
        return INFINITY;
    for (unsigned v = 0; v < x->kinfo->nvariants; v++) {
        struct heddle_estimate est = {0, 0, HEDDLE_EST_NONE};
        struct heddle_perf_entry *e;

        if ((only != 0 && v != only - 1) || !variant_serves(d, &k->variants[v], &d->cls[cls], ext))
            continue;
        if (shape == NULL)
            shape = heddle_dev_shape(d, x);
        if (shape == NULL)
            return NAN;
        if (d->is_virtual) {
            *variant_out = v;
            *confidence_out = 1;
            if (HEDDLE_UNLIKELY(shape->own != NULL || d->weighs_energy))
                return cost_virtual(d, x, ext, shape, cls, variant_out);
            return isnan(shape->ns[cls]) ? INFINITY : shape->ns[cls];
        }
        e = heddle_dev_model(d, x, shape, cls, v);
        if (e != NULL)
            heddle_perf_predict(e, &est);
        /* What a slow core would take says nothing about a device. */
        if (est.source == HEDDLE_EST_PRIOR && d->cls[cls].node != 0)
            est.source = HEDDLE_EST_NONE;
        if (est.source <= HEDDLE_EST_PRIOR && !is_unknown) {
            is_unknown = true;
            *variant_out = v;
        }
        if (est.source != HEDDLE_EST_NONE) {
            const double worth = HEDDLE_UNLIKELY(shape->watts != NULL)
                                     ? est.ns * heddle_dev_energy_worth(d, shape, cls, v)
                                     : est.ns;

            if (worth < least) {
                least = worth;
                best = est.ns;
                sure = est.confidence;
                if (!is_unknown)
                    *variant_out = v;
            }
        }
        is_found = true;
    }
    if (!is_found) /* a kernel that is only a graph of others */
        return k->expand != NULL && x->kinfo->nvariants == 0 && d->cls[cls].kind == HEDDLE_DEV_CPU
                   ? 1000
                   : INFINITY;
    *confidence_out = sure;
    return isinf(best) ? NAN : best;
}

/* --- costs, for the driver ------------------------------------------------------ */

/* Bytes on the class, if all operands were different and none private. */
static uint64_t need_most(const struct heddle_devs *d, const struct heddle_exec *x, unsigned cls)
{
    uint64_t need = heddle_dev_need(d, x, cls);

    for (unsigned i = 1; i < x->nops; i++)
        need += round_up(x->op[i]->bytes);
    return need;
}

static bool model_is_known(struct heddle_perf_entry *e)
{
    struct heddle_estimate est = {0, 0, HEDDLE_EST_NONE};

    if (e != NULL)
        heddle_perf_predict(e, &est);
    return est.source > HEDDLE_EST_PRIOR;
}

static bool ext_restricts(const struct task_ext *ext)
{
    return ext != NULL && (ext->variant | ext->devices | ext->digits) != 0;
}

/* May the class run it, by what differs between tasks of one shape? */
static bool quick_serves(struct heddle_devs *d, const struct heddle_exec *x, unsigned cls,
                         const struct dev_quick *q)
{
    const struct dev_class *c = &d->cls[cls];

    return heddle_load_acq(&c->is_lost) == 0 && q->need <= d->node[c->node].budget &&
           (x->nops < 2 || !exec_has_alias(x));
}

void heddle_dev_cost_now(struct heddle_devs *d, struct heddle_exec *x, const struct task_ext *ext,
                         unsigned cls, struct dev_cost *out)
{
    struct dev_shape *shape = d->is_virtual ? NULL : heddle_dev_shape(d, x);
    struct dev_quick *q = shape == NULL ? NULL : &shape->quick[cls];

    if (q != NULL && q->left != 0 && !ext_restricts(ext) && quick_serves(d, x, cls, q)) {
        q->left--;
        *out = q->cost;
        return;
    }
    out->variant = 0;
    out->sure = 0;
    out->model = NULL;
    out->ns = heddle_dev_cost(d, x, ext, cls, &out->variant, &out->sure);
    if (q == NULL || isinf(out->ns))
        return;
    out->model = heddle_dev_model(d, x, shape, cls, out->variant);
    /* What is not known yet is tried, one variant after the other. */
    if (!ext_restricts(ext) && out->sure >= QUICK_SURE && model_is_known(out->model)) {
        q->cost = *out;
        q->need = need_most(d, x, cls);
        q->left = QUICK_ASKS;
    }
}

static double view_cost(void *view, const struct heddle_sched_task *t, unsigned cls,
                        double *confidence_out)
{
    struct heddle_devs *d = view;
    struct heddle_sched_task *task = (struct heddle_sched_task *)(uintptr_t)t;
    const struct task_ext *ext;
    struct heddle_exec x;
    struct task_ext own;
    double sure = 0, ns;
    unsigned v;

    if (heddle_dev_is_barred(d, t, cls))
        return INFINITY;
    ext = heddle_task_exec(d->ctx->foreign, task, &x, &own);
    ns = heddle_dev_cost(d, &x, ext, cls, &v, &sure);
    if (confidence_out != NULL)
        *confidence_out = sure;
    return ns;
}

static double view_joules(void *view, const struct heddle_sched_task *t, unsigned cls, double ns)
{
    struct heddle_devs *d = view;
    struct heddle_sched_task *task = (struct heddle_sched_task *)(uintptr_t)t;
    const struct task_ext *ext;
    const struct dev_shape *s;
    struct heddle_exec x;
    struct task_ext own;
    double sure = 0;
    unsigned v = 0;

    ext = heddle_task_exec(d->ctx->foreign, task, &x, &own);
    if (x.kinfo->nvariants == 0 || isinf(heddle_dev_cost(d, &x, ext, cls, &v, &sure)))
        return x.kinfo->nvariants == 0 ? 0 : (double)NAN;
    s = heddle_dev_shape(d, &x);
    return s == NULL || s->watts == NULL ? (double)NAN : s->watts[v * d->ncls + cls] * 1e-9 * ns;
}

/* --- data ----------------------------------------------------------------------- */

static int nearest_source(const struct heddle_devs *d, uint64_t valid, unsigned to)
{
    if ((valid & 1) != 0)
        return 0;
    for (unsigned s = 0; s < d->nnodes; s++)
        if ((valid >> s & 1) != 0 && s != to)
            return (int)s;
    return -1;
}

static double link_ns(struct heddle_devs *d, unsigned from, unsigned to, uint64_t bytes)
{
    if (d->is_virtual && heddle_load_rlx(&d->ctx->driver->self) == (uintptr_t)pthread_self())
        return heddle_sim_copy_ns(d->sim, from, to, bytes);
    if (d->is_virtual) { /* the queues of links are the driver's */
        const int link = heddle_plat_find_link(d->plat, from, to);

        return link < 0 ? link_ns(d, from, 0, bytes) + link_ns(d, 0, to, bytes)
                        : d->plat->link[link].latency_ns +
                              (double)bytes / d->plat->link[link].bytes_per_ns;
    }
    if (from != 0 && to != 0)
        return link_ns(d, from, 0, bytes) + link_ns(d, 0, to, bytes);
    return d->link[from][to] == NULL ? 1e4 + (double)bytes / 5
                                     : heddle_perf_link_predict(d->link[from][to], bytes).ns;
}

static double view_fetch(void *view, const struct heddle_sched_task *t, unsigned cls)
{
    struct heddle_devs *d = view;
    struct heddle_sched_task *task = (struct heddle_sched_task *)(uintptr_t)t;
    const unsigned to = d->cls[cls].node;
    uint64_t bytes[HEDDLE_MEM_NODES];
    uint64_t sources = 0;
    struct heddle_exec x;
    struct task_ext own;
    const struct dev_ahead_view v = heddle_ahead_view(d, t, cls);
    double ns = v.wait_ns;

    (void)heddle_task_exec(d->ctx->foreign, task, &x, &own);
    for (unsigned i = 0; i < x.nops; i++) {
        const uint64_t valid =
            i < 32 && (v.there >> i & 1) != 0 ? UINT64_C(1) << v.node : heddle_mem_valid(x.op[i]);
        int from;

        if ((x.mode[i] & HEDDLE_R) == 0 || (valid >> to & 1) != 0 ||
            (i < 32 && (v.here >> i & 1) != 0))
            continue;
        from = nearest_source(d, valid, to);
        if (from < 0)
            continue;
        if ((sources >> from & 1) == 0)
            bytes[from] = 0;
        sources |= UINT64_C(1) << from;
        bytes[from] += x.op[i]->bytes;
    }
    for (unsigned s = 0; sources != 0; s++, sources >>= 1)
        if ((sources & 1) != 0)
            ns += link_ns(d, s, to, bytes[s]);
    return ns;
}

static void view_bytes(void *view, const struct heddle_sched_task *t, unsigned cls,
                       uint64_t *read_out, uint64_t *written_out, uint64_t *present_out)
{
    struct heddle_devs *d = view;
    struct heddle_sched_task *task = (struct heddle_sched_task *)(uintptr_t)t;
    uint64_t reads = 0, writes = 0, present = 0;
    struct heddle_exec x;
    struct task_ext own;

    (void)heddle_task_exec(d->ctx->foreign, task, &x, &own);
    for (unsigned i = 0; i < x.nops; i++) {
        const uint64_t n = x.op[i]->bytes;

        if ((x.mode[i] & HEDDLE_W) != 0)
            writes += n;
        if ((x.mode[i] & HEDDLE_R) == 0)
            continue;
        reads += n;
        if ((heddle_mem_valid(x.op[i]) >> d->cls[cls].node & 1) != 0)
            present += n;
    }
    *read_out = reads;
    *written_out = writes;
    *present_out = present;
}

/* Where a task may run, by its own restrictions; all bits: wherever the kernel
 * can. */
static uint64_t task_classes(struct heddle_devs *d, const struct heddle_sched_task *t,
                             struct heddle_exec *x, const struct task_ext *ext)
{
    uint64_t classes = 0;
    double sure;
    unsigned v;

    if ((ext == NULL || (ext->variant | ext->devices | ext->digits) == 0) &&
        heddle_load_acq(&d->nnotes) == 0 && !exec_has_alias(x))
        return UINT64_MAX;
    for (unsigned c = 0; c < d->ncls; c++)
        if (!heddle_dev_is_barred(d, t, c) && !isinf(heddle_dev_cost(d, x, ext, c, &v, &sure)))
            classes |= UINT64_C(1) << c;
    return classes;
}

/* Sorts of one shape that differ in where they may run. */
static unsigned shape_sort(struct heddle_devs *d, struct dev_shape *s, uint64_t classes)
{
    struct dev_sort *q;
    unsigned sort;

    if (classes == UINT64_MAX)
        return s->sort;
    heddle_spin_lock(&d->shape_lock);
    for (q = s->sorts; q != NULL && q->classes != classes;)
        q = q->next;
    if (q == NULL) {
        q = heddle_alloc(&d->ctx->alloc, sizeof(*q));
        if (q != NULL) {
            q->classes = classes;
            q->sort = d->nsorts++;
            q->next = s->sorts;
            s->sorts = q;
        }
    }
    sort = q == NULL ? s->sort : q->sort;
    heddle_spin_unlock(&d->shape_lock);
    return sort;
}

static unsigned view_sort(void *view, const struct heddle_sched_task *t)
{
    struct heddle_devs *d = view;
    struct heddle_sched_task *task = (struct heddle_sched_task *)(uintptr_t)t;
    const struct task_ext *ext;
    struct dev_shape *s;
    struct heddle_exec x;
    struct task_ext own;

    ext = heddle_task_exec(d->ctx->foreign, task, &x, &own);
    s = heddle_dev_shape(d, &x);
    return s == NULL ? 0 : shape_sort(d, s, task_classes(d, t, &x, ext));
}

static const char *view_kernel(void *view, const struct heddle_sched_task *t)
{
    struct heddle_devs *d = view;
    struct heddle_exec x;
    struct task_ext own;

    (void)heddle_task_exec(d->ctx->foreign, (struct heddle_sched_task *)(uintptr_t)t, &x, &own);
    return x.kinfo->kernel->name;
}

static uint64_t view_id(void *view, const struct heddle_sched_task *t)
{
    struct heddle_devs *d = view;
    struct heddle_exec x;
    struct task_ext own;

    (void)heddle_task_exec(d->ctx->foreign, (struct heddle_sched_task *)(uintptr_t)t, &x, &own);
    return x.id;
}

static bool view_is_idle(void *view)
{
    struct heddle_devs *d = view;
    const heddle_ctx *ctx = d->ctx;

    if (d->is_virtual) {
        for (unsigned i = 0; i < d->nworkers; i++)
            if (d->worker[i].ntasks != d->worker[i].nblocked)
                return false;
        return true;
    }
    /* Relaxed: a guess; who was missed asks again. */
    for (unsigned i = 0; i < ctx->nworkers; i++)
        if (heddle_load_rlx(&ctx->worker[i].is_busy) != 0)
            return false;
    return !heddle_dev_is_running(d) && heddle_load_rlx(&d->nsupplied) == 0;
}

const struct heddle_sched_view heddle_dev_view = {
    .cost = view_cost,
    .joules = view_joules,
    .fetch = view_fetch,
    .bytes = view_bytes,
    .sort = view_sort,
    .kernel = view_kernel,
    .id = view_id,
    .now_ns = heddle_dev_now_ns,
    .is_idle = view_is_idle,
};

/* --- at submission ----------------------------------------------------------------- */

static heddle_status check_refuse(heddle_ctx *ctx, struct heddle_exec *x,
                                  const struct task_ext *ext)
{
    struct heddle_devs *d = ctx->dev;
    const char *kernel = x->kinfo->kernel->name;
    uint64_t best = 0, need = 0;
    bool serves = false, has_time = false;

    for (unsigned c = 0; c < d->ncls; c++)
        for (unsigned v = 0; v < x->kinfo->nvariants; v++) {
            const unsigned node = d->cls[c].node;
            struct dev_shape *s;

            if (!variant_serves(d, &x->kinfo->kernel->variants[v], &d->cls[c], ext))
                continue;
            serves = true;
            s = heddle_dev_shape(d, x);
            has_time = has_time || !d->is_virtual || (s != NULL && !isnan(s->ns[c]));
            need = heddle_dev_need(d, x, c);
            if (d->node[node].budget > best)
                best = d->node[node].budget;
        }
    if (!serves)
        return heddle_refuse(ctx, HEDDLE_ENOVARIANT,
                             "kernel %s has no variant for a device of this "
                             "context",
                             kernel);
    if (!has_time)
        return heddle_refuse(ctx, HEDDLE_ENOVARIANT, "kernel %s: machine %s has no duration for it",
                             kernel, d->plat->name);
    if (best != HEDDLE_MEM_NO_LIMIT && need > best)
        return heddle_refuse(ctx, HEDDLE_ENOMEM,
                             "kernel %s needs %llu bytes at once, the largest "
                             "memory it could run in has %llu",
                             kernel, (unsigned long long)need, (unsigned long long)best);
    return heddle_refuse(ctx, HEDDLE_ENOVARIANT, "kernel %s: no device of this context may run it",
                         kernel);
}

heddle_status heddle_dev_check(heddle_ctx *ctx, const struct submission *s,
                               const struct heddle_access *acc, unsigned nops)
{
    struct heddle_devs *d = ctx->dev;
    const struct heddle_task_opts *o = s->call->opts;
    heddle_handle *op[TASK_NOPS + 1];
    enum heddle_mode mode[TASK_NOPS + 1];
    struct task_ext ext = {0};
    struct heddle_exec x = {.ctx = ctx,
                            .worker = ctx->foreign,
                            .kinfo = s->kinfo,
                            .op = op,
                            .mode = mode,
                            .nops = nops,
                            .arg = s->call->arg,
                            .arg_bytes = (uint32_t)s->call->arg_bytes};
    double sure;
    unsigned v;

    for (unsigned i = 0; i < nops; i++) {
        op[i] = acc[i].unit;
        mode[i] = acc[i].mode;
    }
    if (o != NULL) {
        ext.variant = (uint8_t)o->variant;
        ext.devices = (uint8_t)o->devices;
        ext.digits = (uint16_t)o->digits;
    }
    for (unsigned c = 0; c < d->ncls; c++)
        if (!isinf(heddle_dev_cost(d, &x, &ext, c, &v, &sure)))
            return HEDDLE_OK;
    return check_refuse(ctx, &x, &ext);
}

/*
 * The tasks a new one waits for, as the scheduler knows them. Some may have ended
 * by now, and then their cells hold something else: so what it remembers of each
 * is kept beside the cells, where only this submitter looks.
 */
static void submitted_preds(heddle_ctx *ctx, const struct submission *s, uint32_t m,
                            struct heddle_sched_task *copy, struct heddle_sched_task **pred)
{
    for (uint32_t i = 0; i < m; i++) {
        const uint32_t index = (uint32_t)s->sub->slab.cand[i];
        const struct heddle_chunk *k = heddle_pool_chunk(&ctx->pool, index);

        /* 0: of another submitter, hidden, or unknown to it. */
        copy[i].aux = k->slab != &s->sub->slab ? 0 : k->aux[index % HEDDLE_CHUNK];
        pred[i] = &copy[i];
    }
}

static void submitted_tell(heddle_ctx *ctx, const struct submission *s, struct heddle_cell *c,
                           uint32_t m)
{
    struct heddle_sched_task copy[32], *pred[32];
    struct heddle_chunk *k = heddle_pool_chunk(&ctx->pool, c->self);

    if (m > 32)
        m = 32; /* ranks are a little less good then */
    if (s->scope != NULL && ctx->sched->nested != NULL)
        ctx->sched->nested(ctx->sched_self);
    submitted_preds(ctx, s, m, copy, pred);
    ctx->sched->submitted(ctx->sched_self, &c->sched, pred, m);
    k->aux[c->self % HEDDLE_CHUNK] = c->aux;
}

void heddle_dev_submitted(heddle_ctx *ctx, struct submission *s, struct heddle_cell *c,
                          const struct heddle_access *acc, unsigned nops, uint32_t m)
{
    struct heddle_devs *d = ctx->dev;

    /* First, since the order of uses is the scheduler's. */
    if (ctx->sched->submitted != NULL && s->acc == NULL)
        submitted_tell(ctx, s, c, m);
    if (d->has_budget && s->scope == NULL && s->acc == NULL)
        for (unsigned i = 0; i < nops; i++)
            if (acc[i].mode <= HEDDLE_COMMUTE)
                heddle_mem_will_use(d->mem, acc[i].unit, c->id, &c->sched, acc[i].mode);
}
