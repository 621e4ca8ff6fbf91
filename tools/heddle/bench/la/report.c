/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bench/la/report: the results of a routine, as text and as one JSON object.
 */
#include <inttypes.h>
#include <math.h>

#include "base/text.h"
#include "bench/la/run.h"
#include "heddle/machine.h"

enum { CELL = 32 };

static const char *peer_text(const struct la_bench *b)
{
    return b->peer == PEER_CUSOLVER ? b->gpu.raw.model
           : b->peer != PEER_SELF   ? b->blas.name
           : b->self.is_other       ? b->row->self_name
                                    : "the same without the limit of memory";
}

static void json_number(struct heddle_json *j, const char *key, bool is_known, double v)
{
    heddle_json_key(j, key);
    if (is_known && isfinite(v))
        heddle_json_double(j, v);
    else
        heddle_json_null(j);
}

static const char *refine_name(const struct la_bench *b)
{
    return b->p.refined.how == HEDDLE_LA_REFINE_GMRES ? "gmres" : "classic";
}

static void json_refined(struct heddle_json *j, const struct la_bench *b)
{
    const struct heddle_la_refined *r = &b->p.refined;

    heddle_json_key_int(j, "iterations", b->iterations);
    heddle_json_key_str(j, "refine", refine_name(b));
    heddle_json_key_str(j, "low", heddle_la_low_name(r->low));
    heddle_json_key_int(j, "tries", r->tries);
    heddle_json_key_bool(j, "fell_back", r->fell_back != 0);
}

static int print_json(struct la_bench *b)
{
    const bool has_peer = b->peer != PEER_NONE;
    struct heddle_machine_info machine = {.size = sizeof(machine)};
    struct heddle_json j;

    if (heddle_machine_query(&machine) != HEDDLE_OK)
        machine.model[0] = '\0';
    heddle_json_init_file(&j, b->c->out);
    heddle_json_object(&j);
    heddle_json_key_str(&j, "name", b->row->name);
    heddle_json_key_str(&j, "version", heddle_version());
    heddle_json_key_str(&j, "machine", machine.model);
    heddle_json_key_str(&j, "compiler", heddle_build.compiler);
    heddle_json_key_uint(&j, "workers", b->ours.nworkers);
    heddle_json_key_str(&j, "sched", b->ours.sched);
    heddle_json_key_bool(&j, "bound", !b->o.no_bind);
    heddle_json_key_str(&j, "type", b->type);
    heddle_json_key_uint(&j, "m", b->p.m);
    heddle_json_key_uint(&j, "n", b->p.n);
    if (b->row->nrhs != 0)
        heddle_json_key_uint(&j, "nrhs", b->p.nrhs);
    heddle_json_key_uint(&j, "nb", b->ours.nb_used);
    heddle_json_key_str(&j, "panel", heddle_la_panel_name(b->p.panel));
    heddle_json_key_str(&j, "devices", b->o.devices);
    if (b->o.device_memory != 0)
        heddle_json_key_uint(&j, "device_memory", b->o.device_memory);
    heddle_json_key_bool(&j, "resident", b->is_resident);
    heddle_json_key_double(&j, "prepare_seconds", b->prepare_ns / 1e9);
    heddle_json_key_uint(&j, "rounds", b->rounds);
    heddle_json_key_double(&j, "seconds", b->t.median / 1e9);
    heddle_json_key_double(&j, "seconds_min", b->t.min / 1e9);
    heddle_json_key_double(&j, "seconds_max", b->t.max / 1e9);
    heddle_json_key_double(&j, "gflops", la_flops(b) / b->t.median);
    heddle_json_key_str(&j, "peer", la_peer_names[b->peer]);
    if (has_peer)
        heddle_json_key_str(&j, "peer_is", peer_text(b));
    json_number(&j, "peer_seconds", has_peer, b->t_peer.median / 1e9);
    json_number(&j, "peer_gflops", has_peer, la_flops(b) / b->t_peer.median);
    json_number(&j, "ratio", has_peer, b->t_ratio.median);
    json_number(&j, "ratio_min", has_peer, b->t_ratio.min);
    json_number(&j, "ratio_max", has_peer, b->t_ratio.max);
    heddle_json_key_str(&j, "peak_of", b->peer == PEER_CUSOLVER ? "gpu" : "cores");
    json_number(&j, "peak_gflops", b->peak > 0, b->peak);
    json_number(&j, "percent_of_peak", b->peak > 0, 100 * la_flops(b) / b->t.median / b->peak);
    json_number(&j, "bound_seconds", b->bound_ns > 0, b->bound_ns / 1e9);
    json_number(&j, "bound_run_seconds", b->bound_ns > 0, b->bound_run / 1e9);
    json_number(&j, "percent_of_bound", b->bound_ns > 0, 100 * b->bound_ns / b->bound_run);
    if (!b->no_bound)
        heddle_json_key_uint(&j, "tasks", b->bound_tasks);
    json_number(&j, "residual", b->check && b->ours.info == 0, b->residual);
    heddle_json_key_double(&j, "residual_limit", b->row->limit);
    heddle_json_key_str(&j, "residual_of", la_check_is_whole(&b->p) ? "matrix" : "vectors");
    if (b->iterations >= 0)
        json_refined(&j, b);
    heddle_json_key_int(&j, "info", b->ours.info);
    return bench_json_end(b->c, &j);
}

static const char *time_text(char cell[CELL], double ns)
{
    struct heddle_text t;

    heddle_text_init(&t, cell, CELL);
    heddle_text_ns(&t, (uint64_t)(ns + 0.5));
    return cell;
}

static void text_refined(const struct la_bench *b)
{
    const struct heddle_la_refined *r = &b->p.refined;

    fprintf(b->c->out, "refined   %d times (%s), factors: %s%s%s\n", b->iterations, refine_name(b),
            heddle_la_low_name(r->low), r->tries > 1 ? " after others had failed" : "",
            r->fell_back != 0 ? ", then in full precision" : "");
}

static void print_text(const struct la_bench *b)
{
    FILE *f = b->c->out;
    char cell[CELL];

    fprintf(f, "%s %s %zu x %zu", b->row->name, b->type, b->p.m, b->p.n);
    if (b->row->nrhs != 0)
        fprintf(f, ", %zu right-hand sides", b->p.nrhs);
    fprintf(f, ", blocks of %zu, %u worker%s, devices %s%s\n", b->ours.nb_used, b->ours.nworkers,
            b->ours.nworkers == 1 ? "" : "s", b->o.devices, b->is_resident ? ", resident" : "");
    fprintf(f, "time      %s, %.1f GFLOP/s\n", time_text(cell, b->t.median),
            la_flops(b) / b->t.median);
    if (b->peer != PEER_NONE)
        fprintf(f,
                "peer      %s, %.1f GFLOP/s: %s\n"
                "ratio     %.3f [%.3f..%.3f]\n",
                time_text(cell, b->t_peer.median), la_flops(b) / b->t_peer.median, peer_text(b),
                b->t_ratio.median, b->t_ratio.min, b->t_ratio.max);
    if (b->peer == PEER_SELF && !b->self.is_other)
        fprintf(f, "rate      %.1f %% of that without the limit\n", 100 / b->t_ratio.median);
    if (b->peak > 0)
        fprintf(f, "speed     %.1f %% of gemm's %.1f GFLOP/s on the %s\n",
                100 * la_flops(b) / b->t.median / b->peak, b->peak,
                b->peer == PEER_CUSOLVER ? "GPU" : "cores");
    if (b->bound_ns > 0)
        fprintf(f,
                "bound     %s for the %u tasks of one more run: it had %.1f %% of "
                "the best possible speed\n",
                time_text(cell, b->bound_ns), b->bound_tasks, 100 * b->bound_ns / b->bound_run);
    if (b->iterations >= 0)
        text_refined(b);
    if (b->check && b->ours.info == 0)
        fprintf(f, "residual  %.3g, at most %g, of %s\n", b->residual, b->row->limit,
                la_check_is_whole(&b->p) ? "the whole matrix" : "four vectors");
    if (b->ours.info != 0)
        fprintf(f, "info      %d\n", b->ours.info);
}

int la_report(struct la_bench *b)
{
    int rc = 0;

    if (b->c->json) {
        rc = print_json(b);
        if (rc != 0)
            return rc;
    } else {
        print_text(b);
    }
    if (b->ours.info != 0)
        return cli_fail(b->c, "%s ended with info %d", b->row->name, b->ours.info);
    if (b->check && !(b->residual <= b->row->limit))
        return cli_fail(b->c, "the result is wrong: the residual is %g", b->residual);
    return 0;
}
