/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cast: Cast and CastLike. Integers wrap, floats to integers go towards zero, to types of 8 bits
 * they saturate unless the attribute says no; strings are read and written as C does.
 */
#include <math.h>
#include <string.h>

#include "base/assert.h"
#include "base/number.h"
#include "base/text.h"
#include "nn/op/op.h"

static unsigned cast_to(const struct nn_call *c)
{
    if (c->nin > 1)
        return c->in[1].type;
    return (unsigned)heddle_nn_int(c, "to", 0);
}

static heddle_status cast_shape(struct nn_call *c)
{
    const unsigned to = cast_to(c);

    if (heddle_nn_type_bytes(to) == 0 || (NN_M(to) & NN_M_COMPLEX) != 0)
        return heddle_nn_fail(c, HEDDLE_ENOSYS, "the type %u to cast to", to);
    c->out[0] = heddle_nn_tensor(to, &c->in[0].shape);
    return HEDDLE_OK;
}

static heddle_status cast_to_text(struct nn_call *c, size_t i)
{
    struct heddle_onnx_bytes *out = (struct heddle_onnx_bytes *)c->out[0].data + i;
    const struct nn_value *x = &c->in[0];
    char *buf = heddle_nn_keep(c, 1, 40);
    struct heddle_text t;

    if (buf == NULL)
        return HEDDLE_ENOMEM;
    heddle_text_init(&t, buf, 40);
    if (x->type == NN_F32 || x->type == NN_F16 || x->type == NN_BF16) {
        const double v = heddle_nn_get_f64(x->type, x->data, i);
        char tmp[40];

        /* As many digits as read back the same float. */
        for (int digits = 1; digits <= 9; digits++) {
            struct heddle_text try;
            double back;

            heddle_text_init(&try, tmp, sizeof(tmp));
            heddle_text_add(&try, "%.*g", digits, v);
            if (!heddle_number_finite(tmp, &back) || (float)back == (float)v)
                break;
        }
        heddle_text_str(&t, isnan(v) ? "NaN" : isinf(v) ? (v < 0 ? "-INF" : "INF") : tmp);
    } else if (x->type == NN_F64) {
        heddle_text_double(&t, heddle_nn_get_f64(x->type, x->data, i));
    } else {
        heddle_text_add(&t, "%lld", (long long)heddle_nn_get_i64(x->type, x->data, i));
    }
    *out = (struct heddle_onnx_bytes){buf, t.len};
    return HEDDLE_OK;
}

static heddle_status cast_from_text(struct nn_call *c, size_t i)
{
    const struct heddle_onnx_bytes *s = (const struct heddle_onnx_bytes *)c->in[0].data + i;
    const char *end = NULL;
    char buf[64], low[64];
    double v = 0;
    size_t n = s->len < sizeof(buf) - 1 ? s->len : sizeof(buf) - 1;

    memcpy(buf, s->ptr, n);
    buf[n] = '\0';
    for (size_t k = 0; k <= n; k++)
        low[k] = (char)(buf[k] >= 'A' && buf[k] <= 'Z' ? buf[k] + 32 : buf[k]);
    if (strcmp(low, "+inf") == 0)
        memcpy(low, "inf", 4);
    if (!heddle_number_scan(low, &end, &v) || *end != '\0')
        return heddle_nn_fail(c, HEDDLE_EINVAL, "'%s' is no number", buf);
    heddle_nn_put_f64(c->out[0].type, c->out[0].data, i, v);
    return HEDDLE_OK;
}

static heddle_status cast_ref(struct nn_call *c)
{
    const struct nn_value *x = &c->in[0], *y = &c->out[0];
    const size_t n = heddle_nn_count(&x->shape);
    const uint32_t from = NN_M(x->type), to = NN_M(y->type);
    const uint32_t whole = NN_M_INT | NN_M(NN_BOOL);
    const bool saturate = heddle_nn_int(c, "saturate", 1) != 0;

    if (x->type == y->type) {
        memcpy(y->data, x->data, heddle_nn_bytes(x));
        return HEDDLE_OK;
    }
    if ((from & NN_M_COMPLEX) != 0)
        return heddle_nn_fail(c, HEDDLE_ENOSYS, "complex numbers");
    for (size_t i = 0; i < n; i++) {
        if (y->type == NN_STR)
            HEDDLE_TRY(cast_to_text(c, i));
        else if (x->type == NN_STR)
            HEDDLE_TRY(cast_from_text(c, i));
        else if ((from & whole) != 0 && (to & whole) != 0)
            heddle_nn_put_i64(y->type, y->data, i, heddle_nn_get_i64(x->type, x->data, i));
        else if ((to & NN_M_F8) != 0)
            ((uint8_t *)y->data)[i] = (uint8_t)heddle_nn_mini_encode(
                y->type, heddle_nn_get_f64(x->type, x->data, i), saturate);
        else
            heddle_nn_put_f64(y->type, y->data, i, heddle_nn_get_f64(x->type, x->data, i));
    }
    return HEDDLE_OK;
}

static const struct nn_attr_rule attrs[] = {
    {"to", NN_INT, true}, {"saturate", NN_INT, false}, {"round_mode", NN_STRING, false}, {0}};
static const struct nn_attr_rule like_attrs[] = {
    {"saturate", NN_INT, false}, {"round_mode", NN_STRING, false}, {0}};

const struct nn_op heddle_nn_op_cast[] = {
    {.name = "Cast",
     .since = 6,
     .nin_min = 1,
     .nin_max = 1,
     .type = {NN_M_TENSOR},
     .attrs = attrs,
     .shape = cast_shape,
     .ref = cast_ref},
    {.name = "CastLike",
     .since = 15,
     .nin_min = 2,
     .nin_max = 2,
     .type = {NN_M_TENSOR, NN_M_TENSOR},
     .attrs = like_attrs,
     .shape = cast_shape,
     .ref = cast_ref},
    {0},
};
