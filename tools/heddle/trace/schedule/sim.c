/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * trace/schedule/sim: the schedulers of the runtime on a recorded graph.
 *
 * How        the types become the classes of a machine file, the rows of times
 *            its rates, and the tasks are submitted again in virtual time: each
 *            writes a byte of its own and reads those of its predecessors. What
 *            comes out is where tasks ran and in which order; the times are
 *            computed from that, so that no nanosecond is rounded.
 * Transfers  none: the bytes travel at once.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/text.h"
#include "heddle/heddle.h"
#include "trace/schedule/schedule.h"

enum { MAX_ROWS = 200000, MAX_PREDS = 250, NAME = 16 };
#define FLOPS 1e9 /* of every task: a rate is a time */

struct sim {
    struct schedule *s;
    char machine[64], log[64]; /* files */
    heddle_kernel *kernel;     /* [rows] */
    char (*kernel_name)[NAME];
    char (*task_name)[NAME];
    heddle_handle **token;     /* [ntasks] */
    uint32_t *pred_end, *pred; /* [ntasks + 1], [nedges] */
    uint32_t *seen;            /* [ntasks] 1 + the task that has it already */
    heddle_handle **operand;   /* [MAX_PREDS + 1] */
    enum heddle_mode *mode;    /* the same */
    char why[320];
};

static int no_memory(const struct sim *m)
{
    return cli_fail(m->s->c, "%s", heddle_status_text(HEDDLE_ENOMEM));
}

/* --- the machine --------------------------------------------------------------*/

static bool is_core(const struct schedule *s, uint32_t r)
{
    return schedule_device(s, r) == HEDDLE_DEV_CPU;
}

static void put_machine(const struct schedule *s, FILE *f)
{
    fprintf(f, "heddle-machine 1\n");
    for (uint32_t r = 0; r < s->graph.ntypes; r++) {
        if (s->nworkers[r] == 0)
            continue;
        if (is_core(s, r)) {
            fprintf(f, "class t%u kind cpu workers %u model m%u\n", r, s->nworkers[r], r);
            continue;
        }
        fprintf(f,
                "node n%u\n"
                "class t%u kind %s workers %u node n%u model m%u\n"
                "duplex host n%u gbytes 1000000\n",
                r, r, heddle_device_name((enum heddle_device)schedule_device(s, r)), s->nworkers[r],
                r, r, r);
    }
}

/* A task that cannot run on a type, but on another one of that kind, gets a time
 * that no scheduler takes. */
static void put_rates(const struct schedule *s, FILE *f)
{
    const uint32_t n = s->graph.ntypes;
    char text[40];
    struct heddle_text t;
    double most = 1.0;

    for (size_t i = 0; i < (size_t)schedule_rows(s) * n; i++)
        if (s->time[i] < INFINITY)
            most = fmax(most, s->time[i]);
    for (uint32_t i = 0; i < schedule_rows(s); i++) {
        for (uint32_t r = 0; r < n; r++) {
            const double ns = s->time[(size_t)i * n + r];

            if (s->nworkers[r] == 0)
                continue;
            heddle_text_init(&t, text, sizeof(text));
            heddle_text_double(&t, FLOPS / fmax(1.0, ns < INFINITY ? ns : 1e3 * most));
            fprintf(f, "rate k%u t%u %s\n", i, r, text);
        }
    }
}

static int write_machine(struct sim *m)
{
    int fd = mkstemp(m->machine);
    FILE *f = fd < 0 ? NULL : fdopen(fd, "w");

    if (f == NULL) {
        if (fd >= 0)
            close(fd);
        m->machine[0] = '\0';
        return cli_fail(m->s->c, "a temporary file cannot be made");
    }
    put_machine(m->s, f);
    put_rates(m->s, f);
    if (ferror(f) != 0 || fclose(f) != 0)
        return cli_fail(m->s->c, "a temporary file cannot be written");
    fd = mkstemp(m->log);
    if (fd < 0) {
        m->log[0] = '\0';
        return cli_fail(m->s->c, "a temporary file cannot be made");
    }
    close(fd);
    return 0;
}

/* --- the run --------------------------------------------------------------------*/

static struct heddle_cost cost(struct heddle_exec *x)
{
    (void)x;
    return (struct heddle_cost){.flops = FLOPS};
}

/* A variant for each kind of device on which the row can run. */
static void make_kernel(struct sim *m, uint32_t i)
{
    const struct schedule *s = m->s;
    heddle_kernel *k = &m->kernel[i];
    unsigned n = 0, kinds = 0;

    snprintf(m->kernel_name[i], NAME, "k%u", i);
    *k = (heddle_kernel){.size = sizeof(*k), .name = m->kernel_name[i], .cost = cost};
    for (uint32_t r = 0; r < s->graph.ntypes; r++) {
        const enum heddle_device d = (enum heddle_device)schedule_device(s, r);

        if (s->nworkers[r] == 0 || (kinds >> d & 1) != 0 ||
            !(s->time[(size_t)i * s->graph.ntypes + r] < INFINITY))
            continue;
        kinds |= 1u << d;
        k->variants[n++].device = d;
    }
}

static void sort_edges(struct sim *m)
{
    const struct heddle_bound_graph *g = &m->s->graph;

    for (uint32_t e = 0; e < g->nedges; e++)
        m->pred_end[g->edge_to[e]]++;
    for (uint32_t t = 0, sum = 0; t <= g->ntasks; t++) {
        const uint32_t n = t < g->ntasks ? m->pred_end[t] : 0;

        m->pred_end[t] = sum;
        sum += n;
    }
    for (uint32_t e = 0; e < g->nedges; e++) /* pred_end[t] moves to t's end */
        m->pred[m->pred_end[g->edge_to[e]]++] = g->edge_from[e];
    for (uint32_t t = g->ntasks; t > 0; t--)
        m->pred_end[t] = m->pred_end[t - 1];
    m->pred_end[0] = 0;
}

static heddle_status submit(struct sim *m, heddle_ctx *ctx, uint32_t t)
{
    const struct heddle_bound_graph *g = &m->s->graph;
    const uint32_t row = g->kind != NULL ? g->kind[t] : t;
    const struct heddle_task_opts o = {.size = sizeof(o), .name = m->task_name[t]};
    struct heddle_call call = {
        .operands = m->operand, .modes = m->mode, .noperands = 1, .opts = &o};
    heddle_status st = heddle_handle_vector(ctx, NULL, 1, HEDDLE_U8, &m->token[t]);

    snprintf(m->task_name[t], NAME, "%u", t);
    m->operand[0] = m->token[t];
    m->mode[0] = HEDDLE_W;
    for (uint32_t i = m->pred_end[t]; i < m->pred_end[t + 1]; i++) {
        const uint32_t p = m->pred[i];

        if (m->seen[p] == t + 1)
            continue;
        m->seen[p] = t + 1;
        if (call.noperands > MAX_PREDS)
            return HEDDLE_EOVERFLOW;
        m->operand[call.noperands] = m->token[p];
        m->mode[call.noperands++] = HEDDLE_R;
    }
    return st == HEDDLE_OK ? heddle_submit(ctx, &m->kernel[row], &call) : st;
}

static void keep_sentence(void *user, enum heddle_severity severity, const char *text)
{
    struct sim *m = user;

    (void)severity;
    snprintf(m->why, sizeof(m->why), "%s", text);
}

/* Tasks are in the order of submission, or in one that respects the edges. */
static int run_tasks(struct sim *m, const char *policy)
{
    const struct heddle_ctx_opts o = {.size = sizeof(o),
                                      .sched = policy,
                                      .machine = m->machine,
                                      .nworkers = 1,
                                      .bind = HEDDLE_OFF,
                                      .log = HEDDLE_ON,
                                      .log_path = m->log,
                                      .log_level = 1,
                                      .model_dir = "",
                                      .window = UINT32_C(1) << 24,
                                      .message = keep_sentence,
                                      .message_user = m,
                                      .ignore_env = true};
    heddle_ctx *ctx = NULL;
    heddle_status st = heddle_ctx_create(&o, &ctx), other;

    for (uint32_t t = 0; t < m->s->graph.ntasks && st == HEDDLE_OK; t++)
        st = submit(m, ctx, t);
    other = ctx != NULL ? heddle_wait(ctx) : HEDDLE_OK;
    st = st == HEDDLE_OK ? other : st;
    for (uint32_t t = 0; t < m->s->graph.ntasks; t++)
        heddle_handle_unref(m->token[t]);
    other = heddle_ctx_destroy(ctx);
    st = st == HEDDLE_OK ? other : st;
    if (st == HEDDLE_EOVERFLOW)
        return cli_fail(m->s->c,
                        "a task has more than %d predecessors, too many for "
                        "the runtime's schedulers",
                        MAX_PREDS);
    if (st != HEDDLE_OK)
        return cli_fail(m->s->c, "the simulation failed: %s",
                        m->why[0] != '\0' ? m->why : heddle_status_text(st));
    return 0;
}

/* --- what came out ----------------------------------------------------------------*/

/* "t1.3": the worker 3 of type 1; false: something else. */
static bool worker_of(const struct schedule *s, const char *lane, uint32_t *type, uint32_t *worker)
{
    char *end;
    unsigned long k = 0;

    if (lane[0] != 't' || lane[1] < '0' || lane[1] > '9')
        return false;
    *type = (uint32_t)strtoul(lane + 1, &end, 10);
    if (*end == '.')
        k = strtoul(end + 1, &end, 10);
    if (*end != '\0' || *type >= s->graph.ntypes || k >= s->nworkers[*type])
        return false;
    *worker = (uint32_t)k;
    for (uint32_t r = 0; r < *type; r++)
        *worker += s->nworkers[r];
    return true;
}

/* Each task as early as its predecessors and its worker allow. */
static bool take_order(struct sim *m, const struct heddle_log_view *v, uint32_t *type,
                       uint32_t *worker, double *start, double *end)
{
    struct schedule *s = m->s;
    uint32_t nworkers = 0, done = 0;
    double *until;

    for (uint32_t r = 0; r < s->graph.ntypes; r++)
        nworkers += s->nworkers[r];
    until = calloc((size_t)nworkers + 1, sizeof(*until));
    for (size_t i = 0; i < v->ntasks && until != NULL; i++) {
        const struct heddle_log_task *x = &v->tasks[i];
        uint64_t t;
        uint32_t row;

        if (x->status != HEDDLE_LOG_OK || x->name == NULL || x->lane == HEDDLE_LOG_NO_LANE ||
            heddle_parse_u64(x->name, &t) != HEDDLE_OK || t >= s->graph.ntasks ||
            !worker_of(s, v->lanes[x->lane].name, &type[t], &worker[t]))
            continue;
        row = s->graph.kind != NULL ? s->graph.kind[t] : (uint32_t)t;
        start[t] = until[worker[t]];
        for (uint32_t k = m->pred_end[t]; k < m->pred_end[t + 1]; k++)
            start[t] = fmax(start[t], end[m->pred[k]]);
        end[t] = start[t] + s->time[(size_t)row * s->graph.ntypes + type[t]];
        until[worker[t]] = end[t];
        s->s.makespan = fmax(s->s.makespan, end[t]);
        done++;
    }
    free(until);
    return done == s->graph.ntasks;
}

static int read_result(struct sim *m)
{
    struct schedule *s = m->s;
    const size_t n = (size_t)s->graph.ntasks + 1;
    double *times = calloc(2 * n, sizeof(double) + sizeof(uint32_t));
    uint32_t *places = (uint32_t *)(times == NULL ? NULL : times + 2 * n);
    heddle_log *log = NULL;
    bool is_ok;

    if (times == NULL)
        return no_memory(m);
    s->own = times;
    if (heddle_log_open(m->log, NULL, &log) != HEDDLE_OK)
        return cli_fail(s->c, "the log of the simulation cannot be read");
    is_ok = take_order(m, heddle_log_get_view(log), places, places + n, times, times + n);
    heddle_log_close(log);
    s->s.ntasks = s->graph.ntasks;
    s->s.type = places;
    s->s.worker = places + n;
    s->s.start = times;
    s->s.end = times + n;
    if (!is_ok)
        return cli_fail(s->c, "the log of the simulation is not complete");
    if (s->s.makespan == INFINITY)
        return cli_fail(s->c, "the scheduler put a task where its time is not known");
    return 0;
}

/* --- the whole ----------------------------------------------------------------------*/

static bool sim_get(struct sim *m)
{
    const struct schedule *s = m->s;
    const size_t n = (size_t)s->graph.ntasks + 1, rows = schedule_rows(s) + 1;

    m->kernel = calloc(rows, sizeof(*m->kernel));
    m->kernel_name = calloc(rows, sizeof(*m->kernel_name));
    m->task_name = calloc(n, sizeof(*m->task_name));
    m->token = calloc(n, sizeof(heddle_handle *));
    m->pred_end = calloc(n, sizeof(*m->pred_end));
    m->pred = calloc((size_t)s->graph.nedges + 1, sizeof(*m->pred));
    m->seen = calloc(n, sizeof(*m->seen));
    m->operand = calloc(MAX_PREDS + 1, sizeof(heddle_handle *));
    m->mode = calloc(MAX_PREDS + 1, sizeof(*m->mode));
    return m->kernel != NULL && m->kernel_name != NULL && m->task_name != NULL &&
           m->token != NULL && m->pred_end != NULL && m->pred != NULL && m->seen != NULL &&
           m->operand != NULL && m->mode != NULL;
}

static void sim_free(struct sim *m)
{
    if (m->machine[0] != '\0')
        (void)unlink(m->machine);
    if (m->log[0] != '\0')
        (void)unlink(m->log);
    free(m->kernel);
    free(m->kernel_name);
    free(m->task_name);
    free(m->token);
    free(m->pred_end);
    free(m->pred);
    free(m->seen);
    free(m->operand);
    free(m->mode);
}

int schedule_simulate(struct schedule *s, const char *policy)
{
    const uint64_t t0 = heddle_clock_ns();
    const char *dir = getenv("TMPDIR");
    struct sim m = {.s = s};
    int rc = 0;

    if (schedule_rows(s) > MAX_ROWS)
        return cli_fail(s->c,
                        "there are more than %d different times; try "
                        "--durations median",
                        MAX_ROWS);
    dir = dir != NULL && strlen(dir) < 32 ? dir : P_tmpdir;
    snprintf(m.machine, sizeof(m.machine), "%s/heddle-machine-XXXXXX", dir);
    snprintf(m.log, sizeof(m.log), "%s/heddle-log-XXXXXX", dir);
    if (!sim_get(&m))
        rc = no_memory(&m);
    if (rc == 0)
        rc = write_machine(&m);
    if (rc == 0) {
        for (uint32_t i = 0; i < schedule_rows(s); i++)
            make_kernel(&m, i);
        sort_edges(&m);
        rc = run_tasks(&m, policy);
    }
    if (rc == 0)
        rc = read_result(&m);
    sim_free(&m);
    s->seconds = (double)(heddle_clock_ns() - t0) * 1e-9;
    return rc;
}
