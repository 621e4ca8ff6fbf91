/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bench/cuda: the GPU under Heddle against the raw CUDA program.
 *
 * Parts      see bench/cuda/cuda.h; each has bars, and whether they are met is printed
 *            with the number. A bar that is missed is no failure of the command:
 *            a wrong result, a hang and an error are.
 * Rounds     a ratio is of two numbers of the same round; the median and the
 *            extremes over the rounds are printed.
 */
#include "bench/cuda/cuda.h"

#include <stdlib.h>
#include <string.h>

#include "sim/opts.h"

/* --- contexts ------------------------------------------------------------ */

static void keep_sentence(void *user, enum heddle_severity severity, const char *text)
{
    struct cuda_bench *b = user;

    if (severity == HEDDLE_ERROR)
        snprintf(b->why, sizeof(b->why), "%s", text);
}

struct heddle_ctx_opts cuda_ctx_opts(struct cuda_bench *b)
{
    b->why[0] = '\0';
    return (struct heddle_ctx_opts){.size = sizeof(struct heddle_ctx_opts),
                                    .nworkers = (unsigned)b->workers,
                                    .devices = "cuda0",
                                    .model_dir = "",
                                    .message = keep_sentence,
                                    .message_user = b,
                                    .ignore_env = true};
}

size_t cuda_scaled(const struct cuda_bench *b, size_t n, size_t least)
{
    const size_t v = n / (size_t)b->scale;

    return v > least ? v : least;
}

heddle_status cuda_void_copies(heddle_handle *const *h, size_t n)
{
    heddle_status st = HEDDLE_OK;

    for (size_t i = 0; i < n && st == HEDDLE_OK; i++) {
        st = heddle_handle_acquire(h[i], HEDDLE_W, NULL);
        if (st == HEDDLE_OK)
            st = heddle_handle_release(h[i]);
    }
    return st;
}

void cuda_drop(heddle_handle **h, size_t n)
{
    for (size_t i = 0; h != NULL && i < n; i++)
        heddle_handle_unref(h[i]);
    free(h);
}

/* --- sentences ----------------------------------------------------------- */

int cuda_fail(struct cuda_bench *b, const char *what, heddle_ctx *ctx, heddle_status st)
{
    struct heddle_error e = {.size = sizeof(e)};

    if (ctx != NULL && heddle_ctx_error(ctx, &e) == HEDDLE_OK && e.message[0] != '\0')
        return cli_fail(b->c, "%s: %s", what, e.message);
    return cli_fail(b->c, "%s: %s", what, b->why[0] != '\0' ? b->why : heddle_status_text(st));
}

int cuda_raw_fail(struct cuda_bench *b, const char *what, int code)
{
    return cli_fail(b->c, "%s without Heddle: %s", what, cuda_raw_text(&b->raw, code));
}

/* --- results ------------------------------------------------------------- */

int cuda_report(struct cuda_bench *b, struct bench_case *k)
{
    return bench_case_report(b->c, "cuda", b->raw.model, k, &b->tally);
}

/* --- the command --------------------------------------------------------- */

static const struct {
    const char *name;
    int (*run)(struct cuda_bench *b);
} parts[] = {{"launch", bench_cuda_launch},       {"graph", bench_cuda_graph},
             {"stream", bench_cuda_stream},       {"gemm", bench_cuda_gemm},
             {"outofcore", bench_cuda_outofcore}, {"mixed", bench_cuda_mixed},
             {"simulate", bench_cuda_simulate},   {"lost", bench_cuda_lost}};

enum { NPARTS = sizeof(parts) / sizeof(parts[0]) };

static const char *part_name(size_t i)
{
    return parts[i].name;
}

static int run_parts(struct cuda_bench *b, unsigned mask)
{
    const uint64_t start = heddle_clock_ns();
    int rc = 0, printed;

    for (unsigned i = 0; i < NPARTS; i++) {
        int one = 0;

        if ((mask >> i & 1) != 0)
            one = parts[i].run(b);
        rc = rc == 0 ? one : rc; /* the others may still tell something */
    }
    printed = bench_tally_report(b->c, "cuda", b->raw.model, &b->tally, cuda_ns_since(start) / 1e9);
    return rc == 0 ? printed : rc;
}

static int cuda_run(struct cli *c, int argc, char **argv)
{
    struct cuda_bench b = {.c = c, .scale = 1};
    const struct cli_opt opts[] = {{"--only", CLI_STRING, &b.only, 0, 0},
                                   {"--quick", CLI_FLAG, &b.is_quick, 0, 0},
                                   {"--rounds", CLI_UINT, &b.rounds, 1, BENCH_CASE_ROUNDS},
                                   {"--workers", CLI_UINT, &b.workers, 1, 4096},
                                   {"--sched", CLI_STRING, &b.sched, 0, 0},
                                   {"--scale", CLI_UINT, &b.scale, 1, 256},
                                   {"--runs", CLI_UINT, &b.runs, 1, 10000},
                                   {"--child", CLI_STRING, &b.child, 0, 0},
                                   {0}};
    unsigned mask = 0;
    int rc = cli_parse(c, "bench cuda", argc, argv, opts, NULL);

    if (rc == 0)
        rc = bench_parse_only(c, b.only, part_name, NPARTS, &mask);
    if (rc == 0 && (b.scale & (b.scale - 1)) != 0)
        rc = cli_error(c, "--scale must be a power of two");
    if (rc == 0)
        rc = sim_check_policy(c, b.sched);
    if (rc != 0)
        return rc;
    if (b.rounds == 0)
        b.rounds = b.is_quick ? 5 : 7;
    if (b.runs == 0)
        b.runs = b.is_quick ? 10 : 50;
    if (b.child != NULL)
        return bench_cuda_child(&b);
    if (cuda_raw_open(&b.raw))
        rc = run_parts(&b, mask);
    else
        rc = cli_fail(c, "%s", b.raw.why);
    cuda_raw_close(&b.raw);
    return rc;
}

const struct heddle_cmd heddle_bench_cuda = {
    .name = "cuda",
    .help = "a GPU under Heddle against the raw CUDA program",
    .usage = "heddle bench cuda [--only PART,PART,...] [--quick] [--rounds R]\n"
             "    [--workers W] [--sched S] [--scale D] [--runs N] [--json]\n"
             "\n"
             "  --only     of launch (empty tasks), graph (recorded regions), "
             "stream\n"
             "             (data through the device), gemm (in device memory),\n"
             "             outofcore (data three times the memory), mixed (cores "
             "and\n"
             "             GPU against a bound), simulate (virtual time against\n"
             "             real), lost (the device goes away); default: all\n"
             "  --quick    smaller and fewer (default: about a minute)\n"
             "  --rounds   of each comparison (default 7, quick 5)\n"
             "  --workers  cores that run tasks (default: all)\n"
             "  --sched    of mixed and simulate (default: the best for devices)\n"
             "  --scale    sizes are divided by D, a power of two: to try it, not "
             "to\n"
             "             measure\n"
             "  --runs     that lose the device (default 50, quick 10)\n"
             "Heddle and the raw program alternate. Bars are printed with the "
             "ratio.\n",
    .run = cuda_run,
};
