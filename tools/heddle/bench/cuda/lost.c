/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bench/cuda/lost: the device goes away while a program runs on it and on cores.
 *
 * How        each run is a process of its own, the tool with --child KIND:SEED.
 *            Vectors y are sums of vectors x, vectors z sums of vectors y, by
 *            tasks that may run on cores and on the GPU. The device is lost in the
 *            middle: by a fault of the context ("lose cuda0 nth N"), or for good,
 *            by a kernel that traps. Memory is the caller's or the runtime's, and
 *            there is a wait after all tasks, or after every few: that brings the
 *            caller's data home.
 * Right      either every element is what a program without a GPU computes; or
 *            the only copy of some data was on the device, the failure names such
 *            a handle, and the same context computes all of it on the cores when
 *            it is asked again. The two are counted apart.
 * Wrong      anything else: other numbers, another failure, no name, a crash, and
 *            what takes longer than LIMIT_S.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/rng.h"
#include "base/text.h"
#include "bench/cuda/cuda.h"

extern char **environ;

enum {
    LIMIT_S = 20,
    AT_ONCE = 6,
    NX = 8, /* inputs */
    NY = 24,
    NZ = 24,
    NVECTORS = NX + NY + NZ,
    MAX_TASKS = 1200
};

/* How a child ended. */
enum outcome {
    RECOVERED = 0, /* right, without help */
    FAILED = 1,
    REPORTED = 3, /* named what was lost, and right when asked again */
    NOT_LOST = 4, /* nothing ran on the device after its time had come */
    HUNG = 5      /* for the parent */
};

/* --- the program --------------------------------------------------------- */

struct add_args {
    double a;
    uint32_t traps;
};

struct add_task {
    struct add_args args;
    unsigned x, y;
};

struct program {
    struct cuda_bench *b;
    heddle_ctx *ctx;
    heddle_handle *h[NVECTORS];
    double *memory; /* of the caller; NULL: the runtime's */
    size_t n;       /* of a vector */
    struct add_task task[MAX_TASKS];
    unsigned ntasks, phase; /* of so many tasks, with a wait behind each */
    double want[NVECTORS];  /* factor of each vector */
};

static heddle_status core_add(struct heddle_exec *x)
{
    const struct add_args *a = heddle_exec_arg(x);
    const double *from = heddle_exec_ptr(x, 0);
    double *to = heddle_exec_ptr(x, 1);
    const size_t n = heddle_exec_count(x, 1);

    for (size_t i = 0; i < n; i++)
        to[i] += a->a * from[i];
    return HEDDLE_OK;
}

static heddle_status cuda_add(struct heddle_exec *x)
{
    const struct add_args *a = heddle_exec_arg(x);
    const uint32_t n = (uint32_t)heddle_exec_count(x, 1);
    const struct heddle_cuda_arg args[] = {
        {.value = &a->a}, {.operand = 0}, {.operand = 1}, {.value = &n}};

    if (a->traps != 0)
        return bench_cuda_put(x, "bench_trap", 1, NULL, 0);
    return bench_cuda_put(x, "bench_axpy", n, args, 4);
}

static struct heddle_cost cost_add(struct heddle_exec *x)
{
    const double n = (double)heddle_exec_count(x, 1);

    return (struct heddle_cost){.flops = 2 * n, .bytes = 24 * n};
}

static const heddle_kernel kernel_add = {.size = sizeof(heddle_kernel),
                                         .name = "add",
                                         .noperands = 2,
                                         .mode = {HEDDLE_R, HEDDLE_RW},
                                         .variants = {{.device = HEDDLE_DEV_CPU, .run = core_add},
                                                      {.device = HEDDLE_DEV_CUDA, .run = cuda_add}},
                                         .cost = cost_add};

/* Vector v is its factor times 1, 2, 3, 1, 2, ...: whole numbers, exact. */
static double element(size_t i)
{
    return (double)(i % 3 + 1);
}

static void draw(struct program *p, struct heddle_rng *rng, unsigned trap_from)
{
    for (unsigned i = 0; i < NX; i++)
        p->want[i] = (double)(i + 1);
    for (unsigned i = 0; i < p->ntasks; i++) {
        const bool is_first = i < p->ntasks / 2; /* y from x, then z from y */
        struct add_task *t = &p->task[i];

        t->args = (struct add_args){(double)(heddle_rng_next(rng) % 8 + 1), i >= trap_from};
        t->x = is_first ? (unsigned)(heddle_rng_next(rng) % NX)
                        : NX + (unsigned)(heddle_rng_next(rng) % NY);
        t->y = is_first ? NX + (unsigned)(heddle_rng_next(rng) % NY)
                        : NX + NY + (unsigned)(heddle_rng_next(rng) % NZ);
        p->want[t->y] += t->args.a * p->want[t->x];
    }
}

/* What the vectors are in the beginning. */
static heddle_status reset(struct program *p)
{
    heddle_status st = HEDDLE_OK;

    for (unsigned v = 0; v < NVECTORS && st == HEDDLE_OK; v++) {
        void *ptr = NULL;
        double *d;

        st = heddle_handle_acquire(p->h[v], HEDDLE_W, &ptr);
        d = ptr;
        for (size_t i = 0; i < p->n && st == HEDDLE_OK; i++)
            d[i] = v < NX ? p->want[v] * element(i) : 0;
        if (st == HEDDLE_OK)
            st = heddle_handle_release(p->h[v]);
    }
    return st;
}

static heddle_status make(struct program *p)
{
    heddle_status st = HEDDLE_OK;

    for (unsigned v = 0; v < NVECTORS && st == HEDDLE_OK; v++) {
        const char kind = v < NX ? 'x' : v < NX + NY ? 'y' : 'z';
        char name[16];

        snprintf(name, sizeof(name), "%c-%u", kind, v);
        st = heddle_handle_vector(p->ctx, p->memory != NULL ? p->memory + v * p->n : NULL, p->n,
                                  HEDDLE_F64, &p->h[v]);
        if (st == HEDDLE_OK)
            st = heddle_handle_set_name(p->h[v], name);
    }
    return st == HEDDLE_OK ? reset(p) : st;
}

static heddle_status submit_all(struct program *p, bool may_trap)
{
    heddle_status st = HEDDLE_OK, waited;

    for (unsigned i = 0; i < p->ntasks && st == HEDDLE_OK; i++) {
        struct add_args a = p->task[i].args;

        if (i > 0 && i % p->phase == 0) {
            waited = heddle_wait(p->ctx);
            if (waited != HEDDLE_OK)
                return waited; /* all have ended; the sentence is for the caller */
        }
        a.traps &= may_trap;
        st =
            heddle_submit(p->ctx, &kernel_add,
                          &(struct heddle_call){.operand = {p->h[p->task[i].x], p->h[p->task[i].y]},
                                                .arg = &a,
                                                .arg_bytes = sizeof(a)});
    }
    waited = heddle_wait(p->ctx);
    return st != HEDDLE_OK ? st : waited;
}

/* HEDDLE_EDEV: data are lost; HEDDLE_ETASK: they are wrong. */
static heddle_status check(struct program *p)
{
    for (unsigned v = 0; v < NVECTORS; v++) {
        void *ptr = NULL;
        heddle_status st = heddle_handle_acquire(p->h[v], HEDDLE_R, &ptr);
        const double *d = ptr;
        size_t i = 0;

        if (st != HEDDLE_OK)
            return st;
        while (i < p->n && d[i] == p->want[v] * element(i))
            i++;
        st = heddle_handle_release(p->h[v]);
        if (i < p->n) {
            (void)cli_fail(p->b->c, "vector %s is wrong at %zu", heddle_handle_get_name(p->h[v]),
                           i);
            return HEDDLE_ETASK;
        }
    }
    return HEDDLE_OK;
}

/* --- one run: the child -------------------------------------------------- */

static bool is_lost(heddle_ctx *ctx)
{
    struct heddle_class_info c = {.size = sizeof(c)};

    for (unsigned i = 0; heddle_ctx_get_class(ctx, i, &c) == HEDDLE_OK; i++)
        if (strcmp(c.kind, "cuda") == 0)
            return c.is_lost != 0;
    return false;
}

/* Does the sentence have the name of a vector in it? */
static bool names_data(const struct program *p, const char *sentence)
{
    for (unsigned v = 0; v < NVECTORS; v++)
        if (strstr(sentence, heddle_handle_get_name(p->h[v])) != NULL)
            return true;
    return false;
}

static int again(struct program *p, heddle_status st)
{
    struct heddle_error e = {.size = sizeof(e)};

    if (heddle_ctx_error(p->ctx, &e) != HEDDLE_OK || !names_data(p, e.message))
        return cli_fail(p->b->c,
                        "a lost device ends with %s, which names no "
                        "data: %s",
                        heddle_status_text(st), e.message);
    st = reset(p);
    if (st == HEDDLE_OK)
        st = submit_all(p, false);
    if (st == HEDDLE_OK)
        st = check(p);
    return st == HEDDLE_OK ? REPORTED
                           : cuda_fail(p->b, "the cores cannot do it after a loss", p->ctx, st);
}

static int run_program(struct program *p)
{
    heddle_status st = make(p);

    if (st != HEDDLE_OK)
        return cuda_fail(p->b, "the run cannot begin", p->ctx, st);
    st = submit_all(p, true);
    if (st == HEDDLE_OK)
        st = check(p);
    if (st == HEDDLE_ETASK)
        return FAILED;
    if (st != HEDDLE_OK)
        return again(p, st);
    return is_lost(p->ctx) ? RECOVERED : NOT_LOST;
}

static int run_seed(struct cuda_bench *b, bool is_trap, uint64_t seed)
{
    static const unsigned phases[3] = {MAX_TASKS, 64, 8};
    struct heddle_ctx_opts o = cuda_ctx_opts(b);
    struct program *p = calloc(1, sizeof(*p));
    struct heddle_rng rng;
    char fault[64];
    heddle_status st;
    int rc;

    if (p == NULL)
        return cli_fail(b->c, "no memory for the program");
    heddle_rng_seed(&rng, seed);
    p->b = b;
    p->n = cuda_scaled(b, 1u << 16, 4096);
    p->ntasks = (unsigned)cuda_scaled(b, MAX_TASKS, 300);
    draw(p, &rng, is_trap ? (unsigned)(heddle_rng_next(&rng) % (p->ntasks / 2)) : p->ntasks);
    p->phase = phases[heddle_rng_next(&rng) % 3];
    if ((heddle_rng_next(&rng) & 1) != 0)
        p->memory = aligned_alloc(4096, NVECTORS * p->n * sizeof(double));
    snprintf(fault, sizeof(fault), "lose cuda0 nth %" PRIu64,
             heddle_rng_next(&rng) % (p->ntasks / 8) + 1);
    o.faults = is_trap ? NULL : fault;
    o.sched = b->sched != NULL ? b->sched : "eager";
    st = heddle_ctx_create(&o, &p->ctx);
    rc = st == HEDDLE_OK ? run_program(p) : cuda_fail(b, "no context", NULL, st);
    for (unsigned v = 0; v < NVECTORS; v++)
        heddle_handle_unref(p->h[v]);
    (void)heddle_ctx_destroy(p->ctx); /* says once more what was lost */
    free(p->memory);
    free(p);
    return rc;
}

/* "trap:12" or "fault:12". A seed whose device was not lost is followed by
 * another one. */
int bench_cuda_child(struct cuda_bench *b)
{
    enum { TRIES = 8, STRIDE = 1000000 };
    const bool is_trap = strncmp(b->child, "trap:", 5) == 0;
    const char *number = strchr(b->child, ':');
    uint64_t seed = 0;
    int rc = NOT_LOST;

    if (number == NULL || heddle_parse_u64(number + 1, &seed) != HEDDLE_OK)
        return cli_error(b->c,
                         "--child is '%s', but it must be trap:SEED or "
                         "fault:SEED",
                         b->child);
    for (unsigned i = 0; i < TRIES && rc == NOT_LOST; i++)
        rc = run_seed(b, is_trap, seed + i * (uint64_t)STRIDE);
    return rc;
}

/* --- many runs: the parent ----------------------------------------------- */

struct child {
    pid_t pid; /* 0: none */
    uint64_t start;
    uint64_t seed;
};

struct tally {
    unsigned recovered, reported, not_lost, failed, hung;
};

static bool start_child(struct cuda_bench *b, const char *self, const char *kind, struct child *k)
{
    char run[64], scale[32], workers[32];
    char *argv[16] = {(char *)"heddle",
                      (char *)"bench",
                      (char *)"cuda",
                      (char *)"--child",
                      run,
                      (char *)"--scale",
                      scale,
                      (char *)"--workers",
                      workers};
    posix_spawn_file_actions_t files;
    int code;

    snprintf(run, sizeof(run), "%s:%" PRIu64, kind, k->seed);
    snprintf(scale, sizeof(scale), "%" PRIu64, b->scale);
    snprintf(workers, sizeof(workers), "%" PRIu64,
             b->workers > 0 && b->workers < 4 ? b->workers : 4);
    if (posix_spawn_file_actions_init(&files) != 0)
        return false;
    code = posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
    if (code == 0)
        code = posix_spawn(&k->pid, self, &files, NULL, argv, environ);
    posix_spawn_file_actions_destroy(&files);
    k->start = heddle_clock_ns();
    if (code != 0)
        k->pid = 0;
    return code == 0;
}

/* True: it has ended, and is counted. */
static bool look_at(struct cuda_bench *b, const char *kind, struct child *k, struct tally *t)
{
    int status = 0, code = HUNG;
    pid_t got = waitpid(k->pid, &status, WNOHANG);

    if (got == 0 && cuda_ns_since(k->start) < LIMIT_S * 1e9)
        return false;
    if (got == 0) {
        kill(k->pid, SIGKILL);
        (void)waitpid(k->pid, &status, 0);
    } else {
        code = got > 0 && WIFEXITED(status) ? WEXITSTATUS(status) : FAILED;
    }
    k->pid = 0;
    t->recovered += code == RECOVERED;
    t->reported += code == REPORTED;
    t->not_lost += code == NOT_LOST;
    t->hung += code == HUNG;
    if (code == HUNG || (code != RECOVERED && code != REPORTED && code != NOT_LOST)) {
        t->failed += code != HUNG;
        (void)cli_fail(b->c,
                       "%s, repeat it with: heddle bench cuda --child "
                       "%s:%" PRIu64 " --scale %" PRIu64,
                       code == HUNG ? "a run without a device hangs"
                                    : "a run that lost its device failed",
                       kind, k->seed, b->scale);
    }
    return true;
}

/* A kernel that traps makes the system's driver repair the device, and several
 * of them at once can leave it useless for all programs: those run alone. */
static int run_children(struct cuda_bench *b, const char *kind, unsigned n, struct tally *t)
{
    const unsigned at_once = strcmp(kind, "trap") == 0 ? 1 : AT_ONCE;
    const struct timespec nap = {.tv_nsec = 2000000};
    struct child k[AT_ONCE] = {{0}};
    unsigned started = 0, ended = 0;
    bool is_ok = true;
    char self[4096];
    const ssize_t len = readlink("/proc/self/exe", self, sizeof(self) - 1);

    if (len <= 0)
        return cli_fail(b->c, "the tool does not find itself");
    self[len] = '\0';
    while (ended < (is_ok ? n : started)) {
        for (unsigned i = 0; i < at_once; i++) {
            if (k[i].pid != 0 && look_at(b, kind, &k[i], t))
                ended++;
            if (k[i].pid != 0 || started == n || !is_ok)
                continue;
            k[i].seed = started + 1;
            is_ok = start_child(b, self, kind, &k[i]);
            started += is_ok;
        }
        nanosleep(&nap, NULL);
    }
    return is_ok ? 0 : cli_fail(b->c, "no process can be started");
}

static int lost_case(struct cuda_bench *b, const char *kind, const char *name, unsigned n)
{
    struct bench_case k = {.part = "lost",
                           .name = name,
                           .unit = "runs right",
                           .raw_name = "of",
                           .rule = BENCH_RATIO_AT_LEAST,
                           .must = 1,
                           .aim = 1,
                           .n = 1};
    struct tally t = {0};
    int rc = n == 0 ? 0 : run_children(b, kind, n, &t);

    if (n == 0 || rc != 0)
        return rc;
    k.heddle[0] = t.recovered + t.reported;
    k.raw[0] = n - t.not_lost;
    if (t.not_lost == n)
        return cli_fail(b->c, "no run lost its device");
    bench_case_fact(&k, "recovered", t.recovered);
    bench_case_fact(&k, "reported", t.reported);
    bench_case_fact(&k, "not_lost", t.not_lost);
    bench_case_fact(&k, "failed", t.failed);
    bench_case_fact(&k, "hung", t.hung);
    rc = cuda_report(b, &k);
    return rc == 0 && t.failed + t.hung > 0 ? 1 : rc;
}

int bench_cuda_lost(struct cuda_bench *b)
{
    const unsigned n = (unsigned)b->runs;
    const int rc = lost_case(b, "fault", "by a fault", n - n / 2);
    const int trapped = lost_case(b, "trap", "by a kernel", n / 2);

    return rc != 0 ? rc : trapped;
}
