/* SPDX-License-Identifier: BSD-3-Clause */
/* Cut, damaged and forged logs are refused or read in part, and nothing else:
 * no crash, no hang, no leak, no row out of range. Memory failing at every
 * allocation, on the whole way from recording to export. */
#include "trace/log.h"
#include "trace/sample_test.h"

/* Every row must be usable by a reader that checks nothing. */
static void check_rows(const heddle_log *log)
{
    const struct heddle_log_view *v = heddle_log_get_view(log);

    for (size_t i = 0; i < v->ntasks; i++) {
        const struct heddle_log_task *t = &v->tasks[i];

        CHECK(t->kernel < v->nkernels);
        CHECK(t->lane < v->nlanes ||
              (t->lane == HEDDLE_LOG_NO_LANE && t->status == HEDDLE_LOG_PENDING));
        CHECK(t->end_ns >= t->start_ns);
        CHECK(heddle_log_find_task(log, t->id) < v->ntasks);
        CHECK(i == 0 || v->tasks[i - 1].start_ns <= t->start_ns);
    }
    for (size_t i = 0; i < v->naccesses; i++)
        CHECK(v->accesses[i].handle < v->nhandles);
    for (size_t i = 0; i < v->nstates; i++)
        CHECK(v->states[i].lane < v->nlanes && v->states[i].end_ns >= v->states[i].start_ns);
    for (size_t i = 0; i < v->nmarks; i++)
        CHECK(v->marks[i].lane < v->nlanes && v->marks[i].text != NULL);
    for (size_t i = 0; i < v->nevents; i++)
        CHECK(v->events[i].lane < v->nlanes);
    for (size_t i = 0; i < v->nhandles; i++)
        CHECK(v->handles[i].parent <= i && v->handles[i].name != NULL &&
              v->handles[i].ndims <= HEDDLE_LOG_MAX_DIMS);
    for (size_t i = 0; i < v->nkernels; i++)
        CHECK(v->kernels[i].name != NULL);
    for (size_t i = 0; i < v->nlanes; i++)
        CHECK(v->lanes[i].name != NULL);
}

static void check_sums(const heddle_log *log)
{
    const struct heddle_log_view *v = heddle_log_get_view(log);
    struct heddle_log_summary *s;

    CHECK_OK(heddle_log_summary_create(log, &s));
    for (size_t i = 0; i < v->nlanes; i++)
        CHECK_EQ(s->lanes[i].busy_ns + s->lanes[i].idle_ns + s->lanes[i].overhead_ns,
                 s->makespan_ns);
    heddle_log_summary_destroy(log, s);
}

/* Parses a copy of exactly that size; returns whether it was accepted. */
static bool parse(const uint8_t *p, size_t bytes, bool *is_partial)
{
    uint8_t *copy = malloc(bytes == 0 ? 1 : bytes);
    struct faulty f;
    struct heddle_log_opts o = {.size = sizeof o, .allocator = &f.a};
    heddle_log *log = NULL;
    heddle_status st;

    CHECK(copy != NULL);
    memcpy(copy, p, bytes);
    faulty_init(&f, 0);
    st = heddle_log_parse(copy, bytes, &o, &log);
    free(copy);
    CHECK(st == HEDDLE_OK || st == HEDDLE_EFORMAT || st == HEDDLE_EVERSION);
    /* Nothing absurd: some hundred bytes of memory per byte of file. */
    CHECK(f.live_bytes < 65536 + 400 * bytes);
    if (st == HEDDLE_OK) {
        *is_partial = heddle_log_get_view(log)->is_partial;
        CHECK((heddle_log_get_partial(log)[0] != '\0') == *is_partial);
        check_rows(log);
        check_sums(log);
        heddle_log_close(log);
    }
    CHECK_EQ(f.live_bytes, 0);
    return st == HEDDLE_OK;
}

TEST(cut_at_every_byte)
{
    size_t bytes;
    uint8_t *p = sample_bytes(20, 512, &bytes);
    bool is_partial = false;

    CHECK(parse(p, bytes, &is_partial));
    CHECK(!is_partial);
    for (size_t n = 0; n < bytes; n++) {
        const bool ok = parse(p, n, &is_partial);

        CHECK_EQ(ok, n >= HEDDLE_FMT_HEADER);
        if (ok)
            CHECK(is_partial);
    }
    free(p);
}

TEST(every_byte_changed)
{
    static const uint8_t patterns[] = {0x01, 0x80, 0xff, 0x55};
    size_t bytes;
    uint8_t *p = sample_bytes(20, 512, &bytes);
    bool is_partial = false;

    for (size_t n = 0; n < bytes; n++) {
        for (size_t k = 0; k < sizeof patterns; k++) {
            p[n] ^= patterns[k];
            if (parse(p, bytes, &is_partial))
                CHECK(is_partial && n >= HEDDLE_FMT_HEADER);
            else
                CHECK(n < HEDDLE_FMT_HEADER);
            p[n] ^= patterns[k];
        }
    }
    free(p);
}

/* One damaged chunk costs that chunk: the others are still there. */
TEST(damage_is_local)
{
    size_t bytes, whole;
    uint8_t *p = sample_bytes(60, 512, &bytes);
    const struct heddle_log_view *v;
    heddle_log *log;

    CHECK_OK(heddle_log_parse(p, bytes, NULL, &log));
    v = heddle_log_get_view(log);
    whole = v->ntasks + v->ndeps + v->nevents;
    heddle_log_close(log);
    memset(p + bytes / 2, 0, 30);
    CHECK_OK(heddle_log_parse(p, bytes, NULL, &log));
    v = heddle_log_get_view(log);
    CHECK(v->is_partial && v->ndamaged >= 1 && v->ndamaged <= 2);
    CHECK(v->ntasks + v->ndeps + v->nevents > whole * 9 / 10);
    CHECK(v->ntasks + v->ndeps + v->nevents < whole);
    heddle_log_close(log);
    free(p);
}

/* Makes the checksums good again, so that the decoders see the damage. */
static void forge(uint8_t *p, size_t bytes)
{
    size_t at = HEDDLE_FMT_HEADER;

    heddle_put_le(p + HEDDLE_FMT_HEADER - 8, heddle_fmt_sum(p, HEDDLE_FMT_HEADER - 8), 8);
    while (at + HEDDLE_FMT_CHUNK <= bytes) {
        uint64_t n = heddle_get_le(p + at + 12, 4);

        if (n > bytes - at - HEDDLE_FMT_CHUNK)
            n = bytes - at - HEDDLE_FMT_CHUNK;
        heddle_put_le(p + at + 48, heddle_fmt_sum(p + at + HEDDLE_FMT_CHUNK, (size_t)n), 8);
        heddle_put_le(p + at + 56, heddle_fmt_sum(p + at, 56), 8);
        at += HEDDLE_FMT_CHUNK + (size_t)n;
    }
}

TEST(forged)
{
    size_t bytes, nok = 0;
    uint8_t *good = sample_bytes(20, 512, &bytes), *p = malloc(bytes);
    const size_t rounds = test_scale(20000);
    struct heddle_rng g;
    bool is_partial;

    CHECK(p != NULL);
    heddle_rng_seed(&g, test_seed());
    for (size_t round = 0; round < rounds; round++) {
        memcpy(p, good, bytes);
        for (uint32_t n = 1 + heddle_rng_below32(&g, 4); n > 0; n--) {
            const size_t at = 12 + heddle_rng_below(&g, bytes - 12);

            p[at] = heddle_rng_below32(&g, 3) == 0 ? 0xff : (uint8_t)heddle_rng_next(&g);
        }
        forge(p, bytes);
        nok += parse(p, bytes, &is_partial);
    }
    CHECK(nok > rounds / 2);
    free(p);
    free(good);
}

/* Files that are nothing but noise behind a good header. */
TEST(noise)
{
    uint8_t *p = malloc(4096);
    const struct heddle_fmt_header h = {
        .major = 1, .header_bytes = HEDDLE_FMT_HEADER, .ns_per_tick = 0.5};
    struct heddle_rng g;
    bool is_partial = false;

    CHECK(p != NULL);
    heddle_rng_seed(&g, test_seed());
    for (int round = 0; round < 200; round++) {
        for (size_t i = 0; i < 4096; i++)
            p[i] = "HCHK\x01"[heddle_rng_below32(&g, 5)];
        heddle_fmt_put_header(p, &h);
        CHECK(parse(p, 4096, &is_partial));
        CHECK(is_partial);
    }
    free(p);
}

/* Record, close, open, sum, export: allocation k fails, for every k. */
static heddle_status whole_way(const char *path, const char *out, const struct heddle_allocator *a,
                               bool *is_lossy)
{
    struct heddle_log_opts o = {.size = sizeof o, .allocator = a};
    struct heddle_log_summary *s = NULL;
    struct heddle_trace *tr = NULL;
    heddle_log *log = NULL;
    heddle_status st, first = HEDDLE_OK;

    st = sample_create(path, 512, a, &tr);
    if (st != HEDDLE_OK)
        return st;
    sample_record(tr, 10);
    *is_lossy = heddle_trace_lost(tr) > 0;
    CHECK_OK(heddle_trace_close(tr, NULL, 0));
    st = heddle_log_open(path, &o, &log);
    if (st != HEDDLE_OK)
        return st;
    check_rows(log);
    first = heddle_log_summary_create(log, &s);
    heddle_log_summary_destroy(log, s);
    for (size_t i = 0; heddle_log_get_format(i) != NULL; i++) {
        st = heddle_log_export(log, heddle_log_get_format(i)->name, out, 3);
        if (first == HEDDLE_OK)
            first = st;
    }
    heddle_log_close(log);
    return first;
}

TEST(allocations_fail)
{
    char path[256], out[256];
    size_t k, nfailed = 0, nlossy = 0;

    temp_path(path, sizeof path);
    temp_path(out, sizeof out);
    for (k = 1; k < 2000; k++) {
        struct faulty f;
        bool is_lossy = false;
        heddle_status st;

        faulty_init(&f, k);
        st = whole_way(path, out, &f.a, &is_lossy);
        CHECK(st == HEDDLE_OK || st == HEDDLE_ENOMEM);
        CHECK_EQ(f.live_bytes, 0);
        nfailed += st == HEDDLE_ENOMEM;
        nlossy += is_lossy;
        if (f.nallocs < k)
            break;
    }
    printf("%zu allocations, %zu ended in an error, %zu in counted losses\n", k - 1, nfailed,
           nlossy);
    CHECK(k > 20 && k < 2000 && nfailed > 10 && nlossy > 0);
    unlink(path);
    unlink(out);
}

TEST_MAIN(cut_at_every_byte, every_byte_changed, damage_is_local, forged, noise, allocations_fail)
