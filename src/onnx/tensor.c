/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tensor: the data of a TensorProto, from whichever field has them.
 *
 * raw_data stay where they are. Numbers in the typed fields become the same bytes that raw_data
 * would have: the small types are in int32_data, one number each (4 and 2 bits: one byte each).
 */
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "onnx/wire.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "raw data are little-endian");

static const struct {
    const char *name;
    uint8_t bytes, bits;
} onnx_types[HEDDLE_ONNX_NTYPES] = {
#define ROW(name, number, bytes, bits) [number] = {#name, bytes, bits},
    HEDDLE_ONNX_TYPE_LIST(ROW)
#undef ROW
};

static bool tensor_type_ok(int64_t type)
{
    return type > 0 && type < HEDDLE_ONNX_NTYPES;
}

const char *heddle_onnx_type_name(int64_t type)
{
    return tensor_type_ok(type) ? onnx_types[type].name : "UNDEFINED";
}

size_t heddle_onnx_type_bytes(int64_t type)
{
    return tensor_type_ok(type) ? onnx_types[type].bytes : 0;
}

unsigned heddle_onnx_type_bits(int64_t type)
{
    return tensor_type_ok(type) ? onnx_types[type].bits : 0;
}

/* Narrows numbers to `width` bytes each. */
static const void *tensor_narrow(struct wire_decoder *d, const int64_t *v, size_t n, size_t width)
{
    char *p;

    if (width == sizeof(*v))
        return v;
    p = heddle_onnx_take(d, n, width);
    if (p != NULL)
        for (size_t i = 0; i < n; i++)
            memcpy(p + i * width, &v[i], width);
    return p;
}

/* The typed field of this type: `n` numbers of `width` bytes at *data_out. */
static heddle_status tensor_typed(struct wire_decoder *d, struct heddle_onnx_tensor *t,
                                  size_t *have_out, const void **data_out)
{
    const unsigned bits = onnx_types[t->type].bits;
    const size_t width = bits < 8 ? 1 : bits / 8;

    switch (t->type) {
    case HEDDLE_ONNX_FLOAT:
    case HEDDLE_ONNX_COMPLEX64:
        *have_out = t->nfloats * sizeof(float);
        *data_out = t->floats;
        return HEDDLE_OK;
    case HEDDLE_ONNX_DOUBLE:
    case HEDDLE_ONNX_COMPLEX128:
        *have_out = t->ndoubles * sizeof(double);
        *data_out = t->doubles;
        return HEDDLE_OK;
    case HEDDLE_ONNX_INT64:
        *have_out = t->nints64 * sizeof(int64_t);
        *data_out = t->ints64;
        return HEDDLE_OK;
    case HEDDLE_ONNX_UINT32:
    case HEDDLE_ONNX_UINT64:
        *have_out = t->nuints64 * width;
        *data_out = tensor_narrow(d, t->uints64, t->nuints64, width);
        return *data_out == NULL && *have_out > 0 ? HEDDLE_ENOMEM : HEDDLE_OK;
    default:
        *have_out = t->nints32 * width;
        *data_out = tensor_narrow(d, t->ints32, t->nints32, width);
        return *data_out == NULL && *have_out > 0 ? HEDDLE_ENOMEM : HEDDLE_OK;
    }
}

static heddle_status tensor_count(struct wire_decoder *d, struct heddle_onnx_tensor *t)
{
    size_t n = 1;
    bool is_empty = false;

    if (!tensor_type_ok(t->type))
        return heddle_onnx_bad(d, "tensor '%s' has the unknown type %lld", t->name,
                               (long long)t->type);
    for (size_t i = 0; i < t->ndims; i++) {
        if (t->dim[i] < 0)
            return heddle_onnx_bad(d, "tensor '%s' has the dimension %lld", t->name,
                                   (long long)t->dim[i]);
        is_empty |= t->dim[i] == 0;
        if (t->dim[i] > 0 && !heddle_mul(&n, n, (size_t)t->dim[i]))
            return heddle_onnx_bad(d, "the dimensions of tensor '%s' overflow", t->name);
    }
    if (n > (SIZE_MAX >> 1) / 16)
        return heddle_onnx_bad(d, "the dimensions of tensor '%s' overflow", t->name);
    t->count = is_empty ? 0 : n;
    return HEDDLE_OK;
}

static size_t tensor_bytes(const struct heddle_onnx_tensor *t)
{
    const unsigned bits = onnx_types[t->type].bits;

    return bits >= 8 ? t->count * (bits / 8) : (t->count * bits + 7) / 8;
}

heddle_status heddle_onnx_set_raw(struct wire_decoder *d, struct heddle_onnx_tensor *t,
                                  const void *ptr, size_t len)
{
    const size_t want = tensor_bytes(t);

    if (len != want)
        return heddle_onnx_bad(d, "tensor '%s' needs %zu bytes and has %zu", t->name, want, len);
    t->data = len > 0 ? ptr : NULL;
    t->bytes = len;
    return HEDDLE_OK;
}

heddle_status heddle_onnx_finish_tensor(struct wire_decoder *d, void *obj)
{
    struct heddle_onnx_tensor *t = obj;
    const void *data = NULL;
    size_t have = 0;

    HEDDLE_TRY(tensor_count(d, t));
    if (t->segment != NULL)
        return heddle_onnx_bad(d, "tensor '%s' is in segments, which nobody writes", t->name);
    if (t->type == HEDDLE_ONNX_STRING) {
        if (t->nstrings != t->count)
            return heddle_onnx_bad(d, "tensor '%s' needs %zu strings and has %zu", t->name,
                                   t->count, t->nstrings);
        return HEDDLE_OK;
    }
    if (t->location == 1) {
        struct onnx_external *e = heddle_onnx_take(d, 1, sizeof(*e));

        if (e == NULL)
            return HEDDLE_ENOMEM;
        *e = (struct onnx_external){t, d->external};
        d->external = e;
        return HEDDLE_OK;
    }
    if (t->raw.ptr != NULL)
        return heddle_onnx_set_raw(d, t, t->raw.ptr, t->raw.len);
    HEDDLE_TRY(tensor_typed(d, t, &have, &data));
    if (have == 0) /* a tensor that stands for a type and a shape alone */
        return HEDDLE_OK;
    return heddle_onnx_set_raw(d, t, data, have);
}
