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

void cuda_fact(struct cuda_case *k, const char *name, double value)
{
    for (size_t i = 0; i + 1 < sizeof(k->fact) / sizeof(k->fact[0]); i++) {
        if (k->fact[i].name != NULL)
            continue;
        k->fact[i].name = name;
        k->fact[i].value = value;
        return;
    }
}

static bool meets(const struct cuda_case *k, double value, double ratio, double limit)
{
    switch (k->rule) {
    case CUDA_RATIO_AT_MOST: return ratio <= limit;
    case CUDA_RATIO_AT_LEAST: return ratio >= limit;
    case CUDA_VALUE_AT_MOST: return value <= limit;
    case CUDA_NO_BAR: break;
    }
    return true;
}

static void print_text(struct cuda_bench *b, const struct cuda_case *k,
                       const struct bench_stat v[3], bool is_met, bool is_aimed)
{
    FILE *f = b->c->out;

    fprintf(f, "%-10s %-22s %10.4g %s, %s %.4g, ratio %.3f [%.3f..%.3f]", k->part, k->name,
            v[0].median, k->unit, k->raw_name != NULL ? k->raw_name : "raw", v[1].median,
            v[2].median, v[2].min, v[2].max);
    if (k->rule != CUDA_NO_BAR)
        fprintf(f, "; must be %s %g: %s, aim %g: %s",
                k->rule == CUDA_RATIO_AT_LEAST ? ">=" : "<=", k->must, is_met ? "met" : "MISSED",
                k->aim, is_aimed ? "met" : "missed");
    fputc('\n', f);
    for (size_t i = 0; k->fact[i].name != NULL; i++)
        fprintf(f, "%s%s %.4g%s", i == 0 ? "                      " : ", ", k->fact[i].name,
                k->fact[i].value, k->fact[i + 1].name == NULL ? "\n" : "");
    fflush(f);
}

static int print_json(struct cuda_bench *b, const struct cuda_case *k, const struct bench_stat v[3],
                      bool is_met, bool is_aimed)
{
    struct heddle_json j;

    heddle_json_init_file(&j, b->c->out);
    heddle_json_object(&j);
    heddle_json_key_str(&j, "name", "cuda");
    heddle_json_key_str(&j, "version", heddle_version());
    heddle_json_key_str(&j, "machine", b->raw.model);
    heddle_json_key_str(&j, "part", k->part);
    heddle_json_key_str(&j, "case", k->name);
    heddle_json_key_str(&j, "unit", k->unit);
    heddle_json_key_uint(&j, "rounds", k->n);
    heddle_json_key_double(&j, "heddle", v[0].median);
    heddle_json_key_double(&j, "heddle_min", v[0].min);
    heddle_json_key_double(&j, "heddle_max", v[0].max);
    heddle_json_key_str(&j, "against", k->raw_name != NULL ? k->raw_name : "raw");
    heddle_json_key_double(&j, "raw", v[1].median);
    heddle_json_key_double(&j, "raw_min", v[1].min);
    heddle_json_key_double(&j, "raw_max", v[1].max);
    heddle_json_key_double(&j, "ratio", v[2].median);
    heddle_json_key_double(&j, "ratio_min", v[2].min);
    heddle_json_key_double(&j, "ratio_max", v[2].max);
    if (k->rule != CUDA_NO_BAR) {
        heddle_json_key_str(&j, "rule",
                            k->rule == CUDA_RATIO_AT_MOST    ? "ratio <="
                            : k->rule == CUDA_RATIO_AT_LEAST ? "ratio >="
                                                             : "heddle <=");
        heddle_json_key_double(&j, "must", k->must);
        heddle_json_key_double(&j, "aim", k->aim);
        heddle_json_key_bool(&j, "met", is_met);
        heddle_json_key_bool(&j, "aim_met", is_aimed);
    }
    for (size_t i = 0; k->fact[i].name != NULL; i++)
        heddle_json_key_double(&j, k->fact[i].name, k->fact[i].value);
    return bench_json_end(b->c, &j);
}

int cuda_report(struct cuda_bench *b, struct cuda_case *k)
{
    double ratio[CUDA_MAX_ROUNDS];
    struct bench_stat v[3];
    bool is_met, is_aimed;

    for (size_t i = 0; i < k->n; i++)
        ratio[i] = k->heddle[i] / k->raw[i];
    v[0] = bench_stat(k->heddle, k->n);
    v[1] = bench_stat(k->raw, k->n);
    v[2] = bench_stat(ratio, k->n);
    is_met = meets(k, v[0].median, v[2].median, k->must);
    is_aimed = meets(k, v[0].median, v[2].median, k->aim);
    b->ncases++;
    b->nbars += k->rule != CUDA_NO_BAR;
    b->nmet += k->rule != CUDA_NO_BAR && is_met;
    if (b->c->json)
        return print_json(b, k, v, is_met, is_aimed);
    print_text(b, k, v, is_met, is_aimed);
    return 0;
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

/* "launch,graph" as a mask; all bits when there is no list. */
static int parse_only(struct cuda_bench *b, unsigned *mask_out)
{
    const char *p = b->only;

    *mask_out = p == NULL ? ~0u : 0;
    while (p != NULL) {
        const size_t len = strcspn(p, ",");
        unsigned i = 0;

        while (i < NPARTS && (strlen(parts[i].name) != len || strncmp(parts[i].name, p, len) != 0))
            i++;
        if (i == NPARTS)
            return cli_error(b->c,
                             "--only is '%s', but it must be some of launch, "
                             "graph, stream, gemm, outofcore, mixed, simulate "
                             "and lost, with commas between them",
                             b->only);
        *mask_out |= 1u << i;
        p = p[len] == ',' ? p + len + 1 : NULL;
    }
    return 0;
}

static int print_summary(struct cuda_bench *b, double seconds)
{
    struct heddle_json j;

    if (!b->c->json) {
        fprintf(b->c->out, "%u of %u bars are met, on %s, in %.0f s\n", b->nmet, b->nbars,
                b->raw.model, seconds);
        return 0;
    }
    heddle_json_init_file(&j, b->c->out);
    heddle_json_object(&j);
    heddle_json_key_str(&j, "name", "cuda summary");
    heddle_json_key_str(&j, "machine", b->raw.model);
    heddle_json_key_uint(&j, "cases", b->ncases);
    heddle_json_key_uint(&j, "bars", b->nbars);
    heddle_json_key_uint(&j, "met", b->nmet);
    heddle_json_key_double(&j, "seconds", seconds);
    return bench_json_end(b->c, &j);
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
    printed = print_summary(b, cuda_ns_since(start) / 1e9);
    return rc == 0 ? printed : rc;
}

static int cuda_run(struct cli *c, int argc, char **argv)
{
    struct cuda_bench b = {.c = c, .scale = 1};
    const struct cli_opt opts[] = {{"--only", CLI_STRING, &b.only, 0, 0},
                                   {"--quick", CLI_FLAG, &b.is_quick, 0, 0},
                                   {"--rounds", CLI_UINT, &b.rounds, 1, CUDA_MAX_ROUNDS},
                                   {"--workers", CLI_UINT, &b.workers, 1, 4096},
                                   {"--sched", CLI_STRING, &b.sched, 0, 0},
                                   {"--scale", CLI_UINT, &b.scale, 1, 256},
                                   {"--runs", CLI_UINT, &b.runs, 1, 10000},
                                   {"--child", CLI_STRING, &b.child, 0, 0},
                                   {0}};
    unsigned mask = 0;
    int rc = cli_parse(c, "bench cuda", argc, argv, opts, NULL);

    if (rc == 0)
        rc = parse_only(&b, &mask);
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
