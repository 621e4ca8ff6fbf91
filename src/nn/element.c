/* SPDX-License-Identifier: BSD-3-Clause */
/* element: one element of any type, as a double or as an integer. */
#include <math.h>
#include <string.h>

#include "nn/value.h"

double heddle_nn_get_f64(unsigned type, const void *data, size_t i)
{
    switch (type) {
    case NN_F32: return (double)((const float *)data)[i];
    case NN_F64: return ((const double *)data)[i];
    case NN_U64: return (double)((const uint64_t *)data)[i];
    case NN_F16:
    case NN_BF16: return heddle_nn_mini_decode(type, ((const uint16_t *)data)[i]);
    case NN_F8E4M3FN:
    case NN_F8E4M3FNUZ:
    case NN_F8E5M2:
    case NN_F8E5M2FNUZ:
    case NN_F8E8M0:
    case NN_F4E2M1: return heddle_nn_mini_decode(type, ((const uint8_t *)data)[i]);
    default: return (double)heddle_nn_get_i64(type, data, i);
    }
}

/* Towards zero; what no integer of 64 bits holds becomes the nearest one, NaN 0. */
static int64_t element_to_i64(double v)
{
    if (v >= 0x1p63)
        return v < 0x1p64 ? (int64_t)(uint64_t)v : -1; /* the bits of a u64 */
    if (v >= -0x1p63)
        return (int64_t)v;
    return isnan(v) ? 0 : INT64_MIN;
}

void heddle_nn_put_f64(unsigned type, void *data, size_t i, double v)
{
    switch (type) {
    case NN_F32: ((float *)data)[i] = (float)v; break;
    case NN_F64: ((double *)data)[i] = v; break;
    case NN_BOOL: ((uint8_t *)data)[i] = v < 0 || v > 0 || isnan(v); break;
    case NN_F16:
    case NN_BF16: ((uint16_t *)data)[i] = (uint16_t)heddle_nn_mini_encode(type, v, false); break;
    case NN_F8E4M3FN:
    case NN_F8E4M3FNUZ:
    case NN_F8E5M2:
    case NN_F8E5M2FNUZ:
    case NN_F8E8M0:
    case NN_F4E2M1: ((uint8_t *)data)[i] = (uint8_t)heddle_nn_mini_encode(type, v, true); break;
    default: heddle_nn_put_i64(type, data, i, element_to_i64(v)); break;
    }
}

int64_t heddle_nn_get_i64(unsigned type, const void *data, size_t i)
{
    switch (type) {
    case NN_BOOL: return ((const uint8_t *)data)[i] != 0;
    case NN_U8:
    case NN_U4:
    case NN_U2: return ((const uint8_t *)data)[i];
    case NN_I8:
    case NN_I4:
    case NN_I2: return ((const int8_t *)data)[i];
    case NN_U16: return ((const uint16_t *)data)[i];
    case NN_I16: return ((const int16_t *)data)[i];
    case NN_U32: return ((const uint32_t *)data)[i];
    case NN_I32: return ((const int32_t *)data)[i];
    case NN_U64:
    case NN_I64: return ((const int64_t *)data)[i];
    default: return element_to_i64(heddle_nn_get_f64(type, data, i));
    }
}

/* The low bits, with the sign in front for a signed type. */
static int64_t element_narrow(unsigned type, int64_t v)
{
    switch (type) {
    case NN_U4: return v & 15;
    case NN_U2: return v & 3;
    case NN_I4: return (v & 15) - ((v & 8) != 0 ? 16 : 0);
    case NN_I2: return (v & 3) - ((v & 2) != 0 ? 4 : 0);
    default: return v;
    }
}

void heddle_nn_put_i64(unsigned type, void *data, size_t i, int64_t v)
{
    v = element_narrow(type, v);
    switch (type) {
    case NN_BOOL: ((uint8_t *)data)[i] = v != 0; break;
    case NN_U8:
    case NN_I8:
    case NN_U4:
    case NN_I4:
    case NN_U2:
    case NN_I2: ((uint8_t *)data)[i] = (uint8_t)v; break;
    case NN_U16:
    case NN_I16: ((uint16_t *)data)[i] = (uint16_t)v; break;
    case NN_U32:
    case NN_I32: ((uint32_t *)data)[i] = (uint32_t)v; break;
    case NN_U64:
    case NN_I64: ((int64_t *)data)[i] = v; break;
    default: heddle_nn_put_f64(type, data, i, (double)v); break;
    }
}
