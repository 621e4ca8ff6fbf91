/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests the file format: round trips, names, and texts that are cut, changed
 * at every byte, or made up. */
#include <fcntl.h>
#include <unistd.h>

#include "base/rng.h"
#include "perf/model.h"
#include "test.h"

#define TEXT_BYTES 65536

static struct heddle_model_kernel *new_kernel(const char *name)
{
    struct heddle_model_kernel *k = heddle_model_kernel_create(NULL, NULL, name);

    CHECK(k != NULL);
    return k;
}

static void add(struct heddle_model_kernel *k, const char *variant, uint64_t version,
                uint64_t shape, unsigned nsamples)
{
    const struct heddle_perf_key key = {NULL, variant, "cpu:Some Model @ 2 GHz", version};
    struct heddle_perf_series *s = NULL;
    struct heddle_perf_entry *e = NULL;

    CHECK_OK(heddle_model_series_add(k, &key, &s));
    CHECK_OK(heddle_model_entry_add(s, shape, &e));
    heddle_model_entry_cost(e, (double)shape * 8.0, 4096.0);
    for (unsigned i = 0; i < nsamples; i++)
        heddle_perf_record(e, 1000.25 + (double)shape + (double)i);
}

static bool keep_all(void *user, const struct heddle_perf_series *s)
{
    (void)user;
    (void)s;
    return false;
}

static size_t to_text(const struct heddle_model_kernel *k, char *text)
{
    FILE *f = tmpfile();
    size_t n;

    CHECK(f != NULL);
    CHECK_OK(heddle_model_write(k, fileno(f), keep_all, NULL));
    rewind(f);
    n = fread(text, 1, TEXT_BYTES, f);
    CHECK(n < TEXT_BYTES);
    fclose(f);
    return n;
}

/* Reads a text as a store would. NULL: the header is no good. The text is
 * copied to memory of exactly its size, so that a sanitizer sees every byte
 * read beyond it. */
static struct heddle_model_kernel *from_text(const char *text, size_t n, uint64_t *nignored)
{
    struct heddle_model_kernel *k = NULL;
    struct heddle_model_header h;
    char *copy = malloc(n > 0 ? n : 1);

    CHECK(copy != NULL);
    memcpy(copy, text, n);
    if (heddle_model_read_header(copy, n, &h) == HEDDLE_OK) {
        k = new_kernel(h.kernel);
        CHECK_OK(heddle_model_read(k, copy + h.length, n - h.length, nignored));
    }
    free(copy);
    return k;
}

/* The number of entries of k; each must be in `all`, number for number. */
static size_t check_subset(struct heddle_model_kernel *k, struct heddle_model_kernel *all)
{
    struct heddle_perf_series *s = heddle_load_rlx(&k->series);
    size_t n = 0;

    for (; s != NULL; s = heddle_load_rlx(&s->next)) {
        const struct heddle_perf_key key = {NULL, s->variant, s->device, s->version};
        struct heddle_perf_series *other = heddle_model_series_find(all, &key);
        struct heddle_perf_entry *e = heddle_load_rlx(&s->first);

        CHECK(other != NULL);
        for (; e != NULL; e = heddle_load_rlx(&e->next), n++) {
            struct heddle_perf_entry *o = heddle_model_entry_find(other, e->shape);
            struct heddle_perf_info a, b;

            CHECK(o != NULL);
            heddle_perf_entry_info(e, &a);
            heddle_perf_entry_info(o, &b);
            CHECK_NEAR(a.ns, b.ns, 0.0);
            CHECK_NEAR(a.mad_ns, b.mad_ns, 0.0);
            CHECK_NEAR(a.flops, b.flops, 0.0);
            CHECK_NEAR(a.bytes, b.bytes, 0.0);
            CHECK_EQ(a.count, b.count);
        }
    }
    return n;
}

static struct heddle_model_kernel *sample_kernel(void)
{
    struct heddle_model_kernel *k = new_kernel("tile gemm/f64");

    add(k, "blas", 1, 1, 1);
    add(k, "blas", 1, 2, 40);
    add(k, "blas", 2, 2, 3);
    add(k, "plain", 0xffffffffffffffffu, 0, 2);
    return k;
}

TEST(round_trip)
{
    struct heddle_model_kernel *k = sample_kernel(), *back, *again;
    static char text[TEXT_BYTES], text2[TEXT_BYTES];
    const size_t n = to_text(k, text);
    uint64_t nignored = 9;

    back = from_text(text, n, &nignored);
    CHECK(back != NULL);
    CHECK_EQ(nignored, 0);
    CHECK_STR(back->name, "tile gemm/f64");
    CHECK_EQ(check_subset(back, k), 4);
    CHECK_EQ(check_subset(k, back), 4);
    CHECK_EQ(to_text(back, text2), n);
    CHECK(memcmp(text, text2, n) == 0);
    again = from_text(text2, n, &nignored);
    CHECK_EQ(check_subset(again, k), 4);
    heddle_model_kernel_destroy(again);
    heddle_model_kernel_destroy(back);
    heddle_model_kernel_destroy(k);
}

TEST(any_name)
{
    char name[2] = {0, 0}, file[HEDDLE_MODEL_FILE_MAX];
    char last[HEDDLE_MODEL_FILE_MAX] = "";
    static char text[TEXT_BYTES];
    uint64_t nignored;

    for (int c = 1; c < 256; c++) {
        struct heddle_model_kernel *k, *back;

        name[0] = (char)c;
        heddle_model_file_name(name, file);
        CHECK(file[0] != '.' && strchr(file, '/') == NULL);
        CHECK(strcmp(file, last) != 0);
        memcpy(last, file, sizeof(last));
        k = new_kernel(name);
        add(k, name, 0, 1, 1);
        back = from_text(text, to_text(k, text), &nignored);
        CHECK(back != NULL);
        CHECK_STR(back->name, name);
        CHECK_EQ(check_subset(back, k), 1);
        heddle_model_kernel_destroy(back);
        heddle_model_kernel_destroy(k);
    }
    heddle_model_file_name("..", file);
    CHECK_STR(file, "%2E..model");
    heddle_model_file_name("gemm", file);
    CHECK_STR(file, "gemm.model");
}

TEST(long_names)
{
    char a[HEDDLE_PERF_NAME_MAX + 1], b[HEDDLE_PERF_NAME_MAX + 1];
    char fa[HEDDLE_MODEL_FILE_MAX], fb[HEDDLE_MODEL_FILE_MAX];

    memset(a, '/', HEDDLE_PERF_NAME_MAX);
    a[HEDDLE_PERF_NAME_MAX] = '\0';
    memcpy(b, a, sizeof(b));
    b[HEDDLE_PERF_NAME_MAX - 1] = '+';
    heddle_model_file_name(a, fa);
    heddle_model_file_name(b, fb);
    CHECK(strcmp(fa, fb) != 0);
    CHECK(strlen(fa) < 220);
    CHECK_STR(fa + strlen(fa) - 6, ".model");
}

/* Cut anywhere: whole lines survive, nothing else appears. */
TEST(truncated_at_every_byte)
{
    struct heddle_model_kernel *k = sample_kernel(), *back;
    static char text[TEXT_BYTES];
    const size_t n = to_text(k, text);
    size_t last = 0;

    for (size_t cut = 0; cut <= n; cut++) {
        uint64_t nignored = 0;
        size_t got = 0;

        back = from_text(text, cut, &nignored);
        if (back != NULL) {
            got = check_subset(back, k);
            CHECK(nignored <= 1);
        }
        CHECK(got == last || got == last + 1);
        last = got;
        heddle_model_kernel_destroy(back);
    }
    CHECK_EQ(last, 4);
    heddle_model_kernel_destroy(k);
}

/* One changed byte costs at most the lines it touches. */
TEST(every_byte_changed)
{
    struct heddle_model_kernel *k = sample_kernel(), *back;
    static char text[TEXT_BYTES];
    const size_t n = to_text(k, text);
    struct heddle_rng r;

    heddle_rng_seed(&r, test_seed());
    for (size_t at = 0; at < n; at++) {
        const char old = text[at];

        for (unsigned bit = 0; bit < 10; bit++) {
            uint64_t nignored = 0;

            if (bit < 8)
                text[at] = (char)(old ^ (1 << bit));
            else
                text[at] = bit == 8 ? '\n' : ' ';
            back = from_text(text, n, &nignored);
            if (back != NULL && text[at] != old) {
                CHECK(check_subset(back, k) >= 2);
                CHECK(nignored >= 1);
            }
            heddle_model_kernel_destroy(back);
        }
        text[at] = old;
    }
    heddle_model_kernel_destroy(k);
}

TEST(noise_is_refused)
{
    struct heddle_rng r;
    char text[512];
    uint64_t nignored;

    heddle_rng_seed(&r, test_seed());
    for (size_t i = 0; i < test_scale(5000); i++) {
        const size_t n = heddle_rng_below(&r, sizeof(text));

        for (size_t j = 0; j < n; j++)
            text[j] = (char)(heddle_rng_below(&r, 9) == 0 ? '\n' : (char)heddle_rng_next(&r));
        CHECK(from_text(text, n, &nignored) == NULL);
    }
}

/* --- texts with right sums and wrong content ----------------------------- */

/* Appends a line with its sum. */
static size_t put_line(char *text, size_t n, const char *line)
{
    uint32_t h = 2166136261u;

    for (const char *c = line; *c != '\0'; c++)
        h = (h ^ (unsigned char)*c) * 16777619u;
    return n + (size_t)snprintf(text + n, strlen(line) + 12, "%s #%08x\n", line, h);
}

TEST(wrong_lines_are_ignored)
{
    static const char *const bad[] = {
        "",
        "entry",
        "link a b 1 2 3",
        "entry v d 0000000000000001 0000000000000001 0 0 1",
        "entry v d 0000000000000001 0000000000000001 0 0 1 0",
        "entry v d 0000000000000001 0000000000000001 0 0 1 -5",
        "entry v d 0000000000000001 0000000000000001 0 0 1 1e3",
        "entry v d 0000000000000001 0000000000000001 0 0 1 nan",
        "entry v d 0000000000000001 0000000000000001 0 0 1 1000000000000001000",
        "entry v d 0000000000000001 0000000000000001 0 0 1 "
        "99999999999999999999",
        "entry v d 0000000000000001 0000000000000001 0 0 0 5",
        "entry v d 0000000000000001 0000000000000001 0 0 1 5 6",
        "entry v d 0000000000000001 0000000000000001 0 0 -1 5",
        "entry v d 0000000000000001 0000000000000001 0 0 "
        "18446744073709551615 5",
        "entry v d 0000000000000001 0000000000000001 0 2000000000000000000 1 5",
        "entry v d 0000000000000001 0000000000000001 -1 0 1 5",
        "entry v d 000000000000001 0000000000000001 0 0 1 5",
        "entry v d 000000000000000g 0000000000000001 0 0 1 5",
        "entry v d 0000000000000001 00000000000000001 0 0 1 5",
        "entry  d 0000000000000001 0000000000000001 0 0 1 5",
        "entry v%0 d 0000000000000001 0000000000000001 0 0 1 5",
        "entry v%00 d 0000000000000001 0000000000000001 0 0 1 5",
        "entry v% d 0000000000000001 0000000000000001 0 0 1 5",
        "entry v\t d 0000000000000001 0000000000000001 0 0 1 5",
        "entry v d  0000000000000001 0000000000000001 0 0 1 5",
        "entry v d 0000000000000001 0000000000000001 0 0 1 5 ",
        "entry v d 0000000000000001 0000000000000001 0 0 33 1 2 3 4 5 6 7 8 9 "
        "10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31 32 "
        "33",
        "entry v d 0000000000000001 0000000000000007 0 0 1 5", /* again */
    };
    const size_t nbad = sizeof(bad) / sizeof(bad[0]);
    static char text[TEXT_BYTES];
    size_t n = put_line(text, 0, "heddle-model 1 k");
    struct heddle_model_kernel *k;
    uint64_t nignored = 0;

    n = put_line(text, n, "entry v d 0000000000000001 0000000000000007 9 8 7 6");
    for (size_t i = 0; i < nbad; i++)
        n = put_line(text, n, bad[i]);
    n = put_line(text, n, "entry v d 0000000000000001 0000000000000008 0 0 1 6");
    k = from_text(text, n, &nignored);
    CHECK(k != NULL);
    CHECK_EQ(nignored, nbad);
    CHECK_EQ(k->nseries, 1);
    CHECK_EQ(heddle_load_rlx(&heddle_load_rlx(&k->series)->nentries), 2);
    heddle_model_kernel_destroy(k);
}

TEST(headers)
{
    static const struct {
        const char *line;
        heddle_status st;
    } cases[] = {
        {"heddle-model 1 k", HEDDLE_OK},
        {"heddle-model 2 k", HEDDLE_EVERSION},
        {"heddle-model 4000000000 k what ever", HEDDLE_EVERSION},
        {"heddle-model 99999999999999999999 k", HEDDLE_EFORMAT},
        {"heddle-model 0 k", HEDDLE_EFORMAT},
        {"heddle-model -1 k", HEDDLE_EFORMAT},
        {"heddle-model 1", HEDDLE_EFORMAT},
        {"heddle-model 1 ", HEDDLE_EFORMAT},
        {"heddle-model 1 k k", HEDDLE_EFORMAT},
        {"heddle-model 1 a/b", HEDDLE_EFORMAT},
        {"something 1 k", HEDDLE_EFORMAT},
    };
    struct heddle_model_header h;
    char text[256];

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        CHECK_STATUS(heddle_model_read_header(text, put_line(text, 0, cases[i].line), &h),
                     cases[i].st);
    CHECK_STATUS(heddle_model_read_header("heddle-model 1 k\n", 17, &h), HEDDLE_EFORMAT);
}

/* A file cannot hold more than a process would. */
TEST(too_many_entries)
{
    static char text[(HEDDLE_MODEL_ENTRIES + 10) * 80];
    size_t n = put_line(text, 0, "heddle-model 1 k");
    struct heddle_model_kernel *k;
    uint64_t nignored = 0;
    char line[128];

    for (unsigned i = 0; i < HEDDLE_MODEL_ENTRIES + 5; i++) {
        snprintf(line, sizeof(line), "entry v d %016x %016x 0 0 1 6", 1, i);
        n = put_line(text, n, line);
    }
    k = from_text(text, n, &nignored);
    CHECK(k != NULL);
    CHECK_EQ(nignored, 5);
    heddle_model_kernel_destroy(k);
}

TEST(write_errors)
{
    struct heddle_model_kernel *k = sample_kernel();
    const int full = open("/dev/full", O_WRONLY);

    CHECK_STATUS(heddle_model_write(k, -1, keep_all, NULL), HEDDLE_EIO);
    if (full >= 0) {
        CHECK_STATUS(heddle_model_write(k, full, keep_all, NULL), HEDDLE_EIO);
        close(full);
    }
    heddle_model_kernel_destroy(k);
}

TEST_MAIN(round_trip, any_name, long_names, truncated_at_every_byte, every_byte_changed,
          noise_is_refused, wrong_lines_are_ignored, headers, too_many_entries, write_errors)
