/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * read_chain: `.chain` files: five lines of numbers, or seven with workspaces.
 *
 *     L
 *     X[0] .. X[L]
 *     T[1] .. T[L]
 *     forward[0] .. forward[L-1]
 *     backward[0] .. backward[L-1]
 *     work_f[0] .. work_f[L-1]      optional, and then
 *     work_b[0] .. work_b[L-1]
 */
#include <math.h>
#include <string.h>

#include "base/assert.h"
#include "base/number.h"
#include "base/text.h"
#include "plan/file/text.h"

enum row { X, TAPE, FORWARD, BACKWARD, WORK_F, WORK_B, NROWS };

static const char *const row_name[NROWS] = {"activation sizes",   "tape sizes",
                                            "forward times",      "backward times",
                                            "forward workspaces", "backward workspaces"};

struct reader {
    struct heddle_plan_text *t;
    struct heddle_plan_vec row[NROWS]; /* of uint64_t or double */
    uint32_t n;
};

/* A size: an integer, or a decimal whose fraction is zero. */
static heddle_status read_size(struct reader *r, const char *w, uint64_t *out)
{
    double d = 0;

    if (heddle_parse_u64(w, out) == HEDDLE_OK)
        return HEDDLE_OK;
    if (!heddle_number_finite(w, &d))
        return HEDDLE_PLAN_TEXT_BAD(r->t, "'%.40s' is not a size", w);
    if (d < 0)
        return HEDDLE_PLAN_TEXT_BAD(r->t, "a size is negative: '%.40s'", w);
    if (d != floor(d) || d >= 0x1p62)
        return HEDDLE_PLAN_TEXT_BAD(r->t, "'%.40s' is not a whole number of bytes below 2^62", w);
    *out = (uint64_t)d;
    return HEDDLE_OK;
}

static heddle_status read_number(struct reader *r, enum row k, const char *w)
{
    void *p = heddle_plan_vec_add(&r->row[k], r->t->o->alloc);

    if (p == NULL)
        return HEDDLE_PLAN_FAIL(r->t->o, HEDDLE_ENOMEM, "%s: no memory for it", r->t->path);
    if (k == FORWARD || k == BACKWARD)
        return heddle_plan_text_time(r->t, w, "a time", p);
    return read_size(r, w, p);
}

static heddle_status read_row(struct reader *r, enum row k)
{
    const uint32_t want = r->n + (k == X);
    const size_t before = k == TAPE; /* T[0] is not in the file */

    if (before > 0)
        HEDDLE_TRY(read_number(r, k, "0"));
    for (const char *w = r->t->word; w != NULL; w = heddle_plan_text_word(r->t)) {
        if (r->row[k].n - before == want)
            return HEDDLE_PLAN_TEXT_BAD(r->t, "there are more than %u %s", want, row_name[k]);
        HEDDLE_TRY(read_number(r, k, w));
    }
    if (r->row[k].n - before != want)
        return HEDDLE_PLAN_TEXT_BAD(r->t, "there are %zu %s instead of %u", r->row[k].n - before,
                                    row_name[k], want);
    return HEDDLE_OK;
}

static heddle_status read_rows(struct reader *r)
{
    HEDDLE_TRY(heddle_plan_text_u32(r->t, r->t->word, "the number of layers", 1u << 26, &r->n));
    HEDDLE_TRY(heddle_plan_text_end(r->t));
    if (r->n == 0)
        return HEDDLE_PLAN_TEXT_BAD(r->t, "the chain has no layer");
    for (enum row k = X; k < NROWS; k++) {
        const heddle_status st = heddle_plan_text_line(r->t);

        if (st == HEDDLE_AGAIN && k == WORK_F)
            return HEDDLE_OK;
        if (st == HEDDLE_AGAIN)
            return HEDDLE_PLAN_TEXT_BAD(r->t, "the file ends before the %s", row_name[k]);
        if (st != HEDDLE_OK)
            return st;
        HEDDLE_TRY(read_row(r, k));
    }
    if (heddle_plan_text_line(r->t) != HEDDLE_AGAIN)
        return HEDDLE_PLAN_TEXT_BAD(r->t, "there are more than seven lines");
    return HEDDLE_OK;
}

/* The file's name without folder and ending. */
static const char *name_of(char *buf, size_t cap, const char *path)
{
    const char *slash = strrchr(path, '/');
    struct heddle_text t;
    char *dot;

    heddle_text_init(&t, buf, cap);
    heddle_text_str(&t, slash != NULL ? slash + 1 : path);
    dot = strrchr(buf, '.');
    if (dot != NULL && dot != buf)
        *dot = '\0';
    return buf;
}

static heddle_status make(struct reader *r, struct heddle_plan_graph **out)
{
    const struct heddle_plan_chain c = {.n = r->n,
                                        .x = r->row[X].p,
                                        .t = r->row[TAPE].p,
                                        .forward = r->row[FORWARD].p,
                                        .backward = r->row[BACKWARD].p,
                                        .work_f = r->row[WORK_F].p,
                                        .work_b = r->row[WORK_B].p};
    struct heddle_plan_opts o = *r->t->o;
    char name[128], why[256] = "";
    heddle_status st;

    o.why = why;
    o.why_bytes = sizeof(why);
    st = heddle_plan_graph_from_chain(&c, name_of(name, sizeof(name), r->t->path), &o, out);
    if (st == HEDDLE_EINVAL) {
        r->t->line = strstr(why, "tape") != NULL ? 3 : r->t->line;
        return HEDDLE_PLAN_TEXT_BAD(r->t, "%s", why);
    }
    return st == HEDDLE_OK ? st : HEDDLE_PLAN_FAIL(r->t->o, st, "%s: %s", r->t->path, why);
}

heddle_status heddle_plan_read_chain(struct heddle_plan_text *t, struct heddle_plan_graph **out)
{
    struct reader r = {.t = t};
    heddle_status st;

    for (enum row k = X; k < NROWS; k++)
        r.row[k].elem = sizeof(uint64_t);
    st = read_rows(&r);
    if (st == HEDDLE_OK)
        st = make(&r, out);
    for (enum row k = X; k < NROWS; k++)
        heddle_plan_vec_fini(&r.row[k], t->o->alloc);
    return st;
}
