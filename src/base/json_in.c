/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * json_in: JSON, item by item.
 *
 * State      `want` says what the grammar allows next; `in_object` has one bit per
 *            open level.
 * Invariant  at <= end, and *end is zero: a look at *at never leaves the text.
 */
#include "base/json_in.h"

#include <math.h>
#include <string.h>

#include "base/number.h"

/* What may come next. */
enum {
    WANT_VALUE,          /* a value */
    WANT_VALUE_OR_CLOSE, /* behind [ */
    WANT_KEY,            /* behind a comma in an object */
    WANT_KEY_OR_CLOSE,   /* behind { */
    WANT_COMMA,          /* a comma or the end of this level */
    WANT_END             /* behind the value of the text */
};

void heddle_json_in_init(struct heddle_json_in *j, const char *text, size_t len)
{
    *j = (struct heddle_json_in){.begin = text, .at = text, .end = text + len};
}

static enum heddle_json_kind bad(struct heddle_json_in *j, struct heddle_json_item *item,
                                 const char *what)
{
    if (j->what == NULL)
        j->what = what;
    *item = (struct heddle_json_item){HEDDLE_JSON_BAD, j->at, 0};
    return HEDDLE_JSON_BAD;
}

static void skip_blanks(struct heddle_json_in *j)
{
    while (*j->at == ' ' || *j->at == '\n' || *j->at == '\r' || *j->at == '\t')
        j->at++;
}

static bool is_in_object(const struct heddle_json_in *j)
{
    return j->depth > 0 && (j->in_object >> (j->depth - 1) & 1) != 0;
}

static void value_ends(struct heddle_json_in *j)
{
    j->want = j->depth == 0 ? WANT_END : WANT_COMMA;
}

/* --- strings --------------------------------------------------------------- */

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    if (c >= 'A' && c <= 'F')
        return c - 'A' + 10;
    return -1;
}

/* Four hexadecimal digits; -1: not four. Stops at the zero behind the text. */
static int32_t hex4(const char *s)
{
    int32_t v = 0;

    for (int i = 0; i < 4; i++) {
        const int d = hex_digit(s[i]);

        if (d < 0)
            return -1;
        v = v * 16 + d;
    }
    return v;
}

/* The length of the escape at s, and what it means; 0: it is none. */
static size_t escape(const char *s, uint32_t *code)
{
    static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
    int32_t high, low;

    if (s[1] != 'u') {
        const char *p = s[1] != '\0' ? strchr(from, s[1]) : NULL;

        if (p == NULL)
            return 0;
        *code = (unsigned char)to[p - from];
        return 2;
    }
    high = hex4(s + 2);
    if (high < 0 || (high >= 0xdc00 && high < 0xe000))
        return 0;
    *code = (uint32_t)high;
    if (high < 0xd800 || high >= 0xe000)
        return 6;
    if (s[6] != '\\' || s[7] != 'u')
        return 0;
    low = hex4(s + 8);
    if (low < 0xdc00 || low >= 0xe000)
        return 0;
    *code = 0x10000u + ((uint32_t)(high - 0xd800) << 10) + (uint32_t)(low - 0xdc00);
    return 12;
}

/* The length of the UTF-8 character at s; 0: not one. */
static size_t utf8_length(const char *s)
{
    const unsigned char *u = (const unsigned char *)s;
    /* The second byte has a range of its own: no long forms, no surrogates. */
    unsigned char low = 0x80, high = 0xbf;
    size_t n;

    if (u[0] < 0x80)
        return 1;
    if (u[0] >= 0xc2 && u[0] <= 0xdf)
        n = 2;
    else if (u[0] >= 0xe0 && u[0] <= 0xef)
        n = 3;
    else if (u[0] >= 0xf0 && u[0] <= 0xf4)
        n = 4;
    else
        return 0;
    low = u[0] == 0xe0 ? 0xa0 : u[0] == 0xf0 ? 0x90 : low;
    high = u[0] == 0xed ? 0x9f : u[0] == 0xf4 ? 0x8f : high;
    if (u[1] < low || u[1] > high)
        return 0;
    for (size_t i = 2; i < n; i++) {
        if ((u[i] & 0xc0) != 0x80)
            return 0;
    }
    return n;
}

/* The string at *at, which is a quote. NULL: good, and at is behind it. */
static const char *take_string(struct heddle_json_in *j, struct heddle_json_item *item)
{
    const char *s = j->at + 1;

    item->text = s;
    while (*s != '"') {
        uint32_t code;
        size_t n;

        if (s == j->end)
            return "a string has no end";
        if ((unsigned char)*s < 0x20)
            return "a string has a control character";
        n = *s == '\\' ? escape(s, &code) : utf8_length(s);
        if (n == 0)
            return *s == '\\' ? "a string has an escape that means nothing"
                              : "a string is not UTF-8";
        s += n;
    }
    item->len = (size_t)(s - item->text);
    j->at = s + 1;
    return NULL;
}

static size_t put_utf8(uint32_t c, char out[4])
{
    if (c < 0x80) {
        out[0] = (char)c;
        return 1;
    }
    if (c < 0x800) {
        out[0] = (char)(0xc0 | c >> 6);
        out[1] = (char)(0x80 | (c & 0x3f));
        return 2;
    }
    if (c < 0x10000) {
        out[0] = (char)(0xe0 | c >> 12);
        out[1] = (char)(0x80 | (c >> 6 & 0x3f));
        out[2] = (char)(0x80 | (c & 0x3f));
        return 3;
    }
    out[0] = (char)(0xf0 | c >> 18);
    out[1] = (char)(0x80 | (c >> 12 & 0x3f));
    out[2] = (char)(0x80 | (c >> 6 & 0x3f));
    out[3] = (char)(0x80 | (c & 0x3f));
    return 4;
}

static bool is_text(const struct heddle_json_item *item)
{
    return item->kind == HEDDLE_JSON_KEY || item->kind == HEDDLE_JSON_STRING;
}

/* The character of the item at s as bytes: how many, and how long it is in the item. */
static size_t take_char(const char *s, char out[4], size_t *taken)
{
    uint32_t code;

    if (*s != '\\') {
        out[0] = *s;
        *taken = 1;
        return 1;
    }
    *taken = escape(s, &code);
    return put_utf8(code, out);
}

heddle_status heddle_json_get_string(const struct heddle_json_item *item, char *buf, size_t cap,
                                     size_t *len_out)
{
    size_t len = 0, taken;

    if (!is_text(item))
        return HEDDLE_EINVAL;
    for (size_t i = 0; i < item->len; i += taken) {
        char c[4];
        const size_t n = take_char(item->text + i, c, &taken);

        if (cap < len + n + 1)
            return HEDDLE_EOVERFLOW;
        memcpy(buf + len, c, n);
        len += n;
    }
    if (cap < len + 1)
        return HEDDLE_EOVERFLOW;
    buf[len] = '\0';
    if (len_out != NULL)
        *len_out = len;
    return HEDDLE_OK;
}

bool heddle_json_is(const struct heddle_json_item *item, const char *text)
{
    size_t taken;

    if (!is_text(item))
        return false;
    for (size_t i = 0; i < item->len; i += taken) {
        char c[4];
        const size_t n = take_char(item->text + i, c, &taken);

        /* A zero in the item ends the comparison with the text's end. */
        if (strncmp(text, c, n) != 0 || memchr(c, '\0', n) != NULL)
            return false;
        text += n;
    }
    return *text == '\0';
}

/* --- numbers --------------------------------------------------------------- */

static const char *digits(const char *s)
{
    while (*s >= '0' && *s <= '9')
        s++;
    return s;
}

/* Behind the number at s, by JSON's grammar; NULL: there is none. */
static const char *number_end(const char *s)
{
    const char *from;

    s += *s == '-';
    if (*s < '0' || *s > '9')
        return NULL;
    s = *s == '0' ? s + 1 : digits(s);
    if (*s == '.') {
        from = s + 1;
        s = digits(from);
        if (s == from)
            return NULL;
    }
    if (*s == 'e' || *s == 'E') {
        from = s + 1 + (s[1] == '+' || s[1] == '-');
        s = digits(from);
        if (s == from)
            return NULL;
    }
    return s;
}

heddle_status heddle_json_get_double(const struct heddle_json_item *item, double *out)
{
    const char *end;

    if (item->kind != HEDDLE_JSON_NUMBER || !heddle_number_scan(item->text, &end, out))
        return HEDDLE_EINVAL;
    return HEDDLE_OK;
}

/* The digits of a number without point and exponent. */
static heddle_status plain_digits(const struct heddle_json_item *item, bool *is_negative,
                                  uint64_t *out)
{
    const char *s = item->text, *end = s + item->len;
    uint64_t v = 0;

    *is_negative = *s == '-';
    for (s += *is_negative; s < end; s++) {
        const uint64_t d = (uint64_t)(*s - '0');

        if (v > (UINT64_MAX - d) / 10)
            return HEDDLE_EOVERFLOW;
        v = v * 10 + d;
    }
    *out = v;
    return HEDDLE_OK;
}

static heddle_status whole(const struct heddle_json_item *item, bool *is_negative, uint64_t *out)
{
    double v;

    if (item->kind != HEDDLE_JSON_NUMBER)
        return HEDDLE_EINVAL;
    if (item->text + item->len == digits(item->text + (*item->text == '-')))
        return plain_digits(item, is_negative, out);
    if (heddle_json_get_double(item, &v) != HEDDLE_OK || v != floor(v))
        return HEDDLE_EINVAL;
    *is_negative = v < 0;
    v = fabs(v);
    if (v >= 18446744073709551616.0)
        return HEDDLE_EOVERFLOW;
    *out = (uint64_t)v;
    return HEDDLE_OK;
}

heddle_status heddle_json_get_i64(const struct heddle_json_item *item, int64_t *out)
{
    bool is_negative;
    uint64_t v;
    const heddle_status st = whole(item, &is_negative, &v);

    if (st != HEDDLE_OK)
        return st;
    if (v > (uint64_t)INT64_MAX + is_negative)
        return HEDDLE_EOVERFLOW;
    *out = is_negative ? (int64_t)(0 - v) : (int64_t)v;
    return HEDDLE_OK;
}

heddle_status heddle_json_get_u64(const struct heddle_json_item *item, uint64_t *out)
{
    bool is_negative;
    uint64_t v;
    const heddle_status st = whole(item, &is_negative, &v);

    if (st != HEDDLE_OK)
        return st;
    if (is_negative && v != 0)
        return HEDDLE_EOVERFLOW;
    *out = v;
    return HEDDLE_OK;
}

/* --- the grammar ------------------------------------------------------------ */

static enum heddle_json_kind take_word(struct heddle_json_in *j, struct heddle_json_item *item)
{
    static const struct {
        const char *word;
        enum heddle_json_kind kind;
    } words[] = {
        {"true", HEDDLE_JSON_TRUE}, {"false", HEDDLE_JSON_FALSE}, {"null", HEDDLE_JSON_NULL}};

    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        const size_t n = strlen(words[i].word);

        if (strncmp(j->at, words[i].word, n) != 0)
            continue;
        *item = (struct heddle_json_item){words[i].kind, j->at, n};
        j->at += n;
        value_ends(j);
        return item->kind;
    }
    return bad(j, item, j->at == j->end ? "the text ends in the middle" : "there is no value");
}

static enum heddle_json_kind open_level(struct heddle_json_in *j, struct heddle_json_item *item)
{
    const bool is_object = *j->at == '{';
    const uint64_t bit = (uint64_t)1 << j->depth;

    if (j->depth == HEDDLE_JSON_IN_DEPTH)
        return bad(j, item, "too many levels");
    *item = (struct heddle_json_item){is_object ? HEDDLE_JSON_OBJECT : HEDDLE_JSON_ARRAY, j->at, 1};
    j->in_object = is_object ? j->in_object | bit : j->in_object & ~bit;
    j->depth++;
    j->at++;
    j->want = is_object ? WANT_KEY_OR_CLOSE : WANT_VALUE_OR_CLOSE;
    return item->kind;
}

static enum heddle_json_kind close_level(struct heddle_json_in *j, struct heddle_json_item *item)
{
    *item = (struct heddle_json_item){HEDDLE_JSON_CLOSE, j->at, 1};
    j->at++;
    j->depth--;
    value_ends(j);
    return item->kind;
}

static enum heddle_json_kind take_key(struct heddle_json_in *j, struct heddle_json_item *item)
{
    const char *what;

    if (*j->at != '"')
        return bad(j, item, "a key is missing");
    what = take_string(j, item);
    if (what != NULL)
        return bad(j, item, what);
    skip_blanks(j);
    if (*j->at != ':')
        return bad(j, item, "a colon is missing");
    j->at++;
    j->want = WANT_VALUE;
    item->kind = HEDDLE_JSON_KEY;
    return item->kind;
}

static enum heddle_json_kind take_value(struct heddle_json_in *j, struct heddle_json_item *item)
{
    if (*j->at == '{' || *j->at == '[')
        return open_level(j, item);
    if (*j->at == '"') {
        const char *what = take_string(j, item);

        if (what != NULL)
            return bad(j, item, what);
        item->kind = HEDDLE_JSON_STRING;
        value_ends(j);
        return item->kind;
    }
    if (*j->at == '-' || (*j->at >= '0' && *j->at <= '9')) {
        const char *end = number_end(j->at);

        if (end == NULL)
            return bad(j, item, "a number is malformed");
        *item = (struct heddle_json_item){HEDDLE_JSON_NUMBER, j->at, (size_t)(end - j->at)};
        j->at = end;
        value_ends(j);
        return item->kind;
    }
    return take_word(j, item);
}

enum heddle_json_kind heddle_json_next(struct heddle_json_in *j, struct heddle_json_item *item)
{
    const char close = is_in_object(j) ? '}' : ']';

    if (j->what != NULL)
        return bad(j, item, j->what);
    skip_blanks(j);
    if (j->want == WANT_END) {
        if (j->at != j->end)
            return bad(j, item, "something follows the value");
        *item = (struct heddle_json_item){HEDDLE_JSON_DONE, j->at, 0};
        return item->kind;
    }
    if (*j->at == close && j->depth > 0 && j->want != WANT_VALUE && j->want != WANT_KEY)
        return close_level(j, item);
    if (j->want == WANT_COMMA) {
        if (*j->at != ',')
            return bad(j, item, "a comma or the end of the level is missing");
        j->at++;
        skip_blanks(j);
        j->want = is_in_object(j) ? WANT_KEY : WANT_VALUE;
    }
    if (j->want == WANT_KEY || j->want == WANT_KEY_OR_CLOSE)
        return take_key(j, item);
    return take_value(j, item);
}

bool heddle_json_skip(struct heddle_json_in *j, const struct heddle_json_item *item)
{
    const unsigned depth = j->depth;
    struct heddle_json_item next;

    if (item->kind != HEDDLE_JSON_OBJECT && item->kind != HEDDLE_JSON_ARRAY)
        return j->what == NULL;
    while (j->depth >= depth) {
        if (heddle_json_next(j, &next) == HEDDLE_JSON_BAD)
            return false;
    }
    return true;
}
