/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_TRACE_FORMAT_H
#define HEDDLE_TRACE_FORMAT_H

/*
 * The bytes of a log file: constants, fixed headers, LEB128, checksum, and the
 * record codec. docs/formats/log.md is the specification; this header and
 * codec.c are its only implementation. Private to trace.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define HEDDLE_FMT_MAGIC       "\x89HDLOG\r\n" /* 8 bytes, first in the file */
#define HEDDLE_FMT_END_MAGIC   "HDLEND\r\n"    /* 8 bytes, last in the file */
#define HEDDLE_FMT_CHUNK_MAGIC "HCHK"
#define HEDDLE_FMT_MAJOR       1
#define HEDDLE_FMT_MINOR       1
#define HEDDLE_FMT_HEADER      72 /* bytes of the file header */
#define HEDDLE_FMT_HEADER_MAX  4096
#define HEDDLE_FMT_CHUNK       64 /* bytes of a chunk header */
#define HEDDLE_FMT_END_BYTES   32 /* payload of the END chunk */
#define HEDDLE_FMT_FLIGHT      1u /* file flag: dumped by the recorder */
#define HEDDLE_FMT_TSC         2u /* file flag: constant-rate counter */

enum heddle_fmt_chunk_kind {
    HEDDLE_FMT_RECORDS = 1,
    HEDDLE_FMT_DEFS = 2,
    HEDDLE_FMT_INDEX = 3,
    HEDDLE_FMT_END = 4,
};

enum heddle_fmt_def {
    HEDDLE_DEF_STRING = 1,
    HEDDLE_DEF_KERNEL = 2,
    HEDDLE_DEF_LANE = 3,
    HEDDLE_DEF_HANDLE = 4,
    HEDDLE_DEF_NODE = 5,
    HEDDLE_DEF_EPOCH = 6,
    HEDDLE_DEF_INFO = 7,
    HEDDLE_DEF_TOTALS = 8, /* of one lane, at the end */
    HEDDLE_DEF_LINK = 9,   /* since 1.1 */
};

/* The kinds of records, as the codec sees them. */
enum heddle_rec_kind {
    HEDDLE_REC_TASK = 1,
    HEDDLE_REC_SUBMIT = 2,
    HEDDLE_REC_DEP = 3,
    HEDDLE_REC_ACCESS = 4,
    HEDDLE_REC_READY = 5,
    HEDDLE_REC_STATE = 6,
    HEDDLE_REC_MARK = 7,
    HEDDLE_REC_ATTR = 8,
    HEDDLE_REC_EVENT = 9,
    HEDDLE_REC_KINDS = 10,
};

/*
 * One record, unpacked. Fields a kind does not name are 0.
 *
 *            t      id    x            y      z     c        b        a
 *   TASK     start  task  duration     delay        kernel   flags    variant
 *   SUBMIT   when   task  parent                    kernel                  *
 *   DEP             succ  pred
 *   ACCESS          task                            handle   operand  mode
 *   READY    when   task
 *   STATE    when                                   argument          state
 *   MARK     when                                   string            phase
 *   ATTR            task  value                                       key
 *   EVENT    when   task  x            y      z     c        b        kind
 *
 * (*) and prio, predicted_ns.
 */
struct heddle_rec {
    uint64_t t;
    uint64_t id;
    uint64_t x;
    uint64_t y;
    uint64_t z;
    uint32_t c;
    int32_t prio;
    float predicted_ns;
    uint16_t b;
    uint8_t a;
    uint8_t kind;
};

/* What the next record is coded against. Zero at the start of a chunk, except
 * `t`, which is the u64 the payload begins with. */
struct heddle_codec {
    uint64_t t;     /* last moment: an instant, or the end of a task */
    uint64_t task;  /* id of the last TASK */
    uint64_t sub;   /* id of the last SUBMIT, DEP, ACCESS, ATTR */
    uint64_t ready; /* id of the last READY, EVENT */
    uint64_t parent;
    uint32_t kernel;     /* of the last TASK */
    uint32_t sub_kernel; /* of the last SUBMIT */
    uint32_t handle;
    int32_t prio;
    uint16_t flags;
    uint16_t operand; /* expected for the next ACCESS */
    uint8_t variant;
};

/* A cursor over bytes that were read. Once `bad`, it stays so and every get
 * returns 0, so that a parser checks once at the end. */
struct heddle_get {
    const uint8_t *p;
    const uint8_t *end;
    bool bad;
};

struct heddle_fmt_header {
    uint16_t major, minor;
    uint32_t header_bytes;
    uint32_t flags;
    double ns_per_tick;
    uint64_t tick0;
    uint64_t ns0;
    uint64_t wall_ns;
    uint64_t wall_tick;
};

struct heddle_fmt_chunk {
    uint8_t kind; /* enum heddle_fmt_chunk_kind */
    uint8_t codec;
    uint16_t flags;
    uint32_t lane;
    uint32_t payload_bytes;
    uint32_t nrecords;
    uint32_t seq;
    uint64_t first_tick;
    uint64_t last_tick;
    uint64_t lost;
    uint64_t payload_sum;
};

/* Most bytes one record can take; see codec.c. */
#define HEDDLE_REC_MAX_BYTES 64

/* Writes a record at p, which has room for HEDDLE_REC_MAX_BYTES; returns the
 * byte after it. */
uint8_t *heddle_rec_encode(struct heddle_codec *c, const struct heddle_rec *r, uint8_t *p);

/* Reads the next record. false: the end, or g->bad. Records of kinds this
 * version does not know are skipped. */
bool heddle_rec_decode(struct heddle_codec *c, struct heddle_get *g, struct heddle_rec *out);

/* Not cryptographic. Any change within one aligned 8-byte word is seen, any
 * other with probability 1 - 2^-64. */
uint64_t heddle_fmt_sum(const void *data, size_t bytes);

void heddle_fmt_put_header(uint8_t *p, const struct heddle_fmt_header *h);
/* The checksum is good and the length is sane; the version is not judged. */
bool heddle_fmt_get_header(const uint8_t *p, size_t bytes, struct heddle_fmt_header *h);
void heddle_fmt_put_chunk(uint8_t *p, const struct heddle_fmt_chunk *k);
/* Magic and checksum are good. p has HEDDLE_FMT_CHUNK bytes. */
bool heddle_fmt_get_chunk(const uint8_t *p, struct heddle_fmt_chunk *k);

/* ---- little endian, LEB128 ---- */

static inline void heddle_put_le(uint8_t *p, uint64_t v, unsigned bytes)
{
    for (unsigned i = 0; i < bytes; i++)
        p[i] = (uint8_t)(v >> (8 * i));
}

static inline uint64_t heddle_get_le(const uint8_t *p, unsigned bytes)
{
    uint64_t v = 0;

    for (unsigned i = 0; i < bytes; i++)
        v |= (uint64_t)p[i] << (8 * i);
    return v;
}

/* Written out, so that compilers make one load of it. */
static inline uint64_t heddle_get_le64(const uint8_t *p)
{
    return (uint64_t)p[0] | (uint64_t)p[1] << 8 | (uint64_t)p[2] << 16 | (uint64_t)p[3] << 24 |
           (uint64_t)p[4] << 32 | (uint64_t)p[5] << 40 | (uint64_t)p[6] << 48 |
           (uint64_t)p[7] << 56;
}

static inline uint8_t *heddle_put_leb(uint8_t *p, uint64_t v)
{
    while (v >= 0x80) {
        *p++ = (uint8_t)(v | 0x80);
        v >>= 7;
    }
    *p++ = (uint8_t)v;
    return p;
}

/* Small magnitudes of either sign become small numbers. */
static inline uint64_t heddle_zigzag(uint64_t v)
{
    return (v << 1) ^ (0 - (v >> 63));
}

static inline uint64_t heddle_unzigzag(uint64_t v)
{
    return (v >> 1) ^ (0 - (v & 1));
}

static inline uint8_t *heddle_put_zig(uint8_t *p, uint64_t v)
{
    return heddle_put_leb(p, heddle_zigzag(v));
}

static inline uint8_t heddle_get_byte(struct heddle_get *g)
{
    if (g->p == g->end || g->bad) {
        g->bad = true;
        return 0;
    }
    return *g->p++;
}

static inline uint64_t heddle_get_leb(struct heddle_get *g)
{
    uint64_t v = 0;

    for (unsigned shift = 0; shift < 70; shift += 7) {
        const uint8_t b = heddle_get_byte(g);

        /* The tenth byte has one bit left. */
        if (g->bad || (shift == 63 && b > 1))
            break;
        v |= (uint64_t)(b & 0x7f) << shift;
        if (b < 0x80)
            return v;
    }
    g->bad = true;
    return 0;
}

/* A number that must fit 32 (16) bits. */
static inline uint32_t heddle_get_leb32(struct heddle_get *g)
{
    const uint64_t v = heddle_get_leb(g);

    if (v > UINT32_MAX)
        g->bad = true;
    return g->bad ? 0 : (uint32_t)v;
}

static inline uint16_t heddle_get_leb16(struct heddle_get *g)
{
    const uint64_t v = heddle_get_leb(g);

    if (v > UINT16_MAX)
        g->bad = true;
    return g->bad ? 0 : (uint16_t)v;
}

static inline uint64_t heddle_get_zig(struct heddle_get *g)
{
    return heddle_unzigzag(heddle_get_leb(g));
}

/* `bytes` bytes, borrowed; NULL and bad when there are fewer. */
static inline const uint8_t *heddle_get_bytes(struct heddle_get *g, uint64_t bytes)
{
    const uint8_t *p = g->p;

    if (g->bad || bytes > (uint64_t)(g->end - g->p)) {
        g->bad = true;
        return NULL;
    }
    g->p += bytes;
    return p;
}

#endif /* HEDDLE_TRACE_FORMAT_H */
