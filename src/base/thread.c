/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * thread: pthreads and the kernel's CPU sets.
 *
 * Purpose    the one file that creates threads and changes affinities.
 * Threads    any function from any thread; a struct heddle_thread belongs to
 *            its creator.
 */
#include "base/thread.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/assert.h"

/* cpu_set_t alone holds 1024 CPUs; the calls take a size, so an array does. */
struct cpu_mask {
    cpu_set_t part[HEDDLE_CPU_MAX / CPU_SETSIZE];
};

static heddle_status mask_fill(struct cpu_mask *m, const int *cpus, unsigned ncpus)
{
    memset(m, 0, sizeof(*m));
    if (cpus == NULL || ncpus == 0)
        return HEDDLE_EINVAL;
    for (unsigned i = 0; i < ncpus; i++) {
        if (cpus[i] < 0 || cpus[i] >= HEDDLE_CPU_MAX)
            return HEDDLE_EINVAL;
        CPU_SET_S((size_t)cpus[i], sizeof(m->part), m->part);
    }
    return HEDDLE_OK;
}

static heddle_status from_errno(int err)
{
    switch (err) {
    case 0: return HEDDLE_OK;
    case EDEADLK: return HEDDLE_EDEADLK;
    case ENOMEM:
    case EAGAIN: return HEDDLE_ENOMEM;
    case ENOSYS: return HEDDLE_ENOSYS;
    case EPERM:
    case EACCES: return HEDDLE_EACCESS;
    default: return HEDDLE_EINVAL;
    }
}

static heddle_status set_stack(pthread_attr_t *attr, size_t bytes)
{
    const long page = sysconf(_SC_PAGESIZE);
    const size_t unit = page > 0 ? (size_t)page : 4096;
    const long min = sysconf(_SC_THREAD_STACK_MIN);

    if (bytes == 0)
        return HEDDLE_OK;
    if (min > 0 && bytes < (size_t)min)
        bytes = (size_t)min;
    if (bytes > SIZE_MAX - unit)
        return HEDDLE_ENOMEM;
    bytes = (bytes + unit - 1) / unit * unit;
    return from_errno(pthread_attr_setstacksize(attr, bytes));
}

static heddle_status set_attr(pthread_attr_t *attr, const struct heddle_thread_opts *o)
{
    struct cpu_mask mask;

    HEDDLE_TRY(set_stack(attr, o->stack_bytes));
    if (o->cpus == NULL)
        return HEDDLE_OK;
    HEDDLE_TRY(mask_fill(&mask, o->cpus, o->ncpus));
    return from_errno(pthread_attr_setaffinity_np(attr, sizeof(mask.part), mask.part));
}

/* All signals but those an instruction raises, and the profiler's. */
static void block_signals(sigset_t *old)
{
    static const int open[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGPROF};
    sigset_t set;

    sigfillset(&set);
    for (size_t i = 0; i < sizeof(open) / sizeof(open[0]); i++)
        sigdelset(&set, open[i]);
    pthread_sigmask(SIG_SETMASK, &set, old);
}

static void set_name(pthread_t id, const char *name)
{
    char s[16]; /* the kernel's limit */
    size_t n = strlen(name);

    n = n < sizeof(s) - 1 ? n : sizeof(s) - 1;
    memcpy(s, name, n);
    s[n] = '\0';
    /* A thread without its name still works. */
    (void)pthread_setname_np(id, s);
}

heddle_status heddle_thread_create(struct heddle_thread *t, const struct heddle_thread_opts *opts,
                                   void *(*fn)(void *arg), void *arg)
{
    static const struct heddle_thread_opts none = {0};
    pthread_attr_t attr;
    pthread_t id;
    sigset_t old;
    heddle_status st;

    HEDDLE_CHECK(t != NULL && fn != NULL);
    if (opts == NULL)
        opts = &none;
    if (pthread_attr_init(&attr) != 0)
        return HEDDLE_ENOMEM;
    st = set_attr(&attr, opts);
    if (st == HEDDLE_OK) {
        block_signals(&old); /* the new thread inherits the mask */
        st = from_errno(pthread_create(&id, &attr, fn, arg));
        pthread_sigmask(SIG_SETMASK, &old, NULL);
    }
    pthread_attr_destroy(&attr);
    if (st != HEDDLE_OK)
        return st;
    if (opts->name != NULL)
        set_name(id, opts->name);
    t->id = id;
    return HEDDLE_OK;
}

heddle_status heddle_thread_join(struct heddle_thread *t)
{
    return from_errno(pthread_join(t->id, NULL));
}

heddle_status heddle_thread_bind(const int *cpus, unsigned ncpus)
{
    struct cpu_mask mask;

    HEDDLE_TRY(mask_fill(&mask, cpus, ncpus));
    return sched_setaffinity(0, sizeof(mask.part), mask.part) == 0 ? HEDDLE_OK : from_errno(errno);
}

heddle_status heddle_thread_get_cpus(int *cpus, unsigned cap, unsigned *n_out)
{
    struct cpu_mask mask;
    unsigned n = 0;

    memset(&mask, 0, sizeof(mask));
    if (sched_getaffinity(0, sizeof(mask.part), mask.part) != 0)
        return from_errno(errno);
    for (int i = 0; i < HEDDLE_CPU_MAX; i++) {
        if (!CPU_ISSET_S((size_t)i, sizeof(mask.part), mask.part))
            continue;
        if (n < cap)
            cpus[n] = i;
        n++;
    }
    *n_out = n;
    return HEDDLE_OK;
}

int heddle_thread_cpu(void)
{
    return sched_getcpu();
}

uint32_t heddle_thread_id(void)
{
    return (uint32_t)syscall(SYS_gettid);
}

void heddle_thread_sleep_ns(uint64_t ns)
{
    struct timespec left = {
        .tv_sec = (time_t)(ns / 1000000000u),
        .tv_nsec = (long)(ns % 1000000000u),
    };

    while (nanosleep(&left, &left) != 0 && errno == EINTR) {
    }
}

void heddle_thread_nudge(int cpu)
{
    cpu_set_t old, one;

    if (cpu < 0 || cpu >= CPU_SETSIZE ||
        pthread_getaffinity_np(pthread_self(), sizeof(old), &old) != 0)
        return; /* a convenience: nothing depends on it */
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    if (pthread_setaffinity_np(pthread_self(), sizeof(one), &one) == 0)
        (void)pthread_setaffinity_np(pthread_self(), sizeof(old), &old);
}

void heddle_thread_sharpen(void)
{
    (void)prctl(PR_SET_TIMERSLACK, 1UL); /* a wish */
}
