/* SPDX-License-Identifier: BSD-3-Clause */
/* step: a kernel of src/dnn as a step, and moves of memory as one. */
#include "nn/op/step.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"

const int heddle_nn_nhwc[4] = {0, 2, 3, 1};

bool heddle_nn_is_f32(const struct nn_call *c)
{
    for (uint32_t i = 0; i < c->nin; i++)
        if (c->in[i].kind != NN_ABSENT && (c->in[i].kind != NN_TENSOR || c->in[i].type != NN_F32 ||
                                           !heddle_nn_is_concrete(&c->in[i].shape)))
            return false;
    for (uint32_t i = 0; i < c->nout; i++)
        if (c->out[i].kind != NN_ABSENT &&
            (c->out[i].kind != NN_TENSOR || c->out[i].type != NN_F32 ||
             !heddle_nn_is_concrete(&c->out[i].shape)))
            return false;
    return heddle_nn_count(&c->out[0].shape) > 0;
}

/* --- kernels of src/dnn ---------------------------------------------------------------- */

struct step_dnn {
    struct heddle_dnn *dnn;
    struct nn_step_in in;
    void *block;
    size_t block_bytes;
};

struct nn_step_in heddle_nn_step_in(unsigned n)
{
    struct nn_step_in in = {{0}, {0}, {0}};

    for (unsigned i = 0; i < DNN_MAX_IN; i++)
        in.from[i] = i < n ? (int8_t)i : STEP_NONE;
    return in;
}

struct dnn_make heddle_nn_make(struct nn_call *c)
{
    return (struct dnn_make){.size = sizeof(struct dnn_make),
                             .alloc = c->run->alloc,
                             .share = c->run->share,
                             .why = c->why,
                             .why_bytes = c->why_bytes};
}

static size_t step_dnn_scratch(const void *state, size_t nparts)
{
    return heddle_dnn_scratch_bytes(((const struct step_dnn *)state)->dnn, nparts);
}

static heddle_status step_dnn_run(const void *state, const struct nn_args *a, size_t part,
                                  size_t nparts, void *scratch)
{
    const struct step_dnn *s = state;
    const void *in[DNN_MAX_IN];
    void *out[2] = {a->out[0], NULL};

    for (unsigned i = 0; i < DNN_MAX_IN; i++)
        in[i] = s->in.from[i] < 0 ? s->in.own[i]
                : s->in.at[i] > 0 ? (const float *)a->in[s->in.from[i]] + s->in.at[i]
                                  : a->in[s->in.from[i]];
    heddle_dnn_run(s->dnn, in, out, part, nparts, scratch);
    return HEDDLE_OK;
}

static void step_dnn_destroy(const struct heddle_allocator *a, void *state)
{
    struct step_dnn *s = state;

    heddle_dnn_destroy(s->dnn);
    if (s->block != NULL)
        heddle_free(a, s->block, s->block_bytes);
    heddle_free(a, s, sizeof(*s));
}

heddle_status heddle_nn_dnn_step(struct nn_call *c, heddle_status st, struct heddle_dnn *o,
                                 const struct nn_step_in *in, void *block, size_t bytes,
                                 struct nn_step *out)
{
    struct step_dnn *s = st == HEDDLE_OK ? heddle_nn_alloc(c, sizeof(*s)) : NULL;

    if (s == NULL) {
        if (st == HEDDLE_OK)
            heddle_dnn_destroy(o);
        if (block != NULL)
            heddle_free(c->run->alloc, block, bytes);
        return st == HEDDLE_OK ? HEDDLE_ENOMEM : st;
    }
    *s = (struct step_dnn){o, *in, block, bytes};
    *out = (struct nn_step){.state = s,
                            .dnn = o,
                            .parts = heddle_dnn_parts(o),
                            .scratch = step_dnn_scratch,
                            .run = step_dnn_run,
                            .destroy = step_dnn_destroy};
    return HEDDLE_OK;
}

const struct heddle_dnn *heddle_nn_step_dnn(const struct nn_step *s)
{
    return s->run == step_dnn_run ? ((const struct step_dnn *)s->state)->dnn : NULL;
}

/* Steps of operand i of shape `s` through the result, in the order of the dimensions of shapes. */
static void map_steps(const struct nn_call *c, uint32_t i, const struct nn_shape *s,
                      int64_t step[NN_DIMS])
{
    const int64_t *d = s->dim;

    heddle_nn_broadcast_steps(s, &c->out[0].shape, step);
    if (!c->is_nhwc || s->rank != 4 || c->in[i].data != NULL)
        return;
    step[0] = d[0] == 1 ? 0 : d[1] * d[2] * d[3];
    step[1] = d[1] == 1 ? 0 : 1;
    step[2] = d[2] == 1 ? 0 : d[3] * d[1];
    step[3] = d[3] == 1 ? 0 : d[1];
}

heddle_status heddle_nn_map_step(struct nn_call *c, struct dnn_map *m, unsigned nin,
                                 const struct nn_shape *shape, struct nn_step *out)
{
    const struct nn_shape *to = &c->out[0].shape;
    const struct nn_step_in in = heddle_nn_step_in(nin);
    const struct dnn_make make = heddle_nn_make(c);
    struct heddle_dnn *o = NULL;
    heddle_status st;

    if (!heddle_nn_is_f32(c) || to->rank > DNN_MAX_RANK || nin > DNN_MAX_IN)
        return HEDDLE_ENOSYS;
    m->size = sizeof(*m);
    m->nin = nin;
    m->rank = to->rank > 0 ? (unsigned)to->rank : 1;
    m->dims[0] = 1;
    for (int d = 0; d < to->rank; d++)
        m->dims[d] = (size_t)to->dim[c->is_nhwc ? heddle_nn_nhwc[d] : d];
    for (unsigned i = 0; i < nin; i++) {
        int64_t step[NN_DIMS];

        map_steps(c, i, shape != NULL ? &shape[i] : &c->in[i].shape, step);
        for (int d = 0; d < to->rank; d++)
            m->stride[i][d] = (size_t)step[c->is_nhwc ? heddle_nn_nhwc[d] : d];
    }
    st = heddle_dnn_create_map(m, &make, &o);
    return heddle_nn_dnn_step(c, st, o, &in, NULL, 0, out);
}

void heddle_nn_map_one(const struct nn_call *c, struct nn_map *m, enum dnn_fn fn, float p, float q)
{
    *m = (struct nn_map){.m = {.nsteps = 1, .step = {{.fn = fn, .p = p, .q = q}}},
                         .nin = 1,
                         .shape = {c->in[0].shape}};
}

heddle_status heddle_nn_map_fast(struct nn_call *c, struct nn_step *out)
{
    struct nn_map m;

    HEDDLE_TRY(c->node->op->map(c, &m));
    return heddle_nn_map_step(c, &m.m, m.nin, m.shape, out);
}

/* The functions of src/dnn that have no row of their own in the standard, and the others. */
double heddle_nn_fn_f64(enum dnn_fn fn, double p, double q, double a, double b)
{
    switch (fn) {
    case DNN_RELU: return a < 0 ? 0 : a;
    case DNN_CLIP: return a < p ? p : a > q ? q : a;
    case DNN_GELU: return 0.5 * a * (1 + erf(a * sqrt(0.5)));
    case DNN_GELU_TANH: return 0.5 * a * (1 + tanh(sqrt(2 / M_PI) * (a + 0.044715 * a * a * a)));
    case DNN_SILU: return a / (1 + exp(-a));
    case DNN_SIGMOID: return 1 / (1 + exp(-a));
    case DNN_TANH: return tanh(a);
    case DNN_HARD_SWISH: return a * fmin(fmax(a / 6 + 0.5, 0), 1);
    case DNN_HARD_SIGMOID: return fmin(fmax(p * a + q, 0), 1);
    case DNN_LEAKY_RELU: return a < 0 ? p * a : a;
    case DNN_ELU: return a < 0 ? p * expm1(a) : a;
    case DNN_EXP: return exp(a);
    case DNN_LOG: return log(a);
    case DNN_ERF: return erf(a);
    case DNN_SQRT: return sqrt(a);
    case DNN_RECIPROCAL: return 1 / a;
    case DNN_ABS: return fabs(a);
    case DNN_NEG: return -a;
    case DNN_SQUARE: return a * a;
    case DNN_FLOOR: return floor(a);
    case DNN_CEIL: return ceil(a);
    case DNN_SIN: return sin(a);
    case DNN_COS: return cos(a);
    case DNN_LINEAR: return p * a + q;
    case DNN_ADD: return a + b;
    case DNN_SUB: return a - b;
    case DNN_MUL: return a * b;
    case DNN_DIV: return a / b;
    case DNN_MIN: return isnan(a) || a <= b ? a : b;
    case DNN_MAX: return isnan(a) || a >= b ? a : b;
    case DNN_POW: return pow(a, b);
    case DNN_COPY:
    case DNN_NFN: break;
    }
    return a;
}

/* --- moves -------------------------------------------------------------------------------- */

enum { MOVE_PARTS = 64, MOVE_PART_BYTES = 1 << 14 };

/* A row is the innermost dimension of a move; rows are numbered through all moves. */
struct step_move {
    size_t n, bytes, rows;
    struct nn_move move[];
};

static size_t move_rows(const struct nn_move *m)
{
    size_t rows = 1;

    for (unsigned d = 0; d + 1 < m->rank; d++)
        rows *= m->dim[d];
    return rows;
}

static void move_row(const struct nn_move *m, size_t row, const char *from, char *to)
{
    const unsigned last = m->rank - 1;
    const size_t n = m->dim[last];
    const int64_t step = m->from_step[last], to_step = m->to_step[last];

    from += m->from;
    to += m->to;
    for (unsigned d = last; d-- > 0; row /= m->dim[d]) {
        from += (int64_t)(row % m->dim[d]) * m->from_step[d];
        to += (int64_t)(row % m->dim[d]) * m->to_step[d];
    }
    if (step == (int64_t)m->each && to_step == step)
        memcpy(to, from, n * m->each);
    else if (m->each == 4)
        for (size_t i = 0; i < n; i++, from += step, to += to_step)
            memcpy(to, from, 4);
    else if (m->each == 8)
        for (size_t i = 0; i < n; i++, from += step, to += to_step)
            memcpy(to, from, 8);
    else
        for (size_t i = 0; i < n; i++, from += step, to += to_step)
            memcpy(to, from, m->each);
}

static heddle_status step_move_run(const void *state, const struct nn_args *a, size_t part,
                                   size_t nparts, void *scratch)
{
    const struct step_move *s = state;
    const size_t end = s->rows * (part + 1) / nparts;
    size_t at = s->rows * part / nparts, first = 0;

    (void)scratch;
    for (size_t i = 0; i < s->n && at < end; i++) {
        const struct nn_move *m = &s->move[i];
        const size_t rows = move_rows(m);

        for (; at < end && at < first + rows; at++)
            if (a->out[m->out] != NULL)
                move_row(m, at - first, a->in[m->in], a->out[m->out]);
        first += rows;
    }
    return HEDDLE_OK;
}

static void step_move_destroy(const struct heddle_allocator *a, void *state)
{
    struct step_move *s = state;

    heddle_free(a, s, s->bytes);
}

/* Dimensions of one element go, and those that are one piece of memory become one. */
static void move_simplify(struct nn_move *m)
{
    unsigned n = 0;

    for (unsigned d = 0; d < m->rank; d++) {
        if (m->dim[d] == 1)
            continue;
        if (n > 0 && m->from_step[n - 1] == m->from_step[d] * (int64_t)m->dim[d] &&
            m->to_step[n - 1] == m->to_step[d] * (int64_t)m->dim[d]) {
            m->dim[n - 1] *= m->dim[d];
        } else {
            m->dim[n++] = m->dim[d];
        }
        m->from_step[n - 1] = m->from_step[d];
        m->to_step[n - 1] = m->to_step[d];
    }
    if (n == 0) {
        m->dim[0] = 1;
        m->from_step[0] = m->to_step[0] = (int64_t)m->each;
        n = 1;
    }
    m->rank = n;
}

/* A long row in several. */
static void move_cut(struct nn_move *m)
{
    const unsigned last = m->rank - 1;
    size_t by = m->dim[last] * m->each / MOVE_PART_BYTES;

    if (m->rank == NN_DIMS || by < 2)
        return;
    by = by > MOVE_PARTS ? MOVE_PARTS : by;
    while (m->dim[last] % by != 0)
        by--;
    m->dim[m->rank] = m->dim[last] / by;
    m->from_step[m->rank] = m->from_step[last];
    m->to_step[m->rank] = m->to_step[last];
    m->dim[last] = by;
    m->from_step[last] *= (int64_t)m->dim[m->rank];
    m->to_step[last] *= (int64_t)m->dim[m->rank];
    m->rank++;
}

heddle_status heddle_nn_move_step(struct nn_call *c, const struct nn_move *move, size_t n,
                                  struct nn_step *out)
{
    const size_t bytes = sizeof(struct step_move) + n * sizeof(*move);
    struct step_move *s = heddle_nn_alloc(c, bytes);
    size_t size = 0;

    if (s == NULL)
        return HEDDLE_ENOMEM;
    *s = (struct step_move){.bytes = bytes};
    for (size_t i = 0; i < n; i++) {
        struct nn_move m = move[i];
        size_t count = 1;

        for (unsigned d = 0; d < m.rank; d++)
            count *= m.dim[d];
        if (count == 0)
            continue;
        move_simplify(&m);
        move_cut(&m);
        size += count * m.each;
        s->rows += move_rows(&m);
        s->move[s->n++] = m;
    }
    *out = (struct nn_step){
        .state = s, .parts = 1, .run = step_move_run, .destroy = step_move_destroy};
    while (out->parts < MOVE_PARTS && out->parts < s->rows && out->parts * MOVE_PART_BYTES < size)
        out->parts++;
    return HEDDLE_OK;
}
