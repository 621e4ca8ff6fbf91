/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * info: the machine as Heddle sees it, and what this Heddle is.
 *
 * Purpose    the first thing to ask for when something is slow or strange.
 * Output     lines for people; with --json one object, or with --env --json
 *            one object per environment variable.
 * How        workers and scheduler are asked of a context that is started with
 *            the defaults, so that the answer includes the environment.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/text.h"
#include "cmd.h"
#include "heddle/heddle.h"
#include "heddle/machine.h"
#include "heddle/perf.h"

#define DIR_BYTES 4096
#define CELL      32

struct info {
    struct heddle_machine_info machine;
    char model_dir[DIR_BYTES]; /* "": there is none */
    unsigned nworkers;         /* 0: no context could be started, see why */
    char sched[64];
    char why[320];
};

/* --- gather -------------------------------------------------------------- */

static void keep_sentence(void *user, enum heddle_severity severity,
                          const char *text)
{
    struct info *i = user;

    if (severity == HEDDLE_ERROR)
        snprintf(i->why, sizeof(i->why), "%s", text);
}

static void ask_context(struct info *i)
{
    /* Without a log: HEDDLE_LOG_FILE may name one that is to be kept. */
    const struct heddle_ctx_opts opts = {.size = sizeof(opts),
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
    return heddle_machine_query(&i->machine);
}

/* --- the environment ----------------------------------------------------- */

static void env_json_object(struct heddle_json *j,
                            const struct heddle_env_var *v)
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
    for (const struct heddle_env_var *v = heddle_env_list(); v->name != NULL;
         v++) {
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
    fprintf(out, "%-*s  %-*s  %s\n", name, "variable", kind, "value",
            "meaning");
    for (const struct heddle_env_var *v = list; v->name != NULL; v++) {
        const char *now = getenv(v->name);

        fprintf(out, "%-*s  %-*s  %s\n", name, v->name, kind, v->value,
                v->help);
        if (now != NULL)
            fprintf(out, "%-*s  %-*s  (it is '%s')\n", name, "", kind, "", now);
    }
}

/* --- JSON ---------------------------------------------------------------- */

static void json_machine(struct heddle_json *j,
                         const struct heddle_machine_info *m)
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
    for (const struct heddle_env_var *v = heddle_env_list(); v->name != NULL;
         v++)
        env_json_object(j, v);
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
    heddle_json_key_str(&j, "model_dir",
                        i->model_dir[0] != '\0' ? i->model_dir : NULL);
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

    fprintf(out, "processor   %s\n",
            m->model[0] != '\0' ? m->model : "of unknown make");
    fprintf(out,
            "usable      %" PRIu32 " core%s, %" PRIu32 " CPU%s of %" PRIu32
            ", %" PRIu32 " socket%s, %" PRIu32 " memory node%s (%s)\n",
            m->cores, plural(m->cores), m->cpus, plural(m->cpus),
            m->cpus_online, m->packages, plural(m->packages), m->numa_nodes,
            plural(m->numa_nodes), m->source);
    if (m->cpu_quota > 0)
        fprintf(out, "CPU quota   %.2f\n", m->cpu_quota);
    fprintf(out,
            "caches      L1 %s, L2 %s x %" PRIu32 ", L3 %s x %" PRIu32 "\n",
            bytes_text(a, m->l1_bytes), bytes_text(b, m->l2_bytes),
            m->l2_caches, bytes_text(c, m->l3_bytes), m->l3_caches);
    fprintf(out, "memory      %s, %s available", bytes_text(a, m->memory_total),
            bytes_text(b, m->memory_available));
    fprintf(out, ", pages of %s", bytes_text(a, m->page_bytes));
    if (m->huge_page_bytes > 0)
        fprintf(out, " and %s", bytes_text(b, m->huge_page_bytes));
    fputc('\n', out);
}

static void info_lines(FILE *out, const struct info *i)
{
    struct heddle_sched_info s;

    fprintf(out, "heddle %s, compiled by %s\n", heddle_version(),
            heddle_build.compiler);
    fprintf(out, "built with  hwloc %s, BLAS %s, CUDA %s\n",
            heddle_build.has_hwloc ? "yes" : "no",
            heddle_build.has_blas ? "yes" : "no",
            heddle_build.has_cuda ? "yes" : "no");
    line_machine(out, &i->machine);
    if (i->nworkers > 0)
        fprintf(out, "defaults    %u worker%s, scheduler %s\n", i->nworkers,
                plural(i->nworkers), i->sched);
    else
        fprintf(out, "defaults    a context cannot be started: %s\n", i->why);
    for (unsigned k = 0; heddle_sched_get_info(k, &s) == HEDDLE_OK; k++)
        fprintf(out, "%s%-6s %s\n", k == 0 ? "schedulers  " : "            ",
                s.name, s.help);
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
    const struct cli_opt opts[] = {{"--env", CLI_FLAG, &env, 0, 0}, {0}};
    heddle_status st = HEDDLE_OK;
    const int rc = cli_parse(c, "info", argc, argv, opts, NULL);

    if (rc != 0)
        return rc;
    if (!env)
        st = gather(&i);
    if (st != HEDDLE_OK)
        return cli_fail(c, "the machine cannot be looked at: %s",
                        heddle_status_text(st));
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
    .usage = "heddle info [--env] [--json]\n"
             "\n"
             "  --env   the environment variables that are read instead\n"
             "  --json  one JSON object per line\n",
    .run = info_run,
};
