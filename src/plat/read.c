/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * read: whole text files, lines, words, and sentences about them.
 *
 * Bounds      files of at most 64 MiB, lines of at most 4 KiB, 32 words: a larger
 *             one is refused, never cut.
 */
#include "plat/read.h"

#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/file.h"

#define FILE_MAX ((size_t)64 << 20)

/* ---- files --------------------------------------------------------------- */

static heddle_status bad_file(struct heddle_plat_text *t, heddle_status st, const char *what)
{
    return heddle_why(t->why, t->cap, st, "%s: %s", t->path, what);
}

heddle_status heddle_plat_text_open(struct heddle_plat_text *t)
{
    const char *what = "";
    heddle_status st;

    heddle_plat_text_rewind(t);
    st = heddle_file_read(t->path, FILE_MAX, t->a, &t->text, &t->len, &what);
    return st == HEDDLE_OK ? st : bad_file(t, st, what);
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

static heddle_status check_word(const struct heddle_plat_text *t, const char *word)
{
    for (const char *s = word; *s != '\0'; s++)
        if ((unsigned char)*s < 33 || (unsigned char)*s > 126)
            return HEDDLE_PLAT_TEXT_BAD(t, "a byte of value %u is no part of a word",
                                        (unsigned)(unsigned char)*s);
    return HEDDLE_OK;
}

heddle_status heddle_plat_text_split(struct heddle_plat_text *t, const char *s, size_t n)
{
    size_t i = 0;

    t->nwords = 0;
    if (n >= HEDDLE_PLAT_LINE)
        return HEDDLE_PLAT_TEXT_BAD(t, "the line has more than %u bytes", HEDDLE_PLAT_LINE - 1);
    if (memchr(s, '\0', n) != NULL)
        return HEDDLE_PLAT_TEXT_BAD(t, "this is not text: it has a zero byte");
    if (n > 0)
        memcpy(t->buf, s, n);
    t->buf[n] = '\0';
    for (;;) {
        while (i < n && is_blank(t->buf[i]))
            i++;
        if (i == n || t->buf[i] == '#')
            return HEDDLE_OK;
        if (t->nwords == HEDDLE_PLAT_WORDS)
            return HEDDLE_PLAT_TEXT_BAD(t, "the line has more than %u words", HEDDLE_PLAT_WORDS);
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
