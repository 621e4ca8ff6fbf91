/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * starpu: the streams on StarPU 1.3, in two configurations.
 *
 * Purpose    --config insert: what its users write, starpu_task_insert() with
 *            static codelets.
 *            --config best: what an expert can get. Tasks and their jobs are
 *            created before the clock starts and only starpu_task_submit() is
 *            timed; malloc keeps freed memory; a limit on submitted tasks where
 *            it helps the caches.
 * Measured   from the first submission to the return of
 *            starpu_task_wait_for_all(). StarPU infers the dependencies.
 * Choice     the tables below hold the fastest per shape of the schedulers
 *            eager, lws and ws, and of W or W - 1 CPU workers (at least one):
 *            the submitting thread runs no task, so W workers make W + 1
 *            threads. Found by trying them; see README.md.
 * Threads    the kernel runs on StarPU's workers.
 */
#include <starpu.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "stream.h"

/* The whole stream would double the time of a run. */
enum { WARMUP_TASKS = 50000 };

struct choice {
    const char *shape;
    const char *sched;
    bool is_submitter_counted; /* W threads in all instead of W workers */
    bool is_limited;           /* at most 1000 submitted tasks */
};

static const struct choice choice_insert[] = {
    {"independent", "eager", true, false},
    {"chain", "lws", true, false},
    {"random", "eager", false, false},
    {"cholesky", "ws", true, false},
};

static const struct choice choice_best[] = {
    {"independent", "eager", true, false},
    {"chain", "ws", true, false},
    {"random", "eager", true, true},
    {"cholesky", "eager", true, true},
};

struct starpu_peer {
    bool is_best;
    starpu_data_handle_t *handles;
    uint64_t *values;
    struct starpu_task **tasks;                        /* best only */
    struct starpu_codelet cl[STREAM_MAX_OPERANDS + 1]; /* by operands */
};

/* The kernel has no way to the stream but this in a --check run. */
static const struct stream *checked;

static void kernel_empty(void *buffers[], void *arg)
{
    (void)buffers;
    (void)arg;
}

static void kernel_check(void *buffers[], void *arg)
{
    (void)buffers;
    stream_check(checked, (size_t)(uintptr_t)arg);
}

static void codelets_init(struct starpu_peer *sp, bool is_check)
{
    for (int n = 0; n <= STREAM_MAX_OPERANDS; n++) {
        struct starpu_codelet *cl = &sp->cl[n];

        starpu_codelet_init(cl);
        cl->cpu_funcs[0] = is_check ? kernel_check : kernel_empty;
        cl->name = "empty";
        cl->nbuffers = n;
        for (int k = 0; k < n; k++)
            cl->modes[k] = k + 1 < n ? STARPU_R : STARPU_RW;
    }
}

static int library_start(const struct peer *p, const struct choice *c)
{
    struct starpu_conf conf;
    unsigned ncpus = p->opts.workers;

    if (c->is_submitter_counted && ncpus > 1)
        ncpus--;
    setenv("STARPU_SILENT", "1", 0);
    setenv("STARPU_CALIBRATE", "0", 0);
    if (c->is_limited) {
        setenv("STARPU_LIMIT_MAX_SUBMITTED_TASKS", "1000", 0);
        setenv("STARPU_LIMIT_MIN_SUBMITTED_TASKS", "500", 0);
    }
    starpu_conf_init(&conf);
    conf.precedence_over_environment_variables = 1;
    conf.ncpus = (int)ncpus;
    conf.sched_policy_name = p->opts.sched != NULL ? p->opts.sched : c->sched;
    if (starpu_init(&conf) != 0) {
        fprintf(stderr, "starpu: cannot start\n");
        return 1;
    }
    return 0;
}

static const struct choice *choice_of(const struct peer *p, bool is_best)
{
    const struct choice *c = is_best ? choice_best : choice_insert;

    while (strcmp(c->shape, p->opts.shape) != 0)
        c++;
    return c;
}

static int starpu_open(struct peer *p)
{
    const char *config = p->opts.config != NULL ? p->opts.config : "insert";
    struct starpu_peer *sp = calloc(1, sizeof(*sp));

    if (sp == NULL || (strcmp(config, "insert") != 0 && strcmp(config, "best") != 0)) {
        fprintf(stderr, "starpu: --config is insert or best\n");
        free(sp);
        return 1;
    }
    sp->is_best = strcmp(config, "best") == 0;
    if (sp->is_best)
        peer_keep_memory();
    sp->handles = calloc(p->stream.nhandles + 1, sizeof(*sp->handles));
    sp->values = calloc(p->stream.nhandles + 1, sizeof(*sp->values));
    sp->tasks = calloc(p->stream.ntasks, sizeof(struct starpu_task *));
    if (sp->handles == NULL || sp->values == NULL || sp->tasks == NULL) {
        fprintf(stderr, "starpu: no memory\n");
        return 1;
    }
    if (library_start(p, choice_of(p, sp->is_best)) != 0)
        return 1;
    codelets_init(sp, p->opts.is_check);
    for (size_t i = 0; i < p->stream.nhandles; i++)
        starpu_variable_data_register(&sp->handles[i], STARPU_MAIN_RAM, (uintptr_t)&sp->values[i],
                                      sizeof(sp->values[i]));
    checked = &p->stream;
    p->warmup_tasks = WARMUP_TASKS;
    p->name = sp->is_best ? "starpu-best" : "starpu-insert";
    p->self = sp;
    return 0;
}

static int insert_one(struct starpu_peer *sp, const struct stream_task *t)
{
    const starpu_data_handle_t *h = sp->handles;
    struct starpu_codelet *cl = &sp->cl[t->n];

    switch (t->n) {
    case 0: return starpu_task_insert(cl, 0);
    case 1: return starpu_task_insert(cl, STARPU_RW, h[t->h[0]], 0);
    case 2: return starpu_task_insert(cl, STARPU_R, h[t->h[0]], STARPU_RW, h[t->h[1]], 0);
    default:
        return starpu_task_insert(cl, STARPU_R, h[t->h[0]], STARPU_R, h[t->h[1]], STARPU_RW,
                                  h[t->h[2]], 0);
    }
}

/* As insert_one(), with the number of the task for the checking kernel. */
static int insert_checked(struct starpu_peer *sp, const struct stream_task *t, size_t i)
{
    const starpu_data_handle_t *h = sp->handles;
    struct starpu_codelet *cl = &sp->cl[t->n];
    void *arg = (void *)(uintptr_t)i;

    switch (t->n) {
    case 0: return starpu_task_insert(cl, STARPU_CL_ARGS_NFREE, arg, (size_t)0, 0);
    case 1:
        return starpu_task_insert(cl, STARPU_RW, h[t->h[0]], STARPU_CL_ARGS_NFREE, arg, (size_t)0,
                                  0);
    case 2:
        return starpu_task_insert(cl, STARPU_R, h[t->h[0]], STARPU_RW, h[t->h[1]],
                                  STARPU_CL_ARGS_NFREE, arg, (size_t)0, 0);
    default:
        return starpu_task_insert(cl, STARPU_R, h[t->h[0]], STARPU_R, h[t->h[1]], STARPU_RW,
                                  h[t->h[2]], STARPU_CL_ARGS_NFREE, arg, (size_t)0, 0);
    }
}

/* Asking for the job id makes StarPU allocate the job now, not in submit. */
static int tasks_create(struct starpu_peer *sp, const struct stream *s)
{
    for (size_t i = 0; i < s->ntasks; i++) {
        const struct stream_task *t = &s->tasks[i];
        struct starpu_task *task = starpu_task_create();

        if (task == NULL)
            return 1;
        task->cl = &sp->cl[t->n];
        task->cl_arg = (void *)(uintptr_t)i;
        for (uint32_t k = 0; k < t->n; k++)
            task->handles[k] = sp->handles[t->h[k]];
        (void)starpu_task_get_job_id(task);
        sp->tasks[i] = task;
    }
    return 0;
}

static int submit(struct starpu_peer *sp, const struct stream *s)
{
    int rc = 0;

    if (sp->is_best)
        for (size_t i = 0; rc == 0 && i < s->ntasks; i++)
            rc = starpu_task_submit(sp->tasks[i]);
    else if (s->order != NULL)
        for (size_t i = 0; rc == 0 && i < s->ntasks; i++)
            rc = insert_checked(sp, &s->tasks[i], i);
    else
        for (size_t i = 0; rc == 0 && i < s->ntasks; i++)
            rc = insert_one(sp, &s->tasks[i]);
    return rc;
}

static int starpu_run(struct peer *p, struct peer_times *t)
{
    struct starpu_peer *sp = p->self;
    int rc = sp->is_best ? tasks_create(sp, &p->stream) : 0;

    if (rc != 0) {
        fprintf(stderr, "starpu: no memory for the tasks\n");
        return 1;
    }
    peer_start(t);
    rc = submit(sp, &p->stream);
    peer_submitted(t);
    starpu_task_wait_for_all();
    peer_end(t);
    if (rc != 0)
        fprintf(stderr, "starpu: a submission failed (%d)\n", rc);
    return rc != 0;
}

static void starpu_close(struct peer *p)
{
    struct starpu_peer *sp = p->self;

    for (size_t i = 0; i < p->stream.nhandles; i++)
        starpu_data_unregister(sp->handles[i]);
    starpu_shutdown();
    free(sp->handles);
    free(sp->values);
    free(sp->tasks);
    free(sp);
}

int main(int argc, char **argv)
{
    static const struct peer_ops ops = {starpu_open, starpu_run, starpu_close};

    return peer_main(argc, argv, &ops);
}
