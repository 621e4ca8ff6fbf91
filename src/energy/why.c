/* SPDX-License-Identifier: BSD-3-Clause */
/* The sentence about a failure. */
#include "energy/why.h"

#include <stdarg.h>

#include "base/text.h"

heddle_status heddle_energy_why(char *why, size_t cap, heddle_status st, const char *fmt, ...)
{
    struct heddle_text t;
    va_list ap;

    if (why == NULL || cap == 0)
        return st;
    heddle_text_init(&t, why, cap);
    va_start(ap, fmt);
    heddle_text_vadd(&t, fmt, ap);
    va_end(ap);
    return st;
}

heddle_status heddle_energy_why_at(char *why, size_t cap, const char *path, size_t line,
                                   const char *fmt, ...)
{
    struct heddle_text t;
    va_list ap;

    if (why == NULL || cap == 0)
        return HEDDLE_EFORMAT;
    heddle_text_init(&t, why, cap);
    heddle_text_add(&t, "%s:%zu: ", path, line);
    va_start(ap, fmt);
    heddle_text_vadd(&t, fmt, ap);
    va_end(ap);
    return HEDDLE_EFORMAT;
}
