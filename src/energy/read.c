/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Reads the file of an energy model, docs/formats/energy.md: lines of words.
 *
 * How        the whole file in memory, word by word; a word in quotes is undone
 *            in place, as that never makes it longer. A line says what it is with
 *            its first word, then names, then keys with a value, in any order.
 * Bounds     1 MiB and ROWS_MAX lines of each kind: rows are searched one by one.
 */
#include <stdbool.h>
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/file.h"
#include "base/number.h"
#include "base/text.h"
#include "base/why.h"
#include "heddle/energy.h"

#define MAGIC     "heddle-energy"
#define BYTES_MAX ((size_t)1 << 20)
#define ROWS_MAX  10000
#define GIGA      1e9

/* ---- words ----------------------------------------------------------------- */

struct reader {
    const char *path;
    char *why;
    size_t cap;
    char *text; /* text[len] == 0 */
    size_t len, next;
    unsigned line;
    char *rest; /* of the line at hand */
    heddle_energy *model;
    size_t ndomains, nactive, ncaps;
    bool has_move;
};

/* What keys a line may have; each is a bit of `seen`. */
enum key {
    KEY_WATTS = 1u << 0,
    KEY_DEVICE = 1u << 1,
    KEY_LOW = 1u << 2,
    KEY_HIGH = 1u << 3,
    KEY_VARIANT = 1u << 4,
    KEY_BYTES = 1u << 5,
    KEY_GROUP = 1u << 6,
    KEY_COUNT = 1u << 7,
    KEY_TIME = 1u << 8,
    KEY_IDLE = 1u << 9,
    KEY_MOVE = 1u << 10,
};

static const struct {
    const char *name;
    enum key key;
} key_table[] = {
    {"watts", KEY_WATTS},     {"device", KEY_DEVICE},      {"low", KEY_LOW},
    {"high", KEY_HIGH},       {"variant", KEY_VARIANT},    {"bytes", KEY_BYTES},
    {"group", KEY_GROUP},     {"count", KEY_COUNT},        {"time", KEY_TIME},
    {"idle_watts", KEY_IDLE}, {"joules_per_gb", KEY_MOVE},
};

struct line {
    unsigned seen;
    const char *device, *variant;
    double watts, low, high, time;
    uint64_t bytes, group, count;
};

#define bad(r, ...) heddle_why_line((r)->why, (r)->cap, (r)->path, (r)->line, __VA_ARGS__)

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

/* The value of a hexadecimal digit; -1: it is none. */
static int hex_value(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return -1;
}

/* What a backslash at *in stands for; moves *in behind it. False: nothing. */
static bool unescape(char **in, char *out)
{
    char *s = *in + 1;

    if (*s == '"' || *s == '\\') {
        *out = *s;
        *in = s + 1;
        return true;
    }
    if (*s != 'x' || hex_value(s[1]) < 0 || hex_value(s[2]) < 0)
        return false;
    *out = (char)(hex_value(s[1]) * 16 + hex_value(s[2]));
    *in = s + 3;
    return *out != '\0';
}

/* Behind the opening quote at r->rest. */
static heddle_status quoted(struct reader *r, char **out)
{
    char *in = r->rest + 1, *to = r->rest;

    *out = to;
    while (*in != '"') {
        if (*in == '\0')
            return bad(r, "a quote is not closed");
        if (*in != '\\')
            *to++ = *in++;
        else if (!unescape(&in, to++))
            return bad(r, "in quotes a backslash stands before a quote, "
                          "another one, or x and two digits 0-9a-f, not 00");
    }
    in++;
    if (*in != '\0' && !is_blank(*in))
        return bad(r, "behind a quote there should be a blank");
    r->rest = in;
    *to = '\0';
    return HEDDLE_OK;
}

/* The next word of the line; *out is NULL at its end. */
static heddle_status word(struct reader *r, char **out)
{
    char *s = r->rest, *e;

    while (is_blank(*s))
        s++;
    r->rest = s;
    *out = NULL;
    if (*s == '\0' || *s == '#')
        return HEDDLE_OK;
    if (*s == '"')
        return quoted(r, out);
    for (e = s; *e != '\0' && !is_blank(*e); e++)
        if (*e == '"' || *e == '\\')
            return bad(r, "a name with quotes or backslashes goes into quotes");
    r->rest = e + (*e != '\0');
    *e = '\0';
    *out = s;
    return HEDDLE_OK;
}

/* To the next line; false: there is none. */
static heddle_status next_line(struct reader *r, bool *is_there)
{
    char *s = r->text + r->next, *end;
    size_t n;

    *is_there = r->next < r->len;
    if (!*is_there)
        return HEDDLE_OK;
    end = memchr(s, '\n', r->len - r->next);
    n = end != NULL ? (size_t)(end - s) : r->len - r->next;
    r->line++;
    r->next += n + (end != NULL);
    for (size_t i = 0; i < n; i++)
        if (((unsigned char)s[i] < 32 && !is_blank(s[i])) || s[i] == 127)
            return bad(r, "this is not text: it has a byte of value %u",
                       (unsigned)(unsigned char)s[i]);
    s[n] = '\0';
    r->rest = s;
    return HEDDLE_OK;
}

/* ---- keys and values ------------------------------------------------------- */

static heddle_status name(struct reader *r, const char *what, const char **out)
{
    char *w = NULL;

    HEDDLE_TRY(word(r, &w));
    if (w == NULL || w[0] == '\0')
        return bad(r, "%s is missing", what);
    if (strlen(w) > HEDDLE_ENERGY_NAME_MAX)
        return bad(r, "%s has more than %d bytes", what, HEDDLE_ENERGY_NAME_MAX);
    *out = w;
    return HEDDLE_OK;
}

static heddle_status amount(struct reader *r, const char *what, double *out)
{
    const char *w = NULL;

    HEDDLE_TRY(name(r, what, &w));
    if (!heddle_number_finite(w, out))
        return bad(r, "%s is not a finite number: '%.40s'", what, w);
    if (*out < 0)
        return bad(r, "%s is negative: '%.40s'", what, w);
    return HEDDLE_OK;
}

static heddle_status whole(struct reader *r, const char *what, uint64_t max, uint64_t *out)
{
    const char *w = NULL;

    HEDDLE_TRY(name(r, what, &w));
    if (heddle_parse_u64(w, out) != HEDDLE_OK || *out > max)
        return bad(r, "%s is not a whole number from 0 to %llu: '%.40s'", what,
                   (unsigned long long)max, w);
    return HEDDLE_OK;
}

static heddle_status value(struct reader *r, enum key key, const char *what, struct line *l)
{
    switch (key) {
    case KEY_WATTS:
    case KEY_IDLE:
    case KEY_MOVE: return amount(r, what, &l->watts);
    case KEY_LOW: return amount(r, what, &l->low);
    case KEY_HIGH: return amount(r, what, &l->high);
    case KEY_TIME: return amount(r, what, &l->time);
    case KEY_DEVICE: return name(r, what, &l->device);
    case KEY_VARIANT: return name(r, what, &l->variant);
    case KEY_BYTES: return whole(r, what, UINT64_MAX, &l->bytes);
    case KEY_GROUP: return whole(r, what, UINT32_MAX, &l->group);
    case KEY_COUNT: return whole(r, what, UINT64_MAX, &l->count);
    }
    return HEDDLE_EINVAL;
}

static const char *key_name(unsigned keys)
{
    for (size_t i = 0; i < sizeof(key_table) / sizeof(key_table[0]); i++)
        if ((keys & key_table[i].key) != 0)
            return key_table[i].name;
    return "?";
}

static enum key key_find(const char *w)
{
    for (size_t i = 0; i < sizeof(key_table) / sizeof(key_table[0]); i++)
        if (strcmp(w, key_table[i].name) == 0)
            return key_table[i].key;
    return 0;
}

/* The rest of a line: keys out of `may`, all of `must`. */
static heddle_status keys(struct reader *r, const char *what, unsigned must, unsigned may,
                          struct line *l)
{
    char *w = NULL;

    *l = (struct line){0};
    for (;;) {
        enum key key;

        HEDDLE_TRY(word(r, &w));
        if (w == NULL)
            break;
        key = key_find(w);
        if ((key & (must | may)) == 0)
            return bad(r, "a line '%s' has no '%.40s'", what, w);
        if ((l->seen & key) != 0)
            return bad(r, "'%s' stands here twice", w);
        l->seen |= key;
        HEDDLE_TRY(value(r, key, key_name(key), l));
    }
    if ((must & ~l->seen) != 0)
        return bad(r, "'%s' is missing", key_name(must & ~l->seen));
    if ((l->seen & KEY_LOW) != 0 && (l->seen & KEY_HIGH) == 0)
        return bad(r, "there is 'low' without 'high'");
    if ((l->seen & KEY_HIGH) != 0 && (l->seen & KEY_LOW) == 0)
        return bad(r, "there is 'high' without 'low'");
    if (l->low > l->high)
        return bad(r, "'low' is above 'high'");
    return HEDDLE_OK;
}

/* ---- lines ----------------------------------------------------------------- */

/* A row was set: is it a new one? `end` is what getting row *n says. */
static heddle_status count_row(struct reader *r, heddle_status set, heddle_status end, size_t *n)
{
    if (set != HEDDLE_OK)
        return heddle_why(r->why, r->cap, set, "%s: %s", r->path, heddle_status_text(set));
    if (end == HEDDLE_ENOENT)
        return bad(r, "a line above is about the same");
    if (++*n > ROWS_MAX)
        return bad(r, "there are more than %d lines of this kind", ROWS_MAX);
    return HEDDLE_OK;
}

static heddle_status read_domain(struct reader *r)
{
    struct heddle_energy_domain row = {.size = sizeof(row)}, last = row;
    heddle_status st;
    struct line l;

    HEDDLE_TRY(name(r, "the name of the domain", &row.name));
    HEDDLE_TRY(keys(r, "domain", KEY_IDLE, KEY_DEVICE | KEY_LOW | KEY_HIGH, &l));
    row.device = l.device;
    row.idle_watts = l.watts;
    row.low = l.low;
    row.high = l.high;
    st = heddle_energy_set_domain(r->model, &row);
    return count_row(r, st, heddle_energy_get_domain(r->model, r->ndomains, &last), &r->ndomains);
}

static heddle_status read_active(struct reader *r)
{
    struct heddle_energy_active row = {.size = sizeof(row)}, last = row;
    heddle_status st;
    struct line l;

    HEDDLE_TRY(name(r, "the kernel", &row.kernel));
    HEDDLE_TRY(name(r, "the device", &row.device));
    HEDDLE_TRY(keys(r, "active", KEY_WATTS,
                    KEY_VARIANT | KEY_BYTES | KEY_LOW | KEY_HIGH | KEY_GROUP | KEY_COUNT, &l));
    row.variant = l.variant;
    row.bytes = l.bytes;
    row.watts = l.watts;
    row.low = l.low;
    row.high = l.high;
    row.group = (uint32_t)l.group;
    row.count = l.count;
    st = heddle_energy_set_active(r->model, &row);
    return count_row(r, st, heddle_energy_get_active(r->model, r->nactive, &last), &r->nactive);
}

static heddle_status read_cap(struct reader *r)
{
    struct heddle_energy_cap row = {.size = sizeof(row)}, last = row;
    heddle_status st;
    struct line l;

    HEDDLE_TRY(name(r, "the device", &row.device));
    HEDDLE_TRY(name(r, "the name of the cap", &row.name));
    HEDDLE_TRY(keys(r, "cap", KEY_TIME | KEY_WATTS, 0, &l));
    if (l.time == 0 || l.watts == 0)
        return bad(r, "the factors of a cap are above 0");
    row.time_factor = l.time;
    row.watts_factor = l.watts;
    st = heddle_energy_set_cap(r->model, &row);
    return count_row(r, st, heddle_energy_get_cap(r->model, r->ncaps, &last), &r->ncaps);
}

static heddle_status read_move(struct reader *r)
{
    struct line l;

    HEDDLE_TRY(keys(r, "move", KEY_MOVE, 0, &l));
    if (r->has_move)
        return bad(r, "a line above is about the same");
    r->has_move = true;
    return heddle_energy_set_move(r->model, l.watts / GIGA);
}

static heddle_status read_first(struct reader *r, const char *w)
{
    uint64_t version = 0;
    char *more = NULL;

    if (strcmp(w, MAGIC) != 0)
        return bad(r, "this is no energy model: it should begin with "
                      "'" MAGIC " 1'");
    HEDDLE_TRY(whole(r, "the version", UINT32_MAX, &version));
    if (version != 1)
        return bad(r, "version %u is not known, only 1", (unsigned)version);
    HEDDLE_TRY(word(r, &more));
    return more == NULL ? HEDDLE_OK : bad(r, "'%.40s' is one word too many", more);
}

static heddle_status read_row(struct reader *r, const char *w)
{
    if (strcmp(w, "domain") == 0)
        return read_domain(r);
    if (strcmp(w, "active") == 0)
        return read_active(r);
    if (strcmp(w, "cap") == 0)
        return read_cap(r);
    if (strcmp(w, "move") == 0)
        return read_move(r);
    return bad(r,
               "'%.40s' is not known: a line begins with domain, active, "
               "cap or move",
               w);
}

static heddle_status read_lines(struct reader *r)
{
    bool is_there = true, has_first = false;
    char *w = NULL;

    for (;;) {
        HEDDLE_TRY(next_line(r, &is_there));
        if (!is_there)
            break;
        HEDDLE_TRY(word(r, &w));
        if (w == NULL)
            continue;
        HEDDLE_TRY(has_first ? read_row(r, w) : read_first(r, w));
        has_first = true;
    }
    return has_first ? HEDDLE_OK
                     : bad(r, "the file is empty: it should begin with "
                              "'" MAGIC " 1'");
}

heddle_status heddle_energy_read(const struct heddle_allocator *alloc, const char *path,
                                 heddle_energy **out, char *why, size_t why_bytes)
{
    struct reader r = {.path = path, .why = why, .cap = why_bytes};
    const char *what = "";
    heddle_status st;

    if (path == NULL || out == NULL)
        return heddle_why(why, why_bytes, HEDDLE_EINVAL, "a file name is needed");
    st = heddle_file_read(path, BYTES_MAX, alloc, &r.text, &r.len, &what);
    if (st != HEDDLE_OK)
        return heddle_why(why, why_bytes, st, "%s: %s", path, what);
    st = heddle_energy_create(alloc, &r.model);
    if (st == HEDDLE_OK)
        st = read_lines(&r);
    else
        (void)heddle_why(why, why_bytes, st, "%s: %s", path, heddle_status_text(st));
    heddle_free(alloc, r.text, r.len + 1);
    if (st != HEDDLE_OK) {
        heddle_energy_destroy(r.model);
        return st;
    }
    *out = r.model;
    return HEDDLE_OK;
}
