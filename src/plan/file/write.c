/* SPDX-License-Identifier: BSD-3-Clause */
/* write: a plan as text, with its machine and its graph. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/text.h"
#include "base/why.h"
#include "plan/file/text.h"

struct writer {
    FILE *f;
    bool has_failed;
};

HEDDLE_PRINTF(2, 3)
static void put(struct writer *w, const char *fmt, ...)
{
    char buf[256];
    struct heddle_text t;
    va_list ap;

    heddle_text_init(&t, buf, sizeof(buf));
    va_start(ap, fmt);
    heddle_text_vadd(&t, fmt, ap);
    va_end(ap);
    if (t.is_truncated || fwrite(buf, 1, t.len, w->f) != t.len)
        w->has_failed = true;
}

static void put_bytes(struct writer *w, const char *key, uint64_t n)
{
    put(w, "%s%llu", key, (unsigned long long)n);
}

static void put_double(struct writer *w, const char *key, double v)
{
    char buf[64];
    struct heddle_text t;

    heddle_text_init(&t, buf, sizeof(buf));
    heddle_text_double(&t, v);
    put(w, "%s%s", key, buf);
}

/* A text of any length as one word. */
static void put_word(struct writer *w, const char *s, bool may_have_blanks)
{
    if (*s == '\0')
        put(w, "_");
    for (size_t i = 0; s[i] != '\0'; i++) {
        const unsigned char c = (unsigned char)s[i];
        const bool is_bad = c < 32 || c == 127 || (c == ' ' && !may_have_blanks) ||
                            (c == '#' && (i == 0 || may_have_blanks));

        put(w, "%c", is_bad ? '_' : s[i]);
    }
}

/* ---- machine and graph ----------------------------------------------------- */

static void put_store(struct writer *w, const char *name, const struct heddle_plan_store *s)
{
    if (!(s->out_rate > 0))
        return;
    put_double(w, name, s->out_rate);
    put_double(w, " in=", s->in_rate);
    if (s->bytes > 0)
        put_bytes(w, " bytes=", s->bytes);
    put(w, "\n");
}

static void put_machine(struct writer *w, const struct heddle_plan_machine *m)
{
    put(w, "%s 1\n", HEDDLE_PLAN_MACHINE_MAGIC);
    put_bytes(w, "budget ", m->budget);
    put_bytes(w, "\nalign ", m->align);
    put(w, "\n");
    put_store(w, "host out=", &m->host);
    put_store(w, "disk out=", &m->disk);
    if (m->ndevices > 0)
        put(w, "devices %u\n", m->ndevices);
    if (m->link_rate > 0) {
        put_double(w, "link ", m->link_rate);
        put(w, "\n");
    }
    put(w, "end\n");
}

static void put_chain(struct writer *w, const struct heddle_plan_chain *c)
{
    put_bytes(w, "chain ", c->x[0]);
    put(w, "\n");
    for (uint32_t i = 0; i < c->n; i++) {
        put(w, "layer %u", i);
        put_bytes(w, " x=", c->x[i + 1]);
        put_bytes(w, " tape=", c->t[i + 1]);
        put_double(w, " forward=", c->forward[i]);
        put_double(w, " backward=", c->backward[i]);
        if (c->work_f[i] > 0)
            put_bytes(w, " work_f=", c->work_f[i]);
        if (c->work_b[i] > 0)
            put_bytes(w, " work_b=", c->work_b[i]);
        put(w, "\n");
    }
}

static void put_op(struct writer *w, const struct heddle_plan_graph *g, uint32_t id)
{
    const struct heddle_plan_op *op = &g->ops[id];

    put(w, "op %u", id);
    put_double(w, " ", op->time);
    if (op->work_bytes > 0)
        put_bytes(w, " work=", op->work_bytes);
    for (uint32_t i = 0; i < op->ninputs; i++)
        put(w, "%s%u", i == 0 ? " in=" : ",", g->inputs[op->first_input + i]);
    for (uint32_t i = 0; i < op->nvalues; i++)
        put(w, "%s%u", i == 0 ? " out=" : ",", op->first_value + i);
    if (op->inplace != HEDDLE_PLAN_NONE)
        put(w, " inplace=%u", op->inplace);
    if ((op->flags & HEDDLE_PLAN_BACKWARD) != 0)
        put(w, " backward");
    if ((op->flags & HEDDLE_PLAN_ONCE) != 0)
        put(w, " once");
    if (op->name != NULL) {
        put(w, " name=");
        put_word(w, op->name, false);
    }
    put(w, "\n");
}

static void put_ops(struct writer *w, const struct heddle_plan_graph *g)
{
    for (uint32_t v = 0; v < g->nvalues; v++) {
        const uint32_t flags = g->values[v].flags;

        put(w, "value %u", v);
        put_bytes(w, " ", g->values[v].bytes);
        put(w, "%s%s%s\n", (flags & HEDDLE_PLAN_RESULT) != 0 ? " result" : "",
            (flags & HEDDLE_PLAN_TAPE) != 0 ? " tape" : "",
            (flags & HEDDLE_PLAN_AT_HOST) != 0 ? " host" : "");
    }
    for (uint32_t i = 0; i < g->nops; i++)
        put_op(w, g, i);
}

static void put_graph(struct writer *w, const struct heddle_plan_graph *g)
{
    put(w, "%s 1\nname ", HEDDLE_PLAN_GRAPH_MAGIC);
    put_word(w, g->name, false);
    put(w, "\n");
    if (g->unit_s > 0) {
        put_double(w, "unit ", g->unit_s);
        put(w, "\n");
    }
    if (g->chain != NULL)
        put_chain(w, g->chain);
    else
        put_ops(w, g);
    put(w, "end\n");
}

/* ---- the plan ------------------------------------------------------------ */

static void put_step(struct writer *w, const struct heddle_plan_step *s)
{
    static const char letter[] = "cdopf"; /* by kind */

    put(w, "%c %u", s->kind < 5 ? letter[s->kind] : '?', s->what);
    if (s->kind == HEDDLE_PLAN_COMPUTE)
        put(w, " %llu%s", (unsigned long long)s->outputs, s->in_place ? " inplace" : "");
    else if (s->kind != HEDDLE_PLAN_DISCARD)
        put(w, " %u", s->level);
    put(w, "\n");
}

static void put_plan(struct writer *w, const struct heddle_plan *p)
{
    put(w, "plan solver=");
    put_word(w, p->solver, false);
    put_bytes(w, " budget=", p->budget);
    put_bytes(w, " peak=", p->peak_bytes);
    put_bytes(w, " arena=", p->arena_bytes);
    put_double(w, " makespan=", p->makespan);
    put_double(w, " compute=", p->compute);
    put_double(w, " baseline=", p->baseline);
    put_double(w, " link=", p->link_busy);
    put_double(w, " bound=", p->lower_bound);
    put_double(w, " seconds=", p->seconds);
    put(w, "\nnote ");
    put_word(w, p->bound_note, true);
    put(w, "\n");
    for (uint32_t i = 0; i < p->nsteps; i++)
        put_step(w, &p->steps[i]);
    for (uint32_t i = 0; i < p->nplaces; i++) {
        const struct heddle_plan_place *q = &p->places[i];

        if (q->value == HEDDLE_PLAN_NONE)
            put(w, "@ %u work", q->step);
        else
            put(w, "@ %u %u", q->step, q->value);
        put_bytes(w, " ", q->offset);
        put(w, "\n");
    }
    put(w, "end\n");
}

heddle_status heddle_plan_write(const struct heddle_plan_graph *g,
                                const struct heddle_plan_machine *m, const struct heddle_plan *p,
                                const char *path, const struct heddle_plan_opts *opts)
{
    struct heddle_plan_opts o;
    struct heddle_plan_machine machine;
    struct writer w = {0};

    HEDDLE_TRY(heddle_plan_opts_get(opts, &o));
    if (g == NULL || p == NULL || path == NULL)
        return HEDDLE_PLAN_FAIL(&o, HEDDLE_EINVAL, "a graph, a plan and a file name are needed");
    HEDDLE_TRY(heddle_plan_machine_get(m, &o, &machine));
    w.f = fopen(path, "we");
    if (w.f == NULL)
        return HEDDLE_PLAN_FAIL(&o, HEDDLE_EIO, "%s cannot be written: %s", path,
                                heddle_why_errno(errno));
    put(&w, "%s 1\n", HEDDLE_PLAN_MAGIC);
    put_machine(&w, &machine);
    put_graph(&w, g);
    put_plan(&w, p);
    if (fclose(w.f) != 0 || w.has_failed) {
        (void)remove(path);
        return HEDDLE_PLAN_FAIL(&o, HEDDLE_EIO, "%s cannot be written", path);
    }
    return HEDDLE_OK;
}
