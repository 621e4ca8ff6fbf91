/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * la: sequences of calls, and what all routines share.
 *
 * Invariants (1) a sequence ends after its tasks, so tasks may point to it
 *            (2) `found` and `broken` only go down between two waits
 */
#include "la/la.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/device.h"
#include "base/sized.h"
#include "la/cuda/cuda.h"
#include "la/cuda/kernel.h"

static const uint64_t none = UINT64_MAX;
static _Thread_local char missing_text[256];

const char *heddle_la_missing(void)
{
    const char *library = heddle_env_value("HEDDLE_BLAS_LIBRARY");

    missing_text[0] = '\0';
    if (heddle_blas_open(library, missing_text, sizeof(missing_text)) == NULL)
        return missing_text;
    heddle_blas_close();
    return "";
}

const char *heddle_la_low_name(enum heddle_la_low low)
{
    static const char *const names[] = {"auto", "single", "tf32", "half", "halves"};

    return (unsigned)low <= HEDDLE_LA_LOW_HALVES ? names[low] : "unknown";
}

const char *heddle_la_panel_name(enum heddle_la_panel panel)
{
    static const char *const names[] = {"auto", "single", "gang"};

    return (unsigned)panel <= HEDDLE_LA_PANEL_GANG ? names[panel] : "unknown";
}

bool heddle_la_is_inside(void)
{
    return heddle_blas_is_inside();
}

static void la_look(heddle_la *la)
{
    struct heddle_class_info c = {.size = sizeof(c)};
    struct heddle_memory_info m = {.size = sizeof(m)};
    heddle_devices gpu;

    la->device_bytes = UINT64_MAX;
    for (unsigned i = 0; heddle_ctx_get_class(la->ctx, i, &c) == HEDDLE_OK; i++) {
        if (strcmp(c.kind, "cpu") == 0)
            la->ncores += c.nworkers;
        gpu = LA_GPU_KINDS & HEDDLE_DEVS(heddle_device_of(c.kind));
        if (gpu == 0 || c.is_lost != 0 || (la->opts.devices != 0 && (la->opts.devices & gpu) == 0))
            continue;
        la->has_cuda = true;
        if (heddle_ctx_get_memory(la->ctx, c.memory, &m) == HEDDLE_OK &&
            m.budget < la->device_bytes)
            la->device_bytes = m.budget;
    }
}

size_t heddle_la_fits(const heddle_la *la, const heddle_matrix *a)
{
    const double column = (double)a->m * (double)a->nb * (double)blas_bytes(a->t);
    const double room = (double)la->device_bytes / 10 * 9;

    if (!la->has_cuda || column * (double)a->nt <= room)
        return la_max(a->nt, 1);
    return la_max((size_t)(room * 0.6 / column), 1);
}

heddle_status heddle_la_create(heddle_ctx *ctx, const struct heddle_la_opts *opts,
                               heddle_la **la_out)
{
    struct heddle_allocator alloc;
    struct heddle_la_opts o;
    heddle_la *la;
    heddle_status st;

    if (ctx == NULL || la_out == NULL)
        return HEDDLE_EINVAL;
    LA_TRY(HEDDLE_SIZED_GET_OPTS(struct heddle_la_opts, &o, opts));
    if ((unsigned)o.low > HEDDLE_LA_LOW_HALVES || (unsigned)o.panel > HEDDLE_LA_PANEL_GANG ||
        o.priority > INT32_MAX / 2 || o.priority < INT32_MIN / 2)
        return HEDDLE_EINVAL;
    LA_TRY(heddle_ctx_get_allocator(ctx, &alloc));
    la = heddle_zalloc(&alloc, 1, sizeof(*la));
    if (la == NULL)
        return HEDDLE_ENOMEM;
    la->ctx = ctx;
    la->alloc = alloc;
    atomic_init(&la->scratch, NULL);
    la->opts = o;
    la->device_wide = heddle_la_device_wide(la->opts.routine);
    la->opts.routine = NULL; /* these were lent */
    la->opts.why = NULL;
    atomic_init(&la->found, none);
    atomic_init(&la->broken, none);
    if (heddle_blas_open(heddle_env_value("HEDDLE_BLAS_LIBRARY"), o.why, o.why_bytes) == NULL) {
        heddle_free(&alloc, la, sizeof(*la));
        return HEDDLE_ENOENT;
    }
    st = heddle_group_create(ctx, &la->group);
    if (st != HEDDLE_OK) {
        heddle_blas_close();
        heddle_free(&alloc, la, sizeof(*la));
        return st;
    }
    la_look(la);
    if (la->has_cuda)
        heddle_la_preload(ctx, o.routine);
    *la_out = la;
    return HEDDLE_OK;
}

void heddle_la_destroy(heddle_la *la)
{
    struct heddle_allocator alloc;
    heddle_status st;

    if (la == NULL)
        return;
    alloc = la->alloc;
    st = heddle_group_wait(la->group, 0);
    (void)st; /* who wants to know has waited */
    heddle_la_pivots_drop(la);
    heddle_la_gate_drop(la);
    heddle_la_scratch_drop(la);
    heddle_event_unref(la->looked);
    heddle_group_unref(la->group);
    heddle_blas_close();
    heddle_free(&alloc, la, sizeof(*la));
}

heddle_status heddle_la_wait(heddle_la *la, int *info_out)
{
    heddle_status st;
    uint64_t found;

    if (la == NULL)
        return HEDDLE_EINVAL;
    st = heddle_group_wait(la->group, 0);
    found = atomic_exchange_explicit(&la->found, none, memory_order_relaxed);
    atomic_store_explicit(&la->broken, none, memory_order_relaxed);
    if (info_out != NULL)
        *info_out = la->refused != 0 ? la->refused : found != none ? (int)(found & INT32_MAX) : 0;
    la->refused = 0;
    la->ncalls = 0; /* no task has a number any more */
    heddle_la_pivots_drop(la);
    heddle_la_gate_drop(la);
    heddle_event_unref(la->looked);
    la->looked = NULL;
    return st;
}

heddle_status heddle_la_kept_open(heddle_la *la, struct la_kept *kept, bool *is_broken_out)
{
    LA_TRY(heddle_group_wait(la->group, 0));
    *is_broken_out = atomic_load_explicit(&la->broken, memory_order_relaxed) != none;
    kept->refused = la->refused;
    kept->found = atomic_load_explicit(&la->found, memory_order_relaxed);
    if (!*is_broken_out) {
        la->refused = 0;
        atomic_store_explicit(&la->found, none, memory_order_relaxed);
    }
    return HEDDLE_OK;
}

void heddle_la_kept_shut(heddle_la *la, const struct la_kept *kept)
{
    la->refused = kept->refused;
    atomic_store_explicit(&la->found, kept->found, memory_order_relaxed);
}

struct la_head heddle_la_begin(heddle_la *la, const heddle_matrix *a)
{
    return (struct la_head){
        .la = la, .call = ++la->ncalls, .t = a->t, .low = la->low, .gate = la->gate};
}

heddle_status heddle_la_refuse(heddle_la *la, int i)
{
    if (la != NULL && la->refused == 0)
        la->refused = -i;
    return HEDDLE_EINVAL;
}

static heddle_status submit_on(heddle_la *la, heddle_devices devices, const heddle_kernel *kernel,
                               heddle_handle *const *operands, const enum heddle_mode *modes,
                               unsigned n, const void *arg, size_t arg_bytes, int priority)
{
    const struct heddle_task_opts o = {.size = sizeof(o),
                                       .group = la->group,
                                       .after = &la->looked,
                                       .nafter = la->looked != NULL ? 1 : 0,
                                       .devices = devices};

    return heddle_submit(la->ctx, kernel,
                         &(struct heddle_call){.arg = arg,
                                               .arg_bytes = arg_bytes,
                                               .priority = priority + la->opts.priority,
                                               .noperands = n,
                                               .operands = operands,
                                               .modes = modes,
                                               .opts = &o});
}

heddle_status heddle_la_submit(heddle_la *la, const heddle_kernel *kernel,
                               heddle_handle *const *operands, const enum heddle_mode *modes,
                               unsigned n, const void *arg, size_t arg_bytes, int priority)
{
    return submit_on(la, la->opts.devices, kernel, operands, modes, n, arg, arg_bytes, priority);
}

heddle_status heddle_la_submit_home(heddle_la *la, const heddle_kernel *kernel,
                                    heddle_handle *const *operands, const enum heddle_mode *modes,
                                    unsigned n, const void *arg, size_t arg_bytes)
{
    return submit_on(la, HEDDLE_DEVS_CPU, kernel, operands, modes, n, arg, arg_bytes, 0);
}

static void lower(_Atomic uint64_t *at, uint64_t key)
{
    uint64_t old = atomic_load_explicit(at, memory_order_relaxed);

    while (key < old && !atomic_compare_exchange_weak_explicit(at, &old, key, memory_order_relaxed,
                                                               memory_order_relaxed))
        ;
}

void heddle_la_found(const struct la_head *h, int info, bool breaks)
{
    if (info <= 0)
        return;
    lower(&h->la->found, (uint64_t)h->call << 32 | (uint32_t)info);
    if (breaks)
        lower(&h->la->broken, h->call);
}

bool heddle_la_is_broken(const struct la_head *h)
{
    return atomic_load_explicit(&h->la->broken, memory_order_relaxed) <= h->call ||
           (h->gate != NULL && atomic_load_explicit(&h->gate->is_shut, memory_order_relaxed));
}

/* --- info from devices -------------------------------------------------------- */

struct collect_arg {
    struct la_head h;
    size_t step;
    bool breaks;
};

static heddle_status run_collect(struct heddle_exec *x)
{
    const struct collect_arg *g = heddle_exec_arg(x);
    const int32_t *info = heddle_exec_ptr(x, 0);
    const size_t n = heddle_exec_count(x, 0);

    for (size_t i = 0; i < n; i++)
        if (info[i] > 0) {
            heddle_la_found(&g->h, (int)(i * g->step) + info[i], g->breaks);
            break;
        }
    return HEDDLE_OK;
}

static const heddle_kernel kernel_collect = {
    .size = sizeof(heddle_kernel),
    .name = "la_info",
    .noperands = 1,
    .mode = {HEDDLE_R},
    .variants = {{.device = HEDDLE_DEV_CPU, .run = run_collect}}};

heddle_status heddle_la_record(heddle_la *la, size_t n, heddle_handle **out)
{
    *out = NULL;
    return la->has_cuda && n > 0 ? heddle_handle_vector(la->ctx, NULL, n, HEDDLE_I32, out)
                                 : HEDDLE_OK;
}

heddle_status heddle_la_submit_look(heddle_la *la, const heddle_kernel *kernel,
                                    heddle_handle *operand, const void *arg, size_t arg_bytes,
                                    bool is_awaited)
{
    heddle_event *looked = NULL;
    const heddle_status st =
        heddle_submit(la->ctx, kernel,
                      &(struct heddle_call){.operand = {operand},
                                            .arg = arg,
                                            .arg_bytes = arg_bytes,
                                            .opts = &(struct heddle_task_opts){
                                                .size = sizeof(struct heddle_task_opts),
                                                .group = la->group,
                                                .event_out = is_awaited ? &looked : NULL}});

    if (looked != NULL) {
        heddle_event_unref(la->looked);
        la->looked = looked;
    }
    return st;
}

heddle_status heddle_la_collect(const struct la_head *h, heddle_handle *record, size_t step,
                                bool breaks)
{
    const struct collect_arg g = {*h, step, breaks};
    heddle_status st;

    if (record == NULL)
        return HEDDLE_OK;
    st = heddle_la_submit_look(h->la, &kernel_collect, record, &g, sizeof(g), breaks);
    heddle_handle_unref(record);
    return st;
}

char heddle_la_letter(char c, const char *letters)
{
    if (c >= 'a' && c <= 'z')
        c = (char)(c - 'a' + 'A');
    return c != '\0' && strchr(letters, c) != NULL ? c : '\0';
}

unsigned heddle_la_merge(struct heddle_exec *x, enum blas_type t, unsigned first, unsigned n,
                         struct blas_block *out)
{
    unsigned count = 0;

    for (unsigned i = 0; i < n; i++) {
        const struct blas_block b = la_operand(x, first + i);
        struct blas_block *last = count > 0 ? &out[count - 1] : NULL;

        if (last != NULL && last->ld == b.ld && last->m == b.m &&
            (char *)last->a + last->n * last->ld * blas_bytes(t) == (char *)b.a)
            last->n += b.n;
        else
            out[count++] = b;
    }
    return count;
}
