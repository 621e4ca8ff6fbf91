/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * text: lines and words of a file in memory.
 *
 * Bounds    a file has at most 1 GiB. Arrays grow with the lines that are there,
 *           never with a number that a file claims.
 */
#include "plan/file/text.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/file.h"
#include "base/number.h"
#include "base/text.h"

#define FILE_MAX ((size_t)1 << 30)

heddle_status heddle_plan_text_open(struct heddle_plan_text *t, const char *path,
                                    const struct heddle_plan_opts *o)
{
    const char *what = "";
    heddle_status st;

    memset(t, 0, sizeof(*t));
    t->o = o;
    t->path = path;
    t->has_comments = true;
    st = heddle_file_read(path, FILE_MAX, o->alloc, &t->text, &t->len, &what);
    if (st != HEDDLE_OK)
        return HEDDLE_PLAN_FAIL(o, st, "%s: %s", path, what);
    return HEDDLE_OK;
}

void heddle_plan_text_close(struct heddle_plan_text *t)
{
    if (t->text != NULL)
        heddle_free(t->o->alloc, t->text, t->len + 1);
    t->text = NULL;
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

char *heddle_plan_text_word(struct heddle_plan_text *t)
{
    char *s = t->rest, *e;

    while (is_blank(*s))
        s++;
    if (*s == '\0' || (*s == '#' && t->has_comments)) {
        t->rest = s + strlen(s);
        t->word = NULL;
        return NULL;
    }
    for (e = s; *e != '\0' && !is_blank(*e);)
        e++;
    t->rest = e + (*e != '\0');
    *e = '\0';
    t->word = s;
    return s;
}

static heddle_status check_bytes(const struct heddle_plan_text *t, const char *s, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (((unsigned char)s[i] < 32 && !is_blank(s[i])) || s[i] == 127)
            return HEDDLE_PLAN_TEXT_BAD(t,
                                        "this is not text: it has a byte of "
                                        "value %u",
                                        (unsigned)(unsigned char)s[i]);
    return HEDDLE_OK;
}

heddle_status heddle_plan_text_line(struct heddle_plan_text *t)
{
    while (t->next < t->len) {
        char *s = t->text + t->next;
        char *end = memchr(s, '\n', t->len - t->next);
        const size_t n = end != NULL ? (size_t)(end - s) : t->len - t->next;

        t->line++;
        t->next += n + (end != NULL);
        HEDDLE_TRY(check_bytes(t, s, n));
        s[n] = '\0';
        t->rest = s;
        if (heddle_plan_text_word(t) != NULL)
            return HEDDLE_OK;
    }
    return HEDDLE_AGAIN;
}

heddle_status heddle_plan_text_end(struct heddle_plan_text *t)
{
    const char *w = heddle_plan_text_word(t);

    return w == NULL ? HEDDLE_OK : HEDDLE_PLAN_TEXT_BAD(t, "'%.40s' is one word too many", w);
}

char *heddle_plan_text_value(char *word)
{
    char *e = strchr(word, '=');

    if (e == NULL)
        return NULL;
    *e = '\0';
    return e + 1;
}

heddle_status heddle_plan_text_u32(const struct heddle_plan_text *t, const char *word,
                                   const char *what, uint32_t max, uint32_t *out)
{
    uint64_t v = 0;

    if (word == NULL)
        return HEDDLE_PLAN_TEXT_BAD(t, "%s is missing", what);
    if (heddle_parse_u64(word, &v) != HEDDLE_OK)
        return HEDDLE_PLAN_TEXT_BAD(t, "%s is not a number: '%.40s'", what, word);
    if (v > max)
        return HEDDLE_PLAN_TEXT_BAD(t, "%s is %.40s: it can be %u at most", what, word, max);
    *out = (uint32_t)v;
    return HEDDLE_OK;
}

heddle_status heddle_plan_text_bytes(const struct heddle_plan_text *t, const char *word,
                                     const char *what, uint64_t *out)
{
    heddle_status st;

    if (word == NULL)
        return HEDDLE_PLAN_TEXT_BAD(t, "%s is missing", what);
    st = heddle_parse_size(word, 0, out);
    if (st == HEDDLE_EOVERFLOW)
        return HEDDLE_PLAN_TEXT_BAD(t, "%s is too large: '%.40s'", what, word);
    if (st != HEDDLE_OK)
        return HEDDLE_PLAN_TEXT_BAD(t, "%s is not a size: '%.40s'", what, word);
    return HEDDLE_OK;
}

heddle_status heddle_plan_text_time(const struct heddle_plan_text *t, const char *word,
                                    const char *what, double *out)
{
    if (word == NULL)
        return HEDDLE_PLAN_TEXT_BAD(t, "%s is missing", what);
    if (!heddle_number_finite(word, out))
        return HEDDLE_PLAN_TEXT_BAD(t, "%s is not a finite number: '%.40s'", what, word);
    if (*out < 0)
        return HEDDLE_PLAN_TEXT_BAD(t, "%s is negative: '%.40s'", what, word);
    return HEDDLE_OK;
}

heddle_status heddle_plan_text_magic(struct heddle_plan_text *t, const char *magic)
{
    uint32_t version = 0;

    if (strcmp(t->word, magic) != 0)
        return HEDDLE_PLAN_TEXT_BAD(t, "here should be '%s 1'", magic);
    HEDDLE_TRY(
        heddle_plan_text_u32(t, heddle_plan_text_word(t), "the version", UINT32_MAX, &version));
    if (version != 1)
        return HEDDLE_PLAN_TEXT_BAD(t, "version %u is not known, only 1", version);
    return heddle_plan_text_end(t);
}

/* ---- arrays -------------------------------------------------------------- */

void *heddle_plan_vec_add(struct heddle_plan_vec *v, const struct heddle_allocator *a)
{
    if (v->n == v->cap) {
        const size_t cap = v->cap == 0 ? 64 : 2 * v->cap;
        void *p = heddle_zalloc(a, cap, v->elem);

        if (p == NULL)
            return NULL;
        if (v->n > 0)
            memcpy(p, v->p, v->n * v->elem);
        heddle_free(a, v->p, v->cap * v->elem);
        v->p = p;
        v->cap = cap;
    }
    return (char *)v->p + v->elem * v->n++;
}

void heddle_plan_vec_fini(struct heddle_plan_vec *v, const struct heddle_allocator *a)
{
    heddle_free(a, v->p, v->cap * v->elem);
    v->p = NULL;
    v->n = v->cap = 0;
}

/* ---- parts --------------------------------------------------------------- */

void heddle_plan_parts_init(struct heddle_plan_parts *p)
{
    memset(p, 0, sizeof(*p));
    p->ops.elem = sizeof(struct heddle_plan_op);
    p->values.elem = sizeof(struct heddle_plan_value);
    p->inputs.elem = p->op_line.elem = p->value_line.elem = sizeof(uint32_t);
}

void heddle_plan_parts_fini(struct heddle_plan_parts *p, const struct heddle_allocator *a)
{
    heddle_plan_vec_fini(&p->ops, a);
    heddle_plan_vec_fini(&p->values, a);
    heddle_plan_vec_fini(&p->inputs, a);
    heddle_plan_vec_fini(&p->op_line, a);
    heddle_plan_vec_fini(&p->value_line, a);
}

heddle_status heddle_plan_parts_make(const struct heddle_plan_text *t,
                                     const struct heddle_plan_parts *p,
                                     struct heddle_plan_graph **out)
{
    const struct heddle_plan_graph d = {.size = sizeof(d),
                                        .name = p->name,
                                        .nops = (uint32_t)p->ops.n,
                                        .nvalues = (uint32_t)p->values.n,
                                        .ninputs = (uint32_t)p->inputs.n,
                                        .ops = p->ops.p,
                                        .values = p->values.p,
                                        .inputs = p->inputs.p,
                                        .unit_s = p->unit_s};
    const uint32_t *op_line = p->op_line.p;
    const uint32_t *value_line = p->value_line.n > 0 ? p->value_line.p : p->op_line.p;
    struct heddle_plan_text at = *t;
    struct heddle_plan_where where;
    struct heddle_plan_opts o = *t->o;
    char why[256] = "";

    if (p->ops.n > UINT32_MAX || p->values.n > UINT32_MAX || p->inputs.n > UINT32_MAX)
        return HEDDLE_PLAN_TEXT_BAD(t, "the graph is too large");
    o.why = why;
    o.why_bytes = sizeof(why);
    if (heddle_plan_graph_check(&d, &o, &where) == HEDDLE_OK)
        return heddle_plan_graph_create(&d, t->o, out);
    if (where.op != HEDDLE_PLAN_NONE)
        at.line = op_line[where.op];
    else if (where.value != HEDDLE_PLAN_NONE)
        at.line = value_line[where.value];
    return HEDDLE_PLAN_TEXT_BAD(&at, "%s", why);
}
