/* SPDX-License-Identifier: BSD-3-Clause */
/* pace: least squares with weights that fall off geometrically. */
#include "serve/pace.h"

#include <math.h>

#define KEEP 0.98 /* of the older sums, at each step */

enum { FAR = 4, MANY = 8 };

/* The line through the sums. One number of rows alone gives no slope: time is shared by rows. */
static void fit(const struct serve_pace *p, double *a, double *b)
{
    const double det = p->n * p->rows2 - p->rows * p->rows;

    if (det > 1e-6 * p->n * p->rows2)
        *b = fmax(0, (p->n * p->rows_ns - p->rows * p->ns) / det);
    else
        *b = p->rows > 0 ? p->ns / p->rows : 0;
    *a = (p->ns - *b * p->rows) / p->n;
    if (*a < 0) { /* then the line through 0 */
        *a = 0;
        *b = p->rows2 > 0 ? p->rows_ns / p->rows2 : 0;
    }
}

uint64_t serve_pace_ns(const struct serve_pace *p, uint64_t rows)
{
    double a, b;

    if (p->n <= 0)
        return 0;
    fit(p, &a, &b);
    return (uint64_t)(a + b * (double)rows);
}

void serve_pace_add(struct serve_pace *p, uint64_t rows, uint64_t ns)
{
    const uint64_t expected = serve_pace_ns(p, rows);
    const double r = (double)rows, t = (double)ns;

    if (expected > 0 && ns / FAR > expected) {
        if (++p->nfar < MANY)
            return;
        *p = (struct serve_pace){.n = 0}; /* what was known is true no more */
    }
    p->nfar = 0;
    p->n = KEEP * p->n + 1;
    p->rows = KEEP * p->rows + r;
    p->rows2 = KEEP * p->rows2 + r * r;
    p->ns = KEEP * p->ns + t;
    p->rows_ns = KEEP * p->rows_ns + r * t;
}
