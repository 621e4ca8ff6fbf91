/* SPDX-License-Identifier: BSD-3-Clause */
/* text: truncation, numbers for people, parsers, other locales. */
#include "base/text.h"

#include <locale.h>

#include "base/rng.h"
#include "tests/test.h"

static const char *as_double(char buf[64], double v)
{
    struct heddle_text t;

    heddle_text_init(&t, buf, 64);
    heddle_text_double(&t, v);
    return buf;
}

static const char *as_fixed(char buf[64], double v, unsigned decimals)
{
    struct heddle_text t;

    heddle_text_init(&t, buf, 64);
    heddle_text_fixed(&t, v, decimals);
    return buf;
}

static const char *as_unit(char buf[64], void (*fn)(struct heddle_text *, uint64_t), uint64_t v)
{
    struct heddle_text t;

    heddle_text_init(&t, buf, 64);
    fn(&t, v);
    return buf;
}

TEST(builder_appends)
{
    char buf[32];
    struct heddle_text t;

    heddle_text_init(&t, buf, sizeof(buf));
    heddle_text_str(&t, "a");
    heddle_text_add(&t, "%d-%s", 42, "b");
    heddle_text_mem(&t, "cdef", 2);
    CHECK_STR(buf, "a42-bcd");
    CHECK_EQ(t.len, 7);
    CHECK(!t.is_truncated);
    heddle_text_clear(&t);
    CHECK_STR(buf, "");
}

TEST(builder_truncates_at_every_size)
{
    /* 1, 2, 3 and 4 byte characters. */
    static const char text[] = "a\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80z";
    static const size_t cut[] = {0, 1, 1, 3, 3, 3, 6, 6, 6, 6, 10};
    char buf[16];

    for (int use_printf = 0; use_printf < 2; use_printf++) {
        for (size_t cap = 1; cap <= sizeof(text); cap++) {
            struct heddle_text t;

            memset(buf, '#', sizeof(buf));
            heddle_text_init(&t, buf, cap);
            if (use_printf)
                heddle_text_add(&t, "%s", text);
            else
                heddle_text_str(&t, text);
            CHECK_EQ(t.is_truncated, cap < sizeof(text));
            CHECK_EQ(t.len, cap < sizeof(text) ? cut[cap - 1] : 11);
            CHECK_EQ(strlen(buf), t.len);
            CHECK_EQ(buf[cap], '#');
            heddle_text_str(&t, "!"); /* nothing may follow a cut */
            CHECK_EQ(t.len, strlen(buf));
            if (cap < sizeof(text))
                CHECK(strchr(buf, '!') == NULL);
        }
    }
}

TEST(builder_without_memory)
{
    struct heddle_text t;

    heddle_text_init(&t, NULL, 10);
    heddle_text_add(&t, "%s", "");
    CHECK(!t.is_truncated);
    heddle_text_add(&t, "x");
    heddle_text_str(&t, "y");
    CHECK(t.is_truncated);
    CHECK_EQ(t.len, 0);
}

TEST(doubles_read_back)
{
    char b[64];
    struct heddle_rng r;

    CHECK_STR(as_double(b, 0.1), "0.1");
    CHECK_STR(as_double(b, 1.0), "1");
    CHECK_STR(as_double(b, -2.5), "-2.5");
    CHECK_STR(as_double(b, 1e100), "1e+100");
    CHECK_STR(as_double(b, 5e-324), "5e-324");
    CHECK_STR(as_double(b, 1.0 / 3.0), "0.3333333333333333");
    CHECK_STR(as_double(b, 0.1 + 0.2), "0.30000000000000004");
    CHECK_STR(as_double(b, (double)NAN), "nan");
    CHECK_STR(as_double(b, -(double)INFINITY), "-inf");
    heddle_rng_seed(&r, test_seed());
    for (size_t i = 0; i < test_scale(20000); i++) {
        const uint64_t bits = heddle_rng_next(&r);
        double v;

        memcpy(&v, &bits, sizeof(v));
        if (isfinite(v))
            CHECK(strtod(as_double(b, v), NULL) == v);
    }
}

TEST(fixed_rounds)
{
    char b[64];

    CHECK_STR(as_fixed(b, 1.005, 0), "1");
    CHECK_STR(as_fixed(b, 2.5, 0), "3");
    CHECK_STR(as_fixed(b, -2.5, 0), "-3");
    CHECK_STR(as_fixed(b, 3.14159, 2), "3.14");
    CHECK_STR(as_fixed(b, 0.999, 2), "1.00");
    CHECK_STR(as_fixed(b, 0.001, 3), "0.001");
    CHECK_STR(as_fixed(b, -0.0001, 2), "0.00");
    CHECK_STR(as_fixed(b, 1e30, 2), "1e+30");
    CHECK_STR(as_fixed(b, (double)NAN, 2), "nan");
}

TEST(units_for_people)
{
    char b[64];

    CHECK_STR(as_unit(b, heddle_text_bytes, 0), "0 B");
    CHECK_STR(as_unit(b, heddle_text_bytes, 1023), "1023 B");
    CHECK_STR(as_unit(b, heddle_text_bytes, 1024), "1.00 KiB");
    CHECK_STR(as_unit(b, heddle_text_bytes, 1536), "1.50 KiB");
    CHECK_STR(as_unit(b, heddle_text_bytes, (1 << 20) - 1), "1.00 MiB");
    CHECK_STR(as_unit(b, heddle_text_bytes, UINT64_C(25) << 30), "25.0 GiB");
    CHECK_STR(as_unit(b, heddle_text_bytes, UINT64_MAX), "16.0 EiB");
    CHECK_STR(as_unit(b, heddle_text_count, 999), "999");
    CHECK_STR(as_unit(b, heddle_text_count, 12345), "12.3 k");
    CHECK_STR(as_unit(b, heddle_text_count, 999499), "999 k");
    CHECK_STR(as_unit(b, heddle_text_count, 999999), "1.00 M");
    CHECK_STR(as_unit(b, heddle_text_count, UINT64_MAX), "18.4 E");
    CHECK_STR(as_unit(b, heddle_text_ns, 999), "999 ns");
    CHECK_STR(as_unit(b, heddle_text_ns, 1500), "1.50 us");
    CHECK_STR(as_unit(b, heddle_text_ns, 2345678), "2.35 ms");
    CHECK_STR(as_unit(b, heddle_text_ns, UINT64_C(59900000000)), "59.9 s");
    CHECK_STR(as_unit(b, heddle_text_ns, UINT64_C(65000000000)), "1 min 5 s");
    CHECK_STR(as_unit(b, heddle_text_ns, UINT64_C(7380000000000)), "2 h 3 min");
}

TEST(integers_parse)
{
    uint64_t u = 7;
    int64_t i = 7;

    CHECK_OK(heddle_parse_u64("0", &u));
    CHECK_EQ(u, 0);
    CHECK_OK(heddle_parse_u64("18446744073709551615", &u));
    CHECK(u == UINT64_MAX);
    u = 7;
    CHECK_STATUS(heddle_parse_u64("18446744073709551616", &u), HEDDLE_EOVERFLOW);
    CHECK_STATUS(heddle_parse_u64("99999999999999999999999", &u), HEDDLE_EOVERFLOW);
    CHECK_STATUS(heddle_parse_u64(NULL, &u), HEDDLE_EINVAL);
    CHECK_STATUS(heddle_parse_u64("", &u), HEDDLE_EINVAL);
    CHECK_STATUS(heddle_parse_u64(" 1", &u), HEDDLE_EINVAL);
    CHECK_STATUS(heddle_parse_u64("1 ", &u), HEDDLE_EINVAL);
    CHECK_STATUS(heddle_parse_u64("-1", &u), HEDDLE_EINVAL);
    CHECK_STATUS(heddle_parse_u64("+1", &u), HEDDLE_EINVAL);
    CHECK_STATUS(heddle_parse_u64("0x10", &u), HEDDLE_EINVAL);
    CHECK_EQ(u, 7); /* untouched by failures */
    CHECK_OK(heddle_parse_i64("-9223372036854775808", &i));
    CHECK(i == INT64_MIN);
    CHECK_OK(heddle_parse_i64("+9223372036854775807", &i));
    CHECK(i == INT64_MAX);
    CHECK_STATUS(heddle_parse_i64("9223372036854775808", &i), HEDDLE_EOVERFLOW);
    CHECK_STATUS(heddle_parse_i64("-9223372036854775809", &i), HEDDLE_EOVERFLOW);
    CHECK_STATUS(heddle_parse_i64("--1", &i), HEDDLE_EINVAL);
    CHECK_STATUS(heddle_parse_i64("-", &i), HEDDLE_EINVAL);
    CHECK_STATUS(heddle_parse_i64(NULL, &i), HEDDLE_EINVAL);
}

TEST(sizes_parse)
{
    static const struct {
        const char *s;
        uint64_t want;
    } good[] = {
        {"0", 0},
        {"4096", 4096},
        {"512B", 512},
        {"1k", 1024},
        {"512M", UINT64_C(512) << 20},
        {"1.5GiB", UINT64_C(3) << 29},
        {"2tib", UINT64_C(2) << 40},
        {"9GB", UINT64_C(9000000000)},
        {"2tb", UINT64_C(2000000000000)},
        {"1.5kB", 1500},
        {"18EB", UINT64_C(18000000000000000000)},
        {"0.5K", 512},
        {"15E", UINT64_C(15) << 60},
        {"25%", 250},
        {"12.5%", 125},
        {"100%", 1000},
        {"0%", 0},
        {"0.09999999999%", 0},
    };
    static const char *const bad[] = {
        "",   "M",   "12Q",  "1.G", ".5G",  "1G ",    "1GG", "-1",
        "1i", "1Ki", "1KiX", "%",   "101%", "100.1%", "5%%", "1.2.3",
    };
    uint64_t v = 7;

    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        CHECK_OK(heddle_parse_size(good[i].s, 1000, &v));
        CHECK_EQ(v, good[i].want);
    }
    v = 7;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        CHECK_STATUS(heddle_parse_size(bad[i], 1000, &v), HEDDLE_EINVAL);
    CHECK_STATUS(heddle_parse_size(NULL, 1000, &v), HEDDLE_EINVAL);
    CHECK_STATUS(heddle_parse_size("5%", 0, &v), HEDDLE_EINVAL);
    CHECK_STATUS(heddle_parse_size("16E", 0, &v), HEDDLE_EOVERFLOW);
    CHECK_STATUS(heddle_parse_size("19EB", 0, &v), HEDDLE_EOVERFLOW);
    CHECK_STATUS(heddle_parse_size("99999999999999999999", 0, &v), HEDDLE_EOVERFLOW);
    CHECK_EQ(v, 7);
    CHECK_OK(heddle_parse_size("100%", UINT64_MAX, &v));
    CHECK(v == UINT64_MAX);
    CHECK_OK(heddle_parse_size("50%", UINT64_MAX, &v));
    CHECK(v == UINT64_MAX / 2);
}

TEST(durations_and_booleans_parse)
{
    uint64_t v = 7;
    bool b = false;

    CHECK_OK(heddle_parse_ns("0", &v));
    CHECK_EQ(v, 0);
    CHECK_OK(heddle_parse_ns("250ms", &v));
    CHECK_EQ(v, 250000000);
    CHECK_OK(heddle_parse_ns("1.5s", &v));
    CHECK_EQ(v, 1500000000);
    CHECK_OK(heddle_parse_ns("2min", &v));
    CHECK_EQ(v, UINT64_C(120000000000));
    CHECK_STATUS(heddle_parse_ns("5", &v), HEDDLE_EINVAL);
    CHECK_STATUS(heddle_parse_ns("5sec", &v), HEDDLE_EINVAL);
    CHECK_STATUS(heddle_parse_ns(NULL, &v), HEDDLE_EINVAL);
    CHECK_STATUS(heddle_parse_ns("9999999h", &v), HEDDLE_EOVERFLOW);
    CHECK_OK(heddle_parse_bool("on", &b));
    CHECK(b);
    CHECK_OK(heddle_parse_bool("0", &b));
    CHECK(!b);
    CHECK_STATUS(heddle_parse_bool("maybe", &b), HEDDLE_EINVAL);
    CHECK_STATUS(heddle_parse_bool("", &b), HEDDLE_EINVAL);
    CHECK_STATUS(heddle_parse_bool(NULL, &b), HEDDLE_EINVAL);
}

TEST(locale_changes_nothing)
{
    static const char *const name[] = {"de_DE.UTF-8", "fr_FR.UTF-8", "de_DE.utf8", "fr_FR.utf8"};
    char b[64];
    size_t i = 0;

    while (i < 4 && setlocale(LC_ALL, name[i]) == NULL)
        i++;
    if (i == 4)
        SKIP("no locale with a decimal comma is installed");
    snprintf(b, sizeof(b), "%.1f", 1.5);
    CHECK_STR(b, "1,5");
    CHECK_STR(as_double(b, 1.5), "1.5");
    CHECK_STR(as_double(b, 0.1 + 0.2), "0.30000000000000004");
    CHECK_STR(as_fixed(b, 1.5, 1), "1.5");
    setlocale(LC_ALL, "C");
}

TEST_MAIN(builder_appends, builder_truncates_at_every_size, builder_without_memory,
          doubles_read_back, fixed_rounds, units_for_people, integers_parse, sizes_parse,
          durations_and_booleans_parse, locale_changes_nothing)
