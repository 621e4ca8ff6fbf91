/* SPDX-License-Identifier: BSD-3-Clause */
/* sized: the four sizes a struct can have, for inputs and outputs. */
#include "base/sized.h"

#include <stdint.h>
#include <string.h>

#include "base/assert.h"
#include "tests/test.h"

struct small {
    size_t size;
    int a;
    int b;
};

struct known {
    size_t size;
    int a;
    int b;
    char *why;
    size_t why_bytes;
    double c;
};

struct large {
    struct known k;
    uint64_t more[2];
};

static char why[200];

static heddle_status get(struct known *to, const void *from)
{
    why[0] = '\0';
    return HEDDLE_SIZED_GET(struct known, to, from, why, sizeof(why));
}

TEST(input_none_is_all_zero)
{
    struct known to;

    memset(&to, 0xff, sizeof(to));
    CHECK_OK(get(&to, NULL));
    CHECK_EQ(to.size, sizeof(to));
    CHECK_EQ(to.a, 0);
    CHECK(to.why == NULL && to.c == 0);
}

TEST(input_smaller_has_zeros)
{
    const struct small from = {.size = sizeof(from), .a = 1, .b = 2};
    struct known to;

    memset(&to, 0xff, sizeof(to));
    CHECK_OK(get(&to, &from));
    CHECK_EQ(to.size, sizeof(to));
    CHECK_EQ(to.a, 1);
    CHECK_EQ(to.b, 2);
    CHECK(to.why == NULL && to.why_bytes == 0 && to.c == 0);
}

TEST(input_equal_is_copied)
{
    const struct known from = {.size = sizeof(from), .a = 1, .c = 3};
    struct known to;

    CHECK_OK(get(&to, &from));
    CHECK(memcmp(&to, &from, sizeof(to)) == 0);
}

TEST(input_larger_must_be_zero_beyond)
{
    struct large from = {.k = {.size = sizeof(from), .a = 1, .c = 3}};
    struct known to;

    CHECK_OK(get(&to, &from));
    CHECK_EQ(to.size, sizeof(to));
    CHECK(to.a == 1 && to.c == 3);
    from.more[1] = (uint64_t)1 << 63;
    to.a = 7;
    CHECK_EQ(get(&to, &from), HEDDLE_EINVAL);
    CHECK_EQ(to.a, 7);
    CHECK(strstr(why, "struct known has 56 bytes") != NULL);
    CHECK(strstr(why, "leave these zero") != NULL);
}

TEST(input_sizes_that_no_header_has)
{
    const size_t bad[] = {0, 1, sizeof(size_t) - 1, sizeof(struct known) + 65536, SIZE_MAX};
    struct known from = {0}, to;

    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        from.size = bad[i];
        CHECK_EQ(get(&to, &from), HEDDLE_EINVAL);
        CHECK(strstr(why, "set its field size to sizeof(struct known)") != NULL);
    }
    CHECK_EQ(HEDDLE_SIZED_GET(struct known, &to, &from, NULL, 0), HEDDLE_EINVAL);
}

TEST(options_have_the_sentence_themselves)
{
    struct large from = {.k = {.size = sizeof(from), .why = why, .why_bytes = sizeof(why)}};
    struct known to;

    why[0] = '\0';
    CHECK_OK(HEDDLE_SIZED_GET_OPTS(struct known, &to, &from));
    CHECK_STR(why, "");
    from.more[0] = 1;
    CHECK_EQ(HEDDLE_SIZED_GET_OPTS(struct known, &to, &from), HEDDLE_EINVAL);
    CHECK(strstr(why, "leave these zero") != NULL);
    from.k.size = 0;
    CHECK_EQ(HEDDLE_SIZED_GET_OPTS(struct known, &to, &from), HEDDLE_EINVAL);
    CHECK_STR(why, "struct known has no size: set its field size to sizeof(struct known)");
    why[0] = '\0';
    from.k.size = 4; /* the sentence may be out of the program's struct */
    CHECK_EQ(HEDDLE_SIZED_GET_OPTS(struct known, &to, &from), HEDDLE_EINVAL);
    CHECK_STR(why, "");
    CHECK_OK(HEDDLE_SIZED_GET_OPTS(struct known, &to, NULL));
    CHECK_EQ(to.size, sizeof(to));
}

static heddle_status put(void *out, size_t least)
{
    const struct known from = {.size = sizeof(from), .a = 1, .b = 2, .c = 3};

    why[0] = '\0';
    HEDDLE_TRY(heddle_sized_room("struct known", out, sizeof(from), least, why, sizeof(why)));
    heddle_sized_put(out, &from, sizeof(from));
    return HEDDLE_OK;
}

TEST(output_never_goes_beyond_the_size)
{
    struct large out;

    for (size_t size = sizeof(size_t); size <= sizeof(out); size++) {
        unsigned char *p = (unsigned char *)&out;

        memset(&out, 0xa5, sizeof(out));
        out.k.size = size;
        CHECK_OK(put(&out, sizeof(size_t)));
        CHECK_EQ(out.k.size, size);
        for (size_t i = size; i < sizeof(out); i++)
            CHECK_EQ(p[i], 0xa5);
        for (size_t i = sizeof(struct known); i < size; i++)
            CHECK_EQ(p[i], 0);
        if (size >= offsetof(struct known, why))
            CHECK(out.k.a == 1 && out.k.b == 2);
        if (size >= sizeof(struct known))
            CHECK(out.k.c == 3);
    }
}

TEST(output_sizes_that_no_header_has)
{
    struct known out = {0};

    CHECK_EQ(put(NULL, sizeof(size_t)), HEDDLE_EINVAL);
    CHECK_STR(why, "there is no place for struct known");
    CHECK_EQ(put(&out, sizeof(size_t)), HEDDLE_EINVAL);
    CHECK(strstr(why, "set its field size") != NULL);
    out.size = offsetof(struct known, why);
    CHECK_EQ(put(&out, offsetof(struct known, why_bytes)), HEDDLE_EINVAL);
    CHECK_OK(put(&out, offsetof(struct known, why)));
    out.size = sizeof(out) + 65536;
    CHECK_EQ(put(&out, sizeof(size_t)), HEDDLE_EINVAL);
}

TEST(clear_leaves_the_size)
{
    struct large out;

    memset(&out, 0xa5, sizeof(out));
    out.k.size = sizeof(struct known);
    heddle_sized_clear(&out);
    CHECK_EQ(out.k.size, sizeof(struct known));
    CHECK(out.k.a == 0 && out.k.c == 0);
    CHECK(out.more[0] == UINT64_C(0xa5a5a5a5a5a5a5a5));
    out.k.size = 0;
    heddle_sized_clear(&out); /* never filled: nothing to do */
}

struct fixed {
    size_t size;
    int a;
    uint64_t reserved[2];
};

TEST(reserved_fields_must_be_zero)
{
    struct fixed from = {.size = sizeof(from), .a = 1}, to;

    CHECK_OK(HEDDLE_SIZED_GET_FIXED(struct fixed, &to, &from, why, sizeof(why)));
    CHECK(to.a == 1 && to.reserved[0] == 0 && to.reserved[1] == 0);
    from.reserved[1] = 1;
    CHECK_EQ(HEDDLE_SIZED_GET_FIXED(struct fixed, &to, &from, why, sizeof(why)), HEDDLE_EINVAL);
    CHECK(strstr(why, "struct fixed has 32 bytes, and fields beyond the 16") != NULL);
}

TEST_MAIN(input_none_is_all_zero, input_smaller_has_zeros, input_equal_is_copied,
          input_larger_must_be_zero_beyond, input_sizes_that_no_header_has,
          options_have_the_sentence_themselves, output_never_goes_beyond_the_size,
          output_sizes_that_no_header_has, clear_leaves_the_size, reserved_fields_must_be_zero)
