/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * info: the machine as Heddle sees it, and what this Heddle is.
 *
 * Purpose    the first thing to ask for when something is slow or strange.
 * Output     lines for people; with --json one object, or with --env --json
 *            one object per environment variable.
 * How        workers, scheduler, devices and memories are asked of a context that
 *            is started with the defaults, so that the answer includes the
 *            environment. Devices that take long to find are looked for only
 *            when they are asked for. Links are what the models have measured.
 *            GPUs are shown whether the context uses them or not; when there is
 *            none, the reason.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/text.h"
#include "cmd/cmd.h"
#include "cmd/info_energy.h"
#include "heddle/heddle.h"
#include "heddle/machine.h"
#include "heddle/perf.h"

#define DIR_BYTES 4096
#define CELL      32

enum { MAX_CLASSES = 64, MAX_LINKS = 64, MAX_GPUS = 16, LINK_NAME = 64 };

struct info_link {
    char from[LINK_NAME], to[LINK_NAME];
    double bytes_per_s, latency_ns, confidence;
    uint64_t copies;
};

struct info {
    struct heddle_machine_info machine;
    char model_dir[DIR_BYTES]; /* "": there is none */
    unsigned nworkers;         /* 0: no context could be started, see why */
    char sched[64];
    char why[320];
    const char *devices; /* asked for; NULL: the default */
    struct heddle_class_info cls[MAX_CLASSES];
    struct heddle_memory_info mem[MAX_CLASSES];
    struct info_link link[MAX_LINKS];
    struct heddle_gpu_info gpu[MAX_GPUS];
    char no_gpu[240]; /* why there is none */
    unsigned nclasses, nmemories, nlinks, ngpus;
};

/* --- gather -------------------------------------------------------------- */

static void keep_sentence(void *user, enum heddle_severity severity, const char *text)
{
    struct info *i = user;

    if (severity == HEDDLE_ERROR)
        snprintf(i->why, sizeof(i->why), "%s", text);
}

static void ask_devices(struct info *i, heddle_ctx *ctx)
{
    for (; i->nclasses < MAX_CLASSES; i->nclasses++) {
        i->cls[i->nclasses].size = sizeof(i->cls[0]);
        if (heddle_ctx_get_class(ctx, i->nclasses, &i->cls[i->nclasses]) != HEDDLE_OK)
            break;
    }
    for (; i->nmemories < MAX_CLASSES; i->nmemories++) {
        i->mem[i->nmemories].size = sizeof(i->mem[0]);
        if (heddle_ctx_get_memory(ctx, i->nmemories, &i->mem[i->nmemories]) != HEDDLE_OK)
            break;
    }
}

static heddle_status keep_link(void *user, const struct heddle_perf_link_info *l)
{
    struct info *i = user;
    struct info_link *out = &i->link[i->nlinks];

    if (i->nlinks == MAX_LINKS)
        return HEDDLE_OK;
    snprintf(out->from, sizeof(out->from), "%s", l->from);
    snprintf(out->to, sizeof(out->to), "%s", l->to);
    out->bytes_per_s = l->bytes_per_s;
    out->latency_ns = l->latency_ns;
    out->confidence = l->confidence;
    out->copies = l->count;
    i->nlinks++;
    return HEDDLE_OK;
}

/* Models that cannot be read are not there. */
static void ask_links(struct info *i)
{
    heddle_perf *perf = NULL;

    if (i->model_dir[0] == '\0' || heddle_perf_create(NULL, i->model_dir, &perf) != HEDDLE_OK)
        return;
    if (heddle_perf_each_link(perf, keep_link, i) != HEDDLE_OK)
        i->nlinks = 0;
    heddle_perf_destroy(perf);
}

static void ask_gpus(struct info *i)
{
    struct heddle_gpu_info g = {.size = sizeof(g)};
    heddle_status st = HEDDLE_OK;

    while (i->ngpus < MAX_GPUS && st == HEDDLE_OK) {
        st = heddle_gpu_query(i->ngpus, &g);
        if (st == HEDDLE_OK)
            i->gpu[i->ngpus++] = g;
    }
    if (i->ngpus == 0)
        snprintf(i->no_gpu, sizeof(i->no_gpu), "%s",
                 st == HEDDLE_ENOENT && g.why[0] != '\0' ? g.why : heddle_status_text(st));
}

static void ask_context(struct info *i)
{
    /* Without a log: HEDDLE_LOG_FILE may name one that is to be kept. */
    const struct heddle_ctx_opts opts = {.size = sizeof(opts),
                                         .devices = i->devices,
                                         .log = HEDDLE_OFF,
                                         .model_dir = "",
                                         .message = keep_sentence,
                                         .message_user = i};
    struct heddle_ctx_stats stats = {.size = sizeof(stats)};
    heddle_ctx *ctx = NULL;
    heddle_status st = heddle_ctx_create(&opts, &ctx);

    if (st == HEDDLE_OK)
        st = heddle_ctx_get_stats(ctx, &stats);
    if (st == HEDDLE_OK) {
        i->nworkers = stats.nworkers;
        snprintf(i->sched, sizeof(i->sched), "%s", stats.sched);
        ask_devices(i, ctx);
    } else if (i->why[0] == '\0') {
        snprintf(i->why, sizeof(i->why), "%s", heddle_status_text(st));
    }
    heddle_ctx_destroy(ctx);
}

static heddle_status gather(struct info *i)
{
    const char *dir = getenv("HEDDLE_MODEL_DIR");

    i->machine.size = sizeof(i->machine);
    if (dir != NULL)
        snprintf(i->model_dir, sizeof(i->model_dir), "%s", dir);
    else
        heddle_env_cache_dir(i->model_dir, sizeof(i->model_dir));
    ask_context(i);
    ask_gpus(i);
    ask_links(i);
    return heddle_machine_query(&i->machine);
}

/* --- the environment ----------------------------------------------------- */

static void env_json_object(struct heddle_json *j, const struct heddle_env_var *v)
{
    heddle_json_object(j);
    heddle_json_key_str(j, "name", v->name);
    heddle_json_key_str(j, "kind", v->value);
    heddle_json_key_str(j, "help", v->help);
    heddle_json_key_str(j, "set", getenv(v->name));
    heddle_json_end(j);
}

static heddle_status env_json(FILE *out)
{
    struct heddle_json j;

    heddle_json_init_file(&j, out);
    for (const struct heddle_env_var *v = heddle_env_list(); v->name != NULL; v++) {
        env_json_object(&j, v);
        heddle_json_line(&j);
    }
    return heddle_json_finish(&j);
}

static void env_table(FILE *out)
{
    const struct heddle_env_var *const list = heddle_env_list();
    int name = 8, kind = 5;

    for (const struct heddle_env_var *v = list; v->name != NULL; v++) {
        name = (int)strlen(v->name) > name ? (int)strlen(v->name) : name;
        kind = (int)strlen(v->value) > kind ? (int)strlen(v->value) : kind;
    }
    fprintf(out, "%-*s  %-*s  %s\n", name, "variable", kind, "value", "meaning");
    for (const struct heddle_env_var *v = list; v->name != NULL; v++) {
        const char *now = getenv(v->name);

        fprintf(out, "%-*s  %-*s  %s\n", name, v->name, kind, v->value, v->help);
        if (now != NULL)
            fprintf(out, "%-*s  %-*s  (it is '%s')\n", name, "", kind, "", now);
    }
}

/* --- JSON ---------------------------------------------------------------- */

static void json_machine(struct heddle_json *j, const struct heddle_machine_info *m)
{
    heddle_json_key(j, "machine");
    heddle_json_object(j);
    heddle_json_key_str(j, "model", m->model);
    heddle_json_key_str(j, "source", m->source);
    heddle_json_key_uint(j, "cpus", m->cpus);
    heddle_json_key_uint(j, "cpus_online", m->cpus_online);
    heddle_json_key_uint(j, "cores", m->cores);
    heddle_json_key_uint(j, "packages", m->packages);
    heddle_json_key_uint(j, "numa_nodes", m->numa_nodes);
    heddle_json_key_double(j, "cpu_quota", m->cpu_quota);
    heddle_json_key_uint(j, "l1_bytes", m->l1_bytes);
    heddle_json_key_uint(j, "l2_bytes", m->l2_bytes);
    heddle_json_key_uint(j, "l2_caches", m->l2_caches);
    heddle_json_key_uint(j, "l3_bytes", m->l3_bytes);
    heddle_json_key_uint(j, "l3_caches", m->l3_caches);
    heddle_json_key_uint(j, "memory_total", m->memory_total);
    heddle_json_key_uint(j, "memory_available", m->memory_available);
    heddle_json_key_uint(j, "page_bytes", m->page_bytes);
    heddle_json_key_uint(j, "huge_page_bytes", m->huge_page_bytes);
    heddle_json_end(j);
}

static void json_lists(struct heddle_json *j)
{
    struct heddle_sched_info s;

    heddle_json_key(j, "schedulers");
    heddle_json_array(j);
    for (unsigned i = 0; heddle_sched_get_info(i, &s) == HEDDLE_OK; i++) {
        heddle_json_object(j);
        heddle_json_key_str(j, "name", s.name);
        heddle_json_key_str(j, "help", s.help);
        heddle_json_end(j);
    }
    heddle_json_end(j);
    heddle_json_key(j, "environment");
    heddle_json_array(j);
    for (const struct heddle_env_var *v = heddle_env_list(); v->name != NULL; v++)
        env_json_object(j, v);
    heddle_json_end(j);
}

static void json_memory(struct heddle_json *j, const struct heddle_memory_info *m)
{
    heddle_json_object(j);
    heddle_json_key_str(j, "name", m->name);
    heddle_json_key(j, "budget");
    if (m->budget == UINT64_MAX)
        heddle_json_null(j);
    else
        heddle_json_uint(j, m->budget);
    heddle_json_end(j);
}

static void json_gpus(struct heddle_json *j, const struct info *i)
{
    heddle_json_key(j, "gpus");
    heddle_json_array(j);
    for (unsigned k = 0; k < i->ngpus; k++) {
        const struct heddle_gpu_info *g = &i->gpu[k];

        heddle_json_object(j);
        heddle_json_key_str(j, "name", g->name);
        heddle_json_key_str(j, "model", g->model);
        heddle_json_key_uint(j, "memory_total", g->memory_total);
        heddle_json_key_uint(j, "memory_free", g->memory_free);
        heddle_json_key(j, "watts");
        if (g->watts < 0)
            heddle_json_null(j);
        else
            heddle_json_double(j, g->watts);
        heddle_json_key_str(j, "problem", g->why[0] != '\0' ? g->why : NULL);
        heddle_json_end(j);
    }
    heddle_json_end(j);
    heddle_json_key_str(j, "no_gpu", i->ngpus == 0 ? i->no_gpu : NULL);
}

static void json_devices(struct heddle_json *j, const struct info *i)
{
    heddle_json_key(j, "devices");
    heddle_json_array(j);
    for (unsigned k = 0; k < i->nclasses; k++) {
        heddle_json_object(j);
        heddle_json_key_str(j, "name", i->cls[k].name);
        heddle_json_key_str(j, "kind", i->cls[k].kind);
        heddle_json_key_str(j, "model", i->cls[k].model);
        heddle_json_key_uint(j, "workers", i->cls[k].nworkers);
        heddle_json_key_uint(j, "memory", i->cls[k].memory);
        heddle_json_end(j);
    }
    heddle_json_end(j);
    heddle_json_key(j, "memories");
    heddle_json_array(j);
    for (unsigned k = 0; k < i->nmemories; k++)
        json_memory(j, &i->mem[k]);
    heddle_json_end(j);
    heddle_json_key(j, "links");
    heddle_json_array(j);
    for (unsigned k = 0; k < i->nlinks; k++) {
        heddle_json_object(j);
        heddle_json_key_str(j, "from", i->link[k].from);
        heddle_json_key_str(j, "to", i->link[k].to);
        heddle_json_key_double(j, "bytes_per_s", i->link[k].bytes_per_s);
        heddle_json_key_double(j, "latency_ns", i->link[k].latency_ns);
        heddle_json_key_double(j, "confidence", i->link[k].confidence);
        heddle_json_key_uint(j, "copies", i->link[k].copies);
        heddle_json_end(j);
    }
    heddle_json_end(j);
}

static heddle_status info_json(FILE *out, const struct info *i)
{
    struct heddle_json j;

    heddle_json_init_file(&j, out);
    heddle_json_object(&j);
    heddle_json_key_str(&j, "name", "heddle");
    heddle_json_key_str(&j, "version", heddle_version());
    heddle_json_key_str(&j, "compiler", heddle_build.compiler);
    heddle_json_key(&j, "built_with");
    heddle_json_object(&j);
    heddle_json_key_bool(&j, "hwloc", heddle_build.has_hwloc);
    heddle_json_key_bool(&j, "blas", heddle_build.has_blas);
    heddle_json_key_bool(&j, "cuda", heddle_build.has_cuda);
    heddle_json_end(&j);
    json_machine(&j, &i->machine);
    heddle_json_key_uint(&j, "workers", i->nworkers);
    heddle_json_key_str(&j, "scheduler", i->nworkers > 0 ? i->sched : NULL);
    heddle_json_key_str(&j, "problem", i->nworkers > 0 ? NULL : i->why);
    heddle_json_key_str(&j, "model_dir", i->model_dir[0] != '\0' ? i->model_dir : NULL);
    json_gpus(&j, i);
    info_energy_json(&j);
    json_devices(&j, i);
    json_lists(&j);
    heddle_json_end(&j);
    heddle_json_line(&j);
    return heddle_json_finish(&j);
}

/* --- lines --------------------------------------------------------------- */

static const char *bytes_text(char cell[CELL], uint64_t bytes)
{
    struct heddle_text t;

    heddle_text_init(&t, cell, CELL);
    if (bytes == 0)
        heddle_text_str(&t, "unknown");
    else
        heddle_text_bytes(&t, bytes);
    return cell;
}

static const char *plural(uint32_t n)
{
    return n == 1 ? "" : "s";
}

static void line_machine(FILE *out, const struct heddle_machine_info *m)
{
    char a[CELL], b[CELL], c[CELL];

    fprintf(out, "processor   %s\n", m->model[0] != '\0' ? m->model : "of unknown make");
    fprintf(out,
            "usable      %" PRIu32 " core%s, %" PRIu32 " CPU%s of %" PRIu32 ", %" PRIu32
            " socket%s, %" PRIu32 " memory node%s (%s)\n",
            m->cores, plural(m->cores), m->cpus, plural(m->cpus), m->cpus_online, m->packages,
            plural(m->packages), m->numa_nodes, plural(m->numa_nodes), m->source);
    if (m->cpu_quota > 0)
        fprintf(out, "CPU quota   %.2f\n", m->cpu_quota);
    fprintf(out, "caches      L1 %s, L2 %s x %" PRIu32 ", L3 %s x %" PRIu32 "\n",
            bytes_text(a, m->l1_bytes), bytes_text(b, m->l2_bytes), m->l2_caches,
            bytes_text(c, m->l3_bytes), m->l3_caches);
    fprintf(out, "memory      %s, %s available", bytes_text(a, m->memory_total),
            bytes_text(b, m->memory_available));
    fprintf(out, ", pages of %s", bytes_text(a, m->page_bytes));
    if (m->huge_page_bytes > 0)
        fprintf(out, " and %s", bytes_text(b, m->huge_page_bytes));
    fputc('\n', out);
}

static void line_gpus(FILE *out, const struct info *i)
{
    char a[CELL], b[CELL];

    for (unsigned k = 0; k < i->ngpus; k++) {
        const struct heddle_gpu_info *g = &i->gpu[k];

        fprintf(out, "%s%-8s %s, %s, %s free", k == 0 ? "GPUs        " : "            ", g->name,
                g->model, bytes_text(a, g->memory_total), bytes_text(b, g->memory_free));
        if (g->watts >= 0)
            fprintf(out, ", %.0f W", g->watts);
        if (g->why[0] != '\0')
            fprintf(out, "; %s", g->why);
        fputc('\n', out);
    }
    if (i->ngpus == 0)
        fprintf(out, "GPUs        none: %s\n", i->no_gpu);
}

static void line_devices(FILE *out, const struct info *i)
{
    char a[CELL];

    for (unsigned k = 0; k < i->nclasses; k++)
        fprintf(out, "%s%-8s %u worker%s, %s\n", k == 0 ? "devices     " : "            ",
                i->cls[k].name, i->cls[k].nworkers, plural(i->cls[k].nworkers), i->cls[k].model);
    for (unsigned k = 0; k < i->nmemories; k++)
        fprintf(out, "%s%-8s %s\n", k == 0 ? "memories    " : "            ", i->mem[k].name,
                i->mem[k].budget == UINT64_MAX ? "no limit" : bytes_text(a, i->mem[k].budget));
    for (unsigned k = 0; k < i->nlinks; k++)
        fprintf(out, "%s%s to %s: %.2f GB/s, %.1f us\n", k == 0 ? "links       " : "            ",
                i->link[k].from, i->link[k].to, i->link[k].bytes_per_s / 1e9,
                i->link[k].latency_ns / 1e3);
    if (i->nlinks == 0)
        fputs("links       none measured, see 'heddle calibrate'\n", out);
}

static void info_lines(FILE *out, const struct info *i)
{
    struct heddle_sched_info s;

    fprintf(out, "heddle %s, compiled by %s\n", heddle_version(), heddle_build.compiler);
    fprintf(out, "built with  hwloc %s, BLAS %s, CUDA %s\n", heddle_build.has_hwloc ? "yes" : "no",
            heddle_build.has_blas ? "yes" : "no", heddle_build.has_cuda ? "yes" : "no");
    line_machine(out, &i->machine);
    if (i->nworkers > 0)
        fprintf(out, "defaults    %u worker%s, scheduler %s\n", i->nworkers, plural(i->nworkers),
                i->sched);
    else
        fprintf(out, "defaults    a context cannot be started: %s\n", i->why);
    line_gpus(out, i);
    line_devices(out, i);
    info_energy_lines(out);
    for (unsigned k = 0; heddle_sched_get_info(k, &s) == HEDDLE_OK; k++)
        fprintf(out, "%s%-10s %s\n", k == 0 ? "schedulers  " : "            ", s.name, s.help);
    if (i->model_dir[0] != '\0')
        fprintf(out, "models      %s/models\n", i->model_dir);
    else
        fputs("models      in memory only\n", out);
    fputs("environment see 'heddle info --env'\n", out);
}

/* --- the command --------------------------------------------------------- */

static int info_run(struct cli *c, int argc, char **argv)
{
    struct info i = {0};
    bool env = false;
    const struct cli_opt opts[] = {
        {"--env", CLI_FLAG, &env, 0, 0}, {"--devices", CLI_STRING, &i.devices, 0, 0}, {0}};
    heddle_status st = HEDDLE_OK;
    const int rc = cli_parse(c, "info", argc, argv, opts, NULL);

    if (rc != 0)
        return rc;
    if (!env)
        st = gather(&i);
    if (st != HEDDLE_OK)
        return cli_fail(c, "the machine cannot be looked at: %s", heddle_status_text(st));
    if (i.devices != NULL && i.nworkers == 0)
        return cli_fail(c, "%s", i.why); /* it was asked for these */
    if (c->json)
        st = env ? env_json(c->out) : info_json(c->out, &i);
    else if (env)
        env_table(c->out);
    else
        info_lines(c->out, &i);
    return st == HEDDLE_OK ? 0 : cli_output_failed(c, st);
}

const struct heddle_cmd heddle_cmd_info = {
    .name = "info",
    .help = "shows the machine, the defaults and what was built in",
    .usage = "heddle info [--devices LIST] [--env] [--json]\n"
             "\n"
             "  --devices  to look for, as in HEDDLE_DEVICES; 'opencl' takes a "
             "while\n"
             "             and is not looked for otherwise\n"
             "  --env      the environment variables that are read instead\n"
             "  --json     one JSON object per line\n",
    .run = info_run,
};
