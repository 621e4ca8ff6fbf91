/* SPDX-License-Identifier: BSD-3-Clause */
/* json: what is written, what is refused, allocation and file failures. */
#include "base/json.h"

#include "base/alloc.h"
#include "tests/test.h"

/* Fails the k-th allocation and counts what is alive. */
struct faulty {
    size_t left;
    long long live;
};

static void *faulty_alloc(void *user, size_t bytes, size_t align)
{
    struct faulty *f = user;

    if (f->left == 0)
        return NULL;
    f->left--;
    f->live += (long long)bytes;
    return heddle_alloc_aligned(NULL, bytes, align);
}

static void faulty_free(void *user, void *ptr, size_t bytes)
{
    struct faulty *f = user;

    f->live -= (long long)bytes;
    heddle_free(NULL, ptr, bytes);
}

TEST(nested_values)
{
    struct heddle_json j;

    heddle_json_init(&j, NULL);
    heddle_json_object(&j);
    heddle_json_key_str(&j, "name", "a \"b\"\n");
    heddle_json_key_int(&j, "min", INT64_MIN);
    heddle_json_key_uint(&j, "max", UINT64_MAX);
    heddle_json_key_double(&j, "x", 0.1);
    heddle_json_key_double(&j, "nan", (double)NAN);
    heddle_json_key_double(&j, "inf", -(double)INFINITY);
    heddle_json_key_bool(&j, "yes", true);
    heddle_json_key_str(&j, "none", NULL);
    heddle_json_key(&j, "list");
    heddle_json_array(&j);
    heddle_json_int(&j, 1);
    heddle_json_array(&j);
    heddle_json_end(&j);
    heddle_json_object(&j);
    heddle_json_end(&j);
    heddle_json_null(&j);
    heddle_json_end(&j);
    heddle_json_end(&j);
    CHECK_OK(heddle_json_finish(&j));
    CHECK_STR(j.buf, "{\"name\":\"a \\\"b\\\"\\n\",\"min\":-9223372036854775808,"
                     "\"max\":18446744073709551615,\"x\":0.1,\"nan\":null,"
                     "\"inf\":null,\"yes\":true,\"none\":null,"
                     "\"list\":[1,[],{},null]}");
    heddle_json_fini(&j);
    heddle_json_fini(&j);
}

static void check_string(const char *in, size_t n, const char *want)
{
    struct heddle_json j;

    heddle_json_init(&j, NULL);
    heddle_json_strn(&j, in, n);
    CHECK_OK(heddle_json_finish(&j));
    CHECK_STR(j.buf, want);
    heddle_json_fini(&j);
}

#define FFFD "\xef\xbf\xbd"

TEST(strings_are_escaped)
{
    check_string("", 0, "\"\"");
    check_string("a\0b", 3, "\"a\\u0000b\"");
    check_string("\x01\x1f\x7f\\/", 5, "\"\\u0001\\u001f\x7f\\\\/\"");
    check_string("\b\f\n\r\t", 5, "\"\\b\\f\\n\\r\\t\"");
}

TEST(invalid_utf8_is_replaced)
{
    check_string("\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80", 9,
                 "\"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\"");
    check_string("\x80x", 2, "\"" FFFD "x\"");
    check_string("\xc0\xaf", 2, "\"" FFFD FFFD "\"");          /* overlong */
    check_string("\xed\xa0\x80", 3, "\"" FFFD FFFD FFFD "\""); /* surrogate */
    check_string("\xe2\x82", 2, "\"" FFFD "\"");               /* cut short */
    check_string("\xe2\x82z", 3, "\"" FFFD "z\"");
    check_string("\xf4\x90\x80\x80", 4, "\"" FFFD FFFD FFFD FFFD "\"");
    check_string("\xff\"", 2, "\"" FFFD "\\\"\"");
}

TEST(lines)
{
    struct heddle_json j;

    heddle_json_init(&j, NULL);
    for (int i = 0; i < 2; i++) {
        heddle_json_array(&j);
        heddle_json_int(&j, i);
        heddle_json_end(&j);
        heddle_json_line(&j);
    }
    CHECK_OK(heddle_json_finish(&j));
    CHECK_STR(j.buf, "[0]\n[1]\n");
    heddle_json_fini(&j);
}

static void two_values(struct heddle_json *j)
{
    heddle_json_int(j, 1);
    heddle_json_int(j, 2);
}

static void value_without_key(struct heddle_json *j)
{
    heddle_json_object(j);
    heddle_json_int(j, 1);
}

static void key_in_array(struct heddle_json *j)
{
    heddle_json_array(j);
    heddle_json_key(j, "k");
}

static void two_keys(struct heddle_json *j)
{
    heddle_json_object(j);
    heddle_json_key(j, "k");
    heddle_json_key(j, "l");
}

static void key_without_value(struct heddle_json *j)
{
    heddle_json_object(j);
    heddle_json_key(j, "k");
    heddle_json_end(j);
}

static void end_at_top(struct heddle_json *j)
{
    heddle_json_end(j);
}

static void line_inside(struct heddle_json *j)
{
    heddle_json_array(j);
    heddle_json_line(j);
}

static void line_of_nothing(struct heddle_json *j)
{
    heddle_json_line(j);
}

static void left_open(struct heddle_json *j)
{
    heddle_json_array(j);
}

TEST(misuse_sticks)
{
    void (*const wrong[])(struct heddle_json *) = {
        two_values, value_without_key, key_in_array,    two_keys,   left_open,
        end_at_top, key_without_value, line_of_nothing, line_inside};

    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        struct heddle_json j;
        size_t len;

        heddle_json_init(&j, NULL);
        wrong[i](&j);
        CHECK_STATUS(heddle_json_finish(&j), HEDDLE_ESTATE);
        len = j.len;
        heddle_json_object(&j);
        heddle_json_key_int(&j, "k", 1);
        heddle_json_end(&j);
        heddle_json_line(&j);
        CHECK_EQ(j.len, len);
        CHECK_STATUS(heddle_json_finish(&j), HEDDLE_ESTATE);
        heddle_json_fini(&j);
    }
}

TEST(depth_is_bounded)
{
    struct heddle_json j;

    heddle_json_init(&j, NULL);
    for (int i = 0; i < HEDDLE_JSON_DEPTH; i++)
        heddle_json_array(&j);
    for (int i = 0; i < HEDDLE_JSON_DEPTH; i++)
        heddle_json_end(&j);
    CHECK_OK(heddle_json_finish(&j));
    CHECK_EQ(j.len, 2 * HEDDLE_JSON_DEPTH);
    heddle_json_line(&j);
    for (int i = 0; i <= HEDDLE_JSON_DEPTH; i++)
        heddle_json_array(&j);
    CHECK_STATUS(heddle_json_finish(&j), HEDDLE_EOVERFLOW);
    heddle_json_fini(&j);
}

TEST(allocation_failures)
{
    bool is_done = false;

    for (size_t k = 0; !is_done; k++) {
        struct faulty f = {.left = k};
        const struct heddle_allocator a = {faulty_alloc, faulty_free, &f};
        struct heddle_json j;

        heddle_json_init(&j, &a);
        heddle_json_array(&j);
        for (int i = 0; i < 1000; i++)
            heddle_json_str(&j, "0123456789");
        heddle_json_end(&j);
        is_done = heddle_json_finish(&j) == HEDDLE_OK;
        if (is_done)
            CHECK_EQ(j.len, 1000 * 13 + 1);
        else
            CHECK_STATUS(heddle_json_finish(&j), HEDDLE_ENOMEM);
        heddle_json_fini(&j);
        CHECK_EQ(f.live, 0);
        CHECK(k < 20);
    }
}

TEST(files)
{
    char buf[64] = "";
    struct heddle_json j;
    FILE *f = tmpfile();

    CHECK(f != NULL);
    heddle_json_init_file(&j, f);
    heddle_json_array(&j);
    heddle_json_bool(&j, false);
    heddle_json_end(&j);
    heddle_json_line(&j);
    CHECK_OK(heddle_json_finish(&j));
    heddle_json_fini(&j);
    rewind(f);
    CHECK_EQ(fread(buf, 1, sizeof(buf) - 1, f), 8);
    CHECK_STR(buf, "[false]\n");
    fclose(f);

    heddle_json_init_file(&j, NULL);
    heddle_json_null(&j);
    CHECK_STATUS(heddle_json_finish(&j), HEDDLE_EINVAL);

    f = fopen("/dev/full", "w");
    if (f == NULL)
        SKIP("no /dev/full");
    heddle_json_init_file(&j, f);
    heddle_json_null(&j);
    CHECK_STATUS(heddle_json_finish(&j), HEDDLE_EIO);
    fclose(f);
}

TEST_MAIN(nested_values, strings_are_escaped, invalid_utf8_is_replaced, lines, misuse_sticks,
          depth_is_bounded, allocation_failures, files)
