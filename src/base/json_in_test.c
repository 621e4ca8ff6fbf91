/* SPDX-License-Identifier: BSD-3-Clause */
/* json_in: items, numbers, strings, every fault, and what the writer wrote read again. */
#include "base/json_in.h"

#include "base/json.h"
#include "base/rng.h"
#include "tests/test.h"

/* One letter per item; "!" for a fault, "." for the end. */
static void kinds(const char *text, size_t len, char *out, size_t cap)
{
    static const char letter[] = ".!{[)ksntf0";
    struct heddle_json_in j;
    struct heddle_json_item item;
    enum heddle_json_kind kind;
    size_t n = 0;

    heddle_json_in_init(&j, text, len);
    do {
        kind = heddle_json_next(&j, &item);
        if (n + 1 < cap)
            out[n++] = letter[kind];
    } while (kind != HEDDLE_JSON_DONE && kind != HEDDLE_JSON_BAD);
    out[n] = '\0';
    /* What was said stays said. */
    CHECK_EQ(heddle_json_next(&j, &item), kind);
    CHECK_EQ(kind == HEDDLE_JSON_BAD, j.what != NULL);
}

TEST(items_in_order)
{
    static const char *const rows[][2] = {
        {"0", "n."},
        {" [ ] ", "[)."},
        {"{}", "{)."},
        {"{\"a\":[1,true,{\"b\":null}],\"c\":\"\"}", "{k[nt{k0))ks)."},
        {"[[],[[]],false]", "[[)[[))f)."},
        {"-0.5e+3", "n."},
        {"\"\\u00e9\\ud83d\\ude00\\n\"", "s."},
    };
    char got[64];

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        kinds(rows[i][0], strlen(rows[i][0]), got, sizeof(got));
        CHECK_STR(got, rows[i][1]);
    }
}

TEST(faults)
{
    static const char *const rows[] = {
        "",
        " ",
        "[",
        "]",
        "{",
        "}",
        "[1,]",
        "[1 2]",
        "[,1]",
        "{\"a\"}",
        "{\"a\":}",
        "{1:2}",
        "{\"a\":1,}",
        "[}",
        "{\"a\":1]",
        "01",
        "1.",
        ".5",
        "+1",
        "1e",
        "-",
        "--1",
        "nul",
        "tru",
        "True",
        "NaN",
        "\"",
        "\"\\x\"",
        "\"\\u12\"",
        "\"\\ud800\"",
        "\"\\udc00\"",
        "\"\\ud800\\u0041\"",
        "\"\n\"",
        "\"\xc0\x80\"",
        "\"\xed\xa0\x80\"",
        "\"\xff\"",
        "\"\xe2\x82\"",
        "1 1",
        "[1]]",
        "{\"a\" 1}",
        "[1:2]",
        "\"\xf4\x90\x80\x80\"",
        "\\",
        "'a'",
    };
    char got[64];

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        kinds(rows[i], strlen(rows[i]), got, sizeof(got));
        if (got[strlen(got) - 1] != '!')
            printf("accepted: %s\n", rows[i]);
        CHECK_EQ(got[strlen(got) - 1], '!');
    }
    /* A zero in the middle is no end. */
    kinds("1\0", 2, got, sizeof(got));
    CHECK_STR(got, "n!");
    kinds("\"a\0b\"", 5, got, sizeof(got));
    CHECK_STR(got, "!");
}

TEST(depth_is_limited)
{
    char text[2 * (HEDDLE_JSON_IN_DEPTH + 1) + 1], got[sizeof(text)];
    const size_t most = HEDDLE_JSON_IN_DEPTH;

    for (size_t n = most; n <= most + 1; n++) {
        memset(text, '[', n);
        memset(text + n, ']', n);
        text[2 * n] = '\0';
        kinds(text, 2 * n, got, sizeof(got));
        CHECK_EQ(got[strlen(got) - 1], n == most ? '.' : '!');
    }
}

static struct heddle_json_item first(const char *text)
{
    struct heddle_json_in j;
    struct heddle_json_item item;

    heddle_json_in_init(&j, text, strlen(text));
    (void)heddle_json_next(&j, &item);
    return item;
}

TEST(strings_without_escapes)
{
    const struct heddle_json_item s = first("\"a\\\"\\u00e9\\ud83d\\ude00\\/\"");
    const struct heddle_json_item zero = first("\"a\\u0000b\"");
    const struct heddle_json_item number = first("12");
    char buf[16];
    size_t len;

    CHECK_OK(heddle_json_get_string(&s, buf, sizeof(buf), &len));
    CHECK_STR(buf, "a\"\xc3\xa9\xf0\x9f\x98\x80/");
    CHECK_EQ(len, 9);
    CHECK_OK(heddle_json_get_string(&s, buf, 10, NULL));
    for (size_t cap = 0; cap < 10; cap++)
        CHECK_STATUS(heddle_json_get_string(&s, buf, cap, NULL), HEDDLE_EOVERFLOW);
    CHECK(heddle_json_is(&s, "a\"\xc3\xa9\xf0\x9f\x98\x80/"));
    CHECK(!heddle_json_is(&s, "a\"") && !heddle_json_is(&s, "a\"\xc3\xa9\xf0\x9f\x98\x80//"));
    CHECK_OK(heddle_json_get_string(&zero, buf, sizeof(buf), &len));
    CHECK_EQ(len, 3);
    CHECK(!heddle_json_is(&zero, "a"));
    CHECK_STATUS(heddle_json_get_string(&number, buf, sizeof(buf), NULL), HEDDLE_EINVAL);
    CHECK(!heddle_json_is(&number, "12"));
}

TEST(numbers)
{
    static const struct {
        const char *text;
        heddle_status st;
        int64_t v;
    } rows[] = {{"0", HEDDLE_OK, 0},
                {"-0", HEDDLE_OK, 0},
                {"9223372036854775807", HEDDLE_OK, INT64_MAX},
                {"-9223372036854775808", HEDDLE_OK, INT64_MIN},
                {"9223372036854775808", HEDDLE_EOVERFLOW, 0},
                {"-9223372036854775809", HEDDLE_EOVERFLOW, 0},
                {"99999999999999999999", HEDDLE_EOVERFLOW, 0},
                {"1e3", HEDDLE_OK, 1000},
                {"2.0", HEDDLE_OK, 2},
                {"1e300", HEDDLE_EOVERFLOW, 0},
                {"0.5", HEDDLE_EINVAL, 0},
                {"\"1\"", HEDDLE_EINVAL, 0}};

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const struct heddle_json_item item = first(rows[i].text);
        int64_t v = 0;
        uint64_t u = 0;

        CHECK_STATUS(heddle_json_get_i64(&item, &v), rows[i].st);
        CHECK_EQ(v, rows[i].v);
        if (rows[i].st == HEDDLE_OK)
            CHECK_STATUS(heddle_json_get_u64(&item, &u), v < 0 ? HEDDLE_EOVERFLOW : HEDDLE_OK);
    }
}

/* A random value: no deeper than `depth`. */
static void write_random(struct heddle_json *j, struct heddle_rng *r, unsigned depth)
{
    const uint64_t kind = heddle_rng_below(r, depth > 0 ? 7 : 5);
    const uint64_t n = heddle_rng_below(r, 4);
    char text[8] = "";

    switch (kind) {
    case 0: heddle_json_int(j, (int64_t)heddle_rng_next(r)); return;
    case 1: heddle_json_double(j, (double)(int64_t)heddle_rng_next(r) * 1e-9); return;
    case 2: heddle_json_bool(j, n & 1); return;
    case 3: heddle_json_null(j); return;
    case 4:
        for (size_t i = 0; i < sizeof(text) - 1; i++)
            text[i] = (char)(1 + heddle_rng_below(r, 255));
        heddle_json_str(j, text);
        return;
    case 5: heddle_json_array(j); break;
    default: heddle_json_object(j); break;
    }
    for (uint64_t i = 0; i < n; i++) {
        if (kind == 6)
            heddle_json_key(j, "k\"\n");
        write_random(j, r, depth - 1);
    }
    heddle_json_end(j);
}

/* What the writer writes is read; cut anywhere before its end, it is a fault or a shorter
 * number; damaged, it is read or refused, and nothing else happens. */
TEST(random_texts)
{
    const size_t rounds = test_scale(2000);
    struct heddle_rng r;

    heddle_rng_seed(&r, test_seed());
    for (size_t round = 0; round < rounds; round++) {
        struct heddle_json out;
        char got[4096];

        heddle_json_init(&out, NULL);
        heddle_json_array(&out);
        write_random(&out, &r, 6);
        heddle_json_end(&out);
        CHECK_OK(heddle_json_finish(&out));
        kinds(out.buf, out.len, got, sizeof(got));
        CHECK_EQ(got[strlen(got) - 1], '.');
        for (int k = 0; k < 4; k++) {
            const size_t at = heddle_rng_below(&r, out.len);
            const char was = out.buf[at];

            out.buf[at] = (char)heddle_rng_next(&r);
            kinds(out.buf, out.len, got, sizeof(got));
            out.buf[at] = '\0';
            kinds(out.buf, at, got, sizeof(got));
            CHECK_EQ(got[strlen(got) - 1], '!');
            out.buf[at] = was;
        }
        heddle_json_fini(&out);
    }
}

TEST(skip_values)
{
    static const char text[] = "{\"a\":[1,{\"b\":2}],\"c\":3}";
    struct heddle_json_in j;
    struct heddle_json_item item;

    heddle_json_in_init(&j, text, sizeof(text) - 1);
    CHECK_EQ(heddle_json_next(&j, &item), HEDDLE_JSON_OBJECT);
    CHECK_EQ(heddle_json_next(&j, &item), HEDDLE_JSON_KEY);
    CHECK_EQ(heddle_json_next(&j, &item), HEDDLE_JSON_ARRAY);
    CHECK(heddle_json_skip(&j, &item));
    CHECK_EQ(heddle_json_next(&j, &item), HEDDLE_JSON_KEY);
    CHECK(heddle_json_is(&item, "c"));
    CHECK_EQ(heddle_json_next(&j, &item), HEDDLE_JSON_NUMBER);
    CHECK(heddle_json_skip(&j, &item));
    CHECK_EQ(heddle_json_next(&j, &item), HEDDLE_JSON_CLOSE);
    CHECK_EQ(heddle_json_next(&j, &item), HEDDLE_JSON_DONE);
    heddle_json_in_init(&j, "[[1,2}", 6);
    CHECK_EQ(heddle_json_next(&j, &item), HEDDLE_JSON_ARRAY);
    CHECK(!heddle_json_skip(&j, &item));
}

TEST_MAIN(items_in_order, faults, depth_is_limited, strings_without_escapes, numbers, random_texts,
          skip_values)
