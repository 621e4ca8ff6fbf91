/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * read: whole text files, lines, words, numbers, and sentences about them.
 *
 * Bounds      files of at most 64 MiB, lines of at most 4 KiB, 32 words: a larger
 *             one is refused, never cut.
 * Numbers     own parser: strtod() asks the host's locale for the point. Up to 19
 *             digits count; exact where a double can be, else within one unit
 *             in the last place.
 */
#include "plat/read.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/text.h"

#define FILE_MAX ((size_t)64 << 20)

heddle_status heddle_plat_why(char *why, size_t cap, heddle_status st,
                              const char *fmt, ...)
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

heddle_status heddle_plat_text_bad(const struct heddle_plat_text *t,
                                   const char *fmt, ...)
{
    struct heddle_text x;
    va_list ap;

    if (t->why == NULL || t->cap == 0)
        return HEDDLE_EFORMAT;
    heddle_text_init(&x, t->why, t->cap);
    if (t->path != NULL)
        heddle_text_add(&x, "%s:", t->path);
    if (t->path != NULL && t->line > 0)
        heddle_text_add(&x, "%u:", t->line);
    if (t->path != NULL)
        heddle_text_str(&x, " ");
    va_start(ap, fmt);
    heddle_text_vadd(&x, fmt, ap);
    va_end(ap);
    return HEDDLE_EFORMAT;
}

/* ---- files --------------------------------------------------------------- */

static heddle_status bad_file(struct heddle_plat_text *t, heddle_status st,
                              const char *what)
{
    return heddle_plat_why(t->why, t->cap, st, "%s: %s", t->path, what);
}

static heddle_status read_all(struct heddle_plat_text *t, int fd)
{
    size_t got = 0;

    while (got < t->len) {
        const ssize_t n = read(fd, t->text + got, t->len - got);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return bad_file(t, HEDDLE_EIO, "the file cannot be read");
        if (n == 0)
            return bad_file(t, HEDDLE_EIO, "the file became shorter");
        got += (size_t)n;
    }
    return HEDDLE_OK;
}

static heddle_status open_fd(struct heddle_plat_text *t, int fd)
{
    struct stat sb;
    heddle_status st;

    if (fstat(fd, &sb) != 0)
        return bad_file(t, HEDDLE_EIO, "the file cannot be read");
    if (S_ISDIR(sb.st_mode))
        return bad_file(t, HEDDLE_EFORMAT, "this is a folder, not a file");
    if (!S_ISREG(sb.st_mode))
        return bad_file(t, HEDDLE_EFORMAT, "this is not a regular file");
    if (sb.st_size < 0 || (uint64_t)sb.st_size > FILE_MAX)
        return bad_file(t, HEDDLE_EFORMAT, "the file is larger than 64 MiB");
    t->len = (size_t)sb.st_size;
    t->text = heddle_alloc(t->a, t->len + 1);
    if (t->text == NULL)
        return bad_file(t, HEDDLE_ENOMEM, "no memory to read the file");
    t->text[t->len] = '\0';
    st = read_all(t, fd);
    if (st != HEDDLE_OK)
        heddle_plat_text_close(t);
    return st;
}

heddle_status heddle_plat_text_open(struct heddle_plat_text *t)
{
    heddle_status st;
    int fd;

    t->text = NULL;
    t->len = 0;
    heddle_plat_text_rewind(t);
    /* O_NONBLOCK: a pipe must not hold us up, only to be refused. */
    fd = open(t->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0 && (errno == ENOENT || errno == ENOTDIR))
        return bad_file(t, HEDDLE_ENOENT, "there is no such file");
    if (fd < 0)
        return bad_file(t, HEDDLE_EIO, "the file cannot be opened");
    st = open_fd(t, fd);
    (void)close(fd);
    return st;
}

void heddle_plat_text_close(struct heddle_plat_text *t)
{
    if (t->text != NULL)
        heddle_free(t->a, t->text, t->len + 1);
    t->text = NULL;
    t->len = 0;
}

void heddle_plat_text_rewind(struct heddle_plat_text *t)
{
    t->at = 0;
    t->line = 0;
    t->nwords = 0;
}

/* ---- lines --------------------------------------------------------------- */

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

static heddle_status check_word(const struct heddle_plat_text *t,
                                const char *word)
{
    for (const char *s = word; *s != '\0'; s++)
        if ((unsigned char)*s < 33 || (unsigned char)*s > 126)
            return heddle_plat_text_bad(
                t, "a byte of value %u is no part of a word",
                (unsigned)(unsigned char)*s);
    return HEDDLE_OK;
}

heddle_status heddle_plat_text_split(struct heddle_plat_text *t, const char *s,
                                     size_t n)
{
    size_t i = 0;

    t->nwords = 0;
    if (n >= HEDDLE_PLAT_LINE)
        return heddle_plat_text_bad(t, "the line has more than %u bytes",
                                    HEDDLE_PLAT_LINE - 1);
    if (memchr(s, '\0', n) != NULL)
        return heddle_plat_text_bad(t, "this is not text: it has a zero byte");
    if (n > 0)
        memcpy(t->buf, s, n);
    t->buf[n] = '\0';
    for (;;) {
        while (i < n && is_blank(t->buf[i]))
            i++;
        if (i == n || t->buf[i] == '#')
            return HEDDLE_OK;
        if (t->nwords == HEDDLE_PLAT_WORDS)
            return heddle_plat_text_bad(t, "the line has more than %u words",
                                        HEDDLE_PLAT_WORDS);
        t->word[t->nwords++] = &t->buf[i];
        while (i < n && !is_blank(t->buf[i]))
            i++;
        if (i < n)
            t->buf[i++] = '\0';
        HEDDLE_TRY(check_word(t, t->word[t->nwords - 1]));
    }
}

heddle_status heddle_plat_text_next(struct heddle_plat_text *t)
{
    while (t->at < t->len) {
        const char *s = t->text + t->at;
        const char *end = memchr(s, '\n', t->len - t->at);
        const size_t n = end != NULL ? (size_t)(end - s) : t->len - t->at;

        t->line++;
        t->at += n + (end != NULL ? 1 : 0);
        HEDDLE_TRY(heddle_plat_text_split(t, s, n));
        if (t->nwords > 0)
            return HEDDLE_OK;
    }
    return HEDDLE_AGAIN;
}

/* ---- numbers ------------------------------------------------------------- */

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static double scale(uint64_t digits, int e)
{
    static const double exact[] = {
        1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
        1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};

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

bool heddle_plat_number(const char *s, const char **end, double *out)
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

bool heddle_plat_finite(const char *s, double *out)
{
    const char *end;

    return heddle_plat_number(s, &end, out) && *end == '\0' && isfinite(*out);
}
