/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_BASE_COMPLEX_H
#define HEDDLE_BASE_COMPLEX_H

/*
 * <complex.h> with CMPLX(), which clang does not get from glibc before 2.37. The sum
 * re + im * I is no substitute: an infinite part makes the other one a NaN.
 */
#include <complex.h>

#ifndef CMPLX
#define CMPLX(re, im) __builtin_complex((double)(re), (double)(im))
#endif

#endif /* HEDDLE_BASE_COMPLEX_H */
