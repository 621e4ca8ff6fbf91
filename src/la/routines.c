/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * routines: the rows of routines.def, for programs.
 */
#include "heddle/la.h"

/* k and l: the smaller and the larger of m and n. */
#define LA_ROUTINE(name, file, drop_in, bench, operations, what)                                   \
    static double flops_##name(double m, double n, double r)                                       \
    {                                                                                              \
        const double k = m < n ? m : n, l = m < n ? n : m;                                         \
                                                                                                   \
        (void)k;                                                                                   \
        (void)l;                                                                                   \
        (void)r;                                                                                   \
        return operations;                                                                         \
    }
#include "la/routines.def"
#undef LA_ROUTINE

static const struct heddle_la_routine routines[] = {
#define LA_ROUTINE(name, file, drop_in, bench, operations, what) {#name, what, flops_##name},
#include "la/routines.def"
#undef LA_ROUTINE
};

const struct heddle_la_routine *heddle_la_get_routine(unsigned i)
{
    return i < sizeof(routines) / sizeof(routines[0]) ? &routines[i] : NULL;
}
