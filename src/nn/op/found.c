/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * found: what data are: IsInf and IsNaN by element, NonZero the places, Unique the different
 * values.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "nn/op/op.h"

/* --- IsInf, IsNaN ------------------------------------------------------------- */

static heddle_status is_shape(struct nn_call *c)
{
    c->out[0] = heddle_nn_tensor(NN_BOOL, &c->in[0].shape);
    return HEDDLE_OK;
}

static heddle_status is_inf_ref(struct nn_call *c)
{
    const bool high = heddle_nn_int(c, "detect_positive", 1) != 0,
               low = heddle_nn_int(c, "detect_negative", 1) != 0;
    const size_t n = heddle_nn_count(&c->in[0].shape);

    for (size_t i = 0; i < n; i++) {
        const double v = heddle_nn_get_f64(c->in[0].type, c->in[0].data, i);

        ((uint8_t *)c->out[0].data)[i] = isinf(v) && (v > 0 ? high : low);
    }
    return HEDDLE_OK;
}

static heddle_status is_nan_ref(struct nn_call *c)
{
    const size_t n = heddle_nn_count(&c->in[0].shape);

    for (size_t i = 0; i < n; i++)
        ((uint8_t *)c->out[0].data)[i] =
            isnan(heddle_nn_get_f64(c->in[0].type, c->in[0].data, i)) != 0;
    return HEDDLE_OK;
}

/* --- NonZero --------------------------------------------------------------------- */

static heddle_status non_zero_shape(struct nn_call *c)
{
    const int rank = c->in[0].shape.rank;

    c->out[0] = heddle_nn_tensor(
        NN_I64, &(struct nn_shape){.rank = 2, .dim = {rank < 0 ? NN_UNKNOWN : rank, NN_UNKNOWN}});
    return HEDDLE_OK;
}

static heddle_status non_zero_ref(struct nn_call *c)
{
    const struct nn_shape *x = &c->in[0].shape;
    const size_t n = heddle_nn_count(x);
    struct nn_shape out = {.rank = 2, .dim = {x->rank, 0}};
    size_t *found = heddle_nn_temp(c, n + 1, sizeof(*found));
    size_t nfound = 0;

    if (found == NULL)
        return HEDDLE_ENOMEM;
    for (size_t i = 0; i < n; i++)
        if (heddle_nn_get_f64(c->in[0].type, c->in[0].data, i) != 0)
            found[nfound++] = i;
    out.dim[1] = (int64_t)nfound;
    HEDDLE_TRY(heddle_nn_out(c, 0, NN_I64, &out));
    for (size_t k = 0; k < nfound; k++) {
        size_t rest = found[k];

        for (int d = x->rank - 1; d >= 0; d--) {
            ((int64_t *)c->out[0].data)[(size_t)d * nfound + k] =
                (int64_t)(rest % (size_t)x->dim[d]);
            rest /= (size_t)x->dim[d];
        }
    }
    return HEDDLE_OK;
}

/* --- Unique -------------------------------------------------------------------------- */

/* Slices of the operand along an axis; without one every element is a slice. */
struct slices {
    const struct nn_value *x;
    size_t n, outer, inner; /* slice k: elements (o * n + k) * inner + i */
};

static int compare_elements(const struct nn_value *x, size_t a, size_t b)
{
    if (x->type == NN_STR) {
        const struct heddle_onnx_bytes *s = x->data;
        const size_t n = s[a].len < s[b].len ? s[a].len : s[b].len;
        const int d = n > 0 ? memcmp(s[a].ptr, s[b].ptr, n) : 0;

        return d != 0 ? d : (s[a].len > s[b].len) - (s[a].len < s[b].len);
    }
    if ((NN_M(x->type) & NN_M_FLOAT) != 0) {
        const double u = heddle_nn_get_f64(x->type, x->data, a),
                     v = heddle_nn_get_f64(x->type, x->data, b);

        return (u > v) - (u < v);
    }
    const int64_t u = heddle_nn_get_i64(x->type, x->data, a),
                  v = heddle_nn_get_i64(x->type, x->data, b);

    return x->type == NN_U64 ? ((uint64_t)u > (uint64_t)v) - ((uint64_t)u < (uint64_t)v)
                             : (u > v) - (u < v);
}

static int compare_slices(const struct slices *s, size_t a, size_t b)
{
    for (size_t e = 0; e < s->outer * s->inner; e++) {
        const size_t base = e / s->inner * s->n * s->inner + e % s->inner;
        const int d = compare_elements(s->x, base + a * s->inner, base + b * s->inner);

        if (d != 0)
            return d;
    }
    return 0;
}

/* Sorts the numbers of slices by what is in them, then by number: by merging, since qsort() has
 * no user argument. */
static void sort_slices(const struct slices *s, size_t *list, size_t *spare, size_t n)
{
    const size_t half = n / 2;
    size_t a = 0, b = half;

    if (n < 2)
        return;
    sort_slices(s, list, spare, half);
    sort_slices(s, list + half, spare, n - half);
    memcpy(spare, list, n * sizeof(*list));
    for (size_t k = 0; k < n; k++) {
        const bool takes_a = b >= n || (a < half && compare_slices(s, spare[a], spare[b]) <= 0);

        list[k] = takes_a ? spare[a++] : spare[b++];
    }
}

/* One of the different values: the first slice that has it, and how many have it. */
struct group {
    size_t first, count, place; /* place: in the order of the result */
};

static int by_first(const void *pa, const void *pb)
{
    const struct group *a = pa, *b = pb;

    return (a->first > b->first) - (a->first < b->first);
}

static heddle_status unique_shape(struct nn_call *c)
{
    const struct nn_shape one = {.rank = 1, .dim = {NN_UNKNOWN}};
    struct nn_shape out = c->in[0].shape;
    int axis;

    if (!heddle_nn_has(c, "axis")) {
        out = one;
    } else if (out.rank >= 0) {
        HEDDLE_TRY(heddle_nn_axis(c, heddle_nn_int(c, "axis", 0), out.rank, &axis));
        out.dim[axis] = NN_UNKNOWN;
    }
    c->out[0] = heddle_nn_tensor(c->in[0].type, &out);
    for (uint32_t i = 1; i < c->nout; i++)
        c->out[i] = heddle_nn_tensor(NN_I64, &one);
    return HEDDLE_OK;
}

/* Groups of equal slices, and the group of each slice. */
static heddle_status find_groups(struct nn_call *c, const struct slices *s, struct group *group,
                                 size_t *of, size_t *ngroups)
{
    size_t *list = heddle_nn_temp(c, s->n + 1, sizeof(*list)),
           *spare = heddle_nn_temp(c, s->n + 1, sizeof(*spare)), n = 0;

    if (list == NULL || spare == NULL)
        return HEDDLE_ENOMEM;
    for (size_t k = 0; k < s->n; k++)
        list[k] = k;
    sort_slices(s, list, spare, s->n);
    for (size_t k = 0; k < s->n; k++) {
        if (k == 0 || compare_slices(s, list[k - 1], list[k]) != 0) {
            group[n] = (struct group){.first = list[k], .place = n};
            n++;
        }
        group[n - 1].count++;
        of[list[k]] = n - 1;
    }
    *ngroups = n;
    return HEDDLE_OK;
}

static heddle_status unique_results(struct nn_call *c, const struct slices *s,
                                    const struct group *group, size_t n, const size_t *of,
                                    const size_t *place)
{
    const struct nn_shape one = {.rank = 1, .dim = {(int64_t)n}},
                          all = {.rank = 1, .dim = {(int64_t)s->n}};
    const size_t bytes = heddle_nn_type_bytes(s->x->type) * s->inner;

    for (size_t k = 0; k < n; k++)
        for (size_t o = 0; o < s->outer; o++)
            memcpy((char *)c->out[0].data + (o * n + k) * bytes,
                   (const char *)s->x->data + (o * s->n + group[k].first) * bytes, bytes);
    for (uint32_t i = 1; i < c->nout; i++)
        HEDDLE_TRY(heddle_nn_out(c, i, NN_I64, i == 2 ? &all : &one));
    for (size_t k = 0; k < n && c->nout > 1; k++) {
        ((int64_t *)c->out[1].data)[k] = (int64_t)group[k].first;
        if (c->nout > 3)
            ((int64_t *)c->out[3].data)[k] = (int64_t)group[k].count;
    }
    for (size_t k = 0; k < s->n && c->nout > 2; k++)
        ((int64_t *)c->out[2].data)[k] = (int64_t)place[of[k]];
    return HEDDLE_OK;
}

static heddle_status unique_ref(struct nn_call *c)
{
    const struct nn_shape *x = &c->in[0].shape;
    struct slices s = {.x = &c->in[0], .n = heddle_nn_count(x), .outer = 1, .inner = 1};
    struct nn_shape out = {.rank = 1};
    size_t ngroups, *of, *place;
    struct group *group;
    int axis = 0;

    if (heddle_nn_has(c, "axis")) {
        HEDDLE_TRY(heddle_nn_axis(c, heddle_nn_int(c, "axis", 0), x->rank, &axis));
        s = (struct slices){&c->in[0], (size_t)x->dim[axis], heddle_nn_count_range(x, 0, axis),
                            heddle_nn_count_range(x, axis + 1, x->rank)};
        out = *x;
    }
    group = heddle_nn_temp(c, s.n + 1, sizeof(*group));
    of = heddle_nn_temp(c, s.n + 1, sizeof(*of));
    place = heddle_nn_temp(c, s.n + 1, sizeof(*place));
    if (group == NULL || of == NULL || place == NULL)
        return HEDDLE_ENOMEM;
    HEDDLE_TRY(find_groups(c, &s, group, of, &ngroups));
    if (heddle_nn_int(c, "sorted", 1) == 0)
        qsort(group, ngroups, sizeof(*group), by_first);
    for (size_t k = 0; k < ngroups; k++)
        place[group[k].place] = k;
    out.dim[axis] = (int64_t)ngroups;
    HEDDLE_TRY(heddle_nn_out(c, 0, c->in[0].type, &out));
    return unique_results(c, &s, group, ngroups, of, place);
}

static const struct nn_attr_rule inf_attrs[] = {
    {"detect_negative", NN_INT, false}, {"detect_positive", NN_INT, false}, {0}};
static const struct nn_attr_rule unique_attrs[] = {
    {"axis", NN_INT, false}, {"sorted", NN_INT, false}, {0}};

const struct nn_op heddle_nn_op_found[] = {
    {.name = "IsInf",
     .since = 10,
     .nin_min = 1,
     .nin_max = 1,
     .type = {NN_M_FLOAT | NN_M_F8},
     .attrs = inf_attrs,
     .shape = is_shape,
     .ref = is_inf_ref},
    {.name = "IsNaN",
     .since = 9,
     .nin_min = 1,
     .nin_max = 1,
     .type = {NN_M_FLOAT | NN_M_F8},
     .shape = is_shape,
     .ref = is_nan_ref},
    {.name = "NonZero",
     .since = 9,
     .nin_min = 1,
     .nin_max = 1,
     .type = {NN_M_NUM | NN_M(NN_BOOL)},
     .flags = NN_DYNAMIC,
     .shape = non_zero_shape,
     .ref = non_zero_ref},
    {.name = "Unique",
     .since = 11,
     .nin_min = 1,
     .nin_max = 1,
     .nout_min = 1,
     .nout_max = 4,
     .type = {NN_M_NUM | NN_M(NN_BOOL) | NN_M(NN_STR)},
     .flags = NN_DYNAMIC,
     .attrs = unique_attrs,
     .shape = unique_shape,
     .ref = unique_ref},
    {0},
};
