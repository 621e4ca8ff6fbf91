/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * json: our writer, driven by bytes. Whatever is asked of it in whatever order: what it
 * calls finished is balanced, has no control characters, and is UTF-8.
 */
#include "base/json.h"

#include <string.h>

#include "tests/fuzz/fuzz.h"

/* Bytes of the UTF-8 character at p, 0: it is none. */
static size_t utf8(const unsigned char *p)
{
    const size_t n = p[0] < 0x80   ? 1
                     : p[0] < 0xc2 ? 0
                     : p[0] < 0xe0 ? 2
                     : p[0] < 0xf0 ? 3
                     : p[0] < 0xf5 ? 4
                                   : 0;

    for (size_t i = 1; i < n; i++)
        if ((p[i] & 0xc0) != 0x80)
            return 0;
    return n;
}

static void check(const char *s)
{
    const unsigned char *p = (const unsigned char *)s;
    char open[HEDDLE_JSON_DEPTH + 2];
    size_t depth = 0;
    bool is_string = false;

    for (size_t n; *p != '\0'; p += n) {
        n = utf8(p);
        FUZZ_CHECK(n > 0 && (*p >= ' ' || (*p == '\n' && !is_string)));
        if (*p == '"')
            is_string = !is_string;
        else if (is_string && *p == '\\')
            n = 2;
        else if (!is_string && (*p == '{' || *p == '['))
            open[depth++] = *p == '{' ? '}' : ']';
        else if (!is_string && (*p == '}' || *p == ']'))
            FUZZ_CHECK(depth > 0 && open[--depth] == (char)*p);
        FUZZ_CHECK(depth <= HEDDLE_JSON_DEPTH);
    }
    FUZZ_CHECK(depth == 0 && !is_string);
}

static size_t call(struct heddle_json *j, const uint8_t *p, size_t left)
{
    const size_t n = left - 1 < p[0] / 16u ? left - 1 : p[0] / 16u;
    char text[17] = "";
    double d = 0;

    memcpy(text, p + 1, n);
    memcpy(&d, p + 1, n < sizeof(d) ? n : sizeof(d));
    switch (p[0] % 10) {
    case 0: heddle_json_object(j); break;
    case 1: heddle_json_array(j); break;
    case 2:
    case 3: heddle_json_end(j); break;
    case 4: heddle_json_key(j, text); break;
    case 5: heddle_json_strn(j, text, n); break;
    case 6: heddle_json_int(j, (int64_t)p[0] - (int64_t)n); break;
    case 7: heddle_json_double(j, d); break;
    case 8: heddle_json_key_str(j, "k", text); break;
    default: heddle_json_line(j); break;
    }
    return n + 1;
}

void fuzz_one(const uint8_t *data, size_t bytes)
{
    struct heddle_json j;

    heddle_json_init(&j, NULL);
    for (size_t at = 0; at < bytes;)
        at += call(&j, data + at, bytes - at);
    if (heddle_json_finish(&j) == HEDDLE_OK && j.buf != NULL)
        check(j.buf);
    heddle_json_fini(&j);
}
