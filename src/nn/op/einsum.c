/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * einsum: sums of products as a text says: "bij,bjk->bik". A letter stands for a dimension;
 * letters that the result lacks are summed over. "..." stands for dimensions that are broadcast.
 * Without "->" the result has the letters that occur once, in the order of the alphabet.
 */
#include <string.h>

#include "base/assert.h"
#include "nn/op/op.h"

enum {
    NLETTERS = 52,
    NDOTS = NN_DIMS,            /* numbers of the dimensions behind "..." */
    NLABELS = NLETTERS + NDOTS, /* a label is a letter, or one of these */
    NTERMS = 16
};

/* The labels of an operand, or of the result. */
struct term {
    int n, label[NN_DIMS];
};

struct einsum {
    struct term in[NTERMS], out;
    uint32_t nin;
    int64_t size[NLABELS]; /* -1: not seen, or not known */
    bool is_seen[NLABELS];
    int ndots; /* the most dimensions that "..." stands for */
};

static int letter_of(char ch)
{
    if (ch >= 'A' && ch <= 'Z')
        return ch - 'A';
    return ch >= 'a' && ch <= 'z' ? 26 + ch - 'a' : -1;
}

/* The text up to a comma or the arrow; rank: of the operand, -1 for the result. */
static heddle_status read_term(struct nn_call *c, const char **text, const char *end, int rank,
                               int ndots, struct term *t)
{
    const char *s = *text;
    int letters = 0;

    t->n = 0;
    for (const char *p = s; p < end && *p != ',' && *p != '-'; p++)
        letters += letter_of(*p) >= 0;
    for (; s < end && *s != ',' && *s != '-'; s++) {
        const bool is_dots = end - s >= 3 && memcmp(s, "...", 3) == 0;
        const int n = !is_dots ? 1 : rank < 0 ? ndots : rank - letters;

        if (*s == ' ')
            continue;
        if ((!is_dots && letter_of(*s) < 0) || n < 0 || t->n + n > NN_DIMS)
            return heddle_nn_fail(c, HEDDLE_EINVAL, "'equation' does not fit the operands");
        for (int i = 0; i < n; i++) /* the last of them is label 0 of the dots, and so on */
            t->label[t->n++] = is_dots ? NLETTERS + n - 1 - i : letter_of(*s);
        s += is_dots ? 2 : 0;
    }
    if (rank >= 0 && t->n != rank)
        return heddle_nn_fail(c, HEDDLE_EINVAL, "'equation' has %d letters for %d dimensions", t->n,
                              rank);
    *text = s;
    return HEDDLE_OK;
}

static heddle_status read_operand(struct nn_call *c, struct einsum *e, uint32_t i)
{
    const struct nn_shape *x = &c->in[i].shape;

    for (int d = 0; d < x->rank; d++) {
        const int l = e->in[i].label[d];

        if (l >= NLETTERS && l - NLETTERS + 1 > e->ndots)
            e->ndots = l - NLETTERS + 1;
        e->is_seen[l] = true;
        if (e->size[l] < 0 || e->size[l] == 1)
            e->size[l] = x->dim[d];
        else if (x->dim[d] >= 0 && x->dim[d] != 1 && x->dim[d] != e->size[l])
            return heddle_nn_fail(c, HEDDLE_EINVAL, "a letter of 'equation' is %lld and %lld",
                                  (long long)e->size[l], (long long)x->dim[d]);
    }
    return HEDDLE_OK;
}

/* Without an arrow: the dots, then letters that occur once. */
static void implied_result(struct einsum *e)
{
    int count[NLETTERS] = {0};

    for (uint32_t i = 0; i < e->nin; i++)
        for (int d = 0; d < e->in[i].n; d++)
            if (e->in[i].label[d] < NLETTERS)
                count[e->in[i].label[d]]++;
    for (int d = e->ndots - 1; d >= 0 && e->out.n < NN_DIMS; d--)
        e->out.label[e->out.n++] = NLETTERS + d;
    for (int l = 0; l < NLETTERS && e->out.n < NN_DIMS; l++)
        if (count[l] == 1)
            e->out.label[e->out.n++] = l;
}

static heddle_status read_equation(struct nn_call *c, struct einsum *e)
{
    const struct heddle_onnx_attr *a = heddle_nn_attr(c, "equation");
    const char *s = a->s.ptr, *end = s + a->s.len;

    *e = (struct einsum){.nin = c->nin};
    memset(e->size, 0xff, sizeof(e->size));
    if (c->nin > NTERMS)
        return heddle_nn_fail(c, HEDDLE_ENOSYS, "more than %d operands", NTERMS);
    for (uint32_t i = 0; i < c->nin; i++) {
        if (i > 0 && (s == end || *s++ != ','))
            return heddle_nn_fail(c, HEDDLE_EINVAL, "'equation' has fewer terms than operands");
        HEDDLE_TRY(read_term(c, &s, end, c->in[i].shape.rank, 0, &e->in[i]));
        HEDDLE_TRY(read_operand(c, e, i));
    }
    if (s == end) {
        implied_result(e);
        return HEDDLE_OK;
    }
    if (end - s < 2 || memcmp(s, "->", 2) != 0)
        return heddle_nn_fail(c, HEDDLE_EINVAL, "'equation' has more terms than operands");
    s += 2;
    HEDDLE_TRY(read_term(c, &s, end, -1, e->ndots, &e->out));
    for (int d = 0; d < e->out.n; d++)
        if (s != end || !e->is_seen[e->out.label[d]])
            return heddle_nn_fail(c, HEDDLE_EINVAL, "'equation' has a letter in the result alone");
    return HEDDLE_OK;
}

static heddle_status einsum_shape(struct nn_call *c)
{
    struct nn_shape out = {.rank = -1};
    struct einsum e;

    for (uint32_t i = 0; i < c->nin; i++) {
        if (c->in[i].shape.rank < 0) {
            c->out[0] = heddle_nn_tensor(c->in[0].type, &out);
            return HEDDLE_OK;
        }
    }
    HEDDLE_TRY(read_equation(c, &e));
    out.rank = e.out.n;
    for (int d = 0; d < e.out.n; d++)
        out.dim[d] = e.size[e.out.label[d]];
    c->out[0] = heddle_nn_tensor(c->in[0].type, &out);
    return HEDDLE_OK;
}

/* The labels in the order of a walk: those of the result, then those that are summed over. */
struct walk {
    int n, label[NLABELS];
    size_t step[NTERMS + 1][NLABELS]; /* of operands, and of the result */
};

static void add_steps(struct walk *w, const struct term *t, const struct nn_shape *s, size_t *step)
{
    size_t size = 1;

    memset(step, 0, NLABELS * sizeof(*step));
    for (int d = t->n - 1; d >= 0; d--) {
        for (int k = 0; k < w->n; k++)
            if (w->label[k] == t->label[d] && s->dim[d] != 1)
                step[k] += size; /* a letter that occurs twice walks the diagonal */
        size *= (size_t)s->dim[d];
    }
}

static void walk_begin(struct nn_call *c, const struct einsum *e, struct walk *w)
{
    bool is_out[NLABELS] = {false};

    w->n = 0;
    for (int d = 0; d < e->out.n; d++) {
        is_out[e->out.label[d]] = true;
        w->label[w->n++] = e->out.label[d];
    }
    for (int l = 0; l < NLABELS; l++)
        if (e->is_seen[l] && !is_out[l])
            w->label[w->n++] = l;
    for (uint32_t i = 0; i < e->nin; i++)
        add_steps(w, &e->in[i], &c->in[i].shape, w->step[i]);
    add_steps(w, &e->out, &c->out[0].shape, w->step[e->nin]);
}

static heddle_status einsum_ref(struct nn_call *c)
{
    double *y = heddle_nn_f64_out(c, 0);
    struct walk *w = heddle_nn_temp(c, 1, sizeof(*w));
    const double *x[NTERMS];
    size_t at[NTERMS + 1] = {0}, count[NLABELS] = {0}, total = 1;
    struct einsum e;

    if (y == NULL || w == NULL)
        return HEDDLE_ENOMEM;
    HEDDLE_TRY(read_equation(c, &e));
    walk_begin(c, &e, w);
    for (uint32_t i = 0; i < e.nin; i++) {
        x[i] = heddle_nn_f64(c, i);
        if (x[i] == NULL)
            return HEDDLE_ENOMEM;
    }
    for (int k = 0; k < w->n; k++)
        total *= (size_t)e.size[w->label[k]];
    for (size_t r = 0; r < total; r++) {
        double v = 1;

        for (uint32_t i = 0; i < e.nin; i++)
            v *= x[i][at[i]];
        y[at[e.nin]] += v;
        for (int k = w->n - 1; k >= 0; k--) {
            const size_t size = (size_t)e.size[w->label[k]];

            for (uint32_t i = 0; i <= e.nin; i++)
                at[i] += w->step[i][k];
            if (++count[k] < size)
                break;
            for (uint32_t i = 0; i <= e.nin; i++)
                at[i] -= w->step[i][k] * size;
            count[k] = 0;
        }
    }
    heddle_nn_f64_done(c, 0, y);
    return HEDDLE_OK;
}

static const struct nn_attr_rule attrs[] = {{"equation", NN_STRING, true}, {0}};

const struct nn_op heddle_nn_op_einsum[] = {
    {.name = "Einsum",
     .since = 12,
     .nin_min = 1,
     .nin_max = NN_MANY,
     .type = {NN_M_NUM},
     .same = UINT32_MAX,
     .attrs = attrs,
     .shape = einsum_shape,
     .ref = einsum_ref},
    {0},
};
