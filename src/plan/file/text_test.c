/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * text: files of every kind, well formed and not; each fault with its line;
 * plans there and back; files cut everywhere and with any byte changed.
 */
#include <math.h>
#include <sys/stat.h>

#include "plan/plan_test.h"

static heddle_status read_text(const char *text, struct why *w, struct heddle_plan_graph **out)
{
    tmp_write(text, strlen(text));
    return heddle_plan_graph_read(tmp_path, why_init(w, NULL), out);
}

/* ---- what is good ---------------------------------------------------------- */

static const char native[] = "heddle-plan-graph 1\n"
                             "# a comment\n"
                             "name small   # another\n"
                             "unit 1e-6\n"
                             "value 0 1KiB\n"
                             "value 1 2KiB host\n"
                             "value 2 100\n"
                             "value 3 28 tape result\n"
                             "value 4 100\n"
                             "op 0 1.5 in=0,1 out=2,3 work=12 name=conv\n"
                             "op 1 2 in=2 out=4 inplace=2 backward once\n"
                             "op 2 0 in=3,4\n"
                             "end\n";

TEST(our_format)
{
    struct heddle_plan_graph *g = NULL;
    struct why w;

    CHECK_OK(read_text(native, &w, &g));
    CHECK_STR(g->name, "small");
    CHECK_NEAR(g->unit_s, 1e-6, 1e-20);
    CHECK_EQ(g->nops, 3);
    CHECK_EQ(g->nvalues, 5);
    CHECK_EQ(g->ninputs, 5);
    CHECK_EQ(g->values[0].bytes, 1024);
    CHECK_EQ(g->values[1].flags, HEDDLE_PLAN_AT_HOST);
    CHECK_EQ(g->values[3].flags, HEDDLE_PLAN_TAPE | HEDDLE_PLAN_RESULT);
    CHECK_EQ(g->values[3].op, 0);
    CHECK_STR(g->ops[0].name, "conv");
    CHECK(g->ops[1].name == NULL);
    CHECK_EQ(g->ops[0].work_bytes, 12);
    CHECK_EQ(g->ops[1].inplace, 2);
    CHECK_EQ(g->ops[1].flags, HEDDLE_PLAN_BACKWARD | HEDDLE_PLAN_ONCE);
    CHECK_EQ(g->ops[2].nvalues, 0);
    heddle_plan_graph_destroy(g);
}

TEST(other_formats)
{
    struct heddle_plan_graph *g = NULL;
    struct why w;

    CHECK_OK(read_text("dag 3 2 my$name\nn 0 5 100 0 a\nn 1 0 0 0 #b\n"
                       "n 2 7 9223372 1 c$1\ne 0 2\ne 1 2\n",
                       &w, &g));
    CHECK_STR(g->name, "my$name");
    CHECK_STR(g->ops[1].name, "#b");
    CHECK_EQ(g->ops[2].ninputs, 2);
    CHECK_EQ(g->ops[2].flags, HEDDLE_PLAN_BACKWARD);
    CHECK_EQ(heddle_plan_peak(g), 9223472);
    heddle_plan_graph_destroy(g);
    CHECK_OK(read_text("2\n0 10 20.0\n11 2e1\n1 2\n3 4.5\n", &w, &g));
    CHECK(g->chain != NULL);
    CHECK_EQ(g->chain->x[2], 20);
    CHECK_EQ(g->chain->t[1], 11);
    CHECK_NEAR(g->chain->backward[1], 4.5, 0);
    heddle_plan_graph_destroy(g);
    CHECK_OK(read_text("1\n0 1\n1\n1\n1\n3\n4\n", &w, &g));
    CHECK_EQ(g->chain->work_b[0], 4);
    heddle_plan_graph_destroy(g);
    CHECK_OK(read_text("heddle-plan-graph 1\nname c\nchain 4\n"
                       "layer 0 x=5 tape=6 forward=1 backward=2 work_b=3\n"
                       "end\n",
                       &w, &g));
    CHECK_EQ(g->chain->x[0], 4);
    CHECK_EQ(g->chain->work_b[0], 3);
    heddle_plan_graph_destroy(g);
}

/* ---- what is not ----------------------------------------------------------- */

#define HEAD "heddle-plan-graph 1\n"

static const struct {
    const char *text, *where, *word;
} corpus[] = {
    {"", ": ", "empty"},
    {"\n\n  \n", ":3:", "empty"},
    {"hello\n", ":1:", "heddle-plan-graph 1"},
    {"heddle-plan-graph\n", ":1:", "version is missing"},
    {"heddle-plan-graph 2\n", ":1:", "version 2"},
    {"heddle-plan-graph 1 2\n", ":1:", "too many"},
    {"heddle-plan 1\n", ":1:", "a plan"},
    {"\x7f"
     "ELF\n",
     ":1:", "not text"},
    {HEAD, ":1:", "before the line 'end'"},
    {HEAD "end\n", ":2:", "no operation"},
    {HEAD "value 0 1\nop 0 1 out=0\n", ":3:", "before the line 'end'"},
    {HEAD "value 0 1\nop 0 1 out=0\nend\nmore\n", ":5:", "behind"},
    {HEAD "value 1 1\n", ":2:", "here comes 0"},
    {HEAD "value 0 -1\n", ":2:", "not a size"},
    {HEAD "value 0 1x\n", ":2:", "not a size"},
    {HEAD "value 0 99999999999999999999\n", ":2:", "too large"},
    {HEAD "value 0 16EiB\n", ":2:", "too large"},
    {HEAD "value 0\n", ":2:", "missing"},
    {HEAD "value 0 1 big\n", ":2:", "'big' is not known"},
    {HEAD "value 0 1 host\nop 0 1 out=0\nend\n", ":2:", "host"},
    {HEAD "value 0 4EiB\nop 0 1 out=0\nend\n", ":2:", "2^62"},
    {HEAD "op 0 -1\nend\n", ":2:", "negative"},
    {HEAD "op 0 nan\nend\n", ":2:", "finite"},
    {HEAD "op 0 inf\nend\n", ":2:", "finite"},
    {HEAD "op 0 1e999\nend\n", ":2:", "finite"},
    {HEAD "op 0 1e308\nop 1 1e308\nend\n", ":3:", "too large to add"},
    {HEAD "op 0 1 out=0\nend\n", ":2:", "before the operation"},
    {HEAD "value 0 1\nop 0 1 in=0 out=0\nend\n", ":3:", "itself"},
    {HEAD "value 0 1\nvalue 1 1\nop 0 1 in=1 out=0\nop 1 1 in=0 out=1\nend\n", ":4:", "a cycle"},
    {HEAD "value 0 1\nop 0 1 out=0\nop 1 1 out=0\nend\n", ":4:", "made twice"},
    {HEAD "value 0 1\nvalue 1 1\nvalue 2 1\nop 0 1 out=0,2\nend\n", ":5:", "follow"},
    {HEAD "value 0 1\nop 0 1 in=0,0\nend\n", ":3:", "twice"},
    {HEAD "value 0 1\nop 0 1 in=0,,1\nend\n", ":3:", "not a number"},
    {HEAD "value 0 1\nop 0 1 in=\nend\n", ":3:", "not a number"},
    {HEAD "op 0 1 in=7\nend\n", ":2:", "does not exist"},
    {HEAD "op 0 1 inplace=7\nend\n", ":2:", "memory"},
    {HEAD "op 0 1 fast\nend\n", ":2:", "'fast' is not known"},
    {HEAD "op 0 1 speed=3\nend\n", ":2:", "'speed' is not known"},
    {HEAD "op 0 1 work=4EiB\nend\n", ":2:", "workspace"},
    {HEAD "name\n", ":2:", "name is missing"},
    {HEAD "unit -1\n", ":2:", "negative"},
    {HEAD "nonsense\n", ":2:", "cannot begin"},
    {HEAD "chain 1\nend\n", ":3:", "layers"},
    {HEAD "chain 1\nlayer 0 x=1\nend\n", ":3:", "needs"},
    {HEAD "chain 1\nlayer 0 x=2 tape=1 forward=1 backward=1\nend\n", ":3:", "smaller"},
    {HEAD "chain 1\nlayer 0 x=2 tape=2 forward=-1 backward=1\nend\n", ":3:", "negative"},
    {HEAD "chain 1\nlayer 0 x\nend\n", ":3:", "missing"},
    {HEAD "op 0 1\nchain 1\nend\n", ":3:", "whole graph"},
    {HEAD "chain 1\nop 0 1\nend\n", ":3:", "cannot begin"},
    {"dag\n", ":1:", "missing"},
    {"dag 0 0 x\n", ":1:", "no node"},
    {"dag 4000000000 4000000000 x\nn 0 1 1 0 a\n", ":2:", "ends after 1"},
    {"dag 99999999999 1 x\n", ":1:", "at most"},
    {"dag 1 0 x\nn 1 1 1 0 a\n", ":2:", "where 0 should"},
    {"dag 1 0 x\nn 0 -5 1 0 a\n", ":2:", "negative"},
    {"dag 1 0 x\nn 0 5 9999999999999999999999 0 a\n", ":2:", "too large"},
    {"dag 1 0 x\nn 0 5 1 2 a\n", ":2:", "at most"},
    {"dag 1 0 x\nn 0 5 1 0 a b\n", ":2:", "too many"},
    {"dag 2 0 x\nn 0 5 4611686018427387000 0 a\nn 1 5 4611686018427387000 0 "
     "b\n",
     ":3:", "2^62"},
    {"dag 2 1 x\nn 0 1 1 0 a\nn 1 1 1 0 b\ne 1 0\n", ":4:", "a cycle"},
    {"dag 2 1 x\nn 0 1 1 0 a\nn 1 1 1 0 b\ne 0 0\n", ":4:", "a cycle"},
    {"dag 2 1 x\nn 0 1 1 0 a\nn 1 1 1 0 b\ne 0 2\n", ":4:", "at most"},
    {"dag 2 2 x\nn 0 1 1 0 a\nn 1 1 1 0 b\ne 0 1\n", ":4:", "1 of 2 edges"},
    {"dag 2 2 x\nn 0 1 1 0 a\nn 1 1 1 0 b\ne 0 1\ne 0 1\n", ":5:", "twice"},
    {"dag 2 0 x\nn 0 1 1 0 a\nn 1 1 1 0 b\ne 0 1\n", ":4:", "behind"},
    {"dag 2 1 x\nn 0 1 1 0 a\ne 0 1\n", ":3:", "begin with 'n'"},
    {"0\n", ":1:", "no layer"},
    {"2\n1 2\n", ":2:", "2 activation sizes instead of 3"},
    {"1\n1 2 3\n", ":2:", "more than 2"},
    {"1\n1 2\n2\n1\n", ":4:", "before the backward times"},
    {"1\n1 2\n1\n1\n1\n", ":3:", "smaller"},
    {"1\n1 2.5\n3\n1\n1\n", ":2:", "whole number"},
    {"1\n1 -2\n3\n1\n1\n", ":2:", "negative"},
    {"1\n1 2\n3\nx\n1\n", ":4:", "number"},
    {"1\n1 2\n3\n1\n-1\n", ":5:", "negative"},
    {"1\n1 2\n3\n1\n1\n1\n", ":6:", "backward workspaces"},
    {"1\n1 2\n3\n1\n1\n1\n1\n1\n", ":8:", "seven"},
    {"1\n1 4e18\n4e18\n1\n1\n", "", "2^62"},
    {"99999999\n", ":1:", "at most"},
};

TEST(each_fault_has_its_line)
{
    for (size_t i = 0; i < sizeof(corpus) / sizeof(corpus[0]); i++) {
        struct heddle_plan_graph *g = NULL;
        struct why w;

        CHECK_STATUS(read_text(corpus[i].text, &w, &g), HEDDLE_EFORMAT);
        if (strstr(w.text, corpus[i].where) == NULL || strstr(w.text, corpus[i].word) == NULL)
            fprintf(stderr, "%zu: '%s' or '%s' is not in: %s\n", i, corpus[i].where, corpus[i].word,
                    w.text);
        CHECK(strstr(w.text, corpus[i].where) != NULL);
        CHECK(strstr(w.text, corpus[i].word) != NULL);
        CHECK(strncmp(w.text, tmp_path, strlen(tmp_path)) == 0);
        CHECK(g == NULL);
    }
}

TEST(files_that_are_none)
{
    struct heddle_plan_graph *g = NULL;
    struct why w;

    CHECK_STATUS(heddle_plan_graph_read("/nowhere/x", why_init(&w, NULL), &g), HEDDLE_ENOENT);
    CHECK(strstr(w.text, "/nowhere/x") != NULL);
    CHECK_STATUS(heddle_plan_graph_read("/tmp", &w.o, &g), HEDDLE_EFORMAT);
    CHECK_STATUS(heddle_plan_graph_read(NULL, &w.o, &g), HEDDLE_EINVAL);
}

/* Any prefix, and any byte changed: a graph or a sentence, never worse. */
static void damage(const char *text, struct heddle_rng *r)
{
    const size_t n = strlen(text);
    char buf[4096];
    struct why w;

    CHECK(n < sizeof(buf));
    for (size_t cut = 0; cut < n; cut++) {
        struct heddle_plan_graph *g = NULL;

        tmp_write(text, cut);
        if (heddle_plan_graph_read(tmp_path, why_init(&w, NULL), &g) != HEDDLE_OK)
            CHECK(w.text[0] != '\0');
        heddle_plan_graph_destroy(g);
    }
    for (unsigned i = 0; i < test_scale(2000); i++) {
        struct heddle_plan_graph *g = NULL;

        memcpy(buf, text, n);
        for (unsigned k = 1 + heddle_rng_below32(r, 3); k > 0; k--)
            buf[heddle_rng_below(r, n)] = heddle_rng_below32(r, 2) == 0
                                              ? (char)heddle_rng_below32(r, 256)
                                              : "0123456789 \n-=,.e#"[heddle_rng_below32(r, 18)];
        tmp_write(buf, n);
        if (heddle_plan_graph_read(tmp_path, why_init(&w, NULL), &g) != HEDDLE_OK)
            CHECK(w.text[0] != '\0');
        heddle_plan_graph_destroy(g);
    }
}

TEST(damaged_files)
{
    struct heddle_rng r;

    heddle_rng_seed(&r, test_seed());
    damage(native, &r);
    damage("dag 3 2 x\nn 0 5 100 0 a\nn 1 0 0 0 b\nn 2 7 92 1 c\ne 0 2\n"
           "e 1 2\n",
           &r);
    damage("2\n0 10 20\n11 21\n1 2\n3 4.5\n", &r);
}

/* ---- machines ------------------------------------------------------------ */

TEST(machines)
{
    static const struct {
        const char *text, *where, *word;
    } bad[] = {{"", ": ", "empty"},
               {"heddle-plan-graph 1\n", ":1:", "heddle-plan-machine"},
               {"heddle-plan-machine 1\nbudget\n", ":2:", "missing"},
               {"heddle-plan-machine 1\nbudget 1 2\n", ":2:", "too many"},
               {"heddle-plan-machine 1\nspeed 3\n", ":2:", "cannot begin"},
               {"heddle-plan-machine 1\nhost in=1\n", ":2:", "needs"},
               {"heddle-plan-machine 1\nhost out=-1 in=1\n", ":2:", "rate"},
               {"heddle-plan-machine 1\nhost out=1 in=x\n", ":2:", "rate"},
               {"heddle-plan-machine 1\nhost out=1 in\n", ":2:", "missing"},
               {"heddle-plan-machine 1\nhost out=1 in=1 x=1\n", ":2:", "'x'"},
               {"heddle-plan-machine 1\nalign 2GiB\n", ":2:", "1 GiB"},
               {"heddle-plan-machine 1\ndevices 99999\n", ":2:", "at most"}};
    struct heddle_plan_machine m = {.size = sizeof(m)};
    struct why w;
    const char good[] = "heddle-plan-machine 1\nbudget 16GiB\nalign 256\n"
                        "host out=12GB/s in=10GiB/s bytes=1TiB\n"
                        "disk out=3 in=4.5K\ndevices 4\nlink 1MB/s\n";

    tmp_write(good, strlen(good));
    CHECK_OK(heddle_plan_machine_read(tmp_path, 1e-3, why_init(&w, NULL), &m));
    CHECK_EQ(m.budget, (uint64_t)16 << 30);
    CHECK_EQ(m.align, 256);
    CHECK_NEAR(m.host.out_rate, 12e6, 1e-3);
    CHECK_NEAR(m.host.in_rate, 10 * 1073741.824, 1e-3);
    CHECK_EQ(m.host.bytes, (uint64_t)1 << 40);
    CHECK_NEAR(m.disk.out_rate, 3, 0);
    CHECK_NEAR(m.disk.in_rate, 4500, 1e-9);
    CHECK_EQ(m.ndevices, 4);
    CHECK_NEAR(m.link_rate, 1000, 1e-9);
    CHECK_STATUS(heddle_plan_machine_read(tmp_path, 0, &w.o, &m), HEDDLE_EFORMAT);
    CHECK(strstr(w.text, "per second") != NULL);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        tmp_write(bad[i].text, strlen(bad[i].text));
        CHECK_STATUS(heddle_plan_machine_read(tmp_path, 1, why_init(&w, NULL), &m), HEDDLE_EFORMAT);
        if (strstr(w.text, bad[i].word) == NULL)
            fprintf(stderr, "'%s' is not in: %s\n", bad[i].word, w.text);
        CHECK(strstr(w.text, bad[i].where) != NULL);
        CHECK(strstr(w.text, bad[i].word) != NULL);
    }
}

/* ---- plans --------------------------------------------------------------- */

struct made {
    struct heddle_plan_graph *g;
    struct heddle_plan *p;
    struct rig rig;
};

static void make_plan(struct made *x, struct heddle_rng *r, struct why *w)
{
    const struct heddle_plan_claim claim = {.solver = "a solver", .bound_note = "a # note"};
    struct heddle_plan_draft d;

    x->p = NULL;
    x->g = random_graph(r, 1 + heddle_rng_below32(r, 12), 0, &w->o);
    rig_init(&x->rig, x->g, &w->o);
    heddle_plan_draft_init(&d, NULL);
    random_program(x->g, r, &d);
    CHECK_OK(heddle_plan_finish(&x->rig.job, &d, &claim, NULL, &x->p));
    heddle_plan_draft_fini(&d);
}

static void drop_plan(struct made *x)
{
    heddle_plan_destroy(x->p);
    heddle_plan_graph_destroy(x->g);
}

TEST(plans_come_back_as_they_were)
{
    struct heddle_rng r;
    struct why w;

    heddle_rng_seed(&r, test_seed());
    for (unsigned k = 0; k < test_scale(300); k++) {
        struct heddle_plan_graph *g = NULL;
        struct heddle_plan *p = NULL;
        struct heddle_plan_machine m = {.size = sizeof(m)};
        struct made x;

        why_init(&w, NULL);
        make_plan(&x, &r, &w);
        tmp_write("", 0);
        CHECK_OK(heddle_plan_write(x.g, &x.rig.m, x.p, tmp_path, &w.o));
        CHECK_OK(heddle_plan_read(tmp_path, &w.o, &g, &m, &p));
        CHECK_STR(p->solver, "a_solver");
        CHECK_STR(p->bound_note, "a _ note");
        CHECK_EQ(p->nsteps, x.p->nsteps);
        for (uint32_t i = 0; i < p->nsteps; i++) {
            CHECK_EQ(p->steps[i].kind, x.p->steps[i].kind);
            CHECK_EQ(p->steps[i].level, x.p->steps[i].level);
            CHECK_EQ(p->steps[i].what, x.p->steps[i].what);
            CHECK_EQ(p->steps[i].in_place, x.p->steps[i].in_place);
            CHECK_EQ(p->steps[i].outputs, x.p->steps[i].outputs);
        }
        CHECK_EQ(p->nplaces, x.p->nplaces);
        CHECK_EQ(p->arena_bytes, x.p->arena_bytes);
        CHECK_OK(heddle_plan_check(g, &m, p, &w.o, NULL));
        heddle_plan_destroy(p);
        heddle_plan_graph_destroy(g);
        drop_plan(&x);
    }
}

static size_t file_text(char *buf, size_t cap)
{
    FILE *f = fopen(tmp_path, "rb");
    size_t n;

    CHECK(f != NULL);
    n = fread(buf, 1, cap - 1, f);
    CHECK_EQ(fclose(f), 0);
    buf[n] = '\0';
    return n;
}

TEST(damaged_plans)
{
    static char text[1 << 16], buf[1 << 16];
    struct heddle_rng r;
    struct made x;
    struct why w;
    size_t n;

    heddle_rng_seed(&r, test_seed() + 3);
    why_init(&w, NULL);
    make_plan(&x, &r, &w);
    tmp_write("", 0);
    CHECK_OK(heddle_plan_write(x.g, &x.rig.m, x.p, tmp_path, &w.o));
    n = file_text(text, sizeof(text));
    CHECK(n + 1 < sizeof(text));
    for (size_t i = 0; i < n + test_scale(3000); i++) {
        struct heddle_plan_graph *g = NULL;
        struct heddle_plan *p = NULL;
        struct heddle_plan_machine m = {.size = sizeof(m)};
        heddle_status st;

        memcpy(buf, text, n);
        if (i >= n) /* a byte changed; otherwise cut */
            buf[heddle_rng_below(&r, n)] = "0123456789 \n-=,.e@cdopf"[heddle_rng_below32(&r, 23)];
        tmp_write(buf, i < n ? i : n);
        st = heddle_plan_read(tmp_path, why_init(&w, NULL), &g, &m, &p);
        /* without its last newline it is still whole */
        CHECK(i >= n - 1 || st == HEDDLE_EFORMAT);
        if (st == HEDDLE_OK)
            (void)!heddle_plan_check(g, &m, p, &w.o, NULL);
        else
            CHECK(w.text[0] != '\0');
        heddle_plan_destroy(p);
        heddle_plan_graph_destroy(g);
    }
    CHECK_STATUS(heddle_plan_write(x.g, &x.rig.m, x.p, "/nowhere/x", &w.o), HEDDLE_EIO);
    drop_plan(&x);
}

TEST(no_memory)
{
    static const char *const text[] = {native, "dag 2 1 x\nn 0 5 100 0 a\nn 1 0 0 0 b\ne 0 1\n",
                                       "1\n0 10\n11\n1\n3\n",
                                       "heddle-plan-graph 1\nchain 4\nlayer 0 x=5 tape=6 forward=1 "
                                       "backward=2\nend\n"};
    struct heddle_rng r;
    struct faulty f;
    struct made x;
    struct why w;

    for (size_t i = 0; i < 4; i++) {
        tmp_write(text[i], strlen(text[i]));
        for (size_t k = 1; k == 1 || f.has_failed; k++) {
            struct heddle_plan_graph *g = NULL;
            heddle_status st;

            faulty_init(&f, k);
            st = heddle_plan_graph_read(tmp_path, why_init(&w, &f.a), &g);
            CHECK_EQ(st, f.has_failed ? HEDDLE_ENOMEM : HEDDLE_OK);
            CHECK(st == HEDDLE_OK || w.text[0] != '\0');
            heddle_plan_graph_destroy(g);
            CHECK_EQ(f.nlive, 0);
        }
    }
    heddle_rng_seed(&r, 3);
    why_init(&w, NULL);
    make_plan(&x, &r, &w);
    tmp_write("", 0);
    CHECK_OK(heddle_plan_write(x.g, &x.rig.m, x.p, tmp_path, &w.o));
    drop_plan(&x);
    for (size_t k = 1; k == 1 || f.has_failed; k++) {
        struct heddle_plan_graph *g = NULL;
        struct heddle_plan *p = NULL;
        struct heddle_plan_machine m = {.size = sizeof(m)};
        heddle_status st;

        faulty_init(&f, k);
        st = heddle_plan_read(tmp_path, why_init(&w, &f.a), &g, &m, &p);
        CHECK_EQ(st, f.has_failed ? HEDDLE_ENOMEM : HEDDLE_OK);
        heddle_plan_destroy(p);
        heddle_plan_graph_destroy(g);
        CHECK_EQ(f.nlive, 0);
    }
}

/* ---- the published instances ------------------------------------------------ */

static bool shared_path(char *out, size_t cap, const char *name)
{
    const char *env = getenv("HEDDLE_SHARED");
    const char *src = strstr(__FILE__, "src/plan/");

    if (env != NULL)
        snprintf(out, cap, "%s/data/planner/%s", env, name);
    else
        snprintf(out, cap, "%.*s../shared/data/planner/%s", src != NULL ? (int)(src - __FILE__) : 0,
                 __FILE__, name);
    return access(out, R_OK) == 0;
}

TEST(published_instances)
{
    static const struct {
        const char *name;
        uint32_t nops;
        uint64_t peak;
        double floor;
    } all[] = {
        {"moccasin/ResNet50_256_224x224x3_train_nx.dag", 353, 38059356160, 0.097},
        {"moccasin/MobileNet_512_224x224x3_train_nx.dag", 185, 34701056000, 0.191},
        {"moccasin/fcn_8_vgg_32_416x608x3_train_nx.dag", 73, 13484795520, 0.615},
        {"moccasin/random_layered_n1000_w0.31_nlv0.75_ed0.2_scd0.14.dag", 1000, 608619, 0.080},
        {"moccasin/VGG19_256_224x224x3.chain", 51, 17058234368, 0.771},
        {"dtr/dtr_lstm.dag", 7926, 4084658000, 0.025}};
    char path[1024];
    unsigned n = 0;

    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        struct heddle_plan_graph *g = NULL;
        struct why w;

        if (!shared_path(path, sizeof(path), all[i].name))
            continue;
        CHECK_OK(heddle_plan_graph_read(path, why_init(&w, NULL), &g));
        CHECK_EQ(g->nops, all[i].nops);
        CHECK_EQ(heddle_plan_peak(g), all[i].peak);
        CHECK_NEAR((double)heddle_plan_floor(g, NULL) / (double)all[i].peak, all[i].floor, 0.0006);
        heddle_plan_graph_destroy(g);
        n++;
    }
    if (n == 0)
        SKIP("the instances are not here");
}

TEST_MAIN(our_format, other_formats, each_fault_has_its_line, files_that_are_none, damaged_files,
          machines, plans_come_back_as_they_were, damaged_plans, no_memory, published_instances)
