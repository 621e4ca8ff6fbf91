/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * recutils: reads records of "Field: value" lines.
 *
 * Structure  one pass, in place. Joining lines only removes characters, so the
 *            writing position never passes the reading position.
 * Errors     values: HEDDLE_RECUTILS_BAD with a reason and a line.
 */
#include "trace/recutils.h"

#include <string.h>

void heddle_recutils_init(struct heddle_recutils *r, char *text, size_t bytes)
{
    *r = (struct heddle_recutils){.p = text, .end = text + bytes, .line = 1};
    *r->end = '\n'; /* the last line may lack it */
}

/* Ends the line at p with a zero and goes to the next; returns its length. */
static size_t take_line(struct heddle_recutils *r)
{
    char *start = r->p;
    char *stop = memchr(start, '\n', (size_t)(r->end - start) + 1);
    size_t n = (size_t)(stop - start);

    r->p = stop < r->end ? stop + 1 : r->end;
    r->line++;
    if (n > 0 && start[n - 1] == '\r')
        n--;
    start[n] = '\0';
    return n;
}

static enum heddle_recutils_item refuse(struct heddle_recutils *r, const char *why)
{
    r->why = why;
    r->p = r->end;
    return HEDDLE_RECUTILS_BAD;
}

static bool is_name(char c, bool is_first)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '%' ||
           (!is_first && c >= '0' && c <= '9');
}

/* Appends the lines that continue the value of n characters at `v`. */
static void take_rest(struct heddle_recutils *r, char *v, size_t n)
{
    const char *more;
    size_t len;

    for (;;) {
        const bool is_joined = n > 0 && v[n - 1] == '\\';

        if (r->p == r->end || (!is_joined && *r->p != '+'))
            break;
        more = r->p;
        len = take_line(r);
        if (is_joined) {
            n--;
        } else {
            v[n++] = '\n';
            more++; /* the plus, and one blank */
            len--;
            if (len > 0 && *more == ' ') {
                more++;
                len--;
            }
        }
        memmove(v + n, more, len);
        n += len;
    }
    v[n] = '\0';
}

enum heddle_recutils_item heddle_recutils_next(struct heddle_recutils *r)
{
    char *s, *q;
    size_t n;

    do {
        if (r->p == r->end)
            return HEDDLE_RECUTILS_END;
        r->field_line = r->line;
        s = r->p;
        n = take_line(r);
    } while (*s == '#' && n > 0);
    if (strlen(s) != n)
        return refuse(r, "there is a zero byte");
    if (n == strspn(s, " \t"))
        return HEDDLE_RECUTILS_RECORD;
    for (q = s; is_name(*q, q == s);)
        q++;
    if (q == s || *q != ':')
        return refuse(r, "this is not 'Field: value'");
    *q++ = '\0';
    q += strspn(q, " \t");
    r->name = s;
    r->value = q;
    take_rest(r, q, n - (size_t)(q - s));
    return HEDDLE_RECUTILS_FIELD;
}

bool heddle_recutils_word(const char **list, char word[HEDDLE_RECUTILS_WORD])
{
    const char *s = *list + strspn(*list, " \t\n");
    const size_t n = strcspn(s, " \t\n");

    word[0] = '\0';
    if (n == 0) {
        *list = s;
        return false;
    }
    if (n >= HEDDLE_RECUTILS_WORD)
        return false;
    memcpy(word, s, n);
    word[n] = '\0';
    *list = s + n;
    return true;
}

/* m * 10^e; at most 18 digits of the number are used. */
struct decimal {
    uint64_t m;
    int e;
    bool is_negative;
};

/* Exponents stay small, so that loops over them do. */
#define EXPONENT_MAX 1000

static const char *take_digits(const char *s, struct decimal *d, bool is_frac, bool *has_digit)
{
    for (; *s >= '0' && *s <= '9'; s++) {
        *has_digit = true;
        if (d->m < UINT64_C(100000000000000000)) {
            d->m = 10 * d->m + (uint64_t)(*s - '0');
            d->e -= is_frac;
        } else {
            d->e += !is_frac;
        }
        if (d->e > EXPONENT_MAX || d->e < -EXPONENT_MAX)
            break;
    }
    return s;
}

static bool take_decimal(const char *s, struct decimal *d)
{
    bool has_digit = false, is_down;
    int e = 0;

    *d = (struct decimal){0};
    d->is_negative = *s == '-';
    s += *s == '-' || *s == '+';
    s = take_digits(s, d, false, &has_digit);
    if (*s == '.')
        s = take_digits(s + 1, d, true, &has_digit);
    if (!has_digit)
        return false;
    if (*s == 'e' || *s == 'E') {
        s++;
        is_down = *s == '-';
        s += *s == '-' || *s == '+';
        if (*s < '0' || *s > '9')
            return false;
        for (; *s >= '0' && *s <= '9' && e <= EXPONENT_MAX; s++)
            e = 10 * e + (*s - '0');
        d->e += is_down ? -e : e;
    }
    return s[strspn(s, " \t\n")] == '\0';
}

bool heddle_recutils_scaled(const char *s, int scale, int64_t *out)
{
    const uint64_t limit = UINT64_C(1) << 62;
    struct decimal d;
    unsigned last = 0;

    if (!take_decimal(s, &d))
        return false;
    for (d.e += scale; d.e > 0 && d.m != 0; d.e--) {
        if (d.m > limit / 10)
            return false;
        d.m *= 10;
    }
    for (; d.e < 0 && (d.m != 0 || last != 0); d.e++) {
        last = (unsigned)(d.m % 10);
        d.m /= 10;
    }
    d.m += last >= 5;
    *out = d.is_negative ? -(int64_t)d.m : (int64_t)d.m;
    return d.m <= limit;
}

bool heddle_recutils_double(const char *s, double *out)
{
    struct decimal d;
    double v;

    if (!take_decimal(s, &d))
        return false;
    v = (double)d.m;
    for (; d.e > 0 && v < 1e300; d.e--)
        v *= 10.0;
    if (d.e > 0 && v > 0.0)
        return false;
    for (; d.e < 0 && v > 0.0; d.e++)
        v /= 10.0;
    *out = d.is_negative ? -v : v;
    return true;
}

bool heddle_recutils_hex(const char *s, uint64_t *out)
{
    uint64_t v = 0;
    unsigned n = 0;

    if (s[0] == '0' && (s[1] == 'x' || s[1] == 'X'))
        s += 2;
    for (; *s != '\0' && *s != ' '; s++, n++) {
        const char lower = (char)(*s | 0x20);

        if (n == 16)
            return false;
        if (*s >= '0' && *s <= '9')
            v = v << 4 | (uint64_t)(*s - '0');
        else if (lower >= 'a' && lower <= 'f')
            v = v << 4 | (uint64_t)(lower - 'a' + 10);
        else
            return false;
    }
    *out = v;
    return n > 0;
}
