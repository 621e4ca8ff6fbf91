/* SPDX-License-Identifier: BSD-3-Clause */
/* Coding of records: invariants codec(1) to (3) and pack(2). */
#include "trace/format.h"
#include "trace/sample_test.h"
#include "trace/store.h"

/* Small, huge or near what came before: what real and odd logs have. */
static uint64_t any_value(struct heddle_rng *r, uint64_t near)
{
    switch (heddle_rng_below32(r, 6)) {
    case 0: return near + 1;
    case 1: return near;
    case 2: return near - heddle_rng_below(r, 100);
    case 3: return heddle_rng_below(r, 300);
    case 4: return heddle_rng_next(r);
    default: return near + heddle_rng_below(r, 100000);
    }
}

static struct heddle_rec any_rec(struct heddle_rng *g, uint64_t *near)
{
    struct heddle_rec r = {0};
    const uint64_t a = heddle_rng_next(g);

    r.kind = (uint8_t)(1 + heddle_rng_below32(g, HEDDLE_REC_KINDS - 1));
    *near = any_value(g, *near);
    r.id = *near;
    r.t = any_value(g, *near);
    r.x = any_value(g, *near);
    r.c = (uint32_t)any_value(g, 5);
    r.b = (uint16_t)any_value(g, 2);
    r.a = (uint8_t)any_value(g, 3);
    switch (r.kind) {
    case HEDDLE_REC_TASK: r.y = (a & 1) ? any_value(g, 9) : 0; break;
    case HEDDLE_REC_EVENT:
        r.y = (a & 2) ? any_value(g, 9) : 0;
        r.z = (a & 4) ? any_value(g, 9) : 0;
        break;
    case HEDDLE_REC_SUBMIT:
        r.a = 0;
        r.b = 0;
        r.prio = (int32_t)any_value(g, 1);
        r.predicted_ns = (a & 1) ? (float)(a >> 40) : 0.0f;
        break;
    case HEDDLE_REC_DEP: r.t = r.c = r.b = r.a = 0; break;
    case HEDDLE_REC_ACCESS: r.t = r.x = 0; break;
    case HEDDLE_REC_READY: r.x = r.c = r.b = r.a = 0; break;
    case HEDDLE_REC_ATTR: r.t = r.c = r.b = 0; break;
    default: /* STATE, MARK */ r.id = r.x = r.b = 0; break;
    }
    return r;
}

static void check_same(const struct heddle_rec *a, const struct heddle_rec *b)
{
    CHECK_EQ(a->kind, b->kind);
    CHECK_EQ(a->t, b->t);
    CHECK_EQ(a->id, b->id);
    CHECK_EQ(a->x, b->x);
    CHECK_EQ(a->y, b->y);
    CHECK_EQ(a->z, b->z);
    CHECK_EQ(a->c, b->c);
    CHECK_EQ(a->b, b->b);
    CHECK_EQ(a->a, b->a);
    CHECK_EQ(a->prio, b->prio);
    CHECK(memcmp(&a->predicted_ns, &b->predicted_ns, sizeof(float)) == 0);
}

TEST(round_trip)
{
    enum { N = 2000 };
    static struct heddle_rec in[N];
    static uint8_t buf[N * HEDDLE_REC_MAX_BYTES];
    struct heddle_rng g;

    heddle_rng_seed(&g, test_seed());
    for (int round = 0; round < 20; round++) {
        struct heddle_codec c = {0}, d = {0};
        struct heddle_get get = {buf, buf, false};
        struct heddle_rec out;
        uint64_t near = 1000;
        uint8_t *p = buf, *q;

        for (int i = 0; i < N; i++) {
            in[i] = any_rec(&g, &near);
            q = heddle_rec_encode(&c, &in[i], p);
            CHECK(q > p && q - p <= HEDDLE_REC_MAX_BYTES);
            p = q;
        }
        get.end = p;
        for (int i = 0; i < N; i++) {
            CHECK(heddle_rec_decode(&d, &get, &out));
            check_same(&in[i], &out);
        }
        CHECK(!heddle_rec_decode(&d, &get, &out));
        CHECK(!get.bad);
        CHECK(memcmp(&c, &d, sizeof c) == 0);
    }
}

/* Invariant codec(3): random and cut bytes are refused or end, within bounds.
 * The exact-size copy lets the address sanitizer see a step too far. */
TEST(garbage)
{
    struct heddle_rng g;

    heddle_rng_seed(&g, test_seed());
    for (size_t round = 0; round < test_scale(100000); round++) {
        const size_t n = heddle_rng_below32(&g, 40);
        uint8_t *p = malloc(n + 1);
        struct heddle_get get;
        struct heddle_codec c = {0};
        struct heddle_rec r;
        size_t count = 0;

        CHECK(p != NULL);
        for (size_t i = 0; i < n; i++)
            p[i] = (uint8_t)heddle_rng_next(&g);
        get = (struct heddle_get){p + 1, p + 1 + (n == 0 ? 0 : n - 1), false};
        while (heddle_rec_decode(&c, &get, &r)) {
            CHECK(r.kind > 0 && r.kind < HEDDLE_REC_KINDS);
            count++;
        }
        CHECK(count <= n);
        CHECK(get.bad || get.p == get.end);
        free(p);
    }
}

TEST(extension_is_skipped)
{
    uint8_t buf[64] = {0x20, 3, 0xff, 0xff, 0xff}, *p = buf + 5;
    struct heddle_rec in = {.kind = HEDDLE_REC_READY, .t = 5, .id = 6}, out;
    struct heddle_codec c = {0}, d = {0};
    struct heddle_get g = {buf, buf, false};

    p = heddle_rec_encode(&c, &in, p);
    *p++ = 0x3f; /* empty extension */
    *p++ = 0;
    g.end = p;
    CHECK(heddle_rec_decode(&d, &g, &out));
    check_same(&in, &out);
    CHECK(!heddle_rec_decode(&d, &g, &out));
    CHECK(!g.bad);
}

TEST(leb)
{
    const uint64_t v[] = {0, 1, 127, 128, 16383, 16384, UINT32_MAX, UINT64_MAX - 1, UINT64_MAX};
    const uint8_t too_long[] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x02, 0x00};
    struct heddle_get g;
    uint8_t buf[16];

    for (size_t i = 0; i < sizeof v / sizeof v[0]; i++) {
        g = (struct heddle_get){buf, heddle_put_leb(buf, v[i]), false};
        CHECK(heddle_get_leb(&g) == v[i]);
        CHECK(!g.bad && g.p == g.end);
        g = (struct heddle_get){buf, heddle_put_leb(buf, v[i]) - 1, false};
        CHECK_EQ(heddle_get_leb(&g), 0);
        CHECK(g.bad);
        CHECK(heddle_unzigzag(heddle_zigzag(v[i])) == v[i]);
    }
    g = (struct heddle_get){too_long, too_long + sizeof too_long, false};
    CHECK_EQ(heddle_get_leb(&g), 0);
    CHECK(g.bad);
}

TEST(checksum_sees_every_change)
{
    uint8_t data[96];
    struct heddle_rng g;
    uint64_t sum;

    heddle_rng_seed(&g, test_seed());
    for (size_t i = 0; i < sizeof data; i++)
        data[i] = (uint8_t)heddle_rng_next(&g);
    for (size_t n = 0; n <= sizeof data; n++) {
        sum = heddle_fmt_sum(data, n);
        for (size_t i = 0; i < n; i++) {
            for (unsigned x = 1; x < 256; x <<= 1) {
                data[i] ^= (uint8_t)x;
                CHECK(heddle_fmt_sum(data, n) != sum);
                data[i] ^= (uint8_t)x;
            }
        }
        if (n > 0)
            CHECK(heddle_fmt_sum(data, n - 1) != sum);
    }
}

TEST(headers)
{
    const struct heddle_fmt_chunk k = {.kind = 2,
                                       .codec = 1,
                                       .flags = 3,
                                       .lane = 4,
                                       .payload_bytes = 5,
                                       .nrecords = 6,
                                       .seq = 7,
                                       .first_tick = 8,
                                       .last_tick = UINT64_MAX,
                                       .lost = 10,
                                       .payload_sum = 11};
    const struct heddle_fmt_header h = {.major = 1,
                                        .minor = 2,
                                        .header_bytes = HEDDLE_FMT_HEADER,
                                        .flags = 3,
                                        .ns_per_tick = 0.385,
                                        .tick0 = 4,
                                        .ns0 = 5,
                                        .wall_ns = 6,
                                        .wall_tick = 7};
    struct heddle_fmt_chunk k2 = {0};
    struct heddle_fmt_header h2 = {0};
    uint8_t buf[HEDDLE_FMT_HEADER];

    heddle_fmt_put_chunk(buf, &k);
    CHECK(heddle_fmt_get_chunk(buf, &k2));
    CHECK_EQ(k2.lane, 4);
    CHECK_EQ(k2.payload_bytes, 5);
    CHECK_EQ(k2.seq, 7);
    CHECK(k2.last_tick == UINT64_MAX);
    CHECK_EQ(k2.payload_sum, 11);
    buf[20] ^= 1;
    CHECK(!heddle_fmt_get_chunk(buf, &k2));
    heddle_fmt_put_header(buf, &h);
    CHECK(heddle_fmt_get_header(buf, sizeof buf, &h2));
    CHECK_EQ(h2.minor, 2);
    CHECK(h2.ns_per_tick == 0.385);
    CHECK_EQ(h2.wall_tick, 7);
    CHECK(!heddle_fmt_get_header(buf, sizeof buf - 1, &h2));
}

/* Slots of the worst kind stay within heddle_pack_bound(). */
TEST(pack_bound)
{
    enum { N = 300 };
    static union heddle_slot slots[N + HEDDLE_SLOTS_MAX];
    struct heddle_trace_lane l;
    struct heddle_fmt_chunk k;
    struct heddle_trace_event e;
    struct heddle_rng g;
    uint8_t *out = malloc(heddle_pack_bound(sizeof slots));

    CHECK(out != NULL);
    memset(&l, 0, sizeof l);
    heddle_rng_seed(&g, test_seed());
    for (int round = 0; round < 200; round++) {
        union heddle_slot *end;
        uint64_t a, b;

        heddle_store_rlx(&l.mask, UINT32_MAX);
        heddle_store_rlx(&l.p, slots);
        l.limit = slots + N;
        while (heddle_load_rlx(&l.p) < slots + N) {
            a = heddle_rng_next(&g);
            b = heddle_rng_next(&g);
            e = (struct heddle_trace_event){b, a, b, a, b, (uint32_t)a, (uint16_t)b};
            switch (round % 8) {
            case 0:
                heddle_trace_task(&l, a, (uint32_t)b, (uint8_t)a, (uint8_t)b, a, a + UINT32_MAX,
                                  (uint32_t)b);
                break;
            case 1: heddle_trace_dep(&l, a, b); break;
            case 2: heddle_trace_dep(&l, a, a - (uint32_t)b); break;
            case 3: heddle_trace_ready(&l, a, b); break;
            case 4: heddle_trace_ready(&l, a >> 8, b); break;
            case 5: heddle_trace_access(&l, a, (uint32_t)b, (uint8_t)a, (uint16_t)b); break;
            case 6: heddle_trace_event(&l, HEDDLE_TRACE_DATA, HEDDLE_LOG_FETCH, &e); break;
            default: heddle_trace_submit(&l, a, (uint32_t)b, (int32_t)a, b, 1.5f, b); break;
            }
        }
        end = heddle_load_rlx(&l.p);
        heddle_pack(slots, end, out, &k);
        CHECK(k.payload_bytes <= heddle_pack_bound((size_t)(end - slots) * sizeof *slots));
    }
    free(out);
}

TEST_MAIN(round_trip, garbage, extension_is_skipped, leb, checksum_sees_every_change, headers,
          pack_bound)
