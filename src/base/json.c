/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * json: writes JSON (RFC 8259), nothing kept but the nesting.
 *
 * Purpose    machine-readable output of the tools.
 * Invariants (1) while st is HEDDLE_OK, what was written is a prefix of valid
 *                JSON Lines
 *            (2) depth <= HEDDLE_JSON_DEPTH; bit `depth` of in_object and
 *                has_item describes the innermost level, bit 0 the top, which
 *                is an array without brackets
 *            (3) has_key only inside an object
 * Threads    a writer belongs to one thread.
 */
#include "base/json.h"

#include <string.h>

#include "base/alloc.h"
#include "base/text.h"

void heddle_json_init(struct heddle_json *j, const struct heddle_allocator *a)
{
    *j = (struct heddle_json){.a = a};
}

void heddle_json_init_file(struct heddle_json *j, FILE *file)
{
    *j = (struct heddle_json){
        .file = file,
        .st = file == NULL ? HEDDLE_EINVAL : HEDDLE_OK,
    };
}

void heddle_json_fini(struct heddle_json *j)
{
    heddle_free(j->a, j->buf, j->cap);
    j->buf = NULL;
    j->len = 0;
    j->cap = 0;
}

static void fail(struct heddle_json *j, heddle_status st)
{
    if (j->st == HEDDLE_OK)
        j->st = st;
}

static heddle_status grow(struct heddle_json *j, size_t need)
{
    size_t cap = j->cap == 0 ? 256 : j->cap;
    char *p;

    while (cap < need) {
        if (!heddle_mul(&cap, cap, 2))
            return HEDDLE_ENOMEM;
    }
    p = heddle_alloc(j->a, cap);
    if (p == NULL)
        return HEDDLE_ENOMEM;
    if (j->len > 0)
        memcpy(p, j->buf, j->len);
    heddle_free(j->a, j->buf, j->cap);
    j->buf = p;
    j->cap = cap;
    return HEDDLE_OK;
}

static void put(struct heddle_json *j, const char *s, size_t n)
{
    size_t need;

    if (j->st != HEDDLE_OK || n == 0)
        return;
    if (j->file != NULL) {
        if (fwrite(s, 1, n, j->file) != n)
            fail(j, HEDDLE_EIO);
        return;
    }
    if (!heddle_add(&need, j->len, n) || !heddle_add(&need, need, 1)) {
        fail(j, HEDDLE_ENOMEM);
        return;
    }
    if (need > j->cap) {
        const heddle_status st = grow(j, need);

        if (st != HEDDLE_OK) {
            fail(j, st);
            return;
        }
    }
    memcpy(j->buf + j->len, s, n);
    j->len += n;
    j->buf[j->len] = '\0';
}

static uint64_t level_bit(const struct heddle_json *j)
{
    return UINT64_C(1) << j->depth;
}

/* Before any value: may it stand here? Writes the comma. */
static bool begin_value(struct heddle_json *j)
{
    if (j->st != HEDDLE_OK)
        return false;
    if (j->has_key) {
        j->has_key = false;
        return true;
    }
    if ((j->in_object & level_bit(j)) != 0 || (j->depth == 0 && (j->has_item & 1) != 0)) {
        fail(j, HEDDLE_ESTATE);
        return false;
    }
    if ((j->has_item & level_bit(j)) != 0)
        put(j, ",", 1);
    j->has_item |= level_bit(j);
    return true;
}

static void open_level(struct heddle_json *j, bool is_object)
{
    if (!begin_value(j))
        return;
    if (j->depth == HEDDLE_JSON_DEPTH) {
        fail(j, HEDDLE_EOVERFLOW);
        return;
    }
    put(j, is_object ? "{" : "[", 1);
    j->depth++;
    j->has_item &= ~level_bit(j);
    j->in_object &= ~level_bit(j);
    if (is_object)
        j->in_object |= level_bit(j);
}

void heddle_json_object(struct heddle_json *j)
{
    open_level(j, true);
}

void heddle_json_array(struct heddle_json *j)
{
    open_level(j, false);
}

void heddle_json_end(struct heddle_json *j)
{
    if (j->st == HEDDLE_OK && (j->depth == 0 || j->has_key))
        fail(j, HEDDLE_ESTATE);
    if (j->st != HEDDLE_OK)
        return;
    put(j, (j->in_object & level_bit(j)) != 0 ? "}" : "]", 1);
    j->depth--;
}

/*
 * The length of the UTF-8 character at s (n > 0 bytes left), as the Unicode
 * standard's table 3-7 has it: no surrogates, no overlong forms. 0: ill-formed,
 * and *bad_out bytes make one replacement character.
 */
static size_t utf8_length(const unsigned char *s, size_t n, size_t *bad_out)
{
    const unsigned char c = s[0];
    unsigned char lo = 0x80, hi = 0xbf;
    size_t need, i;

    *bad_out = 1;
    if (c < 0x80)
        return 1;
    if (c < 0xc2 || c > 0xf4)
        return 0;
    need = c >= 0xf0 ? 4 : c >= 0xe0 ? 3 : 2;
    if (c == 0xe0)
        lo = 0xa0;
    else if (c == 0xed)
        hi = 0x9f;
    else if (c == 0xf0)
        lo = 0x90;
    else if (c == 0xf4)
        hi = 0x8f;
    for (i = 1; i < need; i++) {
        if (i == n || s[i] < lo || s[i] > hi) {
            *bad_out = i;
            return 0;
        }
        lo = 0x80;
        hi = 0xbf;
    }
    return need;
}

static void put_escape(struct heddle_json *j, unsigned char c)
{
    static const char from[] = "\"\\\b\f\n\r\t";
    static const char to[] = "\"\\bfnrt";
    static const char hex[] = "0123456789abcdef";
    const char *at = c == '\0' ? NULL : strchr(from, c);
    char e[6] = {'\\', 'u', '0', '0', hex[c >> 4], hex[c & 15]};

    if (at != NULL) {
        e[1] = to[at - from];
        put(j, e, 2);
    } else {
        put(j, e, 6);
    }
}

static void put_string(struct heddle_json *j, const char *text, size_t n)
{
    const unsigned char *s = (const unsigned char *)text;
    size_t i = 0, start = 0;

    put(j, "\"", 1);
    while (i < n) {
        size_t bad = 0;
        const size_t len = utf8_length(s + i, n - i, &bad);
        const bool is_plain = len > 0 && s[i] >= 0x20 && s[i] != '"' && s[i] != '\\';

        if (is_plain) {
            i += len;
            continue;
        }
        put(j, text + start, i - start); /* plain characters go in one piece */
        if (len == 0)
            put(j, "\xef\xbf\xbd", 3); /* U+FFFD */
        else
            put_escape(j, s[i]);
        i += len == 0 ? bad : 1;
        start = i;
    }
    put(j, text + start, n - start);
    put(j, "\"", 1);
}

void heddle_json_key(struct heddle_json *j, const char *key)
{
    if (j->st != HEDDLE_OK)
        return;
    if ((j->in_object & level_bit(j)) == 0 || j->has_key || key == NULL) {
        fail(j, HEDDLE_ESTATE);
        return;
    }
    if ((j->has_item & level_bit(j)) != 0)
        put(j, ",", 1);
    j->has_item |= level_bit(j);
    put_string(j, key, strlen(key));
    put(j, ":", 1);
    j->has_key = true;
}

void heddle_json_strn(struct heddle_json *j, const char *s, size_t n)
{
    if (begin_value(j))
        put_string(j, s, n);
}

void heddle_json_str(struct heddle_json *j, const char *s)
{
    if (s == NULL)
        heddle_json_null(j);
    else
        heddle_json_strn(j, s, strlen(s));
}

static void put_word(struct heddle_json *j, const char *s)
{
    if (begin_value(j))
        put(j, s, strlen(s));
}

void heddle_json_null(struct heddle_json *j)
{
    put_word(j, "null");
}

void heddle_json_bool(struct heddle_json *j, bool v)
{
    put_word(j, v ? "true" : "false");
}

void heddle_json_int(struct heddle_json *j, int64_t v)
{
    char s[24];

    snprintf(s, sizeof(s), "%lld", (long long)v);
    put_word(j, s);
}

void heddle_json_uint(struct heddle_json *j, uint64_t v)
{
    char s[24];

    snprintf(s, sizeof(s), "%llu", (unsigned long long)v);
    put_word(j, s);
}

void heddle_json_double(struct heddle_json *j, double v)
{
    char s[64];
    struct heddle_text t;

    heddle_text_init(&t, s, sizeof(s));
    heddle_text_double(&t, v);
    /* "nan" and "inf" are the only texts that contain an 'n'. */
    put_word(j, strchr(s, 'n') != NULL ? "null" : s);
}

void heddle_json_line(struct heddle_json *j)
{
    if (j->st == HEDDLE_OK && (j->depth != 0 || (j->has_item & 1) == 0))
        fail(j, HEDDLE_ESTATE);
    put(j, "\n", 1);
    j->has_item &= ~UINT64_C(1);
}

heddle_status heddle_json_finish(struct heddle_json *j)
{
    if (j->st == HEDDLE_OK && j->depth != 0)
        fail(j, HEDDLE_ESTATE);
    if (j->st == HEDDLE_OK && j->file != NULL && fflush(j->file) != 0)
        fail(j, HEDDLE_EIO);
    return j->st;
}
