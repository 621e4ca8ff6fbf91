/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_BASE_COMPLEX_H
#define HEDDLE_BASE_COMPLEX_H

/*
 * A complex number from its parts. C11's CMPLX() does that, but glibc has it for GCC alone;
 * re + im * I is another number where a part is infinite, no number, or -0.
 */
#include <complex.h>
#include <string.h>

static inline double complex heddle_complex(double re, double im)
{
    const double part[2] = {re, im};
    double complex z;

    memcpy(&z, part, sizeof(z));
    return z;
}

#endif /* HEDDLE_BASE_COMPLEX_H */
