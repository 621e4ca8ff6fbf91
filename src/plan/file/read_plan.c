/* SPDX-License-Identifier: BSD-3-Clause */
/* read_plan: plans as write.c writes them. What they claim is not checked here. */
#include <string.h>

#include "base/assert.h"
#include "base/sized.h"
#include "base/text.h"
#include "plan/file/text.h"

struct reader {
    struct heddle_plan_text *t;
    struct heddle_plan_graph *g;
    struct heddle_plan_machine m;
    struct heddle_plan *p;
    struct heddle_scratch *mem;
    struct heddle_plan_vec steps, places;
};

static heddle_status no_memory(const struct reader *r)
{
    return HEDDLE_PLAN_FAIL(r->t->o, HEDDLE_ENOMEM, "%s: no memory for it", r->t->path);
}

static heddle_status next_line(struct reader *r)
{
    const heddle_status st = heddle_plan_text_line(r->t);

    return st == HEDDLE_AGAIN ? HEDDLE_PLAN_TEXT_BAD(r->t, "the file ends too early") : st;
}

static heddle_status read_number(struct reader *r, const char *key, const char *arg)
{
    const struct {
        const char *key;
        uint64_t *bytes;
        double *time;
    } all[] = {{"budget", &r->p->budget, NULL},     {"peak", &r->p->peak_bytes, NULL},
               {"arena", &r->p->arena_bytes, NULL}, {"makespan", NULL, &r->p->makespan},
               {"compute", NULL, &r->p->compute},   {"baseline", NULL, &r->p->baseline},
               {"link", NULL, &r->p->link_busy},    {"bound", NULL, &r->p->lower_bound},
               {"seconds", NULL, &r->p->seconds}};

    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
        if (strcmp(key, all[i].key) == 0)
            return all[i].bytes != NULL ? heddle_plan_text_bytes(r->t, arg, key, all[i].bytes)
                                        : heddle_plan_text_time(r->t, arg, key, all[i].time);
    return HEDDLE_PLAN_TEXT_BAD(r->t, "'%.40s' is not known here", key);
}

static heddle_status read_head(struct reader *r)
{
    char *w;

    if (strcmp(r->t->word, "plan") != 0)
        return HEDDLE_PLAN_TEXT_BAD(r->t, "here should be a line 'plan ...'");
    while ((w = heddle_plan_text_word(r->t)) != NULL) {
        const char *arg = heddle_plan_text_value(w);

        if (arg != NULL && strcmp(w, "solver") == 0) {
            r->p->solver = heddle_plan_keep_text(r->mem, arg);
            if (r->p->solver == NULL)
                return no_memory(r);
        } else {
            HEDDLE_TRY(read_number(r, w, arg));
        }
    }
    if (r->p->solver == NULL)
        return HEDDLE_PLAN_TEXT_BAD(r->t, "the solver is missing");
    HEDDLE_TRY(next_line(r));
    if (strcmp(r->t->word, "note") != 0)
        return HEDDLE_PLAN_TEXT_BAD(r->t, "here should be a line 'note ...'");
    r->p->bound_note = heddle_plan_keep_text(r->mem, r->t->rest);
    return r->p->bound_note != NULL ? HEDDLE_OK : no_memory(r);
}

static heddle_status read_step(struct reader *r, unsigned kind)
{
    struct heddle_plan_step *s = heddle_plan_vec_add(&r->steps, r->t->o->alloc);
    uint32_t level = 0;
    char *w;

    if (s == NULL)
        return no_memory(r);
    s->kind = (uint8_t)kind;
    HEDDLE_TRY(heddle_plan_text_u32(r->t, heddle_plan_text_word(r->t),
                                    kind == HEDDLE_PLAN_COMPUTE ? "the operation" : "the value",
                                    (kind == HEDDLE_PLAN_COMPUTE ? r->g->nops : r->g->nvalues) - 1,
                                    &s->what));
    if (kind == HEDDLE_PLAN_DISCARD)
        return heddle_plan_text_end(r->t);
    w = heddle_plan_text_word(r->t);
    if (kind != HEDDLE_PLAN_COMPUTE) {
        HEDDLE_TRY(heddle_plan_text_u32(r->t, w, "the level", 2, &level));
        s->level = (uint8_t)level;
        return heddle_plan_text_end(r->t);
    }
    if (w == NULL || heddle_parse_u64(w, &s->outputs) != HEDDLE_OK)
        return HEDDLE_PLAN_TEXT_BAD(r->t, "the outputs are missing");
    w = heddle_plan_text_word(r->t);
    if (w != NULL && strcmp(w, "inplace") != 0)
        return HEDDLE_PLAN_TEXT_BAD(r->t, "'%.40s' is not known here", w);
    s->in_place = w != NULL;
    return heddle_plan_text_end(r->t);
}

static heddle_status read_place(struct reader *r)
{
    struct heddle_plan_place *q = heddle_plan_vec_add(&r->places, r->t->o->alloc);
    const char *w;

    if (q == NULL)
        return no_memory(r);
    HEDDLE_TRY(heddle_plan_text_u32(r->t, heddle_plan_text_word(r->t), "the step", UINT32_MAX - 1,
                                    &q->step));
    w = heddle_plan_text_word(r->t);
    if (w != NULL && strcmp(w, "work") == 0)
        q->value = HEDDLE_PLAN_NONE;
    else
        HEDDLE_TRY(heddle_plan_text_u32(r->t, w, "the value", r->g->nvalues - 1, &q->value));
    HEDDLE_TRY(
        heddle_plan_text_bytes(r->t, heddle_plan_text_word(r->t), "the address", &q->offset));
    return heddle_plan_text_end(r->t);
}

static heddle_status read_body(struct reader *r)
{
    static const char letter[] = "cdopf"; /* by kind */

    for (;;) {
        const char *w, *k;

        HEDDLE_TRY(next_line(r));
        w = r->t->word;
        if (strcmp(w, "end") == 0)
            return heddle_plan_text_end(r->t);
        k = w[1] == '\0' ? strchr(letter, w[0]) : NULL;
        if (k != NULL)
            HEDDLE_TRY(read_step(r, (unsigned)(k - letter)));
        else if (strcmp(w, "@") == 0)
            HEDDLE_TRY(read_place(r));
        else
            return HEDDLE_PLAN_TEXT_BAD(r->t, "a line cannot begin with '%.40s' here", w);
        if (r->steps.n >= HEDDLE_PLAN_NONE || r->places.n >= HEDDLE_PLAN_NONE)
            return HEDDLE_PLAN_TEXT_BAD(r->t, "the plan is too long");
    }
}

static heddle_status keep(struct reader *r)
{
    struct heddle_plan_step *s = heddle_scratch_get(r->mem, r->steps.n, sizeof(*s));
    struct heddle_plan_place *q = heddle_scratch_get(r->mem, r->places.n, sizeof(*q));

    if (s == NULL || q == NULL)
        return no_memory(r);
    if (r->steps.n > 0)
        memcpy(s, r->steps.p, r->steps.n * sizeof(*s));
    if (r->places.n > 0)
        memcpy(q, r->places.p, r->places.n * sizeof(*q));
    r->p->steps = s;
    r->p->places = q;
    r->p->nsteps = (uint32_t)r->steps.n;
    r->p->nplaces = (uint32_t)r->places.n;
    return HEDDLE_OK;
}

static heddle_status read_parts(struct reader *r)
{
    heddle_status st = heddle_plan_text_line(r->t);

    if (st == HEDDLE_AGAIN)
        return HEDDLE_PLAN_TEXT_BAD(r->t, "the file is empty");
    if (st != HEDDLE_OK)
        return st;
    HEDDLE_TRY(heddle_plan_text_magic(r->t, HEDDLE_PLAN_MAGIC));
    HEDDLE_TRY(next_line(r));
    HEDDLE_TRY(heddle_plan_text_magic(r->t, HEDDLE_PLAN_MACHINE_MAGIC));
    HEDDLE_TRY(heddle_plan_read_machine(r->t, 0, true, &r->m));
    HEDDLE_TRY(next_line(r));
    HEDDLE_TRY(heddle_plan_text_magic(r->t, HEDDLE_PLAN_GRAPH_MAGIC));
    HEDDLE_TRY(heddle_plan_read_native(r->t, &r->g));
    r->p = heddle_plan_alloc(r->t->o->alloc, &r->mem);
    if (r->p == NULL)
        return no_memory(r);
    HEDDLE_TRY(next_line(r));
    HEDDLE_TRY(read_head(r));
    HEDDLE_TRY(read_body(r));
    st = heddle_plan_text_line(r->t);
    if (st == HEDDLE_OK)
        return HEDDLE_PLAN_TEXT_BAD(r->t, "something comes behind the line 'end'");
    return st == HEDDLE_AGAIN ? keep(r) : st;
}

heddle_status heddle_plan_read(const char *path, const struct heddle_plan_opts *opts,
                               struct heddle_plan_graph **graph_out,
                               struct heddle_plan_machine *machine_out,
                               struct heddle_plan **plan_out)
{
    struct heddle_plan_opts o;
    struct heddle_plan_text t;
    struct reader r = {.t = &t,
                       .steps = {.elem = sizeof(struct heddle_plan_step)},
                       .places = {.elem = sizeof(struct heddle_plan_place)}};
    heddle_status st;

    HEDDLE_TRY(heddle_plan_opts_get(opts, &o));
    if (path == NULL || graph_out == NULL || machine_out == NULL || plan_out == NULL)
        return HEDDLE_PLAN_FAIL(&o, HEDDLE_EINVAL, "there is no file name");
    HEDDLE_TRY(HEDDLE_SIZED_ROOM(struct heddle_plan_machine, machine_out, o.why, o.why_bytes));
    HEDDLE_TRY(heddle_plan_text_open(&t, path, &o));
    st = read_parts(&r);
    heddle_plan_vec_fini(&r.steps, o.alloc);
    heddle_plan_vec_fini(&r.places, o.alloc);
    heddle_plan_text_close(&t);
    if (st != HEDDLE_OK) {
        heddle_plan_graph_destroy(r.g);
        heddle_plan_destroy(r.p);
        return st;
    }
    *graph_out = r.g;
    heddle_sized_put(machine_out, &r.m, sizeof(r.m));
    *plan_out = r.p;
    return HEDDLE_OK;
}
