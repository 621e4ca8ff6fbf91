/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_NN_VALUE_H
#define HEDDLE_NN_VALUE_H

/*
 * Private to nn: what flows between operators. Types, shapes, values, and access to elements
 * whatever their type.
 *
 * A tensor is dense, the last dimension varies fastest. Types narrower than a byte have one
 * element per byte in memory. A string is a struct heddle_onnx_bytes, whose text lives as long as
 * the value.
 *
 * Threads  pure functions.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/scratch.h"
#include "onnx/onnx.h"

/* The numbers are those of ONNX. */
enum nn_type {
    NN_NOTYPE = 0,
    NN_F32 = 1,
    NN_U8,
    NN_I8,
    NN_U16,
    NN_I16,
    NN_I32,
    NN_I64,
    NN_STR,
    NN_BOOL,
    NN_F16,
    NN_F64,
    NN_U32,
    NN_U64,
    NN_C64,
    NN_C128,
    NN_BF16,
    NN_F8E4M3FN,
    NN_F8E4M3FNUZ,
    NN_F8E5M2,
    NN_F8E5M2FNUZ,
    NN_U4,
    NN_I4,
    NN_F4E2M1,
    NN_F8E8M0,
    NN_U2,
    NN_I2,
    NN_NTYPES
};

/* Sets of types, as masks. */
#define NN_M(t) (UINT32_C(1) << (t))
#define NN_M_F8                                                                                    \
    (NN_M(NN_F8E4M3FN) | NN_M(NN_F8E4M3FNUZ) | NN_M(NN_F8E5M2) | NN_M(NN_F8E5M2FNUZ) |             \
     NN_M(NN_F8E8M0) | NN_M(NN_F4E2M1))
#define NN_M_FLOAT (NN_M(NN_F16) | NN_M(NN_BF16) | NN_M(NN_F32) | NN_M(NN_F64))
#define NN_M_SINT                                                                                  \
    (NN_M(NN_I8) | NN_M(NN_I16) | NN_M(NN_I32) | NN_M(NN_I64) | NN_M(NN_I4) | NN_M(NN_I2))
#define NN_M_UINT                                                                                  \
    (NN_M(NN_U8) | NN_M(NN_U16) | NN_M(NN_U32) | NN_M(NN_U64) | NN_M(NN_U4) | NN_M(NN_U2))
#define NN_M_INT     (NN_M_SINT | NN_M_UINT)
#define NN_M_NUM     (NN_M_FLOAT | NN_M_INT)
#define NN_M_COMPLEX (NN_M(NN_C64) | NN_M(NN_C128))
#define NN_M_INDEX   (NN_M(NN_I32) | NN_M(NN_I64))
#define NN_M_ANY     0u
#define NN_M_TENSOR  (NN_M(NN_NTYPES) - 2) /* a tensor of any type */

/* "float32", "int64": as NumPy says; "?" otherwise. */
const char *heddle_nn_type_name(unsigned type);
/* Bytes of an element in memory; 0: no such type. */
size_t heddle_nn_type_bytes(unsigned type);

/* --- shapes ---------------------------------------------------------------- */

enum { NN_DIMS = 12, NN_UNKNOWN = -1 };

/* dim >= 0: known; NN_UNKNOWN; below that: symbol number -2 - dim. The same symbol is the same
 * number. */
struct nn_shape {
    int rank; /* -1: not known */
    int64_t dim[NN_DIMS];
};

/* All dimensions are known. */
bool heddle_nn_is_concrete(const struct nn_shape *s);
/* Elements of a concrete shape; SIZE_MAX: the size overflows. */
size_t heddle_nn_count(const struct nn_shape *s);
/* Elements of the dimensions from..to - 1. */
size_t heddle_nn_count_range(const struct nn_shape *s, int from, int to);
bool heddle_nn_same_shape(const struct nn_shape *a, const struct nn_shape *b);
/* NumPy's rule; false: they do not go together. out may be a. A dimension that is not known
 * gives way to one that is known and not 1. */
bool heddle_nn_broadcast(const struct nn_shape *a, const struct nn_shape *b, struct nn_shape *out);
/* Steps, in elements, of an operand of shape s that is read in the shape of `out`: 0 in
 * dimensions that repeat. Both concrete. */
void heddle_nn_broadcast_steps(const struct nn_shape *s, const struct nn_shape *out,
                               int64_t step[NN_DIMS]);
/* "2x3xN", "scalar", "?" */
struct nn_shape_text {
    char text[120];
};
struct nn_shape_text heddle_nn_shape_text(const struct nn_shape *s);

/* --- values ---------------------------------------------------------------- */

enum nn_kind { NN_ABSENT = 0, NN_TENSOR, NN_SEQUENCE, NN_OPTIONAL };

struct nn_value {
    uint8_t kind; /* enum nn_kind; NN_ABSENT: an optional operand that is not there */
    uint8_t type; /* enum nn_type, of the elements (of a sequence or optional: of its tensors) */
    struct nn_shape shape;
    void *data;            /* NN_TENSOR; NULL: not known (only in rules of shapes) */
    struct nn_value *item; /* NN_SEQUENCE; NN_OPTIONAL: none or one */
    size_t nitems;
    bool has_items; /* the items are known; false only in rules of shapes */
};

/* A tensor without data. */
struct nn_value heddle_nn_tensor(unsigned type, const struct nn_shape *shape);
/* Bytes of the data of a tensor of concrete shape. */
size_t heddle_nn_bytes(const struct nn_value *v);
/* A copy of everything, in mem. HEDDLE_ENOMEM. */
HEDDLE_MUST_USE heddle_status heddle_nn_copy(struct heddle_scratch *mem, const struct nn_value *v,
                                             struct nn_value *out);
/* A tensor of a file as a value. The data stay in the file when they are aligned there, else
 * they are copied into mem. A tensor without data is HEDDLE_EFORMAT; HEDDLE_ENOMEM. */
HEDDLE_MUST_USE heddle_status heddle_nn_from_onnx(struct heddle_scratch *mem,
                                                  const struct heddle_onnx_tensor *t,
                                                  struct nn_value *out);
/* The same for a sequence, or an optional. */
HEDDLE_MUST_USE heddle_status heddle_nn_from_onnx_sequence(struct heddle_scratch *mem,
                                                           const struct heddle_onnx_sequence *s,
                                                           bool is_optional, struct nn_value *out);

/* --- elements --------------------------------------------------------------- */

/* Element i as a double: exact for all types but 64-bit integers beyond 2^53. */
double heddle_nn_get_f64(unsigned type, const void *data, size_t i);
/* Rounds to nearest, ties to even; integers: towards zero, and wraps. */
void heddle_nn_put_f64(unsigned type, void *data, size_t i, double v);
/* Integers and bool, exactly; u64 as its bits. */
int64_t heddle_nn_get_i64(unsigned type, const void *data, size_t i);
void heddle_nn_put_i64(unsigned type, void *data, size_t i, int64_t v);

/* f32 from and to the 16-bit types. */
float heddle_nn_f16_to_f32(uint16_t h);
uint16_t heddle_nn_f32_to_f16(float f);

/* mini.c: types of 16 bits and less. Encoding rounds to nearest even; what is too large becomes
 * the largest number when `saturate`, else infinity, or NaN where there is no infinity. */
double heddle_nn_mini_decode(unsigned type, unsigned bits);
unsigned heddle_nn_mini_encode(unsigned type, double v, bool saturate);

#endif /* HEDDLE_NN_VALUE_H */
