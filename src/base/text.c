/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * text: bounded strings and numbers for people.
 *
 * Purpose    error messages and reports without allocation; the same bytes in
 *            every locale.
 * Invariants (1) len < cap and buf[len] == '\0' when cap > 0
 *            (2) is_truncated never becomes false but by clear()
 * Threads    a builder belongs to one thread.
 */
#include "base/text.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void heddle_text_init(struct heddle_text *t, char *buf, size_t cap)
{
    *t = (struct heddle_text){.buf = buf, .cap = buf == NULL ? 0 : cap};
    heddle_text_clear(t);
}

void heddle_text_clear(struct heddle_text *t)
{
    t->len = 0;
    t->is_truncated = false;
    if (t->cap > 0)
        t->buf[0] = '\0';
}

/* The length of s without a UTF-8 character that stops short at its end. */
static size_t whole_chars(const char *s, size_t len)
{
    size_t back = 0, need;
    unsigned char c;

    while (back < 3 && back < len && ((unsigned char)s[len - back - 1] & 0xc0) == 0x80)
        back++;
    if (back == len)
        return len;
    c = (unsigned char)s[len - back - 1];
    need = c >= 0xf0 ? 3 : c >= 0xe0 ? 2 : c >= 0xc0 ? 1 : 0;
    return need > back ? len - back - 1 : len;
}

static void truncate_here(struct heddle_text *t)
{
    t->is_truncated = true;
    if (t->cap == 0)
        return;
    t->len = whole_chars(t->buf, t->len);
    t->buf[t->len] = '\0';
}

void heddle_text_mem(struct heddle_text *t, const char *s, size_t n)
{
    const size_t room = t->cap == 0 ? 0 : t->cap - 1 - t->len;
    const size_t take = n < room ? n : room;

    if (t->is_truncated || n == 0)
        return;
    if (take > 0) {
        memcpy(t->buf + t->len, s, take);
        t->len += take;
        t->buf[t->len] = '\0';
    }
    if (take < n)
        truncate_here(t);
}

void heddle_text_str(struct heddle_text *t, const char *s)
{
    heddle_text_mem(t, s, strlen(s));
}

void heddle_text_vadd(struct heddle_text *t, const char *fmt, va_list ap)
{
    const size_t room = t->cap - t->len; /* the final zero included */
    int n;

    if (t->is_truncated)
        return;
    n = vsnprintf(room == 0 ? NULL : t->buf + t->len, room, fmt, ap);
    if (n >= 0 && (size_t)n < room) {
        t->len += (size_t)n;
    } else if (n != 0) {
        /* A failed conversion leaves what was there; a long one is cut. */
        t->len = room == 0 || n < 0 ? t->len : t->cap - 1;
        truncate_here(t);
    }
}

void heddle_text_add(struct heddle_text *t, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    heddle_text_vadd(t, fmt, ap);
    va_end(ap);
}

/* Whatever the locale put between the digits becomes one '.'. */
static void add_number(struct heddle_text *t, const char *s)
{
    bool in_point = false;

    for (; *s != '\0'; s++) {
        const bool is_plain = (*s >= '0' && *s <= '9') || *s == '-' || *s == '+' || *s == 'e';

        if (is_plain)
            heddle_text_mem(t, s, 1);
        else if (!in_point)
            heddle_text_mem(t, ".", 1);
        in_point = !is_plain;
    }
}

void heddle_text_double(struct heddle_text *t, double v)
{
    char s[64];
    int digits;

    if (isnan(v)) {
        heddle_text_str(t, "nan");
        return;
    }
    if (isinf(v)) {
        heddle_text_str(t, v < 0 ? "-inf" : "inf");
        return;
    }
    /* A normal double made from 15 digits or fewer comes back as these, so
     * nothing shorter than the first hit exists. Subnormals have fewer. */
    digits = isnormal(v) ? 15 : 1;
    for (; digits <= 17; digits++) {
        snprintf(s, sizeof(s), "%.*g", digits, v);
        if (strtod(s, NULL) == v)
            break;
    }
    if (digits > 17)
        snprintf(s, sizeof(s), "%.17g", v);
    add_number(t, s);
}

void heddle_text_fixed(struct heddle_text *t, double v, unsigned decimals)
{
    double scale = 1.0, x;
    uint64_t u, unit = 1;

    if (decimals > 9)
        decimals = 9;
    for (unsigned i = 0; i < decimals; i++) {
        scale *= 10.0;
        unit *= 10;
    }
    x = fabs(v) * scale + 0.5;
    if (!(x < 0x1.0p63)) { /* too large to have decimals, or nan */
        heddle_text_double(t, v);
        return;
    }
    u = (uint64_t)x;
    if (signbit(v) && u > 0)
        heddle_text_mem(t, "-", 1);
    heddle_text_add(t, "%llu", (unsigned long long)(u / unit));
    if (decimals > 0)
        heddle_text_add(t, ".%0*llu", (int)decimals, (unsigned long long)(u % unit));
}

/* Three digits of v, which is below 1024. */
static void add_three(struct heddle_text *t, double v, const char *unit)
{
    heddle_text_fixed(t, v, v < 9.995 ? 2 : v < 99.95 ? 1 : 0);
    heddle_text_mem(t, " ", 1);
    heddle_text_str(t, unit);
}

static void add_scaled(struct heddle_text *t, uint64_t n, double base, const char *const *unit,
                       unsigned nunits)
{
    double v = (double)n / base;
    unsigned i = 0;

    /* The margin keeps 999 999 from becoming "1000 k". */
    while (i + 1 < nunits && v >= base - 0.5) {
        v /= base;
        i++;
    }
    add_three(t, v, unit[i]);
}

void heddle_text_bytes(struct heddle_text *t, uint64_t bytes)
{
    static const char *const unit[] = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};

    if (bytes < 1024)
        heddle_text_add(t, "%u B", (unsigned)bytes);
    else
        add_scaled(t, bytes, 1024.0, unit, 6);
}

void heddle_text_count(struct heddle_text *t, uint64_t n)
{
    static const char *const unit[] = {"k", "M", "G", "T", "P", "E"};

    if (n < 1000)
        heddle_text_add(t, "%u", (unsigned)n);
    else
        add_scaled(t, n, 1000.0, unit, 6);
}

void heddle_text_ns(struct heddle_text *t, uint64_t ns)
{
    static const char *const unit[] = {"us", "ms", "s"};
    const uint64_t s = ns / 1000000000u;

    if (ns < 1000)
        heddle_text_add(t, "%u ns", (unsigned)ns);
    else if (s < 60)
        add_scaled(t, ns, 1000.0, unit, 3);
    else if (s < 3600)
        heddle_text_add(t, "%u min %u s", (unsigned)(s / 60), (unsigned)(s % 60));
    else
        heddle_text_add(t, "%llu h %u min", (unsigned long long)(s / 3600),
                        (unsigned)(s % 3600 / 60));
}

/* Digits "12" or "12.5" at the front of *s: whole and frac / 10^ndigits. */
struct number {
    uint64_t whole;
    uint64_t frac;
    unsigned ndigits; /* at most 9; further ones are read and dropped */
};

static heddle_status take_digits(const char **s, uint64_t *out)
{
    uint64_t v = 0;
    bool is_big = false;

    if (**s < '0' || **s > '9')
        return HEDDLE_EINVAL;
    for (; **s >= '0' && **s <= '9'; (*s)++) {
        is_big = is_big || __builtin_mul_overflow(v, 10u, &v) ||
                 __builtin_add_overflow(v, (uint64_t)(**s - '0'), &v);
    }
    *out = v;
    return is_big ? HEDDLE_EOVERFLOW : HEDDLE_OK;
}

static heddle_status take_number(const char **s, struct number *x)
{
    heddle_status st = take_digits(s, &x->whole);

    x->frac = 0;
    x->ndigits = 0;
    if (st == HEDDLE_EINVAL || **s != '.')
        return st;
    (*s)++;
    if (**s < '0' || **s > '9')
        return HEDDLE_EINVAL;
    for (; **s >= '0' && **s <= '9'; (*s)++) {
        if (x->ndigits < 9) {
            x->frac = x->frac * 10 + (uint64_t)(**s - '0');
            x->ndigits++;
        }
    }
    return st;
}

/* *out = x * unit, rounded down. */
static heddle_status scale_number(const struct number *x, uint64_t unit, uint64_t *out)
{
    uint64_t p10 = 1, v, f;

    for (unsigned i = 0; i < x->ndigits; i++)
        p10 *= 10;
    /* frac < p10 <= 10^9: neither product below can overflow. */
    f = unit / p10 * x->frac + unit % p10 * x->frac / p10;
    if (__builtin_mul_overflow(x->whole, unit, &v) || __builtin_add_overflow(v, f, &v))
        return HEDDLE_EOVERFLOW;
    *out = v;
    return HEDDLE_OK;
}

/* total * x / 100, rounded down; x <= 100, of which 7 decimals count. */
static uint64_t percent_of(const struct number *x, uint64_t total)
{
    const uint64_t all = 1000000000; /* 100 % in units of 10^-7 % */
    uint64_t frac = x->frac, parts;

    for (unsigned i = x->ndigits; i < 7; i++)
        frac *= 10;
    for (unsigned i = x->ndigits; i > 7; i--)
        frac /= 10;
    parts = x->whole * (all / 100) + frac;
    return total / all * parts + total % all * parts / all;
}

heddle_status heddle_parse_u64(const char *s, uint64_t *out)
{
    uint64_t v = 0;
    heddle_status st;

    if (s == NULL)
        return HEDDLE_EINVAL;
    st = take_digits(&s, &v);
    if (*s != '\0')
        return HEDDLE_EINVAL;
    if (st == HEDDLE_OK)
        *out = v;
    return st;
}

heddle_status heddle_parse_i64(const char *s, int64_t *out)
{
    const uint64_t top = (uint64_t)INT64_MAX;
    uint64_t v = 0;
    bool is_negative;
    heddle_status st;

    if (s == NULL)
        return HEDDLE_EINVAL;
    is_negative = *s == '-';
    st = heddle_parse_u64(*s == '-' || *s == '+' ? s + 1 : s, &v);
    if (st != HEDDLE_OK)
        return st;
    if (v > top + (is_negative ? 1 : 0))
        return HEDDLE_EOVERFLOW;
    *out = is_negative ? (int64_t)(0 - v) : (int64_t)v;
    return HEDDLE_OK;
}

heddle_status heddle_parse_bool(const char *s, bool *out)
{
    static const char *const word[] = {"0", "1", "off", "on", "no", "yes", "false", "true"};

    if (s == NULL)
        return HEDDLE_EINVAL;
    for (unsigned i = 0; i < 8; i++) {
        if (strcmp(s, word[i]) == 0) {
            *out = i % 2 == 1;
            return HEDDLE_OK;
        }
    }
    return HEDDLE_EINVAL;
}

/* "", "B": 1. "K", "KiB": a power of 1024. "KB": a power of 1000. 0: it is none. */
static uint64_t size_unit(const char *s)
{
    static const char letters[] = "KMGTPE";
    uint64_t unit = 1;
    const char *at;
    unsigned power;
    char c = *s;

    if (c >= 'a' && c <= 'z')
        c = (char)(c - 'a' + 'A');
    at = c == '\0' ? NULL : strchr(letters, c);
    if (at == NULL)
        return c == '\0' || (c == 'B' && s[1] == '\0') ? 1 : 0;
    s++;
    power = (unsigned)(at - letters + 1);
    if (*s == '\0' || *s == 'i')
        return *s == '\0' || ((s[1] == 'B' || s[1] == 'b') && s[2] == '\0')
                   ? UINT64_C(1) << 10 * power
                   : 0;
    for (unsigned i = 0; i < power; i++)
        unit *= 1000;
    return (*s == 'B' || *s == 'b') && s[1] == '\0' ? unit : 0;
}

heddle_status heddle_parse_size(const char *s, uint64_t total, uint64_t *out)
{
    struct number x;
    heddle_status st;
    uint64_t unit;

    if (s == NULL)
        return HEDDLE_EINVAL;
    st = take_number(&s, &x);
    if (st == HEDDLE_EINVAL)
        return st;
    if (strcmp(s, "%") != 0) {
        unit = size_unit(s);
        if (unit == 0)
            return HEDDLE_EINVAL;
        return st == HEDDLE_OK ? scale_number(&x, unit, out) : st;
    }
    if (st != HEDDLE_OK || total == 0 || x.whole > 100 || (x.whole == 100 && x.frac > 0))
        return HEDDLE_EINVAL;
    *out = percent_of(&x, total);
    return HEDDLE_OK;
}

heddle_status heddle_parse_ns(const char *s, uint64_t *out)
{
    static const struct {
        const char *name;
        uint64_t ns;
    } unit[] = {
        {"ns", 1},
        {"us", 1000},
        {"ms", 1000000},
        {"s", 1000000000},
        {"min", UINT64_C(60000000000)},
        {"h", UINT64_C(3600000000000)},
    };
    struct number x;
    heddle_status st;

    if (s == NULL)
        return HEDDLE_EINVAL;
    st = take_number(&s, &x);
    if (st == HEDDLE_EINVAL)
        return st;
    if (*s == '\0' && st == HEDDLE_OK && x.whole == 0 && x.frac == 0) {
        *out = 0;
        return HEDDLE_OK;
    }
    for (size_t i = 0; i < sizeof(unit) / sizeof(unit[0]); i++) {
        if (strcmp(s, unit[i].name) == 0)
            return st == HEDDLE_OK ? scale_number(&x, unit[i].ns, out) : st;
    }
    return HEDDLE_EINVAL;
}
