/* SPDX-License-Identifier: BSD-3-Clause */
/* kserve_write: tensors become the JSON of a reply. */
#include <string.h>

#include "serve/kserve.h"

static void write_real(struct heddle_json *j, enum kserve_type t, const char *at)
{
    double d;
    float f;

    if (t == KSERVE_FP64) {
        memcpy(&d, at, sizeof(d));
    } else {
        memcpy(&f, at, sizeof(f));
        d = (double)f;
    }
    heddle_json_double(j, d);
}

/* The low bytes come first: x86-64, aarch64. */
static uint64_t low_bytes(const char *at, size_t bytes)
{
    uint64_t v = 0;

    memcpy(&v, at, bytes);
    return v;
}

static int64_t extend_sign(uint64_t v, size_t bytes)
{
    const unsigned unused = (unsigned)(64 - 8 * bytes);

    return (int64_t)(v << unused) >> unused;
}

static void write_element(struct heddle_json *j, enum kserve_type t, const char *at)
{
    const size_t bytes = kserve_type_bytes(t);

    switch (t) {
    case KSERVE_BOOL: heddle_json_bool(j, *at != 0); return;
    case KSERVE_FP32:
    case KSERVE_FP64: write_real(j, t, at); return;
    case KSERVE_INT8:
    case KSERVE_INT16:
    case KSERVE_INT32:
    case KSERVE_INT64: heddle_json_int(j, extend_sign(low_bytes(at, bytes), bytes)); return;
    default: heddle_json_uint(j, low_bytes(at, bytes)); return;
    }
}

static void write_tensor(struct heddle_json *j, const struct kserve_tensor *t, bool is_binary)
{
    const size_t bytes = kserve_type_bytes(t->type);

    heddle_json_object(j);
    heddle_json_key_str(j, "name", t->name);
    heddle_json_key_str(j, "datatype", kserve_type_name(t->type));
    heddle_json_key(j, "shape");
    heddle_json_array(j);
    for (unsigned d = 0; d < t->ndim; d++)
        heddle_json_int(j, t->dim[d]);
    heddle_json_end(j);
    if (is_binary) {
        heddle_json_key(j, "parameters");
        heddle_json_object(j);
        heddle_json_key_uint(j, "binary_data_size", t->count * bytes);
        heddle_json_end(j);
    } else {
        heddle_json_key(j, "data");
        heddle_json_array(j);
        for (size_t i = 0; i < t->count; i++)
            write_element(j, t->type, (const char *)t->data + i * bytes);
        heddle_json_end(j);
    }
    heddle_json_end(j);
}

void kserve_reply_write(struct heddle_json *j, const char *model, const char *version,
                        const char *id, const struct kserve_tensor *out, const bool *is_binary,
                        size_t n)
{
    heddle_json_object(j);
    heddle_json_key_str(j, "model_name", model);
    heddle_json_key_str(j, "model_version", version);
    if (id[0] != '\0')
        heddle_json_key_str(j, "id", id);
    heddle_json_key(j, "outputs");
    heddle_json_array(j);
    for (size_t i = 0; i < n; i++)
        write_tensor(j, &out[i], is_binary[i]);
    heddle_json_end(j);
    heddle_json_end(j);
}
