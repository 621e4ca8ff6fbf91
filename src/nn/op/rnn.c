/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rnn: recurrent layers: RNN, GRU and LSTM, forward, backward, or both.
 *
 * Operands  X [time, batch, input], W [directions, gates hidden, input], R [directions, gates
 *           hidden, hidden], B [directions, 2 gates hidden], lengths [batch], H0, and for LSTM
 *           C0 and peepholes P. `layout` 1 has the batch first.
 * Results   Y [time, directions, batch, hidden], the last H, and for LSTM the last C.
 * Lengths   behind the end of a sequence its state stays, and Y is 0.
 */
#include <math.h>
#include <string.h>
#include <strings.h>

#include "base/assert.h"
#include "nn/op/op.h"

enum { RNN_GATES = 4, RNN_FNS = 3 };

struct fn {
    double (*f)(double x, double a, double b);
    double a, b;
};

/* One layer in one direction. */
struct layer {
    size_t time, batch, input, hidden;
    size_t gates;
    const double *x, *w, *r, *b, *p; /* b and p: NULL when absent */
    const int64_t *length;           /* NULL: all of the same length */
    bool is_backward, is_linear;     /* linear: the reset gate comes behind the product */
    bool couples;                    /* LSTM: the forget gate is 1 - input gate */
    double clip;
    struct fn fn[RNN_FNS];
    double *h, *c; /* state: batch x hidden */
    double *gate;  /* gates x hidden, of one sequence */
    double *kept;  /* hidden */
};

struct family {
    size_t gates, nfns;
    const char *fn[RNN_FNS];
    void (*step)(struct layer *l, size_t batch, const double *x);
};

/* --- functions by name ---------------------------------------------------------- */

#define FN(name, expr)                                                                             \
    static double fn_##name(double x, double a, double b)                                          \
    {                                                                                              \
        (void)a;                                                                                   \
        (void)b;                                                                                   \
        return expr;                                                                               \
    }
FN(sigmoid, 1 / (1 + exp(-x)))
FN(tanh, tanh(x))
FN(relu, x > 0 ? x : 0)
FN(affine, a *x + b)
FN(leaky, x < 0 ? a * x : x)
FN(thresholded, x > a ? x : 0)
FN(scaled_tanh, a *tanh(b *x))
FN(hard_sigmoid, fmin(fmax(a *x + b, 0), 1))
FN(elu, x < 0 ? a * expm1(x) : x)
FN(softsign, x / (1 + fabs(x)))
FN(softplus, log1p(exp(x)))
#undef FN

static const struct {
    const char *name;
    double (*f)(double, double, double);
    double a, b; /* where none are said */
} functions[] = {{"Sigmoid", fn_sigmoid, 0, 0},
                 {"Tanh", fn_tanh, 0, 0},
                 {"Relu", fn_relu, 0, 0},
                 {"Affine", fn_affine, 1, 0},
                 {"LeakyRelu", fn_leaky, 0.01, 0},
                 {"ThresholdedRelu", fn_thresholded, 1, 0},
                 {"ScaledTanh", fn_scaled_tanh, 1, 1},
                 {"HardSigmoid", fn_hard_sigmoid, 0.2, 0.5},
                 {"Elu", fn_elu, 1, 0},
                 {"Softsign", fn_softsign, 0, 0},
                 {"Softplus", fn_softplus, 0, 0}};

static heddle_status find_fn(struct nn_call *c, const char *name, size_t len, size_t at,
                             struct fn *out)
{
    size_t na, nb;
    const float *a = heddle_nn_floats(c, "activation_alpha", &na);
    const float *b = heddle_nn_floats(c, "activation_beta", &nb);

    for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++) {
        if (strlen(functions[i].name) != len || strncasecmp(functions[i].name, name, len) != 0)
            continue;
        *out = (struct fn){functions[i].f, at < na ? (double)a[at] : functions[i].a,
                           at < nb ? (double)b[at] : functions[i].b};
        return HEDDLE_OK;
    }
    return heddle_nn_fail(c, HEDDLE_EINVAL, "there is no activation '%.*s'", (int)len, name);
}

static heddle_status read_fns(struct nn_call *c, struct layer *l, size_t direction)
{
    const struct family *f = c->node->op->family;
    const struct heddle_onnx_attr *said = heddle_nn_attr(c, "activations");

    for (size_t i = 0; i < f->nfns; i++) {
        const size_t at = direction * f->nfns + i;
        const char *name = f->fn[i];
        size_t len = strlen(name);

        if (said != NULL && at < said->nstrings) {
            name = said->strings[at].ptr;
            len = said->strings[at].len;
        }
        HEDDLE_TRY(find_fn(c, name, len, at, &l->fn[i]));
    }
    return HEDDLE_OK;
}

/* --- one step of one sequence --------------------------------------------------------- */

static double clipped(const struct layer *l, double v)
{
    return l->clip > 0 ? fmax(fmin(v, l->clip), -l->clip) : v;
}

static double apply(const struct layer *l, size_t i, double v)
{
    return l->fn[i].f(clipped(l, v), l->fn[i].a, l->fn[i].b);
}

/* Row `row` of W times x, with its bias. */
static double from_input(const struct layer *l, size_t row, const double *x)
{
    double sum = l->b != NULL ? l->b[row] : 0;

    for (size_t i = 0; i < l->input; i++)
        sum += l->w[row * l->input + i] * x[i];
    return sum;
}

/* Row `row` of R times h, with its bias. */
static double from_state(const struct layer *l, size_t row, const double *h)
{
    double sum = l->b != NULL ? l->b[l->gates * l->hidden + row] : 0;

    for (size_t i = 0; i < l->hidden; i++)
        sum += l->r[row * l->hidden + i] * h[i];
    return sum;
}

static void step_rnn(struct layer *l, size_t batch, const double *x)
{
    double *h = l->h + batch * l->hidden;

    for (size_t k = 0; k < l->hidden; k++)
        l->gate[k] = apply(l, 0, from_input(l, k, x) + from_state(l, k, h));
    memcpy(h, l->gate, l->hidden * sizeof(*h));
}

/* Gates: update z, reset r, hidden. */
static void step_gru(struct layer *l, size_t batch, const double *x)
{
    const size_t n = l->hidden;
    double *h = l->h + batch * n, *z = l->gate, *r = z + n, *next = r + n;

    for (size_t k = 0; k < 2 * n; k++)
        z[k] = apply(l, 0, from_input(l, k, x) + from_state(l, k, h));
    for (size_t k = 0; k < n; k++)
        l->kept[k] = r[k] * h[k];
    for (size_t k = 0; k < n; k++) {
        const double past =
            l->is_linear ? r[k] * from_state(l, 2 * n + k, h) : from_state(l, 2 * n + k, l->kept);

        next[k] = apply(l, 1, from_input(l, 2 * n + k, x) + past);
    }
    for (size_t k = 0; k < n; k++)
        h[k] = (1 - z[k]) * next[k] + z[k] * h[k];
}

/* Gates: input, output, forget, cell. Peepholes: input, output, forget. */
static void step_lstm(struct layer *l, size_t batch, const double *x)
{
    const size_t n = l->hidden;
    double *h = l->h + batch * n, *cell = l->c + batch * n, *g = l->gate;

    for (size_t k = 0; k < 4 * n; k++)
        g[k] = from_input(l, k, x) + from_state(l, k, h);
    for (size_t k = 0; k < n; k++) {
        const double peep_in = l->p != NULL ? l->p[k] * cell[k] : 0;
        const double peep_forget = l->p != NULL ? l->p[2 * n + k] * cell[k] : 0;
        const double in = apply(l, 0, g[k] + peep_in);
        const double forget = l->couples ? 1 - in : apply(l, 0, g[2 * n + k] + peep_forget);
        double peep_out;

        cell[k] = forget * cell[k] + in * apply(l, 1, g[3 * n + k]);
        peep_out = l->p != NULL ? l->p[n + k] * cell[k] : 0;
        h[k] = apply(l, 0, g[n + k] + peep_out) * l->fn[2].f(cell[k], l->fn[2].a, l->fn[2].b);
    }
}

/* --- layers --------------------------------------------------------------------------------- */

static size_t directions_of(const struct nn_call *c)
{
    return heddle_nn_is_text(c, "direction", "forward", "bidirectional") ? 2 : 1;
}

static heddle_status rnn_shape(struct nn_call *c)
{
    const bool is_batch_first = heddle_nn_int(c, "layout", 0) != 0;
    const struct nn_shape *x = &c->in[0].shape, *r = &c->in[2].shape;
    const int64_t d = (int64_t)directions_of(c);
    struct nn_shape y = {.rank = 4}, h = {.rank = 3};
    int64_t time, batch, hidden;

    if ((x->rank >= 0 && x->rank != 3) || (r->rank >= 0 && r->rank != 3))
        return heddle_nn_fail(c, HEDDLE_EINVAL, "data of shape %s, weights of shape %s",
                              heddle_nn_shape_text(x).text, heddle_nn_shape_text(r).text);
    time = x->rank < 0 ? NN_UNKNOWN : x->dim[is_batch_first ? 1 : 0];
    batch = x->rank < 0 ? NN_UNKNOWN : x->dim[is_batch_first ? 0 : 1];
    hidden = r->rank < 0 ? NN_UNKNOWN : r->dim[2];
    memcpy(y.dim,
           is_batch_first ? (int64_t[]){batch, time, d, hidden}
                          : (int64_t[]){time, d, batch, hidden},
           4 * sizeof(y.dim[0]));
    memcpy(h.dim, is_batch_first ? (int64_t[]){batch, d, hidden} : (int64_t[]){d, batch, hidden},
           3 * sizeof(h.dim[0]));
    for (uint32_t i = 0; i < c->nout; i++)
        c->out[i] = heddle_nn_tensor(c->in[0].type, i == 0 ? &y : &h);
    return HEDDLE_OK;
}

/* Operand i, which has to have n numbers; NULL in *out: absent. */
static heddle_status operand(struct nn_call *c, uint32_t i, size_t n, const double **out)
{
    *out = NULL;
    if (!heddle_nn_has_in(c, i))
        return HEDDLE_OK;
    if (heddle_nn_count(&c->in[i].shape) != n)
        return heddle_nn_fail(c, HEDDLE_EINVAL, "operand %u has shape %s, %zu numbers are wanted",
                              i, heddle_nn_shape_text(&c->in[i].shape).text, n);
    *out = heddle_nn_f64(c, i);
    return *out != NULL ? HEDDLE_OK : HEDDLE_ENOMEM;
}

/* Where element (t, b) of X and of Y begins. */
struct places {
    size_t ndir;
    bool is_batch_first;
};

static size_t place_x(const struct layer *l, const struct places *p, size_t t, size_t b)
{
    return (p->is_batch_first ? b * l->time + t : t * l->batch + b) * l->input;
}

static size_t place_y(const struct layer *l, const struct places *p, size_t t, size_t b, size_t d)
{
    return (p->is_batch_first ? (b * l->time + t) * p->ndir + d
                              : (t * p->ndir + d) * l->batch + b) *
           l->hidden;
}

static size_t place_h(const struct layer *l, const struct places *p, size_t b, size_t d)
{
    return (p->is_batch_first ? b * p->ndir + d : d * l->batch + b) * l->hidden;
}

/* All steps of one direction; y: zeroed. */
static void run_layer(struct layer *l, const struct family *f, const struct places *p, size_t d,
                      double *y)
{
    for (size_t b = 0; b < l->batch; b++) {
        const size_t length = l->length != NULL ? (size_t)l->length[b] : l->time;

        for (size_t i = 0; i < length; i++) {
            const size_t t = l->is_backward ? length - 1 - i : i;

            f->step(l, b, l->x + place_x(l, p, t, b));
            memcpy(y + place_y(l, p, t, b, d), l->h + b * l->hidden, l->hidden * sizeof(*y));
        }
    }
}

static heddle_status read_lengths(struct nn_call *c, struct layer *l)
{
    int64_t *length;

    if (!heddle_nn_has_in(c, 4))
        return HEDDLE_OK;
    length = heddle_nn_temp(c, l->batch, sizeof(*length));
    if (length == NULL)
        return HEDDLE_ENOMEM;
    if (heddle_nn_count(&c->in[4].shape) != l->batch)
        return heddle_nn_fail(c, HEDDLE_EINVAL, "%zu lengths for %zu sequences",
                              heddle_nn_count(&c->in[4].shape), l->batch);
    for (size_t b = 0; b < l->batch; b++) {
        length[b] = heddle_nn_get_i64(c->in[4].type, c->in[4].data, b);
        if (length[b] < 0 || (size_t)length[b] > l->time)
            return heddle_nn_fail(c, HEDDLE_EINVAL, "a sequence has length %lld of %zu",
                                  (long long)length[b], l->time);
    }
    l->length = length;
    return HEDDLE_OK;
}

/* All directions' operands; run_direction() moves on to its own part of each. */
struct operands {
    const double *w, *r, *b, *h0, *c0, *p;
};

static heddle_status read_operands(struct nn_call *c, struct layer *l, size_t ndir,
                                   struct operands *o)
{
    const bool is_lstm = l->gates == 4;
    const size_t n = l->hidden, g = l->gates;

    HEDDLE_TRY(operand(c, 1, ndir * g * n * l->input, &o->w));
    HEDDLE_TRY(operand(c, 2, ndir * g * n * n, &o->r));
    HEDDLE_TRY(operand(c, 3, ndir * 2 * g * n, &o->b));
    HEDDLE_TRY(operand(c, 5, ndir * l->batch * n, &o->h0));
    o->c0 = o->p = NULL;
    if (is_lstm) {
        HEDDLE_TRY(operand(c, 6, ndir * l->batch * n, &o->c0));
        HEDDLE_TRY(operand(c, 7, ndir * 3 * n, &o->p));
    }
    return read_lengths(c, l);
}

/* The state before the first step, or after the last one, between l and an operand. */
static void move_state(const struct layer *l, const struct places *p, size_t d, double *state,
                       const double *from, double *to)
{
    const size_t bytes = l->hidden * sizeof(*state);

    for (size_t b = 0; b < l->batch; b++) {
        if (to != NULL)
            memcpy(to + place_h(l, p, b, d), state + b * l->hidden, bytes);
        else if (from != NULL)
            memcpy(state + b * l->hidden, from + place_h(l, p, b, d), bytes);
        else
            memset(state + b * l->hidden, 0, bytes);
    }
}

static heddle_status run_direction(struct nn_call *c, struct layer *l, const struct operands *o,
                                   const struct places *p, size_t d, double *const out[3])
{
    const size_t n = l->hidden, g = l->gates;

    l->w = o->w + d * g * n * l->input;
    l->r = o->r + d * g * n * n;
    l->b = o->b != NULL ? o->b + d * 2 * g * n : NULL;
    l->p = o->p != NULL ? o->p + d * 3 * n : NULL;
    l->is_backward = d == 1 || heddle_nn_is_text(c, "direction", "forward", "reverse");
    HEDDLE_TRY(read_fns(c, l, d));
    move_state(l, p, d, l->h, o->h0, NULL);
    move_state(l, p, d, l->c, o->c0, NULL);
    run_layer(l, c->node->op->family, p, d, out[0]);
    move_state(l, p, d, l->h, NULL, out[1]);
    move_state(l, p, d, l->c, NULL, out[2]);
    return HEDDLE_OK;
}

static heddle_status rnn_ref(struct nn_call *c)
{
    const struct family *f = c->node->op->family;
    const struct nn_shape *x = &c->in[0].shape;
    const struct places p = {directions_of(c), heddle_nn_int(c, "layout", 0) != 0};
    struct layer l = {.time = (size_t)x->dim[p.is_batch_first ? 1 : 0],
                      .batch = (size_t)x->dim[p.is_batch_first ? 0 : 1],
                      .input = (size_t)x->dim[2],
                      .hidden = (size_t)c->in[2].shape.dim[2],
                      .gates = f->gates,
                      .x = heddle_nn_f64(c, 0),
                      .is_linear = heddle_nn_int(c, "linear_before_reset", 0) != 0,
                      .couples = heddle_nn_int(c, "input_forget", 0) != 0,
                      .clip = heddle_nn_float(c, "clip", 0)};
    const size_t nstate = p.ndir * l.batch * l.hidden;
    double *out[3] = {heddle_nn_temp(c, l.time * nstate, sizeof(double)),
                      heddle_nn_temp(c, nstate, sizeof(double)),
                      heddle_nn_temp(c, nstate, sizeof(double))};
    struct operands o;

    l.h = heddle_nn_temp(c, l.batch * l.hidden, sizeof(*l.h));
    l.c = heddle_nn_temp(c, l.batch * l.hidden, sizeof(*l.c));
    l.gate = heddle_nn_temp(c, RNN_GATES * l.hidden, sizeof(*l.gate));
    l.kept = heddle_nn_temp(c, l.hidden, sizeof(*l.kept));
    if (l.x == NULL || out[0] == NULL || out[1] == NULL || out[2] == NULL || l.h == NULL ||
        l.c == NULL || l.gate == NULL || l.kept == NULL)
        return HEDDLE_ENOMEM;
    HEDDLE_TRY(read_operands(c, &l, p.ndir, &o));
    for (size_t d = 0; d < p.ndir; d++)
        HEDDLE_TRY(run_direction(c, &l, &o, &p, d, out));
    for (uint32_t i = 0; i < c->nout; i++) {
        if (heddle_nn_wants(c, i))
            heddle_nn_f64_done(c, i, out[i]);
    }
    return HEDDLE_OK;
}

#define COMMON                                                                                     \
    {"activation_alpha", NN_FLOATS, false}, {"activation_beta", NN_FLOATS, false},                 \
        {"activations", NN_STRINGS, false}, {"clip", NN_FLOAT, false},                             \
        {"direction", NN_STRING, false}, {"hidden_size", NN_INT, false},                           \
    {                                                                                              \
        "layout", NN_INT, false                                                                    \
    }

static const struct nn_attr_rule rnn_attrs[] = {COMMON, {0}};
static const struct nn_attr_rule gru_attrs[] = {
    COMMON, {"linear_before_reset", NN_INT, false}, {0}};
static const struct nn_attr_rule lstm_attrs[] = {COMMON, {"input_forget", NN_INT, false}, {0}};

#define ROW(nm, max, outs, at, ...)                                                                \
    {                                                                                              \
        .name = nm, .since = 7, .nin_min = 3, .nin_max = max, .nout_min = 0, .nout_max = outs,     \
        .type = {NN_M_FLOAT, NN_M_FLOAT, NN_M_FLOAT, NN_M_FLOAT, NN_M_INDEX, NN_M_FLOAT},          \
        .same = 0xef, .attrs = at, .shape = rnn_shape, .ref = rnn_ref,                             \
        .family = &(const struct family)                                                           \
        {                                                                                          \
            __VA_ARGS__                                                                            \
        }                                                                                          \
    }

const struct nn_op heddle_nn_op_rnn[] = {
    ROW("RNN", 6, 2, rnn_attrs, 1, 1, {"Tanh"}, step_rnn),
    ROW("GRU", 6, 2, gru_attrs, 3, 2, {"Sigmoid", "Tanh"}, step_gru),
    ROW("LSTM", 8, 3, lstm_attrs, 4, 3, {"Sigmoid", "Tanh", "Tanh"}, step_lstm),
    {0},
};
