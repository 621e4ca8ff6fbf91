/* SPDX-License-Identifier: BSD-3-Clause */
/* machine: machines in our text format. */
#include <math.h>
#include <string.h>

#include "base/assert.h"
#include "base/number.h"
#include "base/sized.h"
#include "plan/file/text.h"

/* "", K, M, G, T: powers of 1000; Ki, Mi, ...: of 1024. Behind it B or not. */
static double take_unit(const char **s)
{
    static const char letters[] = "KMGT";
    const char *k = **s != '\0' ? strchr(letters, **s) : NULL;
    double factor = 1;

    if (**s == 'k')
        k = letters;
    if (k != NULL) {
        const double base = (*s)[1] == 'i' ? 1024 : 1000;

        factor = pow(base, (double)(k - letters + 1));
        *s += base == 1024 ? 2 : 1;
    }
    if (**s == 'B')
        ++*s;
    return factor;
}

heddle_status heddle_plan_parse_rate(const char *text, double unit_s, double *out)
{
    const char *s = text;
    double v = 0;

    if (text == NULL || out == NULL || !heddle_number_scan(text, &s, &v))
        return HEDDLE_EINVAL;
    v *= take_unit(&s);
    if (strcmp(s, "/s") == 0 && unit_s > 0)
        v *= unit_s;
    else if (*s != '\0')
        return HEDDLE_EINVAL;
    if (!isfinite(v) || v < 0)
        return HEDDLE_EINVAL;
    *out = v;
    return HEDDLE_OK;
}

static heddle_status read_rate(struct heddle_plan_text *t, const char *w, double unit_s,
                               double *out)
{
    if (w == NULL)
        return HEDDLE_PLAN_TEXT_BAD(t, "a rate is missing");
    if (heddle_plan_parse_rate(w, unit_s, out) == HEDDLE_OK)
        return HEDDLE_OK;
    if (unit_s == 0 && strstr(w, "/s") != NULL)
        return HEDDLE_PLAN_TEXT_BAD(t,
                                    "a rate is per second, and the graph does "
                                    "not say what its unit of time is: '%.40s'",
                                    w);
    return HEDDLE_PLAN_TEXT_BAD(t, "not a rate: '%.40s'", w);
}

/* host out=RATE in=RATE [bytes=SIZE] */
static heddle_status read_store(struct heddle_plan_text *t, double unit_s,
                                struct heddle_plan_store *s)
{
    char *w;

    while ((w = heddle_plan_text_word(t)) != NULL) {
        const char *arg = heddle_plan_text_value(w);

        if (strcmp(w, "out") == 0)
            HEDDLE_TRY(read_rate(t, arg, unit_s, &s->out_rate));
        else if (strcmp(w, "in") == 0)
            HEDDLE_TRY(read_rate(t, arg, unit_s, &s->in_rate));
        else if (strcmp(w, "bytes") == 0)
            HEDDLE_TRY(heddle_plan_text_bytes(t, arg, w, &s->bytes));
        else
            return HEDDLE_PLAN_TEXT_BAD(t, "'%.40s' is not known here", w);
    }
    if (!(s->out_rate > 0) || !(s->in_rate > 0))
        return HEDDLE_PLAN_TEXT_BAD(t, "a store needs 'out=' and 'in=', more "
                                       "than 0");
    return HEDDLE_OK;
}

static heddle_status read_line(struct heddle_plan_text *t, double unit_s,
                               struct heddle_plan_machine *m)
{
    const char *w = t->word;

    if (strcmp(w, "host") == 0)
        return read_store(t, unit_s, &m->host);
    if (strcmp(w, "disk") == 0)
        return read_store(t, unit_s, &m->disk);
    if (strcmp(w, "budget") == 0)
        HEDDLE_TRY(heddle_plan_text_bytes(t, heddle_plan_text_word(t), w, &m->budget));
    else if (strcmp(w, "align") == 0)
        HEDDLE_TRY(heddle_plan_text_bytes(t, heddle_plan_text_word(t), w, &m->align));
    else if (strcmp(w, "devices") == 0)
        HEDDLE_TRY(heddle_plan_text_u32(t, heddle_plan_text_word(t), w, 65536, &m->ndevices));
    else if (strcmp(w, "link") == 0)
        HEDDLE_TRY(read_rate(t, heddle_plan_text_word(t), unit_s, &m->link_rate));
    else
        return HEDDLE_PLAN_TEXT_BAD(t, "a line cannot begin with '%.40s' here", w);
    return heddle_plan_text_end(t);
}

heddle_status heddle_plan_read_machine(struct heddle_plan_text *t, double unit_s, bool must_end,
                                       struct heddle_plan_machine *out)
{
    struct heddle_plan_machine m;
    char why[256] = "";
    struct heddle_plan_opts o = *t->o;
    heddle_status st;

    memset(&m, 0, sizeof(m));
    m.size = sizeof(m);
    while ((st = heddle_plan_text_line(t)) == HEDDLE_OK) {
        if (strcmp(t->word, "end") == 0) {
            HEDDLE_TRY(heddle_plan_text_end(t));
            break;
        }
        HEDDLE_TRY(read_line(t, unit_s, &m));
    }
    if (st == HEDDLE_AGAIN && must_end)
        return HEDDLE_PLAN_TEXT_BAD(t, "the file ends before the line 'end'");
    if (st != HEDDLE_OK && st != HEDDLE_AGAIN)
        return st;
    o.why = why;
    o.why_bytes = sizeof(why);
    if (heddle_plan_machine_get(&m, &o, out) != HEDDLE_OK)
        return HEDDLE_PLAN_TEXT_BAD(t, "%s", why);
    return HEDDLE_OK;
}

heddle_status heddle_plan_machine_read(const char *path, double unit_s,
                                       const struct heddle_plan_opts *opts,
                                       struct heddle_plan_machine *out)
{
    struct heddle_plan_opts o;
    struct heddle_plan_machine m;
    struct heddle_plan_text t;
    heddle_status st;

    HEDDLE_TRY(heddle_plan_opts_get(opts, &o));
    if (path == NULL || out == NULL || !isfinite(unit_s) || unit_s < 0)
        return HEDDLE_PLAN_FAIL(&o, HEDDLE_EINVAL, "there is no file name, or no unit of time");
    HEDDLE_TRY(HEDDLE_SIZED_ROOM(struct heddle_plan_machine, out, o.why, o.why_bytes));
    HEDDLE_TRY(heddle_plan_text_open(&t, path, &o));
    st = heddle_plan_text_line(&t);
    if (st == HEDDLE_AGAIN)
        st = HEDDLE_PLAN_TEXT_BAD(&t, "the file is empty");
    if (st == HEDDLE_OK)
        st = heddle_plan_text_magic(&t, HEDDLE_PLAN_MACHINE_MAGIC);
    if (st == HEDDLE_OK)
        st = heddle_plan_read_machine(&t, unit_s, false, &m);
    if (st == HEDDLE_OK)
        heddle_sized_put(out, &m, sizeof(m));
    heddle_plan_text_close(&t);
    return st;
}
