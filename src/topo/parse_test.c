/* SPDX-License-Identifier: BSD-3-Clause */
/* parse: lists, values, escapes, lines of every length. */
#include "topo/parse.h"

#include "tests/test.h"
#include "topo/tree_test.h"

TEST(lists)
{
    const char *s = "0-3,8,10-11\n";
    int lo = -1, hi = -1;

    CHECK(heddle_topo_list_next(&s, &lo, &hi));
    CHECK(lo == 0 && hi == 3);
    CHECK(heddle_topo_list_next(&s, &lo, &hi));
    CHECK(lo == 8 && hi == 8);
    CHECK(heddle_topo_list_next(&s, &lo, &hi));
    CHECK(lo == 10 && hi == 11);
    CHECK(!heddle_topo_list_next(&s, &lo, &hi));
    CHECK_EQ(heddle_topo_list_count("0-3,8,10-11"), 7);
    CHECK_EQ(heddle_topo_list_first("5,1"), 5);
    CHECK_EQ(heddle_topo_list_first(""), -1);
    CHECK(heddle_topo_list_has("0-3,8", 8));
    CHECK(heddle_topo_list_has("0-3,8", 2));
    CHECK(!heddle_topo_list_has("0-3,8", 4));
}

TEST(malformed_lists_end)
{
    static const char *const bad[] = {"x", "-1", "3-1", "3-", "1;2", "1 2", "99999999999", "0x3"};

    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        CHECK_EQ(heddle_topo_list_count(bad[i]), 0);
    CHECK_EQ(heddle_topo_list_count("1,2,x,4"), 2);
}

TEST(values)
{
    uint64_t v = 7;

    CHECK_STR(heddle_topo_value("model name\t: A B", "model name"), "A B");
    CHECK_STR(heddle_topo_value("MemTotal:  12 kB", "MemTotal"), "12 kB");
    CHECK(heddle_topo_value("cpu family : 6", "cpu") == NULL);
    CHECK(heddle_topo_value("x", "xy") == NULL);
    CHECK(heddle_topo_kib("12 kB", &v));
    CHECK_EQ(v, 12 * 1024);
    CHECK(!heddle_topo_kib("12", &v));
    CHECK(!heddle_topo_kib(" 12 kB", &v));
    CHECK(!heddle_topo_kib("18446744073709551615 kB", &v));
    CHECK(!heddle_topo_kib("123456789012345678901234567890 kB", &v));
    CHECK_EQ(v, 12 * 1024);
}

TEST(escapes)
{
    char a[] = "/a\\040b\\134c", b[] = "\\04", c[] = "\\", d[] = "";

    heddle_topo_unescape(a);
    CHECK_STR(a, "/a b\\c");
    heddle_topo_unescape(b);
    CHECK_STR(b, "\\04");
    heddle_topo_unescape(c);
    CHECK_STR(c, "\\");
    heddle_topo_unescape(d);
    CHECK_STR(d, "");
}

TEST(whole_files)
{
    struct test_tree t;
    char buf[8];

    test_tree_init(&t);
    test_tree_file(&t, "/a/b3/c", "123456");
    CHECK_OK(heddle_topo_read(buf, sizeof(buf), t.root, "/a/b%d/c", 3));
    CHECK_STR(buf, "123456");
    CHECK_STATUS(heddle_topo_read(buf, 7, t.root, "/a/b3/c"), HEDDLE_EOVERFLOW);
    CHECK_STATUS(heddle_topo_read(buf, sizeof(buf), t.root, "/a/none"), HEDDLE_ENOENT);
    CHECK_STATUS(heddle_topo_read(buf, sizeof(buf), t.root, "/a"), HEDDLE_EIO);
    CHECK_STATUS(heddle_topo_read(buf, sizeof(buf), t.root, "/%0600d", 1), HEDDLE_EOVERFLOW);
    test_tree_fini(&t);
}

/* Lines around the buffer's size, with and without a newline at the end. */
TEST(lines_of_every_length)
{
    static struct heddle_topo_lines l;
    static char text[3 * 4096];
    const size_t cap = sizeof(l.buf) - 1;
    struct test_tree t;

    test_tree_init(&t);
    for (size_t len = cap - 3; len < cap + 4; len++) {
        const size_t want = len < cap ? len : cap;
        char *s;

        memset(text, 'x', len);
        text[len] = '\0';
        test_tree_file(&t, "/f", "ab\n\n%s\n%s%s\nend", text, text, text);
        CHECK_OK(heddle_topo_lines_open(&l, t.root, "/f"));
        CHECK_STR(heddle_topo_lines_next(&l), "ab");
        CHECK_STR(heddle_topo_lines_next(&l), "");
        s = heddle_topo_lines_next(&l);
        CHECK(s != NULL);
        CHECK_EQ(strlen(s), want);
        s = heddle_topo_lines_next(&l);
        CHECK(s != NULL);
        CHECK_EQ(strlen(s), cap);
        CHECK_STR(heddle_topo_lines_next(&l), "end");
        CHECK(heddle_topo_lines_next(&l) == NULL);
        CHECK(heddle_topo_lines_next(&l) == NULL);
        heddle_topo_lines_close(&l);
        heddle_topo_lines_close(&l);
    }
    test_tree_fini(&t);
}

TEST(last_line_without_newline)
{
    static struct heddle_topo_lines l;
    struct test_tree t;
    char path[300];
    FILE *f;

    test_tree_init(&t);
    snprintf(path, sizeof(path), "%s/f", t.root);
    f = fopen(path, "w");
    CHECK(f != NULL);
    fputs("a\nb", f);
    fclose(f);
    CHECK_OK(heddle_topo_lines_open(&l, t.root, "/f"));
    CHECK_STR(heddle_topo_lines_next(&l), "a");
    CHECK_STR(heddle_topo_lines_next(&l), "b");
    CHECK(heddle_topo_lines_next(&l) == NULL);
    heddle_topo_lines_close(&l);
    CHECK_STATUS(heddle_topo_lines_open(&l, t.root, "/none"), HEDDLE_ENOENT);
    CHECK(heddle_topo_lines_next(&l) == NULL);
    test_tree_fini(&t);
}

TEST_MAIN(lists, malformed_lists_end, values, escapes, whole_files, lines_of_every_length,
          last_line_without_newline)
