/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_PLAT_SCAN_H
#define HEDDLE_PLAT_SCAN_H

/*
 * Numbers out of a text, one after the other, comments ('#' to the end of the
 * line) left out: the form of StarPU's files. Built on a heddle_plat_text, whose
 * `at` and `line` it moves.
 */
#include <string.h>

#include "plat/read.h"

static inline bool heddle_plat_scan_is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

/* To the next character of a word; with `stays`, not beyond this line. False:
 * there is none. */
static inline bool heddle_plat_scan_skip(struct heddle_plat_text *t, bool stays)
{
    while (t->at < t->len) {
        const char c = t->text[t->at];

        if (c == '#') {
            while (t->at < t->len && t->text[t->at] != '\n')
                t->at++;
        } else if (c == '\n') {
            if (stays)
                return false;
            t->at++;
            t->line++;
        } else if (heddle_plat_scan_is_blank(c)) {
            t->at++;
        } else {
            return true;
        }
    }
    return false;
}

/* Past the rest of the line. */
static inline void heddle_plat_scan_line(struct heddle_plat_text *t)
{
    while (t->at < t->len && t->text[t->at] != '\n')
        t->at++;
}

/* The word here, without what follows it; n bytes. */
static inline const char *heddle_plat_scan_word(struct heddle_plat_text *t, bool stays, size_t *n)
{
    const char *s;

    if (!heddle_plat_scan_skip(t, stays))
        return NULL;
    s = t->text + t->at;
    while (t->at < t->len && t->text[t->at] != '\n' && t->text[t->at] != '#' &&
           !heddle_plat_scan_is_blank(t->text[t->at]))
        t->at++;
    *n = (size_t)(t->text + t->at - s);
    return s;
}

/* A number that is a whole word. */
static inline bool heddle_plat_scan_number(struct heddle_plat_text *t, bool stays, double *out)
{
    const char *end, *s;
    size_t n;

    s = heddle_plat_scan_word(t, stays, &n);
    return s != NULL && heddle_number_scan(s, &end, out) && end == s + n;
}

/* A whole number from 0 to max. */
static inline bool heddle_plat_scan_count(struct heddle_plat_text *t, unsigned max, unsigned *out)
{
    double v;

    if (!heddle_plat_scan_number(t, false, &v) || !(v >= 0 && v <= max))
        return false;
    *out = (unsigned)v;
    return (double)*out >= v;
}

#endif /* HEDDLE_PLAT_SCAN_H */
