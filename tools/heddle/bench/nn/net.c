/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bench/nn/net: a network with inputs, one request, many in flight.
 *
 * Inputs     floats of a normal distribution; whole numbers below 90, which are good as words; what
 *            is called a mask is 1 but for every fourth.
 * Threads    requests end on workers, which count a semaphore up.
 */
#include <errno.h>
#include <math.h>
#include <semaphore.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "bench/nn/nn.h"

static double normal(struct heddle_rng *r)
{
    const double u = 1 - heddle_rng_double(r), v = heddle_rng_double(r);

    return sqrt(-2 * log(u)) * cos(2 * 3.14159265358979323846 * v);
}

static void fill(struct heddle_nn_tensor *t, const char *name)
{
    const bool is_mask = strstr(name, "mask") != NULL;
    const size_t n = t->bytes / heddle_nn_type_size(t->type);
    struct heddle_rng r;

    heddle_rng_seed(&r, 1);
    for (size_t i = 0; i < n; i++)
        if (t->type == HEDDLE_NN_F32)
            ((float *)t->data)[i] = (float)normal(&r);
        else if (t->type == HEDDLE_NN_F64)
            ((double *)t->data)[i] = normal(&r);
        else if (t->type == HEDDLE_NN_I64)
            ((int64_t *)t->data)[i] = is_mask ? i % 4 != 3 : (int64_t)heddle_rng_below(&r, 90);
        else
            ((uint8_t *)t->data)[i * heddle_nn_type_size(t->type)] =
                (uint8_t)heddle_rng_below(&r, 2);
}

void nn_net_batch(struct nn_net *n, int64_t batch)
{
    for (unsigned i = 0; i < n->nin; i++) {
        struct heddle_nn_port p;

        (void)heddle_nn_get_input(n->net, i, &p);
        if (p.ndim < 1 || p.dim[0] >= 0)
            continue;
        n->in[i].bytes = n->in[i].bytes / (size_t)n->in[i].dim[0] * (size_t)batch;
        n->in[i].dim[0] = batch;
    }
}

static int net_input(struct nn_net *n, unsigned i, int64_t batch)
{
    struct heddle_nn_tensor *t = &n->in[i];
    struct heddle_nn_port p;

    (void)heddle_nn_get_input(n->net, i, &p);
    n->in_name[i] = p.name;
    t->type = p.type;
    t->ndim = p.ndim > 0 ? (unsigned)p.ndim : 0;
    t->bytes = heddle_nn_type_size(p.type);
    if (p.ndim < 0 || t->bytes == 0)
        return cli_fail(n->b->c, "%s: input '%s' has no shape or no type", n->file->path, p.name);
    for (unsigned d = 0; d < t->ndim; d++) {
        t->dim[d] = p.dim[d] >= 0 ? p.dim[d] : d == 0 ? batch : 1;
        if (__builtin_mul_overflow(t->bytes, (size_t)t->dim[d], &t->bytes))
            return cli_fail(n->b->c, "%s: the shape of input '%s' overflows", n->file->path,
                            p.name);
    }
    t->data = malloc(t->bytes > 0 ? t->bytes : 1);
    if (t->data == NULL)
        return cli_fail(n->b->c, "no memory for the inputs of %s", n->file->path);
    fill(t, p.name);
    return 0;
}

int nn_net_open(struct nn_net *n, struct nn_bench *b, const struct nn_file *f, unsigned workers,
                bool helps, int64_t batch)
{
    char why[NN_WHY] = "";
    const struct heddle_nn_opts o = {.size = sizeof(o), .why = why, .why_bytes = sizeof(why)};
    const struct heddle_ctx_opts co = {.size = sizeof(co),
                                       .nworkers = workers,
                                       .helps = helps ? HEDDLE_ON : HEDDLE_OFF,
                                       .model_dir = "",
                                       .devices = "none",
                                       .ignore_env = true,
                                       .why = why,
                                       .why_bytes = sizeof(why)};
    int rc = 0;

    *n = (struct nn_net){.b = b, .file = f};
    if (heddle_ctx_create(&co, &n->ctx) != HEDDLE_OK ||
        heddle_nn_open(n->ctx, f->path, &o, &n->net) != HEDDLE_OK)
        return cli_fail(b->c, "%s", why);
    if (heddle_nn_get_ninputs(n->net) > NN_INPUTS)
        return cli_fail(b->c, "%s: more than %d inputs", f->path, NN_INPUTS);
    n->nout = heddle_nn_get_noutputs(n->net);
    n->out_name = calloc(n->nout > 0 ? n->nout : 1, sizeof(*n->out_name));
    if (n->out_name == NULL)
        return cli_fail(b->c, "no memory for the names of %s", f->path);
    for (unsigned i = 0; i < n->nout; i++) {
        struct heddle_nn_port p;

        (void)heddle_nn_get_output(n->net, i, &p);
        n->out_name[i] = p.name;
    }
    for (; n->nin < heddle_nn_get_ninputs(n->net) && rc == 0; n->nin++)
        rc = net_input(n, n->nin, batch);
    return rc;
}

void nn_net_close(struct nn_net *n)
{
    for (unsigned i = 0; i < n->nin; i++)
        free(n->in[i].data);
    free(n->out_name);
    heddle_nn_close(n->net);
    (void)heddle_ctx_destroy(n->ctx);
    *n = (struct nn_net){0};
}

int nn_net_run(struct nn_net *n, double *ns_out, struct heddle_nn_result **result_out)
{
    char why[NN_WHY] = "";
    const struct heddle_nn_opts o = {.size = sizeof(o), .why = why, .why_bytes = sizeof(why)};
    struct heddle_nn_result *r = NULL;
    const uint64_t t0 = heddle_clock_ns();

    if (heddle_nn_run(n->net, n->in, n->nin, &o, &r) != HEDDLE_OK)
        return cli_fail(n->b->c, "%s: %s", n->file->path, why);
    if (ns_out != NULL)
        *ns_out = (double)(heddle_clock_ns() - t0);
    if (result_out != NULL)
        *result_out = r;
    else
        heddle_nn_result_destroy(r);
    return 0;
}

int nn_net_best(struct nn_net *n, uint64_t repeat, double *ns_out)
{
    int rc = 0;

    *ns_out = INFINITY;
    for (uint64_t i = 0; i < repeat && rc == 0; i++) {
        double ns = INFINITY;

        rc = nn_net_run(n, &ns, NULL);
        *ns_out = ns < *ns_out ? ns : *ns_out;
    }
    return rc;
}

/* --- many in flight ------------------------------------------------------------------- */

struct flood {
    sem_t ended;
    _Atomic unsigned failures;
};

/* On a worker. */
static void flood_done(void *user, heddle_status st, struct heddle_nn_result *result,
                       const char *why)
{
    struct flood *f = user;

    (void)why;
    heddle_nn_result_destroy(result);
    if (st != HEDDLE_OK)
        f->failures++;
    (void)sem_post(&f->ended);
}

static void flood_wait(struct flood *f)
{
    while (sem_wait(&f->ended) != 0 && errno == EINTR)
        ;
}

int nn_net_flood(struct nn_net *n, uint64_t total, unsigned in_flight, int64_t (*next)(void *user),
                 void *user, double *ns_out)
{
    char why[NN_WHY] = "";
    const struct heddle_nn_opts o = {.size = sizeof(o), .why = why, .why_bytes = sizeof(why)};
    struct flood f = {.failures = 0};
    uint64_t started = 0, ended = 0;
    heddle_status st = HEDDLE_OK;
    uint64_t t0;

    if (sem_init(&f.ended, 0, 0) != 0)
        return cli_fail(n->b->c, "no semaphore: %s", strerror(errno));
    t0 = heddle_clock_ns();
    while (ended < started || (st == HEDDLE_OK && started < total)) {
        if (st == HEDDLE_OK && started < total && started - ended < in_flight) {
            if (next != NULL)
                nn_net_batch(n, next(user));
            st = heddle_nn_start(n->net, n->in, n->nin, flood_done, &f, &o);
            started += st == HEDDLE_OK;
            continue;
        }
        flood_wait(&f);
        ended++;
    }
    if (ns_out != NULL)
        *ns_out = (double)(heddle_clock_ns() - t0);
    (void)sem_destroy(&f.ended);
    if (st != HEDDLE_OK)
        return cli_fail(n->b->c, "%s: %s", n->file->path, why);
    if (f.failures > 0)
        return cli_fail(n->b->c, "%s: %u requests failed", n->file->path, f.failures);
    return 0;
}
