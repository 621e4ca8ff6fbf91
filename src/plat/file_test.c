/* SPDX-License-Identifier: BSD-3-Clause */
/* file: what a description says, every error with its line, damaged files, no
 * memory, the public view, and the machines of examples/. */
#include <math.h>

#include "base/faulty_test.h"
#include "base/rng.h"
#include "heddle/machine.h"
#include "plat/plat.h"
#include "plat/tmp_test.h"

static const char full[] =
    "# a comment first\n"
    "heddle-machine 1\n"
    "\n"
    "name box   # behind a line too\n"
    "alias chol potrf\r\n"
    "time potrf cpu 4K 12.5\n"
    "time potrf fast 4096 2\n"
    "time potrf fast 16384 16\n"
    "time gemm cuda 1000 3\n"
    "rate spmv g0 50\n"
    "class cores kind cpu workers 6 model old gflops 10 gbytes 4\n"
    "class g0 kind cuda workers 1 node m0 model fast launch_us 5 gflops 1000\n"
    "class g1 kind cuda workers 2 node m1 model fast launch_us 5 gflops 1000\n"
    "class o kind opencl workers 1 node m1 model slow\n"
    "link host m0 gbytes 12 latency_us 10 bus b\n"
    "link m0 host gbytes 13 latency_us 11 bus b\n"
    "duplex m0 m1 gbytes 40\n"
    "duplex host d gbytes 2 latency_us 100\n"
    "bus b gbytes 20\n"
    "node m0 kind device bytes 2G\n"
    "node m1\n"
    "node d kind disk bytes 1T\n"
    "node host bytes 64GiB\n"
    "overhead submit_us 0.5 task_us 2\n"
    "fault kernel g0 nth 3\n"
    "fault copy m0 nth 2\n"
    "fault alloc m1 nth 1\n"
    "fault lose g1 at_ms 12.5\n"
    "fault slow cores factor 2 at_ms 3\n";

static heddle_status open_text(struct tmp *tmp, const struct heddle_allocator *a, const void *text,
                               size_t n, struct heddle_plat **p, char *why, size_t cap)
{
    tmp_write(tmp, "x.machine", text, n);
    return heddle_plat_open(a, tmp->path, p, why, cap);
}

static void check_classes(const struct heddle_plat *p)
{
    CHECK_EQ(p->ncls, 4);
    CHECK_EQ(p->ntypes, 3);
    CHECK_STR(p->cls[0].name, "cores");
    CHECK_EQ(p->cls[0].nworkers, 6);
    CHECK_EQ(p->cls[0].node, 0);
    CHECK_EQ(p->cls[1].type, 1);
    CHECK_EQ(p->cls[2].type, 1);
    CHECK_EQ(p->cls[3].type, 2); /* another kind: another type */
    CHECK_EQ(p->cls[2].node, 2);
    CHECK_NEAR(p->cls[1].launch_ns, 5000, 0);
    CHECK_EQ(heddle_plat_find_class(p, "g1"), 2);
    CHECK_EQ(heddle_plat_find_class(p, "fast"), -1);
}

static void check_memory(const struct heddle_plat *p)
{
    int l;

    CHECK_EQ(p->nnodes, 4);
    CHECK_STR(p->node[0].name, "host");
    CHECK_EQ(p->node[0].bytes, (uint64_t)64 << 30);
    CHECK_EQ(p->node[1].bytes, (uint64_t)2 << 30);
    CHECK_EQ(p->node[2].bytes, 0);
    CHECK_EQ(p->node[3].kind, HEDDLE_NODE_DISK);
    CHECK_EQ(p->nlinks, 6);
    CHECK_EQ(heddle_plat_find_link(p, 0, 2), -1); /* only over m0 */
    l = heddle_plat_find_link(p, 1, 0);
    CHECK(l >= 0);
    CHECK_NEAR(p->link[l].bytes_per_ns, 13, 0);
    CHECK_NEAR(p->link[l].latency_ns, 11000, 1e-9);
    CHECK_EQ(p->link[l].bus, 0);
    CHECK_NEAR(p->bus[0].bytes_per_ns, 20, 0);
    l = heddle_plat_find_link(p, 2, 1);
    CHECK_EQ(p->link[l].bus, -1);
    CHECK_NEAR(p->link[l].latency_ns, 0, 0);
}

static void check_times(const struct heddle_plat *p)
{
    CHECK_NEAR(heddle_plat_time(p, "potrf", 0, 4096, 0), 12500, 1e-9);
    CHECK_NEAR(heddle_plat_time(p, "potrf", 1, 4096, 0), 7000, 1e-9);
    CHECK_NEAR(heddle_plat_time(p, "potrf", 2, 8192, 0), 5000 + 2000 * sqrt(8), 1e-6);
    CHECK_NEAR(heddle_plat_time(p, "chol", 2, 16384, 0), 21000, 1e-9);
    CHECK_NEAR(heddle_plat_time(p, "gemm", 2, 1000, 0), 8000, 1e-9);
    CHECK(isnan(heddle_plat_time(p, "gemm", 3, 1000, 5)));
    CHECK_NEAR(heddle_plat_time(p, "spmv", 2, 10, 1e6), 25000, 1e-6);
    /* By rates: whichever is slower. */
    CHECK_NEAR(heddle_plat_time(p, "other", 0, 4000, 100), 1000, 1e-9);
    CHECK_NEAR(heddle_plat_time(p, "other", 0, 40, 1000), 100, 1e-9);
    CHECK_NEAR(heddle_plat_time(p, "other", 0, 40, 0), 10, 1e-9);
    CHECK_NEAR(heddle_plat_time(p, "other", 1, 4e9, 1e3), 5001, 1e-9);
    CHECK(isnan(heddle_plat_time(p, "other", 1, 40, 0)));
    CHECK(isnan(heddle_plat_time(p, "other", 0, 0, 0)));
    CHECK(isnan(heddle_plat_time(p, "other", 9, 40, 40)));
    CHECK(isnan(heddle_plat_time(p, "potrf", 0, (double)NAN, 40)));
    CHECK(isnan(heddle_plat_time(p, "potrf", 0, -1, 40)));
}

TEST(says_it_all)
{
    struct heddle_plat *p;
    struct tmp tmp;
    char why[256] = "x";

    tmp_init(&tmp);
    CHECK_OK(open_text(&tmp, NULL, full, strlen(full), &p, why, sizeof(why)));
    CHECK_STR(why, "");
    CHECK_STR(p->name, "box");
    check_classes(p);
    check_memory(p);
    check_times(p);
    CHECK_NEAR(p->submit_ns, 500, 1e-9);
    CHECK_NEAR(p->task_ns, 2000, 1e-9);
    CHECK_EQ(p->nfaults, 5);
    CHECK_EQ(p->fault[0].kind, HEDDLE_FAULT_KERNEL);
    CHECK_EQ(p->fault[0].where, 1);
    CHECK_EQ(p->fault[0].nth, 3);
    CHECK_EQ(p->fault[1].where, 1);
    CHECK_EQ(p->fault[2].where, 2);
    CHECK_NEAR(p->fault[3].at_ns, 12.5e6, 0);
    CHECK_EQ(p->fault[4].where, 0);
    CHECK_NEAR(p->fault[4].factor, 2, 0);
    heddle_plat_destroy(p);
    heddle_plat_destroy(NULL);
    tmp_fini(&tmp);
}

TEST(faults_by_words)
{
    static const char *const bad[] = {"",
                                      "boom",
                                      "kernel",
                                      "kernel g9 nth 1",
                                      "kernel g0",
                                      "kernel g0 nth",
                                      "kernel g0 nth 0",
                                      "kernel g0 nth -1",
                                      "kernel g0 nth 1 nth 2",
                                      "kernel g0 at_ms 3",
                                      "copy g0 nth 1",
                                      "alloc m0 nth x",
                                      "lose g0",
                                      "lose g0 at_ms -1",
                                      "lose g0 at_ms nan",
                                      "slow g0 at_ms 1",
                                      "slow g0 at_ms 1 factor 0",
                                      "slow g0 at_ms 1 factor inf",
                                      "lose g0 at_ms 1 at_ms 2"};
    struct heddle_plat *p;
    struct tmp tmp;
    char why[256];

    tmp_init(&tmp);
    CHECK_OK(open_text(&tmp, NULL, full, strlen(full), &p, NULL, 0));
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        why[0] = '\0';
        CHECK_STATUS(heddle_plat_add_fault(p, bad[i], why, sizeof(why)), HEDDLE_EFORMAT);
        CHECK(strlen(why) > 0);
        CHECK_EQ(p->nfaults, 5);
    }
    for (unsigned i = 5; i < 1024; i++)
        CHECK_OK(heddle_plat_add_fault(p, i % 2 ? "fault copy host nth 7" : "lose g1 at_ms 0", why,
                                       sizeof(why)));
    CHECK_EQ(p->nfaults, 1024);
    CHECK_EQ(p->fault[5].nth, 7);
    CHECK_STATUS(heddle_plat_add_fault(p, "copy host nth 1", why, sizeof(why)), HEDDLE_EFORMAT);
    heddle_plat_destroy(p);
    tmp_fini(&tmp);
}

#define HEAD "heddle-machine 1\n"
#define CPU  "class c kind cpu workers 1\n"

/* Text, the line it is about, and a word of the sentence. */
static const struct {
    const char *text;
    const char *where, *word;
} wrong[] = {
    {"", ": ", "empty"},
    {"# nothing\n\n", ":2: ", "empty"},
    {"machine 1\n", ":1: ", "first line"},
    {"heddle-machine\n", ":1: ", "first line"},
    {HEAD CPU "share k c 8 1\n", ":3: ", "heddle-machine 2"},
    {"heddle-machine 2\n" CPU "share k c 8\n", ":3: ", "share KERNEL"},
    {"heddle-machine 2\n" CPU "share k c 8 1\nshare k c 8 2\n", ":4: ", "the share of k"},
    {"heddle-machine 3\n", ":1: ", "version 3"},
    {"heddle-machine 12\n", ":1: ", "version 12"},
    {HEAD CPU "overhead wake_us 1\n", ":3: ", "wake_us"},
    {"heddle-machine 2\n" CPU "overhead wake_us -1\n", ":3: ", "wake_us -1"},
    {"heddle-machine 2\n" CPU "overhead nap_us 1\n", ":3: ", "nap_us"},
    {HEAD, ": ", "no class"},
    {HEAD "klass c\n", ":2: ", "klass"},
    {HEAD "class\n", ":2: ", "name"},
    {HEAD "class c\n", ":2: ", "kind"},
    {HEAD "class c kind gpu workers 1\n", ":2: ", "gpu"},
    {HEAD "class c kind cpu\n", ":2: ", "workers"},
    {HEAD "class c kind cpu workers 0\n", ":2: ", "workers 0"},
    {HEAD "class c kind cpu workers -1\n", ":2: ", "workers -1"},
    {HEAD "class c kind cpu workers 4097\n", ":2: ", "4096"},
    {HEAD "class c kind cpu workers 99999999999999999999\n", ":2: ", "workers"},
    {HEAD "class c kind cpu workers 4000\nclass d kind cpu workers 97\n", ":3: ", "4096"},
    {HEAD "class c kind cpu workers\n", ":2: ", "no value"},
    {HEAD "class c kind cpu workers 1 workers 2\n", ":2: ", "twice"},
    {HEAD "class c kind cpu workers 1 color red\n", ":2: ", "color"},
    {HEAD "class c kind cuda workers 1\n", ":2: ", "needs a node"},
    {HEAD "class c kind cuda workers 1 node x\n", ":2: ", "no node x"},
    {HEAD "class c kind cpu workers 1 gflops 0\n", ":2: ", "gflops 0"},
    {HEAD "class c kind cpu workers 1 gflops nan\n", ":2: ", "nan"},
    {HEAD "class c kind cpu workers 1 launch_us -1\n", ":2: ", "-1"},
    {HEAD "class cuda kind cpu workers 1\n", ":2: ", "another kind"},
    {HEAD "class c kind cpu workers 1 model cuda\n", ":2: ", "another kind"},
    {HEAD CPU CPU, ":3: ", "already"},
    {HEAD "class c kind cpu workers 1 model m\n"
          "class d kind cpu workers 1 model m gflops 2\n",
     ":3: ", "one model"},
    {HEAD "class ccccccccccccccccccccccccccccccccc kind cpu workers 1\n", ":2: ", "more than 31"},
    {HEAD CPU "node\n", ":3: ", "name"},
    {HEAD CPU "node g\n", ":3: ", "from host to g"},
    {HEAD CPU "node g\nlink host g gbytes 1\n", ":3: ", "from g to host"},
    {HEAD CPU "node g\nlink g host gbytes 1\n", ":3: ", "from host to g"},
    {HEAD CPU "node g\nnode h\nduplex g h gbytes 1\n", ":3: ", "to g"},
    {HEAD CPU "node g\nnode g\n", ":4: ", "already"},
    {HEAD CPU "node host\nnode ram kind host\n", ":4: ", "line 3"},
    {HEAD CPU "node host kind device\n", ":3: ", "already"},
    {HEAD CPU "node g kind tape\n", ":3: ", "tape"},
    {HEAD CPU "node g bytes 1X\n", ":3: ", "1X"},
    {HEAD CPU "node g bytes 99999999999T\n", ":3: ", "no size"},
    {HEAD CPU "node g bytes -1\n", ":3: ", "no size"},
    {HEAD CPU "node ram kind host\nlink host ram gbytes 1\n", ":4: ", "host"},
    {HEAD "class c kind cpu workers 1 node d\nnode d kind disk\n"
          "duplex host d gbytes 1\n",
     ":2: ", "disk"},
    {HEAD CPU "link\n", ":3: ", "two nodes"},
    {HEAD CPU "link host host gbytes 1\n", ":3: ", "itself"},
    {HEAD CPU "link host x gbytes 1\n", ":3: ", "no node x"},
    {HEAD CPU "node g\nlink host g\n", ":4: ", "gbytes"},
    {HEAD CPU "node g\nlink host g gbytes 0\n", ":4: ", "gbytes 0"},
    {HEAD CPU "node g\nlink host g gbytes -2\n", ":4: ", "gbytes -2"},
    {HEAD CPU "node g\nlink host g gbytes nan\n", ":4: ", "nan"},
    {HEAD CPU "node g\nlink host g gbytes inf\n", ":4: ", "inf"},
    {HEAD CPU "node g\nlink host g gbytes 1e999\n", ":4: ", "1e999"},
    {HEAD CPU "node g\nlink host g gbytes 1e-999\n", ":4: ", "above 0"},
    {HEAD CPU "node g\nlink host g gbytes 1 latency_us -1\n", ":4: ", "-1"},
    {HEAD CPU "node g\nlink host g gbytes 1 bus b\n", ":4: ", "no bus b"},
    {HEAD CPU "node g\nduplex host g gbytes 1\nlink g host gbytes 1\n", ":5: ", "already"},
    {HEAD CPU "bus b\n", ":3: ", "gbytes"},
    {HEAD CPU "bus b gbytes 0\n", ":3: ", "gbytes 0"},
    {HEAD CPU "bus b gbytes 1\nbus b gbytes 1\n", ":4: ", "already"},
    {HEAD CPU "time k c 5\n", ":3: ", "time KERNEL"},
    {HEAD CPU "time k x 5 5\n", ":3: ", " x"},
    {HEAD CPU "time k c 5.5.5 5\n", ":3: ", "no size"},
    {HEAD CPU "time k c 5 -5\n", ":3: ", "-5"},
    {HEAD CPU "time k c 5 nan\n", ":3: ", "nan"},
    {HEAD CPU "time k c 1K 5\ntime k c 1024 5\n", ":4: ", "twice"},
    {HEAD "class c kind cpu workers 1 model m\nclass d kind opencl workers 1 "
          "model m node host\ntime k m 1 1\n",
     ":4: ", "two kinds"},
    {HEAD CPU "rate k c\n", ":3: ", "rate KERNEL"},
    {HEAD CPU "rate k c 0\n", ":3: ", "above 0"},
    {HEAD CPU "rate k c 1\nrate k c 1\n", ":4: ", "twice"},
    {HEAD CPU "alias a\n", ":3: ", "alias KERNEL"},
    {HEAD CPU "alias a b\n", ":3: ", "known of b"},
    {HEAD CPU "alias a a\n", ":3: ", "known of a"},
    {HEAD CPU "time a c 1 1\ntime b c 1 1\nalias a b\n", ":5: ", "already"},
    {HEAD CPU "overhead submit_us x\n", ":3: ", "submit_us x"},
    {HEAD CPU "overhead task_us 1\noverhead submit_us 1\n", ":4: ", "line 3"},
    {HEAD CPU "name a b\n", ":3: ", "name NAME"},
    {HEAD CPU "name a\nname b\n", ":4: ", "line 3"},
    {HEAD CPU "fault kernel x nth 1\n", ":3: ", "no class x"},
    {HEAD CPU "fault copy c nth 1\n", ":3: ", "no node c"},
    {HEAD CPU "fault\n", ":3: ", "kernel, copy"},
    {HEAD CPU "name \xc3\xa4\n", ":3: ", "195"},
    {HEAD CPU "name \x01\n", ":3: ", "byte of value 1"},
    {HEAD CPU "a b c d e f g h i j k l m n o p q r s t u v w x y z a b c d e f "
              "g\n",
     ":3: ", "32 words"},
};

TEST(every_error)
{
    struct tmp tmp;
    char why[256], want[600];

    tmp_init(&tmp);
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        struct heddle_plat *p = NULL;

        why[0] = '\0';
        test_check_status(
            open_text(&tmp, NULL, wrong[i].text, strlen(wrong[i].text), &p, why, sizeof(why)),
            HEDDLE_EFORMAT, TEST_AT, wrong[i].text);
        snprintf(want, sizeof(want), "%s%s", tmp.path, wrong[i].where);
        if (strncmp(why, want, strlen(want)) != 0 ||
            strstr(why + strlen(tmp.path), wrong[i].word) == NULL)
            printf("%s  says %s\n  not %s\n", wrong[i].text, why, wrong[i].word);
        CHECK_EQ(strncmp(why, want, strlen(want)), 0);
        CHECK(strstr(why + strlen(tmp.path), wrong[i].word) != NULL);
        CHECK(p == NULL);
    }
    tmp_fini(&tmp);
}

TEST(counts)
{
    struct heddle_plat *p;
    struct tmp tmp;
    char text[64 * 80], why[256];
    size_t n = 0;

    tmp_init(&tmp);
    n += (size_t)snprintf(text, sizeof(text), HEAD CPU);
    for (int i = 1; i < 64; i++)
        n += (size_t)snprintf(text + n, sizeof(text) - n, "node n%d\nduplex host n%d gbytes 1\n", i,
                              i);
    CHECK_OK(open_text(&tmp, NULL, text, n, &p, why, sizeof(why)));
    CHECK_EQ(p->nnodes, 64);
    CHECK_EQ(p->nlinks, 126);
    heddle_plat_destroy(p);
    n += (size_t)snprintf(text + n, sizeof(text) - n, "node last\n");
    CHECK_STATUS(open_text(&tmp, NULL, text, n, &p, why, sizeof(why)), HEDDLE_EFORMAT);
    CHECK(strstr(why, "more than 64 nodes") != NULL);
    tmp_fini(&tmp);
}

TEST(strange_files)
{
    struct heddle_plat *p = NULL;
    struct tmp tmp;
    char why[256], tiny[8];
    char *line;

    tmp_init(&tmp);
    CHECK_STATUS(heddle_plat_open(NULL, tmp.dir, &p, why, sizeof(why)), HEDDLE_EFORMAT);
    CHECK(strstr(why, "folder") != NULL);
    snprintf(tmp.path, sizeof(tmp.path), "%s/none", tmp.dir);
    CHECK_STATUS(heddle_plat_open(NULL, tmp.path, &p, why, sizeof(why)), HEDDLE_ENOENT);
    CHECK(strstr(why, "none") != NULL);
    CHECK_STATUS(heddle_plat_open(NULL, "", &p, why, sizeof(why)), HEDDLE_ENOENT);
    CHECK_STATUS(heddle_plat_open(NULL, "/dev/null", &p, why, sizeof(why)), HEDDLE_EFORMAT);
    /* A sentence that does not fit, and none. */
    CHECK_STATUS(heddle_plat_open(NULL, tmp.path, &p, tiny, sizeof(tiny)), HEDDLE_ENOENT);
    CHECK(strlen(tiny) < sizeof(tiny));
    CHECK_STATUS(heddle_plat_open(NULL, tmp.path, &p, NULL, 0), HEDDLE_ENOENT);
    /* Zero bytes, long lines, no newline at the end. */
    CHECK_STATUS(open_text(&tmp, NULL, HEAD "na\0me x\n", strlen(HEAD) + 8, &p, why, sizeof(why)),
                 HEDDLE_EFORMAT);
    CHECK(strstr(why, ":2: ") != NULL && strstr(why, "zero") != NULL);
    line = malloc(100000);
    CHECK(line != NULL);
    memset(line, 'a', 100000);
    memcpy(line, HEAD "name ", strlen(HEAD) + 5);
    CHECK_STATUS(open_text(&tmp, NULL, line, 100000, &p, why, sizeof(why)), HEDDLE_EFORMAT);
    CHECK(strstr(why, ":2: ") != NULL && strstr(why, "4095") != NULL);
    free(line);
    CHECK_OK(open_text(&tmp, NULL, HEAD "class c kind cpu workers 1",
                       strlen(HEAD "class c kind cpu workers 1"), &p, why, sizeof(why)));
    CHECK_STR(p->name, "x");
    heddle_plat_destroy(p);
    CHECK_EQ(chmod(tmp.path, 0), 0);
    if (access(tmp.path, R_OK) != 0)
        CHECK_STATUS(heddle_plat_open(NULL, tmp.path, &p, why, sizeof(why)), HEDDLE_EIO);
    tmp_fini(&tmp);
}

/* A description that was accepted can be used. */
static void use(const struct heddle_plat *p)
{
    CHECK(p->ncls > 0 && p->nnodes > 0 && p->ntypes > 0);
    for (unsigned i = 0; i < p->ncls; i++) {
        CHECK(p->cls[i].nworkers > 0 && p->cls[i].node < p->nnodes);
        CHECK(p->cls[i].type < p->ntypes);
        CHECK(memchr(p->cls[i].name, 0, sizeof(p->cls[i].name)) != NULL);
        CHECK(!(heddle_plat_time(p, "potrf", i, 5000, 1e6) < 0));
    }
    for (unsigned i = 0; i < p->nlinks; i++) {
        CHECK(p->link[i].from < p->nnodes && p->link[i].to < p->nnodes);
        CHECK(p->link[i].bytes_per_ns > 0 && isfinite(p->link[i].bytes_per_ns));
        CHECK(p->link[i].bus < (int)p->nbuses);
    }
}

static void damaged(struct tmp *tmp, const char *text, size_t n)
{
    struct heddle_plat *p = NULL;
    char why[256] = "";
    const heddle_status st = open_text(tmp, NULL, text, n, &p, why, sizeof(why));

    if (st == HEDDLE_OK) {
        use(p);
        heddle_plat_destroy(p);
        return;
    }
    CHECK_STATUS(st, HEDDLE_EFORMAT);
    CHECK(strncmp(why, tmp->path, strlen(tmp->path)) == 0);
}

TEST(damage)
{
    static const unsigned char with[] = {0, '\n', ' ', '#', '9', '-', 'e', 255};
    const size_t n = strlen(full);
    struct heddle_rng r;
    struct tmp tmp;
    char text[sizeof(full)], noise[4096];

    tmp_init(&tmp);
    for (size_t i = 0; i <= n; i++)
        damaged(&tmp, full, i);
    for (size_t i = 0; i < n; i++) {
        memcpy(text, full, sizeof(full));
        for (size_t k = 0; k < sizeof(with); k++) {
            if (TEST_SANITIZED && (i + k) % 4 != 0)
                continue;
            text[i] = (char)with[k];
            damaged(&tmp, text, n);
        }
        text[i] = (char)(full[i] ^ 1);
        damaged(&tmp, text, n);
    }
    heddle_rng_seed(&r, test_seed());
    for (unsigned round = 0; round < 50; round++) {
        for (size_t i = 0; i < sizeof(noise); i++)
            noise[i] = (char)heddle_rng_next(&r);
        if (round % 2 == 0)
            memcpy(noise, HEAD, strlen(HEAD));
        damaged(&tmp, noise, sizeof(noise));
    }
    tmp_fini(&tmp);
}

TEST(no_memory)
{
    struct faulty f;
    struct tmp tmp;
    char why[256];

    tmp_init(&tmp);
    for (size_t k = 1; k == 1 || f.has_failed; k++) {
        struct heddle_plat *p;
        heddle_status st;

        faulty_init(&f, k);
        st = open_text(&tmp, &f.a, full, strlen(full), &p, why, sizeof(why));
        CHECK_STATUS(st, f.has_failed ? HEDDLE_ENOMEM : HEDDLE_OK);
        CHECK(st == HEDDLE_OK || strstr(why, "memory") != NULL);
        if (st == HEDDLE_OK)
            heddle_plat_destroy(p);
        CHECK_EQ(f.nlive, 0);
    }
    for (size_t k = 1; k < 6; k++) {
        struct heddle_plat *p;

        faulty_init(&f, 0);
        CHECK_OK(open_text(&tmp, &f.a, full, strlen(full), &p, NULL, 0));
        f.fail_at = f.ncalls + k;
        for (unsigned i = 0; i < 10; i++) {
            const heddle_status st = heddle_plat_add_fault(p, "copy m0 nth 1", why, sizeof(why));

            CHECK(st == HEDDLE_OK || st == HEDDLE_ENOMEM);
        }
        heddle_plat_destroy(p);
        CHECK_EQ(f.nlive, 0);
    }
    tmp_fini(&tmp);
}

/* What version 2 has more, as a program sees it, an older one included. */
TEST(overheads)
{
    static const char text[] = "heddle-machine 2\nclass cpu kind cpu workers 2\n"
                               "overhead notice_us 5 drive_us 4 wake_us 3 task_us 2 submit_us 1\n";
    struct heddle_machine_counts n = {.size = sizeof(n)};
    const size_t first = offsetof(struct heddle_machine_counts, wake_ns);
    heddle_machine *m = NULL;
    struct tmp tmp;
    char why[256];

    tmp_init(&tmp);
    tmp_write(&tmp, "x.machine", text, strlen(text));
    CHECK_OK(heddle_machine_open(tmp.path, &m, why, sizeof(why)));
    CHECK_OK(heddle_machine_describe(m, &n));
    CHECK_NEAR(n.submit_ns, 1000, 1e-9);
    CHECK_NEAR(n.task_ns, 2000, 1e-9);
    CHECK_NEAR(n.wake_ns, 3000, 1e-9);
    CHECK_NEAR(n.drive_ns, 4000, 1e-9);
    CHECK_NEAR(n.notice_ns, 5000, 1e-9);
    n = (struct heddle_machine_counts){.size = first, .wake_ns = -1};
    CHECK_OK(heddle_machine_describe(m, &n));
    CHECK_EQ(n.size, first);
    CHECK_NEAR(n.task_ns, 2000, 1e-9);
    CHECK_NEAR(n.wake_ns, -1, 0);
    n.size = 0;
    CHECK_STATUS(heddle_machine_describe(m, &n), HEDDLE_EINVAL);
    heddle_machine_close(m);
    tmp_fini(&tmp);
}

TEST(public_view)
{
    struct heddle_machine_counts n = {.size = sizeof(n)};
    struct heddle_machine_class c = {.size = sizeof(c)};
    struct heddle_machine_node d = {.size = sizeof(d)};
    struct heddle_machine_link l = {.size = sizeof(l)};
    struct {
        struct heddle_machine_node n;
        char more[64];
    } newer;
    heddle_machine *m = NULL;
    struct tmp tmp;
    char why[256];

    tmp_init(&tmp);
    tmp_write(&tmp, "x.machine", full, strlen(full));
    CHECK_STATUS(heddle_machine_open(NULL, &m, why, sizeof(why)), HEDDLE_EINVAL);
    CHECK_STATUS(heddle_machine_open(tmp.path, NULL, NULL, 0), HEDDLE_EINVAL);
    CHECK_STATUS(heddle_machine_open("/none", &m, why, sizeof(why)), HEDDLE_ENOENT);
    CHECK(m == NULL);
    CHECK_OK(heddle_machine_open(tmp.path, &m, why, sizeof(why)));
    CHECK_OK(heddle_machine_describe(m, &n));
    CHECK_EQ(n.size, sizeof(n));
    CHECK_EQ(n.classes, 4);
    CHECK_EQ(n.types, 3);
    CHECK_EQ(n.workers, 10);
    CHECK_EQ(n.nodes, 4);
    CHECK_EQ(n.links, 6);
    CHECK_EQ(n.buses, 1);
    CHECK_EQ(n.faults, 5);
    CHECK_STR(n.name, "box");
    CHECK_OK(heddle_machine_get_class(m, 1, &c));
    CHECK_STR(c.name, "g0");
    CHECK_STR(c.model, "fast");
    CHECK_EQ(c.kind, HEDDLE_DEV_CUDA);
    CHECK_EQ(c.node, 1);
    CHECK_OK(heddle_machine_get_node(m, 3, &d));
    CHECK_EQ(d.kind, HEDDLE_MEMORY_DISK);
    CHECK_EQ(d.bytes, (uint64_t)1 << 40);
    CHECK_OK(heddle_machine_get_link(m, 0, &l));
    CHECK_STR(l.name, "host-m0");
    CHECK_NEAR(l.bus_bytes_per_ns, 20, 0);
    CHECK_STATUS(heddle_machine_get_class(m, 4, &c), HEDDLE_ENOENT);
    CHECK_STATUS(heddle_machine_get_node(m, 4, &d), HEDDLE_ENOENT);
    CHECK_STATUS(heddle_machine_get_link(m, 6, &l), HEDDLE_ENOENT);
    memset(&newer, 0xff, sizeof(newer));
    newer.n.size = sizeof(newer);
    CHECK_OK(heddle_machine_get_node(m, 1, &newer.n));
    CHECK_EQ(newer.n.size, sizeof(newer));
    CHECK_EQ(newer.more[0] | newer.more[63], 0);
    d.size = 4;
    CHECK_STATUS(heddle_machine_get_node(m, 1, &d), HEDDLE_EINVAL);
    CHECK_STATUS(heddle_machine_get_node(m, 1, NULL), HEDDLE_EINVAL);
    CHECK_STATUS(heddle_machine_get_class(NULL, 1, &c), HEDDLE_EINVAL);
    CHECK_NEAR(heddle_machine_time(m, "potrf", 0, 4096, 0), 12500, 1e-9);
    CHECK(isnan(heddle_machine_time(m, NULL, 0, 4096, 0)));
    CHECK(isnan(heddle_machine_time(NULL, "potrf", 0, 4096, 0)));
    heddle_machine_close(m);
    heddle_machine_close(NULL);
    tmp_fini(&tmp);
}

TEST(examples)
{
    static const char *const names[] = {"laptop", "node"};
    char path[1024], rest[64], why[256];

    for (size_t i = 0; i < 2; i++) {
        struct heddle_plat *p;

        snprintf(rest, sizeof(rest), "examples/machines/%s.machine", names[i]);
        if (!tree_path(path, sizeof(path), __FILE__, rest))
            SKIP("the tree is not here");
        CHECK_OK(heddle_plat_open(NULL, path, &p, why, sizeof(why)));
        CHECK_STR(p->name, names[i]);
        use(p);
        for (unsigned c = 0; c < p->ncls; c++)
            CHECK(heddle_plat_time(p, "gemm", c, 11059200, 0) > 0);
        heddle_plat_destroy(p);
    }
}

TEST_MAIN(says_it_all, faults_by_words, every_error, counts, strange_files, damage, no_memory,
          overheads, public_view, examples)
