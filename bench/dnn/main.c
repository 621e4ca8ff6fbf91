/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bench dnn: each kernel of some networks, against oneDNN.
 *
 *     bench/dnn [--network NAME] [--case NUMBER] [--threads N] [--isa NAME] [--reps N] [--json]
 *
 * Runs of the two sides alternate; a time is the median over them. It is CPU time of the thread (of
 * the slowest thread, with several), so other programs on the machine count only by what
 * they do to the caches. Peak: multiply-adds in registers, measured in between in the same way.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "bench_dnn.h"

#define CONV(network, count, ci, h, w, co, k, s, p, g, act, res)                                   \
    {#network, CASE_CONV, count, {ci, h, w, co, k, s, p, g, res}, DNN_##act},
#define MATMUL(network, count, m, n, k, act) {#network, CASE_MATMUL, count, {m, n, k}, DNN_##act},
#define ATTENTION(network, count, h, q, kv, d, causal)                                             \
    {#network, CASE_ATTENTION, count, {h, q, kv, d, causal}, DNN_COPY},
#define NORM(network, count, rows, n) {#network, CASE_NORM, count, {rows, n}, DNN_COPY},
#define MAP(network, count, n, act)   {#network, CASE_MAP, count, {n}, DNN_##act},
static const struct bench_case cases[] = {
#include "cases.def"
};

enum { NCASES = sizeof(cases) / sizeof(cases[0]), MOST_REPS = 1000, MOST_THREADS = 64 };

static struct {
    const char *network, *isa;
    long only, threads, reps;
    bool is_json;
} opts = {.only = -1, .threads = 1, .reps = 15};

/* --- time --------------------------------------------------------------------- */

struct job {
    const struct runner *r;
    size_t part;
    unsigned inner;
    double ns;
};

static void *work(void *arg)
{
    struct job *j = arg;
    const uint64_t t0 = heddle_clock_thread_ns();

    for (unsigned i = 0; i < j->inner; i++)
        j->r->run(j->r->self, j->part, (size_t)opts.threads);
    j->ns = (double)(heddle_clock_thread_ns() - t0) / j->inner;
    return NULL;
}

/* Nanoseconds of a run. */
static double once(const struct runner *r, long threads, unsigned inner)
{
    struct job job[MOST_THREADS];
    pthread_t thread[MOST_THREADS];
    double ns = 0;

    for (long i = 0; i < threads; i++)
        job[i] = (struct job){r, (size_t)i, inner, 0};
    for (long i = 1; i < threads; i++)
        if (pthread_create(&thread[i], NULL, work, &job[i]) != 0)
            exit(1);
    (void)work(&job[0]);
    for (long i = 1; i < threads; i++)
        (void)pthread_join(thread[i], NULL);
    for (long i = 0; i < threads; i++)
        ns = job[i].ns > ns ? job[i].ns : ns;
    return ns;
}

static int order(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

struct result {
    double ours, spread, peer; /* ns; spread: quartiles over the median; peer 0: none */
    double flops, bytes;
};

static double median(double *v, long n)
{
    qsort(v, (size_t)n, sizeof(*v), order);
    return v[n / 2];
}

static struct result measure(const struct bench_case *c)
{
    static double ours[MOST_REPS], peer[MOST_REPS];
    struct runner a, b;
    const bool has_a = bench_ours(c, opts.isa, &a);
    const bool has_b = opts.threads == 1 && bench_peer(c, &b);
    struct result r = {.flops = a.flops, .bytes = a.bytes};
    const double first = (once(&a, opts.threads, 1), once(&a, opts.threads, 1));
    const unsigned inner = first > 2e5 ? 1 : (unsigned)(2e5 / (first + 100)) + 1;

    if (!has_a)
        exit(1);
    for (long i = 0; i < opts.reps; i++) {
        ours[i] = once(&a, opts.threads, inner);
        if (has_b)
            peer[i] = once(&b, 1, inner);
    }
    r.ours = median(ours, opts.reps);
    r.spread = (ours[opts.reps * 3 / 4] - ours[opts.reps / 4]) / r.ours;
    r.peer = has_b ? median(peer, opts.reps) : 0;
    a.close(a.self);
    if (has_b)
        b.close(b.self);
    return r;
}

/* --- output ------------------------------------------------------------------- */

static void name_of(const struct bench_case *c, char *s, size_t n)
{
    const size_t *v = c->v;

    switch (c->kind) {
    case CASE_CONV:
        snprintf(s, n, "conv %zux%zu %zu>%zu %zux%zu/%zu%s%s", v[1], v[2], v[0], v[3], v[4], v[4],
                 v[5], v[7] > 1 ? " depthwise" : "", v[8] ? " +" : "");
        break;
    case CASE_MATMUL: snprintf(s, n, "matmul %zux%zux%zu", v[0], v[1], v[2]); break;
    case CASE_ATTENTION:
        snprintf(s, n, "attention %zux%zux%zux%zu%s", v[0], v[1], v[2], v[3],
                 v[4] ? " causal" : "");
        break;
    case CASE_NORM: snprintf(s, n, "norm %zux%zu", v[0], v[1]); break;
    case CASE_MAP: snprintf(s, n, "function %d of %zu", (int)c->act, v[0]); break;
    }
}

static void print(size_t i, const struct bench_case *c, const struct result *r)
{
    char name[96];

    name_of(c, name, sizeof(name));
    if (opts.is_json)
        printf("{\"case\":%zu,\"network\":\"%s\",\"count\":%u,\"name\":\"%s\",\"us\":%.3f,"
               "\"spread\":%.3f,\"peer_us\":%.3f,\"gflops\":%.1f}\n",
               i, c->network, c->count, name, r->ours * 1e-3, r->spread, r->peer * 1e-3,
               r->flops / r->ours);
    else
        printf("%3zu %-12s %3u x %-34s %10.1f us +-%4.0f %% %7.1f GF/s %6.1f GB/s  peer %10.1f "
               "us  ratio %.2f\n",
               i, c->network, c->count, name, r->ours * 1e-3, r->spread * 50, r->flops / r->ours,
               r->bytes / r->ours, r->peer * 1e-3, r->peer > 0 ? r->ours / r->peer : 0);
    fflush(stdout);
}

static bool parse(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        const bool has_value = i + 1 < argc;

        if (strcmp(argv[i], "--json") == 0)
            opts.is_json = true;
        else if (has_value && strcmp(argv[i], "--network") == 0)
            opts.network = argv[++i];
        else if (has_value && strcmp(argv[i], "--isa") == 0)
            opts.isa = argv[++i];
        else if (has_value && strcmp(argv[i], "--case") == 0)
            opts.only = strtol(argv[++i], NULL, 10);
        else if (has_value && strcmp(argv[i], "--threads") == 0)
            opts.threads = strtol(argv[++i], NULL, 10);
        else if (has_value && strcmp(argv[i], "--reps") == 0)
            opts.reps = strtol(argv[++i], NULL, 10);
        else
            return false;
    }
    return opts.threads >= 1 && opts.threads <= MOST_THREADS && opts.reps >= 1 &&
           opts.reps <= MOST_REPS;
}

int main(int argc, char **argv)
{
    double ours = 0, peer = 0;

    if (!parse(argc, argv)) {
        fprintf(stderr, "usage: dnn [--network NAME] [--case NUMBER] [--threads N] [--isa NAME] "
                        "[--reps N] [--json]\n");
        return 2;
    }
    if (!opts.is_json)
        printf("instruction set %s, peer %s\n",
               opts.isa != NULL ? opts.isa : heddle_dnn_isa_name(0),
               bench_peer_name() != NULL ? bench_peer_name() : "none");
    for (size_t i = 0; i < NCASES; i++) {
        const struct bench_case *c = &cases[i];
        struct result r;

        if ((opts.only >= 0 && (size_t)opts.only != i) ||
            (opts.network != NULL && strcmp(opts.network, c->network) != 0))
            continue;
        r = measure(c);
        print(i, c, &r);
        ours += r.peer > 0 ? r.ours * c->count : 0;
        peer += r.peer * c->count;
    }
    if (!opts.is_json && peer > 0)
        printf("all that the peer has, times count: ours %.2f ms, peer %.2f ms, ratio %.2f\n",
               ours * 1e-6, peer * 1e-6, ours / peer);
    return 0;
}
