/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * shared: the context of the process, and when it may be used.
 *
 * Life       the first call that is large enough makes the context. It stays until the
 *            process ends, because threads may call until then. It is destroyed only
 *            when the user asked for a log, at the unloading of the library, if no call
 *            is under way.
 * fork()     a child process has no workers: it drops the context and makes its own, or
 *            passes all calls on when another thread was inside of a call at the moment
 *            of the fork (that thread's locks stay locked).
 * One thread while the BLAS is told to use one thread, all calls are passed on.
 * Threads    any; `lock` guards the context, `nactive` counts calls.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "base/text.h"
#include "lapack/lapack.h"

static struct {
    pthread_mutex_t lock;
    heddle_ctx *ctx;
    bool is_closed;   /* no context, and none shall be made */
    bool has_handler; /* of fork() */
    bool is_child;
    atomic_uint nactive;
    atomic_ulong ncalls;
} shared = {.lock = PTHREAD_MUTEX_INITIALIZER};

static struct {
    pthread_once_t once;
    bool has_devices;
    unsigned limit[LAPACK_NROUTINES]; /* the smallest order; 0: none */
} rules = {.once = PTHREAD_ONCE_INIT};

static _Thread_local unsigned inside;

/* --- which calls ------------------------------------------------------------ */

static const unsigned limits[LAPACK_NROUTINES][2] = {
#define LAPACK(name, s, d, c, z, cores, devices) {cores, devices},
#define LAPACK_USED(name, s, d, c, z)            {0, 0},
#include "lapack/lapack.def"
#undef LAPACK
#undef LAPACK_USED
};

/* HEDDLE_LAPACK is off, on, or the smallest order for all routines. */
static void read_rules(void)
{
    const char *value = heddle_env_value("HEDDLE_LAPACK");
    const char *devices = heddle_env_value("HEDDLE_DEVICES");
    uint64_t order = 0;
    bool is_on = true;

    rules.has_devices = devices != NULL && strcmp(devices, "none") != 0;
    if (value != NULL && heddle_parse_u64(value, &order) == HEDDLE_OK)
        is_on = order > 0; /* 0 is off, as everywhere */
    else if (value != NULL && heddle_parse_bool(value, &is_on) != HEDDLE_OK)
        is_on = false; /* who knows what was meant */
    /* In virtual time tasks compute nothing. */
    if (!is_on || heddle_env_value("HEDDLE_MACHINE") != NULL)
        return;
    if (order > UINT32_MAX)
        order = UINT32_MAX;
    for (unsigned i = 0; i < LAPACK_NROUTINES; i++)
        rules.limit[i] = order > 0 ? (unsigned)order : limits[i][rules.has_devices];
}

bool heddle_lapack_takes(enum lapack_routine r, long order)
{
    (void)pthread_once(&rules.once, read_rules);
    return rules.limit[r] != 0 && order >= (long)rules.limit[r];
}

/* --- fork, and the end -------------------------------------------------------- */

static void before_fork(void)
{
    pthread_mutex_lock(&shared.lock);
}

static void after_fork(void)
{
    pthread_mutex_unlock(&shared.lock);
}

static void in_child(void)
{
    if (atomic_load_explicit(&shared.nactive, memory_order_relaxed) != 0)
        shared.is_closed = true;
    atomic_store_explicit(&shared.nactive, 0, memory_order_relaxed);
    shared.is_child = true;
    shared.ctx = NULL; /* its workers are not here; its memory stays */
    pthread_mutex_unlock(&shared.lock);
}

__attribute__((destructor)) static void write_log(void)
{
    if (heddle_env_value("HEDDLE_LOG_FILE") == NULL)
        return;
    pthread_mutex_lock(&shared.lock);
    shared.is_closed = true;
    if (atomic_load_explicit(&shared.nactive, memory_order_relaxed) == 0)
        (void)heddle_ctx_destroy(shared.ctx);
    shared.ctx = NULL;
    pthread_mutex_unlock(&shared.lock);
}

/* --- the context ---------------------------------------------------------------- */

static heddle_ctx *make_context(int threads)
{
    struct heddle_ctx_opts o = {.size = sizeof(o)};
    heddle_ctx *ctx = NULL;

    if (heddle_env_value("HEDDLE_WORKERS") == NULL && threads > 0)
        o.nworkers = (unsigned)threads;
    /* A worker that may move is woken beside the caller, on its core. Several
     * children would all have the same cores. */
    if (heddle_env_value("HEDDLE_BIND") == NULL && shared.is_child)
        o.bind = HEDDLE_OFF;
    if (!rules.has_devices) {
        o.devices = "none";
        if (heddle_env_value("HEDDLE_SCHED") == NULL)
            o.sched = "prio";
        if (heddle_env_value("HEDDLE_MODELS") == NULL)
            o.models = HEDDLE_OFF; /* there is nothing to choose */
    }
    if (heddle_env_value("HEDDLE_LOG_FILE") == NULL)
        o.log = HEDDLE_OFF;
    return heddle_ctx_create(&o, &ctx) == HEDDLE_OK ? ctx : NULL;
}

/* Under the lock. */
static void start(int threads)
{
    if (!shared.has_handler) {
        shared.has_handler = pthread_atfork(before_fork, after_fork, in_child) == 0;
        shared.is_closed = !shared.has_handler;
    }
    if (!shared.is_closed) {
        shared.ctx = make_context(threads);
        shared.is_closed = shared.ctx == NULL;
    }
}

heddle_ctx *heddle_lapack_enter(void)
{
    heddle_ctx *ctx = NULL;
    bool is_first;

    if (inside != 0 || heddle_la_is_inside())
        return NULL;
    pthread_mutex_lock(&shared.lock);
    is_first = atomic_load_explicit(&shared.nactive, memory_order_relaxed) == 0;
    if (!shared.is_closed) {
        /* While calls are under way it is they who want one thread. */
        const int threads = is_first ? heddle_lapack_threads() : 0;

        if (threads != 1 || rules.has_devices) {
            if (shared.ctx == NULL)
                start(threads);
            ctx = shared.ctx;
        }
    }
    if (ctx != NULL)
        atomic_fetch_add_explicit(&shared.nactive, 1, memory_order_relaxed);
    pthread_mutex_unlock(&shared.lock);
    return ctx;
}

void heddle_lapack_leave(bool is_done)
{
    pthread_mutex_lock(&shared.lock); /* orders it with fork() */
    atomic_fetch_sub_explicit(&shared.nactive, 1, memory_order_relaxed);
    if (is_done)
        atomic_fetch_add_explicit(&shared.ncalls, 1, memory_order_relaxed);
    pthread_mutex_unlock(&shared.lock);
}

void heddle_lapack_inside(bool is_inside)
{
    if (is_inside)
        inside++;
    else
        inside--;
}

unsigned long heddle_lapack_calls(void)
{
    return atomic_load_explicit(&shared.ncalls, memory_order_relaxed);
}
