/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * codec: a kernel's measurements as text, and back.
 *
 * Format     docs/formats/model.md. Every line carries a checksum, all numbers
 *            are unsigned integers, names are escaped: a line is either exactly
 *            what was written or it is ignored.
 * Invariant  reading never fails for what the text holds, whatever it holds.
 * Threads    the caller holds the perf's lock or owns the tree.
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/fsize.h"
#include "base/text.h"
#include "perf/model.h"

#define MAGIC       "heddle-model"
#define VERSION     1
#define SUFFIX      ".model"
#define LINE_BYTES  4096
#define LINE_FIELDS (9 + HEDDLE_HISTORY_SAMPLES)
#define NAME_BYTES  (3 * HEDDLE_PERF_NAME_MAX + 1) /* escaped */
#define SUM_BYTES   10                             /* " #" and 8 digits */
#define PLAIN_FILE  200                            /* longer file names are cut and get a hash */
#define CUT_FILE    180
#define PS_PER_NS   1000.0

/* --- names --------------------------------------------------------------- */

static bool is_plain(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           (c != '\0' && strchr("_-.:+=,@", c));
}

/* A dot in front is escaped too: it would hide a file. */
static void escape(const char *s, char out[NAME_BYTES])
{
    static const char hex[] = "0123456789ABCDEF";
    size_t n = 0;

    for (size_t i = 0; s[i] != '\0'; i++) {
        const unsigned char c = (unsigned char)s[i];

        if (is_plain(s[i]) && !(i == 0 && c == '.')) {
            out[n++] = s[i];
        } else {
            out[n++] = '%';
            out[n++] = hex[c >> 4];
            out[n++] = hex[c & 15];
        }
    }
    out[n] = '\0';
}

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'A' && c <= 'F')
        return c - 'A' + 10;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* In place. False: not what escape() writes, or not a name. */
static bool unescape(char *s)
{
    size_t n = 0;

    for (size_t i = 0; s[i] != '\0'; i++) {
        if (s[i] == '%') {
            const int hi = hex_digit(s[i + 1]);
            const int lo = hi < 0 ? -1 : hex_digit(s[i + 2]);

            if (lo < 0 || hi * 16 + lo == 0)
                return false;
            s[n++] = (char)(hi * 16 + lo);
            i += 2;
        } else if (is_plain(s[i])) {
            s[n++] = s[i];
        } else {
            return false;
        }
    }
    s[n] = '\0';
    return heddle_model_name_ok(s);
}

void heddle_model_file_name(const char *kernel, char out[HEDDLE_MODEL_FILE_MAX])
{
    char name[NAME_BYTES];
    struct heddle_text t;
    uint64_t hash = 0;

    escape(kernel, name);
    heddle_text_init(&t, out, HEDDLE_MODEL_FILE_MAX);
    if (strlen(name) <= PLAIN_FILE) {
        heddle_text_add(&t, "%s" SUFFIX, name);
        return;
    }
    for (const char *c = kernel; *c != '\0'; c++)
        hash = heddle_perf_hash(hash, (unsigned char)*c);
    /* '~' is never plain, so no other kernel has this file. */
    heddle_text_add(&t, "%.*s~%016" PRIx64 SUFFIX, CUT_FILE, name, hash);
}

/* --- lines --------------------------------------------------------------- */

/* FNV-1a, 32 bits. Each step is a bijection of the state, so one changed byte
 * is always noticed. */
static uint32_t line_sum(const char *line, size_t n)
{
    uint32_t h = 2166136261u;

    for (size_t i = 0; i < n; i++)
        h = (h ^ (unsigned char)line[i]) * 16777619u;
    return h;
}

static bool parse_hex(const char *s, size_t ndigits, uint64_t *out)
{
    uint64_t v = 0;

    if (strlen(s) != ndigits)
        return false;
    for (size_t i = 0; i < ndigits; i++) {
        const int d = hex_digit(s[i]);

        if (d < 0 || (s[i] >= 'A' && s[i] <= 'F'))
            return false; /* one way to write a number, not two */
        v = v << 4 | (unsigned)d;
    }
    *out = v;
    return true;
}

static bool parse_number(const char *s, uint64_t max, uint64_t *out)
{
    return heddle_parse_u64(s, out) == HEDDLE_OK && *out <= max;
}

/* Checks the sum of a line of n bytes, newline not included, removes it and
 * cuts the rest at single blanks. The number of fields; 0: no good. */
static unsigned line_split(char *line, size_t n, char *field[LINE_FIELDS])
{
    unsigned nfields = 0;
    uint64_t sum;

    if (n <= SUM_BYTES || n >= LINE_BYTES || memchr(line, '\0', n) != NULL)
        return 0;
    line[n] = '\0';
    n -= SUM_BYTES;
    if (line[n] != ' ' || line[n + 1] != '#' || !parse_hex(line + n + 2, SUM_BYTES - 2, &sum) ||
        sum != line_sum(line, n))
        return 0;
    line[n] = '\0';
    while (nfields < LINE_FIELDS) {
        char *end = strchr(line, ' ');

        field[nfields++] = line;
        if (end == NULL)
            return nfields;
        *end = '\0';
        line = end + 1;
    }
    return 0; /* too many */
}

heddle_status heddle_model_read_header(const char *text, size_t bytes,
                                       struct heddle_model_header *out)
{
    const char *end = memchr(text, '\n', bytes < LINE_BYTES ? bytes : LINE_BYTES);
    char line[LINE_BYTES], *field[LINE_FIELDS];
    unsigned nfields;
    uint64_t version;

    if (end == NULL || (size_t)(end - text) >= LINE_BYTES)
        return HEDDLE_EFORMAT;
    memcpy(line, text, (size_t)(end - text));
    nfields = line_split(line, (size_t)(end - text), field);
    if (nfields < 2 || strcmp(field[0], MAGIC) != 0 ||
        !parse_number(field[1], UINT32_MAX, &version) || version == 0)
        return HEDDLE_EFORMAT;
    if (version > VERSION)
        return HEDDLE_EVERSION;
    if (nfields != 3 || !unescape(field[2]))
        return HEDDLE_EFORMAT;
    memcpy(out->kernel, field[2], strlen(field[2]) + 1);
    out->length = (size_t)(end - text) + 1;
    return HEDDLE_OK;
}

/* --- reading ------------------------------------------------------------- */

/* entry VARIANT DEVICE VERSION SHAPE FLOPS BYTES COUNT SAMPLE... */
struct record {
    struct heddle_perf_key key;
    uint64_t shape, flops, bytes, count;
    unsigned nsamples;
    double ns[HEDDLE_HISTORY_SAMPLES];
};

static bool record_parse(char *field[], unsigned nfields, struct record *r)
{
    const uint64_t max_cost = (uint64_t)HEDDLE_MODEL_MAX_COST;
    uint64_t ps;

    if (nfields < 9 || strcmp(field[0], "entry") != 0 || nfields - 8 > HEDDLE_HISTORY_SAMPLES ||
        !unescape(field[1]) || !unescape(field[2]) || !parse_hex(field[3], 16, &r->key.version) ||
        !parse_hex(field[4], 16, &r->shape) || !parse_number(field[5], max_cost, &r->flops) ||
        !parse_number(field[6], max_cost, &r->bytes) ||
        !parse_number(field[7], UINT64_MAX / 2, &r->count))
        return false;
    r->key.variant = field[1];
    r->key.device = field[2];
    r->nsamples = nfields - 8;
    for (unsigned i = 0; i < r->nsamples; i++) {
        if (!parse_number(field[8 + i], UINT64_MAX, &ps))
            return false;
        r->ns[i] = (double)ps / PS_PER_NS;
        if (!heddle_history_accepts(r->ns[i]))
            return false;
    }
    return r->count >= r->nsamples;
}

/* HEDDLE_EFORMAT: more than a file may hold, or a second line of a key. */
static heddle_status record_add(struct heddle_model_kernel *k, const struct record *r)
{
    struct heddle_perf_series *s = NULL;
    struct heddle_perf_entry *e = NULL;
    heddle_status st = heddle_model_series_add(k, &r->key, &s);

    if (st == HEDDLE_EOVERFLOW)
        return HEDDLE_EFORMAT;
    HEDDLE_TRY(st);
    if (heddle_load_rlx(&s->nentries) >= HEDDLE_MODEL_ENTRIES ||
        heddle_model_entry_find(s, r->shape) != NULL)
        return HEDDLE_EFORMAT;
    HEDDLE_TRY(heddle_model_entry_add(s, r->shape, &e));
    heddle_model_entry_cost(e, (double)r->flops, (double)r->bytes);
    for (unsigned i = 0; i < r->nsamples; i++)
        heddle_perf_record(e, r->ns[i]);
    heddle_history_refresh(&e->history);
    heddle_store_rlx(&e->before, r->count - r->nsamples); /* a number */
    e->saved = heddle_load_rlx(&e->history.head);
    return HEDDLE_OK;
}

heddle_status heddle_model_read(struct heddle_model_kernel *k, char *text, size_t bytes,
                                uint64_t *nignored_out)
{
    uint64_t nignored = 0;
    heddle_status st = HEDDLE_OK;

    while (bytes > 0 && st == HEDDLE_OK) {
        char *end = memchr(text, '\n', bytes), *field[LINE_FIELDS];
        const size_t n = end == NULL ? bytes : (size_t)(end - text);
        struct record r;
        unsigned nfields;

        /* A last line without its newline was cut: there is no room for a
         * terminator either. */
        nfields = end == NULL ? 0 : line_split(text, n, field);
        if (record_parse(field, nfields, &r))
            st = record_add(k, &r);
        else
            st = HEDDLE_EFORMAT;
        if (st == HEDDLE_EFORMAT) {
            nignored++;
            st = HEDDLE_OK;
        }
        text += n + (end != NULL);
        bytes -= n + (end != NULL);
    }
    *nignored_out = nignored;
    return st;
}

/* --- writing ------------------------------------------------------------- */

struct writer {
    int fd;
    size_t len;
    heddle_status st;
    char buf[4 * LINE_BYTES];
};

static void writer_flush(struct writer *w)
{
    struct heddle_fsize f;
    size_t done = 0;

    heddle_fsize_enter(&f);
    while (w->st == HEDDLE_OK && done < w->len) {
        const ssize_t n = write(w->fd, w->buf + done, w->len - done);

        if (n > 0) {
            done += (size_t)n;
        } else if (n == 0 || errno != EINTR) {
            errno = n == 0 ? ENOSPC : errno;
            w->st = HEDDLE_EIO;
        }
    }
    heddle_fsize_leave(&f);
    w->len = 0;
}

/* Adds the sum and the newline, and writes the line. */
static void writer_line(struct writer *w, struct heddle_text *t)
{
    heddle_text_add(t, " #%08" PRIx32 "\n", line_sum(t->buf, t->len));
    HEDDLE_ASSERT(!t->is_truncated);
    if (w->len + t->len > sizeof(w->buf))
        writer_flush(w);
    memcpy(w->buf + w->len, t->buf, t->len);
    w->len += t->len;
}

static void write_entry(struct writer *w, const struct heddle_perf_entry *e)
{
    char line[LINE_BYTES], variant[NAME_BYTES], device[NAME_BYTES];
    double ns[HEDDLE_HISTORY_SAMPLES];
    const uint64_t head = heddle_load_rlx(&e->history.head);
    const unsigned n = heddle_history_copy(&e->history, head, HEDDLE_HISTORY_SAMPLES, ns);
    struct heddle_text t;

    if (n == 0)
        return;
    escape(e->series->variant, variant);
    escape(e->series->device, device);
    heddle_text_init(&t, line, sizeof(line));
    heddle_text_add(&t, "entry %s %s %016" PRIx64 " %016" PRIx64, variant, device,
                    e->series->version, e->shape);
    heddle_text_add(&t, " %" PRIu64 " %" PRIu64 " %" PRIu64, (uint64_t)heddle_load_rlx(&e->flops),
                    (uint64_t)heddle_load_rlx(&e->bytes), heddle_load_rlx(&e->before) + head);
    for (unsigned i = 0; i < n; i++)
        heddle_text_add(&t, " %" PRIu64, (uint64_t)(ns[i] * PS_PER_NS + 0.5));
    writer_line(w, &t);
}

static void write_series(struct writer *w, struct heddle_perf_series *s)
{
    size_t n = 0;

    for (int touched = 1; touched >= 0; touched--) {
        struct heddle_perf_entry *e = heddle_load_rlx(&s->first);

        for (; e != NULL && n < HEDDLE_MODEL_ENTRIES; e = heddle_load_rlx(&e->next)) {
            if (e->is_touched != (touched == 1))
                continue;
            write_entry(w, e);
            n++;
        }
    }
}

heddle_status heddle_model_write(const struct heddle_model_kernel *k, int fd,
                                 bool (*skip)(void *user, const struct heddle_perf_series *),
                                 void *user)
{
    char line[LINE_BYTES], name[NAME_BYTES];
    struct writer w = {.fd = fd, .st = HEDDLE_OK};
    struct heddle_perf_series *s = heddle_load_rlx(&k->series);
    struct heddle_text t;

    escape(k->name, name);
    heddle_text_init(&t, line, sizeof(line));
    heddle_text_add(&t, MAGIC " %d %s", VERSION, name);
    writer_line(&w, &t);
    for (; s != NULL; s = heddle_load_rlx(&s->next))
        if (!skip(user, s))
            write_series(&w, s);
    writer_flush(&w);
    return w.st;
}
