/* SPDX-License-Identifier: BSD-3-Clause */
/* value: types, shapes and values; copies, and tensors from files. */
#include "nn/value.h"

#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/text.h"

static const char *const nn_type_names[NN_NTYPES] = {
    [NN_F32] = "float32",
    [NN_U8] = "uint8",
    [NN_I8] = "int8",
    [NN_U16] = "uint16",
    [NN_I16] = "int16",
    [NN_I32] = "int32",
    [NN_I64] = "int64",
    [NN_STR] = "string",
    [NN_BOOL] = "bool",
    [NN_F16] = "float16",
    [NN_F64] = "float64",
    [NN_U32] = "uint32",
    [NN_U64] = "uint64",
    [NN_C64] = "complex64",
    [NN_C128] = "complex128",
    [NN_BF16] = "bfloat16",
    [NN_F8E4M3FN] = "float8e4m3fn",
    [NN_F8E4M3FNUZ] = "float8e4m3fnuz",
    [NN_F8E5M2] = "float8e5m2",
    [NN_F8E5M2FNUZ] = "float8e5m2fnuz",
    [NN_U4] = "uint4",
    [NN_I4] = "int4",
    [NN_F4E2M1] = "float4e2m1",
    [NN_F8E8M0] = "float8e8m0",
    [NN_U2] = "uint2",
    [NN_I2] = "int2",
};

const char *heddle_nn_type_name(unsigned type)
{
    return type > 0 && type < NN_NTYPES ? nn_type_names[type] : "?";
}

size_t heddle_nn_type_bytes(unsigned type)
{
    return heddle_onnx_type_bytes((int64_t)type);
}

bool heddle_nn_is_concrete(const struct nn_shape *s)
{
    for (int i = 0; i < s->rank; i++)
        if (s->dim[i] < 0)
            return false;
    return s->rank >= 0;
}

size_t heddle_nn_count_range(const struct nn_shape *s, int from, int to)
{
    size_t n = 1;

    for (int i = from; i < to; i++)
        if (!heddle_mul(&n, n, (size_t)s->dim[i]))
            return SIZE_MAX;
    return n;
}

size_t heddle_nn_count(const struct nn_shape *s)
{
    for (int i = 0; i < s->rank; i++)
        if (s->dim[i] == 0)
            return 0;
    return heddle_nn_count_range(s, 0, s->rank);
}

bool heddle_nn_same_shape(const struct nn_shape *a, const struct nn_shape *b)
{
    if (a->rank != b->rank)
        return false;
    for (int i = 0; i < a->rank; i++)
        if (a->dim[i] != b->dim[i] || a->dim[i] == NN_UNKNOWN)
            return false;
    return true;
}

bool heddle_nn_broadcast(const struct nn_shape *a, const struct nn_shape *b, struct nn_shape *out)
{
    struct nn_shape r;

    if (a->rank < 0 || b->rank < 0) {
        out->rank = -1;
        return true;
    }
    r.rank = a->rank > b->rank ? a->rank : b->rank;
    for (int i = 0; i < r.rank; i++) {
        const int ia = i - (r.rank - a->rank), ib = i - (r.rank - b->rank);
        const int64_t x = ia < 0 ? 1 : a->dim[ia], y = ib < 0 ? 1 : b->dim[ib];

        if (x == y)
            r.dim[i] = x;
        else if (x == 1 || y == 1)
            r.dim[i] = x == 1 ? y : x;
        else if (x >= 0 && y >= 0)
            return false;
        else
            r.dim[i] = x >= 0 ? x : y >= 0 ? y : NN_UNKNOWN;
    }
    *out = r;
    return true;
}

void heddle_nn_broadcast_steps(const struct nn_shape *s, const struct nn_shape *out,
                               int64_t step[NN_DIMS])
{
    int64_t n = 1;

    for (int i = out->rank - 1; i >= 0; i--) {
        const int k = i - (out->rank - s->rank);

        step[i] = k < 0 || s->dim[k] == 1 ? 0 : n;
        if (k >= 0)
            n *= s->dim[k];
    }
}

struct nn_shape_text heddle_nn_shape_text(const struct nn_shape *s)
{
    struct nn_shape_text r;
    struct heddle_text t;

    heddle_text_init(&t, r.text, sizeof(r.text));
    if (s->rank < 0)
        heddle_text_str(&t, "?");
    if (s->rank == 0)
        heddle_text_str(&t, "scalar");
    for (int i = 0; i < s->rank; i++) {
        heddle_text_str(&t, i > 0 ? "x" : "");
        if (s->dim[i] >= 0)
            heddle_text_add(&t, "%lld", (long long)s->dim[i]);
        else if (s->dim[i] == NN_UNKNOWN)
            heddle_text_str(&t, "?");
        else
            heddle_text_add(&t, "N%lld", (long long)(-2 - s->dim[i]));
    }
    return r;
}

struct nn_value heddle_nn_tensor(unsigned type, const struct nn_shape *shape)
{
    return (struct nn_value){.kind = NN_TENSOR, .type = (uint8_t)type, .shape = *shape};
}

size_t heddle_nn_bytes(const struct nn_value *v)
{
    size_t n = heddle_nn_count(&v->shape);

    return heddle_mul(&n, n, heddle_nn_type_bytes(v->type)) ? n : SIZE_MAX;
}

static heddle_status value_copy_strings(struct heddle_scratch *mem, struct nn_value *v)
{
    struct heddle_onnx_bytes *s = v->data;
    const size_t n = heddle_nn_count(&v->shape);

    for (size_t i = 0; i < n; i++) {
        char *p = heddle_scratch_raw(mem, s[i].len + 1, 1);

        if (p == NULL)
            return HEDDLE_ENOMEM;
        if (s[i].len > 0)
            memcpy(p, s[i].ptr, s[i].len);
        p[s[i].len] = '\0';
        s[i].ptr = p;
    }
    return HEDDLE_OK;
}

heddle_status heddle_nn_copy(struct heddle_scratch *mem, const struct nn_value *v,
                             struct nn_value *out)
{
    struct nn_value r = *v;

    if (v->kind == NN_TENSOR && v->data != NULL) {
        const size_t bytes = heddle_nn_bytes(v);

        r.data = bytes == SIZE_MAX ? NULL : heddle_scratch_raw(mem, bytes, 1);
        if (r.data == NULL)
            return HEDDLE_ENOMEM;
        memcpy(r.data, v->data, bytes);
        if (v->type == NN_STR)
            HEDDLE_TRY(value_copy_strings(mem, &r));
    }
    if (v->nitems > 0) {
        r.item = heddle_scratch_get(mem, v->nitems, sizeof(*r.item));
        if (r.item == NULL)
            return HEDDLE_ENOMEM;
        for (size_t i = 0; i < v->nitems; i++)
            HEDDLE_TRY(heddle_nn_copy(mem, &v->item[i], &r.item[i]));
    }
    *out = r;
    return HEDDLE_OK;
}

/* Elements of `bits` bits, the first one in the low bits of a byte, to one byte each. */
static void value_unpack(const uint8_t *src, size_t n, unsigned type, unsigned bits, uint8_t *dst)
{
    const unsigned each = 8 / bits, mask = (1u << bits) - 1;
    const bool is_signed = type == NN_I4 || type == NN_I2;

    for (size_t i = 0; i < n; i++) {
        unsigned v = src[i / each] >> (i % each * bits) & mask;

        if (is_signed && v >> (bits - 1) != 0)
            v |= 0xffu & ~mask;
        dst[i] = (uint8_t)v;
    }
}

heddle_status heddle_nn_from_onnx(struct heddle_scratch *mem, const struct heddle_onnx_tensor *t,
                                  struct nn_value *out)
{
    const size_t each = heddle_nn_type_bytes((unsigned)t->type), align = each > 8 ? 8 : each;
    const unsigned bits = heddle_onnx_type_bits(t->type);
    struct nn_value v = {.kind = NN_TENSOR, .type = (uint8_t)t->type};
    void *copy;

    if (t->ndims > NN_DIMS)
        return HEDDLE_EFORMAT;
    v.shape.rank = (int)t->ndims;
    for (size_t i = 0; i < t->ndims; i++)
        v.shape.dim[i] = t->dim[i];
    if (t->count > 0 && t->data == NULL && t->type != NN_STR)
        return HEDDLE_EFORMAT;
    if (bits >= 8 && t->count > 0 && (uintptr_t)t->data % align == 0) {
        v.data = (void *)(uintptr_t)t->data; /* constant: nothing writes it */
    } else {
        copy = heddle_scratch_raw(mem, t->count, each);
        if (copy == NULL)
            return HEDDLE_ENOMEM;
        if (bits > 0 && bits < 8)
            value_unpack(t->data, t->count, v.type, bits, copy);
        else if (t->count > 0)
            memcpy(copy, t->type == NN_STR ? (const void *)t->string : t->data, t->count * each);
        v.data = copy;
    }
    *out = v;
    return HEDDLE_OK;
}

heddle_status heddle_nn_from_onnx_sequence(struct heddle_scratch *mem,
                                           const struct heddle_onnx_sequence *s, bool is_optional,
                                           struct nn_value *out)
{
    struct nn_value v = {.kind = is_optional ? NN_OPTIONAL : NN_SEQUENCE, .has_items = true};

    if (s->nmaps > 0 || s->nsparses > 0)
        return HEDDLE_ENOSYS;
    v.nitems = s->ntensors + s->nsequences + s->noptionals;
    v.item = heddle_scratch_get(mem, v.nitems, sizeof(*v.item));
    if (v.item == NULL)
        return HEDDLE_ENOMEM;
    v.nitems = 0;
    for (size_t i = 0; i < s->ntensors; i++)
        HEDDLE_TRY(heddle_nn_from_onnx(mem, &s->tensor[i], &v.item[v.nitems++]));
    for (size_t i = 0; i < s->nsequences; i++)
        HEDDLE_TRY(heddle_nn_from_onnx_sequence(mem, &s->sequence[i], false, &v.item[v.nitems++]));
    for (size_t i = 0; i < s->noptionals; i++)
        HEDDLE_TRY(heddle_nn_from_onnx_sequence(mem, &s->optional[i], true, &v.item[v.nitems++]));
    if (v.nitems > 0)
        v.type = v.item[0].type;
    *out = v;
    return HEDDLE_OK;
}
