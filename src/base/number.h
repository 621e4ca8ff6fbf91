/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_BASE_NUMBER_H
#define HEDDLE_BASE_NUMBER_H

/* Decimal numbers out of a text, whatever the host's locale. */
#include <stdbool.h>

/* Decimal numbers with point and exponent; "nan", "inf", "-inf" too. *end: behind
 * it. False: none. */
bool heddle_number_scan(const char *s, const char **end, double *out);
/* The whole word; finite. */
bool heddle_number_finite(const char *s, double *out);

#endif /* HEDDLE_BASE_NUMBER_H */
