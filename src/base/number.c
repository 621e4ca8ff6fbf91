/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * number: decimal numbers without locale.
 *
 * Why        strtod() asks the host's locale for the point.
 * Accuracy   up to 19 digits count; exact where a double can be, else within one
 *            unit in the last place.
 */
#include "base/number.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static double scale(uint64_t digits, int e)
{
    static const double exact[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                   1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                   1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};

    if (digits == 0)
        return 0;
    if (digits <= (uint64_t)1 << 53 && e >= -22 && e <= 22)
        return e < 0 ? (double)digits / exact[-e] : (double)digits * exact[e];
    if (e > 400)
        return (double)INFINITY;
    if (e < -400)
        return 0;
    return (double)((long double)digits * powl(10.0L, e));
}

static bool word_number(const char *s, const char **end, double *out)
{
    static const struct {
        const char *word;
        double value;
    } words[] = {{"nan", (double)NAN},
                 {"-nan", (double)NAN},
                 {"inf", (double)INFINITY},
                 {"-inf", -(double)INFINITY}};

    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        const size_t n = strlen(words[i].word);

        if (strncmp(s, words[i].word, n) != 0)
            continue;
        *end = s + n;
        *out = words[i].value;
        return true;
    }
    return false;
}

/* The digits of a number: up to 19 count, `shift` is the power of ten behind. */
static const char *take_digits(const char *s, uint64_t *digits, int *shift)
{
    bool has_any = false, has_point = false;

    for (;; s++) {
        if (*s == '.' && !has_point) {
            has_point = true;
            continue;
        }
        if (!is_digit(*s))
            return has_any ? s : NULL;
        has_any = true;
        if (*digits < 1000000000000000000u) {
            *digits = *digits * 10 + (uint64_t)(*s - '0');
            *shift -= has_point;
        } else {
            *shift += !has_point;
        }
    }
}

bool heddle_number_scan(const char *s, const char **end, double *out)
{
    uint64_t digits = 0;
    int shift = 0, e = 0;
    const bool is_negative = *s == '-';
    double v;

    if (word_number(s, end, out))
        return true;
    if (*s == '-' || *s == '+')
        s++;
    s = take_digits(s, &digits, &shift);
    if (s == NULL)
        return false;
    if (*s == 'e' || *s == 'E') {
        const char *x = s + 1 + (s[1] == '-' || s[1] == '+');

        if (is_digit(*x)) {
            for (; is_digit(*x); x++)
                e = e < 10000 ? e * 10 + (*x - '0') : e;
            e = s[1] == '-' ? -e : e;
            s = x;
        }
    }
    v = scale(digits, shift + e);
    *end = s;
    *out = is_negative ? -v : v;
    return true;
}

bool heddle_number_finite(const char *s, double *out)
{
    const char *end;

    return heddle_number_scan(s, &end, out) && *end == '\0' && isfinite(*out);
}
