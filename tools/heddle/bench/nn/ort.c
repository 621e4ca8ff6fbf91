/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bench/nn/ort: ONNX Runtime by its C interface, loaded at run time.
 *
 * Interface  the library exports OrtGetApiBase(), whose table of functions only grows at its end:
 *            a function has the same place in every version since 1.0. Places that are needed have
 *            names below; the others are not looked at.
 * Threads    requests of a session may run at once, each with its own slot of outputs.
 */
#include <dlfcn.h>
#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/thread.h"
#include "bench/nn/nn.h"

enum { ORT_VERSION = 11, ORT_ERRORS = 3, ORT_DEVICE_ALLOCATOR = 0, ORT_MEMORY_DEFAULT = 0 };

/* X(place in the table, name, result, arguments) */
#define ORT_FUNCTIONS(X)                                                                           \
    X(2, error_text, const char *, (const void *status))                                           \
    X(3, env_create, void *, (int level, const char *name, void **out))                            \
    X(7, session_create, void *, (void *env, const char *path, void *opts, void **out))            \
    X(9, run, void *,                                                                              \
      (void *session, const void *opts, const char *const *in_name, void *const *in, size_t nin,   \
       const char *const *out_name, size_t nout, void **out))                                      \
    X(10, opts_create, void *, (void **out))                                                       \
    X(22, opts_log, void *, (void *opts, int level))                                               \
    X(24, opts_threads, void *, (void *opts, int threads))                                         \
    X(49, tensor, void *,                                                                          \
      (void *memory, void *data, size_t bytes, const int64_t *dim, size_t ndim, int type,          \
       void **out))                                                                                \
    X(69, memory_create, void *, (int allocator, int kind, void **out))                            \
    X(92, env_release, void, (void *env))                                                          \
    X(93, status_release, void, (void *status))                                                    \
    X(94, memory_release, void, (void *memory))                                                    \
    X(95, session_release, void, (void *session))                                                  \
    X(96, tensor_release, void, (void *tensor))                                                    \
    X(100, opts_release, void, (void *opts))

struct ort {
#define ORT_FIELD(place, name, result, args) result(*name) args;
    ORT_FUNCTIONS(ORT_FIELD)
#undef ORT_FIELD
    void *library, *env, *memory;
    const char *version;
};

struct ort_session {
    struct ort *o;
    const struct nn_net *n;
    void *session;
    void *in[NN_INPUTS];
    struct heddle_nn_tensor *out; /* without data */
    void **tensor[ORT_SLOTS];     /* NULL: not made yet */
    void **data[ORT_SLOTS];
};

/* --- the library ---------------------------------------------------------------------- */

static bool ort_bind(struct ort *o)
{
    const void *(*base)(void) = NULL;
    const void *const *table;
    void *p = dlsym(o->library, "OrtGetApiBase");
    const struct {
        const void *const *(*get)(uint32_t version);
        const char *(*version)(void);
    } * api;

    if (p == NULL)
        return false;
    memcpy((void *)&base, (void *)&p, sizeof(p));
    api = base();
    table = api != NULL ? api->get(ORT_VERSION) : NULL;
    if (table == NULL)
        return false;
    o->version = api->version();
#define ORT_FIELD(place, name, result, args)                                                       \
    memcpy((void *)&o->name, (const void *)&table[place], sizeof(void *));
    ORT_FUNCTIONS(ORT_FIELD)
#undef ORT_FIELD
    return true;
}

struct ort *ort_load(const char *path, char *why, size_t why_bytes)
{
    static const char *const name[] = {"libonnxruntime.so.1", "libonnxruntime.so"};
    struct ort *o = calloc(1, sizeof(*o));
    void *status = NULL;

    if (o == NULL)
        return NULL;
    if (path != NULL)
        o->library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    for (size_t i = 0; i < 2 && path == NULL && o->library == NULL; i++)
        o->library = dlopen(name[i], RTLD_NOW | RTLD_LOCAL);
    if (o->library == NULL || !ort_bind(o)) {
        snprintf(why, why_bytes, "%s%s", path != NULL ? path : "there is no ONNX Runtime",
                 path != NULL ? " is no library of ONNX Runtime" : "");
        ort_unload(o);
        return NULL;
    }
    status = o->env_create(ORT_ERRORS, "heddle", &o->env);
    if (status == NULL)
        status = o->memory_create(ORT_DEVICE_ALLOCATOR, ORT_MEMORY_DEFAULT, &o->memory);
    if (status == NULL)
        return o;
    snprintf(why, why_bytes, "%s", o->error_text(status));
    o->status_release(status);
    ort_unload(o);
    return NULL;
}

void ort_unload(struct ort *o)
{
    if (o == NULL)
        return;
    if (o->memory != NULL)
        o->memory_release(o->memory);
    if (o->env != NULL)
        o->env_release(o->env);
    free(o); /* the library stays: its threads may still be ending */
}

const char *ort_version(const struct ort *o)
{
    return o->version;
}

/* --- sessions ------------------------------------------------------------------------- */

static int ort_check(const struct ort_session *s, void *status)
{
    int rc;

    if (status == NULL)
        return 0;
    rc = cli_fail(s->n->b->c, "%s: ONNX Runtime: %s", s->n->file->path, s->o->error_text(status));
    s->o->status_release(status);
    return rc;
}

static int ort_tensor(const struct ort_session *s, const struct heddle_nn_tensor *t, void *data,
                      void **out)
{
    return ort_check(s, s->o->tensor(s->o->memory, data, t->bytes, t->dim, t->ndim, t->type, out));
}

/* Memory for the outputs of a slot, which only one thread uses. */
static int ort_slot(struct ort_session *s, unsigned slot)
{
    const unsigned n = s->n->nout;
    int rc = 0;

    if (s->tensor[slot] != NULL)
        return 0;
    s->tensor[slot] = calloc(n > 0 ? n : 1, sizeof(void *));
    s->data[slot] = calloc(n > 0 ? n : 1, sizeof(void *));
    if (s->tensor[slot] == NULL || s->data[slot] == NULL)
        return cli_fail(s->n->b->c, "no memory for outputs");
    for (unsigned i = 0; i < n && rc == 0; i++) {
        s->data[slot][i] = calloc(s->out[i].bytes > 0 ? s->out[i].bytes : 1, 1);
        if (s->data[slot][i] == NULL)
            return cli_fail(s->n->b->c, "no memory for outputs");
        rc = ort_tensor(s, &s->out[i], s->data[slot][i], &s->tensor[slot][i]);
    }
    return rc;
}

static int ort_create(struct ort_session *s, unsigned threads)
{
    struct ort *o = s->o;
    void *opts = NULL;
    int rc = ort_check(s, o->opts_create(&opts));

    if (rc == 0)
        rc = ort_check(s, o->opts_log(opts, ORT_ERRORS));
    if (rc == 0 && threads > 0)
        rc = ort_check(s, o->opts_threads(opts, (int)threads));
    if (rc == 0)
        rc = ort_check(s, o->session_create(o->env, s->n->file->path, opts, &s->session));
    if (opts != NULL)
        o->opts_release(opts);
    return rc;
}

int ort_open(struct ort *o, const struct nn_net *n, const struct heddle_nn_result *result,
             unsigned threads, struct ort_session **out)
{
    struct ort_session *s = calloc(1, sizeof(*s));
    int rc = 0;

    *out = s;
    if (s == NULL)
        return cli_fail(n->b->c, "no memory for a session");
    s->o = o;
    s->n = n;
    s->out = calloc(n->nout > 0 ? n->nout : 1, sizeof(*s->out));
    if (s->out == NULL)
        return cli_fail(n->b->c, "no memory for a session");
    memcpy(s->out, result->output, n->nout * sizeof(*s->out));
    rc = ort_create(s, threads);
    for (unsigned i = 0; i < n->nin && rc == 0; i++)
        rc = ort_tensor(s, &n->in[i], n->in[i].data, &s->in[i]);
    return rc;
}

void ort_close(struct ort_session *s)
{
    if (s == NULL)
        return;
    for (unsigned k = 0; k < ORT_SLOTS; k++) {
        for (unsigned i = 0; i < s->n->nout; i++) {
            if (s->tensor[k] != NULL && s->tensor[k][i] != NULL)
                s->o->tensor_release(s->tensor[k][i]);
            if (s->data[k] != NULL)
                free(s->data[k][i]);
        }
        free((void *)s->tensor[k]);
        free((void *)s->data[k]);
    }
    for (unsigned i = 0; i < NN_INPUTS; i++)
        if (s->in[i] != NULL)
            s->o->tensor_release(s->in[i]);
    if (s->session != NULL)
        s->o->session_release(s->session);
    free(s->out);
    free(s);
}

int ort_run(struct ort_session *s, unsigned slot, double *ns_out)
{
    int rc = ort_slot(s, slot);
    const uint64_t t0 = heddle_clock_ns();

    if (rc == 0)
        rc = ort_check(s, s->o->run(s->session, NULL, s->n->in_name, s->in, s->n->nin,
                                    s->n->out_name, s->n->nout, s->tensor[slot]));
    if (ns_out != NULL)
        *ns_out = (double)(heddle_clock_ns() - t0);
    return rc;
}

int ort_best(struct ort_session *s, uint64_t repeat, double *ns_out)
{
    int rc = 0;

    *ns_out = INFINITY;
    for (uint64_t i = 0; i < repeat && rc == 0; i++) {
        double ns = INFINITY;

        rc = ort_run(s, 0, &ns);
        *ns_out = ns < *ns_out ? ns : *ns_out;
    }
    return rc;
}

const void *ort_output(const struct ort_session *s, unsigned i)
{
    return s->data[0][i];
}

/* --- many in flight ------------------------------------------------------------------- */

struct client {
    struct heddle_thread thread;
    struct ort_session *session;
    _Atomic uint64_t *left;
    unsigned slot;
    int rc;
};

static void *client_main(void *arg)
{
    struct client *c = arg;

    /* Relaxed: only the number counts. */
    while (c->rc == 0) {
        const uint64_t left = atomic_fetch_sub_explicit(c->left, 1, memory_order_relaxed);

        if (left == 0 || left > UINT64_MAX / 2)
            break;
        c->rc = ort_run(c->session, c->slot, NULL);
    }
    return NULL;
}

int ort_flood(struct ort_session *const *s, unsigned nsessions, uint64_t total, unsigned nthreads,
              double *ns_out)
{
    _Atomic uint64_t left = total;
    struct client *c;
    unsigned started = 0;
    uint64_t t0;
    int rc = 0;

    nthreads = nthreads > ORT_SLOTS ? ORT_SLOTS : nthreads;
    c = calloc(nthreads, sizeof(*c));
    if (c == NULL)
        return cli_fail(s[0]->n->b->c, "no memory for %u threads", nthreads);
    for (unsigned i = 0; i < nthreads && rc == 0; i++) {
        c[i] = (struct client){.session = s[i % nsessions], .left = &left, .slot = i};
        rc = ort_slot(c[i].session, i); /* memory is made before the clock starts */
    }
    t0 = heddle_clock_ns();
    for (; started < nthreads && rc == 0; started++)
        if (heddle_thread_create(&c[started].thread, NULL, client_main, &c[started]) != HEDDLE_OK) {
            rc = cli_fail(s[0]->n->b->c, "no threads for requests");
            break;
        }
    for (unsigned i = 0; i < started; i++) {
        if (heddle_thread_join(&c[i].thread) == HEDDLE_OK)
            rc = rc == 0 ? c[i].rc : rc;
    }
    *ns_out = (double)(heddle_clock_ns() - t0);
    free(c);
    return rc;
}
